"""Rubrics: lists of weighted criteria for the answers to one query, and the checks that need no judge.

A criterion is a mapping:

    {"text": "Names the capital of France", "weight": 3, "required": true}
    {"text": "Invents a source", "polarity": "must_not"}
    {"text": "At most 50 words", "check": {"max_words": 50}}

The keys of published rubrics (HealthBench, Rubrics as Rewards) are accepted too: ``criterion`` or ``description`` for
``text``, and ``points`` for ``weight``. A negative weight means ``must_not``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import JsonObject, Query, Verdict

Polarity = Literal["must", "must_not"]
TEXT_KEYS = ("text", "criterion", "description", "title")
WEIGHT_KEYS = ("weight", "points")
KEYS = ("polarity", "required", "check", *TEXT_KEYS, *WEIGHT_KEYS, "tags")
WEIGHTS = (1e-9, 1e9)  # the least and the greatest absolute value of a weight
VERDICT = "verdict"  # the check that uses the verdict of a verifier


@dataclass(frozen=True, slots=True)
class Criterion:
    """One item of a rubric. If ``check`` is None, a judge decides about it.

    Otherwise ``check`` maps one key of ``CHECKS``, or ``verdict``, to a value. With the polarity ``must_not``, the
    criterion is satisfied if its statement is not true of the answer.
    """

    text: str
    weight: float = 1.0
    polarity: Polarity = "must"
    required: bool = False
    check: JsonObject | None = None

    def satisfied(self, holds: bool | None) -> bool | None:
        """Return whether the criterion is satisfied, given whether its statement ``holds`` for the answer.

        None means not known, in the argument and in the result.
        """
        return None if holds is None else holds == (self.polarity == "must")


def _is_json(answer: str, _: object) -> bool:
    try:
        json.loads(answer)
    except (ValueError, RecursionError):  # ValueError: not JSON, or more digits than Python reads
        return False
    return True


def _texts(value: object) -> list[str]:
    return [str(item).casefold() for item in (value if isinstance(value, list | tuple) else [value])]


CHECKS: Mapping[str, Callable[[str, object], bool]] = {
    "contains": lambda answer, value: all(text in answer.casefold() for text in _texts(value)),
    "contains_any": lambda answer, value: any(text in answer.casefold() for text in _texts(value)),
    "starts_with": lambda answer, value: answer.strip().casefold().startswith(tuple(_texts(value))),
    "ends_with": lambda answer, value: answer.strip().casefold().endswith(tuple(_texts(value))),
    "min_words": lambda answer, value: len(answer.split()) >= int(str(value)),
    "max_words": lambda answer, value: len(answer.split()) <= int(str(value)),
    "json": _is_json,
}
"""Check -> whether it holds for an answer and its value. Texts are compared without case."""


def criteria_of(value: object, where: str = "rubric") -> list[Criterion]:
    """Parse a rubric: a list of criteria, or such a list as JSON text.

    A text in the list is a criterion without settings. Raises ``ConfigError``, whose message contains ``where``, if the
    rubric is not valid.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(f"{where} is {type(value).__name__}; expected a list of criteria")
    return [_criterion(item, f"{where}[{place}]") for place, item in enumerate(value)]


def _criterion(item: object, where: str) -> Criterion:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise ConfigError(f"{where} is {item!r}; expected a text or a mapping with the key text")
    for key in item:
        if key not in KEYS:
            raise ConfigError(f"{where} has the unknown key {key!r}{did_you_mean(str(key), KEYS)}")
    text = next((str(item[key]).strip() for key in (*TEXT_KEYS[:3], "title") if item.get(key)), "")
    weight = next((item[key] for key in WEIGHT_KEYS if item.get(key) is not None), 1.0)
    weight = _weight(weight, f"{where}.weight")
    polarity = item.get("polarity") or ("must" if weight > 0 else "must_not")
    required, check = item.get("required", False), item.get("check")
    if polarity not in ("must", "must_not"):
        raise ConfigError(f"{where}.polarity is {polarity!r}; expected must or must_not")
    if not isinstance(required, bool):
        raise ConfigError(f"{where}.required is {required!r}; expected true or false")
    check = _check(check, f"{where}.check") if check is not None else None
    if not text and check is None:
        raise ConfigError(f"{where} has no text; expected a statement about the answer")
    return Criterion(text or json.dumps(check), abs(weight), polarity, required, check)


