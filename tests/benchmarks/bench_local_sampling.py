"""Sampling in process against plain batched ``generate`` with the same model, prompts and answers' lengths.

Interleaved in one run, for the machine may be shared; prints tokens a second and their ratio (wanted: at least 0.9).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

from builders.providers.local_transformers import LocalTransformers
from builders.records import Request, Sampling
from builders.sources.starter import Starter

QUERIES, N, ROUNDS, ROWS = 64, 8, 3, 128


def main() -> None:
    asyncio.run(measure())


async def measure() -> None:
    import torch
    from transformers import GenerationConfig

    provider = LocalTransformers(model="pocket", max_answer_tokens=96, max_rows=ROWS)
    requests = [Request(query.messages, query.tools, Sampling(seed=1)) for query in list(Starter())[:QUERIES]]
    ratios: list[float] = []
    async with provider:
        engine = provider.engine
        prompts = [engine.encode(request.messages, request.tools) for request in requests]

        def plain() -> int:
            """Batches of ``ROWS`` answers over prompts sorted by length, drawn by transformers itself."""
            made = 0
            each = ROWS // N
            ordered = sorted(prompts, key=len)
            for start in range(0, len(ordered), each):
                group = ordered[start : start + each]
                texts = [engine.tokenizer.decode(prompt) for prompt in group]
                inputs = engine.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
                with torch.inference_mode():
                    output = engine.network.generate(
                        input_ids=inputs["input_ids"],
                        attention_mask=inputs["attention_mask"],
                        generation_config=GenerationConfig(
                            do_sample=True,
                            num_return_sequences=N,
                            max_new_tokens=96,
                            eos_token_id=engine.ends,
                            pad_token_id=engine.pad,
                        ),
                    )
                new = output[:, inputs["input_ids"].shape[1] :]
                made += int((new != engine.pad).sum())
            return made

        for number in range(ROUNDS + 1):
            started = time.perf_counter()
            made = plain()
            plain_rate = made / (time.perf_counter() - started)
            started = time.perf_counter()
            answers = await asyncio.gather(*(provider.sample(request, N) for request in requests))
            ours = sum(one.usage.completion for group in answers for one in group)
            rate = ours / (time.perf_counter() - started)
            if number:  # the first warms up
                ratios.append(rate / plain_rate)
                print(f"plain generate {plain_rate:8,.0f} tokens/s   in process {rate:8,.0f}   ratio {ratios[-1]:.2f}")
    print(
        f"median ratio {statistics.median(ratios):.2f} of {QUERIES} queries x {N} answers, {torch.get_num_threads()} threads"
    )


if __name__ == "__main__":
    sys.exit(main())
