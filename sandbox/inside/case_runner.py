"""Runs the test source in the driver's process: first the setup, then one case after another.

``driver`` uses this module. The tests may use names that only the program defines. Each such name becomes a proxy.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

from bestofn.sandbox.inside import folders, library_names, names, pytest_style
from bestofn.sandbox.inside.driver_values import FROM_PROGRAM_NOTE
from bestofn.sandbox.inside.program_client import ProgramClient
from bestofn.sandbox.inside.refusals import ProgramGone, StrictRunEnded

_HOOKS = frozenset({"setUpModule", "tearDownModule"})  # names for which ``unittest`` asks each module
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Namespace = dict[str, Any]
"""The global variables of the tests, by name."""


class TestedProgram(Protocol):
    """The program that the tests use: a connection to its process, or the program itself in this process."""

    used: bool  # whether the tests have used the program

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """Return one object per name in ``wanted``. Names that the program does not define are left out."""
        ...


class BrokenTests(Exception):
    """The tests themselves are faulty or cannot be run here, so no verdict is possible."""


class CaseRunner:
    """Runs the tests of one request. Call ``prepare`` once, then ``run`` for each case.

    ``entry_point`` is the name of the function under test; "" if it is not known.
    """

    def __init__(self, setup: ast.Module, cases: list[ast.Module], program: TestedProgram, entry_point: str) -> None:
        self.setup = _without_stubs(setup, entry_point)
        self.cases = cases
        self.program = program
        self.entry_point = entry_point
        self.namespace: Namespace = {"__name__": "__main__", "__builtins__": builtins}
        self.fixtures = pytest_style.Fixtures(self.namespace)

    def prepare(self) -> None:
        """Run the setup, and create proxies for the program's names that the setup and the cases use.

        If the setup fails and does not use the program, ``BrokenTests`` is raised. If the setup uses the program, the
        program may have caused the failure, so ``ProgramGone`` is raised instead.
        """
        bound = names.bound([self.setup]) | names.bound_by_imports(self.cases)
        setup_needs_program = bool(names.read([self.setup], executed=True) - bound - names.of_builtins())
        if not setup_needs_program:
            self._run_setup()
        proxies = self._proxies(bound)
        solution = _Solution(self.program)  # `from solution import f` and `solution.f` read from the program
        solution.__dict__.update(proxies)
        sys.modules["solution"] = sys.modules["__main__"] = solution
        self.namespace.update({name: proxy for name, proxy in proxies.items() if name not in self.namespace})
        if setup_needs_program:
            try:
                self._run_setup()
            except BrokenTests as error:  # the program may have caused it
                raise ProgramGone(str(error)) from None
        if self.entry_point in proxies:
            self.namespace[self.entry_point] = proxies[self.entry_point]  # undo a star import of the setup
        # The setup's uses of the program are not tests, so ``used`` is reset here.
        self.program.used = bool(set(proxies) & names.read(self.cases, executed=True))

    def run(self, case: ast.Module) -> None:
        """Run one case, then call the tests that it defines: ``check``, test functions and test classes.

        A test that the case calls itself is not called again. Raises any error that a failing test raises.
        """
        if "pytest" in names.imported(case):
            pytest_style.prepare()
        if "tempfile" in names.imported(case):
            folders.open_to_all()
        if "unittest" in names.imported(case):
            import unittest

            unittest.main = lambda *args, **kwargs: None  # type: ignore[misc, assignment]
        try:
            exec(compile(case, "<test>", "exec"), self.namespace)  # noqa: S102
        except SystemExit as end:
            if end.code or not _exits(case) or FROM_PROGRAM_NOTE in getattr(end, "__notes__", ()):
                raise
        called = names.called([case], executed=True)
        defined = {node.name: self.namespace[node.name] for node in case.body if isinstance(node, _NAMED)}
        self._run_hooks(defined, "setup_module", "setUpModule")
        for node in case.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name not in called:
                self._run_function(node)
            elif isinstance(node, ast.ClassDef) and node.name not in called:
                self._run_class(defined[node.name])
        self.fixtures.close()
        self._run_hooks(defined, "teardown_module", "tearDownModule")

    def _run_hooks(self, defined: Namespace, name: str, of_unittest: str) -> None:
        """Call the function ``name`` of a case, if the case defines it, for example ``setup_module``.

        ``of_unittest`` is the name of the same function in ``unittest``, for example ``setUpModule``.
        """
        module = sys.modules.get("__main__")
        pytest_style.run_hook(defined.get(name), module)
        if isinstance(module, _Solution):  # otherwise ``unittest`` calls it
            pytest_style.run_hook(defined.get(of_unittest), module)

    def _run_setup(self) -> None:
        if "pytest" in names.imported(self.setup):
            pytest_style.prepare()
        try:
            exec(compile(self.setup, "<setup>", "exec"), self.namespace)  # noqa: S102
        except StrictRunEnded:
            raise
        except BaseException as error:  # also SystemExit: without a setup there is no verdict
            raise BrokenTests(f"the setup of the tests fails: {describe_error(error)}") from None

    def _proxies(self, bound: set[str]) -> dict[str, Any]:
        """Return a proxy for each name of the program that the setup or a case uses.

        A name in ``bound`` gets no proxy, because the setup or an import defines this name.
        """
        wanted = names.read([self.setup, *self.cases]) - bound - {"*"}
        open_names = {name for name in wanted if not hasattr(builtins, name)} - {self.entry_point}
        libraries = self._libraries(open_names)
        proxies = self.program.names(sorted((open_names - set(libraries)) | ({self.entry_point} - {""})))
        proxies = self._without_members(proxies)
        self.namespace.update({name: value for name, value in libraries.items() if name not in self.namespace})
        if not self.entry_point and not names.called(self.cases) - names.of_builtins():
            proxies |= self._function_named_like_a_builtin()
        return proxies

    def _libraries(self, open_names: set[str]) -> dict[str, Any]:
        """Return the library modules and assertions that the tests use without an import, by name."""
        trees = [self.setup, *self.cases]
        try:
            modules = library_names.modules_in(trees, open_names)
            assertions = library_names.assertions_in(open_names - modules - names.bound(self.cases))
            return {name: library_names.load_module(name) for name in modules} | assertions
        except library_names.UnknownLibrary as error:
            raise BrokenTests(str(error)) from None

    def _without_members(self, proxies: dict[str, Any]) -> dict[str, Any]:
        """Return ``proxies`` without names that mean the library's object in the tests, such as ``Counter``.

        The library's object is put into the namespace. Raises ``ProgramGone`` if the program also defines
        such a name, and it is unclear which of the two objects the tests mean.
        """
        bound = names.bound([self.setup]) | names.bound_by_imports(self.cases)
        used = names.read([self.setup, *self.cases]) - bound
        members = library_names.members_in([self.setup, *self.cases], used) - {self.entry_point}
        about_others = bool(set(proxies) - members)
        kept = dict(proxies)
        for name in members:
            if name in proxies and not about_others:
                continue
            is_strict = isinstance(self.program, ProgramClient)
            of_program = not is_strict or library_names.is_of_program([self.setup, *self.cases], name)
            if name in proxies and of_program:
                continue
            if name in proxies and library_names.has_other_kind(proxies[name], name):
                continue
            if name in proxies and not library_names.is_member(proxies[name], name):
                raise ProgramGone(
                    f"the program defines {name!r}, but the tests may mean the library's object with the same name"
                )
            kept.pop(name, None)
            self.namespace.setdefault(name, library_names.load_member(name))
        return kept

    def _function_named_like_a_builtin(self) -> dict[str, Any]:
        """Return a proxy for the tested function if it has the name of a builtin, for example ``def sum(a, b)``.

        Exactly one such function must be called by every case; otherwise the result is {}. Without this rule, a
        function of the program could replace a builtin that the tests need, such as ``set``.
        """
        everywhere = set.intersection(*(names.called([case]) for case in self.cases)) if self.cases else set()
        proxies = self.program.names(sorted(everywhere & names.of_builtins()))
        return proxies if len(proxies) == 1 else {}

    def _run_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Call a function of the case if it is a test: its name is ``check`` or starts with ``test``."""
        function, is_test = self.namespace[node.name], node.name.startswith("test")
        one_argument = is_test and _required_arguments(node) == 1 and not _uses_pytest(function)
        if node.name == "check" or (one_argument and self.entry_point):
            if self.entry_point not in self.namespace:
                raise NameError(f"the program defines no {self.entry_point!r}")
            _finish(function(self.namespace[self.entry_point]))
        elif is_test and not isinstance(function, pytest_style.Fixture):
            pytest_style.run_hook(self.namespace.get("setup_function"), function)
            self._run_test(function)
            pytest_style.run_hook(self.namespace.get("teardown_function"), function)

    def _run_test(self, function: Callable[..., Any], instance: object = None) -> None:
        try:
            self.fixtures.run(function, _finish, instance)
        except pytest_style.UnknownFixture as error:
            raise BrokenTests(str(error)) from None
        except BaseException as error:
            if not pytest_style.is_skip(error) or FROM_PROGRAM_NOTE in getattr(error, "__notes__", ()):
                raise
            self._allow_skip()

    def _allow_skip(self) -> None:
        """Raise ``AssertionError`` if the program lacks a name that the tests have asked for.

        A test that skips itself because of the missing name must not count as passed.
        """
        if getattr(sys.modules.get("solution"), "__dict__", {}).get("_lacks"):
            raise AssertionError("a test is skipped, and the program does not define a name that the tests ask for")

    def _run_class(self, kind: type) -> None:
        """Run the tests of a ``unittest.TestCase``, or of a class whose name starts with ``Test``, as pytest does."""
        unittest = sys.modules.get("unittest")
        if unittest is not None and issubclass(kind, unittest.TestCase):
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
            for _, trace in [*result.failures, *result.errors]:
                raise AssertionError(trace.strip().rpartition("\n")[2])
            if result.unexpectedSuccesses:
                raise AssertionError("a test passes, but it is expected to fail")
            if result.skipped:
                self._allow_skip()
        elif kind.__name__.startswith("Test"):
            pytest_style.run_hook(getattr(kind, "setup_class", None), kind)
            for name in [name for name in dir(kind) if name.startswith("test")]:
                case: Any = kind()
                test = getattr(case, name)
                pytest_style.run_hook(getattr(case, "setup_method", None), test)
                self._run_test(test, case)
                pytest_style.run_hook(getattr(case, "teardown_method", None), test)
            pytest_style.run_hook(getattr(kind, "teardown_class", None), kind)


