"""Compares the judge of a run with the second opinions of an audit: agreement, calibration and biases.

``bestofn audit`` prints the report. Only the verdicts that a judge gave are compared. The labels are the opinions of a
person or of another verifier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from bestofn.builders.analysis.audit import AuditItem, AuditSample
from bestofn.builders.analysis.judge_report import calibration_report
from bestofn.builders.schema import candidate_from_row


class JudgedJson(TypedDict):
    """The figures of one judge against one source of labels; see ``judge_report.CalibrationReport``.

    The figures describe the audit sample: half of its verdicts are passes, and half are fails.
    """

    judge: str
    source: str
    judged: int
    accuracy: float
    low: float
    high: float
    kappa: float
    ece: float
    brier: float
    length_bias: float
    self_preference: float | None


def judge_figures(sample: AuditSample) -> list[JudgedJson]:
    """Return figures for each judge of the run and each second opinion. A judge is not compared with itself."""
    judges = sorted({judge for item in sample.items if (judge := judge_of(item))})
    sources = sorted({source for item in sample.items for source in item.opinions})
    return [figures for judge in judges for source in sources for figures in _figures(sample, judge, source)]


def judge_line(figures: JudgedJson) -> str:
    """Return ``figures`` as one sentence."""
    own = figures["self_preference"]
    return (
        f"judge {figures['judge']} against {figures['source']}: {100 * figures['accuracy']:.1f} % equal "
        f"({100 * figures['low']:.1f}–{100 * figures['high']:.1f}) of {figures['judged']:,}; "
        f"kappa {figures['kappa']:.2f}, ECE {figures['ece']:.2f}, Brier {figures['brier']:.2f}, "
        f"correlation with the length {figures['length_bias']:.2f}, "
        f"self-preference {'–' if own is None else f'{own:+.2f}'}."
    )


def judge_of(item: AuditItem) -> str:
    """Return the model of the judge that gave the verdict of ``item``; "" if another verifier gave it."""
    verdict = item.row["verdicts"][0]
    model = (verdict.get("detail") or {}).get("judge_model")
    return str(model) if model and str(verdict.get("verifier")).startswith("judge") else ""


def _figures(sample: AuditSample, judge: str, source: str) -> Iterator[JudgedJson]:
    of_judge = [item for item in sample.items if judge_of(item) == judge]
    items = [item for item in of_judge if item.opinions.get(source) in ("right", "wrong")]
    if not items or judge in source:
        return
    candidates = [candidate_from_row(item.row["candidates"][0]) for item in items]
    report = calibration_report(
        [item.outcome == "pass" for item in items],
        [float(item.row["verdicts"][0]["confidence"]) for item in items],
        [item.opinions[source] == "right" for item in items],
        [len(candidate.text) for candidate in candidates],
        own=[candidate.model == judge for candidate in candidates],
    )
    yield {
        "judge": judge,
        "source": source,
        "judged": report.judged,
        "accuracy": report.accuracy,
        "low": report.accuracy_interval[0],
        "high": report.accuracy_interval[1],
        "kappa": report.kappa,
        "ece": report.ece,
        "brier": report.brier,
        "length_bias": report.length_bias,
        "self_preference": report.self_preference,
    }
