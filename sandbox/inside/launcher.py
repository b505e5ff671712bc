"""Turns a process into a box without Docker: namespaces, a read-only root folder, then the supervisor as PID 1.

For ``sandbox=local``, ``start`` calls ``enter`` in a process that the host has just started. The process joins the
cgroups that the host created. It creates user, PID, mount, network, IPC, UTS and cgroup namespaces, builds a read-only
root from the system's folders, and forks PID 1. If the host runs as root, a range of unprivileged uids is mapped, so
that each execution gets a separate uid. Otherwise only the host's own uid is mapped.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct

from bestofn.sandbox.inside import kernel
from bestofn.sandbox.inside.confine import FOLDER, in_box
from bestofn.sandbox.inside.settings import UIDS, BoxSettings, LaunchSettings

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}
_RECURSIVE = 0x8000


def enter(settings: BoxSettings, launch: LaunchSettings) -> None:
    """Turn this process into the box that the settings describe.

    The function returns in PID 1 only; the calling process waits for PID 1 and exits. Raises ``OSError`` if the kernel
    refuses a step.
    """
    for path in launch["cgroups"]:
        with open(path, "w") as file:
            file.write("0")
    if settings["uids"]:
        # As root, bind the folders before creating the user namespace, because some cannot be reached inside it.
        _unshare(_NEWNS)
        _build_root(settings["folders"], launch)
    _new_user(launch["first_uid"])
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user clears it
    _unshare(_NEWPID | _NEWNS | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP)
    pid = os.fork()
    if pid:
        for fd in (0, 1):
            os.close(fd)
        os.waitpid(pid, 0)
        os._exit(0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.libc.sethostname(b"sandbox", 7)
    if not settings["uids"]:
        _build_root(settings["folders"], launch)
    _enter_root(launch["root"])
    os.umask(0o022)
    kernel.keep_capabilities(*((kernel.CAP_KILL, kernel.CAP_SETGID, kernel.CAP_SETUID) if settings["uids"] else ()))


def _unshare(flags: int) -> None:
    kernel.check(kernel.libc.unshare(flags), "unshare")


def _new_user(first_uid: int | None) -> None:
    """Enter a new user namespace.

    A range of uids must be mapped from outside the namespace. Therefore a helper process stays outside and writes the
    map.
    """
    uid, gid = os.getuid(), os.getgid()
    if first_uid is None:
        _unshare(_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"1000 {uid} 1")
        _write("/proc/self/gid_map", f"1000 {gid} 1")
        return
    me = os.getpid()
    entered, report_entered = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(report_entered)
            os.read(entered, 1)
            _write(f"/proc/{me}/uid_map", f"0 {first_uid} {UIDS}")
            _write(f"/proc/{me}/gid_map", f"0 {first_uid} {UIDS}")
            code = 0
        finally:
            os._exit(code)
    os.close(entered)
    _unshare(_NEWUSER)
    os.write(report_entered, b"1")
    os.close(report_entered)
    if os.waitpid(pid, 0)[1]:
        raise OSError("the kernel refused the uid map of the new user namespace")
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    result = kernel.libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    kernel.check(result, f"mount {source} on {target}")


def _bind(source: str, target: str, read_only: bool = True) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w").close()
    _mount(source, target, flags=_BIND | _REC)
    attributes = struct.pack("=QQQQ", (_RDONLY if read_only else 0) | _NOSUID | (_NODEV if read_only else 0), 0, 0, 0)
    kernel.syscall(_MOUNT_SETATTR, -100, ctypes.c_char_p(target.encode()), _RECURSIVE, attributes, len(attributes))


_DEVICES = ("null", "zero", "full", "random", "urandom")
_ETC = {
    "passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_ETC_OF_HOST = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types")


def _build_root(folders: list[str], launch: LaunchSettings) -> None:
    """Mount the files and folders that a box may read. The mount points are below the new root folder.

    ``folders`` (which may also name files), a few files of /etc, devices and an empty /tmp are mounted.
    """
    root = launch["root"]
    _mount("none", "/", flags=_REC | _PRIVATE)
    _mount("tmpfs", root, "tmpfs", _NOSUID | _NODEV, "size=1m,nr_inodes=1024,mode=755")
    for folder in folders:
        target = root + in_box(folder)
        if os.path.islink(folder):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.readlink(folder), target)
        elif os.path.exists(folder):
            _bind(folder, target)
    for name, text in _ETC.items():
        os.makedirs(root + "/etc", exist_ok=True)
        with open(f"{root}/etc/{name}", "w") as file:
            file.write(text)
    for path in _ETC_OF_HOST:
        if os.path.exists(path):
            _bind(os.path.realpath(path), root + path)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{root}/dev/{name}", read_only=False)
    os.symlink("/proc/self/fd", root + "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{root}/dev/{name}")
    os.makedirs(root + "/proc")
    os.makedirs(root + FOLDER, exist_ok=True)
    owner = "" if launch["first_uid"] is None else f",uid={launch['first_uid']}"  # the supervisor sets its times
    size = f"size={launch['disk_mb']}m,nr_inodes={launch['inodes']},mode=1777{owner}"
    _mount("tmpfs", root + FOLDER, "tmpfs", _NOSUID | _NODEV | _NOEXEC, size)


def _enter_root(root: str) -> None:
    """Make ``root`` the read-only root folder of this process, and unmount the old root."""
    _mount(root, root, flags=_BIND | _REC)
    _mount_proc(root + "/proc")
    os.chdir(root)
    kernel.syscall(_PIVOT_ROOT[kernel.machine], ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    kernel.check(kernel.libc.umount2(b".", 2), "umount2")
    _mount("none", "/", flags=_REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    os.chdir("/")


def _mount_proc(target: str) -> None:
    """Mount /proc with the strictest options that the kernel accepts. If no mount is permitted, /proc stays empty.

    The supervisor is in group 0, which sees all processes. It reads in /proc how long a process waited for a processor.
    """
    for options in ("subset=pid,hidepid=2,gid=0", "subset=pid,hidepid=2", "hidepid=2", ""):
        with contextlib.suppress(OSError):
            _mount("proc", target, "proc", _NOSUID | _NODEV | _NOEXEC, options)
            return
