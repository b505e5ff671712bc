"""Converts experiment files in two older formats to overrides of ``bestofn build``.

``bestofn build --from-yaml`` and ``provider_commands.py`` use this module. The flat format has the keys ``dataset``,
``splits``, ``model``, ``num_candidates`` and more. The nested format has ``dataset: {source, split}``,
``generation: {model, n, …}`` and ``output: {path, checkpoint_every}``. Words on the command line take precedence over
the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bestofn.builders.config.composition import quoted
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import nearest
from bestofn.builders.stages import steps_form

PROVIDERS = {"openai": "openai", "claude": "anthropic", "anthropic": "anthropic", "local": "openai_chat"}
SPLITS = ("tool_calling", "math", "code", "stem", "chat", "science", "safety")
FORMATS = {".jsonl": "jsonl", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
NESTED = {
    "dataset.source": "dataset",
    "dataset.split": "splits",
    "dataset.splits": "splits",
    "dataset.streaming": "streaming",
    "dataset.max_queries": "max_queries",
    "dataset.offset": "offset",
    "generation.model": "model",
    "generation.n": "num_candidates",
    "generation.temperature": "temperature",
    "generation.max_tokens": "max_tokens",
    "generation.persona": "persona",
    "generation.concurrency": "concurrency",
    "generation.generator": "generator",
    "output.path": "output",
    "output.checkpoint_every": "checkpoint_every",
}


def overrides_of_file(path: Path, environment: Mapping[str, str] = {}) -> list[str]:
    """Return the overrides for the experiment file ``path``. Raises ``ConfigError`` if the file is not valid."""
    return overrides_of(read_document(path), environment, where=str(path))


def read_document(path: Path) -> Mapping[str, Any]:
    """Return the content of an experiment file. Raises ``ConfigError`` if it is missing or is not a YAML mapping."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no experiment file {path}{_shipped(path)}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise ConfigError(
            f"{path} holds {type(document).__name__}; expected a mapping with keys such as dataset, model or "
            "num_candidates."
        )
    return document


def overrides_of(
    document: Mapping[str, Any],
    environment: Mapping[str, str] = {},
    where: str = "the file",
    changes: Mapping[str, Any] = {},
) -> list[str]:
    """Return the overrides for a flat or nested experiment. Values in ``changes``, with flat keys, take precedence.

    Only ``OPENAI_BASE_URL`` is read from ``environment``. If it is set, requests use the Chat Completions API of this
    server, unless the generator is Claude. Raises ``ConfigError`` if a key is unknown.
    """
    flat = _flat(document, where) | dict(changes)
    if str(flat.get("max_queries") or "").isdigit():  # these formats count per split, and the setting in total
        flat["max_queries"] = int(flat["max_queries"]) * max(1, len(_splits(flat.get("splits"))))
    words = _provider(flat, environment, where) + _dataset(flat) + _persona(flat.get("persona")) + _verifier(flat)
    for key, write in _PLAIN.items():
        if flat.get(key) is not None:
            words += write(flat[key])
    return words


def _shipped(path: Path) -> str:
    """Return a suggestion for an error message: the most similar experiment in conf/; "" if none is similar."""
    folder = Path(__file__).resolve().parents[2] / "conf" / "experiment"
    names = [file.relative_to(folder).with_suffix("").as_posix() for file in sorted(folder.rglob("*.yaml"))]
    wanted = path.with_suffix("").as_posix().removeprefix("experiments/")
    near = nearest(wanted, names, cutoff=0.5)
    return f"; a shipped experiment is similar: bestofn build experiment={near}" if near else ""


