"""A causal language model in this process: chats in, seeded samples with their log-probabilities out.

Synchronous; ``LocalTransformers`` brings it to the event loop. torch and transformers are imported by ``load``.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.errors import ConfigError, RequestError, ServiceError
from bestofn.builders.local_model.decoding import Row, decode, logits_alone
from bestofn.builders.local_model.seeded_sampling import Warp, in_units, uniforms
from bestofn.builders.pocket.policy import model_path
from bestofn.builders.records import Message, StopReason, Tool, content_text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ask:
    """``n`` answers to one prompt; answer ``i`` is drawn with ``seed + i``."""

    prompt: tuple[int, ...]
    n: int = 1
    seed: int | None = None
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    warp: Warp = Warp()
    token_logprobs: bool = False
    keep_special: bool = False  # leave special tokens in the text, for who parses them (Harmony)

    @property
    def kind(self) -> tuple[Any, ...]:
        """Asks of one kind can share a batch."""
        return self.max_tokens, self.stop, self.warp


@dataclass(frozen=True)
class Drawn:
    """One answer. ``logprob`` in nats of the model's own distribution, its end included, in steps of 0.01."""

    text: str
    tokens: int
    stop_reason: StopReason
    logprob: float
    token_logprobs: tuple[float, ...] = ()
    token_texts: tuple[str, ...] = ()  # with the log-probabilities


