"""Reads one row of a table as a query, with its reference and its recorded responses. Every door to a table uses it."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bestofn.builders.errors import ConfigError, SourceError
from bestofn.builders.formats.tool_calls import expected_from_calls, to_chat
from bestofn.builders.records import JsonObject, Message, Query, Reference, ReferenceSource, Row, content_text
from bestofn.builders.sources.choice_columns import ChoiceColumns, Options
from bestofn.builders.sources.code_columns import NO_ENTRY_POINT, CodeColumns, EntryPointError, as_task
from bestofn.builders.sources.columns import missing_column, plain
from bestofn.builders.sources.final_answers import answer_of_solution, final_answer
from bestofn.builders.sources.origins import Origins, Problem
from bestofn.builders.sources.resolver import WORKED, Layout, is_list_of_responses, mapped_columns, resolve
from bestofn.builders.sources.values import (
    Turns,
    accepted_answers,
    as_list,
    check_of_struct,
    content_id,
    is_content,
    prompt_of,
    recorded_answers,
    unwrapped,
    without_nulls,
)

log = logging.getLogger(__name__)

DASH = "question is '-'"
NO_OPTION = "reference that names no option, or several (kept without a reference)"
UNREADABLE_TESTS = "tests that cannot be read in the form dataset.tests.form (kept without tests)"
UNREADABLE_CALLS = "expected calls that cannot be read (kept without calls)"
SEVERAL_ANSWERS = "reference that is a list of several answers (kept without a reference)"
OBJECT = "reference that is an object (kept without a reference)"
UNREADABLE_CHECKS = "checks that cannot be read (kept without checks)"
NULLS = (
    "check with a null that may be a missing key, because the objects of an Arrow column have equal keys (kept without)"
)


class Unusable(SourceError):
    """A row has no query. The message is the reason, by which such rows are counted."""


class RowReader:
    """Reads the rows of one table. ``columns`` maps parts of a query to columns, as ``dataset.columns`` does.

    The parts that are not mapped are found by ``resolver.resolve`` when ``examine`` gets the first rows. The other
    settings are those of ``Mapped``. ``kind`` is the verifier that reads the reference, if it is the same for all rows.
    Rows without a question are left out, unless ``needs_question`` is false. Unless ``whole`` is
    set, a query has no id and no recorded responses, which verification does not need.

    ``skipped`` counts by reason the rows that were left out, and the references that cannot be read. A reference that
    cannot be read is no reference, and never a wrong one. With ``raises``, it is a ``ConfigError``.

    With ``structs``, the rows come from a table of Arrow, where a null in an object may be a missing key.
    """

    def __init__(
        self,
        columns: JsonObject | None = None,
        *,
        name: str = "",
        domain: str | None = None,
        tests: JsonObject | None = None,
        choices: JsonObject | None = None,
        origins: Origins | None = None,
        turns: Turns = "last",
        reference_source: ReferenceSource = "gold",
        min_query_chars: int = 1,
        kind: str = "",
        needs_question: bool = True,
        whole: bool = True,
        raises: bool = False,
        structs: bool = False,
        where: str = "dataset.columns.",
    ) -> None:
        self.name, self.domain, self.origins = name, domain, origins
        self.mapped = mapped_columns(columns or {}, where)
        self.never = tuple(part for part, value in (columns or {}).items() if value is None)
        self.turns: Turns = turns
        self.tests, self.choices = CodeColumns.of(tests or {}), ChoiceColumns.of(choices or {})
        self.reference_source: ReferenceSource = reference_source
        self.min_query_chars, self.kind, self.needs_question = min_query_chars, kind, needs_question
        self.whole, self.raises, self.structs = whole, raises, structs
        self.layout = Layout(self.mapped)
        self.names: list[str] = []  # the columns of the table that are read
        self.skipped: Counter[str] = Counter()

    def examine(self, rows: Sequence[Row]) -> None:
        """Choose the columns. ``rows`` are the first rows of the table.

        Raises ``SourceError`` if a mapped column is missing, or if a needed question has no column.
        """
        first: Row = {name: value for row in reversed(rows) for name, value in row.items()}
        for column in self.mapped.values():
            column.value(first)
        self.layout = resolve(rows, self.mapped, self.never, self.kind)
        others = [column for column in (self.tests.entry_point, self.tests.setup) if column]
        read = {name for one in (*self.layout.columns.values(), *others) for name in one.column_names} | {"entry_point"}
        self.names = [name for name in first if name in read]
        if self.needs_question and not {"question", "messages"} & set(self.layout.columns):
            raise SourceError(f"{self.name}: {missing_column('question', 'question', list(first))}")
        if found := {part: ", ".join(self.layout.columns[part].column_names) for part in self.layout.found}:
            log.info("%s: columns chosen by their names and values: %s", self.name, found)

    def query(self, row: Row, query_id: str | None = None) -> Query | None:
        """Return the query in ``row``. If it has none, count the reason in ``skipped`` and return None."""
        try:
            return self.read(row, query_id)
        except Unusable as reason:
            self.skipped[str(reason)] += 1
            return None

    def read(self, row: Row, query_id: str | None = None) -> Query:
        """Return the query in ``row``. Raises ``Unusable`` if it has none."""
        messages, problem = self._prompt(row)
        try:
            tools = [to_chat(tool) for tool in as_list(self._object(row, "tools")) if isinstance(tool, Mapping)]
            world_seed = self.value(row, "world_seed")
            metadata: dict[str, object] = {} if world_seed is None else {"world_seed": int(world_seed)}  # type: ignore[call-overload]
        except (ValueError, TypeError) as error:  # dropping these values would change the query
            raise Unusable(f"tools or world_seed cannot be read ({type(error).__name__})") from error
        question = content_text(messages[-1].get("content")) if messages else ""
        try:
            reference, options = self._reference(row, question)
        except EntryPointError as error:
            raise Unusable(NO_ENTRY_POINT) from error
        if messages:
            messages = self.choices.with_prompt(messages, options)
            if reference.tests and not self.tests.setup and reference.tests.setup == messages[-1].get("content"):
                messages = [*messages[:-1], {**messages[-1], "content": as_task(reference.tests.setup)}]
        if problem is not None:
            reference = replace(reference, tests=problem.tests, source="gold" if problem.tests else reference.source)
        query = Query("", "", tuple(messages), tuple(tools), reference, self.name, metadata | self._recorded(row))
        named = self.value(row, "split") if "split" in self.layout.columns else self.domain
        split = str(named or domain_of_content(query))
        given_id = query_id or self.value(row, "id")
        named_id = "" if given_id is None else str(given_id)
        if not named_id and self.whole:
            named_id = content_id(split, messages, tools)
        return replace(query, id=named_id, split=split)

    def responses(self, row: Row) -> tuple[list[object], bool]:
        """Return the recorded responses in ``row``, and whether it has a list of them.

        A list of messages is one response. In a list of ``candidates``, each item is a response.
        """
        if "candidates" in self.layout.columns:
            value = plain(self.value(row, "candidates"))
            responses = recorded_answers(value)
            return responses, not (isinstance(value, str | Mapping) and responses == [value])
        value = plain(self.value(row, "response"))
        if value == []:
            return [None], False
        return (recorded_answers(value), True) if is_list_of_responses(value) else ([value], False)

    def value(self, row: Row, part: str) -> object:
        """Return the value of ``part`` in ``row``; None if the part has no column."""
        column = self.layout.columns.get(part)
        return None if column is None else column.value(row)

    def _object(self, row: Row, part: str) -> object:
        """Return the value of ``part``, whose objects have no null entries, without those that Arrow filled in."""
        value = self.value(row, part)
        return without_nulls(plain(value)) if self.structs and not isinstance(value, str) else value

    def _recorded(self, row: Row) -> dict[str, object]:
        """Return the entries of ``metadata`` in ``row``: rubric, instruction of the user, and recorded responses."""
        rubric, instruction = as_list(self.value(row, "rubric")), self.value(row, "user_instruction")
        kept = {key: value for key, value in (("rubric", rubric), ("user_instruction", instruction)) if value}
        if "candidates" in self.layout.columns and self.value(row, "candidates") is None:
            return kept
        has_any = self.whole and {"response", "candidates"} & set(self.layout.columns)
        return kept | {"candidates": self.responses(row)[0]} if has_any else kept

    # --- the prompt ------------------------------------------------------------------------------------------------

    def _prompt(self, row: Row) -> tuple[list[Message], Problem | None]:
        """Return the messages of the prompt. Raises ``Unusable`` if the row has none and needs one."""
        messages, reason = self._messages(row)
        problem: Problem | None = None
        if reason == DASH and self.origins is not None:
            messages, problem, reason = self._messages_from_origin(row, self.origins)
        if not messages and self.needs_question:
            raise Unusable(reason)
        return messages, problem

    def _messages(self, row: Row) -> tuple[list[Message], str]:
        """Return (prompt, ""), or ([], the reason why the row is left out)."""
        if "messages" in self.layout.columns:
            prompt = prompt_of(self.value(row, "messages"), self.turns)
        else:
            question = self.value(row, "question")
            if not isinstance(question, str):
                return [], "question is not a text"
            system = [] if not (text := self.value(row, "system")) else [{"role": "system", "content": str(text)}]
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
        problem = origins.problem(self.value(row, "origin") if "origin" in self.layout.columns else row)
        if isinstance(problem, str):
            return [], None, problem
        if "messages" not in self.layout.columns:
            return [{"role": "user", "content": problem.question}], problem, ""
        prompt = prompt_of(self.value(row, "messages"), "first")
        return [{**m, "content": problem.question} if m["role"] == "user" else m for m in prompt], problem, ""

    # --- the reference ---------------------------------------------------------------------------------------------

    def _reference(self, row: Row, question: str) -> tuple[Reference, Options]:
        """Return the reference of ``row``, and its options in the order of the prompt."""
        options = self.choices.options(self.value(row, "choices"))
        answers = tuple(map(final_answer, accepted_answers(plain(self.value(row, "references")))))
        if options.texts:
            options, answer = self.choices.shuffled(options, self._gold_option(row, options), question)
        else:
            answer = self._answer(row)
        calls = self._calls(row)
        encoded_tests = self.value(row, "tests")
        tests = self.tests.read(encoded_tests, row, question) if encoded_tests else None
        if encoded_tests and tests is None:
            self._unreadable(UNREADABLE_TESTS, "docs/datasets.md lists the forms of tests.")
        checks = self._checks(row)
        nothing_known = not answers and all(part is None for part in (answer, calls, tests, checks))
        reference = Reference(
            answer=answer,
            answers=answers,
            choices=options.texts,
            calls=calls,
            tests=tests,
            checks=checks,
            source="none" if nothing_known else self.reference_source,
        )
        return reference, options

    def _calls(self, row: Row) -> tuple[JsonObject, ...] | None:
        """Return the expected calls; None if none are known, or if they cannot be read."""
        value = plain(self._object(row, "calls"))
        try:
            value = (json.loads(value) if value.strip() else None) if isinstance(value, str) else value
            if value is None:
                return None
            calls: list[JsonObject] = [value] if isinstance(value, Mapping) else list(value)  # type: ignore[call-overload]
            return tuple(call if _is_expected(call) else expected_from_calls([call])[0] for call in calls)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self._unreadable(UNREADABLE_CALLS, 'Expected {"name": …, "arguments": {…}}, or a list of these.')
            return None

    def _checks(self, row: Row) -> JsonObject | None:
        """Return the checks of ``row`` by verifier; None if there are none. The column may be JSON text."""
        value, in_struct = self.value(row, "checks"), self.structs
        if isinstance(value, str) and value.strip():
            in_struct = False
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                self._unreadable(UNREADABLE_CHECKS, 'Expected an object: {"VERIFIER": …}.')
        if not isinstance(value, Mapping):
            return None
        given = {str(name): check for name, check in value.items() if check is not None}
        checks = {name: check_of_struct(name, check) if in_struct else check for name, check in given.items()}
        if None in checks.values():
            self._unreadable(NULLS, "Store the column with the checks as JSON text.")
        return {name: check for name, check in checks.items() if check is not None} or None

    def _gold_option(self, row: Row, options: Options) -> str | None:
        """Return the letters of the correct options, or None. References that name no option count as ``skipped``."""
        value = unwrapped(plain(self.value(row, "reference")))
        value = self._answer(row) if value is None or isinstance(value, str) else value
        gold = None if value is None else self.choices.gold_answer(value, options)
        if value is not None and gold is None:
            self._unreadable(NO_OPTION, "Check dataset.choices.gold.")
        return gold

    def _answer(self, row: Row) -> str | None:
        """Return the reference answer: the final answer that a text marks with a box or ``####``, or else the text.

        A text of a column of worked solutions (``WORKED``) is only an answer itself if it is short.
        """
        column = self.layout.columns.get("reference")
        value = None if column is None else unwrapped(plain(column.value(row)))
        if column is None or value is None:
            return None
        if isinstance(value, list | tuple):
            self._unreadable(SEVERAL_ANSWERS, "If any of them is right, set dataset.columns.references to this column.")
            return None
        if isinstance(value, Mapping):
            self._unreadable(OBJECT, "Set dataset.columns.reference to a value in it: {path: COLUMN.KEY}.")
            return None
        text = str(value)
        if column.take == "text":
            return text
        return answer_of_solution(text) if column.path in WORKED else final_answer(text)

    def _unreadable(self, reason: str, remedy: str) -> None:
        """Count a reference that cannot be read. The first one of each reason is logged with its remedy."""
        if self.raises:
            raise ConfigError(f"{reason.partition(' (')[0]}. {remedy}")
        if not self.skipped[reason]:
            log.warning("%s: a row has %s. %s", self.name, reason, remedy)
        self.skipped[reason] += 1


def _is_expected(call: JsonObject) -> bool:
    """Return whether ``call`` is a reference call already, and not a call as a service returns it."""
    return "function" not in call and ("possible" in call or isinstance(call.get("arguments"), Mapping))


def domain_of_content(query: Query) -> str:
    """Return the domain of a query whose table names none: the routing of ``verifier=by_split`` decides."""
    from bestofn.verifiers.by_split import domain_of

    return domain_of(query) or ("tool_calling" if query.tools else "chat")
