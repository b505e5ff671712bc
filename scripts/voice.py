"""``bestofn voice RUN [RUN …]``: how strong a persona's voice is, whether it leaks, how much its answers differ.

The first run tells the persona unless ``persona=NAME`` or ``persona=FILE`` does; further runs, such as a baseline
without one, are measured by the same markers. What the voice costs in accuracy: ``bestofn compare BASELINE RUN``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from builders.errors import BestofnError, ConfigError

USAGE = """usage: bestofn voice RUN [RUN …] [persona=NAME|FILE] [max=2000] [--json]

RUN      a build's folder; the first one's persona is listened for in all
persona  another one: the name of a shipped persona, or a file of your own
max      queries of each run that are read (default 2000)"""


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or {"-h", "--help"} & set(words):
        print(USAGE)
        return
    try:
        print(run(words))
    except BestofnError as error:
        print(f"bestofn: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


def run(words: Sequence[str]) -> str:
    """The figures of each run as a table, or as JSON with ``--json``. Raises ``ConfigError``."""
    from builders.persona_analysis import VoiceReport, voice_report
    from personas.loader import load

    options = {key: value for key, equals, value in (word.partition("=") for word in words) if equals}
    paths = [Path(word) for word in words if "=" not in word and not word.startswith("-")]
    unknown = sorted(set(options) - {"persona", "max"}) + [w for w in words if w.startswith("-") and w != "--json"]
    if unknown or not paths:
        raise ConfigError(f"{'no run was given' if not unknown else f'unknown option {unknown[0]}'}.\n{USAGE}")
    if not options.get("max", "1").isdigit():
        raise ConfigError(f"max is {options['max']!r}; expected a number of queries")
    named = options.get("persona")
    given = {"path" if Path(named).suffix else "name": named} if named else _persona_of(paths[0])
    persona = load(**given)
    most = int(options.get("max", 2000))
    reports: dict[str, VoiceReport] = {}
    for path in paths:
        try:
            reports[str(path)] = voice_report(persona, list(_answers(path, most)))
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from error
    if "--json" in words:
        return json.dumps({path: dataclasses.asdict(report) for path, report in reports.items()}, indent=2)
    return f"persona {persona.name}, {len(persona.markers)} markers\n\n" + table(reports)


def table(reports: dict[str, Any]) -> str:
    """One column a run."""
    rows: list[tuple[str, list[str]]] = [
        ("answers", [f"{report.answers:,}" for report in reports.values()]),
        ("three markers or more", [f"{report.strong:.1%}" for report in reports.values()]),
        ("a marker", [f"{report.with_a_marker:.1%}" for report in reports.values()]),
        ("markers in 100 words", [f"{report.per_hundred_words:.2f}" for report in reports.values()]),
        ("without contractions", [f"{report.contraction_free:.1%}" for report in reports.values()]),
        ("in code, formula or box", [f"{report.leaked:.1%}" for report in reports.values()]),
    ]
    for split in sorted({split for report in reports.values() for split in report.by_split}):
        shares = [report.by_split.get(split) for report in reports.values()]
        rows.append((f"strong in {split}", ["" if share is None else f"{share:.1%}" for share in shares]))
    for name in dict.fromkeys(name for report in reports.values() for name in report.diversity):
        values = [report.diversity.get(name) for report in reports.values()]
        rows.append((name.replace("_", " "), ["" if value is None else f"{value:.3f}" for value in values]))
    wide = [max(10, len(path)) for path in reports]
    head = f"{'':<26}" + "  ".join(f"{path:>{width}}" for path, width in zip(reports, wide, strict=True))
    lines = [
        f"{label:<26}" + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, wide, strict=True))
        for label, cells in rows
    ]
    return "\n".join([head, *lines])


def _persona_of(path: Path) -> dict[str, Any]:
    """The settings of the persona that the run at ``path`` was drawn with."""
    manifest = path / "manifest.json"
    if not manifest.is_file():
        raise ConfigError(f"{path} is no run: there is no manifest.json. Give a build's folder, or persona=NAME")
    node = dict(json.loads(manifest.read_text("utf-8"))["config"].get("persona") or {})
    if not str(node.pop("_target_", "")).endswith("personas.loader.load"):
        raise ConfigError(f"{path} was drawn without a persona; say whose voice to listen for: persona=marvin")
    return node


def _answers(path: Path, most: int) -> Iterator[tuple[str, list[str]]]:
    """(split, the candidates' texts) of the first ``most`` queries."""
    import pyarrow.parquet as pq

    from builders.candidate_table import candidate_files

    def rows() -> Iterator[dict[str, Any]]:
        for file in candidate_files(path):
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(batch_size=1_000, columns=["query_id", "split", "answer"]):
                    yield from batch.to_pylist()

    for count, (_, group) in enumerate(groupby(rows(), key=lambda row: row["query_id"])):
        if count == most:
            return
        together = list(group)
        yield together[0]["split"] or "", [row["answer"] for row in together if row["answer"]]


if __name__ == "__main__":
    main()
