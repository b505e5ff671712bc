"""Decides which answers are sampled together. Used by ``provider``.

Requests wait in a queue. Between two tokens, answers that end leave the running batch and waiting answers join it. The
requests of a batch may have different lengths, samplers, stop strings and rules.
"""

from __future__ import annotations

import functools
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from bestofn.builders.errors import ServiceError
from bestofn.builders.local_model.batch_limit import BatchLimit
from bestofn.builders.local_model.decoding import RunningBatch, SequenceState
from bestofn.builders.local_model.engine import GeneratedAnswer, GenerationRequest, LocalEngine, StopStrings
from bestofn.builders.local_model.seeded_sampling import random_numbers
from bestofn.builders.local_model.token_rules import TokenRules

log = logging.getLogger(__name__)

TURN_STEPS = 1_000  # tokens per row until processes that share the device take turns


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

    def rows(self, engine: LocalEngine) -> list[_JobRow]:
        """Return one row per answer, to be added to a batch."""
        request, rows = self.request, []
        stopped = StopStrings(request.stop, engine.tokenizer) if request.stop else _never
        for index in range(request.n):
            seed = None if request.seed is None else request.seed + index
            rows.append(
                _JobRow(
                    job=self,
                    index=index,
                    prompt=request.prompt,
                    random=random_numbers(seed, request.prompt),
                    max_tokens=request.max_tokens,
                    sampler=request.sampler,
                    rules=TokenRules(request.rules) if request.rules else None,
                    stopped=stopped,
                    abandoned=self.answers.done,
                )
            )
        return rows

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


def _never(tokens: Sequence[int]) -> bool:
    return False


@dataclass(eq=False, kw_only=True)
class _JobRow(SequenceState):
    """One answer of ``job``. ``index`` is its position among the answers of the job."""

    job: Job
    index: int


