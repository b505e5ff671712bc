"""Reads YAML as plain data, once by the rules of YAML 1.1 and once by those of YAML 1.2.

The same text may have different values. In YAML 1.1, ``no`` and ``on`` are truth values, and ``12:30``, ``1_000`` and
``010`` are other numbers than in YAML 1.2. Only in YAML 1.2, ``1e3`` is a number. An answer does not say which version
it uses.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from bestofn.verifiers.structured.findings import TOO_DEEP, TOO_LONG, SyntaxProblemError, UnreadableError
from bestofn.verifiers.structured.plain_data import plain_data, unique

MAX_ALIASES = 100
"""YAML with more aliases is not read, because each alias may repeat a large part."""

_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """Reads YAML 1.1. Dates are texts, as JSON Schema expects them, and a key that occurs twice is an error."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        unique([((key.tag, key.value), None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)], "YAML")
        return node


class _CoreLoader(_Loader):
    """Reads the core schema of YAML 1.2."""

    yaml_implicit_resolvers: ClassVar = {
        first: [one for one in resolvers if one[0] not in {f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float"}]
        for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    }

    def construct_core_integer(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        bases = {"0o": 8, "0x": 16}
        return int(text[2:], bases[text[:2]]) if text[:2] in bases else int(text)


_CoreLoader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
_CoreLoader.add_implicit_resolver(
    f"{_TAG}int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), list("-+0123456789")
)
_CoreLoader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
    list("-+.0123456789"),
)
_CoreLoader.add_constructor(f"{_TAG}int", _CoreLoader.construct_core_integer)


def yaml_readings(text: str) -> list[object]:
    """Return the data of ``text``: one value, or two if YAML 1.1 and YAML 1.2 differ.

    Raises ``SyntaxProblemError`` if the text is not YAML, and ``UnreadableError`` if JSON cannot represent the data.
    """
    first, second = (_read(text, loader) for loader in (_Loader, _CoreLoader))
    return [first] if repr(first) == repr(second) else [first, second]


def _read(text: str, loader: type[_Loader]) -> object:
    try:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader))
        if aliases > MAX_ALIASES:
            raise UnreadableError(f"YAML with {aliases} aliases; at most {MAX_ALIASES} are read")
        return plain_data(yaml.load(text, Loader=loader))
    except (SyntaxProblemError, UnreadableError):
        raise
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())[:300]
        if "integer string conversion" in problem:
            raise UnreadableError(TOO_LONG) from None
        if "unhashable key" in problem:
            raise UnreadableError("a key of the YAML is a list or an object, which JSON does not have") from None
        raise SyntaxProblemError(f"not YAML: {problem}") from None
