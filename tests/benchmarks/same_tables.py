"""Builds the same dataset with two installations of bestofn, and compares all tables except for timings.

    python -m tests.benchmarks.same_tables OTHER_PYTHON [--prompts 700] [--n 4] [setting=value …]

``OTHER_PYTHON`` is the Python of the other installation, for example of a worktree. Both builds send the same requests
to one mock server and have the same run folder. A build of at least 600 queries has a second process. The command
compares the names of the files, the types of the columns and the bytes of each column. It prints each difference, and
ends with exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bestofn.scripts.benchmark_speed import build_words, server
from tests.benchmarks.kill_phases import without_timings

CONCURRENCY = 64
Digests = Mapping[str, str]
"""File and column -> its type and the digest of its values."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other_python")
    parser.add_argument("--prompts", type=int, default=700)
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("settings", nargs="*")
    given = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as folder, server(tail=False, latency_s=0.0) as port:
        words = [*build_words(Path(folder), port, given.prompts, given.n, CONCURRENCY), *given.settings]
        write_sums(Path(folder) / "sums.jsonl", given.prompts)
        first, second = (tables_of(python, words, Path(folder)) for python in (sys.executable, given.other_python))
    different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    for name in different:
        print(f"{name}: {first.get(name, 'missing')} and {second.get(name, 'missing')}")
    print(f"{len(first.keys() | second.keys())} columns of files compared, {len(different)} differ")
    raise SystemExit(bool(different))


def write_sums(file: Path, count: int) -> None:
    """Write sums with answers from 0 to 4. The mock server answers 0 to n − 1, so most queries have a pair."""
    lines = ({"id": f"q{i}", "question": f"What is {i} modulo 5?", "answer": str(i % 5)} for i in range(count))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def tables_of(python: str, words: Sequence[str], folder: Path) -> Digests:
    """Run the command ``words`` with ``python`` in ``folder``. Return the digests of its tables, and delete its run."""
    command = [python, "-m", "bestofn.scripts.main", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    digests: dict[str, str] = {}
    for file in sorted((folder / "run").rglob("*.parquet")):
        for name, digest in digests_of(file).items():
            digests[f"{file.relative_to(folder / 'run')} {name}"] = digest
    shutil.rmtree(folder / "run")
    return digests


def digests_of(file: Path) -> Digests:
    """Return the type and the digest of the values of each column of a Parquet file, without timings."""
    table = pq.read_table(file)
    columns: dict[str, list[Any]] = {name: [] for name in table.column_names}
    for row in without_timings(table.to_pylist()):
        for name, value in row.items():
            columns[name].append(value)
    digests = {name: hashlib.sha256(repr(values).encode()).hexdigest()[:16] for name, values in columns.items()}
    described = {name: f"{table.schema.field(name).type} {digest}" for name, digest in digests.items()}
    return described | {"(schema)": str((table.schema.metadata or {}).get(b"huggingface"))}


if __name__ == "__main__":
    main()
