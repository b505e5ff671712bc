"""Verifies structured answers.

``conf/verifier/structured.yaml`` builds this verifier; ``docs/verifiers.md`` describes it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.structured.findings import Finding

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
        from bestofn.verifiers.structured.checking import check, check_json, is_quick_to_check  # imports jsonschema

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
