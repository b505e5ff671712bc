"""``bestofn <command> [group=choice] [key=value]``: finds the command and hands over the rest.

Imports nothing heavy, so that ``bestofn --help`` answers at once; ``python -m scripts.<command>`` is the same command.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

COMMANDS = {
    "build": "draw, verify, score and pair: from queries to a preference dataset",
    "inspect": "look at one run or several side by side",
    "analyze": "best-of-N analysis: pass@k, curves, agreement, over-optimisation",
    "compare": "join runs by query and test the difference",
    "voice": "hear how strong a persona's voice is, and how much answers differ",
    "epistemic": "malformed problems: noticed, or answered all the same?",
    "report": "write one self-contained HTML page of a run",
    "regenerate": "draw chosen candidates of a run anew, the rest untouched",
    "journal": "show, export or prune what has been paid for",
    "push": "send a run to the Hugging Face Hub, with its card",
    "train": "train on a run with TRL: dpo, reward, sft, kto, grpo",
    "loop": "build, pair, train, build again: does the data teach?",
    "serve": "serve a local model with an OpenAI-compatible API",
    "check": "test what the sandbox holds on this machine",
    "benchmark": "measure the verifiers on labelled data",
    "train_pocket": "train the embedded pocket policy from scratch",
}

PROVIDERS = ("openai", "claude", "local")  # bestofn openai generate …: a provider first, then what it does


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_usage())
        return
    if words[0] in ("--version", "-V"):
        from importlib.metadata import version

        print(f"bestofn {version('bestofn')}")
        return
    name, rest = words[0], words[1:]
    if name not in (*COMMANDS, *PROVIDERS):
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f" Did you mean `bestofn {near[0]}`?" if near else ""
        print(f"bestofn: there is no command {name!r}.{hint}\n\n{_usage()}", file=sys.stderr)
        raise SystemExit(2)
    refuse_foreign_verifiers()
    try:
        if name in PROVIDERS:
            importlib.import_module("scripts.provider_commands").main(name, rest)
        else:
            sys.argv = [f"bestofn {name}", *rest]
            importlib.import_module(f"scripts.{name}").main(rest)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nbestofn: stopped.", file=sys.stderr)
        _end(130)
    except SystemExit as ended:
        _end(ended.code)
    except BrokenPipeError:  # whoever read our words has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None


def _end(code: int | str | None) -> None:
    from builders.threads import end

    end(code)


def refuse_foreign_verifiers() -> None:
    """End with a remedy when the PyPI package ``verifiers`` (an RL library) stands in the place of ours."""
    spec = importlib.util.find_spec("verifiers")
    found = Path(spec.origin) if spec and spec.origin else None
    ours = Path(__file__).resolve().parent.parent / "verifiers" / "__init__.py"
    if found is None or found.resolve() != ours:
        print(
            f"bestofn: the package 'verifiers' that Python finds is {found or 'missing'}, not the one of bestofn\n"
            f"({ours}). The RL library of that name on PyPI takes its place. Remedy: install bestofn in a\n"
            f"virtual environment of its own, or `pip uninstall verifiers` and install bestofn again.",
            file=sys.stderr,
        )
        raise SystemExit(2)


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: bestofn <command> [group=choice] [key=value] [-m] [--cfg job] [--help]",
            "",
            *lines,
            "",
            "`bestofn <command> --help` shows the groups and settings of one command.",
        ]
    )


if __name__ == "__main__":
    main()
