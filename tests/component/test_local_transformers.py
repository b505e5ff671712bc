"""The in-process provider with the embedded policy: a real model, no network."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.errors import ConfigError, RequestError, ServiceError
from bestofn.builders.local_model import scheduler as scheduler_module
from bestofn.builders.local_model.decoding import RunningBatch
from bestofn.builders.local_model.engine import GenerationRequest, LocalEngine
from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.local_model.scheduler import Job, Scheduler
from bestofn.builders.local_model.seeded_sampling import LOGPROB_STEP, TokenSampler, random_numbers, rounded_logprob
from bestofn.builders.local_model.token_rules import RuleSettings
from bestofn.builders.pocket.policy import POCKET_WEIGHTS
from bestofn.builders.records import Completion, Request, Sampling
from bestofn.builders.sampling.provider import Provider
from bestofn.builders.sources.starter import Starter
from tests.tiny_models import WatchedSteps

QUERIES = list(Starter())[:12]


@pytest.fixture(scope="module")
def engine() -> LocalEngine:
    made = LocalEngine("pocket")
    made.load()
    return made


def request(text: str = "What is 12 + 13?", **sampling: Any) -> Request:
    return Request(({"role": "user", "content": text},), sampling=Sampling(**({"seed": 1} | sampling)))


def sampled(requests: Sequence[Request], n: int, **settings: Any) -> list[list[Completion]]:
    async def all_of_them() -> list[list[Completion]]:
        async with LocalTransformers(**({"model": "pocket", "max_answer_tokens": 96} | settings)) as provider:
            return list(await asyncio.gather(*(provider.sample(one, n) for one in requests)))

    return asyncio.run(all_of_them())


def facts(completions: Sequence[Completion]) -> list[Any]:
    """Return the fields that do not depend on the batch: no times, and no log-probabilities (see ``logprobs``)."""
    return [(dict(one.message), one.stop_reason, one.usage) for one in completions]


def logprobs(completions: Sequence[Completion]) -> Any:
    """Return the log-probabilities, to be compared with a tolerance: rounding depends on batch and processor."""
    return pytest.approx([one.logprob for one in completions], abs=1.01 * LOGPROB_STEP)


def test_its_identity_contains_the_weights() -> None:
    provider = LocalTransformers(model="pocket")
    assert isinstance(provider, Provider)
    assert provider.identity == LocalTransformers(model="pocket", max_rows=3).identity
    assert provider.identity != LocalTransformers(model="pocket", max_answer_tokens=9).identity


def test_two_runs_are_equal_whatever_the_order_and_the_batches() -> None:
    requests = [Request(query.messages, query.tools, Sampling(seed=5)) for query in QUERIES]
    order = list(range(len(requests)))
    random.Random(0).shuffle(order)
    first = sampled(requests, 4)
    shuffled = sampled([requests[place] for place in order], 4, max_rows=7)
    again = dict(zip(order, shuffled, strict=True))
    assert [facts(one) for one in first] == [facts(again[place]) for place in range(len(requests))]
    for place, one in enumerate(first):
        assert [answer.logprob for answer in again[place]] == logprobs(one)


def test_requests_share_the_time_of_their_batches() -> None:
    """The seconds of an answer are its share of the batch time. The time in the queue is not counted."""
    started = time.perf_counter()
    completions = sampled([request(f"What is {i} + 1?") for i in range(6)], 2, max_rows=4, max_answer_tokens=8)
    elapsed = time.perf_counter() - started
    assert all(len({one.seconds for one in of_request}) == 1 for of_request in completions)
    assert 0 < sum(of_request[0].seconds for of_request in completions) <= elapsed


def test_a_later_sample_is_the_same_alone() -> None:
    """Sample i of a request with the seed s equals the only sample of a request with the seed s + i."""
    (four,) = sampled([request(seed=10)], 4)
    (third,) = sampled([request(seed=12)], 1)
    assert facts(third)[0][0] == facts(four)[2][0]
    assert [third[0].logprob] == logprobs(four[2:3])


def test_samples_differ_and_greedy_ones_do_not() -> None:
    (samples,) = sampled([request()], 16)
    assert len({one.text for one in samples}) > 1
    (greedy,) = sampled([request(temperature=0.0)], 3)
    assert len({one.text for one in greedy}) == 1


def test_logprob_is_the_models_own(engine: LocalEngine) -> None:
    import torch

    (samples,) = sampled([request(logprobs=True)], 3)
    prompt = engine.encode([{"role": "user", "content": "What is 12 + 13?"}])
    for one in samples:
        answer = engine.tokenizer(one.text + "<|end|>", add_special_tokens=False)["input_ids"]
        if len(answer) != one.usage.completion:
            continue  # sampled in another segmentation than the tokenizer's own
        with torch.no_grad():
            logits = engine.network(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
        wanted = torch.log_softmax(logits, -1).gather(1, torch.tensor(answer)[:, None]).sum().item()
        assert one.logprob == pytest.approx(wanted, abs=0.011)
        assert sum(one.detail["token_logprobs"]) == pytest.approx(wanted, abs=0.01)


def test_stops_at_length_and_at_stop_strings() -> None:
    (short,) = sampled([request(max_tokens=5)], 2)
    assert {(one.stop_reason, one.usage.completion) for one in short} == {("length", 5)}
    (stopped,) = sampled([request(stop=("The answer",))], 4)
    assert all("The answer" not in one.text for one in stopped)
    assert {one.stop_reason for one in stopped} == {"stop"}


def test_usage_counts_the_prompt_once(engine: LocalEngine) -> None:
    (samples,) = sampled([request()], 3)
    prompt = engine.encode([{"role": "user", "content": "What is 12 + 13?"}])
    assert sum(one.usage.prompt for one in samples) == len(prompt)
    assert all(one.usage.completion > 1 for one in samples)


def test_lifts_tool_calls_out_of_the_text() -> None:
    query = next(query for query in QUERIES if query.tools)
    (samples,) = sampled([Request(query.messages, query.tools, Sampling(seed=0))], 8)
    calls = [one for one in samples if one.message.get("tool_calls")]
    assert calls
    for one in calls:
        assert one.stop_reason == "tool_calls"
        assert "<tool_call>" not in one.text
        json.loads(one.message["tool_calls"][0]["function"]["arguments"])
    ids = [made["id"] for one in calls for made in one.message["tool_calls"]]
    assert len(set(ids)) == len(ids)


def test_refuses_a_prompt_that_does_not_fit_and_continues() -> None:
    async def both() -> Any:
        async with LocalTransformers(model="pocket", max_answer_tokens=8) as provider:
            long, short = request("7 " * 3_000), request()
            return await asyncio.gather(provider.sample(long, 1), provider.sample(short, 1), return_exceptions=True)

    long, short = asyncio.run(both())
    assert isinstance(long, RequestError)
    assert "2048" in str(long)
    assert len(short) == 1


def generated(engine: LocalEngine, requests: Sequence[GenerationRequest], max_rows: int = 128) -> list[Job]:
    """Compute the answers to all requests, and return their jobs."""
    scheduler = Scheduler(engine, max_rows)
    jobs = [scheduler.submit(one) for one in requests]
    scheduler.run()
    return jobs


def texts(job: Job) -> list[tuple[str, int]]:
    return [(one.text, one.tokens) for one in job.answers.result(0)]


def prompt_of(engine: LocalEngine, text: str = "What is 12 + 13?") -> tuple[int, ...]:
    return engine.encode([{"role": "user", "content": text}])


def test_fewer_answers_share_a_batch_when_memory_runs_out(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = [GenerationRequest(prompt_of(engine), 9, seed=3, max_tokens=20)]
    asks += [GenerationRequest(prompt_of(engine, "Hello"), 2, seed=3, max_tokens=15)]
    wanted = [texts(job) for job in generated(engine, asks)]
    memory = WatchedSteps(monkeypatch, most=2, after=4)
    assert [texts(job) for job in generated(engine, asks)] == wanted
    assert memory.sizes[0] == 11
    assert max(memory.sizes[8:]) <= 4
    memory.most = 0
    (failed,) = generated(engine, [GenerationRequest(prompt_of(engine), 3, max_tokens=9)])
    with pytest.raises(ServiceError, match="out of memory for one answer") as caught:
        failed.answers.result(0)
    assert caught.value.cause == "oom"


def test_batches_grow_again_after_memory_ran_out(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler(engine, 128)
    scheduler.limit.shrink(2)
    steps = WatchedSteps(monkeypatch)
    job = scheduler.submit(GenerationRequest(prompt_of(engine), 64, seed=3, max_tokens=2))
    scheduler.run()
    assert len(job.answers.result(0)) == 64
    assert max(steps.sizes) >= 16


def test_an_error_reaches_the_callers_of_its_batch_and_no_others(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = RunningBatch._advance
    calls: list[int] = []

    def broken(batch: RunningBatch[Any]) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        whole(batch)

    monkeypatch.setattr(RunningBatch, "_advance", broken)
    asks = [GenerationRequest(prompt_of(engine, text), 2, seed=1, max_tokens=4) for text in ("One?", "Two?")]
    failed, answered = generated(engine, asks, max_rows=2)
    with pytest.raises(ServiceError, match="ZeroDivisionError"):
        failed.answers.result(0)
    assert len(answered.answers.result(0)) == 2


def test_a_cancelled_request_leaves_the_batch(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler(engine, 8)
    bias = RuleSettings(logit_bias=dict.fromkeys(engine.ends, -100.0))
    asks = [GenerationRequest(prompt_of(engine), 2, seed=1, max_tokens=40, rules=bias) for _ in range(2)]
    gone, kept = (scheduler.submit(ask) for ask in asks)
    steps = WatchedSteps(monkeypatch)
    whole = scheduler._step

    def step() -> None:
        if len(steps.sizes) == 5:
            gone.answers.cancel()
        whole()

    monkeypatch.setattr(scheduler, "_step", step)
    scheduler.run()
    assert {one.tokens for one in kept.answers.result(0)} == {40}
    assert steps.sizes == [4] * 5 + [2] * 34


def test_a_request_joins_the_running_batch(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with another length, temperature and stop string joins a running batch, and no answer changes."""
    long = GenerationRequest(prompt_of(engine), 2, seed=1, max_tokens=60)
    late = GenerationRequest(
        prompt_of(engine, "Hello"), 2, seed=5, max_tokens=7, sampler=TokenSampler(0.5), stop=("q",)
    )
    alone = [texts(generated(engine, [ask])[0]) for ask in (long, late)]
    scheduler, jobs = Scheduler(engine, 8), list[Job]()
    steps = WatchedSteps(monkeypatch)
    whole = scheduler._step

    def step() -> None:
        if len(steps.sizes) == 3 and len(jobs) == 1:
            jobs.append(scheduler.submit(late))
        whole()

    monkeypatch.setattr(scheduler, "_step", step)
    jobs.append(scheduler.submit(long))
    scheduler.run()
    assert steps.sizes[:6] == [2, 2, 2, 2, 4, 4]
    assert [texts(job) for job in jobs] == alone


