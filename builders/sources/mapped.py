"""A source that maps the rows of any table to queries. Rows that are left out are counted by reason.

Most files in ``conf/dataset`` use it. ``columns`` reads single values, ``rows`` reads files.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.records import (
    Count,
    JsonObject,
    Message,
    PositiveCount,
    Query,
    Reference,
    ReferenceSource,
    Row,
    content_text,
)
from bestofn.builders.sources.choice_columns import ChoiceColumns, Options
from bestofn.builders.sources.code_columns import NO_ENTRY_POINT, CodeColumns, EntryPointError, as_task
from bestofn.builders.sources.columns import Column, missing_column
from bestofn.builders.sources.distinct import DistinctQueries
from bestofn.builders.sources.final_answers import after_hashes, answer_of_solution, last_boxed
from bestofn.builders.sources.limits import shares_of
from bestofn.builders.sources.origins import Origins, Problem
from bestofn.builders.sources.rows import is_one_split, rows
from bestofn.builders.sources.usual_columns import column_uses, usual_columns
from bestofn.builders.sources.values import (
    Turns,
    accepted_answers,
    as_list,
    content_id,
    is_content,
    prompt_of,
    recorded_answers,
    unwrapped,
)

log = logging.getLogger(__name__)

PARTS = ("id", "split", "question", "system", "messages", "answer", "answers", "solution", "choices", "tools", "calls",
         "tests", "checks", "origin", "world_seed", "candidate", "candidates", "label", "candidate_model", "rubric",
         "user_instruction")  # fmt: skip
MAX_ID_CHARS = 80  # a longer value of ``group_by`` (a whole prompt) is replaced by its hash
DASH = "question is '-'"
NO_OPTION = "answer that names no option, or several (kept without a reference)"
UNREADABLE_TESTS = "tests that cannot be read in the form dataset.tests.form (kept without tests)"
SEVERAL_ANSWERS = "answer that is a list of several answers (kept without a reference)"


@dataclass
class _Group:
    """One query of a grouped table (see ``group_by``), with its recorded answers and their labels."""

    query: Query
    candidates: list[object] = field(default_factory=list)
    labels: list[object] = field(default_factory=list)

    def as_query(self) -> Query:
        metadata = {**self.query.metadata, "candidates": self.candidates}
        if any(label is not None for label in self.labels):
            metadata["candidate_labels"] = self.labels
        return replace(self.query, metadata=metadata)


class Mapped:
    """The queries of a table.

    ``columns`` maps the parts of a query (``PARTS``) to columns of a row (``builders.sources.columns``). For a part
    that is not mapped, a column with a usual name is used, and named in the log. A part that is mapped to null has no
    column. ``splits`` are the splits of the dataset that are read. ``offset`` skips rows of each split. ``max_queries``
    limits the queries in total; it is spread evenly over the splits. ``turns``: the prompt ends at the ``first`` or
    ``last`` user turn. ``tests``: see ``CodeColumns``. ``choices``: see ``ChoiceColumns``. ``merge_repeats``: see
    ``DistinctQueries``. ``license`` is the license of the dataset, for the dataset card.

    The split of a query is the value of the column ``split``, or else the setting ``domain``. Without both, the content
    of the query decides: tests → code, tools or tool calls → tool_calling, answer → math, otherwise chat.

    ``group_by`` names a column. All rows with the same value in this column become one query. Their values in the
    column ``candidate`` are the recorded answers of the query. All queries are then in memory at once. A row without a
    value in this column is left out.

    The column ``answer`` may contain a list. If the list has one item, this item is the answer (OlympiadBench). A list
    of several answers is ambiguous: one of them may be enough, or all may be required. Such a query has no reference
    answer, and ``skipped`` counts it. If one answer is enough, map the column to ``answers``.

    If the question of a row is "-", ``origins`` reads the question and the tests from another table. The ``origin``
    column names the row of that table: ``{dataset, split, index}``. Without this column, the row itself has these keys.
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
        columns: JsonObject | None = None,
        group_by: str | None = None,
        tests: JsonObject | None = None,
        choices: JsonObject | None = None,
        origins: Origins | None = None,
        turns: Turns = "last",
        reference_source: ReferenceSource = "gold",
        streaming: bool = True,
        offset: Count = 0,
        max_queries: PositiveCount | None = None,
        min_query_chars: int = 1,
        merge_repeats: bool = True,
        license: str = "",
    ) -> None:
        self.path = path
        self.name = name or str(path).rstrip("/").rsplit("/", 1)[-1]
        self.format, self.config, self.streaming = format, config, streaming
        self.splits = [part.strip() for part in splits.split(",")] if isinstance(splits, str) else list(splits or [])
        self.split, self.domain, self.origins = split, domain, origins
        self.columns = {key: Column.of(key, value) for key, value in (columns or {}).items() if value is not None}
        self.column_uses: dict[str, str] = {}
        self._absent = [key for key, value in (columns or {}).items() if value is None]
        self.group_by = Column.of("group_by", group_by) if group_by else None
        self.turns: Turns = turns
        self.tests, self.choices = CodeColumns.of(tests or {}), ChoiceColumns.of(choices or {})
        self.reference_source: ReferenceSource = reference_source
        self.offset, self.max_queries, self.min_query_chars = offset, max_queries, min_query_chars
        self.merge_repeats, self.license = merge_repeats, license
        self.skipped: Counter[str] = Counter()
        for key in self.columns:
            if key not in PARTS:
                raise SourceError(
                    f"dataset.columns.{key}: a query has no such part{did_you_mean(key, PARTS)} "
                    f"Parts are {', '.join(PARTS)}."
                )

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        distinct = DistinctQueries(self.skipped, merge_repeats=self.merge_repeats)
        for split, most in self._limits():
            different = (distinct.take(query, split) for query in self._queries(split, most))
            yield from islice((query for query in different if query is not None), most)

    def with_duplicates(self) -> Iterator[Query]:
        """Yield the queries, including repeated queries."""
        self.skipped.clear()
        for split, most in self._limits():
            yield from islice(self._queries(split, most), most)

    def _limits(self) -> list[tuple[str | None, int | None]]:
        """Return (split, limit on its queries) for each split."""
        splits = self.splits or [self.split]
        return list(zip(splits, shares_of(self.max_queries, len(splits)), strict=True))

    def _queries(self, split: str | None, most: int | None) -> Iterator[Query]:
        """Yield the queries of one split, with repeated queries. ``most`` limits the groups if ``group_by`` is set."""
        if self.group_by:
            yield from self._one_per_group(self.group_by, split, most)
        else:
            yield from (query for row in self._rows(split) if (query := self._query(row)) is not None)

    def _one_per_group(self, group_by: Column, split: str | None, most: int | None) -> Iterator[Query]:
        groups: dict[str, _Group] = {}
        for row in self._rows(split):
            value = group_by.value(row)
            key = "" if value is None else str(value)
            if not key.strip():
                self.skipped["no group"] += 1
                continue
            if key not in groups:
                if most is not None and len(groups) >= most:
                    continue
                query = self._query(row, query_id=key if len(key) <= MAX_ID_CHARS else content_id("", [], [key]))
                if query is None:
                    continue
                groups[key] = _Group(query)
            groups[key].candidates.append(self._value(row, "candidate"))
            groups[key].labels.append(self._value(row, "label"))
        yield from (group.as_query() for group in groups.values())

    # --- rows and columns --------------------------------------------------------------------------------------------

    def _rows(self, split: str | None) -> Iterator[Row]:
        column = self._split_column()
        all_rows = rows(
            self.path,
            format=self.format,
            config=self.config,
            split=split,
            streaming=self.streaming,
            split_column=column,
        )
        width = 0
        for number, row in enumerate(all_rows):
            if len(row) > width:  # the first row, or a row with more columns than all earlier rows
                width = len(row)
                self._complete_columns(row)
                if column not in row and self.splits and is_one_split(self.path):
                    self._refuse_splits(column, row)
            if number >= self.offset:
                yield row

    def _split_column(self) -> str:
        """Return the column with the split of a row; "" with ``origins``, which use the column themselves."""
        mapped = self.columns.get("split") if self.splits else None
        return (mapped.path if mapped else "split") if self.origins is None else ""

    def _refuse_splits(self, column: str, row: Row) -> None:
        """Raise ``SourceError`` for several ``splits`` of a table without splits. For a single one, log a warning."""
        problem = (
            f"dataset.splits is {self.splits}, but {self.path} has no column {column or 'split'!r} and no files that "
            "are named after splits"
        )
        if len(self.splits) > 1:
            raise SourceError(
                f"{problem}; every row would be read {len(self.splits)} times. The columns are {list(row)}. Set "
                "dataset.columns.split to the column with the split, or leave out dataset.splits."
            )
        log.warning("%s: all rows are read.", problem)

    def _complete_columns(self, row: Row) -> None:
        """Check that the mapped columns exist in ``row``, and choose columns for the other parts by their usual names.

        Raises ``SourceError`` if a mapped column is missing, or if no column holds the question or the messages.
        """
        for column in self.columns.values():
            column.value(row)
        chosen = usual_columns(self.columns, row, self._absent)
        self.columns |= chosen
        if not {"question", "messages"} & set(self.columns):
            raise SourceError(f"{self.name}: {missing_column('question', 'question', list(row))}")
        self.column_uses = column_uses(self.columns, row)
        if chosen:
            names = {part: ", ".join(column.column_names) for part, column in chosen.items()}
            log.info("%s: columns chosen by their usual names: %s", self.name, names)

    def _value(self, row: Row, part: str) -> object:
        return self.columns[part].value(row) if part in self.columns else None

    # --- one query ---------------------------------------------------------------------------------------------------

    def _query(self, row: Row, query_id: str | None = None) -> Query | None:
        """Convert ``row`` to a query. If the row is left out, count the reason in ``skipped`` and return None."""
        messages, reason = self._messages(row)
        problem: Problem | None = None
        if reason == DASH and self.origins is not None:
            messages, problem, reason = self._messages_from_origin(row, self.origins)
        if not messages:
            self.skipped[reason] += 1
            return None
        try:
            tools = [to_chat(tool) for tool in as_list(self._value(row, "tools")) if isinstance(tool, Mapping)]
            world_seed = self._value(row, "world_seed")
            metadata: dict[str, object] = {} if world_seed is None else {"world_seed": int(world_seed)}  # type: ignore[call-overload]
        except (ValueError, TypeError) as error:  # dropping these values would change the query
            self.skipped[f"tools or world_seed cannot be read ({type(error).__name__})"] += 1
            return None
        try:
            reference, options = self._reference(row, content_text(messages[-1].get("content")))
        except EntryPointError:
            self.skipped[NO_ENTRY_POINT] += 1
            return None
        messages = self.choices.with_prompt(messages, options)
        if reference.tests and not self.tests.setup and reference.tests.setup == messages[-1].get("content"):
            messages = [*messages[:-1], {**messages[-1], "content": as_task(reference.tests.setup)}]
        if problem is not None:
            reference = replace(reference, tests=problem.tests, source="gold" if problem.tests else reference.source)
        named = self._value(row, "split") if "split" in self.columns else self.domain
        split = str(named or _domain_of(reference, bool(tools)))
        given_id = query_id or self._value(row, "id")
        final_id = str(given_id) if given_id not in (None, "") else content_id(split, messages, tools)
        metadata |= self._recorded(row)
        return Query(final_id, split, tuple(messages), tuple(tools), reference, self.name, metadata)

    def _recorded(self, row: Row) -> dict[str, object]:
        """Return the entries of ``metadata`` in ``row``: rubric, instruction of the user, and recorded answers."""
        rubric, instruction = as_list(self._value(row, "rubric")), self._value(row, "user_instruction")
        kept = {key: value for key, value in (("rubric", rubric), ("user_instruction", instruction)) if value}
        if (recorded := self._value(row, "candidates")) is not None:
            return kept | {"candidates": recorded_answers(recorded)}
        has_one = "candidate" in self.columns and not self.group_by
        return kept | {"candidates": [self._value(row, "candidate")]} if has_one else kept

    def _messages(self, row: Row) -> tuple[list[Message], str]:
        """Return (prompt, ""), or ([], the reason why the row is left out)."""
        if "messages" in self.columns:
            prompt = prompt_of(self._value(row, "messages"), self.turns)
        else:
            question = self._value(row, "question")
            if not isinstance(question, str):
                return [], "question is not a text"
            system = [] if not (text := self._value(row, "system")) else [{"role": "system", "content": str(text)}]
            prompt: list[Message] = [*system, {"role": "user", "content": question}]
        reason = self._reason_to_skip(prompt)
        return ([], reason) if reason else (prompt, "")

    def _reason_to_skip(self, prompt: Sequence[Message]) -> str:
        """Return the reason why a row with this prompt is left out; "" if it is not left out."""
        users = [message for message in prompt if message.get("role") == "user"]
        if not users:
            return "no user message"
        if not all(is_content(message.get("content")) for message in prompt):
            return "content of a message is not a text"
        text = content_text(users[0].get("content")).strip()
        if not text:
            return "empty question"
        if text == "-":
            return DASH
        return f"question under {self.min_query_chars} characters" if len(text) < self.min_query_chars else ""

    def _messages_from_origin(self, row: Row, origins: Origins) -> tuple[list[Message], Problem | None, str]:
        """Return the prompt of a row whose question is "-", with the question from the original table.

        Returns (prompt, problem, ""), or ([], None, reason) if the question cannot be read.
        """
        problem = origins.problem(self._value(row, "origin") if "origin" in self.columns else row)
        if isinstance(problem, str):
            return [], None, problem
        if "messages" not in self.columns:
            return [{"role": "user", "content": problem.question}], problem, ""
        prompt = prompt_of(self._value(row, "messages"), "first")
        return [{**m, "content": problem.question} if m["role"] == "user" else m for m in prompt], problem, ""

    # --- the reference -----------------------------------------------------------------------------------------------

    def _reference(self, row: Row, question: str) -> tuple[Reference, Options]:
        """Return the reference of ``row``, and its options in the order of the prompt."""
        options = self.choices.options(self._value(row, "choices"))
        answers = tuple(accepted_answers(self._value(row, "answers")))
        if options.texts:
            options, answer = self.choices.shuffled(options, self._gold_option(row, options), question)
        else:
            answer = self._answer(row)
        calls = self._value(row, "calls")
        encoded_tests = self._value(row, "tests")
        tests = self.tests.read(encoded_tests, row, question) if encoded_tests else None
        if encoded_tests and tests is None:
            self.skipped[UNREADABLE_TESTS] += 1
        checks = self._value(row, "checks")
        nothing_known = not answers and all(part is None for part in (answer, calls, tests, checks))
        reference = Reference(
            answer=answer,
            answers=answers,
            choices=options.texts,
            calls=None if calls is None else tuple(as_list(calls)),  # type: ignore[arg-type]
            tests=tests,
            checks=checks if isinstance(checks, Mapping) else None,
            source="none" if nothing_known else self.reference_source,
        )
        return reference, options

    def _gold_option(self, row: Row, options: Options) -> str | None:
        """Return the letters of the correct options, or None. Answers that name no option count as ``skipped``."""
        value = unwrapped(self._value(row, "answer"))
        value = self._answer(row) if value is None or isinstance(value, str) else value
        gold = None if value is None else self.choices.gold_answer(value, options)
        if value is not None and gold is None:
            self.skipped[NO_OPTION] += 1
        return gold

    def _answer(self, row: Row) -> str | None:
        """Return the reference answer: the column ``answer``, or else the final answer of the column ``solution``.

        If the value contains ``####``, the answer is the text after it.
        """
        answer = unwrapped(self._value(row, "answer"))
        if isinstance(answer, list | tuple):
            if not self.skipped[SEVERAL_ANSWERS]:
                log.warning(
                    "%s: a row has an %s. If each item is accepted, set dataset.columns.answers to this column.",
                    self.name,
                    SEVERAL_ANSWERS,
                )
            self.skipped[SEVERAL_ANSWERS] += 1
            return None
        solution = self.columns.get("solution")
        if answer is None and solution:
            text = str(solution.value(row) or "")
            is_reply = solution.path in ("response", "output") or "tests" in self.columns  # not only an answer
            answer = (last_boxed(text) or after_hashes(text)) if is_reply else answer_of_solution(text)
        elif isinstance(answer, str) and "####" in answer:
            answer = after_hashes(answer)
        return None if answer is None else str(answer)


def _domain_of(reference: Reference, has_tools: bool) -> str:
    from bestofn.verifiers.domains import domain_of_reference

    if reference.tests is None and has_tools:
        return "tool_calling"
    return domain_of_reference(reference) or "chat"
