"""``mode=batch`` against loopback doubles of both batch APIs, made with the SDKs' own types."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams
from openai.types import Batch, FileObject
from pydantic import TypeAdapter

from builders.cost import Ledger
from builders.errors import BudgetError, ConfigError, RequestError, ServiceError
from builders.journal import Journal
from builders.limits import RateLimits
from builders.providers.anthropic_messages import AnthropicMessages
from builders.providers.batcher import Batching
from builders.providers.ollama import Ollama
from builders.providers.openai_chat import OpenAIChat
from builders.providers.openai_responses import OpenAIResponses
from builders.providers.sampling import sampler
from builders.records import Completion, Request, Sampling
from scripts.journal import main as journal_command
from tests.wire_server import Answer, Sent, WireServer

TERMS = Batching(gather_s=0.05, poll_s=0.02, most=1000)
PRICES = {"m": {"call": 1.0}}


def chat_answer(body: dict[str, Any]) -> dict[str, Any]:
    text = f"{body['messages'][-1]['content']} {body.get('seed')}"
    choices = [
        {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": f"{text}.{index}"}}
        for index in range(body.get("n") or 1)
    ]
    usage = {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


def message_answer(body: dict[str, Any]) -> dict[str, Any]:
    text = body["messages"][-1]["content"][0]["text"]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 4, "output_tokens": 4},
    }


class OpenAIDouble:
    """Files, batches and online chat. ``polls`` until a batch is done; questions in ``unanswered`` are left out."""

    def __init__(self, polls: int = 2, unanswered: tuple[str, ...] = (), refused: tuple[str, ...] = ()) -> None:
        self.polls, self.unanswered, self.refused = polls, unanswered, refused
        self.files: dict[str, str] = {}
        self.inputs: dict[str, str] = {}
        self.looked: dict[str, int] = {}
        self.lines: list[dict[str, Any]] = []
        self.online = 0
        self.ends = "completed"
        self.marks: dict[str, dict[str, str]] = {}
        self.told: Answer | None = None  # what comes back for a submission, where not the batch
        self.lists = 0

    def __call__(self, sent: Sent) -> Answer:
        path = sent.path.removeprefix("/v1")
        if path == "/files":
            found = re.search(rb'filename="bestofn.jsonl"\r\n\r\n(.*?)\r\n--', sent.raw, re.DOTALL)
            assert found
            assert b'name="purpose"\r\n\r\nbatch' in sent.raw
            name = f"file-{len(self.files)}"
            self.files[name] = found[1].decode()
            file = {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "f", "purpose": "batch"}
            return Answer(FileObject(**file, status="processed").model_dump())
        if path == "/batches" and sent.method == "GET":
            return Answer(self._page(sent.query))
        if path == "/batches":
            assert sent.body["completion_window"] == "24h"
            name = f"batch-{len(self.inputs)}"
            self.inputs[name] = sent.body["input_file_id"]
            self.lines += [json.loads(line) for line in self.files[sent.body["input_file_id"]].splitlines()]
            self.marks[name] = sent.body["metadata"]
            return self.told or Answer(self._batch(name, "validating"))
        if path.startswith("/batches/"):
            name = path.split("/")[2]
            self.looked[name] = self.looked.get(name, 0) + 1
            return Answer(self._batch(name, "in_progress" if self.looked[name] <= self.polls else self.ends))
        if path.endswith("/content"):
            return Answer(self._output(path.split("/")[2].removeprefix("out-")))
        self.online += 1
        return Answer(chat_answer(sent.body))

    def _page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Two a page, newest first."""
        self.lists += 1
        newest = list(reversed(self.inputs))
        start = newest.index(query["after"]) + 1 if "after" in query else 0
        data = [self._batch(name, "in_progress") for name in newest[start : start + 2]]
        return {"object": "list", "data": data, "has_more": start + 2 < len(newest)}

    def _batch(self, name: str, status: str) -> dict[str, Any]:
        value = {"id": name, "object": "batch", "completion_window": "24h", "status": status}
        value |= {"created_at": int(time.time()), "metadata": self.marks[name]}
        value |= {"endpoint": "/v1/chat/completions", "input_file_id": self.inputs[name]}
        if status in ("completed", "expired"):
            value["output_file_id"] = f"out-{name}"
        return Batch.model_validate(value).model_dump()

    def _output(self, batch: str) -> bytes:
        lines = []
        for line in map(json.loads, self.files[self.inputs[batch]].splitlines()):
            question = line["body"]["messages"][-1]["content"]
            if question in self.unanswered:
                continue
            status, body = 200, chat_answer(line["body"])
            if question in self.refused:
                status, body = 400, {"error": {"message": "too long"}}
            response = {"status_code": status, "request_id": "r", "body": body}
            lines.append(json.dumps({"id": "1", "custom_id": line["custom_id"], "response": response, "error": None}))
        return "\n".join(reversed(lines)).encode()  # in no order that can be relied on


