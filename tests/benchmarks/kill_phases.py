"""Kills each phase of the work at random moments, runs the same command again, and compares the results.

    python -m tests.benchmarks.kill_phases [--phases generate,verify,…] [--trials 12] [--prompts 48] [--seed 0]

The progress of a phase is a count, such as the answers of the server, files, objects or steps. Each trial kills the
command when this count reaches a random value: with SIGKILL, or in a third of the trials with SIGTERM or SIGHUP. Then
the same command runs to its end. A trial succeeds if this command ends with exit code 0, and its result equals that of
an uninterrupted command, except for timings. Only requests in flight at a SIGKILL may be paid for twice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from bestofn.builders.tables import shards
from bestofn.builders.tables.views import VIEWS
from tests.benchmarks.kill_resume import write_sums
from tests.hub_double import HubDouble
from tests.loopback import OpenAIServer, sums

ROOT = Path(__file__).resolve().parents[2]
N, CONCURRENCY, SHARD_SIZE = 4, 8, 12
TIMINGS = ("latency_s", "verification_seconds", "seconds", "timestamp", "generated_at", "previous_at", "at")
SOFT = (signal.SIGTERM, signal.SIGHUP)
LONGEST_S = 240.0  # no command takes so long


def grade_or_sum(question: str, seed: int) -> str:
    """Return the reply of the loopback service: a grade if the judge of the reward asks, otherwise a sum."""
    if "cannot_judge" in question:
        return f'{{"reasoning": "", "cannot_judge": false, "score": {1 + zlib.crc32(question.encode()) % 10}}}'
    return sums(question, seed)


@dataclass
class Scene:
    """The files, services and settings of one trial in ``folder``."""

    folder: Path
    server: OpenAIServer
    prompts: int
    hub: HubDouble | None = None
    bucket: str = ""
    ray: str = ""
    answers_before: int = 0

    @property
    def run(self) -> Path:
        """The local folder of the run."""
        from bestofn.builders.run.mirror import folder_of

        return self.folder / (folder_of(self.url) if self.bucket else "run")

    @property
    def url(self) -> str:
        """The URL of the run of a trial with a mirror."""
        return f"{self.bucket}/{self.folder.name}"

    def build(self, *more: str) -> list[str]:
        """Return the words of a build with a judge as its reward."""
        settings = {
            "dataset.path": write_sums(self.folder / "sums.jsonl", self.prompts),
            "provider.base_url": self.server.url,
            "provider.model": "m",
            "provider.limits.concurrency": CONCURRENCY,
            "n": N,
            "shard_size": SHARD_SIZE,
            "out": self.url if self.bucket else self.run,
            "log.metrics_s": 0.02,
            "executor.shards_in_flight": 2,
        }
        words = ["build", "dataset=jsonl", "provider=openai_chat", "sandbox=none", "tools=none", "reward=judge"]
        return [*words, *(f"{key}={value}" for key, value in settings.items()), *more]

    def start(self, words: list[str]) -> subprocess.Popen[bytes]:
        """Start ``bestofn WORDS`` in a new process."""
        env = {**os.environ, "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "hf_test", "HF_HOME": str(self.folder / "hf")}
        env |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        if self.hub is not None:
            env |= {"HF_ENDPOINT": self.hub.url, "HF_HUB_OFFLINE": "0"}
        with (self.folder / "log.txt").open("ab") as log:
            words = [sys.executable, "-m", "bestofn.scripts.main", *words]
            return subprocess.Popen(words, cwd=self.folder, env=env, stdout=log, stderr=log)

    def finish(self, words: list[str]) -> None:
        """Run ``bestofn WORDS`` to its end. Raises ``RuntimeError`` with its output if it fails."""
        if code := self.start(words).wait(LONGEST_S):
            raise RuntimeError(f"exit code {code}:\n{(self.folder / 'log.txt').read_text('utf-8')[-3000:]}")

    @property
    def answered(self) -> int:
        """Return the number of requests that the service has answered in this trial."""
        return self.server.requests - self.answers_before

    def files(self, *patterns: str) -> int:
        """Return the number of files of the run that match one of ``patterns``."""
        return sum(1 for pattern in patterns for _ in self.run.glob(pattern))


class Phase(NamedTuple):
    """One kind of work: how it is prepared, its command, the count that a kill waits for, and its result."""

    prepare: Callable[[Scene], None]
    words: Callable[[Scene], list[str]]
    count: Callable[[Scene], float]
    result: Callable[[Scene], Any]
    jitter_s: float = 0.05  # a kill comes up to this long after its count


@dataclass
class Trial:
    """The result of one trial."""

    problems: list[str] = field(default_factory=list)
    killed_by: str = "ended before the kill"
    twice: int = 0


# --- phases -----------------------------------------------------------------------------------------------------------


def nothing(scene: Scene) -> None:
    """Prepare nothing."""


def from_complete_run(*deleted: str) -> Callable[[Scene], None]:
    """Return a preparation that makes a complete run and deletes the files that match ``deleted``."""

    def prepare(scene: Scene) -> None:
        template = scene.folder.parent / f"template-{scene.prompts}"
        if not template.exists():
            made = Scene(scene.folder.parent / "making", scene.server, scene.prompts)
            made.folder.mkdir()
            made.finish(made.build())
            made.run.rename(template)
        shutil.copytree(template, scene.run)
        for path in [path for pattern in deleted for path in scene.run.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return prepare


def verified(scene: Scene) -> float:
    """Return the number of verified queries according to the metrics of the run."""
    with contextlib.suppress(OSError):
        text = (scene.run / "logs" / "metrics.prom").read_text("utf-8")
        return sum(float(value) for value in re.findall(r'queries_total\{stage="verify"\} (\S+)', text))
    return 0.0


def graded(scene: Scene) -> float:
    """Return the number of requests that the judge has received."""
    return sum("cannot_judge" in body["messages"][-1]["content"] for body in list(scene.server.bodies))


def published(scene: Scene) -> float:
    """Return the number of files of the published tables, including unfinished files."""
    return scene.files(*(f"{view}/*" for view in VIEWS), *(f".{view}*/*" for view in VIEWS), "checksums.json*")


def regenerated(scene: Scene) -> float:
    """Return the progress of a regeneration: a weighted count of its answered requests and its files."""
    return scene.answered + 8 * scene.files("regenerations/**/*")


def objects(scene: Scene) -> float:
    """Return the number of objects of the run in the bucket."""
    return len(remote_files(scene))


def remote_files(scene: Scene) -> dict[str, str]:
    """Return the objects of the run in the bucket: relative path -> path in the bucket."""
    import fsspec

    fs, root = fsspec.core.url_to_fs(scene.url)
    fs.invalidate_cache()
    return {str(path).removeprefix(f"{root}/"): str(path) for path in fs.find(root)}


def uploads(scene: Scene) -> float:
    """Return the number of requests that the Hub has received."""
    assert scene.hub is not None
    return scene.hub.requests


def dataset(scene: Scene, run: Path | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of the shards and the published tables of the run, without timings."""
    out = run or scene.run
    tables = {view: sorted((out / view).glob("*.parquet")) for view in VIEWS}
    rows = {f"{name}/{file.name}": pq.read_table(file).to_pylist() for name, files in tables.items() for file in files}
    return without_timings(rows | {"shards": list(shards.nested(shards.parts_of(out)))})


