"""Checks of the 25 kinds of instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestofn.verifiers.constraints.catalogue import UndecidedError, compare, constraint, unless
from bestofn.verifiers.constraints.languages import not_in_other_language, written_in
from bestofn.verifiers.constraints.texts import counted_words, sentences, tokens, whole
from bestofn.verifiers.structured.parsing import SpecificationError, SyntaxProblemError, readings

RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")
DOUBLE_QUOTES = '"“”„«»＂'
FENCE = re.compile(r"\A```(?:json)?|```\Z", re.IGNORECASE)
HIGHLIGHT = re.compile(r"\*\*([^\n*]*)\*\*|\*(?! [^\n*]* \*)([^\n*]*)\*")
FIRST_WORD_ENDS = re.compile(r"[.,?!'\"]")
CHOICES = {
    "en": ("My answer is yes.", "My answer is no.", "My answer is maybe."),
    "es": ("Sí.", "No.", "Quizás."),
    "fr": ("Oui.", "Non.", "Peut-être."),
    "ja": ("はい、そうです。", "いいえ、違います。", "どちらとも言えません。"),
}


@constraint("keywords:existence")
def keywords_exist(text: str, keywords: Sequence[str]) -> str:
    """Return "" if all keywords occur; otherwise the problem. Case is ignored."""
    missing = [keyword for keyword in keywords if keyword.lower() not in text.lower()]
    return unless(not missing, f"missing: {', '.join(missing)}")


@constraint("keywords:frequency")
def keyword_frequency(text: str, keyword: str, frequency: int, relation: str) -> str:
    """Return "" if the keyword occurs as often as ``frequency`` and ``relation`` require; otherwise the problem.

    Case is ignored.
    """
    return compare(text.lower().count(keyword.strip().lower()), relation, frequency, f"times {keyword!r}")


@constraint("keywords:forbidden_words")
def no_forbidden_words(text: str, forbidden_words: Sequence[str]) -> str:
    """Return "" if no forbidden word occurs; otherwise the problem. Only whole words count. Case is ignored."""
    used = [word for word in forbidden_words if re.search(whole(word), text, re.IGNORECASE)]
    return unless(not used, f"forbidden words: {', '.join(used)}")


@constraint("ja:keywords:forbidden_words")
def no_forbidden_words_ja(text: str, forbidden_words: Sequence[str]) -> str:
    """Return "" if no forbidden word occurs, not even inside other words; otherwise the problem.

    Whole words cannot be required, because Japanese has no spaces between words.
    """
    used = [word for word in forbidden_words if word in text]
    return unless(not used, f"forbidden words: {', '.join(used)}")


@constraint("keywords:letter_frequency")
def letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str) -> str:
    """Return "" if the character occurs as often as required; otherwise the problem.

    ``let_frequency`` and ``let_relation`` are the requirement. Case is ignored.
    """
    return compare(text.lower().count(letter.lower()), let_relation, let_frequency, f"times {letter!r}")


@constraint("language:response_language")
def response_language(text: str, language: str) -> str:
    """Return "" if the whole response is in the language (ISO 639-1); otherwise the problem."""
    return written_in(text, language)


@constraint("length_constraints:number_sentences")
def number_of_sentences(text: str, num_sentences: int, relation: str) -> str:
    """Return "" if the response has the required number of sentences; otherwise the problem."""
    return compare(len(sentences(text)), relation, num_sentences, "sentences")


@constraint("length_constraints:number_words")
def number_of_words(text: str, num_words: int, relation: str) -> str:
    """Return "" if the response has the required number of words; otherwise the problem."""
    return compare(len(counted_words(text)), relation, num_words, "words")


@constraint("length_constraints:number_paragraphs")
def number_of_paragraphs(text: str, num_paragraphs: int) -> str:
    """Return "" if the response has ``num_paragraphs`` paragraphs, separated by ``***``; otherwise the problem."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", text)]
    if not all(parts[1:-1]):
        return "an empty paragraph between two separators ***"
    return compare(len([part for part in parts if part]), "exactly", num_paragraphs, "paragraphs separated by ***")


