"""A large build verifies and writes in a second process, with the same result as in one process."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.errors import MachineError
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.builders.records import CodeTests, Query, Reference
from bestofn.builders.run import second_process
from bestofn.builders.run.pipeline import prepared_run
from bestofn.builders.tables import shards
from bestofn.sandbox.workers import WorkerLost

QUERIES = 12
TIMINGS = ("seconds", "at")


def config_of(folder: Path, *words: str) -> dict[str, Any]:
    """Return the configuration of a build with scripted answers and shards of five queries."""
    data = folder / "sums.jsonl"
    lines = [{"id": f"q{i}", "question": f"What is {i} + 0?", "answer": str(i)} for i in range(QUERIES)]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = [f"It is \\boxed{{{number}}}." for number in range(8)]
    chosen = [f"dataset.path={data}", f"provider.lines={json.dumps(answers)}", "shard_size=5", "n=8"]
    return compose(["dataset=jsonl", "provider=scripted", "sandbox=none", "tools=none", *chosen, *words])


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Return the nested rows of a run without their timings."""
    rows = list(shards.nested(shards.parts_of(out)))
    for row in rows:
        for one in (*row["candidates"], *row["verdicts"]):
            for name in TIMINGS:
                one.pop(name, None)
    return rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the rows of a build that runs in one process."""
    folder = tmp_path_factory.mktemp("whole")
    LocalExecutor().run(config_of(folder), folder / "run")
    return rows_of(folder / "run")


def test_the_rows_equal_those_of_one_process(
    tmp_path: Path, whole: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_process, "LEAST_QUERIES", 1)
    written: list[int] = []
    write = second_process.SecondProcess.write

    async def counted(
        self: second_process.SecondProcess, shard: second_process.Shard, settings: Any
    ) -> second_process.WrittenPart:
        part = await write(self, shard, settings)
        written.append(shard.number)
        assert part.outcomes.keys() <= {"pass", "fail"}
        assert set(part.rows) == {"verify", "reward", "pairs"}
        return part

    monkeypatch.setattr(second_process.SecondProcess, "write", counted)
    manifest = LocalExecutor().run(config_of(tmp_path), tmp_path / "run")
    assert sorted(written) == [0, 1, 2]
    assert rows_of(tmp_path / "run") == whole
    assert manifest["views"]["candidates"] == QUERIES * 8


IN_A_NEW_PROCESS = """
import sys
from pathlib import Path
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.builders.run import second_process
from bestofn.sandbox import workers
from tests.builders.run.test_second_process import config_of

def refused(settings):
    raise AssertionError("a new process was started")

second_process.LEAST_QUERIES = 1
workers._new_process = refused
folder = Path(sys.argv[1])
LocalExecutor().run(config_of(folder), folder / "run")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")
def test_the_rows_of_a_copied_process_are_the_same(tmp_path: Path, whole: list[dict[str, Any]]) -> None:
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, "-c", IN_A_NEW_PROCESS, str(tmp_path)], cwd=root, check=True, timeout=120)
    assert rows_of(tmp_path / "run") == whole


@pytest.mark.parametrize(
    ("words", "moves"),
    [
        ([], True),
        (["reward=length"], True),
        (["verifier=with_judge"], False),
        (["reward=judge"], False),
        (["+trusted=[mypkg]", "verifier._target_=mypkg.Mine"], False),
    ],
)
def test_stages_that_send_requests_or_are_not_own_stay(tmp_path: Path, words: list[str], moves: bool) -> None:
    config = config_of(tmp_path, *words)
    with prepared_run(config_of(tmp_path), tmp_path / "run") as run:
        assert (second_process.second_process(config, tmp_path, run.stage_list) is not None) == moves


def test_a_process_that_ends_again_and_again_ends_the_run_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(pool: object, function: object, *args: object, timeout_s: float) -> None:
        raise WorkerLost("signal 9 ended the worker process during a call")

    monkeypatch.setattr(second_process, "LEAST_QUERIES", 1)
    monkeypatch.setattr(second_process.ProcessPool, "call", lost)
    with pytest.raises(MachineError, match=r"ended two times: signal 9 .*run the same command again"):
        LocalExecutor().run(config_of(tmp_path), tmp_path / "run")


def test_programs_are_verified_in_the_first_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "LEAST_QUERIES", 0)
    tests = CodeTests("function", "python", ({"args": [1], "expected": 2},), "f")
    asked = ({"role": "user", "content": "?"},)
    sum_ = Query("a", "math", asked, reference=Reference(answer="2"))
    program = Query("b", "code", asked, reference=Reference(tests=tests))
    with prepared_run(config_of(tmp_path), tmp_path / "run") as run:
        made = second_process.second_process(run.config, tmp_path, run.stage_list)
    assert made is not None
    assert made.takes([sum_])
    assert not made.takes([sum_, program])


def test_what_is_logged_reaches_the_first_process(caplog: pytest.LogCaptureFixture) -> None:
    records = second_process._Records()
    log = logging.getLogger("bestofn.test")
    log.addHandler(records)
    try:
        log.warning("%d of %s", 3, object)
    finally:
        log.removeHandler(records)
    assert [record.getMessage() for record in records.records] == [f"3 of {object}"]
