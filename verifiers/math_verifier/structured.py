# ruff: noqa: SIM905, a list of words reads best as words
"""Finds the answer in a JSON object, which may be truncated or contain unescaped LaTeX."""

from __future__ import annotations

import json
import re

from bestofn.verifiers.math_verifier.answer import MAX_MARKS, Answer

JSON_KEY = re.compile(r'["\'](?:final[_ ]?answer|answer|Answer|ANSWER|final)["\']\s*:\s*')
_ESCAPES = {"n": "\n", "t": " ", "r": " ", "b": "", '"': '"', "'": "'", "/": "/", "f": ""}


def structured(text: str) -> Answer | None:
    """Return the value of the key "answer" in a JSON object. The object may be truncated or contain unescaped LaTeX."""
    if '"' not in text and "'" not in text:
        return None
    for match in reversed(list(JSON_KEY.finditer(text))[-MAX_MARKS:]):
        value = _json_value(text, match.end())
        if value is not None:
            return Answer(value, "structured")
    return None


def _json_value(text: str, start: int) -> str | None:
    if start >= len(text):
        return None
    if text[start] in "\"'":
        return _json_string(text, start)
    if text[start] in "[{":
        return _json_container(text, start)
    match = re.match(r"[^,}\n]+", text[start:])
    return match[0].strip() if match else None


def _json_container(text: str, start: int) -> str | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        match = re.match(r"[^\n]+", text[start:])
        return match[0] if match else None
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    values = list(value.values())
    return str(values[0]) if len(values) == 1 else ", ".join(f"{key} = {item}" for key, item in value.items())


def _json_string(text: str, start: int) -> str:
    quote, at, out = text[start], start + 1, []
    while at < len(text):
        here = text[at]
        if here == "\\" and at + 1 < len(text):
            at = _json_escape(text, at, out)
            continue
        if here == quote and re.match(r"\s*(?:[,}\]\n]|$|```)", text[at + 1 : at + 20]):
            break
        out.append(here)
        at += 1
    return "".join(out)


def _json_escape(text: str, at: int, out: list[str]) -> int:
    """Decode the escape sequence at ``at``, append it to ``out``, and return the position after it.

    An unescaped LaTeX command such as ``\\frac`` is appended unchanged.
    """
    following = text[at + 1]
    command = re.match(r"\\([A-Za-z]+)", text[at:])
    if following == "u" and re.match(r"[0-9a-fA-F]{4}", text[at + 2 : at + 6]):
        out.append(chr(int(text[at + 2 : at + 6], 16)))
        return at + 6
    if command and len(command[1]) > 1 and command[1] in _LATEX:
        out.append("\\")
        return at + 1
    if following == "\\":
        out.append("\\")
        return at + 2
    out.append(_ESCAPES.get(following, "\\" + following))
    return at + 2


_LATEX = frozenset(
    "frac text times tan theta tau to top nu neq ne not beta binom begin bar boxed big bmod rho right rangle rm "
    "rfloor rceil tfrac triangle "
    "textbf textrm forall floor nabla natural".split()
)
