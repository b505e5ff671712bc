"""Decides whether marks of a tool call are only quoted in a text that explains them. ``call_markup`` uses it."""

from __future__ import annotations

import re
from bisect import bisect_right

WINDOW = 300
"""Number of characters before and after the marks that are examined."""

_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE)
_CLOSING_MARK = re.compile(
    r"\s*(?:</[^<>\n]{1,40}>|<[|｜][^<>\n]{0,30}(?:end|eom_id|eot_id)[^<>\n]{0,15}[|｜]>|<\|call\|>|\[/[A-Z_]{1,20}\])"
)
_OPENING_QUOTES, _CLOSING_QUOTES = "`\"'“‘«", "`\"'”’»"
_SENTENCE_CONTINUES = re.compile(r"[ \t]*[,;:)–—-]*[ \t]*[a-z]{2,}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE_INDENT = re.compile(r"(?: {4}|\t)\s*\Z")


class QuotedMarks:
    """The places of a text in which marks of tool calls are only examples.

    Such a place is in one of these parts of the text:

    - between quotation marks, in inline code, or in the middle of a sentence;
    - in a block quote;
    - in a code fence or an indented block, if the text continues after it.

    A call at the end of a text is not an example, even in a code fence.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = [fence.start() for fence in _FENCE.finditer(text)]

    def contains(self, start: int, end: int) -> bool:
        """Return whether the marks from ``start`` to ``end`` are quoted. The closing mark may follow ``end``."""
        closing = _CLOSING_MARK.match(self._text, end)
        while closing:
            end = closing.end()
            closing = _CLOSING_MARK.match(self._text, end)
        before = self._text[max(0, start - WINDOW) : start].rpartition("\n")[2]
        after, _, following = self._text[end : end + WINDOW].partition("\n")
        if self._in_code_before_text(start, end):
            return True
        if before.lstrip().startswith(">") or _SENTENCE_CONTINUES.match(after):
            return True
        if _CODE_INDENT.fullmatch(before) and _WORD.search(after + following):
            return True
        return self.is_quoted(start, end)

    def is_quoted(self, start: int, end: int) -> bool:
        """Return whether the text from ``start`` to ``end`` is quoted or inline code, and has words around it."""
        opening, rest = self._text[max(0, start - 1) : start], self._text[end : end + WINDOW]
        if not opening or opening not in _OPENING_QUOTES:
            return False
        is_closed = rest[:1] != "" and rest[:1] in _CLOSING_QUOTES
        if opening == "`":  # inline code may have further words after the mark
            is_closed = "`" in rest.partition("\n")[0]
        return is_closed and _WORD.search(self._text[max(0, start - WINDOW) : start] + rest) is not None

    def _in_code_before_text(self, start: int, end: int) -> bool:
        """Return whether the marks are in a code fence, and words follow this fence."""
        number = bisect_right(self._fences, start)
        if number % 2 == 0 or number == len(self._fences):
            return False
        closing = self._text.find("\n", self._fences[number])
        return closing >= 0 and _WORD.search(self._text, closing, closing + WINDOW) is not None