class _Solution(types.ModuleType):
    """The module ``solution``, from which tests import names of the program."""

    def __init__(self, program: TestedProgram) -> None:
        super().__init__("solution")
        self.__dict__.update(_program=program, _before={}, _lacks=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._program.names([name])
        if name not in found:
            self.__dict__["_lacks"] |= name not in _HOOKS
            raise AttributeError(f"module 'solution' has no attribute {name!r}")
        return found[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__") or not isinstance(self._program, ProgramClient):
            super().__setattr__(name, value)
            return
        before = self._before.setdefault(name, self.__dict__.get(name, self))
        self._program.set_name(name, *(() if value is before else (value,)))
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        self._program.set_name(name)
        self.__dict__.pop(name, None)


def raise_if_module_is_missing(error: BaseException) -> None:
    """Raise ``BrokenTests`` if ``error`` means that the tests import a module that the sandbox does not have.

    An import error that the program raised does not count.
    """
    if (
        isinstance(error, ImportError)
        and FROM_PROGRAM_NOTE not in getattr(error, "__notes__", ())
        and error.name != "solution"
    ):
        raise BrokenTests(f"the tests need a module that the sandbox does not have: {error}") from None


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an error, at most 300 characters.

    An error without a message is described by the line of the test that raised it.
    """
    line, trace = 0, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == "<test>" else line
        trace = trace.tb_next
    place = f"in line {line} of the test" if line and not str(error) else ""
    return f"{type(error).__name__}: {error}{place}"[:300].rstrip(": ")


def _uses_pytest(function: object) -> bool:
    return (
        hasattr(function, "pytestmark") or hasattr(function, "patchings") or isinstance(function, pytest_style.Fixture)
    )


def _exits(case: ast.Module) -> bool:
    """Return True if the case contains a name that ends the process, such as ``exit`` or ``unittest.main``."""
    return any(name in ("exit", "_exit", "quit", "SystemExit", "main") for name in names.mentioned(case))


def _finish(value: object) -> None:
    """If ``value`` is the coroutine of an asynchronous test, run it to its end."""
    if isinstance(value, types.CoroutineType):
        import asyncio  # imported here, because it is large and few tests need it

        asyncio.run(value)


def _required_arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = node.args
    needed = sum(default is None for default in given.kw_defaults)
    return len(given.posonlyargs) + len(given.args) - len(given.defaults) + needed


def _without_stubs(setup: ast.Module, entry_point: str) -> ast.Module:
    """Return the setup without the entry point and without stubs. The program must define these functions."""
    kept = [node for node in setup.body if getattr(node, "name", None) != entry_point and not _is_stub(node)]
    return ast.Module(body=kept, type_ignores=[])


def _is_stub(node: ast.stmt) -> bool:
    """Return True if ``node`` is a function whose body is only ``pass``, ``...`` or a docstring."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return all(
        isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )
