"""Decoding gives the same answers as ``generate`` of transformers, for every kind of cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from bestofn.builders.local_model.decoding import SequenceState, decode, logits_alone
from bestofn.builders.local_model.kv_cache import can_select_rows, new_cache
from bestofn.builders.local_model.seeded_sampling import TokenSampler, uniforms

SMALL = {"vocab_size": 90, "hidden_size": 32, "num_attention_heads": 4, "pad_token_id": 0, "eos_token_id": 1}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "LlamaConfig": SMALL | {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2},
    "Qwen3Config": SMALL | {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8},
    "MistralConfig": SMALL
    | {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "sliding_window": 6},
    "GPT2Config": {"vocab_size": 90, "n_embd": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0, "eos_token_id": 1},
    "Qwen3NextConfig": SMALL
    | {"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8, "num_experts": 2}
    | {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
    | {"moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts_per_tok": 1},
    "MambaConfig": {"vocab_size": 90, "hidden_size": 32, "num_hidden_layers": 2, "pad_token_id": 0, "eos_token_id": 1},
}
PROMPTS = [(5, 9, 31), (7, 8, 9, 10, 11, 12, 13, 14), (44,), (5, 9, 31), (61, 62, 63, 64, 65)]
STEPS = 24


@pytest.fixture(params=CONFIGURATIONS)
def network(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    configuration = getattr(transformers, request.param)(**CONFIGURATIONS[request.param])
    made = transformers.AutoModelForCausalLM.from_config(configuration).eval()
    with torch.no_grad():  # wide enough apart that rounding decides nothing, and some rows end early
        made.get_output_embeddings().weight.mul_(30)
    return made


def rows(prompts: list[tuple[int, ...]], seed: int = 0) -> list[SequenceState]:
    return [
        SequenceState(0, place, prompt, uniforms(seed + place, prompt, STEPS)) for place, prompt in enumerate(prompts)
    ]


def test_greedy_answers_are_those_of_generate(network: Any) -> None:
    mine = rows(PROMPTS)
    with torch.inference_mode():
        decode(network, mine, TokenSampler(temperature=0), max_tokens=STEPS, ends=[1], pad=0)
        for row in mine:
            ids = torch.tensor([row.prompt])
            made = network.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=STEPS, do_sample=False)
            assert_same_or_tied(network, row, made[0, len(row.prompt) :].tolist())


def assert_same_or_tied(network: Any, row: SequenceState, tokens: list[int]) -> None:
    """Assert that the answers are equal, or first differ at two tokens with the same logit, up to rounding."""
    place = next((i for i, pair in enumerate(zip(row.tokens, tokens, strict=False)) if pair[0] != pair[1]), None)
    if place is None:
        assert row.tokens == tokens
        return
    logits = logits_alone(network, [*row.prompt, *tokens[:place]])[-1]
    assert logits[row.tokens[place]].item() == pytest.approx(logits[tokens[place]].item(), abs=1e-2)


def test_an_answer_is_the_same_alone_and_in_a_batch(network: Any) -> None:
    with torch.inference_mode():
        together, again = rows(PROMPTS), rows(PROMPTS)
        decode(network, together, TokenSampler(), max_tokens=STEPS, ends=[1], pad=0)
        for row in again:
            decode(network, [row], TokenSampler(), max_tokens=STEPS, ends=[1], pad=0)
    assert [row.tokens for row in together] == [row.tokens for row in again]
    assert [row.logprob for row in together] == pytest.approx([row.logprob for row in again], abs=1e-3)


def test_rows_that_end_early_leave_the_others_alone(network: Any) -> None:
    """The first token of each row determines its length, so the batch shrinks several times."""

    def length(tokens: Sequence[int]) -> int:
        return 2 + 5 * (tokens[0] % 5)

    whole, cut = rows(PROMPTS, seed=7), rows(PROMPTS, seed=7)
    with torch.inference_mode():
        decode(network, whole, TokenSampler(), max_tokens=STEPS, ends=[], pad=0)
        decode(
            network,
            cut,
            TokenSampler(),
            max_tokens=STEPS,
            ends=[],
            pad=0,
            stopped=lambda made: len(made) == length(made),
        )
    assert len({len(row.tokens) for row in cut}) > 1
    assert [row.tokens for row in cut] == [row.tokens[: length(row.tokens)] for row in whole]


def test_attention_layers_have_room_and_other_caches_stay_as_they_are() -> None:
    llama = transformers.LlamaConfig(**CONFIGURATIONS["LlamaConfig"])
    cache = new_cache(llama, room=4)
    assert can_select_rows(cache)
    layer, shape = cache.layers[0], (2, 2, 1, 8)
    states = [torch.from_numpy(np.full(shape, number, np.float32)) for number in range(7)]
    keys = None
    for state in states:
        keys, values = layer.update(state, -state)
    assert keys[0, 0, :, 0].tolist() == list(range(7))
    assert values[1, 1, :, 7].tolist() == [-number for number in range(7)]
    layer.batch_select_indices(torch.tensor([1, 1, 0]))
    keys, _ = layer.update(torch.ones(3, 2, 1, 8), torch.ones(3, 2, 1, 8))
    assert keys.shape == (3, 2, 8, 8)
    assert keys[2, 0, -2:, 0].tolist() == [6, 1]
    assert not can_select_rows(new_cache(transformers.MambaConfig(**CONFIGURATIONS["MambaConfig"]), room=4))
