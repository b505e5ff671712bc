"""Matches the calls of a model with the expected calls. ``tool_verifier`` uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.records import JsonObject, Tool
from bestofn.verifiers.tool_schema import MadeCall, declared, defaults_of, same_name
from bestofn.verifiers.tool_values import equal_values, unmatched_arguments

Order = Literal["any", "sequence", "subsequence"]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which made call matches which expected call.

    ``matched``: pairs (expected index, made index). ``missing``: unmatched expected indices. ``extra``: unmatched made
    indices.
    """

    matched: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def precision(self) -> float:
        """The share of made calls that are expected; 1.0 without made calls."""
        made = len(self.matched) + len(self.extra)
        return len(self.matched) / made if made else 1.0

    @property
    def recall(self) -> float:
        """The share of expected calls that were made; 1.0 without expected calls."""
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
    """Match as many calls as possible, each at most once.

    ``order="any"``: as a multiset, by maximum bipartite matching. ``"sequence"``: position by position.
    ``"subsequence"``: in order, with other calls allowed between them.
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
    """How ``call`` differs from the expected call ``want``: argument -> reason; {} when it does not differ.

    ``want`` is ``{"name", "arguments": {argument: value}}`` or ``{"name", "possible": {argument: [allowed, …]}}``. The
    allowed value "" marks an argument that may be left out. ``unordered`` names the arguments whose list items may be
    in any order.
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
    """How the arguments differ from one right set; on both sides, an absent argument has its default."""
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
    """Maximum bipartite matching by augmenting paths (Kuhn); expected index -> made index."""
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
    """The longest matching that keeps both orders (a longest common subsequence)."""
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
