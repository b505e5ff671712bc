"""Finds the currencies in a text, because 45 euros do not equal 45 dollars."""

from __future__ import annotations

import re

_NAMES = {
    "dollar": r"\\\$|\bUSD\b|\bdollars?\b",
    "euro": r"€|\bEUR\b|\beuros?\b|\\euro\b",
    "pound": r"£|\bGBP\b|\\pounds\b|\bpounds sterling\b",
    "yen": r"[¥￥]|\bJPY\b|\byen\b",
    "rupee": r"₹|\bINR\b|\bRs\.?(?=\s*\d)|\brupees?\b",
    "franc": r"\bCHF\b|\bfrancs?\b",
    "peso": r"\bMXN\b|\bpesos?\b",
}
_CURRENCIES = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _NAMES.items()]
_BARE_DOLLARS = re.compile(r"\s*\$\s*\d[\d,.]*\s*")
_HINT = re.compile(r"[$€£¥￥₹]|USD|EUR|GBP|JPY|INR|CHF|MXN|dollar|euro|yen|rupee|franc|peso|pounds|Rs", re.IGNORECASE)


def currencies(text: str) -> frozenset[str]:
    """Return the names of the currencies in ``text``.

    A ``$`` without a backslash counts only if the text is one amount, such as ``$5.50``. In other texts it may delimit
    a formula.
    """
    if not _HINT.search(text):
        return frozenset()
    found = {name for name, pattern in _CURRENCIES if pattern.search(text)}
    return frozenset(found | {"dollar"} if _BARE_DOLLARS.fullmatch(text) else found)
