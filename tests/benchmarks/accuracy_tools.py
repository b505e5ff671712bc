"""The tool verifier compared with the official verdicts of BFCL, with every disagreement listed by kind.

    python -m tests.benchmarks.accuracy_tools [show=all] [data=DIR]

Reads ``DIR/tool_bfcl`` (by default ``../shared/data``; real outputs of 18 models, not part of the project). A row is
contested where the official checker rejects an integer inside an array of numbers although the values are equal.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.formats.tool_calls import call, expected_from_bfcl, from_bfcl
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.verifiers.tool_verifier import ToolVerifier

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
CONTESTED = "type_error:nested"
NATURAL_SHARE = 6_259 / 7_692
"""The share of right calls in all outputs. The rows contain all wrong outputs and a sample of the right ones."""


def query_of(row: Mapping[str, Any]) -> Query:
    tools = tuple(from_bfcl(function) for function in row["functions"])
    reference = Reference(calls=expected_from_bfcl(row["possible_answer"]))
    return Query(row["id"], "tool_calling", ({"role": "user", "content": row["question"]},), tools, reference)


def candidate_of(row: Mapping[str, Any]) -> Candidate:
    """The raw output of the model: native calls, or text that may contain calls."""
    raw = row["raw_output"]
    if isinstance(raw, str):
        return Candidate(0, ({"role": "assistant", "content": raw},))
    made = [(name, arguments) for item in raw for name, arguments in item.items()]
    calls = [call(name, arguments, f"call_{at}") for at, (name, arguments) in enumerate(made)]
    return Candidate(0, ({"role": "assistant", "content": None, "tool_calls": calls},))


async def judged(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Verdict]]:
    verifier = ToolVerifier()
    return [(row, await verifier.verify(query_of(row), candidate_of(row))) for row in rows]


def is_contested(row: Mapping[str, Any], verdict: Verdict) -> bool:
    return row["error_type"] == CONTESTED and not row["label"] and verdict.outcome == "pass"


def at_natural_share(found: Iterable[tuple[bool, bool]]) -> float:
    """Agreement of (label, passed) pairs, weighted to the share of right calls in all outputs."""
    passed: dict[bool, list[bool]] = {True: [], False: []}
    for label, verdict in found:
        passed[label].append(verdict is label)
    right, wrong = (sum(passed[label]) / len(passed[label]) for label in (True, False))
    return NATURAL_SHARE * right + (1 - NATURAL_SHARE) * wrong


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    file = Path(options.get("data", DATA)) / "tool_bfcl" / "data.jsonl"
    if not file.is_file():
        print(f"{file} does not exist; the labelled rows are not part of the project. Set data=DIR.", file=sys.stderr)
        return 2
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    results = asyncio.run(judged(rows))
    outcomes = Counter(verdict.outcome for _, verdict in results)
    differing = [(row, verdict) for row, verdict in results if (verdict.outcome == "pass") is not row["label"]]
    contested = [row for row, verdict in differing if is_contested(row, verdict)]
    uncontested, disagreed = len(rows) - len(contested), len(differing) - len(contested)
    print(f"rows {len(rows)}, outcomes {dict(outcomes)}")
    print(f"agreement, all rows            {1 - len(differing) / len(rows):.4f}")
    print(f"agreement, uncontested rows    {1 - disagreed / uncontested:.4f}  ({disagreed} of {uncontested} differ)")
    print(f"contested, equal as numbers    {len(contested)}")
    plain = sum((row["schema_valid"] is True) is row["label"] for row in rows)  # None: no call could be read
    print(f"plain JSON Schema, all rows    {plain / len(rows):.4f}")
    schema = at_natural_share((row["label"], row["schema_valid"]) for row in rows)
    ours = at_natural_share((row["label"], verdict.outcome == "pass") for row, verdict in results)
    print(f"at the outputs' own share of right calls ({NATURAL_SHARE:.1%}): schema {schema:.4f}, ours {ours:.4f}")
    kinds = Counter((row["error_type"] or "accepted", verdict.outcome) for row, verdict in differing)
    for (kind, outcome), count in kinds.most_common():
        print(f"  {count:4d}  official: {kind:55s} ours: {outcome}")
    if options.get("show"):
        for row, verdict in differing:
            print(
                json.dumps({"id": row["id"], "ours": verdict.explanation, "official": row["error"]}, default=str)[:600]
            )

    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
