"""Compares tuples, lists, sets, unions and matrices, item by item."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.intervals import as_ranges, same_ranges
from bestofn.verifiers.math_verifier.matrices import rows
from bestofn.verifiers.math_verifier.nodes import COLLECTIONS, Node, Symbol, head
from bestofn.verifiers.math_verifier.rules.scalars import scalar
from bestofn.verifiers.math_verifier.rules.terms import Match, Same, Terms

MAX_ITEMS = 64
REALS = Symbol("mathbb_R")


def collection(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one is a collection (tuple, list, set, union), otherwise return None."""
    left, right = head(reference), head(candidate)
    if (
        "union" in (left, right)
        or "cap" in (left, right)
        or "setminus" in (left, right)
        or REALS in (reference, candidate)
    ):
        return _unions(reference, candidate, terms, same)
    if left not in COLLECTIONS and right not in COLLECTIONS:
        return None
    ours = reference.args if left in COLLECTIONS else (reference,)  # type: ignore[union-attr]
    theirs = candidate.args if right in COLLECTIONS else (candidate,)  # type: ignore[union-attr]
    if left not in COLLECTIONS or right not in COLLECTIONS:
        return _one_against_many(ours, theirs, left, right, terms, same)
    if not _brackets_agree(left, right, len(ours)):
        return Match(False, "different brackets")
    if len(ours) != len(theirs) and "{}" not in (left, right):
        return Match(False, "different numbers of values")
    if "{}" in (left, right) or (left == "," and right == "," and not terms.ordered):
        return unordered(list(ours), list(theirs), terms, same)
    match = ordered(ours, theirs, terms, same)
    if not match.equal and left == "," and not terms.ordered and right != "()":
        return unordered(list(ours), list(theirs), terms, same)
    return match


def _one_against_many(
    ours: tuple[Node, ...], theirs: tuple[Node, ...], left: str, right: str, terms: Terms, same: Same
) -> Match:
    """Compare a single value with a collection. They match if every item of the answer equals the reference value."""
    if len(ours) == 0 or len(theirs) == 0:
        return Match(False, "an empty set against a value")
    if right in (",", "{}", "[]") and len(theirs) > 1 and len(ours) == 1:
        matches = [same(ours[0], item, terms) for item in theirs]
        if all(match.equal for match in matches):
            return Match(True, "the same value, repeated", 0.9)
        return Match(False, "several values for one")
    if len(ours) == len(theirs) == 1:
        return same(ours[0], theirs[0], terms)
    return Match(False, "different numbers of values")


def _brackets_agree(left: str, right: str, count: int) -> bool:
    if left == right or "," in (left, right):
        return True
    if "{}" in (left, right):
        return {left, right} == {"{}", "[]"} and count != 2
    return count != 2 and {left, right} == {"()", "[]"}


def ordered(ours: tuple, theirs: tuple, terms: Terms, same: Same) -> Match:
    """Compare two lists of the same length, item by item, in order."""
    undecided = False
    for mine, other in zip(ours, theirs, strict=True):
        match = same(mine, other, terms)
        if match.equal is False:
            return Match(False, f"a member differs ({match.method})")
        undecided = undecided or match.equal is None
    return Match(None if undecided else True, "member by member")


def unordered(ours: list[Node], theirs: list[Node], terms: Terms, same: Same) -> Match:
    """Compare two lists in any order. If their lengths differ, repeated values are removed first."""
    if len(ours) != len(theirs):
        ours, theirs = _distinct(ours, terms, same), _distinct(theirs, terms, same)
        if len(ours) != len(theirs):
            return Match(False, "different numbers of values")
    if len(ours) > MAX_ITEMS:
        return Match(None, "too many members")
    left, undecided = list(theirs), False
    for mine in ours:
        matched = None
        for at, other in enumerate(left):
            equal = same(mine, other, terms).equal
            if equal:
                matched = at
                break
            undecided = undecided or equal is None
        if matched is None:
            return Match(None if undecided else False, "a member is missing")
        left.pop(matched)
    return Match(True, "the same members")


def _distinct(items: list[Node], terms: Terms, same: Same) -> list[Node]:
    if len(items) > MAX_ITEMS:
        return items
    kept: list[Node] = []
    for item in items:
        if not any(same(item, other, terms).equal for other in kept):
            kept.append(item)
    return kept


def _unions(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    ours, theirs = as_ranges(reference), as_ranges(candidate)
    if ours is not None and theirs is not None:
        return Match(same_ranges(ours, theirs, lambda a, b: scalar(a, b, terms).equal), "ranges")
    if head(reference) == head(candidate) == "union":
        return unordered(list(reference.args), list(candidate.args), terms, same)  # type: ignore[union-attr]
    return Match(False, "a union against something else")


def matrix(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees, entry by entry, if one is a matrix, otherwise return None."""
    if "matrix" not in (head(reference), head(candidate)):
        return None
    ours, theirs = rows(reference), rows(candidate)
    if ours and theirs and len(ours) == 1 != len(theirs) and head(candidate) in ("[]", "()"):
        theirs = [tuple(member for row in theirs for member in row)]  # a flat list may represent a matrix of one row
    if ours is None or theirs is None or [len(row) for row in ours] != [len(row) for row in theirs]:
        return Match(False, "different shapes")
    flat = [(a, b) for mine, other in zip(ours, theirs, strict=True) for a, b in zip(mine, other, strict=True)]
    return ordered(tuple(a for a, _ in flat), tuple(b for _, b in flat), terms, same)
