"""The Ray executor: the same shards and the same configuration, on the machines of a cluster.

    driver      reads the source, hands out shards, writes the views; what a user sees
    gateway     an actor on the driver's machine: journal, limits, budget, connections to services
    workers     an actor a machine, several shards in flight in each; more for stages with needs of their own

Configuration travels, objects do not: every actor assembles its own. The driver holds the queries of the shards under
way and nothing of their answers. A shard whose worker is lost is given to another; its answers are in the journal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestofn.builders.errors import ConfigError, MachineError
from bestofn.builders.executors.cluster_gateway import AT_ONCE, Counts, Gateway, cause_of
from bestofn.builders.executors.cluster_worker import Landed, ShardWorker, StageWorker
from bestofn.builders.records import Query
from bestofn.builders.run import manifest, pipeline
from bestofn.builders.run.progress import shown

log = logging.getLogger(__name__)

SECRETS = re.compile(r"_(API_KEY|TOKEN)$")
PLACES = re.compile(r"_(BASE_URL|HOST|ENDPOINT)$")
LOST_AT_MOST = 3  # workers lost under one shard: then it is the shard
SAY_AFTER_S = 30.0  # without any worker
CLOSE_S = 4.5  # what is under way at the gateway is waited for almost as long


@dataclass(frozen=True)
class Place:
    """What the workers of a kind need of their machines, in Ray's terms. ``count`` None: one for each machine."""

    count: int | None = None
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        return {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus, "resources": dict(self.resources)}


class RayExecutor:
    """Runs a build on the cluster at ``address`` (``auto``, ``ray://…``, ``host:port``); None: one on this machine.

    ``placement`` gives stages (``verify``, ``reward``) workers of their own: ``{reward: {num_gpus: 1}}``. Each of
    ``workers`` has ``shards_in_flight`` shards under way: that bounds the memory of a machine. ``through_driver``:
    parts come back to the driver also from workers that see the run's folder, as over a slow network file system.
    """

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        workers: Place = Place(),
        placement: Mapping[str, Place] | None = None,
        shards_in_flight: int = 4,
        object_store_mb: int = 512,
        through_driver: bool = False,
    ) -> None:
        if shards_in_flight < 1:
            raise ValueError(f"shards_in_flight is {shards_in_flight}; expected at least 1")
        self.address = address
        self.workers = workers
        self.placement = dict(placement or {})
        self.shards_in_flight = shards_in_flight
        self.object_store_mb = object_store_mb
        self.through_driver = through_driver

    def run(self, config: Mapping[str, Any], out: Path) -> dict[str, Any]:
        """Build everything that ``config`` describes into ``out``; returns the manifest."""
        with pipeline.assembled(config, out) as build:
            for name in self.placement:
                if name not in config["stages"]:
                    raise ConfigError(
                        f"executor.placement names stage {name!r}; this build has {', '.join(config['stages'])}"
                    )
            pipeline.writable(out)
            pipeline.note_state(build, "running")
            names = [stage.name for stage, _ in build.stages]
            try:
                with self._cluster(), _Crew(self, config, out) as crew:
                    build.spending = crew.spending
                    with shown(build.progress, names, build.spending), crew.watched(build.progress):
                        parts = self._run_shards(build, crew)
                return pipeline.finish(build, parts)
            except BaseException:
                pipeline.note_state(build, "interrupted")
                raise

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[None]:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nobody is told anything
        try:
            import ray
        except ImportError as error:
            raise ConfigError("executor=ray needs Ray, which is not installed: pip install 'bestofn[ray]'") from error
        if ray.is_initialized():  # whoever started it ends it
            yield
            return
        _refuse_unreachable(self.address)
        own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": self.object_store_mb << 20}
        try:
            ray.init(self.address, log_to_driver=False, logging_level=logging.WARNING, **({} if self.address else own))
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_cluster(self.address, error) from error
        try:
            yield
        finally:
            ray.shutdown()

    def _run_shards(self, build: pipeline.Build, crew: _Crew) -> list[Path]:
        import ray
        from ray.exceptions import ObjectLostError, RayError, RayTaskError

        todo = _Shards(build)
        flying: dict[Any, tuple[_Worker, int, Sequence[Query]]] = {}
        parts: set[int] = todo.found
        while True:
            for worker in crew.with_room(self.shards_in_flight):
                if (shard := todo.next()) is None:
                    break
                flying[worker.actor.run.remote(*shard)] = (worker, *shard)
                worker.under_way += 1
            if not flying and todo.is_empty:
                return [pipeline.part_of(build.out, number) for number in sorted(parts)]
            for ref in ray.wait([*flying, *crew.opening], timeout=1.0)[0]:
                if ref not in flying:
                    crew.note_opened(ref)
                    continue
                worker, number, queries = flying.pop(ref)
                worker.under_way -= 1
                try:
                    landed: Landed = ray.get(ref)
                except RayTaskError as error:
                    raise cause_of(error) from None
                except RayError as error:  # it died, was killed for its memory, or its machine took the part along
                    if not isinstance(error, ObjectLostError):
                        crew.replace(worker, error)
                    todo.give_back(number, queries, error)
                else:
                    _land(build.out, number, landed)
                    crew.tally.land(number, landed.counts)
                    parts.add(number)
            crew.say_if_alone()


