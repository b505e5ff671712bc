"""The mock tools of a rollout (``protocols.Tools``): the catalogue first, then an invented result, then a model.

The first of these that fits answers a call:

1. ``source="deterministic"``: the catalogue has a tool of that name or alias, and the arguments fit it;
2. ``source="schema"``: the nearest tool of the catalogue has a confidence of at least 0.4. The result is invented for
   the declared output schema, or for that of the nearest tool;
3. ``source="llm"``: a model invents the result, if one is configured; ``source="cache"`` for a repeated call.

An error is ``{"error": {"type", "message"}}`` in the content. ``source="refused"``: the call was not run, because the
tool is unknown or the arguments violate its schema. ``source="failed"``: the call failed because of the mock world
itself (no sandbox, no model, or unusable output of the model); the verifier does not count that against the answer.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.protocols import Archive, Sampler, Sandbox
from bestofn.builders.records import JsonObject, Tool, ToolResult
from bestofn.sandbox.tools.catalogue import CATALOGUE
from bestofn.sandbox.tools.mock_tool import Arguments, MockTool, ToolBroken, ToolFailure, wire_name
from bestofn.sandbox.tools.model_mock import output_schema, played
from bestofn.sandbox.tools.schema_mock import made_up
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.tool_matching import CONFIDENT, adapted, exact, nearest
from bestofn.sandbox.tools.world import World

MAX_ARGUMENT_CHARS = 100_000


class MockTools:
    """Deterministic tools in a seeded world; each candidate gets a ``fresh`` world.

    ``sampler`` invents the results of tools that nothing else fits; without it, they answer with an error. ``sandbox``
    runs ``code.run_python``. Another ``seed`` makes another world. ``faults`` is the share of calls that fail once with
    a rate limit, by a seeded schedule. ``offered`` names the catalogue tools or whole domains (``weather``) of
    ``declarations()``; empty: all. ``prefer_model``: ask the model wherever a result would be invented.
    """

    operational = ("sandbox",)

    def __init__(
        self,
        *,
        sampler: Sampler | Archive | None = None,
        sandbox: Sandbox | None = None,
        seed: int = 0,
        faults: float = 0.0,
        offered: Sequence[str] = (),
        prefer_model: bool = False,
    ) -> None:
        if not 0.0 <= faults <= 1.0:
            raise ValueError(f"tools.faults is {faults}; expected a share from 0 to 1")
        for name in offered:
            if exact(name) is None and not any(tool.domain == name for tool in CATALOGUE.values()):
                raise ValueError(
                    f"tools.offered contains {name!r}, which is neither a tool nor a domain of the catalogue. "
                    "docs/tools.md lists both."
                )
        self.sampler = sampler if isinstance(sampler, Sampler) else None  # recorded answers cannot invent results
        self.sandbox = sandbox
        self.seed = seed
        self.faults = faults
        self.offered = tuple(offered)
        self.prefer_model = prefer_model
        self.world = World(seed, sandbox)
        self._declared: dict[str, JsonObject] = {}
        self._played: dict[str, ToolResult] = {}
        self._episode: list[dict[str, Any]] = []
        self._faulted: set[str] = set()

    def declarations(self) -> Sequence[Tool]:
        """The offered tools of the catalogue, in the Chat Completions shape."""
        chosen = {tool.name for name in self.offered if (tool := exact(name))}
        return [
            tool.declaration()
            for tool in CATALOGUE.values()
            if not self.offered or tool.name in chosen or tool.domain in self.offered
        ]

    def fresh(self, seed: int = 0, declarations: Sequence[Tool] = ()) -> MockTools:
        """A new world in its initial state, for the declared tools; ``seed`` is added to the configured one."""
        copy = self._like(seed=self.seed + seed)
        for declared in declarations:
            function = to_chat(declared)["function"]
            copy._declared[wire_name(function["name"])] = function
        return copy

    def with_model_for_unknown(self) -> MockTools | None:
        """The same tools with a model instead of invented results; None without a model, or if it is used already."""
        if self.sampler is None or self.prefer_model:
            return None
        return self._like(prefer_model=True)

    def _like(self, **changed: Any) -> MockTools:
        """A new world with the same settings except ``changed``."""
        names = ("sampler", "sandbox", "seed", "faults", "offered", "prefer_model")
        return MockTools(**{name: getattr(self, name) for name in names} | changed)

    def changes(self) -> JsonObject:
        """What the calls so far have changed: table -> key -> record, None for a deleted record."""
        return self.world.changes()

    async def call(self, name: str, arguments: Arguments, seed: int = 0) -> ToolResult:
        """Run one call. ``seed`` is unused, because the world has its own; other tools may draw per call."""
        function = self._function(name)
        if function is None:
            known = ", ".join(sorted(self._declared)) or "those of the catalogue"
            return _error("unknown_tool", f"there is no tool {name!r}. Available: {known}.", "refused")
        violation = problem(function.get("parameters") or {}, _without_nulls(arguments, function))
        if violation:
            return _error("invalid_arguments", f"{name}: {violation}", "refused")
        if len(_json(dict(arguments))) > MAX_ARGUMENT_CHARS:
            return _error("invalid_arguments", f"{name}: the arguments are longer than {MAX_ARGUMENT_CHARS}", "refused")
        if self._fault_due(name, arguments):
            return _error("rate_limit", f"{name}: too many requests, try again", "deterministic")
        result = await self._answer(function, arguments)
        self._episode.append({"tool": name, "arguments": dict(arguments), "result": result.content[:2000]})
        return result

    def _function(self, name: str) -> JsonObject | None:
        """The declaration of a tool: the query's own, or the catalogue's when the query declares none."""
        if self._declared:
            return self._declared.get(wire_name(name))
        tool = exact(name)
        return tool.declaration()["function"] if tool else None

    async def _answer(self, function: JsonObject, arguments: Arguments) -> ToolResult:
        tool = exact(function["name"])
        own = adapted(tool, arguments) if tool else None
        if tool and own is not None and _are_valid(tool, own):
            return await self._run(tool, own)
        match = nearest(
            function["name"],
            function.get("description") or "",
            list((function.get("parameters") or {}).get("properties") or {}),
        )
        if match.confidence >= CONFIDENT and not self.prefer_model:
            schema = output_schema(function) or match.tool.returns
            value = made_up(schema, arguments, self.seed, function["name"], dict(arguments))
            return ToolResult(_json(value), source="schema")
        return await self._play(function, arguments)

    async def _run(self, tool: MockTool, arguments: Arguments) -> ToolResult:
        before = self.world.snapshot() if tool.changes else None
        try:
            value = tool(self.world, arguments)
            if inspect.isawaitable(value):
                value = await value
            return ToolResult(_json(value))
        except ToolFailure as failure:
            result = _error(failure.kind, str(failure), _source(failure, "deterministic"))
        except (ArithmeticError, ValueError) as error:  # numbers beyond what a float holds
            result = _error("invalid", f"the arguments have no result: {error}", "deterministic")
        if before is not None:
            self.world.restore(before)  # a failed call changes nothing
        return result

    async def _play(self, function: JsonObject, arguments: Arguments) -> ToolResult:
        """The result that the model invents; the same call gets the same result."""
        key = _json([function["name"], dict(arguments)])
        if key in self._played:
            known = self._played[key]
            return ToolResult(known.content, "failed" if known.source == "failed" else "cache", known.error)
        if self.sampler is None:
            return _error("unavailable", f"{function['name']} is not available", "failed")
        try:
            value = await played(self.sampler, function, arguments, self._episode, seed=self.seed)
            self._played[key] = ToolResult(_json(value), source="llm")
        except ToolFailure as failure:
            self._played[key] = _error(failure.kind, str(failure), _source(failure, "llm"))
        return self._played[key]

    def _fault_due(self, name: str, arguments: Arguments) -> bool:
        """True once per (tool, arguments) that the schedule selects, so that a retry succeeds."""
        key = _json([name, dict(arguments)])
        if not self.faults or key in self._faulted or not Seeded(self.seed, "fault", key).chance(self.faults):
            return False
        self._faulted.add(key)
        return True


def _are_valid(tool: MockTool, arguments: Arguments) -> bool:
    return not problem(tool.parameters, _without_nulls(arguments, {"parameters": tool.parameters}))


def _without_nulls(arguments: Arguments, function: JsonObject) -> dict[str, Any]:
    """The arguments without optional ones that are null, because strict services make models send all arguments."""
    required = (function.get("parameters") or {}).get("required") or ()
    return {name: value for name, value in arguments.items() if value is not None or name in required}


def _source(failure: ToolFailure, source: str) -> str:
    return "failed" if isinstance(failure, ToolBroken) else source


def _error(kind: str, message: str, source: str) -> ToolResult:
    return ToolResult(_json({"error": {"type": kind, "message": message}}), source=source, error=message)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
