"""The walk sees the work of a build in all its threads."""

from __future__ import annotations

from pathlib import Path

from tests.commands import restored_process
from tests.golden.walk import product_file, walked


def test_the_walk_goes_from_the_command_to_the_pairs() -> None:
    with restored_process():
        files = {Path(product_file(code.co_filename)) for code in walked(["sandbox=none", "tools=none"])}
    rooms = {file.parts[1] if file.parts[0] == "builders" else file.parts[0] for file in files if file.parts}
    assert {"scripts", "config", "sources", "providers", "sampling", "stages", "verifiers", "reward", "tables"} <= rooms
