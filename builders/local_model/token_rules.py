"""Rules that change the logits of one answer: biases, penalties for repetition, and a grammar. Used by ``engine``."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bestofn.builders.formats.byte_grammar import COMPLETE, Node, State, advance, start

if TYPE_CHECKING:
    from torch import Tensor

KEPT_MASKS = 512  # masks per grammar; one mask has a byte per token of the vocabulary


class Trie:
    """A node of a prefix tree of tokens. Each edge is one byte. ``ids`` are the tokens that end at this node."""

    __slots__ = ("children", "ids")

    def __init__(self) -> None:
        self.children: dict[int, Trie] = {}
        self.ids: list[int] = []


class Vocabulary:
    """The tokens that a text can consist of, with their bytes; special tokens are not included.

    ``size`` is the number of logits.
    """

    def __init__(self, tokenizer: Any, size: int, ends: Sequence[int]) -> None:
        self.size, self.ends = size, [end for end in ends if end < size]
        self.texts = {token: text for token, text in token_bytes(tokenizer) if token < size and text}
        self.root = Trie()
        for token, text in self.texts.items():
            self._add(token, text)

    def _add(self, token: int, text: bytes) -> None:
        place = self.root
        for byte in text:
            place = place.children.setdefault(byte, Trie())
        place.ids.append(token)


def token_bytes(tokenizer: Any) -> Iterator[tuple[int, bytes]]:
    """Yield each token id with its bytes. Special tokens are left out."""
    special = set(tokenizer.all_special_ids)
    added = {token: str(entry.content) for token, entry in tokenizer.added_tokens_decoder.items()}
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    is_byte_level = "ByteLevel" in json.dumps(json.loads(decoder.__getstate__())) if decoder is not None else False
    to_byte = {character: byte for byte, character in _byte_characters().items()}
    for text, token in tokenizer.get_vocab().items():
        if token in special:
            continue
        if token in added:
            yield token, added[token].encode()
        elif is_byte_level:
            if all(character in to_byte for character in text):
                yield token, bytes(to_byte[character] for character in text)
        elif len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            yield token, bytes((int(text[3:5], 16),))
        else:
            yield token, text.replace("▁", " ").encode("utf-8", "replace")


def _byte_characters() -> dict[int, str]:
    """Return the character that byte-level tokenizers (GPT-2 and later) write for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}


class TokenGrammar:
    """A grammar over the tokens of a vocabulary. It caches the masks of the latest states."""

    def __init__(self, grammar: Node, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.start = start(grammar)
        self._masks: OrderedDict[State, Tensor] = OrderedDict()
        self._after: dict[tuple[State, int], State] = {}

    def mask(self, state: State) -> Tensor:
        """Return which tokens are allowed in ``state``: a boolean per logit.

        End tokens are allowed if the text is complete, or if no token of the vocabulary fits the grammar.
        """
        if state not in self._masks:
            self._masks[state] = self._new_mask(state)
            if len(self._masks) > KEPT_MASKS:
                self._masks.popitem(last=False)
                self._after.clear()
        return self._masks[state]

    def _new_mask(self, state: State) -> Tensor:
        import torch

        allowed = list(self.vocabulary.ends) if None in state else []
        todo = [(self.vocabulary.root, state)]
        while todo:
            place, reached = todo.pop()
            allowed += place.ids
            for byte, child in place.children.items():
                if after := self._next(reached, byte):
                    todo.append((child, after))
        mask = torch.zeros(self.vocabulary.size, dtype=torch.bool)
        mask[torch.tensor(allowed or self.vocabulary.ends or [0], dtype=torch.long)] = True
        return mask

    def _next(self, state: State, byte: int) -> State:
        key = state, byte
        if key not in self._after:
            self._after[key] = advance(state, byte)
        return self._after[key]

    def after(self, state: State, text: bytes) -> State:
        """Return the state of the grammar after ``text`` is read in ``state``."""
        for byte in text:
            state = self._next(state, byte)
        return state


@dataclass(frozen=True)
class RuleSettings:
    """The rules of a request: OpenAI's ``logit_bias`` and penalties, and the grammar of its answers."""

    logit_bias: Mapping[int, float] = field(default_factory=dict)
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    grammar: TokenGrammar | None = None

    def __bool__(self) -> bool:
        return bool(self.logit_bias or self.frequency_penalty or self.presence_penalty or self.grammar)


class TokenRules:
    """Applies ``settings`` to the logits of one answer, token by token."""

    def __init__(self, settings: RuleSettings) -> None:
        self._settings = settings
        self._read = 0
        self._state: State = settings.grammar.start if settings.grammar else COMPLETE

    def adjusted(self, logits: Tensor, tokens: Sequence[int]) -> Tensor:
        """Return ``logits`` with the rules applied, for the token after ``tokens``. Shape: (vocabulary,)."""
        import torch

        settings, result = self._settings, logits.clone()
        for token, bias in settings.logit_bias.items():
            result[token] += bias
        if settings.frequency_penalty or settings.presence_penalty:
            for token, count in Counter(tokens).items():
                result[token] -= count * settings.frequency_penalty + settings.presence_penalty
        if settings.grammar is None:
            return result
        mask = settings.grammar.mask(self._state_after(tokens))
        return result.masked_fill(~mask.to(result.device), -torch.inf)

    def is_complete(self, tokens: Sequence[int]) -> bool:
        """Return whether the grammar allows no further text after ``tokens``."""
        return self._settings.grammar is not None and self._state_after(tokens) == COMPLETE

    def _state_after(self, tokens: Sequence[int]) -> State:
        grammar = self._settings.grammar
        assert grammar is not None
        if len(tokens) < self._read:  # the answer was begun again
            self._read, self._state = 0, grammar.start
        for token in tokens[self._read :]:
            self._state = grammar.after(self._state, grammar.vocabulary.texts.get(token, b""))
        self._read = len(tokens)
        return self._state