class AnthropicDouble:
    """Message batches. ``ended`` from the second look on; ``told`` comes back for a submission in its place."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.told: Answer | None = None

    def __call__(self, sent: Sent) -> Answer:
        if sent.path == "/v1/messages/batches" and sent.method == "GET":
            data = [self._batch("msgbatch_other", "in_progress", 10**6)]
            data += [self._batch(name, "in_progress", len(asked)) for name, asked in reversed(self.batches.items())]
            return Answer({"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]})
        if sent.path == "/v1/messages/batches":
            TypeAdapter(BatchCreateParams).validate_python(sent.body)
            name = f"msgbatch_{len(self.batches)}"
            self.batches[name] = sent.body["requests"]
            return self.told or Answer(self._batch(name, "in_progress", len(self.batches[name])))
        name = sent.path.split("/")[4]
        if sent.path.endswith("/results"):
            lines = []
            for request in self.batches[name]:
                line = {
                    "custom_id": request["custom_id"],
                    "result": {"type": "succeeded", "message": message_answer(request["params"])},
                }
                lines.append(MessageBatchIndividualResponse.model_validate(line).model_dump_json())
            return Answer("\n".join(lines).encode())
        self.looked[name] += 1
        return Answer(self._batch(name, "ended" if self.looked[name] > 1 else "in_progress", len(self.batches[name])))

    def _batch(self, name: str, status: str, count: int) -> dict[str, Any]:
        counts = {"canceled": 0, "errored": 0, "expired": 0, "processing": count, "succeeded": 0}
        value = {"id": name, "type": "message_batch", "processing_status": status, "request_counts": counts}
        now = datetime.now(UTC)
        value |= {"created_at": now.isoformat(), "expires_at": (now + timedelta(days=1)).isoformat()}
        return MessageBatch.model_validate(value, strict=False).model_dump(mode="json", exclude_unset=True)


def ask_body(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}


def ask(number: int) -> Request:
    return Request(messages=({"role": "user", "content": f"Q{number}"},), sampling=Sampling(seed=0))


def draw(tmp_path, provider, count: int = 6, n: int = 2, ledger: Ledger | None = None):
    async def run():
        journal, book = Journal(tmp_path / "j.sqlite"), ledger or Ledger(prices=PRICES)
        draws = sampler(provider, journal, book)
        async with journal, provider, draws:
            drawn = await asyncio.gather(*(draws.draw(ask(number), range(n)) for number in range(count)))
        return drawn, book.totals()

    return asyncio.run(run())


def chat(server: WireServer, **settings: Any) -> OpenAIChat:
    url = f"{server.url}/v1"
    return OpenAIChat(model="m", base_url=url, mode="batch", batching=settings.pop("batching", TERMS), **settings)


def states(tmp_path) -> list[str]:
    journal = Journal(tmp_path / "j.sqlite").open()
    rows = [row[0] for row in journal.rows("SELECT state FROM batches")]
    journal.close()
    return rows


def test_openai_answers_come_at_half_the_price_and_only_once(tmp_path) -> None:
    double = OpenAIDouble()
    with WireServer(double) as server:
        drawn, totals = draw(tmp_path, chat(server))
        assert [[one.text for one in pair] for pair in drawn] == [[f"Q{i} 0.0", f"Q{i} 0.1"] for i in range(6)]
        assert (len(double.inputs), len(double.lines), double.online) == (1, 6, 0)
        assert {line["url"] for line in double.lines} == {"/v1/chat/completions"}
        assert all(re.fullmatch(r"[\w-]{1,64}", line["custom_id"]) for line in double.lines)
        assert totals["usd"] == pytest.approx(6.0)
        assert states(tmp_path) == ["closed"]
        again, totals = draw(tmp_path, chat(server))
        assert again == drawn
        assert (len(double.inputs), totals["replayed"]) == (1, 12)


def test_the_journal_is_the_same_online_and_in_batches(tmp_path) -> None:
    double = OpenAIDouble()
    with WireServer(double) as server:
        drawn, _ = draw(tmp_path, chat(server))
        online = OpenAIChat(model="m", base_url=f"{server.url}/v1")
        assert draw(tmp_path, online)[0] == drawn
    assert {one.cost_usd for pair in drawn for one in pair} == {0.5}, "also when it is read again by another mode"
    assert double.online == 0


def test_anthropic_answers_come_through_its_batches(tmp_path) -> None:
    double = AnthropicDouble()
    with WireServer(double) as server:
        provider = AnthropicMessages(model="m", base_url=server.url, mode="batch", batching=TERMS, cache=None)
        drawn, totals = draw(tmp_path, provider, count=3)
    assert [[one.text for one in pair] for pair in drawn] == [[f"Q{i}"] * 2 for i in range(3)]
    assert [len(batch) for batch in double.batches.values()] == [6]
    assert totals["usd"] == pytest.approx(3.0)


def test_stragglers_go_online_and_refusals_do_not(tmp_path) -> None:
    double = OpenAIDouble(unanswered=("Q1", "Q3"), refused=("Q2",))
    double.ends = "expired"
    with WireServer(double) as server:
        drawn, totals = draw(tmp_path, chat(server))
    assert double.online == 2
    assert [isinstance(one, Completion) for pair in drawn for one in pair] == [True] * 4 + [False] * 2 + [True] * 6
    assert isinstance(drawn[2][0], RequestError)
    assert totals["usd"] == pytest.approx(3 * 2 * 0.5 + 2 * 2 * 1.0)
    costs = [[one.cost_usd for one in pair if isinstance(one, Completion)] for pair in drawn]
    assert costs == [[0.5] * 2, [1.0] * 2, [], [1.0] * 2, [0.5] * 2, [0.5] * 2], "each as it was paid for"
    assert states(tmp_path) == ["closed"]


def test_a_batch_that_is_refused_goes_online(tmp_path) -> None:
    double = OpenAIDouble(polls=0)
    double.ends = "failed"
    with WireServer(double) as server:
        drawn, _ = draw(tmp_path, chat(server))
    assert double.online == 6
    assert all(isinstance(one, Completion) for pair in drawn for one in pair)


def test_patience_ends(tmp_path) -> None:
    double = OpenAIDouble(polls=10**6)
    with WireServer(double) as server:
        drawn, _ = draw(tmp_path, chat(server, batching=Batching(gather_s=0.02, poll_s=0.02, patience_s=0.2)))
    assert double.online == 6
    assert len(drawn) == 6


def leave_once(tmp_path, server: WireServer, arrived: Callable[[], object]) -> None:
    """A run that is cancelled as soon as ``arrived`` says something."""

    async def leave() -> None:
        journal, provider = Journal(tmp_path / "j.sqlite"), chat(server)
        draws = sampler(provider, journal, Ledger(prices=PRICES))
        async with journal, provider, draws:
            waiting = [asyncio.create_task(draws.draw(ask(number), range(2))) for number in range(6)]
            while not arrived():  # noqa: ASYNC110  # the double lives in another thread
                await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(leave())


def leave_before_the_id(double: OpenAIDouble, tmp_path, server: WireServer) -> None:
    """A run that ends after its batch has arrived and before it knows the id."""
    double.told = Answer(after_s=1.0)
    leave_once(tmp_path, server, lambda: double.lines)
    double.told = None
    assert states(tmp_path) == ["planned"]


def test_a_run_that_ends_takes_its_batch_up_again(tmp_path) -> None:
    double = OpenAIDouble(polls=10**6)
    with WireServer(double) as server:
        leave_once(tmp_path, server, lambda: double.looked)
        assert states(tmp_path) == ["open"]
        double.polls = 0
        drawn, _ = draw(tmp_path, chat(server), count=8)
        assert [pair[0].text for pair in drawn] == [f"Q{i} 0.0" for i in range(8)]
        assert [len(double.files[file].splitlines()) for file in double.inputs.values()] == [6, 2]
        assert states(tmp_path) == ["closed", "closed"]


def test_a_batch_whose_id_never_came_back_is_found_by_its_mark(tmp_path) -> None:
    double = OpenAIDouble()
    with WireServer(double) as server:
        for number in range(3):  # of other programs, over two pages
            double.inputs[f"other-{number}"], double.marks[f"other-{number}"] = "file-9", {"bestofn": "another"}
        leave_before_the_id(double, tmp_path, server)
        double.inputs["other-3"], double.inputs["other-4"] = "file-9", "file-9"
        double.marks["other-3"] = double.marks["other-4"] = {}
        drawn, totals = draw(tmp_path, chat(server))
    assert [pair[0].text for pair in drawn] == [f"Q{i} 0.0" for i in range(6)]
    assert (len(double.lines), double.online, double.lists) == (6, 0, 2)
    assert totals["usd"] == pytest.approx(6.0)
    assert states(tmp_path) == ["closed"]


def test_the_journal_command_shows_what_is_under_way(tmp_path, capsys) -> None:
    double = OpenAIDouble(polls=10**6)
    with WireServer(double) as server:
        leave_before_the_id(double, tmp_path, server)
        journal_command([str(tmp_path / "j.sqlite")])
        assert "of 6 requests sent off, its id never came back since" in capsys.readouterr().out
        leave_once(tmp_path, server, lambda: double.looked)
        journal_command([str(tmp_path / "j.sqlite")])
        assert "batch batch-0 of 6 requests under way since" in capsys.readouterr().out
        journal_command([str(tmp_path / "j.sqlite"), "json=true"])
        assert [batch["id"] for batch in json.loads(capsys.readouterr().out)["batches"]] == ["batch-0"]
        journal_command([str(tmp_path / "j.sqlite"), "provider=another"])
        assert "batch" not in capsys.readouterr().out
        double.polls = 0
        draw(tmp_path, chat(server))
        capsys.readouterr()
        journal_command([str(tmp_path / "j.sqlite")])
        assert "6 requests" in (shown := capsys.readouterr().out)
        assert "under way" not in shown


def test_a_batch_that_never_arrived_is_submitted_anew(tmp_path) -> None:
    double = OpenAIDouble()
    with WireServer(double) as server:
        leave_before_the_id(double, tmp_path, server)
        double.inputs.clear()
        double.marks.clear()
        drawn, _ = draw(tmp_path, chat(server))
    assert [pair[0].text for pair in drawn] == [f"Q{i} 0.0" for i in range(6)]
    assert (len(double.lines), double.online) == (12, 0)
    assert states(tmp_path) == ["closed"]


@pytest.mark.parametrize("told", [Answer(cut=True), Answer(status=502)], ids=["cut", "502"])
def test_a_batch_that_arrived_behind_an_error_is_not_asked_twice(tmp_path, told: Answer) -> None:
    double = OpenAIDouble()
    double.told = told
    with WireServer(double) as server:
        drawn, _ = draw(tmp_path, chat(server))
    assert [pair[0].text for pair in drawn] == [f"Q{i} 0.0" for i in range(6)]
    assert (len(double.lines), double.online) == (6, 0)
    assert states(tmp_path) == ["closed"]


@pytest.mark.parametrize("status", [429, 503])
def test_a_submission_that_is_put_off_goes_online(tmp_path, status: int) -> None:
    double = OpenAIDouble()

    def answer(sent: Sent) -> Answer:
        refuse = sent.path == "/v1/batches" and sent.method == "POST"
        return Answer({"error": {"message": "later"}}, status=status) if refuse else double(sent)

    with WireServer(answer) as server:
        drawn, _ = draw(tmp_path, chat(server))
    assert [pair[0].text for pair in drawn] == [f"Q{i} 0.0" for i in range(6)]
    assert (double.online, double.lists) == (6, 0 if status == 429 else 1)
    assert states(tmp_path) == []


def test_where_the_service_cannot_be_asked_the_plan_stands(tmp_path) -> None:
    double = OpenAIDouble()

    def answer(sent: Sent) -> Answer:
        listing = sent.path == "/v1/batches" and sent.method == "GET"
        return Answer(status=503) if listing and double.told else double(sent)

    with WireServer(answer) as server:
        double.told = Answer(cut=True)
        drawn, _ = draw(tmp_path, chat(server))
        assert all(isinstance(one, ServiceError) for pair in drawn for one in pair)
        assert (states(tmp_path), double.online) == (["planned"], 0)
        double.told = None
        drawn, _ = draw(tmp_path, chat(server))
    assert [pair[0].text for pair in drawn] == [f"Q{i} 0.0" for i in range(6)]
    assert (len(double.lines), double.online) == (6, 0)


@pytest.mark.parametrize("most", [1000, 2, 4])
def test_anthropics_are_found_by_time_and_size(tmp_path, most: int) -> None:
    """Of several of one size any may be taken for any: what one leaves out is in another, and nothing goes online."""
    double = AnthropicDouble()
    double.told = Answer(cut=True)
    terms = replace(TERMS, most=most)
    with WireServer(double) as server:
        provider = AnthropicMessages(model="m", base_url=server.url, mode="batch", batching=terms, cache=None)
        drawn, totals = draw(tmp_path, provider, count=4)
    assert [[one.text for one in pair] for pair in drawn] == [[f"Q{i}"] * 2 for i in range(4)]
    assert [len(batch) for batch in double.batches.values()] == [min(most, 8)] * (8 // min(most, 8))
    assert totals["usd"] == pytest.approx(4.0)


@pytest.mark.parametrize(("unlisted", "failed"), [(4, 0), (5, 1)], ids=["found to be nowhere", "never listed"])
def test_who_waits_for_another_search_is_released_when_it_ends(tmp_path, unlisted: int, failed: int) -> None:
    """The first plan takes a stranger's batch; while it ends, the second is still being looked for, in vain."""
    double = AnthropicDouble()
    double.batches["msgbatch_foreign"] = [{"custom_id": f"x{i}", "params": ask_body("x")} for i in range(2)]
    lists = 0

    def answer(sent: Sent) -> Answer:
        nonlocal lists
        if sent.path == "/v1/messages":
            return Answer(message_answer(sent.body))
        if sent.path == "/v1/messages/batches" and sent.method == "POST":
            return Answer(cut=True)
        if sent.path == "/v1/messages/batches":
            lists += 1
            if 1 < lists <= 1 + unlisted:
                return Answer(status=503)
        return double(sent)

    terms = replace(TERMS, most=2)
    with WireServer(answer) as server:
        provider = AnthropicMessages(model="m", base_url=server.url, mode="batch", batching=terms, cache=None)
        drawn, _ = draw(tmp_path, provider, count=2)
    assert (
        sorted(all(isinstance(one, ServiceError) for one in pair) for pair in drawn)
        == [False] * (2 - failed) + [True] * failed
    )
    assert {one.text for pair in drawn for one in pair if isinstance(one, Completion)} <= {"Q0", "Q1"}


