"""Decoding gives the same answers as ``generate`` of transformers, for every kind of cache."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bestofn.builders.local_model.decoding import RunningBatch, SequenceState, logits_alone
from bestofn.builders.local_model.kv_cache import RowLayer, new_cache, rows_can_join
from bestofn.builders.local_model.seeded_sampling import TokenSampler, random_numbers

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


GREEDY = TokenSampler(temperature=0)


def rows(prompts: Sequence[tuple[int, ...]], seed: int = 0, **options: Any) -> list[SequenceState]:
    return [
        SequenceState(prompt=prompt, random=random_numbers(seed + place, prompt), **({"max_tokens": STEPS} | options))
        for place, prompt in enumerate(prompts)
    ]


def decode(network: Any, waiting: Sequence[SequenceState], *, at_once: int = 99, ends: Sequence[int] = (1,)) -> None:
    """Sample the answers in ``waiting``, at most ``at_once`` at a time."""
    batch: RunningBatch[SequenceState] = RunningBatch(network, ends=ends, pad=0)
    left = list(waiting)
    with torch.inference_mode():
        while left or batch.rows:
            room = at_once - len(batch.rows) if batch.accepts_rows else 0
            if left[:room]:
                batch.add(left[:room])
                del left[:room]
            batch.step()


def test_greedy_answers_are_those_of_generate(network: Any) -> None:
    mine = rows(PROMPTS, sampler=GREEDY)
    decode(network, mine, at_once=2)
    for row in mine:
        ids = torch.tensor([row.prompt])
        made = network.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=STEPS, do_sample=False)
        assert_same_or_tied(network, row, made[0, len(row.prompt) :].tolist())


def assert_same_or_tied(network: Any, row: SequenceState, tokens: list[int]) -> None:
    """Assert that the answers are equal, or that the first different tokens have equal logits up to rounding."""
    place = next((i for i, pair in enumerate(zip(row.tokens, tokens, strict=False)) if pair[0] != pair[1]), None)
    if place is None:
        assert row.tokens == tokens
        return
    logits = logits_alone(network, [*row.prompt, *tokens[:place]])[-1]
    assert logits[row.tokens[place]].item() == pytest.approx(logits[tokens[place]].item(), abs=1e-2)


STOPS: list[Callable[[Sequence[int]], bool]] = [lambda tokens: False, lambda tokens: len(tokens) == 2 + tokens[0] % 5]
SAMPLERS = [GREEDY, TokenSampler(), TokenSampler(0.7, 0.9), TokenSampler(1.3, None, 5)]


def assert_company_changes_nothing(network: Any, together: list[SequenceState], at_once: int) -> None:
    again = [
        dataclasses.replace(one, random=copy.deepcopy(one.random), tokens=[], logprob=0.0, done=False)
        for one in together
    ]
    decode(network, together, at_once=at_once)
    for one in again:
        decode(network, [one])
    assert [one.tokens for one in together] == [one.tokens for one in again]
    assert [one.logprob for one in together] == pytest.approx([one.logprob for one in again], abs=1e-3)


def test_an_answer_is_the_same_alone_and_in_company(network: Any) -> None:
    together = [
        rows([prompt], place, max_tokens=STEPS - 5 * place, sampler=SAMPLERS[place % 4], stopped=STOPS[place % 2])[0]
        for place, prompt in enumerate(PROMPTS)
    ]
    assert_company_changes_nothing(network, together, at_once=3)


@pytest.mark.parametrize("network", ["LlamaConfig", "MistralConfig"], indirect=True)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_answer_is_the_same_in_any_company(network: Any, data: st.DataObject) -> None:
    """An answer does not depend on the other rows of its batch, which join and leave at any token.

    The rows have different lengths, samplers and stop conditions.
    """
    row = st.builds(
        lambda prompt, seed, **given: rows([prompt], seed, **given)[0],
        st.one_of(st.sampled_from(PROMPTS), st.lists(st.integers(2, 89), min_size=1, max_size=12).map(tuple)),
        st.integers(0, 9),
        max_tokens=st.integers(1, STEPS),
        sampler=st.sampled_from(SAMPLERS),
        stopped=st.sampled_from(STOPS),
    )
    together = data.draw(st.lists(row, min_size=1, max_size=6))
    assert_company_changes_nothing(network, together, at_once=data.draw(st.integers(1, 4)))


def test_rows_continue_in_a_new_batch(network: Any) -> None:
    """Rows can continue in another batch with the tokens that they already have, as after an out-of-memory error."""
    whole, moved = rows(PROMPTS, seed=7), rows(PROMPTS, seed=7)
    decode(network, whole)
    batch: RunningBatch[SequenceState] = RunningBatch(network, ends=[1], pad=0)
    with torch.inference_mode():
        batch.add(moved)
        for _ in range(5):
            batch.step()
    decode(network, [row for row in moved if not row.done], at_once=2)
    assert [row.tokens for row in moved] == [row.tokens for row in whole]


def test_a_prompt_is_read_once_for_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIGURATIONS["LlamaConfig"])).eval()
    batch: RunningBatch[SequenceState] = RunningBatch(llama, ends=[1], pad=0)
    read: list[int] = []
    whole = batch._read
    monkeypatch.setattr(
        batch, "_read", lambda sequences, cache: [read.append(len(sequences)), whole(sequences, cache)][1]
    )
    with torch.inference_mode():
        batch.add(rows([PROMPTS[1]] * 3))
        batch.add(rows([PROMPTS[1]] * 2))
        batch.add(rows([PROMPTS[0], PROMPTS[1]]))
    assert read == [1, 2], "all answers to a prompt that were added together or one after the other share its reading"


@given(data=st.data())
def test_a_layer_stores_the_tokens_of_each_row_at_its_end(data: st.DataObject) -> None:
    """A layer of the cache holds the right tokens of each row after random joins, removals and new tokens."""
    window = data.draw(st.none() | st.integers(2, 6))
    layer, expected, number = RowLayer(window), [], 0
    for _ in range(data.draw(st.integers(1, 12))):
        joins = not expected or data.draw(st.booleans())
        if joins:
            lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
            other = RowLayer(window)
            states = torch.zeros(len(lengths), 1, max(lengths), 1)
            for place, length in enumerate(lengths):
                states[place, 0, -length:, 0] = torch.arange(number, number + length)
                expected.append(list(range(number, number + length)))
                number += length
            other.update(states, -states)
            layer.join(other, torch.arange(len(lengths)), max(map(len, expected)))
        elif len(expected) > 1 and data.draw(st.booleans()):
            gone = data.draw(st.integers(0, len(expected) - 1))
            expected[gone] = expected[-1]
            expected.pop()
            moves = [len(expected)] if gone < len(expected) else []
            targets = [gone] if moves else []
            layer.keep(len(expected), max(map(len, expected)), torch.tensor(moves).long(), torch.tensor(targets).long())
        wanted, first = layer.get_mask_sizes(1)
        new = torch.arange(number, number + len(expected)).float()[:, None, None, None]
        number += len(expected)
        keys, values = layer.update(new, -new)
        expected = [[*row, int(value)] for row, value in zip(expected, new.flatten().tolist(), strict=True)]
        assert keys.shape == (len(expected), 1, wanted, 1)
        assert first + wanted == layer.get_seq_length() == max(map(len, expected))
        for row, numbers in enumerate(expected):
            seen = min(len(numbers), wanted)
            assert keys[row, 0, -seen:, 0].tolist() == numbers[-seen:]
            assert values[row, 0, -seen:, 0].tolist() == [-value for value in numbers[-seen:]]


def test_rows_cannot_join_a_recurrent_cache() -> None:
    assert rows_can_join(new_cache(transformers.LlamaConfig(**CONFIGURATIONS["LlamaConfig"])))
    assert not rows_can_join(new_cache(transformers.MambaConfig(**CONFIGURATIONS["MambaConfig"])))
