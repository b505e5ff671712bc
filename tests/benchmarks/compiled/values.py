"""Writes the values of the tasks as literals of each language."""

from __future__ import annotations

import json
from typing import Any

SCALARS = {
    "go": {"int": "int", "float": "float64", "str": "string", "bool": "bool"},
    "rust": {"int": "i64", "float": "f64", "str": "String", "bool": "bool"},
    "cpp": {"int": "int", "float": "double", "str": "std::string", "bool": "bool"},
}


def type_name(language: str, kind: Any) -> str:
    """Return the type ``kind`` of a task (``int``, ``[int]``, ``{str: int}``) in Go, Rust or C++."""
    if isinstance(kind, str):
        return SCALARS[language][kind]
    if isinstance(kind, list):
        item = type_name(language, kind[0])
        return {"go": f"[]{item}", "rust": f"Vec<{item}>", "cpp": f"std::vector<{item}>"}[language]
    ((key, value),) = kind.items()
    names = type_name(language, key), type_name(language, value)
    maps = {"go": "map[{}]{}", "rust": "std::collections::HashMap<{}, {}>", "cpp": "std::map<{}, {}>"}
    return maps[language].format(*names)


def literal(language: str, kind: Any, value: Any) -> str:
    """Return ``value``, which has the type ``kind``, as an expression of the language."""
    if language == "typescript" or isinstance(kind, str):
        text = json.dumps(value)
        return f"String::from({text})" if (language, kind) == ("rust", "str") else text
    if isinstance(kind, list):
        return _list(language, kind, [literal(language, kind[0], item) for item in value])
    ((key, item),) = kind.items()
    return _map(
        language, kind, [(literal(language, key, name), literal(language, item, value[name])) for name in value]
    )


def _list(language: str, kind: Any, items: list[str]) -> str:
    inside = ", ".join(items)
    if language == "java":
        return f"List.of({inside})"
    if language == "rust":
        return f"vec![{inside}]" if items else f"{type_name('rust', kind).replace('Vec', 'Vec::', 1)}::new()"
    return f"{type_name(language, kind)}{{{inside}}}"


def _map(language: str, kind: Any, items: list[tuple[str, str]]) -> str:
    if language == "java":
        return f"Map.of({', '.join(f'{key}, {value}' for key, value in items)})"
    if language == "go":
        return f"{type_name('go', kind)}{{{', '.join(f'{key}: {value}' for key, value in items)}}}"
    if language == "cpp":
        return f"{type_name('cpp', kind)}{{{', '.join(f'{{{key}, {value}}}' for key, value in items)}}}"
    whole = type_name("rust", kind).replace("HashMap", "HashMap::")
    return f"{whole}::from([{', '.join(f'({key}, {value})' for key, value in items)}])"
