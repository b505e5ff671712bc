"""``bestofn epistemic RUN``: measures whether the model notices problems that have no answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.scripts.catalogue import EPISTEMIC

if TYPE_CHECKING:
    from bestofn.builders.analysis.epistemic import EpistemicReport, Rate


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn epistemic``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(EPISTEMIC, epistemic, words)


def epistemic(arguments: Arguments) -> None:
    """Print the rates of correct and wrong reactions to malformed and well-posed problems, as text or as JSON."""
    from bestofn.builders.analysis.epistemic import epistemic_report, stances_of
    from bestofn.builders.tables.shards import nested, parts_of

    report = epistemic_report(stances_of(nested(parts_of(arguments.run))))
    print(json.dumps(dataclasses.asdict(report), indent=2) if arguments.flag("json") else text(report))


def text(report: EpistemicReport) -> str:
    """Return the report as a table, with one line per rate and its confidence interval."""
    rates = {
        "malformed, and noticed (CRR)": report.correct_refusals,
        "malformed, but answered": report.hallucinations,
        "malformed, answered under an assumption": report.hedges,
        "malformed or vague, and asked back": report.clarifications,
        "well posed, but not answered (FRR)": report.false_refusals,
        "calibration, CRR − FRR": report.calibration,
        **{f"  noticed: {kind.replace('_', ' ')}": rate for kind, rate in report.by_kind.items()},
    }
    lines = [f"{'':<42}{'answers':>8}{'rate':>9}   95 % interval"]
    lines += [_line(label, rate) for label, rate in rates.items()]
    if report.silent:
        lines.append(f"answers without readable text, not counted: {report.silent}")
    return "\n".join(lines)


def _line(label: str, rate: Rate) -> str:
    if rate.share is None or rate.interval is None:
        return f"{label:<42}{rate.answers:>8}{'–':>9}"
    low, high = rate.interval
    return f"{label:<42}{rate.answers:>8}{rate.share:>9.3f}   [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
