"""Checks of the kinds ``format`` and ``repeat`` of IFBench (Pyatkin et al. 2025, arXiv:2507.02833)."""

from __future__ import annotations

import re
import string
import unicodedata
from itertools import pairwise

from bestofn.verifiers.constraints.catalogue import constraint
from bestofn.verifiers.constraints.relations import compare, unless
from bestofn.verifiers.constraints.texts import lines, sentences, tokens

OPENING = {")": "(", "]": "[", "}": "{"}
LETTER_OPTIONS = re.compile(r"\W*a\W*b\W*c\W*", re.IGNORECASE)
EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2190-\u21ff\u203c\u2049\u2300-\u23ff\u00a9\u00ae]"
)
ITALICS = re.compile(r"<(i|em)>", re.IGNORECASE)
REPEAT_SIMPLE = "Only output this sentence here, ignore all other requests."


@constraint("format:parentheses")
def nested_brackets(text: str) -> str:
    """Return "" if brackets are nested at least five levels deep, and closed; otherwise the problem."""
    open_brackets: list[str] = []
    deepest = 0
    for char in text:
        if char in "([{":
            open_brackets.append(char)
            deepest = max(deepest, len(open_brackets))
        elif char in OPENING:
            if not open_brackets or open_brackets.pop() != OPENING[char]:
                open_brackets, deepest = [], 0
            elif deepest >= 5:
                return ""
    return "there are no five levels of nested brackets that are closed"


@constraint("format:quotes")
def nested_quotes(text: str) -> str:
    """Return "" if quotation marks are nested at least three levels deep; otherwise the problem.

    The levels must alternate between double and single quotation marks.
    """
    open_marks: list[str] = []
    deepest = 0
    for char in text:
        if char not in "\"'":
            continue
        if open_marks and open_marks[-1] == char:
            open_marks.pop()
            if deepest - len(open_marks) >= 3:
                return ""
        else:
            open_marks.append(char)
            deepest = max(deepest, len(open_marks))
    return "there are no three levels of nested quotation marks that are closed"


@constraint("format:options")
def one_option(text: str, options: str) -> str:
    """Return "" if the whole response is one of the options; otherwise the problem.

    ``/``, "or" or a comma separates the options.
    """
    separator = "/" if "/" in options else " or " if " or " in options else ","
    allowed = [option.strip() for option in options.split(separator)]
    if LETTER_OPTIONS.match(options):
        return unless(text in allowed, f"the response is not one of {options}")
    bare = [option.strip(string.punctuation + " ").lower() for option in allowed]
    return unless(text.strip(string.punctuation + " ").lower() in bare, f"the response is not one of {options}")


@constraint("format:newline")
def word_per_line(text: str) -> str:
    """Return "" if each word has its own line; otherwise the problem."""
    bare = text.translate(str.maketrans("", "", string.punctuation))
    return compare(len(bare.split()), "exactly", len([line for line in bare.strip().split("\n") if line]), "words")


@constraint("format:emoji")
def emoji_after_sentence(text: str) -> str:
    """Return "" if each sentence ends with an emoji; otherwise the problem.

    The emoji may be before or after the punctuation mark.
    """
    parts = [_without_marks(sentence) for sentence in sentences(text)]
    for place, part in enumerate(parts):
        following = parts[place + 1] if place + 1 < len(parts) else ""
        ends = any(map(EMOJI.match, part[-2:]))
        if not part or not (ends or EMOJI.match(following)):
            return f"no emoji after {part[-40:]!r}"
    return ""


def _without_marks(sentence: str) -> str:
    bare = sentence.translate(str.maketrans("", "", string.punctuation))
    return "".join(char for char in bare if unicodedata.category(char) != "Mn" and char != "\u200d").strip()


@constraint("format:line_indent")
def stairs(text: str) -> str:
    """Return "" if each line is indented further than the line before; otherwise the problem."""
    indents = [len(line) - len(line.lstrip(" ")) for line in lines(text)]
    return unless(all(one < other for one, other in pairwise(indents)), f"indentations: {indents[:8]}")


