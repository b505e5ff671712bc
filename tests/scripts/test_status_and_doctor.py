"""``bestofn status`` and ``bestofn doctor`` report the state of runs, journals and the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bestofn.builders.run import manifest
from bestofn.builders.run.run_folder import write_marker
from bestofn.builders.run.run_lock import run_lock
from bestofn.scripts import doctor, journal, status
from tests.runs import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    out = write_run(tmp_path / "run")
    write_marker(out / "shards" / "00000.parquet", ["fingerprint"], 30)
    return out


def test_status_of_a_finished_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status.main([str(run)])
    shown = capsys.readouterr().out
    assert "complete" in shown
    assert "1 finished shards, 30 queries, $0.1200" in shown
    assert "process" not in shown


def test_status_of_a_running_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest.write(run, manifest.read(run) | {"state": "running"})
    with run_lock(run) as lock:
        lock.progress = lambda: {"total": 30, "stages": {"generate": 7, "verify": 5}, "requests": 9, "usd": 0.5}
        lock.note()
        status.main([str(run)])
        shown = capsys.readouterr().out
        assert f"process {os.getpid()} on" in shown
        assert "queries of 30 done per stage: generate 7, verify 5" in shown
        assert "9 requests, $0.5000" in shown
        status.main([str(run), "--json"])
        facts = json.loads(capsys.readouterr().out)
        assert facts["process"]["is_running"] is True
        assert facts["state"] == "running"
    status.main([str(run)])
    assert "interrupted" in capsys.readouterr().out


def test_status_after_a_kill(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest.write(run, manifest.read(run) | {"state": "running"})
    program = (
        f"import os; from pathlib import Path; from bestofn.builders.run.run_lock import run_lock; "
        f"lock = run_lock(Path({str(run)!r})); lock.__enter__(); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -9
    status.main([str(run)])
    shown = capsys.readouterr().out
    assert "interrupted" in shown
    assert "has ended without finishing it" in shown
    assert "Run the same command again" in shown


def test_status_and_doctor_refuse_a_folder_that_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (status, doctor):
        with pytest.raises(SystemExit) as ended:
            command.main([str(tmp_path)])
        assert ended.value.code == 2
        assert "Expected the folder of a `bestofn build`" in capsys.readouterr().err


def test_doctor_prints_findings_and_ends_with_exit_code_3(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doctor.main([str(run)])
    assert "nothing is damaged" in capsys.readouterr().out
    with (run / "shards" / "00000.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(SystemExit) as ended:
        doctor.main([str(run), "--json"])
    assert ended.value.code == 3
    (finding,) = [one for one in json.loads(capsys.readouterr().out) if "shards" in one["file"]]
    assert "does not match the checksum" in finding["problem"]
    assert "bestofn build" in finding["remedy"]


def test_doctor_refuses_a_run_that_is_being_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_lock(run), pytest.raises(SystemExit) as ended:
        doctor.main([str(run), "dry_run=true"])
    assert ended.value.code == 3
    assert f"process {os.getpid()} on" in capsys.readouterr().err


def test_the_journal_of_a_run_in_a_sweep_is_found(tmp_path: Path) -> None:
    shared = tmp_path / "sweep" / "journal.sqlite"
    folder = tmp_path / "sweep" / "n=2"
    folder.mkdir(parents=True)
    shared.write_bytes(b"")
    assert journal.find(str(folder)) == shared
    elsewhere = tmp_path / "mine.sqlite"
    elsewhere.write_bytes(b"")
    manifest.write(folder, {"config": {"journal": str(elsewhere)}})
    assert journal.find(str(folder)) == elsewhere
