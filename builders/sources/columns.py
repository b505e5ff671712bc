"""The mapping layer: how a value of a query is found in a dataset's row.

A column is a string or a mapping of steps, applied in this order:

    "problem"                              the column of that name
    "meta.answers[-1].text"                a path: keys, and list indices in brackets
    {path: meta, json: true}               JSON in a string, decoded before the path goes on with ``then``
    {path: completions, each: text}        that path of every item of a list
    {paths: [public, private]}             the values of several columns, as a list
    {path: solution, take: boxed}          the last \\boxed{…}; ``hashes`` the text after ####; ``text`` as it is;
                                           ``calls`` the tool calls written in it, ``list`` the last list in JSON
    {path: text, regex: "Answer: (.*)"}    the first group of the last match
    {template: "{a}\\n\\n{b}"}               several columns in one text, the items of a list on lines of their own
    {constant: math}                       the same for every row
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.nearest_match import did_you_mean, nearest
from bestofn.builders.formats.tool_calls import expected_from_calls
from bestofn.builders.formats.written_calls import written_calls
from bestofn.builders.sources.final_answers import after_hashes, last_boxed

UNREADABLE = (ValueError, RecursionError)  # no JSON, more digits than Python reads, or too deep
LIST_OF_OBJECTS = re.compile(r"\[\s*\{")
STEP = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")


def calls_in(text: str) -> list[dict[str, Any]] | None:
    """The tool calls written in ``text`` as reference calls; None where none is, so that nothing is expected of it."""
    return list(expected_from_calls(written_calls(text))) or None


def last_list(text: str) -> list[Any] | None:
    """The last JSON list of objects in ``text`` (tools told in a system prompt); None when there is none."""
    decoder, found, start = json.JSONDecoder(), None, LIST_OF_OBJECTS.search(text)
    while start:
        try:
            value, end = decoder.raw_decode(text, start.start())
        except ValueError:
            end = start.end()
        except RecursionError:  # what stands within it is hardly less deep
            break
        else:
            if all(isinstance(item, Mapping) for item in value):
                found = value
        start = LIST_OF_OBJECTS.search(text, end)
    return found


TAKES: dict[str, Callable[[str], Any]] = {
    "boxed": last_boxed,
    "hashes": after_hashes,
    "text": str,
    "calls": calls_in,
    "list": last_list,
}


@dataclass(frozen=True, slots=True)
class Column:
    """Finds one value in a row."""

    name: str  # what the value is for, as the configuration calls it
    path: str = ""
    json: bool = False
    then: str = ""
    each: str = ""
    paths: Sequence[str] = ()
    regex: str = ""
    take: str = ""
    template: str = ""
    constant: Any = None

    @classmethod
    def of(cls, name: str, setting: Any) -> Column:
        """From a configuration value. Raises ``SourceError`` for a step that does not exist."""
        if isinstance(setting, str):
            return cls(name, path=setting)
        if isinstance(setting, Mapping):
            known = [key for key in cls.__slots__ if key != "name"]
            for key in setting:
                if key not in known:
                    hint = did_you_mean(str(key), known)
                    raise SourceError(f"dataset.columns.{name}.{key}: unknown step{hint} Steps are {', '.join(known)}.")
            column = cls(name, **{str(key): value for key, value in setting.items()})
            if column.take and column.take not in TAKES:
                raise SourceError(f"dataset.columns.{name}.take is {column.take!r}; expected {', '.join(TAKES)}")
            try:
                re.compile(column.regex)
            except re.error as error:
                raise SourceError(
                    f"dataset.columns.{name}.regex is {column.regex!r}, which is none: {error}."
                ) from error
            return column
        return cls(name, constant=setting)

    def value(self, row: Mapping[str, Any]) -> Any:
        """The value in ``row``; None when the row has the column and nothing is found there.

        Raises ``SourceError`` when the row has no such column.
        """
        if self.template:
            return _filled(self.template, row, self.name)
        if self.paths:
            return [walk(row, path, self.name) for path in self.paths]
        if not self.path:
            return self.constant
        value = walk(row, self.path, self.name)
        if self.json and isinstance(value, str):
            value = _decoded(value)
        if self.then and value is not None:
            value = walk(value, self.then, self.name, strict=False)
        if self.each and isinstance(value, Sequence) and not isinstance(value, str):
            value = [walk(item, self.each, self.name, strict=False) for item in value]
        if self.regex:
            matches = list(re.finditer(self.regex, str(value or ""), re.DOTALL))
            value = (matches[-1].group(1) if matches[-1].groups() else matches[-1].group()) if matches else None
        if self.take and value is not None:
            value = TAKES[self.take](str(value))
        return value


def walk(row: Any, path: str, name: str, *, strict: bool = True) -> Any:
    """Follow ``path`` from ``row``. Only a missing first key is an error; deeper, what is not there is None."""
    value = row
    for place, (key, index) in enumerate(STEP.findall(path)):
        if place == 0 and strict and isinstance(value, Mapping) and key not in value:
            raise SourceError(missing(name, path, list(value)))
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return None if isinstance(value, float) and math.isnan(value) else value  # pandas' word for nothing


def missing(name: str, path: str, found: Sequence[str]) -> str:
    near = nearest(path, found)
    hint = f" (did you mean {near!r}?)" if near else ""
    return f"column {path!r} is missing; the dataset has {list(found)}. Set dataset.columns.{name}{hint}."


def _filled(template: str, row: Mapping[str, Any], name: str) -> str:
    def found(match: re.Match[str]) -> str:
        value = walk(row, match.group(1), name)
        return "\n".join(map(str, value)) if isinstance(value, list) else str(value if value is not None else "")

    return re.sub(r"\{([^{}]+)\}", found, template)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except UNREADABLE:
        return None
