"""Compares sampling in process with a plain ``generate`` call of transformers, interleaved in one run.

    python -m tests.benchmarks.bench_local_sampling [model=pocket] [rounds=3] [queries=16] [n=8] [rows=128] [tokens=96]

``model`` may also be a folder, or ``tiny`` for a Llama with random weights. Model, prompts, threads and the answers per
batch are the same. First, all answers have the same number of tokens. Then each answer ends where the model ends it, at
the latest after 16 tokens to ``tokens`` tokens, by query. Prints tokens of answers per second of CPU time, and the ratio
to plain ``generate``. The target is at least 1.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.local_model.engine import GenerationRequest, LocalEngine
from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.sources.starter import Starter
from tests.tiny_models import save_language_model


def main(arguments: Sequence[str]) -> None:
    options = dict(argument.partition("=")[::2] for argument in arguments)
    model = options.get("model", "pocket")
    if model != "tiny":
        asyncio.run(measure(model, options))
        return
    with tempfile.TemporaryDirectory() as folder:
        shape = {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4, "num_attention_heads": 8}
        asyncio.run(measure(str(save_language_model(Path(folder), **shape)), options))


async def measure(model: str, options: dict[str, str]) -> None:
    rounds, count, n = (int(options.get(name, most)) for name, most in (("rounds", 3), ("queries", 16), ("n", 8)))
    rows, tokens = int(options.get("rows", 128)), int(options.get("tokens", 96))
    numbers = random.Random(0)
    async with LocalTransformers(model=model, max_rows=rows, threads=1) as provider:
        await provider.opened()
        engine = provider.engine
        ends = engine.ends
        prompts = [engine.encode(query.messages, query.tools) for query in list(Starter())[:count]]
        for title in ("equal lengths", "mixed lengths"):
            engine.ends = [] if title == "equal lengths" else ends
            limits = [tokens if not engine.ends else numbers.randint(16, tokens) for _ in prompts]
            work = [
                GenerationRequest(prompt, n, seed=1, max_tokens=limit)
                for prompt, limit in zip(prompts, limits, strict=True)
            ]
            rates: dict[str, list[float]] = {"plain generate": [], "in process": []}
            for _ in range(rounds):
                started = time.process_time()
                made = await asyncio.to_thread(plain, engine, work, rows)
                rates["plain generate"].append(made / (time.process_time() - started))
                started = time.process_time()
                answers = await asyncio.gather(*(provider.generate(request) for request in work))
                made = sum(one.tokens for group in answers for one in group)
                rates["in process"].append(made / (time.process_time() - started))
            print(f"{model}: {title}, {count} queries × {n} answers, batches of {rows}, {rounds} rounds")
            for name, found in rates.items():
                ratios = [a / b for a, b in zip(found, rates["plain generate"], strict=True)]
                print(
                    f"  {name:<16}{statistics.median(found):8,.0f} tokens/s of CPU   × {statistics.median(ratios):.2f} "
                    f"({min(ratios):.2f} to {max(ratios):.2f})"
                )


def plain(engine: LocalEngine, work: Sequence[GenerationRequest], rows: int) -> int:
    """Sample with ``generate`` in batches of ``rows``, padded on the left. Return the number of tokens of all answers."""
    import torch
    from transformers import GenerationConfig

    made = 0
    ordered = sorted(work, key=lambda request: len(request.prompt))
    n = work[0].n
    for start in range(0, len(ordered), rows // n):
        batch = ordered[start : start + rows // n]
        longest = max(len(request.prompt) for request in batch)
        ids = torch.tensor([[0] * (longest - len(request.prompt)) + list(request.prompt) for request in batch])
        mask = torch.tensor([[0] * (longest - len(one.prompt)) + [1] * len(one.prompt) for one in batch])
        settings = GenerationConfig(
            do_sample=True,
            top_k=0,
            num_return_sequences=n,
            max_new_tokens=max(request.max_tokens for request in batch),
            eos_token_id=engine.ends or None,
            pad_token_id=0,
        )
        with engine.computing():
            output = engine.network.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        for place, answer in enumerate(output[:, longest:].tolist()):
            ended = next((count for count, token in enumerate(answer, 1) if token in engine.ends), len(answer))
            made += min(ended, batch[place // n].max_tokens)
    return made


if __name__ == "__main__":
    main(sys.argv[1:])
