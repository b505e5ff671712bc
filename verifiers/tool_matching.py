"""Expected calls against made calls: which made call answers which expected one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bestofn.verifiers.tool_schema import MadeCall, declared, defaults_of, same_name
from bestofn.verifiers.tool_values import equal_values, unmatched_arguments

Order = Literal["any", "sequence", "subsequence"]


@dataclass(frozen=True, slots=True)
class Matching:
    """``matched``: pairs (expected index, made index). ``missing`` and ``extra``: indices left over on either side."""

    matched: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def precision(self) -> float:
        """The share of made calls that were expected; 1.0 when none was made."""
        made = len(self.matched) + len(self.extra)
        return len(self.matched) / made if made else 1.0

    @property
    def recall(self) -> float:
        """The share of expected calls that were made; 1.0 when none was expected."""
        expected = len(self.matched) + len(self.missing)
        return len(self.matched) / expected if expected else 1.0


def match(
    expected: Sequence[Mapping[str, Any]],
    made: Sequence[MadeCall],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    order: Order = "any",
    lenient: bool = False,
) -> Matching:
    """Match as many calls as possible, each at most once.

    ``any`` takes them as a multiset (a maximum bipartite matching, for one made call may answer several expected
    ones), ``sequence`` position by position, ``subsequence`` in order with other calls between.
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
    want: Mapping[str, Any], call: MadeCall, tools: Sequence[Mapping[str, Any]] = (), *, lenient: bool = False
) -> dict[str, str]:
    """What keeps ``call`` from being the expected call ``want``: argument -> reason; {} when it is.

    ``want`` is ``{"name", "arguments": {argument: value}}`` or ``{"name", "possible": {argument: [allowed, …]}}``
    with "" for an argument that may be left out; ``unordered`` lists the arguments whose list may stand in any order.
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


def _difference_from_one(
    want: Mapping[str, Any], made: Mapping[str, Any], defaults: Mapping[str, Any], lenient: bool
) -> dict[str, str]:
    """Against one right set of arguments: on both sides, what is left out is its default."""
    expected = {**defaults, **{key: value for key, value in (want.get("arguments") or {}).items() if value is not None}}
    found = {**defaults, **{key: value for key, value in made.items() if value is not None}}
    unordered = want.get("unordered") or ()
    wrong: dict[str, str] = {}
    for name in [*expected, *(name for name in found if name not in expected)]:
        if name not in found:
            wrong[name] = f"is missing; expected {expected[name]!r}"
        elif name not in expected:
            wrong[name] = f"is {found[name]!r}; the reference has no such argument"
        elif not equal_values(expected[name], found[name], lenient=lenient, unordered=name in unordered):
            wrong[name] = f"is {found[name]!r}; expected {expected[name]!r}"
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
    """The longest matching that keeps both orders (as a longest common subsequence)."""
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
