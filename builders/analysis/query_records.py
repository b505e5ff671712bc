"""Reads the queries and candidates of a run as records. The records contain no answer texts.

``query_records`` reads the published candidates table; ``record_of_nested_row`` reads one row of a shard of an
unfinished run. Both return the same records. ``analysis.run_figures``, ``analysis.best_of_n``, ``bestofn compare`` and
``bestofn loop`` use them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from bestofn.builders.formats.verdict_texts import RUNS_DISAGREE, TESTS_IN_PROGRAM
from bestofn.builders.records import Row
from bestofn.builders.sources.distinct import SeenIds
from bestofn.builders.statistics.eligibility import (
    CONCLUSIVE,
    FIRST_MODEL,
    counts_towards_pass_at_k,
    first_draw,
    is_independent,
)
from bestofn.builders.tables import candidate_table
from bestofn.builders.tables.candidate_table import CandidateTable
from bestofn.builders.tables.views import view_rows


class CandidateRecord(NamedTuple):
    """One candidate with its verdict, reward, quality and cost."""

    index: int
    attempt: int  # 0, or a higher number after ``bestofn regenerate``
    outcome: str  # pass, fail, abstain or error
    right: bool  # whether the outcome is pass
    greedy: bool  # whether the candidate is the greedy one, sampled at temperature 0
    sampled: bool  # whether the candidate is a sample of the run's first model
    independent: bool  # whether it is such a sample and depends on no verdict
    counts: bool  # whether the candidate counts towards pass@k
    reward: float | None
    reward_problem: str  # why a candidate with an answer has no reward; "" if it has one or no reason is known
    answer_cluster: str | None  # equal for candidates with the same answer
    seconds: float | None
    characters: int | None  # length of the answer
    explanation: str  # the explanation of the verdict
    refusal: str | None  # the kind of refusal; None if the answer is not a refusal
    empty: bool
    short: bool
    truncated: bool
    repeat: bool  # whether another candidate of the query has the same text
    judge_failed: bool | None  # None if no judge was asked about the candidate
    failure: str  # the error of the generation; "" if there is an answer
    cost_usd: float | None
    judging_usd: float | None  # cost of the requests of the judge and the reward
    prompt_tokens: int | None
    completion_tokens: int | None
    not_taught: str  # why the answer is in no training table; "" if the tables can have it
    model: str
    role: str  # of the model; "" for the run's first model
    verifier: str  # name of the verifier that decided
    method: str  # how it decided; "" if it has only one method

    @property
    def decided_by(self) -> str:
        """The name of the verifier that decided, with its method."""
        return f"{self.verifier} · {self.method}" if self.method else self.verifier

    @property
    def judge_decided(self) -> bool:
        """Whether a judge gave the verdict."""
        return self.judge_failed is False and self.verifier.startswith("judge")

    @property
    def conclusive(self) -> bool:
        """Whether the verdict is pass or fail."""
        return self.outcome in CONCLUSIVE

    @property
    def runs_disagree(self) -> bool:
        """Whether the program fails in the strict run of its tests but passes in a run that is not strict."""
        return self.outcome == "abstain" and self.explanation.startswith(RUNS_DISAGREE)

    @property
    def tests_in_program(self) -> bool:
        """Whether the program passes tests that were compiled with it."""
        return self.outcome == "pass" and self.explanation.endswith(TESTS_IN_PROGRAM)


class QueryRecord(NamedTuple):
    """One query with its candidates, sorted by index.

    ``draws`` has the first draw of each candidate: its first attempt with an answer. ``draws`` differs from
    ``candidates`` only after ``bestofn regenerate``. ``attempts`` has all attempts, including those that a later
    attempt replaced.
    """

    query_id: str
    split: str
    candidates: tuple[CandidateRecord, ...]
    draws: tuple[CandidateRecord, ...]
    attempts: tuple[CandidateRecord, ...]

    @property
    def sampled(self) -> list[CandidateRecord]:
        """The ``draws`` of the run's first model, without the greedy candidate."""
        return [candidate for candidate in self.draws if candidate.sampled]

    @property
    def counting(self) -> list[CandidateRecord]:
        """The ``draws`` that count towards pass@k."""
        return [candidate for candidate in self.draws if candidate.counts]

    @property
    def first_right(self) -> bool | None:
        """Whether sample 0 passes; None if its verdict is neither pass nor fail."""
        return next((one.right for one in self.sampled if one.index == 0 and one.conclusive), None)


