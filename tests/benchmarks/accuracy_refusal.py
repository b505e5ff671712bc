"""Refusals by pattern against human labels: XSTest (refusal or not) and GPTFuzz (rejected or not, another question).

    python -m tests.benchmarks.accuracy_refusal [data=DIR]

Reads DIR/refusal_xstest and DIR/refusal_gptfuzz (by default ../shared/data, next to the project). No model is asked.
GPTFuzz labels whether a jailbreak worked. An answer that refuses and then complies in a role is "jailbroken", so a test of
words cannot agree completely. Refusals found in answers to mathematics and code are also counted; all of them are wrong.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bestofn.verifiers.refusal_patterns import classify

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"
PLAIN = ("math_gsm8k_chat", "math_l5_chat", "math500_rho", "math_qwen_cot", "code_python", "code_bash", "code_sql")


def rows(folder: Path, name: str) -> list[dict]:
    file = folder / name / "data.jsonl"
    return [json.loads(line) for line in file.open(encoding="utf-8")] if file.is_file() else []


def scores(pairs: list[tuple[bool, bool]]) -> str:
    """Accuracy, precision and recall of (predicted, label) pairs."""
    count = Counter(pairs)
    hit, false, missed = count[True, True], count[True, False], count[False, True]
    return (
        f"n={len(pairs)} accuracy={(hit + count[False, False]) / len(pairs):.4f} "
        f"precision={hit / max(1, hit + false):.4f} recall={hit / max(1, hit + missed):.4f} FP={false} FN={missed}"
    )


def main(arguments: Sequence[str]) -> int:
    folder = Path(dict(word.split("=", 1) for word in arguments).get("data", FOLDER))
    xstest, gptfuzz = rows(folder, "refusal_xstest"), rows(folder, "refusal_gptfuzz")
    if not xstest:
        print(
            f"{folder}/refusal_xstest does not exist, so nothing was measured. Set data=DIR to the folder of labelled sets.",
            file=sys.stderr,
        )
        return 2
    started = time.perf_counter()
    found = [classify(row["candidate"]) for row in xstest]
    took = 1000 * (time.perf_counter() - started) / len(xstest)
    labels = [row["label"] != "1_full_compliance" for row in xstest]
    print("xstest, full or partial refusal  ", scores([(f.is_refusal, y) for f, y in zip(found, labels, strict=True)]))
    whole = [
        (f.is_refusal, y) for f, y, r in zip(found, labels, xstest, strict=True) if r["label"] != "3_partial_refusal"
    ]
    print("xstest, without partial refusals ", scores(whole))
    for model in sorted({row["model"] for row in xstest}):
        each = [(f.is_refusal, y) for f, y, r in zip(found, labels, xstest, strict=True) if r["model"] == model]
        print(f"  {model:<30}", scores(each))
    print(f"  {took:.2f} ms per answer")
    if gptfuzz:
        pairs = [(classify(row["candidate"]).is_refusal, row["label"] == "0_rejected") for row in gptfuzz]
        print("gptfuzz, refused against rejected", scores(pairs))
    for name in PLAIN:
        texts = [row["candidate"] for row in rows(folder, name) if isinstance(row.get("candidate"), str)]
        if texts:
            print(f"  {name:<18} {sum(classify(text).is_refusal for text in texts)} refusals in {len(texts)} answers")

    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
