"""Runs the tests of the rows of the feature table and prints the table: ``python -m tests.documents [ROW…] [-OPTION…]``."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.documents.rows import Row, rows

TESTS = Path(__file__).resolve().parents[1]


class Outcomes:
    """Counts the outcomes of each test function."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the outcome of the test's call. A setup or teardown is counted only if it did not pass."""
        if report.when == "call" or not report.passed:
            file, _, name = report.nodeid.partition("::")
            self.of[file.removeprefix("tests/"), name.partition("[")[0]][report.outcome] += 1

    def line(self, row: Row) -> str:
        """Return the line of ``row`` in the printed table."""
        counts = sum((self.of[test] for test in row.tests), Counter())
        state = next((state for state in ("failed", "skipped", "passed") if counts[state]), "not run")
        numbers = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        return f"{row.name:8} {state:8} {'partly' if row.partly else 'whole':7} {row.title:55.55} {numbers}".rstrip()


def main(arguments: Sequence[str]) -> int:
    """Run the tests of the named rows, or of all rows. Words that begin with ``-`` are passed to pytest."""
    named = [word.replace("-", "_") for word in arguments if not word.startswith("-")]
    chosen = [row for row in rows() if not named or row.name in named]
    if missing := sorted(set(named) - {row.name for row in chosen}):
        print(f"{missing[0]} is not a row of the feature table; expected a name such as OUT-9")
        return 2
    nodes = dict.fromkeys(f"{TESTS / file}::{name}" for row in chosen for file, name in row.tests)
    outcomes = Outcomes()
    options = [word for word in arguments if word.startswith("-")]
    code = pytest.main([*nodes, "-q", "--no-header", "--durations=0", *options], plugins=[outcomes])
    print("\n".join(map(outcomes.line, chosen)))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
