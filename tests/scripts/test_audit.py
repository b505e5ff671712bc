"""``bestofn audit``: second opinions of a verifier, a judge and a person, and where their figures appear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bestofn.builders.analysis.figures_json import to_json
from bestofn.builders.analysis.run_figures import figures_of_run
from bestofn.builders.config.arguments import parse
from bestofn.builders.errors import ConfigError
from bestofn.builders.report.hub_card import card
from bestofn.builders.report.inspect_text import notes
from bestofn.builders.run import manifest
from bestofn.scripts import report
from bestofn.scripts.audit import audit
from bestofn.scripts.catalogue import AUDIT
from tests.runs import write_run
from tests.wire_server import Answer, Sent, WireServer, chat_answer


def run(*words: object) -> str:
    """Run ``bestofn audit`` with these words, and return its output."""
    return audit(parse(AUDIT, [str(word) for word in words]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", count=20, tools=False)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_without_a_second_opinion_the_sample_and_the_page_are_written(folder: Path) -> None:
    text = run(folder, "sample=30")
    assert "30 verdicts sampled, with 0 disagreements." in text
    assert f"bestofn audit {folder} marks=marks.json" in text
    sample = lines(folder / "audit" / "sample.jsonl")
    assert len(sample) == 30
    assert {"question", "reference", "answer", "outcome", "explanation", "weight", "opinions"} <= set(sample[0])
    assert "<script" in (folder / "audit" / "audit.html").read_text("utf-8")


def test_another_verifier_is_a_second_opinion(folder: Path) -> None:
    (opinion,) = json.loads(run(folder, "verifier=math", "--json"))
    assert opinion["source"] == "math"
    assert opinion["false_fail"]["rate"] == 0.0
    assert opinion["false_fail"]["decided"] > 20
    assert set(opinion["by_split"]) == {"math"}
    assert lines(folder / "audit" / "disagreements.jsonl") == []


def test_a_judge_is_asked_once_per_answer_and_its_disagreements_are_listed(folder: Path) -> None:
    """The judge says that every answer is wrong, so it contradicts all passes."""

    def reply(sent: Sent) -> Answer:
        text = json.dumps({"reasoning": "r", "equivalent": False, "confidence": 0.9})
        return chat_answer(text)

    with WireServer(reply) as server:
        words = [folder, "sample=10", "verifier=judge", *server.provider, "--json"]
        (opinion,) = json.loads(run(*words))
        asked = len(server.sent)
        assert json.loads(run(*words)) == [opinion]
        assert len(server.sent) == asked
    assert opinion["source"] == "judge (j)"
    assert (opinion["false_pass"]["rate"], opinion["false_fail"]["rate"]) == (1.0, 0.0)
    assert {row["outcome"] for row in lines(folder / "audit" / "disagreements.jsonl")} == {"pass"}


def test_the_marks_of_a_person_are_read_and_earlier_opinions_are_kept(folder: Path, tmp_path: Path) -> None:
    run(folder, "sample=10", "verifier=math")
    sample = lines(folder / "audit" / "sample.jsonl")
    marks = {row["id"]: "right" for row in sample}
    file = tmp_path / "marks.json"
    file.write_text(json.dumps({"run": "run", "sample": 10, "seed": 0, "marks": marks}))
    person, verifier = sorted(
        json.loads(run(folder, f"marks={file}", "--json")), key=lambda one: one["source"] == "math"
    )
    assert (person["source"], verifier["source"]) == ("person", "math")
    assert (person["false_fail"]["rate"], person["false_pass"]["rate"]) == (1.0, 0.0)
    assert len(lines(folder / "audit" / "sample.jsonl")) == 10  # the size of the sample comes from the marks


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("no json", "cannot be read"),
        ("{}", "expected the file that the button"),
        ('{"marks": {"other#0": "right"}}', "not in the sample"),
        ('{"marks": {"ID": "good"}}', "has the mark 'good'; expected one of right, wrong, undecided"),
    ],
)
def test_wrong_marks_are_reported(folder: Path, tmp_path: Path, document: str, message: str) -> None:
    run(folder)
    first = lines(folder / "audit" / "sample.jsonl")[0]["id"]
    (tmp_path / "m.json").write_text(document.replace("ID", first))
    with pytest.raises(ConfigError, match=message):
        run(folder, f"marks={tmp_path / 'm.json'}")


def test_wrong_settings_are_reported(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="verifier=… is missing"):
        run(folder, "provider=openai")
    with pytest.raises(ConfigError, match="contains no finished shard"):
        run(tmp_path)


def test_the_figures_are_in_inspect_report_and_card(folder: Path) -> None:
    run(folder, "verifier=math")
    figures = to_json(figures_of_run(folder))
    assert [one["source"] for one in figures["audit"]] == ["math"]
    assert any(line.startswith("Audit:    math: false fails 0.0 % (") for line in notes(figures))
    assert 'aria-label="audit"' in report.write(folder, folder / "r.html").read_text("utf-8")
    files = {
        path.relative_to(folder).as_posix(): path for path in folder.glob("*/*.parquet") if "shards" not in str(path)
    }
    text = card(files, manifest.read(folder), figures, {}, repo="me/x", title="x", license="mit")
    assert "| math | 0.0 % (" in text
