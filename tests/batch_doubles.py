"""Loopback doubles of the batch APIs of OpenAI and Anthropic, with faults. Their replies have the types of the SDKs.

double = OpenAIDouble()
double.fail("create", Answer(status=500))                # the first submission fails
double.fail("create", Answer(status=500), done=True)     # the second one fails after the service has taken the job
with WireServer(double) as server: …
assert double.paid_twice == {}
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams
from openai.types import Batch, FileObject
from pydantic import TypeAdapter

from tests.wire_server import Answer, Sent

Step = Literal["upload", "create", "list", "status", "result", "errors", "cancel", "online"]


@dataclass
class Fault:
    """One scripted reply. If ``done`` is true, the service first does what the request asks for."""

    step: Step
    answer: Answer
    done: bool


class BatchDouble:
    """The common part of both doubles: scripted faults, damaged results, and the record of paid requests.

    A job is done after ``polls`` status checks. ``damage`` changes the lines of each result that is downloaded.
    Questions in ``refused`` get an error with the status 400. Questions in ``unanswered`` get no result in the first
    ``incomplete`` jobs.

    A cancelled job ends after ``cancel_polls`` status checks, and has answers only to the questions in ``early``. If
    ``cancels`` is false, the service refuses to cancel jobs.
    """

    def __init__(self, polls: int = 2, unanswered: Sequence[str] = (), refused: Sequence[str] = ()) -> None:
        self.polls: Any = polls  # a number, or a mapping from jobs to numbers; it is 0 for all other jobs
        self.unanswered, self.refused = unanswered, refused
        self.submit_reply: Answer | None = None  # the reply to every submission, after the service has taken the job
        self.damage: Callable[[list[bytes]], list[bytes]] = lambda lines: lines
        self.incomplete = 10**9
        self.cancels = True
        self.cancel_polls = 1
        self.early: Sequence[str] = ()
        self.cancelled: dict[str, int] = {}  # job -> status checks until it ends
        self.looked: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()  # request (see ``identity_of``) -> how often
        self.billed: set[str] = set()  # the jobs that are in ``paid``
        self.online = 0
        self.faults: list[Fault] = []

    def fail(self, step: Step, *answers: Answer, done: bool = False) -> None:
        """Give ``answers`` to the next requests of ``step``, one answer per request. ``done``: see ``Fault``."""
        self.faults += [Fault(step, answer, done) for answer in answers]

    def __call__(self, sent: Sent) -> Answer:
        step = self.step_of(sent)
        fault = next((fault for fault in self.faults if fault.step == step), None)
        if fault is None:
            return self.answer(step, sent)
        self.faults.remove(fault)
        if fault.done:
            self.answer(step, sent)
        return fault.answer

    def step_of(self, sent: Sent) -> Step:
        raise NotImplementedError

    def answer(self, step: Step, sent: Sent) -> Answer:
        raise NotImplementedError

    def is_answered(self, job: str, body: dict[str, Any]) -> bool:
        """Return whether ``job`` has a reply to the request ``body``."""
        return question_of(body) not in self.refused and not self.is_left_out(job, body)

    def is_left_out(self, job: str, body: dict[str, Any]) -> bool:
        """Return whether ``job`` gives no result for the request ``body``."""
        if job in self.cancelled and question_of(body) not in self.early:
            return True
        first = int(re.sub(r"\D", "", job) or 0) < self.incomplete
        return first and question_of(body) in self.unanswered

    def is_done(self, job: str) -> bool:
        """Count one status check of ``job`` and return whether the job is done."""
        self.looked[job] += 1
        if job in self.cancelled:
            self.cancelled[job] -= 1
            return self.cancelled[job] < 0
        return self.looked[job] > (self.polls.get(job, 0) if isinstance(self.polls, dict) else self.polls)

    def cancel(self, job: str, state: dict[str, Any]) -> Answer:
        """Cancel ``job`` and return its ``state``, or return an error if the service cannot cancel jobs."""
        if not self.cancels or job in self.billed:
            return Answer({"error": {"message": "the batch cannot be cancelled"}}, status=409)
        self.cancelled.setdefault(job, self.cancel_polls)
        return Answer(state)

    def bill(self, job: str, bodies: Sequence[dict[str, Any]]) -> None:
        """Count the requests of a finished job as paid, once."""
        if job not in self.billed:
            self.billed.add(job)
            self.paid.update(map(identity_of, bodies))

    def bill_online(self, body: dict[str, Any]) -> None:
        self.online += 1
        self.paid[identity_of(body)] += 1


class OpenAIDouble(BatchDouble):
    """OpenAI's files, batch jobs and online chat.

    ``ends`` is the last state of all jobs, or maps a job to its last state.
    """

    def __init__(self, polls: int = 2, unanswered: Sequence[str] = (), refused: Sequence[str] = ()) -> None:
        super().__init__(polls, unanswered, refused)
        self.files: dict[str, str] = {}
        self.inputs: dict[str, str] = {}
        self.lines: list[dict[str, Any]] = []
        self.ends: str | Mapping[str, str] = "completed"  # the last state of all jobs, or of each
        self.failure = {"code": "invalid_json_line", "message": "a line is not JSON", "line": 1}
        self.marks: dict[str, dict[str, str]] = {}
        self.lists = 0

    def step_of(self, sent: Sent) -> Step:
        path = sent.path.removeprefix("/v1")
        if path == "/files":
            return "upload"
        if path == "/batches":
            return "list" if sent.method == "GET" else "create"
        if path.startswith("/batches/"):
            return "cancel" if path.endswith("/cancel") else "status"
        if path.endswith("/content"):
            return "errors" if "/err-" in path else "result"
        return "online"

    def answer(self, step: Step, sent: Sent) -> Answer:
        file = sent.path.split("/")[-2]
        if step == "upload":
            return self._upload(sent)
        if step == "create":
            return self._create(sent)
        if step == "list":
            return Answer(self._page(sent.query))
        if step == "cancel":
            return self.cancel(file, self._batch(file, "cancelling"))
        if step == "status":
            name = sent.path.split("/")[-1]
            end = "cancelled" if name in self.cancelled else self._end(name)
            return Answer(self._batch(name, end if self.is_done(name) else "in_progress"))
        if step == "result":
            return Answer(b"\n".join(self.damage(self._output(file.removeprefix("out-")))))
        self.bill_online(sent.body)
        return Answer(chat_answer(sent.body))

    def _upload(self, sent: Sent) -> Answer:
        found = re.search(rb'filename="bestofn.jsonl"\r\n(?:[^\r]+\r\n)*\r\n(.*?)\r\n--', sent.raw, re.DOTALL)
        assert found
        assert b'name="purpose"\r\n\r\nbatch' in sent.raw
        name = f"file-{len(self.files)}"
        self.files[name] = found[1].decode()
        file = {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "f", "purpose": "batch"}
        return Answer(FileObject(**file, status="processed").model_dump())

    def _create(self, sent: Sent) -> Answer:
        assert sent.body["completion_window"] == "24h"
        name = f"batch-{len(self.inputs)}"
        self.inputs[name] = sent.body["input_file_id"]
        self.lines += self.requests_of(name)
        self.marks[name] = sent.body["metadata"]
        return self.submit_reply or Answer(self._batch(name, "validating"))

    def requests_of(self, batch: str) -> list[dict[str, Any]]:
        """Return the lines of the input file of a job."""
        return [json.loads(line) for line in self.files[self.inputs[batch]].splitlines()]

    def _end(self, batch: str) -> str:
        return self.ends if isinstance(self.ends, str) else self.ends.get(batch, "completed")

    def _page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return one page of the list of batch jobs: two jobs per page, newest first."""
        self.lists += 1
        newest = list(reversed(self.inputs))
        start = newest.index(query["after"]) + 1 if "after" in query else 0
        data = [self._batch(name, "in_progress") for name in newest[start : start + 2]]
        return {"object": "list", "data": data, "has_more": start + 2 < len(newest)}

    def _batch(self, name: str, status: str) -> dict[str, Any]:
        value: dict[str, Any] = {"id": name, "object": "batch", "completion_window": "24h", "status": status}
        value |= {"created_at": int(time.time()), "metadata": self.marks[name]}
        value |= {"endpoint": "/v1/chat/completions", "input_file_id": self.inputs[name]}
        value["request_counts"] = {"completed": 1, "failed": 0, "total": 6}
        if status in ("completed", "expired") or (status == "cancelled" and self.early):
            value["output_file_id"] = f"out-{name}"
        if status == "failed":
            value["errors"] = {"object": "list", "data": [self.failure]}
        return Batch.model_validate(value).model_dump()

    def _output(self, batch: str) -> list[bytes]:
        requests = self.requests_of(batch)
        self.bill(batch, [line["body"] for line in requests if self.is_answered(batch, line["body"])])
        lines = [self._line(line) for line in requests if not self.is_left_out(batch, line["body"])]
        return list(reversed(lines))  # in no order that can be relied on

    def _line(self, line: dict[str, Any]) -> bytes:
        status, body = 200, chat_answer(line["body"])
        if question_of(line["body"]) in self.refused:
            status, body = 400, {"error": {"message": "the parameter is not supported"}}
        response = {"status_code": status, "request_id": "r", "body": body}
        return json.dumps({"id": "1", "custom_id": line["custom_id"], "response": response, "error": None}).encode()


