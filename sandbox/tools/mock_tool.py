"""One deterministic tool is one function of a world and its arguments; ``@tool`` makes it part of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestofn.sandbox.tools.glossary import ARGUMENTS
from bestofn.sandbox.tools.shapes import arguments_schema, shape_schema

Arguments = Mapping[str, Any]
"""The decoded arguments of one call, by name."""

Result = dict[str, Any]
"""What a tool returns: a JSON object whose shape the tool declares as ``returns``."""


class ToolFailure(Exception):
    """What a tool answers instead of a result.

    ``kind`` is not_found, invalid, denied, conflict, rate_limit or unavailable.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ToolBroken(ToolFailure):
    """A failure of ours (no sandbox, no model behind the tool): never held against the answer."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True, slots=True)
class MockTool:
    """A tool of the catalogue with all that is known about it."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON Schema of the arguments
    returns: Mapping[str, Any]  # JSON Schema of the result
    function: Callable[..., Any]
    changes: bool  # whether it changes the world
    aliases: tuple[str, ...]
    samples: tuple[Mapping[str, Any], ...]  # arguments that work in a fresh world
    failures: tuple[Mapping[str, Any], ...]  # arguments that are answered with an error
    after: tuple[tuple[str, Mapping[str, Any]], ...] = ()  # calls that must come before the samples
    keywords: Mapping[str, str] = field(default_factory=dict)  # argument -> parameter of the function

    @property
    def domain(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def category(self) -> str:
        """The catalogue file it stands in, without ``_tools``: what unknown tools are matched to."""
        return self.function.__module__.rsplit(".", 1)[-1].removesuffix("_tools")

    def declaration(self) -> dict[str, Any]:
        """The Chat Completions shape. Its name has ``_`` for ``.``: services allow no point."""
        return {
            "type": "function",
            "function": {
                "name": wire_name(self.name),
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }

    def __call__(self, world: Any, arguments: Mapping[str, Any]) -> Any:
        """The result, or an awaitable of it. Raises ``ToolFailure``."""
        return self.function(
            world, **{self.keywords[name]: value for name, value in arguments.items() if value is not None}
        )


CATALOGUE: dict[str, MockTool] = {}


def tool(
    name: str,
    returns: Any,
    *samples: Mapping[str, Any],
    fails: Sequence[Mapping[str, Any]] = (),
    aliases: Sequence[str] = (),
    changes: bool = False,
    after: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the catalogue.

    Its docstring is the description, its signature (after ``world``) the schema of the arguments, ``returns`` shows the
    shape of the result (``shapes.shape_schema``). ``samples`` are arguments that work in a fresh world, or ``after``
    these calls, ``fails`` some that end in an error, ``aliases`` the names it goes by elsewhere.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in CATALOGUE:
            raise ValueError(f"there are two tools {name!r}; rename one of them")
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
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