class LocalEngine:
    """``model`` is a folder, a Hub id, or ``pocket`` for the embedded policy. ``max_rows``: answers drawn at once."""

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        max_rows: int = 128,
        shared: bool = False,
    ) -> None:
        self.model = model
        self.path = model_path(model)
        self.max_rows = max_rows
        self._device, self._dtype, self._threads = device, dtype, threads
        self._turn: Any = _device_lock(device) if shared else contextlib.nullcontext()

    def load(self) -> None:
        """Raises ``ConfigError`` when there is no such model; a second call does nothing."""
        if hasattr(self, "network"):
            return
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        device = self._device if self._device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        dtype = self._dtype if self._dtype != "auto" else "float32" if device == "cpu" else "auto"
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(self.path, padding_side="left")
            network: Any = AutoModelForCausalLM.from_pretrained(self.path, dtype=dtype)
            self.network = network.to(device).eval()
        except (OSError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise ConfigError(
                f"provider.model is {self.model}: it cannot be loaded as a causal language model: {first}. "
                "Give a folder with config.json and weights, a Hub id, or pocket."
            ) from error
        ends = self.network.generation_config.eos_token_id or self.tokenizer.eos_token_id
        self.ends: list[int] = list(ends) if isinstance(ends, Sequence) else [] if ends is None else [ends]
        self.pad: int = (
            self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else (self.ends or [0])[0]
        )
        self.context: int = int(getattr(self.network.config, "max_position_embeddings", 0) or 1 << 30)

    def unload(self) -> None:
        del self.network, self.tokenizer

    # --- prompts -----------------------------------------------------------------------------------------------------

    def encode(self, messages: Sequence[Message], tools: Sequence[Tool] = (), **options: Any) -> tuple[int, ...]:
        """The prompt's token ids by the model's chat template; without one, ``role: content`` a line."""
        if not self.tokenizer.chat_template:
            lines = [f"{said['role']}: {content_text(said.get('content'))}" for said in messages]
            return tuple(self.tokenizer("\n".join([*lines, "assistant:"]))["input_ids"])
        text = self.tokenizer.apply_chat_template(
            [templated(said) for said in messages],
            tools=[dict(tool) for tool in tools] or None,
            add_generation_prompt=True,
            tokenize=False,
            **options,
        )
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def room(self, prompt: Sequence[int], max_tokens: int | None) -> int:
        """How many tokens the answer may have. Raises ``RequestError`` when the prompt does not fit."""
        left = self.context - len(prompt)
        if left < 1 or not prompt:
            raise RequestError(
                f"the prompt has {len(prompt)} tokens and {self.model} takes {self.context} with the answer. "
                "Shorten the prompt."
                if prompt
                else "the prompt is empty; expected at least one message",
                status=400,
            )
        return min(left, max_tokens or left)

    # --- answers -----------------------------------------------------------------------------------------------------

    def generate(self, asks: Sequence[Ask]) -> list[list[Drawn]]:
        """The answers of each ask, which must be of one kind. Batches are halved when memory runs out.

        Raises ``ServiceError`` when a single answer does not fit into memory.
        """
        rows = [
            Row(
                place,
                index,
                ask.prompt,
                uniforms(None if ask.seed is None else ask.seed + index, ask.prompt, ask.max_tokens),
            )
            for place, ask in enumerate(asks)
            for index in range(ask.n)
        ]
        rows.sort(key=lambda row: len(row.prompt))  # little padding
        answers: list[list[Any]] = [[None] * ask.n for ask in asks]
        while rows:
            batch, rows = rows[: self.max_rows], rows[self.max_rows :]
            for row, drawn in zip(batch, self._within_memory(batch, asks), strict=True):
                answers[row.ask][row.index] = drawn
        return answers

    def _within_memory(self, batch: list[Row], asks: Sequence[Ask]) -> list[Drawn]:
        import torch

        try:
            with self._turn, _threads(self._threads), torch.inference_mode():
                return self._batch(batch, asks)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not isinstance(error, torch.OutOfMemoryError | MemoryError) and "allocate memory" not in str(error):
                raise
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if len(batch) == 1:
                raise ServiceError(
                    f"{self.model}: out of memory for one answer of up to {asks[batch[0].ask].max_tokens} tokens to a "
                    f"prompt of {len(batch[0].prompt)}. Lower sampling.max_tokens, or use a smaller model.",
                    status=503,
                ) from error
        half = len(batch) // 2
        self.max_rows = min(self.max_rows, max(1, half))
        log.warning("%s: out of memory with %d answers at once; going on with %d", self.model, len(batch), half)
        return self._within_memory(batch[:half], asks) + self._within_memory(batch[half:], asks)

    def _batch(self, batch: Sequence[Row], asks: Sequence[Ask]) -> list[Drawn]:
        ask = asks[batch[0].ask]
        decode(
            self.network,
            batch,
            ask.warp,
            max_tokens=ask.max_tokens,
            ends=self.ends,
            pad=self.pad,
            stopped=StopStrings(ask.stop, self.tokenizer) if ask.stop else lambda tokens: False,
        )
        return [self._drawn(row, asks[row.ask]) for row in batch]

    def _drawn(self, row: Row, ask: Ask) -> Drawn:
        tokens, logprob = row.tokens, row.logprob
        end = len(tokens) - 1 if tokens and tokens[-1] in self.ends else None
        text = self.tokenizer.decode(tokens[:end], skip_special_tokens=not ask.keep_special)
        cut = min((text.index(stop) for stop in ask.stop if stop in text), default=None)
        stop_reason: StopReason = "length" if end is None and cut is None else "stop"
        if cut is not None:
            text = text[:cut]
            tokens = tokens[: self._tokens_up_to(tokens, cut)]
        each: tuple[float, ...] = ()
        if ask.token_logprobs or cut is not None:
            each = tuple(round(value, 4) for value in self._token_logprobs(row.prompt, tokens))
            logprob = sum(each)
        logprob = in_units(logprob, lambda: sum(self._token_logprobs(row.prompt, tokens)))
        if not ask.token_logprobs:
            return Drawn(text, len(tokens), stop_reason, logprob)
        texts = tuple(self.tokenizer.decode([token]) for token in tokens)
        return Drawn(text, len(tokens), stop_reason, logprob, each, texts)

    def _tokens_up_to(self, tokens: Sequence[int], characters: int) -> int:
        """How many tokens it takes to write the first ``characters``, and the stop that follows."""
        for count in range(1, len(tokens) + 1):
            if len(self.tokenizer.decode(tokens[:count], skip_special_tokens=True)) > characters:
                return count
        return len(tokens)

    def _token_logprobs(self, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
        import torch

        if not tokens:
            return []
        with torch.inference_mode():
            logits = logits_alone(self.network, [*prompt, *tokens])[len(prompt) - 1 : -1].cpu()
            chosen = torch.log_softmax(logits, dim=-1).gather(1, torch.tensor(list(tokens))[:, None])
        return chosen[:, 0].tolist()


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """``count`` threads of computation while the block runs; whoever trains in this process keeps its own."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _device_lock(device: str) -> Any:
    """A lock that processes of this user share, so that one of them generates at a time on a device."""
    import os
    import tempfile

    from filelock import FileLock

    return FileLock(Path(tempfile.gettempdir()) / f"bestofn-{os.getuid()}-{device.replace(':', '-')}.lock")


class StopStrings:
    """Whether the end of an answer's tokens holds one of the stop strings."""

    def __init__(self, stop: Sequence[str], tokenizer: Any) -> None:
        self._stop, self._tokenizer = tuple(stop), tokenizer
        self._reach = max(len(text.encode()) for text in stop) + 8  # a token is a byte at least

    def __call__(self, tokens: Sequence[int]) -> bool:
        text = self._tokenizer.decode(tokens[-self._reach :], skip_special_tokens=True)
        return any(stop in text for stop in self._stop)


def templated(message: Message) -> dict[str, Any]:
    """``message`` as chat templates want it: text contents, tool arguments as objects, nothing of our own beside."""
    kept: dict[str, Any] = {"role": message["role"], "content": content_text(message.get("content"))}
    kept |= {key: message[key] for key in ("tool_call_id", "name") if message.get(key)}
    if message.get("tool_calls"):
        kept["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return kept


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    if isinstance(function.get("arguments"), str):
        with contextlib.suppress(json.JSONDecodeError):  # what is no JSON, the template shows as it was written
            function["arguments"] = json.loads(function["arguments"] or "{}")
    return {"type": "function", "id": call.get("id") or "", "function": function}