class _Shards:
    """The shards still to be run: those that were lost first, then what the source gives."""

    def __init__(self, build: pipeline.Build) -> None:
        self.found: set[int] = set()  # finished by an earlier run
        self.is_empty = False
        self._build = build
        self._source = pipeline.shards(build.source, int(build.config["shard_size"]))
        self._lost: deque[tuple[int, Sequence[Query]]] = deque()
        self._losses: Counter[int] = Counter()

    def next(self) -> tuple[int, Sequence[Query]] | None:
        if self._lost:
            return self._lost.popleft()
        for number, queries in self._source:
            if not pipeline.is_finished(self._build, number, queries):
                return number, queries
            self.found.add(number)
            self._build.progress.shard_found(len(queries))
        self.is_empty = True
        return None

    def give_back(self, number: int, queries: Sequence[Query], error: Exception) -> None:
        """Shard ``number`` lost its worker. Raises ``MachineError`` when that has happened too often."""
        self._losses[number] += 1
        if self._losses[number] >= LOST_AT_MOST:
            raise MachineError(
                f"shard {number} has lost its worker {LOST_AT_MOST} times; the last: {error}\nIs it short of memory? "
                "Set a smaller shard_size or executor.shards_in_flight."
            )
        self._lost.append((number, queries))
        self.is_empty = False


class _Tally:
    """Rows and verdicts of the whole cluster. A shard that is begun anew is counted once."""

    def __init__(self) -> None:
        self._landed: set[int] = set()
        self._sums: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._under_way: dict[int, Counts] = {}
        self._lock = threading.Lock()

    def hear(self, told: Mapping[int, Counts]) -> None:
        with self._lock:
            self._under_way |= {number: counts for number, counts in told.items() if number not in self._landed}

    def land(self, number: int, counts: Counts) -> None:
        with self._lock:
            self._landed.add(number)
            self._under_way.pop(number, None)
            for total, part in zip(self._sums, counts, strict=True):
                total.update(part)

    def sums(self) -> tuple[Counter[str], Counter[str]]:
        """(rows by stage, candidates by verdict)."""
        with self._lock:
            rows, outcomes = (Counter(total) for total in self._sums)
            for by_stage, by_outcome in self._under_way.values():
                rows.update(by_stage)
                outcomes.update(by_outcome)
            return rows, outcomes


@dataclass(eq=False, slots=True)
class _Worker:
    actor: Any
    is_open: bool = False
    under_way: int = 0


