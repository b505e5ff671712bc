"""Structured answers: their place in the text, their syntax, shape and values, and hostile schemas."""

from __future__ import annotations

import asyncio
import csv
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.protocols import verified_by
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.structured import StructuredVerifier
from bestofn.verifiers.structured.grammars import grammar_violation, read_grammar
from bestofn.verifiers.structured.json_schemas import is_plain, violation
from bestofn.verifiers.structured.parsing import MAX_FIELD_CHARS, SpecificationError
from bestofn.verifiers.structured.values import difference
from bestofn.verifiers.structured.verifier import check

PERSON = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
FENCED = 'Sure:\n```json\n{"age": 3}\n```\nDone.'
BOOK = {
    "name": "book",
    "attributes": {"id": {"type": "integer"}, "lang": {"type": "string", "required": False}},
    "children": [
        {"name": "title", "text": {"minLength": 1}},
        {"name": "price", "text": {"type": "number", "minimum": 0}, "min": 0},
        {"name": "author", "max": None},
    ],
}
SUM = """
sum: product | sum "+" product
product: factor | product "*" factor
factor: number | "(" sum ")"
number: "-"? /[0-9]+/
"""
COLUMNS = {"format": "csv", "columns": {"id": {"type": "integer"}, "ok": {"type": "boolean"}}}


def asked(check: object) -> Query:
    return Query("q", "", ({"role": "user", "content": "?"},), reference=Reference(checks={"structured": check}))


def verdict(check: object, text: str, verifier: StructuredVerifier | None = None) -> Verdict:
    candidate = Candidate(0, ({"role": "assistant", "content": text},))
    return asyncio.run((verifier or StructuredVerifier()).verify(asked(check), candidate))