def remote_dataset(scene: Scene) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of the run's files in the bucket, like ``dataset``."""
    import fsspec

    fs, _ = fsspec.core.url_to_fs(scene.url)
    copy = scene.folder / f"copy-{time.monotonic_ns()}"
    for name, path in remote_files(scene).items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        fs.get_file(path, str(copy / name))
    return dataset(scene, copy)


def without_timings(value: Any) -> Any:
    """Return ``value`` without the keys in ``TIMINGS``, at any depth."""
    if isinstance(value, dict):
        return {key: without_timings(item) for key, item in value.items() if key not in TIMINGS}
    return [without_timings(item) for item in value] if isinstance(value, list) else value


def uploaded(scene: Scene) -> dict[str, bytes]:
    """Return the Parquet files on the Hub. The card is omitted, because it contains the time of the upload."""
    assert scene.hub is not None
    return {name: data for name, data in scene.hub.files.items() if name.endswith(".parquet")}


def ray_words(scene: Scene) -> list[str]:
    """Return the words of a build on the Ray cluster."""
    more = [f"executor.address={scene.ray}", "executor.workers={count: 1, num_cpus: 0.5}"]
    return [*scene.build("executor=ray"), *more]


def regenerate_words(scene: Scene) -> list[str]:
    """Return the words of a regeneration of all failed candidates."""
    return ["regenerate", str(scene.run), "where=failed"]


def push_words(scene: Scene) -> list[str]:
    """Return the words of an upload to the Hub."""
    return ["push", str(scene.run), "hub.repo=me/sums", "hub.license=mit"]


NO_VIEWS = (*VIEWS, "manifest.json", "checksums.json")
UNVERIFIED = (*NO_VIEWS, "shards", "cache", "logs")
PHASES = {
    "generate": Phase(nothing, Scene.build, lambda scene: scene.answered - graded(scene), dataset),
    "verify": Phase(from_complete_run(*UNVERIFIED), Scene.build, verified, dataset),
    "reward": Phase(nothing, Scene.build, graded, dataset),
    "views": Phase(from_complete_run(*NO_VIEWS), Scene.build, published, dataset),
    "regenerate": Phase(from_complete_run(), regenerate_words, regenerated, dataset, jitter_s=0.5),
    "push": Phase(from_complete_run(), push_words, uploads, uploaded),
    "mirror": Phase(nothing, Scene.build, objects, remote_dataset, jitter_s=0.3),
    "ray": Phase(nothing, ray_words, lambda scene: scene.answered, dataset, jitter_s=0.5),
}


