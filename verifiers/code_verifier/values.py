"""Values first: reads Python tests as calls with plain arguments whose results this process compares.

``assert f([3, 1]) == [1, 3]``, HumanEval's ``check(candidate)`` with tables and tolerance helpers, and most other tests
only call functions of the program with plain values. Nothing of such tests enters the sandbox but the arguments. An
interpreter of a small part of Python runs the tests twice: first it collects the calls, with ``PENDING`` for each
result; then it knows the results and decides the assertions. ``NotValues`` is raised for everything else, for example
classes, expected errors, and arguments that depend on results.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import math
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from bestofn.builders.records import Execution, JsonObject, Program
from bestofn.sandbox.inside import library_names, names, plain
from bestofn.verifiers.code_verifier.entry_points import ENTRY_METHOD
from bestofn.verifiers.code_verifier.tallies import short, why_ended

_STEPS = 100_000  # most evaluated nodes; tests that compute longer run in the sandbox
_ITEMS = 100_000  # longest range or repeated sequence
_BITS = 4_096  # longest integer that is computed here
_DEPTH = 30  # deepest call of a helper
_CALLS = 2_000

Value = Any


class NotValues(Exception):
    """The tests are more than calls with plain values, or a result is not plain: they must run with the program."""


class Failed(Exception):
    """An assertion fails, or the program raises an error. The message is the reason."""


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Pending:
    """The result of a call that was not made yet, or a value that depends on it."""


PENDING = _Pending()


class _OfProgram:
    """A function of the program. ``name`` is its name, or the name of a method of the class ``Solution``.

    ``instance`` is the number of the object whose method it is; 0 if every call makes a new object; None if it is a
    function.
    """

    def __init__(self, name: str, instance: int | None = None) -> None:
        self.name, self.instance = name, instance


class _Helper:
    """A function that the tests define. ``defaults`` are the values of its parameters at the time of the definition."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda, scope: _Scope, defaults: Mapping[str, Value]) -> None:
        self.node, self.scope, self.defaults = node, scope, defaults


class _Module:
    def __init__(self, name: str, members: Mapping[str, Value]) -> None:
        self.name, self.members = name, members


class _Unreadable:
    """The value of a name that the tests bind to something else than plain values."""


_UNREADABLE = _Unreadable()


class _Scope(dict[str, Value]):
    """The variables of a function, or of the tests."""

    def __init__(self, outer: _Scope | None = None) -> None:
        super().__init__()
        self.outer = outer

    def find(self, name: str) -> Value:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope:
                return scope[name]
            scope = scope.outer
        return None


