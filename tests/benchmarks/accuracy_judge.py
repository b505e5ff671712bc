"""The pairwise judge on JudgeBench: accuracy, consistency over both orders, position and length bias.

    python -m tests.benchmarks.accuracy_judge [data=DIR] [provider=NAME] [n=30]

Scripted judges with known biases judge the real pairs; the report must find these biases. With ``provider``, a model of
conf/provider also judges the ``n`` shortest pairs. ``pocket`` only shows that the code works, not the quality of a judge.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from bestofn.builders.analysis.judge_report import Comparison, PairwiseReport, pairwise_report
from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Completion, Request
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import sampler
from bestofn.verifiers.judge_pairwise import PairwiseJudge

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"


class RuleJudge:
    """A sampler whose reply is a rule of the two texts in the prompt."""

    name = model = "rule"
    identity = "rule"

    def __init__(self, rule: Callable[[str, str], str]) -> None:
        self.rule = rule

    async def draw(self, request: Request, indices: Any = (0,), attempt: int = 0) -> list[Any]:
        asked = str(request.messages[-1]["content"])
        first, second = (re.search(rf"<answer_{x} (\w+)>\n(.*)\n</answer_{x} \1>", asked, re.DOTALL) for x in "AB")
        assert first
        assert second
        reply = json.dumps({"reasoning": "", "winner": self.rule(first[2], second[2]), "confidence": 0.9})
        return [Completion({"role": "assistant", "content": reply}, "rule") for _ in indices]


RULES: dict[str, Callable[[str, str], str]] = {
    "always A": lambda first, second: "A",
    "longer wins": lambda first, second: "A" if len(first) > len(second) else "B",
    "coin by text": lambda first, second: "A" if crc32(first.encode()) > crc32(second.encode()) else "B",
}


async def judged(sampler: Sampler, rows: list[dict]) -> PairwiseReport:
    judge = PairwiseJudge(sampler)

    async def one(row: dict) -> Comparison:
        a, b = row["response_A"], row["response_B"]
        found = await judge.compare(row["prompt"], a, b)
        label = "A" if row["label"] == "A>B" else "B"
        return Comparison(found.first_order, found.second_order, label, len(a), len(b))  # type: ignore[arg-type]

    return pairwise_report(await asyncio.gather(*(one(row) for row in rows)))


async def judged_by_model(provider: str, rows: list[dict]) -> PairwiseReport:
    """The report of a configured provider, with a temporary journal."""
    node = compose([f"provider={provider}", "sandbox=none"])["provider"]
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.sqlite")
        service = ObjectBuilder().build(node, "provider")
        draws = sampler(service, journal, Ledger())
        async with journal, service, draws:
            return await judged(draws, rows)


def show(name: str, found: PairwiseReport) -> None:
    low, high = found.accuracy_interval
    print(
        f"{name:<14} pairs={found.pairs} unread={found.unread} accuracy={found.accuracy:.3f} [{low:.3f}, {high:.3f}] "
        f"first order={found.accuracy_first_order:.3f} consistency={found.consistency:.3f} ties={found.ties:.3f} "
        f"position bias={found.position_bias:+.3f} length bias={found.length_bias:+.3f}"
    )


def main(arguments: Sequence[str]) -> int:
    settings = dict(word.split("=", 1) for word in arguments)
    folder = Path(settings.get("data", FOLDER))
    file = folder / "judge_judgebench" / "data.jsonl"
    if not file.is_file():
        print(
            f"{file} does not exist, so nothing was measured. Set data=DIR to the folder of labelled sets.",
            file=sys.stderr,
        )
        return 2
    rows = [json.loads(line) for line in file.open(encoding="utf-8")]
    for name, rule in RULES.items():
        show(name, asyncio.run(judged(RuleJudge(rule), rows)))
    labels = {frozenset((row["response_A"], row["response_B"])): row for row in rows}

    def knows(first: str, second: str) -> str:
        row = labels[frozenset((first, second))]
        right = row["response_A"] if row["label"] == "A>B" else row["response_B"]
        return "A" if first == right else "B"

    show("knows", asyncio.run(judged(RuleJudge(knows), rows)))
    if "provider" in settings:
        rows.sort(key=lambda row: len(row["prompt"] + row["response_A"] + row["response_B"]))
        show(
            settings["provider"], asyncio.run(judged_by_model(settings["provider"], rows[: int(settings.get("n", 30))]))
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
