"""Compares ways to sample answers of mixed lengths with at most 32 requests in flight, interleaved in one run.

    python -m tests.benchmarks.bench_mixed_lengths [rounds=3] [requests=96] [model=llama|pocket] [lookup]

``llama`` is a Llama model with random weights: 4 layers, width 256, 2,048 tokens. Its prompts have 16 to 256 tokens, and
its answers 16 to 512. Its output weights are scaled, so that the mean entropy of a token is about 1.3 nats. ``pocket`` is
the embedded policy with the starter queries; each answer ends where the model ends it, or after 16 to 512 tokens.

- plain generate: ``generate`` in batches of 32, padded on the left; a batch waits for its longest answer
- generate_batch: the continuous batching of transformers, without seeds per request; only for ``llama``
- in process: the scheduler of ``provider=transformers``

Prints tokens of answers per second of CPU time (one thread), and the ratio to plain ``generate``. The target is 2.
With ``lookup``, prints instead how prompt lookup changes ``generate`` for one request at a time.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import transformers
from transformers import ContinuousBatchingConfig, GenerationConfig

from bestofn.builders.local_model.engine import GenerationRequest, LocalEngine
from bestofn.builders.local_model.scheduler import Scheduler
from bestofn.builders.sources.starter import Starter

AT_ONCE = 32


class Work(NamedTuple):
    """A prompt, and the maximum number of tokens of its answer."""

    prompt: tuple[int, ...]
    tokens: int


def main(arguments: Sequence[str]) -> None:
    options = dict(argument.partition("=")[::2] for argument in arguments)
    rounds, count = int(options.get("rounds", 3)), int(options.get("requests", 96))
    torch.set_num_threads(1)
    engine, work = {"llama": random_llama, "pocket": pocket}[options.get("model", "llama")](count)
    measured = LOOKUP if "lookup" in options else WAYS
    ways = {name: way for name, way in measured.items() if engine.ends == [] or way is not continuous}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            torch.manual_seed(number)
            started = time.process_time()
            made = way(engine, work)
            rates[name].append(made / (time.process_time() - started))
    print(f"{count} requests, at most {AT_ONCE} at once, {rounds} rounds")
    base = next(iter(rates.values()))
    for name, rate in rates.items():
        ratios = [a / b for a, b in zip(rate, base, strict=True)]
        print(
            f"  {name:<16} {statistics.median(rate):8,.0f} tokens/s of CPU   × {statistics.median(ratios):.2f}"
            f" ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def random_llama(count: int) -> tuple[LocalEngine, list[Work]]:
    """Return an engine whose model has random weights and is not loaded from files, and the prompts for it."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=2048,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        pad_token_id=0,
    )
    engine = LocalEngine("llama")
    engine.network = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        engine.network.lm_head.weight.mul_(20)
    engine.tokenizer, engine.ends, engine.pad = _Numbers(), [], 0
    numbers = random.Random(0)
    return engine, [
        Work(tuple(numbers.choices(range(2, 2048), k=numbers.randint(16, 256))), numbers.randint(16, 512))
        for _ in range(count)
    ]


class _Numbers:
    """A tokenizer whose texts are token ids written as numbers."""

    def decode(self, tokens: Sequence[int], **options: object) -> str:
        return " ".join(map(str, tokens))


def pocket(count: int) -> tuple[LocalEngine, list[Work]]:
    """Return an engine with the embedded policy, and the prompts for it."""
    engine = LocalEngine("pocket", threads=1)
    engine.load()
    numbers = random.Random(0)
    queries = list(Starter())[:count]
    return engine, [Work(engine.encode(query.messages, query.tools), numbers.randint(16, 512)) for query in queries]


def plain(engine: LocalEngine, work: Sequence[Work], **options: Any) -> int:
    """Sample with ``generate`` in batches of ``AT_ONCE``. Return the number of tokens up to the end of each answer."""
    made = 0
    rows = options.pop("rows", AT_ONCE)
    for start in range(0, len(work), rows):
        batch = work[start : start + rows]
        longest = max(len(one.prompt) for one in batch)
        ids = torch.tensor([[engine.pad] * (longest - len(one.prompt)) + list(one.prompt) for one in batch])
        mask = torch.tensor([[0] * (longest - len(one.prompt)) + [1] * len(one.prompt) for one in batch])
        settings = GenerationConfig(
            do_sample=True,
            top_k=0,
            max_new_tokens=max(one.tokens for one in batch),
            eos_token_id=engine.ends or None,
            pad_token_id=engine.pad,
            **options,
        )
        with torch.inference_mode():
            output = engine.network.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        for one, answer in zip(batch, output[:, longest:].tolist(), strict=True):
            ended = next((place + 1 for place, token in enumerate(answer) if token in engine.ends), len(answer))
            made += min(ended, one.tokens)
    return made


def continuous(engine: LocalEngine, work: Sequence[Work]) -> int:
    """Sample with the continuous batching of transformers, with at most ``AT_ONCE`` requests in flight."""
    settings = ContinuousBatchingConfig(
        page_size=32, num_blocks=24 * AT_ONCE, max_batch_tokens=512, max_requests_per_batch=AT_ONCE
    )
    sampling = GenerationConfig(do_sample=True, eos_token_id=-1, pad_token_id=engine.pad)
    made = answered = 0
    with engine.network.continuous_batching_context_manager(
        generation_config=sampling, continuous_batching_config=settings
    ) as manager:
        for one in work:
            manager.add_request(list(one.prompt), max_new_tokens=one.tokens)
        while answered < len(work):
            result = manager.get_result(timeout=1)
            if result is not None and result.is_finished():
                answered += 1
                made += len(result.generated_tokens)
    engine.network.set_attn_implementation("sdpa")
    return made


def in_process(engine: LocalEngine, work: Sequence[Work]) -> int:
    scheduler = Scheduler(engine, AT_ONCE)
    jobs = [scheduler.submit(GenerationRequest(one.prompt, seed=1, max_tokens=one.tokens)) for one in work]
    scheduler.run()
    return sum(answer.tokens for job in jobs for answer in job.answers.result(0))


WAYS: dict[str, Callable[[LocalEngine, Sequence[Work]], int]] = {
    "plain generate": plain,
    "generate_batch": continuous,
    "in process": in_process,
}
LOOKUP: dict[str, Callable[[LocalEngine, Sequence[Work]], int]] = {
    "one at a time": lambda engine, work: plain(engine, work, rows=1),
    "lookup of 3": lambda engine, work: plain(engine, work, rows=1, prompt_lookup_num_tokens=3),
    "lookup of 8": lambda engine, work: plain(engine, work, rows=1, prompt_lookup_num_tokens=8),
}


if __name__ == "__main__":
    main(sys.argv[1:])
