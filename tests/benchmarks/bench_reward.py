"""Compares ``SequenceScorer`` (shared prompts, planned batches) with a plain padded loop, in turn.

    python tests/benchmarks/bench_reward.py [tiny|100m|all] [--rounds N] [--threads N]

The prompts have 1,000 tokens, and each has 8 answers of 20 to 200 tokens. The plain loop scores each query as one
padded batch of 8. Prints the ratio of the median times and the largest difference of scores. Also prints the share of
padding in the batches of 2,000 answers, a few of which are much longer than the others.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bestofn.reward.sequence_scorer import SequenceScorer, batches, padding_waste

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 6, "num_attention_heads": 8},
    "100m": {
        "hidden_size": 768,
        "intermediate_size": 2048,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "vocab_size": 32_000,
    },
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32},
}


def make(size: str) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForSequenceClassification

    torch.manual_seed(0)
    shape = SIZES[size]
    config = LlamaConfig(
        **{"vocab_size": 8_000, **shape},
        num_key_value_heads=shape["num_attention_heads"] // 4 or 1,
        num_labels=1,
        pad_token_id=0,
    )
    model = LlamaForSequenceClassification(config).eval()
    return model.to("cuda", torch.bfloat16) if torch.cuda.is_available() else model


def group(draw: random.Random, prompt: int = 1_000, n: int = 8) -> list[list[int]]:
    start = [draw.randrange(1, 8_000) for _ in range(prompt)]
    return [start + [draw.randrange(1, 8_000) for _ in range(draw.randrange(20, 201))] for _ in range(n)]


def plain(model: Any, siblings: list[list[int]]) -> list[float]:
    """Score the answers to one query as one padded batch with an attention mask. Return the scores."""
    import torch

    width = max(map(len, siblings))
    ids = torch.tensor([[*one, *[0] * (width - len(one))] for one in siblings], device=model.device)
    mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in siblings], device=model.device)
    with torch.inference_mode():
        return model(input_ids=ids, attention_mask=mask).logits[:, 0].float().tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", default="tiny", choices=[*SIZES, "all"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    for size in ("tiny", "100m") if options.size == "all" else (options.size,):
        measure(size, options.rounds)
    draw = random.Random(1)
    lengths = [int(min(4_000, 20 + 40 * draw.paretovariate(1.1))) for _ in range(2_000)]
    fixed = [list(range(at, min(at + 8, 2_000))) for at in range(0, 2_000, 8)]
    ours = padding_waste(lengths, batches(lengths, 16_384))
    print(
        f"padding of a long-tailed mix: {100 * ours:.1f} % (batches of 8 as they come: {100 * padding_waste(lengths, fixed):.1f} %)"
    )


def measure(size: str, rounds: int) -> None:
    model = make(size)
    parameters = sum(weight.numel() for weight in model.parameters())
    scorer = SequenceScorer(model)
    draw = random.Random(0)
    times: dict[str, list[float]] = {"plain": [], "shared": []}
    furthest, tokens = 0.0, 0
    for _ in range(rounds + 1):
        siblings = group(draw)
        tokens = sum(map(len, siblings))
        started = time.perf_counter()
        usual = plain(model, siblings)
        between = time.perf_counter()
        ours = scorer.score([siblings])[0]
        ended = time.perf_counter()
        times["plain"].append(between - started)
        times["shared"].append(ended - between)
        furthest = max(furthest, *(abs(a - b) for a, b in zip(usual, ours, strict=True)))
    slow, fast = (statistics.median(times[name][1:]) for name in ("plain", "shared"))  # the first round warms up
    print(
        f"{size}: {parameters / 1e6:.0f} M parameters, {model.dtype}, {model.device}: plain {slow:.2f} s, "
        f"shared {fast:.2f} s a query of 8, {slow / fast:.1f} ×; {tokens / fast:,.0f} tokens/s; "
        f"scores differ by at most {furthest:.1e}"
    )


if __name__ == "__main__":
    main()
