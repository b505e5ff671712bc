"""Determines the stance of an answer by patterns of words. ``posed_verifier`` and ``when_to_call`` use this module.

The stances are:

- *answers*: the answer states a result, or makes another statement.
- *flags*: it names a flaw in the question.
- *asks*: it asks for information.
- *hedges*: it states a result, and also names a flaw or asks: "the price is not given; assuming 5, it is 20".
- *refuses*: it declines to answer.
- *calls*: it calls a tool.
- *silent*: none of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.formats.written_calls import written_calls
from bestofn.builders.records import Tool
from bestofn.verifiers import calibration
from bestofn.verifiers.refusal_patterns import classify
from bestofn.verifiers.refusals.answer_text import THOUGHT
from bestofn.verifiers.requests_for_information import asks_for_information, is_courtesy
from bestofn.verifiers.stance_doubts import is_nothing
from bestofn.verifiers.tool_limits import says_tools_cannot

Stance = Literal["answers", "hedges", "flags", "asks", "refuses", "calls", "silent"]
Rule = Literal[
    "empty",
    "call",
    "result",
    "result with a flaw",
    "question",
    "flaw",
    "refusal",
    "number",
    "statement",
    "filler",
    "model",
]

_ABSENT = (
    r"(?:given|stated|specified|provided|defined|mentioned|described|included|attached|known|told|indicated|clear)"
)
_SUBSTANCE = r"(?:information|data|details?|context|conditions?|facts?|formula|statement)"
_CLAIMS = r"(?:statements?|conditions?|facts?|claims?|requirements?|sentences?|constraints?|equations?)"
# Phrases of ordinary solutions ("the unknown", "the missing number", "mutually exclusive events") must not match.
FLAGS = re.compile(
    r"\b(?:not\senough|insufficient|too\slittle|lack(?:s|ing)?)\s(?:\w+\s){0,2}?"
    rf"(?:{_SUBSTANCE}|value|numbers?)\b|"
    rf"\bmissing\s(?:\w+\s){{0,2}}?{_SUBSTANCE}\b|\b(?:a|any|of|some|to)\smissing\s(?:\w+\s)?(?:values?|numbers?)\b|"
    r"\bwithout\s(?:knowing\s)?(?:(?:the|this|that|these|more|further|any|additional|enough|a)\s)?(?:\w+\s)?"
    rf"(?:{_SUBSTANCE}|value|numbers?)\b|"
    r"\b(?:formula|value|number|information|price|condition|data|code|text|file|image|table|it|which|"
    r"that)\s(?:itself\s)?"
    rf"(?:is|was|are|were|has\sbeen)(?:n't|\snot|\snever|\snowhere)\s(?:\w+\s)?{_ABSENT}\b|"
    rf"\b(?:is|was|are|were)(?:n't|\snot|\snever|\snowhere)\s(?:\w+\s)?{_ABSENT}\b|"
    r"\b(?:does|do|did)(?:n't|\snot|\snever)\s(?:\w+\s)?(?:say|tell|state|specify|mention|give|provide|include|"
    r"define|contain|see|"
    r"have\s(?:enough|the))\b|"
    r"\bnothing\s(?:is|was)\s(?:said|given|stated|known|told)\b|"
    r"\b(?:cannot|can't|can\snot|could\snot|impossible\sto|not\spossible\sto|no\sway\sto|unable\sto|not\sable\sto)\s"
    r"(?:\w+\s){0,2}?(?:determined?|solved?|answer(?:ed)?|computed?|calculated?|find|found|know|known|tell|exist|be|"
    r"hold|say|"
    r"work(?:ed)?\sout)\b|"
    r"\bcontradict\w*|\binconsistent\w*|\binconsistency|\bconflict(?:s|ing)?\b|\bincompatible|"
    rf"\b(?:{_CLAIMS}|they|these|two|both|which)\s(?:are|is)\s(?:\w+\s)?mutually\sexclusive\b(?!\s(?:events|cases|"
    rf"outcomes))|"
    rf"\bmutually\sexclusive\s{_CLAIMS}\b|"
    r"\b(?:leaves?|left)\sout\b|\bover-?determined|\bill-(?:posed|defined)|\bmalformed|\bflawed|\bimpossible\b|"
    r"\bunsolvable|\bunanswerable|\bundefined|\bundetermined|"
    r"\b(?:no|not\senough|insufficient)\sinfo\b|\b(?:something|anything)(?:\sis|'s)\s(?:missing|off|wrong)\b|"
    r"\bempty\ssolution\sset|\bpremise\sis\s(?:false|wrong)|\btrick\squestion|\bno\svalues?\s(?:of\s\w+\s)?satisf|"
    r"\bcan(?:not|'t)\shappen\b|\bviolates?\sthe\striangle|\b(?:is|are)(?:n't|\snot)\s(?:\w+\s)?valid\b|"
    r"\bnowhere\sto\sbe\sfound|\b(?:do|does)(?:n't|\snot)\stell\b|\bonly\sknow\sthat\b|"
    r"\b(?:do|does)(?:n't|\snot)\s(?:agree|match|fit|add\sup|make\ssense|exist|work(?!\swell))\b|"
    r"\b(?:has|have|is|are|there's)\sno\s(?!(?:other|more|longer)\b)(?:\w+\s){0,2}?(?:solutions?|answer|number|"
    r"triangle|value|way|such|formula|day)\b|"
    r"\bno\s(?:such|(?:real|whole|integer|valid)\s(?:number|solution|value)s?|solutions?)\b|"
    r"\bthere\s(?:is|are)\sno\s(?!(?:other|need|remainder|difference|overlap|doubt)\b|more\s(?!(?:info|data|detail|"
    r"context)))|"
    r"\bdepends?\son\s(?:the\svalue|what|how|which|k\b|n\b|w\b|q\b)|"
    r"\b(?:question|problem|statement|prompt|request)\sis\s(?:\w+\s)?(?:unclear|ambiguous|incomplete|vague|wrong)|"
    r"\b(?:is|are)\s(?:missing|absent|left\sout|lacking)\b(?!\s\$?\d)|"
    r"\bcan(?:not|'t)\s(?:both\s)?(?:be\s)?(?:true|hold|right)|"
    r"\b(?:is|are|was|were|remains?|stays?)\s(?:also\s|still\s|entirely\s|completely\s)?unknown\b",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"\b(?:could|can|would)\syou\s(?:please\s|kindly\s|also\s)?(?:clarify|specify|provide|share|tell\sme|confirm|say|"
    r"paste|send|"
    r"attach|give\sme|let\sme\sknow|explain\swhat|check\s(?:the|your|this|that)\s(?:problem|question|numbers?|text|"
    r"statement))\b|"
    r"\b(?:please|kindly)\s(?:clarify|specify|provide|share|tell\sme|confirm|paste|send|attach|give|supply|"
    r"let\sme\sknow|"
    r"check\s(?:the|your|this|that)\s(?:problem|question|numbers?|text|statement|task|exercise|"
    r"input))\b(?!\sif\syou\s(?:need|have|want))|"
    r"\b(?:what|which)\s(?:\w+\s){0,4}?(?:do|did|are|were)\syou\s(?:mean|referring|have\sin\smind|want|talking|trying)|"
    r"\bwhat\s(?:is|does)\s[a-z]\b[^.?\n]{0,20}\?|\bdid\syou\s(?:mean|forget)\b",
    re.IGNORECASE,
)
_BOX = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_RESULT = re.compile(
    r"(?:\b(?:answer|result|total|solution)\s(?:is|must\sbe|would\sbe|comes\sto)|\banswer[\"]?\s*:|\n\W{0,4}(?:total|"
    r"result|solution):|####)\W{0,6}"
    r"(?P<value>(?:[a-z]+\s*=\s*)?[-−+]?\$?\\?[\d(\\][^\n]{0,40}|[a-z]\s?(?:[-+*/](?!a\b|[a-z]{2})|"
    r"[\^=<>≤≥\\])[^\n]{0,40}|"
    r"(?:true|false|yes|no)\b(?!\s\w))",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(r"^\W*(?:therefore|thus|so|hence|in\stotal|altogether|finally)\b.*\d", re.IGNORECASE)
# A conclusion within a sentence ("… so x = 3", "…, leaving 28 of them") ends in its number and has no comparison.
_DERIVES = re.compile(
    r"^.*\b(?:so|hence|thus|therefore|leav(?:es|ing)|giv(?:es|ing)|we\s(?:get|find|obtain))\b"
    r"(?P<clause>[^?]*\d[\d.,/]*%?[^\W\d]{0,9}(?:\W+[^\W\d]+){0,4}\W*)$",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"[<>≠≤≥]|\b(?:not|no|never|only|but|cannot|less|more|fewer|shorter|longer|smaller|larger|greater)\b|n't\b|"
    r"^\W*(?:that|then)?\W*-?[\d.,]+\s*=\s*-?[\d.,]+\W*$",  # an equation of two numbers, such as 0 = 4
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_FIGURE = re.compile(r"\d")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "−": "-"})
_MOST = 10_000  # a longer answer is searched only in this many characters at each end
_CLAUSE = 200  # number of characters at the end of the last sentence that are searched for a conclusion
_FEW = 3  # an answer of so many sentences that names a limit of the tools contains no other answer
_ENDING = 600  # number of characters at the end of the answer in which a digit counts as a result


@dataclass(frozen=True, slots=True)
class Reading:
    """The stance of an answer, and the rule that decided."""

    stance: Stance
    rule: Rule

    @property
    def confidence(self) -> float:
        """The measured probability that the stance is right, 0 to 1."""
        return calibration.confidence("stance", self.stance, (self.rule,))


def stance(text: str, symbol: str = "", question: str = "", tools: Sequence[Tool] = ()) -> Stance:
    """Return the stance of an answer. The parameters are those of ``read_stance``."""
    return read_stance(text, symbol, question, tools).stance


def read_stance(text: str, symbol: str = "", question: str = "", tools: Sequence[Tool] = ()) -> Reading:
    """Return the stance of an answer, with the rule that decided.

    ``symbol`` is a letter that the question uses but does not define, or "". A result that depends on this letter has
    the stance ``flags``. ``question`` is the text of the question, or "" if it is not known. ``tools`` are the declared
    tools.
    """
    answer = THOUGHT.sub(" ", text.translate(_STRAIGHT)).strip()
    if len(answer) > 2 * _MOST:
        answer = answer[:_MOST] + "\n" + answer[-_MOST:]
    if not answer:
        return Reading("silent", "empty")
    if written_calls(answer, tools).calls:
        return Reading("calls", "call")
    result = _result(answer)
    if result is None:
        return _without_result(answer, question, tools)
    if FLAGS.search(result) or is_nothing(result) or (symbol and _leaves_open(result, symbol)):
        return Reading("flags", "flaw")
    if FLAGS.search(answer) or ASKS.search(answer):
        return Reading("hedges", "result with a flaw")
    return Reading("answers", "result")


def _without_result(answer: str, question: str, tools: Sequence[Tool]) -> Reading:
    """Return the stance of an answer in which ``_result`` found no result."""
    sentences = [sentence for sentence in _SENTENCES.split(answer) if sentence.strip()]
    cannot = says_tools_cannot(sentences, tools)
    if (asks_for_information(sentences) and not (cannot and "?" not in answer)) or ASKS.search(answer):
        return Reading("asks", "question")
    refusal = classify(answer, (), question)
    if refusal.is_refusal and refusal.refusal_type != "unclear":
        return Reading("refuses", "refusal")
    if _flags(sentences):
        return Reading("flags", "flaw")
    if refusal.is_refusal:
        return Reading("asks", "question")
    if cannot:
        is_short = len(sentences) <= _FEW
        return Reading("flags", "flaw") if is_short else Reading("hedges", "result with a flaw")
    if _FIGURE.search(answer[-_ENDING:]):
        return Reading("answers", "number")
    if all(is_courtesy(sentence) for sentence in sentences):
        return Reading("silent", "filler")
    return Reading("answers", "statement")


def _flags(sentences: Sequence[str]) -> bool:
    """Return whether the first sentence, the last sentence, or at least half of the sentences name a flaw.

    A long answer that only mentions an exception in its middle does not flag a flaw.
    """
    flagged = [FLAGS.search(sentence) is not None for sentence in sentences]
    return flagged[0] or flagged[-1] or 2 * sum(flagged) >= len(flagged)


def _leaves_open(result: str, symbol: str) -> bool:
    """Return whether a result depends on ``symbol``: "k + 22" depends on k, "k = 4" does not."""
    rest = re.sub(rf"(?<![a-z]){symbol}\s*=\s*(?=[-$]*\d)", "", result)
    return re.search(rf"(?<![a-z]){symbol}(?![a-z])", rest) is not None


def _result(answer: str) -> str | None:
    """Return the stated result (the last box, the text after "the answer is", or a conclusion), or None."""
    boxes = _BOX.findall(answer)
    if boxes:
        return boxes[-1]
    stated = list(_RESULT.finditer(answer))
    if stated:
        return stated[-1]["value"]
    last = [sentence for sentence in _SENTENCES.split(answer) if sentence.strip()][-1]
    concludes = _CONCLUDES.search(last) and not FLAGS.search(last) and not ASKS.search(last)
    if concludes:
        return last
    derived = _DERIVES.search(last[-_CLAUSE:])
    clause = derived["clause"] if derived else ""
    concludes = clause and not (_COMPARES.search(clause) or FLAGS.search(clause) or ASKS.search(clause))
    return clause if concludes else None
