"""Queries from any table: rows through a mapping, with a stable id, and everything left out counted by reason."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.records import Message, Query, Reference, ReferenceSource, content_text
from bestofn.builders.sources.code_forms import FORMS, code_tests
from bestofn.builders.sources.columns import Column, missing
from bestofn.builders.sources.origins import Origins, Problem
from bestofn.builders.sources.rows import rows
from bestofn.builders.sources.seen_ids import SeenIds

log = logging.getLogger(__name__)

USUAL = {
    "id": ("query_id", "uuid", "unique_id", "task_id", "id"),
    "question": ("question", "problem", "prompt", "instruction", "query", "text", "input"),
    "messages": ("messages", "conversations", "conversation"),
    "answer": ("answer", "gold", "expected_answer", "final_answer", "ground_truth", "target", "label"),
    "solution": ("solution", "response", "output"),
    "tools": ("tools",),
    "tests": ("test_list", "tests"),
}
ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "observation": "tool", "function_response": "tool"}
PARTS = ("id", "split", "question", "system", "messages", "answer", "answers", "choices", "tools", "calls", "tests",
         "origin", "world_seed")  # fmt: skip
LONGEST_ID = 80  # characters; a group named by its whole prompt is known by a digest
DASH = "question is '-'"
SEVERAL = "answer that is a list of several (kept without a reference)"
GROUPED = ("candidate", "candidates", "label", "candidate_model")


class Mapped:
    """A dataset as queries.

    ``columns`` maps what a query needs (id, split, question or messages, system, answer, answers, choices, tools,
    calls, tests, candidate(s), label) to where it stands in a row (``builders.sources.columns``); what it leaves out
    is looked for under its usual names, and the log says what was chosen. ``splits`` are the dataset's own; a query's
    split is its domain: a column, ``domain``, or what its reference shows (answer → math, tests → code, tools →
    tool_calling). ``offset`` counts source rows and ``max_queries`` queries within each split. ``turns``: a
    conversation is asked up to its ``first`` or ``last`` user turn. ``tests`` says how the tests are encoded: ``form``
    (``builders.sources.code_forms``), ``language``, and columns for ``entry_point`` and ``setup``. ``group_by`` names a
    column: rows that share it are one query, and their ``candidate`` columns its recorded answers, held in memory; a
    row with nothing there belongs to none and is left out.
    An ``answer`` alone in a list is that answer (OlympiadBench's ``final_answer``, where several answers of a problem
    stand in one text, and all of them are asked for). Of several in a list nobody knows whether any of them is right,
    as ``answers`` says, or all are asked for: such a query has no reference answer, which is counted.
    ``origins`` finds question and tests of rows whose question is "-": the ``origin`` column tells where
    (``{dataset, split, index}``); without such a column, the row itself does.
    """

    def __init__(
        self,
        path: str,
        *,
        name: str = "",
        format: str | None = None,
        config: str | None = None,
        splits: Sequence[str] | str | None = None,
        split: str | None = None,
        domain: str | None = None,
        columns: Mapping[str, Any] | None = None,
        group_by: str | None = None,
        tests: Mapping[str, Any] | None = None,
        origins: Origins | None = None,
        turns: Literal["first", "last"] = "last",
        reference_source: ReferenceSource = "gold",
        streaming: bool = True,
        offset: int = 0,
        max_queries: int | None = None,
        min_query_chars: int = 1,
    ) -> None:
        self.path = path
        self.name = name or str(path).rstrip("/").rsplit("/", 1)[-1]
        self.format, self.config, self.streaming = format, config, streaming
        self.splits = [part.strip() for part in splits.split(",")] if isinstance(splits, str) else list(splits or [])
        self.split, self.domain = split, domain
        self.columns = {key: Column.of(key, value) for key, value in (columns or {}).items() if value is not None}
        self.group_by = Column.of("group_by", group_by) if group_by else None
        self.turns: Literal["first", "last"] = turns
        self.tests = CodeColumns.of(tests or {})
        self.origins = origins
        self.reference_source: ReferenceSource = reference_source
        self.offset, self.max_queries, self.min_query_chars = offset, max_queries, min_query_chars
        self.skipped: Counter[str] = Counter()
        for key in self.columns:
            if key not in (*PARTS, *GROUPED):
                raise SourceError(missing_part(key))

    def __iter__(self) -> Iterator[Query]:
        seen = SeenIds()
        for query in self.every():
            if seen.add(query.id):
                yield query
            else:
                self.skipped["duplicate id"] += 1

    def every(self) -> Iterator[Query]:
        """The queries, those with an id that was there before as well."""
        self.skipped.clear()
        yield from self._grouped() if self.group_by else self._plain()

    def _plain(self) -> Iterator[Query]:
        for split in self.splits or [self.split]:
            taken = 0
            for row in self._rows(split):
                if self.max_queries is not None and taken >= self.max_queries:
                    break
                query = self._query(row)
                if query is not None:
                    taken += 1
                    yield query

    def _grouped(self) -> Iterator[Query]:
        assert self.group_by
        groups: dict[str, tuple[Query, list[Any], list[Any]]] = {}
        for row in (row for split in self.splits or [self.split] for row in self._rows(split)):
            value = self.group_by.value(row)
            key = "" if value is None else str(value)
            if not key.strip():
                self.skipped["no group"] += 1
                continue
            if key not in groups:
                if self.max_queries is not None and len(groups) >= self.max_queries:
                    continue
                query = self._query(row, identity=key if len(key) <= LONGEST_ID else content_id("", [], [key]))
                if query is None:
                    continue
                groups[key] = (query, [], [])
            groups[key][1].append(self._value(row, "candidate"))
            groups[key][2].append(self._value(row, "label"))
        for query, candidates, labels in groups.values():
            metadata = {**query.metadata, "candidates": candidates}
            if any(label is not None for label in labels):
                metadata["candidate_labels"] = labels
            yield Query(query.id, query.split, query.messages, query.tools, query.reference, query.source, metadata)

    def _rows(self, split: str | None) -> Iterator[dict[str, Any]]:
        found = rows(self.path, format=self.format, config=self.config, split=split, streaming=self.streaming)
        width = 0
        for number, row in enumerate(found):
            if len(row) > width:  # the first, and any with a column that none before it had
                width = len(row)
                self._complete(row)
            if number >= self.offset:
                yield row

    def _complete(self, row: Mapping[str, Any]) -> None:
        """Look for the parts that were not mapped under their usual names; check that those mapped are there."""
        for column in self.columns.values():
            column.value(row)
        guessed = {}
        for part, names in USUAL.items():
            taken = {column.path for column in self.columns.values()}
            if part in self.columns or (
                part in ("question", "messages") and {"question", "messages"} & set(self.columns)
            ):
                continue
            match = next((name for name in names if name in row and name not in taken), None)
            if match and not (part == "question" and "messages" in row):
                self.columns[part] = Column.of(part, match)
                guessed[part] = match
        if not {"question", "messages"} & set(self.columns):
            raise SourceError(f"{self.name}: {missing('question', 'question', list(row))}")
        if guessed:
            log.info("%s: columns taken by their usual names: %s", self.name, guessed)

    def _query(self, row: Mapping[str, Any], identity: str | None = None) -> Query | None:
        messages, reason = self._messages(row)
        problem: Problem | None = None
        if reason == DASH and self.origins is not None:
            messages, problem, reason = self._rejoined(row, self.origins)
        if not messages:
            self.skipped[reason] += 1
            return None
        try:
            tools = [to_chat(tool) for tool in _list(self._value(row, "tools")) if isinstance(tool, Mapping)]
            world = self._value(row, "world_seed")
            metadata: dict[str, Any] = {} if world is None else {"world_seed": int(world)}
        except (ValueError, TypeError) as error:  # without them it would be another question
            self.skipped[f"tools or world_seed cannot be read ({type(error).__name__})"] += 1
            return None
        reference = self._reference(row)
        if problem is not None:
            reference = replace(reference, tests=problem.tests, source="gold" if problem.tests else reference.source)
        name = self._value(row, "split") if "split" in self.columns else self.domain
        name = str(name or _split_of(reference, bool(tools)))
        given = identity or self._value(row, "id")
        query_id = str(given) if given not in (None, "") else content_id(name, messages, tools)
        recorded = self._value(row, "candidates")
        if recorded is not None:
            metadata["candidates"] = _list(recorded)
        elif "candidate" in self.columns and not self.group_by:
            metadata["candidates"] = [self._value(row, "candidate")]
        return Query(query_id, name, tuple(messages), tuple(tools), reference, self.name, metadata)

    def _messages(self, row: Mapping[str, Any]) -> tuple[list[Message], str]:
        """The prompt, or the reason why there is none."""
        if "messages" in self.columns:
            prompt = prompt_of(self._value(row, "messages"), self.turns)
        else:
            question = self._value(row, "question")
            if not isinstance(question, str):
                return [], "question is not a text"
            system = self._value(row, "system")
            prompt: list[Message] = [{"role": "system", "content": str(system)}] if system else []
            prompt.append({"role": "user", "content": question})
        users = [message for message in prompt if message.get("role") == "user"]
        if not users:
            return [], "no user message"
        text = content_text(users[0].get("content")).strip()
        if not text:
            return [], "empty question"
        if text == "-":
            return [], DASH
        if len(text) < self.min_query_chars:
            return [], f"question under {self.min_query_chars} characters"
        return prompt, ""

    def _rejoined(self, row: Mapping[str, Any], origins: Origins) -> tuple[list[Message], Problem | None, str]:
        """The prompt with the origin's question in the place of "-", and the problem; or the reason for neither."""
        found = origins.problem(self._value(row, "origin") if "origin" in self.columns else row)
        if isinstance(found, str):
            return [], None, found
        if "messages" not in self.columns:
            return [{"role": "user", "content": found.question}], found, ""
        prompt = prompt_of(self._value(row, "messages"), "first")
        return [{**m, "content": found.question} if m["role"] == "user" else m for m in prompt], found, ""

    def _reference(self, row: Mapping[str, Any]) -> Reference:
        answer = _alone(self._value(row, "answer"))
        solution = self.columns.get("solution")
        if isinstance(answer, list | tuple):
            if not self.skipped[SEVERAL]:
                log.warning(
                    "%s: an %s. If any of them is right, set dataset.columns.answers to it.", self.name, SEVERAL
                )
            self.skipped[SEVERAL] += 1
            answer = None
        elif answer is None and solution:
            text = str(solution.value(row) or "")
            answer = Column("answer", path="text", take="boxed").value({"text": text})
        elif isinstance(answer, str) and "####" in answer:
            answer = Column("answer", path="text", take="hashes").value({"text": answer})
        answers = tuple(str(one) for one in _texts(self._value(row, "answers")))
        calls = self._value(row, "calls")
        found = self._value(row, "tests")
        tests = self.tests.read(found, row) if found else None
        return Reference(
            answer=None if answer is None else str(answer),
            answers=answers,
            choices=tuple(str(one) for one in _list(self._value(row, "choices"))),
            calls=tuple(_list(calls)) if calls is not None else None,
            tests=tests,
            source="none"
            if answer is None and not answers and calls is None and tests is None
            else self.reference_source,
        )

    def _value(self, row: Mapping[str, Any], part: str) -> Any:
        return self.columns[part].value(row) if part in self.columns else None


