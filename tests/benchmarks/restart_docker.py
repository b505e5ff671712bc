"""Restarts a real Docker daemon while programs run.

    python -m tests.benchmarks.restart_docker [runs=40] [restarts=2]

Checks that interrupted programs run again, that no verdict changes, and that no container is left. The exit code is 1
if a check fails.

Needs root, ``dockerd``, and the sandbox image in the engine of this machine. The benchmark starts a second daemon with
separate data and a separate socket in a temporary folder, and removes all of it at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.builders.records import Candidate, CodeTests, Query, Reference  # noqa: E402
from bestofn.sandbox.docker_sandbox import DockerSandbox, connect  # noqa: E402
from bestofn.sandbox.leftovers import owner  # noqa: E402
from bestofn.verifiers.code_verifier import CodeVerifier  # noqa: E402
from tests.sandbox.left_behind import left_behind  # noqa: E402

START_S = 60  # for the daemon to answer
RUN_S = 0.3  # of one program, so that programs run when the daemon ends


class Daemon:
    """A Docker daemon with data, socket and log in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"unix://{folder}/docker.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the daemon, and wait until it answers."""
        command = ["dockerd", "--host", self.address, "--iptables=false", "--ip6tables=false", "--bridge=none"]
        for option, name in (("data-root", "data"), ("exec-root", "exec"), ("pidfile", "docker.pid")):
            command += [f"--{option}", str(self.folder / name)]
        with (self.folder / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + START_S
        while True:
            try:
                connect(self.address).close()
                return
            except Exception:  # it does not answer yet
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        """End the daemon, as an update or a restart of the service does. Its containers end with it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=START_S)
            self.process = None


@contextlib.contextmanager
def second_daemon(image: str) -> Iterator[Daemon]:
    """Start a second daemon with a copy of ``image``. Remove the daemon and its data after the block."""
    folder = Path(tempfile.mkdtemp(prefix="bestofn-daemon-"))
    daemon = Daemon(folder)
    try:
        daemon.start()
        saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        subprocess.run(["docker", "-H", daemon.address, "load", "--quiet"], stdin=saved.stdout, check=True)
        saved.wait()
        yield daemon
    finally:
        daemon.stop()
        for line in Path("/proc/mounts").read_text().splitlines():
            if str(folder) in line:
                subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _query(number: int) -> tuple[Query, Candidate, str]:
    """Return a query with an answer, and the right verdict on it. Every third answer is wrong."""
    tests = CodeTests("asserts", "python", ({"source": f"assert f({number}) == {number + 1}"},))
    plus = 2 if number % 3 == 0 else 1
    program = f"import time\ndef f(x):\n    time.sleep({RUN_S})\n    return x + {plus}  # {number}"
    answer = Candidate(0, ({"role": "assistant", "content": f"```python\n{program}\n```"},))
    query = Query(f"q{number}", "code", ({"role": "user", "content": "?"},), reference=Reference(tests=tests))
    return query, answer, "pass" if plus == 1 else "fail"


async def verify(daemon: Daemon, image: str, runs: int, restarts: int) -> Counter[str]:
    """Verify ``runs`` answers while the daemon restarts. Return counts with the keys ``OUTCOME for RIGHT OUTCOME``."""
    found: Counter[str] = Counter()
    numbers = iter(range(runs))

    async def some(verifier: CodeVerifier) -> None:
        for number in numbers:
            query, answer, deserved = _query(number)
            verdict = await verifier.verify(query, answer)
            found[f"{verdict.outcome} for {deserved}"] += 1

    async def restart() -> None:
        for _ in range(restarts):
            await asyncio.sleep(4 * RUN_S)
            await asyncio.to_thread(daemon.stop)
            await asyncio.to_thread(daemon.start)

    async with DockerSandbox(workers=2, host=daemon.address, image=image) as sandbox:
        verifier = CodeVerifier(sandbox)
        await asyncio.gather(some(verifier), some(verifier), restart())
    return found


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    runs, restarts = int(options.get("runs", 40)), int(options.get("restarts", 2))
    image = asyncio.run(_image())
    with second_daemon(image) as daemon:
        begun = time.monotonic()
        found = asyncio.run(verify(daemon, image, runs, restarts))
        client = connect(daemon.address)
        left = left_behind(owner(), client)
        client.close()
        print(f"{runs} verdicts, {restarts} restarts, {time.monotonic() - begun:.1f} s: {dict(found)}; left: {left}")
    wrong = {name for name in found if name not in ("pass for pass", "fail for fail")}
    return 1 if wrong or left else 0


async def _image() -> str:
    """Return the tag of the sandbox image. If the image is missing, build it."""
    async with DockerSandbox(workers=1) as sandbox:
        await sandbox.opened()
        return sandbox.image.tag


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
