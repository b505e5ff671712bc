"""Compares tuples, lists, sets, unions and matrices, item by item."""

from __future__ import annotations

from bestofn.verifiers.math.intervals import as_ranges, same_ranges
from bestofn.verifiers.math.nodes import COLLECTIONS, Apply, Node, Number, Symbol, head, heads, walk
from bestofn.verifiers.math.rules.scalars import scalar
from bestofn.verifiers.math.rules.terms import Equal, Match, Same, Terms, Unclear, decided, different, is_value, noted

# Finds the rows of matrices, and computes sums and products of small matrices as trees.

MAX_SIDE = 12
AXES = ("i", "j", "k")
Rows = list[tuple[Node, ...]]


def rows(node: Node) -> Rows | None:
    """Return the rows of a matrix or a list of lists; None for other trees. A tuple or list of values is a column."""
    if not isinstance(node, Apply):
        return None
    if node.head == "matrix":
        return [row.args for row in node.args if isinstance(row, Apply)]
    if node.head in ("[]", "()", "{}") and all(head(item) in ("[]", "()", "{}") for item in node.args):
        return [item.args for item in node.args if isinstance(item, Apply)]
    if node.head in ("[]", "()"):
        return [(item,) for item in node.args]
    return worked_out(node) or components(node)


def components(node: Node) -> Rows | None:
    """Return a vector such as ``-2i - 14j - 7k`` as a column of two or three numbers.

    Return None if a part is not a multiple of i, j or k, or if only i occurs.
    """
    parts = node.args if isinstance(node, Apply) and node.head == "+" else (node,)
    by_axis: dict[str, Node] = {}
    for part in parts:
        sign, part = (True, part.args[0]) if isinstance(part, Apply) and part.head == "neg" else (False, part)
        factors = part.args if isinstance(part, Apply) and part.head == "*" else (part,)
        named = [factor.name for factor in factors if isinstance(factor, Symbol) and factor.name in AXES]
        if len(named) != 1 or named[0] in by_axis:
            return None
        rest = [factor for factor in factors if not (isinstance(factor, Symbol) and factor.name in AXES)]
        value = Apply("*", (*rest,)) if len(rest) > 1 else rest[0] if rest else Number(1)
        by_axis[named[0]] = Apply("neg", (value,)) if sign else value
    if not {"j", "k"} & by_axis.keys():
        return None  # a multiple of i alone is a complex number
    return [(by_axis.get(axis, Number(0)),) for axis in (AXES if "k" in by_axis else AXES[:2])]


def worked_out(node: Node) -> Rows | None:
    """Return the rows of a matrix, or of a sum, product or multiple of matrices.

    Return None for other trees, and if the sizes of the matrices do not fit.
    """
    if not isinstance(node, Apply) or "matrix" not in heads(node):
        return None
    if node.head == "matrix":
        return rows(node)
    if node.head == "neg":
        return _each(worked_out(node.args[0]), lambda member: Apply("neg", (member,)))
    if node.head not in ("+", "*"):
        return None
    total: Rows | None = None
    scalars: list[Node] = []
    for part in node.args:
        matrix = worked_out(part)
        if matrix is None:
            scalars.append(part)
        else:
            total = matrix if total is None else (_sum if node.head == "+" else _product)(total, matrix)
            if total is None:
                return None
    if scalars and node.head == "+":
        return None
    for factor in scalars:
        total = _each(total, lambda member, by=factor: Apply("*", (by, member)))
    return total


def _each(matrix: Rows | None, change) -> Rows | None:
    return None if matrix is None else [tuple(change(member) for member in row) for row in matrix]


def _sum(left: Rows, right: Rows) -> Rows | None:
    if [len(row) for row in left] != [len(row) for row in right]:
        return None
    return [tuple(Apply("+", pair) for pair in zip(*two, strict=True)) for two in zip(left, right, strict=True)]


