"""The mock world that a rollout's tools live in: catalogue first, then a made-up answer, then a model.

A declared tool is answered by the first of these that fits:

1. the catalogue's tool of that name or alias, when the arguments can be read as its own: ``source="deterministic"``;
2. the catalogue's nearest tool with a confidence of at least 0.4: a value made up to the declared output schema, or to
   that of the nearest tool: ``source="schema"``;
3. a model that plays the tool, when one is configured: ``source="llm"``; again for the same call: ``source="cache"``.

What went wrong is ``{"error": {"type", "message"}}`` in the content; a call that was never run (unknown tool, arguments
against the declared schema) has ``source="refused"``, and one that failed for a fault of ours (no sandbox, no model, a
model that gave nonsense) ``source="failed"``: the verifier does not hold that against the answer.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.protocols import Archive, Sampler, Sandbox
from bestofn.builders.records import Tool, ToolResult
from bestofn.sandbox.tools.catalogue import CATALOGUE
from bestofn.sandbox.tools.mock_tool import MockTool, ToolBroken, ToolFailure, wire_name
from bestofn.sandbox.tools.model_mock import output_schema, played
from bestofn.sandbox.tools.schema_mock import made_up
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.tool_matching import CONFIDENT, adapted, exact, nearest
from bestofn.sandbox.tools.world import World

MAX_ARGUMENT_CHARS = 100_000


class MockTools:
    """Deterministic tools in a seeded world; each candidate works in a ``fresh`` one.

    ``sampler`` plays the tools that nothing else fits (give the generator's own provider); without it they answer with
    an error. ``sandbox`` runs ``code.run_python``. ``seed`` makes another world. ``faults`` is the share of calls that
    fail once with a rate limit, by a seeded schedule. ``offered`` names catalogue tools (or whole domains, ``weather``)
    for ``declarations()``; empty: all of them.
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
            raise ValueError(f"faults is {faults}; expected a share from 0 to 1")
        for name in offered:
            if exact(name) is None and not any(tool.domain == name for tool in CATALOGUE.values()):
                raise ValueError(f"offered names {name!r}, which is neither a tool nor a domain of the catalogue")
        self.sampler = sampler if isinstance(sampler, Sampler) else None  # recorded answers can play no tool
        self.sandbox = sandbox
        self.seed = seed
        self.faults = faults
        self.offered = tuple(offered)
        self.prefer_model = prefer_model
        self.world = World(seed, sandbox)
        self._declared: dict[str, Mapping[str, Any]] = {}
        self._played: dict[str, ToolResult] = {}
        self._episode: list[dict[str, Any]] = []
        self._faulted: set[str] = set()

    def declarations(self) -> Sequence[Mapping[str, Any]]:
        """The offered tools of the catalogue, in the Chat Completions shape."""
        chosen = {found.name for name in self.offered if (found := exact(name))}
        return [
            tool.declaration()
            for tool in CATALOGUE.values()
            if not self.offered or tool.name in chosen or tool.domain in self.offered
        ]

    def fresh(self, seed: int = 0, declarations: Sequence[Tool] = ()) -> MockTools:
        """A world of its own as at the beginning, for tools declared so; ``seed`` adds to the configured one."""
        copy = self._like(seed=self.seed + seed)
        for declared in declarations:
            function = to_chat(declared)["function"]
            copy._declared[wire_name(function["name"])] = function
        return copy

    def with_model_for_unknown(self) -> MockTools | None:
        """The same tools, with a model in place of every made-up answer; None when there is no model."""
        if self.sampler is None or self.prefer_model:
            return None
        return self._like(prefer_model=True)

    def _like(self, **changed: Any) -> MockTools:
        """Tools of the same settings, save those ``changed``; a new world."""
        names = ("sampler", "sandbox", "seed", "faults", "offered", "prefer_model")
        return MockTools(**{name: getattr(self, name) for name in names} | changed)

    def changes(self) -> Mapping[str, Any]:
        return self.world.changes()

    async def call(self, name: str, arguments: Mapping[str, Any], seed: int = 0) -> ToolResult:
        """Run one call. The seed is the world's own; ``seed`` is there for worlds that draw for each call."""
        function = self._function(name)
        if function is None:
            known = ", ".join(sorted(self._declared)) or "those of the catalogue"
            return _error("unknown_tool", f"there is no tool {name!r}. Available: {known}.", "refused")
        wrong = problem(function.get("parameters") or {}, _given(arguments, function))
        if wrong:
            return _error("invalid_arguments", f"{name}: {wrong}", "refused")
        if len(_json(dict(arguments))) > MAX_ARGUMENT_CHARS:
            return _error("invalid_arguments", f"{name}: the arguments are longer than {MAX_ARGUMENT_CHARS}", "refused")
        if self._fault_due(name, arguments):
            return _error("rate_limit", f"{name}: too many requests, try again", "deterministic")
        result = await self._answer(function, arguments)
        self._episode.append({"tool": name, "arguments": dict(arguments), "result": result.content[:2000]})
        return result

    def _function(self, name: str) -> Mapping[str, Any] | None:
        if self._declared:
            return self._declared.get(wire_name(name))
        found = exact(name)
        return found.declaration()["function"] if found else None

    async def _answer(self, function: Mapping[str, Any], arguments: Mapping[str, Any]) -> ToolResult:
        found = exact(function["name"])
        own = adapted(found, arguments) if found else None
        if found and own is not None and not problem(found.parameters, _given(own, {"parameters": found.parameters})):
            return await self._run(found, own)
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

    async def _run(self, tool: MockTool, arguments: Mapping[str, Any]) -> ToolResult:
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
            self.world.restore(before)  # a refused call leaves no trace
        return result

    async def _play(self, function: Mapping[str, Any], arguments: Mapping[str, Any]) -> ToolResult:
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

    def _fault_due(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Once for each (tool, arguments) that the schedule picks, so that trying again helps."""
        key = _json([name, dict(arguments)])
        if not self.faults or key in self._faulted or not Seeded(self.seed, "fault", key).chance(self.faults):
            return False
        self._faulted.add(key)
        return True


def _given(arguments: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any]:
    """Without null optional arguments: strict services make models send all of them."""
    required = (function.get("parameters") or {}).get("required") or ()
    return {name: value for name, value in arguments.items() if value is not None or name in required}


def _source(failure: ToolFailure, source: str) -> str:
    return "failed" if isinstance(failure, ToolBroken) else source


def _error(kind: str, message: str, source: str) -> ToolResult:
    return ToolResult(_json({"error": {"type": kind, "message": message}}), source=source, error=message)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
