"""The order of things: a build is cut into shards of queries, and a shard runs all stages.

    RUN/
      manifest.json          what the run was made of; state running, interrupted or complete
      journal.sqlite         every answer that was paid for
      shards/00000.parquet   nested rows (query, candidates, verdicts, scores, pairs), renamed into place
      shards/00000.json      its completion marker: the fingerprint of everything that made it
      cache/                 one Arrow file a stage and shard, named by fingerprint
      candidates/ dpo/ …     the published views

Fingerprints are a chain, hash(what came in, stage, the settings that change its result): a changed reward re-runs the
reward and what follows it, and nothing before.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.config.objects import ObjectBuilder, settings_of
from bestofn.builders.errors import ConfigError, MachineError, SourceError
from bestofn.builders.formats.nearest_match import unknown_key
from bestofn.builders.protocols import Sampler, Source, Stage
from bestofn.builders.records import Query
from bestofn.builders.run import manifest
from bestofn.builders.run.apply import apply, beside, fingerprint
from bestofn.builders.run.progress import Progress
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import sampler
from bestofn.builders.schema import SCHEMA_VERSION, features, query_to_row
from bestofn.builders.tables import parquet_files, views
from bestofn.builders.tables.arrow_rows import to_table

log = logging.getLogger(__name__)


@dataclass
class Build:
    """A build's objects. They are made at once, and opened when the first shard needs them."""

    config: Mapping[str, Any]
    out: Path
    source: Source
    stages: list[tuple[Stage, Any]]  # with the settings that name its result
    assembly: ObjectBuilder
    ledger: Ledger
    progress: Progress
    loop: Loop
    spending: Callable[[], Mapping[str, Any]]  # see ``Ledger.totals``
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _opened: bool = False

    def open(self) -> None:
        """Open what holds connections, containers or models; once, by whoever comes first."""
        with self._lock:
            if not self._opened:
                self._stack.enter_context(self.loop.open(*self.assembly.opened_in_order))
                self._opened = True

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def assembled(config: Mapping[str, Any], out: Path) -> Iterator[Build]:
    """The build that ``config`` describes, its wrong settings already refused; closed at the end of the block."""
    with Loop() as loop:
        build = assemble(config, out, loop)
        try:
            yield build
        finally:
            build.close()


def assemble(
    config: Mapping[str, Any],
    out: Path,
    loop: Loop,
    *,
    wrap: Callable[[Any, Ledger], Sampler] | None = None,
    elsewhere: Mapping[str, Stage] | None = None,
) -> Build:
    """Make the objects of ``config``. Raises ``ConfigError``; sends nothing and opens nothing.

    On one machine of many, ``wrap`` makes the sampler of a provider that is asked on another one, so that there is no
    journal here, and ``elsewhere`` holds the stages, by name, that run on others.
    """
    check_root(config)
    ledger = Ledger(budget_usd=config.get("budget_usd"), prices=config.get("prices"))
    journal = Journal(Path(config.get("journal") or out / "journal.sqlite"))
    assembly = ObjectBuilder(
        trusted=config.get("trusted") or (),
        wrap=lambda provider: wrap(provider, ledger) if wrap else sampler(provider, journal, ledger),
        names=getattr(config, "names", {}),
    )
    if wrap is None:
        assembly.opened_in_order.append(journal)
    source = assembly.build(config["dataset"], "dataset")
    stages: list[tuple[Stage, Any]] = []
    for name, node in config["stages"].items():
        stage = (elsewhere or {}).get(name) or assembly.build(node, f"stages.{name}")
        stages.append((stage, settings_of(node, assembly)))
    progress = Progress(total=len(source) if hasattr(source, "__len__") else None)  # type: ignore[arg-type]
    return Build(config, out, source, stages, assembly, ledger, progress, loop, ledger.totals)


def check_root(config: Mapping[str, Any]) -> None:
    """Refuse a top-level key that nothing reads."""
    from bestofn.builders.config.composition import ROOT_GROUPS

    for key in config:
        if key not in ROOT_KEYS and key not in ROOT_GROUPS:
            raise ConfigError(unknown_key(str(key), str(key), [*ROOT_KEYS, *ROOT_GROUPS], "A build"))


ROOT_KEYS = (
    "n",
    "sampling",
    "seed",
    "out",
    "name",
    "notes",
    "stages",
    "views",
    "test_share",
    "keep_persona",
    "shard_size",
    "budget_usd",
    "prices",
    "dry_run",
    "journal",
    "trusted",
    "experiment_name",
    "config_file",
)


def shards(source: Source, size: int) -> Iterator[tuple[int, list[Query]]]:
    """The queries of ``source`` in numbered runs of ``size``. Raises ``SourceError`` when there are none."""
    queries = iter(source)
    for number in itertools.count():
        part = list(itertools.islice(queries, size))
        if not part:
            if number == 0:
                raise SourceError(
                    f"dataset {getattr(source, 'name', source)!r} gave no query. Skipped: "
                    f"{dict(getattr(source, 'skipped', {})) or 'nothing'}. Check dataset.splits, dataset.offset, "
                    "dataset.max_queries and the mapping."
                )
            return
        yield number, part


