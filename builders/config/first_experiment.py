"""Makes the text of the first experiment file for a table: ``bestofn init``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from bestofn.builders.formats.terminal_text import visible
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.sources.columns import Column

SHOWN = 48  # characters of a value
FIRST_LOOK = 20  # queries of the first build
EMBEDDED = "the embedded model, to try it offline; then openai, anthropic, vllm, …"
SERVICES = """
# provider:            # for example, with `- override /provider: openai` above and OPENAI_API_KEY set:
#   model: gpt-5.4-mini
# budget_usd: 5        # the build stops here; the same command with a larger budget continues
"""
WITHOUT_REFERENCE = """
# No column has a reference, so no answer can be verified. The scores of a reward make the pairs. `heuristic` looks only
# at the form of an answer. For real data: `- override /reward: judge` above, with a service as the provider.
verify_nothing: true
"""


@dataclass(frozen=True, slots=True)
class Table:
    """The known facts about a table of the user.

    ``choice`` and ``settings`` select the dataset. ``shipped`` is true if a file in conf/dataset lists the columns of
    the table. ``kinds`` maps each kind of reference to its number of queries among the first rows. ``skipped`` maps
    each reason to the number of skipped rows.
    """

    path: str
    choice: str
    settings: JsonObject
    rows: Sequence[Row]
    kinds: Mapping[str, int]
    skipped: Mapping[str, int] = field(default_factory=dict)
    guessed: Sequence[str] = ()
    recorded: bool = False
    shipped: bool = False


def experiment_text(table: Table, file: str, out: str) -> str:
    """Return the experiment file for ``table``.

    ``file`` is the name of this file, and ``out`` the folder of the run.
    """
    verified = any(kind != "no reference" for kind in table.kinds)
    parts = [_head(table, file), _choices(table, verified), _dataset(table)]
    parts.append("" if table.recorded else f"{SERVICES}\n{_sampling()}")
    parts.append("" if verified else WITHOUT_REFERENCE)
    return "".join(parts) + f"\n{_yaml({'out': out})}"


def _head(table: Table, file: str) -> str:
    rows = "1 row" if len(table.rows) == 1 else f"{len(table.rows):,} rows"
    columns = "".join(f"# {line}\n" for line in _column_lines(table))
    kinds = ", ".join(f"{count:,} with {kind}" for kind, count in table.kinds.items())
    skipped = "".join(f"\n# Skipped rows, {count:,}: {reason}." for reason, count in table.skipped.items())
    return (
        f"# @package _global_\n# Written by `bestofn init` from {rows} of {visible(table.path)}.\n"
        f"#\n#   bestofn build --from-yaml {file} --dry-run   # what is verified, requested and paid; sends nothing\n"
        f"#   bestofn build --from-yaml {file}             # KEY=VALUE changes a setting of this file\n"
        f"#\n{columns}#\n# Queries: {kinds or 'none'}.{skipped}\n\n"
    )


def _column_lines(table: Table) -> list[str]:
    """Return a table of the columns as comment lines: name, part of the query, and an example value."""
    columns: JsonObject = table.settings.get("columns") or {}
    used = {name: part for part, value in columns.items() for name in Column.of(part, value).column_names}
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    lines = [("column", "used as", "example")]
    for name in names:
        value = next((row[name] for row in table.rows if row.get(name) is not None), None)
        part = used.get(name, "" if table.shipped else "-")
        lines.append((visible(str(name)), f"{part} (a guess)" if part in table.guessed else part, _shown(value)))
    widths = [max(len(line[place]) for line in lines) for place in range(2)]
    return [f"{first:<{widths[0]}}  {second:<{widths[1]}}  {third}".rstrip() for first, second, third in lines]


def _shown(value: object) -> str:
    text = visible(" ".join(str(value).split()))
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _choices(table: Table, verified: bool) -> str:
    lines = [("dataset", table.choice, "")]
    if table.recorded:
        lines.append(("provider", "recorded", "the answers of the table; no request is sent"))
    else:
        lines.append(("provider", "pocket", EMBEDDED))
    if verified:
        lines.append(("verifier", "by_split", "chosen by the reference: math, choice, short_answer, code, tool"))
        lines.append(("pairs", "best_vs_worst", "docs/pairs.md lists the other pairings"))
    else:
        lines.append(("reward", "heuristic", "see below"))
        lines.append(("pairs", "by_score", "pairs from the scores of the reward"))
    lines.append(("sandbox", "auto", "where programs run: Docker if it is available, else Linux namespaces"))
    return "defaults:\n" + "".join(
        f"  - override /{group}: {name}{f' # {text}' if text else ''}\n" for group, name, text in lines
    )


def _dataset(table: Table) -> str:
    settings = dict(table.settings)
    columns = settings.pop("columns", None)
    text = _yaml(settings, 1) if settings else ""
    if columns:
        text += f"  columns: # part of a query: column (docs/datasets.md lists the parts)\n{_yaml(columns, 2)}"
    if not table.recorded:
        text += f"  max_queries: {FIRST_LOOK} # only the first rows; null: all rows\n"
    return f"\ndataset:\n{text}" if text else ""


def _sampling() -> str:
    return (
        "n: 4 # answers per query; more answers give more pairs\n"
        "sampling:\n  temperature: 1.0\n  max_tokens: 1024 # a longer answer is truncated\n"
    )


def _yaml(value: JsonObject, depth: int = 0) -> str:
    text = yaml.safe_dump(dict(value), allow_unicode=True, sort_keys=False, width=1_000)
    return "".join(f"{'  ' * depth}{line}\n" for line in text.splitlines())
