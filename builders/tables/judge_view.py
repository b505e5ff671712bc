"""The training table ``judge``: data for a generative reward model, which compares two answers and gives reasons.

Each verified pair gives two rows, one per order. The prompt is the request of a pairwise judge. The completion is the
right reply: the verdict of the verifier, with its explanations as reasons. Requests and replies have the format of
``verifiers.judge.pairwise``, so the trained model can be its judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.formats.judge_reply import MOST_JUDGED, candidate_text, fenced
from bestofn.builders.formats.judge_request import conversation_text
from bestofn.builders.pairing.basis import VERIFIED
from bestofn.builders.records import Judged, Message
from bestofn.builders.schema import query_from_row
from bestofn.builders.tables.columns import Column, PublishedTable, TableSettings
from bestofn.builders.tables.query_row import QueryRow
from bestofn.builders.tables.training_views import QUERY_ID, SPLIT_NAME

REASON_CHARS = 600  # limit on the explanation of one verdict


@dataclass(frozen=True, slots=True)
class ComparisonRecord:
    """One pair in one order. ``first`` is shown as answer A."""

    query: QueryRow
    first: Judged
    second: Judged
    winner: Literal["A", "B"]


def _prompt(one: ComparisonRecord) -> list[Message]:
    from bestofn.verifiers.judge.prompts import SYSTEM, prompt

    question = conversation_text(query_from_row(one.query.row))
    answers = [candidate_text(side.candidate, MOST_JUDGED) for side in (one.first, one.second)]
    material = fenced(question=question, answer_A=answers[0], answer_B=answers[1])
    text = f"{material}\n\n{prompt('pairwise').text}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


def _completion(one: ComparisonRecord) -> list[Message]:
    sides = {"A": one.first, "B": one.second}
    reasons = [f"Answer {name} is {_judgement(side)}" for name, side in sides.items()]
    confidence = min(side.verdict.confidence for side in sides.values())
    reply = {"reasoning": " ".join(reasons), "winner": one.winner, "confidence": round(confidence, 3)}
    return [{"role": "assistant", "content": json.dumps(reply, ensure_ascii=False)}]


def _judgement(side: Judged) -> str:
    reason = " ".join(side.verdict.explanation.split())[:REASON_CHARS].rstrip(".")
    state = "right" if side.verdict.outcome == "pass" else "wrong"
    return f"{state}: {reason}." if reason else f"{state}."


COLUMNS: tuple[Column[ComparisonRecord], ...] = (
    Column("prompt", "conversation", "the request of a pairwise judge: question and two answers", _prompt),
    Column("completion", "conversation", "the right reply: reasons of the verifier, and the winner", _completion),
    Column("winner", "string", "`A` or `B`", lambda one: one.winner),
    QUERY_ID,
    SPLIT_NAME,
    Column("first_idx", "int", "`candidate_idx` of answer A", lambda one: one.first.candidate.index),
    Column("second_idx", "int", "`candidate_idx` of answer B", lambda one: one.second.candidate.index),
)


def comparison_records(query: QueryRow, settings: TableSettings) -> Iterator[ComparisonRecord]:
    """Yield two records per verified pair, one per order of its sides; nothing unless ``settings.judge`` is set."""
    if not settings.judge:
        return
    by_index = {one.candidate.index: one for one in query.judged}
    for pair in query.row["pairs"] or ():
        good, bad = by_index[pair["chosen"]], by_index[pair["rejected"]]
        if (pair["basis"] or VERIFIED) == VERIFIED:
            yield ComparisonRecord(query, good, bad, "A")
            yield ComparisonRecord(query, bad, good, "B")


ROW_IS = "verified pair and order, with `judge_table=true`"
JUDGE = PublishedTable("judge", ROW_IS, COLUMNS, comparison_records, optional=True)
