"""``bestofn <command> [group=choice] [key=value]``: finds the command and hands over the rest.

Imports nothing heavy, so that ``bestofn --help`` answers at once; ``python -m scripts.<command>`` is the same command.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

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
        from bestofn.builders.formats.nearest_match import nearest

        near = nearest(name, COMMANDS)
        hint = f" Did you mean `bestofn {near}`?" if near else ""
        print(f"bestofn: there is no command {name!r}.{hint}\n\n{_usage()}", file=sys.stderr)
        raise SystemExit(2)
    try:
        if name in PROVIDERS:
            importlib.import_module("bestofn.scripts.provider_commands").main(name, rest)
        else:
            sys.argv = [f"bestofn {name}", *rest]
            importlib.import_module(f"bestofn.scripts.{name}").main(rest)
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
    from bestofn.builders.concurrency.threads import end

    end(code)


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
