"""Starts, monitors, replaces and closes the Ray actors of one run. This code runs in the driver."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestofn.builders.errors import MachineError
from bestofn.builders.executors.cluster_gateway import MAX_CALLS, Gateway, gateway_lost, remote_cause
from bestofn.builders.executors.cluster_shards import MAX_LOSSES, ClusterCounts
from bestofn.builders.executors.cluster_watch import ClusterWatch, Needs
from bestofn.builders.executors.cluster_worker import RemoteActors, ShardWorker, StageWorker
from bestofn.builders.records import JsonObject
from bestofn.builders.run.progress import Progress
from bestofn.builders.sampling.attempt_counts import ServiceState

log = logging.getLogger(__name__)

KEY_VARIABLES = re.compile(r"_(API_KEY|TOKEN)$")
URL_VARIABLES = re.compile(r"_(BASE_URL|HOST|ENDPOINT)$")
WARN_AFTER_S = 30.0  # after this time without an open worker, a warning is logged
CLOSE_S = 4.5  # slightly longer than the gateway waits for the requests in flight


@dataclass(frozen=True)
class Place:
    """The number of workers in a group (``count``), and the Ray resources that each worker needs.

    If ``count`` is None, there is one worker per machine.
    """

    count: int | None = None
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """The options of a Ray actor that reserve the resources of one worker."""
        return {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus, "resources": dict(self.resources)}

    @property
    def needs(self) -> Needs:
        """What one worker reserves, by the names that Ray gives to the resources of a machine."""
        return {"CPU": self.num_cpus, "GPU": self.num_gpus, **self.resources}


@dataclass(frozen=True)
class PoolSettings:
    """The settings of a ``WorkerPool``. ``ray_executor.RayExecutor`` documents them."""

    workers: Place
    placement: Mapping[str, Place]
    shards_in_flight: int
    through_driver: bool


@dataclass(eq=False, slots=True)
class Worker:
    """The driver's record of one shard worker. ``actor`` is a Ray handle, which has no static type."""

    actor: Any
    is_open: bool = False
    shards: int = 0  # number of shards in flight


