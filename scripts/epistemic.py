"""``bestofn epistemic RUN``: does the model notice that a problem cannot be solved, and solve those that can?"""

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

LABELS = {
    "correct_refusals": "malformed and noticed (CRR)",
    "hallucinations": "malformed and answered all the same",
    "hedges": "malformed, answered under an assumption",
    "clarifications": "malformed or vague, asked back",
    "false_refusals": "well posed and not answered (FRR)",
    "calibration": "calibration, CRR − FRR",
}


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn epistemic`` with the words of a command line."""
    run_command(EPISTEMIC, epistemic, words)


def epistemic(arguments: Arguments) -> None:
    """Print the rates of a run over malformed, unsolvable or vague problems."""
    from bestofn.builders.analysis.epistemic import epistemic_report, stands
    from bestofn.builders.tables.shards import nested, parts_of

    found = epistemic_report(stands(nested(parts_of(arguments.run))))
    print(json.dumps(dataclasses.asdict(found), indent=2) if arguments.flag("json") else text(found))


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
