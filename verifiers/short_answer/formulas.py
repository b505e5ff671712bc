# ruff: noqa: SIM905, a list of words reads best as words
"""Recognises and compares chemical formulas: ``H2SO4``, ``\\mathrm{H_2SO_4}``, ``H₂SO₄``, ``Ca(OH)2``, ``SO4^{2-}``."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

ELEMENTS = frozenset(
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb "
    "Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au "
    "Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts "
    "Og".split()
)
"""The symbols of the elements."""
_MOLECULES = frozenset("H2 N2 O2 O3 F2 Cl2 Br2 I2 P4 S8".split())
_PART = re.compile(r"([A-Z][a-z]?)(\d*)|(\()|\)(\d*)")
_CHARGE = re.compile(r"\^(\d*)([+-])$|(\d*)([+-])$")
_STATE = re.compile(r"\s*\((?:s|l|g|aq)\)$")
_SPELLING = re.compile(r"\\(?:[A-Za-z]+|[,;:! ])|[{}$~\s_*]")
_RAISED = re.compile(r"[⁰¹²³⁴-⁹]*[⁺⁻]")
MOST_LENGTH = 60


@lru_cache(maxsize=4096)
def formula(text: str) -> str | None:
    """Return a chemical formula in normal form, or None if the text is not a formula.

    A formula of several elements also has a digit, a charge or a symbol of two letters (``NaCl``), so ``CBS`` is not a
    formula. For one element, only molecules and ions (``O2``, ``Na+``) are formulas.
    """
    text = text.strip()
    if len(text) > MOST_LENGTH or (" " in text and "\\" not in text):
        return None
    raised = _RAISED.sub(lambda match: "^" + match[0], text.replace("−", "-"))
    spelled = _SPELLING.sub("", unicodedata.normalize("NFKC", raised).replace("−", "-").strip(" ."))
    body, charge = _charge(_STATE.sub("", spelled))
    symbols = _symbols(body)
    marked = bool(charge) or any(c.isdigit() or c.islower() for c in body)
    if not symbols or not (charge or body in _MOLECULES or (len(symbols) > 1 and marked)):
        return None
    return f"{body} {charge}".strip()


def _charge(spelled: str) -> tuple[str, str]:
    """Return a formula without its charge, and the charge.

    The charge may have no exponent mark: ``Ca2+`` is one element with the charge 2+, ``NO3-`` has the charge -, and
    ``SO42-`` has the charge 2-.
    """
    match = _CHARGE.search(spelled)
    if match is None:
        return spelled, ""
    body, sign = spelled[: match.start()], match[2] or match[4]
    if match[2]:
        return body, match[1] + sign
    digits = match[3]
    if body in ELEMENTS or not digits:
        return body, digits + sign
    return (body + digits[:-1], digits[-1] + sign) if len(digits) > 1 else (body + digits, sign)


def atoms(text: str) -> Counter[str] | None:
    """Return the number of atoms per element of a formula. Return None if the brackets are not balanced."""
    stack: list[Counter[str]] = [Counter()]
    for element, count, opening, factor in _PART.findall(text.split(" ")[0]):
        if element:
            stack[-1][element] += int(count or 1)
        elif opening:
            stack.append(Counter())
        elif len(stack) > 1:
            inner = stack.pop()
            for name, number in inner.items():
                stack[-1][name] += number * int(factor or 1)
    return stack[0] if len(stack) == 1 else None


def _symbols(body: str) -> list[str]:
    """Return the element symbols of ``body``; [] if ``body`` has other text than symbols, counts and brackets."""
    parts = list(_PART.finditer(body))
    if "".join(part[0] for part in parts) != body:
        return []
    symbols = [part[1] for part in parts if part[1]]
    return symbols if all(symbol in ELEMENTS for symbol in symbols) else []
