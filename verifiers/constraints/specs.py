"""Reads the constraints of a query from ``reference.checks["constraints"]``, in the forms of the published datasets."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestofn.builders.records import JsonObject

# Converts the functions that rows of RLVR-IFeval (Tülu 3) name to constraints of IFEval.

FUNCTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "verify_keywords": ("keywords:existence", {"keyword_list": "keywords"}),
    "verify_keyword_frequency": ("counts", {"word": "text", "N": "exactly"}),
    "validate_forbidden_words": ("keywords:forbidden_words", {"forbidden_words": "forbidden_words"}),
    "verify_letter_frequency": ("counts", {"letter": "text", "N": "exactly"}),
    "validate_response_language": ("language:response_language", {"language": "language"}),
    "verify_paragraph_count": ("length_constraints:number_paragraphs", {"N": "num_paragraphs"}),
    "validate_word_constraint": ("length_constraints:number_words", {"N": "num_words", "quantifier": "relation"}),
    "verify_sentence_constraint": (
        "length_constraints:number_sentences",
        {"N": "num_sentences", "quantifier": "relation"},
    ),
    "validate_paragraphs": (
        "length_constraints:nth_paragraph_first_word",
        {"N": "num_paragraphs", "i": "nth_paragraph", "first_word": "first_word"},
    ),
    "verify_postscript": ("detectable_content:postscript", {"postscript_marker": "postscript_marker"}),
    "validate_placeholders": ("detectable_content:number_placeholders", {"N": "num_placeholders"}),
    "verify_bullet_points": ("detectable_format:number_bullet_lists", {"N": "num_bullets"}),
    "validate_title": ("detectable_format:title", {}),
    "validate_choice": ("one_of", {"options": "options"}),
    "validate_highlighted_sections": ("detectable_format:number_highlighted_sections", {"N": "num_highlights"}),
    "validate_sections": (
        "detectable_format:multiple_sections",
        {"N": "num_sections", "section_splitter": "section_spliter"},
    ),
    "validate_json_format": ("detectable_format:json_format", {}),
    "validate_repeat_prompt": ("combination:repeat_prompt", {"original_prompt": "prompt_to_repeat"}),
    "validate_two_responses": ("combination:two_responses", {}),
    "validate_uppercase": ("change_case:english_capital", {}),
    "validate_lowercase": ("change_case:english_lowercase", {}),
    "validate_frequency_capital_words": (
        "change_case:capital_word_frequency",
        {"N": "capital_frequency", "quantifier": "capital_relation"},
    ),
    "validate_end": ("startend:end_checker", {"end_phrase": "end_phrase"}),
    "validate_quotation": ("startend:quotation", {}),
    "validate_no_commas": ("punctuation:no_comma", {}),
}
"""Function → the id of the constraint, and argument of the function → argument of the constraint."""


def from_function(row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the id and the arguments of the constraint that a row of RLVR-IFeval describes.

    Only the arguments that belong to the function are returned. For an unknown function, the id is the name of the
    function; the verifier reports it as an unknown constraint.
    """
    name = str(row["func_name"])
    constraint, arguments = FUNCTIONS.get(name, (name, {}))
    return constraint, {ours: row.get(theirs) for theirs, ours in arguments.items()}


# Reads the constraints of Tülu 3's persona prompts. Their arguments are only in the text of the prompts.
#
# A row has a name such as ``length constraints:number of words`` and no arguments. A count is read from the prompt if
# two conditions are true: the prompt contains exactly one number with the unit of the count, and this number limits
# the whole response and not a part of it. Otherwise the constraint gets no arguments, and the verdict is ``abstain``.

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
"""Name → constraint of ``general`` with bounds, its unit in prompts, and its other arguments."""

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


LANGUAGES = frozenset({"en", "es", "fr", "ja"})
ID_COLUMNS = ("instruction_id_list", "instruction_ids", "instruction_id")
GROUPS = ("all", "any", "none")


