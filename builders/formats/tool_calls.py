"""Tool declarations and tool calls in the forms that services, datasets and chat templates use.

The form inside bestofn is that of Chat Completions: a declaration ``{"type": "function", "function": {"name",
"description", "parameters"}}``, a call ``{"id", "type": "function", "function": {"name", "arguments": JSON text}}``.
Every other form has a pair of functions, ``from_*`` and ``to_*``:

=========  ================================================================  =======================================
form       declaration                                                       call
=========  ================================================================  =======================================
responses  ``{"type": "function", "name", "description", "parameters"}``     ``{"type": "function_call", "call_id", …}``
anthropic  ``{"name", "description", "input_schema"}``                       ``{"type": "tool_use", "id", "input"}``
xlam       ``{"name", "description", "parameters": {arg: {"type": "str"}}}``  ``{"name", "arguments": {…}}``
bfcl       JSON Schema with ``dict``, ``float``, ``tuple``, ``any``          ``{name: {argument: value}}``
hermes     Chat Completions within ``<tools>``                               ``<tool_call>{…}</tool_call>``
=========  ================================================================  =======================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Form = Mapping[str, Any]
EMPTY_PARAMETERS = {"type": "object", "properties": {}}


# --- declarations ----------------------------------------------------------------------------------------------------


def declaration(name: str, description: str, parameters: Mapping[str, Any] | None, **further: Any) -> dict[str, Any]:
    """A declaration in the Chat Completions shape; ``further`` keys (``strict``) stay beside the name."""
    parameters = dict(parameters) if parameters else dict(EMPTY_PARAMETERS)
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters, **further},
    }


def to_chat(tool: Form) -> dict[str, Any]:
    """Any known form of declaration in the Chat Completions shape.

    Raises ``ValueError`` for a mapping without a name.
    """
    if isinstance(tool.get("function"), Mapping):
        function = tool["function"]
        return declaration(
            _name_of(function),
            str(function.get("description") or ""),
            function.get("parameters"),
            **{key: value for key, value in function.items() if key not in ("name", "description", "parameters")},
        )
    if "input_schema" in tool:
        return from_anthropic(tool)
    parameters = tool.get("parameters")
    if isinstance(parameters, Mapping) and _is_bfcl(parameters):
        return from_bfcl(tool)
    if isinstance(parameters, Mapping) and parameters and not _is_json_schema(parameters):
        return from_xlam(tool)
    return from_responses(tool)


def from_responses(tool: Form) -> dict[str, Any]:
    further = {key: value for key, value in tool.items() if key not in ("type", "name", "description", "parameters")}
    return declaration(_name_of(tool), str(tool.get("description") or ""), tool.get("parameters"), **further)


def to_responses(tool: Form) -> dict[str, Any]:
    """The Responses form. ``strict`` is stated, for that service takes an absent one as true."""
    function = tool["function"]
    return {"type": "function", "strict": False, **function}


def from_anthropic(tool: Form) -> dict[str, Any]:
    further = {key: value for key, value in tool.items() if key not in ("type", "name", "description", "input_schema")}
    return declaration(_name_of(tool), str(tool.get("description") or ""), tool.get("input_schema"), **further)


def to_anthropic(tool: Form) -> dict[str, Any]:
    function = tool["function"]
    further = {key: value for key, value in function.items() if key not in ("name", "description", "parameters")}
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "input_schema": function.get("parameters") or dict(EMPTY_PARAMETERS),
        **further,
    }


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


def from_xlam(tool: Form) -> dict[str, Any]:
    """An xLAM declaration: ``parameters`` maps an argument to ``{"description", "type": "str, optional", …}``."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, given in (tool.get("parameters") or {}).items():
        given = given if isinstance(given, Mapping) else {"type": str(given)}
        words = str(given.get("type") or "")
        schema = _xlam_type(words)
        schema |= {key: value for key, value in given.items() if key not in ("type", "required")}
        properties[name] = schema
        optional = "optional" in words or "default" in given or given.get("required") is False
        if not optional:
            required.append(name)
    return declaration(
        _name_of(tool),
        str(tool.get("description") or ""),
        {"type": "object", "properties": properties, "required": required},
    )


