"""Converts tool declarations and tool calls between the formats of services and datasets.

bestofn itself uses the Chat Completions form:

- declaration: ``{"type": "function", "function": {"name", "description", "parameters"}}``
- call: ``{"id", "type": "function", "function": {"name", "arguments": JSON text}}``

Providers, sources, the server and the mock tools use these functions for the other forms:

=========  ================================================================  =======================================
form       declaration                                                       call
=========  ================================================================  =======================================
responses  ``{"type": "function", "name", "description", "parameters"}``     ``{"type": "function_call", "call_id", …}``
anthropic  ``{"name", "description", "input_schema"}``                       ``{"type": "tool_use", "id", "input"}``
xlam       ``{"name", "description", "parameters": {arg: {"type": "str"}}}``  read only
bfcl       JSON Schema with ``dict``, ``float``, ``tuple``, ``any``          read only
=========  ================================================================  =======================================

``formats.written_calls`` parses calls that a model wrote into its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from bestofn.builders.records import JsonObject, Message, Tool

ToolCall = JsonObject
"""One tool call, in the Chat Completions form unless the name of a parameter says otherwise."""

EMPTY_PARAMETERS = {"type": "object", "properties": {}}


# --- declarations ----------------------------------------------------------------------------------------------------


def declaration(name: str, description: str, parameters: JsonObject | None, **further: Any) -> dict[str, Any]:
    """Return a tool declaration in the Chat Completions form.

    ``further`` arguments, such as ``strict``, become further keys of the object under ``function``.
    """
    parameters = dict(parameters) if parameters else dict(EMPTY_PARAMETERS)
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters, **further},
    }


def to_chat(tool: JsonObject) -> dict[str, Any]:
    """Convert a declaration of any known form to the Chat Completions form.

    Raises ``ValueError`` if the declaration has no name.
    """
    if isinstance(tool.get("function"), Mapping):
        return _from_parts(tool["function"], "parameters")
    if "input_schema" in tool:
        return from_anthropic(tool)
    parameters = tool.get("parameters")
    if isinstance(parameters, Mapping) and _is_bfcl(parameters):
        return from_bfcl(tool)
    if isinstance(parameters, Mapping) and parameters and not _is_json_schema(parameters):
        return from_xlam(tool)
    return from_responses(tool)


def from_responses(tool: JsonObject) -> dict[str, Any]:
    """Convert a declaration of the Responses API to the Chat Completions form."""
    return _from_parts(tool, "parameters", "type")


def to_responses(tool: Tool) -> dict[str, Any]:
    """Convert a declaration to the form of the Responses API.

    ``strict`` is always sent, because its default in that API is true.
    """
    function = tool["function"]
    return {"type": "function", "strict": False, **function}


def from_anthropic(tool: JsonObject) -> dict[str, Any]:
    """Convert a declaration of Anthropic's Messages API to the Chat Completions form."""
    return _from_parts(tool, "input_schema", "type")


def to_anthropic(tool: Tool) -> dict[str, Any]:
    """Convert a declaration to the form of Anthropic's Messages API."""
    function = tool["function"]
    further = {key: value for key, value in function.items() if key not in ("name", "description", "parameters")}
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": function.get("parameters") or dict(EMPTY_PARAMETERS),
        **further,
    }


def _from_parts(function: JsonObject, parameters: str, *dropped: str) -> dict[str, Any]:
    """Convert a declaration without a nested object ``function`` to the Chat Completions form.

    ``parameters`` is the key of the schema. All other keys are copied, except the keys in ``dropped``.
    """
    known = ("name", "description", parameters, *dropped)
    further = {key: value for key, value in function.items() if key not in known}
    return declaration(_name_of(function), str(function.get("description") or ""), function.get(parameters), **further)


_XLAM_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "tuple": "array",
    "set": "array",
}


