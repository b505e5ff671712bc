"""The training tables: flat rows that TRL's trainers accept without conversion.

    dpo            one row per pair: an explicit prompt, chosen, rejected
    reward_model   one row per pair: whole conversations without a prompt column, which RewardTrainer would prepend
    kto            one row per distinct text that passed or failed and is ``teachable`` (``pairing.rules``)
    sft            one row per query: its best verified and teachable candidate (rejection sampling)
    prm            one row per candidate with steps that a process reward graded
    grpo           one row per query: the prompt, and the reference with which a verifier judges new answers

The columns prompt, chosen, rejected, completion and messages hold conversations only, because TRL 1.16 may use any of
these columns to detect the format. The columns are declared below; docs/schema.md is generated from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from bestofn.builders.formats.trainable import trainable
from bestofn.builders.pairing.rules import teachable
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.tables.columns import Column, Kind, PublishedTable, TableSettings
from bestofn.builders.tables.query_row import EMPTY, QueryRow, json_text

STEP_IS_RIGHT = 0.5  # a step with at least this probability has the label true


class OfQuery(Protocol):
    """A record that has a ``query``. A column that only needs the query works in every table."""

    @property
    def query(self) -> QueryRow: ...


@dataclass(frozen=True, slots=True)
class PairRecord:
    """One pair of a query, with the candidates and scores of both sides."""

    query: QueryRow
    pair: Row
    chosen: Row
    rejected: Row
    score_chosen: float | None
    score_rejected: float | None


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One candidate as a training example, with its verdict (``passed``)."""

    query: QueryRow
    candidate: Row
    passed: bool


@dataclass(frozen=True, slots=True)
class StepsRecord:
    """One candidate with graded steps. Each step is a mapping with ``text`` and ``score`` (0 to 1)."""

    query: QueryRow
    candidate: Row
    steps: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """One query as a training prompt."""

    query: QueryRow


# --- columns ---------------------------------------------------------------------------------------------------------

PROMPT: Column[OfQuery] = Column("prompt", "conversation", "messages of the prompt", lambda one: one.query.prompt)
TOOLS: Column[OfQuery] = Column("tools", "JSON", "declared tools, or null", lambda one: one.query.tools)
QUERY_ID: Column[OfQuery] = Column("query_id", "string", "the query", lambda one: one.query.row["query_id"])
SPLIT_NAME: Column[OfQuery] = Column(
    "split_name", "string", "split of the source dataset", lambda one: one.query.row["split"]
)


def _of_pair(name: str, kind: Kind, meaning: str, value: Callable[[PairRecord], object]) -> Column[PairRecord]:
    return Column(name, kind, meaning, value)


PAIR_FACTS: tuple[Column[PairRecord], ...] = (
    _of_pair("chosen_idx", "int", "`candidate_idx` of the chosen side", lambda one: one.pair["chosen"]),
    _of_pair("rejected_idx", "int", "`candidate_idx` of the rejected side", lambda one: one.pair["rejected"]),
    _of_pair("score_chosen", "float", "score of the chosen side", lambda one: one.score_chosen),
    _of_pair("score_rejected", "float", "score of the rejected side", lambda one: one.score_rejected),
    _of_pair(
        "margin",
        "float",
        "difference of the scores; 0 when one is missing",
        lambda one: one.pair["margin"],
    ),
    _of_pair("reason", "string", "name of the pairing strategy", lambda one: one.pair["reason"]),
)


def _of_answer(name: str, kind: Kind, meaning: str, value: Callable[[AnswerRecord], object]) -> Column[AnswerRecord]:
    return Column(name, kind, meaning, value)


COMPLETION = _of_answer(
    "completion", "conversation", "messages of the candidate", lambda one: trainable(one.candidate["messages"])
)
LABEL = _of_answer("label", "bool", "the verdict is `pass`", lambda one: one.passed)
CANDIDATE_IDX: Column[AnswerRecord | StepsRecord] = Column(
    "candidate_idx", "int", "`candidate_idx` of the candidate", lambda one: one.candidate["index"]
)

DPO_COLUMNS: tuple[Column[PairRecord], ...] = (
    PROMPT,
    _of_pair("chosen", "conversation", "messages of the chosen side", lambda one: trainable(one.chosen["messages"])),
    _of_pair(
        "rejected", "conversation", "messages of the rejected side", lambda one: trainable(one.rejected["messages"])
    ),
    TOOLS,
    QUERY_ID,
    SPLIT_NAME,
    *PAIR_FACTS,
)

REWARD_MODEL_COLUMNS: tuple[Column[PairRecord], ...] = (
    _of_pair(
        "chosen",
        "conversation",
        "messages of the prompt and of the chosen side",
        lambda one: [*one.query.prompt, *trainable(one.chosen["messages"])],
    ),
    _of_pair(
        "rejected",
        "conversation",
        "messages of the prompt and of the rejected side",
        lambda one: [*one.query.prompt, *trainable(one.rejected["messages"])],
    ),
    TOOLS,
    QUERY_ID,
    SPLIT_NAME,
    *PAIR_FACTS,
)

