"""Finds the catalogue tool that is most similar to a tool declaration of a query, and states a confidence from 0 to 1.

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

CONFIDENT = 0.4  # the lowest confidence at which the nearest tool is used

_NO_CONTENT = (
    "a an the of for to in on by at and or with from is are be this that it its as get fetch retrieve return returns "
    "given provides provide gets using use based specific specified tool function api data info information v1 v2 "
    "which all any one do does you your can will list lists search find such"
)
_STOP = frozenset(_NO_CONTENT.split())


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest tool of the catalogue and the confidence of the match.

    The confidence is 1.0 if the name or an alias is the same. Below ``CONFIDENT`` the match must not be used.
    """

    tool: MockTool
    confidence: float

    @property
    def category(self) -> str:
        """The category of the nearest tool."""
        return self.tool.category


def exact(name: str) -> MockTool | None:
    """Return the tool with this name or alias; None if there is none.

    The words of the name may be joined in any way (``getWeather``, ``weather.current``).
    """
    return _names().get("_".join(words(name)))


def nearest(name: str, description: str = "", parameters: Sequence[str] = ()) -> Match:
    """Return the catalogue tool that is most similar to a declaration, and the confidence of this match.

    The words of name, description and arguments are compared. The confidence is the weighted share of the
    declaration's words that also occur in the tool. Words of the name have the highest weight. A word that occurs in
    few tools has a higher weight (inverse document frequency). Words that occur in no tool lower the confidence.
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
    """Split a text into lower-case words without plural endings, at camel case, punctuation and digits."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [_stem(word) for word in re.findall(r"[a-z]+", text.lower())]


def _stem(word: str) -> str:
    for ending, singular in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is", "news")):
            return word[: -len(ending)] + singular
    return word


def _content(text_words: Sequence[str]) -> list[str]:
    """Return each word once. Omits single letters and words in ``_STOP``, such as "the" and "get"."""
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
    """Return each tool of the catalogue with its words and their weights.

    Words of the name, the aliases and the category have weight 1. Other words have a lower weight.
    """
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
    """Return the weight of each word: 1 if it occurs in one tool only, and down to 0.3 if it occurs in many tools."""
    counts = Counter(word for _, profile in _profiles() for word in profile)
    return {word: max(0.3, 1 - math.log(count) / math.log(len(CATALOGUE))) for word, count in counts.items()}


def _score(sought: Mapping[str, float], profile: Mapping[str, float]) -> float:
    rarity = _rarity()
    weights = {word: weight * rarity.get(word, 1.0) for word, weight in sought.items()}
    known = sum(weight * profile.get(word, 0.0) for word, weight in weights.items())
    return known / sum(weights.values())


def adapted(tool: MockTool, arguments: Arguments) -> dict[str, Any] | None:
    """Return the arguments with the names that ``tool`` uses, for example ``symbol`` instead of ``ticker``.

    The synonyms in ``glossary`` determine the names. Returns None if a required argument is missing. An optional
    argument with a value that is invalid for ``tool`` is omitted, because the query's schema may define this argument
    differently.
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