def chain(build: Build, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fingerprint after each stage for these rows."""
    names = [fingerprint(SCHEMA_VERSION, manifest.versions().get("bestofn"), rows)]
    for stage, settings in build.stages:
        names.append(fingerprint(names[-1], stage.name, settings))
    return names[1:]


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextlib.contextmanager
def told_when_full() -> Iterator[None]:
    """A disk that takes no more, as a ``MachineError`` that says what to do."""
    try:
        yield
    except OSError as error:  # Arrow's has its number in its words
        if error.errno not in FULL and not any(f"errno {number}]" in str(error).lower() for number in FULL):
            raise
        raise MachineError(
            f"the disk of the run's folder takes no more ({error}). Every answer that was paid for is in the journal. "
            "Make room, and run the same command again."
        ) from None


@told_when_full()
def run_shard(build: Build, number: int, queries: Sequence[Query]) -> Path:
    """Run all stages over ``queries`` and leave the shard's Parquet part with its marker; a finished one is kept.

    What a stage has finished before, under the same fingerprint, is taken from the cache.
    """
    from datasets import Dataset, Features
    from datasets.table import InMemoryTable

    rows = [query_to_row(query) for query in queries]
    names = chain(build, rows)
    part = part_of(build.out, number)
    if _is_done(part, names[-1]):
        build.progress.shard_found(len(rows))
        return part
    build.open()
    cache = build.out / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    columns = Features(dict(features()["query"]))
    dataset = Dataset(InMemoryTable(to_table(rows, columns)), fingerprint=names[-1])
    for (stage, _), name in zip(build.stages, names, strict=True):
        file = cache / f"{number:05d}-{stage.name}-{name}.arrow"
        added = apply(dataset, stage, build.loop, fingerprint=name, cache_file=file, row_done=build.progress.row_done)
        dataset = beside(dataset, added)
    unmark(part)
    parquet_files.write_tables(
        dataset.with_format("arrow").iter(256), part, dataset.features, {"schema_version": SCHEMA_VERSION}
    )
    told = {"fingerprint": names[-1], "rows": len(rows), "stages": names}
    manifest.write_text(part.with_suffix(".json"), json.dumps(told) + "\n")
    return part


def part_of(out: Path, number: int) -> Path:
    """Where shard ``number`` lands; its marker has the suffix ``.json``."""
    return out / "shards" / f"{number:05d}.parquet"


def unmark(part: Path) -> None:
    """Take away the marker of what stands at ``part``: a kill must not leave it beside what comes in its place."""
    part.with_suffix(".json").unlink(missing_ok=True)


def is_finished(build: Build, number: int, queries: Sequence[Query]) -> bool:
    """Whether shard ``number`` has landed, made of these queries with these settings."""
    return _is_done(part_of(build.out, number), chain(build, [query_to_row(query) for query in queries])[-1])


@told_when_full()
def finish(build: Build, parts: Sequence[Path]) -> dict[str, Any]:
    """Write the published views of the finished shards and the manifest; drop what no shard refers to any more."""
    _drop_stale(build.out, parts)
    facts = {
        "queries": sum(_rows(part) for part in parts),
        "skipped": dict(getattr(build.source, "skipped", {})),
        "dropped": list(getattr(build.source, "dropped", ())),
        "spending": dict(build.spending()),
        "shards": len(parts),
    }
    described = manifest.describe(build.config, state="complete", **facts)
    described["views"] = views.write_views(parts, build.out, described, system=_kept_persona(build))
    manifest.write(build.out, described)
    return described


def _kept_persona(build: Build) -> str:
    """The text that training prompts begin with: the persona's with ``keep_persona``, else none."""
    personas = [persona for stage, _ in build.stages if (persona := getattr(stage, "persona", None))]
    return personas[0].text if personas and build.config.get("keep_persona") else ""


def note_state(build: Build, state: str) -> None:
    """Write a manifest that says how far the run is: ``running`` or ``interrupted``.

    A disk that is full does not hide what interrupted the run: most likely it is that.
    """
    try:
        manifest.write(build.out, manifest.describe(build.config, state=state, spending=dict(build.spending())))
    except OSError as error:
        if state != "interrupted":
            raise
        log.warning("the manifest in %s still says that the run is going on: %s", build.out, error)


def writable(out: Path) -> None:
    """Make the run's folder. Raises ``MachineError`` when it cannot be written."""
    try:
        (out / "shards").mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise MachineError(
            f"the run folder {out} cannot be written ({error.strerror}). Nothing was sent. "
            "Free the disk or set out=… to a folder of yours."
        ) from error


def _is_done(part: Path, fingerprint: str) -> bool:
    try:
        marked = json.loads(part.with_suffix(".json").read_text("utf-8"))["fingerprint"]
    except (FileNotFoundError, ValueError, KeyError):
        return False
    return marked == fingerprint and part.exists()


def _rows(part: Path) -> int:
    import pyarrow.parquet as pq

    return pq.ParquetFile(part).metadata.num_rows


def _drop_stale(out: Path, parts: Sequence[Path]) -> None:
    """Remove parts and cache files of settings that are not those of this run."""
    kept = {part.name for part in parts} | {part.with_suffix(".json").name for part in parts}
    for path in (out / "shards").iterdir():
        if path.name not in kept:
            path.unlink()
    stages = {name for part in parts for name in json.loads(part.with_suffix(".json").read_text("utf-8"))["stages"]}
    cache = out / "cache"
    if cache.is_dir():
        for path in cache.iterdir():
            if path.stem.rsplit("-", 1)[-1] not in stages:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
