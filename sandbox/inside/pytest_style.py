"""Fixtures and parameters of pytest, for tests that ``case_runner`` calls.

pytest itself would import the tests from files. Here the tests are already loaded. Therefore this module only reads the
marks that pytest has put on the functions, and passes fixtures as arguments.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
from collections.abc import Callable

from bestofn.sandbox.inside.pytest_fixtures import BUILTIN, Request, UnknownFixture, Value


class Fixture:
    """A function that the tests have decorated with ``pytest.fixture``. ``settings`` are the decorator's arguments."""

    def __init__(self, function: Callable[..., Value], settings: dict[str, Value]) -> None:
        self.function, self.settings = function, settings
        self.name = settings.get("name") or function.__name__

    def __get__(self, instance: object, owner: type) -> Value:
        return self if instance is None else Fixture(self.function.__get__(instance, owner), self.settings)


def _fixture(function: Callable[..., Value] | None = None, **settings: Value) -> Value:
    """Return a ``Fixture``, or a decorator that makes one. Replaces ``pytest.fixture``."""
    return (lambda one: Fixture(one, settings)) if function is None else Fixture(function, settings)


def prepare() -> None:
    """Replace ``pytest.fixture``, so that it returns a ``Fixture``. Does nothing if pytest is not installed."""
    with contextlib.suppress(ImportError):
        import pytest

        pytest.fixture = _fixture  # type: ignore[assignment]


def run_hook(hook: Callable[..., Value] | None, argument: object) -> None:
    """Call a setup or teardown function as pytest does: with ``argument`` if it has a parameter.

    Does nothing if ``hook`` is None.
    """
    if hook is not None:
        hook(*([argument] if inspect.signature(hook).parameters else []))


def is_skip(error: BaseException) -> bool:
    """Return True if ``error`` is the exception that ``pytest.skip`` raises."""
    outcomes: Value = sys.modules.get("_pytest.outcomes")
    return outcomes is not None and type(error) is outcomes.Skipped


class Fixtures:
    """Creates the fixtures that the tests of one request need, and finishes them."""

    def __init__(self, namespace: dict[str, Value]) -> None:
        self.namespace = namespace
        self.shared: dict[str, Value] = {}  # fixtures whose scope is wider than one function
        self.shared_end = contextlib.ExitStack()
        self.loop: Value = None  # of asynchronous fixtures, and of the tests that use them

    def awaited(self, value: Value, end: contextlib.ExitStack) -> Value:
        """Return ``value``, or the result of an asynchronous fixture.

        If the fixture is an asynchronous generator, ``end`` finishes the generator later.
        """
        is_generator = inspect.isasyncgen(value)
        if not is_generator and not inspect.iscoroutine(value):
            return value
        import asyncio

        self.loop = self.loop or asyncio.new_event_loop()
        if not is_generator:
            return self.loop.run_until_complete(value)
        items = value

        async def last() -> None:
            async for _ in items:
                pass

        end.callback(lambda: self.loop.run_until_complete(last()))
        return self.loop.run_until_complete(anext(items))

    def close(self) -> None:
        """Finish the fixtures whose scope is wider than one function, such as ``module``."""
        self.shared.clear()
        self.shared_end.close()

    def run(self, test: Callable[..., Value], finish: Callable[[object], None], instance: Value = None) -> None:
        """Call ``test`` once per combination of its parameters. Each return value is passed to ``finish``.

        Raises ``UnknownFixture`` if a fixture is missing. ``instance`` is the object of a test method.
        """
        known = {**self.namespace, **{name: getattr(instance, name) for name in _members(instance)}}
        found = {one.name: one for one in known.values() if isinstance(one, Fixture)}
        marks = [mark for mark in _marks(test, instance) if mark.name == "parametrize"]
        arguments = _parameters(test)
        automatic = [name for name, one in found.items() if one.settings.get("autouse")]
        used = [name for mark in _marks(test, instance) if mark.name == "usefixtures" for name in mark.args]
        automatic = list(dict.fromkeys([*automatic, *used]))
        wanted = [*automatic, *(one.name for one in arguments if _is_needed(one))]
        with_params = [name for name in _closure(wanted, found) if "params" in found[name].settings]
        choices = [[(name, param) for param in found[name].settings["params"]] for name in with_params]
        if any(_is_left_out(mark) for mark in _marks(test, instance)):
            return
        for values in itertools.product(*map(_rows, marks)):
            given = {key: value for row in values for key, value in row.items()}
            passed_on = {key: given.pop(key) for key in _indirect(marks) if key in given}
            for chosen in itertools.product(*choices):
                made = _Made(self, found, {**dict(chosen), **passed_on}, given, test, instance)
                with made.end:
                    for name in automatic:
                        made.value(name)
                    names = [
                        name for name in wanted if name not in automatic or name in [one.name for one in arguments]
                    ]
                    value = test(**{name: made.value(name) for name in names})
                    if self.loop is None:
                        finish(value)
                    else:
                        self.awaited(value, made.end)