def from_xlam(tool: JsonObject) -> dict[str, Any]:
    """Convert an xLAM declaration to the Chat Completions form.

    In xLAM, ``parameters`` maps each argument to ``{"description", "type": "str, optional", …}``.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, given in (tool.get("parameters") or {}).items():
        argument = given if isinstance(given, Mapping) else {"type": str(given)}
        type_text = str(argument.get("type") or "")
        further = {key: value for key, value in argument.items() if key not in ("type", "required")}
        properties[name] = _xlam_type(type_text) | further
        if "optional" not in type_text and "default" not in argument and argument.get("required") is not False:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    return declaration(_name_of(tool), str(tool.get("description") or ""), schema)


def _xlam_type(text: str) -> dict[str, Any]:
    """Convert a Python-like type such as ``List[int]`` to a JSON Schema. An unknown type becomes {}."""
    match = re.match(r"\s*([A-Za-z]+)\s*(?:\[(.*)\])?", text)
    if not match:
        return {}
    outer, inner = match.group(1), match.group(2)
    if outer.lower() == "optional" and inner:
        return _xlam_type(inner)
    kind = _XLAM_TYPES.get(outer.lower(), outer.lower() if outer.lower() in _JSON_TYPES else "")
    schema: dict[str, Any] = {"type": kind} if kind else {}
    if kind == "array" and inner:
        items = _xlam_type(inner)
        if items:
            schema["items"] = items
    return schema


_BFCL_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
_JSON_TYPES = {"object", "number", "array", "string", "integer", "boolean", "null"}
_OTHER_TYPES = {
    **_XLAM_TYPES,
    **dict.fromkeys(("long", "short", "byte"), "integer"),
    **dict.fromkeys(("arraylist", "sequence"), "array"),
    **dict.fromkeys(("hashmap", "map", "mapping"), "object"),
    "double": "number",
    "char": "string",
    "none": "null",
}


def from_bfcl(tool: JsonObject) -> dict[str, Any]:
    """Convert a BFCL declaration to the Chat Completions form. BFCL types become JSON types at every level."""
    parameters = _with_types(tool.get("parameters") or {}, _bfcl_type)
    return declaration(_name_of(tool), str(tool.get("description") or ""), parameters)


def with_json_types(schema: Any) -> Any:
    """Return ``schema`` with JSON types at every level. For example, ``int`` becomes ``integer``.

    A type that is neither a JSON type nor known from a dataset is left out, because services refuse it.
    """
    return _with_types(schema, _json_type)


def _with_types(schema: Any, convert: Callable[[Any], JsonObject]) -> Any:
    """Return ``schema`` with each keyword ``type`` replaced by the keywords that ``convert`` returns for its value."""
    if isinstance(schema, list):
        return [_with_types(item, convert) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str | list):
            result = {**convert(value), **result}
        elif key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            result[key] = {name: _with_types(item, convert) for name, item in value.items()}
        elif key in ("enum", "default", "const", "examples"):
            result[key] = value
        else:
            result[key] = _with_types(value, convert)
    return result


def _bfcl_type(given: Any) -> JsonObject:
    if isinstance(given, list):
        return {"type": given}
    kind = _BFCL_TYPES.get(given.lower(), given.lower())
    return {"type": kind} if kind else {}


def _json_type(given: Any) -> JsonObject:
    """Return the keywords for the type ``given``: ``type``, and ``items`` for ``list[int]``; {} if it is unknown."""
    if isinstance(given, list):
        kinds = [kind["type"] for kind in map(_json_type, given) if "type" in kind]
        return {"type": list(dict.fromkeys(kinds))} if kinds else {}
    name = str(given).strip().lower()
    kind = name if name in _JSON_TYPES else _OTHER_TYPES.get(name)
    return {"type": kind} if kind else _xlam_type(given) if "[" in name else {}


# --- calls -----------------------------------------------------------------------------------------------------------


def call(name: str, arguments: JsonObject | str, call_id: str = "") -> dict[str, Any]:
    """Return a tool call in the Chat Completions form. ``arguments`` that are a text are neither parsed nor changed."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def call_name(tool_call: ToolCall) -> str:
    """Return the name of the called tool; "" if the call has none."""
    return str((tool_call.get("function") or {}).get("name") or tool_call.get("name") or "")


