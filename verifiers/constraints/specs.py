"""Reads the constraints of a query from ``reference.checks["constraints"]``, in the forms of the published datasets."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestofn.builders.records import JsonObject
from bestofn.verifiers.constraints.functions_of_tulu import from_function
from bestofn.verifiers.constraints.kinds_of_tulu import from_prompt

LANGUAGES = frozenset({"en", "es", "fr", "ja"})
ID_COLUMNS = ("instruction_id_list", "instruction_ids", "instruction_id")
GROUPS = ("all", "any", "none")


class SpecError(ValueError):
    """Raised if the constraints of a query cannot be read."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, or a group of constraints: ``group`` is all, any, none, or "" for a single constraint."""

    id: str
    arguments: JsonObject = field(default_factory=dict)
    language: str = "en"
    group: str = ""
    parts: tuple[Constraint, ...] = ()


def read_constraints(value: object, language: str = "en") -> list[Constraint]:
    """Return the constraints that ``value`` describes. Raises ``SpecError`` if it has no known form.

    The forms are:

    - a list of ids and a list of arguments (IFEval, IFBench), also as the two items of one list
    - a list of objects with the key ``id`` and the arguments
    - ``{"func_name": …}`` (RLVR-IFeval)
    - ``{"kinds_of_tulu": […], "prompt": …}`` (Tülu 3's persona prompts)
    - any of these as JSON text or as a Python literal
    """
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, Mapping):
        return _of_object(value, language)
    if not isinstance(value, Sequence):
        raise SpecError(f"the constraints are {value!r:.80}; expected a list of objects with the key 'id'")
    if _is_pair_of_columns(value):
        return _of_columns(value[0], value[1], language)
    return [constraint for item in value for constraint in _of_item(item, language)]


def _decoded(text: str) -> object:
    """Return the value of a text that is JSON or a Python literal (IF_multi_constraints). Raises ``SpecError``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = error
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"the constraints are a text that is neither JSON nor a Python literal: {problem}") from None


def _of_item(item: object, language: str) -> list[Constraint]:
    if isinstance(item, str):
        return [_named(item, {}, language)]
    if not isinstance(item, Mapping):
        raise SpecError(f"a constraint is {item!r:.80}; expected an object with the key 'id'")
    return _of_object(item, language)


def _of_object(item: Mapping[str, Any], language: str) -> list[Constraint]:
    language = str(item.get("language_of_kinds") or language)
    for column in ID_COLUMNS:
        ids = item.get(column)
        if isinstance(ids, str):
            return _of_columns([ids], [item.get("kwargs")], language)
        if ids is not None:
            return _of_columns(ids, item.get("kwargs"), language)
    if "func_name" in item:
        return [_named(*from_function(item), language)]
    if "kinds_of_tulu" in item:
        prompt = str(item.get("prompt") or "")
        return [_named(*from_prompt(str(kind), prompt), language) for kind in item["kinds_of_tulu"]]
    for group in GROUPS:
        if group in item and len(item) == 1:
            parts = tuple(read_constraints(item[group], language))
            if not parts:
                raise SpecError(f"the group {group!r} has no constraints")
            return [Constraint(group, group=group, parts=parts)]
    if "id" not in item:
        raise SpecError(f"a constraint has the keys {', '.join(map(str, item))}; expected 'id'")
    arguments = item["kwargs"] if "kwargs" in item else {key: value for key, value in item.items() if key != "id"}
    return [_named(str(item["id"]), arguments, language)]


def _of_columns(ids: Sequence[str], arguments: object, language: str) -> list[Constraint]:
    given = [{}] * len(ids) if arguments is None else arguments
    given = [given] if isinstance(given, Mapping) else given
    if not isinstance(given, Sequence) or len(given) != len(ids):
        raise SpecError(f"{len(ids)} constraints have the arguments {given!r:.80}; expected one object per constraint")
    return [_named(name, one or {}, language) for name, one in zip(ids, given, strict=True)]


def _named(name: str, arguments: object, language: str) -> Constraint:
    """Return the constraint ``name`` with its arguments. A prefix such as ``ja:`` selects its language."""
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if not isinstance(arguments, Mapping):
        raise SpecError(f"the arguments of {name!r} are {arguments!r:.80}; expected an object")
    name = name.strip().replace(" ", "_")  # Tülu writes "length constraints:number of words"
    before, _, rest = name.partition(":")
    found, name = (before, rest) if before in LANGUAGES and rest else (language, name)
    return Constraint(name, arguments, found)


def _is_pair_of_columns(value: Sequence[object]) -> bool:
    if len(value) != 2 or isinstance(value[0], str | Mapping):
        return False
    return isinstance(value[0], Sequence) and all(isinstance(one, str) for one in value[0])
