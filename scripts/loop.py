"""``bestofn loop [dpo|sft|kto|grpo|reward]``: build, pair, train, build again: does the data teach?

A build with the policy on training queries, TRL on its data, again for every further round with the policy so far, and
builds on held-out queries before and after. Each step is a command of its own and is printed as one.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bestofn.builders.analysis.query_records import query_records
from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_composed
from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import BestofnError
from bestofn.builders.records import Candidate, Query, Score
from bestofn.builders.statistics.estimators import pass_at_k
from bestofn.builders.statistics.intervals import bootstrap_difference_interval, bootstrap_interval
from bestofn.builders.tables.arrow_rows import from_table
from bestofn.builders.tables.parquet_files import rows_in, table_files
from bestofn.builders.training.trainers import TrainingSettings, recipe, train
from bestofn.builders.training.verified_reward import verified_reward
from bestofn.reward.model_reward import ModelReward
from bestofn.scripts.catalogue import LOOP

Passes = Mapping[str, tuple[str, int, int]]
"""query id -> (split, passes, conclusive candidates)"""


class Preference(NamedTuple):
    """A pair as a reward model sees it; lengths in characters of JSON."""

    query: str
    split: str
    chosen_score: float
    rejected_score: float
    chosen_length: int
    rejected_length: int


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn loop`` with the words of a command line."""
    run_composed(LOOP, loop, words, first=trl_recipe)


def trl_recipe(arguments: Arguments) -> list[str]:
    """The override that chooses TRL's settings for the method (default dpo) and the model."""
    method = next(iter(arguments.positionals["METHOD"]), "dpo")
    return [recipe(method, arguments.overrides)]


