"""Converts plain values (an answer, a reference, a question) to the records that verifiers take."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence, Set
from typing import cast

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.tool_calls import expected_from_calls, to_chat
from bestofn.builders.records import Candidate, CodeTests, JsonObject, Message, Query, Reference
from bestofn.builders.sources.code_columns import CodeColumns
from bestofn.builders.sources.columns import plain, present
from bestofn.builders.sources.final_answers import after_hashes, last_boxed

AUTO = "auto"
"""The kind that is chosen from the form of the reference."""
ALIASES = {"tool": "tool_calling", "tools": "tool_calling", "multiple_choice": "choice"}
MESSAGE_KEYS = frozenset({"content", "tool_calls", "function_call"})
"""A message has at least one of these keys."""
TEXT_KINDS = frozenset({"math", "math_verify", "short_answer", "choice"})
"""Kinds whose reference is a text, a number, or a list of accepted texts."""
CHECKS = {
    "regex": '{"matches": ["abc"], "rejects": ["abd"]}: the texts that the pattern in the answer must match or not',
    "shell": '{"files": {"a.txt": "…"}, "stdout": "…"}',
    "dialogue": '{"state": {…}, "actions": […]}',
    "reasoning_gym": '{"task": "…", "seed": 0, "index": 0, "question": "…"}',
}
"""Kind -> an example of its reference, for the kinds whose reference is an object."""
VERIFIER_OF_KIND = {"tool_calling": "tool"}
"""Kind -> verifier, if the names differ."""


def query_of(
    reference: object,
    kind: str = AUTO,
    question: str | Sequence[Message] = "",
    *,
    choices: Sequence[str] = (),
    tools: Sequence[JsonObject] = (),
    entry_point: str = "",
) -> Query:
    """Return the query with this question and reference.

    ``question`` is a text or a list of messages. Raises ``ConfigError`` if the reference does not fit ``kind``.
    """
    from bestofn.verifiers.by_split import domain_of
    from bestofn.verifiers.domains import domain_of_reference

    messages = ({"role": "user", "content": question},) if isinstance(question, str) else tuple(question)
    kind = ALIASES.get(kind, kind)
    known = reference_of(reference, kind, choices, entry_point, question if isinstance(question, str) else "")
    query = Query("", "" if kind == AUTO else kind, messages, tuple(map(to_chat, tools)), known)
    if kind != AUTO:
        return query
    domain = domain_of(query) if question else domain_of_reference(known)
    return Query("", domain, messages, query.tools, known)


def reference_of(
    value: object, kind: str = AUTO, choices: Sequence[str] = (), entry_point: str = "", question: str = ""
) -> Reference:
    """Return the reference that ``value`` describes.

    If ``value`` is a solution with a boxed result or ``####``, the reference is its final answer. Raises
    ``ConfigError`` if ``value`` does not fit ``kind``.
    """
    if isinstance(value, Reference):
        return value
    value = present(plain(value))
    if value is None or (isinstance(value, str) and not value.strip()):
        return Reference(source="none")
    if isinstance(value, CodeTests):
        return Reference(tests=value)
    kind = ALIASES.get(kind, kind)
    if kind == "code":
        return Reference(tests=_tests(value, entry_point, question))
    if kind == "tool_calling":
        return Reference(calls=_calls(value))
    if kind in TEXT_KINDS or (kind == AUTO and not isinstance(value, Mapping)):
        accepted = value if isinstance(value, list | tuple) else [value]
        answers = [_final(item) for item in accepted if present(item) is not None]
        return Reference(answer=answers[0] if answers else None, answers=tuple(answers[1:]), choices=tuple(choices))
    if kind == AUTO:
        raise ConfigError(
            f"the reference is an object with the keys {', '.join(map(str, dict(cast('JsonObject', value))))}; these "
            f"keys do not show how to verify it. Set kind=… to one of {', '.join(CHECKS)}."
        )
    return Reference(checks={kind: _check(value, kind)})


def candidate_of(answer: str | Sequence[Message] | Message | None, index: int = 0) -> Candidate:
    """Return the candidate with this answer: a text, one message, or the messages after the prompt.

    A missing answer becomes an empty text. Raises ``ConfigError`` for other types.
    """
    answer = "" if present(answer) is None else answer
    if isinstance(answer, str):
        return Candidate(index, ({"role": "assistant", "content": answer},))
    messages = cast("Sequence[Message]", answer if isinstance(answer, list | tuple) else [answer])
    for message in messages:
        if not isinstance(message, Mapping) or not MESSAGE_KEYS & message.keys():
            given = f"with {', '.join(map(str, message))}" if isinstance(message, Mapping) else "and not a message"
            raise ConfigError(
                f"the answer is a {type(answer).__name__} {given}; expected a text, a message with `content` or "
                "`tool_calls`, or a list of messages"
            )
    return Candidate(index, tuple(messages))


def _final(value: object) -> str:
    if isinstance(value, Mapping | Set | bytes):
        raise ConfigError(f"the reference is a {type(value).__name__}; expected a text, a number, or a list of these")
    text = str(value)
    return last_boxed(text) or after_hashes(text) or text


def _check(value: object, kind: str) -> object:
    """Return ``value`` as the reference of a check of ``kind``.

    If ``kind`` is in ``CHECKS``, JSON text is decoded and must be an object. Raises ``ConfigError`` if it is not an
    object.
    """
    if kind not in CHECKS:
        return value
    with contextlib.suppress(ValueError):
        value = json.loads(value) if isinstance(value, str) else value
    if not isinstance(value, Mapping):
        raise ConfigError(f"the reference of kind={kind} is {value!r:.100}; expected an object such as {CHECKS[kind]}")
    return value


def _tests(value: object, entry_point: str, question: str) -> CodeTests:
    row: dict[str, object] = {"entry_point": entry_point} if entry_point else {}
    tests = CodeColumns().read(value, row, question)
    if tests is None:
        raise ConfigError("the tests cannot be read. docs/datasets.md lists the forms of tests.")
    return tests


def _calls(value: object) -> tuple[JsonObject, ...]:
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ConfigError(
            f'the expected calls {value!r} are not JSON; expected {{"name": …, "arguments": {{…}}}}, or a list of these'
        ) from None
    calls: list[JsonObject] = [value] if isinstance(value, Mapping) else list(cast("Sequence[JsonObject]", value))
    return tuple(expected_from_calls(calls))
