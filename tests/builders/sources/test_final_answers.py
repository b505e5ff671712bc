"""Final answers are extracted from worked solutions: from ``\\boxed{}`` and from the text after ####."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.sources.columns import after_hashes, last_boxed
from bestofn.verifiers.prose.texts import group

BOXES = [
    (r"\boxed{42}", "42"),
    (r"so \boxed{1} and then \boxed{2}", "2"),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
    (r"\boxed{\sqrt{\frac{a}{b}}} done", r"\sqrt{\frac{a}{b}}"),
    (r"\boxed{ 7 }", "7"),
    (r"\boxed {8}", "8"),
    (r"\fbox{9} \boxed{10}", "10"),
    (r"\boxed{x \in \{1, 2\}}", r"x \in \{1, 2\}"),
    (r"\boxed{a", None),
    (r"\boxed{a{b}", None),
    ("no box", None),
    ("", None),
    (r"\boxed", None),
    (r"\boxed 5", "5"),
    (r"\boxed 5.", "5"),
    (r"<think>\boxed{1}</think> \boxed{2}", "2"),
    (r"<think>\boxed{1}</think> none", None),
    (r"<think>never closed \boxed{1}", None),
    (r"<thinking>\boxed{1}</thinking>\boxed{3}", "3"),
    (r"\boxed{\text{Monday}}", r"\text{Monday}"),
    (r"\boxed{(1, 2)}", "(1, 2)"),
    (r"\boxed{}", ""),
    (r"$\boxed{3}$ apples", "3"),
    ("\\boxed{two\nlines}", "two\nlines"),
    (r"\boxed{1{,}000}", "1{,}000"),
    (r"\boxed{\begin{pmatrix}1\\{2}\end{pmatrix}}", r"\begin{pmatrix}1\\{2}\end{pmatrix}"),
    (r"\boxed{\{1\\\}, 2\}} so", r"\{1\\\}, 2\}"),
    (r"\boxed{a\\} b}", r"a\\"),
    (r"\boxed{a\}", None),
]
HASHES = [
    ("#### 42", "42"),
    ("text\n#### 42", "42"),
    ("#### 1\n#### 2", "2"),
    ("####42", "42"),
    ("#### 1,000", "1000"),
    ("#### -1,234,567", "-1234567"),
    ("#### $1,000", "$1000"),
    ("#### 3.5", "3.5"),
    ("#### 1,5 and 2", "1,5 and 2"),
    ("#### 2,3", "2,3"),
    ("#### 1,2,3", "1,2,3"),
    ("#### -1,5", "-1,5"),
    ("#### 1,234,56", "1,234,56"),
    ("#### 1234,567", "1234,567"),
    ("#### ,", ","),
    ("#### 12,345.50", "12345.50"),
    ("### 5", None),
    ("no mark", None),
    ("", None),
    ("#### ", None),
    ("<think>#### 1</think>#### 2", "2"),
    ("#### x = 3", "x = 3"),
    ("a #### b", "b"),
]


@pytest.mark.parametrize(("text", "answer"), BOXES)
def test_the_last_closed_box_is_the_answer(text: str, answer: str | None) -> None:
    assert last_boxed(text) == answer


@pytest.mark.parametrize(("text", "answer"), HASHES)
def test_the_text_after_the_last_hashes_is_the_answer(text: str, answer: str | None) -> None:
    assert after_hashes(text) == answer


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_extraction_never_raises(text: str) -> None:
    last_boxed(text)
    last_boxed("\\boxed{" + text)
    after_hashes("####" + text)


ATOMS = st.sampled_from(["1", "x", "\\", "\\\\", "\\{", "\\}", "\\frac", " "])
NESTED = st.recursive(ATOMS, lambda inner: st.lists(inner).map(lambda parts: "{" + "".join(parts) + "}"))


@pytest.mark.slow
@given(st.lists(NESTED).map("".join).filter(lambda text: not text.endswith("\\")))
def test_what_is_in_balanced_braces_is_the_answer(text: str) -> None:
    """The text between balanced braces is the final answer, and the math verifier reads the same text."""
    read = group("{" + text + "} end", 0)
    assert read
    assert last_boxed("\\boxed{" + text + "} end") == (read.text.strip() if read.closed else None)


@given(st.integers(), st.sampled_from(["", "$"]))
def test_thousands_separators_are_removed(number: int, mark: str) -> None:
    sign = "-" if number < 0 else ""
    assert after_hashes(f"#### {sign}{mark}{abs(number):,}") == f"{sign}{mark}{abs(number)}"
