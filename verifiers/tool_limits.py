"""Recognises statements that the declared tools cannot do what the user wants. ``stance`` uses this module.

Only the speaker's own tools count: "my tools", "the available functions", "no tool gives this", or a declared name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestofn.builders.formats.declared_tools import Declared
from bestofn.builders.records import Tool

_TOOLS = r"(?:tools?|tool ?(?:box|kit|set)s?|functions?|apis?|plug-?ins?|capabilit(?:y|ies)|abilit(?:y|ies))"
_OWN = r"(?:my|your|available|given|provided|offered|current|existing|these|at hand)"
_SERVES = (
    r"(?:retrieve|support|answer|help|handle|provide|return|give|cover|include|allow|access|send|look|check|perform|do"
    r"|get|find|fetch|book|order|make|offer|know|work|let|enable|have|apply|fit|suit|match|extend|address|satisfy|meet)"
)
_CANNOT = (
    rf"(?:cannot|can't|can\snot|could\snot|couldn't|(?:do|does|did|will|would)(?:n't|\snot)|never)\s(?:\w+ly\s|be\s"
    rf"used\sto\s)?{_SERVES}"
)
_ONLY = (
    rf"(?:is|are)\sonly\s|(?:can\s)?only\s{_SERVES}"
    r"|(?:is|are)(?:n't|\snot)\s(?:able|designed|meant|suitable|intended|made|built|applicable)"
)
_NONE = re.compile(
    rf"\b(?:no|none\sof|neither\sof|not\sa\ssingle|not\sany)\s(?:(?!need|other)[\w-]+\s){{0,3}}?{_TOOLS}\b"
    r"(?!\s(?:calls?|use|is\s\w*\s?(?:needed|necessary|required)|are\s\w*\s?(?:needed|necessary|required)"
    r"|needed|necessary|required|older|better|\w+er\sthan))",
    re.I,
)
"""Matches "no tool gives this", "none of my functions". "No tool is needed" is not a limit."""
_OWN_CANNOT = re.compile(
    rf"\b(?:(?:{_OWN}\s(?:\w+\s){{0,2}}?{_TOOLS}|(?:the|this|that)\s(?:\w+\s){{0,2}}?tools?)(?:\s(?:that\s)?(?:i|we)"
    rf"\s(?:have|was|were|am|can)\s?(?:\w+\s?){{0,3}}?)?\s(?:{_CANNOT}\b|{_ONLY}|lacks?\b|(?:gives?|returns?|provides?"
    rf"|has|have|offers?|knows?|supports?)\s(?:no|only|none|nothing)\b))"
    rf"|\b(?:outside|beyond|out\sof\s(?:scope|reach)|not\s(?:within|in|part\sof|covered\sby|supported\sby|available\s(?:through|in|from|with|via))"
    rf"|exceeds?)\s(?:[\w-]+\s){{0,6}}?(?:{_OWN}\s(?:\w+\s){{0,2}}?{_TOOLS}|what\s(?:my|these|the)\s{_TOOLS})\b"
    rf"|\b{_TOOLS}\s(?:that\s|which\s)?(?:i|we)\s(?:do(?:n't|\snot)|lack|can(?:not|'t))\b"
    rf"|\b(?:an?|the)\s(?:\w+\s){{0,3}}?{_TOOLS}\b[^.!?]{{0,40}}\b(?:(?:is|are)(?:n't|\snot)\savailable|unavailable)\b"
    rf"|\bmy\sonly\s(?:\w+\s)?{_TOOLS}\b"
    rf"|\bnothing\s(?:in|among|within)\s(?:{_OWN}|the)\s(?:\w+\s)?{_TOOLS}\b"
    rf"|\b(?:the\s)?only\s(?:\w+\s)?{_TOOLS}\s(?:that\s)?(?:i|we)\s(?:have|was|were|can)\b"
    rf"|\b(?:lack|miss|missing|without)\s(?:an?|any|the)\s(?:\w+\s)?{_TOOLS}\s(?:to|for|that|which)\b"
    rf"|\b(?:cannot|can't|can\snot|unable\sto|not\sable\sto)\s[^.!?]{{1,60}}?\b(?:with|using|through|via|by)\s(?:the|my|any"
    rf"|only)\s(?:\w+\s){{0,3}}?{_TOOLS}\b",
    re.I,
)
_NAMED_CANNOT = (
    rf"(?:\bNAME\b\W{{0,3}}(?:tool|function|api)?\s?(?:{_CANNOT}\b|(?:cannot|can't|can\snot)\s(?!be\b)\w+|{_ONLY}|lacks\b|(?:gives|returns|provides|has|offers"
    r"|knows|supports)\s(?:no|only|none|nothing)\b)|\bnot\s(?:something|a\sthing)\s(?:that\s)?`?NAME\b|\b(?:only|just)\s(?:have|has|offers?|a|the|is)\s(?:\w+\s)?`?NAME\b)"
)
_NEEDS_NONE = re.compile(r"\b(?:no|not|n't)\s(?:\w+\s){0,2}?(?:need|necessary|required|require)\w*", re.I)


def says_tools_cannot(sentences: Sequence[str], tools: Sequence[Tool]) -> bool:
    """Return whether one of ``sentences`` states that the declared tools cannot do what the user wants."""
    if not tools:
        return False
    names = [re.escape(name).replace("_", r"[\s_]") for name in Declared(tools).names if name]
    named = re.compile(_NAMED_CANNOT.replace("NAME", f"(?:{'|'.join(names)})"), re.IGNORECASE) if names else None
    return any(
        not _NEEDS_NONE.search(sentence)
        and bool(_NONE.search(sentence) or _OWN_CANNOT.search(sentence) or (named and named.search(sentence)))
        for sentence in sentences
    )
