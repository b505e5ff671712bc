"""Converts a JSON Schema, or the declarations of tools, to a grammar of the texts that a model may write.

The texts are JSON on one line, with at most one space after ``:`` and ``,``. Properties have the order of the schema.
Optional properties may be missing. An object with ``properties`` gets no other keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bestofn.builders.formats.byte_grammar import NOTHING, All, Either, Later, Node, literal, optional, ranges, repeated
from bestofn.builders.formats.byte_grammar import start as first_state
from bestofn.builders.records import JsonObject, Tool

ANNOTATIONS = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
    *("$schema", "$id", "$comment", "$defs", "definitions"),
}
"""Keywords that do not restrict values. JSON Schema lists ``format`` as an annotation."""
MOST_COUNTED = 10_000  # the largest minimum or maximum number of items or characters
MOST_IN_RANGE = 1000  # the largest distance from minimum to maximum
DIGITS = 15  # the most digits in each part of a number, so that a number always ends

_CONTINUED = ranges((0x80, 0xBF))
_CHARACTER = Either(
    (
        ranges((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F)),
        All((ranges((0xC2, 0xDF)), _CONTINUED)),
        All((ranges((0xE0, 0xE0)), ranges((0xA0, 0xBF)), _CONTINUED)),
        All((ranges((0xE1, 0xEC), (0xEE, 0xEF)), _CONTINUED, _CONTINUED)),
        All((ranges((0xED, 0xED)), ranges((0x80, 0x9F)), _CONTINUED)),
        All((ranges((0xF0, 0xF0)), ranges((0x90, 0xBF)), _CONTINUED, _CONTINUED)),
        All((ranges((0xF1, 0xF3)), _CONTINUED, _CONTINUED, _CONTINUED)),
        All((ranges((0xF4, 0xF4)), ranges((0x80, 0x8F)), _CONTINUED, _CONTINUED)),
        All((literal("\\"), ranges(*[(ord(sign), ord(sign)) for sign in '"\\/bfnrt']))),
    )
)
"""One character of a JSON string: valid UTF-8, or an escape. No ``\\u`` escapes, which could be lone surrogates."""
_DIGIT = ranges((0x30, 0x39))
_POSITIVE = All((ranges((0x31, 0x39)), repeated(_DIGIT, 0, DIGITS - 1)))
_UNSIGNED = Either((literal("0"), _POSITIVE))
_MINUS = optional(literal("-"))
_FRACTION = All((literal("."), repeated(_DIGIT, 1, DIGITS)))
_EXPONENT = All((ranges((0x45, 0x45), (0x65, 0x65)), _MINUS, repeated(_DIGIT, 1, 2)))
_UNSIGNED_NUMBER = All((_UNSIGNED, optional(_FRACTION), optional(_EXPONENT)))
_SPACE = optional(literal(" "))
_COMMA = All((literal(","), _SPACE))
_COLON = All((literal(":"), _SPACE))


class UnknownType(ValueError):
    """Raised if a schema has a type that does not exist in JSON Schema."""


def schema_grammar(schema: JsonObject) -> Node:
    """Return the grammar of the values that ``schema`` allows.

    Raises ``ValueError`` if the schema has a keyword that is not supported, or allows no value.
    """
    grammar = _Compiler(schema).value(schema)
    if not first_state(grammar):
        raise ValueError("the JSON Schema allows no value")
    return grammar


def call_grammar(tools: Sequence[Tool]) -> Node:
    """Return the grammar of one call of one of ``tools``: ``<tool_call>`` with the name and the arguments as JSON.

    If the parameters of a tool have unsupported keywords, its arguments may be any object. Raises ``UnknownType`` for a
    type that does not exist in JSON Schema.
    """
    return Either(tuple(_call(tool["function"]) for tool in tools))


def _call(function: JsonObject) -> Node:
    head = literal(f'<tool_call>\n{{"name": {json.dumps(function["name"], ensure_ascii=False)}, "arguments": ')
    return All((head, _arguments(function.get("parameters") or {}), literal("}\n</tool_call>")))


def _arguments(parameters: JsonObject) -> Node:
    try:
        return schema_grammar({"type": "object", "properties": {}, **parameters})
    except UnknownType:
        raise
    except ValueError:
        return schema_grammar({"type": "object"})


class _Compiler:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._refs: dict[str, Later] = {}
        self._any = Later()

    def value(self, schema: object) -> Node:
        """Return the grammar of the values that ``schema`` allows; true allows any value."""
        if schema is True or schema == {}:
            return self._anything()
        if not isinstance(schema, Mapping):
            raise ValueError(f"the JSON Schema contains {schema!r}; expected an object")
        rules = {key: rule for key, rule in schema.items() if key not in ANNOTATIONS}
        for key, compiled in (("$ref", self._ref), ("anyOf", self._any_of), ("allOf", self._all_of)):
            if key in rules:
                _refuse(rules, {key})
                return compiled(rules[key])
        if "const" in rules or "enum" in rules:
            _refuse(rules, {"const", "enum", "type"})
            return Either(tuple(_constant(one) for one in rules.get("enum", [rules.get("const")])))
        return self._typed(rules)

    def _typed(self, rules: JsonObject) -> Node:
        inferred = "object" if "properties" in rules else "array" if "items" in rules else None
        kinds = rules.get("type", inferred)
        if kinds is None:
            _refuse(rules, set())
            return self._anything()
        names = [kinds] if isinstance(kinds, str) else list(kinds)
        makers = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "number": _number,
            "integer": _integer,
            "boolean": lambda _: Either((literal("true"), literal("false"))),
            "null": lambda _: literal("null"),
        }
        if unknown := [name for name in names if name not in makers]:
            raise UnknownType(f"the JSON Schema has the type {unknown[0]!r}; expected one of {', '.join(makers)}")
        _refuse(rules, {"type"}.union(*(KEYWORDS.get(name, ()) for name in names)))
        return Either(tuple(makers[name](rules) for name in names))

    def _anything(self) -> Node:
        if self._any.node is None:
            free: JsonObject = {}
            self._any.node = self._any  # the members refer to it before it is complete
            scalars = (self._string(free), _number(free), literal("true"), literal("false"), literal("null"))
            self._any.node = Either((*scalars, self._array(free), self._object(free)))
        return self._any

    def _ref(self, ref: object) -> Node:
        path = str(ref)
        if path not in self._refs:
            if not path.startswith("#"):
                raise ValueError(f"the JSON Schema refers to {path}; expected a reference into the schema: #/$defs/…")
            self._refs[path] = later = Later()
            later.node = self.value(_target(self._root, path))
        return self._refs[path]

    def _any_of(self, options: Sequence[object]) -> Node:
        return Either(tuple(self.value(option) for option in options))

    def _all_of(self, parts: Sequence[object]) -> Node:
        if len(parts) != 1:
            raise ValueError("the JSON Schema has allOf with several parts, which is not supported")
        return self.value(parts[0])

    def _string(self, rules: JsonObject) -> Node:
        least, most = _bounds(rules, "minLength", "maxLength")
        return All((literal('"'), repeated(_CHARACTER, least, most), literal('"')))

    def _array(self, rules: JsonObject) -> Node:
        least, most = _bounds(rules, "minItems", "maxItems")
        item = self.value(rules.get("items", True))
        further = repeated(All((_COMMA, item)), max(least - 1, 0), None if most is None else max(most - 1, 0))
        filled = All((item, further))
        inner = NOTHING if most == 0 else filled if least else optional(filled)
        return All((literal("["), inner, literal("]")))

    def _object(self, rules: JsonObject) -> Node:
        required, properties = list(rules.get("required", ())), dict(rules.get("properties") or {})
        properties |= {name: True for name in required if name not in properties}
        if not properties:
            return self._map(rules) if "properties" not in rules else literal("{}")
        members = [
            (All((_constant(name), _COLON, self.value(schema))), name in required)
            for name, schema in properties.items()
        ]
        return All((literal("{"), _members(members), literal("}")))

    def _map(self, rules: JsonObject) -> Node:
        values = rules.get("additionalProperties", True)
        if values is False:
            return literal("{}")
        member = All((self._string({}), _COLON, self.value(values)))
        return All((literal("{"), optional(All((member, repeated(All((_COMMA, member)))))), literal("}")))


KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
}
"""Type -> the keywords that are supported for it."""


def _integer(rules: JsonObject) -> Node:
    low, high = rules.get("minimum"), rules.get("maximum")
    if high is None and low in (None, 0, 1):
        return {None: All((_MINUS, _UNSIGNED)), 0: _UNSIGNED, 1: _POSITIVE}[low]
    return Either(tuple(literal(str(number)) for number in _range(low, high, least=-MOST_COUNTED)))


def _number(rules: JsonObject) -> Node:
    low, high = rules.get("minimum"), rules.get("maximum")
    if high is None and low in (None, 0):
        return {None: All((_MINUS, _UNSIGNED_NUMBER)), 0: _UNSIGNED_NUMBER}[low]
    *below, last = [literal(str(number)) for number in _range(low, high, least=0)]
    return Either((*(All((number, optional(_FRACTION))) for number in below), last))


def _range(low: object, high: object, least: int) -> Sequence[int]:
    """Return the whole numbers from ``low`` to ``high``. Raises ``ValueError`` if this range is not supported.

    ``least`` is the smallest supported number.
    """
    is_whole = type(low) is int and type(high) is int
    if is_whole and least <= low <= high <= low + MOST_IN_RANGE:  # type: ignore[operator]
        return range(low, high + 1)  # type: ignore[arg-type, operator]
    raise ValueError(
        f"minimum is {low!r} and maximum is {high!r} in the JSON Schema; expected whole numbers of at least "
        f"{least} that are at most {MOST_IN_RANGE} apart, or the minimum 0 without a maximum"
    )


def _members(members: Sequence[tuple[Node, bool]]) -> Node:
    """Return the grammar of the members of an object, in order and with commas.

    ``members`` are pairs (grammar of the member, whether it is required).
    """
    first = later = NOTHING  # the rest of the object if no member has been written, and if one has
    for member, required in reversed(members):
        with_first, with_later = All((member, later)), All((_COMMA, member, later))
        first = with_first if required else Either((with_first, first))
        later = with_later if required else Either((with_later, later))
    return first


def _constant(value: object) -> Node:
    return literal(json.dumps(value, ensure_ascii=False))


def _bounds(rules: JsonObject, least: str, most: str) -> tuple[int, int | None]:
    low, high = rules.get(least, 0), rules.get(most)
    for name, bound in ((least, low), (most, high)):
        if bound is not None and not (isinstance(bound, int) and 0 <= bound <= MOST_COUNTED):
            raise ValueError(f"{name} is {bound!r} in the JSON Schema; expected a number from 0 to {MOST_COUNTED}")
    if high is not None and low > high:
        raise ValueError(f"{least} is {low} and {most} is {high} in the JSON Schema; expected {least} ≤ {most}")
    return low, high


def _refuse(rules: JsonObject, known: set[str]) -> None:
    if unknown := sorted(rules.keys() - known):
        raise ValueError(f"the JSON Schema has the keyword {unknown[0]}, which is not supported here")


def _target(root: JsonObject, path: str) -> object:
    found: object = root
    for part in path.removeprefix("#").strip("/").split("/") if path != "#" else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            raise ValueError(f"the JSON Schema refers to {path}, which it does not contain")
        found = found[name]
    return found
