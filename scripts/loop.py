"""``bestofn loop [dpo|sft|kto|grpo|reward]``: measures whether training on a build's data improves the policy.

Each round runs a build on training queries with the current policy and trains the policy on the new data with TRL. Two
builds on held-out queries, one before and one after training, measure the gain. Each step is a normal bestofn command,
which is printed.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bestofn.builders.analysis.candidates import blocks_of_run
from bestofn.builders.analysis.comparison import outcomes_by_query
from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_composed
from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import BestofnError, ConfigError, require
from bestofn.builders.records import Candidate, JsonObject, Query, Row, Score
from bestofn.builders.run.fingerprints import fingerprint
from bestofn.builders.tables.arrow_rows import from_table
from bestofn.builders.tables.parquet_files import rows_in, table_files
from bestofn.builders.training.record import determining
from bestofn.builders.training.settings import TrainingSettings, recipe
from bestofn.builders.training.trainers import train
from bestofn.builders.training.verified_reward import reward_settings, verified_reward
from bestofn.reward.model_reward import ModelReward
from bestofn.scripts.catalogue import LOOP
from bestofn.scripts.loop_report import Passes, Preference, pair_report, pass_report, report_table

GRPO_ONLY = re.compile(r"(verifier|sandbox|persona)[.=]")
WORDS_OF_BUILDS = "\"build=['pairs=verified_vs_refuted','pairs.pairs_per_query=4','{}']\""


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn loop``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_composed(LOOP, loop, words, first=trl_recipe)


def trl_recipe(arguments: Arguments) -> list[str]:
    """Return the override that selects TRL's settings for the method (default: dpo) and the model."""
    method = next(iter(arguments.positionals["METHOD"]), "dpo")
    for override in arguments.overrides:
        if method != "grpo" and (used_by_grpo := GRPO_ONLY.match(override)):
            raise ConfigError(
                f"{used_by_grpo[1]} is set for the method {method}; expected the method grpo, whose reward uses it. To "
                f"set it for the builds: {WORDS_OF_BUILDS.format(override)}."
            )
    return [recipe(method, arguments.overrides)]


def loop(config: JsonObject) -> JsonObject:
    """Run the loop and return its report; the report is also printed and written to the folder ``out``."""
    for key in ("rounds", "queries", "heldout", "n"):
        if config[key] < 1:
            raise ConfigError(f"{key} is {config[key]}; expected at least 1.")
    require("trl")
    out, started = Path(config["out"] or default_folder(config)), time.perf_counter()
    heldout = ("heldout", config["heldout"], config["seed"])
    before = build(config, config["model"], *heldout, out / "before")
    check_verdicts(before, config)
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
    (out / "loop.md").write_text(report_table(report) + "\n")
    print(f"\n{report_table(report)}\n\n{config['method']}, {report['seconds']} s. All files are in {out}.")
    return report


def default_folder(config: JsonObject) -> str:
    """Return ``runs/loop-METHOD-HASH``. The hash contains all settings that change the result."""
    settings = {key: value for key, value in config.items() if key not in ("out", "resume", "threads", "trusted")}
    settings |= {"trl": determining(config["trl"]), "verifier": reward_settings(config)}
    return f"runs/loop-{config['method']}-{fingerprint(settings)[:8]}"


# --- the steps -------------------------------------------------------------------------------------------------------


def build(config: JsonObject, model: str, part: str, size: int, seed: int, out: Path) -> Path:
    """Run a build with ``model`` in the folder ``out`` and return ``out``; a finished build is not repeated."""
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
        "replace=true",  # another model or dataset than in an earlier loop in this folder
        *config["build"],
    ]
    print(f"\n$ bestofn build {' '.join(words)} out={out}", flush=True)
    built = compose([*words, f"out={out}"])
    ObjectBuilder(trusted=built.get("trusted") or ()).build(built["executor"], "executor").run(built, out)
    return out


def check_verdicts(heldout: Path, config: JsonObject) -> None:
    """Raise ``BestofnError`` if the held-out build has no verdicts or, for a reward model, no pairs to compare."""
    measured = f"of the {config['heldout']} held-out queries with {config['n']} answers each in {heldout}"
    remedy = "Set a larger `heldout` or `n`, or set `out` to an empty folder."
    if not passes(heldout):
        raise BestofnError(f"{measured}, none has a verdict, so there is nothing to compare. {remedy}")
    if config["method"] == "reward" and not rows_in(table_files(heldout / "reward_model", "train")):
        raise BestofnError(f"{measured}, none has both a pass and a fail, so there are no pairs. {remedy}")


def trained(config: JsonObject, model: str, run: Path, out: Path) -> str:
    """Train ``model`` on ``run`` and return the folder of the new model."""
    chosen = settings(config, model, [run], out)
    with verified_reward(config) if config["method"] == "grpo" else nullcontext() as reward:
        train(chosen, [reward] if reward else [])
    return str(out)


def settings(
    config: JsonObject, model: str, runs: Sequence[Path], out: Path, evaluate: Sequence[Path] = ()
) -> TrainingSettings:
    """Return the settings of one training, and print the equivalent command."""
    print(f"\n$ bestofn train {config['method']} {runs[-1]} model={model} out={out}", flush=True)
    return TrainingSettings(
        method=config["method"],
        runs=tuple(runs),
        out=out,
        model=model,
        evaluate=tuple(evaluate),
        trl=config["trl"],
        seed=config["seed"],
        lora=config["lora"],
        reward=reward_settings(config),
        threads=config["threads"],
        resume=config["resume"],
        replace=True,  # the loop made all files of this folder
    )


# --- the results -----------------------------------------------------------------------------------------------------


def passes(run: Path) -> Passes:
    """Return {query id: (split, number of passes, number of verdicts)}; queries with no verdict are omitted."""
    found = outcomes_by_query(blocks_of_run(run)).items()
    return {query: (one.split, one.counting[1], one.counting[0]) for query, one in found if one.counting}


def scored_pairs(model: Path, heldout: Path) -> list[Preference]:
    """Return the pairs of a held-out run, with the reward model's scores of the chosen and the rejected side.

    The scores are computed as in a build.
    """
    import pyarrow.parquet as pq
    from datasets import Features

    columns = ["query_id", "split_name", "chosen", "rejected", "tools"]
    read = pq.read_table(table_files(heldout / "reward_model", "train"), columns=columns)
    features: Any = Features.from_arrow_schema(read.schema)
    rows = from_table(read, features)

    async def scores() -> list[list[Score]]:
        async with ModelReward(str(model)) as reward:
            return await asyncio.gather(*(reward.score(*sides_of(row), ()) for row in rows))

    pairs = []
    for row, both in zip(rows, asyncio.run(scores()), strict=True):
        # a side that cannot be scored gets the lowest score
        chosen, rejected = (-math.inf if score.value is None else score.value for score in both)
        lengths = (len(json.dumps(row[side])) for side in ("chosen", "rejected"))
        pairs.append(Preference(row["query_id"], row["split_name"], chosen, rejected, *lengths))
    return pairs


def sides_of(row: Row) -> tuple[Query, list[Candidate]]:
    """Return the query and its two candidates (chosen, rejected), as the reward model needs them."""
    query = Query(row["query_id"], row["split_name"], (), tools=tuple(json.loads(row["tools"] or "[]")))
    return query, [Candidate(place, tuple(row[side])) for place, side in enumerate(("chosen", "rejected"))]


if __name__ == "__main__":
    main()
