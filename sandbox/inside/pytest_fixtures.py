"""The fixtures of pytest that tests can use without defining them, such as ``capsys`` and ``monkeypatch``.

``pytest_style`` uses this module. A fixture whose member is missing here makes the tests unusable: the program does not
fail.
"""

from __future__ import annotations

import contextlib
import io
import sys
import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import pathlib

Value = Any
"""A fixture or parameter of the tests, of any type."""

_Captured = namedtuple("_Captured", "out err")


class UnknownFixture(Exception):
    """A test needs a fixture, or a member of a fixture, that neither the tests nor this module define."""


class _Stand:
    """Replaces a fixture of pytest. It has only the usual members of this fixture."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "param":  # tests ask with ``getattr(request, "param", default)``
            raise AttributeError(name)
        fixture = type(self).__name__.lower().strip("_")
        raise UnknownFixture(f"the tests use {name!r} of the fixture {fixture!r}, which the sandbox does not have")


class _Capsys(_Stand):
    """The value of the fixture ``capsys``."""

    def __init__(self) -> None:
        self.streams = io.StringIO(), io.StringIO()
        self.before = sys.stdout, sys.stderr

    def readouterr(self) -> _Captured:
        """Return the text that was printed since the last call: standard output and standard error."""
        texts = [stream.getvalue() for stream in self.streams]
        for stream in self.streams:
            stream.seek(0)
            stream.truncate()
        return _Captured(*texts)

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """Inside the block, print to the former streams."""
        captured = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self.before
        try:
            yield
        finally:
            sys.stdout, sys.stderr = captured


class Request(_Stand):
    """The value of the fixture ``request``.

    ``value`` returns a fixture by name. ``param`` contains the parameter of a fixture, or is empty.
    """

    def __init__(
        self,
        end: contextlib.ExitStack,
        value: Callable[[str], Value],
        param: list[object],
        test: Callable[..., Value],
        instance: object,
    ) -> None:
        self.addfinalizer = end.callback
        self.getfixturevalue = value
        self.function, self.instance, self.cls = test, instance, None if instance is None else type(instance)
        self.node = _Node(test)
        if param:
            self.param = param[0]


class _Node(_Stand):
    """The value of ``request.node``."""

    def __init__(self, test: Callable[..., Value]) -> None:
        self.name = self.originalname = test.__name__


@contextlib.contextmanager
def _capsys() -> Iterator[_Capsys]:
    capture = _Capsys()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = capture.streams
    try:
        yield capture
    finally:
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def _caplog() -> Iterator[Value]:
    import pytest
    from _pytest.logging import LogCaptureFixture, LogCaptureHandler, caplog_handler_key, catching_logs

    item = types.SimpleNamespace(stash=pytest.Stash())
    with catching_logs(LogCaptureHandler(), level=0) as handler:
        item.stash[caplog_handler_key] = handler
        yield LogCaptureFixture(item, _ispytest=True)  # type: ignore[arg-type]


_OF_MOCK = (
    "Mock",
    "MagicMock",
    "NonCallableMock",
    "AsyncMock",
    "PropertyMock",
    "ANY",
    "DEFAULT",
    "call",
    "sentinel",
    "mock_open",
    "create_autospec",
    "seal",
)


class _Mocker(_Stand):
    """The value of the fixture ``mocker`` of the package pytest-mock."""

    def __init__(self, end: contextlib.ExitStack) -> None:
        from unittest import mock

        self.end, self.mock = end, mock
        self.started: list[Value] = []
        for name in _OF_MOCK:
            setattr(self, name, getattr(mock, name))
        self.patch = self._starting(mock.patch)
        for name in ("object", "dict", "multiple"):
            setattr(self.patch, name, self._starting(getattr(mock.patch, name)))

    def _starting(self, patch: Value) -> Value:
        def start(*args: Value, **kwargs: Value) -> Value:
            made = self.end.enter_context(patch(*args, **kwargs))
            self.started.append(made)
            return made

        return start

    def spy(self, owner: Value, name: str) -> Value:
        """Replace a function by a mock that calls the function and records the calls. Return the mock."""
        function = getattr(owner, name)

        def call(*args: Value, **kwargs: Value) -> Value:
            made.spy_return = made.spy_exception = None
            try:
                made.spy_return = function(*args, **kwargs)
            except BaseException as error:
                made.spy_exception = error
                raise
            return made.spy_return

        made = self.patch.object(owner, name, side_effect=call)  # type: ignore[attr-defined]
        made.spy_return = made.spy_exception = None
        return made

    def resetall(self) -> None:
        """Forget the calls of all mocks that were started."""
        for made in self.started:
            if isinstance(made, self.mock.NonCallableMock):
                made.reset_mock()

    def stopall(self) -> None:
        """Restore everything that was replaced."""
        self.end.close()

    def stub(self, name: str | None = None) -> Value:
        """Return a mock that accepts any arguments and records its calls."""
        return self.mock.MagicMock(spec=lambda *args, **kwargs: None, name=name)


@contextlib.contextmanager
def _mocker() -> Iterator[_Mocker]:
    with contextlib.ExitStack() as end:
        yield _Mocker(end)


@contextlib.contextmanager
def _monkeypatch() -> Iterator[Value]:
    import pytest

    patch = pytest.MonkeyPatch()
    try:
        yield patch
    finally:
        patch.undo()


def _new_folder(prefix: str | None = None) -> pathlib.Path:
    """Return a new temporary folder that the program can use too."""
    import pathlib  # imported here, because every child would copy the memory of these modules
    import tempfile

    return pathlib.Path(tempfile.mkdtemp(prefix=prefix))


@contextlib.contextmanager
def _tmp_path() -> Iterator[pathlib.Path]:
    yield _new_folder()


class _Folders:
    """The value of the fixture ``tmp_path_factory``."""

    def mktemp(self, name: str, numbered: bool = True) -> pathlib.Path:
        """Create a temporary folder that the program may use, and return its path."""
        return _new_folder(name)


@contextlib.contextmanager
def _tmpdir() -> Iterator[Value]:
    from _pytest.compat import legacy_path

    with _tmp_path() as path:
        yield legacy_path(path)


BUILTIN: dict[str, Callable[[], contextlib.AbstractContextManager[Value]]] = {
    "caplog": _caplog,
    "capfd": _capsys,
    "capsys": _capsys,
    "mocker": _mocker,
    "monkeypatch": _monkeypatch,
    "tmp_path": _tmp_path,
    "tmp_path_factory": lambda: contextlib.nullcontext(_Folders()),
    "tmpdir": _tmpdir,
}
