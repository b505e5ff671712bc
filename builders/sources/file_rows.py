"""Rows of JSON and CSV files as they are written, one parsed by itself.

datasets (5.2) takes the types of a JSON file from its first 10 MB: it ends at a later row with another key or another
kind of value, turns texts that look like dates into times, gives every object the keys of all others, and needs eight
times the 10 MB. In CSV files it takes "NA", "None" and "null" for nothing, 007 for 7, and 5 for 5.0 where another row
has no number.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.errors import SourceError

COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
HEAD = 16 << 20  # bytes that are read ahead for their keys, in less than a second
LONGEST_FIELD = 1 << 30  # characters of one value of a CSV file
JSON_EXPECTED = "Expected: an object a line, or one list of objects."


def json_rows(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The rows of ``files`` in order: JSON Lines, or a file that is one list; packed ones by their suffix.

    A row has all keys of the first ``HEAD`` bytes and all that were met up to it: what is not in it is None. A text in
    the place of a row is its ``text``. Raises ``SourceError`` that names file and line.
    """
    keys: dict[str, None] = {}
    size = 0
    for row, length in _sized(files):
        keys.update(dict.fromkeys(row))
        size += length
        if size >= HEAD:
            break
    for row, _ in _sized(files):
        keys.update(dict.fromkeys(row))
        yield {**keys, **row}


def csv_rows(files: Sequence[Path], delimiter: str = ",") -> Iterator[dict[str, str | None]]:
    """The rows of ``files`` in order, by the names in each file's first line. Every value is a text, an empty one None.

    A row may end early: what it lacks is None. Raises ``SourceError`` that names file and line.
    """
    csv.field_size_limit(LONGEST_FIELD)
    for file in files:
        with _opened(file) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            lines = csv.reader(text, delimiter=delimiter, strict=True)
            try:
                header = next(lines, [])
                for values in lines:
                    if len(values) > len(header):
                        raise _unreadable(
                            file,
                            f"line {lines.line_num} has {len(values)} values",
                            f"Expected: {len(header)}, as the first line names; a value with {delimiter!r} in quotes.",
                        )
                    if values:
                        padded = [*values, *[""] * (len(header) - len(values))]
                        yield {name: value or None for name, value in zip(header, padded, strict=True)}
            except (csv.Error, UnicodeDecodeError) as error:
                line = lines.line_num if isinstance(error, csv.Error) else _first_not_utf8(file)
                raise _unreadable(file, f"line {line}: {error}", "Expected: CSV in UTF-8.") from error


def _first_not_utf8(file: Path) -> int:
    """The number of the line; the error itself knows only its place in what was read ahead."""
    with _opened(file) as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


def _sized(files: Sequence[Path]) -> Iterator[tuple[dict[str, Any], int]]:
    """Rows, each with the bytes it took; one of a list, which is in memory anyway, counts nothing."""
    for file in files:
        with _opened(file) as stream:
            begun = False
            for number, line in enumerate(stream, 1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if not begun and text.startswith(b"["):
                    yield from ((row, 0) for row in _list(file, text + stream.read()))
                elif text:
                    begun = True
                    yield _row(file, f"line {number}", _parsed(file, f"line {number}", text)), len(text)


def _opened(file: Path) -> Any:
    import fsspec

    return fsspec.open(str(file), "rb", compression=COMPRESSION.get(file.suffix.lower()))


def _list(file: Path, text: bytes) -> Iterator[dict[str, Any]]:
    values = _parsed(file, "what begins with '['", text)
    return (_row(file, f"item {place}", value) for place, value in enumerate(values))


def _parsed(file: Path, place: str, text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, f"{place} is no JSON ({error})", JSON_EXPECTED) from error


def _row(file: Path, place: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict):
        raise _unreadable(file, f"{place} is a JSON {type(value).__name__}", JSON_EXPECTED)
    return value


def _unreadable(file: Path, found: str, expected: str) -> SourceError:
    return SourceError(f"dataset.path is {file}: it cannot be read, {found}. {expected}")