def loop(config: Mapping[str, Any]) -> dict[str, Any]:
    """Run the loop; writes ``loop.json`` and ``loop.md`` in its folder, prints the table."""
    out, started = Path(config["out"]), time.perf_counter()
    heldout = ("heldout", config["heldout"], config["seed"])
    before = build(config, config["model"], *heldout, out / "before")
    check_decided(before, config)
    if config["method"] == "reward":
        run = build(config, config["model"], "train", config["queries"], config["seed"], out / "round-1")
        train(settings(config, config["model"], [run], out / "reward", evaluate=[before]))
        report = pair_report(scored_pairs(out / "reward", before))
    else:
        model = config["model"]
        for number in range(1, config["rounds"] + 1):
            run = build(config, model, "train", config["queries"], config["seed"] + number, out / f"round-{number}")
            model = trained(config, model, run, out / f"model-{number}")
        after = build(config, model, *heldout, out / "after")
        report = pass_report(passes(before), passes(after))
    report |= {"method": config["method"], "seconds": round(time.perf_counter() - started)}
    (out / "loop.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "loop.md").write_text(table(report) + "\n")
    print(f"\n{table(report)}\n\n{config['method']}, {report['seconds']} s, all of it in {out}")
    return report


# --- the steps -------------------------------------------------------------------------------------------------------


def build(config: Mapping[str, Any], model: str, part: str, size: int, seed: int, out: Path) -> Path:
    """A finished build of ``model``; one that is there already is kept, as with every build."""
    words = [
        "dataset=starter",
        f"dataset.part={part}",
        f"dataset.size={size}",
        f"dataset.seed={seed}",
        *([f"dataset.splits=[{','.join(config['splits'])}]"] if config.get("splits") else []),
        "provider=transformers",
        f"provider.model={model}",
        "provider.max_answer_tokens=192",
        f"provider.threads={config['threads']}",
        f"n={config['n']}",
        "tools=none",
        "test_share=0",
        *config["build"],
    ]
    print(f"\n$ bestofn build {' '.join(words)} out={out}", flush=True)
    built = compose([*words, f"out={out}"])
    ObjectBuilder(trusted=built.get("trusted") or ()).build(built["executor"], "executor").run(built, out)
    return out


def check_decided(heldout: Path, config: Mapping[str, Any]) -> None:
    """Refuse, before anything is trained, held-out queries from which nothing could be told afterwards."""
    found = f"of the {config['heldout']} held-out queries × {config['n']} in {heldout}"
    more = "Remedy: a larger `heldout`, a larger `n`, or a folder (`out`) in which nothing is yet."
    if not passes(heldout):
        raise BestofnError(f"Found: {found}, none has a verdict, so there is nothing to compare.\n{more}")
    if config["method"] == "reward" and not rows_in(table_files(heldout / "reward_model", "train")):
        raise BestofnError(f"Found: {found}, none has both a pass and a fail, so a reward model has no pairs.\n{more}")


def trained(config: Mapping[str, Any], model: str, run: Path, out: Path) -> str:
    """The folder of ``model`` trained on ``run``."""
    chosen = settings(config, model, [run], out)
    with verified_reward(config) if config["method"] == "grpo" else nullcontext() as reward:
        train(chosen, [reward] if reward else [])
    return str(out)


def settings(
    config: Mapping[str, Any], model: str, runs: Sequence[Path], out: Path, evaluate: Sequence[Path] = ()
) -> TrainingSettings:
    print(f"\n$ bestofn train {config['method']} {runs[-1]} model={model} out={out}", flush=True)
    return TrainingSettings(
        method=config["method"],
        runs=tuple(runs),
        out=out,
        model=model,
        evaluate=tuple(evaluate),
        trl=config["trl"],
        seed=config["seed"],
        resume=config["resume"],
    )


# --- what came of it -------------------------------------------------------------------------------------------------


def passes(run: Path) -> Passes:
    """The conclusive verdicts of a run's samples by query; a query without any is left out."""
    return {
        query.query_id: (query.split, sum(candidate.right for candidate in counting), len(counting))
        for query in query_records(run)
        if (counting := query.counting)
    }


def pass_report(before: Passes, after: Passes) -> dict[str, Any]:
    """pass@1 before and after over the queries that both runs decided, in all and by split; intervals by query."""
    queries = sorted(set(before) & set(after))
    splits = sorted({before[query][0] for query in queries})
    report: dict[str, Any] = {"queries": len(queries), "undecided": len(set(before) ^ set(after)), "splits": {}}
    for split in ["all", *splits]:
        chosen = [query for query in queries if split in ("all", before[query][0])]
        first = [before[query][1] / before[query][2] for query in chosen]
        second = [after[query][1] / after[query][2] for query in chosen]
        report["splits"][split] = {
            "queries": len(chosen),
            "before": mean(first),
            "after": mean(second),
            "gain": mean(second) - mean(first),
            "interval": bootstrap_difference_interval(first, second),
            "best_of_8_before": mean([at_least_one(*before[query][1:]) for query in chosen]),
            "best_of_8_after": mean([at_least_one(*after[query][1:]) for query in chosen]),
        }
    return report


def at_least_one(right: int, count: int) -> float:
    return pass_at_k(count, right, min(8, count))


def scored_pairs(model: Path, heldout: Path) -> list[Preference]:
    """The reward model's scores of both sides of the pairs of a run, by the scorer that a build uses."""
    import pyarrow.parquet as pq
    from datasets import Features

    columns = ["query_id", "split_name", "chosen", "rejected", "tools"]
    read = pq.read_table(table_files(heldout / "reward_model", "train"), columns=columns)
    rows = from_table(read, Features.from_arrow_schema(read.schema))

    async def scores() -> list[list[Score]]:
        async with ModelReward(str(model)) as reward:
            return await asyncio.gather(*(reward.score(*sides_of(row), ()) for row in rows))

    pairs = []
    for row, both in zip(rows, asyncio.run(scores()), strict=True):
        chosen, rejected = (-math.inf if score.value is None else score.value for score in both)  # unread ranks last
        lengths = (len(json.dumps(row[side])) for side in ("chosen", "rejected"))
        pairs.append(Preference(row["query_id"], row["split_name"], chosen, rejected, *lengths))
    return pairs


def sides_of(row: Mapping[str, Any]) -> tuple[Query, list[Candidate]]:
    """Both conversations of a pair, as what a reward model is given."""
    query = Query(row["query_id"], row["split_name"], (), tools=tuple(json.loads(row["tools"] or "[]")))
    return query, [Candidate(place, tuple(row[side])) for place, side in enumerate(("chosen", "rejected"))]


def pair_report(pairs: Sequence[Preference]) -> dict[str, Any]:
    """How often the reward model, and how often length alone, prefers the chosen side; intervals by query.

    Length is the better of "the shorter is right" and "the longer is right", chosen with hindsight on the same pairs.
    """
    report: dict[str, Any] = {"pairs": len(pairs), "splits": {}}
    for split in ["all", *sorted({pair.split for pair in pairs})]:
        chosen = [pair for pair in pairs if split in ("all", pair.split)]
        by_length = [preferred(pair.rejected_length, pair.chosen_length) for pair in chosen]
        if mean(by_length) < 0.5:
            by_length = [1.0 - hit for hit in by_length]
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for pair, shorter in zip(chosen, by_length, strict=True):
            one = sums[pair.query]
            one[0] += preferred(pair.chosen_score, pair.rejected_score)
            one[1] += shorter
            one[2] += 1
        queries = np.array(list(sums.values()))
        right, length, count = queries.sum(axis=0)
        report["splits"][split] = {
            "pairs": len(chosen),
            "accuracy": right / count,
            "interval": bootstrap_interval(queries, lambda means: means[:, 0] / means[:, 2]),
            "length": length / count,
            "margin": (right - length) / count,
            "margin_interval": bootstrap_interval(queries, lambda means: (means[:, 0] - means[:, 1]) / means[:, 2]),
        }
    return report


def preferred(chosen: float, rejected: float) -> float:
    """1 where the chosen side has more, ½ for a tie."""
    return 0.5 if chosen == rejected else float(chosen > rejected)


def table(report: Mapping[str, Any]) -> str:
    """The report as a Markdown table."""
    if "pairs" in report:
        head = "| split | held-out pairs | reward model | 95 % interval | length | above length | 95 % interval |\n"
        lines = [
            f"| {split} | {row['pairs']} | {row['accuracy']:.3f} | {between(row['interval'], '')} "
            f"| {row['length']:.3f} | {row['margin']:+.3f} | {between(row['margin_interval'], '+')} |"
            for split, row in report["splits"].items()
        ]
        return "\n".join([head + "|---" * 7 + "|", *lines])
    head = "| split | queries | pass@1 before | after | gain | 95 % interval | pass@8 before | after |\n" + "|---" * 8
    lines = [
        f"| {split} | {row['queries']} | {row['before']:.3f} | {row['after']:.3f} | {row['gain']:+.3f} | "
        f"{between(row['interval'], '+')} | {row['best_of_8_before']:.3f} | "
        f"{row['best_of_8_after']:.3f} |"
        for split, row in report["splits"].items()
    ]
    return "\n".join([head + "|", *lines])


def between(interval: Sequence[float], sign: str) -> str:
    return " to ".join(f"{end:{sign}.3f}" for end in interval)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


if __name__ == "__main__":
    main()