class WorkerPool:
    """The gateway, the shard workers and the stage workers of one run. Its ``with`` block starts and closes them."""

    def __init__(self, settings: PoolSettings, config: JsonObject, out: Path) -> None:
        self.counts = ClusterCounts()
        self.opening: dict[Any, Worker] = {}  # Ray's reference to a call of ``open`` -> called worker
        groups = {f"executor.placement.{name}": place.needs for name, place in settings.placement.items()}
        self.watch = ClusterWatch({"executor.workers": settings.workers.needs, **groups})
        self._watching = contextlib.ExitStack()
        self._settings = settings
        self._config = config
        self._out = out.resolve()
        self._probe_name = "" if settings.through_driver else f".seen-{uuid.uuid4().hex}"
        self._gateway: Any = None
        self._workers: list[Worker] = []
        self._stage_workers: dict[str, RemoteActors] = {}
        self._spent: JsonObject = {}
        self._services: Sequence[ServiceState] = ()
        self._no_worker_since = time.monotonic()
        self._warned = False
        self._lost_unopened = 0  # workers lost while opening; 0 again after a worker has opened

    def __enter__(self) -> WorkerPool:
        if self._probe_name:
            (self._out / self._probe_name).touch()
        self._watching.enter_context(self.watch.watching())
        try:
            self.watch.run(lambda _: self._start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        import ray

        if self._probe_name:
            (self._out / self._probe_name).unlink(missing_ok=True)
        self._watching.close()
        if self.watch.is_lost:
            if self._gateway is not None:  # it may still run, and then it stores the replies in flight
                ray.wait([self._gateway.close.remote()], timeout=CLOSE_S)
            return
        stage_workers = [actor for actors in self._stage_workers.values() for actor in actors]
        _close([worker.actor for worker in self._workers if worker.is_open] + stage_workers)
        for worker in self._workers:
            ray.kill(worker.actor)  # including workers that still wait for a machine
        _close([self._gateway] if self._gateway is not None else [])  # last, because the other actors call it

    def spending(self) -> JsonObject:
        """Return the spending of the whole cluster, as of the last update about a second ago."""
        return self._spent

    def services(self) -> Sequence[ServiceState]:
        """Return the state of the services that the cluster calls, as of the last update about a second ago."""
        return self._services

    def workers_with_room(self) -> Iterator[Worker]:
        """Yield the open worker with the fewest shards in flight, again and again until all workers are full.

        The caller must increase ``Worker.shards`` of each worker that it receives.
        """
        most = self._settings.shards_in_flight
        while candidates := [worker for worker in self._workers if worker.is_open and worker.shards < most]:
            yield min(candidates, key=lambda worker: worker.shards)

    def note_opened(self, reference: Any) -> None:
        """Handle the end of a worker's ``open`` call: mark the worker as open, or replace it if it was lost.

        Raises the error that the worker raised, and ``MachineError`` if workers cannot be created or started.
        """
        import ray
        from ray.exceptions import RayActorError, RayError, RayTaskError

        worker = self.opening.pop(reference)
        try:
            machine = ray.get(reference)
        except RayTaskError as error:
            raise remote_cause(error) from None
        except RayError as error:
            if isinstance(error, RayActorError) and error.actor_init_failed:  # a new worker would fail too
                raise MachineError(f"a Ray worker could not be created: {error}") from None
            self._count_lost_unopened(error)
            self.replace(worker, error)
            return
        self._lost_unopened = 0
        worker.is_open = True
        log.info("A worker is ready on %s.", machine)

    def _count_lost_unopened(self, error: Exception) -> None:
        self._lost_unopened += 1
        if self._lost_unopened >= MAX_LOSSES * len(self._workers):
            raise MachineError(
                f"{self._lost_unopened} Ray workers in a row were lost before they were ready. The last error: "
                f"{error}\nThe machine may be short of memory. Set executor.workers so that Ray places the "
                "workers on another machine."
            ) from None

    def replace(self, worker: Worker, error: Exception) -> None:
        """Start a new worker in place of the lost ``worker``.

        The new worker starts as soon as a machine has free resources for it.
        """
        if worker in self._workers:
            log.warning("A worker is lost; other workers run its shards. %s", str(error).splitlines()[0])
            self._workers.remove(worker)
            self._no_worker_since, self._warned = time.monotonic(), False
            self._start_shard_worker()

    def warn_without_workers(self) -> None:
        """Log one warning if no worker has been open for ``WARN_AFTER_S`` seconds."""
        if any(worker.is_open for worker in self._workers):
            self._no_worker_since = time.monotonic()
        elif not self._warned and time.monotonic() - self._no_worker_since > WARN_AFTER_S:
            self._warned = True
            log.warning(
                "No machine of the cluster has free resources for a worker: executor.workers=%s. Add a machine, or let "
                "each worker reserve less.",
                self._settings.workers,
            )

    @contextlib.contextmanager
    def updating(self, progress: Progress) -> Iterator[None]:
        """Update ``progress`` and the spending from the cluster every second until the block ends."""
        stop = threading.Event()

        def update() -> None:
            while not stop.wait(1.0):
                try:
                    self._fetch_state(timeout_s=5.0)
                except Exception as error:  # any type: a serious failure also stops the run itself
                    log.debug("The state of the cluster could not be fetched: %s", error)
                    continue
                progress.rows, progress.outcomes = self.counts.totals()

        thread = threading.Thread(target=update, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(CLOSE_S)
            if not self.watch.is_lost:
                with contextlib.suppress(Exception):  # the gateway may have ended
                    self._fetch_state(timeout_s=CLOSE_S)
            progress.rows, progress.outcomes = self.counts.totals()

    def _fetch_state(self, timeout_s: float) -> None:
        import ray

        self._spent, self._services, reported = ray.get(self._gateway.state.remote(), timeout=timeout_s)
        self.counts.update(reported)

    def _start(self) -> None:
        """Start all actors and wait until the gateway is open. The workers may still be opening when this returns."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(Gateway).options(num_cpus=0, scheduling_strategy=here, max_concurrency=MAX_CALLS)
        variables = environment_variables(KEY_VARIABLES, URL_VARIABLES)
        self._gateway = actor.remote(self._config, str(self._out), variables)
        opening = self._gateway.open.remote()
        for name, place in self._settings.placement.items():
            self._stage_workers[name] = [self._start_stage_worker(name, place) for _ in range(_count(place))]
        for _ in range(_count(self._settings.workers)):
            self._start_shard_worker()
        _get(opening)
        self._spent = _get(self._gateway.state.remote())[0]

    def _start_shard_worker(self) -> None:
        import ray

        options = {**self._settings.workers.options, "scheduling_strategy": "SPREAD"}
        threads = self._settings.shards_in_flight + 1  # one more thread for ``close``
        actor = ray.remote(ShardWorker).options(**options, max_concurrency=threads)
        variables = environment_variables(URL_VARIABLES)
        worker = Worker(
            actor.remote(self._config, str(self._out), self._probe_name, variables, self._gateway, self._stage_workers)
        )
        self._workers.append(worker)
        self.opening[worker.actor.open.remote()] = worker

    def _start_stage_worker(self, name: str, place: Place) -> Any:
        import ray

        options = {**place.options, "scheduling_strategy": "SPREAD", "max_concurrency": MAX_CALLS}
        actor = ray.remote(StageWorker).options(**options, max_restarts=-1, max_task_retries=-1)
        return actor.remote(self._config, name, environment_variables(URL_VARIABLES), self._gateway)


def environment_variables(*kinds: re.Pattern[str]) -> dict[str, str]:
    """Return the environment variables whose names match one of ``kinds``.

    They are passed to the actors, because the processes of a cluster do not inherit them.
    """
    return {name: value for name, value in os.environ.items() if any(kind.search(name) for kind in kinds)}


def _count(place: Place) -> int:
    import ray

    return place.count or sum(node["Alive"] for node in ray.nodes())


def _get(reference: Any) -> Any:
    """Return the result of a call to the gateway.

    Raises the error of the call, or ``MachineError`` if the gateway is lost.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as error:
        raise remote_cause(error) from None
    except RayError as error:
        raise gateway_lost(error) from None


def _close(actors: RemoteActors) -> None:
    """Give ``actors`` up to ``CLOSE_S`` seconds to close their objects, then kill them."""
    import ray

    if actors:
        ray.wait([actor.close.remote() for actor in actors], num_returns=len(actors), timeout=CLOSE_S)
    for actor in actors:
        ray.kill(actor)