def missing_part(key: str) -> str:
    known = (*PARTS, *GROUPED)
    return f"dataset.columns.{key}: a query has no such part{did_you_mean(key, known)} Parts are {', '.join(known)}."


def content_id(split: str, messages: Sequence[Message], tools: Sequence[Any]) -> str:
    """An id made of what is asked: the same for the same prompt in any order of rows."""
    text = json.dumps([split, list(messages), list(tools)], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def prompt_of(found: Any, turns: Literal["first", "last"]) -> list[Message]:
    """The messages up to the first or last user turn, roles by their usual names.

    Messages are mappings or objects with ``role`` and ``content``; ShareGPT's ``from`` and ``value`` are understood.
    """
    messages: list[Message] = []
    for given in _list(found):
        message = given if isinstance(given, Mapping) else getattr(given, "__dict__", None)
        if not isinstance(message, Mapping):
            continue
        role = str(message.get("role") or message.get("from") or "user")
        kept = {key: value for key, value in message.items() if key not in ("from", "value") and value is not None}
        content = message.get("content", message.get("value"))
        messages.append({**kept, "role": ROLES.get(role, role), "content": content})
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    if not users:
        return []
    kept = messages[: (users[0] if turns == "first" else users[-1]) + 1]
    return [message for message in kept if message["role"] != "system" or content_text(message["content"]).strip()]


@dataclass(frozen=True, slots=True)
class CodeColumns:
    """How a dataset encodes its tests, and where their settings stand."""

    form: str = "asserts"
    language: str = "python"
    entry_point: Column | None = None
    setup: Column | None = None
    timeout_s: float | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> CodeColumns:
        """Raises ``SourceError`` for a setting or a form that does not exist."""
        known = ("form", "language", "entry_point", "setup", "timeout_s")
        for key in settings:
            if key not in known:
                raise SourceError(f"dataset.tests.{key}: unknown setting. Settings are {', '.join(known)}.")
        values = dict(settings)
        for key in ("entry_point", "setup"):
            if values.get(key) is not None:
                values[key] = Column.of(f"tests.{key}", values[key])
        if values.get("form", "asserts") not in FORMS:
            raise SourceError(f"dataset.tests.form is {values['form']!r}; expected {', '.join(FORMS)}")
        return cls(**values)

    def read(self, found: Any, row: Mapping[str, Any]) -> Any:
        """The ``CodeTests`` of a row, or None when its encoding holds none."""
        entry = str((self.entry_point.value(row) if self.entry_point else "") or "")
        setup = (self.setup.value(row) if self.setup else "") or ""
        text = "\n".join(map(str, setup)) if isinstance(setup, list) else str(setup)
        return code_tests(found, self.form, self.language, entry, text, self.timeout_s)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):  # ValueError: no JSON, or more digits than Python reads
            return [value]
        return decoded if isinstance(decoded, list) else [value]
    return list(value) if isinstance(value, Iterable) and not isinstance(value, Mapping) else [value]


def _texts(value: Any) -> list[Any]:
    """The answers in ``value``, blank ones left out; a text is one answer, unless it is a list of texts in JSON.

    ``[0, 1]`` is an interval or a pair: ``json: true`` says where it is a list.
    """
    items = _list(value)
    if isinstance(value, str) and not all(isinstance(item, str) for item in items):
        items = [value]
    return [item for item in items if item is not None and str(item).strip()]


def _alone(answer: Any) -> Any:
    """What stands alone in a list, None for an empty list or a blank; a list of several, and what is none, as it is."""
    while isinstance(answer, list | tuple) and len(answer) < 2:
        answer = answer[0] if answer else None
    return None if isinstance(answer, str) and not answer.strip() else answer


def _split_of(reference: Reference, tools: bool) -> str:
    if reference.tests is not None:
        return "code"
    if tools or reference.calls is not None:
        return "tool_calling"
    return "math" if reference.answer is not None or reference.answers else "chat"
