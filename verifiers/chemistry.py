"""Verifies chemical equations and formulas by their atoms and charges.

``conf/verifier/chemistry.yaml`` builds the verifier.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.math.extraction import final_answer
from bestofn.verifiers.short_answer.formulas import ELEMENTS

ARROW = re.compile(r"<?[-=–—]+>|<->|[→⟶⇌⇄↔]|\\(?:long|x)?rightarrow|\\to\b|\\rightleftharpoons|(?<=\s)=(?=\s)")
SPELLING = re.compile(r"\\(?:mathrm|text|ce|mathbf|left|right|boxed|quad)|\\[,;:! ()\[\]]|[${}_]|\*\*|`")
STATE = re.compile(r"\s*[\[(](?:s|l|g|aq)[\])]$")
COEFFICIENT = re.compile(r"(\d+/0*[1-9]\d*|\d+(?:\.\d+)?)\s*\*?\s*(?=[A-Z(\[e])")
PART = re.compile(r"([A-Z][a-z]?)(\d*)|([(\[])|[)\]](\d*)")
CHARGE = re.compile(r"\^?\(?(\d*)([+-])\)?$|\^([+-])(\d*)$")
RAISED = re.compile(r"[⁰¹²³⁴-⁹]*[⁺⁻]")
FRACTION = re.compile(r"\\[dt]?frac\{?(\d+)\}?\{?(\d+)\}?")
HYDRATE = re.compile(r"[·⋅•*.]")
MOST_LENGTH = 20_000

Species = tuple[frozenset[tuple[str, int]], int]
"""The atoms of a formula with their numbers, and its charge."""
Side = dict[Species, Fraction]


class NotChemistryError(ValueError):
    """Raised if a text is not a formula or an equation that can be read."""


@dataclass(frozen=True, slots=True)
class Equation:
    """A chemical equation: the amounts of the species on both sides."""

    left: Side
    right: Side

    def is_balanced(self) -> bool:
        """Return whether both sides have the same atoms and the same charge."""
        return _totals(self.left) == _totals(self.right)

    def is_multiple_of(self, other: Equation) -> bool:
        """Return whether the amounts of one equation are those of the other, multiplied by one common factor."""
        if self.left.keys() != other.left.keys() or self.right.keys() != other.right.keys():
            return False
        pairs = [(self.left, other.left), (self.right, other.right)]
        return len({one[key] / two[key] for one, two in pairs for key in one}) == 1


class ChemistryVerifier:
    """Verifies the equation or formula in ``reference.checks["chemistry"]``, a text such as ``2 H2 + O2 -> 2 H2O``.

    An equation passes if it has the same species and amounts. A common factor and the order of species on a side do not
    matter. A formula passes if it has the same atoms and charge. The verdict is ``abstain`` if the answer contains no
    equation and no formula.
    """

    name = "chemistry"

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has an equation or formula that can be read; otherwise ""."""
        reference = _reference(query)
        try:
            return self.name if reference and (_read(reference) is not None) else ""
        except NotChemistryError:
            return ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict. ``detail["answer"]`` is the equation or formula of the answer."""
        started = time.perf_counter()
        reference = _reference(query)
        if not self.verified_by(query) or len(candidate.text) > MOST_LENGTH:
            reason = "the answer is too long" if self.verified_by(query) else "the query has no equation or formula"
            return Verdict("abstain", 0.0, reason, self.name)
        outcome, rule, answer = compare(reference, candidate.text)
        explanation = f"{answer[:200]!r} compared with {reference!r}: {rule}" if answer else rule
        detail = {"rule": rule, "answer": answer}
        seconds = time.perf_counter() - started
        return calibrated(Verdict(outcome, 0.0, explanation, self.name, detail, seconds))


def compare(reference: str, text: str) -> tuple[Outcome, str, str]:
    """Return the outcome, the rule that decided, and the equation or formula that ``text`` states."""
    wanted = _read(reference)
    if isinstance(wanted, Equation):
        for part in reversed(_lines(text)):
            try:
                equation = read_equation(part)
            except NotChemistryError:
                continue
            if equation.is_multiple_of(wanted):
                return "pass", "the same equation", part
            return "fail", "another equation" if equation.is_balanced() else "an equation that is not balanced", part
        return "abstain", "no chemical equation was found in the answer", ""
    answer = final_answer(text).text
    try:
        same = read_formula(answer) == wanted
    except NotChemistryError:
        return "abstain", "no chemical formula was found in the answer", ""
    return ("pass", "the same atoms and charge", answer) if same else ("fail", "other atoms or charge", answer)


def read_equation(text: str) -> Equation:
    """Parse ``text`` as a chemical equation. Raises ``NotChemistryError``."""
    sides = ARROW.split(FRACTION.sub(r"\1/\2 ", text))
    if len(sides) != 2:
        raise NotChemistryError(f"{text!r:.80} has {len(sides) - 1} arrows; expected one")
    return Equation(*map(_side, sides))


def _side(text: str) -> Side:
    amounts: Side = {}
    for term in re.split(r"\s\+\s|(?<=[\w)\]])\+(?=\s*\d*\s*[A-Z(\[])", _plain(text)):
        number = COEFFICIENT.match(term.strip())
        amount = Fraction(number.group(1)) if number else Fraction(1)
        species = read_formula(term.strip()[number.end() :] if number else term)
        amounts[species] = amounts.get(species, Fraction(0)) + amount
    if not all(amounts.values()):
        raise NotChemistryError(f"{text!r:.80} has an amount of 0")
    return amounts


def read_formula(text: str) -> Species:
    """Parse ``text`` as a formula, and return its atoms and charge. Raises ``NotChemistryError``."""
    body = STATE.sub("", _plain(text).strip(" .,;:")).replace(" ", "")
    if body in ("e^-", "e-"):
        return frozenset(), -1
    charge = 0
    if match := CHARGE.search(body):
        digits, sign = match[1] or match[4] or "", match[2] or match[3]
        # without a mark of the exponent, the last digit of "SO42-" is the charge, and "Fe3+" and "NH4+" differ
        if digits and "^" not in match.group() and len(digits) > 1:
            body, digits = body[: match.start()] + digits[:-1], digits[-1]
        elif digits and "^" not in match.group() and body[: match.start()] not in ELEMENTS:
            body, digits = body[: match.start()] + digits, ""
        else:
            body = body[: match.start()]
        charge = int(digits or 1) * (1 if sign == "+" else -1)
    atoms: Counter[str] = Counter()
    for part in HYDRATE.split(body):
        number = re.match(r"\d+(?=[A-Z(\[])", part)
        factor = int(number.group()) if number else 1
        for symbol, count in _atoms(part[number.end() :] if number else part).items():
            atoms[symbol] += factor * count
    return frozenset(atoms.items()), charge


def _atoms(text: str) -> Counter[str]:
    """Count the atoms of a formula that has no charge, including groups in brackets."""
    stack: list[Counter[str]] = [Counter()]
    place = 0
    while place < len(text):
        match = PART.match(text, place)
        if match is None or (match[1] and match[1] not in ELEMENTS) or (match.group()[0] in ")]" and len(stack) < 2):
            raise NotChemistryError(f"{text!r:.80} is not a formula")
        place = match.end()
        if match[1]:
            stack[-1][match[1]] += int(match[2] or 1)
        elif match[3]:
            stack.append(Counter())
        else:
            group = stack.pop()
            for symbol, count in group.items():
                stack[-1][symbol] += count * int(match[4] or 1)
    if len(stack) != 1 or not stack[0]:
        raise NotChemistryError(f"{text!r:.80} is not a formula")
    return stack[0]


def _read(reference: str) -> Equation | Species:
    return read_equation(reference) if ARROW.search(reference) else read_formula(reference)


def _reference(query: Query) -> str:
    value = (query.reference.checks or {}).get("chemistry")
    return value if isinstance(value, str) else ""


def _lines(text: str) -> list[str]:
    """Return the parts of ``text`` that may be an equation: each line, and the text after a colon or "is" in a line."""
    lines = [line.strip() for line in re.split(r"\n|\\\\|\$\$", text) if ARROW.search(line)]
    return [part for line in lines for part in (line, line.rpartition(": ")[2], line.rpartition(" is ")[2])]


def _plain(text: str) -> str:
    raised = RAISED.sub(lambda match: "^" + match[0], text.replace("−", "-").replace("–", "-"))
    return SPELLING.sub("", unicodedata.normalize("NFKC", raised).replace("−", "-")).replace("⁄", "/")


def _totals(side: Side) -> tuple[dict[str, Fraction], Fraction]:
    atoms: dict[str, Fraction] = {}
    charge = Fraction(0)
    for (counts, own), amount in side.items():
        charge += own * amount
        for symbol, count in counts:
            atoms[symbol] = atoms.get(symbol, Fraction(0)) + count * amount
    return atoms, charge
