"""Matches the tool calls of a model with the expected calls. ``verifier`` uses this module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.records import JsonObject, Tool
from bestofn.verifiers.tools.declarations import MadeCall, declared, defaults_of, same_name
from bestofn.verifiers.tools.values import equal_values, unmatched_arguments

Order = Literal["any", "sequence", "subsequence"]


@dataclass(frozen=True, slots=True)
class Matching:
    """The result of matching the expected calls with the calls that the model made.

    ``matched`` contains pairs (index of the expected call, index of the made call). ``missing`` contains the indices of
    the unmatched expected calls; ``extra`` contains the indices of the unmatched made calls.
    """

    matched: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def precision(self) -> float:
        """The share of the made calls that were expected; 1.0 if no call was made."""
        made = len(self.matched) + len(self.extra)
        return len(self.matched) / made if made else 1.0

    @property
    def recall(self) -> float:
        """The share of the expected calls that were made; 1.0 if no call is expected."""
        expected = len(self.matched) + len(self.missing)
        return len(self.matched) / expected if expected else 1.0


def match(
    expected: Sequence[JsonObject],
    made: Sequence[MadeCall],
    tools: Sequence[Tool] = (),
    *,
    order: Order = "any",
    lenient: bool = False,
) -> Matching:
    """Match as many expected calls as possible with made calls. Each call is matched at most once.

    ``order`` is ``any`` (in any order, by maximum bipartite matching), ``sequence`` (position by position) or
    ``subsequence`` (in the expected order; other calls may be between them).
    """
    fits = [[not difference(want, call, tools, lenient=lenient) for call in made] for want in expected]
    if order == "any":
        pairs = maximum_matching(fits, len(made))
    elif order == "sequence":
        pairs = {want: want for want in range(min(len(expected), len(made))) if fits[want][want]}
    else:
        pairs = _longest_in_order(fits, len(made))
    matched = tuple(sorted(pairs.items()))
    return Matching(
        matched,
        tuple(index for index in range(len(expected)) if index not in pairs),
        tuple(index for index in range(len(made)) if index not in set(pairs.values())),
    )


def difference(
    want: JsonObject, call: MadeCall, tools: Sequence[Tool] = (), *, lenient: bool = False
) -> dict[str, str]:
    """Return the differences between ``call`` and the expected call ``want``, as {argument: reason}.

    ``want`` is ``{"name", "arguments": {argument: value}}`` or ``{"name", "possible": {argument: [allowed, …]}}``. An
    allowed value of "" means that the argument may be left out. ``want["unordered"]`` lists the arguments whose list
    items may be in any order.
    """
    if not same_name(str(want["name"]), call.name):
        return {"name": f"is {call.name!r}; expected {want['name']!r}"}
    if call.arguments is None:
        return {"arguments": call.problem}
    defaults = defaults_of(declared(tools, call.name))
    possible = want.get("possible")
    if possible is None:
        return _difference_from_one(want, call.arguments, defaults, lenient)
    return unmatched_arguments(
        possible, call.arguments, lenient=lenient, unordered=want.get("unordered") or (), defaults=defaults
    )


def _difference_from_one(want: JsonObject, made: JsonObject, defaults: JsonObject, lenient: bool) -> dict[str, str]:
    """Return the differences from ``want``, which has one value per argument. An absent argument has its default."""
    expected = {**defaults, **{key: value for key, value in (want.get("arguments") or {}).items() if value is not None}}
    given = {**defaults, **{key: value for key, value in made.items() if value is not None}}
    unordered = want.get("unordered") or ()
    wrong: dict[str, str] = {}
    for name in [*expected, *(name for name in given if name not in expected)]:
        if name not in given:
            wrong[name] = f"is missing; expected {expected[name]!r}"
        elif name not in expected:
            wrong[name] = f"is {given[name]!r}; the reference has no such argument"
        elif not equal_values(expected[name], given[name], lenient=lenient, unordered=name in unordered):
            wrong[name] = f"is {given[name]!r}; expected {expected[name]!r}"
    return wrong


def maximum_matching(fits: Sequence[Sequence[bool]], size: int) -> dict[int, int]:
    """Return a maximum bipartite matching (Kuhn's algorithm) as {index of expected call: index of made call}.

    ``fits[expected][made]`` is true if the two calls may be matched; ``size`` is the number of made calls.
    """
    owner: dict[int, int] = {}

    def place(want: int, seen: set[int]) -> bool:
        for call in range(size):
            if fits[want][call] and call not in seen:
                seen.add(call)
                if call not in owner or place(owner[call], seen):
                    owner[call] = want
                    return True
        return False

    for want in range(len(fits)):
        place(want, set())
    return {want: call for call, want in owner.items()}


def _longest_in_order(fits: Sequence[Sequence[bool]], size: int) -> dict[int, int]:
    """Return the longest matching that keeps the order of both lists (longest common subsequence).

    The result is {index of expected call: index of made call}.
    """
    best = [[0] * (size + 1) for _ in range(len(fits) + 1)]
    for want in range(len(fits) - 1, -1, -1):
        for call in range(size - 1, -1, -1):
            taken = best[want + 1][call + 1] + 1 if fits[want][call] else 0
            best[want][call] = max(taken, best[want + 1][call], best[want][call + 1])
    pairs, want, call = {}, 0, 0
    while want < len(fits) and call < size:
        if fits[want][call] and best[want][call] == best[want + 1][call + 1] + 1:
            pairs[want] = call
            want, call = want + 1, call + 1
        elif best[want + 1][call] >= best[want][call + 1]:
            want += 1
        else:
            call += 1
    return pairs