@pytest.mark.parametrize(
    ("spec", "text", "step", "path"),
    [
        # where
        ({"schema": PERSON}, '{"age": 3}', "kept", ""),
        ({"schema": PERSON}, FENCED, "kept", ""),
        ({"schema": PERSON}, 'It is {"age": "x"}, no, {"age": 3}.', "kept", ""),
        ({"schema": PERSON, "where": "whole"}, FENCED, "syntax", ""),
        ({"schema": PERSON, "where": "fence"}, FENCED, "syntax", ""),
        ({"schema": PERSON, "where": "fence"}, '```\n{"age": 3}\n```', "kept", ""),
        ({"schema": PERSON, "where": "fence"}, '{"age": 3}', "kept", ""),
        ({"schema": PERSON}, '```py\nx = 1\n```\n```json\n{"age": 3}\n```\n```py\n1\n```', "kept", ""),
        ({"schema": PERSON}, " ", "syntax", ""),
        ({"where": "middle"}, "{}", "specification", ""),
        # JSON
        ({}, '{"a": 1, "a": 2}', "syntax", ""),
        ({}, "[NaN]", "syntax", ""),
        ({}, "{'a': 1}", "syntax", ""),
        ({}, "[" * 100_000, "specification", ""),
        ({"schema": PERSON}, '{"age": "3"}', "shape", "/age"),
        ({"schema": {"items": {"anyOf": [PERSON, {"type": "null"}]}}}, '[{"age": 1}, {"age": "x"}]', "shape", "/1/age"),
        ({"schema": {"$ref": "#/$defs/p", "$defs": {"p": PERSON}}}, '{"age": 1.5}', "shape", "/age"),
        ({"schema": {"properties": {"a/b": {"type": "null"}}}}, '{"a/b": 1}', "shape", "/a~1b"),
        ({"schema": {"type": "integer"}}, "1.0", "kept", ""),
        ({"schema": {"format": "date"}}, '"soon"', "kept", ""),
        ({"schema": {"format": "date"}, "formats": True}, '"soon"', "shape", ""),
        ({"schema": {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}}, "[1]", "shape", "/0"),
        ({"schema": {"type": "nonsense"}}, "1", "specification", ""),
        ({"schema": {"$ref": "https://example.com/a.json"}}, "1", "specification", ""),
        ({"schema": {"$ref": "#/$defs/missing"}}, "1", "specification", ""),
        ({"schema": {"pattern": "("}}, '"a"', "specification", ""),
        ({"schema": [1]}, "1", "specification", ""),
        ({"schemas": {}}, "1", "specification", ""),
        # YAML, TOML
        ({"format": "yaml", "schema": PERSON}, "age: 3 # years", "kept", ""),
        ({"format": "yaml", "schema": PERSON}, "```yaml\nage: old\n```", "shape", "/age"),
        ({"format": "yaml"}, "a: [1", "syntax", ""),
        ({"format": "yaml", "value": {"day": "2024-05-01"}}, "day: 2024-05-01", "kept", ""),
        ({"format": "yaml"}, "a: &a [x]\nb: [" + "*a, " * 101 + "*a]", "specification", ""),
        ({"format": "yaml"}, "!!python/object/apply:os.getcwd []", "syntax", ""),
        ({"format": "toml", "schema": PERSON}, "age = 3", "kept", ""),
        ({"format": "toml", "schema": PERSON}, "age = 'x'", "shape", "/age"),
        ({"format": "toml"}, "age: 3", "syntax", ""),
        # CSV
        (COLUMNS, "id,ok\n1,true\n2,False", "kept", ""),
        (COLUMNS, "id,ok\n1,true\nx,true", "shape", "/1/id"),
        (COLUMNS, "ok,id\ntrue,1", "syntax", ""),
        (COLUMNS, "id,ok\n1", "syntax", ""),
        ({**COLUMNS, "rows": {"exactly": 2}}, "id,ok\n1,true", "shape", ""),
        ({**COLUMNS, "header": False, "delimiter": ";"}, "1;true", "kept", ""),
        # XML
        ({"format": "xml", "element": BOOK}, 'Here: <book id="1"><title>A</title><author/><author/></book>', "kept", ""),
        ({"format": "xml", "element": BOOK}, '<book id="x"><title>A</title><author/></book>', "shape", "/book/@id"),
        ({"format": "xml", "element": BOOK}, '<book id="1" x="1"><title>A</title><author/></book>', "shape", "/book/@x"),
        ({"format": "xml", "element": BOOK}, '<book id="1"><author/><title>A</title></book>', "shape", "/book"),
        ({"format": "xml", "element": BOOK}, '<book id="1"><title/><author/></book>', "shape", "/book/title"),
        ({"format": "xml", "element": BOOK}, '<book id="1"><title>A</title></book>', "shape", "/book"),
        ({"format": "xml", "element": BOOK}, '<book id="1"><title>A</title><author/><x/></book>', "shape", "/book/x"),
        ({"format": "xml", "element": BOOK}, "<book>", "syntax", ""),
        ({"format": "xml"}, '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "syntax", ""),
        ({"format": "xml", "element": {"tag": "a"}}, "<a/>", "specification", ""),
        # regular expression, grammar
        ({"format": "regex", "pattern": r"[A-Z]{2}\d+"}, "AB12", "kept", ""),
        ({"format": "regex", "pattern": r"[A-Z]{2}\d+"}, "AB12 ", "kept", ""),
        ({"format": "regex", "pattern": r"[A-Z]{2}\d+"}, "x AB12", "shape", ""),
        ({"format": "regex", "pattern": "("}, "x", "specification", ""),
        ({"format": "grammar", "grammar": SUM}, "1+2*(3+-4)", "kept", ""),
        ({"format": "grammar", "grammar": SUM}, "1+2*", "shape", ""),
        ({"format": "grammar", "grammar": "a: b"}, "x", "specification", ""),
        ({"format": "prose"}, "x", "specification", ""),
        # values
        ({"schema": PERSON, "value": {"age": 3}}, '{"age": 3.0}', "kept", ""),
        ({"value": {"age": 3}}, '{"age": 4}', "value", "/age"),
        ({"value": {"age": 3}}, '{"age": 3, "x": 1}', "value", ""),
    ],
)  # fmt: skip
def test_the_first_problem_and_its_path_are_reported(spec: dict, text: str, step: str, path: str) -> None:
    finding = check(spec, text)
    assert (finding.step, finding.path) == (step, path), finding.problem
    assert (finding.problem == "") == (step == "kept")


@pytest.mark.parametrize(
    ("expected", "actual", "rules", "path"),
    [
        (1.0, 1.0000000001, {}, None),
        (1.0, 1.01, {}, ""),
        (1.0, 1.01, {"absolute": 0.02}, None),
        (1700000000, 1700000001, {}, ""),  # an id or a time, one above the right one
        (1700000000, 1700000001, {"absolute": 1}, None),
        (2**53, 2**53 + 1, {}, ""),
        (1700000000, 1700000001, {"relative": 1e-9}, None),
        (1700000000, 1700000000.0, {}, None),
        pytest.param(10**400, 0.5, {}, "", id="an integer above all floats"),
        (True, 1, {}, ""),
        (None, 0, {}, ""),
        ("A", "a ", {}, ""),
        ("A", "a ", {"ignore_case": True}, None),
        ([1, 2], [2, 1], {}, "/0"),
        ([1, 2], [2, 1], {"unordered": True}, None),
        ([1.0, 1.3], [1.2, 0.8], {"unordered": True, "absolute": 0.25}, None),
        ([1, 1], [1, 2], {"unordered": True}, ""),
        ({"a": 1}, {"a": 1, "b": 2}, {"extra": True}, None),
        ({"a": 1}, {}, {}, ""),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"fields": {"/a/b": {"ignore": True}}}, None),
        ({"a": 1}, {}, {"fields": {"/a": {"ignore": True}}}, None),
        (
            {"a": [{"x": 1.0}, {"x": 2.0}]},
            {"a": [{"x": 1.1}, {"x": 2.1}]},
            {"fields": {"/a/*/x": {"absolute": 0.2}}},
            None,
        ),
        (
            {"a": [{"x": 1.0}, {"x": 2.0}]},
            {"a": [{"x": 1.1}, {"x": 2.5}]},
            {"fields": {"/a/*/x": {"absolute": 0.2}}},
            "/a/1/x",
        ),
    ],
)
def test_values_are_compared_field_by_field(expected: Any, actual: Any, rules: dict, path: str | None) -> None:
    finding = difference(expected, actual, rules)
    assert (finding.path if finding.step == "value" else None) == path


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_a_value_equals_itself_after_a_round_trip(value: Any) -> None:
    assert check({"where": "whole", "value": value}, json.dumps(value)).step == "kept"


