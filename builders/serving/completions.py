"""Answers Completions requests: prompts without a chat template, as text or token ids. Used by ``app``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import accumulate

from bestofn.builders.errors import RequestError
from bestofn.builders.local_model.engine import GeneratedAnswer, GenerationRequest, TopTokens
from bestofn.builders.local_model.grammar import RuleSettings
from bestofn.builders.local_model.provider import LocalTransformers, sampling_options
from bestofn.builders.records import JsonObject, Usage
from bestofn.builders.serving.bodies import CompletionBody


async def complete(provider: LocalTransformers, body: CompletionBody) -> tuple[list[JsonObject], Usage]:
    """Generate ``body.n`` choices per prompt. Return all choices and their total usage."""
    choices: list[JsonObject] = []
    usage = Usage()
    for prompt in body.prompts:
        request = await asyncio.to_thread(generation_request, provider, body, prompt)
        answers = await provider.generate(request) if body.max_tokens != 0 else [GeneratedAnswer("", 0, "length", 0.0)]
        written = sum(answer.tokens for answer in answers)
        first = await asyncio.to_thread(_echoed, provider, body, request.prompt)
        choices += [_choice(answer, first, body) for answer in answers]
        usage += Usage(prompt=len(request.prompt), completion=written)
    return choices, usage


def generation_request(provider: LocalTransformers, body: CompletionBody, prompt: str | list[int]) -> GenerationRequest:
    """Return the request for one prompt.

    Raises ``RequestError`` if the prompt does not fit or has a token id that is not in the vocabulary.
    """
    engine = provider.engine
    ids = tuple(engine.tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else prompt)
    if unknown := [token for token in ids if not 0 <= token < engine.vocabulary_size]:
        raise RequestError(
            f"prompt has the token {unknown[0]}; {provider.model} has the tokens 0 to {engine.vocabulary_size - 1}",
            status=400,
        )
    sampling = body.sampling(body.max_tokens or 1, top_logprobs=body.logprobs or 0)
    return GenerationRequest(
        prompt=ids,
        n=body.n,
        seed=sampling.seed,
        max_tokens=engine.answer_tokens(ids, sampling.max_tokens),
        token_logprobs=body.logprobs is not None,
        keep_special=body.keep_special_tokens,
        rules=RuleSettings(**provider.token_rules(sampling)),
        **sampling_options(sampling),
    )


def _echoed(provider: LocalTransformers, body: CompletionBody, prompt: Sequence[int]) -> GeneratedAnswer:
    """Return the prompt as the beginning of an answer, with log-probabilities if the request asks for them.

    The first token has no log-probability.
    """
    engine = provider.engine
    if not body.echo:
        return GeneratedAnswer("", 0, "stop", 0.0)
    text = engine.tokenizer.decode(list(prompt), skip_special_tokens=not body.keep_special_tokens)
    if body.logprobs is None:
        return GeneratedAnswer(text, len(prompt), "stop", 0.0)
    values, top = engine.logprobs_of(prompt[:1], prompt[1:], body.logprobs)
    return GeneratedAnswer(text, len(prompt), "stop", 0.0, values, engine.texts(prompt), top)


def _choice(answer: GeneratedAnswer, echoed: GeneratedAnswer, body: CompletionBody) -> JsonObject:
    logprobs = None
    if body.logprobs is not None:
        tokens = [*echoed.token_texts, *answer.token_texts]
        unknown = [None] if echoed.token_texts else []
        top = [_by_text(entries) for entries in (*echoed.top_logprobs, *answer.top_logprobs)]
        logprobs = {
            "tokens": tokens,
            "token_logprobs": [*unknown, *echoed.token_logprobs, *answer.token_logprobs],
            "top_logprobs": [*unknown, *top] if body.logprobs else None,
            "text_offset": list(accumulate((len(token) for token in tokens[:-1]), initial=0)) if tokens else [],
        }
    return {"text": echoed.text + answer.text, "finish_reason": answer.stop_reason, "logprobs": logprobs}


def _by_text(entries: TopTokens) -> dict[str, float]:
    """Return the log-probability of each text. If several tokens have the same text, the most probable one is used."""
    return dict(reversed(entries))
