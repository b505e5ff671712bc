"""Verifies structured answers.

``conf/verifier/structured.yaml`` builds this verifier; ``docs/verifiers.md`` describes it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Literal

from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.structured.grammars import grammar_violation
from bestofn.verifiers.structured.json_schemas import is_quick, violation
from bestofn.verifiers.structured.parsing import (
    TOO_DEEP,
    TOO_LONG,
    Finding,
    SpecificationError,
    SyntaxProblemError,
    UnreadableError,
    readings,
)
from bestofn.verifiers.structured.values import difference
from bestofn.verifiers.structured.xml_shapes import parse_xml, xml_violation

# Finds the structured part of an answer: the whole answer, a Markdown fence, or a JSON value in other text.

Where = Literal["whole", "fence", "text"]
FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
NAMES = {"json": {"json", "json5", "jsonc"}, "yaml": {"yaml", "yml"}, "xml": {"xml", "html", "svg"}}
OPENING = re.compile(r"[{\[]")


def structured_part(text: str, where: str, format: str) -> str:
    """Return the part of ``text`` that must have the format ``format``. ``where`` determines the part.

    - ``whole``: the whole text.
    - ``fence``: the whole text, or the content of a fence if the text is only this fence.
    - ``text``: the first of these that exists: the last fence that names the format; the last fence; for JSON and XML,
      the last value in the text; the whole text.

    Raises ``SpecificationError`` if ``where`` is unknown, ``SyntaxProblemError`` if the text is empty, and
    ``UnreadableError`` if a value in the text exceeds the limits of the reader.
    """
    if where not in ("whole", "fence", "text"):
        raise SpecificationError(f"'where' is {where!r}; expected whole, fence or text")
    text = text.strip()
    if not text:
        raise SyntaxProblemError("the answer is empty")
    if where == "whole":
        return text
    fences = list(FENCE.finditer(text))
    if where == "fence":
        return fences[0].group(3) if len(fences) == 1 and fences[0].group().strip() == text else text
    named = [fence for fence in fences if fence.group(2).lower() in NAMES.get(format, {format})]
    if named or fences:
        return (named or fences)[-1].group(3)
    if format == "xml":
        found = re.search(r"<[\w?!].*>", text, re.DOTALL)
        return found.group() if found else text
    return _last_json(text) if format == "json" else text


def _last_json(text: str) -> str:
    """Return the last object or array in ``text`` that is not inside another one; the whole text if there is none."""
    decoder, last, at = json.JSONDecoder(), text, 0
    while start := OPENING.search(text, at):
        try:
            _, at = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError:
            at = start.end()
        except RecursionError:
            raise UnreadableError(TOO_DEEP) from None
        except ValueError:
            raise UnreadableError(TOO_LONG) from None
        else:
            last = text[start.start() : at]
    return last


# Checks one structured answer: finds it in the text, and checks its syntax, shape and values.

KEYS = frozenset(
    {"format", "where", "schema", "formats", "columns", "delimiter", "header", "rows", "element", "pattern", "grammar"}
    | {"value", "compare"}
)


def check_json(spec: str, text: str) -> Finding:
    """Return the finding of ``check`` for a specification in JSON, which can be sent to a worker."""
    return check(json.loads(spec), text)


def check(spec: Mapping[str, Any], text: str) -> Finding:
    """Return a finding with the first problem of the answer ``text``. Its step is ``kept`` if there is no problem."""
    try:
        return _check(spec, text)
    except SyntaxProblemError as error:
        return Finding("syntax", str(error))
    except SpecificationError as error:
        return Finding("specification", str(error))
    except RecursionError:
        return Finding("specification", TOO_DEEP)


def is_quick_to_check(spec: Mapping[str, Any], text: str) -> bool:
    """Return whether ``check`` takes little time, so that no worker process is needed."""
    small = len(text) <= 20_000 and len(json.dumps(spec.get("value"))) <= 20_000
    return small and spec.get("format", "json") in ("json", "toml") and is_quick(spec.get("schema"))


def _check(spec: Mapping[str, Any], text: str) -> Finding:
    unknown = sorted(set(spec) - KEYS)
    if unknown:
        raise SpecificationError(f"the check has the key {unknown[0]!r}; expected {', '.join(sorted(KEYS))}")
    format = str(spec.get("format") or "json")
    part = structured_part(text, str(spec.get("where") or "text"), format)
    if format == "regex":
        return _regex(str(spec.get("pattern") or ""), part)
    if format == "grammar":
        return grammar_violation(str(spec.get("grammar") or ""), part.strip("\n"))
    if format == "xml":
        return xml_violation(spec.get("element") or {}, parse_xml(part))
    findings = [_check_data(spec, format, data) for data in readings(part, format, spec)]
    if len({finding.step == "kept" for finding in findings}) > 1:
        raise UnreadableError("YAML 1.1 and YAML 1.2 read a value of the answer differently")
    return findings[0]


def _check_data(spec: Mapping[str, Any], format: str, data: object) -> Finding:
    schema = _table_schema(spec) if format == "csv" else spec.get("schema")
    finding = violation(schema, data, bool(spec.get("formats"))) if schema is not None else Finding("kept")
    if finding.step == "kept" and "value" in spec:
        return difference(spec["value"], data, spec.get("compare") or {})
    return finding


def _regex(pattern: str, text: str) -> Finding:
    try:
        kept = re.fullmatch(pattern, text.strip("\n")) is not None
    except re.error as error:
        raise SpecificationError(f"the pattern {pattern!r} is not valid: {error}") from None
    return Finding("kept") if kept else Finding("shape", f"the text does not match {pattern!r}")


def _table_schema(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the rows of a CSV table."""
    columns: Mapping[str, Any] = spec.get("columns") or {}
    rows: Mapping[str, Any] = spec.get("rows") or {}
    bounds = {"minItems": rows.get("exactly", rows.get("min")), "maxItems": rows.get("exactly", rows.get("max"))}
    given = {key: value for key, value in bounds.items() if value is not None}
    return {"type": "array", "items": {"type": "object", "properties": dict(columns)}, **given}