class AnthropicDouble(BatchDouble):
    """Anthropic's message batches and online messages."""

    def __init__(self, polls: int = 1, unanswered: Sequence[str] = (), refused: Sequence[str] = ()) -> None:
        super().__init__(polls, unanswered, refused)
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.created: dict[str, datetime] = {}

    def step_of(self, sent: Sent) -> Step:
        if sent.path == "/v1/messages/batches":
            return "list" if sent.method == "GET" else "create"
        if sent.path == "/v1/messages":
            return "online"
        if sent.path.endswith("/cancel"):
            return "cancel"
        return "result" if sent.path.endswith("/results") else "status"

    def answer(self, step: Step, sent: Sent) -> Answer:
        if step == "online":
            self.bill_online(sent.body)
            return Answer(message_answer(sent.body))
        if step == "list":
            data = [self._batch("msgbatch_other", "in_progress", 10**6)]
            data += [self._batch(name, "in_progress", len(asked)) for name, asked in reversed(self.batches.items())]
            return Answer({"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]})
        if step == "create":
            TypeAdapter(BatchCreateParams).validate_python(sent.body)
            name = f"msgbatch_{len(self.batches)}"
            self.batches[name] = sent.body["requests"]
            self.created[name] = datetime.now(UTC)
            return self.submit_reply or Answer(self._batch(name, "in_progress", len(self.batches[name])))
        name = sent.path.split("/")[4]
        if step == "result":
            return Answer(b"\n".join(self.damage(self._output(name))))
        if step == "cancel":
            return self.cancel(name, self._batch(name, "canceling", len(self.batches[name])))
        status = "ended" if self.is_done(name) else "in_progress"
        return Answer(self._batch(name, status, len(self.batches[name])))

    def _batch(self, name: str, status: str, count: int) -> dict[str, Any]:
        counts = {"canceled": 0, "errored": 0, "expired": 0, "processing": count, "succeeded": 0}
        value = {"id": name, "type": "message_batch", "processing_status": status, "request_counts": counts}
        at = self.created.setdefault(name, datetime.now(UTC))
        value |= {"created_at": at.isoformat(), "expires_at": (at + timedelta(days=1)).isoformat()}
        return MessageBatch.model_validate(value, strict=False).model_dump(mode="json", exclude_unset=True)

    def _output(self, name: str) -> list[bytes]:
        bodies = [request["params"] for request in self.batches[name]]
        self.bill(name, [body for body in bodies if self.is_answered(name, body)])
        return [self._line(name, request) for request in self.batches[name]]

    def _line(self, job: str, request: dict[str, Any]) -> bytes:
        result: dict[str, Any] = {"type": "succeeded", "message": message_answer(request["params"])}
        if self.is_left_out(job, request["params"]):
            result = {"type": "expired"}
        if question_of(request["params"]) in self.refused:
            error = {"type": "invalid_request_error", "message": "the parameter is not supported"}
            result = {"type": "errored", "error": {"type": "error", "error": error, "request_id": "r"}}
        line = {"custom_id": request["custom_id"], "result": result}
        return MessageBatchIndividualResponse.model_validate(line).model_dump_json().encode()


def question_of(body: dict[str, Any]) -> str:
    """Return the text of the last message in the body of a request."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def identity_of(body: dict[str, Any]) -> str:
    """Return question and seed of a request.

    Requests to Anthropic have no seed, so n requests for a question are equal.
    """
    return f"{question_of(body)} {body['seed']}" if "seed" in body else question_of(body)


def chat_answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return a Chat Completions reply. Each choice repeats the question, the seed and the number of the choice."""
    text = f"{question_of(body)} {body.get('seed')}"
    choices = [
        {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": f"{text}.{index}"}}
        for index in range(body.get("n") or 1)
    ]
    usage = {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


def message_answer(body: dict[str, Any]) -> dict[str, Any]:
    """Return a Messages reply, which repeats the question."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": question_of(body)}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 4, "output_tokens": 4},
    }


def ask_body(text: str) -> dict[str, Any]:
    """Return the body of a Messages request that asks ``text``."""
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}