class Scheduler:
    """Computes the answers of jobs. ``submit`` may be called in any thread, ``run`` only in one thread at a time.

    At most ``max_rows`` answers are sampled at the same time. If memory runs out, this limit is halved, and answers
    above the limit continue later. The limit grows again when full batches fit.
    """

    def __init__(self, engine: LocalEngine, max_rows: int) -> None:
        self.limit = BatchLimit(max_rows)
        self._engine = engine
        self._batch: RunningBatch[_JobRow]
        self._submitted: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._waiting: deque[_JobRow] = deque()
        self._ended: deque[_JobRow] = deque()  # all tokens are sampled, and the answer is not recorded yet
        self._recorded = self._most_rows = 0  # since the limit was last changed or confirmed

    def submit(self, request: GenerationRequest) -> Job:
        """Add a request to the queue. ``run`` computes its answers."""
        job = Job(request)
        self._submitted.put(job)
        return job

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for a place in the batch."""
        return self._submitted.empty() and not self._waiting

    def run(self) -> bool:
        """Compute the answers of all jobs, including jobs that are submitted in the meantime.

        If processes share the device, they take turns. After ``TURN_STEPS`` tokens per row, the turn of this process
        ends: no further answers join the batch, and ``run`` returns when the batch is empty. Returns whether the
        turn has ended because of ``TURN_STEPS``.
        """
        with self._engine.computing():
            self._batch, steps = self._new_batch(), 0
            while self._batch.rows or self._ended or (not self.is_idle and self._is_my_turn(steps)):
                if self._is_my_turn(steps):
                    self._admit()
                self._step()
                self._record()
                steps += 1
        self._confirm_limit()
        self._batch = self._new_batch()  # releases the memory of the cache
        return not self._is_my_turn(steps)

    def clear(self) -> None:
        """Remove all jobs from the queue."""
        while not self._submitted.empty():
            self._submitted.get()
        self._waiting.clear()
        self._ended.clear()

    def _is_my_turn(self, steps: int) -> bool:
        return steps < TURN_STEPS or not self._engine.shared

    def _new_batch(self) -> RunningBatch[_JobRow]:
        return RunningBatch(self._engine.network, ends=self._engine.ends, pad=self._engine.pad)

    def _admit(self) -> None:
        """Add waiting rows to the batch in the order of their arrival, up to the limit."""
        while not self._submitted.empty():
            self._waiting += self._submitted.get().rows(self._engine)
        batch = self._batch
        room = self.limit.rows - len(batch.rows) if batch.accepts_rows else 0
        new: list[_JobRow] = []
        while self._waiting and len(new) < room:
            row = self._waiting.popleft()
            if not row.abandoned():
                new.append(row)
        if new:
            self._most_rows = max(self._most_rows, len(batch.rows) + len(new))
            self._attempt(lambda: batch.add(new), [*batch.rows, *new])

    def _step(self) -> None:
        """Sample one token per row."""
        batch = self._batch
        if batch.rows:
            self._attempt(lambda: self._ended.extend(batch.step()), list(batch.rows))

    def _record(self) -> None:
        """Record the answers of the rows that have ended."""
        while self._ended:
            row = self._ended.popleft()
            self._attempt(functools.partial(self._record_row, row), [row, *self._batch.rows])

    def _record_row(self, row: _JobRow) -> None:
        if not row.abandoned():
            row.job.end_row(row.index, self._engine.answer(row, row.job.request))
        self._recorded += 1
        if self._recorded >= self.limit.rows:
            self._confirm_limit()

    def _attempt(self, work: Callable[[], None], rows: Sequence[_JobRow]) -> None:
        """Call ``work`` for the unfinished ``rows``, and divide its time among them.

        After an exception, a new batch begins. If memory ran out with several rows, they go back to the queue. If
        memory ran out with a single row, the job of this row fails. After any other exception, the jobs of all ``rows``
        fail.
        """
        started = time.perf_counter()
        try:
            work()
        except Exception as error:  # each caller of the jobs raises the error
            failure = error
        else:
            seconds = (time.perf_counter() - started) / len(rows)
            for row in rows:
                row.job.seconds += seconds
            return
        self._batch = self._new_batch()
        if not _is_out_of_memory(failure):
            for row in rows:
                row.job.fail(as_service_error(failure, self._engine.model))
        elif len(rows) == 1:
            rows[0].job.fail(self._too_little_memory(rows[0], failure))
        else:
            failure.with_traceback(None)  # its frames refer to the tensors that used the memory
            self._halve(rows)

    def _halve(self, rows: Sequence[_JobRow]) -> None:
        """Put ``rows`` back into the queue, and halve the limit on the answers per batch."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.limit.shrink(len(rows))
        self._recorded = self._most_rows = 0
        self._ended.extend(row for row in rows if row.done)
        self._waiting.extendleft(reversed([row for row in rows if not row.done]))
        log.warning(
            "%s: out of memory with %d answers in one batch; a batch now has at most %d answers",
            self._engine.model,
            len(rows),
            self.limit.rows,
        )

    def _too_little_memory(self, row: _JobRow, cause: Exception) -> ServiceError:
        error = ServiceError(
            f"{self._engine.model}: out of memory for one answer (prompt: {len(row.prompt)} tokens, answer: at most "
            f"{row.max_tokens}). Lower sampling.max_tokens or use a smaller model.",
            status=503,
            cause="oom",
        )
        error.__cause__ = cause
        return error

    def _confirm_limit(self) -> None:
        """Let the limit grow if a batch as large as the limit fitted into memory since the last call."""
        self.limit.fit(self._most_rows)
        self._recorded = self._most_rows = 0


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)


def as_service_error(error: Exception, model: str) -> ServiceError:
    """Return ``error`` as a ``ServiceError``, for the callers of ``model``."""
    if isinstance(error, ServiceError):
        return error
    wrapped = ServiceError(f"{model} failed while it generated answers: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
