"""Determines what a question asks for, because the same words may refuse one question and answer another."""

from __future__ import annotations

import re
from functools import cached_property

_START = r"(?:^|[.!?:,\n]\s*|\b(?:please|you|me|to|and|then|i need|i want|let's)\s+)"
_MESSAGE = (
    r"(?:e-?mails?|mails?|letters?|messages?|reply|replies|responses?|notes?|texts?|announcements?|posts?|tweets?|"
    r"invitations?|"
    r"statements?|excuses?|templates?|absage|brief|nachricht|antwort|carta|correo|mensaje|lettre|courriel|réponse|邮件|"
    r"信|回复|メール|手紙|返信)"
)
_FICTION = (
    r"(?:stor(?:y|ies)|poems?|songs?|lyrics|scenes?|dialogues?|dialogs?|conversations?|scripts?|screenplays?|plays?|"
    r"novels?|chapters?|"
    r"monologues?|fairy ?tales?|fables?|sketch(?:es)?|fan ?fictions?|haikus?|limericks?|sonnets?|role-?plays?|raps?|"
    r"geschichte|gedicht|"
    r"cuento|historia|poema|histoire|poème|故事|诗|物語|詩)"
)
_WRITES = (
    r"(?:write|draft|compose|create|make|generate|prepare|phrase|word|formulate|tell|give|help|schreib\w*|verfass\w*|"
    r"formulier\w*|"
    r"escrib\w*|redact\w*|écri\w*|rédige\w*|写|書)"
)
_MESSAGES = re.compile(
    rf"{_START}{_WRITES}\b.{{0,80}}?\b{_MESSAGE}\b|(?:写|書).{{0,20}}(?:信|邮件|回复|メール|手紙|返信)|(?:信|邮件|回复|メール|手紙|"
    rf"返信).{{0,6}}(?:写|書)",
    re.IGNORECASE,
)
_FICTIONS = re.compile(
    rf"{_START}{_WRITES}\b.{{0,80}}?\b{_FICTION}\b|\b(?:role-?play|pretend to be|act as|play the (?:role|part))\b",
    re.IGNORECASE,
)
_SAYS_NO = re.compile(
    r"\b(?:help me|how (?:do|can|should) i|write|draft|tell me how to)\b.{0,40}?\b(?:say(?:ing)? no\b|declin\w+|"
    r"refus\w+|reject\w*|turn(?:ing)? down|apologi[sz]\w*)",
    re.IGNORECASE,
)
_REWORKS = re.compile(
    r"\b(?:translat\w+|rephras\w+|paraphras\w+|reword\w*|proofread\w*|rewrite|rewrit\w+|summari[sz]\w+|classif\w+|"
    r"correct (?:the|this|my)|fix (?:the|this|my)|"
    r"repeat (?:after|the|this)|what (?:does|do|is)\b.{0,60}\b(?:mean|say)|traduc\w+|traduis\w*|übersetz\w*|"
    r"how (?:do|would|can|should) (?:you|i|we|one) say|wie sagt man|was (?:bedeutet|heißt)|comment dit-on|cómo se dice|"
    r"come si dice|como se diz|как сказать)|翻译|翻訳|訳して|怎么说",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"(?:^|[.!?\n]\s*)(?:(?:and|but|so|hi|hello|hey)[, ]+)*(?:is|are|am|was|were|do|does|did|has|have|had|should|may|"
    r"might|must|could it|can it|can (?:i|we|he|she|they|one|a|an|the)|"
    r"will (?:it|he|she|they|the)|would (?:it|he|she|they))\b[^?\n]*\?",
    re.IGNORECASE,
)
_FACTUAL = re.compile(
    r"\A\W*(?:(?:please|can you|could you) )*(?:what (?:is|was|are|were|does|did|happened)\b|who\b|when\b|how (?:did|"
    r"was|were|does|is|are)\b|why did\b|define\b|"
    r"describe\b|explain (?!how to)|why (?:is|are|was|were)\b)",
    re.IGNORECASE,
)
_REASONS = re.compile(r"\A\W*(?:(?:please|can you|could you|explain|tell me) )*why\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{4,}")
_LOADED = re.compile(
    r"\b(?:why|reasons?|justify|argue|convince|explain|prove|persuade)\b.{0,80}?\b(?:should|shouldn't|ought|better|"
    r"deserves?|must|"
    r"(?:would it be|is it|it is|it's|it was) (?:\w+ )?(?:best|better|good|right|okay|ok|fine|important|necessary|"
    r"justified|acceptable|fair)|(?:make|makes) sense)\b|"
    r"\b(?:why|what makes|explain|reasons?|argue|prove)\b.{0,80}?\b(?:deserv\w+|superior|inferior|(?:less|"
    r"more) (?:worth\w*|valuable|intelligent|human|important|capable|entitled)|"
    r"(?:fewer|less|no) rights|worth less|worse than|better than)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|never|n't|barred|banned|denied|excluded|forbidden|discriminated)\b|n't\b", re.IGNORECASE
)
_MOST = 4_000  # number of characters of a question that are read at each end


class Asked:
    """The kinds of answer that ``question`` asks for. Each is determined when it is first needed.

    For an empty question, every kind is false, and ``stems`` is empty.
    """

    def __init__(self, question: str) -> None:
        self._text = question if len(question) <= 2 * _MOST else f"{question[:_MOST]}\n{question[-_MOST:]}"

    @cached_property
    def writing(self) -> bool:
        """Whether it asks for a message or for fiction, in which "I" is not the model."""
        return any(kind.search(self._text) for kind in (_MESSAGES, _FICTIONS, _SAYS_NO))

    @cached_property
    def reworking(self) -> bool:
        """Whether it asks for a text from the question in another form."""
        return _REWORKS.search(self._text) is not None

    @cached_property
    def yes_no(self) -> bool:
        """Whether it asks for a decision."""
        return _YES_NO.search(self._text) is not None

    @cached_property
    def factual(self) -> bool:
        """Whether it asks what something is, or what happened."""
        return not self.loaded and _FACTUAL.search(self._text) is not None

    @cached_property
    def reasons(self) -> bool:
        """Whether it asks why something is so."""
        return _REASONS.search(self._text) is not None

    @cached_property
    def loaded(self) -> bool:
        """Whether it asks for reasons for a claim about what should be."""
        return self._claim is not None

    @cached_property
    def negated(self) -> bool:
        """Whether the claim of a loaded question contains a negation or a ban."""
        return self._claim is not None and _NEGATED.search(self._text, self._claim.start()) is not None

    @cached_property
    def stems(self) -> frozenset[str]:
        """The first five letters of each word of the question."""
        return frozenset(word[:5] for word in _WORD.findall(self._text.lower()))

    @cached_property
    def _claim(self) -> re.Match[str] | None:
        return _LOADED.search(self._text)

    def mentions(self, phrase: str) -> bool:
        """Return whether ``phrase`` contains a word of the question. Words are compared by their first five letters."""
        return any(word[:5] in self.stems for word in _WORD.findall(phrase.lower()))
