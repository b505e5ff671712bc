"""Checks of further constraints, for your own rows. ``docs/verifiers.md`` lists the constraints.

``min``, ``max`` and ``exactly`` bound a count; at least one of them must be given.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence

from bestofn.builders.formats.linear_regex import PatternError, find_all
from bestofn.verifiers.constraints import texts
from bestofn.verifiers.constraints.catalogue import UndecidedError, between, constraint, unless
from bestofn.verifiers.constraints.ifeval import json_problem
from bestofn.verifiers.constraints.languages import written_in

ITEMS = {"bullet": r"(?m)^(?![^\S\n]*(?:[-*]\s*){3,}$)[^\S\n]*[-*+•・]\s+\S", "numbered": r"(?m)^[^\S\n]*\d+[.)]\s+\S"}
ASCII_CLASS = re.compile(r"(?<!\\)(?:\\\\)*\\[bBdDsSwW]")
TABLE_ROW = re.compile(r"(?m)^[^\S\n]*\|.+\|\s*$\n^[^\S\n]*\|[\s:|-]+\|\s*$|^.+\|.+$\n^[\s:-]+\|[\s:|-]+$")
CODE = re.compile(r"(?ms)^[^\S\n]*(`{3,}+|~{3,}+)[^\n]*+\n(?:.*?^[^\S\n]*\1|.*\Z)")
"""A fenced block of code, in which ``#`` and ``-`` are no headings and no list markers."""
PLACEHOLDER = re.compile(
    r"(?<![!\]\\A-Za-z0-9_])\[(?!\^|[^\S\n]*[xX✓✔][^\S\n]*\])(?=[^\n\[\]]*[^\W\d])[^\n\[\]]+\]"
    r"(?!\(|\[|:[^\S\n]*(?:https?:|<|/|#))"
)
"""Words in square brackets, such as ``[your name]``. Markdown writes other things in brackets: a checkbox ``[ ]`` or
``[x]``, a link ``[text](url)`` or ``[text][1]``, the target of a link, a footnote ``[^a]``. Numbers are citations."""
CASES: dict[str, Callable[[str], bool]] = {
    "lower": str.islower,
    "upper": str.isupper,
    "title": lambda text: not [word for word in texts.words(text) if word[0].islower()],
    "sentence": lambda text: all(_first_letter(sentence).isupper() for sentence in texts.sentences(text)),
}


def _count(unit: str, count: Callable[[str], int]) -> None:
    """Register the constraint ``unit``. It sets a minimum and a maximum for ``count(response)``."""

    @constraint(unit)
    def bounded(
        text: str,
        min: float | None = None,
        max: float | None = None,
        exactly: float | None = None,
    ) -> str:
        return between(count(text), unit, min, max, exactly)


_count("words", lambda text: len(texts.counted_words(text)))
_count("sentences", lambda text: len(texts.sentences(text)))
_count("paragraphs", lambda text: len(texts.paragraphs(text)))
_count("lines", lambda text: len(texts.lines(text)))
_count("characters", lambda text: len(text.strip()))
_count("tokens", lambda text: len(texts.tokens(text)))
_count("placeholders", lambda text: len(PLACEHOLDER.findall(CODE.sub("\n", text))))
_count("highlights", lambda text: len(re.findall(r"\*\*[^\n*]+\*\*|(?<!\*)\*[^\s*][^\n*]*\*(?!\*)", text)))


@constraint("contains")
def contains(text: str, texts: Sequence[str], whole_words: bool = False, ignore_case: bool = True) -> str:
    """Return "" if all ``texts`` occur in the response; otherwise the problem."""
    missing = [one for one in texts if not _times(text, one, whole_words, ignore_case)]
    return unless(not missing, f"missing: {', '.join(missing)}")


@constraint("forbids")
def forbids(text: str, texts: Sequence[str], whole_words: bool = True, ignore_case: bool = True) -> str:
    """Return "" if none of the ``texts`` occurs in the response; otherwise the problem."""
    used = [one for one in texts if _times(text, one, whole_words, ignore_case)]
    return unless(not used, f"forbidden: {', '.join(used)}")


@constraint("counts")
def counts(
    response: str,
    text: str,
    min: float | None = None,
    max: float | None = None,
    exactly: float | None = None,
    whole_words: bool = False,
    ignore_case: bool = True,
) -> str:
    """Return "" if ``text`` occurs as often as ``min``, ``max`` and ``exactly`` allow; otherwise the problem."""
    return between(_times(response, text, whole_words, ignore_case), f"times {text!r}", min, max, exactly)


def _times(text: str, part: str, whole_words: bool, ignore_case: bool) -> int:
    if not part:
        raise ValueError("the text is empty; expected at least one character")
    pattern = texts.whole(part) if whole_words else re.escape(part)
    return len(re.findall(pattern, text, re.IGNORECASE if ignore_case else 0))


@constraint("starts")
def starts(response: str, text: str, ignore_case: bool = False) -> str:
    """Return "" if the response begins with ``text``; otherwise the problem. White space before it is allowed."""
    begins = response.lstrip()[: len(text)]
    same = begins.lower() == text.lower() if ignore_case else begins == text
    return unless(same, f"the response begins with {begins!r}")


