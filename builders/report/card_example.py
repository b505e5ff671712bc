"""Chooses one preference pair of the upload and formats it as Markdown, for the dataset card."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bestofn.builders.analysis.run_figures import decoded_message
from bestofn.builders.formats.terminal_text import escaped
from bestofn.builders.records import JsonObject, Row, content_text
from bestofn.builders.tables.parquet_files import opened

READ_ROWS = 200  # the shortest of the first pairs is shown
MOST_CHARACTERS = 1_200  # a longer text is cut
SIDES = ("prompt", "chosen", "rejected")


def example_pair(files: Sequence[Path]) -> list[dict[str, str]]:
    """Return the texts of one pair of the table ``dpo``, as dicts with ``name`` and ``block``; [] if there is no pair.

    ``block`` is a fenced block of Markdown. The example is the shortest of the first pairs, so that it is complete.
    """
    pairs = [{side: _text(row[side]) for side in SIDES} for row in _first_rows(files)]
    if not pairs:
        return []
    shortest = min(pairs, key=lambda pair: sum(map(len, pair.values())))
    return [{"name": name, "block": fenced(_cut(text))} for name, text in shortest.items()]


def fenced(text: str) -> str:
    """Return ``text`` as a fenced block. The fence is longer than any run of backticks in the text.

    Control characters are written as escape sequences, because Markdown must not contain them.
    """
    text = escaped(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _first_rows(files: Sequence[Path]) -> Iterator[Row]:
    for file in files[:1]:
        with opened(file) as table:
            for batch in table.iter_batches(batch_size=READ_ROWS, columns=list(SIDES)):
                yield from batch.to_pylist()
                return


def _text(conversation: str | Sequence[JsonObject | str | bytes]) -> str:
    """Return a conversation as text: per message its role, its content and its tool calls."""
    messages = json.loads(conversation) if isinstance(conversation, str) else conversation
    return "\n".join(f"{one['role']}: {_content(one)}" for one in map(decoded_message, messages))


def _content(message: Row) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    named = [f"{call['name']}({json.dumps(call['arguments'], ensure_ascii=False)})" for call in calls]
    return "\n".join(filter(None, [content_text(message.get("content")).strip(), *named]))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS].rstrip()} … ({len(text):,} characters)"
