"""``bestofn check``: try what the sandbox promises, on this machine, and say what holds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from bestofn.builders.config.command import run_composed
from bestofn.scripts.catalogue import CHECK


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn check`` with the words of a command line."""
    run_composed(CHECK, check, words)


def check(config: dict[str, Any]) -> bool:
    """True when every promise holds; else the process ends with 3."""
    from bestofn.builders.config.objects import ObjectBuilder

    sandbox = ObjectBuilder(trusted=config.get("trusted") or ()).build(config["sandbox"], "sandbox")
    held = asyncio.run(examine(sandbox))
    if not held:
        raise SystemExit(3)
    return held


async def examine(sandbox: Any) -> bool:
    """Run the conformance list in ``sandbox`` and print a line for each promise."""
    from bestofn.sandbox.conformance import CHECKS, machine
    from bestofn.sandbox.conformance import examine as examine_all

    print(machine())
    async with sandbox:
        chosen = getattr(sandbox, "chosen", sandbox)
        if chosen is None:
            print(f"sandbox={sandbox.name}: {sandbox.reason}")
            return False
        print(f"sandbox={chosen.name}")
        findings = await examine_all(sandbox.run, CHECKS)
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "holds" if finding.holds else "FAILS"
        print(f"  {mark}  {finding.name:<{width}}  {finding.promise}{'' if finding.holds else f' — {finding.found}'}")
    broken = sum(not finding.holds for finding in findings)
    print("everything holds" if not broken else f"{broken} of {len(findings)} promises do not hold here")
    return not broken
