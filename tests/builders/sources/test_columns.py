"""Tool calls and lists are parsed from the text of a column."""

from __future__ import annotations

from bestofn.builders.sources.columns import calls_in, last_list


def test_an_answer_without_a_written_call_expects_nothing() -> None:
    assert calls_in("[f(a=1), g(b='x')]") == [
        {"name": "f", "arguments": {"a": 1}},
        {"name": "g", "arguments": {"b": "x"}},
    ]
    assert calls_in("Which city do you mean?") is None
    assert calls_in("[Get Weather(city='Oslo')]") == [{"name": "Get Weather", "arguments": {"city": "Oslo"}}], (
        "as in ToolACE"
    )
    assert calls_in("[see Table (1)]") is None
    assert last_list('see [1] and [{"a": [1]}] then [x]') == [{"a": [1]}]
    assert last_list("[[[") is None
