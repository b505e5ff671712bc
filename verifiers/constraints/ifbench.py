"""Checks of the 58 kinds of IFBench (Pyatkin et al. 2025, arXiv:2507.02833)."""

from __future__ import annotations

import csv
import re
import string
import unicodedata
from collections import Counter
from datetime import date
from itertools import pairwise

from bestofn.verifiers.constraints.catalogue import UndecidedError, between, compare, constraint, unless
from bestofn.verifiers.constraints.texts import (
    BEFORE_NOUN,
    CAPITALS,
    CONJUNCTIONS,
    NO_VERBS,
    PERSON_NAMES,
    PRONOUNS,
    STOP_WORDS,
    VERBS,
    bare_words,
    counted_words,
    lines,
    sentences,
    stripped_words,
    syllables,
    tokens,
)

JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
INTERROBANGS = ("?!", "!?", "‽")


@constraint("count:word_count_range")
def word_count_range(text: str, min_words: int, max_words: int) -> str:
    """Return "" if the number of words is from ``min_words`` to ``max_words``; otherwise the problem."""
    return between(len(counted_words(text)), "words", min_words, max_words)


@constraint("count:unique_word_count")
def unique_words(text: str, N: int) -> str:
    """Return "" if the response has at least N different words; otherwise the problem."""
    different = {part.strip(string.punctuation) for part in text.lower().split()}
    return compare(len(different), "at least", N, "different words")


@constraint("count:conjunctions")
def conjunctions(text: str, small_n: int) -> str:
    """Return "" if the response has at least ``small_n`` different coordinating conjunctions; otherwise the problem."""
    used = {word.lower() for word in stripped_words(text)} & CONJUNCTIONS
    return compare(len(used), "at least", small_n, "different coordinating conjunctions")


@constraint("count:person_names")
def person_names(text: str, N: int) -> str:
    """Return "" if the response has at least N different names from the instruction's list; otherwise the problem."""
    used = {name for name in PERSON_NAMES if re.search(rf"\b{name}\b", text)}
    return compare(len(used), "at least", N, "different names of the list")


@constraint("count:numbers")
def numbers(text: str, N: int) -> str:
    """Return "" if the response has exactly N numbers; otherwise the problem.

    Punctuation inside a number, as in 1,000.5, does not divide it.
    """
    digits = re.findall(r"\d+", text.translate(str.maketrans("", "", string.punctuation)))
    return compare(len(digits), "exactly", N, "numbers")


@constraint("count:pronouns")
def pronouns(text: str, N: int) -> str:
    """Return "" if the response has at least N pronouns; otherwise the problem."""
    used = [token for token in tokens(text.lower().replace("/", " ")) if token in PRONOUNS]
    return compare(len(used), "at least", N, "pronouns")


@constraint("count:punctuation")
def all_punctuation(text: str) -> str:
    """Return "" if the response has each of the marks . , ! ? ; : and an interrobang; otherwise the problem.

    The ! and ? of the interrobang itself do not count.
    """
    mark = next((mark for mark in INTERROBANGS if mark in text), "")
    if not mark:
        return "there is no interrobang"
    rest = text.replace(mark, "", 1)
    missing = [char for char in ".,!?;:" if char not in rest]
    return unless(not missing, f"missing: {' '.join(missing)}")


@constraint("count:keywords_multiple")
def keywords_multiple(text: str, keyword1: str, keyword2: str, keyword3: str, keyword4: str, keyword5: str) -> str:
    """Return "" if the five keywords occur 1, 2, 3, 5 and 7 times, in this order; otherwise the problem."""
    for keyword, times in zip((keyword1, keyword2, keyword3, keyword4, keyword5), (1, 2, 3, 5, 7), strict=True):
        problem = compare(text.lower().count(keyword.strip().lower()), "exactly", times, f"times {keyword!r}")
        if problem:
            return problem
    return ""


@constraint("count:words_japanese")
def nth_word_japanese(text: str, N: int) -> str:
    """Return "" if every N-th word is in Japanese; otherwise the problem. Numbers and punctuation are not checked."""
    for place, part in enumerate(text.split(), 1):
        word = part.strip(string.punctuation)
        if place % N == 0 and word and not word.isdigit() and not JAPANESE.search(word):
            return f"word {place}, {word!r}, is not in Japanese"
    return ""


