# ruff: noqa: SIM905, a list of words reads best as words
"""Units of measurement: finds the unit of a quantity, compares units, and converts values (with pint)."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from bestofn.verifiers.math.nodes import Apply, Node, Number, Symbol, Text, head

_creating = threading.Lock()
Relation = Literal["same", "convertible", "incompatible", "missing", "unknown"]

_WORDS = {
    "sq": "square", "°c": "degC", "°f": "degF", "celsius": "degC", "fahrenheit": "degF", "mph": "mile/hour",
    "kph": "km/hour", "kmh": "km/hour", "kmph": "km/hour", "cc": "cm**3", "amu": "amu", "amp": "ampere",
    "amps": "ampere", "sec": "second", "secs": "second", "hr": "hour", "hrs": "hour", "mins": "minute",
    "lbs": "pound", "kg.": "kg", "angstroms": "angstrom", "mol": "mol", "mols": "mol", "molar": "mol/L",
    "rev": "revolution", "revs": "revolution", "yrs": "year", "u": "amu", "kcal": "kilocalorie", "cal": "calorie",
    "degrees": "degree", "deg": "degree", "radians": "radian", "rad": "radian", "ohms": "ohm", "volts": "volt",
    "watts": "watt", "newtons": "newton", "joules": "joule", "feet": "foot", "inches": "inch", "mm Hg": "mmHg",
    "C": "coulomb", "G": "gauss", "h": "hour", "d": "day", "l": "liter", "M": "mol/L",
}  # fmt: skip
_FILLER = frozenset("of the a an total each about approximately or so".split())


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and its unit. ``unit`` is the output of ``clean``, or "" if there is no unit."""

    value: Node
    unit: str


def split(node: Node) -> Quantity:
    """Return the value and the unit of a tree. A percentage counts as a value with no unit."""
    if head(node) == "unit":
        return Quantity(node.args[0], node.args[1].text)  # type: ignore[union-attr]
    if head(node) == "deg":
        return Quantity(node.args[0], "degree")  # type: ignore[union-attr]
    return Quantity(node, "")


def from_symbols(node: Node) -> Quantity | None:
    """Return the quantity of a product such as ``5 m``. Return None if a symbol in it is not a unit symbol."""
    if not isinstance(node, Apply) or node.head not in ("*", "/", "neg"):
        return None
    if node.head == "neg":
        inner = from_symbols(node.args[0])
        return None if inner is None else Quantity(Apply("neg", (inner.value,)), inner.unit)
    text = _written(node)
    match = re.match(r"-?[\d.]+(?:/\d+)?\s*", text)
    unit = text[match.end() :].strip("* ") if match else ""
    value = node.args[0]
    while isinstance(value, Apply) and value.head in ("*", "/"):
        value = value.args[0]
    if not isinstance(value, Number) or not is_symbolic(unit):
        return None
    return Quantity(value, unit)


def _written(node: Node) -> str:
    if isinstance(node, Number):
        return str(node.value)
    if isinstance(node, Symbol):
        return node.name
    if isinstance(node, Apply) and node.head in ("*", "/", "^"):
        return {"*": "*", "/": "/", "^": "**"}[node.head].join(_written(part) for part in node.args)
    if isinstance(node, Apply) and node.head == "neg":
        return f"-{_written(node.args[0])}"
    return "?"


_SYMBOLS = frozenset("m s g N J K L l V W A C T F H M h d W Pa Hz eV Å Ω u B S".split())
_PREFIXES = ("", "k", "m", "c", "n", "p", "d", "µ", "M", "G", "f")
_LONGER = frozenset(
    "mol atm bar torr Torr cal ohm rad deg min ft in lb mi yd oz hp Wb cd Bq Gy Sv kg kmol mmHg psi amu cc".split()
)


def is_symbolic(unit: str) -> bool:
    """Return whether ``unit`` consists only of unit symbols (``m/s**2``, ``kJ/mol``). Does not load pint."""
    names = re.findall(r"[^\W\d_]+", unit)
    return bool(names) and all(_is_symbol(name) for name in names) and not re.search(r"[=<>,;?!]", unit)


@lru_cache(maxsize=1024)
def _is_symbol(name: str) -> bool:
    if name in _SYMBOLS or name in _LONGER:
        return True
    return any(
        prefix and name.startswith(prefix) and name[len(prefix) :] in (_SYMBOLS | _LONGER) for prefix in _PREFIXES
    )


