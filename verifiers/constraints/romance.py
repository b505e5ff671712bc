"""Checks of the constraints of M-IFEval for Spanish and French."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bestofn.verifiers.constraints.catalogue import constraint
from bestofn.verifiers.constraints.ifeval import all_lower, all_upper
from bestofn.verifiers.constraints.languages import not_in_other_language
from bestofn.verifiers.constraints.relations import compare, unless
from bestofn.verifiers.constraints.texts import sentences, words


@constraint("change_case:spanish_capital")
def spanish_capitals(text: str) -> str:
    """Return "" if the response is in Spanish and has no lower-case letter; otherwise the problem."""
    return all_upper(text) or not_in_other_language(text, "es")


@constraint("change_case:spanish_lowercase")
def spanish_lowercase(text: str) -> str:
    """Return "" if the response is in Spanish and has no capital letter; otherwise the problem."""
    return all_lower(text) or not_in_other_language(text, "es")


@constraint("change_case:french_capital")
def french_capitals(text: str) -> str:
    """Return "" if the response is in French and has no lower-case letter; otherwise the problem."""
    return all_upper(text) or not_in_other_language(text, "fr")


@constraint("change_case:french_lowercase")
def french_lowercase(text: str) -> str:
    """Return "" if the response is in French and has no capital letter; otherwise the problem."""
    return all_lower(text) or not_in_other_language(text, "fr")


@constraint("punctuation:question_marks")
def question_in_spanish(text: str) -> str:
    """Return "" if the response has a question with both marks: ¿ and ?; otherwise the problem."""
    return unless(re.search(r"¿[^?¿]*\?", text), "there is no question in ¿ ?")


@constraint("punctuation:exclamation_marks")
def exclamation_in_spanish(text: str) -> str:
    """Return "" if the response has an exclamation with both marks: ¡ and !; otherwise the problem."""
    return unless(re.search(r"¡[^!¡]*!", text), "there is no exclamation in ¡ !")


@constraint("special_character:enie")
def words_with_enie(text: str, let_frequency: int, relation: str = "exactly") -> str:
    """Return "" if the response has the required number of words with ñ; otherwise the problem."""
    return compare(_words_with("ñ", text), relation, let_frequency, "words with ñ")


@constraint("special_character:dieresis")
def words_with_dieresis(text: str, let_frequency: int, relation: str = "exactly") -> str:
    """Return "" if the response has the required number of words with ü; otherwise the problem."""
    return compare(_words_with("ü", text), relation, let_frequency, "words with ü")


@constraint("special_character:tildes")
def words_with_accent(text: str, num_words: int, relation: str) -> str:
    """Return "" if the response has the required number of words with an acute accent; otherwise the problem."""
    return compare(_words_with("áéíóú", text), relation, num_words, "words with an accent")


def _words_with(letters: str, text: str) -> int:
    return sum(any(letter in letters for letter in word.lower()) for word in words(text))


@constraint("detectable_content:informal_address")
def informal_address(text: str) -> str:
    """Return "" if the response addresses the reader more often with tu than with vous; otherwise the problem."""
    informal = len(re.findall(r"(?i)\b(?:tu|te|toi|ton|ta|tes|t['’])\b", text))
    formal = len(re.findall(r"(?i)\b(?:vous|votre|vos|vôtres?)\b", text))
    return unless(informal > formal, f"{informal} words address the reader with tu, {formal} with vous")


@constraint("detectable_content:no_digits")
def no_digits(text: str) -> str:
    """Return "" if the response has no Arabic digits; otherwise the problem."""
    return unless(not re.search(r"[0-9]", text), "the response has digits")


@constraint("special_character:ethel_or_cedilla")
def no_forbidden_character(text: str, forbidden_char: str) -> str:
    """Return "" if the response does not contain ``forbidden_char``; otherwise the problem. Case is ignored."""
    return unless(forbidden_char.lower() not in text.lower(), f"the response has {forbidden_char!r}")


@constraint("special_character:accents")
def accents_added(text: str, word_to_accentuate: Mapping[str, str]) -> str:
    """Return "" if the words of ``word_to_accentuate`` have their accents; otherwise the problem.

    ``word_to_accentuate`` maps a word without accents to the word with accents. No word may occur without accents, and
    at least one must occur with accents.
    """
    used = {word.lower() for word in words(text)}
    missed = [plain for plain, accented in word_to_accentuate.items() if accented and plain.lower() in used]
    if missed:
        return f"without accents: {', '.join(missed)}"
    written = any(accented and accented.lower() in used for accented in word_to_accentuate.values())
    return unless(written, "none of the words occurs with its accents")


@constraint("fr:detectable_format:title")
def has_french_title(text: str) -> str:
    """Return "" if the response has a title between ## and ##; otherwise the problem."""
    titles = re.findall(r"##([^\n#]+)##", text)
    return unless(any(title.strip() for title in titles), "there is no title in ## ##")


@constraint("es:length_constraints:number_sentences")
def number_of_spanish_sentences(text: str, num_sentences: int, relation: str) -> str:
    """Return "" if the response has the required number of sentences; otherwise the problem.

    List numbers are not sentences.
    """
    return compare(len(sentences(re.sub(r"(?m)^[^\S\n]*\d+\.\s", "", text))), relation, num_sentences, "sentences")


@constraint("es:startend:end_checker")
def ends_with_spanish_phrase(text: str, end_phrase: str) -> str:
    """Return "" if the response ends with the phrase; otherwise the problem.

    Case is ignored. A punctuation mark after the phrase is allowed.
    """
    ends = text.strip().strip('"').rstrip(".!").lower().endswith(end_phrase.strip().rstrip(".!").lower())
    return unless(ends, f"the response ends with {text.strip()[-60:]!r}")
