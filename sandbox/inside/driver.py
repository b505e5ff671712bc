"""The driver: runs a test's source in a process that never runs the program, and calls the program by proxy.

The program answers by value. Values that are not plain stay with the program: here they are ``Remote`` objects that
can be called, iterated and asked for attributes, but never compared, computed with or believed: ``==`` with anything
that is not remote is False. Only a class that the tests themselves name has operators of its own (``Instance``). When
the program is gone, what is left of the tests has failed.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

from sandbox.inside import plain
from sandbox.inside.descriptors import CONTROL, FROM_PROGRAM, RESULT, write_all
from sandbox.inside.exported import Link
from sandbox.inside.jobs import Job


class ProgramGone(BaseException):
    """The program's process has ended; not an ``Exception``, for no test may take it as one that it expects."""


class Program:
    """The program as the driver sees it."""

    def __init__(self) -> None:
        self.link = Link(FROM_PROGRAM, CONTROL)
        self.functions: list[Any] = []
        self.kinds: dict[str, type] = {}

    def ask(self, request: Any) -> Any:
        try:
            self.link.send(request)
            answer = self.link.receive()
            while isinstance(answer, dict) and "callback" in answer:
                self.link.send(self._call_back(answer))
                answer = self.link.receive()
        except (EOFError, OSError, plain.NotPlain) as error:
            raise ProgramGone(f"the program gave no answer ({type(error).__name__})") from None
        if not isinstance(answer, dict):
            raise ProgramGone("the program's answer is malformed")
        return answer

    def _call_back(self, message: Any) -> Any:
        try:
            function = self.functions[message["callback"]]
            args = [self.decode(item) for item in message["args"]]
            kwargs = {name: self.decode(item) for name, item in message["kwargs"].items()}
            return {"ok": self.encode(function(*args, **kwargs))}
        except Exception as error:
            kind = next(base.__name__ for base in type(error).__mro__ if getattr(builtins, base.__name__, None) is base)
            return {"raise": {"builtin": kind, "args": plain.encode([str(error)])}}

    def request(self, op: str, target: int | str, args: tuple = (), kwargs: dict | None = None, name: str = "") -> Any:
        forms = [self.encode(item) for item in args]
        named = {key: self.encode(item) for key, item in (kwargs or {}).items()}
        answer = self.ask({"op": op, "target": target, "name": name, "args": forms, "kwargs": named})
        try:
            if "raise" in answer:
                raise self.error(answer["raise"])
            for old, form in zip(args, answer.get("args") or (), strict=False):
                if form is not None:
                    _restore(old, self.decode(form))
            return self.decode(answer["ok"])
        except (plain.NotPlain, KeyError, AttributeError) as error:
            if "ok" in answer or "raise" in answer:
                raise TypeError(f"the program's answer is not plain data: {error}") from None
            raise ProgramGone(f"the program's answer is malformed: {error!r} {answer!r}") from None

    def error(self, form: Any) -> BaseException:
        base = getattr(builtins, form["builtin"], None)
        if not (isinstance(base, type) and issubclass(base, BaseException)):
            base = Exception
        if not issubclass(base, Exception):
            return ProgramGone(f"the program raised {base.__name__}")  # SystemExit and the like end a program
        kind = self.kinds.get(form["type"], base)
        args = plain.decode(form["args"])
        try:
            return kind(*args)
        except TypeError:
            return RuntimeError(f"{form['type']}: {args}")

    # -- values

    def encode(self, value: Any) -> Any:
        return plain.encode(value, self._export)

    def _export(self, value: Any) -> Any:
        if isinstance(value, Remote):
            return {"mine": value._reference}
        if isinstance(value, type) and hasattr(value, "_class_name"):
            return {"mine": value._class_name}
        if isinstance(value, Function):
            return {"mine": value._reference}
        if callable(value) and getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return {"builtin": value.__name__}  # int, len and the like are the same on both sides
        if callable(value):
            self.functions.append(value)
            return {"yours": len(self.functions) - 1}
        raise plain.NotPlain(f"a {type(value).__name__} cannot be handed to the program")

    def decode(self, form: Any) -> Any:
        return plain.decode(form, self._import)

    def _import(self, tag: str, body: Any) -> Any:
        if tag != "handle":
            raise plain.NotPlain(f"unknown form {tag!r}")
        number, kind = int(body["id"]), str(body["type"])
        if body.get("coroutine"):
            return self._awaited(number)
        remote = object.__new__(self.kinds.get(kind, Remote) if self._is_class(kind) else Remote)
        remote.__dict__.update(_program=self, _reference=number)
        return remote

    def _is_class(self, kind: str) -> bool:
        return isinstance(self.kinds.get(kind), type) and issubclass(self.kinds[kind], Remote)

    async def _awaited(self, number: int) -> Any:
        return self.request("await", number)

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """Proxies for those of ``wanted`` that the program defines."""
        answer = self.ask({"op": "names", "names": wanted}).get("names")
        if not isinstance(answer, dict):
            raise ProgramGone("the program's answer is malformed")
        proxies = {name: self._proxy(name, form) for name, form in answer.items() if name in wanted}
        return {name: proxy for name, proxy in proxies.items() if proxy is not None}

    def _proxy(self, name: str, form: Any) -> Any:
        if "module" in form:
            return _module(str(form["module"]))
        if "callable" in form:
            return Function(self, name)
        if "exception" in form:
            base = getattr(builtins, str(form["exception"]), Exception)
            self.kinds[name] = type(name, (base,), {})
            return self.kinds[name]
        if "class" in form:
            self.kinds[name] = _remote_class(self, name)
            return self.kinds[name]
        return self.decode(form["value"] if "value" in form else form["handle"])


