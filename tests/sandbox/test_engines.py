"""Another package can add a database engine without a change to bestofn. It needs one file and an entry point."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Candidate, Verdict
from bestofn.builders.sources.mapped import Mapped
from bestofn.sandbox.engines import Engine, engine_names, engine_of, register_engine
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.verifiers.code_verifier import CodeVerifier
from tests.requirements import need

CASE = {"setup": "CREATE TABLE t(a text); INSERT INTO t VALUES ('x'), ('y')", "reference": "SELECT shout(a) FROM t"}
ROW = {"question": "Shout.", "tests": {"kind": "sql", "language": "shouting", "cases": [CASE]}}


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an installed package whose entry point adds the engine ``shouting``."""
    installed = tmp_path / "site"
    (installed / "shouting-1.dist-info").mkdir(parents=True)
    (installed / "shouting-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1\n")
    (installed / "shouting-1.dist-info" / "entry_points.txt").write_text(
        "[bestofn.engines]\nshouting = shouting:ENGINE\n"
    )
    file = Path(__file__).parent / "shouting_engine.py"
    lines = ["from pathlib import Path", "from bestofn.sandbox.engines import Engine"]
    (installed / "shouting.py").write_text("\n".join([*lines, f"ENGINE = Engine(Path({str(file)!r}), 'shouting')", ""]))
    monkeypatch.syspath_prepend(str(installed))
    return tmp_path


def test_rows_of_a_table_are_verified_in_the_engine_of_a_plug_in(plug_in: Path) -> None:
    need("local")
    (plug_in / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (query,) = Mapped(str(plug_in / "rows.jsonl"), format="jsonl")

    async def verdicts() -> list[Verdict]:
        async with LocalSandbox(workers=1) as sandbox:
            verifier = CodeVerifier(sandbox)
            answers = ("SELECT upper(a) || '!' FROM t", "SELECT shout(a) FROM t WHERE a = 'x'", "SELECT shout() FROM t")
            texts = [f"```{tag}\n{sql}\n```" for tag, sql in zip(("shouting", "sql", ""), answers, strict=True)]
            messages = [({"role": "assistant", "content": text},) for text in texts]
            return [await verifier.verify(query, Candidate(0, one)) for one in messages]

    found = asyncio.run(verdicts())
    assert [one.outcome for one in found] == ["pass", "fail", "fail"], found


def test_the_language_of_a_setting_may_be_an_engine(plug_in: Path) -> None:
    assert {"duckdb", "shouting"} <= set(engine_names())
    Mapped("x", tests={"language": "shouting"})
    with pytest.raises(ConfigError, match="did you mean 'shouting'"):
        Mapped("x", tests={"language": "shoutin"})


def test_a_name_belongs_to_one_engine(tmp_path: Path) -> None:
    duckdb = engine_of("duckdb")
    assert duckdb is not None
    register_engine("duckdb", duckdb)
    with pytest.raises(ConfigError, match="already is a database engine 'duckdb'"):
        register_engine("duckdb", Engine(tmp_path / "other.py", "other"))
