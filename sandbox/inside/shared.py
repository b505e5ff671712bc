"""Mutable containers that exist in the driver and in the program. Each message carries the changes since the last one.

Both processes use this module. A list that one process sends to the other is copied. This module keeps both copies
equal, so that tests see, for example, that the program changes a list. Only small containers are shared. A container
that one process no longer uses is forgotten in both.
"""

from __future__ import annotations

import collections
import operator
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from bestofn.sandbox.inside import library_values, plain

_MOST_ITEMS = 2000  # of one container
_MOST_ITEMS_TOGETHER = 10_000  # each message compares all of them
_MOST_CONTAINERS = 500
_MOST_DEPTH = 50
_UNUSED = 3  # references to a container that only this module has, during ``sys.getrefcount``

_MAPPINGS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})  # equal forms for the same object, always
KINDS = frozenset({list, set, collections.deque, bytearray, *_MAPPINGS})


class Shared:
    """The shared containers of one process, by number.

    ``first`` is 0 in one process and 1 in the other; the numbers of new containers go up by 2, so they never collide.
    ``trying`` is a context for forms that are only compared and not sent.
    """

    def __init__(
        self,
        first: int,
        encode: Callable[[Any], plain.Form],
        decode: Callable[[plain.Form], Any],
        trying: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.next = first
        self.encode, self.decode = encode, decode
        self.trying = trying  # during this context, forms are only compared, not sent
        self.items: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}  # number by ``id``; the containers are kept, so ids stay unique
        self.sent: dict[int, bytes] = {}  # what the other process knows
        self.parts: dict[int, list[object] | None] = {}  # items at the last comparison, if their identity decides
        self.size = 0  # items of all containers when they were first sent
        self.depth = 0
        self.comparing = False  # whether forms are only compared, not sent

    def form(self, value: Any) -> plain.FormObject | None:
        """Make a container shared and return its form. Return None if ``value`` must be sent by value."""
        if type(value) not in KINDS:
            return None
        number = self.numbers.get(id(value))
        if number is not None:
            return {"shared": [number]}
        if self.depth >= _MOST_DEPTH or len(value) > _MOST_ITEMS or len(self.items) >= _MOST_CONTAINERS:
            return None
        if self.size + len(value) > _MOST_ITEMS_TOGETHER or not _can_share(value):
            return None
        if self.comparing:
            return {"shared": []}  # differs from every form that was sent
        number = self.next
        self.next += 2
        self.size += len(value)
        self._keep(number, value)
        content = self._content(value)
        self._remember(number, self._line(value))
        return {"shared": [number, content]}

    def take(self, body: plain.Form) -> Any:
        """Return the container to which the form ``body`` refers.

        Raises ``plain.NotPlain`` if the form is malformed.
        """
        number = body[0]
        if type(number) is not int:
            raise plain.NotPlain("a container without a number")
        if len(body) == 2 and number not in self.items:
            self._keep(number, _empty(*next(iter(body[1].items()))))
            self._set(number, body[1])
        if number not in self.items:
            raise plain.NotPlain("an unknown container")
        return self.items[number]

    def knows(self, value: object) -> bool:
        """Return True if ``value`` is a shared container."""
        return id(value) in self.numbers

    def attach(self, message: plain.FormObject) -> plain.FormObject:
        """Return ``message`` with all changes of containers since the last message.

        Call it before the values of the message are encoded.
        """
        changes = []
        for number in list(self.items):
            if self._is_unchanged(number):
                continue
            line = self._line(self.items[number])
            if line != self.sent[number]:
                changes.append([number, self._content(self.items[number])])
                line = self._line(self.items[number])
            self._remember(number, line)
        unused = [number for number in self.items if sys.getrefcount(self.items[number]) < _UNUSED]
        for number in unused:
            self._forget(number)
        return {**message, "changes": changes, "unused": unused} if changes or unused else message

    def apply(self, message: plain.FormObject) -> None:
        """Apply the changes of containers that ``message`` contains."""
        for number, content in message.get("changes", ()):
            if number in self.items:
                self._set(number, content)
        for number in message.get("unused", ()):
            self._forget(number)

    def _keep(self, number: int, value: Any) -> None:
        self.items[number] = value
        self.numbers[id(value)] = number

    def _forget(self, number: int) -> None:
        if number in self.items:
            value = self.items.pop(number)
            self.parts.clear()  # what refers to this container sends its content from now on
            del self.numbers[id(value)]
            self.size = max(0, self.size - len(value))
            self.sent.pop(number, None)

    def _remember(self, number: int, line: bytes) -> None:
        """Store the content of a container, as the other process now knows it."""
        items = _items(self.items[number])
        is_exact = all(type(item) in _ATOMS or id(item) in self.numbers for item in items)
        self.sent[number], self.parts[number] = line, items if is_exact else None

    def _is_unchanged(self, number: int) -> bool:
        """Return True if a container has the same items as at the last comparison.

        The items are compared by identity, which is fast. False means that they may have changed.
        """
        before, value = self.parts.get(number), self.items[number]
        if before is None:
            return False
        now = _items(value)
        return len(now) == len(before) and all(map(operator.is_, now, before))

    def _line(self, value: Any) -> bytes:
        self.comparing = True
        try:
            with self.trying():
                return plain.dumps(self._content(value))
        finally:
            self.comparing = False

    def _content(self, value: Any) -> plain.FormObject:
        self.depth += 1
        try:
            if type(value) is dict:
                return {"d": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
            if type(value) is bytearray:
                return {"ba": value.hex()}
            if type(value) is collections.deque:
                return {"dqm": [value.maxlen, [self.encode(item) for item in value]]}
            if isinstance(value, dict):
                return library_values.encode(value, self.encode) or {}
            return {"l" if isinstance(value, list) else "s": [self.encode(item) for item in value]}
        finally:
            self.depth -= 1

    def _set(self, number: int, content: plain.FormObject) -> None:
        old = self.items[number]
        if isinstance(old, dict):
            pairs = content["d"] if type(old) is dict else next(iter(content.values()))[1]
            made = plain.decode({"d": pairs}, lambda tag, body: self.decode({tag: body}))
            old.clear()
            for key, item in made.items():
                old[key] = item
        elif isinstance(old, bytearray):
            old[:] = bytes.fromhex(content["ba"])
        elif isinstance(old, collections.deque):
            made = [self.decode(item) for item in content["dqm"][1]]
            old.clear()
            old.extend(made)
        elif isinstance(old, set):
            made = plain.decode({"s": content["s"]}, lambda tag, body: self.decode({tag: body}))
            old.clear()
            old.update(made)
        else:
            old[:] = [self.decode(item) for item in content["l"]]
        self._remember(number, self._line(old))


def _items(value: plain.Value) -> list[plain.Value]:
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _can_share(value: Any) -> bool:
    """Return True if the other process can create an empty container of the same kind."""
    if type(value) is not collections.defaultdict:
        return True
    return library_values.encode(collections.defaultdict(value.default_factory), lambda item: item) is not None


def _empty(tag: str, body: plain.Form) -> Any:
    """Return an empty container of the type that the content ``{tag: body}`` needs."""
    if tag == "dqm":
        return collections.deque(maxlen=None if body[0] is None else int(body[0]))
    if tag in ("map", "dd"):
        return library_values.decode(tag, [body[0], []], lambda form: form)
    return {"l": list, "d": dict, "s": set, "ba": bytearray}[tag]()
