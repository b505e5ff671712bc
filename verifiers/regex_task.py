"""Verifies a regular expression that an answer gives, with texts that it must match or not match.

``conf/verifier/regex.yaml`` builds the verifier; ``docs/verifiers.md`` describes it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.formats.listed_texts import listed_texts
from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.sandbox.workers import ProcessorTimeError
from bestofn.verifiers.calibration import calibrated

FENCE = re.compile(r"^```\w*[ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
SLASHES = re.compile(r"/(.+)/([a-z]*)", re.DOTALL)
QUOTED = re.compile(r"[rR]?(['\"])(.*)\1", re.DOTALL)
LABEL = re.compile(r"(?i)^(?:the\s+)?(?:final\s+)?(?:regex|pattern|answer|regular expression)(?:\s+is)?\s*:\s*")
CODE = re.compile(
    r"(?m)^[^\S\n]*(?:import|from|const|let|var|def|print)\b|\bre\.\w+\(|RegExp\("
    r"|^[^\S\n]*\w+[^\S\n]*=[^\S\n]*(?:[rR]?['\"]|/)"
)
PROSE = re.compile(r"(?<!\S)[A-Za-z]+(?:['’][a-z]+)?[.,]?(?!\S)")
MOST_PATTERN = 2_000
MOST_PATTERNS = 20


class RegexVerifier:
    """Verifies the pattern of an answer with ``reference.checks["regex"]``.

    The check has ``matches`` and ``rejects``, lists of texts, and ``how``: ``fullmatch`` (default) or ``search``. The
    pattern is the last fenced block, or else the last text in backticks, or else the last line. Python's engine runs in
    a worker process of ``workers``. A pattern that needs more than ``cpu_s`` seconds of processor time fails.
    If the worker does not reply within ``timeout_s`` seconds, because the machine is busy, the verdict is ``error``.
    """

    name = "regex"

    def __init__(self, workers: Workers | None = None, timeout_s: float = 60.0, cpu_s: float = 1.0) -> None:
        self.workers, self.timeout_s, self.cpu_s = workers, timeout_s, cpu_s

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if it has workers and the check ``regex`` lists texts; otherwise ""."""
        return self.name if self.workers is not None and _texts(query) else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict. ``detail["pattern"]`` is the pattern of the answer."""
        started = time.perf_counter()
        texts = _texts(query)
        if self.workers is None or not texts:
            reason = "there are no worker processes" if texts else "the query has no texts to match"
            return Verdict("abstain", 0.0, reason, self.name)
        pattern, flags = pattern_of(candidate.text)
        check = dict((query.reference.checks or {})["regex"])
        outcome, rule = await self._decide(self.workers, pattern, flags, check)
        if outcome == "fail" and pattern:
            doubt = await self._doubt(self.workers, candidate.text, check)
            outcome, rule = ("abstain", doubt) if doubt else (outcome, rule)
        seconds = time.perf_counter() - started
        detail = {"rule": rule.split(":")[0], "pattern": pattern}
        return calibrated(Verdict(outcome, 0.0, rule, self.name, detail, seconds))

    async def _doubt(self, workers: Workers, text: str, check: dict[str, Any]) -> str:
        """Return why the last pattern in ``text`` may not be the intended answer; "" if there is no doubt."""
        if _is_within_code_or_prose(text):
            return "unread: the pattern is not marked in the answer"
        others = _earlier_patterns(text)
        if len(others) > MOST_PATTERNS:
            return f"several: the answer gives more than {MOST_PATTERNS} patterns"
        for pattern, flags in others:
            if (await self._decide(workers, pattern, flags, check))[0] != "fail":
                return f"several: the last pattern is wrong, but the earlier pattern {pattern[:80]!r} may be the answer"
        return ""

    async def _decide(self, workers: Workers, pattern: str, flags: str, check: dict[str, Any]) -> tuple[Outcome, str]:
        if not pattern:
            return "fail", "no pattern was found in the answer"
        if len(pattern) > MOST_PATTERN:
            return "abstain", "the pattern is too long"
        try:
            problem = await workers.call(
                first_problem, pattern, flags, check, timeout_s=self.timeout_s, cpu_s=self.cpu_s
            )
        except ProcessorTimeError:
            return "fail", "too slow: the pattern needs too much processor time for the texts"
        except TimeoutError:
            return "error", f"timeout: the worker process did not answer within {self.timeout_s:g} s"
        except MemoryError:
            return "fail", "too large: the pattern needs too much memory"
        return ("fail", problem) if problem else ("pass", "all texts are decided as required")


def pattern_of(text: str) -> tuple[str, str]:
    """Return the pattern that an answer gives, and its flags, such as ``i`` in ``/a/i``."""
    marked = _marked_texts(text)
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return _read_pattern(marked[-1] if marked else LABEL.sub("", lines[-1].strip()) if lines else "")


def _marked_texts(text: str) -> list[str]:
    """Return the fenced blocks of an answer. If it has none, return its texts in backticks."""
    return FENCE.findall(text) or [part for _, part in INLINE.findall(text)]


def _read_pattern(part: str) -> tuple[str, str]:
    part = part.strip()
    slashes, quoted = SLASHES.fullmatch(part), QUOTED.fullmatch(part)
    if slashes and "\n" not in part:
        return slashes.group(1), slashes.group(2)
    return (quoted.group(2) if quoted else part), ""


def _earlier_patterns(text: str) -> list[tuple[str, str]]:
    """Return the patterns in the answer, without the last pattern.

    One of these patterns may be the real answer, if the last pattern only explains a part of it.
    """
    parts = dict.fromkeys(
        _read_pattern(part) for part in FENCE.findall(text) + [part for _, part in INLINE.findall(text)]
    )
    return [found for found in parts if found[0] and found != pattern_of(text)]


def _is_within_code_or_prose(text: str) -> bool:
    """Return whether the pattern is not marked: the last marked text is code, or the last line is a sentence."""
    marked = _marked_texts(text)
    if marked:
        return bool(FENCE.search(text)) and bool(CODE.search(marked[-1]))
    last = text.strip().splitlines()[-1].strip()
    return len(PROSE.findall(last)) > 2 and not LABEL.match(last)


def first_problem(pattern: str, flags: str, check: Mapping[str, Any]) -> str:
    """Return a message about the first text that ``pattern`` matches or rejects wrongly; "" if there is none.

    Runs in a worker process.
    """
    try:
        compiled = re.compile(pattern, sum(getattr(re, flag.upper(), 0) for flag in set(flags) & set("imsx")))
    except (re.error, RecursionError, OverflowError) as error:
        return f"invalid: {pattern!r:.200} is not a regular expression of Python ({error})"
    method = compiled.search if check.get("how") == "search" else compiled.fullmatch
    for text in listed_texts(check.get("matches")):
        if method(text) is None:
            return f"misses: the pattern does not match {text[:80]!r}"
    for text in listed_texts(check.get("rejects")):
        if method(text) is not None:
            return f"accepts: the pattern matches {text[:80]!r}"
    return ""


def _texts(query: Query) -> Sequence[object]:
    """Return the texts that the check ``regex`` lists; () if it lists none, is missing or cannot be read."""
    check = (query.reference.checks or {}).get("regex")
    if not isinstance(check, Mapping) or check.get("how", "fullmatch") not in ("fullmatch", "search"):
        return ()
    return [*listed_texts(check.get("matches")), *listed_texts(check.get("rejects"))]
