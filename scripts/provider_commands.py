"""Converts ``bestofn {openai,claude,local} {generate,regen}`` to ``build`` and ``regenerate`` commands.

    bestofn openai generate --config experiments/mine.yaml --max-queries 10
    bestofn claude regen runs/mine --split math,code --failed-only

The project's documents use these commands. Settings of ``bestofn build`` may follow, such as ``n=4 sandbox=none``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bestofn.builders.config.composition import quoted
from bestofn.builders.config.older_files import PROVIDERS, overrides_of, read_document
from bestofn.builders.errors import exit_on_error

NAMES = ("openai", "claude", "local")
OPTIONS = {
    "model": "the model to ask",
    "dataset": "a dataset's name, path or Hub id",
    "splits": "its splits, separated by commas",
    "max-queries": "at most this many queries per split",
    "num-candidates": "candidates per query",
    "temperature": "sampling temperature",
    "max-tokens": "maximum number of tokens per answer",
    "concurrency": "requests in flight at the same time",
    "persona": "a persona's name, file or text",
    "output": "the run's folder",
    "notes": "free text that is stored with the data",
}
FLAGS = {
    "streaming": "read the dataset as a stream",
    "structured-output": "ask for steps and a final answer as JSON",
    "llm-judge-fallback": "let a judge decide mathematics when the verifier is unsure",
}


def main(provider: str, arguments: Sequence[str]) -> None:
    """Convert the command in ``arguments`` for ``provider`` (one of ``NAMES``) and run it."""
    with exit_on_error():
        command, words = translated(provider, arguments, os.environ)
    if command == "build":
        from bestofn.scripts import build

        build.main(words)
    else:
        from bestofn.scripts import regenerate

        regenerate.main(words)


def translated(provider: str, arguments: Sequence[str], environment: Mapping[str, str] = {}) -> tuple[str, list[str]]:
    """Return the command (``build`` or ``regenerate``) and its words. ``--help`` prints the help and exits with 0."""
    given, words = _parser(provider).parse_known_args(list(arguments))
    stray = [word for word in words if word.startswith("--") and word not in ("--cfg", "--dry-run", "--multirun")]
    if stray:
        _parser(provider).error(f"unknown option {stray[0]}; settings are written key=value")
    if given.command == "generate":
        return "build", [*_generate(provider, given, environment), *words]
    return "regenerate", [*_regen(provider, given), *words]


def _generate(provider: str, given: argparse.Namespace, environment: Mapping[str, str]) -> list[str]:
    document = dict(read_document(Path(given.config))) if given.config else {}
    chosen = {"generator": provider} | {
        name.replace("-", "_"): value
        for name in (*OPTIONS, *FLAGS)
        if (value := getattr(given, name.replace("-", "_"))) not in (None, False)
    }
    return overrides_of(document, environment, where=given.config or "the command line", changes=chosen)


def _regen(provider: str, given: argparse.Namespace) -> list[str]:
    condition = "failed" if given.failed_only or not given.split else ""
    splits = [f"split:{name.strip()}" for name in given.split.split(",")] if given.split else [""]
    where = ",".join("+".join(part for part in (condition, split) if part) for split in splits)
    words = [given.results.removesuffix(".parquet"), f"where={where}"]
    if given.model:
        words += [f"provider={PROVIDERS[provider]}", f"provider.model={quoted(given.model)}"]
    return [*words, *([f"output={given.output}"] if given.output else []), *(["dry_run=true"] if given.dry_run else [])]


def _parser(provider: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"bestofn {provider}", description="The commands of the documents, translated to build and regenerate."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    generate = commands.add_parser("generate", help="sample, verify, score and pair (bestofn build)")
    generate.add_argument("--config", help="an experiment file, flat or nested; options win over it")
    for name, text in OPTIONS.items():
        generate.add_argument(f"--{name}", help=text)
    for name, text in FLAGS.items():
        generate.add_argument(f"--{name}", action="store_true", help=text)
    regen = commands.add_parser("regen", help="sample chosen candidates again (bestofn regenerate)")
    regen.add_argument("results", help="the run's folder")
    regen.add_argument("--split", help="only these splits, separated by commas")
    regen.add_argument("--failed-only", action="store_true", help="only candidates that did not pass")
    regen.add_argument("--model", help="another model for the new samples")
    regen.add_argument("--output", help="work on a copy of the run in this folder")
    regen.add_argument("--dry-run", action="store_true", help="only count")
    return parser