def _flat(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in document.items():
        group = isinstance(value, Mapping)
        for path, inner in ({f"{key}.{name}": item for name, item in value.items()} if group else {key: value}).items():
            known = NESTED.get(path) if group else (path if path in FLAT else None)
            if known is None:
                raise ConfigError(f"{where}: unknown key {path!r}{_nearest(path, [*NESTED, *FLAT])}")
            if known in flat:
                raise ConfigError(f"{where}: {path} and another key both set {known}; keep one of them.")
            flat[known] = inner
    return flat


def _nearest(word: str, known: Sequence[str]) -> str:
    match = nearest(word, known)
    return f"; did you mean {match!r}?" if match else f"; expected one of {', '.join(sorted(known))}"


def _provider(flat: Mapping[str, Any], environment: Mapping[str, str], where: str) -> list[str]:
    model = str(flat.get("model") or "")
    generator = str(flat.get("generator") or ("claude" if model.startswith("claude") else "openai"))
    if generator not in PROVIDERS:
        raise ConfigError(f"{where}: generator is {generator!r}{_nearest(generator, list(PROVIDERS))}")
    choice = PROVIDERS[generator]
    custom_url = environment.get("OPENAI_BASE_URL") if generator in ("openai", "local") else None
    words = [f"provider={'openai_chat' if custom_url else choice}"]
    if custom_url:
        words.append(f"provider.base_url={quoted(custom_url)}")
    return [*words, f"provider.model={quoted(model)}"] if model else words


def _dataset(flat: Mapping[str, Any]) -> list[str]:
    source = str(flat.get("dataset") or "nemotron")
    splits = _splits(flat.get("splits"))
    version = re.search(r"nemotron-post-training-dataset-v(\d)$", source, re.IGNORECASE)
    if version or source == "nemotron":
        needs_origins = version and version[1] == "1" and "code" in splits  # version 1 has no code prompts
        words = [
            f"dataset={'nemotron_code' if needs_origins else 'nemotron'}",
            *([f"dataset.version={version[1]}"] if version else []),
        ]
    elif Path(source).suffix in FORMATS:
        words = [f"dataset={FORMATS[Path(source).suffix]}", f"dataset.path={quoted(source)}"]
    elif "/" in source:
        words = ["dataset=hub", f"dataset.path={quoted(source)}"]
    else:
        words = [f"dataset={source}"]
    return [*words, f"dataset.splits={quoted(splits)}"] if splits else words


def _splits(value: Any) -> list[str]:
    """Return the splits in ``value``, which is text (``math,code`` or ``math_code``) or a list."""
    if value is None:
        return []
    names = value.split(",") if isinstance(value, str) else [str(name) for name in value]
    found: list[str] = []
    for name in (name.strip() for name in names):
        joined = re.findall("|".join(SPLITS), name)
        found += joined if joined and "_".join(joined) == name else [name]
    return [name for name in found if name]


def _persona(value: Any) -> list[str]:
    if not value:
        return []
    text = str(value)
    if Path(text).suffix in (".txt", ".md", ".yaml"):
        return ["persona=file", f"persona.path={quoted(text)}"]
    return ["persona=inline", f"persona.text={quoted(text)}"] if " " in text.strip() else [f"persona={text}"]


def _verifier(flat: Mapping[str, Any]) -> list[str]:
    """Return the verifier overrides.

    A judge verifies code and tool calls. The judge verifies math only if ``llm_judge_fallback`` is set.
    """
    words = ["verifier=with_judge"]
    return words if flat.get("llm_judge_fallback") else [*words, "verifier.domains.math.then=null"]


def _to(setting: str) -> Callable[[Any], list[str]]:
    return lambda value: [f"{setting}={quoted(value)}"]


def _number_to(setting: str) -> Callable[[Any], list[str]]:
    """Return a function that converts a number, or a number as text, to an override of ``setting``."""
    return lambda value: [f"{setting}={value}"]


_PLAIN: dict[str, Callable[[Any], list[str]]] = {
    "streaming": _to("dataset.streaming"),
    "max_queries": _number_to("dataset.max_queries"),
    "offset": _number_to("dataset.offset"),
    "min_query_chars": _number_to("dataset.min_query_chars"),
    "num_candidates": _number_to("n"),
    "temperature": _number_to("sampling.temperature"),
    "max_tokens": _number_to("sampling.max_tokens"),
    "seed": _number_to("seed"),
    "concurrency": _number_to("provider.limits.concurrency"),
    "checkpoint_every": _number_to("shard_size"),
    "budget_usd": _number_to("budget_usd"),
    "notes": _to("notes"),
    "output": lambda value: [f"out={quoted(str(value).removesuffix('.parquet'))}"],
    "structured_output": lambda value: [f"stages.generate.schema={quoted(steps_form.SCHEMA)}"] if value else [],
}
FLAT = ("dataset", "splits", "model", "generator", "persona", "llm_judge_fallback", *_PLAIN)
