"""Headless Chromium over its DevTools protocol: open pages, run scripts in them, take screenshots, collect errors."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.requirements import chromium, need

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--window-size=1400,1000",
]


class Browser:
    """One page of a running browser. ``errors`` has the errors of the opened page: exceptions and console errors."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, loop: asyncio.AbstractEventLoop) -> None:
        self.errors: list[str] = []
        self._socket = socket
        self._loop = loop
        self._number = 0

    def open(self, page: Path | str, *, width: int = 1400, height: int = 1000, dark: bool = False) -> float:
        """Open a file or an address, wait until its script is ready, and return the seconds that this took."""
        self._set_size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url="about:blank")  # an address that differs only in its hash would not load
        self.errors.clear()
        started = self._loop.time()
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self.ask("Page.navigate", until="Page.loadEventFired", url=url)
        self.until("!document.getElementById('settings') || document.body.dataset.ready === 'true'")
        return self._loop.time() - started

    def run(self, script: str) -> Any:
        """Evaluate ``script`` in the page, wait for its promise if it returns one, and return the value."""
        reply = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply["result"], reply["result"]
        return reply["result"]["result"].get("value")

    def press(self, key: str, on: str = "document.body") -> None:
        """Press ``key`` on the element that the script ``on`` returns."""
        self.run(f"{on}.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true}}))")

    def choose(self, element: str, value: str) -> None:
        """Set the value of the input or selection list with the id ``element``, as a user does."""
        self.run(
            f"(() => {{ const one = document.getElementById({json.dumps(element)}); one.value = {json.dumps(value)};"
            "one.dispatchEvent(new Event(one.tagName === 'INPUT' ? 'input' : 'change')); })()"
        )

    def until(self, condition: str, seconds: float = 60) -> None:
        """Wait until the script ``condition`` is true in the page. The page may load again in the meantime."""
        end = time.monotonic() + seconds
        script = f"Boolean({condition})"
        while not self.ask("Runtime.evaluate", expression=script).get("result", {}).get("result", {}).get("value"):
            assert time.monotonic() < end, f"not true after {seconds} s: {condition}"
            time.sleep(0.02)

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write a PNG of the visible part, or of the whole page."""
        size = {}
        if whole:
            box = self.ask("Page.getLayoutMetrics")["result"]["cssContentSize"]
            size = {"clip": {**box, "scale": 1}, "captureBeyondViewport": True}
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png", **size)["result"]["data"]))

    def ask(self, method: str, until: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call ``method`` of the protocol and return the reply. If ``until`` is given, wait for this event."""
        return self._loop.run_until_complete(self._ask(method, until, parameters))

    async def _ask(self, method: str, until: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        wanted, answer = self._number, None
        await self._socket.send_json({"id": wanted, "method": method, "params": parameters})
        async for message in self._socket:
            heard = json.loads(message.data)
            name, params = heard.get("method"), heard.get("params", {})
            is_error = name == "Log.entryAdded" and params["entry"]["level"] == "error"
            is_error |= name == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert")
            if name == "Runtime.exceptionThrown" or is_error:
                self.errors.append(json.dumps(params)[:500])
            if heard.get("id") == wanted:
                answer = heard
            if answer is not None and until in (None, name):
                return answer
        raise RuntimeError("Chromium closed the connection")

    def _set_size(self, width: int, height: int) -> None:
        mobile = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Start a browser with an empty profile, and yield its page. End the browser after the block."""
    need("chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [str(chromium()), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        loop = asyncio.new_event_loop()
        try:
            session, socket = loop.run_until_complete(_connected(_port(process)))
            try:
                browser = Browser(socket, loop)
                for domain in ("Runtime.enable", "Log.enable", "Page.enable"):
                    browser.ask(domain)
                yield browser
            finally:
                loop.run_until_complete(session.close())
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its helpers as well, which write into the profile
            process.wait(10)
            loop.close()


async def _connected(port: int) -> tuple[aiohttp.ClientSession, aiohttp.ClientWebSocketResponse]:
    session = aiohttp.ClientSession()
    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
        target = next(one for one in await answer.json() if one["type"] == "page")
    return session, await session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr
    for line in process.stderr:
        if match := re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line):
            return int(match.group(1))
    raise RuntimeError("Chromium ended before it listened")
