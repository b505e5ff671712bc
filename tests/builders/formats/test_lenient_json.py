import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats.lenient_json import COMMANDS, find_object

AS_WRITTEN = [
    # LaTeX with single backslashes: what json.loads eats or refuses
    (r'{"a": "\frac{1}{2}"}', {"a": r"\frac{1}{2}"}),
    (r'{"a": "\nabla f"}', {"a": r"\nabla f"}),
    (r'{"a": "\theta + \tau"}', {"a": r"\theta + \tau"}),
    (r'{"a": "\text{cm}"}', {"a": r"\text{cm}"}),
    (r'{"a": "\beta\bar{x}"}', {"a": r"\beta\bar{x}"}),
    (r'{"a": "\boxed{42}"}', {"a": r"\boxed{42}"}),
    (r'{"a": "\rho\right)"}', {"a": r"\rho\right)"}),
    (r'{"a": "\underline{x}"}', {"a": r"\underline{x}"}),
    (r'{"a": "\alpha \le \sqrt{2}"}', {"a": r"\alpha \le \sqrt{2}"}),
    (r'{"a": "x \neq y, 3 \times 4"}', {"a": r"x \neq y, 3 \times 4"}),
    (r'{"a": "\(x\) and \[y\]"}', {"a": r"\(x\) and \[y\]"}),
    (r'{"a": "\{1, 2\}"}', {"a": r"\{1, 2\}"}),
    (r'{"a": "50\% of \$3"}', {"a": r"50\% of \$3"}),
    # escapes that are meant
    (r'{"a": "\\frac{1}{2}"}', {"a": r"\frac{1}{2}"}),
    (r'{"a": "one\nTwo\tthree"}', {"a": "one\nTwo\tthree"}),
    (r'{"a": "x = 1\nnext line"}', {"a": "x = 1\nnext line"}),
    (r'{"a": "\n\n- item"}', {"a": "\n\n- item"}),
    (r'{"a": "say \"hi\" / \/"}', {"a": 'say "hi" / /'}),
    (r'{"a": "é 😀"}', {"a": "é 😀"}),
    (r'{"a": "C:\\new"}', {"a": r"C:\new"}),
    # quotes
    ("{'a': 'it'}", {"a": "it"}),
    ("{'a': 'it's fine', 'b': 1}", {"a": "it's fine", "b": 1}),
    ('{"a": "he said "yes" twice"}', {"a": 'he said "yes" twice'}),
    ("{“a”: “b”}", {"a": "b"}),
    ("{'a': \"don't\"}", {"a": "don't"}),
    # around and within
    ('Here it is:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
    ('{"a": 1} and that is all {', {"a": 1}),
    ('{"a": [1, 2, 3,], "b": 2,}', {"a": [1, 2, 3], "b": 2}),
    ("{a: 1, b_c: true}", {"a": 1, "b_c": True}),
    ("{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}),
    ('{"a": 1, // the first\n "b": 2 /* and */}', {"a": 1, "b": 2}),
    ('{"a": "two\nlines"}', {"a": "two\nlines"}),
    ('The set {x} is shown by {"a": -1.5e3}', {"a": -1500.0}),
    # cut off
    ('{"a": "half a sent', {"a": "half a sent"}),
    ('{"a": [1, 2', {"a": [1, 2]}),
    ('{"a": {"b": 1}, "c"', {"a": {"b": 1}}),
    ('{"a": 1, "b":', {"a": 1}),
]


@pytest.mark.parametrize(("text", "value"), AS_WRITTEN)
def test_what_models_write(text, value) -> None:
    found = find_object(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("text", ["", "no object", "{", "{]", "{1: 2}", "a } b", "{x}"])
def test_what_is_no_object(text) -> None:
    found = find_object(text)
    assert found is None or found.value == {}


def test_how_it_was_written_is_told() -> None:
    def told(text: str) -> tuple[bool, bool]:
        found = find_object(text)
        assert found is not None
        return found.strict, found.cut

    assert told('{"a": 1}') == (True, False)
    assert told(' {"a": "\\\\frac"} ') == (True, False)
    assert told('{"a": "\\frac"}') == (False, False)
    assert told('{"a": 1} trailing') == (False, False)
    assert told('{"a": [1') == (False, True)


def test_deep_nesting_ends() -> None:
    assert find_object('{"a":' * 100_000) is None
    assert find_object("[" * 100_000) is None


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), plain, max_size=5))
def test_json_without_latex_escapes_is_read_as_json_does(value) -> None:
    """Valid JSON gives the value that ``json.loads`` returns, unless an escape may begin a LaTeX command."""
    text = json.dumps(value, ensure_ascii=False)
    found = find_object(text)
    assert found is not None
    if not any(mark in text for mark in ("\\b", "\\f", "\\r", "\\n", "\\t")) and '\\"' not in text:
        assert found.value == value


@given(st.sampled_from(sorted(COMMANDS)), st.sampled_from(["{x}", " y", "_1", "^2", "$", ""]))
def test_every_command_survives_one_backslash(command, rest) -> None:
    found = find_object(f'{{"a": "\\{command}{rest}"}}')
    assert found is not None
    assert found.value == {"a": f"\\{command}{rest}"}
