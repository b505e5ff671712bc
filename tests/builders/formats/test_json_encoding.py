"""The encoder gives the same text as ``json.JSONEncoder``."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats.json_encoding import encoder_like

ENCODERS = (
    json.JSONEncoder(),
    json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str),
    json.JSONEncoder(sort_keys=True, default=list),
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("settings", ENCODERS)
@given(value=plain)
def test_the_text_equals_that_of_the_standard_library(settings: json.JSONEncoder, value: Any) -> None:
    encode = encoder_like(settings)
    assert encode(value) == settings.encode(value)
    assert encode(value) == settings.encode(value), "a second value is encoded in the same way"


def test_values_without_a_json_form_are_converted_or_refused() -> None:
    assert encoder_like(json.JSONEncoder(default=str))({"day": date(2026, 1, 2)}) == '{"day": "2026-01-02"}'
    with pytest.raises(TypeError):
        encoder_like(json.JSONEncoder())({"day": date(2026, 1, 2)})


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    encode = encoder_like(json.JSONEncoder())
    with pytest.raises(RecursionError):
        encode(endless)
    assert encode([1]) == "[1]"
