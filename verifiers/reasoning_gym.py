"""Scores answers to tasks of the library Reasoning Gym with its scorers (``verifier=reasoning_gym``).

The library is third-party code, so it runs in worker processes with limits. The source
``builders.sources.reasoning_gym`` makes the queries.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import io
import json
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bestofn.builders.distribution import install_command
from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, JsonObject, Outcome, Query, Verdict
from bestofn.sandbox.workers import ProcessorTimeError, WorkerLost
from bestofn.verifiers.calibration import calibrated

MOST_INSTANCES = 1_000_000
"""The distance of two seeds. The library makes instance i of seed s from s + i, so such seeds share no instance."""

FEWER = {"acre": 2_000, "word_ladder": 500}
"""Task -> its number of instances, if the task makes all instances at once or refuses a large number."""

_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FULL = 1 - 1e-9  # scores are floats


def not_installed() -> str:
    """Return the message that names the command which installs Reasoning Gym."""
    return f"Reasoning Gym is not installed. Install it with: {install_command('reasoning-gym')}"


class ReasoningGymVerifier:
    """Verifies answers to the task in ``reference.checks["reasoning_gym"]``.

    An answer passes if the scorer of its task gives the full score of 1. ``detail["score"]`` is the score, from 0 to 1.
    The answer is the text in the last ``<answer>`` tags. Without tags, the last line is scored; if it does not get the
    full score, the verdict is ``abstain``. A scorer that exceeds ``timeout_s``, ``cpu_s`` or the memory of ``workers``
    gives ``error``, because a slow scorer does not show that the answer is wrong.
    """

    name = "reasoning_gym"

    def __init__(self, workers: Workers | None = None, timeout_s: float = 60.0, cpu_s: float = 30.0) -> None:
        self.workers, self.timeout_s, self.cpu_s = workers, timeout_s, cpu_s

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query names a task and there are worker processes; otherwise ""."""
        return self.name if self.workers is not None and _check(query) else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict of the task's scorer. Raises ``ConfigError`` if the library is not installed."""
        started = time.perf_counter()
        check = _check(query)
        if self.workers is None or not check:
            reason = "there are no worker processes" if check else "the query names no task of Reasoning Gym"
            return Verdict("abstain", 0.0, reason, self.name)
        if importlib.util.find_spec("reasoning_gym") is None:
            raise ConfigError(not_installed())
        answer, is_tagged = answer_of(candidate.text)
        if not answer and not is_tagged:
            return Verdict("abstain", 0.0, "the response contains no answer", self.name)
        outcome, text, found = await self._decide(self.workers, check, answer, is_tagged)
        detail: JsonObject = {"task": check["task"], "answer": answer[:300], **found}
        return calibrated(Verdict(outcome, 0.0, text, self.name, detail, time.perf_counter() - started))

    async def _decide(
        self, workers: Workers, check: JsonObject, answer: str, is_tagged: bool
    ) -> tuple[Outcome, str, JsonObject]:
        """Return the outcome, its explanation, and further entries of ``detail``."""
        try:
            score = await workers.call(score_in_worker, dict(check), answer, timeout_s=self.timeout_s, cpu_s=self.cpu_s)
        except StaleTaskError as error:
            return "error", str(error), {}
        except (TimeoutError, ProcessorTimeError, MemoryError, WorkerLost) as error:
            return "error", f"the scorer of {check['task']} did not finish: {error or type(error).__name__}", {}
        except Exception as error:  # a third-party scorer may raise any error, for example for a malformed answer
            found: JsonObject = {"scorer": f"{type(error).__name__}: {error}"[:200]}
            return "abstain", f"the scorer of {check['task']} failed on this answer", found
        if score >= _FULL:
            return "pass", "the scorer gives the full score", {"score": score}
        if not is_tagged:
            return "abstain", "the response marks no answer with <answer> tags", {"score": score}
        return "fail", f"the scorer gives {score:.3g} of 1", {"score": score}


def answer_of(text: str) -> tuple[str, bool]:
    """Return the answer in a response, and whether it is in ``<answer>`` tags."""
    visible = _THINKING.sub("", text)
    tagged = _TAGGED.findall(visible)
    if tagged:
        return tagged[-1].strip("\n").rstrip() or tagged[-1].strip(), True
    lines = [line for line in visible.strip().splitlines() if line.strip()]
    return (lines[-1].strip() if lines else ""), False


class StaleTaskError(RuntimeError):
    """Raised if the library makes another task from the query's seed, so the question or the answer does not fit."""


def score_in_worker(check: JsonObject, answer: str) -> float:
    """Return the score of ``answer``, from 0 to 1. Runs in a worker process.

    Raises ``StaleTaskError`` if the seed gives another question or answer in the installed version of the library.
    """
    tasks = task_of(str(check["task"]), int(check["seed"]), json.dumps(check.get("settings") or {}, sort_keys=True))
    entry = tasks[int(check["index"])]
    if digest(entry) != check["question"]:
        raise StaleTaskError(
            f"the installed Reasoning Gym makes another question or answer for {check['task']}, seed {check['seed']}, "
            f"index {check['index']}. Install the version that made the query. If this is that version, the task has "
            "no fixed answer and cannot be verified."
        )
    with contextlib.redirect_stdout(io.StringIO()):  # some scorers print
        return float(tasks.score_answer(answer, entry))


@lru_cache(maxsize=16)
def task_of(name: str, seed: int, settings: str) -> Any:
    """Return the library's dataset object with the questions of a task. ``settings`` is a JSON text."""
    return instances_of(name, seed, json.loads(settings))


def instances_of(task: str, seed: int, settings: JsonObject) -> Any:
    """Return the instances of a task.

    The size can change the instances. Both the source and the verifier call this function, so that they use the same
    size.
    """
    library = importlib.import_module("reasoning_gym")
    return library.create_dataset(task, seed=seed, size=FEWER.get(task, MOST_INSTANCES), **settings)


def digest(entry: JsonObject) -> str:
    """Return a short hash of a question and its answer.

    Some tasks, such as ``codeio``, make other instances from the same seed in another process. The verifier compares
    this hash to detect such an instance.
    """
    text = f"{entry['question']}\0{entry.get('answer')}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _check(query: Query) -> JsonObject:
    """Return the check ``reasoning_gym`` of the query; {} if it is missing or cannot be read."""
    check = (query.reference.checks or {}).get("reasoning_gym")
    keys = {"task", "seed", "index", "question"}
    return check if isinstance(check, Mapping) and keys <= set(check) else {}
