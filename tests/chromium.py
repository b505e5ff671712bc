"""Headless Chromium over its DevTools protocol: open a page, run scripts in it, collect its errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--window-size=1400,1000",
]


def chromium() -> str:
    """Return the path of the browser. Without a browser, skip the test, or fail it if BESTOFN_REQUIRE_CHROMIUM is set."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("BESTOFN_REQUIRE_CHROMIUM"):
            pytest.fail("no Chromium on this machine, and BESTOFN_REQUIRE_CHROMIUM is set")
        pytest.skip("no Chromium on this machine")
    return found


def visit(page: Path, scripts: list[str]) -> tuple[list[Any], list[str], float]:
    """Open ``page`` and evaluate ``scripts`` in order. Return their values, the page's errors, and the seconds to load it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            return asyncio.run(_drive(_port(process), page, scripts))
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its helpers as well, which write into the profile
            process.wait(10)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr
    for line in process.stderr:
        if match := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            return int(match.group(1))
    raise RuntimeError("Chromium ended before it listened")


async def _drive(port: int, page: Path, scripts: list[str]) -> tuple[list[Any], list[str], float]:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            target = next(one for one in await answer.json() if one["type"] == "page")
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            errors: list[str] = []
            number = 0

            async def ask(method: str, until: str | None = None, **parameters: Any) -> dict[str, Any]:
                nonlocal number
                number += 1
                wanted, answer = number, None
                await socket.send_json({"id": number, "method": method, "params": parameters})
                async for message in socket:
                    heard = json.loads(message.data)
                    name = heard.get("method")
                    if name == "Runtime.exceptionThrown" or (
                        name == "Log.entryAdded" and heard["params"]["entry"]["level"] == "error"
                    ):
                        errors.append(json.dumps(heard["params"])[:500])
                    if heard.get("id") == wanted:
                        answer = heard
                    if answer is not None and until in (None, name):
                        return answer
                raise RuntimeError("Chromium closed the connection")

            for domain in ("Runtime.enable", "Log.enable", "Page.enable"):
                await ask(domain)
            started = asyncio.get_running_loop().time()
            await ask("Page.navigate", until="Page.loadEventFired", url=page.resolve().as_uri())
            seconds = asyncio.get_running_loop().time() - started
            values = []
            for script in scripts:
                reply = await ask("Runtime.evaluate", expression=script, returnByValue=True)
                assert "exceptionDetails" not in reply["result"], reply["result"]
                values.append(reply["result"]["result"].get("value"))
            return values, errors, seconds
