"""Holds the position of the parser in a list of tokens. The classes of the grammar extend ``Cursor``."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.literals import Unsupported
from bestofn.verifiers.math_verifier.tokens import Token, tokens

MAX_DEPTH = 60


class Cursor:
    """The current position of the parser in the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0
        self.bars = 0
        self.closers: list[str] = []

    def peek(self, ahead: int = 0) -> Token:
        """Return the token ``ahead`` places after the current one. The position does not change."""
        try:
            return self.tokens[self.at + ahead]
        except IndexError:
            return self.tokens[-1]

    def take(self) -> Token:
        """Return the current token and move to the next one."""
        token = self.tokens[self.at]
        if self.at < len(self.tokens) - 1:
            self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Move past the current token if it is one of ``texts``. Return whether it was."""
        token = self.tokens[self.at]
        if token.text in texts and token.kind != "text" and token.kind != "end":
            self.take()
            return True
        return False

    def expect(self, text: str) -> None:
        """Move past the current token. Raises ``Unsupported`` if it is not ``text``."""
        if not self.accept(text):
            raise Unsupported(f"expected {text!r}, found {self.peek().text!r}")