class Script:
    """The tests of ``driven`` (a program with tests), to be interpreted here. Raises ``NotValues`` at once or later."""

    def __init__(self, driven: Program) -> None:
        self.driven = driven
        try:
            self.setup, *self.cases = [ast.parse(text) for text in (driven.setup or "", *driven.tests)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise NotValues from None
        trees = [self.setup, *self.cases]
        self.bound = names.bound(trees)
        self.consumed = dict(one for tree in trees for one in _consumed(tree, self.bound))
        self.calls: list[JsonObject] = []
        self.sent: list[bytes] = []  # what identifies each call: the second pass must make the same calls
        self.held: dict[int, Value] = {}  # containers that the program may hold: its arguments and its results
        self.instances = 0
        self.starts: list[int] = []  # the number of the first call of each case
        self.execution: Execution | None = None
        self.at = 0  # number of the next call, once the results are known
        self.steps = self.depth = self.asserted = 0
        self.stars: list[Value] = []

    # -- the two passes

    def collect(self) -> tuple[JsonObject, ...]:
        """Return the calls that the tests make, for ``Program.calls``."""
        for verdict in self._verdicts():
            if verdict:
                raise NotValues
        if not self.calls or not self.asserted:
            raise NotValues
        return tuple(self.calls)

    def decide(self, execution: Execution) -> list[JsonObject | None]:
        """Return one verdict per case, for ``tally_of``: None if it passes."""
        self.collect()
        self.execution = execution
        self.steps = self.depth = self.instances = 0
        verdicts: list[JsonObject | None] = []
        for number, (source, why) in enumerate(zip(self.driven.tests, self._verdicts(), strict=True)):
            shown = {"case": number, "test": short(source)}
            verdicts.append({**shown, "why": f"test {number}: {why}"} if why else None)
        return verdicts

    def _verdicts(self) -> Iterator[str]:
        """Run each case and yield why it fails; "" if it passes."""
        scope = _Scope()
        entry = self.driven.entry_point
        if entry:
            scope[entry] = _OfProgram(entry)
        for node in self.setup.body:
            if getattr(node, "name", None) != entry:
                self._define(node, scope)
        if entry:
            scope[entry] = _OfProgram(entry)
        for number, case in enumerate(self.cases):
            if self.execution is None:
                self.starts.append(len(self.calls))
            else:
                self.at = self.starts[number]
            try:
                self._run_case(case, scope)
                if self.execution is not None and self.at != [*self.starts, len(self.calls)][number + 1]:
                    raise NotValues  # other calls than in the first pass
            except Failed as reason:
                yield str(reason)[:300] or "failed"
            except NotValues:
                raise
            except (_Return, _Break, _Continue, RecursionError, MemoryError):
                raise NotValues from None
            except Exception as error:  # of an operation of the tests, such as ``None + 1``
                if self.execution is None:
                    raise NotValues from None
                yield f"{type(error).__name__}: {error}"[:300].rstrip(": ")
            else:
                yield ""

    def _define(self, node: ast.stmt, scope: _Scope) -> None:
        """Run a statement of the setup. If it cannot be interpreted, its names become unreadable."""
        try:
            self._statement(node, scope)
        except (Failed, _Return, _Break, _Continue):
            raise NotValues from None
        except NotValues:
            if not isinstance(node, _DEFINITIONS) or (
                isinstance(node, ast.Assign)
                and (
                    names.called([node])
                    or any(isinstance(one, (ast.Subscript, ast.Attribute)) for one in names.nodes_of(node))
                )
            ):
                raise
            scope.update(dict.fromkeys(names.bound([node]), _UNREADABLE))
        except Exception:  # the setup fails: the sandbox reports it
            raise NotValues from None

    def _run_case(self, case: ast.Module, scope: _Scope) -> None:
        self._block(case.body, scope)
        called = names.called([case], executed=True)
        for node in case.body:
            if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef):
                raise NotValues
            if isinstance(node, ast.FunctionDef) and node.name not in called:
                self._run_test(node, scope)

    def _run_test(self, node: ast.FunctionDef, scope: _Scope) -> None:
        """Call a function of the case if it is a test: its name is ``check`` or starts with ``test``."""
        parameters = len(node.args.args)
        helper = scope.get(node.name)
        if not isinstance(helper, _Helper) or helper.node is not node:
            return  # another definition has replaced it
        if node.decorator_list and node.name.startswith(("check", "test")):
            raise NotValues
        if node.name == "check" or (node.name.startswith("test") and parameters == 1 and self.driven.entry_point):
            if not self.driven.entry_point:
                raise NotValues
            self._call_helper(helper, [scope[self.driven.entry_point]], {})
        elif node.name.startswith("test"):
            if parameters:
                raise NotValues  # fixtures
            self._call_helper(helper, [], {})
        elif node.name.lower().startswith(("setup", "teardown")):
            raise NotValues

    # -- statements

    def _block(self, body: Sequence[ast.stmt], scope: _Scope) -> None:
        for node in body:
            self._statement(node, scope)

    def _statement(self, node: ast.stmt, scope: _Scope) -> None:
        self._step()
        match node:
            case ast.Pass():
                pass
            case ast.Expr(value=value):
                self._value(value, scope)
            case ast.Assert(test=test):
                self._assert(test, node.msg, scope)
            case ast.Assign(targets=targets, value=value):
                found = self._value(value, scope)
                for target in targets:
                    self._bind(target, found, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                now = scope.get(name, _UNREADABLE)
                if now is not PENDING and _may_change(now):
                    raise NotValues  # it changes the object, which may have other names
                scope[name] = self._operation(op, now, self._value(value, scope))
            case ast.For(target=target, iter=items, body=body, orelse=[]):
                for item in self._known(self._value(items, scope)):
                    self._step()
                    self._bind(target, item, scope)
                    try:
                        self._block(body, scope)
                    except _Break:
                        break
                    except _Continue:
                        continue
            case ast.If(test=test, body=body, orelse=orelse):
                if self._is_main(test):
                    self._block(body, scope)
                else:
                    self._block(body if self._known(self._value(test, scope)) else orelse, scope)
            case ast.FunctionDef(name=name):
                if node.decorator_list and not name.startswith("test"):
                    raise NotValues
                scope[name] = self._helper(node, scope)
            case ast.Return(value=value):
                raise _Return(None if value is None else self._value(value, scope))
            case ast.Raise() if self.execution is not None:
                raise Failed(ast.unparse(node))
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Import(names=aliases):
                for alias in aliases:
                    bound = alias.asname or alias.name
                    scope[bound.partition(".")[0]] = (
                        _module(alias.name) if bound == alias.asname or "." not in bound else _UNREADABLE
                    )
            case ast.ImportFrom():
                self._import(node, scope)
            case _:
                raise NotValues

    def _import(self, node: ast.ImportFrom, scope: _Scope) -> None:
        if node.module == "__future__":
            return
        for alias in node.names:
            name = alias.asname or alias.name
            if node.module == "solution" and not node.level:
                if alias.name != "*":
                    scope[name] = _OfProgram(alias.name)
            elif alias.name == "*":
                if node.module not in _STARS:
                    raise NotValues
                self.stars.append(importlib.import_module(node.module))
            else:
                module = _module(node.module or "")
                scope[name] = (
                    module.members.get(alias.name, _UNREADABLE) if isinstance(module, _Module) else _UNREADABLE
                )

    @staticmethod
    def _is_main(test: ast.expr) -> bool:
        return ast.unparse(test) == "__name__ == '__main__'"

    def _assert(self, test: ast.expr, message: ast.expr | None, scope: _Scope) -> None:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):  # the same as one assertion after another
            for part in test.values:
                self._assert(part, message, scope)
            return
        found = self._value(test, scope)
        if found is PENDING:
            self.asserted += 1
        elif not self._plain(found):
            raise Failed(
                f"AssertionError: {short(ast.unparse(test))}" + (f": {self._shown(message, scope)}" if message else "")
            )

    def _shown(self, message: ast.expr, scope: _Scope) -> str:
        try:
            return str(self._value(message, scope))[:200]
        except Exception:  # an explanation is not worth a second error
            return ""

    def _bind(self, target: ast.expr, value: Value, scope: _Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if value is PENDING:
                    values: list[Value] = [PENDING] * len(targets)
                else:
                    values = list(self._items(value))
                if any(isinstance(one, ast.Starred) for one in targets) or len(values) != len(targets):
                    raise NotValues
                for one, item in zip(targets, values, strict=True):
                    self._bind(one, item, scope)
            case _:
                raise NotValues

    # -- expressions

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > _STEPS:
            raise NotValues

    def _value(self, node: ast.expr, scope: _Scope) -> Value:
        self._step()
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._named(name, scope)
            case ast.List(elts=items):
                return self._joined(list, items, scope)
            case ast.Tuple(elts=items):
                return self._joined(tuple, items, scope)
            case ast.Set(elts=items):
                return self._joined(_literal_set, items, scope)
            case ast.Dict(keys=keys, values=values):
                if any(key is None for key in keys):
                    raise NotValues
                pairs = [
                    (self._value(key, scope), self._value(value, scope))
                    for key, value in zip(keys, values, strict=True)
                    if key
                ]
                return (
                    PENDING
                    if any(PENDING in (_same(one), _same(two)) for one, two in pairs)
                    else {self._plain(one): self._plain(two) for one, two in pairs}
                )
            case ast.UnaryOp(op=op, operand=operand):
                found = self._value(operand, scope)
                return PENDING if found is PENDING else _UNARY[type(op)](self._plain(found))
            case ast.BinOp(left=left, op=op, right=right):
                one = self._value(left, scope)
                return self._operation(op, one, self._value(right, scope))
            case ast.BoolOp(op=op, values=values):
                return self._any_or_all(isinstance(op, ast.And), values, scope)
            case ast.Compare():
                return self._comparison(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._known(self._value(test, scope)) else orelse, scope)
            case ast.Subscript(value=owner, slice=index):
                found, place = self._value(owner, scope), self._value(index, scope)
                return PENDING if PENDING in (_same(found), _same(place)) else self._plain(found)[self._plain(place)]
            case ast.Slice(lower=lower, upper=upper, step=step):
                parts = [None if one is None else self._value(one, scope) for one in (lower, upper, step)]
                return PENDING if any(one is PENDING for one in parts) else slice(*map(self._plain, parts))
            case ast.Attribute(value=owner, attr=name):
                method = ENTRY_METHOD.fullmatch(ast.unparse(node))
                if method and "Solution" not in self.bound:
                    self.instances += 1
                    return _OfProgram(method[1], self.instances)
                return self._attribute(self._value(owner, scope), name)
            case ast.Lambda():
                return self._helper(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node, scope)
            case ast.JoinedStr(values=parts):
                texts = [self._value(one, scope) for one in parts]
                return PENDING if any(one is PENDING for one in texts) else "".join(map(str, texts))
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=None):
                found = self._value(value, scope)
                shown = {ord("r"): repr, ord("s"): str, ord("a"): ascii, -1: format}[conversion]
                return PENDING if found is PENDING else shown(self._plain(found))
            case _:
                raise NotValues

    def _named(self, name: str, scope: _Scope) -> Value:
        found = scope.find(name)
        if found is not None:
            if found is _UNREADABLE:
                raise NotValues
            return found
        holder: _Scope | None = scope
        while holder is not None:
            if name in holder:  # its value is None
                return None
            holder = holder.outer
        if name in self.bound:
            raise NotValues
        if name == "__name__":
            return "__main__"
        if name in _BUILTINS:
            return _BUILTINS[name]
        if (
            hasattr(builtins, name)
            or library_names.may_be_of_library(name)
            or any(hasattr(one, name) for one in self.stars)
        ):
            raise NotValues
        return _OfProgram(name)

    def _joined(self, kind: Callable[[list[Value]], Value], nodes: Sequence[ast.expr], scope: _Scope) -> Value:
        items: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found = self._value(node.value, scope)
                items += [PENDING] if found is PENDING else self._items(found)
            else:
                items.append(self._value(node, scope))
        return PENDING if any(item is PENDING for item in items) else kind([self._plain(item) for item in items])

    def _operation(self, op: ast.operator, one: Value, two: Value) -> Value:
        if one is PENDING or two is PENDING:
            return PENDING
        one, two = self._plain(one), self._plain(two)
        if isinstance(op, (ast.Mult, ast.Pow, ast.LShift)):
            _refuse_large(op, one, two)
        return _BINARY[type(op)](one, two)

    def _any_or_all(self, every: bool, values: Sequence[ast.expr], scope: _Scope) -> Value:
        found: Value = every
        for number, node in enumerate(values):
            found = self._value(node, scope)
            if found is PENDING:
                if any(self._uses_program(later, scope) for later in values[number + 1 :]):
                    raise NotValues  # whether these calls are made depends on a result
                return PENDING
            if bool(self._plain(found)) != every:
                return found
        return found

    def _comparison(self, node: ast.Compare, scope: _Scope) -> Value:
        nodes = [node.left, *node.comparators]
        if any(self._uses_program(one, scope) for one in nodes[2:]):
            raise NotValues  # whether these calls are made depends on a result
        for op, one, two in zip(node.ops, nodes, nodes[1:], strict=False):
            alike = isinstance(op, (ast.Is, ast.IsNot))
            if alike and not any(
                isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, bool))
                for side in (one, two)
            ):
                raise NotValues  # plain values have no identity here
        pending = False
        one = self._value(node.left, scope)
        for op, right in zip(node.ops, node.comparators, strict=True):
            two = self._value(right, scope)
            if pending or one is PENDING or two is PENDING:
                pending = True
            elif not _COMPARE[type(op)](*(side if side in _TYPES else self._plain(side) for side in (one, two))):
                return False
            one = two
        return PENDING if pending else True

    def _attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, _Module):
            if owner.name == "solution":
                return _OfProgram(name)
            if name not in owner.members:
                raise NotValues
            return owner.members[name]
        raise NotValues

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: _Scope
    ) -> Value:
        pairs = isinstance(node, ast.DictComp)
        made: list[Value] = []

        def walk(generators: Sequence[ast.comprehension], inner: _Scope, items: Value) -> None:
            if not generators:
                one = self._value(node.key if isinstance(node, ast.DictComp) else node.elt, inner)
                made.append((one, self._value(node.value, inner)) if isinstance(node, ast.DictComp) else one)
                return
            first = generators[0]
            if first.is_async:
                raise NotValues
            for item in self._items(items):
                self._step()
                self._bind(first.target, item, inner)
                if all(self._known(self._value(test, inner)) for test in first.ifs):
                    later = generators[1:]
                    walk(later, inner, self._value(later[0].iter, inner) if later else None)

        whole = not isinstance(node, ast.GeneratorExp) or self.consumed.get(id(node))
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        parts += [one for each in node.generators for one in each.ifs] + [each.iter for each in node.generators[1:]]
        items = self._value(node.generators[0].iter, scope)
        if whole is None or (
            (items is PENDING or not whole)
            and any(
                self._uses_program(one, scope, names.bound([each.target for each in node.generators])) for one in parts
            )
        ):
            raise NotValues  # whether these calls are made, or when, depends on a result
        if items is PENDING:
            return PENDING
        try:
            walk(node.generators, _Scope(scope), items)
        except NotValues:
            raise
        except Exception:
            if whole:
                raise
            raise NotValues from None  # perhaps of an item that Python would not reach
        flat = [part for one in made for part in one] if pairs else made
        if any(one is PENDING for one in flat):
            return PENDING
        made = [tuple(map(self._plain, one)) if pairs else self._plain(one) for one in made]
        kind: Callable[[Iterable[Value]], Value] = {ast.SetComp: set, ast.DictComp: dict}.get(type(node), list)  # type: ignore[assignment]
        return kind(made)

    def _uses_program(self, node: ast.AST, scope: _Scope, local: Iterable[str] = ()) -> bool:
        """Return whether evaluating ``node`` may call the program."""
        for name in names.read([node]) - set(local):
            found = scope.find(name)
            if isinstance(found, _OfProgram):
                return True
            if isinstance(found, _Helper) and self._helper_uses_program(found):
                return True
            if found is None and name not in self.bound and name not in _BUILTINS and not hasattr(builtins, name):
                return True
        return False

    def _helper_uses_program(self, helper: _Helper) -> bool:
        if self.depth > _DEPTH:
            raise NotValues
        self.depth += 1
        try:
            name = getattr(helper.node, "name", "")
            return self._uses_program(helper.node, helper.scope, names.bound([helper.node]) | {name})
        finally:
            self.depth -= 1

    # -- calls

    def _call(self, node: ast.Call, scope: _Scope) -> Value:
        function = node.func
        if isinstance(function, ast.Attribute):
            method = ENTRY_METHOD.fullmatch(ast.unparse(function))
            if method and "Solution" not in self.bound:
                return self._call_program(_OfProgram(method[1], 0), node, scope)
            owner = self._value(function.value, scope)
            if isinstance(owner, _OfProgram):
                raise NotValues
            if not isinstance(owner, _Module):
                return self._call_method(owner, function.attr, node, scope)
            callee = self._attribute(owner, function.attr)
        else:
            callee = self._value(function, scope)
        if isinstance(callee, _OfProgram):
            return self._call_program(callee, node, scope)
        args, kwargs = self._arguments(node, scope)
        if isinstance(callee, _Helper):
            return self._call_helper(callee, args, kwargs)
        if callee is isinstance and len(args) == 2 and not kwargs:
            return PENDING if args[0] is PENDING else isinstance(self._plain(args[0]), self._types(args[1]))
        if not callable(callee):
            raise NotValues
        return self._call_library(callee, args, kwargs)

    def _types(self, value: Value) -> Value:
        kinds = value if isinstance(value, tuple) else (value,)
        if not all(kind in _TYPES for kind in kinds):
            raise NotValues
        return value

    def _helper(self, node: ast.FunctionDef | ast.Lambda, scope: _Scope) -> _Helper:
        if any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in names.nodes_of(node)):
            raise NotValues
        given = node.args
        pairs = list(zip(given.args[len(given.args) - len(given.defaults) :], given.defaults, strict=False))
        pairs += [(one, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
        return _Helper(node, scope, {one.arg: self._value(value, scope) for one, value in pairs})

    def _call_program(self, function: _OfProgram, node: ast.Call, scope: _Scope) -> Value:
        if function.name[:1].isupper():
            raise NotValues  # a class, whose objects are not plain
        args, kwargs = self._arguments(node, scope)
        given = [self._plain(one) for one in args], {key: self._plain(one) for key, one in kwargs.items()}
        seen: dict[int, Value] = {}
        try:
            sent = plain.dumps(plain.encode([function.name, function.instance, *given]))
        except plain.NotPlain:
            raise NotValues from None
        if not plain.is_exact(given, seen):
            raise NotValues  # for example, a list that is in two places
        self.held |= seen
        if self.execution is not None:
            if self.at >= len(self.sent) or sent != self.sent[self.at]:
                raise NotValues  # another call than in the first pass
            return self._answer()
        call: JsonObject = {
            "name": function.name,
            "args": given[0],
            "kwargs": given[1],
            "watched": self._is_read_again(node, scope),
        }
        if function.instance is not None:
            call["instance"] = function.instance
        self.calls.append(call)
        self.sent.append(sent)
        if len(self.calls) > _CALLS:
            raise NotValues
        return PENDING

    def _answer(self) -> Value:
        assert self.execution is not None
        returns = self.execution.returns
        number, self.at = self.at, self.at + 1
        if len(returns) > len(self.calls) or number >= len(returns):
            raise Failed(why_ended(self.execution))
        answer = returns[number]
        if answer.get("changed"):
            raise NotValues
        if "value" in answer:
            value = answer["value"]
            if not plain.is_exact(value, self.held) or _has_nan(value):
                raise NotValues  # ``if abs(nan - 2) > 0.1: raise`` passes: altered tests show it
            return value
        error = str(answer["error"])
        if error.startswith("NotPlain"):
            raise NotValues
        raise Failed(error)

    def _is_read_again(self, node: ast.Call, scope: _Scope) -> bool:
        """Return whether an argument may be, or contain, a mutable value that the tests can read again."""
        return any(
            _may_change(scope.find(one.id))
            for argument in [*node.args, *(word.value for word in node.keywords)]
            for one in names.nodes_of(argument)
            if isinstance(one, ast.Name)
        )

    def _arguments(self, node: ast.Call, scope: _Scope) -> tuple[list[Value], dict[str, Value]]:
        args: list[Value] = []
        for one in node.args:
            if isinstance(one, ast.Starred):
                args += self._items(self._value(one.value, scope))
            else:
                args.append(self._value(one, scope))
        kwargs: dict[str, Value] = {}
        for word in node.keywords:
            found = self._value(word.value, scope)
            if word.arg is None:
                kwargs.update(self._known(found))
            else:
                kwargs[word.arg] = found
        return args, kwargs

    def _call_helper(self, helper: _Helper, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [*args, *kwargs.values()]
        if (
            any(one is PENDING for one in given)
            and not any(isinstance(one, (_OfProgram, _Helper)) for one in given)
            and not self._helper_uses_program(helper)
        ):
            self.asserted += any(isinstance(one, ast.Assert) for one in ast.walk(helper.node))
            return PENDING
        parameters = helper.node.args
        if parameters.vararg or parameters.kwarg or parameters.posonlyargs:
            raise NotValues
        listed = [one.arg for one in [*parameters.args, *parameters.kwonlyargs]]
        scope = _Scope(helper.scope)
        scope.update(helper.defaults)
        scope.update(zip(listed, args, strict=False))
        scope.update(kwargs)
        if len(args) > len(parameters.args) or set(scope) != set(listed):
            raise NotValues
        self.depth += 1
        try:
            if self.depth > _DEPTH:
                raise NotValues
            if isinstance(helper.node, ast.Lambda):
                return self._value(helper.node.body, scope)
            if names.bound([helper.node]) & set(self.bound) and any(
                isinstance(one, (ast.Global, ast.Nonlocal)) for one in ast.walk(helper.node)
            ):
                raise NotValues
            self._block(helper.node.body, scope)
        except _Return as end:
            return end.value
        finally:
            self.depth -= 1
        return None

    def _call_library(self, function: Callable[..., Value], args: list[Value], kwargs: dict[str, Value]) -> Value:
        if any(one is PENDING for one in [*args, *kwargs.values()]):
            if any(isinstance(one, _Helper) and self._helper_uses_program(one) for one in [*args, *kwargs.values()]):
                raise NotValues
            return PENDING
        given = [self._argument(one) for one in args]
        self._step(sum(len(one) for one in given if isinstance(one, (list, tuple, set, dict, range))) // 10)
        if function is range:
            made = range(*given)
            if len(made) > _ITEMS:
                raise NotValues
            return made
        module = getattr(function, "__module__", "")
        if (
            module == "math"
            and any(isinstance(one, int) and abs(one) > _BITS for one in given)
            and function in _GROWING
        ):
            raise NotValues
        return function(*given, **{key: self._argument(one) for key, one in kwargs.items()})

    def _argument(self, value: Value) -> Value:
        if isinstance(value, _Helper):
            return lambda *args: self._known(self._call_helper(value, list(args), {}))
        return value if callable(value) and not isinstance(value, _OfProgram) else self._plain(value)

    def _call_method(self, owner: Value, name: str, node: ast.Call, scope: _Scope) -> Value:
        args, kwargs = self._arguments(node, scope)
        if name in _CHANGING and (owner is PENDING or id(owner) in self.held):
            raise NotValues  # the program may hold the same object
        if owner is PENDING:
            if any(isinstance(one, _Helper) for one in [*args, *kwargs.values()]):
                raise NotValues
            if name in _METHODS:
                return PENDING
            raise NotValues
        if name not in _METHODS or any(one is PENDING for one in [*args, *kwargs.values()]):
            raise NotValues
        method = getattr(self._plain(owner), name)
        return method(*map(self._argument, args), **{key: self._argument(one) for key, one in kwargs.items()})

    # -- kinds of values

    def _items(self, value: Value) -> list[Value]:
        items = list(self._known(value))
        self._step(len(items) // 10)
        return items

    def _known(self, value: Value) -> Value:
        """Return a value on which the order of the tests depends. Raises ``NotValues`` if it is not known yet."""
        if value is PENDING:
            raise NotValues
        return self._plain(value)

    def _plain(self, value: Value) -> Value:
        if isinstance(value, (_OfProgram, _Helper, _Module, _Unreadable, _Pending, type, types.FunctionType)):
            raise NotValues
        return value


def _same(value: Value) -> Value:
    """Return ``PENDING`` if ``value`` is it; otherwise None. A test of membership would call ``__eq__`` of values."""
    return PENDING if value is PENDING else None


def _literal_set(items: Sequence[Value]) -> set[Value]:
    """Return a set whose order is that of a literal: Python builds a literal from a frozen set."""
    made: set[Value] = set()
    made.update(frozenset(items))
    return made


def _may_change(value: Value) -> bool:
    """Return whether ``value`` is, contains or gives access to a mutable object."""
    if isinstance(value, tuple):
        return any(map(_may_change, value))
    return not isinstance(value, _FIXED)


def _has_nan(value: Value) -> bool:
    if isinstance(value, (float, complex)):
        return value != value
    if isinstance(value, dict):
        return any(map(_has_nan, (*value, *value.values())))
    return isinstance(value, (list, tuple, set, frozenset, deque)) and any(map(_has_nan, value))


def _consumed(tree: ast.Module, bound: set[str]) -> Iterator[tuple[int, bool]]:
    """Yield the generator expressions that are the argument of a function that reads them at once.

    With each, yield whether all its items are read. ``any`` and ``all`` may stop earlier. An assertion of ``all``
    counts as reading all, because it fails if ``all`` stops.
    """
    asserted = [node.test for node in names.nodes_of(tree) if isinstance(node, ast.Assert)]
    for test in asserted:
        asserted += test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
    for node in names.nodes_of(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.GeneratorExp):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in ("any", "all") and name not in bound:
                yield id(node.args[0]), name == "all" and node in asserted
            elif name in _WHOLE and name not in bound:
                yield id(node.args[0]), True


def _refuse_large(op: ast.operator, one: Value, two: Value) -> None:
    """Raise ``NotValues`` if the result of an operation could be too large for this process."""
    numbers = [value for value in (one, two) if isinstance(value, int)]
    if len(numbers) == 2:
        bits = [value.bit_length() for value in (one, two)]
        size = {ast.Pow: bits[0] * min(abs(two), _BITS), ast.LShift: bits[0] + min(abs(two), _BITS + 1)}.get(
            type(op), sum(bits)
        )
        if size > _BITS:
            raise NotValues
    elif numbers and isinstance(op, ast.Mult):
        other = two if isinstance(one, int) else one
        if hasattr(other, "__len__") and len(other) * max(0, numbers[0]) > _ITEMS:
            raise NotValues


def _refuse(*args: Value, **kwargs: Value) -> NoReturn:
    raise NotValues


_UNARY: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.MatMult: _refuse,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, two: one in two,
    ast.NotIn: lambda one, two: one not in two,
}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign)
_FIXED = (int, float, complex, str, bytes, range, frozenset, type(None), type, types.BuiltinFunctionType)
_FIXED += (_Module, _OfProgram)  # type: ignore[assignment]
_WHOLE = ("dict", "frozenset", "join", "list", "max", "min", "set", "sorted", "sum", "tuple")
_CHANGING = ("append", "extend", "insert", "pop", "remove", "reverse", "sort", "update")
_TYPES = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
_BUILTINS: dict[str, Value] = {
    name: getattr(builtins, name)
    for name in (
        "abs", "all", "any", "ascii", "bin", "bool", "chr", "complex", "dict", "divmod", "enumerate", "filter", "float",
        "frozenset", "hex", "int", "isinstance", "len", "list", "map", "max", "min", "oct", "ord", "range", "repr",
        "reversed", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip",
    )
} | {"print": lambda *args, **kwargs: None}  # fmt: skip
_GROWING = (math.factorial, math.comb, math.perm)
_MODULES = {
    "math": {name: getattr(math, name) for name in dir(math) if not name.startswith("_")},
    "copy": {"deepcopy": copy.deepcopy, "copy": copy.copy},
    "typing": {},
    "solution": {},
}
_STARS = (
    "typing",
    "functools",
    "collections",
    "itertools",
    "heapq",
    "bisect",
    "string",
    "operator",
    "math",
    "datetime",
)
_METHODS = frozenset({
    "append", "capitalize", "casefold", "copy", "count", "difference", "endswith", "extend", "find", "get", "index",
    "insert", "intersection", "is_integer", "isalnum", "isalpha", "isdigit", "isdisjoint", "islower", "isspace",
    "issubset", "issuperset", "istitle", "isupper", "items", "join", "keys", "lower", "lstrip", "pop", "remove",
    "replace", "reverse", "rfind", "rstrip", "sort", "split", "splitlines", "startswith", "strip", "swapcase",
    "symmetric_difference", "title", "union", "update", "upper", "values",
})  # fmt: skip


def _module(name: str) -> Value:
    """Return the module ``name``. Raises ``NotValues`` if the sandbox may not have it: the import would fail there."""
    if name.partition(".")[0] not in sys.stdlib_module_names and name not in _MODULES:
        raise NotValues
    return _Module(name, _MODULES[name]) if name in _MODULES else _UNREADABLE
