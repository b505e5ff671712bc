"""Checks the math verifier in two parts: with megabytes of mutated answers, and with rewritten answers.

``python tests/benchmarks/bench_fuzz_math.py [megabytes] [seed]`` mutates the pairs of the test tables (cut, doubled,
spliced, bytes flipped, signs repeated), verifies each against its reference, and prints the slowest. No answer may
raise an error or take long.

The second part uses the equal pairs of the tables. A change that keeps the meaning (layout, phrases, remarks) must not
make a right answer ``fail``. A near miss (one digit or sign changed) must not ``pass``.

The exit code is 1 if an answer raised, took more than two seconds, or got a wrong verdict in the second part.
"""

from __future__ import annotations

import random
import re
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.verifiers.math import judge, units  # noqa: E402

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
    wrong = rewritten()
    return int(raised > 0 or slowest[0][0] > LIMIT_S or wrong > 0)


REWRITINGS = [
    r"\boxed{%s}", r"So the answer is \boxed{%s}. I am 99.7 percent certain of this result.", r"$\boxed{%s}$",
    r"\[\boxed{\,%s\,}\]", r"\fbox{%s}", "<think>It is 1.</think>\n\\boxed{%s}", r"\boxed{%s}. I completed this in 0.003 seconds.",
    r"\boxed{%s} If one of them were missing, the answer would be 123456.", r"\boxed{\displaystyle %s}", "<answer>%s</answer>",
]  # fmt: skip


def rewritten() -> int:
    """Print the wrong verdicts on rewritten pairs of the tables, and return their number."""
    right = wrong = 0
    for reference, answer in equal_pairs():
        for form in REWRITINGS:
            finding = judge(reference, form % answer)
            if finding.outcome == "fail":
                wrong += 1
                print(f"a right answer fails: {reference!r} / {form % answer!r} ({finding.method})")
            right += 1
        for miss in near_misses(answer):
            finding = judge(reference, rf"\boxed{{{miss}}}")
            if finding.outcome == "pass":
                wrong += 1
                print(f"a wrong answer passes: {reference!r} / {miss!r} ({finding.method})")
            right += 1
    print(f"{right} rewritten answers, {wrong} wrong verdicts")
    return wrong


def equal_pairs() -> list[tuple[str, str]]:
    """Return the pairs of the first table whose answer passes inside ``\\boxed{}``; the others are omitted."""
    lines = [line.split(" ⇔ ") for line in TABLES[0].read_text(encoding="utf-8").splitlines() if " ⇔ " in line[1:]]
    pairs = [(parts[0], parts[1]) for parts in lines if len(parts) == 2 and not parts[0].startswith("#")]
    return [
        pair for pair in pairs if "boxed" not in pair[1] and judge(pair[0], rf"\boxed{{{pair[1]}}}").outcome == "pass"
    ]


def near_misses(answer: str) -> list[str]:
    """Return two wrong answers: the first digit increased by 1, and the sign of the first number changed."""
    digit = re.search(r"(?<![\d._^{,])[1-8](?![\d.,_}])", answer)
    if (
        digit is None
        or any(mark in answer for mark in "%_|=")
        or re.search(r"\\(?:text|pm|frac|cos|sin)|[A-Za-z]{2}", answer)
    ):
        return []
    at = digit.start()
    return [answer[:at] + str(int(answer[at]) + 1) + answer[at + 1 :]]


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
