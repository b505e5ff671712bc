"""Our JSON Schema validation finds the violations that jsonschema finds, and no value or schema takes long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bestofn.builders.formats.json_schema import MAX_STEPS, Undecided, problem, violation
from tests.growth import assert_linear

DOUBLING = {f"a{number}": {"anyOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(40)}


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "^(?=.*x)(a+)+$", "(a{1,30}){1,30}b", "a?" * 30 + "a" * 30])
def test_a_pattern_that_backtracks_for_long_takes_no_time(pattern: str) -> None:
    """Values are checked within the time limit, although Python's regex engine would take years for the pattern."""
    text = "a" * 5_000 + "!"
    for schema, value in (
        ({"pattern": pattern}, text),
        ({"patternProperties": {pattern: {"type": "integer"}}, "additionalProperties": False}, {text: "x"}),
    ):
        assert isinstance(problem(schema, value), str)


def test_references_that_double_the_work_end_at_the_limit_and_report_no_violation() -> None:
    assert problem({"$defs": {**DOUBLING, "a40": {"type": "string"}}, "$ref": "#/$defs/a0"}, 3) == ""


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$defs": {**DOUBLING, "a40": {"type": "string"}}, "$ref": "#/$defs/a0"}, 3),
        ({"pattern": "(?=.*x)(a+)+$"}, "a" * 5_000 + "!"),
        ({"patternProperties": {"(?=.*x)(a+)+$": {}}, "additionalProperties": False}, {"a" * 5_000: 1}),
    ],
    ids=["steps", "pattern", "names"],
)
def test_a_validation_that_exceeds_a_limit_is_undecided(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(Undecided):
        violation(schema, value)
    assert problem(schema, value) == ""


def test_a_violation_within_the_limit_is_reported() -> None:
    assert problem({"items": {"type": "integer"}}, ["x", *range(MAX_STEPS)]) == "0: 'x' is not of type 'integer'"
    assert problem({"items": {"type": "integer"}}, [*range(MAX_STEPS), "x"]) == ""


def test_the_time_of_unique_items_grows_linearly() -> None:
    assert_linear(
        lambda text: problem({"uniqueItems": True}, [[letter, at] for at, letter in enumerate(text)]), "a", 80_000
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5]) | st.text("ab1", max_size=4),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text("abx", max_size=2), one, max_size=3),
    max_leaves=6,
)
schemas = st.fixed_dictionaries(
    {},
    optional={
        "pattern": st.sampled_from(["^a", "a+b?", "(ab)*1", "^[ab]+$", "(?i)A"]),
        "uniqueItems": st.booleans(),
        "patternProperties": st.dictionaries(
            st.sampled_from(["^a", "b+a*", "x"]), st.sampled_from([{"type": "integer"}, True]), max_size=2
        ),
        "properties": st.dictionaries(st.sampled_from(["a", "b", "x"]), st.just({"type": "string"}), max_size=2),
        "additionalProperties": st.sampled_from([False, True, {"type": "null"}]),
        "unevaluatedProperties": st.sampled_from([False, {"type": "null"}]),
    },
)


@settings(max_examples=150)
@given(schemas | st.fixed_dictionaries({"items": schemas}), values)
def test_the_limits_change_no_verdict_on_small_values(schema: Any, value: Any) -> None:
    assert (problem(schema, value) == "") == Draft202012Validator(schema).is_valid(value)