def test_processes_take_turns_on_a_shared_device(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_module, "TURN_STEPS", 3)
    monkeypatch.setattr(engine, "shared", True)
    scheduler = Scheduler(engine, 1)
    jobs = [scheduler.submit(GenerationRequest(prompt_of(engine), 1, seed=1, max_tokens=2)) for _ in range(3)]
    assert scheduler.run()
    assert [job.answers.done() for job in jobs] == [True, True, False]
    assert not scheduler.run()
    assert jobs[2].answers.done()


def test_other_errors_reach_the_caller_and_the_provider_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> Any:
        async with LocalTransformers(model="pocket", max_answer_tokens=8) as provider:
            with monkeypatch.context() as broken:
                broken.setattr(provider.engine, "computing", lambda: 1 / 0)
                (failed,) = await asyncio.gather(provider.sample(request(), 1), return_exceptions=True)
            return failed, await provider.sample(request(), 1)

    failed, answered = asyncio.run(ask())
    assert isinstance(failed, ServiceError)
    assert "ZeroDivisionError" in str(failed)
    assert len(answered) == 1


def test_a_missing_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the setting model is"):
        LocalEngine(str(tmp_path / "none")).load()


# --- sampling by itself ----------------------------------------------------------------------------------------------


def test_random_numbers_depend_on_seed_and_prompt_alone() -> None:
    def numbers(seed: int, prompt: tuple[int, ...]) -> list[float]:
        return random_numbers(seed, prompt).random(5).tolist()

    assert numbers(1, (1, 2)) == [random.random() for random in [random_numbers(1, (1, 2))] for _ in range(5)]
    assert len({*numbers(1, (1, 2)), *numbers(2, (1, 2)), *numbers(1, (1, 3))}) == 15