@constraint("ratio:stop_words")
def stop_words(text: str, percentage: float) -> str:
    """Return "" if at most ``percentage`` % of the words are stop words; otherwise the problem."""
    used = counted_words(text)
    if not used:
        return "the response has no words"
    share = 100 * sum(word.lower() in STOP_WORDS for word in used) / len(used)
    return unless(share <= percentage, f"{share:.1f} % stop words; expected at most {percentage:g} %")


@constraint("ratio:sentence_type")
def sentence_types(text: str) -> str:
    """Return "" if the response has exactly two statements per question; otherwise the problem.

    A statement ends with a full stop.
    """
    statements, questions, _ = _by_mark(text)
    return unless(statements == 2 * questions, f"{statements} statements and {questions} questions; expected 2 to 1")


@constraint("ratio:sentence_balance")
def sentence_balance(text: str) -> str:
    """Return "" if the numbers of statements, questions and exclamations are equal; otherwise the problem."""
    counts = _by_mark(text)
    return unless(len(set(counts)) == 1, "{} statements, {} questions, {} exclamations".format(*counts))


def _by_mark(text: str) -> tuple[int, int, int]:
    ends = [sentence.rstrip("\"'”’»)]}*")[-1:] for sentence in sentences(text)]
    return ends.count("."), ends.count("?"), ends.count("!")


@constraint("ratio:overlap")
def trigram_overlap(text: str, reference_text: str, percentage: float) -> str:
    """Return "" if the required share of the response's trigrams occurs in ``reference_text``; otherwise the problem.

    A trigram is three consecutive characters. The required share is ``percentage`` ± 2 percentage points.
    """
    own, others = ({part[at : at + 3] for at in range(len(part) - 2)} for part in (text, reference_text))
    if not own:
        return "the response has no trigram"
    share = 100 * len(own & others) / len(own)
    return unless(
        abs(share - percentage) <= 2, f"{share:.1f} % of the trigrams are shared; expected {percentage:g} ± 2 %"
    )


@constraint("ratio:sentence_words")
def equal_sentences(text: str) -> str:
    """Return "" if the response is three sentences of equal length without a common word; otherwise the problem.

    The length is the number of characters.
    """
    parts = sentences(text)
    problem = compare(len(parts), "exactly", 3, "sentences")
    if problem:
        return problem
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        return f"the sentences have {', '.join(map(str, sorted(lengths)))} characters"
    used = [set(bare_words(part.lower())) for part in parts]
    repeated = (used[0] & used[1]) | (used[1] & used[2]) | (used[0] & used[2])
    return unless(not repeated, f"several sentences have {', '.join(sorted(repeated)[:3])}")


# Kinds ``format`` and ``repeat``.

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


# Kind ``custom``.

QUESTION = re.compile(r"Question \d+[.|):;]?\s*")
OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
QUOTED = re.compile(r'"[^"]*[^\w\s"][^"]*"')


@constraint("custom:multiples")
def multiples_of_seven(text: str) -> str:
    """Return "" if the numbers in the response are the multiples of 7 from 14 to 49; otherwise the problem."""
    expected = [str(number) for number in range(14, 51, 7)]
    return unless(re.findall(r"\d+", text) == expected, f"the numbers are not {', '.join(expected)}")


@constraint("custom:mcq_count_length")
def growing_questions(text: str) -> str:
    """Return "" if the response has four questions with five options each; otherwise the problem.

    Each question must be longer than the one before.
    """
    if not text.startswith("Question"):
        return "the response does not begin with 'Question'"
    parts = [part.strip().split("\n") for part in QUESTION.split(text) if part.strip()]
    problem = compare(len(parts), "exactly", 4, "questions")
    lengths = []
    for part in parts:
        options = [number for number, line in enumerate(part) if OPTION.match(line.strip())]
        problem = problem or compare(len(options), "exactly", 5, "options")
        lengths.append(len(" ".join(line.strip() for line in part[: options[0] if options else None])))
    return problem or unless(lengths == sorted(set(lengths)), f"the questions have {lengths} characters")