class Function:
    """A function of the program."""

    def __init__(self, program: Program, reference: str) -> None:
        self._program, self._reference = program, reference
        self.__name__ = self.__qualname__ = reference

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program.request("call", self._reference, args, kwargs)


class Remote:
    """A value that stays with the program."""

    _program: Program
    _reference: int

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program.request("call", self._reference, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._program.request("get", self._reference, name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._program.request("set", self._reference, (value,), name=name)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._program.request("special", self._reference, name="iter")
        if not isinstance(iterator, Remote):
            raise TypeError("the program's object is not iterable")
        while True:
            try:
                yield self._program.request("special", iterator._reference, name="next")
            except StopIteration:
                return

    def __next__(self) -> Any:
        return self._program.request("special", self._reference, name="next")

    def __len__(self) -> int:
        return self._program.request("special", self._reference, name="len")

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Any:
        return self._program.request("special", self._reference, (key,), name="__getitem__")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._program.request("special", self._reference, (key, value), name="__setitem__")

    def __contains__(self, item: Any) -> bool:
        raise TypeError("an object of the program is not asked what it contains; compare plain values")

    def __eq__(self, other: object) -> bool:
        """The program's own comparison, and only between two of its own objects."""
        if not isinstance(other, Remote):
            return False
        return self._program.request("equal", self._reference, (other,)) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return str(self._program.request("special", self._reference, name="str"))

    def __repr__(self) -> str:
        return str(self._program.request("special", self._reference, name="repr"))


class Instance(Remote):
    """An object of a class that the tests name: its operators are under test, so the program is asked for them.

    But never believed: what an operator gives must be an object of the program again, and only two of its objects are
    ordered by its word. So ``abs(f(0.1) - 0.3) < 1e-9`` is no pass for a class called ``f`` that says so.
    """

    def __bool__(self) -> bool:
        return self._program.request("special", self._reference, name="bool") is True

    def __hash__(self) -> int:
        return int(self._program.request("special", self._reference, name="hash"))

    def __contains__(self, item: Any) -> bool:
        return any(own == item for own in self)

    def __delitem__(self, key: Any) -> None:
        self._program.request("operate", self._reference, (self, key), name="delitem")

    def __enter__(self) -> Any:
        return self._program.request("special", self._reference, name="__enter__")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> bool:
        raised = [] if kind is None else [kind.__name__, str(error)]
        return self._program.request("exit", self._reference, tuple(raised)) is True


def _computing(name: str, reflected: bool = False) -> Any:
    def compute(self: Instance, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        value = self._program.request("operate", self._reference, operands, name=name)
        if not isinstance(value, Remote):
            raise TypeError(f"{name} of the program's objects gave a plain value; compare plain values")
        return value

    return compute


def _ordering(name: str) -> Any:
    def order(self: Instance, other: Any) -> bool:
        if not isinstance(other, Instance):
            raise TypeError("an object of the program is not ordered against a plain value")
        return self._program.request("operate", self._reference, (self, other), name=name) is True

    return order


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
for _name in ("lt", "le", "gt", "ge"):
    setattr(Instance, f"__{_name}__", _ordering(_name))
for _name in ("neg", "pos", "abs", "invert", *_BINARY):
    setattr(Instance, f"__{_name.strip('_')}__", _computing(_name))
for _name in _BINARY:
    setattr(Instance, f"__r{_name.strip('_')}__", _computing(_name, reflected=True))


def _module(name: str) -> Any:
    """A module that the program imported, as our own import; None for what is not of the standard library."""
    return importlib.import_module(name) if name.partition(".")[0] in sys.stdlib_module_names else None


def _remote_class(program: Program, name: str) -> type:
    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return program.request("call", name, args, kwargs)

        def __getattr__(cls, attribute: str) -> Any:
            if attribute.startswith("_"):
                raise AttributeError(attribute)
            return _ClassMember(program, name, attribute)

    return Meta(name, (Instance,), {"_class_name": name})


class _ClassMember:
    """A static or class method of a class of the program."""

    def __init__(self, program: Program, owner: str, name: str) -> None:
        self._program, self._owner, self._name = program, owner, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        member = self._program.request("get", self._owner, name=self._name)
        return member(*args, **kwargs)


def _restore(old: Any, new: Any) -> None:
    """Make the argument ``old`` what the program made of its copy, in place."""
    if isinstance(old, (list, bytearray)) and type(new) is type(old):
        if isinstance(old, list) and len(old) == len(new):
            for place, item in enumerate(new):
                if type(old[place]) in (list, dict, set, bytearray) and type(item) is type(old[place]):
                    _restore(old[place], item)
                else:
                    old[place] = item
        else:
            old[:] = new
    elif isinstance(old, dict) and isinstance(new, dict):
        kept = {key: value for key, value in old.items() if key in new}
        old.clear()
        for key, item in new.items():
            if key in kept and type(kept[key]) in (list, dict, set, bytearray) and type(item) is type(kept[key]):
                _restore(kept[key], item)
                old[key] = kept[key]
            else:
                old[key] = item
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)


# -- the tests


class BrokenTests(Exception):
    """The test source itself cannot be used: nobody's answer is to blame."""


def drive(job: Job) -> None:
    """Run each case and write one JSON line for it to RESULT: ``{"passed": bool, "error": str}``."""
    try:
        setup = ast.parse(job["setup"] or "")
        cases = [ast.parse(source) for source in job["cases"]]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        _say({"broken": f"the test source is not Python: {error}"})
        return
    program = Program()
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    gone = ""
    try:
        _prepare(space, setup, cases, program, job["entry_point"])
    except ProgramGone as error:
        gone = str(error)
    for tree in cases:
        error = gone
        if not gone:
            try:
                _run_case(space, tree, job["entry_point"])
            except ProgramGone as reason:
                gone = error = str(reason)
            except BaseException as reason:
                error = _describe(reason)
        _say({"passed": not error, "error": error})


def _prepare(space: dict[str, Any], setup: ast.Module, cases: list[ast.Module], program: Program, entry: str) -> None:
    exec(compile(_definitions(setup, entry), "<setup>", "exec"), space)  # noqa: S102
    wanted = sorted({*_free_names(cases), entry} - set(space) - {""})
    proxies = program.names([name for name in wanted if name == entry or not hasattr(builtins, name)])
    space.update(proxies)
    solution = types.ModuleType("solution")  # `from solution import f` means the program
    solution.__dict__.update(proxies)
    sys.modules["solution"] = solution


def _run_case(space: dict[str, Any], tree: ast.Module, entry: str) -> None:
    defines_check = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    calls_check = any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "check"
        for node in tree.body
    )
    exec(compile(tree, "<test>", "exec"), space)  # noqa: S102
    if defines_check and not calls_check:
        if entry not in space:
            raise NameError(f"the program defines no {entry!r}")
        space["check"](space[entry])


def _definitions(setup: ast.Module, entry: str) -> ast.Module:
    """What the given prefix itself defines: no unfinished function, which the program completes, and nothing that
    the program is asked for."""
    kept = [node for node in setup.body if getattr(node, "name", None) != entry and not _unfinished(node)]
    return ast.Module(body=kept, type_ignores=[])


def _unfinished(node: ast.stmt) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return all(
        isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )


def _free_names(trees: list[ast.Module]) -> set[str]:
    """Every name that the tests read, and what they import from ``solution``."""
    names = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.ImportFrom) and node.module == "solution":
                names.update(alias.name for alias in node.names)
    return names


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300].rstrip(": ")


def _say(line: Any) -> None:
    write_all(RESULT, plain.dumps(line) + b"\n")


def finish() -> None:
    os._exit(0)
