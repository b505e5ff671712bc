"""Writes the dataset card of a run: a YAML header for the Hub, and the template ``card.md`` filled with figures.

``report.hub`` calls ``card``. All values come from the manifest and the figures of the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

import pyarrow.parquet as pq

from bestofn.builders.analysis.figures import Figures, Rates
from bestofn.builders.analysis.problems import unverified_pairs
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Row
from bestofn.builders.report import card_settings
from bestofn.builders.report.card_example import example_pair
from bestofn.builders.report.card_language import languages_of
from bestofn.builders.report.headline import rates_by_split
from bestofn.builders.report.number_format import MISSING, at_k, audit_rows, interval, percent, rate
from bestofn.builders.tables.parquet_files import file_side, rows_in
from bestofn.builders.tables.schema_page import column_lines

VIEWS = {  # view -> description of one row
    "dpo": "one pair: `prompt`, `chosen` and `rejected` as conversations, with scores and margin (`DPOTrainer`)",
    "reward_model": "one pair as two whole conversations, with `margin` (`RewardTrainer`)",
    "kto": "one answer with `label`: true when it passed verification (or was preferred), else false (`KTOTrainer`)",
    "sft": "the best answer to a query (`SFTTrainer`)",
    "prm": "one answer in steps, with one label per step",
    "judge": "two answers and which is right, with reasons: for a generative reward model (`SFTTrainer`)",
    "grpo": "one prompt with its reference (`GRPOTrainer`)",
    "candidates": "one answer with its verdict, reward, cost and time",
}
JSON_SINCE = "4.7.0"  # first version of ``datasets`` that reads the type Json
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

MORE_PAIRS = "dpo_"  # prefix of the configs of ``hub.pairings``

Files = Mapping[str, Path]  # path in the repository -> file
Views = dict[str, dict[str, list[Path]]]  # config -> split -> files


class ConfigHeader(TypedDict):
    """One config of the dataset. Each entry of ``data_files`` has a split and the path or pattern of its files."""

    config_name: str
    data_files: list[dict[str, str]]
    default: NotRequired[bool]


class CardHeader(TypedDict):
    """The YAML header of the card; the Hub defines the key names."""

    pretty_name: str
    license: str
    language: NotRequired[list[str]]
    base_model: NotRequired[list[str]]
    source_datasets: NotRequired[list[str]]
    annotations_creators: list[str]
    task_categories: list[str]
    tags: list[str]
    size_categories: list[str]
    configs: list[ConfigHeader]


@dataclass(frozen=True, slots=True)
class CardTexts:
    """The user's settings for the card of an upload. If ``language`` is empty, it is determined from the prompts."""

    repo: str
    title: str
    license: str
    language: Sequence[str] = ()


def card(files: Files, described: Row, figures: Figures, plots: Mapping[str, str], texts: CardTexts) -> str:
    """Return the text of the card. ``described`` is the manifest; ``plots`` maps each plot's path to its description.

    Raises ``ConfigError`` if the Hub's parser rejects the header of the card.
    """
    import jinja2
    from huggingface_hub import DatasetCard

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters["cell"] = _cell
    template = environment.from_string((Path(__file__).parent / "card.md").read_text("utf-8"))
    views = files_by_view(files)
    prompts = card_settings.first_prompts(views.get("candidates", {}).get("data", []))
    values = {
        "header": "---\n" + yaml_text(_header(views, described, figures, texts, prompts)) + "---",
        "name": texts.title,
        "repo": texts.repo,
        "plots": plots,
        **_settings(described, figures),
        **_contents(views),
        **_results(figures),
        "citation": _citation(texts, described),
    }
    text = template.render(values)
    try:
        DatasetCard(text)
    except ValueError as error:
        message = f"the header of the dataset card is not valid: {error}. Check hub.name and hub.license."
        raise ConfigError(message) from error
    return text


def _header(
    views: Views, described: Row, figures: Figures, texts: CardTexts, prompts: Sequence[str]
) -> dict[str, object]:
    """Return the YAML header of the card, without the entries that are unknown."""
    header: CardHeader = {
        "pretty_name": texts.title,
        "license": texts.license,
        "language": list(texts.language) or languages_of(prompts),
        "base_model": card_settings.base_models(described, figures),
        "source_datasets": card_settings.source_datasets(described),
        "annotations_creators": ["machine-generated"],
        "task_categories": ["text-generation", "reinforcement-learning"],
        "tags": ["preference", "best-of-n", "verified", "synthetic", "trl", "bestofn"],
        "size_categories": [size_category(int(described.get("queries") or 0))],
        "configs": configs_of(views),
    }
    return {key: value for key, value in header.items() if value}


def configs_of(views: Views) -> list[ConfigHeader]:
    """Return the configs of the upload; the first is the default."""
    configs: list[ConfigHeader] = [
        {"config_name": view, "data_files": _data_files(view, sides)} for view, sides in views.items()
    ]
    configs[0]["default"] = True
    return configs


def size_category(queries: int) -> str:
    """Return the Hub's size category for a dataset with this number of queries."""
    return next((name for limit, name in SIZES if queries < limit), "1M<n<10M")