class TableRow(NamedTuple):
    """The columns of the candidates table that the figures use. Only the first two columns are required."""

    query_id: str
    is_verified: bool
    candidate_idx: int | None = None
    split: str | None = None
    verification_status: str | None = None
    verification_explanation: str | None = None
    refusal_is_refusal: bool | None = None
    refusal_type: str | None = None
    reward_final: float | None = None
    reward_parts: str | None = None
    arm: str | None = None
    n_fixed: int | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    verification_cost_usd: float | None = None
    reward_cost_usd: float | None = None
    usage_prompt_tokens: int | None = None
    usage_completion_tokens: int | None = None
    quality_answer_length: int | None = None
    quality_is_empty: bool | None = None
    quality_is_short_answer: bool | None = None
    finish_reason: str | None = None
    answer_cluster: str | None = None
    generation_error: str | None = None
    is_duplicate_of: int | None = None
    verification_llm_judge_used: bool | None = None
    verification_llm_judge_failed: bool | None = None
    attempt: int | None = None
    is_superseded: bool | None = None
    first_status: str | None = None
    is_retried: bool | None = None
    not_taught: str | None = None
    verifier_name: str | None = None
    verification_method: str | None = None
    model: str | None = None


def query_records(path: Path) -> Iterator[QueryRecord]:
    """Yield the queries of a run folder or of a Parquet file of candidates, in the order of their first rows.

    If the rows of each query are adjacent, as in the tables of a build, memory is constant. Other tables are first
    grouped by query in memory. Raises ``SourceError`` if there is no candidates table.
    """
    return records_of_table(candidate_table.read(path))


def records_of_table(table: CandidateTable) -> Iterator[QueryRecord]:
    """Yield the queries of an opened candidates table."""
    batches = (_rows(batch) for batch in table.batches(TableRow._fields))
    if not _queries_are_adjacent(table):
        batches = iter([_by_query(row for batch in batches for row in batch)])
    groups = QueryGroups()
    for batch in batches:
        yield from groups.add(batch)
    yield from groups.finish()


class QueryGroups:
    """Groups the rows of a candidates table by query. The rows of each query must be adjacent."""

    def __init__(self) -> None:
        self._unfinished: list[TableRow] = []  # rows of the last query; the next rows may continue this query

    def add(self, rows: Sequence[TableRow]) -> list[QueryRecord]:
        """Add the next ``rows``. Return the complete queries: all queries before the query of the last row."""
        groups = [list(group) for _, group in groupby([*self._unfinished, *rows], attrgetter("query_id"))]
        self._unfinished = groups.pop() if groups else []
        return list(map(record_of_rows, groups))

    def finish(self) -> list[QueryRecord]:
        """Return the last query; [] if there are no rows."""
        rows, self._unfinished = self._unfinished, []
        return [record_of_rows(rows)] if rows else []


def record_of_nested_row(row: Row) -> QueryRecord | None:
    """Return the record of one query from its nested row in a shard; None if the query has no candidates."""
    rows = [TableRow._make(map(flat.get, TableRow._fields)) for flat in view_rows("candidates", row)]
    return record_of_rows(rows) if rows else None


def record_of_rows(rows: Sequence[TableRow]) -> QueryRecord:
    """Return the record of one query from its rows in the candidates table."""
    answered = [row for row in rows if not row.is_retried]
    ordered = sorted(answered, key=lambda row: (row.candidate_idx is None, row.candidate_idx or 0))
    n_fixed = next((row.n_fixed for row in ordered if row.n_fixed is not None), None)
    records = tuple(_candidate(place, row, n_fixed) for place, row in enumerate(ordered))
    in_use = draws = records
    if any(row.is_superseded for row in ordered):
        in_use = tuple(record for record, row in zip(records, ordered, strict=True) if not row.is_superseded)
        draws = tuple(_first_draws(records))
    elif any(row.attempt for row in ordered):  # a table without the attempts that were replaced
        draws = tuple(map(_as_first_drawn, records, ordered))
    return QueryRecord(rows[0].query_id, rows[0].split or "", in_use, draws, records)


