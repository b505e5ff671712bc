"""``bestofn compare RUN RUN``: join two runs by query and test the difference."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.analysis.comparison import COLUMNS, Comparison, by_query, compared
from bestofn.builders.errors import ConfigError, exit_on_error
from bestofn.builders.tables.candidate_table import candidate_files

USAGE = """usage: bestofn compare RUN RUN [RUN …] [--json] [--seed N]

RUN     a run's folder, or a candidates table (.parquet). The others are compared with the first.
        Pass rate, any of N, first candidate and tokens over the queries that both runs hold, with 95 % intervals
        that resample queries, and McNemar's exact test of the first candidate."""


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return
    with exit_on_error():
        print(run(words))


def run(words: Sequence[str]) -> str:
    """The report as text, or as JSON with ``--json``. Raises ``ConfigError``."""
    seed, rest = _seed(list(words))
    as_json = "--json" in rest
    paths = [Path(word) for word in rest if word != "--json"]
    unknown = [str(path) for path in paths if str(path).startswith("-")]
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]}.\n{USAGE}")
    if len(paths) < 2:
        raise ConfigError(f"compare takes two runs or more, {len(paths)} given.\n{USAGE}")
    first = by_query(_rows(paths[0]))
    found = {str(path): compared(first, by_query(_rows(path)), seed=seed) for path in paths[1:]}
    for path, comparison in found.items():
        if not comparison.shared:
            raise ConfigError(f"{paths[0]} and {path} share no query_id: they are not runs of the same queries")
    if as_json:
        return json.dumps({path: dataclasses.asdict(one) for path, one in found.items()}, indent=2, allow_nan=False)
    return "\n\n".join(_text(str(paths[0]), path, comparison) for path, comparison in found.items())


def _seed(words: list[str]) -> tuple[int, list[str]]:
    if "--seed" not in words:
        return 0, words
    place = words.index("--seed")
    number = words[place + 1] if place + 1 < len(words) else ""
    if not number.isdigit():
        raise ConfigError(f"--seed is followed by {number!r}; expected a whole number")
    return int(number), words[:place] + words[place + 2 :]


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
