"""A build on a real Ray cluster of several nodes on this machine, with real HTTP: the dataset of a single machine."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import assemble
from builders.errors import BudgetError, ConfigError, MachineError
from builders.executors.local_executor import LocalExecutor
from builders.executors.ray_executor import PLACES, SECRETS, Place, RayExecutor, _environment, _Tally
from tests.loopback import OpenAIServer

pytest.importorskip("ray")
from ray.cluster_utils import Cluster

ROOT = Path(__file__).resolve().parents[2]
NODE = {"num_cpus": 2, "object_store_memory": 100 << 20}
TIMINGS = ("latency_s", "verification_seconds")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    made.add_node(**NODE, resources={"docker": 1, "extra": 1})
    yield made
    made.shutdown()


def config(folder: Path, server: OpenAIServer, queries: int = 48, *more: str) -> dict[str, Any]:
    data = folder / f"sums-{queries}.jsonl"
    rows = ({"id": f"q{i}", "question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(queries))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {
        "dataset.path": data,
        "provider.base_url": server.url,
        "provider.model": "m",
        "provider.free": "false",
        "+prices": "{m: {call: 0.01}}",
        "n": 4,
        "shard_size": 6,
    }
    words = ["dataset=jsonl", "provider=openai_chat", "sandbox=none", "tools=none"]
    given = assemble.compose([*words, *(f"{key}={value}" for key, value in settings.items()), *more])
    given["stages"]["verify"]["verifier"] = {"_target_": "tests.last_number.LastNumber"}
    given["trusted"] = ["tests"]
    return given


def table(out: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    rows = pq.read_table(out / "candidates").to_pylist()
    return [{key: value for key, value in row.items() if key not in TIMINGS} for row in rows]


def test_the_dataset_is_that_of_a_single_machine(cluster, tmp_path) -> None:
    with OpenAIServer() as server:
        given = config(tmp_path, server)
        LocalExecutor().run(given, tmp_path / "local")
        server.reset()
        executor = RayExecutor(
            address=cluster.address,
            workers=Place(count=2, num_cpus=0.5),
            placement={"verify": Place(count=1, num_cpus=0.5, resources={"docker": 1})},
            shards_in_flight=2,
            through_driver=True,
        )
        described = executor.run(given, tmp_path / "ray")
        assert table(tmp_path / "ray") == table(tmp_path / "local")
        assert server.requests == 48
        spent = described["spending"]
        assert (spent["requests"], spent["completions"]) == (48, 192)
        assert spent["usd"] == pytest.approx(1.92)
        again = executor.run(given, tmp_path / "ray")
        assert (server.requests, again["spending"]["requests"]) == (48, 0)
    assert not list((tmp_path / "ray").glob(".seen*"))
    assert not list((tmp_path / "ray" / "shards").glob("*.tmp"))


def test_a_lost_node_costs_nothing_that_was_asked(cluster, tmp_path) -> None:
    node = cluster.add_node(**NODE, resources={"extra": 1})
    with OpenAIServer(latency_s=0.05) as server:
        given = config(tmp_path, server, 160, "provider.limits.concurrency=4")
        executor = RayExecutor(cluster.address, Place(2, 0.5, resources={"extra": 1}), shards_in_flight=2)

        def pull_the_plug() -> None:
            deadline = time.monotonic() + 60
            while server.requests < 50 and time.monotonic() < deadline:
                time.sleep(0.02)
            cluster.remove_node(node, allow_graceful=False)

        thread = threading.Thread(target=pull_the_plug)
        thread.start()
        executor.run(given, tmp_path / "ray")
        thread.join()
        assert server.requests == 160, "requests under way go on at the gateway"
        LocalExecutor().run(given, tmp_path / "local")
        assert table(tmp_path / "ray") == table(tmp_path / "local")


def test_a_killed_driver_goes_on_from_where_it_was(cluster, tmp_path) -> None:
    with OpenAIServer(latency_s=0.05) as server:
        given = config(tmp_path, server, 160, "provider.limits.concurrency=8")
        file = tmp_path / "config.json"
        file.write_text(json.dumps(given))
        driver = (
            "import json, sys; from pathlib import Path;"
            "from builders.executors.ray_executor import Place, RayExecutor;"
            "RayExecutor(sys.argv[1], Place(1, 0.5), shards_in_flight=2)"
            ".run(json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3]))"
        )
        words = [sys.executable, "-c", driver, cluster.address, str(file), str(tmp_path / "ray")]
        process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
        while server.requests < 50:
            assert process.poll() is None, "the driver ended before it was killed"
            time.sleep(0.02)
        process.kill()
        process.wait()
        asked = settled(server)
        subprocess.run(words, cwd=ROOT, check=True, timeout=120, stderr=subprocess.DEVNULL)
        assert asked < 160
        assert server.requests <= 160 + 8
        LocalExecutor().run(given, tmp_path / "local")
        assert table(tmp_path / "ray") == table(tmp_path / "local")


def test_an_interrupt_ends_the_run_and_keeps_the_answers(cluster, tmp_path) -> None:
    with OpenAIServer(latency_s=0.05) as server:
        given = config(tmp_path, server, 120, "provider.limits.concurrency=4")
        file = tmp_path / "config.json"
        file.write_text(json.dumps(given))
        driver = (
            "import json, sys; from pathlib import Path;"
            "from builders.executors.ray_executor import Place, RayExecutor;"
            "RayExecutor(sys.argv[1], Place(1, 0.5)).run(json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3]))"
        )
        words = [sys.executable, "-c", driver, cluster.address, str(file), str(tmp_path / "ray")]
        process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        while server.requests < 30:
            assert process.poll() is None, "the driver ended before it was interrupted"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        assert "KeyboardInterrupt" in said
        assert json.loads((tmp_path / "ray" / "manifest.json").read_text())["state"] == "interrupted"
        RayExecutor(cluster.address, Place(1, 0.5)).run(given, tmp_path / "ray")
        assert server.requests == 120, "nothing that was under way is asked again"


def test_rates_are_those_of_the_account_not_of_the_node(cluster, tmp_path) -> None:
    with OpenAIServer() as server:
        given = config(tmp_path, server, 30, "provider.limits.requests_per_minute=600")
        began = time.monotonic()
        RayExecutor(cluster.address, Place(2, 0.5), shards_in_flight=3).run(given, tmp_path / "ray")
        rate = (server.requests - 1) / (time.monotonic() - began)
    assert rate <= 10.0 * 1.1


def test_what_stops_a_run_comes_back_as_itself(cluster, tmp_path) -> None:
    with OpenAIServer() as server:
        given = config(tmp_path, server, 48, "budget_usd=0.5", "provider.limits.concurrency=2")
        with pytest.raises(BudgetError, match=r"budget_usd=0\.5 is spent"):
            RayExecutor(cluster.address, Place(1, 0.5)).run(given, tmp_path / "ray")
        assert 0.5 <= server.completions * 0.01 <= 0.5 + 2 * 0.04
        described = json.loads((tmp_path / "ray" / "manifest.json").read_text())
        assert described["state"] == "interrupted"
        assert described["spending"]["usd"] == pytest.approx(server.completions * 0.01)


def test_wrong_settings_end_before_any_actor(tmp_path) -> None:
    with OpenAIServer() as server:
        given = config(tmp_path, server)
        with pytest.raises(ConfigError, match="placement names stage 'verfy'"):
            RayExecutor("127.0.0.1:1", placement={"verfy": Place()}).run(given, tmp_path / "ray")
        with pytest.raises(MachineError, match=r"executor\.address"):
            RayExecutor("127.0.0.1:1").run(given, tmp_path / "ray")
        with pytest.raises(ValueError, match="shards_in_flight is 0"):
            RayExecutor(shards_in_flight=0)


def test_keys_stay_at_the_gateway(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://x/v1")
    assert {"OPENAI_API_KEY", "OPENAI_BASE_URL"} <= set(_environment(SECRETS, PLACES))
    assert "OPENAI_API_KEY" not in _environment(PLACES)


def test_a_shard_that_is_begun_anew_is_counted_once() -> None:
    tally = _Tally()
    tally.hear({0: ({"verify": 3}, {"pass": 2}), 1: ({"verify": 1}, {})})
    tally.hear({0: ({"verify": 1}, {"pass": 1})})
    assert tally.sums() == ({"verify": 2}, {"pass": 1})
    tally.land(0, ({"verify": 6}, {"pass": 4}))
    tally.hear({0: ({"verify": 5}, {"pass": 3})})
    assert tally.sums() == ({"verify": 7}, {"pass": 4})


def settled(server: OpenAIServer) -> int:
    """The requests that the server has met when no more come."""
    met = -1
    while met != server.requests:
        met = server.requests
        time.sleep(0.5)
    return met