SCHEMAS = st.dictionaries(
    st.sampled_from(
        ["type", "required", "properties", "items", "minimum", "pattern", "enum", "anyOf", "maxLength", "$ref"]
    ),
    JSON_VALUES | st.sampled_from(["string", ["string"], [{"type": "string"}], {"a": {"type": "null"}}]),
    max_size=4,
)


@settings(max_examples=200)
@given(
    SCHEMAS,
    st.sampled_from(["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", None]),
)
def test_a_schema_that_is_called_plain_is_valid(schema: dict, draft: str | None) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    schema = {**schema, "$schema": draft} if draft else schema
    if is_plain(schema):
        validator_for(schema, default=Draft202012Validator).check_schema(schema)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("time", "10:30:00Z", "25:00:00Z"),
        ("date-time", "2024-02-29T10:30:00+01:00", "2024-02-29 10:30"),
        ("duration", "P1DT2H", "P"),
        ("email", "a.b@example.com", "a b@example.com"),
        ("hostname", "a-b.example.com", "-a.com"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "127.0.0.1"),
        ("uri", "https://example.com/a?b", "example.com"),
        ("uri-reference", "/a?b", "a b"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("regex", "a+", "("),
        ("json-pointer", "/a~1b", "a"),
    ],
)
def test_formats(name: str, right: str, wrong: str) -> None:
    assert violation({"format": name}, right, formats=True).step == "kept"
    assert violation({"format": name}, wrong, formats=True).step == "shape"
    assert violation({"format": name}, 3, formats=True).step == "kept"


