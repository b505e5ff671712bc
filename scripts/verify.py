"""``bestofn verify FILE``: adds verdict columns to responses that exist already, without a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.builders.errors import ConfigError, IncompleteRun
from bestofn.scripts.catalogue import VERIFY

PARTS = ("response", "reference", "references", "question")
EXPLANATION = "verification_explanation"


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn verify``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(VERIFY, verify, words)


def verify(arguments: Arguments) -> None:
    """Write the table with verdict columns, and print how many responses have each outcome."""
    from bestofn.builders.api.datasets import verify_file

    source = arguments.positionals["FILE"][0]
    out = output_of(source, arguments.text("out"), in_place=arguments.flag("in_place"))
    done = verify_file(
        source,
        out,
        arguments.text("split"),
        arguments.number("max_row_mb"),
        given={part: arguments.text(part) for part in PARTS},
        kind=arguments.text("kind") or "",
        workers=arguments.number("workers"),
        overwrite=arguments.flag("overwrite"),
        sandbox=arguments.text("sandbox") or "auto",
        overrides=arguments.overrides,
        config_dirs=arguments.config_dirs,
    )
    print("columns: " + ", ".join(f"{part} {names!r}" for part, names in done.columns.items() if part != "id"))
    total = sum(done.outcomes.values())
    for outcome in ("pass", "fail", "abstain", "error"):
        count = done.outcomes.get(outcome, 0)
        print(f"  {outcome:<8} {count:>10,}  {count / max(total, 1):6.1%}")
    print(f"{done.path}: {total:,} responses with verdicts")
    if errors := done.outcomes.get("error", 0):
        reasons = f"{errors:,} of {total:,} responses could not be verified. The column {EXPLANATION} has the reasons."
        if errors == total:
            raise IncompleteRun(reasons)
        print(f"Problem: {reasons}")


def output_of(source: str, out: str | None, *, in_place: bool) -> Path:
    """Return the file to write:

    ``out``, or ``source`` itself with ``in_place``, or a new file with the suffix ``-verified``.
    """
    path = Path(source).expanduser()
    is_file = path.is_file()
    if in_place and (out or not is_file):
        raise ConfigError("in_place=true replaces a local file. Expected a local file, and no `out`.")
    if in_place:
        return path
    if out:
        if Path(out).is_dir():
            raise ConfigError(f"out is {out}, which is a folder; expected a file")
        if is_file and Path(out).resolve() == path.resolve():
            raise ConfigError(f"out is {out}, which is the input. To replace it: in_place=true, and no `out`.")
        return Path(out)
    if is_file:
        suffix = ".jsonl" if path.suffix in (".jsonl", ".json") else ".parquet"
        return path.with_name(f"{path.stem}-verified{suffix}")
    name = re.sub(r"[^\w.-]+", "-", source)
    return Path(f"{name}-verified.parquet")


if __name__ == "__main__":
    main()
