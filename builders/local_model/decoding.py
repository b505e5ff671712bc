"""Samples answers token by token, in a batch that rows join and leave between two tokens. Used by ``scheduler``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np

from bestofn.builders.local_model.seeded_sampling import TokenSampler
from bestofn.builders.local_model.token_rules import TokenRules

if TYPE_CHECKING:
    from torch import Tensor
    from transformers.cache_utils import DynamicCache

PREFILL_TOKENS = 8_192  # at most this many tokens of prompts are computed at once, if there are several prompts

Network: TypeAlias = Any
"""A causal language model of transformers. Transformers has no common type for such models."""


@dataclass(eq=False, kw_only=True)
class SequenceState:
    """The settings of one answer, and its state while it is sampled.

    The answer ends at an end token, when its rules allow no further token, when ``stopped(tokens)`` returns True, or
    after ``max_tokens`` tokens. It also ends when ``abandoned()`` returns True, which means that no caller waits for
    it.
    """

    prompt: tuple[int, ...]
    random: np.random.Generator = field(repr=False)
    max_tokens: int
    sampler: TokenSampler = TokenSampler()
    rules: TokenRules | None = None  # change the logits of this answer
    stopped: Callable[[Sequence[int]], bool] = lambda tokens: False
    abandoned: Callable[[], bool] = lambda: False
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0  # in nats, from the distribution before temperature, top_k and top_p are applied
    done: bool = False
    _number: tuple[int, float] = field(default=(-1, 0.0), init=False)  # the place of a token, and its random number

    @property
    def sequence(self) -> tuple[int, ...]:
        """The prompt and all sampled tokens."""
        return (*self.prompt, *self.tokens)

    @property
    def length(self) -> int:
        """The number of tokens of prompt and answer."""
        return len(self.prompt) + len(self.tokens)

    def uniform(self) -> float:
        """Return the random number that selects the next token.

        Further calls return the same number until ``add`` is called.
        """
        if self._number[0] != len(self.tokens):
            self._number = len(self.tokens), self.random.random()
        return self._number[1]

    def add(self, token: int, logprob: float, ends: Sequence[int]) -> None:
        """Add the next token, and set ``done`` if the answer ends here."""
        self.tokens.append(token)
        self.logprob += logprob
        self.done = (
            token in ends
            or len(self.tokens) >= self.max_tokens
            or self.abandoned()
            or self.stopped(self.tokens)
            or (self.rules is not None and self.rules.is_complete(self.tokens))
        )


Row = TypeVar("Row", bound=SequenceState)


@dataclass(frozen=True)
class _Prefilled:
    """Prompts that the model has read: the row of each prompt in ``cache`` and in ``logits``."""

    places: dict[tuple[int, ...], int]
    cache: DynamicCache
    logits: Tensor


class RunningBatch(Generic[Row]):
    """The answers that are sampled together.

    ``ends`` are the ids of the end tokens, and ``pad`` is the id of the pad token. If several answers to one prompt are
    added together or directly one after the other, the model reads the prompt once.

    Rows cannot join some caches, for example those of recurrent layers. Then rows can be added only to an empty
    batch, the model reads the prompt of each answer, and ended rows stay in the batch. A model without a cache reads
    the whole sequences again for each token.

    ``add`` and ``step`` raise torch's ``OutOfMemoryError`` if memory runs out. The batch cannot be used afterwards, but
    its rows can continue in a new batch.
    """

    def __init__(self, network: Network, *, ends: Sequence[int], pad: int) -> None:
        from bestofn.builders.local_model.kv_cache import rows_can_join

        self.rows: list[Row] = []
        self._network, self._ends, self._pad = network, ends, pad
        parameters = inspect.signature(network.forward).parameters
        self._options: dict[str, object] = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._has_cache = "past_key_values" in parameters
        self._cache = self._new_cache()
        self._can_join = self._cache is None or rows_can_join(self._cache)
        self._columns = 0  # the number of columns of the cache
        self._prefilled: _Prefilled | None = None  # the prompts that were read last
        self._logits: Tensor | None = None  # of the next token of each row: (rows, vocabulary), float32

    def _new_cache(self) -> DynamicCache | None:
        from bestofn.builders.local_model.kv_cache import new_cache

        return new_cache(self._network.config) if self._has_cache else None

    @property
    def accepts_rows(self) -> bool:
        """Whether rows can be added now."""
        return self._can_join or not self.rows

    # --- rows --------------------------------------------------------------------------------------------------------

    def add(self, rows: Sequence[Row]) -> None:
        """Add ``rows`` to the batch. A row that already has sampled tokens continues after them."""
        import torch

        if self._cache is None or not self._can_join:
            self.rows += rows
            self._cache = self._new_cache()
            self._logits = self._read([row.sequence for row in self.rows], self._cache)
            self._columns = max(row.length for row in self.rows)
            return
        for group in _of_similar_length(rows):
            logits = self._join(self._cache, group)
            self._logits = torch.cat([self._logits, logits]) if self.rows and self._logits is not None else logits
            self.rows += group

    def _join(self, cache: DynamicCache, rows: Sequence[Row]) -> Tensor:
        """Add ``rows`` to ``cache``, and return their logits."""
        import torch

        from bestofn.builders.local_model.kv_cache import row_layers

        sequences = [row.sequence for row in rows]
        prefilled = self._prefilled
        if prefilled is None or any(sequence not in prefilled.places for sequence in sequences):
            prefilled = self._prefilled = self._prefill(list(dict.fromkeys(sequences)))
        sources = torch.tensor([prefilled.places[sequence] for sequence in sequences], device=self._network.device)
        self._columns = max(row.length for row in (*self.rows, *rows))
        for layer, other in zip(row_layers(cache), row_layers(prefilled.cache), strict=True):
            layer.join(other, sources, self._columns)
        return prefilled.logits[sources]

    def _prefill(self, sequences: Sequence[tuple[int, ...]]) -> _Prefilled:
        cache = self._new_cache()
        assert cache is not None
        places = {sequence: place for place, sequence in enumerate(sequences)}
        return _Prefilled(places, cache, self._read(sequences, cache))

    def _remove_ended(self) -> None:
        """Remove the rows that are done, and fill their places with rows from the end of the batch."""
        import torch

        from bestofn.builders.local_model.kv_cache import row_layers

        unfinished = [place for place, row in enumerate(self.rows) if not row.done]
        count = len(unfinished)
        targets = [place for place, row in enumerate(self.rows[:count]) if row.done]
        sources = unfinished[count - len(targets) :]
        for source, target in zip(sources, targets, strict=True):
            self.rows[target] = self.rows[source]
        del self.rows[count:]
        self._columns = max(row.length for row in self.rows) - 1  # the last token is not in the cache yet
        if self._cache is not None:
            moves = torch.tensor([sources, targets], dtype=torch.long, device=self._network.device)
            for layer in row_layers(self._cache):
                layer.keep(count, self._columns, *moves)

    # --- tokens ------------------------------------------------------------------------------------------------------

    def step(self) -> list[Row]:
        """Sample one token per row. Return the answers that end with this token, and remove them from the batch."""
        running = [row for row in self.rows if not row.done]
        self._sample(running)
        ended = [row for row in running if row.done]
        if len(ended) == len(running):
            self.rows = []
            self._cache = self._new_cache()
            return ended
        if ended and self._can_join:
            self._remove_ended()
        self._advance()
        return ended

    def _sample(self, rows: Sequence[Row]) -> None:
        """Sample one token for each of ``rows``."""
        import torch

        logits = self._logits
        assert logits is not None
        if len(rows) < len(self.rows):
            logits = logits[[place for place, row in enumerate(self.rows) if not row.done]]
        uniforms = torch.tensor([row.uniform() for row in rows], dtype=torch.float64, device=logits.device)
        sampled: list[tuple[int, float]] = [(0, 0.0)] * len(rows)
        for sampler in dict.fromkeys(row.sampler for row in rows):
            places = [place for place, row in enumerate(rows) if row.sampler == sampler]
            part = slice(None) if len(places) == len(rows) else places
            chosen = self._chosen(sampler, [rows[place] for place in places], logits[part], uniforms[part])
            for place, token in zip(places, chosen, strict=True):
                sampled[place] = token
        for row, (token, logprob) in zip(rows, sampled, strict=True):
            row.add(token, logprob, self._ends)

    def _chosen(
        self, sampler: TokenSampler, rows: Sequence[Row], logits: Tensor, uniforms: Tensor
    ) -> list[tuple[int, float]]:
        """Return a token and its log-probability for each of ``rows``."""
        sampled = sampler.sample(logits, uniforms, _adjusted(rows, logits))
        tokens, logprobs = sampled.tokens.tolist(), sampled.logprobs.tolist()
        for place in sampled.uncertain.nonzero()[:, 0].tolist():
            row = rows[place]
            alone = self._read([row.sequence], None)
            decided = sampler.sample(alone, uniforms[place : place + 1], _adjusted([row], alone))
            tokens[place], logprobs[place] = decided.tokens.item(), decided.logprobs.item()
        return list(zip(tokens, logprobs, strict=True))

    def _advance(self) -> None:
        """Compute the logits of the next token of each row."""
        import torch

        if self._cache is None:
            self._logits = self._read([row.sequence for row in self.rows], None)
            return
        self._columns += 1
        ids = torch.tensor([row.tokens[-1:] for row in self.rows])
        lengths = torch.tensor([[row.length] for row in self.rows])
        mask = torch.arange(self._columns) >= self._columns - lengths
        self._logits = self._forward(ids, mask, lengths - 1, self._cache)

    def _read(self, sequences: Sequence[Sequence[int]], cache: DynamicCache | None) -> Tensor:
        """Let the model read whole sequences, padded on the left.

        Return the logits of the next token of each sequence.
        """
        import torch

        length = max(map(len, sequences))
        ids = torch.tensor([[self._pad] * (length - len(sequence)) + list(sequence) for sequence in sequences])
        lengths = torch.tensor([[len(sequence)] for sequence in sequences])
        columns = torch.arange(length) - length + lengths  # negative in the padding
        return self._forward(ids, columns >= 0, columns.clamp(min=0), cache)

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: DynamicCache | None) -> Tensor:
        device = self._network.device
        output = self._network(
            input_ids=ids.to(device),
            attention_mask=mask.long().to(device),
            position_ids=positions.to(device),
            use_cache=cache is not None,
            **({} if cache is None else {"past_key_values": cache}),
            **self._options,
        )
        return output.logits[:, -1].float()


def _of_similar_length(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield ``rows`` in groups that need little padding, and that are small enough for the memory."""
    group: list[Row] = []
    for row in sorted(rows, key=lambda row: row.length):
        if group and (row.length > 1.25 * group[0].length + 8 or row.length * (len(group) + 1) > PREFILL_TOKENS):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _adjusted(rows: Sequence[SequenceState], logits: Tensor) -> Tensor | None:
    """Return the logits after the rules of each row are applied; None if no row has rules."""
    if all(row.rules is None for row in rows):
        return None
    adjusted = logits.clone()
    for place, row in enumerate(rows):
        if row.rules is not None:
            adjusted[place] = row.rules.adjusted(logits[place], row.tokens)
    return adjusted


def logits_alone(network: Network, ids: Sequence[int]) -> Tensor:
    """Compute the logits of one sequence alone: without other rows, padding or cache.

    The result has the shape (tokens, vocabulary), float32.
    """
    import torch

    return network(input_ids=torch.tensor([list(ids)], device=network.device), use_cache=False).logits[0].float()
