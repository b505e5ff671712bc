"""Writes the labelled programs as a set for ``bestofn benchmark accuracy``, or measures the times of their runs.

python -m tests.benchmarks.compiled out=DIR          # writes DIR/code_compiled/data.jsonl
bestofn benchmark accuracy sets=code_compiled data=DIR sandbox=local
python -m tests.benchmarks.compiled times=3 [languages=go,rust]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bestofn.sandbox.inside.wire import COMPILED
from tests.benchmarks.compiled.programs import every_program
from tests.benchmarks.compiled.times import print_times


def main(arguments: Sequence[str]) -> int:
    """Write the set, or print the times. Return the exit code."""
    options = dict(word.split("=", 1) for word in arguments)
    if "out" in options:
        folder = Path(options["out"]) / "code_compiled"
        folder.mkdir(parents=True, exist_ok=True)
        rows = [json.dumps(one.row(), ensure_ascii=False) for one in every_program()]
        (folder / "data.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        print(f"{len(rows)} programs in {folder}")
    if "times" in options:
        print_times(int(options["times"]), options.get("languages", ",".join(COMPILED)).split(","))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