def explosion() -> dict:
    """Return a schema of 40 references whose validation takes 2^40 steps."""
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    return {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": {}}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"schema": {"pattern": "^(a+)+$"}}, json.dumps("a" * 40 + "!")),
        ({"schema": explosion()}, "1"),
        ({"format": "regex", "pattern": "(a+)+"}, "a" * 40 + "!"),
        ({"format": "grammar", "grammar": "s: /(a+)+b/"}, "a" * 40),
    ],
)
def test_a_hostile_check_is_bounded_and_says_nothing_about_the_answer(spec: dict, text: str) -> None:
    async def bounded() -> Verdict:
        async with ProcessPool(1) as workers:
            verifier = StructuredVerifier(workers, timeout_s=0.3)
            return await verifier.verify(asked(spec), Candidate(0, ({"role": "assistant", "content": text},)))

    found = asyncio.run(bounded())
    assert (found.outcome, found.explanation) == ("abstain", "the check took longer than 0.3 s")
    assert verdict(spec, text).outcome == "abstain"


@pytest.mark.parametrize("compare", [{"absolut": 1}, {"fields": {"/a": {"tolerance": 1}}}, [1], {"fields": [1]}])
def test_an_unknown_rule_of_compare_says_nothing_about_the_answer(compare: object) -> None:
    assert check({"value": {"a": 1}, "compare": compare}, '{"a": 1}').step == "specification"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("a: 1\na: 2", "syntax"),
        ("x: {a: 1, a: 1}", "syntax"),
        ("base: &b {a: 1}\nc: {<<: *b, a: 2}", "kept"),
        ("1: x\n'1': y", "specification"),  # JSON has no equal data
        ("true: x\n'true': y", "specification"),
        ("1: x", "kept"),
    ],
)
def test_a_key_that_occurs_twice_is_not_yaml(text: str, step: str) -> None:
    assert check({"format": "yaml"}, text).step == step


@pytest.mark.parametrize(("format", "text"), [("json", "[{}]"), ("toml", "a = {}"), ("yaml", "a: {}")])
def test_an_integer_with_too_many_digits_is_undecided(format: str, text: str) -> None:
    assert check({"format": format}, text.format("1" * 5000)).step == "specification"


DIGITS = "9" * 5_000
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"schema": {"type": "object"}}, f'{{"a": {DIGITS}}}'),
        ({"schema": {"type": "object"}}, f'Here: {{"a": {DIGITS}}}.'),
        ({"value": {"a": 1}}, '{"a": 1e400}'),
        ({"schema": {"type": "array"}}, DEEP),
        ({"schema": {"type": "array"}}, f'First {{"a": 1}}, then {DEEP}.'),
        ({"value": json.loads("[" * 900 + "]" * 900)}, "[" * 900 + "]" * 900),
        ({"format": "yaml"}, "[" * 1_000 + "]" * 1_000),
        ({"format": "yaml", "schema": {"properties": {"a": {"type": "string"}}}}, f"a: 0x{'f' * 5_000}"),
        ({"format": "yaml"}, "? [1, 2]\n: a"),
        ({"format": "yaml"}, "!!set {a, b}"),
        ({"format": "toml"}, f"a = {'[' * 3_000}{']' * 3_000}"),
        ({"format": "csv", "columns": {"a": {"type": "integer"}}}, f"a\n{DIGITS}"),
        ({"format": "csv", "columns": {"a": {"type": "string"}}}, f"a\n{'x' * 200_000}"),
        ({"format": "xml", "element": {"name": "a", "text": {"type": "integer"}}}, f"<a>{DIGITS}</a>"),
        ({"value": 1, "compare": {"absolute": "x"}}, "2"),
        ({"value": 1, "compare": {"relative": -1}}, "2"),
        ({"value": 1, "compare": {"absolute": 10**400}}, "2"),
    ],
)
def test_what_exceeds_a_limit_of_a_reader_is_undecided(spec: dict[str, Any], text: str) -> None:
    assert check(spec, text).step == "specification"


