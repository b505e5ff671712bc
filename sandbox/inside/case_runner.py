"""Runs the test source with a loaded program in one process: first the setup, then one case after another.

``same_process`` uses this module. The tests have a namespace of their own. They may use names that only the program
defines; each such name gets the program's object.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Callable
from typing import Any

from bestofn.sandbox.inside import library_names, names, pytest_fixtures, pytest_style
from bestofn.sandbox.inside.program import FILE, find_function

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Namespace = dict[str, Any]
"""The global variables of the tests, by name."""


class BrokenTests(Exception):
    """The tests themselves are faulty or cannot be run here, so no verdict is possible."""


class CaseRunner:
    """Runs the tests of one request. Call ``begin``, load the program, call ``use``, then ``run`` for each case.

    ``entry_point`` is the name of the function under test; "" if it is not known. ``used`` states whether the tests use
    the program. If ``prefers_library``, a name such as ``isclose`` that both a library and the program define means the
    library's object, unless the tests show that they mean the program's.
    """

    def __init__(
        self,
        setup: ast.Module,
        cases: list[ast.Module],
        entry_point: str,
        prefers_library: bool = False,
    ) -> None:
        self.setup = _without_stubs(setup, entry_point)
        self.cases = cases
        self.program = types.ModuleType("solution")
        self.entry_point = entry_point
        self.prefers_library = prefers_library
        self.namespace: Namespace = {"__name__": "__main__", "__builtins__": builtins}
        self.fixtures = pytest_style.Fixtures(self.namespace)
        self.used = False
        self.bound = names.bound([self.setup]) | names.bound_by_imports(cases)
        self.setup_needs_program = bool(names.read([self.setup], executed=True) - self.bound - names.of_builtins())

    def begin(self) -> None:
        """Run the setup if it does not need the program. Raises ``BrokenTests`` if it fails."""
        if self.setup_needs_program:
            return
        try:
            self._run_setup()
        except BaseException as error:  # also SystemExit: without a setup there is no verdict
            raise BrokenTests(f"the setup of the tests fails: {describe_error(error)}") from None

    def use(self, program: types.ModuleType) -> None:
        """Give the tests the program's objects that the setup and the cases use, and run the setup if it needs them."""
        self.program = program
        sys.modules["solution"] = sys.modules["__main__"] = program
        found = self._names_of_program(self.bound)
        self.namespace.update({name: value for name, value in found.items() if name not in self.namespace})
        if self.setup_needs_program:
            self._run_setup()
        if self.entry_point in found:
            self.namespace[self.entry_point] = found[self.entry_point]  # undo a star import of the setup
        of_program = bool(found) or any("solution" in names.imported(tree) for tree in [self.setup, *self.cases])
        self.used = of_program and any(_asks(case, set(found)) for case in self.cases)

    def run(self, case: ast.Module) -> None:
        """Run one case, then call the tests that it defines: ``check``, test functions and test classes.

        A test that the case calls itself is not called again. Raises any error that a failing test raises.
        """
        if "pytest" in names.imported(case):
            pytest_style.prepare()
        if "unittest" in names.imported(case):
            import unittest

            unittest.main = lambda *args, **kwargs: None  # type: ignore[misc, assignment]
        try:
            exec(compile(case, "<test>", "exec"), self.namespace)  # noqa: S102
        except SystemExit as end:
            if end.code or not _exits(case) or is_of_program(end):
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
        pytest_style.run_hook(defined.get(name), self.program)
        pytest_style.run_hook(defined.get(of_unittest), self.program)

    def _run_setup(self) -> None:
        if "pytest" in names.imported(self.setup):
            pytest_style.prepare()
        exec(compile(self.setup, "<setup>", "exec"), self.namespace)  # noqa: S102

    def _names_of_program(self, bound: set[str]) -> dict[str, Any]:
        """Return the program's object for each name that the setup or a case uses.

        A name in ``bound`` is left out, because the setup or an import defines this name.
        """
        wanted = names.read([self.setup, *self.cases]) - bound - {"*"}
        open_names = {name for name in wanted if not hasattr(builtins, name)} - {self.entry_point}
        libraries = self._libraries(open_names)
        found = self._found(sorted((open_names - set(libraries)) | ({self.entry_point} - {""})))
        found = self._without_members(found)
        self.namespace.update({name: value for name, value in libraries.items() if name not in self.namespace})
        if not self.entry_point and not names.called(self.cases) - names.of_builtins():
            found |= self._function_named_like_a_builtin()
        return found

    def _found(self, wanted: list[str]) -> dict[str, Any]:
        """Return the program's object for each name in ``wanted`` that the program defines."""
        found = {}
        for name in wanted:
            try:
                found[name] = find_function(self.program, name)
            except Exception:  # the lookup runs the program's code (``Solution()``), which may raise any error
                continue
        return found

    def _libraries(self, open_names: set[str]) -> dict[str, Any]:
        """Return the library modules and assertions that the tests use without an import, by name."""
        trees = [self.setup, *self.cases]
        try:
            modules = library_names.modules_in(trees, open_names)
            assertions = library_names.assertions_in(open_names - modules - names.bound(self.cases))
            return {name: library_names.load_module(name) for name in modules} | assertions
        except library_names.UnknownLibrary as error:
            raise BrokenTests(str(error)) from None

    def _without_members(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return ``found`` without names that mean the library's object in the tests, such as ``Counter``.

        The library's object is put into the namespace.
        """
        trees = [self.setup, *self.cases]
        bound = names.bound([self.setup]) | names.bound_by_imports(self.cases)
        members = library_names.members_in(trees, names.read(trees) - bound) - {self.entry_point}
        about_others = bool(set(found) - members)
        kept = dict(found)
        for name in members:
            if name in found and (not about_others or not self.prefers_library):
                continue
            if name in found and (
                library_names.is_of_program(trees, name) or library_names.has_other_kind(found[name], name)
            ):
                continue
            kept.pop(name, None)
            self.namespace.setdefault(name, library_names.load_member(name))
        return kept

    def _function_named_like_a_builtin(self) -> dict[str, Any]:
        """Return the tested function if it has the name of a builtin, for example ``def sum(a, b)``.

        Exactly one such function must be called by every case; otherwise the result is {}. Without this rule, a
        function of the program could replace a builtin that the tests need, such as ``set``.
        """
        everywhere = set.intersection(*(names.called([case]) for case in self.cases)) if self.cases else set()
        found = self._found(sorted(everywhere & names.of_builtins() & set(vars(self.program))))
        return found if len(found) == 1 else {}

    def _run_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Call a function of the case if it is a test: its name is ``check`` or starts with ``test``."""
        function, is_test = self.namespace[node.name], node.name.startswith("test")
        given = node.args.args[0].arg if node.args.args else ""
        of_pytest = _uses_pytest(function) or given in pytest_fixtures.BUILTIN
        of_pytest = of_pytest or isinstance(self.namespace.get(given), pytest_style.Fixture)
        one_argument = is_test and _required_arguments(node) == 1 and not of_pytest
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
            if not pytest_style.is_skip(error) or is_of_program(error):
                raise

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
        elif kind.__name__.startswith("Test"):
            pytest_style.run_hook(getattr(kind, "setup_class", None), kind)
            for name in [name for name in dir(kind) if name.startswith("test")]:
                case: Any = kind()
                test = getattr(case, name)
                pytest_style.run_hook(getattr(case, "setup_method", None), test)
                self._run_test(test, case)
                pytest_style.run_hook(getattr(case, "teardown_method", None), test)
            pytest_style.run_hook(getattr(kind, "teardown_class", None), kind)


def is_of_program(error: BaseException) -> bool:
    """Return whether the program raised ``error``, or called what raised it."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            return True
        trace = trace.tb_next
    return False


def raise_if_module_is_missing(error: BaseException) -> None:
    """Raise ``BrokenTests`` if ``error`` means that the tests import a module that the sandbox does not have.

    An import error that the program raised does not count.
    """
    if isinstance(error, ImportError) and not is_of_program(error) and error.name != "solution":
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


def _asks(case: ast.Module, of_program: set[str]) -> bool:
    """Return whether running the case can use the program: in its statements, or in functions that it calls."""
    defined = {node.name for node in case.body if isinstance(node, _NAMED)}
    tests = any(
        isinstance(node, ast.ClassDef) or (isinstance(node, _NAMED) and node.name.startswith(("test", "check")))
        for node in case.body
    )
    return tests or bool(names.read([case], executed=True) & (of_program | defined | {"solution"}))


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
