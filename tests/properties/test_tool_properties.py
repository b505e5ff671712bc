"""Properties of the tool verifier and the mock tools that hold for all values and all lists of calls."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from bestofn.builders.formats.linear_regex import PatternError, find_all
from bestofn.sandbox.tools.tool_matching import nearest
from bestofn.verifiers.tools.declarations import MadeCall
from bestofn.verifiers.tools.matching import match
from bestofn.verifiers.tools.values import contains_fact, equal_values, normalised

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_is_itself(value: Any) -> None:
    assert equal_values(value, value)
    assert equal_values(value, value, lenient=True, unordered=True)


@given(VALUES, VALUES, st.booleans(), st.booleans())
def test_equality_has_no_direction(one: Any, other: Any, lenient: bool, unordered: bool) -> None:
    here = equal_values(one, other, lenient=lenient, unordered=unordered)
    assert here == equal_values(other, one, lenient=lenient, unordered=unordered)


@given(VALUES, VALUES)
def test_leniency_only_adds(one: Any, other: Any) -> None:
    if equal_values(one, other):
        assert equal_values(one, other, lenient=True)
        assert equal_values(one, other, unordered=True)


@given(st.integers(), st.integers())
def test_numbers_are_never_confused(one: int, other: int) -> None:
    assert equal_values(one, other) == (one == other)
    assert equal_values(str(one), str(other)) == (one == other)


@given(st.lists(st.integers(0, 3), max_size=6), st.randoms(use_true_random=False))
def test_order_free_matching_knows_no_order(values: list[int], chance: Any) -> None:
    expected = [{"name": "f", "arguments": {"x": value}} for value in values]
    made = [MadeCall("f", {"x": value}) for value in values]
    chance.shuffle(made)
    found = match(expected, made)
    assert (found.missing, found.extra) == ((), ())
    assert found.precision == found.recall == 1.0


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_every_call_is_matched_missing_or_extra(wanted: list[int], made: list[int]) -> None:
    expected = [{"name": "f", "arguments": {"x": value}} for value in wanted]
    calls = [MadeCall("f", {"x": value}) for value in made]
    common = sum(min(wanted.count(value), made.count(value)) for value in set(wanted))
    found = match(expected, calls)
    assert len(found.matched) == common
    assert len(found.matched) + len(found.missing) == len(wanted)
    assert len(found.matched) + len(found.extra) == len(made)
    in_order = match(expected, calls, order="subsequence")
    assert len(in_order.matched) <= common
    assert list(in_order.matched) == sorted(in_order.matched, key=lambda pair: pair[1])


@given(st.text(max_size=40))
def test_spaces_around_say_nothing(text: str) -> None:
    assert normalised(f" {text} ") == normalised(text)


@given(st.text(max_size=40), st.text(max_size=20))
def test_facts_and_names_never_break(text: str, fact: str) -> None:
    assert contains_fact(text, fact) in (True, False)
    assert 0.0 <= nearest(text, fact).confidence <= 1.0


AMOUNTS = st.decimals(min_value=-(10**9), max_value=10**9, places=2) | st.integers(-(10**6), 10**6).map(Decimal)
WRITTEN: tuple[Callable[[Decimal], str], ...] = (
    lambda number: f"It is {number}",
    lambda number: f"It is {number:,} degrees.",
    lambda number: f"It is {number:,.4f}.",
    lambda number: f"**{number:,}**, I think",
    lambda number: f"({number})",
    lambda number: f"x={number:.2f}",
    lambda number: f"It is {number} %",
    lambda number: f"It costs {_signed(number, '$')}.",
    lambda number: f"It costs {number:,.2f} €",
    lambda number: f"{number:,} dollars in all",
    lambda number: f"USD {number:,}",
    lambda number: f"It is {number:,}".replace(",", "\u202f"),
    lambda number: f"It is {number:,}".replace(",", "'"),
    lambda number: f"It is {number:,}".replace("-", "\u2212"),
    lambda number: f"It is {number:,}; more is not known".replace("-", "\u2013"),
)


def _signed(number: Decimal, currency: str) -> str:
    return f"{'-' if number < 0 else ''}{currency}{abs(number):,.2f}"


@given(AMOUNTS, st.sampled_from(WRITTEN), st.sampled_from(["{}", "{:,}", "{:.2f}", "{:.3f}"]))
def test_a_number_is_found_however_it_is_written(number: Decimal, written: Any, fact: str) -> None:
    assert contains_fact(written(number), fact.format(number))


@given(AMOUNTS, AMOUNTS | st.none(), st.sampled_from(WRITTEN), st.sampled_from(["{}", "{:,}", "{:.2f}"]))
def test_a_different_number_is_not_found(number: Decimal, other: Decimal | None, written: Any, fact: str) -> None:
    other = -number if other is None else other
    if other != number:
        assert not contains_fact(written(number), fact.format(other))


@given(st.text("0123456789.,-+$€%*_'( \u2212ax", max_size=14))
def test_a_fact_stands_in_itself(fact: str) -> None:
    if fact.strip(" .,*_"):
        assert contains_fact(fact, fact)


@given(st.from_regex(r"[ab.|()*+?\[\]^$\\d{},0-9-]{0,12}", fullmatch=True), st.text("ab1-", max_size=12))
def test_patterns_end_with_matches_or_a_reason(pattern: str, text: str) -> None:
    import re

    assume("{," not in pattern)  # RE2 reads a{,3} as text
    try:
        found = find_all(pattern, text)
    except PatternError:
        return
    try:
        first = re.search(pattern, text)
    except re.error:
        return
    assert bool(found) == bool(first)
    if first and first.group():
        assert first.group() in found