@constraint("custom:reverse_newline")
def countries_in_reverse(text: str) -> str:
    """Return "" if the response has at least 52 lines from Zimbabwe on, in reverse order; otherwise the problem.

    The instruction asks for the countries of Africa in reverse alphabetical order, one per line.
    """
    rows = [bare for line in text.split("\n") if (bare := line.strip(string.punctuation + " "))]
    start = next((place for place, row in enumerate(rows) if "Zimbabwe" in row), len(rows))
    listed = [_ascii(row) for row in rows[start:]]
    problem = compare(len(listed), "at least", 52, "lines from Zimbabwe on")
    return problem or unless(listed == sorted(listed, reverse=True), "the lines are not in reverse order")


@constraint("custom:word_reverse")
def words_in_reverse(text: str) -> str:
    """Return "" if the words of the response in reverse order contain "bald eagle"; otherwise the problem.

    The instruction asks for a sentence about the bald eagle with its words in reverse order.
    """
    bare = text.lower().translate(str.maketrans("", "", string.punctuation))
    reverse = " ".join(reversed(bare.split()))
    return unless("bald eagle" in reverse, "the reversed response does not name the bald eagle")


@constraint("custom:character_reverse")
def letters_in_reverse(text: str) -> str:
    """Return "" if the response contains "elgae dlab"; otherwise the problem.

    The instruction asks for a sentence about the bald eagle with its letters in reverse order.
    """
    return unless("elgae dlab" in text.lower(), "the response does not have 'elgae dlab'")


@constraint("custom:sentence_alphabet")
def alphabet_of_sentences(text: str) -> str:
    """Return "" if the response has 26 sentences that begin with A, B, C, … Z in order; otherwise the problem."""
    letters = "".join(sentence[0].lower() for sentence in sentences(text))
    return unless(letters == string.ascii_lowercase, f"the sentences begin with {letters[:40]!r}")


@constraint("custom:european_capitals_sort")
def capitals_by_latitude(text: str) -> str:
    """Return "" if the response is the list ``CAPITALS``, separated by commas; otherwise the problem.

    ``CAPITALS`` has the European capitals north of 45 degrees, from north to south.
    """
    listed = [part.strip() for part in _ascii(text).split(",") if part.strip()]
    return unless(listed == CAPITALS, f"{len(listed)} capitals; expected {', '.join(CAPITALS)}")


@constraint("custom:csv_city")
def csv_of_cities(text: str) -> str:
    """Return "" if the response is CSV with seven rows and the columns of the instruction; otherwise the problem."""
    return _table(text, "ID Country City Year Count", 7, ",")


@constraint("custom:csv_special_character")
def csv_with_quoted_field(text: str) -> str:
    """Return "" if the response is CSV with 14 rows and the columns of the instruction; otherwise the problem.

    A field in quotation marks must contain a special character.
    """
    problem = _table(text, "ProductID Category Brand Price Stock", 14, ",")
    return problem or unless(QUOTED.search(text.split("\n", 1)[-1]), "no quoted field has a special character")


@constraint("custom:csv_quotes")
def csv_in_quotes(text: str) -> str:
    """Return "" if the response has three rows and the columns of the instruction; otherwise the problem.

    Tabs must separate the fields, and each field must be in double quotation marks.
    """
    problem = _table(text, "StudentID Subject Grade Semester Score", 3, "\t")
    if problem:
        return problem
    fields = [field.strip() for line in text.strip().split("\n") for field in line.split("\t")]
    bare = [field for field in fields if not re.fullmatch(r'".*"', field)]
    return unless(not bare, f"fields that are not in quotation marks: {', '.join(bare[:3])}")


@constraint("custom:date_format_list")
def dates_of_napoleon(text: str) -> str:
    """Return "" if the response is a list of dates from 1769 to 1821, the life of Napoleon; otherwise the problem.

    The dates must have the form YYYY-MM-DD and be separated by commas.
    """
    for part in map(str.strip, text.strip().split(",")):
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", part):
            return f"{part[:40]!r} is not a date YYYY-MM-DD"
        try:
            year = date.fromisoformat(part).year
        except ValueError:
            return f"there is no day {part}"
        if not 1769 <= year <= 1821:
            return f"{part} is not in the life of Napoleon"
    return ""


