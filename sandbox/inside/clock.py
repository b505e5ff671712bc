"""Time limits that do not depend on the load of the machine. ``supervisor`` uses them."""

from __future__ import annotations

import os
import time

_MISSING_SHARE = 0.25  # a run that lacks more than this share of its time is not judged
_LEAST_WAIT_S = 0.02  # shorter waits are normal and are ignored
_SUPERVISOR = 1  # process id in a box; every other process in a box belongs to the run
_TICKS = os.sysconf("SC_CLK_TCK")  # per second, in /proc


class FairClock:
    """The time limits of one execution. The time in which its processes wait for a processor extends the limits.

    ``wall_s`` is the limit in seconds for one call or case, ``total_s`` for all calls or cases together. The limits are
    extended by at most ``2 * total_s``. They are extended only by time in which all processes together used less than
    one processor. Therefore processes that only take turns on one processor do not extend the limits. ``starved`` is
    True if the processes waited longer than ``2 * total_s`` plus a quarter of ``wall_s``.
    """

    def __init__(self, pids: set[int], wall_s: float, total_s: float) -> None:
        self.pids, self.wall_s = pids, wall_s
        self.most_s = 2 * total_s
        self.added_s = 0.0
        self.starved = False
        self.started = time.monotonic()
        self.end = self.started + total_s
        self.deadline = 0.0
        self.restart()

    def restart(self) -> None:
        """Start the limit ``wall_s`` again for the next call or case."""
        self.deadline = min(self.end, time.monotonic() + self.wall_s)

    def left(self) -> float:
        """Return the seconds until the next limit; 0.0 or less if a limit is reached."""
        left = self.deadline - time.monotonic()
        if left > 0:
            return left
        without_s = time.monotonic() - self.started - _used_by_all()
        waited_s = max(0.0, min(without_s, sum(_wait_of(pid) for pid in self.pids)))
        more_s = min(waited_s, self.most_s) - self.added_s
        if more_s > _LEAST_WAIT_S:
            self.added_s += more_s
            self.end += more_s
            self.deadline += more_s
        else:
            self.starved = waited_s - self.most_s > _MISSING_SHARE * self.wall_s
        return self.deadline - time.monotonic()


def _wait_of(pid: int) -> float:
    """Return the seconds in which a process was ready to run but waited for a processor; 0.0 if they are not known."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _used_by_all() -> float:
    """Return the processor seconds of all processes of the execution and of the children that they have reaped."""
    return sum(_used_by(int(name)) for name in os.listdir("/proc") if name.isdigit() and int(name) != _SUPERVISOR)


def _used_by(pid: int) -> float:
    """Return the processor seconds of a process and of the children that it has reaped; 0.0 if they are not known."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            times = file.read().rpartition(")")[2].split()[11:15]  # utime, stime, cutime, cstime
        return sum(map(int, times)) / _TICKS
    except (OSError, ValueError):
        return 0.0


def waited_for_processor(pid: int) -> float:
    """Return the seconds that the killed child ``pid`` waited for a processor; 0.0 if they are not known.

    Call this function before the child is reaped. It first waits until the child has ended, because the kernel adds the
    last waiting time only then.
    """
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except OSError:
        return 0.0
    return _wait_of(pid)
