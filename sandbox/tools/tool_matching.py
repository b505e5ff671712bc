"""Finds the tool of the catalogue that a foreign declaration most likely means, with a confidence.

``mock_tools`` calls it for each declared tool.
"""

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
from bestofn.sandbox.tools.mock_tool import Arguments, MockTool

CONFIDENT = 0.4  # the least confidence at which the nearest tool is used

_NO_CONTENT = (
    "a an the of for to in on by at and or with from is are be this that it its as get fetch retrieve return returns "
    "given provides provide gets using use based specific specified tool function api data info information v1 v2 "
    "which all any one do does you your can will list lists search find such"
)
_STOP = frozenset(_NO_CONTENT.split())


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest tool. Confidence 1.0: its name or alias is the same. Below ``CONFIDENT``: do not use it."""

    tool: MockTool
    confidence: float

    @property
    def category(self) -> str:
        """The category of the tool."""
        return self.tool.category


def exact(name: str) -> MockTool | None:
    """The tool with this name or alias; its words may be joined in any way (``getWeather``, ``weather.current``)."""
    return _names().get("_".join(words(name)))


def nearest(name: str, description: str = "", parameters: Sequence[str] = ()) -> Match:
    """The tool most similar to the declaration, by the words of name (which count most), description and arguments.

    The confidence is the weighted share of the declaration's words that the tool has too. A word weighs more the fewer
    tools have it (inverse document frequency). Words that no tool has count fully against the match.
    """
    same_name = exact(name)
    if same_name:
        return Match(same_name, 1.0)
    sought: defaultdict[str, float] = defaultdict(float, dict.fromkeys(_content(words(name)), 3.0))
    described = _content(words(description))
    for word in described:
        sought[word] += 1.0 if word in sought else 0.5 * min(1.0, 8 / max(len(described), 1))
    for parameter in parameters:
        for word in _content(words(parameter)):
            sought[word] += 0.5
    if not sought:
        return Match(next(iter(CATALOGUE.values())), 0.0)
    best = max(_profiles(), key=lambda entry: (_score(sought, entry[1]), entry[0].name))
    return Match(best[0], round(min(0.99, _score(sought, best[1])), 4))


def words(text: str) -> list[str]:
    """Lower-case words, split at camel case, punctuation and digits, without plural endings."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [_stem(word) for word in re.findall(r"[a-z]+", text.lower())]


def _stem(word: str) -> str:
    for ending, singular in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is", "news")):
            return word[: -len(ending)] + singular
    return word


def _content(text_words: Sequence[str]) -> list[str]:
    """Each word once, without words that say nothing about a tool."""
    return [word for word in dict.fromkeys(text_words) if word not in _STOP and len(word) > 1]


@cache
def _names() -> Mapping[str, MockTool]:
    names: dict[str, MockTool] = {}
    for tool in CATALOGUE.values():
        for name in (tool.name, *tool.aliases):
            names.setdefault("_".join(words(name)), tool)
    return names


@cache
def _profiles() -> tuple[tuple[MockTool, Mapping[str, float]], ...]:
    """Per tool: word -> weight, 1 in its name or an alias, less in its description and arguments."""
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
    """Word -> weight from 1 (only one tool has the word) down to 0.3 (very many tools have it)."""
    counts = Counter(word for _, profile in _profiles() for word in profile)
    return {word: max(0.3, 1 - math.log(count) / math.log(len(CATALOGUE))) for word, count in counts.items()}


def _score(sought: Mapping[str, float], profile: Mapping[str, float]) -> float:
    rarity = _rarity()
    weights = {word: weight * rarity.get(word, 1.0) for word, weight in sought.items()}
    known = sum(weight * profile.get(word, 0.0) for word, weight in weights.items())
    return known / sum(weights.values())


def adapted(tool: MockTool, arguments: Arguments) -> dict[str, Any] | None:
    """The arguments renamed to the tool's own names, by synonyms; None when a required one is missing.

    An optional argument that the tool would refuse is left out, because the foreign schema may define it differently.
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