def _weight(weight: object, where: str) -> float:
    """Return ``weight``. Raises ``ConfigError`` unless it is a number whose absolute value is in ``WEIGHTS``."""
    least, most = WEIGHTS
    expected = f"expected a number from {least:g} to {most:g}, or its negative"
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise ConfigError(f"{where} is {weight!r:.80}; {expected}")
    if not least <= abs(weight) <= most:
        shown = f"{weight:g}" if isinstance(weight, float) or abs(weight) < 10**18 else "too large"
        raise ConfigError(f"{where} is {shown}; {expected}")
    return float(weight)


def _check(check: object, where: str) -> JsonObject:
    if isinstance(check, str):
        check = {check: True}
    names = (*CHECKS, VERDICT)
    if not isinstance(check, Mapping) or len(check) != 1:
        raise ConfigError(f"{where} is {check!r}; expected one key of {', '.join(names)}")
    ((name, value),) = check.items()
    if name not in names:
        raise ConfigError(f"{where} has the unknown key {name!r}{did_you_mean(str(name), names)}")
    if name in ("min_words", "max_words") and (isinstance(value, bool) or not isinstance(value, int)):
        raise ConfigError(f"{where}.{name} is {value!r}; expected a whole number")
    return {str(name): value}


def as_data(criterion: Criterion) -> dict[str, object]:
    """Return the criterion as a mapping. ``criteria_of`` accepts a list of such mappings."""
    data = {"text": criterion.text, "weight": criterion.weight, "polarity": criterion.polarity}
    return {**data, "required": criterion.required, **({"check": criterion.check} if criterion.check else {})}


def checked(criterion: Criterion, answer: str, verdict: Verdict | None) -> bool | None:
    """Return whether the check of ``criterion`` holds for ``answer``. ``criterion.check`` must not be None.

    Returns None if the check uses the verdict, and ``verdict`` is neither pass nor fail.
    """
    assert criterion.check is not None
    ((name, value),) = criterion.check.items()
    if name == VERDICT:
        decided = verdict is not None and verdict.outcome in ("pass", "fail")
        return verdict.outcome == "pass" if decided and verdict is not None else None
    return CHECKS[name](answer, value)


def rubric_of(query: Query) -> list[Criterion]:
    """Return the rubric in the metadata of ``query``; [] if it has none. Raises ``ConfigError`` if it is invalid."""
    value = query.metadata.get("rubric")
    return criteria_of(value, f"the rubric of query {query.id}") if value else []


def exact(number: float) -> Fraction:
    """Return ``number`` as the fraction that its decimal notation means: 0.1 is 1/10."""
    return Fraction(str(number))


@dataclass(frozen=True, slots=True)
class Fulfilment:
    """Which criteria of a rubric an answer satisfies. ``states`` has True, False or None (not known) per criterion."""

    criteria: Sequence[Criterion]
    states: Sequence[bool | None]

    @property
    def broken(self) -> list[Criterion]:
        """The required criteria that are not satisfied."""
        return [one for one, state in zip(self.criteria, self.states, strict=True) if one.required and state is False]

    @property
    def unknown(self) -> list[Criterion]:
        """The criteria whose state is not known."""
        return [one for one, state in zip(self.criteria, self.states, strict=True) if state is None]

    def share(self, *, unknown: bool) -> Fraction:
        """Return the satisfied share of the weights, from 0 to 1.

        If ``unknown`` is true, criteria with an unknown state count as satisfied. The share is an exact fraction. A
        sum of floats could be above a threshold only because of rounding, as 0.1 + 0.2 is above 0.3.
        """
        held = sum(
            exact(one.weight)
            for one, state in zip(self.criteria, self.states, strict=True)
            if state or (state is None and unknown)
        )
        return Fraction(held) / sum(exact(one.weight) for one in self.criteria)