def test_truncation_keeps_the_most_probable() -> None:
    import torch

    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    nucleus = TokenSampler(top_p=0.7).probabilities(logits)
    assert nucleus[0].tolist() == pytest.approx([0.625, 0.375, 0, 0])
    assert TokenSampler(top_k=1).probabilities(logits)[0].tolist() == pytest.approx([1, 0, 0, 0])
    assert TokenSampler(temperature=0.5).probabilities(logits)[0, 0].item() == pytest.approx(0.25 / 0.365)


def test_frequencies_are_those_of_the_model(engine: LocalEngine) -> None:
    """Among 2,000 samples, the share of the likeliest first token is its probability, within four standard errors."""
    import torch

    prompt = engine.encode([{"role": "user", "content": "What is 47 + 38?"}])
    with torch.no_grad():
        shares = torch.softmax(engine.network(torch.tensor([prompt])).logits[0, -1], -1)
    (job,) = generated(engine, [GenerationRequest(prompt, 2_000, seed=0, max_tokens=1)])
    likely = int(shares.argmax())
    found = sum(one.text == engine.tokenizer.decode([likely]) for one in job.answers.result(0)) / 2_000
    share = shares[likely].item()
    assert abs(found - share) <= 4 * (share * (1 - share) / 2_000) ** 0.5 + 1e-9


