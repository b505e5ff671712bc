"""``bestofn check``: tests the guarantees of the sandbox on this machine and prints one result per guarantee."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bestofn.builders.config.command import run_composed
from bestofn.builders.errors import ConfigError
from bestofn.scripts.catalogue import CHECK

if TYPE_CHECKING:
    from bestofn.sandbox.conformance import Backend


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn check``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_composed(CHECK, check, words)


def check(config: dict[str, Any]) -> bool:
    """Test the sandbox and return True if every guarantee holds; otherwise end the process with exit code 3."""
    from bestofn.builders.config.objects import ObjectBuilder

    sandbox = ObjectBuilder(trusted=config.get("trusted") or ()).build(config["sandbox"], "sandbox")
    if sandbox is None:
        raise ConfigError("sandbox=none runs no program, so there is nothing to test. Choose auto, docker or local.")
    held = asyncio.run(examine(sandbox))
    if not held:
        raise SystemExit(3)
    return held


async def examine(sandbox: Backend) -> bool:
    """Run the conformance checks in ``sandbox`` and print one line per check. Return True if all promises hold."""
    from bestofn.sandbox.conformance import CHECKS, machine
    from bestofn.sandbox.conformance import examine as examine_all

    print(machine())
    async with sandbox:
        await sandbox.opened()
        if sandbox.unavailable:
            print(f"sandbox={sandbox.name}: {sandbox.unavailable}")
            return False
        print(f"sandbox={sandbox.backend}")
        findings = await examine_all(sandbox.run, CHECKS)
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "holds" if finding.holds else "FAILS"
        print(
            f"  {mark}  {finding.name:<{width}}  {finding.promise}{'' if finding.holds else f' — {finding.observed}'}"
        )
    broken = sum(not finding.holds for finding in findings)
    print("all promises hold" if not broken else f"{broken} of {len(findings)} promises do not hold here")
    return not broken
