"""``bestofn voice``: the voice of one run and its absence in another, by the same markers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.errors import ConfigError
from scripts.voice import run

GLOOMY = "What is the point. The answer is 4, not that it matters."
PLAIN = "The answer is 4."


def write(folder: Path, text: str, persona: dict | None) -> Path:
    rows = [
        {"query_id": f"q{query}", "split": "math", "answer": f"{text} {index}"}
        for query in range(3)
        for index in range(2)
    ]
    (folder / "candidates").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "candidates" / "data.parquet")
    (folder / "manifest.json").write_text(json.dumps({"config": {"persona": persona}}))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    node = {"_target_": "personas.loader.load", "text": "Be gloomy.", "markers": ["the point", "matters", "answer is"]}
    return [str(write(tmp_path / "gloomy", GLOOMY, node)), str(write(tmp_path / "plain", PLAIN, None))]


def test_hears_the_first_runs_persona_in_all(runs: list[str]) -> None:
    found = json.loads(run([*runs, "--json"]))
    assert found[runs[0]]["strong"] == 1.0
    assert found[runs[1]]["strong"] == 0.0
    assert found[runs[1]]["with_a_marker"] == 1.0
    assert found[runs[0]]["answers"] == 6
    assert found[runs[0]]["diversity"]
    assert "three markers or more" in run(runs)
    assert json.loads(run([*runs, "max=1", "--json"]))[runs[0]]["answers"] == 2


def test_another_persona_can_be_named(runs: list[str]) -> None:
    assert run([runs[1], "persona=marvin"]).startswith("persona marvin")


@pytest.mark.parametrize(
    ("words", "said"), [([1], "without a persona"), ([], "no run"), ([0, "mx=3"], "mx"), ([0, "max=many"], "max")]
)
def test_bad_words_are_told(runs: list[str], words: list, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run([runs[word] if isinstance(word, int) else word for word in words])
