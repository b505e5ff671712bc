"""Compares DPO training on the kinds of pairs that ``pairs=`` offers, with the same number of pairs each.

    python -m tests.benchmarks.pairings [out=runs/pairings] [queries=600] [heldout=400] [seed=0] [trl.…=…]

All pairs come from the same training queries with 8 candidates each. The trained model is the embedded policy. The
weaker model of ``delta`` is also the embedded policy. Its stronger model is the embedded policy after one round of DPO on
verified pairs of other queries. The reward model of ``by_score`` is trained on the same other queries. "Without verdicts"
means that the pairing sees no verdict.

Prints held-out pass@1 after training on each kind, and how much more ``verified_vs_refuted`` gains, with a 95 % interval
paired by query.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bestofn.builders.config.composition import compose
from bestofn.builders.pairing import score_strategies as unverified
from bestofn.builders.pairing import strategies as verified
from bestofn.builders.pairing.rules import PairRules
from bestofn.builders.protocols import Pairing
from bestofn.builders.records import Row
from bestofn.builders.stages.pair import MakePairs
from bestofn.builders.tables import shards
from bestofn.builders.tables.writer import write_views
from bestofn.builders.training.settings import recipe
from bestofn.builders.training.trainers import train
from bestofn.scripts.loop import Passes, build, passes, settings, trained
from tests.benchmarks.naive_pairs import OURS, as_run, report
from tests.runs import write_shard

Rows = Callable[[], Iterator[Row]]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with the words ``key=value`` of the command line."""
    given = {key: value for key, _, value in (word.partition("=") for word in arguments)}
    out, seed = Path(given.pop("out", "runs/pairings")), int(given.pop("seed", 0))
    words = [f"{key}={value}" for key, value in given.items()]

    def loop(method: str) -> dict[str, Any]:
        return compose([recipe(method, words), f"method={method}", f"seed={seed}", *words], "loop")

    config = loop("dpo")
    heldout = ("heldout", config["heldout"], seed)
    before = build(config, "pocket", *heldout, out / "before")
    pool = build(config, "pocket", "train", config["queries"], seed + 1, out / "pool")
    other = build(config, "pocket", "train", config["queries"], seed + 1_000, out / "other")
    later = model_of(config, other, out / "later")
    independent = [*config["build"], f"sampling.seed={seed + 7}"]  # equal seeds give nearly equal texts
    strong = build({**config, "build": independent}, later, "train", config["queries"], seed + 1, out / "strong")
    before_training = passes(before)
    tables = {
        name: table_of(rows, pairing, out / "tables" / str(place))
        for place, (name, (rows, pairing)) in enumerate(kinds(pool, strong).items())
    }
    count = min(table.num_rows for table in tables.values())
    print({name: table.num_rows for name, table in tables.items()}, flush=True)
    if not count:
        raise SystemExit("One kind has no pairs. Set a larger `queries` or `n`.")
    after: dict[str, Passes] = {}

    def measure(place: str, name: str, table: pa.Table) -> None:
        chosen = sorted(random.Random(seed).sample(range(table.num_rows), min(count, table.num_rows)))
        model = model_of(config, as_run(pool, table.take(chosen), out / f"pairs-{place}"), out / f"model-{place}")
        after[name] = passes(build(config, model, *heldout, out / f"after-{place}"))
        print(report(before_training, after, count), flush=True)

    for place, (name, table) in enumerate(tables.items()):
        measure(str(place), name, table)
    judge = out / "reward-model"
    if not (judge / "metrics.json").exists():
        one_pass = {**loop("reward"), "trl": {**loop("reward")["trl"], "num_train_epochs": 1}}
        train(settings(one_pass, "pocket", [other], judge))
    by_model = [*config["build"], "reward=model", f"reward.path={judge}"]
    scored = build({**config, "build": by_model}, "pocket", "train", config["queries"], seed + 1, out / "scored")
    by_score = partial(unverified.by_score, pairs_per_query=3)
    table = table_of(lambda: without_verdicts(rows_of(scored)()), by_score, out / "tables" / "score")
    measure("score", "`by_score`, without verdicts", table)
    for place, (name, (rows, pairing)) in enumerate(further_kinds(pool, strong).items()):
        measure(f"further-{place}", name, table_of(rows, pairing, out / "tables" / f"further-{place}"))


