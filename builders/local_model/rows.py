"""Requests and their answers while these are sampled. Used by ``batches`` and ``generation``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bestofn.builders.errors import ServiceError
from bestofn.builders.local_model.engine import GeneratedAnswer, GenerationRequest, SampledTokens
from bestofn.builders.local_model.grammar import TokenRules


@dataclass(eq=False)
class Job:
    """A request and the future for its answers.

    The computation ends after the next token if the future is cancelled or gets an exception. ``seconds`` is the
    request's share of the time of its batches, without the time in the queue.
    """

    request: GenerationRequest
    answers: Future[list[GeneratedAnswer]] = field(default_factory=Future)
    seconds: float = 0.0
    _ended: dict[int, GeneratedAnswer] = field(default_factory=dict)

    def end_row(self, index: int, answer: GeneratedAnswer) -> None:
        """Record the answer at position ``index``. The last missing answer sets the result of the future."""
        self._ended[index] = answer
        if len(self._ended) == self.request.n:
            with suppress(InvalidStateError):  # cancelled in the meantime
                self.answers.set_result([self._ended[place] for place in range(self.request.n)])

    def fail(self, error: Exception) -> None:
        """Set ``error`` as the exception of the future, unless it is already done."""
        with suppress(InvalidStateError):
            self.answers.set_exception(error)


@dataclass(eq=False)
class Row:
    """One answer of ``job`` while it is sampled. ``index`` is its position among the answers of the job."""

    job: Job
    index: int
    rules: TokenRules | None
    stop: StopStrings | None
    sampled: SampledTokens = field(default_factory=SampledTokens)
    done: bool = False

    @classmethod
    def new(cls, job: Job, index: int, tokenizer: Any) -> Row:
        """Return a row without tokens."""
        request = job.request
        rules = TokenRules(request.rules) if request.rules else None
        return cls(job, index, rules, StopStrings(request.stop, tokenizer) if request.stop else None)

    @property
    def request(self) -> GenerationRequest:
        """The request of the job."""
        return self.job.request

    @property
    def length(self) -> int:
        """The number of tokens that prompt and answer may have."""
        return len(self.request.prompt) + self.request.max_tokens

    def add(self, token: int, logprob: float, top: Sequence[tuple[int, float]], ends: Sequence[int]) -> None:
        """Add the next token, and set ``done`` if the answer ends here or if no caller waits for it."""
        sampled = self.sampled
        sampled.tokens.append(token)
        sampled.logprobs.append(logprob)
        sampled.top.append(top)
        if self.rules is not None and token not in ends:
            try:
                self.rules.add(token)
            except ServiceError as error:
                self.job.fail(error)
            sampled.is_complete = self.rules.is_complete
        self.done = (
            token in ends
            or sampled.is_complete
            or len(sampled.tokens) >= self.request.max_tokens
            or self.job.answers.done()
            or (self.stop is not None and self.stop.occurs(sampled.tokens))
        )


class StopStrings:
    """Finds the strings ``stop`` in the text of the last tokens of an answer."""

    def __init__(self, stop: Sequence[str], tokenizer: Any) -> None:
        self._stop, self._tokenizer = tuple(stop), tokenizer
        self._reach = max(len(text.encode()) for text in stop) + 8  # in tokens: each has at least one byte

    def occurs(self, tokens: Sequence[int]) -> bool:
        """Return whether a stop string occurs in the text of the last ``tokens``."""
        text = self._tokenizer.decode(tokens[-self._reach :], skip_special_tokens=True)
        return any(stop in text for stop in self._stop)