@constraint("ends")
def ends(response: str, text: str, ignore_case: bool = False) -> str:
    """Return "" if the response ends with ``text``; otherwise the problem. White space after it is allowed."""
    last = response.rstrip()[-len(text) :]
    same = last.lower() == text.lower() if ignore_case else last == text
    return unless(same, f"the response ends with {last!r}")


@constraint("one_of")
def one_of(text: str, options: Sequence[str]) -> str:
    """Return "" if the response is one of the options; otherwise the problem. White space around it is allowed."""
    return unless(text.strip() in [option.strip() for option in options], f"the response is not one of {list(options)}")


@constraint("case")
def case(text: str, case: str) -> str:
    """Return "" if the response is in ``case``: lower, upper, title or sentence; otherwise the problem."""
    if case not in CASES:
        raise ValueError(f"the case is {case!r}; expected {', '.join(CASES)}")
    return unless(CASES[case](text), f"the response is not in {case} case")


def _first_letter(sentence: str) -> str:
    return next((char for char in sentence if char.isalpha()), "A")


@constraint("language")
def language(text: str, language: str) -> str:
    """Return "" if the response is in the language (ISO 639-1); otherwise the problem."""
    return written_in(text, language)


@constraint("json")
def is_json(text: str, fence: bool = True) -> str:
    """Return "" if the whole response is JSON; otherwise the problem. ``fence`` allows a Markdown fence around it."""
    body = re.sub(r"\A```(?:json)?\s|```\Z", "", text.strip(), flags=re.IGNORECASE) if fence else text
    return json_problem(body)


@constraint("format")
def has_format(text: str, format: str) -> str:
    """Return "" if the response has the format ``format``; otherwise the problem.

    The formats are a Markdown ``table``, a fenced ``code`` block, ``csv``, and ``plain`` text without Markdown.
    """
    if format == "table":
        return unless(TABLE_ROW.search(text), "there is no table in Markdown")
    if format == "code":
        return unless(re.search(r"(?ms)^(```|~~~).*?^\1", text), "there is no fenced block of code")
    if format == "csv":
        widths = {len(row) for row in csv.reader(io.StringIO(text.strip()))}
        return unless(len(widths) == 1 and max(widths) > 1, f"the rows have {sorted(widths)} fields")
    if format == "plain":
        marked = re.search(
            r"(?m)^[^\S\n]*#{1,6}\s|^[^\S\n]*[-*+]\s|\*\*\S|^(?:```|~~~)|^[^\S\n]*\|.*\|\s*$|^>|\]\(\S", text
        )
        return unless(not marked, f"the response has Markdown: {marked.group().strip() if marked else ''!r}")
    raise ValueError(f"the format is {format!r}; expected table, code, csv or plain")


@constraint("sections")
def sections(
    text: str,
    headings: Sequence[str] = (),
    min: float | None = None,
    max: float | None = None,
    exactly: float | None = None,
) -> str:
    """Return "" if the response has the Markdown ``headings`` in this order; otherwise the problem.

    The number of headings must be within the bounds.
    """
    found = re.findall(r"(?m)^[^\S\n]*#{1,6}\s+(.+)$", CODE.sub("", text))
    given = [heading.strip().rstrip("#: ").lower() for heading in found]
    problem = _in_order([heading.lower() for heading in headings], given)
    if problem or (min, max, exactly) == (None, None, None):
        return problem
    return between(len(given), "headings", min, max, exactly)


def _in_order(wanted: Sequence[str], given: Sequence[str]) -> str:
    rest = iter(given)
    missing = next((heading for heading in wanted if heading not in rest), None)
    return unless(missing is None, f"the heading {missing!r} is missing or in another order")


@constraint("lists")
def lists(
    text: str,
    kind: str = "bullet",
    min: float | None = None,
    max: float | None = None,
    exactly: float | None = None,
) -> str:
    """Return "" if the response has the required number of ``bullet`` or ``numbered`` items; otherwise the problem."""
    if kind not in ITEMS:
        raise ValueError(f"the kind is {kind!r}; expected {', '.join(ITEMS)}")
    return between(len(re.findall(ITEMS[kind], CODE.sub("", text))), f"{kind} items", min, max, exactly)


@constraint("order")
def order(text: str, texts: Sequence[str], ignore_case: bool = True) -> str:
    """Return "" if the ``texts`` occur in this order; otherwise the problem."""
    place, given = 0, text.lower() if ignore_case else text
    for one in texts:
        found = given.find(one.lower() if ignore_case else one, place)
        if found < 0:
            return f"{one!r} is missing or in another order"
        place = found + len(one)
    return ""


@constraint("matches")
def matches(text: str, pattern: str, min: float | None = 1, max: float | None = None) -> str:
    """Return "" if the number of matches of the regular expression is within the bounds; otherwise the problem.

    RE2 is used, so the time is linear in the length of the text. Its classes know only ASCII: if the text has other
    letters, digits or spaces, a pattern with a class is not decided.
    """
    others = any((one.isalnum() or one.isspace()) and not one.isascii() for one in text)
    if others and ASCII_CLASS.search(pattern):
        raise UndecidedError(f"the classes of {pattern!r} know only ASCII letters; write \\p{{L}} or \\p{{N}}")
    try:
        found = find_all(pattern, text)
    except PatternError as error:
        raise UndecidedError(f"the pattern {pattern!r} cannot be matched: {error}") from None
    return between(len(found), f"matches of {pattern!r}", min, max)