def _table(text: str, header: str, rows: int, delimiter: str) -> str:
    """Return why ``text`` is not a table with this header and number of rows; "" if it is."""
    table = [[field.strip() for field in row] for row in csv.reader(text.strip("\n").split("\n"), delimiter=delimiter)]
    if not table or table[0] != header.split():
        return f"the header is {table[0] if table else []}"
    problem = compare(len(table) - 1, "exactly", rows, "rows")
    width = len(header.split())
    return problem or unless(all(len(row) == width for row in table), f"a row does not have {width} fields")


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


# Kinds ``words`` and ``sentence``.

CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
PRIMES = frozenset({2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97})


@constraint("words:alphabet")
def alphabet_loop(text: str) -> str:
    """Return "" if each word begins with the next letter of the alphabet; otherwise the problem.

    After "z", the next letter is "a".
    """
    first = [word[0] for word in bare_words(text.lower())]
    if not first or first[0] not in string.ascii_lowercase:
        return "the first word does not begin with a letter"
    for before, letter in pairwise(first):
        following = string.ascii_lowercase[(string.ascii_lowercase.index(before) + 1) % 26]
        if letter != following:
            return f"a word begins with {letter!r} after {before!r}; expected {following!r}"
    return ""


@constraint("words:vowel")
def three_vowels(text: str) -> str:
    """Return "" if the response is one paragraph with at most three different vowels; otherwise the problem."""
    if len(text.strip().split("\n")) > 1:
        return "the response has several paragraphs"
    used = set(text.lower()) & set("aeiou")
    return compare(len(used), "at most", 3, f"different vowels ({', '.join(sorted(used))})")


@constraint("words:consonants")
def consonant_clusters(text: str) -> str:
    """Return "" if each word contains two consecutive consonants; otherwise the problem."""
    without = [word for word in text.lower().split() if not CLUSTER.search(word)]
    return unless(not without, f"words without two consecutive consonants: {', '.join(without[:3])}")


@constraint("words:palindrome")
def palindromes(text: str) -> str:
    """Return "" if the response has at least ten palindromes of at least five characters; otherwise the problem."""
    found = [word for word in bare_words(text.lower()) if len(word) >= 5 and word == word[::-1]]
    return compare(len(found), "at least", 10, "palindromes of at least five characters")


@constraint("words:prime_lengths")
def prime_lengths(text: str) -> str:
    """Return "" if the length of each word is a prime number; otherwise the problem."""
    others = [word for word in bare_words(text) if len(word) not in PRIMES]
    return unless(not others, f"words whose length is not prime: {', '.join(others[:3])}")


@constraint("words:start_verb")
def starts_with_verb(text: str) -> str:
    """Return "" if the response begins with a verb; otherwise the problem.

    A word before an article or a pronoun also counts as a verb, as in "Prove that". Raises ``UndecidedError`` for other
    words that are not in the word lists.
    """
    first, second = [*(token.lower() for token in tokens(text)), "", ""][:2]
    if first in VERBS or (first.isalpha() and first not in NO_VERBS and second in BEFORE_NOUN):
        return ""
    if first in NO_VERBS or not first.isalpha():
        return f"the response begins with {first!r}"
    raise UndecidedError(f"it is not known whether {first!r} is a verb")


@constraint("words:repeats")
def few_repeats(text: str, small_n: int) -> str:
    """Return "" if no word occurs more than ``small_n`` times; otherwise the problem."""
    counts = Counter(bare_words(text.lower()))
    word, most = counts.most_common(1)[0] if counts else ("", 0)
    return compare(most, "at most", small_n, f"times {word!r}")


@constraint("words:odd_even_syllables")
def odd_even_syllables(text: str) -> str:
    """Return "" if words with odd and even numbers of syllables alternate; otherwise the problem.

    Syllables are estimated from the spelling.
    """
    parities = [(word, syllables(word) % 2) for word in bare_words(text.lower())]
    same = next(((one, other) for (one, a), (other, b) in pairwise(parities) if a == b), None)
    return unless(same is None, f"{' and '.join(same or ())!r} have both odd or both even numbers of syllables")