class _Made:
    """The fixtures of one call of ``test``.

    ``chosen`` maps the names of fixtures to their parameters. ``given`` maps the names of the test's parameters to
    values. ``instance`` is the object of a test method.
    """

    def __init__(
        self,
        fixtures: Fixtures,
        found: dict[str, Fixture],
        chosen: dict[str, Value],
        given: dict[str, Value],
        test: Callable[..., Value],
        instance: Value,
    ) -> None:
        self.test, self.instance = test, instance
        self.fixtures, self.found, self.chosen, self.given = fixtures, found, chosen, given
        self.values: dict[str, Value] = {}
        self.end = contextlib.ExitStack()

    def value(self, name: str) -> Value:
        """Return the parameter or the fixture ``name``. A fixture is created when it is first needed."""
        if name in self.given:
            return self.given[name]
        shared = name in self.found and self.found[name].settings.get("scope", "function") != "function"
        values = self.fixtures.shared if shared and name not in self.chosen else self.values
        if name not in values:
            end = self.end if values is self.values else self.fixtures.shared_end
            values[name] = self._create(name, end)
        return values[name]

    def _request(self, end: contextlib.ExitStack, param: list[object]) -> Request:
        return Request(end, self.value, param, self.test, self.instance)

    def _create(self, name: str, end: contextlib.ExitStack) -> Value:
        if name == "request":
            return self._request(end, [])
        if name not in self.found:
            if name not in BUILTIN:
                raise UnknownFixture(f"the tests need the fixture {name!r}, which the sandbox does not have")
            return end.enter_context(BUILTIN[name]())
        request = self._request(end, [self.chosen[name]] if name in self.chosen else [])
        function = self.found[name].function
        needed = [one.name for one in inspect.signature(function).parameters.values() if _is_needed(one)]
        value = function(**{one: request if one == "request" else self.value(one) for one in needed})
        if inspect.isgenerator(value):
            items = value
            end.callback(lambda: next(items, None))
            return next(items)
        return self.fixtures.awaited(value, end)


def _members(instance: object) -> list[str]:
    return [] if instance is None else [name for name in dir(type(instance)) if not name.startswith("__")]


def _marks(test: Value, instance: object) -> list[Value]:
    marks = [*getattr(test, "pytestmark", ()), *(getattr(type(instance), "pytestmark", ()) if instance else ())]
    return [mark for mark in marks if hasattr(mark, "name") and hasattr(mark, "args")]


def _parameters(test: Value) -> list[inspect.Parameter]:
    """Return the parameters of a test, without those that decorators of ``mock.patch`` fill."""
    given = [
        one
        for one in getattr(test, "patchings", ())
        if not one.attribute_name and one.new is sys.modules["unittest.mock"].DEFAULT
    ]
    return list(inspect.signature(test).parameters.values())[len(given) :]


def _is_needed(parameter: inspect.Parameter) -> bool:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variable


def _is_left_out(mark: Value) -> bool:
    is_skipped = mark.name == "skipif" and mark.args and not isinstance(mark.args[0], str) and mark.args[0]
    return mark.name in ("skip", "xfail") or bool(is_skipped)


def _indirect(marks: list[Value]) -> list[str]:
    """Return the names of parameters that are passed to fixtures with the same names (``indirect``)."""
    names: list[str] = []
    for mark in marks:
        indirect = mark.kwargs.get("indirect", False)
        listed = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        every = [name.strip() for name in listed.split(",")] if isinstance(listed, str) else list(listed)
        names += every if indirect is True else list(indirect or ())
    return names


def _closure(wanted: list[str], found: dict[str, Fixture]) -> list[str]:
    """Return the fixtures in ``wanted`` and all fixtures that they need, directly or indirectly."""
    names: list[str] = []
    waiting = list(wanted)
    while waiting:
        name = waiting.pop(0)
        if name in found and name not in names:
            names.append(name)
            waiting.extend(inspect.signature(found[name].function).parameters)
    return names


def _rows(mark: Value) -> list[dict[str, Value]]:
    """Return one dictionary of arguments per row of ``pytest.mark.parametrize``, without the rows marked as skipped."""
    names, rows = (*mark.args, *(mark.kwargs[key] for key in ("argnames", "argvalues") if key in mark.kwargs))[:2]
    listed = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    made = []
    for row in rows:
        values = row.values if type(row).__name__ == "ParameterSet" else (row if len(listed) > 1 else (row,))
        if not any(_is_left_out(one) for one in getattr(row, "marks", ())):
            made.append(dict(zip(listed, values, strict=True)))
    return made
