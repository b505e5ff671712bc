"""The rule for lists: a reference such as ``red, white, blue`` for a question that asks for several things."""

from __future__ import annotations

from bestofn.verifiers.short_answer.case import Case
from bestofn.verifiers.short_answer.finding import Finding
from bestofn.verifiers.short_answer.lists import MARK, items
from bestofn.verifiers.short_answer.mentions import Mention, Text, mentions
from bestofn.verifiers.short_answer.names import related
from bestofn.verifiers.short_answer.tokens import FUNCTION_WORDS


def same_list(case: Case) -> Finding | None:
    """Compare the items of a list if the question asks for several things or an order; otherwise return None.

    The order of the items counts only if the question asks for an order.
    """
    if case.question.several == 1 and not case.question.ordered:
        return None
    reference = case.references[0].text
    wanted = items(reference)
    if len(case.references) > 1 or len(wanted) < 2 or len(wanted) < case.question.several:
        return None
    places = [_place(case, item) for item in wanted]
    found = [place for place in places if place is not None]
    if len(found) == len(wanted):
        return _all_found(case, found)
    given = items(MARK.sub("", case.text.text))
    missing: set[str] = set()
    for item, place in zip(wanted, places, strict=True):
        if place is None:
            missing.update(item)
    others = [item for item in given if item not in wanted]
    unlike = [item for item in others if not any(related(form, missing) for form in item)]
    if others and len(given) == len(wanted) and len(unlike) == len(others):
        return Finding("fail", "another list", case.text.text[:200], reference)
    return Finding("abstain", "the question asks for several things, and the answer has only some")


def _all_found(case: Case, found: list[Mention]) -> Finding:
    if not all(case.asserts(place) for place in found):
        return Finding("abstain", "a part of the list is not asserted")
    sorted_places = sorted(found, key=lambda place: place.start)
    words = case.words(sorted_places[0].start, sorted_places[-1].end)
    if case.question.ordered and found != sorted_places:
        return Finding("fail", "another order", words, case.references[0].text)
    if len(items(case.text.text)) > 2 * len(found):
        return Finding("abstain", "the answer lists more than the reference", words)
    return Finding("pass", "same list", words, case.references[0].text)


def _place(case: Case, item: tuple[str, ...]) -> Mention | None:
    """Return the first mention of an item."""
    content = [token for token in case.text.tokens if token.form not in FUNCTION_WORDS]
    found = mentions(Text.of(case.text.text, content), item)
    return found[0] if found else None