@constraint("words:last_first")
def last_word_is_next_first(text: str) -> str:
    """Return "" if each later sentence begins with the last word of the sentence before it; otherwise the problem."""
    used = [[word.lower() for word in stripped_words(sentence)] for sentence in sentences(text)]
    if not all(used):
        return "a sentence has no words"
    wrong = next(((one[-1], other[0]) for one, other in pairwise(used) if one[-1] != other[0]), None)
    return unless(
        wrong is None, f"a sentence ends with {(wrong or '??')[0]!r}, the next begins with {(wrong or '??')[1]!r}"
    )


@constraint("words:paragraph_last_first")
def paragraph_ends_as_it_begins(text: str) -> str:
    """Return "" if each line ends with the word that it begins with; otherwise the problem."""
    for line in lines(text):
        used = stripped_words(line.lower())
        if used and used[0] != used[-1]:
            return f"a paragraph begins with {used[0]!r} and ends with {used[-1]!r}"
    return ""


@constraint("words:no_consecutive")
def no_consecutive_letters(text: str) -> str:
    """Return "" if no two consecutive words begin with the same letter; otherwise the problem."""
    same = next((pair for pair in pairwise(bare_words(text.lower())) if pair[0][0] == pair[1][0]), None)
    return unless(same is None, f"{' '.join(same or ())!r} begin with the same letter")


@constraint("words:keywords_specific_position")
def keyword_at_position(text: str, keyword: str, n: int, m: int) -> str:
    """Return "" if the m-th word of the n-th sentence is the keyword; otherwise the problem."""
    parts = sentences(text)
    used = [token for token in tokens(parts[n - 1]) if token[0].isalnum()] if 0 < n <= len(parts) else []
    if not 0 < m <= len(used):
        return f"there is no word {m} in sentence {n}"
    return unless(used[m - 1].lower() == keyword.strip().lower(), f"word {m} of sentence {n} is {used[m - 1]!r}")


@constraint("words:words_position")
def keyword_at_both_ends(text: str, keyword: str) -> str:
    """Return "" if the second word and the second to last word are the keyword; otherwise the problem."""
    used = [token.lower() for token in tokens(text)]
    used = used[:-1] if used and used[-1] in string.punctuation else used
    if len(used) < 2:
        return "the response has fewer than two words"
    places = (used[1], used[-2])
    return unless(set(places) == {keyword.strip().lower()}, f"the second and the second to last word are {places}")


@constraint("sentence:alliteration_increment")
def more_alliteration(text: str) -> str:
    """Return "" if each sentence has more alliterative words than the one before; otherwise the problem.

    Alliterative words are neighbours that begin with the same letter.
    """
    counts = [_alliterative(sentence) for sentence in sentences(text)]
    grows = all(one < other for one, other in pairwise(counts))
    return unless(grows, f"alliterative words per sentence: {', '.join(map(str, counts))}")


def _alliterative(sentence: str) -> int:
    """Return the number of words that begin with the same letter as a neighbouring word."""
    first = [word[0] for part in sentence.lower().split() if (word := part.lstrip(string.punctuation))]
    same = [one == other for one, other in pairwise(first)]
    return sum(same) + sum(one and not before for before, one in pairwise([False, *same]))


@constraint("sentence:increment")
def more_words(text: str, small_n: int) -> str:
    """Return "" if each sentence has exactly ``small_n`` words more than the one before; otherwise the problem."""
    counts = [len(bare_words(sentence)) for sentence in sentences(text)]
    grows = all(other - one == small_n for one, other in pairwise(counts))
    return unless(grows, f"words per sentence: {', '.join(map(str, counts))}; expected {small_n} more each time")


@constraint("sentence:keyword")
def keyword_in_sentence(text: str, word: str, N: int) -> str:
    """Return "" if the N-th sentence has the keyword; otherwise the problem."""
    parts = sentences(text)
    if len(parts) < N:
        return f"there are {len(parts)} sentences; expected at least {N}"
    found = re.search(rf"(?i)\b{re.escape(word)}\b", parts[N - 1])
    return unless(found, f"sentence {N} does not have {word!r}")
