"""Parses and renders the Harmony format of gpt-oss: messages with a role, a channel and a recipient.

A message is ``<|start|>{header}<|message|>{content}<|end|>``. The header contains the role, ``to={recipient}``,
``<|channel|>{channel}`` and the content type. An answer begins inside a header, because the prompt ends with
``<|start|>assistant``. Its last message ends with ``<|return|>`` or, for a tool call, ``<|call|>``.

``formats.harmony_prompt`` renders whole conversations. The providers and ``recorded_dialogue`` use ``harmony_turn``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bestofn.builders.formats.tool_calls import call

ENCODING = "HARMONY_GPT_OSS"
MARKS = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")
"""The special tokens of the format."""
ENDS = ("<|return|>", "<|call|>")
"""The special tokens that end an answer."""

_CLOSING = ("<|end|>", *ENDS)
_MARK = re.compile("(" + "|".join(map(re.escape, MARKS)) + ")")
_ROLES = ("system", "developer", "user", "assistant")
_RECIPIENT = re.compile(r"(?:^|\s)to=(\S+)")
_WITH_MARKS = re.compile(
    r"\A\s*+(?:assistant|analysis|commentary|final)?\s*+(?:to=[^\s<]++)?\s*+<\|(?:start|channel|message|constrain)\|>"
    r"|<\|(?:end|call|return)\|>\s*+<\|start\|>assistant"
)
"""The start of an answer, or the end of a message before the next one. Other texts only mention the special tokens."""
_WITHOUT_MARKS = re.compile(
    r"\A(?:analysis(?=(?:The|We|User|I(?!\s(?:is|and|or)\b)|Let|This|It|Okay|Ok|OK|So|First|There|Given|They)"
    r"(?:['’][a-z]{1,2})?,? )"
    r"|commentary to=functions\."
    r"|(?:analysis|commentary)(?=\S.*?assistant(?:final\S|commentary(?:\S|\sto=))))",
    re.DOTALL,
)
"""The start of an answer whose special tokens were removed. Other words after "analysis", as in ``analysisResult``, are
the text of an answer, unless a later ``assistantfinal`` shows that a turn has channels."""
_TURN_WITHOUT_MARKS = re.compile(r"assistant(?=(?:analysis|commentary|final)\S|commentary to=)")
_HEADER_WITHOUT_MARKS = re.compile(
    r"(?P<channel>analysis|commentary|final)(?: to=(?P<recipient>[\w.\-]+) ?(?P<type>json|code)?(?=\s*\S))?"
)

Piece = tuple[bool, str]
"""Whether a part of a rendered text is a special token, and its text."""


@dataclass(frozen=True, slots=True)
class HarmonyMessage:
    """One message. For a message of a tool, ``role`` is ``tool`` and ``name`` is the name of the tool.

    ``content_type`` is the content type in the header, for example ``<|constrain|>json``; "" if the header has none.
    """

    role: str
    content: str
    channel: str = ""
    recipient: str = ""
    content_type: str = ""
    name: str = ""

    @property
    def is_call(self) -> bool:
        """Whether the message calls a tool."""
        return self.role == "assistant" and self.recipient not in ("", "all", "user")

    def record(self) -> dict[str, str]:
        """Return the message as a dict: ``role``, ``content``, and the other fields that are not empty."""
        return {key: value for key, value in asdict(self).items() if value or key in ("role", "content")}


@dataclass(frozen=True, slots=True)
class HarmonyText:
    """The messages of a text. ``end`` is the special token that ends the last message; "" if there is none.

    ``malformed`` describes the first deviation from the format, for example a message without ``<|end|>``.
    """

    messages: tuple[HarmonyMessage, ...]
    end: str = ""
    malformed: str = ""

    @property
    def truncated(self) -> bool:
        """Whether the last message has no end token.

        The result is also true if the answer is complete but the server removes its end token.
        """
        return not self.end


@dataclass(frozen=True, slots=True)
class HarmonyTurn:
    """One turn of a model: its thinking, its visible text, its tool calls, and all its messages."""

    thinking: str
    text: str
    calls: tuple[dict[str, Any], ...]
    messages: tuple[HarmonyMessage, ...]

    @property
    def detail(self) -> dict[str, object]:
        """The data about the turn that is stored in ``Completion.detail``."""
        return {"harmony": [message.record() for message in self.messages]}


def parse(text: str, role: str = "assistant") -> HarmonyText:
    """Parse ``text``. If it begins inside a header, ``role`` is the role of this first message."""
    return _Parser(role).read(text)


def harmony_turn(text: str) -> HarmonyTurn | None:
    """Return the turn that the answer ``text`` contains; None if it is not in the Harmony format.

    Servers that decode without special tokens return ``analysis…assistantfinal…``. This form is parsed too.
    """
    if ("<|channel|>" in text or "<|message|>" in text) and _WITH_MARKS.search(text):  # the search takes longer
        messages = parse(text.strip()).messages
    elif _WITHOUT_MARKS.match(text):
        messages = tuple(_without_marks(text))
    else:
        return None
    own = tuple(message for message in messages if message.role == "assistant")
    thoughts = [message.content.strip() for message in own if message.channel == "analysis" and not message.is_call]
    return HarmonyTurn("\n\n".join(filter(None, thoughts)), _visible(own), tuple(_calls(own)), own)


def _visible(messages: Sequence[HarmonyMessage]) -> str:
    """Return the text for the user: the messages of the final channel and those without a channel.

    If there are none, return the messages of the commentary channel, which precede tool calls.
    """
    shown = [message for message in messages if not message.is_call]
    texts = [message.content.strip() for message in shown if message.channel in ("final", "")]
    texts = texts or [message.content.strip() for message in shown if message.channel == "commentary"]
    return "\n\n".join(filter(None, texts))


def _calls(messages: Sequence[HarmonyMessage]) -> Iterator[dict[str, Any]]:
    """Yield the tool calls of ``messages``, with the ids ``harmony_0``, ``harmony_1``, …."""
    made = [message for message in messages if message.is_call]
    for place, message in enumerate(made):
        yield call(message.recipient.removeprefix("functions."), message.content.strip() or "{}", f"harmony_{place}")


# --- parsing ---------------------------------------------------------------------------------------------------------


class _Parser:
    """Parses the parts of a text between special tokens. A part belongs to a header, to a content, or to neither."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._header: list[str] = []
        self._content: list[str] | None = None
        self._messages: list[HarmonyMessage] = []
        self._end = self._malformed = ""

    def read(self, text: str) -> HarmonyText:
        for part in _MARK.split(text):
            if part in MARKS:
                self._mark(part)
            elif self._content is not None:
                self._content.append(part)
            else:
                self._header.append(part)
        if self._content is not None:
            self._close("")
        elif "".join(self._header).strip():
            self._end = ""
            self._note("a header without <|message|>")
        return HarmonyText(tuple(self._messages), self._end, self._malformed)

    def _mark(self, mark: str) -> None:
        if self._content is None:
            self._mark_in_header(mark)
        elif mark in _CLOSING:
            self._close(mark)
        elif mark in ("<|start|>", "<|channel|>"):
            self._note(f"{mark} inside a message")
            self._close("")
            self._header = [mark] if mark == "<|channel|>" else []
        else:
            self._content.append(mark)

    def _mark_in_header(self, mark: str) -> None:
        if mark == "<|message|>":
            self._content = []
        elif mark in ("<|channel|>", "<|constrain|>"):
            self._header.append(mark)
        elif mark == "<|start|>":
            if "".join(self._header).strip():
                self._note("a header without <|message|>")
            self._header, self._role = [], ""
        else:
            self._end = mark
            if "".join(self._header).strip():
                self._note(f"{mark} inside a header")
            self._header = []

    def _close(self, end: str) -> None:
        header, content = "".join(self._header), "".join(self._content or ())
        self._messages.append(_with_header(header, content, self._role or "assistant"))
        self._header, self._content, self._end, self._role = [], None, end, ""

    def _note(self, deviation: str) -> None:
        self._malformed = self._malformed or deviation


