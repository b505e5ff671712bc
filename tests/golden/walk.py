"""Prints the product code that one query executes in ``bestofn build``: ``python -m tests.golden.walk [key=value …]``.

A service on loopback answers one question of mathematics four times. A profile hook records each function of the project
that is called in this process, in any thread, from ``bestofn build …`` to its end. The lines of a function are those of
its source. Imports, and the processes that the build starts, are not counted. ``--files`` prints each file,
``--functions`` also its functions.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Sequence
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

from bestofn.scripts import main as entry  # imported before the hook is set
from tests.loopback import OpenAIServer

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("bestofn", "builders", "verifiers", "sandbox", "reward", "personas", "scripts")
OPTIONS = ("--files", "--functions")


def main(words: Sequence[str]) -> None:
    overrides = [word for word in words if word not in OPTIONS]
    called = walked(overrides)
    files: dict[str, list[CodeType]] = defaultdict(list)
    for code in called:
        if name := product_file(code.co_filename):
            files[name].append(code)
    lines = {name: lines_of(codes) for name, codes in files.items()}
    rooms: dict[str, list[str]] = defaultdict(list)
    for name in files:
        rooms["/".join(name.split("/")[: 2 if name.startswith("builders/") else 1])].append(name)
    for room in sorted(rooms, key=lambda room: -sum(lines[name] for name in rooms[room])):
        names = rooms[room]
        print(row(room, len(names), sum(len(files[name]) for name in names), sum(lines[name] for name in names)))
        for name in sorted(names, key=lambda name: -lines[name]) if set(OPTIONS) & set(words) else ():
            print(row(f"    {name}", 1, len(files[name]), lines[name]))
            if "--functions" in words:
                print(
                    *(f"        {code.co_firstlineno:>4} {code.co_qualname}" for code in sorted_codes(files[name])),
                    sep="\n",
                )
    print(row("all", len(files), sum(map(len, files.values())), sum(lines.values())))


def row(name: str, files: int, functions: int, lines: int) -> str:
    return f"{name:<60} {files:>5,} files {functions:>7,} functions {lines:>8,} lines"


def walked(overrides: Sequence[str]) -> set[CodeType]:
    """Build one query with four answers, and return the code of every function that was called.

    The bodies of modules and classes are no functions. Lambdas and comprehensions are lines of the function around them.
    """
    called: set[CodeType] = set()

    def hook(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
        data = Path(folder, "one.jsonl")
        data.write_text(json.dumps({"question": "What is 12 + 30?", "answer": "42"}) + "\n", "utf-8")
        provider = ["provider=openai_chat", "provider.model=m", f"provider.base_url={server.url}", "provider.api_key=k"]
        command = ["build", "dataset=jsonl", f"dataset.path={data}", *provider, "n=4", f"out={folder}/run", *overrides]
        threading.setprofile(hook)
        sys.setprofile(hook)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                entry.main(command)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return {code for code in called if code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")}


def product_file(filename: str) -> str:
    """Return the path of a product file from the root of the repository; "" for any other file."""
    path = Path(filename)
    if not path.is_absolute():
        return ""
    found = path.resolve()
    if not found.is_relative_to(ROOT):
        return ""
    name = found.relative_to(ROOT).as_posix()
    return name if name.split("/")[0] in ROOMS else ""


def lines_of(codes: Sequence[CodeType]) -> int:
    """Return the number of lines between the first and the last line of each function, each line once."""
    return len({number for code in codes for number in range(code.co_firstlineno, last_line(code) + 1)})


def last_line(code: CodeType) -> int:
    numbers = [number for _, _, number in code.co_lines() if number is not None]
    return max([*numbers, *(last_line(part) for part in code.co_consts if isinstance(part, CodeType))])


def sorted_codes(codes: Sequence[CodeType]) -> list[CodeType]:
    return sorted(codes, key=lambda code: code.co_firstlineno)


if __name__ == "__main__":
    main(sys.argv[1:])
