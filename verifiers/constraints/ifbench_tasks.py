"""Checks of the kind ``custom`` of IFBench (Pyatkin et al. 2025, arXiv:2507.02833)."""

from __future__ import annotations

import csv
import re
import string
import unicodedata
from datetime import date

from bestofn.verifiers.constraints.catalogue import constraint
from bestofn.verifiers.constraints.relations import compare, unless
from bestofn.verifiers.constraints.texts import sentences
from bestofn.verifiers.constraints.word_lists import CAPITALS

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
