"""If a prompt is "-", its question and tests are read from tables in the formats of the four original datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict

from bestofn.builders.config.composition import compose
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.errors import SourceError
from bestofn.builders.records import Query
from bestofn.builders.sources.mapped import Mapped
from bestofn.builders.sources.nemotron import Nemotron
from bestofn.builders.sources.origins import Origins, Problem, codeforces_question, codeforces_tests

IO = {"inputs": ["1\n", "2\n"], "outputs": ["1\n", "4\n"]}
EMPTY = {"question": "unused", "starter_code": "", "input_output": ""}
TACO = [EMPTY, {"question": "Print the square.", "starter_code": "", "input_output": json.dumps(IO)}]
APPS = [
    {
        "question": "Double it.",
        "starter_code": "def double(x):",
        "input_output": json.dumps({"fn_name": "double", "inputs": [[2], [5]], "outputs": [[4], [10]]}),
    }
]
CONTESTS = [
    {
        "name": "a",
        "description": "Print the sum.",
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": ["2 2\n"], "output": ["4\n"]},
        "generated_tests": {"input": ["5 6\n"], "output": ["11\n"]},
    }
]
FORCES = [
    {
        "description": "Given a word, print it backwards.",
        "input_format": "One word.",
        "output_format": "The word backwards.",
        "examples": [{"input": "abc\n", "output": "cba\n"}],
        "note": "A word has no blanks.",
        "interaction_format": None,
        "official_tests": [{"input": "abc\n", "output": "cba\n"}, {"input": "xy\n", "output": "yx\n"}],
        "generated_checker": None,
    }
]


def tables(folder: Path) -> dict[str, str]:
    """Write the four tables, each in a different layout, and return their paths by name."""
    DatasetDict({"train": Dataset.from_list(TACO)}).save_to_disk(str(folder / "taco"))
    (folder / "apps").mkdir()
    Dataset.from_list(APPS).to_parquet(folder / "apps" / "test-00000-of-00001.parquet")
    (folder / "contests" / "valid").mkdir(parents=True)
    (folder / "contests" / "valid" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CONTESTS))
    (folder / "forces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in FORCES))
    return {
        "taco": str(folder / "taco"),
        "apps": str(folder / "apps"),
        "code_contests": str(folder / "contests"),
        "open-r1/codeforces": str(folder / "forces.jsonl"),
    }


POINTERS: list[tuple[str, str, Any]] = [
    ("taco", "train", 1),
    ("apps", "test", "0"),
    ("code_contests", "valid", 0),
    ("open-r1/codeforces", "train", 0),
]


def rows(*pointers: tuple[str, str, Any]) -> list[dict[str, Any]]:
    talk = [{"role": "user", "content": "-"}, {"role": "assistant", "content": "…"}]
    return [
        {
            "uuid": f"u{number}",
            "messages": talk,
            "metadata": json.dumps({"dataset": name, "split": split, "index": index}),
        }
        for number, (name, split, index) in enumerate(pointers)
    ]


def nemotron(folder: Path, found: list[dict[str, Any]], **settings: Any) -> Nemotron:
    (folder / "v1" / "code").mkdir(parents=True)
    (folder / "v1" / "code" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    return Nemotron(splits=["code"], paths={"1": str(folder / "v1")}, **settings)


def test_the_four_origins_give_questions_and_tests(tmp_path: Path) -> None:
    source = nemotron(tmp_path, rows(*POINTERS), origins=Origins(paths=tables(tmp_path)))
    assert source.routes == {"code": 1}
    taco, apps, contests, forces = list(source)
    assert [query.id for query in (taco, apps, contests, forces)] == ["u0", "u1", "u2", "u3"]
    assert taco.text == "Print the square."
    assert apps.text == "Double it.\n\ndef double(x):"
    assert contests.text == "Print the sum."
    assert forces.text == (
        "Given a word, print it backwards.\n\nInput\n\nOne word.\n\nOutput\n\nThe word backwards.\n\n"
        "Examples\n\nInput:\nabc\n\nOutput:\ncba\n\nNote\n\nA word has no blanks."
    )

    def shape(query: Query) -> tuple[Any, ...]:
        tests = query.reference.tests
        assert tests
        return tests.kind, len(tests.cases), tests.entry_point, query.reference.source, query.split

    assert [shape(query) for query in (taco, apps, contests, forces)] == [
        ("stdin", 2, "", "gold", "code"),
        ("function", 2, "double", "gold", "code"),
        ("stdin", 3, "", "gold", "code"),
        ("stdin", 2, "", "gold", "code"),
    ]
    assert source.skipped == {}


def test_rows_without_an_origin_are_dropped_and_counted(tmp_path: Path) -> None:
    lost = [("taco", "train", 9), ("taco", "train", -1), ("elsewhere", "train", 0), ("taco", "train", "first")]
    found = [*rows(POINTERS[0], *lost), {**rows(POINTERS[0])[0], "uuid": "x", "metadata": "{}"}]
    source = nemotron(tmp_path, found, origins=Origins(paths=tables(tmp_path), only=["taco"]))
    assert [query.id for query in source] == ["u0"]
    assert source.skipped == {
        "origin taco has no such row": 2,
        "origin 'elsewhere' is not known": 1,
        "origin taco: the index is not a number": 1,
        "question is '-' and names no origin": 1,
    }


def test_without_origins_a_dash_is_left_out(tmp_path: Path) -> None:
    source = nemotron(tmp_path, rows(*POINTERS), version=1)
    assert list(source) == []
    assert source.skipped == {"question is '-'": 4}


def test_a_row_without_an_origin_column_points_itself(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"id": "r", "question": "-", "dataset": "taco", "split": "train", "index": "1"}) + "\n"
    )
    config = compose(
        [
            "dataset=open_code_reasoning",
            f"dataset.path={tmp_path / 'rows.jsonl'}",
            f"+dataset.origins.paths.taco={tables(tmp_path)['taco']}",
            "provider=scripted",
            "sandbox=none",
        ]
    )
    (query,) = list(ObjectBuilder().build(config["dataset"], "dataset"))
    assert (query.id, query.text) == ("r", "Print the square.")
    assert query.reference.tests
    assert query.reference.tests.cases[1] == {"stdin": "2\n", "stdout": "4\n"}


def test_a_table_that_cannot_be_opened_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file or folder"):
        Origins(paths={"taco": str(tmp_path / "nowhere")}).problem({"dataset": "taco", "split": "train", "index": 0})
    with pytest.raises(SourceError, match="it holds no files of split 'train'"):
        Origins(paths={"apps": tables(tmp_path)["apps"]}).problem({"dataset": "apps", "split": "train", "index": 0})
    with pytest.raises(SourceError, match="expected one of taco, apps"):
        Origins(paths={"tacos": "x"})


def test_a_problem_with_several_right_outputs_has_no_tests(tmp_path: Path) -> None:
    base = FORCES[0]
    assert codeforces_tests({**base, "generated_checker": "import sys"}) == []
    assert codeforces_tests({**base, "interaction_format": "Ask."}) == []
    cut = {"input": "1 2 3...", "output": "6\n"}
    assert cut not in codeforces_tests({**base, "official_tests": [cut]})
    (tmp_path / "forces.jsonl").write_text(json.dumps({**base, "generated_checker": "import sys"}) + "\n")
    origins = Origins(paths={"open-r1/codeforces": str(tmp_path / "forces.jsonl")})
    found = origins.problem({"dataset": "open-r1/codeforces", "split": "train", "index": 0})
    assert isinstance(found, Problem)
    assert found.tests is None
    assert codeforces_question({"description": " ", "note": "n"}) == ""
    assert codeforces_question({"description": "d", "examples": None}) == "d"


def test_a_question_that_is_there_is_left_alone(tmp_path: Path) -> None:
    row = {"question": "Mine.", "dataset": "taco", "split": "train", "index": 1}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    (query,) = list(Mapped(str(tmp_path / "rows.jsonl"), origins=Origins(paths={"taco": "never-opened"})))
    assert query.text == "Mine."
    assert query.reference.tests is None


def test_a_problem_that_reads_a_file_has_no_tests_of_standard_input(tmp_path: Path) -> None:
    """A problem whose programs read a file gets no tests, because its right programs ignore standard input."""
    assert codeforces_tests({**FORCES[0], "input_mode": "file"}) == []
    assert codeforces_tests({**FORCES[0], "input_mode": "stdio"}) == codeforces_tests(FORCES[0]) != []
    found = [CONTESTS[0] | {"input_file": name, "output_file": name} for name in ("", "b.txt")]
    (tmp_path / "contests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    origins = Origins(paths={"code_contests": str(tmp_path / "contests.jsonl")})
    pointer = {"dataset": "code_contests", "split": "train"}
    plain, filed = (origins.problem({**pointer, "index": index}) for index in (0, 1))
    assert isinstance(plain, Problem)
    assert isinstance(filed, Problem)
    assert plain.tests
    assert filed.tests is None


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_rows_are_counted_over_the_files_of_a_split_in_their_order(tmp_path: Path, kind: str) -> None:
    """Rows are numbered over the files of a split in numeric order, so that file 2 comes before file 10."""
    for number in range(12):
        row = {"question": f"Question {number}", "starter_code": "", "input_output": json.dumps(IO)}
        if kind == "jsonl":
            (tmp_path / f"train-{number}.jsonl").write_text(json.dumps(row) + "\n")
        else:
            Dataset.from_list([row]).to_parquet(tmp_path / f"train-{number}.parquet")
    origins = Origins(paths={"taco": str(tmp_path)})
    found = [origins.problem({"dataset": "taco", "split": "train", "index": index}) for index in range(12)]
    assert [one.question for one in found if isinstance(one, Problem)] == [f"Question {n}" for n in range(12)]