def test_the_longest_field_of_a_table_does_not_depend_on_the_limit_of_the_process() -> None:
    spec = {"format": "csv", "columns": {"a": {"type": "string"}}}
    before = csv.field_size_limit(2**30)
    try:
        steps = [check(spec, f"a\n{'x' * length}").step for length in (MAX_FIELD_CHARS, MAX_FIELD_CHARS + 1)]
    finally:
        csv.field_size_limit(before)
    assert steps == ["kept", "specification"]


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("country: NO", {"country": False}, {"country": "NO"}),
        ("start: 12:30", {"start": 750}, {"start": "12:30"}),
        ("size: 1_000", {"size": 1000}, {"size": "1_000"}),
        ("on: 1", {"true": 1}, {"on": 1}),
        ("x: 010", {"x": 8}, {"x": 10}),
        ("x: 1e3", {"x": "1e3"}, {"x": 1000.0}),
    ],
)
def test_a_value_that_the_versions_of_yaml_read_differently_is_undecided(
    text: str, first: object, second: object
) -> None:
    assert [check({"format": "yaml", "value": one}, text).step for one in (first, second)] == ["specification"] * 2
    assert check({"format": "yaml", "schema": {"type": "object"}}, text).step == "kept"
    assert check({"format": "yaml", "schema": {"type": "array"}}, text).step == "shape"


@pytest.mark.parametrize(
    ("divisor", "value", "step"),
    [
        (0.1, "0.3", "kept"),
        (0.01, "1e308", "kept"),
        (0.5, "9" * 400, "kept"),
        (0.1, "0.35", "shape"),
        (2, "3", "shape"),
    ],
)
def test_multiples_are_exact(divisor: float, value: str, step: str) -> None:
    assert check({"schema": {"multipleOf": divisor}}, value).step == step


@pytest.mark.parametrize("text", ["1_000", "１２", "nan", "infinity", "0x10"])
def test_only_plain_digits_are_numbers_in_a_table(text: str) -> None:
    columns = {"a": {"type": ["integer", "number"]}}
    assert check({"format": "csv", "columns": columns}, f"a\n{text}").step == "shape"


def test_a_document_type_in_a_comment_or_in_cdata_is_only_text() -> None:
    for text in ("<a><![CDATA[<!DOCTYPE x>]]></a>", "<a><!-- <!ENTITY --></a>"):
        assert check({"format": "xml", "element": {"name": "a"}}, text).step == "kept"
    hidden = '<?x <!-- ?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;<!-- --></a>'
    assert check({"format": "xml", "element": {"name": "a"}}, hidden).step == "syntax"


def test_a_grammar_that_needs_many_steps_is_given_up() -> None:
    with pytest.raises(SpecificationError, match="more than"):
        grammar_violation('s: s s | "a" |', "a" * 300)
    assert set(read_grammar('s: "a"*')[0]) == {"s", "(text a*)"}


def test_outcomes_and_details() -> None:
    found = verdict({"schema": PERSON}, '{"age": "x"}')
    assert (found.outcome, found.detail["step"], found.detail["path"]) == ("fail", "shape", "/age")
    assert found.explanation == "'x' is not of type 'integer' at /age"
    assert verdict({"schema": PERSON}, '{"age": 1}').outcome == "pass"
    assert verdict({"schema": {"type": "x"}}, "1").outcome == "abstain"
    assert verdict(PERSON, '{"age": 1}').outcome == "pass"  # a schema alone
    assert verdict(json.dumps(PERSON), '{"age": "x"}').outcome == "fail"
    assert verdict({"schema": json.dumps(PERSON)}, '{"age": "x"}').outcome == "fail"
    assert verdict({"schema": {"format": "date"}}, '"x"', StructuredVerifier(formats=True)).outcome == "abstain"


@pytest.mark.parametrize("value", [None, "not JSON", 3])
def test_a_query_without_a_readable_check_is_not_reached(value: object) -> None:
    assert verified_by(StructuredVerifier(), asked(value)) == ""
    assert verdict(value, "{}").outcome == "abstain"