def _with_header(header: str, content: str, default_role: str) -> HarmonyMessage:
    """Return the message with ``header`` and ``content``.

    The recipient may be in the first part of the header, or in the part after ``<|channel|>``.
    """
    author, _, described = header.replace("<|constrain|>", " <|constrain|>").partition("<|channel|>")
    author, named = _take(_RECIPIENT, author)
    described, in_channel = _take(_RECIPIENT, described)
    channel, content_type = _channel(described) if described.strip() else ("", "")
    author, _, rest = author.strip().partition(" ")
    role, _, name = author.partition(":")
    role = role or default_role
    if role not in _ROLES and role != "tool":
        role, name = "tool", role + (f":{name}" if name else "")
    return HarmonyMessage(role, content, channel, named or in_channel, content_type or rest.strip(), name)


def _channel(text: str) -> tuple[str, str]:
    """Return (channel, content type) from the part of a header after ``<|channel|>``."""
    found = re.match(r"\s*([^\s<]*)\s*(.*)", text, re.DOTALL)
    return (found[1], found[2].strip()) if found else ("", "")


def _take(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return (``text`` without the first match of ``pattern``, group of the match); (``text``, "") without a match."""
    found = pattern.search(text)
    return (text[: found.start()] + text[found.end() :], found[1]) if found else (text, "")


def _without_marks(text: str) -> Iterator[HarmonyMessage]:
    """Yield the messages of a text whose special tokens were removed: ``analysis…assistantfinal…``."""
    for part in _TURN_WITHOUT_MARKS.split(text):
        header = _HEADER_WITHOUT_MARKS.match(part)
        if header is None:
            yield HarmonyMessage("assistant", part, "analysis")
            continue
        yield HarmonyMessage(
            "assistant", part[header.end() :], header["channel"], header["recipient"] or "", header["type"] or ""
        )


# --- rendering -------------------------------------------------------------------------------------------------------


def pieces(messages: Sequence[HarmonyMessage], *, end: str = "") -> Iterator[Piece]:
    """Yield the rendered messages as special tokens and plain texts.

    A tokenizer must encode the plain texts without special tokens. Otherwise a content could imitate a message. ``end``
    replaces the end token of the last message.
    """
    for place, message in enumerate(messages):
        yield True, "<|start|>"
        yield False, _author(message) + (f" to={message.recipient}" if message.recipient else "")
        if message.channel:
            yield True, "<|channel|>"
            yield False, message.channel
        yield from _content_type(message.content_type)
        yield True, "<|message|>"
        yield False, message.content
        closing = "<|call|>" if message.is_call else "<|end|>"
        yield True, end if end and place == len(messages) - 1 else closing


def render(messages: Sequence[HarmonyMessage], *, end: str = "") -> str:
    """Return the rendered messages as text. Raises ``ValueError`` if a content or header contains a special token."""
    parts = list(pieces(messages, end=end))
    for special, text in parts:
        if not special and (found := _MARK.search(text)):
            raise ValueError(
                f"a message contains {found[0]}, a special token of Harmony; expected plain text. "
                "Encode the messages with harmony_prompt.token_ids instead."
            )
    return "".join(text for _, text in parts)


def history(messages: Sequence[HarmonyMessage]) -> list[HarmonyMessage]:
    """Return the messages for the next prompt: ``messages`` without the thinking before the last final message.

    Later thinking is kept, because the model continues it after a tool call.
    """
    last_final = max((place for place, message in enumerate(messages) if message.channel == "final"), default=-1)
    return [m for place, m in enumerate(messages) if m.channel != "analysis" or m.is_call or place > last_final]


def _author(message: HarmonyMessage) -> str:
    if message.role == "tool" and message.name:
        return message.name
    return message.role + (f":{message.name}" if message.name else "")


def _content_type(text: str) -> Iterator[Piece]:
    if not text:
        return
    mark, plain = (
        ("<|constrain|>", text.removeprefix("<|constrain|>")) if text.startswith("<|constrain|>") else ("", text)
    )
    yield False, " " if mark else f" {plain}"
    if mark:
        yield True, mark
        yield False, plain