def model_of(config: dict[str, Any], run: Path, out: Path) -> str:
    """Train the embedded policy on ``run``, unless ``out`` has the complete model. Return the folder of the model."""
    return str(out) if (out / "metrics.json").exists() else trained(config, "pocket", run, out)


def kinds(pool: Path, strong: Path) -> dict[str, tuple[Rows, Pairing]]:
    """Return the main kinds of pairs: name -> (rows, pairing). Each makes enough pairs per query."""
    own, both = rows_of(pool), rows_of_both(pool, strong)
    hardest = PairRules(pass_rate_most=third_of(own()))
    no_pass = PairRules(pass_rate_most=0.0)
    return {
        OURS: (own, partial(verified.verified_vs_refuted, pairs_per_query=4)),
        "`delta`, without verdicts": (lambda: without_verdicts(both()), partial(unverified.delta, pairs_per_query=4)),
        "`delta`, queries without a pass": (both, partial(unverified.delta, pairs_per_query=24, rules=no_pass)),
        "verified, hardest third": (own, partial(verified.verified_vs_refuted, pairs_per_query=8, rules=hardest)),
    }


def further_kinds(pool: Path, strong: Path) -> dict[str, tuple[Rows, Pairing]]:
    """Return the other kinds of pairs that need no reward model."""
    own, both = rows_of(pool), rows_of_both(pool, strong)
    band = PairRules(pass_rate_least=0.2, pass_rate_most=0.8)
    return {
        "verified, pass rate 0.2 to 0.8": (own, partial(verified.verified_vs_refuted, pairs_per_query=8, rules=band)),
        "verified, `length_balanced`": (own, partial(verified.length_balanced, pairs_per_query=8)),
        "`delta`, equal verdicts": (both, partial(unverified.delta, pairs_per_query=8, verdicts="agree")),
    }


def rows_of_both(pool: Path, strong: Path) -> Rows:
    """Return a function that reads the queries with the candidates of both models."""
    return lambda: merged(rows_of(strong)(), rows_of(pool)())


def rows_of(run: Path) -> Rows:
    """Return a function that reads the nested rows of ``run``."""
    return lambda: shards.nested(shards.parts_of(run))


def table_of(rows: Rows, pairing: Pairing, out: Path) -> pa.Table:
    """Return the dpo table of ``rows`` with the pairs of ``pairing``."""
    stage = MakePairs(pairing)

    async def paired() -> list[Row]:
        return [{**row, **await stage.compute(row)} for row in rows()]

    part = out / "shards" / "00000.parquet"
    write_shard(part, asyncio.run(paired()))
    write_views([part], out, {}, names=("dpo",))
    return pq.read_table(out / "dpo" / "train.parquet")


def merged(strong: Iterable[Row], weak: Iterable[Row]) -> Iterator[Row]:
    """Yield each query with the candidates of both models. The candidates of ``weak`` get the arm ``weak``."""
    weaker = {row["query_id"]: row for row in weak}
    for row in strong:
        other = weaker[row["query_id"]]
        first = len(row["candidates"])
        candidates = [{**one, "index": first + one["index"], "arm": "weak"} for one in other["candidates"]]
        yield {
            **row,
            "candidates": [*row["candidates"], *candidates],
            "verdicts": [*row["verdicts"], *other["verdicts"]],
            "scores": [*row["scores"], *other["scores"]],
        }


def without_verdicts(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows with every verdict replaced by ``abstain``."""
    for row in rows:
        yield {**row, "verdicts": [{**verdict, "outcome": "abstain", "detail": {}} for verdict in row["verdicts"]]}


def third_of(rows: Iterable[Row]) -> float:
    """Return the pass rate below which a third of the queries are.

    Queries without a pass or without a fail do not count.
    """
    rates: list[float] = []
    for row in rows:
        outcomes = [verdict["outcome"] for verdict in row["verdicts"] if verdict["outcome"] in ("pass", "fail")]
        if len(set(outcomes)) == 2:
            rates.append(outcomes.count("pass") / len(outcomes))
    return sorted(rates)[len(rates) // 3]


if __name__ == "__main__":
    main(sys.argv[1:])