def to_xlam(tool: Form) -> dict[str, Any]:
    function = tool["function"]
    schema = function.get("parameters") or {}
    required = schema.get("required") or ()
    parameters: dict[str, Any] = {}
    for name, given in (schema.get("properties") or {}).items():
        rest = {key: value for key, value in given.items() if key not in ("type", "items")}
        words = _to_xlam_type(given)
        parameters[name] = {"type": words if name in required else f"{words}, optional", **rest}
    return {"name": function["name"], "description": function.get("description", ""), "parameters": parameters}


def _xlam_type(words: str) -> dict[str, Any]:
    match = re.match(r"\s*([A-Za-z]+)\s*(?:\[(.*)\])?", words)
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


def _to_xlam_type(schema: Form) -> str:
    names = {value: key for key, value in reversed(list(_XLAM_TYPES.items()))}
    kind = names.get(str(schema.get("type")), "any")
    if kind == "list" and schema.get("items"):
        return f"List[{_to_xlam_type(schema['items'])}]"
    return kind


_BFCL_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
_JSON_TYPES = {"object", "number", "array", "string", "integer", "boolean", "null"}


def from_bfcl(tool: Form) -> dict[str, Any]:
    """A BFCL declaration: its Python-flavoured types become those of JSON Schema, at every depth."""
    parameters = _json_schema(tool.get("parameters") or {})
    return declaration(_name_of(tool), str(tool.get("description") or ""), parameters)


def to_bfcl(tool: Form) -> dict[str, Any]:
    function = tool["function"]
    parameters = _bfcl_schema(function.get("parameters") or dict(EMPTY_PARAMETERS))
    return {"name": function["name"], "description": function.get("description", ""), "parameters": parameters}


def _json_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_json_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            kind = _BFCL_TYPES.get(value.lower(), value.lower())
            if kind is not None:
                result[key] = kind
        elif key == "properties" and isinstance(value, Mapping):
            result[key] = {name: _json_schema(item) for name, item in value.items()}
        elif key in ("enum", "default", "const", "examples"):
            result[key] = value
        else:
            result[key] = _json_schema(value)
    return result


def _bfcl_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bfcl_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    names = {"object": "dict", "number": "float"}
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            result[key] = names.get(value, value)
        elif key == "properties" and isinstance(value, Mapping):
            result[key] = {
                name: _bfcl_schema({"type": "any"} | dict(item)) if isinstance(item, Mapping) else item
                for name, item in value.items()
            }
        elif key in ("enum", "default", "const", "examples"):
            result[key] = value
        else:
            result[key] = _bfcl_schema(value)
    return result


def to_hermes(tools: Sequence[Form]) -> str:
    """The declarations as the ``<tools>`` block of a Hermes system prompt, one JSON line a tool."""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return f"<tools>\n{lines}\n</tools>"


def from_hermes(text: str) -> list[dict[str, Any]]:
    """The declarations of the first ``<tools>`` block of ``text``; [] when there is none or it is not JSON."""
    match = re.search(r"<tools>\s*(.*?)\s*</tools>", text, re.DOTALL)
    if not match:
        return []
    decoder, body, tools, at = json.JSONDecoder(), match.group(1), [], 0
    while at < len(body):
        try:
            value, at = decoder.raw_decode(body, at)
        except ValueError:
            return []
        tools += value if isinstance(value, list) else [value]
        at = len(body) - len(body[at:].lstrip(" \t\r\n,"))
    return [to_chat(tool) for tool in tools]


# --- calls -----------------------------------------------------------------------------------------------------------


