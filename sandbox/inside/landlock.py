"""Landlock (Linux 5.13 and newer) limits the files that a process may access and the processes that it may signal.

``confine`` uses this module.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from bestofn.sandbox.inside.kernel import syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446

_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_FILE_ONLY = _EXECUTE | _WRITE | _READ | (1 << 14) | (1 << 15)
_ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NETWORK = 0b11  # bind and connect over TCP, supported from version 4
_SCOPES = 0b11  # no abstract Unix sockets or signals to processes outside, supported from version 6


def version() -> int:
    """Return the kernel's Landlock version; 0 if the kernel does not support Landlock."""
    try:
        return syscall(_CREATE, 0, 0, 1)
    except OSError:
        return 0


class Ruleset:
    """The files that a process may read and write. ``restrict`` applies the rules to this process and its children.

    ``listable`` are folders whose content may be listed. This right alone does not allow reading the files in them.
    """

    def __init__(
        self,
        fd: int,
        readable: Iterable[str],
        writable: Iterable[str],
        devices: Iterable[str],
        listable: Iterable[str] = (),
    ) -> None:
        self.version = version()
        handled = _ALL.get(self.version, _ALL[5])
        attributes = struct.pack("=QQQ", handled, _NETWORK, _SCOPES)
        size = 8 if self.version < 4 else 16 if self.version < 6 else 24
        self.fd = fd  # a high number, because the low numbers are fixed for a child's descriptors
        made = syscall(_CREATE, ctypes.create_string_buffer(attributes[:size], size), size, 0)
        os.dup2(made, fd, inheritable=False)
        os.close(made)
        for path in readable:
            self._allow(path, _EXECUTE | _READ | _READ_DIR)
        for path in listable:
            self._allow(path, _READ_DIR)
        for path in writable:
            self._allow(path, handled & ~_EXECUTE)
        for path in devices:
            self._allow(path, _READ | _WRITE | (1 << 14 if self.version >= 3 else 0))

    def _allow(self, path: str, access: int) -> None:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            if not os.path.isdir(path):
                access &= _FILE_ONLY
            rule = struct.pack("=Qi", access, fd)
            syscall(_ADD, self.fd, 1, ctypes.create_string_buffer(rule, len(rule)), 0)
        finally:
            os.close(fd)

    def restrict(self) -> None:
        """Apply the ruleset permanently. The process must have set no_new_privs before."""
        syscall(_RESTRICT, self.fd, 0)
