"""Draw chosen candidates of a finished run anew, and leave the rest as it is.

    RUN/regenerations/ID/00000.parquet    a shard with its new candidates, until all are done
    RUN/regenerations/ID/made_of.json     the shards that it began with, by size and time
    RUN/regenerations/ID/before/          the shards as they were
    RUN/regenerations/ID/ready.json       everything is drawn: the shards are being exchanged
    RUN/regenerations/ID/done.json        what was chosen and what became of it

A new draw is a further attempt under the candidate's own index, so the journal keeps old and new, and an interrupted
regeneration asks nothing twice. The verdict follows the new answer; rewards and pairs compare siblings, and are made
anew for the rows that were touched. What stood there before is kept in ``detail["history"]``, oldest first.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate
from bestofn.builders.run import manifest, pipeline
from bestofn.builders.run.apply import fingerprint
from bestofn.builders.run.selection import chosen_positions, condition
from bestofn.builders.schema import SCHEMA_VERSION, candidate_to_row, features, query_from_row
from bestofn.builders.stages.generate import Generate
from bestofn.builders.stages.verify import Verify
from bestofn.builders.tables import parquet_files, views

log = logging.getLogger(__name__)

BETTER = {"error": 0, "fail": 1, "abstain": 2, "pass": 3}


@dataclass(frozen=True)
class Order:
    """What to draw anew: ``where`` (see ``builders.run.selection``), at most ``most`` candidates.

    ``keep_if_better`` puts the new answer in place only if its verdict is better. ``changes`` are the settings that
    differ from the run's own, as they were given.
    """

    where: str
    most: int | None = None
    keep_if_better: bool = False
    changes: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What a regeneration did, or would do."""

    chosen: int = 0
    queries: int = 0
    replaced: int = 0
    moves: dict[str, int] = field(default_factory=dict)  # "fail -> pass" -> candidates
    spending: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


def regenerate(config: Mapping[str, Any], out: Path, order: Order, *, dry_run: bool = False) -> Outcome:
    """Carry ``order`` out on the run in ``out``, drawing with ``config``. Raises ``ConfigError`` for what cannot be."""
    wanted = condition(order.where)
    if not dry_run and _finish_interrupted(out):
        with pipeline.assembled(config, out) as build:
            _publish(build, out)
        return Outcome(note="an interrupted regeneration was finished; run the command again to draw further attempts")
    parts = views.parts_of(out)
    targets = choose(parts, wanted, order.most)
    outcome = Outcome(
        chosen=sum(len(positions) for rows in targets.values() for positions in rows.values()),
        queries=sum(len(rows) for rows in targets.values()),
    )
    if dry_run or not outcome.chosen:
        return outcome
    made_of = {part.name: _stamp(part) for part in parts}
    markers = [part.with_suffix(".json").read_text("utf-8") for part in parts]
    folder = out / "regenerations" / fingerprint(asdict(order), markers, made_of)[:12]
    with pipeline.assembled(config, out) as build:
        build.open()
        stages = {stage.name: stage for stage, _ in build.stages}
        generate = stages["generate"]
        if not isinstance(generate, Generate) or not isinstance(generate.sampler, Sampler):
            raise ConfigError("this run's answers were recorded, not drawn. Say who draws them anew: provider=…")
        manifest.write_text(folder / "made_of.json", json.dumps(made_of) + "\n")
        for part in parts:
            if part in targets and not (folder / part.name).exists():
                rows = list(views.nested([part]))
                build.loop.run(_redo(rows, targets[part], stages, order, outcome))
                parquet_files.write_parquet(rows, folder / part.name, _features(), {"schema_version": SCHEMA_VERSION})
        outcome.spending = build.ledger.totals()
        described = asdict(outcome) | {"order": asdict(order), "at": datetime.now(UTC).isoformat(timespec="seconds")}
        manifest.write_text(folder / "ready.json", json.dumps(described, default=str) + "\n")
        _exchange(out, folder)
        _publish(build, out)
    return outcome


def choose(parts: Sequence[Path], wanted: Any, most: int | None) -> dict[Path, dict[int, list[int]]]:
    """Part -> row number -> positions of the chosen candidates, at most ``most`` in all."""
    left = float("inf") if most is None else most
    targets: dict[Path, dict[int, list[int]]] = {}
    for part in parts:
        for number, row in enumerate(views.nested([part])):
            positions = chosen_positions(row, wanted)[: int(min(left, len(row["candidates"])))]
            if positions:
                targets.setdefault(part, {})[number] = positions
                left -= len(positions)
    return targets


async def _redo(
    rows: list[dict[str, Any]],
    targets: Mapping[int, Sequence[int]],
    stages: Mapping[str, Any],
    order: Order,
    outcome: Outcome,
) -> None:
    """Put new candidates into ``rows``, with their verdicts, and make scores and pairs of the touched rows anew."""

    async def one(number: int, positions: Sequence[int]) -> None:
        row = rows[number]
        if await _redraw(row, positions, stages["generate"], stages["verify"], order, outcome):
            for name, stage in stages.items():
                if name not in ("generate", "verify"):
                    row.update(await stage(row))

    await run_together(one(number, positions) for number, positions in targets.items())


