"""Checks whether a journal is damaged, without loading it into memory. Used by ``scripts.build``.

``builders.sampling.journal_repair`` examines a damaged journal in detail, and repairs it.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from bestofn.builders.errors import JournalError
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.journal_file import is_intact, record_errors

REPLIES = (
    "SELECT calls.request, calls.attempt, min(answers.number - answers.choice), calls.answers, calls.reply FROM calls "
    "LEFT JOIN answers ON answers.call = calls.id AND answers.request = calls.request "
    "AND answers.attempt = calls.attempt GROUP BY calls.id"
)
"""Each reply with the index of its first sample; the index is NULL if the reply has no answers."""


def damage(path: Path) -> str:
    """Return a description of the damage of the journal at ``path``; "" if it is intact or does not exist."""
    if not path.exists() or not path.stat().st_size:
        return ""
    try:
        journal = Journal(path, readonly=True).open()
    except JournalError as error:
        return _first_sentence(error)
    try:
        found = [str(row[0]) for row in journal.rows("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            return found[0].splitlines()[-1]
        with record_errors(path):
            bad = sum(not _is_intact(*row) for row in journal.stream(REPLIES))
    except JournalError as error:
        return _first_sentence(error)
    finally:
        journal.close()
    return f"stored replies that do not match their checksums: {bad:,}" if bad else ""


def _is_intact(request: bytes, attempt: int, first: int | None, answers: int, blob: bytes) -> bool:
    try:
        if first is None:  # without its samples, the checksum of the samples cannot be computed
            unpacker = zlib.decompressobj()
            unpacker.decompress(blob)
            return unpacker.eof
        return is_intact(blob, request, attempt, first, answers)
    except (zlib.error, TypeError):
        return False


def _first_sentence(error: JournalError) -> str:
    return str(error).partition(". ")[0]
