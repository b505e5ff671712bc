"""The files of BFCL are read in their published format."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import SourceError
from bestofn.builders.formats.tool_calls import call
from bestofn.builders.records import Candidate
from bestofn.builders.sources.bfcl import Bfcl
from bestofn.verifiers.tools.verifier import ToolVerifier


def row(number: int, name: str, argument: str, turns: int = 1) -> dict:
    parameters = {"type": "dict", "properties": {argument: {"type": "float"}}, "required": [argument]}
    return {
        "id": f"simple_{number}",
        "question": [[{"role": "user", "content": f"Ask {name}."}]] * turns,
        "function": [{"name": name, "description": "d", "parameters": parameters}],
    }


def files(folder: Path, name: str = "BFCL_v3_simple.json") -> Path:
    rows = [row(0, "area", "side"), row(1, "pressure", "depth"), row(2, "talk", "x", turns=2), row(3, "lost", "y")]
    keys = [
        {"id": "simple_0", "ground_truth": [{"area": {"side": [5]}}]},
        {"id": "simple_1", "ground_truth": [{"pressure": {"depth": [1.5, ""]}}]},
    ]
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
    (folder / "possible_answer").mkdir(exist_ok=True)
    (folder / "possible_answer" / name).write_text("".join(json.dumps(one) + "\n" for one in keys))
    return folder / name


def test_each_tool_keeps_its_own_arguments_and_key(tmp_path: Path) -> None:
    source = Bfcl(str(files(tmp_path)))
    first, second = list(source)
    assert list(first.tools[0]["function"]["parameters"]["properties"]) == ["side"]
    assert second.tools[0]["function"]["parameters"]["properties"] == {"depth": {"type": "number"}}
    assert first.reference.calls == ({"name": "area", "possible": {"side": [5]}},)
    assert source.skipped == {"multi-turn": 1, "no possible answer": 1}
    answers = [call("area", {"side": side}, "c") for side in (5, 6)]
    candidates = [Candidate(0, ({"role": "assistant", "content": "", "tool_calls": [one]},)) for one in answers]
    outcomes = [asyncio.run(ToolVerifier().verify(first, one)).outcome for one in candidates]
    assert outcomes == ["pass", "fail"]


def test_irrelevance_files_expect_no_call(tmp_path: Path) -> None:
    path = files(tmp_path, "BFCL_v3_irrelevance.json")
    config = compose(
        ["dataset=bfcl", f"dataset.path={path}", "dataset.max_queries=1", "provider=scripted", "sandbox=none"]
    )
    (query,) = list(ObjectBuilder().build(config["dataset"], "dataset"))
    assert query.reference.calls == ()


def test_a_missing_or_wrong_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        list(Bfcl(str(tmp_path / "none.json")))
    (tmp_path / "irrelevance.json").write_text('{"id": "a"\n')
    with pytest.raises(SourceError, match="line 1: not JSON"):
        list(Bfcl(str(tmp_path / "irrelevance.json")))
