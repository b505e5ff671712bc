import pyarrow as pa
import pytest
from datasets import Dataset, Features, Json, List, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.schema import clean
from bestofn.builders.tables.arrow_rows import from_table, to_table

FEATURES = Features(
    {
        "id": Value("string"),
        "messages": List(Json()),
        "detail": Json(),
        "parts": List({"n": Value("int64"), "talk": List(Json()), "usage": {"prompt": Value("int64")}}),
    }
)
plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), plain, max_size=3)
part = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "talk": st.lists(objects, max_size=3),
        "usage": st.fixed_dictionaries({"prompt": st.none() | st.integers(0, 10**6)}),
    }
)
row = st.fixed_dictionaries(
    {"id": st.text(), "messages": st.lists(objects, max_size=3), "detail": objects, "parts": st.lists(part, max_size=3)}
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(row, min_size=1, max_size=4).map(clean))
def test_rows_come_back_as_they_went(rows: list[dict]) -> None:
    assert from_table(to_table(rows, FEATURES), FEATURES) == rows


def test_datasets_reads_the_same_rows() -> None:
    talk = [{"role": "user", "content": "é\n"}]
    part = {"n": 1, "talk": [{"a": 2.5}], "usage": {"prompt": None}}
    rows = [
        {"id": "a", "messages": talk, "detail": {"x": [1, None, {"y": "1"}]}, "parts": []},
        {"id": None, "messages": [], "detail": {}, "parts": [part]},
    ]
    table = to_table(rows, FEATURES)
    assert Dataset(table).to_list() == rows


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Value("string"), 1),
        (Value("int64"), "1"),
        (Value("int64"), 2**70),
        (Value("float64"), "1"),
        (Value("bool"), 1),
        ({"a": Value("string")}, 3),
    ],
)
def test_a_value_of_another_type_is_an_error(feature: object, value: object) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, OverflowError)):
        to_table([{"x": value}, {"x": None}], Features({"x": feature}))


def test_an_empty_table_keeps_its_schema() -> None:
    assert to_table([], FEATURES).schema == FEATURES.arrow_schema
