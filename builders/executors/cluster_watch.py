"""Finds out that a cluster, or a machine that the run needs, is lost.

Calls to a lost cluster may never return, so the driver makes its calls in a thread, and this module ends the wait.

A lost worker is no concern of this module: another one takes its place (``cluster_pool.WorkerPool.replace``).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from bestofn.builders.errors import MachineError

EVERY_S = 2.0
ANSWER_S = 0.5  # the delay with which an interrupt or a lost machine is noticed
LOST_AFTER_S = 25.0  # shorter than the 60 s after which Ray ends the process of a lost cluster itself
AGAIN = "Run the same command again to continue."

ResultT = TypeVar("ResultT")
Needs = Mapping[str, float]
"""Resource of Ray, such as ``CPU`` -> the amount that one worker reserves."""


class ClusterWatch:
    """Asks the cluster for its machines while its block runs. ``groups`` has the needs of each group of workers.

    The run cannot continue if the driver's own machine is lost, if the cluster does not answer for ``LOST_AFTER_S``, or
    if for this time no machine is left that could ever hold a worker of a group.
    """

    def __init__(self, groups: Mapping[str, Needs]) -> None:
        self._groups = groups
        self._address = self._lost = ""
        self._alive: dict[str, str] = {}  # id of a machine that was alive -> its name
        self._gone: list[str] = []  # the names of the machines that are lost
        self._fits_since = dict.fromkeys(groups, 0.0)  # group -> when a machine could last hold its workers; 0: never
        self._answered = time.monotonic()

    @property
    def is_lost(self) -> bool:
        """Whether the run cannot continue. Calls to the cluster may then never return."""
        self._judge()
        return bool(self._lost)

    def run(self, calls: Callable[[threading.Event], ResultT]) -> ResultT:
        """Run ``calls``, which call the cluster, in a thread, and return its result.

        Raises ``MachineError`` with the name of the machine if the run cannot continue; ``calls`` may then still wait
        for the cluster. ``calls`` gets an event that is set when its result is not needed any more.
        """
        stop, result = threading.Event(), Future[ResultT]()

        def work() -> None:
            try:
                result.set_result(calls(stop))
            except BaseException as error:  # any error: it is raised in the thread that waits for the result
                result.set_exception(error)

        thread = threading.Thread(target=work, name="cluster calls", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(ANSWER_S)
                if not result.done() and self.is_lost:
                    raise MachineError(f"{self._lost}\n{AGAIN}")
            return result.result()
        finally:
            stop.set()
            while thread.is_alive() and not self.is_lost:
                thread.join(ANSWER_S)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the cluster that this process is connected to, until the block ends."""
        import ray

        context = ray.get_runtime_context()
        own, self._address = context.get_node_id(), context.gcs_address
        stop = threading.Event()

        def watch() -> None:
            while True:
                try:
                    self._note(own, ray.nodes())
                except Exception:  # any type: without an answer, ``check`` raises in time
                    if stop.is_set():
                        return
                if stop.wait(EVERY_S):
                    return

        threading.Thread(target=watch, name="cluster watch", daemon=True).start()
        try:
            yield
        finally:
            stop.set()  # the thread is not joined: a call to a lost cluster may block

    def _note(self, own: str, nodes: list[dict[str, Any]]) -> None:
        """Note the answer of the cluster. ``own`` is the id of the driver's machine."""
        now = self._answered = time.monotonic()
        alive = [node for node in nodes if node["Alive"]]
        for name in [self._alive.pop(lost) for lost in self._alive.keys() - {node["NodeID"] for node in alive}]:
            self._gone.append(name)
        self._alive |= {node["NodeID"]: _name(node) for node in alive}
        for group, needs in self._groups.items():
            if any(_fits(needs, node["Resources"]) for node in alive):
                self._fits_since[group] = now
        if any(node["NodeID"] == own and not node["Alive"] for node in nodes):
            self._lost = f"the machine of this command, {self._gone[-1]}, is lost from the cluster at {self._address}."

    def _judge(self) -> None:
        now = time.monotonic()
        if self._lost:
            return
        if now - self._answered > LOST_AFTER_S:
            self._lost = f"the head node of the cluster at {self._address} has not answered for {LOST_AFTER_S:.0f} s."
        for group, since in self._fits_since.items():
            if self._gone and since and now - since > LOST_AFTER_S:
                names = ", ".join(self._gone)
                self._lost = f"{names} is lost, and no other machine of the cluster has the resources of {group}."


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeName']})"


def _fits(needs: Needs, resources: Needs) -> bool:
    return all(resources.get(name, 0.0) >= amount for name, amount in needs.items())
