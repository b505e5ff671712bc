"""``pickle`` for tests: it loads only bytes that it has dumped itself. The program pickles its own objects.

Bytes that the program returns could run code when they are loaded, so the strict run refuses them.
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
    """The replacement of ``pickle`` in the driver.

    ``dumped`` are the byte strings that the tests have dumped. ``objects`` are copies of the program's objects. The
    byte strings contain only the indices of these copies.
    """

    def __init__(self) -> None:
        self.dumped: set[bytes] = set()
        self.objects: list[Remote] = []

    def dumps(self, value: object, protocol: int | None = None, **settings: Value) -> bytes:
        """Return ``value`` as bytes.

        An object of the program is copied in the program. The bytes contain the number of the copy.
        """
        stream = io.BytesIO()
        pickler = _Pickler(stream, protocol)
        pickler.owner = self
        pickler.dump(value)
        self.dumped.add(stream.getvalue())
        return stream.getvalue()

    def loads(self, data: bytes, **settings: Value) -> Value:
        """Return the value of ``data``. Raises ``Refused`` if ``dumps`` has not returned these bytes."""
        if bytes(data) not in self.dumped:
            raise Refused("the strict run unpickles only what the tests have pickled")
        unpickler = _Unpickler(io.BytesIO(data))
        unpickler.owner = self
        return unpickler.load()

    def dump(self, value: object, file: Value, protocol: int | None = None, **settings: Value) -> None:
        """Write ``value`` to the open file ``file``, as ``pickle.dump`` does."""
        file.write(self.dumps(value, protocol))

    def load(self, file: Value, **settings: Value) -> Value:
        """Return the value in the open file ``file``. Raises ``Refused`` if ``dump`` has not written it."""
        return self.loads(file.read())


def _copied(value: Remote) -> Remote:
    return value._program.request("copy", value._reference, name="pickle")


class _Pickler(pickle.Pickler):
    owner: _Pickles

    def persistent_id(self, value: Value) -> int | None:
        """Return the number of the copy of an object of the program; None for any other object."""
        if not isinstance(value, Remote):
            return None
        self.owner.objects.append(_copied(value))
        return len(self.owner.objects) - 1


class _Unpickler(pickle.Unpickler):
    owner: _Pickles

    def persistent_load(self, number: Value) -> Remote:
        """Return a new copy of the program's object with this number."""
        return _copied(self.owner.objects[number])


def install() -> None:
    """Replace the module ``pickle`` of the driver, so that tests which import it use these functions."""
    made, pickles = ModuleType("pickle"), _Pickles()
    for name in ("HIGHEST_PROTOCOL", "DEFAULT_PROTOCOL", "PickleError", "PicklingError", "UnpicklingError"):
        setattr(made, name, getattr(_REAL, name))
    for name in ("dumps", "loads", "dump", "load"):
        setattr(made, name, getattr(pickles, name))
    sys.modules["pickle"] = made
