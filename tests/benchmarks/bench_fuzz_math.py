"""Judges megabytes of mutated answers: none may raise or take long.

``python tests/benchmarks/bench_fuzz_math.py [megabytes] [seed]`` mutates the pairs of the test tables (cut, doubled,
spliced, bytes flipped, signs repeated), judges each by its reference, and prints the slowest. The exit code is 1
when an answer raised or took more than two seconds.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.verifiers.math_verifier import judge, units  # noqa: E402

TABLES = [ROOT / "tests" / "verifiers" / "tables" / name for name in ("math_pairs.txt", "math_texts.txt")]
SIGNS = [*"\\{}()[]$^_|!%&,;:=<>+-*/.0123456789xie √½∞€'\"\n\t#~", "\\frac", "\\boxed{", "\\sqrt", "\\text{",
    "answer is ", "\\begin{pmatrix}", "9^9", "10^{10}", "\\binom", "</think>", '"answer": ',
]  # fmt: skip
LIMIT_S = 2.0


def main(megabytes: float = 2.0, seed: int = 0) -> int:
    units.load()  # as the verifier does when it is opened
    chance = random.Random(seed)
    seeds = [
        side
        for table in TABLES
        for line in table.read_text(encoding="utf-8").splitlines()
        for side in line.replace("⇎", "⇔").split(" ⇔ ")
    ]
    done = runs = raised = 0
    slowest: list[tuple[float, str]] = []
    while done < megabytes * 1e6:
        reference, text = chance.choice(seeds), mutated(chance, seeds)
        started = time.perf_counter()
        try:
            judge(reference, text, problem=text[:100])
        except Exception:  # what the fuzzing is for: tell and go on
            raised += 1
            print(f"raised on {reference!r} / {text!r}\n{traceback.format_exc()}")
        slowest = sorted([*slowest, (time.perf_counter() - started, text)], reverse=True)[:5]
        done += len(text.encode())
        runs += 1
    print(f"{runs} texts, {done / 1e6:.1f} MB, {raised} raised; slowest:")
    for seconds, text in slowest:
        print(f"  {seconds * 1e3:8.1f} ms  {text[:100]!r}")
    return int(raised > 0 or slowest[0][0] > LIMIT_S)


def mutated(chance: random.Random, seeds: list[str]) -> str:
    text = chance.choice(seeds)
    if chance.random() < 0.5:
        text = f"\\boxed{{{text}}}"
    for _ in range(chance.randint(1, 12)):
        at = chance.randint(0, len(text))
        kind = chance.randrange(6)
        if kind == 0:
            text = text[:at] + chance.choice(SIGNS) * chance.choice((1, 1, 1, 2, 30)) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + chance.randint(0, 5) :]
        elif kind == 2:
            text = text[:at] + chance.choice(seeds) + text[at:]
        elif kind == 3:
            text = text[:at] + text[chance.randint(0, at) : at] * chance.randint(1, 4) + text[at:]
        elif kind == 4:
            text = (
                text[:at]
                + chr(chance.choice((0, 13, 127, 160, 0x2212, 0x1D7D8, 0x661, 0x5E0, 0xD800, 0x1F600)))
                + text[at:]
            )
        else:
            text = f"{text} {chance.choice(seeds)}"
    return text.encode("utf-8", "replace").decode()[:6_000]


if __name__ == "__main__":
    raise SystemExit(main(*(float(word) if n == 0 else int(word) for n, word in enumerate(sys.argv[1:3]))))