class SpecError(ValueError):
    """Raised if the constraints of a query cannot be read."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, or a group of constraints: ``group`` is all, any, none, or "" for a single constraint."""

    id: str
    arguments: JsonObject = field(default_factory=dict)
    language: str = "en"
    group: str = ""
    parts: tuple[Constraint, ...] = ()


def read_constraints(value: object, language: str = "en") -> list[Constraint]:
    """Return the constraints that ``value`` describes. Raises ``SpecError`` if it has no known form.

    The forms are:

    - a list of ids and a list of arguments (IFEval, IFBench), also as the two items of one list
    - a list of objects with the key ``id`` and the arguments
    - ``{"func_name": …}`` (RLVR-IFeval)
    - ``{"kinds_of_tulu": […], "prompt": …}`` (Tülu 3's persona prompts)
    - any of these as JSON text or as a Python literal
    """
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, Mapping):
        return _of_object(value, language)
    if not isinstance(value, Sequence):
        raise SpecError(f"the constraints are {value!r:.80}; expected a list of objects with the key 'id'")
    if _is_pair_of_columns(value):
        return _of_columns(value[0], value[1], language)
    return [constraint for item in value for constraint in _of_item(item, language)]


def _decoded(text: str) -> object:
    """Return the value of a text that is JSON or a Python literal (IF_multi_constraints). Raises ``SpecError``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = error
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"the constraints are a text that is neither JSON nor a Python literal: {problem}") from None


def _of_item(item: object, language: str) -> list[Constraint]:
    if isinstance(item, str):
        return [_named(item, {}, language)]
    if not isinstance(item, Mapping):
        raise SpecError(f"a constraint is {item!r:.80}; expected an object with the key 'id'")
    return _of_object(item, language)


def _of_object(item: Mapping[str, Any], language: str) -> list[Constraint]:
    language = str(item.get("language_of_kinds") or language)
    for column in ID_COLUMNS:
        ids = item.get(column)
        if isinstance(ids, str):
            return _of_columns([ids], [item.get("kwargs")], language)
        if ids is not None:
            return _of_columns(ids, item.get("kwargs"), language)
    if "func_name" in item:
        return [_named(*from_function(item), language)]
    if "kinds_of_tulu" in item:
        prompt = str(item.get("prompt") or "")
        return [_named(*from_prompt(str(kind), prompt), language) for kind in item["kinds_of_tulu"]]
    for group in GROUPS:
        if group in item and len(item) == 1:
            parts = tuple(read_constraints(item[group], language))
            if not parts:
                raise SpecError(f"the group {group!r} has no constraints")
            return [Constraint(group, group=group, parts=parts)]
    if "id" not in item:
        raise SpecError(f"a constraint has the keys {', '.join(map(str, item))}; expected 'id'")
    arguments = item["kwargs"] if "kwargs" in item else {key: value for key, value in item.items() if key != "id"}
    return [_named(str(item["id"]), arguments, language)]


def _of_columns(ids: Sequence[str], arguments: object, language: str) -> list[Constraint]:
    given = [{}] * len(ids) if arguments is None else arguments
    given = [given] if isinstance(given, Mapping) else given
    if not isinstance(given, Sequence) or len(given) != len(ids):
        raise SpecError(f"{len(ids)} constraints have the arguments {given!r:.80}; expected one object per constraint")
    return [_named(name, one or {}, language) for name, one in zip(ids, given, strict=True)]


def _named(name: str, arguments: object, language: str) -> Constraint:
    """Return the constraint ``name`` with its arguments. A prefix such as ``ja:`` selects its language."""
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if not isinstance(arguments, Mapping):
        raise SpecError(f"the arguments of {name!r} are {arguments!r:.80}; expected an object")
    name = name.strip().replace(" ", "_")  # Tülu writes "length constraints:number of words"
    before, _, rest = name.partition(":")
    found, name = (before, rest) if before in LANGUAGES and rest else (language, name)
    return Constraint(name, arguments, found)


def _is_pair_of_columns(value: Sequence[object]) -> bool:
    if len(value) != 2 or isinstance(value[0], str | Mapping):
        return False
    return isinstance(value[0], Sequence) and all(isinstance(one, str) for one in value[0])