KTO_COLUMNS: tuple[Column[AnswerRecord], ...] = (
    PROMPT,
    COMPLETION,
    LABEL,
    TOOLS,
    QUERY_ID,
    SPLIT_NAME,
    CANDIDATE_IDX,
)

SFT_COLUMNS: tuple[Column[AnswerRecord], ...] = (PROMPT, COMPLETION, TOOLS, QUERY_ID, SPLIT_NAME, CANDIDATE_IDX)

PRM_COLUMNS: tuple[Column[StepsRecord], ...] = (
    PROMPT,
    Column("completions", "strings", "the steps", lambda one: [str(step["text"]) for step in one.steps]),
    Column(
        "labels",
        "bools",
        "per step: its score is at least 0.5",
        lambda one: [step["score"] >= STEP_IS_RIGHT for step in one.steps],
    ),
    Column(
        "scores",
        "floats",
        "per step: the probability that it is right",
        lambda one: [float(step["score"]) for step in one.steps],
    ),
    QUERY_ID,
    SPLIT_NAME,
    CANDIDATE_IDX,
)

GRPO_COLUMNS: tuple[Column[PromptRecord], ...] = (
    PROMPT,
    QUERY_ID,
    SPLIT_NAME,
    TOOLS,
    Column(
        "reference", "JSON", "what a verifier needs to judge new answers", lambda one: json_text(one.query.reference)
    ),
)


# --- records ---------------------------------------------------------------------------------------------------------


def pair_records(query: QueryRow, settings: TableSettings) -> Iterator[PairRecord]:
    """Yield one record per pair of ``query``."""
    if not query.row["pairs"]:
        return
    places = {candidate["index"]: place for place, candidate in enumerate(query.row["candidates"])}
    for pair in query.row["pairs"]:
        chosen, rejected = places[pair["chosen"]], places[pair["rejected"]]
        yield PairRecord(
            query=query,
            pair=pair,
            chosen=query.row["candidates"][chosen],
            rejected=query.row["candidates"][rejected],
            score_chosen=query.row["scores"][chosen]["value"],
            score_rejected=query.row["scores"][rejected]["value"],
        )


def labelled_records(query: QueryRow, settings: TableSettings) -> Iterator[AnswerRecord]:
    """Yield one record per distinct text that passed or failed and is teachable.

    A text is left out if some candidates with this text passed and others failed.
    """
    conclusive = [
        (trace, judged, candidate)
        for trace, judged, candidate in zip(query.traces, query.judged, query.row["candidates"], strict=True)
        if judged.verdict.outcome in ("pass", "fail")
    ]
    failed = {trace for trace, judged, _ in conclusive if judged.verdict.outcome == "fail"}
    excluded = failed & {trace for trace, judged, _ in conclusive if judged.verdict.outcome == "pass"}
    for trace, judged, candidate in conclusive:
        if trace not in excluded and teachable(judged, settings.rules):
            excluded.add(trace)
            yield AnswerRecord(query, candidate, judged.verdict.outcome == "pass")


def best_records(query: QueryRow, settings: TableSettings) -> Iterator[AnswerRecord]:
    """Yield the highest-ranked candidate that passed and is teachable, if there is one."""
    for place in sorted(range(len(query.ranks)), key=lambda place: query.ranks[place]):
        judged = query.judged[place]
        if judged.verdict.outcome == "pass" and teachable(judged, settings.rules):
            yield AnswerRecord(query, query.row["candidates"][place], passed=True)
            return


def steps_records(query: QueryRow, settings: TableSettings) -> Iterator[StepsRecord]:
    """Yield one record per candidate with graded steps."""
    for candidate, _, score in query.aligned():
        steps = _graded_steps(score["parts"] or EMPTY)
        if steps and candidate["messages"] and not candidate["error"]:
            yield StepsRecord(query, candidate, steps)


def prompt_records(query: QueryRow, settings: TableSettings) -> Iterator[PromptRecord]:
    """Yield one record for ``query``."""
    yield PromptRecord(query)


def _graded_steps(parts: JsonObject) -> Sequence[JsonObject]:
    """Return the graded steps in the ``parts`` of a score; () if there are none.

    In a weighted reward, the steps are in the parts of the process reward.
    """
    if parts.get("steps"):
        return parts["steps"]
    details: JsonObject = parts.get("detail") or EMPTY
    parts_of_rewards = (cast("JsonObject", part) for part in details.values() if isinstance(part, Mapping))
    graded: Iterator[Sequence[JsonObject]] = (part["steps"] for part in parts_of_rewards if part.get("steps"))
    return next(graded, ())


DPO = PublishedTable("dpo", "pair", DPO_COLUMNS, pair_records)
REWARD_MODEL = PublishedTable("reward_model", "pair", REWARD_MODEL_COLUMNS, pair_records)
KTO = PublishedTable("kto", "distinct text that passed or failed", KTO_COLUMNS, labelled_records)
SFT = PublishedTable("sft", "query with a verified candidate: its best one", SFT_COLUMNS, best_records)
PRM = PublishedTable("prm", "candidate with graded steps", PRM_COLUMNS, steps_records, optional=True)
GRPO = PublishedTable("grpo", "query", GRPO_COLUMNS, prompt_records)
