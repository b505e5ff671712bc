"""Checks of the constraints of M-IFEval for Japanese, Spanish and French."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from bestofn.verifiers.constraints.catalogue import UndecidedError, compare, constraint, unless
from bestofn.verifiers.constraints.ifeval import all_lower, all_upper
from bestofn.verifiers.constraints.languages import not_in_other_language
from bestofn.verifiers.constraints.texts import sentences, words

KANJI = "\u4e00-\u9faf々"
HIRAGANA = "ぁ-ゖ"
KATAKANA = "ァ-ヺｦ-ﾟ"
SENTENCE_END = re.compile(r"[。！？!?\n]+")


@constraint("length_constraints:number_letters")
def number_of_characters(text: str, num_letters: int, relation: str) -> str:
    """Return "" if the response has the required number of characters; otherwise the problem."""
    return compare(len(text.strip()), relation, num_letters, "characters")


@constraint("letters:kanji")
def number_of_kanji(text: str, kanji_limit: int, relation: str) -> str:
    """Return "" if the response has the required number of kanji; otherwise the problem."""
    return compare(len(re.findall(f"[{KANJI}]", text)), relation, kanji_limit, "kanji")


@constraint("letters:furigana")
def kanji_with_furigana(text: str) -> str:
    """Return "" if each run of kanji is followed by its reading in full-width brackets; otherwise the problem."""
    runs = re.findall(f"[{KANJI}]+(（[ぁ-ん]+）)?", text)
    return unless(all(runs), f"{runs.count('')} runs of kanji have no reading in （ ）")


@constraint("letters:kansuuji")
def numbers_in_kanji(text: str) -> str:
    """Return "" if the response has no Arabic digits; otherwise the problem."""
    return unless(not re.search(r"[0-9０-９]", text), "the response has Arabic digits")


@constraint("letters:no_hiragana")
def no_hiragana(text: str) -> str:
    """Return "" if the response has no hiragana; otherwise the problem."""
    return unless(not re.search(f"[{HIRAGANA}]", text), "the response has hiragana")


@constraint("letters:no_katakana")
def no_katakana(text: str) -> str:
    """Return "" if the response has no katakana; otherwise the problem."""
    return unless(not re.search(f"[{KATAKANA}]", text), "the response has katakana")


@constraint("letters:hiragana_only")
def hiragana_only(text: str) -> str:
    """Return "" if all letters of the response are hiragana; otherwise the problem."""
    return _only(text, lambda char: re.match(f"[{HIRAGANA}ー]", char) is not None, "hiragana")


@constraint("letters:katakana_only")
def katakana_only(text: str) -> str:
    """Return "" if all letters of the response are katakana; otherwise the problem."""
    return _only(text, lambda char: re.match(f"[{KATAKANA}ー・]", char) is not None, "katakana")


def _only(text: str, allowed: Callable[[str], bool], script: str) -> str:
    others = [char for char in text if unicodedata.category(char).startswith("L") and not allowed(char)]
    return unless(not others, f"{len(others)} letters are not {script}, such as {''.join(others[:3])}")


@constraint("punctuation:no_period")
def no_full_stop(text: str) -> str:
    """Return "" if the response has no 。; otherwise the problem."""
    return unless("。" not in text, f"{text.count('。')} times 。")


@constraint("ja:punctuation:no_comma")
def no_japanese_comma(text: str) -> str:
    """Return "" if the response has no 、; otherwise the problem."""
    return unless("、" not in text, f"{text.count('、')} times 、")


@constraint("ja:startend:quotation")
def in_corner_brackets(text: str) -> str:
    """Return "" if the whole response is in corner brackets; otherwise the problem."""
    text = text.strip()
    return unless(len(text) > 1 and text[0] == "「" and text[-1] == "」", "the response is not in 「 」")


@constraint("ja:startend:end_checker")
def ends_with_japanese_phrase(text: str, end_phrase: str) -> str:
    """Return "" if the response ends with the phrase; otherwise the problem.

    Corner brackets around the response are allowed.
    """
    ends = text.strip().strip("」』").endswith(end_phrase.strip().strip("」』"))
    return unless(ends, f"the response ends with {text.strip()[-40:]!r}")


@constraint("startend:sentence_unified_end")
def sentences_end_alike(text: str, ending: str) -> str:
    """Return "" if each sentence ends with the word; otherwise the problem."""
    parts = [part.strip() for part in SENTENCE_END.split(text) if re.search(r"\w", part)]
    others = [part for part in parts if not part.endswith(ending)]
    return unless(not others, f"{len(others)} sentences do not end with {ending!r}")


@constraint("ja:detectable_format:title")
def has_japanese_title(text: str) -> str:
    """Return "" if the response has a title in double corner brackets; otherwise the problem."""
    titles = [line.partition("『")[2].rpartition("』")[0] for line in text.split("\n")]
    return unless(any(title.strip("『』 \u3000") for title in titles), "there is no title in 『 』")


@constraint("ja:detectable_format:number_highlighted_sections")
def number_of_japanese_highlights(text: str, num_highlights: int, relation: str = "at least") -> str:
    """Return "" if the response has the required number of highlighted parts in 《 》; otherwise the problem."""
    return compare(len(re.findall(r"《[^\n《》]+》", text)), relation, num_highlights, "parts in 《 》")


@constraint("ja:detectable_format:number_bullet_lists")
def number_of_japanese_bullets(text: str, num_bullets: int) -> str:
    """Return "" if the response has exactly ``num_bullets`` bullets ・; otherwise the problem."""
    return compare(len(re.findall(r"(?m)^[^\S\n]*・[^・].*$", text)), "exactly", num_bullets, "bullets ・")


@constraint("detectable_format:number_numbered_lists")
def number_of_numbered_items(text: str, num_items: int) -> str:
    """Return "" if the response has exactly ``num_items`` numbered items, such as "1. item"; otherwise the problem."""
    return compare(len(re.findall(r"(?m)^[^\S\n]*\d+\.\s.*$", text)), "exactly", num_items, "numbered items")


@constraint("ja:detectable_format:multiple_sections")
def number_of_japanese_sections(text: str, section_spliter: str, num_sections: int) -> str:
    """Return "" if the response has at least ``num_sections`` section headings such as 第1章; otherwise the problem.

    ``section_spliter`` is the text after the number (章). The number of a heading is in digits or in kanji.
    """
    found = re.findall(rf"[0-9０-９一二三四五六七八九十百]\s?{re.escape(section_spliter)}", text)
    return compare(len(found), "at least", num_sections, f"sections with {section_spliter!r} and a number")


@constraint("ja:length_constraints:nth_paragraph_first_word")
def first_word_of_japanese_paragraph(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> str:
    """Return "" if the n-th of ``num_paragraphs`` paragraphs begins with ``first_word``; otherwise the problem.

    Blank lines separate the paragraphs.
    """
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    problem = compare(len(parts), "exactly", num_paragraphs, "paragraphs")
    if problem or nth_paragraph > len(parts):
        return problem or f"there is no paragraph {nth_paragraph}"
    paragraph = parts[nth_paragraph - 1]
    return unless(paragraph.startswith(first_word), f"paragraph {nth_paragraph} begins with {paragraph[:10]!r}")


@constraint("detectable_format:nominal_ending")
def nominal_endings(text: str, count: int) -> str:
    """Return "" if at least ``count`` sentences end with a noun; otherwise the problem.

    A sentence that ends with kanji or katakana ends with a noun. Raises ``UndecidedError`` if the result depends on
    sentences that end with hiragana.
    """
    parts = [part.strip(' 」』）)"*') for part in SENTENCE_END.split(text)]
    ends = [part[-1] for part in parts if part]
    nouns = sum(re.match(f"[{KANJI}{KATAKANA}ー]", end) is not None for end in ends)
    if nouns >= count:
        return ""
    if nouns + sum(re.match(f"[{HIRAGANA}]", end) is not None for end in ends) >= count and nouns:
        raise UndecidedError("some sentences end with hiragana, so it is not known whether they end with a noun")
    return compare(nouns, "at least", count, "sentences that end with a noun")


# Spanish and French.


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
