"""``bestofn {openai,claude,local} {generate,regen}``: the documented commands, in the words of build and regenerate.

    bestofn openai generate --config experiments/mine.yaml --max-queries 10
    bestofn claude regen runs/mine --split math,code --failed-only

They translate and hand over; whatever ``bestofn build`` understands may follow (``n=4 sandbox=none``).
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
    "max-queries": "at most so many queries a split",
    "num-candidates": "candidates for each query",
    "temperature": "sampling temperature",
    "max-tokens": "most tokens of an answer",
    "concurrency": "requests under way at once",
    "persona": "a persona's name, file or text",
    "output": "the run's folder",
    "notes": "kept in the metadata of the data",
}
FLAGS = {
    "streaming": "read the dataset as a stream",
    "structured-output": "ask for steps and a final answer as JSON",
    "llm-judge-fallback": "let a judge decide mathematics where the verifier is unsure",
}


def main(provider: str, arguments: Sequence[str]) -> None:
    """Run a documented command of ``provider``: one of ``NAMES``."""
    with exit_on_error():
        command, words = translated(provider, arguments, os.environ)
    if command == "build":
        from bestofn.scripts import build

        build.main(words)
    else:
        from bestofn.scripts import regenerate

        regenerate.main(words)


def translated(provider: str, arguments: Sequence[str], environment: Mapping[str, str] = {}) -> tuple[str, list[str]]:
    """(``build`` or ``regenerate``, its words). ``--help`` prints and exits 0, as on each level."""
    given, words = _parser(provider).parse_known_args(list(arguments))
    stray = [word for word in words if word.startswith("--") and word not in ("--cfg", "--dry-run", "--multirun")]
    if stray:
        _parser(provider).error(f"unknown option {stray[0]}; settings are given as key=value")
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
        prog=f"bestofn {provider}", description="The documented commands, handed to build and regenerate."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    generate = commands.add_parser("generate", help="draw, verify, score and pair (bestofn build)")
    generate.add_argument("--config", help="an experiment file, flat or nested; what is given here wins over it")
    for name, text in OPTIONS.items():
        generate.add_argument(f"--{name}", help=text)
    for name, text in FLAGS.items():
        generate.add_argument(f"--{name}", action="store_true", help=text)
    regen = commands.add_parser("regen", help="draw chosen candidates anew (bestofn regenerate)")
    regen.add_argument("results", help="the run's folder")
    regen.add_argument("--split", help="only these splits, separated by commas")
    regen.add_argument("--failed-only", action="store_true", help="only what was not verified")
    regen.add_argument("--model", help="another model for the new draws")
    regen.add_argument("--output", help="leave the run as it is and write a copy here")
    regen.add_argument("--dry-run", action="store_true", help="only count")
    return parser
