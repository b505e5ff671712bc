"""``bestofn epistemic RUN``: does the model notice that a problem cannot be solved, and solve those that can?"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bestofn.builders.analysis.epistemic import EpistemicReport, Rate

LABELS = {
    "correct_refusals": "malformed and noticed (CRR)",
    "hallucinations": "malformed and answered all the same",
    "hedges": "malformed, answered under an assumption",
    "clarifications": "malformed or vague, asked back",
    "false_refusals": "well posed and not answered (FRR)",
    "calibration": "calibration, CRR − FRR",
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="bestofn epistemic",
        description="Rates of a run over dataset=malformed, unsolvable or vague, drawn with verifier=posed.",
    )
    parser.add_argument("run", help="the run's folder; run=FOLDER is the same")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)

    from bestofn.builders.analysis.epistemic import epistemic_report, stands
    from bestofn.builders.errors import exit_on_error
    from bestofn.builders.tables.views import nested, parts_of

    run = Path(options.run.removeprefix("run="))
    with exit_on_error():
        found = epistemic_report(stands(nested(parts_of(run))))
    print(json.dumps(dataclasses.asdict(found), indent=2) if options.json else text(found))


def text(found: EpistemicReport) -> str:
    """The report as lines."""
    rates = [(label, getattr(found, name)) for name, label in LABELS.items()]
    kinds = [(f"  noticed: {kind.replace('_', ' ')}", rate) for kind, rate in found.by_kind.items()]
    lines = [f"{'':<42}{'answers':>8}{'rate':>9}   95 % interval"]
    lines += [_line(label, rate) for label, rate in [*rates, *kinds]]
    if found.silent:
        lines.append(f"not counted: {found.silent} answers that say nothing readable")
    return "\n".join(lines)


def _line(label: str, rate: Rate) -> str:
    if rate.share is None or rate.interval is None:
        return f"{label:<42}{rate.answers:>8}{'–':>9}"
    low, high = rate.interval
    return f"{label:<42}{rate.answers:>8}{rate.share:>9.3f}   [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
