"""``pickle`` for tests: it loads only what it has dumped itself. Objects of the program are pickled in the program.

Data that the program returns could run code when it is loaded, so the strict run refuses it.
"""

from __future__ import annotations

import io
import pickle
import sys
from types import ModuleType

from bestofn.sandbox.inside.plain import Value
from bestofn.sandbox.inside.proxies import Remote
from bestofn.sandbox.inside.refusals import Refused

_REAL = pickle


class _Pickles:
    """The data that the tests have dumped, and the program's objects in it, by number."""

    def __init__(self) -> None:
        self.dumped: set[bytes] = set()
        self.objects: list[Remote] = []

    def dumps(self, value: object, protocol: int | None = None, **settings: Value) -> bytes:
        """Return ``value`` as bytes. An object of the program becomes the number of its copy."""
        stream = io.BytesIO()
        pickler = _Pickler(stream, protocol)
        pickler.owner = self
        pickler.dump(value)
        self.dumped.add(stream.getvalue())
        return stream.getvalue()

    def loads(self, data: bytes, **settings: Value) -> Value:
        """Return the value of bytes that ``dumps`` has returned. Raises ``Refused`` for other bytes."""
        if bytes(data) not in self.dumped:
            raise Refused("the strict run unpickles only what the tests have pickled")
        unpickler = _Unpickler(io.BytesIO(data))
        unpickler.owner = self
        return unpickler.load()

    def dump(self, value: object, file: Value, protocol: int | None = None, **settings: Value) -> None:
        """Write ``value`` to a file."""
        file.write(self.dumps(value, protocol))

    def load(self, file: Value, **settings: Value) -> Value:
        """Read a value from a file."""
        return self.loads(file.read())


def _copied(value: Remote) -> Remote:
    return value._program.request("copy", value._reference, name="pickle")


class _Pickler(pickle.Pickler):
    owner: _Pickles

    def persistent_id(self, value: Value) -> int | None:
        """Return the number of an object of the program; None for other objects."""
        if not isinstance(value, Remote):
            return None
        self.owner.objects.append(_copied(value))
        return len(self.owner.objects) - 1


class _Unpickler(pickle.Unpickler):
    owner: _Pickles

    def persistent_load(self, number: Value) -> Remote:
        """Return a copy of an object of the program."""
        return _copied(self.owner.objects[number])


def install() -> None:
    """Make ``import pickle`` of the tests return a module with these functions."""
    made, pickles = ModuleType("pickle"), _Pickles()
    for name in ("HIGHEST_PROTOCOL", "DEFAULT_PROTOCOL", "PickleError", "PicklingError", "UnpicklingError"):
        setattr(made, name, getattr(_REAL, name))
    for name in ("dumps", "loads", "dump", "load"):
        setattr(made, name, getattr(pickles, name))
    sys.modules["pickle"] = made
