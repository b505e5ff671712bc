"""Deterministic mock tools. A tool is a function of a world and its arguments; ``@tool`` adds it to the catalogue.

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
"""The decoded arguments of one call, by argument name."""

Result = dict[str, Any]
"""The result of a tool: a JSON object of the shape that the tool declares as ``returns``."""

ToolFunction = Callable[..., Any]
"""A function of a world and the tool's arguments. It returns a ``Result``, or an awaitable of a ``Result``."""


class ToolFailure(Exception):
    """The error that a tool returns instead of a result.

    ``kind`` is not_found, invalid, denied, conflict, rate_limit or unavailable.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ToolBroken(ToolFailure):
    """The tool cannot work in this run, for example because there is no sandbox or no model.

    This error never counts against the candidate.
    """

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
    changes: bool  # whether the tool changes the world
    aliases: tuple[str, ...]
    samples: tuple[Arguments, ...]  # arguments that work in a new world
    failures: tuple[Arguments, ...]  # arguments that cause an error
    after: tuple[tuple[str, Arguments], ...] = ()  # calls that must be made before the samples
    keywords: Mapping[str, str] = field(default_factory=dict)  # parameter of the function per argument name

    @property
    def domain(self) -> str:
        """The first part of the tool's name, for example ``weather`` of ``weather.current``."""
        return self.name.split(".", 1)[0]

    @property
    def category(self) -> str:
        """The name of the tool's catalogue module, without ``_tools``."""
        return self.function.__module__.rsplit(".", 1)[-1].removesuffix("_tools")

    def declaration(self) -> dict[str, Any]:
        """Return the declaration in the Chat Completions format, with ``_`` instead of ``.`` in the name."""
        return {
            "type": "function",
            "function": {
                "name": wire_name(self.name),
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }

    def __call__(self, world: object, arguments: Arguments) -> Any:
        """Return the result of the tool, or an awaitable of the result.

        An argument that is None counts as omitted. Raises ``ToolFailure`` if the tool returns an error.
        """
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
    """Return a decorator that adds a function to the catalogue as the tool ``name``.

    The docstring of the function becomes the tool's description. The parameters after ``world`` become the tool's
    arguments. ``returns`` is a literal that shows the shape of the result, such as ``{"id": str}`` (see
    ``shapes.shape_schema``). ``samples`` are example arguments that work in a new world, after the calls in ``after``
    if there are any. ``fails`` are example arguments that cause an error. ``aliases`` are other names that datasets use
    for the tool. ``changes`` is True if the tool changes the world.
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
    """Return ``name`` with ``_`` instead of each character that is not allowed in a tool name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