def _product(left: Rows, right: Rows) -> Rows | None:
    inner, width = len(right), len(right[0]) if right else 0
    if (
        any(len(row) != inner for row in left)
        or any(len(row) != width for row in right)
        or max(inner, width) > MAX_SIDE
    ):
        return None
    return [
        tuple(Apply("+", tuple(Apply("*", (row[k], right[k][j])) for k in range(inner))) for j in range(width))
        for row in left
    ]


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
    inside = _only_member(reference, right), _only_member(candidate, left)
    if inside != (None, None):
        return same(inside[0] or reference, inside[1] or candidate, terms)
    if "()" in (left, right) and left != right:
        vector = components(candidate if left == "()" else reference)
        if vector is not None:
            tuple_ = Apply("()", tuple(part for (part,) in vector))
            return same(reference if left == "()" else tuple_, tuple_ if left == "()" else candidate, terms)
    reference, candidate = _grouped(reference, candidate), _grouped(candidate, reference)
    left, right = head(reference), head(candidate)
    ours = reference.args if left in COLLECTIONS else (reference,)  # type: ignore[union-attr]
    theirs = candidate.args if right in COLLECTIONS else (candidate,)  # type: ignore[union-attr]
    if left not in COLLECTIONS or right not in COLLECTIONS:
        return _one_against_many(reference, candidate, ours, theirs, terms, same)
    if not _brackets_agree(left, right, len(ours)):
        return _other_brackets(reference, candidate, terms, same)
    if len(ours) != len(theirs) and "{}" not in (left, right):
        return _other_count(reference, candidate, terms, same)
    named, given = _names(ours), _names(theirs)
    if named and len(named) == len(ours) == len(theirs) and named.keys() == given.keys():
        return ordered(tuple(named.values()), tuple(given[name] for name in named), terms, same)
    tuples = all(head(item) in ("()", "[]") for item in ours)  # solutions are listed in any order
    if "{}" in (left, right) or (left == "," and right == "," and (tuples or not terms.ordered)):
        return unordered(list(ours), list(theirs), terms, same)
    match = ordered(ours, theirs, terms, same)
    if not match.equal and left == "," and not terms.ordered and right != "()":
        return unordered(list(ours), list(theirs), terms, same)
    return match


def _only_member(node: Node, other: str) -> Node | None:
    """Return the tuple in a set of one tuple, such as ``{(1, 2)}``; None for all other trees.

    ``other`` is the head of the tree on the other side. The result is None if ``other`` is a set or a bare list
    (``,``).
    """
    if head(node) != "{}" or other in ("{}", ",") or len(node.args) != 1:  # type: ignore[union-attr]
        return None
    return node.args[0] if head(node.args[0]) == "()" else None  # type: ignore[union-attr]


