"""``bestofn journal RUN-OR-FILE``: show, export or prune what has been paid for."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bestofn.builders.errors import ConfigError, JournalError, exit_on_error
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.journal_contents import as_json, entries, holdings, prune, under_way

USAGE = """usage: bestofn journal RUN-OR-FILE [json=true] [provider=TEXT]
       bestofn journal RUN-OR-FILE export=FILE.jsonl [provider=TEXT]
       bestofn journal RUN-OR-FILE prune=true [provider=TEXT] [older_than=30d] [dry_run=true]

RUN-OR-FILE  a run's folder, or a journal file
provider     only providers whose identity (service, URL, model) contains TEXT
export       one line of JSON an answer: request, raw reply, cost; - for standard output
prune        forget answers: they are asked and paid for again when a run wants them"""
KEYS = ("json", "provider", "export", "prune", "older_than", "dry_run")
UNIT_S = {"m": 60, "h": 3600, "d": 86400, "w": 604800}


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return
    with exit_on_error():
        run(words[0], _settings(words[1:]))


def run(place: str, settings: dict[str, str]) -> None:
    """Do what ``settings`` ask with the journal at ``place``."""
    pruning = _truth(settings.get("prune", "false"))
    journal = Journal(find(place), readonly=not pruning).open()
    try:
        provider = settings.get("provider", "")
        if pruning:
            forget(journal, provider, settings)
        elif "export" in settings:
            export(journal, settings["export"], provider)
        elif _truth(settings.get("json", "false")):
            print(json.dumps(as_json(journal), indent=2))
        else:
            show(journal, provider)
    finally:
        journal.close()


def find(place: str) -> Path:
    """The journal file of a run's folder, or the file itself. Raises ``ConfigError`` when there is none."""
    path = Path(place)
    path = path / "journal.sqlite" if path.is_dir() else path
    if not path.exists():
        raise ConfigError(f"there is no journal at {path}. Give a run's folder, or the path of a journal.")
    return path


def show(journal: Journal, provider: str) -> None:
    size = journal.path.stat().st_size
    print(f"{journal.path}: {size / 1e6:,.1f} MB")
    for holding in holdings(journal):
        if provider in holding.provider:
            print(
                f"  {holding.provider}\n"
                f"    {holding.answers:,} answers to {holding.requests:,} requests in {holding.calls:,} calls, "
                f"{holding.prompt_tokens:,} prompt and {holding.completion_tokens:,} completion tokens, "
                f"${holding.usd:,.4f}, {_date(holding.first_at)} to {_date(holding.last_at)}"
            )
    for batch in under_way(journal):
        if provider in batch.provider:
            known = "sent off, its id never came back" if batch.planned else "under way"
            print(
                f"  {batch.provider}\n"
                f"    batch {batch.id} of {batch.requests:,} requests {known} since {_date(batch.at)}; "
                "the next run that asks this model takes it up"
            )


def export(journal: Journal, target: str, provider: str) -> None:
    count = 0
    try:
        with contextlib.nullcontext(sys.stdout) if target == "-" else Path(target).open("w", encoding="utf-8") as file:
            for entry in entries(journal, provider):
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                count += 1
    except OSError as error:
        raise JournalError(f"{target} cannot be written ({error.strerror}); {count:,} answers were") from error
    print(f"{count:,} answers exported to {target}", file=sys.stderr)


def forget(journal: Journal, provider: str, settings: dict[str, str]) -> None:
    if not provider and "older_than" not in settings:
        raise ConfigError("prune=true would forget everything. Say what: provider=TEXT, older_than=30d, or both.")
    age_s = _seconds(settings["older_than"]) if "older_than" in settings else None
    before = None if age_s is None else time.time() - age_s
    dry_run = _truth(settings.get("dry_run", "false"))
    gone = prune(journal, provider=provider, before=before, dry_run=dry_run)
    told = "would be forgotten" if dry_run else "forgotten"
    print(f"{gone.answers:,} answers of {gone.calls:,} calls (${gone.usd:,.4f}) {told}")


def _settings(words: Sequence[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in KEYS:
            raise ConfigError(f"{word!r} is not understood; expected KEY=VALUE with one of {', '.join(KEYS)}\n{USAGE}")
        settings[key] = value
    return settings


def _truth(word: str) -> bool:
    if word.lower() in ("true", "1", "yes"):
        return True
    if word.lower() in ("false", "0", "no"):
        return False
    raise ConfigError(f"found {word!r}; expected true or false")


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text)
    if match is None:
        raise ConfigError(f"older_than is {text!r}; expected a number and a unit: 90m, 12h, 30d or 4w")
    return float(match[1]) * UNIT_S[match[2]]


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


if __name__ == "__main__":
    main()
