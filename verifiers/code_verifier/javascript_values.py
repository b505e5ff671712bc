"""Values first, for JavaScript: reads tests as calls with plain arguments whose results this process compares.

``assert.deepEqual(f([3, 1]), [1, 3])``, ``console.assert(f(1) === 2)``, ``expect(f(1)).toEqual([2])`` and most other
tests only call functions of the program with plain values. As in ``values``, an interpreter of a small part of the
language runs the tests twice: first it collects the calls, then it knows their results and decides. Everything else
raises ``NotValues``. Values are floats, texts, booleans, None (null), ``UNDEFINED``, lists and dictionaries.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from bestofn.builders.records import Execution, JsonObject, Program
from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.plain import UNDEFINED
from bestofn.verifiers.code_verifier.syntax_trees import SyntaxTree, bare
from bestofn.verifiers.code_verifier.tallies import short, why_ended
from bestofn.verifiers.code_verifier.values import PENDING, Failed, NotValues

if TYPE_CHECKING:
    from tree_sitter import Node

_STEPS = 100_000  # most evaluated nodes
_CALLS = 2_000
_DEPTH = 30  # deepest call of a helper

Value = Any

SOLUTION = re.compile(r"\.{0,2}/[^.]*(\.[cm]?js)?$|(solution|index|main)(\.js)?$")
_ASSERTS = re.compile(r"throw|assert|expect")


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class _OfProgram:
    """A function of the program."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Helper:
    """A function that the tests define."""

    def __init__(self, node: Node, scope: _Scope) -> None:
        self.node, self.scope = node, scope


class _Library:
    """A member of the language's library, of an assertion library or of the program's module, by its path."""

    def __init__(self, path: str) -> None:
        self.path = path


class _Expected:
    """What ``expect(value)`` returns."""

    def __init__(self, value: Value, negated: bool = False) -> None:
        self.value, self.negated = value, negated


class _Scope(dict[str, Value]):
    """The variables of a block. ``fresh`` are those that hold a literal which has no other name."""

    def __init__(self, outer: _Scope | None = None, of_function: bool = False) -> None:
        super().__init__()
        self.outer = outer
        self.function: _Scope = self if of_function or outer is None else outer.function
        self.fresh: set[str] = set()

    def holder(self, name: str) -> _Scope | None:
        scope: _Scope | None = self
        while scope is not None and name not in scope:
            scope = scope.outer
        return scope


