"""Reads the constraints of Tülu 3's persona prompts. Their arguments are only in the text of the prompts.

A row has a name such as ``length constraints:number of words`` and no arguments. A count is read from the prompt if two
conditions are true. The prompt contains exactly one number with the unit of the count. This number limits the whole
response and not a part of it. Otherwise the constraint gets no arguments, and the verdict is ``abstain``.
"""

from __future__ import annotations

import re

from bestofn.builders.records import JsonObject

Read = tuple[str, JsonObject]

WITHOUT_ARGUMENTS = {
    "punctuation:use no comma": "punctuation:no_comma",
    "case:in english and lowercase": "change_case:english_lowercase",
    "in english and lowercase": "change_case:english_lowercase",
    "in english and capital": "change_case:english_capital",
    "case:in english and capital": "change_case:english_capital",
    "use quotation": "startend:quotation",
    "format:use json format": "detectable_format:json_format",
    "give two responses": "combination:two_responses",
}
"""Name → constraint of IFEval without arguments."""

COUNTS = {
    "length constraints:number of words": ("words", r"words?", {}),
    "length constraints:number of sentences": ("sentences", r"sentences?", {}),
    "length constraints:number of paragraphs": ("paragraphs", r"paragraphs?", {}),
    "format:number of bullet lists": ("lists", r"bullet(?:ed)?[ -]?(?:points?|items?)|bullets", {"kind": "bullet"}),
    "format:number of highlighted sections": ("highlights", r"highlighted (?:sections?|parts?|phrases?)", {}),
    "content:number of placeholders": ("placeholders", r"placeholders?", {}),
}  # fmt: skip
"""Name → constraint of ``own`` with bounds, its unit in prompts, and its other arguments."""

SMALL = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBER = rf"(?P<number>\d{{1,3}}(?:,\d{{3}})+|\d+|{'|'.join(SMALL)})"
RELATIONS = {
    "exactly": r"exactly|precisely",
    "min": r"at least|a minimum of|minimum|no (?:fewer|less) than|not (?:fewer|less) than",
    "max": r"at most|a maximum of|maximum|no more than|not more than|up to|not exceed(?:ing)?|not to exceed|within",
    "over": r"more than|over|exceeding",
    "under": r"(?:less|fewer) than|under|below",
}
RELATION = "|".join(f"(?P<{name}>{words})" for name, words in RELATIONS.items())
PARTIAL = re.compile(r"(?i)\b(?:each|every|per|between|range|first|last)\b|\d\s*(?:-|–|to)\s*\d")
AT_LEAST = ("highlights", "placeholders")
"""Constraints that IFEval defines as lower bounds."""
VAGUE = re.compile(r"(?i)\b(?:approximately|about|around|roughly|nearly)\s*\Z")
QUOTED = re.compile(r"(?<!\w)[\"“'‘]([^\"“”\n]{1,80}?)[\"”'’](?!\w)")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"”'’]?\s+|\n+")
NOT = r"exclud|avoid|without|refrain|n't|\bnot\b|never"
QUOTING = {
    "include keywords": ("keywords:existence", "keywords", r"includ|keyword|contain|incorporat", NOT),
    "keywords:exclude words": ("keywords:forbidden_words", "forbidden_words", NOT, r"\binclude the\b"),
    "specific ending": ("startend:end_checker", "end_phrase", r"\bend|conclud|finish|clos", NOT),
}
"""Name → constraint of IFEval, its argument, and patterns of the sentence with the quoted texts: required, forbidden.
"""


def from_prompt(kind: str, prompt: str) -> Read:
    """Return the id and the arguments of the constraint ``kind`` of a row. The arguments are read from its prompt."""
    name = re.sub(r"\s*:\s*", ":", kind.strip().lower())
    if name in WITHOUT_ARGUMENTS:
        return WITHOUT_ARGUMENTS[name], {}
    if name in COUNTS:
        return _count(name, prompt)
    if name == "content:include a postscript":
        marker = re.search(r"P\.(?:P\.)?S\.?", prompt)
        return "detectable_content:postscript", {"postscript_marker": marker[0]} if marker else {}
    if name == "format:title" and "<<" in prompt:
        return "detectable_format:title", {}
    return _quoted(name, prompt) if name in QUOTING else (kind.strip(), {})


def _quoted(name: str, prompt: str) -> Read:
    """Return the constraint ``name`` with the words that the prompt quotes as its arguments.

    If it is unclear which sentence of the prompt quotes these words, the constraint gets no arguments.
    """
    constraint, argument, required, forbidden = QUOTING[name]
    sentences = [
        one
        for one in SENTENCE_END.split(prompt)
        if re.search(required, one, re.IGNORECASE) and not re.search(forbidden, one, re.IGNORECASE)
    ]
    quoted = [text for one in sentences for text in QUOTED.findall(one)]
    if len(sentences) != 1 or not quoted:
        return constraint, {}
    if argument != "end_phrase":
        return constraint, {argument: [text.rstrip(".,;") for text in quoted]}
    return constraint, {argument: quoted[0]} if len(quoted) == 1 else {}


def _count(name: str, prompt: str) -> Read:
    constraint, unit, more = COUNTS[name]
    pattern = rf"(?i)(?:\b(?:{RELATION})\s+)?\b{NUMBER}[ -](?:[a-z]+ ){{0,2}}?(?:{unit})\b"
    found = list(re.finditer(pattern, prompt))
    bounds = _bounds(found[0], constraint) if len(found) == 1 and not _is_part(prompt, found[0]) else {}
    if constraint == "paragraphs" and "***" in prompt:  # the separator of IFEval
        return "length_constraints:number_paragraphs", {"num_paragraphs": bounds.get("exactly")}
    return constraint, {**more, **bounds} if bounds else {}


def _bounds(found: re.Match[str], constraint: str) -> JsonObject:
    """Return the bounds of a count; {} if the prompt does not say whether the number is a limit."""
    text = found["number"].lower().replace(",", "")
    number = SMALL.index(text) + 1 if text in SMALL else int(text)
    relation = next((name for name in RELATIONS if found[name]), None)
    if relation is None:
        if constraint == "words":
            return {}
        return {"min" if constraint in AT_LEAST else "exactly": number}
    return {
        "over": {"min": number + 1},
        "under": {"max": number - 1},
    }.get(relation, {relation: number})


def _is_part(prompt: str, found: re.Match[str]) -> bool:
    """Return whether the number ``found`` is perhaps not a limit on the whole response.

    The number may be vague ("about 100"), or its sentence may be about only a part of the response.
    """
    begin = max(prompt.rfind(mark, 0, found.start()) for mark in ".!?\n;") + 1
    end = min((at for at in (prompt.find(mark, found.end()) for mark in ".!?\n;") if at >= 0), default=len(prompt))
    return PARTIAL.search(prompt[begin:end]) is not None or VAGUE.search(prompt[: found.start()]) is not None
