"""The seccomp filter of an untrusted process. It refuses system calls that a single-file program does not need.

System calls newer than ``YOUNGEST`` were not reviewed. They fail with ENOSYS, so that a C library behaves as on an
older kernel. System calls of other architectures (32 bit, x32) kill the process. ``confine`` installs the filter.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from bestofn.sandbox.inside.kernel import PR_SET_SECCOMP, machine, prctl

YOUNGEST = 452  # fchmodat2; from 424 on, a system call has the same number on all machines

_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LD, _JEQ, _JGE, _JGT, _JSET, _RET = 0x20, 0x15, 0x35, 0x25, 0x45, 0x06
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

# name: (number on x86_64, number on aarch64); -1: this architecture does not have the call
REFUSED = {
    # access to other processes, and the kernel's debugging interfaces
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "seccomp": (317, 277),
    "lookup_dcookie": (212, 18), "syslog": (103, 116),
    # mounts, namespaces, file handles
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    # settings of the whole machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, -1), "get_kernel_syms": (177, -1), "query_module": (178, -1),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171), "modify_ldt": (154, -1), "iopl": (172, -1), "ioperm": (173, -1), "vhangup": (153, 58),
    "nfsservctl": (180, 42), "uselib": (134, -1), "ustat": (136, -1), "sysfs": (139, -1), "_sysctl": (156, -1),
    "vserver": (236, -1), "security": (185, -1), "tuxcall": (184, -1), "afs_syscall": (183, -1),
    # asynchronous I/O (io_uring): it had many vulnerabilities, and its operations bypass this filter
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_setup": (206, 0),
    "io_submit": (209, 2), "vmsplice": (278, 75),
    # objects that outlive a process or are visible to another process
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "shmdt": (67, 197), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185), "memfd_secret": (447, 447),
    # sockets of every address family; socketpair remains allowed for event loops
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242),
    # scheduling of other processes, memory placement
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236), "set_mempolicy_home_node": (450, 450),
    # events on files that other boxes or the host use
    "inotify_init": (253, -1), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
}  # fmt: skip

_CLONE, _SOCKETPAIR, _PRLIMIT, _IOCTL, _PERSONALITY = (56, 220), (53, 199), (302, 261), (16, 29), (135, 92)
_FCNTL = (72, 25)
_WITHOUT_EFFECT = {"flock": (73, 32), "sync": (162, 81), "syncfs": (306, 267)}
_LOCKS = (6, 7, 37, 38, 1024, 1026)  # F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE, F_NOTIFY
_CLONE3 = 435
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


def _load(offset: int) -> tuple[int, int, int, int]:
    return (_LD, 0, 0, offset)


def _give(action: int) -> tuple[int, int, int, int]:
    return (_RET, 0, 0, action)


def _only(number: int, argument: int, allowed: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Return filter instructions that allow the system call ``number`` only with certain values of one argument.

    ``argument`` is the argument's index. The call fails with EPERM unless the low 32 bits are in ``allowed``.
    """
    tests = [_load(16 + 8 * argument)]
    tests += [(_JEQ, len(allowed) - place, 0, value) for place, value in enumerate(allowed)]
    tests += [_give(_ERRNO | errno.EPERM), _give(_ALLOW)]
    return [(_JEQ, 0, len(tests), number), *tests]


def _never(
    number: int, argument: int, refused: tuple[int, ...], error: int = errno.EPERM
) -> list[tuple[int, int, int, int]]:
    """Return filter instructions that refuse the system call ``number`` with certain values of one argument.

    ``argument`` is the argument's index. If the low 32 bits are in ``refused``, the call fails with ``error``. If
    ``error`` is 0, the call does nothing and reports success.
    """
    tests = [_load(16 + 8 * argument)]
    tests += [(_JEQ, len(refused) - place, 0, value) for place, value in enumerate(refused)]
    tests += [_give(_ALLOW), _give(_ERRNO | error)]
    return [(_JEQ, 0, len(tests), number), *tests]


def program() -> bytes:
    """Return the BPF program for this machine. Raises ``OSError`` if its architecture is not supported."""
    if machine not in _AUDIT:
        raise OSError(errno.ENOSYS, f"there is no seccomp filter for {machine}; expected one of {sorted(_AUDIT)}")
    column = _COLUMN[machine]
    lines = [_load(4), (_JEQ, 1, 0, _AUDIT[machine]), _give(_KILL), _load(0)]
    if machine == "x86_64":
        lines += [(_JGE, 0, 1, 0x40000000), _give(_KILL)]
    lines += [(_JGT, 0, 1, YOUNGEST), _give(_ERRNO | errno.ENOSYS)]
    lines += [
        (_JEQ, 0, 1, _CLONE3),
        _give(_ERRNO | errno.ENOSYS),
    ]  # its flags are in memory, which a filter cannot read; the C library uses clone instead
    for numbers in REFUSED.values():
        if numbers[column] >= 0:
            lines += [(_JEQ, 0, 1, numbers[column]), _give(_ERRNO | errno.EPERM)]
    flags = [_load(16), (_JSET, 0, 1, _NEW_NAMESPACES), _give(_ERRNO | errno.EPERM), _give(_ALLOW)]
    lines += [(_JEQ, 0, len(flags), _CLONE[column]), *flags]
    lines += _only(_SOCKETPAIR[column], 0, (1,))
    lines += _only(_PRLIMIT[column], 0, (0,))
    lines += _only(_PERSONALITY[column], 0, (0, 0xFFFFFFFF))
    lines += _never(_IOCTL[column], 1, (_TIOCSTI, _TIOCLINUX))
    # Locks on files that several boxes share would be seen there. They do nothing, because a run has its own files.
    # To write the files of the whole machine to its disks would slow it down. These calls report success.
    for numbers in _WITHOUT_EFFECT.values():
        lines += [(_JEQ, 0, 1, numbers[column]), _give(_ERRNO)]
    lines += _never(_FCNTL[column], 1, _LOCKS, error=0)
    lines += [_give(_ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


class Filter:
    """A compiled seccomp filter. ``install`` applies it to the calling process and its children."""

    def __init__(self) -> None:
        code = program()
        self._code = ctypes.create_string_buffer(code, len(code))
        self._header = ctypes.create_string_buffer(
            struct.pack("=H6xQ", len(code) // 8, ctypes.addressof(self._code)), 16
        )

    def install(self) -> None:
        """Apply the filter permanently. The process must have set no_new_privs before."""
        prctl(PR_SET_SECCOMP, 2, ctypes.byref(self._header))
