"""``bestofn loop method=dpo|sft|kto|grpo|reward``: build, pair, train, build again: does the data teach?

A build with the policy on training queries, TRL on its data, again for every further round with the policy so far, and
builds on held-out queries before and after. Each step is a command of its own and is printed as one.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from builders import assemble
from builders.statistics import bootstrap_difference_interval, bootstrap_mean_interval, pass_at_k
from builders.trainers import TrainingSettings, recipe, train
from builders.verified_reward import verified_reward

Passes = Mapping[str, tuple[str, int, int]]
"""query id -> (split, passes, conclusive candidates)"""


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    method = next((word.partition("=")[2] for word in words if word.startswith("method=")), "dpo")
    assemble.command(loop, "loop", [recipe(method, words), *words])


def loop(config: Mapping[str, Any]) -> dict[str, Any]:
    """Run the loop; writes ``loop.json`` and ``loop.md`` in its folder, prints the table."""
    out, started = Path(config["out"]), time.perf_counter()
    heldout = ("heldout", config["heldout"], config["seed"])
    before = build(config, config["model"], *heldout, out / "before")
    if config["method"] == "reward":
        run = build(config, config["model"], "train", config["queries"], config["seed"], out / "round-1")
        train(settings(config, config["model"], [run], out / "reward", evaluate=[before]))
        report = pair_report(out / "reward", before)
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
    built = assemble.compose([*words, f"out={out}"])
    assemble.Assembly(trusted=built.get("trusted") or ()).build(built["executor"], "executor").run(built, out)
    return out


def trained(config: Mapping[str, Any], model: str, run: Path, out: Path) -> str:
    """The folder of ``model`` trained on ``run``."""
    chosen = settings(config, model, [run], out)
    with verified_reward(config) if config["method"] == "grpo" else nullcontext() as reward:
        train(chosen, [reward] if reward else [])
    return str(out)


def settings(
    config: Mapping[str, Any], model: str, runs: Sequence[Path], out: Path, evaluate: Sequence[Path] = ()
) -> TrainingSettings:
    print(f"\n$ bestofn train {config['method']} model={model} run={runs[-1]} out={out}", flush=True)
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
    """The conclusive verdicts of a run by query; a query without any is left out."""
    import pyarrow.parquet as pq

    columns = ["query_id", "split", "verification_status"]
    rows = pq.read_table(run / "candidates" / "data.parquet", columns=columns).to_pylist()
    counted: dict[str, list[Any]] = defaultdict(lambda: ["", 0, 0])
    for row in rows:
        if row["verification_status"] in ("pass", "fail"):
            one = counted[row["query_id"]]
            one[0] = row["split"]
            one[1] += row["verification_status"] == "pass"
            one[2] += 1
    return {query: (split, right, count) for query, (split, right, count) in counted.items()}


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


def pair_report(model: Path, heldout: Path) -> dict[str, Any]:
    """How often the reward model, and how often length alone, prefers the chosen side of held-out pairs."""
    import pyarrow.parquet as pq

    rows = pq.read_table(heldout / "reward_model" / "train.parquet", columns=["chosen", "rejected"]).to_pylist()
    accuracy = json.loads((model / "metrics.json").read_text())["metrics"]["eval_accuracy"]
    lengths = [(len(json.dumps(row["chosen"])), len(json.dumps(row["rejected"]))) for row in rows]
    shorter = mean([0.5 if a == b else float(a < b) for a, b in lengths])
    hits = round(accuracy * len(rows))
    return {
        "pairs": len(rows),
        "accuracy": accuracy,
        "interval": bootstrap_mean_interval([1.0] * hits + [0.0] * (len(rows) - hits)),
        "chance": 0.5,
        "length": max(shorter, 1.0 - shorter),  # the better of "shorter wins" and "longer wins", with hindsight
    }


def table(report: Mapping[str, Any]) -> str:
    """The report as a Markdown table."""
    if "pairs" in report:
        low, high = report["interval"]
        head = "| held-out pairs | reward model | 95 % interval | chance | length |\n|---|---|---|---|---|\n"
        return (
            head
            + f"| {report['pairs']} | {report['accuracy']:.3f} | {low:.3f} to {high:.3f} | "
            + (f"{report['chance']:.3f} | {report['length']:.3f} |")
        )
    head = "| split | queries | pass@1 before | after | gain | 95 % interval | pass@8 before | after |\n" + "|---" * 8
    lines = [
        f"| {split} | {row['queries']} | {row['before']:.3f} | {row['after']:.3f} | {row['gain']:+.3f} | "
        f"{row['interval'][0]:+.3f} to {row['interval'][1]:+.3f} | {row['best_of_8_before']:.3f} | "
        f"{row['best_of_8_after']:.3f} |"
        for split, row in report["splits"].items()
    ]
    return "\n".join([head + "|", *lines])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


if __name__ == "__main__":
    main()
