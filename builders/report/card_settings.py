"""Describes for the dataset card how a run was made: model, verifiers, sources, screening, and the command."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.builders.analysis.figures import Figures
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.report.number_format import dollars
from bestofn.builders.tables.parquet_files import opened

PROMPTS = 1_000  # prompts whose language is determined
LOCAL_KEYS = ("out", "hub", "journal", "log", "flat_file", "budget_usd", "replace", "preview", "push")
"""Settings of the command that the card leaves out, because they do not change the data."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_FILE = re.compile(r"\.(jsonl?|csv|tsv|parquet|arrow|gz|zst)$")


def first_prompts(files: Sequence[Path]) -> list[str]:
    """Return the prompts of the first ``PROMPTS`` queries of the candidates table in ``files``."""
    prompts: dict[str, str] = {}
    for file in files:
        with opened(file) as table:
            for batch in table.iter_batches(batch_size=10_000, columns=["query_id", "question"]):
                for row in batch.to_pylist():
                    prompts.setdefault(row["query_id"], row["question"] or "")
                if len(prompts) >= PROMPTS:
                    return list(prompts.values())[:PROMPTS]
    return list(prompts.values())


def settings(described: Row, figures: Figures) -> list[tuple[str, str]]:
    """Return the settings of the run as rows (name, value) of a table. Unknown settings are left out."""
    config: JsonObject = described.get("config") or {}
    sampling, not_sent = config.get("sampling") or {}, described.get("not_sent") or {}
    usd, default = figures["cost"]["usd"], "default of the service"
    temperature = None if "temperature" in not_sent else sampling.get("temperature")
    values = {
        "model": model_of(described, figures),
        "further models": ", ".join(_models_by_role(config)),
        "persona": figures["metadata"].get("persona"),
        "samples per query": figures["n"],
        "temperature": default if temperature is None else temperature,
        "maximum tokens": sampling.get("max_tokens") or default,
        "verifiers": "; ".join(_verifiers(figures)),
        "sandbox of programs": _target(config.get("sandbox")) if "code" in figures["verifiers"] else None,
        "reward": _target(config.get("reward")),
        "pairing": _target(config.get("pairs")),
        "seed": config.get("seed"),
        "date": described.get("updated_at"),
        "cost": "no price known" if usd is None else f"{dollars(usd)}, with judges, rewards and simulated tools",
    }
    return [(name, str(value)) for name, value in values.items() if value not in (None, "")]


def model_of(described: Row, figures: Figures) -> str:
    """Return the name of the model that answered; "" if the run does not record it."""
    provider = (described.get("config") or {}).get("provider") or {}
    return str(figures["metadata"].get("model") or provider.get("model") or "")


def base_models(described: Row, figures: Figures) -> list[str]:
    """Return the models of the run that have an id of the Hub."""
    config: JsonObject = described.get("config") or {}
    models = [model_of(described, figures), *_models_by_role(config).values()]
    return [one for one in dict.fromkeys(models) if is_hub_id(one)]


def _models_by_role(config: JsonObject) -> dict[str, str]:
    others: JsonObject = config.get("models") or {}
    return {f"{role}: {node['model']}": node["model"] for role, node in others.items() if node and node.get("model")}


def _verifiers(figures: Figures) -> list[str]:
    """Return the verifiers of each split: ``math: math, judge``."""
    return [f"{split}: {', '.join(names)}" for split, names in figures["verifiers"].items()]


def is_hub_id(name: str) -> bool:
    """Return whether ``name`` has the form OWNER/NAME of the Hub and is not a file or folder of this machine."""
    return bool(_HUB_ID.fullmatch(name)) and not _FILE.search(name) and not Path(name).exists()


def source_nodes(config: JsonObject) -> list[JsonObject]:
    """Return the nodes of the dataset, from the outermost wrapper to the source that reads rows."""
    nodes: list[JsonObject] = [config.get("dataset") or {}]
    while isinstance(inner := nodes[-1].get("source"), Mapping):
        nodes.append(inner)
    return nodes


def source_datasets(described: Row) -> list[str]:
    """Return the ids of the Hub datasets from which the queries come."""
    path = str(source_nodes(described.get("config") or {})[-1].get("path") or "")
    return [path] if is_hub_id(path) else []


def sources(described: Row) -> list[dict[str, str]]:
    """Return the source of the queries as a list with one entry: name, license and URL.

    The URL is "" if the source is not a dataset of the Hub.
    """
    node, ids = source_nodes(described.get("config") or {})[-1], source_datasets(described)
    kind = _target(node) or "a source without a name"
    return [
        {
            "name": str(node.get("name") or Path(str(node.get("path") or kind.lower())).name),
            "license": str(node.get("license") or "unknown: the source states none"),
            "url": f"https://huggingface.co/datasets/{ids[0]}" if ids else "",
        }
    ]


def screening(described: Row) -> dict[str, object] | None:
    """Return the settings of the screening against held-out sets; None if the run has no such screening."""
    from bestofn.builders.sources.screened import Screened

    for node in source_nodes(described.get("config") or {}):
        if _target(node) == Screened.__name__:
            defaults = inspect.signature(Screened).parameters
            read = {key: node.get(key, defaults[key].default) for key in ("held_out", "run", "common", "near")}
            return {**read, "held_out": [_held_out_name(one) for one in read["held_out"]]}
    return None


def _held_out_name(one: object) -> str:
    return str((one.get("name") or one.get("path")) if isinstance(one, Mapping) else one)


def command(described: Row) -> str:
    """Return the command that made the run, without its folder; "" if the run does not record it."""
    words = (described.get("config") or {}).get("command") or ()
    kept = [word for word in words if re.split(r"[.=]", word.lstrip("+~"), maxsplit=1)[0] not in LOCAL_KEYS]
    return shlex.join(["bestofn", "build", *kept]) if words else ""


def _target(node: object) -> str | None:
    """Return the last part of the ``_target_`` of a configuration node; None if it has no ``_target_``."""
    return str(node["_target_"]).rsplit(".", 1)[-1] if isinstance(node, Mapping) and "_target_" in node else None
