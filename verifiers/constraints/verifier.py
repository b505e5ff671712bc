"""The verifier of constraints.

``conf/verifier/constraints.yaml`` builds this verifier; ``docs/verifiers.md`` describes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.constraints.catalogue import UndecidedError, run_check
from bestofn.verifiers.constraints.specs import Constraint, SpecError, read_constraints

Mode = Literal["strict", "loose"]
QUICK = 10_000
"""The length of responses that are checked in this process, because every check takes little time for them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a response keeps one constraint: ``kept`` is None if this cannot be decided.

    ``problem`` is the reason if ``kept`` is False or None.
    """

    id: str
    kept: bool | None
    problem: str = ""


class ConstraintsVerifier:
    """Verifies that a response keeps all constraints in ``reference.checks["constraints"]``.

    ``mode``        ``strict`` reads the response as it is. ``loose`` also reads the response without its first line,
                    without its last line, without both lines, and without asterisks (IFEval). One match is enough.
    ``max_length``  maximum length of a response in characters; longer responses are not verified.
    ``workers``     worker processes for long responses. If None, the verdict on a long response is ``abstain``.
    ``timeout_s``   time limit for one long response in a worker, in seconds. After it, the verdict is ``abstain``.
    ``cpu_s``       the same limit in seconds of processor time.

    The verdict is ``fail`` if a constraint is broken. Otherwise it is ``abstain`` if a constraint cannot be decided.
    """

    name = "constraints"

    def __init__(
        self,
        mode: Mode = "strict",
        max_length: int = 100_000,
        workers: Workers | None = None,
        timeout_s: float = 60.0,
        cpu_s: float = 5.0,
    ) -> None:
        if mode not in ("strict", "loose"):
            raise ConfigError(f"verifier.mode is {mode!r}; expected strict or loose")
        self.mode: Mode = mode
        self.max_length = max_length
        self.workers, self.timeout_s, self.cpu_s = workers, timeout_s, cpu_s

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has constraints that can be read; otherwise ""."""
        try:
            return self.name if constraints_of(query) else ""
        except SpecError:
            return ""

    def in_worker(self, query: Query) -> ConstraintsVerifier:
        """Return this verifier, which needs no model and no sandbox."""
        return self

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict. ``detail["constraints"]`` has one entry per constraint."""
        started = time.perf_counter()
        try:
            constraints = constraints_of(query)
        except SpecError as error:
            return Verdict("abstain", 0.0, str(error), self.name)
        if not constraints:
            return Verdict("abstain", 0.0, "the query has no constraints", self.name)
        if len(candidate.text) > self.max_length:
            reason = f"the response has {len(candidate.text)} characters; max_length is {self.max_length}"
            return Verdict("abstain", 0.0, reason, self.name)
        findings, reason = await self._find_all(constraints, candidate.text)
        if reason:
            return Verdict("abstain", 0.0, reason, self.name)
        seconds = time.perf_counter() - started
        return calibrated(
            Verdict(outcome_of(findings), 0.0, explain(findings), self.name, detail_of(findings), seconds)
        )

    async def _find_all(self, constraints: Sequence[Constraint], text: str) -> tuple[list[Finding], str]:
        """Return (findings of all checks, ""); or ([], reason) if the checks could not finish."""
        if len(text) <= QUICK:
            return find_all(constraints, text, self.mode), ""
        if self.workers is None:
            return [], "the response is long, and there are no worker processes to limit the time"
        try:
            return await self.workers.call(
                find_all, list(constraints), text, self.mode, timeout_s=self.timeout_s, cpu_s=self.cpu_s
            ), ""
        except (TimeoutError, MemoryError) as error:
            return [], f"the checks of the response need too much time or memory ({type(error).__name__})"


def constraints_of(query: Query) -> list[Constraint]:
    """Return the constraints of ``query``; [] if it has none. Raises ``SpecError`` if they cannot be read."""
    value = (query.reference.checks or {}).get("constraints")
    return read_constraints(value) if value is not None else []


def find_all(constraints: Sequence[Constraint], text: str, mode: Mode) -> list[Finding]:
    """Return whether ``text`` keeps each of ``constraints``. Runs in a worker process for long texts."""
    return [find(constraint, text, mode) for constraint in constraints]


def find(constraint: Constraint, text: str, mode: Mode = "strict") -> Finding:
    """Return whether ``text`` keeps ``constraint``. An empty text breaks every constraint."""
    first = Finding(constraint.id, False, "the response is empty")
    for number, version in enumerate(versions(text) if mode == "loose" else [text]):
        if version.strip():
            finding = _find_in(constraint, version)
            if finding.kept:
                return finding
            first = finding if number == 0 else first
    return first


def _find_in(constraint: Constraint, text: str) -> Finding:
    if constraint.group:
        return _find_group(constraint, text)
    try:
        problem = run_check(constraint.id, constraint.language, text, constraint.arguments)
    except UndecidedError as error:
        return Finding(constraint.id, None, str(error))
    return Finding(constraint.id, not problem, problem)


def _find_group(constraint: Constraint, text: str) -> Finding:
    """Combine the findings of a group. The group is undecided only if its undecided parts could change the result."""
    parts = [_find_in(part, text) for part in constraint.parts]
    kept = [part.kept for part in parts]
    if constraint.group == "all":
        value = False if False in kept else None if None in kept else True
    else:
        value = True if True in kept else None if None in kept else False
        value = not value if constraint.group == "none" and value is not None else value
    problems = "; ".join(f"{part.id}: {part.problem or 'kept'}" for part in parts)
    return Finding(constraint.group, value, "" if value else problems)


def versions(text: str) -> Iterator[str]:
    """Yield the versions of ``text`` for the loose mode: with or without first line, last line and asterisks."""
    lines = text.split("\n")
    whole = (text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])))
    yield from whole
    yield from (version.replace("*", "") for version in whole)


def outcome_of(findings: Sequence[Finding]) -> Outcome:
    """Return ``fail`` if a constraint is broken, ``abstain`` if one is undecided, otherwise ``pass``."""
    kept = [finding.kept for finding in findings]
    return "fail" if False in kept else "abstain" if None in kept else "pass"


def explain(findings: Sequence[Finding]) -> str:
    """Return the reasons of the outcome as one text."""
    value = {"fail": False, "abstain": None, "pass": True}[outcome_of(findings)]
    if value:
        return f"all {len(findings)} constraints are kept"
    return "; ".join(f"{finding.id}: {finding.problem}" for finding in findings if finding.kept is value)


def detail_of(findings: Sequence[Finding]) -> dict[str, object]:
    """Return the entries of a verdict's ``detail``.

    ``rule`` is the id of the constraint that decided, for calibration; "several" if there are several such ids.
    """
    value = {"fail": False, "abstain": None, "pass": True}[outcome_of(findings)]
    deciding = sorted({finding.id for finding in findings if finding.kept is value})
    return {
        "rule": deciding[0] if len(deciding) == 1 else "several",
        "kept_share": sum(finding.kept is True for finding in findings) / len(findings),
        "constraints": [{"id": one.id, "kept": one.kept, "problem": one.problem[:300]} for one in findings],
    }
