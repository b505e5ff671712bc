"""Compares an answer with the accepted answers: a pass or a fail only if both sides were understood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bestofn.verifiers.short_answer import dates, formulas, quantities
from bestofn.verifiers.short_answer.finding import Finding
from bestofn.verifiers.short_answer.mentions import Mention, Text, mentions, scattered
from bestofn.verifiers.short_answer.names import is_acronym, names, related, same_person
from bestofn.verifiers.short_answer.questions import Question
from bestofn.verifiers.short_answer.references import TITLES, TRUTH_WORDS, Reference
from bestofn.verifiers.short_answer.sentences import Sentences, admits_ignorance, introduces
from bestofn.verifiers.short_answer.tokens import FUNCTION_WORDS, Token, plain, separated, tokens

MANY = 4  # with this many accepted answers, the usual other names are among them
SHORT = 6  # content words of an answer that is only the answer, with nothing around it


@dataclass(frozen=True, slots=True)
class Case:
    """The two sides of a comparison: the accepted answers, and the text that answers the question."""

    references: tuple[Reference, ...]
    question: Question
    text: Text
    sentences: Sentences

    @property
    def new_words(self) -> list[Token]:
        """The words of the answer that are not in the question and are not function words."""
        return [token for token in self.text.tokens if self.question.new(token.form)]

    def first(self) -> tuple[int, int]:
        """The position of the sentence that answers the question."""
        return self.sentences.span(self.sentences.first)


def decide(references: Sequence[Reference], asked: Question, answer: str) -> Finding:
    """Return the finding of the first rule that decides. If no rule decides, the finding is ``abstain``."""
    written = plain(answer)
    finding = _first_finding(_case(references, asked, written), written)
    if finding.outcome == "fail" and admits_ignorance(written):
        return Finding("abstain", "the answer says that it does not know")
    return finding


def _first_finding(case: Case, written: str) -> Finding:
    for rule in (_equal, _formula, _truth, _date, _quantity, _option, _mentioned, _person):
        finding = rule(case)
        if finding is not None:
            return finding
    parted = separated(written)
    if parted != written:
        finding = _mentioned(_case(case.references, case.question, parted))
        if finding is not None:
            return finding
    return _another(case) or Finding("abstain", "the answer and the reference could not be compared")


def _case(references: Sequence[Reference], asked: Question, written: str) -> Case:
    return Case(tuple(references), asked, Text.of(written, tokens(written)), Sentences(written, asked.words))


def _equal(case: Case) -> Finding | None:
    given = [token.form for token in case.text.tokens]
    bare = [form for form in given if form not in TITLES]
    while len(given) > 1 and given[0] in FUNCTION_WORDS:
        given.pop(0)
    for reference in case.references:
        if any(list(spelling) in (given, bare) for spelling in reference.spellings):
            if _lacks_parts(case, [Mention(0, len(case.text.text))]):
                return Finding("abstain", "the question asks for several things, and the answer has only some")
            return Finding("pass", "equal", case.text.text[:200], reference.text)
    return None


def _formula(case: Case) -> Finding | None:
    wanted = {reference.formula for reference in case.references if reference.formula}
    if len(wanted) != len({reference.text for reference in case.references}):
        return None
    given = formulas.formula(case.text.text)
    if given is None:
        return None
    if given in wanted:
        return Finding("pass", "same formula", given, given)
    if any(formulas.atoms(given) == formulas.atoms(other or "") for other in wanted):
        return Finding("abstain", "the same atoms in another order", given)
    return Finding("fail", "another formula", given, case.references[0].text)


def _truth(case: Case) -> Finding | None:
    wanted = {reference.truth for reference in case.references}
    if None in wanted or len(wanted) != 1 or not case.text.tokens:
        return None
    given = TRUTH_WORDS.get(case.text.tokens[0].word.lower())
    stated = {TRUTH_WORDS[token.word.lower()] for token in case.text.tokens if token.word.lower() in TRUTH_WORDS}
    if given is None or len(stated) > 1:
        return Finding("abstain", "no clear yes or no")
    same = given in wanted
    return Finding("pass" if same else "fail", "same truth value" if same else "another truth value", str(given))


# dates and numbers ----------------------------------------------------------------------------------------------------


def _date(case: Case) -> Finding | None:
    """Compare the dates of the answer with the references, if all references are dates."""
    wanted = [date for reference in case.references if (date := _as_date(reference, case.question)) is not None]
    if not wanted:
        return None
    whole = len(wanted) == len(case.references)
    given = [date for date in dates.dates(case.text.text) if not _in_question(case, date.start, date.end)]
    asserted = [date for date in given if case.sentences.status(date.start, date.end) == "asserted"]
    best = [dates.best_relation(wanted, date) for date in asserted]
    for date, closest in zip(asserted, best, strict=True):
        if closest in ("same", "finer"):
            return _confirmed_date(case, wanted, date, asserted)
    if not whole or not asserted or any(closest != "differs" for closest in best):
        return Finding("abstain", "the dates cannot be compared") if whole and best else None
    if len(asserted) < len(given) or dates.has_doubtful_year(case.text.text):
        return Finding("abstain", "a date that is not asserted")
    if case.question.kind == "date" or len(case.new_words) <= SHORT:
        return Finding("fail", "another date", _words(case, asserted[0].start, asserted[0].end), case.references[0].text)
    return None


def _as_date(reference: Reference, question: Question) -> dates.Date | None:
    if reference.date is not None:
        return reference.date
    if question.kind == "date" and reference.quantity is not None:
        return dates.only_date(f"{reference.quantity.value:.0f}")
    return None


def _confirmed_date(
    case: Case, wanted: Sequence[dates.Date], date: dates.Date, asserted: Sequence[dates.Date]
) -> Finding:
    """Return a pass, unless another reference contradicts the date or the answer also states another one."""
    words = _words(case, date.start, date.end)
    relations = [dates.relation(other, date) for other in wanted]
    if "same" not in relations and "differs" in relations:
        return Finding("abstain", "the date agrees with one reference and contradicts another", words)
    first = [other for other in asserted if case.sentences.number(other.start) == case.sentences.first]
    if first and date not in first and all(dates.best_relation(wanted, other) == "differs" for other in first):
        return Finding("abstain", "the answer begins with another date", words)
    others = [other for other in asserted if dates.best_relation(wanted, other) == "differs"]
    number = case.sentences.number(date.start)
    if sum(case.sentences.number(other.start) == number for other in others) > 1 and len(wanted) == 1:
        return Finding("abstain", "the answer lists several dates", words)
    if any(case.sentences.contrasts(other.start) and other.start > date.end for other in others):
        return Finding("abstain", "the answer goes on to another date", words)
    return Finding("pass", "same date", words, case.references[0].text)


def _quantity(case: Case) -> Finding | None:
    """Compare the numbers of the answer with the references that are numbers."""
    wanted = [reference.quantity for reference in case.references if reference.quantity and not reference.date]
    if not wanted:
        return None
    given = [
        quantity
        for quantity in quantities.quantities(case.text.text)
        if not _in_question(case, quantity.start, quantity.end) and not _in_date(case, quantity)
    ]
    relations = [{quantities.relation(ours, theirs) for ours in wanted} for theirs in given]
    pairs = list(zip(given, relations, strict=True))
    slots = [(quantity, found) for quantity, found in pairs if _is_slot(case, quantity, given, wanted)]
    same = [quantity for quantity, found in slots if "same" in found]
    others = [quantity for quantity, found in slots if found == {"differs"} and not quantity.ordinal]
    if same and (not others or case.question.several > 1):
        return Finding("pass", "same quantity", _words(case, same[0].start, same[0].end), case.references[0].text)
    if any("same" in found for _, found in pairs):
        return Finding("abstain", "the number occurs, but it is not clear whether it is the answer")
    if others and len(wanted) == len(case.references):
        words = _words(case, others[0].start, others[0].end)
        return Finding("fail", "another quantity", words, case.references[0].text)
    return None


def _is_slot(
    case: Case,
    quantity: quantities.Quantity,
    given: Sequence[quantities.Quantity],
    wanted: Sequence[quantities.Quantity],
) -> bool:
    """Return whether a number answers the question.

    It has the unit of the reference or counts a thing that the question names, or it is the only number of the first
    sentence, or the answer is short.
    """
    if case.sentences.status(quantity.start, quantity.end) != "asserted":
        return False
    first, last = case.first()
    if not first <= quantity.start < last:
        return False
    if len(case.new_words) <= SHORT and len(given) == 1:
        return True
    if quantity.unit and (quantity.unit in case.question.words or any(quantity.unit == ours.unit for ours in wanted)):
        return True
    return case.question.kind == "number" and sum(first <= other.start < last for other in given) == 1


def _in_date(case: Case, quantity: quantities.Quantity) -> bool:
    return any(
        date.start <= quantity.start < date.end and date.end - date.start > 4 for date in dates.dates(case.text.text)
    )


def _in_question(case: Case, start: int, end: int) -> bool:
    """Return whether all words between two positions are words of the question."""
    return all(token.form in case.question.words for token in case.text.tokens if start <= token.start < end)


def _option(case: Case) -> Finding | None:
    """Compare the answer with the options of a question such as "Is a whale a fish or a mammal?"."""
    content = {form for reference in case.references for form in reference.content}
    right = [option for option in case.question.options if option in content]
    if len(right) != 1:
        return None
    given = [option for option in case.question.options if option in case.text.index]
    if len(given) != 1 or not all(_is_asserted(case, mention) for mention in mentions(case.text, given)):
        return Finding("abstain", "not exactly one option is asserted")
    same = given == right
    return Finding("pass" if same else "fail", "same option" if same else "another option", given[0], right[0])


# words and names ------------------------------------------------------------------------------------------------------


def _mentioned(case: Case) -> Finding | None:
    """Return a pass if the answer asserts a reference; abstain if it mentions one without asserting it."""
    asserted: list[tuple[Mention, Reference]] = []
    doubtful = False
    for reference in case.references:
        for spelling in reference.spellings:
            found = mentions(case.text, spelling) or scattered(case.text, spelling)
            doubtful = doubtful or bool(found)
            new = any(case.question.new(form) for form in spelling)  # otherwise the words only repeat the question
            if new and reference.date is None and reference.quantity is None:
                asserted += [(mention, reference) for mention in found if _is_asserted(case, mention)]
    if not asserted:
        return Finding("abstain", "the reference is mentioned but not asserted") if doubtful else None
    return _stated(case, asserted)


def _is_asserted(case: Case, mention: Mention) -> bool:
    return case.sentences.status(mention.start, mention.end) == "asserted"


def _stated(case: Case, asserted: Sequence[tuple[Mention, Reference]]) -> Finding:
    """Return a pass, unless the answer lacks a part, begins with another name, or lists several things."""
    mention, reference = min(asserted, key=lambda pair: (not pair[0].exact, pair[0].start))
    words = _words(case, mention.start, mention.end)
    if _lacks_parts(case, [mention for mention, _ in asserted]):
        return Finding("abstain", "the question asks for several things, and the answer has only some", words)
    if case.question.several == 1 and case.sentences.is_example(mention.start, mention.end):
        return Finding("abstain", "the reference is one of several examples", words)
    if _is_aside(case, mention):
        return Finding("abstain", "the reference is mentioned, but it is not clear whether it is the answer", words)
    method = "stated in the answer" if mention.exact else "same words in another order"
    return Finding("pass", method, words, reference.text)


def _lacks_parts(case: Case, found: Sequence[Mention]) -> bool:
    """Return whether the question asks for several things, the references are these things, and some are missing."""
    wanted = case.question.several
    if wanted == 1 or _different_things(case.references) < wanted:
        return False
    places: list[Mention] = []
    for mention in sorted(found, key=lambda mention: (mention.start, -mention.end)):
        words = _words(case, mention.start, mention.end)
        new = all(words != _words(case, other.start, other.end) for other in places)
        if new and (not places or mention.start >= places[-1].end):
            places.append(mention)
    return len(places) < wanted


def _different_things(references: Sequence[Reference]) -> int:
    """Return how many references share no word with a reference before them: spellings of one thing share words."""
    seen: set[str] = set()
    count = 0
    for reference in references:
        count += not reference.content & seen
        seen |= reference.content
    return count


def _is_aside(case: Case, mention: Mention) -> bool:
    """Return whether the mention may be a remark next to the answer.

    It may be a remark if it stands between the first and the last sentence of an answer that gives other names before.
    In the same sentence, another name before the mention counts if no word such as "by" or "called" introduces the
    mention. A place often follows a smaller place ("in Cardiff, Wales"), so this rule does not apply to places.
    """
    number = case.sentences.number(mention.start)
    later = case.sentences.first < number < len(case.sentences.starts) - 1
    first, _ = case.sentences.span(number)
    before = case.text.text[first : mention.start]
    certain = case.question.kind == "place" or case.question.several > 1 or introduces(before)
    if certain and not later or not any(character.isalpha() for character in before):
        return False
    first, _ = case.sentences.span(case.sentences.first if later else number)
    around = [token for token in case.text.tokens if first <= token.start < mention.end]
    return any(name[-1].end <= mention.start for name in names(case.text.text, around, case.question))


def _person(case: Case) -> Finding | None:
    """Return a pass if the answer asserts the name of the reference with other first or middle names, or initials."""
    if case.question.kind != "person":
        return None
    found = names(case.text.text, case.text.tokens, case.question)
    for reference in case.references:
        for spelling in reference.spellings:
            for name in found:
                if case.sentences.status(name[0].start, name[-1].end) != "asserted":
                    continue
                if same_person(spelling, name):
                    words = _words(case, name[0].start, name[-1].end)
                    return Finding("pass", "same name", words, reference.text)
    return None


def _another(case: Case) -> Finding | None:
    """Return a fail if the answer gives another name or another short text, and shares no word with a reference.

    If no reference is a name, and there are few references, another wording of a reference is possible.
    """
    first, last = case.first()
    sentence = [token for token in case.text.tokens if first <= token.start < last]
    found = names(case.text.text, sentence, case.question)
    if not case.new_words or _shares(case) or not _same_script(case):
        return None
    kinds = {reference.kind for reference in case.references}
    short = len(case.new_words) <= SHORT and not dates.has_doubtful_year(case.text.text)
    if found and "name" in kinds and kinds <= {"name", "phrase"}:
        words = _words(case, found[0][0].start, found[0][-1].end)
        return Finding("fail", "another name", words, case.references[0].text)
    if short and (found or kinds != {"phrase"} or len(case.references) >= MANY):
        return Finding("fail", "another short text", case.text.text[:100], case.references[0].text)
    return None


def _same_script(case: Case) -> bool:
    """Return whether the answer and a reference are both in Latin letters or both in other letters."""
    return any(_latin("".join(reference.content)) == _latin(case.text.text) for reference in case.references)


def _latin(text: str) -> bool:
    letters = [character for character in text[:500] if character.isalpha()]
    return 2 * sum(character < "\u0250" for character in letters) >= len(letters)


def _shares(case: Case) -> bool:
    """Return whether a word of the answer may be another form of a word of a reference."""
    wanted = {form for reference in case.references for form in reference.content if case.question.new(form)}
    given = {token.form for token in case.new_words}
    if any(form in wanted for form in given) or any(related(form, wanted) for form in given):
        return True
    initials = [
        [form for form in spelling if form not in FUNCTION_WORDS]
        for reference in case.references
        for spelling in reference.spellings
    ]
    return any(is_acronym(form, spelling) for form in given for spelling in initials) or any(
        is_acronym(form, [token.form for token in name])
        for form in wanted
        for name in names(case.text.text, case.text.tokens, case.question)
    )


def _words(case: Case, start: int, end: int) -> str:
    return case.text.text[start:end]