@lru_cache(maxsize=4096)
def clean(text: str) -> str:
    """Return a unit, such as ``\\mathrm{~kg} / \\mathrm{m}^{3}``, as plain words and operators: ``kg / m**3``."""
    text = re.sub(
        r"\\(?:text|mathrm|mbox|textrm|operatorname|rm|mathit|mathbf|textbf|hbox|unit|si)\s*\{([^{}]*)\}", r" \1 ", text
    )
    text = (
        text.replace("\\cdot", "*")
        .replace("\\times", "*")
        .replace("^\\circ", " °")
        .replace("\\circ", "°")
        .replace("\\Omega", "ohm")
    )
    text = (
        text.replace("\\mu", "µ")
        .replace("\\AA", "angstrom")
        .replace("\\ell", "L")
        .replace("\\%", "%")
        .replace("\\$", "$")
    )
    text = re.sub(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\[A-Za-z]+|[~{}$]|\\.", lambda m: " " if m[0] not in "{}" else m[0], text)
    text = re.sub(r"\^\s*\{?\s*([+-]?\d+)\s*\}?", r"**\1", text).replace("{", " ").replace("}", " ")
    text = re.sub(r"µ\s+(?=\w)", "µ", text)
    text = re.sub(r"°\s*([CFK])\b", r"deg\1", text)
    return re.sub(r"\s+", " ", text).strip(" .,;:")


def _registry() -> Any:
    """Return pint's registry of units. Units of two registries cannot be compared, so there is only one."""
    with _creating:
        return _created_registry()


@lru_cache(maxsize=1)
def _created_registry() -> Any:
    import pint

    return pint.UnitRegistry(cache_folder=None)


def load() -> None:
    """Load pint and its unit definitions. The first call needs about half a second, later calls do nothing."""
    known("meter")


def is_loaded() -> bool:
    """Return whether ``load`` has finished."""
    return _created_registry.cache_info().currsize > 0


@lru_cache(maxsize=4096)
def known(unit: str) -> Any | None:
    """Return the pint unit of a cleaned text, or None if the text is not a unit of measurement."""
    if not unit or len(unit) > 80:
        return None
    for spelling in _spellings(unit):
        try:
            return _registry().parse_units(spelling)
        except Exception:  # pint raises many kinds of errors if the text is not a unit
            continue
    return None


def _spellings(unit: str) -> list[str]:
    words = [
        word
        for word in unit.replace("(", " ( ").replace(")", " ) ").split()
        if word.lower() not in _FILLER or word == "a"
    ]
    words = [_WORDS.get(word, _WORDS.get(word.lower(), word)) for word in words]
    joined = _powers(_products(words))
    per = re.sub(r"\bper\b", "/", re.sub(r"\s+", " ", unit))
    per = _powers(
        _products([_WORDS.get(word, _WORDS.get(word.lower(), word)) for word in per.split() if word not in _FILLER])
    )
    first = _WORDS.get(unit.split()[0].lower(), unit.split()[0]) if unit.split() else unit
    options = [joined, per]
    if re.search(r"\s(?:of|per)?\s*[a-z]{3,}", unit):
        options.append(first)
    return [option for option in dict.fromkeys(options) if re.fullmatch(r"[\w µ°*/().+-]{1,80}", option)]


def _products(words: list[str]) -> str:
    text = ""
    for word in words:
        glue = "" if not text or text[-1] in "*/(" or word[0] in "*/)" else " * "
        text += glue + word
    return text


def _powers(text: str) -> str:
    text = re.sub(r"\b(?:square|squared)\s*\*?\s*([A-Za-z]+)", r"\1**2", text)
    text = re.sub(r"\b(?:cubic|cubed)\s*\*?\s*([A-Za-z]+)", r"\1**3", text)
    text = re.sub(r"([A-Za-z]+)\s*\*\s*squared\b", r"\1**2", text)
    return re.sub(r"(?<![\w*])([A-Za-z]{1,3})(-?\d)(?!\d)", r"\1**\2", text)


def relate(asked: str, given: str) -> Relation:
    """Compare the unit ``given`` of an answer with the unit ``asked`` of its reference."""
    if not given:
        return "missing"
    if asked == given:
        return "same"
    ours, theirs = known(asked), known(given)
    if ours is None or theirs is None:
        if ours is None and theirs is None:
            return "same" if _stem(asked) == _stem(given) else "unknown"
        return "missing" if theirs is None else "unknown"
    if ours == theirs:
        return "same"
    if ours.dimensionality != theirs.dimensionality:
        return "incompatible"
    return "convertible"


def convert(value: int | float | Fraction, given: str, asked: str) -> float | None:
    """Return ``value`` converted from the unit ``given`` to the unit ``asked``, or None if it cannot be converted."""
    ours, theirs = known(asked), known(given)
    if ours is None or theirs is None or ours.dimensionality != theirs.dimensionality:
        return None
    registry = _registry()
    try:
        return float(registry.Quantity(float(value), theirs).to(ours).magnitude)
    except (ArithmeticError, registry_errors()):
        return None


@lru_cache(maxsize=1)
def registry_errors() -> type[Exception]:
    """Return the base class of pint's errors."""
    import pint

    return pint.errors.PintError


def _stem(words: str) -> str:
    return words.lower().split(" ")[0].rstrip("s")


def unit_node(value: Node, text: str) -> Node:
    """Return the tree of ``value`` with the unit in ``text``, or only ``value`` if the cleaned text is empty."""
    unit = clean(text)
    if unit.lower() in ("percent", "per cent"):
        return Apply("percent", (value,))
    if isinstance(value, Apply) and value.head in ("=", "~") and unit:  # in x = 0.75 m, only the last side has the unit
        return Apply(value.head, (*value.args[:-1], unit_node(value.args[-1], text)))
    return Apply("unit", (value, Text(unit))) if unit else value


def same_quantity(first: Node, second: Node) -> bool:
    """Return whether two quantities differ by at most 0.1 percent after conversion to the same unit."""
    ours, theirs = split(first), split(second)
    if not (isinstance(ours.value, Number) and isinstance(theirs.value, Number)):
        return False
    there = convert(theirs.value.value, theirs.unit, ours.unit)
    return there is not None and abs(Fraction(there) - ours.value.value) <= abs(Fraction(there)) / 1000


def total(parts: list[tuple[Number, str]]) -> Node | None:
    """Return the sum of quantities in the unit of the last quantity; None if dimensions differ or are unknown."""
    units = [known(clean(name)) for _, name in parts]
    if any(unit is None for unit in units) or len({str(unit.dimensionality) for unit in units if unit is not None}) > 1:
        return None
    last = clean(parts[-1][1])
    amount = Fraction(0)
    for value, name in parts:
        there = convert(value.value, clean(name), last)
        if there is None:
            return None
        amount += Fraction(there).limit_denominator(10**6)
    value = Number(amount.numerator if amount.denominator == 1 else amount)
    return Apply("unit", (value, Text(last), Text("compound")))
