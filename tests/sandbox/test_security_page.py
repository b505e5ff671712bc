"""SECURITY.md names every case that tests its promises, and no case that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CASES = ROOT / "tests" / "sandbox" / "cases"


def named_in_tables(head: str) -> list[str]:
    """Return the words in backquotes in the second column of the table whose header contains ``head``."""
    table = PAGE[PAGE.index(head) :].partition("\n\n")[0]
    return [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[2])]


@pytest.mark.parametrize(
    ("file", "head"),
    [("hostile_host.yaml", "| promise |"), ("hostile_verdict.yaml", "| attempt to forge a pass |")],
)
def test_each_case_stands_beside_one_promise(file: str, head: str) -> None:
    cases = [case["id"] for case in yaml.safe_load((CASES / file).read_text(encoding="utf-8"))]
    assert sorted(named_in_tables(head)) == sorted(cases)


def test_the_counts_are_those_of_the_files() -> None:
    counts = [len(yaml.safe_load((CASES / file).read_text(encoding="utf-8"))) for file in (
        "hostile_host.yaml", "hostile_verdict.yaml", "honest.yaml")]  # fmt: skip
    assert "{} programs that want out, {} that want a false pass, {} honest ones".format(*counts) in " ".join(
        PAGE.split()
    )