def call_arguments(tool_call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as a dict; {} if there are none.

    Raises ``ValueError`` if they are not a JSON object.
    """
    given = (tool_call.get("function") or tool_call).get("arguments")
    if isinstance(given, Mapping):
        return dict(given)
    if given is None or not str(given).strip():
        return {}
    try:
        value = json.loads(str(given), parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    if isinstance(value, str) and value.lstrip().startswith("{"):  # some servers encode the arguments twice
        value = json.loads(value, parse_constant=_reject_constant)
    if not isinstance(value, dict):
        raise ValueError(f"the arguments are a JSON {type(value).__name__}; expected an object")
    return value


def call_from_responses(item: JsonObject) -> dict[str, Any]:
    """Convert a ``function_call`` item of the Responses API to the Chat Completions form."""
    return call(item["name"], item.get("arguments") or "{}", str(item.get("call_id") or item.get("id") or ""))


def call_to_responses(tool_call: ToolCall) -> dict[str, Any]:
    """Convert a call to a ``function_call`` item of the Responses API."""
    function = tool_call["function"]
    return {
        "type": "function_call",
        "call_id": tool_call["id"],
        "name": function["name"],
        "arguments": function["arguments"],
    }


def call_from_anthropic(block: JsonObject) -> dict[str, Any]:
    """Convert a ``tool_use`` block of Anthropic's Messages API to the Chat Completions form."""
    return call(block["name"], block.get("input") or {}, str(block.get("id") or ""))


def call_to_anthropic(tool_call: ToolCall) -> dict[str, Any]:
    """Convert a call to a ``tool_use`` block. Arguments that are not a JSON object become ``{"_malformed": text}``."""
    return {
        "type": "tool_use",
        "id": tool_call["id"],
        "name": call_name(tool_call),
        "input": arguments_or_malformed(tool_call),
    }


def with_ids_of(message: Message, raw: Sequence[JsonObject], kind: str, key: str) -> list[dict[str, Any]]:
    """Return copies of the blocks ``raw`` with the current ids of the tool calls of ``message``.

    ``raw`` are the blocks of ``message`` as the service sent them. Blocks of the type ``kind`` are calls; their id
    has the key ``key``. The first call in ``raw`` gets the id of the first tool call of ``message``, and so on.
    """
    ids = iter([made["id"] for made in message.get("tool_calls") or ()])
    return [{**block, key: next(ids, block.get(key))} if block["type"] == kind else dict(block) for block in raw]


def arguments_or_malformed(tool_call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as a dict; ``{"_malformed": text}`` if they are not a JSON object."""
    try:
        return call_arguments(tool_call)
    except ValueError:
        return {"_malformed": str((tool_call.get("function") or {}).get("arguments"))}


# --- reference calls of datasets -------------------------------------------------------------------------------------


def expected_from_bfcl(possible_answer: Sequence[JsonObject]) -> tuple[dict[str, Any], ...]:
    """Convert BFCL's possible answers to reference calls: ``{"name", "possible": {argument: [allowed values]}}``.

    The allowed value "" means that the argument may be left out.
    """
    return tuple({"name": name, "possible": dict(given)} for entry in possible_answer for name, given in entry.items())


def expected_from_calls(calls: Sequence[ToolCall]) -> tuple[dict[str, Any], ...]:
    """Convert the calls of a correct answer to reference calls: ``{"name", "arguments"}``."""
    return tuple({"name": call_name(made), "arguments": arguments_or_malformed(made)} for made in calls)


def _name_of(tool: JsonObject) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        keys = sorted(map(str, tool))
        raise ValueError(f"a tool declaration has no name; expected the key 'name', found the keys {keys}")
    return name


def _is_bfcl(parameters: JsonObject) -> bool:
    return parameters.get("type") == "dict"


def _is_json_schema(parameters: JsonObject) -> bool:
    """Return whether ``parameters`` is a JSON Schema, and not a mapping of arguments as in xLAM.

    The key "type" alone does not decide, because an argument in xLAM's mapping may be named "type".
    """
    return isinstance(parameters.get("type"), str | list) or isinstance(parameters.get("properties"), Mapping)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
