"""Compares structured values field by field, with tolerances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bestofn.verifiers.structured.parsing import Finding, SpecificationError, pointer

Rules = Mapping[str, Any]
RULES = frozenset({"absolute", "relative", "ignore_case", "unordered", "extra", "ignore"})


def difference(expected: Any, actual: Any, spec: Mapping[str, Any]) -> Finding:
    """Return a finding with the first difference between two values. Its step is ``kept`` if they are equal.

    ``spec`` has these rules:

    - ``absolute``, ``relative``: tolerances of numbers. The default is 1e-9 of the value. Two integers must be equal by
      default, because they may be ids.
    - ``ignore_case``: case is ignored. ``unordered``: the order of lists does not matter.
    - ``extra``: further keys are allowed. ``ignore``: the value is not compared.
    - ``fields``: maps a JSON pointer to rules for this member and all members below it. ``*`` in a pointer is any item
      of a list.

    Raises ``SpecificationError`` if a rule is unknown.
    """
    _check_rules(spec)
    return _compare(expected, actual, [], _without_fields(spec), spec.get("fields") or {})


def _check_rules(spec: Mapping[str, Any]) -> None:
    """Raise ``SpecificationError`` if ``spec``, or an entry of its ``fields``, has an unknown or invalid rule."""
    fields = spec.get("fields") or {} if isinstance(spec, Mapping) else {}
    for rules in (spec, *(fields.values() if isinstance(fields, Mapping) else [fields])):
        if not isinstance(rules, Mapping):
            raise SpecificationError(f"the rules of compare are {rules!r:.80}; expected an object")
        unknown = sorted(set(rules) - RULES - ({"fields"} if rules is spec else set()))
        if unknown:
            raise SpecificationError(f"compare has the rule {unknown[0]!r}; expected {', '.join(sorted(RULES))}")
        for name in ("absolute", "relative"):
            if not _is_tolerance(rules.get(name)):
                raise SpecificationError(f"{name} of compare is {rules[name]!r:.80}; expected a number of at least 0")


def _is_tolerance(value: object) -> bool:
    """Return whether ``value`` is None or a finite number that is not negative."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return 0 <= float(value) < math.inf
    except OverflowError:  # an integer that is larger than all floats
        return False


def _without_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key != "fields" and value is not None}


def _compare(expected: Any, actual: Any, path: list[Any], rules: Rules, fields: Mapping[str, Rules]) -> Finding:
    here = pointer(["*" if isinstance(part, int) else part for part in path])
    rules = {**rules, **(fields.get(here) or {}), **(fields.get(pointer(path)) or {})}
    if rules.get("ignore"):
        return Finding("kept")
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return _compare_objects(expected, actual, path, rules, fields)
    if isinstance(expected, list) and isinstance(actual, list):
        return _compare_lists(expected, actual, path, rules, fields)
    if _same(expected, actual, rules):
        return Finding("kept")
    return Finding("value", f"the value is {actual!r:.100}; expected {expected!r:.100}", pointer(path))


def _compare_objects(
    expected: Mapping[str, Any], actual: Mapping[str, Any], path: list[Any], rules: Rules, fields: Mapping[str, Rules]
) -> Finding:
    for key, value in expected.items():
        if key not in actual:
            if (fields.get(pointer([*path, key])) or {}).get("ignore"):
                continue
            return Finding("value", f"the key {key!r} is missing", pointer(path))
        finding = _compare(value, actual[key], [*path, key], rules, fields)
        if finding.step != "kept":
            return finding
    extra = [key for key in actual if key not in expected]
    if extra and not rules.get("extra"):
        return Finding("value", f"the key {extra[0]!r} is not expected", pointer(path))
    return Finding("kept")


def _compare_lists(
    expected: list[Any], actual: list[Any], path: list[Any], rules: Rules, fields: Mapping[str, Rules]
) -> Finding:
    if len(expected) != len(actual):
        return Finding("value", f"the list has {len(actual)} items; expected {len(expected)}", pointer(path))
    if rules.get("unordered"):
        return _compare_unordered(expected, actual, path, rules, fields)
    for place, (one, other) in enumerate(zip(expected, actual, strict=True)):
        finding = _compare(one, other, [*path, place], rules, fields)
        if finding.step != "kept":
            return finding
    return Finding("kept")


def _compare_unordered(
    expected: list[Any], actual: list[Any], path: list[Any], rules: Rules, fields: Mapping[str, Rules]
) -> Finding:
    """Match each expected item with a different actual item (maximum bipartite matching by augmenting paths).

    Return a finding with the first expected item that cannot be matched. Its step is ``kept`` if all are matched.
    """
    fits = [
        [place for place, item in enumerate(actual) if _compare(one, item, [*path, 0], rules, fields).step == "kept"]
        for one in expected
    ]
    owner: dict[int, int] = {}

    def place_item(one: int, seen: set[int]) -> bool:
        for place in fits[one]:
            if place not in seen:
                seen.add(place)
                if place not in owner or place_item(owner[place], seen):
                    owner[place] = one
                    return True
        return False

    missing = next((one for one in range(len(expected)) if not place_item(one, set())), None)
    if missing is None:
        return Finding("kept")
    return Finding("value", f"the list has no item {expected[missing]!r:.100}", pointer(path))


def _same(expected: Any, actual: Any, rules: Rules) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return expected == actual or _is_close(expected, actual, rules)
    if isinstance(expected, str) and isinstance(actual, str) and rules.get("ignore_case"):
        return expected.strip().casefold() == actual.strip().casefold()
    return type(expected) is type(actual) and expected == actual


def _is_close(expected: float, actual: float, rules: Rules) -> bool:
    usual = 0 if isinstance(expected, int) and isinstance(actual, int) else 1e-9
    absolute, relative = float(rules.get("absolute") or 0), float(rules.get("relative", usual) or 0)
    try:
        if isinstance(expected, int) and isinstance(actual, int) and not relative:
            return abs(expected - actual) <= absolute  # exact, because two large integers may be the same float
        return math.isclose(expected, actual, rel_tol=relative, abs_tol=absolute)
    except OverflowError:  # an integer that is larger than all floats
        return False
