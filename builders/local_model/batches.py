"""Collects waiting requests into batches for ``generation``. Used by ``provider``."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from bestofn.builders.errors import ServiceError
from bestofn.builders.local_model.engine import GenerationRequest, LocalEngine
from bestofn.builders.local_model.rows import Job, Row

log = logging.getLogger(__name__)


class Batches:
    """The answers that wait, and the limits of a batch.

    A batch has at most ``max_rows`` answers with equal sampling settings. If memory runs out, the answers of the batch
    wait again, and from then on a batch has at most half of its tokens.
    """

    def __init__(self, engine: LocalEngine, max_rows: int) -> None:
        self._engine, self._max_rows = engine, max_rows
        self._most_tokens: int | None = None
        self._waiting: list[Row] = []

    def submit(self, request: GenerationRequest) -> Job:
        """Add a request to those that wait."""
        job = Job(request)
        self._waiting += [Row.new(job, index, self._engine.tokenizer) for index in range(request.n)]
        return job

    @property
    def waits(self) -> bool:
        """Whether an answer waits."""
        return bool(self._waiting)

    def next_batch(self) -> list[Row]:
        """Return the answers of the next batch, and remove them from those that wait; [] if none waits.

        It begins with the answer that waits longest. The others are those of the most similar length.
        """
        self._waiting = [row for row in self._waiting if not row.job.answers.done()]
        if not self._waiting:
            return []
        first = self._waiting[0]
        alike = [row for row in self._waiting if row.request.sampler == first.request.sampler]
        alike.sort(key=lambda row: _difference(row.request, first.request))
        batch: list[Row] = []
        for row in alike[: self._max_rows]:
            if batch and self._most_tokens is not None and _tokens([*batch, row]) > self._most_tokens:
                break
            batch.append(row)
        taken = set(batch)
        self._waiting = [row for row in self._waiting if row not in taken]
        return batch

    def wait_again(self, rows: Sequence[Row]) -> None:
        """Let ``rows`` wait in front of the others."""
        self._waiting[:0] = rows

    def compute(self, rows: Sequence[Row]) -> list[Row]:
        """Sample the answers of ``rows`` and give them to their jobs.

        Returns the rows that must be sampled again because memory ran out. Any other error fails all jobs of the batch.
        """
        from bestofn.builders.local_model.generation import sample  # imports torch and transformers

        engine, started = self._engine, time.perf_counter()
        try:
            with engine.computing():
                sample(engine.network, rows, engine.ends)
                seconds = (time.perf_counter() - started) / len(rows)
                for row in rows:
                    row.job.seconds += seconds
                for row in rows:
                    if not row.job.answers.done():
                        row.job.end_row(row.index, engine.answer(row.sampled, row.request))
        except Exception as error:  # each caller of the jobs raises the error
            if _is_out_of_memory(error) and len(rows) > 1:
                error.with_traceback(None)  # its frames refer to the tensors that used the memory
                return self._smaller(rows)
            for row in rows:
                row.job.fail(self._failure(error, row))
        return []

    def _smaller(self, rows: Sequence[Row]) -> list[Row]:
        """Halve the tokens of a batch, and return the unfinished ``rows`` without their tokens."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self._most_tokens = _tokens(rows) // 2
        log.warning(
            "%s: out of memory with %d answers in one batch; from now on, a batch has at most %d tokens of prompts and "
            "answers",
            self._engine.model,
            len(rows),
            self._most_tokens,
        )
        return [Row.new(row.job, row.index, self._engine.tokenizer) for row in rows]

    def _failure(self, error: Exception, row: Row) -> ServiceError:
        model, request = self._engine.model, row.request
        if _is_out_of_memory(error):
            failure = ServiceError(
                f"{model}: out of memory for one answer (prompt: {len(request.prompt)} tokens, answer: at most "
                f"{request.max_tokens}). Lower sampling.max_tokens or use a smaller model.",
                status=503,
                cause="oom",
            )
        else:
            failure = ServiceError(f"{model} failed while it generated answers: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure


def _difference(one: GenerationRequest, other: GenerationRequest) -> int:
    return abs(len(one.prompt) - len(other.prompt)) + abs(one.max_tokens - other.max_tokens)


def _tokens(rows: Sequence[Row]) -> int:
    """Return how many tokens the batch ``rows`` may have with its padding."""
    return len(rows) * max(row.length for row in rows)


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)