def yaml_text(value: object) -> str:
    """Return ``value`` as YAML; the order of the keys is unchanged."""
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _settings(described: Row, figures: Figures) -> dict[str, object]:
    """Return the values of the card that describe how the run was made."""
    config = described.get("config") or {}
    return {
        "version": (described.get("versions") or {}).get("bestofn"),
        "notes": str(config.get("notes") or "").strip(),
        "settings": card_settings.settings(described, figures),
        "command": card_settings.command(described),
        "skipped": described.get("skipped") or {},
        "sources": card_settings.sources(described),
        "screening": card_settings.screening(described),
    }


def _contents(views: Views) -> dict[str, object]:
    """Return the values of the card about each table (name, number of rows, description, columns), and an example."""
    rows = [
        {"name": view, "rows": _rows(sides), "about": _about(view), "columns": _columns(view, sides)}
        for view, sides in views.items()
    ]
    return {
        "views": rows,
        "first_view": next(iter(views)),
        "first_split": next(iter(next(iter(views.values())))),
        "has_answers": "candidates" in views,
        "datasets_version": _datasets_version(views),
        "example": example_pair(views.get("dpo", {}).get("train", [])),
    }


def _columns(view: str, sides: Mapping[str, Sequence[Path]]) -> list[str]:
    """Return the table of columns of a config; [] for a config of ``hub.pairings``, which has the columns of dpo."""
    return column_lines(view, pq.read_schema(_first_file(sides)).names) if view in VIEWS else []


def _about(view: str) -> str:
    strategy = view.removeprefix(MORE_PAIRS)
    return VIEWS.get(view, f"one pair of the same answers by the pairing `{strategy}`; columns of `dpo`")


def _first_file(sides: Mapping[str, Sequence[Path]]) -> Path:
    return next(iter(sides.values()))[0]


def _datasets_version(views: Views) -> str:
    """Return the first version of ``datasets`` that reads all tables; "" if the tables have only types of Arrow."""
    types = "".join(
        str((pq.read_schema(_first_file(sides)).metadata or {}).get(b"huggingface")) for sides in views.values()
    )
    return JSON_SINCE if '"Json"' in types else ""


def _citation(texts: CardTexts, described: Row) -> str:
    """Return a BibTeX entry for the upload."""
    owner, _, name = texts.repo.partition("/")
    year = str(described.get("updated_at") or "")[:4]
    fields = {
        "title": texts.title,
        "author": owner,
        **({"year": year} if year else {}),
        "howpublished": f"\\url{{https://huggingface.co/datasets/{texts.repo}}}",
    }
    lines = [f"  {key} = {{{_bibtex(value) if key != 'howpublished' else value}}}" for key, value in fields.items()]
    return f"@misc{{{re.sub(r'[^A-Za-z0-9]+', '_', f'{owner}_{name}')},\n" + ",\n".join(lines) + "\n}"


def _bibtex(text: str) -> str:
    return re.sub(r"([&%$#_{}])", r"\\\1", " ".join(text.split()))


def _results(figures: Figures) -> dict[str, object]:
    """Return the figures of the run for the card, mostly as formatted text."""
    return {
        "n": figures["n"],
        "queries": figures["queries"],
        "records": figures["records"],
        "outcomes": ", ".join(f"{count:,} {name}" for name, count in sorted(figures["outcomes"].items())),
        "k": figures["k"] or figures["n"],
        "splits": [_split(name, part, figures["k"]) for name, part in rates_by_split(figures).items()],
        "curve": [
            {**point, "mean": percent(point["mean"]), "interval": interval(point["low"], point["high"])}
            for point in figures["pass_at"]
        ],
        "pairs": figures["pairs"],
        "unverified": ", ".join(f"{count:,} pairs are {text}" for text, count in unverified_pairs(figures).items()),
        "refusals": f"{figures['refusals']['count']:,}",
        "audit": audit_rows(figures["audit"]),
        "problems": [problem["fact"] for problem in figures["problems"]],
    }


def _split(name: str, part: Rates, k: int | None) -> dict[str, str]:
    return {
        "name": name or MISSING,
        "queries": f"{part['queries']:,}",
        "candidates": f"{part['candidates']:,}",
        "rate": rate(part["rate"], part["rate_interval"]),
        "first": percent(part["first"]),
        "best": at_k("pass@", part["k"], k or 0, rate(part["best_of_n"], part["best_of_n_interval"])),
        "picked": at_k("best of ", part["k"], k or 0, percent(part["picked"])),
    }


def files_by_view(files: Files) -> Views:
    """Return the files as ``{view: {side: files}}``. The side ``train`` comes before the other sides."""
    views: Views = {path.partition("/")[0]: {} for path in files}
    for path, file in sorted(files.items(), key=lambda item: file_side(item[1]) != "train"):
        views[path.partition("/")[0]].setdefault(file_side(file), []).append(file)
    return views


def _data_files(view: str, sides: Mapping[str, Sequence[Path]]) -> list[dict[str, str]]:
    """Return the ``data_files`` of one config, with one path or pattern per split."""
    return [
        {"split": side, "path": f"{view}/{tables[0].name}" if len(tables) == 1 else f"{view}/{side}-*.parquet"}
        for side, tables in sides.items()
    ]


def _rows(sides: Mapping[str, Sequence[Path]]) -> str:
    """Return the number of rows per side as text: "1,200 train + 130 test"."""
    return " + ".join(f"{rows_in(files):,}{'' if side == 'data' else f' {side}'}" for side, files in sides.items())


def _cell(value: object) -> str:
    """Return ``value`` as text that is safe in a cell of a Markdown table, also between backticks."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("`", "'")
