"""``bestofn compare RUN RUN``: join two runs by query and test the difference."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.analysis.comparison import COLUMNS, Comparison, by_query, compared
from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.builders.errors import ConfigError
from bestofn.builders.tables.candidate_table import candidate_files
from bestofn.scripts.catalogue import COMPARE


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn compare`` with the words of a command line."""
    run_command(COMPARE, lambda arguments: print(compare(arguments)), words)


def compare(arguments: Arguments) -> str:
    """The comparison as text or as JSON. Raises ``ConfigError``."""
    paths = [Path(word) for word in arguments.runs]
    first = by_query(_rows(paths[0]))
    found = {str(path): compared(first, by_query(_rows(path)), seed=arguments.number("seed")) for path in paths[1:]}
    for path, comparison in found.items():
        if not comparison.shared:
            raise ConfigError(f"{paths[0]} and {path} share no query_id: they are not runs of the same queries")
    if arguments.flag("json"):
        return json.dumps({path: dataclasses.asdict(one) for path, one in found.items()}, indent=2, allow_nan=False)
    return "\n\n".join(_text(str(paths[0]), path, comparison) for path, comparison in found.items())


def _rows(path: Path) -> list[dict]:
    import pyarrow.parquet as pq

    rows = []
    for file in candidate_files(path):
        with pq.ParquetFile(file) as table:
            known = set(table.schema_arrow.names)
            needed = {"query_id", "candidate_idx", "split", "is_verified", "verification_status"}
            if missing := sorted(needed - known):
                raise ConfigError(f"{file} lacks the columns {', '.join(missing)}; expected a candidates table")
            rows += table.read(columns=[name for name in COLUMNS if name in known]).to_pylist()
    return rows


def _text(before: str, after: str, found: Comparison) -> str:
    lines = [f"{after}  against  {before}", f"{found.shared} queries in both"]
    if found.only_before or found.only_after:
        lines.append(
            f"not compared: {found.only_before} queries are only in {before}, {found.only_after} only in {after}"
        )
    lines.append(f"\n{'':<18}{'queries':>8}{'before':>10}{'after':>10}{'change':>10}   95 % interval")
    for one in found.differences:
        if one.interval is None:
            lines.append(f"{one.name:<18}{one.queries:>8}{'–':>10}{'–':>10}{'–':>10}")
            continue
        low, high = one.interval
        sure = "" if low <= 0 <= high else "  *"
        lines.append(
            f"{one.name:<18}{one.queries:>8}{one.before:>10.3f}{one.after:>10.3f}{one.change:>+10.3f}"
            f"   [{low:+.3f}, {high:+.3f}]{sure}"
        )
    lines.append(
        f"\nfirst candidate: {found.only_first_won} right only before, {found.only_second_won} only after; "
        f"McNemar p = {found.p_value:.3g}"
    )
    lines.append(f"verdicts of error, counted in neither: {found.errors_before} before, {found.errors_after} after")
    lines += [
        f"{one.split:<18}{one.queries:>8} queries: {one.improved} up, {one.worsened} down"
        f" ({one.before:.3f} → {one.after:.3f})"
        for one in found.splits
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