async def _redraw(
    row: dict[str, Any],
    positions: Sequence[int],
    generate: Generate,
    verify: Verify,
    order: Order,
    outcome: Outcome,
) -> int:
    """Draw the candidates at ``positions`` once more; returns how many were put in place."""
    query = query_from_row(row)
    by_attempt: dict[int, list[int]] = {}
    for position in positions:
        by_attempt.setdefault(next_attempt(row["candidates"][position]), []).append(position)
    drawn: dict[int, Candidate] = {}
    for attempt, group in by_attempt.items():
        numbers = [row["candidates"][position]["index"] for position in group]
        drawn |= {one.index: one for one in await generate.sample(query, numbers, attempt)}
    replaced = 0
    for position in positions:
        old, old_verdict = row["candidates"][position], row["verdicts"][position]
        new = candidate_to_row(drawn[old["index"]])
        (verdict,) = (await verify({**row, "candidates": [new]}))["verdicts"]
        better = BETTER[verdict["outcome"]] > BETTER[old_verdict["outcome"]]
        keep = better or not order.keep_if_better
        move = f"{old_verdict['outcome']} -> {verdict['outcome']}"
        outcome.moves[move] = outcome.moves.get(move, 0) + 1
        kept, other, other_verdict = (new, old, old_verdict) if keep else (old, new, verdict)
        history = [*((old["detail"] or {}).get("history") or ()), _remembered(other, other_verdict, keep)]
        kept["detail"] = {**(kept["detail"] or {}), "history": history, "regen_count": len(history)}
        if keep:
            kept["detail"]["previous_status"] = old_verdict["outcome"]
            kept["detail"]["regenerated_with"] = list(order.changes)
            row["verdicts"][position] = verdict
            replaced += 1
        row["candidates"][position] = kept
    outcome.replaced += replaced
    return replaced


def next_attempt(candidate: Mapping[str, Any]) -> int:
    """An attempt that was never made under this candidate's index."""
    history = (candidate["detail"] or {}).get("history") or ()
    return 1 + max([candidate["attempt"], *(past["attempt"] for past in history)])


def _remembered(candidate: Mapping[str, Any], verdict: Mapping[str, Any], stood: bool) -> dict[str, Any]:
    """What is kept of an answer that is not in place any more (``stood``), or never was."""
    kept = ("attempt", "messages", "model", "stop_reason", "reasoning", "seed", "cost_usd", "error")
    told = ("outcome", "confidence", "explanation", "verifier")
    return {
        **{name: candidate[name] for name in kept},
        "verdict": {name: verdict[name] for name in told},
        "stood": stood,
    }


def _exchange(out: Path, folder: Path) -> None:
    """Put the new shards in place, one rename each; what stood there goes to ``before``. Can be begun again.

    A shard that was made of another than the one that is there, for it was regenerated or built anew meanwhile, would
    undo what is newer: it is dropped, and its draws are in the journal.
    """
    before = folder / "before"
    before.mkdir(exist_ok=True)
    made_of = _made_of(folder)
    for new in sorted(folder.glob("*.parquet")):
        old = out / "shards" / new.name
        if new.name in made_of and made_of[new.name] != _stamp(old):
            log.warning("%s was changed meanwhile; its candidates of this regeneration are not put in place", old)
            new.unlink()
            continue
        if not (before / new.name).exists():
            temporary = before / f"{new.name}.tmp"
            shutil.copy2(old, temporary)
            temporary.rename(before / new.name)
        new.rename(old)
    (folder / "ready.json").rename(folder / "done.json")


def _stamp(part: Path) -> list[int]:
    """What tells a shard from what stood in its place before; [] when there is none."""
    if not part.exists():
        return []
    told = part.stat()
    return [told.st_size, told.st_mtime_ns]


def _made_of(folder: Path) -> dict[str, list[int]]:
    """Name of a shard -> stamp of what stood there when the regeneration in ``folder`` began."""
    try:
        return json.loads((folder / "made_of.json").read_text("utf-8"))
    except FileNotFoundError:  # begun by an older bestofn
        return {}


def _finish_interrupted(out: Path) -> bool:
    """Exchange the shards of a regeneration that was ended while it did so; whether there was one."""
    folders = [ready.parent for ready in sorted((out / "regenerations").glob("*/ready.json"))]
    for folder in folders:
        _exchange(out, folder)
    return bool(folders)


def _publish(build: pipeline.Build, out: Path) -> None:
    """Write the views anew. The manifest keeps the run's own configuration, and gains the list of regenerations."""
    own = manifest.read(out)
    pipeline.finish(build, views.parts_of(out))
    described = manifest.read(out)
    done = [json.loads(path.read_text("utf-8")) for path in sorted((out / "regenerations").glob("*/done.json"))]
    described |= {"config": own.get("config", described["config"]), "regenerations": done}
    manifest.write(out, described)


def _features() -> Any:
    from datasets import Features

    columns: dict[str, Any] = {}
    for part in features().values():
        columns |= part
    return Features(columns)