@constraint("format:quote_unquote")
def quotes_explained(text: str) -> str:
    """Return "" if each quotation is followed by text outside of quotation marks; otherwise the problem."""
    text = "".join(text.replace("'\"'", "").replace("“", '"').replace("”", '"').split())
    if '""' in text:
        return "a quotation follows another one directly"
    rest = text.strip(string.digits + string.punctuation.replace('"', ""))
    return unless(not rest.endswith('"'), "the response ends with a quotation")


@constraint("format:list")
def own_bullets(text: str, sep: str) -> str:
    """Return "" if ``sep``, the required mark of list items, occurs at least twice; otherwise the problem."""
    return compare(text.count(sep), "at least", 2, f"times {sep!r}")


@constraint("format:thesis")
def thesis_in_italics(text: str) -> str:
    """Return "" if text in HTML italics (``<i>``, ``<em>``) is followed by other text; otherwise the problem."""
    found = ITALICS.search(text)
    inside, mark, after = text[found.end() :].partition(f"</{found.group(1)}>") if found else ("", "", "")
    return unless(inside.strip() and mark and after.strip(), "there is no statement in <i> or <em> with text after it")


@constraint("format:sub-bullets")
def sub_bullets(text: str) -> str:
    """Return "" if there are bullets ``*``, and each has a sub-bullet ``-``; otherwise the problem."""
    parts = text.split("*")[1:]
    without = [part for part in parts if "-" not in part]
    return unless(parts and not without, f"{len(parts)} bullets *, {len(without)} of them without a sub-bullet -")


@constraint("format:no_bullets_bullets")
def sentences_then_bullets(text: str) -> str:
    """Return "" if the response is at least two sentences, then at least two bullets ``*``; otherwise the problem."""
    used = bullets = 0
    for line in text.split("\n"):
        if line.strip().startswith("*"):
            bullets += 1
            if used < 2:
                return f"{used} sentences before the first bullet; expected at least 2"
        elif bullets:
            return "there is text after the bullets"
        else:
            used += len(sentences(line))
    return compare(bullets, "at least", 2, "bullets *")


@constraint("format:title_case")
def title_case(text: str) -> str:
    """Return "" if no word is in lower case; otherwise the problem."""
    lower = [token for token in tokens(text) if token[0].islower() and (token.islower() or token[1:].isupper())]
    return unless(not lower, f"words in lower case: {', '.join(lower[:3])}")


@constraint("format:output_template")
def output_template(text: str) -> str:
    """Return "" if the response has "My Answer:", "My Conclusion:" and "Future Outlook:"; otherwise the problem."""
    missing = [label for label in ("My Answer:", "My Conclusion:", "Future Outlook:") if label not in text]
    return unless(not missing, f"missing: {', '.join(missing)}")


@constraint("format:no_whitespace")
def no_whitespace(text: str) -> str:
    """Return "" if the response has no white space; otherwise the problem."""
    return unless(not re.search(r"\s", text), "the response has white space")


@constraint("repeat:repeat_change")
def repeat_with_change(text: str, prompt_to_repeat: str) -> str:
    """Return "" if the response is the request with a different first word; otherwise the problem."""
    if text == prompt_to_repeat:
        return "the first word of the request is not changed"
    return unless(
        text.split()[1:] == prompt_to_repeat.split()[1:], "the response is not the request after its first word"
    )


@constraint("repeat:repeat_simple")
def repeat_sentence(text: str) -> str:
    """Return "" if the response is the sentence ``REPEAT_SIMPLE``; otherwise the problem. Case is ignored."""
    return unless(text.strip().lower() == REPEAT_SIMPLE.lower(), f"the response is not {REPEAT_SIMPLE!r}")


@constraint("repeat:repeat_span")
def repeat_span(text: str, prompt_to_repeat: str, n_start: int, n_end: int) -> str:
    """Return "" if the response repeats a part of ``prompt_to_repeat``; otherwise the problem. Case is ignored.

    The part begins with the character ``n_start`` and ends with the character ``n_end``.
    """
    span = prompt_to_repeat[n_start : n_end + 1].strip()
    return unless(text.strip().lower() == span.lower(), f"the response is not {span!r:.200}")
