"""Every match of an expression contains one of its hints, and a search with hints finds the same match."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.formats.lazy_regex import hinted_regex
from bestofn.builders.formats.regex_hints import NO_HINTS, hints_of
from bestofn.verifiers.math_verifier.boxes import _CORRECTION
from bestofn.verifiers.refusal_patterns import PATTERNS

RULES = {rule.name: rule.regex.pattern for rule in PATTERNS}


@pytest.mark.parametrize(
    ("source", "flags", "hints"),
    [
        ("wait", 0, {"wait"}),
        (r"\b(?:sorry|oops)\b", 0, {"sorry", "oops"}),
        (r"\d+ apples", 0, {" apples"}),
        (r"(?:abc)?x", 0, NO_HINTS),
        (r"(?:abc)+x", 0, {"abc"}),
        (r"(?:abc|[xy]z)", 0, NO_HINTS),
        (r"no.{0,5}way", 0, {"way"}),
        (r"a|b", 0, NO_HINTS),
        ("(?i:Wait)", 0, NO_HINTS),
        ("WAIT", re.IGNORECASE, {"wait"}),
    ],
)
def test_hints_by_hand(source: str, flags: int, hints: set[str]) -> None:
    assert hints_of(source, flags) == hints


def test_most_rules_have_hints() -> None:
    without = [name for name, source in RULES.items() if not hints_of(source)]
    assert len(without) < len(RULES) / 4, without


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_each_match_contains_a_hint(name: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(RULES[name]))
    hinted, plain = hinted_regex(RULES[name]), re.compile(RULES[name])
    found, expected = hinted.search(text), plain.search(text)
    assert (found and found.span()) == (expected and expected.span())


@settings(max_examples=100, deadline=None)
@given(st.from_regex(re.compile(_CORRECTION.pattern, re.IGNORECASE)))
def test_letters_that_equal_others_in_upper_case_are_found(text: str) -> None:
    assert _CORRECTION.search(text)
