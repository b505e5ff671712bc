"""The pairs of ``tables/math_pairs.txt`` on which Math-Verify and the math verifier differ.

``python -m tests.verifiers.math.math_verify_differences`` writes them to ``tables/math_verify_differences.txt`` (40 s).
"""

from __future__ import annotations

from bestofn.verifiers.math import judge_answer
from bestofn.verifiers.math.extraction import Answer
from bestofn.verifiers.math.math_verify import accepts
from tests.verifiers.math.test_pairs import PAIRS, TABLES, marked

FILE = TABLES / "math_verify_differences.txt"
HEAD = """\
# Pairs of math_pairs.txt on which Math-Verify 0.9.0 differs from the math verifier: reference, mark, answer.
# ⇔ means that the answer is equal to the reference, ⇎ that it is not. The math verifier is right in all of them.
"""


def differs(reference: str, answer: str) -> bool:
    """Return whether exactly one verifier accepts ``answer``.

    Math-Verify gets the answer inside ``\\boxed{}``, as its documentation says.
    """
    ours = judge_answer(reference, Answer(answer, "given")).outcome == "pass"
    return ours != (accepts((reference,), f"\\boxed{{{answer}}}", options=False) is True)


def main() -> None:
    """Write the pairs on which the two verifiers differ to ``tables/math_verify_differences.txt``."""
    lines = [marked(*pair) for _, *pair in PAIRS if differs(pair[0], pair[1])]
    FILE.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
