"""Reads the rows of JSON and CSV files one at a time, and keeps their values unchanged. ``rows`` uses it.

The library datasets (5.2) changes the rows of these files:

* It infers the types of a JSON file from its first 10 MB, and fails at a later row of another type.
* It converts texts that look like dates to times, and adds the keys of all other objects to every object.
* In CSV files it reads "NA", "None" and "null" as missing, 007 as 7, and 5 as 5.0 if another row has no number.
* It needs 80 MB of memory to infer types from 10 MB.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, cast

from bestofn.builders.errors import SourceError
from bestofn.builders.records import Row

log = logging.getLogger(__name__)

COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
HEAD_BYTES = 16 << 20  # bytes that are read in advance to collect keys; takes less than a second
MAX_FIELD_CHARS = 1 << 30  # limit on the characters of one value in a CSV file
DELIMITERS = (";", "\t", "|")
JSON_EXPECTED = "Expected: one object per line, or one list of objects."


def json_rows(files: Sequence[Path]) -> Iterator[Row]:
    """Yield the rows of ``files`` in order. A file is JSON Lines or one JSON list, maybe compressed (``COMPRESSION``).

    The keys of all rows in the first ``HEAD_BYTES`` bytes are collected. Every row has these keys, and the keys of
    all earlier rows; missing values are None. A row that is a text becomes ``{"text": …}``. Raises ``SourceError``
    with file and line if a row cannot be parsed.
    """
    keys: dict[str, None] = {}
    size = 0
    for row, length in _rows_with_sizes(files):
        keys.update(dict.fromkeys(row))
        size += length
        if size >= HEAD_BYTES:
            break
    for row, _ in _rows_with_sizes(files):
        keys.update(dict.fromkeys(row))
        yield {**keys, **row}


def csv_rows(files: Sequence[Path], delimiter: str = ",") -> Iterator[Row]:
    """Yield the rows of ``files`` in order. The first line of each file has the keys.

    All values are texts; an empty value is None. If a row has too few values, the missing ones are None. If the first
    line has no ``delimiter`` but one of ``DELIMITERS``, the file is read with that delimiter.

    Raises ``SourceError`` with file and line if a row has too many values or is not CSV in UTF-8.
    """
    csv.field_size_limit(MAX_FIELD_CHARS)
    for file in files:
        yield from _csv_rows_of(file, _delimiter_of(file, delimiter))


def _delimiter_of(file: Path, usual: str) -> str:
    """Return the delimiter in the first line of ``file``: ``usual`` if the line has it, else one of ``DELIMITERS``."""
    with _opened(file) as stream:
        first = stream.readline().decode("utf-8-sig", "replace")
    for delimiter in (usual, *DELIMITERS):
        if any(len(values) > 1 for values in csv.reader([first], delimiter=delimiter)):
            if delimiter != usual:
                log.warning(
                    "%s is read with the separator %r, because its first line has no %r.", file, delimiter, usual
                )
            return delimiter
    return usual


def _csv_rows_of(file: Path, delimiter: str) -> Iterator[Row]:
    with _opened(file) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            header = next(lines, [])
            for values in lines:
                if len(values) > len(header):
                    raise _unreadable(
                        file,
                        f"line {lines.line_num} has {len(values)} values",
                        f"Expected: {len(header)} values, as in the first line. Put a value that contains "
                        f"{delimiter!r} in quotes.",
                    )
                if values:
                    padded = [*values, *[""] * (len(header) - len(values))]
                    yield {name: value or None for name, value in zip(header, padded, strict=True)}
        except (csv.Error, UnicodeDecodeError) as error:
            line = lines.line_num if isinstance(error, csv.Error) else _first_invalid_utf8(file)
            raise _unreadable(file, f"line {line}: {error}", "Expected: CSV in UTF-8.") from error


def _first_invalid_utf8(file: Path) -> int:
    """Return the number of the first line of ``file`` that is not UTF-8. Python's error lacks this number."""
    with _opened(file) as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


def _rows_with_sizes(files: Sequence[Path]) -> Iterator[tuple[Row, int]]:
    """Yield the rows of ``files`` as (row, size in bytes).

    The size is 0 for items of a JSON list, because the whole list is in memory.
    """
    for file in files:
        with _opened(file) as stream:
            begun = False
            for number, line in enumerate(stream, 1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if not begun and text.startswith(b"["):
                    yield from ((row, 0) for row in _list_items(file, text + stream.read()))
                elif text:
                    begun = True
                    yield _row(file, f"line {number}", _parsed(file, f"line {number}", text)), len(text)


def _opened(file: Path) -> AbstractContextManager[BinaryIO]:
    """Open ``file`` for reading. The suffix decides whether the file is compressed."""
    compression = COMPRESSION.get(file.suffix.lower())
    if compression is None:
        return file.open("rb")
    import fsspec

    opened = fsspec.open(str(file), "rb", compression=compression)
    return cast("AbstractContextManager[BinaryIO]", opened)


def _list_items(file: Path, text: bytes) -> Iterator[Row]:
    values = _parsed(file, "the list that begins with '['", text)
    return (_row(file, f"item {place}", value) for place, value in enumerate(cast("list[object]", values)))


def _parsed(file: Path, place: str, text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, f"{place} is not valid JSON ({error})", JSON_EXPECTED) from error


def _row(file: Path, place: str, value: object) -> Row:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise _unreadable(file, f"{place} is a JSON {type(value).__name__}", JSON_EXPECTED)
    return value


def _unreadable(file: Path, problem: str, expected: str) -> SourceError:
    return SourceError(f"dataset.path is {file}: it cannot be read because {problem}. {expected}")