def _first_draws(records: Sequence[CandidateRecord]) -> Iterator[CandidateRecord]:
    """Yield the first draw of each candidate; ``records`` has all attempts of all candidates, sorted by index."""
    for _, group in groupby(records, attrgetter("index")):
        attempts = {record.attempt: record for record in group}
        yield attempts[first_draw({attempt: not record.failure for attempt, record in attempts.items()})]


def _as_first_drawn(record: CandidateRecord, row: TableRow) -> CandidateRecord:
    """Return ``record`` with the verdict of the candidate's first draw, if the table has no row for the first draw.

    The reward of the first draw is then not known.
    """
    first = row.first_status
    if first is None or not row.attempt or first == "error":
        return record
    return record._replace(
        attempt=0,
        outcome=first,
        right=first == "pass",
        counts=record.sampled and first in CONCLUSIVE and record.independent,
        reward=None,
    )


def _candidate(place: int, row: TableRow, n_fixed: int | None) -> CandidateRecord:
    index = place if row.candidate_idx is None else row.candidate_idx
    outcome = row.verification_status or ("pass" if row.is_verified else "fail")
    reward = None if row.reward_final is None or math.isnan(row.reward_final) else row.reward_final
    return CandidateRecord(
        index=index,
        attempt=row.attempt or 0,
        outcome=outcome,
        right=outcome == "pass",
        greedy=row.arm == "greedy",
        sampled=row.arm in (None, "sample"),
        independent=is_independent(row.arm, index, n_fixed),
        counts=counts_towards_pass_at_k(outcome, row.arm, index, n_fixed),
        reward=reward,
        reward_problem=_problem_in(row.reward_parts) if reward is None and not row.generation_error else "",
        answer_cluster=row.answer_cluster,
        seconds=row.latency_s,
        characters=row.quality_answer_length,
        explanation=row.verification_explanation or "",
        refusal=(row.refusal_type or "unnamed") if row.refusal_is_refusal else None,
        empty=bool(row.quality_is_empty),
        short=bool(row.quality_is_short_answer),
        truncated=row.finish_reason == "length",
        repeat=row.is_duplicate_of is not None,
        judge_failed=bool(row.verification_llm_judge_failed) if row.verification_llm_judge_used else None,
        failure=row.generation_error or "",
        cost_usd=row.cost_usd,
        judging_usd=_sum(row.verification_cost_usd, row.reward_cost_usd),
        prompt_tokens=row.usage_prompt_tokens,
        completion_tokens=row.usage_completion_tokens,
        not_taught=row.not_taught or "",
        model=row.model or "",
        role="" if row.arm in FIRST_MODEL else row.arm or "",
        verifier=row.verifier_name or "",
        method=row.verification_method or "",
    )


def _problem_in(parts: str | None) -> str:
    """Return the error of a reward; "" if there is none. ``parts`` is JSON text with the parts of the score."""
    try:
        found = json.loads(parts or "{}")
    except ValueError:
        return ""
    return str(found.get("error") or "") if isinstance(found, dict) else ""


def _sum(*costs: float | None) -> float | None:
    known = [usd for usd in costs if usd is not None]
    return sum(known) if known else None


def _rows(batch: dict[str, list]) -> list[TableRow]:
    return list(map(TableRow._make, zip(*batch.values(), strict=True)))


def _queries_are_adjacent(table: CandidateTable) -> bool:
    """Return whether the rows of each query are adjacent. Only the column ``query_id`` is read."""
    seen = SeenIds()
    last: str | None = None
    for batch in table.batches(["query_id"]):
        for query in batch["query_id"]:
            if query != last and not seen.add(str(query)):
                return False
            last = query
    return True


def _by_query(rows: Iterable[TableRow]) -> list[TableRow]:
    """Return all rows grouped by query; the queries are in the order of their first rows."""
    groups: dict[str, list[TableRow]] = {}
    for row in rows:
        groups.setdefault(row.query_id, []).append(row)
    return [row for group in groups.values() for row in group]
