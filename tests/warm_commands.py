"""Runs ``bestofn`` and Python programs in forks of one process that has imported PyTorch and TRL before.

A new process needs up to 7 s of CPU time for these imports. A fork has its own arguments, folder, environment, standard
streams and exit code. It gets SIGTERM when its caller ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    "datasets",
    "torch",
    "transformers.models.llama.modeling_llama",
    "trl.trainer.dpo_trainer",
    "trl.trainer.grpo_trainer",
    "uvicorn",
    "bestofn.scripts.build",
    "bestofn.scripts.serve",
    "bestofn.scripts.train",
    "bestofn.scripts.inspect",
)
CLIENT = """#!{python} -IS
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
words = {words} + sys.argv[1:]
request = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
server.sendall(request)
sys.exit(int(server.recv(16) or b"1"))
"""
CHECK_S = 0.02  # how often the server looks whether a command has ended


class WarmCommands:
    """``with WarmCommands() as commands`` starts the process; in ``commands.folder``, ``bestofn`` connects to it."""

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory()  # the path of a socket has at most 107 characters
        self.folder = Path(self._temporary.name)
        path = str(self.folder / "socket")
        for name, words in {"bestofn": ["bestofn"], "warm-python": ["python"]}.items():
            program = self.folder / name
            program.write_text(CLIENT.format(python=sys.executable, path=path, words=words))
            program.chmod(0o755)
        words = [sys.executable, "-m", "tests.warm_commands", path]
        self._server = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.terminate()
        self._server.communicate()
        self._temporary.cleanup()

    @property
    def python(self) -> Path:
        """The program that runs the Python file in its first argument."""
        return self.folder / "warm-python"


class Server:
    """Accepts the connections of the clients, forks one process per connection, and sends back its exit code."""

    def __init__(self, path: str) -> None:
        self._clients: dict[int, socket.socket] = {}  # by process
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> None:
        while True:
            for key, _ in self._ready.select(CHECK_S if self._clients else None):
                if key.fileobj is self._listener:
                    self._start(self._listener.accept()[0])
                else:  # the client has ended
                    self._ready.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGTERM)
            for process in tuple(self._clients):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    self._answer(process, os.waitstatus_to_exitcode(status))

    def _start(self, client: socket.socket) -> None:
        head, streams, *_ = socket.recv_fds(client, 4, 3)
        request = client.makefile("rb").read(int.from_bytes(head, "big"))
        process = os.fork()
        if process == 0:
            self._listener.close()
            client.close()
            run_in_fork(streams, *json.loads(request))
        for stream in streams:
            os.close(stream)
        self._clients[process] = client
        self._ready.register(client, selectors.EVENT_READ, process)

    def _answer(self, process: int, code: int) -> None:
        client = self._clients.pop(process)
        with contextlib.suppress(KeyError):
            self._ready.unregister(client)
        with contextlib.suppress(OSError):
            client.sendall(str(code if code >= 0 else 128 - code).encode())
        client.close()


def run_in_fork(streams: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    """Take over the streams, the folder and the environment of the caller, run its command, and end the process."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [entry for entry in environment.get("PYTHONPATH", "").split(":") if entry]
    code: object = 1
    try:
        run_command(words)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def run_command(words: list[str]) -> None:
    program, *arguments = words
    if program == "python":
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        sys.argv = [program, *arguments]
        importlib.import_module("bestofn.scripts.main").main()


if __name__ == "__main__":
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    server = Server(sys.argv[1])
    print("ready", flush=True)
    server.serve()