class _Crew:
    """The actors of one run: started when entered, closed when left."""

    def __init__(self, executor: RayExecutor, config: Mapping[str, Any], out: Path) -> None:
        self.tally = _Tally()
        self.opening: dict[Any, _Worker] = {}
        self._executor = executor
        self._config = config
        self._out = out.resolve()
        self._sign = "" if executor.through_driver else f".seen-{uuid.uuid4().hex}"
        self._workers: list[_Worker] = []
        self._stages: dict[str, list[Any]] = {}
        self._spent: Mapping[str, Any] = {}
        self._alone_since = time.monotonic()
        self._said = False
        self._lost_unopened = 0  # workers, since one opened

    def __enter__(self) -> _Crew:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

        if self._sign:
            (self._out / self._sign).touch()
        here = On(ray.get_runtime_context().get_node_id(), soft=False)
        try:
            self._gateway = (
                ray.remote(Gateway)
                .options(num_cpus=0, scheduling_strategy=here, max_concurrency=AT_ONCE)
                .remote(self._config, str(self._out), _environment(SECRETS, PLACES))
            )
            opening = self._gateway.open.remote()
            for name, place in self._executor.placement.items():
                self._stages[name] = [self._stage_worker(name, place) for _ in range(self._count(place))]
            for _ in range(self._count(self._executor.workers)):
                self._start_worker()
            self._ask(opening)  # the workers load meanwhile, which takes seconds
            self._spent = self._ask(self._gateway.state.remote())[0]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        import ray

        if self._sign:
            (self._out / self._sign).unlink(missing_ok=True)
        others = [actor for part in self._stages.values() for actor in part]
        _close([worker.actor for worker in self._workers if worker.is_open] + others)
        for worker in self._workers:
            ray.kill(worker.actor)  # also one that still waits for a machine
        _close([self._gateway] if hasattr(self, "_gateway") else [])  # last: the others still spoke to it

    def spending(self) -> Mapping[str, Any]:
        """What the whole cluster has spent, as of a moment ago."""
        return self._spent

    def with_room(self, most: int) -> Iterator[_Worker]:
        """Open workers, the idlest first, each as often as it has room; the caller counts ``under_way``."""
        while open_ones := [worker for worker in self._workers if worker.is_open and worker.under_way < most]:
            yield min(open_ones, key=lambda worker: worker.under_way)

    def note_opened(self, ref: Any) -> None:
        """A worker has opened everything, or could not: then its error stops the run."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        worker = self.opening.pop(ref)
        try:
            machine = ray.get(ref)
        except RayTaskError as error:
            raise cause_of(error) from None
        except RayError as error:
            if getattr(error, "actor_init_failed", False):  # its configuration or its machine is wrong, and will be
                raise MachineError(f"a worker could not be made: {error}") from None
            self._lost_unopened += 1
            if self._lost_unopened >= LOST_AT_MOST * len(self._workers):
                raise MachineError(
                    f"{self._lost_unopened} workers in a row were lost while they opened what the build needs; the "
                    f"last: {error}\nIs the machine short of memory? Give workers another by executor.workers."
                ) from None
            self.replace(worker, error)
            return
        self._lost_unopened = 0
        worker.is_open = True
        log.info("a worker is ready on %s", machine)

    def replace(self, worker: _Worker, error: Exception) -> None:
        """Start another worker for one that is lost; it waits until there is a machine for it."""
        if worker in self._workers:
            log.warning("a worker is lost; its shards go to others. %s", str(error).splitlines()[0])
            self._workers.remove(worker)
            self._alone_since, self._said = time.monotonic(), False
            self._start_worker()

    def say_if_alone(self) -> None:
        """Say once what is waited for when no worker is open for long."""
        if any(worker.is_open for worker in self._workers):
            self._alone_since = time.monotonic()
        elif not self._said and time.monotonic() - self._alone_since > SAY_AFTER_S:
            self._said = True
            log.warning("no machine of the cluster has room for a worker: %s", self._executor.workers)

    @contextlib.contextmanager
    def watched(self, progress: Any) -> Iterator[None]:
        """Keep ``progress`` and the spending up to date with the cluster until the block ends."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(1.0):
                try:
                    self._take_state(timeout_s=5.0)
                except Exception as error:  # the run itself will meet it
                    log.debug("no news of the cluster: %s", error)
                    continue
                progress.rows, progress.outcomes = self.tally.sums()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            with contextlib.suppress(Exception):  # what is gone tells nothing more
                self._take_state(timeout_s=CLOSE_S)
            progress.rows, progress.outcomes = self.tally.sums()

    def _take_state(self, timeout_s: float) -> None:
        import ray

        self._spent, told = ray.get(self._gateway.state.remote(), timeout=timeout_s)
        self.tally.hear(told)

    def _ask(self, ref: Any) -> Any:
        import ray
        from ray.exceptions import RayError

        try:
            return ray.get(ref)
        except RayError as error:
            raise cause_of(error) from None

    def _start_worker(self) -> None:
        import ray

        worker = _Worker(
            ray.remote(ShardWorker)
            .options(
                **self._executor.workers.options,
                scheduling_strategy="SPREAD",
                max_concurrency=self._executor.shards_in_flight + 1,  # one to close
            )
            .remote(self._config, str(self._out), self._sign, _environment(PLACES), self._gateway, self._stages)
        )
        self._workers.append(worker)
        self.opening[worker.actor.open.remote()] = worker

    def _stage_worker(self, name: str, place: Place) -> Any:
        import ray

        return (
            ray.remote(StageWorker)
            .options(
                **place.options,
                scheduling_strategy="SPREAD",
                max_concurrency=AT_ONCE,
                max_restarts=-1,
                max_task_retries=-1,
            )
            .remote(self._config, name, _environment(PLACES), self._gateway)
        )

    def _count(self, place: Place) -> int:
        import ray

        return place.count or sum(node["Alive"] for node in ray.nodes())


