"""Recognises a text with a context-free grammar (Earley's algorithm), in bounded time.

A grammar is a text with one rule per line, ``name: alternative | alternative``. The first rule is the start. An
alternative is a list of names, quoted texts and regular expressions in slashes, each of which may have ``?``, ``*`` or
``+`` after it. White space in the answer counts, unless a rule matches it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from bestofn.verifiers.structured.parsing import Finding, SpecificationError

SYMBOL = re.compile(
    r"\s*(?:(?P<bar>\|)|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|/(?P<regex>(?:[^/\\]|\\.)+)/|(?P<name>\w+))(?P<times>[?*+]?)"
)
MAX_STEPS = 1_000_000

Symbol = tuple[str, str]
"""``("rule", name)``, ``("text", text)`` or ``("regex", pattern)``."""


@dataclass(frozen=True, slots=True)
class Item:
    """An Earley item: a rule whose first ``done`` symbols match the text from the position ``start``."""

    name: str
    symbols: tuple[Symbol, ...]
    done: int
    start: int


def grammar_violation(grammar: str, text: str) -> Finding:
    """Return a finding: where ``text`` stops matching the grammar. Its step is ``kept`` if all of ``text`` matches."""
    rules, first = read_grammar(grammar)
    sets: dict[int, dict[Item, None]] = {0: {Item(first, symbols, 0, 0): None for symbols in rules[first]}}
    steps = furthest = 0
    for place in range(len(text) + 1):
        items = list(sets.get(place, {}))
        empty: set[str] = set()  # rules that matched nothing at this place
        while items:
            item = items.pop()
            steps += 1 + (len(sets[item.start]) if item.done == len(item.symbols) else 0)
            if steps > MAX_STEPS:
                raise SpecificationError(f"the grammar needs more than {MAX_STEPS} steps for this answer")
            furthest = place
            for at, new in _advance(item, place, text, rules, sets, empty):
                known = sets.setdefault(at, {})
                if new not in known:
                    known[new] = None
                    if at == place:
                        items.append(new)
    ends = sets.get(len(text), {})
    if any(item.name == first and item.start == 0 and item.done == len(item.symbols) for item in ends):
        return Finding("kept")
    return Finding("shape", f"the text leaves the grammar after {text[:furthest][-40:]!r} (character {furthest})")


def _advance(item: Item, place: int, text: str, rules: dict, sets: dict, empty: set[str]) -> list[tuple[int, Item]]:
    """Return (position, item) for each item that Earley's algorithm derives from ``item`` at ``place``."""
    if item.done == len(item.symbols):
        if item.start == place:
            empty.add(item.name)
        waiting = [one for one in sets[item.start] if one.done < len(one.symbols)]
        return [(place, _next(one)) for one in waiting if one.symbols[one.done] == ("rule", item.name)]
    kind, value = item.symbols[item.done]
    if kind == "rule":
        predicted = [(place, Item(value, symbols, 0, place)) for symbols in rules[value]]
        return predicted + ([(place, _next(item))] if value in empty else [])
    if kind == "text":
        return [(place + len(value), _next(item))] if text.startswith(value, place) else []
    found = re.compile(value).match(text, place)
    return [(found.end(), _next(item))] if found else []


def _next(item: Item) -> Item:
    return Item(item.name, item.symbols, item.done + 1, item.start)


@lru_cache(maxsize=256)
def read_grammar(grammar: str) -> tuple[dict[str, list[tuple[Symbol, ...]]], str]:
    """Return name → alternatives, and the name of the first rule. Raises ``SpecificationError``."""
    rules: dict[str, list[tuple[Symbol, ...]]] = {}
    for line in re.sub(r"\n[ \t]+\|", " |", grammar.strip()).splitlines():
        if not line.strip():
            continue
        name, colon, body = line.partition(":")
        if not colon or not name.strip().isidentifier():
            raise SpecificationError(f"a rule of the grammar is {line!r:.80}; expected 'name: alternatives'")
        rules[name.strip()] = _alternatives(body, rules)
    names = [value for options in rules.values() for symbols in options for kind, value in symbols if kind == "rule"]
    unknown = [name for name in names if name not in rules]
    if unknown or not rules:
        raise SpecificationError(f"the grammar has no rule {unknown[0]!r}" if unknown else "the grammar has no rules")
    own = [name for name in rules if not name.startswith("(")]
    return rules, own[0]


def _alternatives(body: str, rules: dict[str, list[tuple[Symbol, ...]]]) -> list[tuple[Symbol, ...]]:
    found: list[list[Symbol]] = [[]]
    place = 0
    while body[place:].strip():
        match = SYMBOL.match(body, place)
        if match is None:
            raise SpecificationError(f"the grammar cannot be read at {body[place:][:40]!r}")
        place = match.end()
        if match["bar"]:
            found.append([])
            continue
        found[-1].append(_repeated(_symbol(match), match["times"], rules))
    return [tuple(symbols) for symbols in found]


def _symbol(match: re.Match[str]) -> Symbol:
    if match["name"]:
        return "rule", match["name"]
    if match["regex"]:
        return "regex", _checked(match["regex"])
    return "text", re.sub(r"\\(.)", lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), match["text"][1:-1])


def _checked(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise SpecificationError(f"the grammar has an invalid regular expression {pattern!r}: {error}") from None
    return pattern


def _repeated(symbol: Symbol, times: str, rules: dict[str, list[tuple[Symbol, ...]]]) -> Symbol:
    """Return ``symbol`` if ``times`` is ""; otherwise the name of a new rule that repeats it."""
    if not times:
        return symbol
    name = f"({symbol[0]} {symbol[1]}{times})"
    one = (symbol,)
    rules[name] = {
        "?": [(), one],
        "*": [(), (symbol, ("rule", name))],
        "+": [one, (symbol, ("rule", name))],
    }[times]
    return "rule", name
