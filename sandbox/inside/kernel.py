"""System calls for which the standard library has no function."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47

CAP_KILL, CAP_SETGID, CAP_SETUID = 5, 6, 7

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
machine = os.uname().machine


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def check(result: int, what: str) -> int:
    """Return ``result``. Raises ``OSError`` if it is negative; ``what`` is the name of the failed call."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int = 0, third: object = 0) -> int:
    """Call ``prctl``. Raises ``OSError`` if the call fails."""
    last = third if not isinstance(third, int) else ctypes.c_ulong(third)
    zero = ctypes.c_ulong(0)
    return check(libc.prctl(option, ctypes.c_ulong(value), last, zero, zero), f"prctl({option})")


def syscall(number: int, *arguments: object) -> int:
    """Make the system call ``number``. Raises ``OSError`` if the call fails."""
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return check(libc.syscall(ctypes.c_long(number), *wide), f"syscall({number})")


def fork() -> int:
    """Fork this process with ``fork`` of the C library, and return its result: 0 in the child.

    This is faster than ``os.fork`` and causes one fifth of the page faults. Python's fork handlers do not run. Use this
    function only in a process with one thread.
    """
    return check(libc.fork(), "fork")


def new_thread_id() -> int:
    """Start a thread that ends at once, and return its id; 0 if no thread could be started.

    The thread runs a function of the C library. A thread of Python would write to about 80 pages that a forked child
    shares, and the kernel would copy each of them.
    """
    thread, result = ctypes.c_ulong(), ctypes.c_void_p()
    if libc.pthread_create(ctypes.byref(thread), None, libc.gettid, None):
        return 0
    libc.pthread_join(thread, ctypes.byref(result))
    return (result.value or 0) & 0x7FFFFFFF


def keep_capabilities(*kept: int) -> None:
    """Drop every capability except ``kept`` from all sets: permitted, effective, inheritable, ambient, bounding."""
    for capability in range(64):
        if capability not in kept:
            libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(4), 0, 0, 0)
    mask = sum(1 << capability for capability in kept)
    header = _CapHeader(0x20080522, 0)
    data = (_CapData * 2)(_CapData(mask & 0xFFFFFFFF, mask & 0xFFFFFFFF, 0), _CapData(mask >> 32, mask >> 32, 0))
    check(libc.capset(ctypes.byref(header), data), "capset")


_NO_CAPABILITIES = (_CapData * 2)()
_CAP_HEADER = _CapHeader(0x20080522, 0)


def drop_capabilities() -> None:
    """Drop all capabilities of the calling child. If no_new_privs is set, the child cannot regain them."""
    check(libc.capset(ctypes.byref(_CAP_HEADER), _NO_CAPABILITIES), "capset")
