# ruff: noqa: SIM905, a list of words reads best as words
"""The words of the grammar: functions, constants, Greek letters, and words that are not products of letters."""

from __future__ import annotations

import re

FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth asin acos atan log ln lg exp sqrt "
    "abs cbrt "
    "max min gcd lcm det factorial floor ceil sgn binomial comb re im arg Re Im Arg".split()
)
ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "comb": "binomial",
    "Re": "re",
    "Im": "im",
    "Arg": "arg",
}
CONSTANTS = frozenset({"pi", "infty", "infinity", "inf", "oo", "Infinity", "emptyset"})
GREEK = frozenset(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar partial".split()
)
STOPWORDS = frozenset(
    "is are a an to of for by the be per no if so at as on in it we up do us am pm go he me my or and not any "
    "all".split()
)
COUNTED = frozenset(
    "cm mm km nm kg mg ml mi ft in lb lbs oz yd hz kw pa ev mev hr hrs min mins sec secs day days mph kph ms ns "
    "rad mol amu "
    "atm psi gal bar cal kcal cc cms kms ton tons bits bit pts dm deg dl cl hp rpm usd eur cent year yr yrs gb "
    "mb kb th st nd "
    "rd pt qt rev man men pie pies cup cups egg eggs cat cats dog dogs pen pens car cars bag bags box toy toys "
    "hat hats can cans "
    "book hour week mile inch foot feet acre gram unit ways more less each left time page kids ears eyes legs "
    "cars bees ants "
    "cows pigs hens fish tree jar jars pack kid boy boys girl won she her his was has had not any all one two "
    "six ten the and "
    "for but who why how odd red tie top mid low sun mon tue wed thu fri sat".split()
)


def is_product(word: str) -> bool:
    """Return whether a short lower-case word is a product of letters (``ab``, ``xyz``), not a word or a unit."""
    if not (word.isascii() and word.islower() and len(word) <= 4) or word in STOPWORDS or word in COUNTED:
        return False
    return len(word) <= 3 or not re.search(r"[aeiou]", word)