FORMAT_NAMES = frozenset({"json", "yaml", "toml", "xml", "csv", "regex", "grammar"})


class StructuredVerifier:
    """Verifies that an answer has the format, the shape and the values of ``reference.checks["structured"]``.

    ``workers``     worker processes for checks that may take long. If None, these checks give ``abstain``.
    ``timeout_s``   time limit for one answer in a worker, in seconds. After it, the verdict is ``abstain``.
    ``formats``     whether to check ``format`` of JSON Schema too. The check of a query may set another value.
    ``max_length``  maximum length of an answer in characters. If an answer is longer, the verdict is ``abstain``.
    """

    name = "structured"

    def __init__(
        self,
        workers: Workers | None = None,
        timeout_s: float = 2.0,
        formats: bool = False,
        max_length: int = 1_000_000,
    ) -> None:
        self.workers, self.timeout_s = workers, timeout_s
        self.formats, self.max_length = formats, max_length

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has a check ``structured``; otherwise ""."""
        return self.name if self._specification(query) is not None else ""

    def in_worker(self, query: Query) -> StructuredVerifier:
        """Return this verifier, which needs no model and no sandbox."""
        return self

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict. ``detail`` has the step that failed, and the path of the first violation."""
        started = time.perf_counter()
        spec = self._specification(query)
        if spec is None:
            return Verdict("abstain", 0.0, "the query has no check of structured answers", self.name)
        if len(candidate.text) > self.max_length:
            reason = f"the answer has {len(candidate.text)} characters; max_length is {self.max_length}"
            return Verdict("abstain", 0.0, reason, self.name)
        finding = await self._find(spec, candidate.text)
        outcome: Outcome = {"kept": "pass", "specification": "abstain"}.get(finding.step, "fail")  # type: ignore[assignment]
        format = str(spec.get("format") or "json")
        detail = {"rule": f"{format}; {finding.step}", "step": finding.step, "path": finding.path, "format": format}
        seconds = time.perf_counter() - started
        return calibrated(Verdict(outcome, 0.0, _explain(finding, format), self.name, detail, seconds))

    def _specification(self, query: Query) -> Mapping[str, Any] | None:
        """Return the check ``structured`` of ``query``; None if it cannot be read.

        If the value is only a JSON Schema, return ``{"schema": value}``.
        """
        value = _decoded((query.reference.checks or {}).get("structured"))
        if not isinstance(value, Mapping):
            return None
        is_check = bool({"schema", "value", "where"} & set(value)) and "properties" not in value
        is_check = is_check or value.get("format") in FORMAT_NAMES
        spec: Mapping[str, Any] = value if is_check else {"schema": value}
        if isinstance(spec.get("schema"), str):
            spec = {**spec, "schema": _decoded(spec["schema"])}
            if spec["schema"] is None:
                return None
        return {"formats": self.formats, **spec}

    async def _find(self, spec: Mapping[str, Any], text: str) -> Finding:
        if is_quick_to_check(spec, text):
            return check(spec, text)
        if self.workers is None:
            return Finding("specification", "the check may take long, and there are no worker processes for it")
        try:
            return await self.workers.call(check_json, json.dumps(spec), text, timeout_s=self.timeout_s)
        except TimeoutError:
            return Finding("specification", f"the check took longer than {self.timeout_s:g} s")
        except MemoryError:
            return Finding("specification", "the check needed too much memory")


def _decoded(value: object) -> object:
    """Decode a JSON text, and return other values unchanged; None if a text is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _explain(finding: Finding, format: str) -> str:
    if finding.step == "kept":
        return f"the answer has the required {format}"
    place = f" at {finding.path}" if finding.path else ""
    return f"{finding.problem}{place}"
