"""``bestofn benchmark speed`` measures builds and a bare client in turn."""

import json
from pathlib import Path

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.scripts import benchmark, benchmark_speed


def test_a_build_is_measured_next_to_a_bare_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "speed.json"
    words = ["speed", "prompts=3", "n=2", "concurrency=2", "latency=0.01", "rounds=1", f"json={file}"]
    benchmark.main(words)
    figures = json.loads(file.read_text())["2"]
    parts = sum(figures[f"build_{name}"] for name in ("start", "span", "end"))
    assert figures["build_wall"] == pytest.approx(parts)
    assert figures["wall_ratio"] == pytest.approx(figures["build_wall"] / figures["bare_wall"])
    assert figures["cpu_ms_per_candidate"] == pytest.approx(1000 * figures["build_cpu"] / 6)
    assert 0 < figures["build_finish"] < figures["build_wall"]
    assert "ms CPU per candidate" in capsys.readouterr().out


def test_medians_are_those_of_each_figure_and_of_the_ratio_in_one_round() -> None:
    runs = [({"wall": bare, "cpu": 1.0}, {"wall": build, "cpu": 2.0}) for bare, build in ((1, 2), (2, 3), (4, 10))]
    figures = benchmark_speed._medians(runs, 1000)
    assert figures["wall_ratio"] == 2
    assert (figures["bare_wall"], figures["build_wall"]) == (2, 3)
    assert figures["cpu_ms_per_candidate"] == figures["cpu_ratio"] == 2
    assert (figures["best_wall_ratio"], figures["best_cpu_ratio"]) == (1.5, 2)


def test_a_wrong_concurrency_is_named() -> None:
    with pytest.raises(ConfigError, match="concurrency is 'many'"):
        benchmark_speed._concurrencies("many")
