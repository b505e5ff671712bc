"""Different names of one thing: known names are equal, and unknown names of places are undecided."""

from __future__ import annotations

from collections import Counter

import pytest

from bestofn.verifiers.short_answer.names import TABLE, known_names
from bestofn.verifiers.short_answer.tokens import forms
from tests.verifiers.short_answer.test_verifier import outcome

WON = "Which country won the cup?"
WHERE = "Where is the film set?"
CAPITAL = "What is the capital of the country?"


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        (WON, "Netherlands", "Holland"),
        (WON, "Holland", "The cup was won by the Netherlands."),
        (WON, "United States", "USA"),
        (WON, "United States", "It was the USA."),
        (WON, "USA", "the United States of America"),
        (WON, "Türkiye", "Turkey"),
        (CAPITAL, "Beijing", "Peking"),
        (WHERE, "Mumbai", "It is set in Bombay."),
        (WHERE, "Köln", "Cologne"),
        ("Who wrote it?", "Mark Twain", "Samuel Clemens wrote it."),
        ("Which language is it?", "Persian", "Farsi"),
        ("Which metal is used in bulbs?", "tungsten", "wolfram"),
    ],
)
def test_known_names_of_one_thing_are_equal(question: str, reference: str, answer: str) -> None:
    assert outcome(question, reference, answer) == "pass"


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        (WON, "Netherlands", "It was Denmark."),
        (CAPITAL, "Vienna", "Graz"),
        (WHERE, "Mumbai", "Delhi"),
        (WHERE, "Tulsa, Oklahoma", "It is set in Los Angeles."),
        ("Who wrote it?", "Mark Twain", "Jack London wrote it."),
        ("What was Mumbai called before 1995?", "Bombay", "Mumbai"),
        ("What is the old name of Beijing?", "Peking", "Beijing"),
    ],
)
def test_another_name_does_not_pass(question: str, reference: str, answer: str) -> None:
    assert outcome(question, reference, answer) == "abstain"


@pytest.mark.parametrize("answer", ["Brünn", "It is set in Brünn.", "brünn"])
def test_another_name_of_a_place_that_is_not_known_abstains(answer: str) -> None:
    """An unknown name of one word gets ``abstain``, because it may be another name of the same place."""
    assert outcome(WHERE, "Brno", answer) == "abstain"


@pytest.mark.parametrize("answer", ["Let us see: they lost.", "They asked us."])
def test_the_pronoun_us_is_not_a_country(answer: str) -> None:
    assert outcome(WON, "United States", answer) != "pass"


def test_a_later_place_is_not_the_place_of_birth() -> None:
    asked = "Where was he born?"
    assert outcome(asked, "Ulm", "Born in Munich and moved to Ulm.") == "abstain"
    assert outcome(asked, "Ulm", "He was born in Munich, then went to Ulm.") == "abstain"
    assert outcome(asked, "Ulm", "He was born in Ulm and moved to Munich.") == "pass"
    assert outcome("Who wrote the song?", "Randy Newman", "It was written and sung by Randy Newman.") == "pass"


def test_no_name_means_two_things() -> None:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    things = [{forms(name) for name in names.split(" = ")} for line in lines for names in line.split("; ") if names]
    counts = Counter(name for names in things for name in names)
    assert [name for name, count in counts.items() if count > 1] == []
    assert all(known_names())
