"""Measures whole builds beside other engines: the same completions from the same server, one command after another.

    python -m tests.benchmarks.peers.measure distilabel=VENV curator=VENV data_designer=VENV [--rounds 1] [--json FILE]

A VENV is an environment of its own for this engine; its script ``run_ENGINE.py`` says what to install. Each engine runs
in a new process with its default settings, except for the server and the requests at once, and all its processes count.
bestofn runs ``bestofn build`` with its default settings: journal, verification, pairs and published tables included. The
other engines verify nothing and make no pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bestofn.scripts.benchmark_speed import Figures, bare_command, bestofn_command, build_words, measured, server

HERE = Path(__file__).resolve().parent
N = 4
ENGINES = {  # engine -> its name, and the requests that it sends for one prompt
    "distilabel": ("distilabel 1.5.3, n = 4", 1),
    "curator": ("Curator 0.1.31, n = 1", N),
    "data_designer": ("Data Designer 0.9.6, n = 1", N),
}
Runs = Mapping[str, tuple[int, Callable[[Path], list[str]]]]
"""Name -> the least number of requests, and a function that returns the command to run in a folder."""


def main() -> None:
    """Measure all engines at each number of connections, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE=VENV")
    parser.add_argument("--prompts", type=int, default=2_000)
    parser.add_argument("--concurrency", default="64,256")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--rounds", type=int, default=1, help="the medians are printed")
    parser.add_argument("--json", type=Path, help="write the figures to this file, for plot.py")
    given = parser.parse_args()
    environments = dict(word.split("=", 1) for word in given.engines)
    if unknown := environments.keys() - ENGINES.keys():
        parser.error(f"unknown engines: {', '.join(sorted(unknown))}; expected {', '.join(ENGINES)}")
    figures = []
    with server(tail=False, latency_s=given.latency) as port:
        for concurrency in map(int, given.concurrency.split(",")):
            runs = commands(port, given.prompts, concurrency, environments)
            for name, values in medians(runs, port, given.rounds):
                figures.append({"name": name, "connections": concurrency, **values})
                print("{connections:4} {name:32} {wall:6.1f} s {cpu:6.1f} s CPU {mb:5.0f} MB".format(**figures[-1]))
    work = f"{N * given.prompts:,} completions from a local server with a latency of {1000 * given.latency:.0f} ms"
    described = {
        "work": f"{work}; whole processes, default settings, medians of {given.rounds}",
        "measured": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} processors, load {os.getloadavg()[2]:.1f}",
        "engines": figures,
    }
    print(f"{described['work']}. {described['measured']}")
    if given.json:
        given.json.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", "utf-8")


def commands(port: int, prompts: int, concurrency: int, environments: Mapping[str, str]) -> Runs:
    """Return what is measured at ``concurrency``. ``environments`` are the environments of other engines."""
    runs: dict[str, tuple[int, Callable[[Path], list[str]]]] = {
        "aiohttp client, n = 4": (prompts, lambda _: bare_command(port, prompts, N, concurrency)),
        "bestofn build, n = 4, verified": (
            prompts,
            lambda folder: bestofn_command(build_words(folder, port, prompts, N, concurrency)),
        ),
    }
    for engine, environment in environments.items():
        name, per_prompt = ENGINES[engine]
        script = [f"{Path(environment).absolute()}/bin/python", str(HERE / f"run_{engine}.py")]
        work = [f"http://127.0.0.1:{port}/v1", str(prompts), str(concurrency)]
        command = ["env", "-u", "PYTHONPATH", *script, *work]
        runs[name] = per_prompt * prompts, lambda _, command=command: command
    return runs


def medians(runs: Runs, port: int, rounds: int) -> Iterator[tuple[str, Figures]]:
    """Run everything ``rounds`` times in turn, and yield the medians by name."""
    found: dict[str, list[Figures]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (requests, command) in runs.items():
            with tempfile.TemporaryDirectory() as folder:
                figures = measured(command(Path(folder)), port, Path(folder))
            if figures["requests"] < requests:
                raise SystemExit(f"{name} sent {figures['requests']:,} requests; expected {requests:,}")
            found[name].append(figures)
    for name, values in found.items():
        yield name, _rounded(values)


def _rounded(values: Sequence[Figures]) -> Figures:
    return {key: round(statistics.median(figures[key] for figures in values), 2) for key in values[0]}


if __name__ == "__main__":
    main()
