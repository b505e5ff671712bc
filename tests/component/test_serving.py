"""The local server, called by the official client (SRV-1 to SRV-6)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from yaml import safe_load as load_yaml

from bestofn.builders.choices import conf_folder
from bestofn.builders.errors import ConfigError
from bestofn.scripts.serve import serve
from tests.served import HELLO, MODEL, Running, running
from tests.tiny_models import WatchedSteps, save_language_model, tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("model"), max_position_embeddings=1024)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Running]:
    with running(folder) as server:
        yield server


def test_six_choices_come_with_their_indices_and_usage(served: Running) -> None:
    answer = served.client().chat.completions.create(model=MODEL, messages=HELLO, n=6, max_tokens=5, seed=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3, 4, 5]
    assert {choice.finish_reason for choice in answer.choices} <= {"stop", "length"}
    assert answer.usage
    assert answer.usage.completion_tokens <= 30
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert len({choice.message.content for choice in answer.choices}) > 1


def test_a_seed_gives_the_same_answers_again(served: Running) -> None:
    def texts(seed: int) -> list[str | None]:
        answer = served.client().chat.completions.create(model=MODEL, messages=HELLO, n=3, max_tokens=8, seed=seed)
        return [choice.message.content for choice in answer.choices]

    assert texts(5) == texts(5) != texts(6)


def test_logprobs_belong_to_their_tokens(served: Running) -> None:
    answer = served.client().chat.completions.create(model=MODEL, messages=HELLO, max_tokens=6, logprobs=True, seed=1)
    content = answer.choices[0].logprobs.content  # type: ignore[union-attr]
    assert content
    assert len(content) == answer.usage.completion_tokens  # type: ignore[union-attr]
    assert all(one.logprob <= 0 for one in content)


def test_a_stop_string_ends_the_answer(served: Running) -> None:
    letters = tokenizer()
    ids = [letters.convert_tokens_to_ids(letter) for letter in "abcdefgh"]
    asked: Any = {"model": MODEL, "messages": HELLO, "max_tokens": 12, "temperature": 0, "frequency_penalty": 2}
    asked["logit_bias"] = {str(token): 100 for token in ids}  # in an order that the model decides
    client = served.client()
    whole = client.chat.completions.create(**asked).choices[0].message.content
    assert whole
    assert len(whole) == 12
    cut = client.chat.completions.create(**asked, stop=[whole[2:4], "zz"]).choices[0]
    assert cut.message.content == whole[: whole.index(whole[2:4])]
    assert cut.finish_reason == "stop"


def test_streams_bring_the_same_answer(served: Running) -> None:
    client = served.client()
    asked = {"model": MODEL, "messages": HELLO, "max_tokens": 12, "seed": 4}
    whole = client.chat.completions.create(**asked).choices[0].message.content
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole
    assert all(chunk.usage is None for chunk in chunks)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].choices == []
    assert chunks[-1].usage
    assert all(chunk.usage is None for chunk in chunks[:-1])
    response = client.responses.create(model=MODEL, input="Say something.", max_output_tokens=64)
    assert response.status in ("completed", "incomplete")
    events = list(client.responses.create(model=MODEL, input="Say something.", max_output_tokens=16, stream=True))
    assert events[0].type == "response.created"
    assert events[-1].type in ("response.completed", "response.incomplete")


def test_completions_models_and_health(served: Running) -> None:
    client = served.client()
    answer = client.completions.create(model=MODEL, prompt=["ab", "cd"], n=2, max_tokens=3, logprobs=0)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.choices[0].logprobs
    assert [model.object for model in client.models.list().data] == ["model"]
    import urllib.request

    with urllib.request.urlopen(f"{served.url}/health") as reply:
        assert json.load(reply)["status"] == "ok"


def test_thirty_two_requests_at_once_are_all_answered_one_batch_at_a_time(served: Running) -> None:
    client = served.client()

    def ask(seed: int) -> str | None:
        return (
            client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=8, seed=seed)
            .choices[0]
            .message.content
        )

    with ThreadPoolExecutor(32) as pool, WatchedSteps(served.provider.engine.network) as steps:
        together = list(pool.map(ask, range(32)))
    assert served.most_at_once[1] == 1
    assert None not in together
    assert max(steps.sizes) > 1


def test_a_prompt_that_does_not_fit_or_is_empty_is_a_400_with_the_numbers(served: Running) -> None:
    client = served.client()
    with pytest.raises(openai.BadRequestError, match=r"the prompt has \d+ tokens, and .* accepts at most \d+"):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x" * 5000}])
    with pytest.raises(openai.BadRequestError, match="the prompt is empty"):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": ""}])
    with pytest.raises(openai.BadRequestError, match=r"temperature: .*found -1"):
        client.chat.completions.create(model=MODEL, messages=HELLO, temperature=-1)


def test_every_request_leaves_one_line(served: Running) -> None:
    before = len(served.lines())
    served.client().chat.completions.create(model=MODEL, messages=HELLO, max_tokens=4, n=2)
    (line,) = served.lines()[before:]
    assert {"time", "path", "status", "seconds", "completion_tokens", "tokens_per_s", "peak_memory_mb"} <= set(line)
    assert line["path"] == "/v1/chat/completions"
    assert line["status"] == 200
    assert "Say something" not in served.log.getvalue()


def test_out_of_memory_halves_the_batch_then_returns_503_and_continues(folder: Path) -> None:
    with running(folder) as server, WatchedSteps(server.provider.engine.network, most=2) as memory:
        client = server.client()
        answer = client.chat.completions.create(model=MODEL, messages=HELLO, n=8, max_tokens=3)
        assert len(answer.choices) == 8
        assert max(memory.sizes) > 2
        memory.most = 0
        with pytest.raises(openai.InternalServerError, match="out of memory") as caught:
            client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=3)
        assert caught.value.status_code == 503
        assert caught.value.code == "oom"
        memory.most = 8
        assert client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=3).choices


def test_a_key_is_required_if_one_is_set(folder: Path) -> None:
    with running(folder, key="secret") as server:
        with pytest.raises(openai.AuthenticationError):
            server.client("wrong").models.list()
        assert server.client("secret").models.list().data


def test_only_this_machine_reaches_the_server_unless_a_key_is_set() -> None:
    assert load_yaml((conf_folder() / "serve.yaml").read_text())["host"] == "127.0.0.1"
    with pytest.raises(
        ConfigError, match=r"host is 0\.0\.0\.0, which other machines can reach, and api_key is not set"
    ):
        serve({"host": "0.0.0.0", "api_key": None})


@pytest.mark.parametrize(
    ("key", "host", "status"), [("", "evil.com", 403), ("", "localhost", 200), ("k", "evil.com", 200)]
)
def test_without_a_key_only_names_of_this_machine_are_answered(folder: Path, key: str, host: str, status: int) -> None:
    """A web page can send requests here by a name that resolves to this machine, but it does not know the key."""
    with running(folder, key) as server:
        address = urlsplit(server.url)
        for path in ("/v1/models", "/health"):
            connection = http.client.HTTPConnection(str(address.hostname), address.port or 80)
            connection.request("GET", path, headers={"Host": host, "Authorization": f"Bearer {key}"})
            reply = connection.getresponse()
            assert reply.status == status, reply.read()
            connection.close()
