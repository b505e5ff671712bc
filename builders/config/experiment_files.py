"""Converts an experiment file, or a path that names a shipped experiment, to overrides of ``bestofn build``.

``bestofn build --from-yaml FILE`` and ``bestofn {openai,claude,local} generate --config FILE`` use this module.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bestofn.builders.config.composition import quoted
from bestofn.builders.config.older_files import (
    PROVIDERS,
    dataset_words,
    flat_settings,
    generator_of,
    overrides_of,
    provider_words,
    read_document,
    setting_words,
    splits_in,
    verifier_words,
)
from bestofn.builders.config.setting_words import settings_words
from bestofn.builders.config.shipped_experiments import experiment_of, provider_of, results_file, splits_of
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject

log = logging.getLogger(__name__)

GENERATORS = {"openai": "openai", "openai_chat": "openai", "anthropic": "claude"}
"""Provider choice -> generator."""


def overrides_of_file(
    path: Path, environment: Mapping[str, str] = {}, changes: Mapping[str, Any] = {}, command: str = ""
) -> list[str]:
    """Return the overrides for the experiment file ``path``.

    If the file does not exist and its path names a shipped experiment, this experiment is used. ``changes`` are
    settings with flat keys; they replace those of the file. ``command`` is the generator that the user chose (openai,
    claude or local), or "" for the generator of the file. If the file is in a folder ``experiments`` and names no
    output, the results are in the folder ``results`` next to the file. Raises ``ConfigError`` if the file is not valid
    or is for another generator.
    """
    where, results = str(path), results_file(path)
    defaults = {"output": results} if results else {}
    name = None if path.exists() else experiment_of(path)
    if name:
        log.info("%s does not exist; the shipped experiment %s is used.", path, name)
        flat = {"generator": GENERATORS.get(provider_of(name) or "")}
        words = _words_of_experiment(name, defaults | _chosen(flat, changes, command, where), environment, where)
    else:
        document = read_document(path)
        if "defaults" in document:
            return [f"config_file={quoted(where)}", *_words_of_choices(document, changes, command, where)]
        chosen = _chosen(flat_settings(document, where), changes, command, where)
        words = overrides_of(document, environment, where, chosen, defaults)
    return [f"config_file={quoted(where)}", *words]


def _words_of_choices(document: JsonObject, changes: JsonObject, command: str, where: str) -> list[str]:
    """Return the overrides for a file in the form of conf/experiment: ``defaults`` and settings."""
    entries = document["defaults"]
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping | str) for entry in entries):
        raise ConfigError(f"{where}: defaults is {entries!r}; expected a list of choices, such as `- dataset: gsm8k`")
    chosen = {
        str(key).removeprefix("override ").strip().lstrip("/"): name
        for entry in entries
        if isinstance(entry, Mapping)
        for key, name in entry.items()
    }
    settings = {key: value for key, value in document.items() if key != "defaults"}
    provider = [f"provider={PROVIDERS[command]}"] if command else []
    return [*settings_words(chosen), *settings_words(settings), *provider, *_judge(changes), *setting_words(changes, 1)]


def _chosen(flat: JsonObject, changes: JsonObject, command: str, where: str) -> dict[str, Any]:
    """Return ``changes`` with the generator. The generator is ``command``; if ``command`` is "", the file's generator.

    Raises ``ConfigError`` if the file is for another generator than the command.
    """
    named = generator_of(flat, where)
    own = "claude" if named == "anthropic" else named
    model = str(flat.get("model") or "")
    if not own and command == "claude" and model and not model.startswith("claude"):
        own = "openai"
    if not command:
        return {"generator": own, **changes} if own else dict(changes)
    if own and own != command and (own, command) != ("openai", "local") and not changes.get("model"):
        reason = f"its generator is {own}" if flat.get("generator") else f"its model is {model}"
        raise ConfigError(
            f"{where} is an experiment for {own}: {reason}. Run `bestofn {own} generate --config {where}`, or "
            f"choose a model of {command} with --model MODEL."
        )
    return {**changes, "generator": command}


def _words_of_experiment(name: str, flat: JsonObject, environment: Mapping[str, str], where: str) -> list[str]:
    """Return the overrides for a shipped experiment with the settings ``flat``."""
    splits = splits_in(flat.get("splits"))
    words = [f"experiment={name}", *(provider_words(flat, environment, where) if flat.get("generator") else [])]
    if flat.get("dataset"):
        words += dataset_words(flat)
    elif splits:
        words.append(f"dataset.splits={quoted(splits)}")
    return words + _judge(flat) + setting_words(flat, max(1, len(splits or splits_of(name))))


def _judge(flat: JsonObject) -> list[str]:
    """Return the overrides that replace the experiment's verifier; [] if ``llm_judge_fallback`` is not given."""
    return [] if flat.get("llm_judge_fallback") is None else verifier_words(flat)