def _grouped(node: Node, other: Node) -> Node:
    """Return ``p = 2, q = 3, p = 3, q = 2`` as two tuples, and ``(p, q) = (2, 3), (3, 2)`` without the names.

    Other trees are returned unchanged. Named values become tuples only if ``other`` has tuples.
    """
    if head(node) != ",":
        return node
    items: list[Node] = [_without_names(item) for item in node.args]  # type: ignore[union-attr]
    names = [item.args[0] for item in items if isinstance(item, Apply) and item.head == "="]
    width = len(set(names))
    tuples = isinstance(other, Apply) and any(head(_without_names(part)) == "()" for part in other.args)
    if (
        not tuples
        or len(names) != len(items)
        or not 1 < width < len(names)
        or names != names[:width] * (len(names) // width)
    ):
        return Apply(",", tuple(items))
    values = [item.args[-1] for item in items if isinstance(item, Apply)]
    return Apply(",", tuple(Apply("()", tuple(values[at : at + width])) for at in range(0, len(values), width)))


def _without_names(node: Node) -> Node:
    """Return the tuple of values of ``(x, y) = (2, 3)``. Return other trees unchanged."""
    if isinstance(node, Apply) and node.head == "=" and head(node.args[0]) == head(node.args[-1]) == "()":
        return node.args[-1]
    return node


def _one_against_many(
    reference: Node, candidate: Node, ours: tuple[Node, ...], theirs: tuple[Node, ...], terms: Terms, same: Same
) -> Match:
    """Compare two sides, one of which is a single value and the other a collection.

    If the reference is the single value, an answer that only repeats this value is equal.
    """
    if len(ours) == 0 or len(theirs) == 0:
        values = ours or theirs
        if all(is_value(value) for value in values):
            return different("an empty set against a value", reference, candidate)
        return Unclear("an empty set against an expression")
    if len(ours) == len(theirs) == 1:
        return same(ours[0], theirs[0], terms)
    if len(ours) == 1 and head(candidate) in (",", "{}", "[]"):
        matches = [same(ours[0], item, terms) for item in theirs]
        if all(match.equal for match in matches):
            return Equal("the same value, repeated")
        if any(match.equal for match in matches):
            if len(_names(theirs)) > 1 or all(match.equal is not False for match in matches):
                return Unclear("one of several values")
            return different("several values for one", reference, candidate)
        if is_value(ours[0]) and all(isinstance(item, Symbol) or _is_plain(item) for item in theirs):
            return different("several values for one", reference, candidate)
    return _other_count(reference, candidate, terms, same)


def _names(items: tuple[Node, ...]) -> dict[Node, Node]:
    """Return {name: value} for items such as ``x = 5``. Items without a name are left out."""
    return {item.args[0]: item.args[-1] for item in items if isinstance(item, Apply) and item.head == "="}


def _other_count(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    """Return the match of two collections of different length: ``Different``, or ``Unclear`` in two cases.

    The cases are: an item is not a plain value, or the collections differ only in how often a value occurs.
    """
    ours, theirs = _members(reference), _members(candidate)
    if not all(_is_plain(item) for item in (*ours, *theirs)):
        return Unclear("different numbers of values that are not all plain")
    if head(reference) == head(candidate) == ",":
        match = unordered(list(ours), list(theirs), terms, same)
        if match.equal is not False:
            return Unclear("the same values, with repetitions")
    return different("different numbers of values", reference, candidate)


def _members(node: Node) -> tuple[Node, ...]:
    return node.args if isinstance(node, Apply) and node.head in COLLECTIONS else (node,)


def _is_plain(node: Node) -> bool:
    """Return whether a member is a number, a quantity, or a collection of such members."""
    if isinstance(node, Apply) and node.head in COLLECTIONS:
        return all(_is_plain(part) for part in node.args)
    if isinstance(node, Apply) and node.head == "=":
        return _is_plain(node.args[-1])
    return is_value(node)


def _brackets_agree(left: str, right: str, count: int) -> bool:
    if left == right:
        return True
    if "," in (left, right):
        return not {"(]", "[)"} & {left, right}
    if "{}" in (left, right):
        return {left, right} == {"{}", "[]"} and count not in (0, 2)
    return count != 2 and {left, right} == {"()", "[]"}


def _other_brackets(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    """Compare two collections in different brackets. They differ if their members differ or if both are intervals.

    Brackets alone do not decide between (1, 2) and [1, 2], because both can be a pair.
    """
    ours, theirs = _members(reference), _members(candidate)
    if len(ours) != len(theirs):
        return _other_count(reference, candidate, terms, same)
    if "{}" in (head(reference), head(candidate)):
        members = unordered(list(ours), list(theirs), terms, same)
    else:
        members = ordered(ours, theirs, terms, same)
    if members.equal is False:
        return members
    if _are_intervals((reference, candidate), terms):
        return different("different brackets", reference, candidate)
    return Unclear("the same members in different brackets")


def _are_intervals(nodes: tuple[Node, Node], terms: Terms) -> bool:
    """Return whether two pairs must be intervals.

    They are intervals if one is half open, if one has an infinite end, or if the problem asks for a set of real
    numbers.
    """
    if any(not isinstance(node, Apply) or node.head == "{}" or len(node.args) != 2 for node in nodes):
        return False
    endless = any(part == Symbol("infty") for node in nodes for part in walk(node))
    return terms.intervals or endless or any(head(node) in ("(]", "[)") for node in nodes)


def ordered(ours: tuple[Node, ...], theirs: tuple[Node, ...], terms: Terms, same: Same) -> Match:
    """Compare two lists of the same length, item by item, in order."""
    undecided = False
    for mine, other in zip(ours, theirs, strict=True):
        match = same(mine, other, terms)
        if match.equal is False:
            return noted(match, "a member differs")
        undecided = undecided or match.equal is None
    return Unclear("a member is undecided") if undecided else Equal("member by member")


def _has_family(items: list[Node]) -> bool:
    """Return whether an item is a family of values, one per integer, such as ``pi/3 + 2 k pi``."""
    parts = (set(walk(item)) for item in items)
    return any(Symbol("pi") in part and part & {Symbol("k"), Symbol("m"), Symbol("n")} for part in parts)


def unordered(ours: list[Node], theirs: list[Node], terms: Terms, same: Same) -> Match:
    """Compare two lists in any order. If their lengths differ, repeated values are removed first."""
    both = Apply("{}", tuple(ours)), Apply("{}", tuple(theirs))
    if len(ours) != len(theirs):
        ours, theirs = _distinct(ours, terms, same), _distinct(theirs, terms, same)
        if len(ours) != len(theirs):
            if not all(_is_plain(item) for item in (*ours, *theirs)):
                return Unclear("different numbers of values that are not all plain")
            return different("different numbers of values", *both)
    if len(ours) > MAX_ITEMS:
        return Unclear("too many members")
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
            if _has_family(ours) and _has_family(theirs):
                return Unclear("families of values may be the same in another form")
            return Unclear("a member is undecided") if undecided else different("a member is missing", *both)
        left.pop(matched)
    return Equal("the same members")


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
        equal = same_ranges(ours, theirs, lambda a, b: scalar(a, b, terms).equal)
        return decided(equal, "ranges", reference, candidate)
    if head(reference) == head(candidate) == "union":
        return unordered(list(reference.args), list(candidate.args), terms, same)  # type: ignore[union-attr]
    if is_value(reference) or is_value(candidate):
        return different("a set of reals against a value", reference, candidate)
    return Unclear("a set of reals against something else")


def matrix(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees, entry by entry, if one is a matrix, otherwise return None."""
    if "matrix" not in (head(reference), head(candidate)):
        return None
    ours, theirs = rows(reference), rows(candidate)
    if ours and theirs and len(ours) == 1 != len(theirs) and head(candidate) in ("[]", "()"):
        theirs = [tuple(member for row in theirs for member in row)]  # a flat list may represent a matrix of one row
    if ours is None or theirs is None:
        if is_value(reference) or is_value(candidate):
            return different("a matrix against a value", reference, candidate)
        return Unclear("a matrix against something else")
    if [len(row) for row in ours] != [len(row) for row in theirs]:
        return _other_shape(reference, candidate, ours, theirs)
    flat = [(a, b) for mine, other in zip(ours, theirs, strict=True) for a, b in zip(mine, other, strict=True)]
    return ordered(tuple(a for a, _ in flat), tuple(b for _, b in flat), terms, same)


def _other_shape(reference: Node, candidate: Node, ours: list, theirs: list) -> Match:
    """Return the match of two matrices of different shape. A row and a column may be the same vector."""
    flat = [sum(len(row) for row in side) for side in (ours, theirs)]
    vectors = all(len(side) == 1 or all(len(row) == 1 for row in side) for side in (ours, theirs))
    if vectors and flat[0] == flat[1]:
        return Unclear("a row against a column")
    return different("different shapes", reference, candidate)
