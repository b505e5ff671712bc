"""Alters JavaScript tests so that a program that really satisfies them fails (``falsified``).

``alterations`` does the same for Python. This module also puts calls into the tests that tell which assertions were
executed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bestofn.verifiers.code_verifier.javascript_values import LIBRARY, SOLUTION, bound_in
from bestofn.verifiers.code_verifier.syntax_trees import Edit, SyntaxTree, bare, replaced

if TYPE_CHECKING:
    from tree_sitter import Node

_NEGATED = {
    "throws": "doesNotThrow", "rejects": "doesNotReject", "match": "doesNotMatch", "notEqual": "equal",
    "notStrictEqual": "strictEqual", "notDeepEqual": "deepEqual", "notDeepStrictEqual": "deepStrictEqual",
}  # fmt: skip
_NEGATED |= {"doesNotThrow": "throws", "doesNotReject": "rejects", "doesNotMatch": "match"}
_COMPARING = frozenset({  # matchers of ``expect`` that compare with their argument
    "toBe", "toEqual", "toStrictEqual", "toBeCloseTo", "toContain", "toContainEqual", "toHaveLength", "toMatchObject",
    "toHaveBeenCalledTimes", "toHaveBeenCalledWith", "toHaveBeenLastCalledWith", "toHaveReturnedWith",
    "toHaveLastReturnedWith", "toHaveReturnedTimes",
})  # fmt: skip
_OF_ASSERT = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual", *_NEGATED, "ok", "assert"})
_FAILS = re.compile(r"process\.exit\(|\b(?:fail\w*|bad|wrong|errors?)\s*(?:\+\+|\+=)|process\.exitCode\s*=")
_HELPER = re.compile(
    r"^(assert|check|verify|expect|ensure|should|must|eq$|equals?$|is(Deep)?Equal$|same$)", re.IGNORECASE
)
_HOLDER = re.compile(r"(assert|t|console|test|\w+\.assert|require\(['\"](node:)?assert(/strict)?['\"]\))\s*\.")
_COMPARES = re.compile(r"equal|same|compare|^eq$", re.IGNORECASE)
_REGISTERS = re.compile(r"^(describe|suite|context|test|it|specify)$")
_CONVERTING = ("==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%")
_LITERALS = ("number", "string", "true", "false", "null", "undefined")
_FUNCTIONS = ("arrow_function", "function_expression", "function_declaration", "method_definition")


@dataclass(frozen=True, slots=True)
class JavascriptAssertion:
    """One assertion of the tests: a call, an ``if`` whose body throws, or a ``try`` that should not reach its end."""

    case: int
    node: Node
    must_run: bool

    @property
    def place(self) -> list[int]:
        """The line and the column in the source of the case."""
        return [self.node.start_point.row + 1, self.node.start_point.column]


class JavascriptTests:
    """The assertions of JavaScript tests. ``defined`` are the names that the program defines."""

    replaced: Sequence[str] = ()  # the sandbox finds out

    def __init__(self, sources: Sequence[str], defined: frozenset[str]) -> None:
        self.sources = sources
        self.trees = [SyntaxTree(source, "javascript") for source in sources]
        self.defined = defined | {"candidate", "solution"}
        self.assertions = [
            JavascriptAssertion(number, node, self._must_run(tree, node))
            for number, tree in enumerate(self.trees)
            for node in tree.nodes("call_expression", "if_statement", "try_statement")
            if _is_assertion(tree, node)
        ]

    def problem(self, source: str, entry_point: str) -> str:
        """Return why the tests cannot judge the program ``source``, or "" if they can."""
        free = set()
        for tree in self.trees:
            names = {tree.text(one) for one in tree.nodes("identifier", "shorthand_property_identifier")}
            free |= names - bound_in(tree) - (LIBRARY - self.defined) | names & {entry_point}
            for call in tree.nodes("call_expression"):
                name = tree.text(_callee(call))
                if re.match(r"assert[A-Z_]\w*$", name) and name in free and name != entry_point:
                    return f"the tests use the function {name}, but they do not define it"
        texts = {tree.text(one) for tree in self.trees for one in tree.nodes("string_fragment")}
        members = {tree.text(one) for tree in self.trees for one in tree.nodes("property_identifier")}
        if free or entry_point or any(map(SOLUTION.match, texts)) or members & set(re.findall(r"[\w$]+", source)):
            return ""
        return "the tests never use the program"

    @property
    def watched(self) -> tuple[str, ...]:
        """The sources with calls of ``__ran`` and ``__used``, which note assertions and values."""
        return tuple(tree.edited(self._watching(number, tree)) for number, tree in enumerate(self.trees))

    def _watching(self, number: int, tree: SyntaxTree) -> list[Edit]:
        edits: list[Edit] = []
        starts: dict[int, tuple[Node, str]] = {}
        for one in self.assertions:
            if one.case == number and one.node.type == "try_statement":
                inside = one.node.child_by_field_name("body") or one.node
                line, column = one.place
                edits.append(Edit(inside.start_byte + 1, inside.start_byte + 1, f"__ran({line}, {column});"))
            elif one.case == number and (asked := _asked(tree, one.node)) is not None:
                line, column = one.place
                starts[asked.id] = (asked, f"__ran({line}, {column}, ")
                for node in tree.nodes("binary_expression", within=one.node):
                    if _operator(tree, node) in _CONVERTING and not _within_function(node, one.node):
                        for side in ("left", "right"):
                            part = node.child_by_field_name(side)
                            if part is not None and part.type not in (*_LITERALS, "binary_expression"):
                                starts.setdefault(part.id, (part, "__used("))
        found = list(starts.values())
        # At one place, the outer call begins first and ends last.
        for node, text in sorted(found, key=lambda one: -(one[0].end_byte - one[0].start_byte)):
            edits.append(Edit(node.start_byte, node.start_byte, text))
        for node, _ in sorted(found, key=lambda one: one[0].end_byte - one[0].start_byte):
            edits.append(Edit(node.end_byte, node.end_byte, ")"))
        return edits

    def _must_run(self, tree: SyntaxTree, node: Node) -> bool:
        """Return whether nothing in the tests decides whether an assertion is executed."""
        at = node.parent
        while at is not None and at.type in ("expression_statement", "await_expression", "statement_block"):
            at = at.parent
        if at is None or at.type == "program":
            return True
        if at.type not in _FUNCTIONS:
            return False
        if at.type == "function_declaration":
            return bool(re.match("test|check", tree.text(at.child_by_field_name("name") or at)))
        given = at.parent
        call = given.parent if given is not None and given.type == "arguments" else None
        callee = call.child_by_field_name("function") if call is not None else None
        if call is None or callee is None or not _REGISTERS.match(tree.text(callee)):
            return False
        return self._must_run(tree, call)

    def altered(self, assertion: JavascriptAssertion, rng: random.Random) -> tuple[str, ...] | None:
        """Return the sources of all cases with ``assertion`` altered; None if there is no way to alter it."""
        tree = self.trees[assertion.case]
        edits = list(_Alteration(tree, self.defined, rng).of(assertion.node))
        if not edits:
            return None
        try:
            changed = tree.edited(edits)
        except ValueError:  # two edits of one place
            return None
        return (*self.sources[: assertion.case], changed, *self.sources[assertion.case + 1 :])


class _Alteration:
    """Makes the edits that alter one assertion of ``tree``."""

    def __init__(self, tree: SyntaxTree, defined: frozenset[str], rng: random.Random) -> None:
        self.tree, self.defined, self.rng = tree, defined, rng

    def of(self, node: Node) -> Iterator[Edit]:
        """Yield the edits that make the assertion fail if the program satisfies it."""
        if node.type == "if_statement":
            condition = bare(node.child_by_field_name("condition"))
            if condition is not None:
                yield from self._condition(condition, True)
            return
        if node.type == "try_statement":  # the error that is expected does not occur
            *before, last = _body(node.child_by_field_name("body"))
            begin = before[0] if before else last
            yield Edit(begin.start_byte, last.start_byte, "")
            return
        callee, given = _callee(node), _arguments(node)
        name = _last_name(self.tree, callee)
        if _expect_call(self.tree, node) is not None:
            yield from self._matcher(callee, name, given)
        elif name in ("ok", "assert"):
            yield from self._condition(given[0], False)
        elif name in _NEGATED and callee.type == "member_expression":
            yield replaced(_property(callee), _NEGATED[name])
        elif len(given) == 1:
            yield from self._of_single(name, given[0])
        else:
            labels = self.tree.labels(name)
            yield from self._helper([one for at, one in enumerate(given) if at not in labels] or given)

    def _of_single(self, name: str, given: Node) -> Iterator[Edit]:
        if given.type in _FUNCTIONS:
            yield replaced(
                given, "(() => {})" if re.search("throw|raise|reject", name, re.IGNORECASE) else "(() => { throw 0; })"
            )
        else:
            yield from self._condition(given, False)

    def _helper(self, given: Sequence[Node]) -> Iterator[Edit]:
        """Alter a call of an assertion with several arguments, such as ``assertEqual(actual, expected, message)``."""
        if given[0].type in ("string", "template_string") and (len(given) > 2 or _is_condition(self.tree, given[1])):
            given = given[1:]  # the name of the check
        if _is_condition(self.tree, given[0]) and (len(given) == 1 or given[1].type in ("string", "template_string")):
            yield from self._condition(given[0], False)
        elif given[0].type in _FUNCTIONS:
            yield replaced(given[0], "(() => {})")
        elif len(given) == 1:
            yield from self._of_single("", given[0])
        else:
            yield from self._expected(given[0], given[1])

    def _matcher(self, callee: Node, name: str, given: Sequence[Node]) -> Iterator[Edit]:
        of = callee.child_by_field_name("object")
        assert of is not None
        if of.type == "member_expression" and _last_name(self.tree, of) == "not":
            inner = of.child_by_field_name("object")
            assert inner is not None
            yield Edit(inner.end_byte, of.end_byte, "")
        elif name in _COMPARING and given:
            yield from self._other(given[0], name == "toBeCloseTo")
        elif name == "toHaveProperty" and len(given) > 1:
            yield from self._other(given[1])
        else:
            yield Edit(of.end_byte, of.end_byte, ".not")

    def _condition(self, node: Node, wanted: bool) -> Iterator[Edit]:
        """Make a condition ``wanted`` that is not, for programs that satisfy the tests."""
        node = bare(node) or node
        if node.type == "unary_expression" and self.tree.text(node).startswith("!"):
            inner = bare(node.child_by_field_name("argument"))
            if inner is not None:
                yield from self._condition(inner, not wanted)
                return
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = _operator(self.tree, node) if node.type == "binary_expression" else ""
        if left is not None and right is not None:
            if operator == ("||" if wanted else "&&"):
                yield from self._condition(right if _is_condition(self.tree, right) else left, wanted)
                return
            if operator in (("!==", "!=") if wanted else ("===", "==")):
                yield from self._expected(left, right)
                return
            distance = self._distance(left if operator in ((">", ">=") if wanted else ("<", "<=")) else None)
            if distance is not None:
                yield Edit(distance.start_byte, distance.start_byte, "(1009 + ")
                yield Edit(distance.end_byte, distance.end_byte, ")")
                return
        if node.type == "call_expression" and not wanted and len(given := _arguments(node)) == 2:
            name = _last_name(self.tree, _callee(node))
            if _COMPARES.search(name) and "not" not in name.lower():
                yield from self._expected(*given)
                return
        yield Edit(node.start_byte, node.start_byte, "!(")
        yield Edit(node.end_byte, node.end_byte, ")")

    def _distance(self, node: Node | None) -> Node | None:
        """Return the expected number in ``Math.abs(actual - expected)``."""
        node = bare(node)
        if node is None or node.type != "call_expression" or self.tree.text(_callee(node)) != "Math.abs":
            return None
        inner = bare(_arguments(node)[0]) if _arguments(node) else None
        if inner is None or inner.type != "binary_expression" or _operator(self.tree, inner) != "-":
            return None
        left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
        return right if left is None or right is None or not self._uses_program(right) else left

    def _expected(self, left: Node, right: Node) -> Iterator[Edit]:
        """Change the expected one of two values that should be equal."""
        yield from self._other(left if self._uses_program(right) and not self._uses_program(left) else right)

    def _uses_program(self, node: Node) -> bool:
        return any(self.tree.text(one) in self.defined for one in self.tree.nodes("identifier", within=node))

    def _other(self, node: Node, is_number: bool = False) -> Iterator[Edit]:
        """Change an expected value: its literals if it consists of nothing else, otherwise the whole."""
        literals = list(self._literals(node)) if _is_plain(node) else []
        for literal in literals:
            yield replaced(literal, self._literal(literal))
        if not literals:
            before, after = ("1009 + (", ")") if is_number else ("[(", "), 0]")
            yield Edit(node.start_byte, node.start_byte, before)
            yield Edit(node.end_byte, node.end_byte, after)

    def _literals(self, node: Node) -> Iterator[Node]:
        if node.type == "pair":
            yield from self._literals(node.child_by_field_name("value") or node)
        elif node.type in _LITERALS:
            yield node
        else:
            for child in node.named_children:
                yield from self._literals(child)

    def _literal(self, node: Node) -> str:
        text = self.tree.text(node)
        match node.type:
            case "number":
                step = self.rng.randint(1, 9)
                if text.endswith("n"):
                    return f"{int(text[:-1]) + step}n" if text[:-1].isdigit() else f"(1n + {text})"
                return str(int(text) + step) if text.isdigit() and len(text) < 15 else f"({step} + 2 * {text})"
            case "string":
                return f"{text[0]}{self.rng.choice('acegkmpsu')}{text[1:]}"
            case "true" | "false":
                return "false" if text == "true" else "true"
        return str(self.rng.randint(10, 99))


def _is_assertion(tree: SyntaxTree, node: Node) -> bool:
    """Return whether a call or an ``if`` fails or passes depending on the program."""
    if node.type == "if_statement":
        inside = _body(node.child_by_field_name("consequence"))
        ends = any(one.type == "throw_statement" or _FAILS.search(tree.text(one)) for one in inside)
        return ends and node.child_by_field_name("alternative") is None
    if node.type == "try_statement":
        inside = _body(node.child_by_field_name("body"))
        return len(inside) > 1 and bool(re.match(r"throw\b|(\w+\.)*fail\(", tree.text(inside[-1])))
    callee, given = _callee(node), _arguments(node)
    if _expect_call(tree, node) is not None:
        return True
    if not given or given[0].type == "spread_element":
        return False
    name, path = _last_name(tree, callee), tree.text(callee)
    if callee.type == "member_expression":
        return bool(_HOLDER.match(path)) and name in _OF_ASSERT
    if callee.type != "identifier" or (name == "check" and len(given) == 1 and given[0].type == "identifier"):
        return False
    statement = node.parent
    while statement is not None and statement.type == "await_expression":
        statement = statement.parent
    return name == "assert" or bool(
        _HELPER.match(name) and name != "expect" and statement is not None and statement.type == "expression_statement"
    )


def _expect_call(tree: SyntaxTree, node: Node) -> Node | None:
    """Return ``expect(value)`` of an assertion such as ``expect(value).not.toBe(1)``; None for other calls."""
    at = _callee(node)
    if at.type != "member_expression":
        return None
    while at.type == "member_expression":
        at = at.child_by_field_name("object") or at.children[0]
    if at.type != "call_expression" or tree.text(_callee(at)) != "expect" or not _arguments(at):
        return None
    return at


def _asked(tree: SyntaxTree, node: Node) -> Node | None:
    """Return the expression of an assertion that is evaluated when the assertion is executed."""
    if node.type == "if_statement":
        return bare(node.child_by_field_name("condition"))
    given = _arguments(_expect_call(tree, node) or node)
    return given[0] if given and given[0].type != "spread_element" else None


def _within_function(node: Node, top: Node) -> bool:
    at: Node | None = node
    while at is not None and at.id != top.id:
        if at.type in _FUNCTIONS:
            return True
        at = at.parent
    return top.type in _FUNCTIONS


def _body(node: Node | None) -> list[Node]:
    """Return the statements of a block, or the one statement in its place."""
    inside = [] if node is None else node.named_children if node.type == "statement_block" else [node]
    return [one for one in inside if one.type != "comment"]


def _callee(node: Node) -> Node:
    return bare(node.child_by_field_name("function")) or node.children[0]


def _arguments(node: Node) -> list[Node]:
    given = node.child_by_field_name("arguments")
    return [one for one in given.named_children if one.type != "comment"] if given is not None else []


def _property(node: Node) -> Node:
    return node.child_by_field_name("property") or node


def _last_name(tree: SyntaxTree, node: Node) -> str:
    return tree.text(_property(node) if node.type == "member_expression" else node)


def _operator(tree: SyntaxTree, node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return tree.text(operator) if operator is not None else ""


def _is_condition(tree: SyntaxTree, node: Node) -> bool:
    node = bare(node) or node
    if node.type == "binary_expression":
        return _operator(tree, node) in ("===", "!==", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "instanceof", "in")
    return node.type in ("true", "false") or (node.type == "unary_expression" and tree.text(node).startswith("!"))


def _is_plain(node: Node) -> bool:
    """Return whether an expression consists of literals."""
    match node.type:
        case "array" | "object":
            return all(map(_is_plain, (one for one in node.named_children if one.type != "comment")))
        case "pair":
            return _is_plain(node.child_by_field_name("value") or node)
        case "unary_expression":
            return _is_plain(node.named_children[0])
    return node.type in _LITERALS