def test_anthropics_are_found_by_the_next_run(tmp_path) -> None:
    """The newest is looked at first, so that the first plan takes the second's batch."""
    double = AnthropicDouble()

    def provider(server: WireServer, most: int) -> AnthropicMessages:
        terms = replace(TERMS, most=most)
        return AnthropicMessages(model="m", base_url=server.url, mode="batch", batching=terms, cache=None)

    async def leave(server: WireServer) -> None:
        journal, service = Journal(tmp_path / "j.sqlite"), provider(server, 2)
        draws = sampler(service, journal, Ledger(prices=PRICES))
        async with journal, service, draws:
            waiting = [asyncio.create_task(draws.draw(ask(number), range(2))) for number in range(2)]
            while len(double.batches) < 2:  # noqa: ASYNC110  # the double lives in another thread
                await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    with WireServer(double) as server:
        double.told = Answer(after_s=1.0)
        asyncio.run(leave(server))
        double.told = None
        assert states(tmp_path) == ["planned"] * 2
        drawn, totals = draw(tmp_path, provider(server, 2), count=2)
    assert [[one.text for one in pair] for pair in drawn] == [[f"Q{i}"] * 2 for i in range(2)]
    assert (len(double.batches), totals["usd"]) == (2, pytest.approx(2.0))
    assert states(tmp_path) == ["closed"] * 2


def test_large_batches_are_split(tmp_path) -> None:
    double = OpenAIDouble()
    with WireServer(double) as server:
        draw(tmp_path, chat(server, batching=Batching(gather_s=0.05, poll_s=0.02, most=4)), count=10)
    assert sorted(len(double.files[file].splitlines()) for file in double.inputs.values()) == [2, 4, 4]


def test_the_budget_stands_before_a_batch(tmp_path) -> None:
    double = OpenAIDouble()
    spent = Ledger(budget_usd=1.0, prices=PRICES)
    spent.carry(2.0)
    with WireServer(double) as server, pytest.raises(BudgetError):
        draw(tmp_path, chat(server), ledger=spent)
    assert double.inputs == {}


def test_responses_name_their_endpoint_and_others_have_no_batches(tmp_path) -> None:
    provider = OpenAIResponses(model="m", base_url="http://127.0.0.1:9/v1", mode="batch", limits=RateLimits(retries=0))

    async def endpoint() -> str:
        async with provider:
            return provider.batches()._endpoint

    assert asyncio.run(endpoint()) == "/v1/responses"
    with pytest.raises(ConfigError, match="has no batch API"):
        Ollama(model="m").batches()