def test_near_a_border_the_row_alone_decides() -> None:
    assert rounded_logprob(-1.2301, lambda: pytest.fail("not needed")) == -1.23
    assert rounded_logprob(-1.2350001, lambda: -1.2349) == -1.23
    assert rounded_logprob(-1.2349999, lambda: -1.2351) == -1.24


# --- what is shipped -------------------------------------------------------------------------------------------------


def test_the_shipped_policy_is_small_and_says_what_it_is() -> None:
    assert (POCKET_WEIGHTS / "model.safetensors").stat().st_size <= 8 << 20
    configuration = json.loads((POCKET_WEIGHTS / "config.json").read_text())
    assert configuration["model_type"] == "llama"
    card = (POCKET_WEIGHTS / "README.md").read_text()
    assert "train_pocket" in card
    assert "pass@1" in card


def test_the_tokenizer_is_lossless(engine: LocalEngine) -> None:
    texts = [
        "What is 47 + 38?",
        "SELECT * FROM x WHERE a >= 5;",
        "naïve “ünïcödé” 数学 \n\t  two  spaces",
        "```python\n",
    ]
    texts += [query.text for query in QUERIES]
    for text in texts:
        assert engine.tokenizer.decode(engine.tokenizer(text, add_special_tokens=False)["input_ids"]) == text
    assert len(engine.tokenizer("1234", add_special_tokens=False)["input_ids"]) == 4


def test_template_renders_every_role_and_a_call_as_the_policy_writes_it(engine: LocalEngine) -> None:
    from bestofn.builders.pocket.tasks.tool_tasks import TOOLS, written

    arguments = {"location": "Oslo", "units": "metric"}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "How warm is it?"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "weather_current", "arguments": arguments}}],
        },
        {"role": "tool", "content": "{}"},
    ]
    text = engine.tokenizer.apply_chat_template(
        messages, tools=[TOOLS["weather_current"]], tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|tools|>weather_current(location, units)<|end|><|system|>Be brief.<|end|><|user|>How warm is it?<|end|>"
        f"<|assistant|>{written('weather_current', arguments)}<|end|><|tool|>{{}}<|end|><|assistant|>"
    )
    messages[2]["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)  # type: ignore[index]
    assert engine.encode(messages, [TOOLS["weather_current"]]) == tuple(
        engine.tokenizer(text, add_special_tokens=False)["input_ids"]
    )