# --- trials -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def services(name: str) -> Iterator[dict[str, Any]]:
    """Start the services that the phase ``name`` needs in addition to the model. Yield their addresses."""
    if name == "mirror":
        with _bucket() as bucket:
            yield {"bucket": bucket}
    elif name == "ray":
        with _cluster() as address:
            yield {"ray": address}
    else:
        yield {}


@contextlib.contextmanager
def _bucket() -> Iterator[str]:
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    fsspec.filesystem("s3").mkdir("kills")
    yield "s3://kills"
    server.stop()


@contextlib.contextmanager
def _cluster() -> Iterator[str]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"num_cpus": 2, "object_store_memory": 100 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    yield str(cluster.address)
    cluster.shutdown()


def scene_of(name: str, folder: Path, server: OpenAIServer, prompts: int, given: dict[str, Any]) -> Scene:
    """Return the prepared scene of one trial."""
    folder.mkdir()
    (folder / "log.txt").touch()
    scene = Scene(folder, server, prompts, **given)
    PHASES[name].prepare(scene)
    server.reset()
    return scene


def uninterrupted(name: str, scene: Scene) -> tuple[Any, float, int]:
    """Run the phase to its end. Return its result, the last value of its count, and the number of answered requests."""
    phase = PHASES[name]
    process = scene.start(phase.words(scene))
    while process.poll() is None:
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError((scene.folder / "log.txt").read_text("utf-8")[-3000:])
    return phase.result(scene), phase.count(scene), scene.answered


def run_trial(name: str, scene: Scene, expected: tuple[Any, float, int], draw: random.Random) -> Trial:
    """Kill the phase ``name`` at a random moment, run the same command again, and compare."""
    phase, trial, words = PHASES[name], Trial(), PHASES[name].words(scene)
    result, last, requests = expected
    before = phase.count(scene)
    target = before + draw.uniform(0.0, 0.98) * (last - before)
    sent = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, *SOFT))
    process = scene.start(words)
    while phase.count(scene) <= target and process.poll() is None:
        time.sleep(0.002)
    time.sleep(draw.uniform(0.0, phase.jitter_s))
    if process.poll() is None:
        trial.killed_by = f"{sent.name} at {phase.count(scene):g} of {last:g}"
        process.send_signal(sent)
    process.wait(LONGEST_S)
    time.sleep(3 * scene.server.latency_s)  # the server finishes the open requests
    try:
        scene.finish(words)
        if phase.result(scene) != result:
            trial.problems.append("the result differs")
    except Exception as error:  # every kind of damage is a result of the trial
        trial.problems.append(f"{type(error).__name__}: {error}")
    trial.twice = scene.answered - requests
    if trial.twice > (0 if sent in SOFT else CONCURRENCY):
        trial.problems.append(f"{trial.twice} requests were paid for twice")
    return trial


def run_phase(name: str, folder: Path, trials: int, prompts: int, seed: int) -> Iterator[Trial]:
    """Run ``trials`` trials of the phase ``name`` in ``folder``."""
    with OpenAIServer(latency_s=0.1, answer=grade_or_sum) as server, services(name) as given:
        with _hub(name) as hub:
            scene = scene_of(name, folder / "whole", server, prompts, given | hub)
            expected = uninterrupted(name, scene)
        for number in range(trials):
            with _hub(name) as hub:
                scene = scene_of(name, folder / f"trial-{number}", server, prompts, given | hub)
                trial = run_trial(name, scene, expected, random.Random(f"{name} {seed} {number}"))
            if not trial.problems:
                shutil.rmtree(scene.folder)
            yield trial


@contextlib.contextmanager
def _hub(name: str) -> Iterator[dict[str, Any]]:
    if name != "push":
        yield {}
        return
    with HubDouble(latency_s=0.02) as hub:
        yield {"hub": hub}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phases", default=",".join(PHASES))
    for name, default in {"trials": 12, "prompts": 48, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    for name in given.phases.split(","):
        folder = Path(tempfile.mkdtemp(prefix=f"kill-{name}-"))
        good = killed = 0
        for trial in run_phase(name, folder, given.trials, given.prompts, given.seed):
            good += not trial.problems
            killed += trial.killed_by.startswith("SIG")
            print(f"{name}: {trial.killed_by}; {trial.twice} paid twice; {trial.problems or 'holds'}", flush=True)
        print(f"{name}: {good} of {given.trials} trials hold, {killed} of them killed", flush=True)
        if good == given.trials:
            shutil.rmtree(folder)
        else:
            print(f"{name}: the files are in {folder}")


if __name__ == "__main__":
    main()
