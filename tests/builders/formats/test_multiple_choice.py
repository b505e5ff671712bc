"""The options in prompts are found, and gold answers in all forms name the right options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats.multiple_choice import (
    LETTERS,
    gold_options,
    letters_of,
    listed_options,
    with_options,
    without_labels,
)

CITIES = ("Paris", "Rome", "Oslo", "Bern")
GOLD = [
    ("C", {2}),
    ("c", {2}),
    ("(c)", {2}),
    ("C.", {2}),
    ("Ｃ", {2}),
    ("option C", {2}),
    ("The answer is C", {2}),
    (r"\boxed{C}", {2}),
    ("2", {2}),
    ("Oslo", {2}),
    ("oslo.", {2}),
    ("C. Oslo", {2}),
    ("AC", {0, 2}),
    ("A, C", {0, 2}),
    ("C,A", {0, 2}),
    ("A、C", {0, 2}),
    ("A and C", {0, 2}),
    ("(A)(C)", {0, 2}),
    ('["A", "C"]', {0, 2}),
]


@pytest.mark.parametrize(("answer", "options"), GOLD)
def test_a_gold_answer_is_a_letter_letters_an_index_or_a_text(answer: str, options: set[int]) -> None:
    assert gold_options(answer, CITIES) == options


@pytest.mark.parametrize("answer", ["", "E", "4", "BAD", "Madrid", "C. Rome", "none"])
def test_a_gold_answer_that_names_no_option_is_not_guessed(answer: str) -> None:
    assert gold_options(answer, CITIES) is None


def test_a_number_that_is_an_index_and_another_option_is_ambiguous() -> None:
    assert gold_options("2", ("1", "2", "3", "4")) is None
    assert gold_options("2", ("0", "1", "2", "3")) == {2}
    assert gold_options("20", ("10", "20", "30")) == {1}
    assert gold_options("A", ("B", "A")) is None


@given(st.sets(st.integers(0, 9), min_size=1), st.sampled_from([", ", ",", " and ", "", " "]))
def test_letters_are_read_as_they_are_written(options: set[int], separator: str) -> None:
    written = separator.join(LETTERS[index] for index in sorted(options))
    assert gold_options(written, [f"option number {index}" for index in range(10)]) == options
    assert letters_of(frozenset(options)).replace(", ", "") == "".join(sorted(LETTERS[index] for index in options))


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("Which?\nA. x\nB. y", ("x", "y")),
        ("Which? (A) 2 (B) 3 (C) $4$", ("2", "3", "4")),
        ("哪个正确（　）\nA．无氧 B．有氧", ("无氧", "有氧")),
        ("Example\nA. 1\nB. 2\nAnswer: A\n\nWhich?\nA) u\nB) v\nC) w", ("u", "v", "w")),
        ("Is A. Smith right?", ()),
        ("Find 3 + 4.", ()),
    ],
)
def test_options_that_a_prompt_lists(prompt: str, options: tuple[str, ...]) -> None:
    assert listed_options(prompt) == options


def test_options_are_added_only_to_a_prompt_that_does_not_list_them() -> None:
    prompt = with_options("Capital of Norway?", CITIES)
    assert prompt == "Capital of Norway?\n\nA. Paris\nB. Rome\nC. Oslo\nD. Bern"
    assert with_options(prompt, CITIES) == prompt


def test_labels_within_the_options_are_removed() -> None:
    assert without_labels(["A)21", "B)24"]) == ("21", "24")
    assert without_labels(["(A) x", "(B) y"]) == ("x", "y")
    assert without_labels(["A. Smith", "C. Jones"]) == ("A. Smith", "C. Jones")
