"""``bestofn COMMAND [RUN …] [key=value …]``: finds the command and passes the other words to it.

This module imports no heavy library, so that ``bestofn --help`` and completion are fast. ``python -m
bestofn.scripts.COMMAND`` runs the same command.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence

from bestofn.scripts.catalogue import COMMANDS

PROVIDERS = ("openai", "claude", "local")  # for commands such as ``bestofn openai generate …``
HELP = ("-h", "--help", "help")
FIRST = ("build", "verify", "inspect", "report", "push", "train", "best", "doctor")
"""The commands that a person needs first."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command whose name is the first word of ``arguments``; None reads ``sys.argv``."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or (words[0] in HELP and words[1:] in ([], ["all"])):
        print(usage(FIRST if len(words) < 2 else tuple(COMMANDS)))
        return
    if words[0] in ("--version", "-V"):
        from bestofn.builders.distribution import version

        print(f"bestofn {version()}")
        return
    if words[0] in HELP:
        words = [words[1], "--help"]
    if words[0] not in (*COMMANDS, *PROVIDERS):
        print(unknown_command(words[0]), file=sys.stderr)
        raise SystemExit(2)
    try:
        # A run keeps many rows for a short time. With Python's own 700 new objects between two collections, they take a
        # sixth of the CPU time of a build.
        gc.set_threshold(50_000)
        run(words[0], words[1:])
    except SystemExit as ended:
        if arguments is None:
            from bestofn.builders.concurrency.signals import end_soon

            end_soon(ended.code)
        raise


def run(name: str, words: Sequence[str]) -> None:
    """Run the command ``name`` with the arguments ``words``.

    If the program that reads the output closes the pipe early, end with exit code 141 and no message.
    """
    try:
        if name in PROVIDERS:
            importlib.import_module("bestofn.scripts.provider_commands").main(name, words)
        else:
            sys.argv = [f"bestofn {name}", *words]
            importlib.import_module(f"bestofn.scripts.{name}").main(words)
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        from bestofn.builders.concurrency.signals import exit_code_of

        print("\nbestofn: stopped.", file=sys.stderr)
        raise SystemExit(exit_code_of(error)) from None
    except SystemExit:
        _flush()
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None


def _flush() -> None:
    """Write what is left of the output. If its reader has ended, discard it, so that the exit code stays the same."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def unknown_command(name: str) -> str:
    """Return the error message for an unknown command, with the nearest command name."""
    from bestofn.builders.formats.nearest_match import nearest

    near = nearest(name, COMMANDS)
    hint = f" Did you mean `bestofn {near}`?" if near else ""
    return f"bestofn: there is no command {name!r}.{hint}\n\n{usage(tuple(COMMANDS))}"


def usage(names: Sequence[str]) -> str:
    """Return the usage text with the commands ``names``."""
    width = max(map(len, names))
    lines = [f"  {name:<{width}}  {COMMANDS[name].summary}" for name in names]
    rest = len(COMMANDS) - len(names)
    return "\n".join(
        [
            "usage: bestofn COMMAND [RUN …] [key=value …] [--json] [--dry-run] [--help] [--version]",
            "",
            *lines,
            "",
            "`bestofn COMMAND --help` shows the words, groups and settings of one command."
            + (f" `bestofn --help all` lists {rest} more commands." if rest else ""),
        ]
    )


if __name__ == "__main__":
    main()