class JavascriptScript:
    """The tests of ``driven`` (a program with tests), to be interpreted here. Raises ``NotValues`` at once or later."""

    def __init__(self, driven: Program) -> None:
        self.driven = driven
        self.trees = [SyntaxTree(source, "javascript") for source in driven.tests]
        if any(tree.has_errors for tree in self.trees):
            raise NotValues
        self.tree = self.trees[0]
        self.reads: dict[str, int] = {}
        for tree in self.trees:
            for node in tree.nodes("identifier", "shorthand_property_identifier"):
                self.reads[tree.text(node)] = self.reads.get(tree.text(node), 0) + 1
        self.mentions_nan = any("NaN" in source for source in driven.tests)
        self.calls: list[JsonObject] = []
        self.sent: list[bytes] = []
        self.starts: list[int] = []
        self.execution: Execution | None = None
        self.at = self.steps = self.depth = self.asserted = 0
        self.waiting: list[tuple[Value, list[Value]]] = []  # the registered tests of a case

    # -- the two passes

    def collect(self) -> tuple[JsonObject, ...]:
        """Return the calls that the tests make, for ``Program.calls``."""
        if any(self._verdicts()) or not self.calls or not self.asserted:
            raise NotValues
        return tuple(self.calls)

    def decide(self, execution: Execution) -> list[JsonObject | None]:
        """Return one verdict per case, for ``tally_of``: None if it passes."""
        self.collect()
        self.execution = execution
        self.steps = self.depth = 0
        return [
            {"case": number, "test": short(self.driven.tests[number]), "why": f"test {number}: {why}"} if why else None
            for number, why in enumerate(self._verdicts())
        ]

    def _verdicts(self) -> list[str]:
        """Run each case and return why it fails; "" if it passes."""
        found = []
        for number, tree in enumerate(self.trees):
            self.tree, self.waiting = tree, []
            if self.execution is None:
                self.starts.append(len(self.calls))
            self.at = self.starts[number]
            why = ""
            try:
                self._run_case(tree.root)
                if self.execution is not None and self.at != [*self.starts, len(self.calls)][number + 1]:
                    raise NotValues  # other calls than in the first pass
            except Failed as reason:
                why = str(reason)[:300] or "failed"
            except NotValues:
                raise
            except Exception:  # an operation of the tests that fails, such as ``undefined.length``
                raise NotValues from None
            found.append(why)
        return found

    def _run_case(self, root: Node) -> None:
        scope = _Scope()
        self._block(root.named_children, scope)
        while self.waiting:
            body, given = self.waiting.pop(0)
            self._call_helper(body, given)
        entry, check = self.driven.entry_point, scope.get("check")
        if isinstance(check, _Helper) and entry and not re.search(r"^\s*check\(", self.tree.text(root), re.MULTILINE):
            self._call_helper(check, [_OfProgram(entry)])

    # -- statements

    def _block(self, nodes: Sequence[Node], scope: _Scope) -> None:
        for node in nodes:
            if node.type == "function_declaration":
                scope[self._name(node)] = _Helper(node, scope)
        for node in nodes:
            self._statement(node, scope)

    def _statement(self, node: Node, scope: _Scope) -> None:
        self._step()
        match node.type:
            case "comment" | "function_declaration" | "empty_statement":
                pass
            case "expression_statement":
                if node.named_children[0].type == "string":
                    raise NotValues  # "use strict"
                self._value(node.named_children[0], scope)
            case "lexical_declaration" | "variable_declaration":
                for one in node.named_children:
                    if one.type == "variable_declarator":
                        self._declare(one, scope if node.type == "lexical_declaration" else scope.function, scope)
            case "import_statement":
                self._import(node, scope)
            case "statement_block":
                self._block(node.named_children, _Scope(scope))
            case "return_statement":
                raise _Return(self._value(node.named_children[0], scope) if node.named_children else UNDEFINED)
            case "throw_statement" if self.execution is not None:
                raise Failed(self.tree.text(node))
            case "if_statement":
                self._if(node, scope)
            case "for_in_statement":
                self._for_of(node, scope)
            case _:
                raise NotValues

    def _declare(self, node: Node, target: _Scope, scope: _Scope) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        assert name is not None
        found = UNDEFINED if value is None else self._value(value, scope)
        self._bind(name, found, target)
        if name.type == "identifier" and value is not None and value.type in ("array", "object"):
            target.fresh.add(self.tree.text(name))

    def _bind(self, pattern: Node, value: Value, scope: _Scope) -> None:
        match pattern.type:
            case "identifier" | "shorthand_property_identifier_pattern":
                name = self.tree.text(pattern)
                scope[name] = value
                scope.fresh.discard(name)
            case "array_pattern":
                if self.tree.text(pattern).count(",,"):
                    raise NotValues
                if value is not PENDING and not isinstance(value, list):
                    raise NotValues
                for number, one in enumerate(pattern.named_children):
                    self._bind(one, PENDING if value is PENDING else [*value, *[UNDEFINED] * 99][number], scope)
            case "object_pattern":
                for one in pattern.named_children:
                    if one.type == "pair_pattern":
                        key, target = one.child_by_field_name("key"), one.child_by_field_name("value")
                    else:
                        key = target = one
                    assert key is not None
                    assert target is not None
                    self._bind(target, self._member(value, self.tree.text(key)), scope)
            case _:
                raise NotValues

    def _import(self, node: Node, scope: _Scope) -> None:
        module = self._require(self._value(node.child_by_field_name("source"), scope))
        for one in self.tree.nodes("import_clause", within=node):
            for part in one.named_children:
                if part.type == "identifier" and module.path != "solution":
                    scope[self.tree.text(part)] = module
                elif part.type == "named_imports":
                    for name in part.named_children:
                        alias = name.child_by_field_name("alias") or name.child_by_field_name("name")
                        assert alias is not None
                        scope[self.tree.text(alias)] = self._member(module, self._name(name))
                else:
                    raise NotValues

    def _if(self, node: Node, scope: _Scope) -> None:
        condition, body = (node.child_by_field_name(name) for name in ("condition", "consequence"))
        other = node.child_by_field_name("alternative")
        assert condition is not None
        assert body is not None
        found = self._value(condition, scope)
        if found is PENDING:
            inside = body.named_children if body.type == "statement_block" else [body]
            if other or not any(one.type == "throw_statement" for one in inside):
                raise NotValues
            if not all(one.type == "throw_statement" or self.tree.text(one).startswith("console.") for one in inside):
                raise NotValues
            self.asserted += 1
        elif _truth(found):
            if self.execution is not None and any(one.type == "throw_statement" for one in body.named_children):
                raise Failed(self.tree.text(body))
            self._statement(body, scope)
        elif other is not None:
            self._statement(other.named_children[0], scope)

    def _for_of(self, node: Node, scope: _Scope) -> None:
        if not any(child.type == "of" for child in node.children):
            raise NotValues
        left, right, body = (node.child_by_field_name(name) for name in ("left", "right", "body"))
        if left is None or body is None:
            raise NotValues
        for item in self._items(self._value(right, scope)):
            inner = _Scope(scope)
            self._bind(left, item, inner)
            self._statement(body, inner)

    # -- expressions

    def _step(self) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise NotValues

    def _value(self, node: Node | None, scope: _Scope) -> Value:
        self._step()
        node = bare(node)
        if node is None:
            raise NotValues
        text = self.tree.text(node)
        match node.type:
            case "number":
                return _number(text)
            case "string":
                return self._string(node)
            case "template_string":
                return self._template(node, scope)
            case "true" | "false":
                return node.type == "true"
            case "null":
                return None
            case "undefined":
                return UNDEFINED
            case "identifier":
                return self._named(text, scope)
            case "array":
                return self._array(node, scope)
            case "object":
                return self._object(node, scope)
            case "arrow_function" | "function_expression":
                return _Helper(node, scope)
            case "await_expression":
                return self._value(node.named_children[0], scope)
            case "unary_expression":
                return self._unary(node, scope)
            case "binary_expression":
                return self._binary(node, scope)
            case "member_expression":
                of, name = node.child_by_field_name("object"), node.child_by_field_name("property")
                assert name is not None
                if any(child.type == "optional_chain" for child in node.children):
                    raise NotValues
                return self._member(self._value(of, scope), self.tree.text(name))
            case "subscript_expression":
                return self._subscript(node, scope)
            case "call_expression":
                return self._call(node, scope)
        raise NotValues

    def _string(self, node: Node) -> str:
        parts = []
        for child in node.named_children:
            text = self.tree.text(child)
            if child.type == "escape_sequence":
                text = _escaped(text)
            elif child.type not in ("string_fragment",):
                raise NotValues
            parts.append(text)
        return "".join(parts)

    def _template(self, node: Node, scope: _Scope) -> Value:
        text, pending = "", False
        for child in node.named_children:
            if child.type == "template_substitution":
                found = self._value(child.named_children[0], scope)
                pending |= found is PENDING
                text += "" if found is PENDING else _text(found)
            elif child.type == "escape_sequence":
                text += _escaped(self.tree.text(child))
            else:
                text += self.tree.text(child).replace("\r\n", "\n")
        return PENDING if pending else text

    def _named(self, name: str, scope: _Scope) -> Value:
        holder = scope.holder(name)
        if holder is not None:
            return holder[name]
        if name == self.driven.entry_point:
            return _OfProgram(name)
        if name in _GLOBALS:
            return _GLOBALS[name]
        if name in _LIBRARIES:
            return _Library(name)
        if name in _REFUSED:
            raise NotValues
        return _OfProgram(name)

    def _array(self, node: Node, scope: _Scope) -> list[Value]:
        if re.search(r"[\[,]\s*,", re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'|`[^`]*`", "0", self.tree.text(node))):
            raise NotValues  # holes
        made: list[Value] = []
        for child in node.named_children:
            if child.type == "spread_element":
                made += self._items(self._value(child.named_children[0], scope))
            elif child.type != "comment":
                made.append(self._plain(self._value(child, scope)))
        return made

    def _object(self, node: Node, scope: _Scope) -> Value:
        made: dict[str, Value] = {}
        for child in node.named_children:
            if child.type == "comment":
                continue
            if child.type != "pair":
                raise NotValues
            key = child.child_by_field_name("key")
            assert key is not None
            if key.type == "string":
                name = self._string(key)
            elif key.type == "number":
                name = _text(_number(self.tree.text(key)))
            elif key.type == "property_identifier":
                name = self.tree.text(key)
            else:
                raise NotValues
            if name == "__proto__":
                raise NotValues
            made[name] = self._plain(self._value(child.child_by_field_name("value"), scope))
        return _ordered(made)

    def _unary(self, node: Node, scope: _Scope) -> Value:
        value = self._plain(self._value(node.child_by_field_name("argument"), scope))
        if value is PENDING:
            return PENDING
        operator = self.tree.text(node.children[0])
        if operator == "!":
            return not _truth(value)
        if operator == "typeof":
            return _type(value)
        if operator in ("-", "+") and isinstance(value, float):
            return -value if operator == "-" else value
        raise NotValues

    def _binary(self, node: Node, scope: _Scope) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.tree.text(node.child_by_field_name("operator") or node.children[1])
        one = self._plain(self._value(left, scope))
        if operator in ("&&", "||"):
            if one is not PENDING and _truth(one) == (operator == "||"):
                return one
            two = self._plain(self._value(right, scope))
            return PENDING if one is PENDING else two
        two = self._plain(self._value(right, scope))
        if one is PENDING or two is PENDING:
            return PENDING
        return _operation(operator, one, two)

    def _refuse(self) -> Value:
        raise NotValues

    def _subscript(self, node: Node, scope: _Scope) -> Value:
        of = self._value(node.child_by_field_name("object"), scope)
        index = self._plain(self._value(node.child_by_field_name("index"), scope))
        if of is PENDING or index is PENDING:
            return PENDING
        if isinstance(of, list) and isinstance(index, float) and index.is_integer():
            return of[int(index)] if 0 <= index < len(of) else UNDEFINED
        if isinstance(of, dict) and isinstance(index, (str, float)) and _text(index) not in _OF_OBJECTS:
            return of.get(_text(index), UNDEFINED)
        raise NotValues

    def _member(self, of: Value, name: str) -> Value:
        if of is PENDING:
            if name in _METHODS:
                raise NotValues
            return PENDING
        if isinstance(of, _Library):
            if of.path == "solution":
                return _OfProgram(name)
            path = f"{of.path}.{name}".removeprefix("assert.strict.assert.")
            if path == "Math.PI":
                return math.pi
            return _Library("assert.strict" if path in ("assert.strict", "assert.strict.strict") else path)
        if isinstance(of, _Expected):
            if name == "not":
                return _Expected(of.value, not of.negated)
            raise NotValues
        if name == "length" and isinstance(of, (list, str)):
            return float(len(of) if isinstance(of, list) else len(of.encode("utf-16-le", "surrogatepass")) // 2)
        if isinstance(of, dict) and name not in _OF_OBJECTS:
            return of.get(name, UNDEFINED)
        raise NotValues

    # -- calls

    def _call(self, node: Node, scope: _Scope) -> Value:
        callee, given = bare(node.child_by_field_name("function")), node.child_by_field_name("arguments")
        if callee is None or given is None or given.type != "arguments":
            raise NotValues
        if callee.type == "member_expression":
            of, name = callee.child_by_field_name("object"), callee.child_by_field_name("property")
            assert name is not None
            owner = self._value(of, scope)
            if isinstance(owner, _Expected) and self.tree.text(name) != "not":
                return self._match(owner, self.tree.text(name), self._arguments(given, scope))
            if isinstance(owner, list) and self.tree.text(name) == "forEach":
                return self._for_each(owner, self._arguments(given, scope))
            function = self._member(owner, self.tree.text(name))
        else:
            function = self._value(callee, scope)
        if isinstance(function, tuple):  # test.each(table)
            args = self._arguments(given, scope)
            for row in self._items(function[0]):
                self.waiting.append((args[-1], row if isinstance(row, list) else [row]))
            return UNDEFINED
        args = self._arguments(given, scope)
        if isinstance(function, _OfProgram):
            return self._call_program(function.name, args, node, scope)
        if isinstance(function, _Helper):
            return self._call_helper(function, args)
        if isinstance(function, _Library):
            return self._call_library(function.path, args)
        raise NotValues

    def _arguments(self, node: Node, scope: _Scope) -> list[Value]:
        made: list[Value] = []
        for child in node.named_children:
            if child.type == "spread_element":
                made += self._items(self._value(child.named_children[0], scope))
            elif child.type != "comment":
                made.append(self._value(child, scope))
        return made

    def _call_program(self, name: str, args: list[Value], node: Node, scope: _Scope) -> Value:
        if not re.fullmatch(r"[\w$]+", name) or name in _OF_RUNNER:
            raise NotValues
        given = [self._known(one) for one in args]
        if not _is_tree(given, set()):
            raise NotValues  # for example, an array that is in two places
        awaited = node.parent is not None and node.parent.type == "await_expression"
        call: JsonObject = {
            "name": name,
            "args": given,
            "awaited": awaited,
            "watched": self._is_read_again(node, scope),
        }
        try:
            sent = plain.dumps(plain.encode([name, given, awaited]))
        except plain.NotPlain:
            raise NotValues from None
        if self.execution is None:
            self.calls.append(call)
            self.sent.append(sent)
            if len(self.calls) > _CALLS:
                raise NotValues
            return PENDING
        if self.at >= len(self.sent) or sent != self.sent[self.at]:
            raise NotValues
        returns, number = self.execution.returns, self.at
        self.at += 1
        if len(returns) > len(self.calls) or number >= len(returns):
            raise Failed(why_ended(self.execution))
        answer = returns[number]
        if answer.get("changed"):
            raise NotValues
        if "value" in answer:
            value = _returned(answer["value"])
            if _has_nan(value) and not self.mentions_nan:
                raise NotValues  # ``if (Math.abs(NaN - 2) > 0.1) throw`` passes: altered tests show it
            return value
        error = str(answer["error"])
        if error.startswith("NotPlain") or "not plain data" in error:
            raise NotValues
        raise Failed(error)

    def _is_read_again(self, node: Node, scope: _Scope) -> bool:
        """Return whether an argument may contain an array or an object that the tests can read again."""
        arguments = node.child_by_field_name("arguments")
        for one in self.tree.nodes("identifier", within=arguments):
            name = self.tree.text(one)
            holder = scope.holder(name)
            is_only_here = holder is scope and name in scope.fresh and self.reads[name] == 2
            if holder is not None and isinstance(holder[name], (list, dict)) and not is_only_here:
                return True
        return False

    def _call_helper(self, helper: Value, args: list[Value]) -> Value:
        if not isinstance(helper, _Helper):
            raise NotValues
        node = helper.node
        if any(child.type == "*" for child in node.children):
            raise NotValues
        body = node.child_by_field_name("body")
        if (
            any(one is PENDING for one in args)
            and not any(isinstance(one, (_OfProgram, _Helper)) for one in args)
            and not self._uses_program(node, helper.scope)
        ):
            self.asserted += bool(_ASSERTS.search(self.tree.text(node)))
            return PENDING
        scope = _Scope(helper.scope, of_function=True)
        single, several = node.child_by_field_name("parameter"), node.child_by_field_name("parameters")
        parameters = [single] if single is not None else several.named_children if several is not None else []
        for number, parameter in enumerate(parameters):
            if parameter.type == "assignment_pattern":
                if number >= len(args):
                    raise NotValues
                parameter = parameter.child_by_field_name("left") or parameter
            self._bind(parameter, args[number] if number < len(args) else UNDEFINED, scope)
        self.depth += 1
        try:
            if self.depth > _DEPTH or body is None:
                raise NotValues
            if body.type != "statement_block":
                return self._value(body, scope)
            self._block(body.named_children, scope)
        except _Return as end:
            return end.value
        finally:
            self.depth -= 1
        return UNDEFINED

    def _uses_program(self, node: Node, scope: _Scope, depth: int = 0) -> bool:
        """Return whether a part of the tests may call the program."""
        bound = bound_in(self.tree, node)
        for one in self.tree.nodes("identifier", within=node):
            name = self.tree.text(one)
            if name in bound:
                continue
            if name in _REFUSED:
                continue
            found = self._named(name, scope)
            if isinstance(found, _Helper) and found.node != node:
                if depth > 3 or self._uses_program(found.node, found.scope, depth + 1):
                    return True
            elif isinstance(found, _OfProgram) or (isinstance(found, _Library) and found.path == "solution"):
                return True
        return False

    def _for_each(self, items: list[Value], args: list[Value]) -> Value:
        for number, item in enumerate(items):
            self._call_helper(args[0], [item, float(number)])
        return UNDEFINED

    def _require(self, name: Value) -> _Library:
        if not isinstance(name, str):
            raise NotValues
        name = name.removeprefix("node:")
        if name in ("assert", "assert/strict"):
            return _Library("assert.strict" if name.endswith("strict") else "assert")
        if name in ("lodash", "util"):
            return _Library(name)
        if name in ("@jest/globals", "vitest"):
            return _Library("jest")
        if SOLUTION.match(name):
            return _Library("solution")
        raise NotValues

    def _call_library(self, path: str, args: list[Value]) -> Value:
        path = path.removeprefix("jest.")
        match path:
            case "require":
                return self._require(args[0])
            case "solution":
                raise NotValues
            case "describe":
                return self._call_helper(args[-1], [])
            case "test" | "it":
                if len(args) != 2 or not isinstance(args[1], _Helper) or self._parameters(args[1]):
                    raise NotValues
                self.waiting.append((args[1], []))
                return UNDEFINED
            case "test.each" | "it.each":
                return (self._known(args[0]),)
            case "expect":
                return _Expected(self._plain(args[0]))
            case "console.log" | "console.error" | "console.warn" | "console.info":
                return UNDEFINED
            case "Error" | "JSON.parse":
                raise NotValues
        if path.partition(".")[0] in ("assert", "console"):
            return self._assert(path, [self._plain(one) for one in args])
        given = [self._plain(one) for one in args]
        if any(one is PENDING for one in given):
            if path in _FUNCTIONS:
                return PENDING
            raise NotValues
        if path not in _FUNCTIONS:
            raise NotValues
        return _FUNCTIONS[path](*given)

    def _parameters(self, helper: _Helper) -> bool:
        several = helper.node.child_by_field_name("parameters")
        return helper.node.child_by_field_name("parameter") is not None or bool(several and several.named_children)

    def _assert(self, path: str, args: list[Value]) -> Value:
        strict = path.startswith("assert.strict.")
        name = path.rpartition(".")[2]
        if path in ("assert", "assert.ok", "assert.strict", "assert.strict.ok", "console.assert"):
            name, count, holds = "ok", 1, _truth
        else:
            name = {"equal": "strictEqual", "notEqual": "notStrictEqual", "deepEqual": "deepStrictEqual",
                    "notDeepEqual": "notDeepStrictEqual"}.get(name, name) if strict else name  # fmt: skip
            if name not in _ASSERTIONS:
                raise NotValues
            count, holds = 2, _ASSERTIONS[name]
        if len(args) < count:
            raise NotValues
        if any(one is PENDING for one in args[:count]):
            self.asserted += 1
        elif not holds(*args[:count]):
            raise Failed(f"{path}({', '.join(short(one) for one in args[:count])})")
        return UNDEFINED

    def _match(self, expected: _Expected, name: str, args: list[Value]) -> Value:
        if name not in _MATCHERS:
            raise NotValues
        given = [expected.value, *(self._known(one) for one in args)]
        if expected.value is PENDING:
            self.asserted += 1
        elif bool(_MATCHERS[name](*given)) == expected.negated:
            raise Failed(
                f"expect({short(expected.value)}){'.not' * expected.negated}.{name}({', '.join(map(short, args))})"
            )
        return UNDEFINED

    # -- kinds of values

    def _name(self, node: Node) -> str:
        name = node.child_by_field_name("name")
        return self.tree.text(name) if name is not None else self._refuse()

    def _items(self, value: Value) -> list[Value]:
        found = self._known(value)
        return found if isinstance(found, list) else self._refuse()

    def _known(self, value: Value) -> Value:
        return self._refuse() if value is PENDING else self._plain(value)

    def _plain(self, value: Value) -> Value:
        if value is PENDING or value is None or value is UNDEFINED or isinstance(value, (bool, float, str, list, dict)):
            return value
        raise NotValues


_BINDERS = frozenset({
    "formal_parameters", "variable_declarator", "array_pattern", "rest_pattern", "assignment_pattern",
    "arrow_function", "function_declaration", "function_expression", "generator_function_declaration",
    "class_declaration", "catch_clause", "import_specifier", "namespace_import", "import_clause", "pair_pattern",
    "for_in_statement",
})  # fmt: skip


def bound_in(tree: SyntaxTree, within: Node | None = None) -> set[str]:
    """Return the names that a part of the tests declares."""
    found = set()
    for one in tree.nodes("identifier", "shorthand_property_identifier_pattern", within=within):
        parent = one.parent
        if one.type != "identifier" or (
            parent is not None
            and parent.type in _BINDERS
            and not any(parent.child_by_field_name(name) == one for name in ("body", "right"))
            and (parent.type == "pair_pattern" or parent.child_by_field_name("value") != one)
        ):
            found.add(tree.text(one))
    return found


def _number(text: str) -> float:
    text = text.replace("_", "").lower()
    if text.endswith("n") or (text[0] == "0" and text[1:].isdigit()):
        raise NotValues
    return float(int(text, 0)) if text[:2] in ("0x", "0o", "0b") else float(text)


def _escaped(text: str) -> str:
    simple = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}
    body = text[1:]
    if body in simple:
        return simple[body]
    if re.fullmatch(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}", body):
        return chr(int(body[1:], 16))
    if re.fullmatch(r"u\{[0-9a-fA-F]{1,6}\}", body):
        return chr(int(body[2:-1], 16))
    if len(body) == 1 and not body.isalnum():
        return body
    raise NotValues


def _returned(value: Value) -> Value:
    """Return a result of the program with all numbers as floats."""
    if value is None or value is UNDEFINED or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, list):
        return [_returned(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _returned(item) for key, item in value.items()}
    raise NotValues


def _ordered(made: dict[str, Value]) -> dict[str, Value]:
    """Return an object in JavaScript's order: keys that are indices come first."""
    indices = sorted((key for key in made if re.fullmatch(r"0|[1-9]\d{0,9}", key)), key=int)
    return {key: made[key] for key in indices} | made if indices else made


def _is_tree(value: Value, seen: set[int]) -> bool:
    if not isinstance(value, (list, dict)):
        return True
    if id(value) in seen:
        return False
    seen.add(id(value))
    return all(_is_tree(item, seen) for item in (value.values() if isinstance(value, dict) else value))


def _type(value: Value) -> str:
    if value is None or isinstance(value, (list, dict)):
        return "object"
    return {bool: "boolean", float: "number", str: "string"}.get(type(value), "undefined")


def _truth(value: Value) -> bool:
    if isinstance(value, (list, dict)):
        return True
    return value is not UNDEFINED and bool(value) and value == value


def _text(value: Value) -> str:
    """Return the text of a primitive value, as a template or ``+`` makes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None or value is UNDEFINED:
        return {True: "true", False: "false", None: "null"}.get(value, "undefined")
    if not isinstance(value, float):
        raise NotValues
    if value != value or math.isinf(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value.is_integer() and abs(value) < 1 << 53:
        return str(int(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    shown, point = "".join(map(str, digits)), len(digits) + int(exponent)
    if -6 < point <= 21:
        shown = "0." + "0" * -point + shown if point <= 0 else shown[:point].ljust(point, "0") + "." + shown[point:]
        shown = shown.removesuffix(".")
    else:
        shown = shown[0] + ("." + shown[1:] if len(shown) > 1 else "") + f"e{point - 1:+d}"
    return "-" * sign + shown


def _json(value: Value) -> Value:
    """Return ``JSON.stringify(value)``."""
    if value is UNDEFINED:
        return UNDEFINED
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _text(value) if math.isfinite(value) else "null"
    if isinstance(value, list):
        return f"[{','.join('null' if item is UNDEFINED else _json(item) for item in value)}]"
    if isinstance(value, dict):
        shown = ((key, _json(item)) for key, item in value.items())
        return "{" + ",".join(f"{_json(key)}:{text}" for key, text in shown if text is not UNDEFINED) + "}"
    return _text(value)


def _same(one: Value, two: Value) -> bool:
    """Return ``Object.is(one, two)``. The identity of containers is not known here."""
    if isinstance(one, (list, dict)) or isinstance(two, (list, dict)):
        if type(one) is type(two):
            raise NotValues
        return False
    if type(one) is not type(two):
        return False
    if isinstance(one, float):
        return (one != one and two != two) or (one == two and math.copysign(1, one) == math.copysign(1, two))
    return one is two or (isinstance(one, str) and one == two) or (isinstance(one, bool) and one == two)


def _strictly(one: Value, two: Value) -> bool:
    """Return ``one === two``."""
    if isinstance(one, float) and isinstance(two, float):
        return one == two
    return _same(one, two)


def _loosely(one: Value, two: Value) -> bool:
    """Return ``one == two``."""
    if isinstance(one, (list, dict)) or isinstance(two, (list, dict)):
        if any(side is None or side is UNDEFINED for side in (one, two)):
            return False
        raise NotValues
    nothing = [side is None or side is UNDEFINED for side in (one, two)]
    if any(nothing):
        return all(nothing)
    if type(one) is type(two):
        return _strictly(one, two)
    raise NotValues  # the values are converted


def _deep(one: Value, two: Value, equal: Callable[[Value, Value], bool], kept: Callable[[Value], bool]) -> bool:
    """Compare containers by their items, other values by ``equal``. Properties that are not ``kept`` do not count."""
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(_deep(a, b, equal, kept) for a, b in zip(one, two, strict=True))
    if isinstance(one, dict) and isinstance(two, dict):
        a, b = ({key: item for key, item in side.items() if kept(item)} for side in (one, two))
        return a.keys() == b.keys() and all(_deep(a[key], b[key], equal, kept) for key in a)
    if isinstance(one, (list, dict)) or isinstance(two, (list, dict)):
        return False
    return equal(one, two)


def _always(_: Value) -> bool:
    return True


def _is_given(value: Value) -> bool:
    return value is not UNDEFINED


def _or_nan(one: Value, two: Value) -> bool:
    both = isinstance(one, float) and isinstance(two, float) and one != one and two != two
    return both or _loosely(one, two)


def _deep_strict(one: Value, two: Value) -> bool:
    return _deep(one, two, _same, _always)


def _deep_loose(one: Value, two: Value) -> bool:
    return _deep(one, two, _or_nan, _always)


def _to_equal(one: Value, two: Value) -> bool:
    return _deep(one, two, _same, _is_given)


def _lodash(one: Value, two: Value) -> bool:
    if any(_has_odd(side) for side in (one, two)):
        raise NotValues  # the library, and what stands for it in the sandbox, may differ
    return _deep_strict(one, two)


def _has_odd(value: Value) -> bool:
    if isinstance(value, dict):
        return any(item is UNDEFINED or _has_odd(item) for item in value.values())
    if isinstance(value, list):
        return any(map(_has_odd, value))
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def _has_nan(value: Value) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_nan, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and value != value


def _number_of(value: Value) -> float:
    if not isinstance(value, float):
        raise NotValues
    return value


def _operation(operator: str, one: Value, two: Value) -> Value:
    match operator:
        case "===":
            return _strictly(one, two)
        case "!==":
            return not _strictly(one, two)
        case "==":
            return _loosely(one, two)
        case "!=":
            return not _loosely(one, two)
        case "+" if isinstance(one, str) or isinstance(two, str):
            return _text(one) + _text(two)
        case "<" | ">" | "<=" | ">=" if isinstance(one, str) and isinstance(two, str) and (one + two).isascii():
            return {"<": one < two, ">": one > two, "<=": one <= two, ">=": one >= two}[operator]
    one, two = _number_of(one), _number_of(two)
    match operator:
        case "+":
            return one + two
        case "-":
            return one - two
        case "*":
            return one * two
        case "/" if two:
            return one / two
        case "%" if two and math.isfinite(one):
            return math.fmod(one, two)
        case "**" if one > 0 and one.is_integer() and two.is_integer() and 0 <= two <= 64:
            return float(int(one) ** int(two))  # powers of other numbers differ between libraries
        case "<":
            return one < two
        case ">":
            return one > two
        case "<=":
            return one <= two
        case ">=":
            return one >= two
    raise NotValues


def _contains(of: Value, item: Value) -> bool:
    if isinstance(of, str) and isinstance(item, str):
        return item in of
    if isinstance(of, list):
        return any(_same(one, item) or _strictly(one, item) for one in of)
    raise NotValues


def _length(of: Value, wanted: Value) -> bool:
    if not isinstance(of, (list, str)) or (isinstance(of, str) and not of.isascii()):
        raise NotValues
    return float(len(of)) == wanted


def _close(one: Value, two: Value, digits: float = 2.0) -> bool:
    return _number_of(one) == two or abs(one - _number_of(two)) < 10.0**-digits / 2


def _refused(*_: Value) -> bool:
    raise NotValues


_ASSERTIONS: dict[str, Callable[..., bool]] = {
    "equal": _or_nan,
    "notEqual": lambda one, two: not _or_nan(one, two),
    "strictEqual": _same,
    "notStrictEqual": lambda one, two: not _same(one, two),
    "deepEqual": _deep_loose,
    "notDeepEqual": lambda one, two: not _deep_loose(one, two),
    "deepStrictEqual": _deep_strict,
    "notDeepStrictEqual": lambda one, two: not _deep_strict(one, two),
}
_MATCHERS: dict[str, Callable[..., bool]] = {
    "toBe": _same,
    "toEqual": _to_equal,
    "toStrictEqual": _deep_strict,
    "toBeCloseTo": _close,
    "toBeTruthy": _truth,
    "toBeFalsy": lambda value: not _truth(value),
    "toBeNull": lambda value: value is None,
    "toBeUndefined": lambda value: value is UNDEFINED,
    "toBeDefined": lambda value: value is not UNDEFINED,
    "toBeNaN": lambda value: isinstance(value, float) and value != value,
    "toBeGreaterThan": lambda one, two: _number_of(one) > _number_of(two),
    "toBeGreaterThanOrEqual": lambda one, two: _number_of(one) >= _number_of(two),
    "toBeLessThan": lambda one, two: _number_of(one) < _number_of(two),
    "toBeLessThanOrEqual": lambda one, two: _number_of(one) <= _number_of(two),
    "toContain": _contains,
    "toContainEqual": lambda of, item: isinstance(of, list) and any(_to_equal(one, item) for one in of),
    "toHaveLength": _length,
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "JSON.stringify": _json,
    "Object.is": _same,
    "Array.isArray": lambda value: isinstance(value, list),
    "Number.isNaN": lambda value: isinstance(value, float) and value != value,
    "Number.isInteger": lambda value: isinstance(value, float) and value.is_integer(),
    "Math.abs": lambda value: abs(_number_of(value)),
    "Math.sqrt": lambda value: math.sqrt(_number_of(value)),
    "Object.keys": lambda value: list(value) if isinstance(value, dict) else _refused(),
    "lodash.isEqual": _lodash,
    "util.isDeepStrictEqual": _deep_strict,
}
_GLOBALS: dict[str, Value] = {"NaN": math.nan, "Infinity": math.inf}
_LIBRARIES = frozenset({
    "JSON", "Object", "Array", "Number", "Math", "assert", "console", "expect", "test", "it", "describe", "require",
    "jest",
})  # fmt: skip
_REFUSED = frozenset({
    "String", "Boolean", "Symbol", "BigInt", "Date", "RegExp", "Error", "TypeError", "RangeError", "Map", "Set",
    "WeakMap", "Promise", "Proxy", "Reflect", "globalThis", "global", "process", "Buffer", "parseInt", "parseFloat",
    "isNaN", "isFinite", "eval", "Function", "setTimeout", "setInterval", "setImmediate", "structuredClone",
    "arguments", "module", "exports", "undefined", "vi", "before", "beforeAll", "beforeEach", "after", "afterAll",
    "afterEach", "fetch", "URL",
})  # fmt: skip
_OF_RUNNER = frozenset({
    "specify", "fit", "xit", "xtest", "suite", "context", "setup", "teardown", "fdescribe", "xdescribe",
    "queueMicrotask", "clearTimeout", "clearInterval", "encodeURIComponent", "decodeURIComponent", "encodeURI",
    "decodeURI", "escape",
})  # fmt: skip
_METHODS = frozenset({
    "then", "catch", "map", "filter", "sort", "forEach", "join", "slice", "push", "pop", "reverse", "includes",
    "indexOf", "toString", "toFixed", "split", "trim", "toUpperCase", "toLowerCase", "replace", "every", "some",
    "reduce", "keys", "values", "entries", "get", "has", "size", "next", "concat", "flat", "startsWith", "endsWith",
    "match", "test", "at",
})  # fmt: skip
LIBRARY = frozenset(_GLOBALS) | _LIBRARIES | _REFUSED | _OF_RUNNER
"""Names that tests can use and that are neither theirs nor the program's."""

_OF_OBJECTS = frozenset({
    "constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable",
    "toLocaleString", "__proto__", "length", "__defineGetter__", "__defineSetter__", "__lookupGetter__",
    "__lookupSetter__",
})  # fmt: skip
