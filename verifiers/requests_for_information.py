"""Recognises answers that ask the user for information instead of answering the question."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUESTION = re.compile(r"[?？]\W*\Z|か[。.]?\W*\Z")
_OFFERS = re.compile(
    r"\b(?:anything|something|someone|what) else\b|\b(?:any|other|more|further) (?:\w+ )?(?:questions?|requests?|"
    r"plans|concerns)\b|"
    r"\bhow (?:can|may|else can|could) i (?:help|assist)|\b(?:may|can|shall|could) i (?:help|assist) you\b|"
    r"\bwhat do you think\b|\b(?:does|did|do) (?:that|this|it|these) (?:help|make sense|sound|work|answer|look)|"
    r"\b(?:would you like me to|do you want me to|shall i|should i|can i) (?:go ahead|proceed|continue|book|complete|"
    r"finali[sz]e)\b|"
    r"\bhow does (?:that|this|it) sound\b|\bis there (?:anything|something|any other)\b|\bhave you (?:ever |"
    r"already )?(?:tried|considered|thought|seen|been)\b|"
    r"\b(?:would you like|do you want|shall i|should i|want) (?:me |to )?(?:to )?(?:help|know more|hear more|"
    r"learn more|see more|continue|go on|explain|add (?:any|some)|try|do (?:that|this|anything))\b|"
    r"\b(?:would you like|do you want|do you need) (?:some |any )?(?:more|further|additional|help|assistance|tips|"
    r"details|an example|examples)\b",
    re.IGNORECASE,
)
"""Matches a question that only offers more help after an answer."""
_OF_A_CHOICE = re.compile(
    r"\b(?:which|what|when|where|who|whom|whose|how many|how much|how long|how often)\b.{0,120}\b(?:you|your|i|we|"
    r"me)\b|"
    r"\b(?:do|did|would|will|are|have|can|could|may|should|shall) (?:you|i|we)\b|\bor\b",
    re.IGNORECASE | re.DOTALL,
)
"""Matches a question that only the user can answer."""
_NEEDS = re.compile(
    r"\bi(?:'ll| will|'d| would|'m going to)? (?:also |first |still |just |only )?(?:need|require)\b(?! (?:not|"
    r"no)\b)(?! to (?!know|confirm|verify|ask|clarify|check with|understand|have))"
    r"[^=]*\Z|"
    r"\b(?:just |please |kindly |simply )?(?:tell|give|send) me (?:the|your|which|what|how|when|where|a|an|more|some|"
    r"if you'd)\b|"
    r"\blet (?:me|us) know (?:the|your|which|what|how many|how much|when|where|who|whether|if you(?:'d|"
    r" would) (?:like|prefer) (?:to (?:include|use|filter|have)|it|them))\b|"
    r"\b(?:may|can|could) i (?:have|get|know|ask|see)\b|\b(?:are|is) you looking for\b|"
    r"\bi(?:'d| would) (?:like|love) to know\b|\bi need to (?:know|confirm|verify|ask|clarify)\b|"
    r"\b(?:please|kindly) (?:choose|select|pick|state|name|indicate|enter|list|describe|mention|include|note down|"
    r"identify|verify)\b",
    re.IGNORECASE,
)
"""Matches a sentence that asks for information without a question mark."""
_COURTESY = re.compile(
    r"\A\W*(?:"
    r"(?:ok(?:ay)?|sure(?: thing)?|of course|certainly|absolutely|definitely|great|got it|alright|all right|right|"
    r"understood|perfect|thanks?(?: you)?|hello|hi|hey|hmm+|hm|well|yes|no problem|my pleasure|you're welcome|"
    r"apologies|sorry)"
    r"\b[^.!?]{0,30}[.!,?…]*"
    r"|(?:(?:sure|of course|certainly|absolutely|okay|great|yes|apologies|sorry)\W+)?(?:i(?:'d| would)(?: be| love|"
    r" like)?|i'm|i am|i can|i'll|i will|happy|glad|let me|let's|we can)\b[^.!?]{0,40}?\b(?:help|assist|glad|happy|"
    r"love|pleased|sorry|see|think|check|look into|get (?:started|that)|set (?:this|that|it) up|do (?:this|"
    r"that))\b[^.!?]{0,80}"
    r"|(?:enjoy|feel free|have a|let me know|hope)\b[^.!?]*"
    r"|(?:this|that|it) (?:will|would|helps|can help)\b[^.!?]{0,100}\b(?:me|you|us|find|ensure|narrow)\b[^.!?]*"
    r"|(?:then|so(?: that)?|and then) (?:i|we)\b[^.!?]*|i can then\b[^.!?]*"
    r"|(?:for example|for instance|e\.g\.)[^.!?]*"
    r")\W*\Z",
    re.IGNORECASE,
)
_DEPENDS = re.compile(
    r"\b(?:depends? on|it depends|leaves? out|is missing|are missing|not (?:given|stated|specified|clear|provided)|"
    r"does(?:n't| not) (?:say|state|specify|mention)|"
    r"(?:several|multiple|many|two|three|a few|some|different) (?:\w+ ){0,2}(?:options?|flights?|results?|matches|"
    r"possibilities|versions?|kinds?|types?|ways|accounts?))\b",
    re.IGNORECASE,
)
"""Matches a sentence that gives the reason for a question."""
_LONGEST = 400  # a longer sentence is searched only in this many characters at its end


def asks_for_information(sentences: Sequence[str]) -> bool:
    """Return whether an answer ends in a request for information that only the user has.

    An offer of more help after an answer does not count as a request for information.
    """
    ending = [sentence[-_LONGEST:] for sentence in sentences]
    while len(ending) > 1 and is_courtesy(ending[-1]) and not _QUESTION.search(ending[-1]):
        ending.pop()
    if not ending:
        return False
    last, before = ending[-1], ending[:-1]
    has_content = any(not _is_preamble(sentence) for sentence in before)
    if _QUESTION.search(last):
        if _OFFERS.search(last):
            return False
        return not has_content or _asks_for_choice(last, before)
    return not has_content and _NEEDS.search(last) is not None


def is_courtesy(sentence: str) -> bool:
    """Return whether a sentence is only polite and has no content: "Sure!", "I'd be happy to help."."""
    return _COURTESY.match(sentence[-_LONGEST:]) is not None


def _is_preamble(sentence: str) -> bool:
    """Return whether a sentence belongs to a question: it is polite, names a need or reason, or is a question."""
    return bool(
        is_courtesy(sentence) or _NEEDS.search(sentence) or _DEPENDS.search(sentence) or _QUESTION.search(sentence)
    )


def _asks_for_choice(question: str, before: Sequence[str]) -> bool:
    """Return whether ``question`` asks the user to choose, and at most two sentences come before it."""
    return len(before) <= 2 and _OF_A_CHOICE.search(question) is not None and not _OFFERS.search(question)