@constraint("length_constraints:nth_paragraph_first_word")
def first_word_of_paragraph(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> str:
    """Return "" if the n-th of ``num_paragraphs`` paragraphs begins with ``first_word``; otherwise the problem.

    Blank lines separate the paragraphs.
    """
    parts = text.split("\n\n")
    problem = compare(len([part for part in parts if part.strip()]), "exactly", num_paragraphs, "paragraphs")
    if problem:
        return problem
    paragraph = parts[nth_paragraph - 1].strip() if nth_paragraph <= num_paragraphs else ""
    start = " ".join(paragraph.split()[: len(first_word.split())])
    begins = FIRST_WORD_ENDS.split(start.lstrip("'").lstrip('"'))[0].lower()
    return unless(begins == first_word.strip().lower(), f"paragraph {nth_paragraph} begins with {begins!r}")


@constraint("detectable_content:number_placeholders")
def number_of_placeholders(text: str, num_placeholders: int, relation: str = "at least") -> str:
    """Return "" if the response has the required number of placeholders; otherwise the problem.

    Placeholders are in square brackets, such as [address]. As in the official checker of IFEval, every pair of brackets
    counts, so a Markdown checkbox and a link count too. The constraint ``placeholders`` does not count these.
    """
    return compare(len(re.findall(r"\[[^\n\[\]]*\]", text)), relation, num_placeholders, "placeholders")


@constraint("detectable_content:postscript")
def postscript(text: str, postscript_marker: str) -> str:
    """Return "" if the response has a postscript that begins with the marker; otherwise the problem.

    Case is ignored. The letters of P.S. and P.P.S may be separated by spaces.
    """
    letters = re.fullmatch(r"((?:P\.\s?)+S)\.?", postscript_marker.strip(), re.IGNORECASE)
    if letters:
        pattern = r"\.\s?".join(letter for letter in letters.group(1).lower() if letter.isalpha())
        pattern += r"\." if postscript_marker.strip().endswith(".") else ""
    else:
        pattern = re.escape(postscript_marker.lower())
    return unless(re.search(pattern, text.lower()), f"there is no postscript {postscript_marker!r}")


@constraint("detectable_format:number_bullet_lists")
def number_of_bullets(text: str, num_bullets: int) -> str:
    """Return "" if the response has exactly ``num_bullets`` Markdown bullets; otherwise the problem."""
    lines = re.findall(r"(?m)^[^\S\n]*\*[^*].*$", text) + re.findall(r"(?m)^[^\S\n]*-(?!\d).*$", text)
    bullets = [line for line in lines if not RULE.fullmatch(line)]
    return compare(len(bullets), "exactly", num_bullets, "bullets")


@constraint("detectable_format:constrained_response")
def one_of_three_answers(text: str) -> str:
    """Return "" if the response contains one of the three answers of ``CHOICES``; otherwise the problem."""
    return _one_of(text, CHOICES["en"])


@constraint("es:detectable_format:constrained_response")
def one_of_three_answers_es(text: str) -> str:
    """Return "" if the response contains one of the three Spanish answers of ``CHOICES``; otherwise the problem."""
    return _one_of(text, CHOICES["es"])


@constraint("fr:detectable_format:constrained_response")
def one_of_three_answers_fr(text: str) -> str:
    """Return "" if the response contains one of the three French answers of ``CHOICES``; otherwise the problem."""
    return _one_of(text.lower(), tuple(choice.lower() for choice in CHOICES["fr"]))


@constraint("ja:detectable_format:constrained_response")
def one_of_three_answers_ja(text: str) -> str:
    """Return "" if the response contains one of the three Japanese answers of ``CHOICES``; otherwise the problem."""
    return _one_of(text, CHOICES["ja"])


def _one_of(text: str, choices: Sequence[str]) -> str:
    return unless(any(choice in text for choice in choices), f"the response has none of {', '.join(choices)}")


@constraint("detectable_format:number_highlighted_sections")
def number_of_highlights(text: str, num_highlights: int, relation: str = "at least") -> str:
    """Return "" if the response has the required number of highlighted parts; otherwise the problem.

    A highlighted part is Markdown emphasis, such as *part* or **part**.
    """
    found = [one for one in HIGHLIGHT.finditer(text) if (one.group(1) or one.group(2) or "").strip()]
    return compare(len(found), relation, num_highlights, "highlighted parts")


@constraint("detectable_format:multiple_sections")
def number_of_sections(text: str, section_spliter: str, num_sections: int, relation: str = "at least") -> str:
    """Return "" if the response has the required number of sections; otherwise the problem.

    A section begins with ``section_spliter`` and a number, such as Section 1.
    """
    found = re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", text)
    return compare(len(found), relation, num_sections, f"sections that begin with {section_spliter!r} and a number")


@constraint("detectable_format:json_format")
def is_json(text: str) -> str:
    """Return "" if the whole response is JSON; otherwise the problem. A Markdown fence around it is allowed."""
    return json_problem(FENCE.sub("", text.strip()).strip())


def json_problem(text: str) -> str:
    """Return why ``text`` is not JSON, or has a repeated key; "" if it is valid.

    Raises ``UndecidedError`` if the limits of the JSON parser prevent a decision.
    """
    try:
        readings(text, "json", {})
    except SyntaxProblemError as error:
        return f"the response is {error}"
    except SpecificationError as error:
        raise UndecidedError(str(error)) from None
    return ""


@constraint("detectable_format:title")
def has_title(text: str) -> str:
    """Return "" if the response has a title in double angular brackets; otherwise the problem."""
    titles = [line.partition("<<")[2].rpartition(">>")[0] for line in text.split("\n")]
    return unless(any(title.strip("<> \t") for title in titles), "there is no title in << >>")


@constraint("combination:two_responses")
def two_responses(text: str) -> str:
    """Return "" if the response has two different answers, separated by six asterisks; otherwise the problem."""
    parts = [part.strip() for part in text.split("******")]
    answers = [part for part in parts if part]
    if not all(parts[1:-1]):
        return "an empty answer between two separators ******"
    problem = compare(len(answers), "exactly", 2, "answers separated by ******")
    return problem or unless(answers[0] != answers[1], "both answers are equal")


@constraint("combination:repeat_prompt")
def repeats_prompt(text: str, prompt_to_repeat: str) -> str:
    """Return "" if the response begins with the request; otherwise the problem. Case is ignored."""
    begins = text.strip().lower().startswith(prompt_to_repeat.strip().lower())
    return unless(begins, "the response does not begin with the request")


@constraint("startend:end_checker")
def ends_with_phrase(text: str, end_phrase: str) -> str:
    """Return "" if the response ends with the phrase; otherwise the problem. Case is ignored.

    Quotation marks around the response are allowed.
    """
    ends = text.strip().strip(DOUBLE_QUOTES).lower().endswith(end_phrase.strip().lower())
    return unless(ends, f"the response ends with {text.strip()[-60:]!r}")


@constraint("startend:quotation")
def in_quotation_marks(text: str) -> str:
    """Return "" if the whole response is in double quotation marks; otherwise the problem."""
    text = text.strip()
    inside = text[1:-1].strip()
    wrapped = bool(inside) and text[0] in DOUBLE_QUOTES and text[-1] in DOUBLE_QUOTES
    return unless(wrapped, "the response is not in double quotation marks")


@constraint("change_case:capital_word_frequency")
def capital_words(text: str, capital_frequency: int, capital_relation: str) -> str:
    """Return "" if the response has the required number of words in capital letters; otherwise the problem."""
    found = [token for token in tokens(text) if token.isupper()]
    return compare(len(found), capital_relation, capital_frequency, "words in capital letters")


@constraint("change_case:english_capital")
def english_capitals(text: str) -> str:
    """Return "" if the response is in English and has no lower-case letter; otherwise the problem."""
    return all_upper(text) or not_in_other_language(text, "en")


@constraint("change_case:english_lowercase")
def english_lowercase(text: str) -> str:
    """Return "" if the response is in English and has no capital letter; otherwise the problem."""
    return all_lower(text) or not_in_other_language(text, "en")


def all_upper(text: str) -> str:
    """Return why ``text`` is not in capital letters; "" if it is."""
    return unless(text.isupper(), "the response is not in capital letters")


def all_lower(text: str) -> str:
    """Return why ``text`` is not in lower-case letters; "" if it is."""
    return unless(text.islower(), "the response is not in lower-case letters")


@constraint("punctuation:no_comma")
def no_comma(text: str) -> str:
    """Return "" if the response has no comma; otherwise the problem."""
    commas = re.findall(r"[,，､、،﹐﹑]", text)
    return unless(not commas, f"{len(commas)} commas")
