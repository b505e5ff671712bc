"""The local server with two clients of other projects: OpenAI's package for Node, and the harness inspect_ai.

Only CI runs these tests, which install both clients from the package registries.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environments import borrowing_environment, pip
from tests.requirements import need
from tests.served import Running, running

HERE = Path(__file__).parent
NODE_CLIENT = "openai@6.49.0"
HARNESS = ("inspect_ai==0.3.285", "openai==3.52.0")


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    need("registries")
    with running("pocket") as server:
        yield server


def installed(words: list[str | Path], folder: Path) -> None:
    """Run the command of a package manager."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_the_client_of_node(served: Running, tmp_path: Path) -> None:
    installed(["npm", "install", "--no-audit", "--no-fund", NODE_CLIENT], tmp_path)
    shutil.copy(HERE / "openai_client.mjs", tmp_path)
    words = ["node", "openai_client.mjs", f"{served.url}/v1"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["streamed"] == found["final"]  # of the same seed, each alone in its batch
    assert len(list(filter(None, found["whole"]))) == 2
    assert found["logprobs"] == found["usage"]["completion_tokens"]
    assert found["calls"][0][0] == "weather"
    assert json.loads(found["calls"][0][1]) == found["json"] == {"city": "Bern"}
    assert found["response"]
    assert found["many"] == 16
    assert found["models"] == ["tiny"]
    assert found["errors"] == [
        ["NotFoundError", 404, "model_not_found"],
        ["BadRequestError", 400, "invalid_request"],
        ["BadRequestError", 400, "invalid_request"],
    ]


@pytest.mark.slow
def test_an_evaluation_harness_with_sixteen_requests_in_flight(served: Running, tmp_path: Path) -> None:
    python = borrowing_environment(tmp_path / "env")
    installed(pip(python, "install", "-q", "--no-compile", *HARNESS), tmp_path)
    shutil.copy(HERE / "arithmetic_task.py", tmp_path)
    words = [python.with_name("inspect"), "eval", "arithmetic_task.py", "--model", "openai-api/local/tiny"]
    words += ["--max-connections", "16", "--log-format", "json", "--log-dir", "logs", "--display", "plain"]
    env = os.environ | {"LOCAL_API_KEY": "none", "LOCAL_BASE_URL": f"{served.url}/v1", "PYTHONPATH": ""}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (json.loads(file.read_text("utf-8")) for file in (tmp_path / "logs").glob("*.json"))
    assert log["status"] == "success"
    assert log["results"]["completed_samples"] == 48
    assert all(sample["output"]["choices"][0]["logprobs"]["content"] for sample in log["samples"])
    lines = [line for line in served.lines() if line["path"] == "/v1/chat/completions"]
    assert {line["status"] for line in lines[-48:]} == {200}
    assert served.provider.unanswered == 0
