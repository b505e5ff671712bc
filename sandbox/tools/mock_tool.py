"""Deterministic tools: a tool is a function of a world and its arguments, and ``@tool`` adds it to the catalogue.

The modules in ``catalogue/`` define the tools; ``mock_tools`` calls them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestofn.builders.records import JsonObject
from bestofn.sandbox.tools.glossary import ARGUMENTS
from bestofn.sandbox.tools.shapes import Shape, arguments_schema, shape_schema

Arguments = Mapping[str, Any]
"""The decoded arguments of one call, by name."""

Result = dict[str, Any]
"""The result of a tool: a JSON object whose shape the tool declares as ``returns``."""

ToolFunction = Callable[..., Any]
"""A function of a world and the tool's arguments; it returns a ``Result`` or an awaitable of one."""


class ToolFailure(Exception):
    """The error that a tool answers instead of a result.

    ``kind`` is not_found, invalid, denied, conflict, rate_limit or unavailable.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ToolBroken(ToolFailure):
    """A tool that cannot work here, for example without a sandbox or a model. It never counts against the answer."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True, slots=True)
class MockTool:
    """One tool of the catalogue."""

    name: str
    description: str
    parameters: JsonObject  # JSON Schema of the arguments
    returns: JsonObject  # JSON Schema of the result
    function: ToolFunction
    changes: bool  # whether it changes the world
    aliases: tuple[str, ...]
    samples: tuple[Arguments, ...]  # arguments that work in a fresh world
    failures: tuple[Arguments, ...]  # arguments that end in an error
    after: tuple[tuple[str, Arguments], ...] = ()  # calls that must come before the samples
    keywords: Mapping[str, str] = field(default_factory=dict)  # argument -> parameter of the function

    @property
    def domain(self) -> str:
        """The first part of its name: ``weather`` of ``weather.current``."""
        return self.name.split(".", 1)[0]

    @property
    def category(self) -> str:
        """The name of its catalogue module without ``_tools``."""
        return self.function.__module__.rsplit(".", 1)[-1].removesuffix("_tools")

    def declaration(self) -> dict[str, Any]:
        """The declaration in the Chat Completions shape. Services allow no dot in a name, so it has ``_`` instead."""
        return {
            "type": "function",
            "function": {
                "name": wire_name(self.name),
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }

    def __call__(self, world: object, arguments: Arguments) -> Any:
        """The result, or an awaitable of it. Arguments that are None count as left out. Raises ``ToolFailure``."""
        return self.function(
            world, **{self.keywords[name]: value for name, value in arguments.items() if value is not None}
        )


CATALOGUE: dict[str, MockTool] = {}


def tool(
    name: str,
    returns: Shape,
    *samples: Arguments,
    fails: Sequence[Arguments] = (),
    aliases: Sequence[str] = (),
    changes: bool = False,
    after: Sequence[tuple[str, Arguments]] = (),
) -> Callable[[ToolFunction], ToolFunction]:
    """Add a function to the catalogue.

    Its docstring is the description. Its signature after ``world`` gives the schema of the arguments, and ``returns``
    shows the shape of the result (``shapes.shape_schema``). ``samples`` are arguments that work in a fresh world, or
    after the calls ``after``; the arguments ``fails`` end in an error. ``aliases`` are names of such a tool elsewhere.
    ``changes``: the tool changes the world.
    """

    def register(function: ToolFunction) -> ToolFunction:
        if name in CATALOGUE:
            raise ValueError(f"the catalogue has two tools named {name!r}; rename one of them")
        schema = arguments_schema(function, ARGUMENTS)
        parameters = list(function.__annotations__)
        CATALOGUE[name] = MockTool(
            name=name,
            description=" ".join((function.__doc__ or "").split()),
            parameters=schema,
            returns=shape_schema(returns),
            function=function,
            changes=changes,
            aliases=tuple(aliases),
            samples=samples,
            failures=tuple(fails),
            after=tuple(after),
            keywords={key.rstrip("_"): key for key in parameters if key not in ("world", "return")},
        )
        return function

    return register


def wire_name(name: str) -> str:
    """The name as services allow it: letters, digits, ``_`` and ``-``."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
