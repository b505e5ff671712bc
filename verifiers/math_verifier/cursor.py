"""A position in a list of tokens, with the brackets that are open there. The grammar builds on it."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.literals import Unsupported
from bestofn.verifiers.math_verifier.tokens import Token, tokens

MAX_DEPTH = 60


class Cursor:
    """The position of the grammar in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0
        self.bars = 0
        self.closers: list[str] = []

    def peek(self, ahead: int = 0) -> Token:
        """The token ``ahead`` places further, without taking it."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        """The next token; the cursor moves behind it."""
        token = self.tokens[self.at]
        if self.at < len(self.tokens) - 1:
            self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Take the next token if it is one of these texts; returns whether it was."""
        token = self.tokens[self.at]
        if token.text in texts and token.kind != "text" and token.kind != "end":
            self.take()
            return True
        return False

    def expect(self, text: str) -> None:
        """Take the next token. Raises ``Unsupported`` if it is another one."""
        if not self.accept(text):
            raise Unsupported(f"expected {text!r}, found {self.peek().text!r}")
