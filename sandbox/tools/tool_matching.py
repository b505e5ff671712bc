"""Which tool of the catalogue a foreign declaration most likely means, and how sure that is."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bestofn.builders.formats.json_schema import problem
from bestofn.sandbox.tools.catalogue import CATALOGUE
from bestofn.sandbox.tools.glossary import SYNONYMS
from bestofn.sandbox.tools.mock_tool import MockTool

CONFIDENT = 0.4

_NO_CONTENT = (
    "a an the of for to in on by at and or with from is are be this that it its as get fetch retrieve return returns "
    "given provides provide gets using use based specific specified tool function api data info information v1 v2 "
    "which all any one do does you your can will list lists search find such"
)
_STOP = frozenset(_NO_CONTENT.split())


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest tool. ``confidence`` 1.0 is its name or alias; below ``CONFIDENT`` it is not to be relied on."""

    tool: MockTool
    confidence: float

    @property
    def category(self) -> str:
        return self.tool.category


def exact(name: str) -> MockTool | None:
    """The tool of this name or alias, however its words are joined (``getWeather``, ``weather.current``)."""
    return _names().get("_".join(words(name)))


def nearest(name: str, description: str = "", parameters: Sequence[str] = ()) -> Match:
    """The tool most like the declaration by words of its name (counted most), description and argument names.

    The confidence is a weighted share of the declaration's words that the tool knows, each word weighted by how few
    tools know it (inverse document frequency); words that no tool knows count fully against it.
    """
    found = exact(name)
    if found:
        return Match(found, 1.0)
    sought: defaultdict[str, float] = defaultdict(float, dict.fromkeys(_content(words(name)), 3.0))
    said = _content(words(description))
    for word in said:
        sought[word] += 1.0 if word in sought else 0.5 * min(1.0, 8 / max(len(said), 1))
    for parameter in parameters:
        for word in _content(words(parameter)):
            sought[word] += 0.5
    if not sought:
        return Match(next(iter(CATALOGUE.values())), 0.0)
    best = max(_profiles(), key=lambda entry: (_score(sought, entry[1]), entry[0].name))
    return Match(best[0], round(min(0.99, _score(sought, best[1])), 4))


def words(text: str) -> list[str]:
    """Lower-case words, split at camel case, signs and digits, plural and -ing endings taken off."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [_stem(word) for word in re.findall(r"[a-z]+", text.lower())]


def _stem(word: str) -> str:
    for ending, put in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is", "news")):
            return word[: -len(ending)] + put
    return word


def _content(found: Sequence[str]) -> list[str]:
    return [word for word in dict.fromkeys(found) if word not in _STOP and len(word) > 1]


@cache
def _names() -> Mapping[str, MockTool]:
    names: dict[str, MockTool] = {}
    for tool in CATALOGUE.values():
        for name in (tool.name, *tool.aliases):
            names.setdefault("_".join(words(name)), tool)
    return names


@cache
def _profiles() -> tuple[tuple[MockTool, Mapping[str, float]], ...]:
    """Tool -> word -> how much it says of the tool (1 in its name or an alias, less in description and arguments)."""
    profiles = []
    for tool in CATALOGUE.values():
        profile: dict[str, float] = {}
        for word in _content(words(" ".join([tool.name, *tool.aliases, tool.category]))):
            profile[word] = 1.0
        for word in _content(words(tool.description)):
            profile.setdefault(word, 0.7)
        for name in tool.parameters["properties"]:
            for word in _content(words(" ".join([name, *SYNONYMS.get(name, ())]))):
                profile.setdefault(word, 0.4)
        profiles.append((tool, profile))
    return tuple(profiles)


@cache
def _rarity() -> Mapping[str, float]:
    """Word -> 1 for a word of one tool, towards 0.3 for a word of very many."""
    counts = Counter(word for _, profile in _profiles() for word in profile)
    return {word: max(0.3, 1 - math.log(count) / math.log(len(CATALOGUE))) for word, count in counts.items()}


def _score(sought: Mapping[str, float], profile: Mapping[str, float]) -> float:
    rarity = _rarity()
    weights = {word: weight * rarity.get(word, 1.0) for word, weight in sought.items()}
    known = sum(weight * profile.get(word, 0.0) for word, weight in weights.items())
    return known / sum(weights.values())


def adapted(tool: MockTool, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments under the tool's own names, by synonyms; None when one that it needs is not among them.

    An optional argument that the tool would refuse is left out: the foreign schema has its own idea of it.
    """
    known = tool.parameters["properties"]
    result = {name: value for name, value in arguments.items() if name in known}
    rest = {"_".join(words(name)): value for name, value in arguments.items() if name not in known}
    for name in known:
        for other in SYNONYMS.get(name, ()) if name not in result else ():
            if "_".join(words(other)) in rest:
                result[name] = rest.pop("_".join(words(other)))
                break
    needed = tool.parameters["required"]
    if not all(name in result for name in needed):
        return None
    return {name: value for name, value in result.items() if name in needed or not problem(known[name], value)}