def call(name: str, arguments: Mapping[str, Any] | str, call_id: str = "") -> dict[str, Any]:
    """A tool call in the Chat Completions shape; ``arguments`` text is kept as it is, well formed or not."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def call_name(tool_call: Form) -> str:
    return str((tool_call.get("function") or {}).get("name") or tool_call.get("name") or "")


def call_arguments(tool_call: Form) -> dict[str, Any]:
    """The arguments of a call as a dict; no text at all means no arguments.

    Raises ``ValueError`` with the reason when the text is not a JSON object.
    """
    given = (tool_call.get("function") or tool_call).get("arguments")
    if isinstance(given, Mapping):
        return dict(given)
    if given is None or not str(given).strip():
        return {}
    try:
        value = json.loads(str(given), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    if isinstance(value, str) and value.lstrip().startswith("{"):  # encoded twice, as some servers do
        value = json.loads(value, parse_constant=_no_constant)
    if not isinstance(value, dict):
        raise ValueError(f"the arguments are a JSON {type(value).__name__}; expected an object")
    return value


def call_from_responses(item: Form) -> dict[str, Any]:
    return call(item["name"], item.get("arguments") or "{}", str(item.get("call_id") or item.get("id") or ""))


def call_to_responses(tool_call: Form) -> dict[str, Any]:
    function = tool_call["function"]
    return {
        "type": "function_call",
        "call_id": tool_call["id"],
        "name": function["name"],
        "arguments": function["arguments"],
    }


def call_from_anthropic(block: Form) -> dict[str, Any]:
    return call(block["name"], block.get("input") or {}, str(block.get("id") or ""))


def call_to_anthropic(tool_call: Form) -> dict[str, Any]:
    """A ``tool_use`` block. Arguments that are no JSON object travel as ``{"_malformed": text}``."""
    return {
        "type": "tool_use",
        "id": tool_call["id"],
        "name": call_name(tool_call),
        "input": arguments_or_malformed(tool_call),
    }


def with_ids_of(message: Form, raw: Sequence[Form], kind: str, key: str) -> list[dict[str, Any]]:
    """A service's own blocks of ``message``, its calls (blocks of ``kind``) under the ids that the trace gives them."""
    ids = iter([made["id"] for made in message.get("tool_calls") or ()])
    return [{**block, key: next(ids, block.get(key))} if block["type"] == kind else dict(block) for block in raw]


def call_from_xlam(given: Form, call_id: str = "") -> dict[str, Any]:
    return call(given["name"], given.get("arguments") or {}, call_id)


def call_to_xlam(tool_call: Form) -> dict[str, Any]:
    return {"name": call_name(tool_call), "arguments": call_arguments(tool_call)}


def call_from_bfcl(given: Form, call_id: str = "") -> dict[str, Any]:
    (name, arguments), *others = given.items()
    if others:
        raise ValueError(f"a BFCL call has one key, the tool's name; found {sorted(given)}")
    return call(name, arguments, call_id)


def call_to_bfcl(tool_call: Form) -> dict[str, Any]:
    return {call_name(tool_call): call_arguments(tool_call)}


def call_to_hermes(tool_call: Form) -> str:
    body = json.dumps({"name": call_name(tool_call), "arguments": call_arguments(tool_call)}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def arguments_or_malformed(tool_call: Form) -> dict[str, Any]:
    """The arguments as a dict, whatever the model wrote: ``{"_malformed": text}`` when they are no JSON object."""
    try:
        return call_arguments(tool_call)
    except ValueError:
        return {"_malformed": str((tool_call.get("function") or {}).get("arguments"))}


def with_argument_objects(messages: Sequence[Form]) -> list[dict[str, Any]]:
    """Messages as chat templates want them: the arguments of every call an object, as TRL documents."""
    return [_with_argument_objects(message) for message in messages]


def _with_argument_objects(message: Form) -> dict[str, Any]:
    result = {key: value for key, value in message.items() if value is not None or key == "content"}
    if message.get("tool_calls"):
        result["tool_calls"] = [
            {**made, "function": {**made["function"], "arguments": arguments_or_malformed(made)}}
            for made in message["tool_calls"]
        ]
    return result


# --- reference calls of datasets -------------------------------------------------------------------------------------


def expected_from_bfcl(possible_answer: Sequence[Form]) -> tuple[dict[str, Any], ...]:
    """BFCL's key as reference calls: ``{"name", "possible": {argument: [allowed values; "" = may be left out]}}``."""
    return tuple({"name": name, "possible": dict(given)} for entry in possible_answer for name, given in entry.items())


def expected_from_calls(calls: Sequence[Form]) -> tuple[dict[str, Any], ...]:
    """Calls that a right answer made, in any form, as reference calls ``{"name", "arguments"}``."""
    return tuple({"name": call_name(made), "arguments": arguments_or_malformed(made)} for made in calls)


def _name_of(tool: Form) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"a tool declaration has no name; it has the keys {sorted(map(str, tool))}")
    return name


def _is_bfcl(parameters: Form) -> bool:
    return parameters.get("type") == "dict"


def _is_json_schema(parameters: Form) -> bool:
    """Whether ``parameters`` is a schema of an object, not xLAM's map of arguments (one may be named "type")."""
    return isinstance(parameters.get("type"), str | list) or isinstance(parameters.get("properties"), Mapping)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