def _close(actors: Sequence[Any]) -> None:
    """Let ``actors`` close what they hold, for a while, and end them."""
    import ray

    if actors:
        ray.wait([actor.close.remote() for actor in actors], num_returns=len(actors), timeout=CLOSE_S)
    for actor in actors:
        ray.kill(actor)


def _refuse_unreachable(address: str | None) -> None:
    """Raise ``MachineError`` at once for a ``host:port`` where nobody listens; Ray itself would try for minutes."""
    match = re.fullmatch(r"(?:ray://)?([^/:]+):(\d+)", address or "")
    if match:
        try:
            socket.create_connection((match[1], int(match[2])), timeout=10).close()
        except OSError as error:
            raise _no_cluster(address, error) from error


def _no_cluster(address: str | None, error: Exception) -> MachineError:
    return MachineError(
        f"no Ray cluster could be reached at executor.address={address}: {error}. "
        "Start one with `ray start --head`, or leave the address out for one on this machine. A cluster that asks for "
        "a token wants the head's ~/.ray/auth_token here too, and RAY_AUTH_MODE=token, for Ray shows it to a named "
        "address only then."
    )


def _land(out: Path, number: int, landed: Landed) -> None:
    """Put a part that came back into the run's folder, its marker last."""
    if landed.part is None or landed.marker is None:
        return
    part = pipeline.part_of(out, number)
    temporary = part.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(landed.part)
        file.flush()
        os.fsync(file.fileno())
    pipeline.unmark(part)
    temporary.replace(part)
    manifest.write_text(part.with_suffix(".json"), landed.marker)


def _environment(*kinds: re.Pattern[str]) -> dict[str, str]:
    """The variables of these kinds: a cluster's processes do not inherit them from the command."""
    return {name: value for name, value in os.environ.items() if any(kind.search(name) for kind in kinds)}
