"""One box: a supervisor at the other end of a stream, asked for one run at a time."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Execution, ExecutionStatus, Limits, Program
from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.wire import CONFESSION, REPLY, Reply, Request, unpack_reply
from bestofn.sandbox.payload import payload

GRACE_S = 5.0  # beyond a program's wall limit, for the supervisor to end it and clean up
SLOW_CASES = 3  # cases of one execution that may each take the whole of their time
START_S = 60.0
RESULT_BYTES = 8 << 20

_TOO_BUSY = "the machine is too busy to time a program: it got next to no processor. Lower sandbox.workers, or wait."


class Stream(Protocol):
    """Bytes to and from a box."""

    async def send(self, data: bytes) -> None: ...

    async def receive(self, count: int) -> bytes:
        """Exactly ``count`` bytes. Raises ``EOFError`` or ``OSError`` when the box has gone."""
        ...

    async def receive_line(self) -> bytes: ...


class BoxGone(Exception):
    """The box died, or stopped answering; says nothing about the program."""


class Box:
    """Started by sending it its settings. ``fit`` is False once a run left something behind: then it must go."""

    def __init__(self, stream: Stream, close: Callable[[], Awaitable[None]], name: str) -> None:
        self._stream = stream
        self._close = close
        self.name = name
        self.fit = True
        self.runs = 0
        self.language = ""

    async def start(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The box's greeting. Raises ``SandboxError`` when it refuses or does not come up."""
        try:
            async with asyncio.timeout(START_S):
                await self._stream.send(payload(settings))
                greeting = json.loads(await self._stream.receive_line())
        except (EOFError, OSError, TimeoutError, ValueError) as error:
            raise SandboxError(f"the sandbox {self.name} did not start: {error or type(error).__name__}") from error
        if "refused" in greeting:
            raise SandboxError(f"the sandbox {self.name} could not be built: {greeting['refused']}")
        return greeting

    async def run(self, program: Program) -> Execution:
        """Raises ``BoxGone`` when no answer came."""
        self.runs += 1
        self.language = program.language
        head, body = _request(program)
        try:
            async with asyncio.timeout(_total_s(program) + GRACE_S):
                await self._stream.send(head + body)
                reply = unpack_reply(await self._stream.receive(REPLY.size))
                parts = [
                    await self._stream.receive(count) if count else b""
                    for count in (reply.stdout_bytes, reply.stderr_bytes, reply.result_bytes, reply.driver_bytes)
                ]
        except (EOFError, OSError, TimeoutError, ValueError) as error:
            self.fit = False
            raise BoxGone(f"{self.name}: {error or type(error).__name__}") from error
        except BaseException:  # cancelled in the middle of a run: the wire is out of step
            self.fit = False
            raise
        if reply.exit_code == 70 and parts[1].startswith(CONFESSION):
            self.fit = False
            raise BoxGone(f"{self.name}: {parts[1].decode('utf-8', 'replace')}")
        self.fit = not reply.flags
        execution = _execution(reply, *parts)
        if reply.status == "infra":  # trying again at once would find the machine as busy
            return replace(execution, detail={**execution.detail, "reason": _TOO_BUSY})
        return execution

    async def close(self) -> None:
        self.fit = False
        await self._close()


def _total_s(program: Program) -> float:
    """Wall-clock seconds for all calls or tests of one execution; ``wall_s`` is for each."""
    return program.limits.wall_s * min(SLOW_CASES, max(1, len(program.calls), len(program.tests)))


def _request(program: Program) -> tuple[bytes, bytes]:
    limits: Limits = program.limits
    mode = "serve" if program.tests else "calls" if program.calls else "run"
    calls = [
        {
            "name": call.get("name", ""),
            "args": plain.encode(list(call.get("args", ()))),
            "kwargs": plain.encode(dict(call.get("kwargs") or {})),
        }
        for call in program.calls
    ]
    job = {
        "mode": mode,
        "source": program.source,
        "stdin": program.stdin,
        "files": dict(program.files),
        "calls": calls,
    }
    part = json.dumps(job).encode()
    driver = b""
    if program.tests:
        tests = {"setup": program.setup, "cases": list(program.tests), "entry_point": program.entry_point}
        driver = json.dumps(tests).encode()
    request = Request(
        language=program.language,
        driver_bytes=len(driver),
        program_bytes=len(part),
        wall_ms=math.ceil(limits.wall_s * 1000),
        total_ms=math.ceil(_total_s(program) * 1000),
        cpu_s=max(1, math.ceil(limits.cpu_s)),
        memory_mb=limits.memory_mb,
        processes=limits.processes,
        stdout_bytes=limits.stdout_bytes,
        stderr_bytes=limits.stderr_bytes,
        result_bytes=RESULT_BYTES,
        disk_mb=limits.disk_mb,
    )
    return request.pack(), driver + part


def _execution(reply: Reply, stdout: bytes, stderr: bytes, result: bytes, verdict: bytes) -> Execution:
    errors = stderr.decode("utf-8", "replace")
    status: ExecutionStatus = reply.status  # type: ignore[assignment]
    if status == "error" and _ran_out_of_memory(errors, reply.exit_code):
        status = "memory"
    return Execution(
        status=status,
        exit_code=reply.exit_code,
        stdout=stdout.decode("utf-8", "surrogateescape"),
        stderr=errors,
        seconds=reply.seconds,
        returns=_returns(verdict or result, driver=bool(verdict)),
        detail={"cpu_s": reply.cpu_s, "flags": reply.flags},
    )


def _ran_out_of_memory(stderr: str, exit_code: int) -> bool:
    return stderr.endswith("MemoryError\n") or (exit_code == -6 and "heap out of memory" in stderr)


def _returns(raw: bytes, driver: bool) -> tuple[Any, ...]:
    """One entry a line. A line that is not what an honest box writes ends them: the rest is not believed."""
    entries: list[Any] = []
    for line in raw.split(b"\n"):
        if not line:
            continue
        try:
            form = plain.loads(line)
            entries.append(_test_entry(form) if driver else _call_entry(form))
        except (plain.NotPlain, KeyError, TypeError, ValueError, RecursionError) as error:
            entries.append({"error": f"NotPlain: {str(error)[:200]}"})
    return tuple(entries)


def _test_entry(form: Any) -> dict[str, Any]:
    if "broken" in form:
        return {"broken": str(form["broken"])}
    return {"passed": form["passed"] is True, "error": str(form["error"])}


def _call_entry(form: Any) -> dict[str, Any]:
    if "value" in form:
        return {"value": plain.decode(form["value"])}
    kind, text = form["error"]
    return {"error": f"{kind}: {text}".rstrip(": ")}
