"""Answers are those of ``generate`` for one prompt alone, for every kind of cache, and grammars hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import transformers

from bestofn.builders.errors import RequestError
from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.written_calls import written_calls
from bestofn.builders.local_model.engine import GenerationRequest, SamplerSettings
from bestofn.builders.local_model.generation import sample
from bestofn.builders.local_model.grammar import compiled, grammar_of, token_vocabulary
from bestofn.builders.local_model.rows import Job, Row
from tests.tiny_models import WatchedSteps, tokenizer

SMALL = {"vocab_size": 90, "hidden_size": 32, "num_attention_heads": 4, "pad_token_id": 0, "eos_token_id": 1}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "LlamaConfig": SMALL | {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2},
    "Qwen3Config": SMALL | {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8},
    "MistralConfig": SMALL
    | {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2, "sliding_window": 6},
    "GPT2Config": {"vocab_size": 90, "n_embd": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0, "eos_token_id": 1},
    "BloomConfig": {"vocab_size": 90, "hidden_size": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0},
    "Qwen3NextConfig": SMALL
    | {"num_hidden_layers": 4, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8, "num_experts": 2}
    | {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
    | {"moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts_per_tok": 1},
    "MambaConfig": {"vocab_size": 90, "hidden_size": 32, "num_hidden_layers": 2, "pad_token_id": 0, "eos_token_id": 1},
}
PROMPTS = [(5, 9, 31), (7, 8, 9, 10, 11, 12, 13, 14), (44,), (5, 9, 31), (61, 62, 63, 64, 65)]
STEPS = 24
ENDS = (1,)
GREEDY = SamplerSettings(temperature=0)


@pytest.fixture(params=CONFIGURATIONS)
def network(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    configuration = getattr(transformers, request.param)(**CONFIGURATIONS[request.param])
    made = transformers.AutoModelForCausalLM.from_config(configuration).eval()
    made.generation_config = transformers.GenerationConfig()
    with torch.no_grad():  # wide enough apart that rounding decides nothing, and some rows end early
        made.get_output_embeddings().weight.mul_(30)
    return made


def rows(prompts: Sequence[tuple[int, ...]], **options: Any) -> list[Row]:
    """Return a row per prompt. The first answers must end earlier than the last ones."""
    limits = [STEPS - 4 * (len(prompts) - place) for place in range(len(prompts))]
    return [
        Row(Job(GenerationRequest(prompt, **({"max_tokens": limit, "sampler": GREEDY} | options))), 0, None, None)
        for prompt, limit in zip(prompts, limits, strict=True)
    ]


def logits_after(network: Any, ids: Sequence[int]) -> torch.Tensor:
    with torch.inference_mode():
        return network(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0]


def test_answers_are_those_of_each_prompt_alone(network: Any) -> None:
    """The answers of a batch are those of ``generate`` for each prompt alone, unless rounding decides a token.

    Some prompts occur twice and have other lengths, and some rows end early.
    """
    batch = rows(PROMPTS)
    with torch.inference_mode():
        sample(network, batch, ENDS)
    for row in batch:
        prompt, tokens = row.request.prompt, row.sampled.tokens
        ids = torch.tensor([prompt])
        made = network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=row.request.max_tokens,
            do_sample=False,
            eos_token_id=1,
        )[0, len(prompt) :].tolist()
        place = next((i for i, pair in enumerate(zip(tokens, made, strict=False)) if pair[0] != pair[1]), None)
        if place is None:
            assert tokens == made
        else:
            logits = logits_after(network, [*prompt, *tokens[:place]])[-1]
            assert logits[tokens[place]].item() == pytest.approx(logits[made[place]].item(), abs=1e-2)


def test_log_probabilities_are_those_of_the_model(network: Any) -> None:
    batch = rows(PROMPTS, sampler=SamplerSettings(0.7, 0.9, 20, 0.01), seed=3, top_logprobs=3)
    with torch.inference_mode():
        sample(network, batch, ENDS)
    for row in batch:
        prompt, tokens = row.request.prompt, row.sampled.tokens
        logprobs = logits_after(network, [*prompt, *tokens])[len(prompt) - 1 : -1].float().log_softmax(-1)
        expected = logprobs.gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist()
        assert row.sampled.logprobs == pytest.approx(expected, abs=1e-2)
        best = [[value for _, value in entries] for entries in row.sampled.top]
        assert torch.tensor(best).allclose(logprobs.topk(3).values, atol=1e-2)


@pytest.mark.parametrize("network", ["LlamaConfig"], indirect=True)
def test_a_prompt_is_read_once_and_ended_rows_leave(network: Any) -> None:
    batch = rows([PROMPTS[1]] * 8, seed=1, sampler=SamplerSettings())
    for row in batch[:4]:
        row.job.answers.cancel()
    with torch.inference_mode(), WatchedSteps(network) as steps:
        sample(network, batch, ())
    assert steps.sizes[:3] == [1, 8, 4]
    assert max(steps.sizes[2:]) == 4
    assert [len(row.sampled.tokens) for row in batch[4:]] == [row.request.max_tokens for row in batch[4:]]


# --- grammars --------------------------------------------------------------------------------------------------------

CITY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "tags": {"type": "array", "items": {"enum": ["a", "bé", 3]}, "minItems": 1, "maxItems": 3},
        "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "size": {"type": "integer", "minimum": -3, "maximum": 10},
    },
    "required": ["name", "tags", "parent", "size"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vocabulary() -> Any:
    tok = tokenizer()
    return token_vocabulary(tok, len(tok), [tok.eos_token_id])


def is_allowed(vocabulary: Any, grammar: str, text: str) -> bool:
    matcher = compiled(grammar, vocabulary)
    tokens = vocabulary.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('{"name":"x","tags":["a"],"parent":null,"size":3}', True),
        (
            '{"name": "x", "tags": ["bé", 3], "parent": {"name":"y","tags":[3],"parent":null,"size":-3}, "size": 1}',
            True,
        ),
        ('{"name":"","tags":["a"],"parent":null,"size":3}', False),
        ('{"name":"x","tags":[],"parent":null,"size":3}', False),
        ('{"name":"x","tags":["a"],"parent":null,"size":11}', False),
        ('{"name":"x","tags":["a"],"parent":null,"size":3,"other":1}', False),
        ('{"name":"x",\n"tags":["a"],"parent":null,"size":3}', False),
        ('{"name":"x","tags":["a"],"parent":null,"size":3', False),
    ],
)
def test_a_schema_decides(vocabulary: Any, text: str, allowed: bool) -> None:
    assert is_allowed(vocabulary, grammar_of(CITY, ()), text) == allowed
    assert not allowed or problem(CITY, json.loads(text)) == ""


@pytest.mark.parametrize("extended", [{}, {"additionalProperties": True}, {"allOf": [{"required": ["b"]}]}])
def test_an_object_has_no_other_keys_unless_the_schema_allows_them(vocabulary: Any, extended: dict[str, Any]) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], **extended}
    grammar = grammar_of({"type": "object", "properties": {"in": inner}, "required": ["in"]}, ())
    assert is_allowed(vocabulary, grammar, '{"in":{"a":1,"b":2}}') == bool(extended)
    assert not is_allowed(vocabulary, grammar, '{"in":{"a":1,"b":2},"c":3}')


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"not": {"type": "null"}}, "not"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "thing"}, "thing"),
        ({"$ref": "#/$defs/none"}, "does not exist"),
        ({"$ref": "#"}, "allows no value"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "minItems"),
        ({"type": "object", "properties": {"a": "string"}}, "must be an object"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(vocabulary: Any, schema: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        compiled(grammar_of(schema, ()), vocabulary)


def test_the_schemas_of_the_judges_are_supported(vocabulary: Any) -> None:
    from bestofn.builders.stages.requests import SCHEMA as STEPS
    from bestofn.reward import judge_reward, listwise_reward, process_reward
    from bestofn.verifiers.judge import persona, verifier

    judges = (judge_reward, listwise_reward, process_reward, persona, verifier)
    for schema in (STEPS, *(one.SCHEMA for one in judges)):
        compiled(grammar_of(schema, ()), vocabulary)


def test_a_call_of_the_grammar_is_read_as_this_call(vocabulary: Any) -> None:
    weather = {"name": "weather", "parameters": {"properties": {"city": {"enum": ["Bern"]}}, "required": ["city"]}}
    odd = {"name": "odd", "parameters": {"properties": {"day": {"not": {"type": "null"}}}}}
    tools = [{"type": "function", "function": one} for one in (weather, odd, {"name": "none"})]
    text = '<tool_call>\n{"name": "weather", "arguments": {"city":"Bern"}}\n</tool_call>'
    grammar = grammar_of({"type": "null"}, tools)
    assert is_allowed(vocabulary, grammar, text)
    assert is_allowed(vocabulary, grammar, "null")
    assert not is_allowed(vocabulary, grammar, text.replace("Bern", "Rome"))
    assert not is_allowed(vocabulary, grammar, text.replace("}}", ',"more":1}}'))
    assert is_allowed(vocabulary, grammar, '<tool_call>\n{"name": "odd", "arguments": {"day":[1]}}\n</tool_call>')
    assert is_allowed(vocabulary, grammar, '<tool_call>\n{"name": "none", "arguments": {}}\n</tool_call>')
    (call,) = written_calls(text, tools).calls
    assert call["function"]["name"] == "weather"
