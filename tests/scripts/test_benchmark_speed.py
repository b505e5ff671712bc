"""``bestofn benchmark speed`` measures commands with the default settings and a bare client, with all their processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.scripts import benchmark, benchmark_speed

BURN = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"


def test_the_defaults_are_measured_next_to_a_bare_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "speed.json"
    words = ["speed", "prompts=3", "n=2", "concurrency=2", "latency=0.01", "rounds=1", f"json={file}"]
    benchmark.main(words)
    measured = json.loads(file.read_text())
    bare, build = measured["bare 2"], measured["build 2"]
    assert bare["requests"] == build["requests"] == 3
    assert build["wall"] == pytest.approx(sum(build[name] for name in ("start", "span", "end")))
    assert build["wall_ratio"] == pytest.approx(build["wall"] / bare["wall"])
    assert build["cpu_ms_per_candidate"] == pytest.approx(1000 * build["cpu"] / 6)
    assert measured["repeated 2"]["requests"] == 0
    assert measured["one query"]["requests"] == 1
    assert measured["verify"]["rows"] == 6
    assert measured["settings"]["sandbox"] == "AutoSandbox"
    assert "none" not in measured["settings"].values()
    assert "sandbox AutoSandbox" in capsys.readouterr().out


def test_changed_settings_are_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["prompts=2", "n=1", "concurrency=2", "latency=0.01", "rounds=1", "sandbox=none", "tools=none"]
    benchmark.main(["speed", *words])
    printed = capsys.readouterr().out
    assert "sandbox none, tools none" in printed
    assert "changed: sandbox=none tools=none" in printed


def test_the_cpu_time_of_a_process_that_outlives_the_command_counts() -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN.format(0.2)!r}])"
    command = [sys.executable, "-m", "bestofn.scripts.process_usage", sys.executable, "-c", child]
    figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert figures["cpu"] >= 0.2


def test_the_exit_code_is_that_of_the_command() -> None:
    command = [sys.executable, "-m", "bestofn.scripts.process_usage", sys.executable, "-c", "raise SystemExit(7)"]
    assert subprocess.run(command, check=False, stdout=subprocess.PIPE).returncode == 7


def test_ratios_are_the_medians_and_the_best_of_the_rounds() -> None:
    every = [
        {"bare 8": {"wall": bare, "cpu": 1.0}, "build 8": {"wall": build, "cpu": 2.0}}
        for bare, build in ((1.0, 2.0), (2.0, 3.0), (4.0, 10.0))
    ]
    ratios = benchmark_speed._ratios(every, 8, 1000)
    assert (ratios["wall_ratio"], ratios["best_wall_ratio"]) == (2, 1.5)
    assert ratios["cpu_ms_per_candidate"] == ratios["cpu_ratio"] == 2


def test_a_wrong_concurrency_is_named() -> None:
    with pytest.raises(ConfigError, match="concurrency is 'many'"):
        benchmark_speed._concurrencies("many")
