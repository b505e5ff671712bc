"""Values first, for Bash: reads tests such as ``[[ $(f 1 2) == "3" ]]`` as calls whose outputs this process compares.

Every assertion must decide the result: it is the last of its case, it is followed by ``|| exit 1``, or ``set -e`` ends
the tests at the first failure. Everything else raises ``NotValues``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bestofn.builders.records import Execution, JsonObject, Program
from bestofn.verifiers.code_verifier.driven import EACH_CASE
from bestofn.verifiers.code_verifier.syntax_trees import SyntaxTree
from bestofn.verifiers.code_verifier.tallies import short, why_ended
from bestofn.verifiers.code_verifier.values import NotValues

if TYPE_CHECKING:
    from tree_sitter import Node

_INTEGER = re.compile(r"\s*[-+]?(0|[1-9]\d{0,17})\s*")
_ENDS = re.compile(r"(\{.*\b)?(exit|return) [1-9]\d*;?\s*\}?", re.DOTALL)
_PLAIN = re.compile(r"[\w./:,%@+=-]+")


@dataclass(frozen=True, slots=True)
class _Assertion:
    """The output of a call is compared with ``wanted``, as a text or (``-eq``) as a number."""

    call: int
    text: str
    operator: str
    wanted: str


class BashScript:
    """The tests of ``driven`` (a program with tests), read as calls and assertions. Raises ``NotValues``."""

    def __init__(self, driven: Program) -> None:
        self.driven = driven
        self.calls: list[JsonObject] = []
        self.assertions: list[_Assertion] = []
        self.aliases: dict[str, str] = {}
        self.bodies: dict[str, Sequence[Node]] = {}
        self.stops = False  # whether a failed command ends the tests
        for source in driven.tests[0].split(EACH_CASE):
            self.tree = SyntaxTree(source, "bash")
            if self.tree.has_errors:
                raise NotValues
            self._block(self.tree.root.named_children, True)

    def collect(self) -> tuple[JsonObject, ...]:
        """Return the calls that the tests make, for ``Program.calls``."""
        if not self.assertions:
            raise NotValues
        return tuple(self.calls)

    def decide(self, execution: Execution) -> list[JsonObject | None]:
        """Return the verdict on the only case, for ``tally_of``: None if it passes."""
        for one in self.assertions:
            why = self._failure(one, execution)
            if why:
                return [{"case": 0, "test": short(self.driven.tests[0]), "why": f"test 0: {why}"}]
        return [None]

    def _failure(self, one: _Assertion, execution: Execution) -> str:
        returns = execution.returns
        if len(returns) > len(self.calls) or one.call >= len(returns):
            return why_ended(execution)
        found = returns[one.call].get("value")
        if not isinstance(found, str):
            raise NotValues  # for example, an output that is not text
        if one.operator == "-eq":
            if not _INTEGER.fullmatch(found) or not _INTEGER.fullmatch(one.wanted):
                raise NotValues  # an expression that Bash evaluates
            holds = int(found) == int(one.wanted)
        else:
            holds = (found == one.wanted) != (one.operator == "!=")
        return "" if holds else f"{one.text}: the output is {short(found)}"

    def _block(self, nodes: Sequence[Node], is_case: bool) -> None:
        nodes = [node for node in nodes if node.type != "comment"]
        for number, node in enumerate(nodes):
            is_last = is_case and number == len(nodes) - 1
            match node.type:
                case "function_definition":
                    self._define(node)
                case "command":
                    self._command(node, is_last)
                case "test_command":
                    if not is_last and not self.stops:
                        raise NotValues  # its status is ignored
                    self._assert(node)
                case "list":
                    left, right = node.named_children
                    if self.tree.text(node.children[1]) != "||" or not _ENDS.fullmatch(self.tree.text(right)):
                        raise NotValues
                    if left.type != "test_command":
                        raise NotValues
                    self._assert(left)
                case _:
                    raise NotValues

    def _define(self, node: Node) -> None:
        name = self.tree.text(node.child_by_field_name("name") or node)
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            raise NotValues
        forwards = re.fullmatch(r'\{\s*([A-Za-z_]\w*) "\$@"\s*\}', self.tree.text(body))
        if forwards:
            self.aliases[name] = forwards[1]
        else:
            self.bodies[name] = body.named_children

    def _command(self, node: Node, is_last: bool) -> None:
        text = self.tree.text(node)
        if text in ("set -e", "set -euo pipefail", "set -eu"):
            self.stops = True
        elif text in self.bodies:
            self._block(self.bodies.pop(text), is_last)
        elif not text.startswith("echo ") or "$(" in text or "`" in text or ">" in text:
            raise NotValues

    def _assert(self, node: Node) -> None:
        inner = node.named_children
        if len(inner) != 1 or inner[0].type != "binary_expression" or self.tree.text(node)[:2] == "((":
            raise NotValues
        left, right = inner[0].child_by_field_name("left"), inner[0].child_by_field_name("right")
        operator = self.tree.text(inner[0].child_by_field_name("operator") or inner[0].children[1])
        if left is None or right is None or operator not in ("=", "==", "!=", "-eq"):
            raise NotValues
        is_double = self.tree.text(node).startswith("[[")
        output, literal = (right, left) if _substitution(right) is not None else (left, right)
        is_quoted = output.type == "string"
        if not is_quoted and (not is_double or (output is right and operator != "-eq")):
            raise NotValues  # words that Bash splits, or a pattern
        call = self._call(_substitution(output))
        self.assertions.append(_Assertion(call, self.tree.text(node), operator, self._literal(literal)))

    def _call(self, node: Node | None) -> int:
        if node is None or len(node.named_children) != 1 or node.named_children[0].type != "command":
            raise NotValues
        first, *given = node.named_children[0].named_children
        name = self.tree.text(first)
        if first.type != "command_name" or name in self.bodies or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise NotValues
        name = self.aliases.get(name, name)
        self.calls.append({"name": name, "args": [self._literal(one) for one in given]})
        return len(self.calls) - 1

    def _literal(self, node: Node) -> str:
        """Return the value of a word in which Bash replaces nothing."""
        text = self.tree.text(node)
        match node.type:
            case "raw_string":
                return text[1:-1]
            case "string":
                if any(child.type != "string_content" for child in node.named_children):
                    raise NotValues
                return re.sub(r"\\([$`\"\\\n])", lambda found: found[1].strip("\n"), text[1:-1])
            case "word" | "number" | "extglob_pattern" if _PLAIN.fullmatch(text):
                return text
        raise NotValues


def _substitution(node: Node) -> Node | None:
    """Return ``$(…)``, alone or between quotation marks."""
    if node.type == "string" and len(node.named_children) == 1 and len(node.children) == 3:
        node = node.named_children[0]
    return node if node.type == "command_substitution" else None
