"""Every tool of the catalogue has valid schemas, samples, errors and aliases.

Its results are the same in every process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.formats.json_schema import problem
from bestofn.sandbox.tools.catalogue import CATALOGUE, MockTool
from bestofn.sandbox.tools.mock_tool import wire_name
from bestofn.sandbox.tools.mock_tools import MockTools
from bestofn.sandbox.tools.tool_matching import exact

ROOT = Path(__file__).resolve().parents[2]
NEEDS_A_SANDBOX = {"code.run_python"}
TOOLS = sorted(CATALOGUE.values(), key=lambda tool: tool.name)


async def answered(
    tool: MockTool, arguments: Mapping[str, Any], seed: int = 0, *, prepared: bool = True
) -> tuple[Any, str, MockTools]:
    tools = MockTools().fresh(seed)
    for name, before in tool.after if prepared else ():
        assert not (await tools.call(name, before)).error
    result = await tools.call(tool.name, arguments)
    return json.loads(result.content), result.error, tools


def test_the_catalogue_is_whole() -> None:
    assert len({wire_name(name) for name in CATALOGUE}) == len(CATALOGUE)
    stateful = {tool.domain for tool in TOOLS if tool.changes}
    assert {"fs", "db", "calendar", "email", "cart", "order", "ticket", "bank", "flights", "todo"} <= stateful


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_schemas_samples_and_errors(tool: MockTool) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(tool.parameters)
    Draft202012Validator.check_schema(tool.returns)
    assert tool.failures
    for arguments in tool.samples:
        assert problem(tool.parameters, arguments) == ""
        value, error, tools = asyncio.run(answered(tool, arguments))
        assert error == ""
        assert problem(tool.returns, value) == ""
        assert tools.changes() or tool.after or not tool.changes
        if not tool.changes and not tool.after:
            assert tools.changes() == {}
    assert tool.samples or tool.name in NEEDS_A_SANDBOX
    for arguments in tool.failures:
        value, error, tools = asyncio.run(answered(tool, arguments, prepared=False))
        assert error
        assert set(value["error"]) == {"type", "message"}
        assert tools.changes() == {}  # a refused call leaves no trace


def test_aliases_lead_to_one_tool_each() -> None:
    claimed = Counter(alias for tool in TOOLS for alias in tool.aliases)
    assert [alias for alias, count in claimed.items() if count > 1] == []
    for tool in TOOLS:
        for name in (tool.name, wire_name(tool.name), *tool.aliases):
            assert exact(name) is tool, name


def test_other_seeds_are_other_worlds() -> None:
    contents = [asyncio.run(MockTools(seed=seed).call("stock.quote", {"symbol": "AAPL"})).content for seed in range(4)]
    assert len(set(contents)) == 4


def digest_of_all_samples() -> str:
    """Return one hash over the results of all samples in two worlds, so that processes can be compared."""

    async def collect() -> list[Any]:
        found = []
        for tool in TOOLS:
            for arguments in tool.samples:
                for seed in (0, 7):
                    found.append([tool.name, seed, (await answered(tool, arguments, seed))[0]])
        return found

    return hashlib.sha256(json.dumps(asyncio.run(collect()), sort_keys=True).encode()).hexdigest()


def test_the_same_bytes_in_every_process() -> None:
    program = (
        f"import sys, importlib.util as u; sys.path.insert(0, {str(ROOT)!r});"
        f"spec = u.spec_from_file_location('catalogue_test', {__file__!r});"
        "module = u.module_from_spec(spec); spec.loader.exec_module(module); print(module.digest_of_all_samples())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for seed, zone in (("0", "UTC"), ("4242", "Asia/Tokyo"))
    }
    assert digests == {digest_of_all_samples()}


ODD = (
    "",
    " ",
    "x",
    "0",
    "-1",
    "Oslo",
    "2026-03-20",
    "\x00",
    "ä\ud800",
    "1e400",
    "a" * 3000,
    "🙂",
    "OSL",
    "PRD-1001",
    "[]",
)


def odd_value(schema: Mapping[str, Any], draw: Any) -> Any:
    """Return a value of the schema's type, often an extreme one. ``draw`` chooses it."""
    if "enum" in schema:
        return draw.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return draw.choice([0, 1, -1, 2, 7, 100, 10**6, -(10**9), 2**62])
    if kind == "number":
        return draw.choice([0, 1, -1, 0.5, 1e-9, 1e15, -1e300, 3])
    if kind == "boolean":
        return draw.choice([True, False])
    if kind == "array":
        return [odd_value(schema.get("items") or {}, draw) for _ in range(draw.integer(0, 3))]
    if kind == "object":
        names = ("name", "id", "price", "title", "start", "radius")
        return {name: draw.choice([1, "x", None, [], {}]) for name in draw.sample(names, draw.integer(0, 3))}
    return draw.choice(ODD) if kind == "string" else draw.choice([1, "x", None])


def test_no_argument_breaks_a_tool() -> None:
    from bestofn.sandbox.tools.seeded import Seeded

    async def abuse() -> None:
        for tool in TOOLS:
            draw = Seeded("abuse", tool.name)
            for _ in range(20):
                tools = MockTools().fresh()
                schemas, required = tool.parameters["properties"], tool.parameters["required"]
                names = [name for name in schemas if name in required or draw.chance(0.5)]
                arguments = {name: odd_value(schemas[name], draw) for name in names}
                result = await tools.call(tool.name, arguments)
                value = json.loads(result.content)
                if not result.error:
                    assert problem(tool.returns, value) == "", (tool.name, arguments, value)

    asyncio.run(abuse())
