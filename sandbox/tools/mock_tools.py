"""The mock tools of a rollout. They implement ``protocols.Tools``.

The first rule that applies decides how a call is answered. ``ToolResult.source`` records the rule:

1. ``deterministic``: the catalogue has a tool with this name or alias, and the arguments are valid for it.
2. ``schema``: the catalogue has a similar tool, with a confidence of at least 0.4. The result is invented from the
   declared output schema or, if there is none, from the schema of the similar tool.
3. ``llm``: a model invents the result. If the same call is repeated, it gets the same result with the source ``cache``.

The content of an error is ``{"error": {"type", "message"}}``. The source ``refused`` means that the call was not run,
because the tool is unknown or the arguments violate its schema. The source ``failed`` means that the mock tools caused
the error: there is no sandbox or no model, or the model's output cannot be used. The verifier does not count a failed
call against the answer.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.protocols import Archive, PlannedCalls, Sampler, Sandbox
from bestofn.builders.records import JsonObject, Query, Tool, ToolResult
from bestofn.sandbox.tools.catalogue import CATALOGUE
from bestofn.sandbox.tools.mock_tool import Arguments, MockTool, ToolBroken, ToolFailure, wire_name
from bestofn.sandbox.tools.model_mock import MAX_REPLY_TOKENS, output_schema, played
from bestofn.sandbox.tools.schema_mock import made_up
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.tool_matching import CONFIDENT, adapted, exact, nearest
from bestofn.sandbox.tools.world import World

MAX_ARGUMENT_CHARS = 100_000


class MockTools:
    """Deterministic tools and their world, which is created from ``seed``. ``fresh`` creates a copy for each candidate.

    ``sampler`` is the model that invents the result if a tool resembles no catalogue tool. If ``sampler`` is None, such
    a tool returns an error. ``sandbox`` runs the programs of ``code.run_python``. ``faults`` is the share of calls
    that fail once with a rate limit; ``seed`` determines these calls. ``offered`` selects the tools of
    ``declarations`` by name or by domain, such as ``weather``; if ``offered`` is empty, all tools are selected. If
    ``prefer_model`` is True, the model also writes the results that would otherwise be invented from a schema.
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
        self.sampler = sampler if isinstance(sampler, Sampler) else None  # an ``Archive`` has only recorded answers
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

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of the model that invents results, to estimate the cost.

        For tools, ``candidates`` is the number of tool calls. Each tool call needs at most one call of the model.
        """
        return [PlannedCalls(self.sampler, 0, candidates, MAX_REPLY_TOKENS)] if self.sampler is not None else []

    def declarations(self) -> Sequence[Tool]:
        """Return the declarations of the offered tools, in the Chat Completions format."""
        chosen = {tool.name for name in self.offered if (tool := exact(name))}
        return [
            tool.declaration()
            for tool in CATALOGUE.values()
            if not self.offered or tool.name in chosen or tool.domain in self.offered
        ]

    def fresh(self, seed: int = 0, declarations: Sequence[Tool] = ()) -> MockTools:
        """Return a copy of these tools with a new world in its initial state.

        If ``declarations`` are given, only these tools can be called, and the arguments are checked against them.
        ``seed`` is added to the configured seed.
        """
        copy = self._like(seed=self.seed + seed)
        for declared in declarations:
            function = to_chat(declared)["function"]
            copy._declared[wire_name(function["name"])] = function
        return copy

    def with_model_for_unknown(self) -> MockTools | None:
        """Return a copy of these tools with ``prefer_model=True``.

        Returns None if there is no model or if ``prefer_model`` is already True.
        """
        if self.sampler is None or self.prefer_model:
            return None
        return self._like(prefer_model=True)

    def _like(self, **changed: Any) -> MockTools:
        """Return new tools with the same settings and a new world. ``changed`` contains the settings that differ."""
        names = ("sampler", "sandbox", "seed", "faults", "offered", "prefer_model")
        return MockTools(**{name: getattr(self, name) for name in names} | changed)

    def changes(self) -> JsonObject:
        """Return the records that the calls so far changed: ``{table: {key: record}}``. A deleted record is None."""
        return self.world.changes()

    async def call(self, name: str, arguments: Arguments, seed: int = 0) -> ToolResult:
        """Run one call and return its result. ``seed`` is ignored, because the world has its own seed."""
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
            return _error("rate_limit", f"{name}: too many requests; try again", "deterministic")
        result = await self._answer(function, arguments)
        self._episode.append({"tool": name, "arguments": dict(arguments), "result": result.content[:2000]})
        return result

    def _function(self, name: str) -> JsonObject | None:
        """Return the declaration of the tool ``name``; None if the tool is unknown.

        If the query declares tools, only these tools are known. Otherwise all tools of the catalogue are known.
        """
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
        except (ArithmeticError, ValueError) as error:  # for example a number that is too large for a float
            result = _error("invalid", f"the tool has no result for these arguments: {error}", "deterministic")
        if before is not None:
            self.world.restore(before)  # undo the changes of a failed call
        return result

    async def _play(self, function: JsonObject, arguments: Arguments) -> ToolResult:
        """Return the result that the model invents for a call. A repeated call gets the stored result."""
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
        """Return True if this call must fail with a rate limit.

        The seed and ``faults`` select the calls that fail. A selected call fails only once, so a retry succeeds.
        """
        key = _json([name, dict(arguments)])
        if not self.faults or key in self._faulted or not Seeded(self.seed, "fault", key).chance(self.faults):
            return False
        self._faulted.add(key)
        return True


def _are_valid(tool: MockTool, arguments: Arguments) -> bool:
    return not problem(tool.parameters, _without_nulls(arguments, {"parameters": tool.parameters}))


def _without_nulls(arguments: Arguments, function: JsonObject) -> dict[str, Any]:
    """Return the arguments without optional arguments that are null.

    In strict mode a model must send every argument, and sends null for an argument that it would otherwise omit.
    """
    required = (function.get("parameters") or {}).get("required") or ()
    return {name: value for name, value in arguments.items() if value is not None or name in required}


def _source(failure: ToolFailure, source: str) -> str:
    return "failed" if isinstance(failure, ToolBroken) else source


def _error(kind: str, message: str, source: str) -> ToolResult:
    return ToolResult(_json({"error": {"type": kind, "message": message}}), source=source, error=message)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
