"""Programs with tests: Python, JavaScript, Bash, SQL, and the compiled languages of ``tests.benchmarks.compiled``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bestofn.builders.records import CodeTests, Query, Reference
from tests.benchmarks.accuracy.kinds.kind import ROUTED, Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

COMPILED = "code_compiled"


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of programs with tests."""
    tests, text = sql_tests(row) if row.folder.name == "code_sql" else program_tests(row)
    query = Query(
        row.text("id"), "code", ({"role": "user", "content": row.text("prompt")},), reference=Reference(tests=tests)
    )
    groups = (row.text("language"),) if row.folder.name == COMPILED else ()
    return Case(query, answer(text), row.outcome(), groups)


def program_tests(row: LabelledRow) -> tuple[CodeTests, str]:
    """Return the tests and the recorded answer: a chat text, a completion of the prompt, or only the program."""
    language, test = row.text("language"), row.text("test")
    setup, text = str(row.get("setup") or ""), row.get("candidate")
    if text is None:
        text = f"```{language}\n{row.text('program').partition(test.strip())[0]}\n```"
    elif "```" not in text:
        setup = row.text("prompt")
        text = f"```{language}\n{text}\n```"
    entry_point = str(row.get("entry_point") or "")
    kind = "asserts" if language == "python" and not entry_point else "check"
    tests = CodeTests(kind, language, ({"source": test},), entry_point, setup)  # type: ignore[arg-type]
    return tests, text


def sql_tests(row: LabelledRow) -> tuple[CodeTests, str]:
    """Return the tests of an SQL query: it must give the same rows as the reference query on each database."""
    cases = tuple(
        {"setup": database(row, path), "reference": row.text("gold_sql"), "ordered": row["ordered"]}
        for path in row.items("databases")
    )
    return CodeTests("sql", "sql", cases), f"```sql\n{row.text('candidate')}\n```"


def database(row: LabelledRow, path: str) -> str:
    """Return the SQL script of the database at ``path``. Raises ``LabelledDataError`` if the file is missing."""
    try:
        return script(row.folder / path)
    except OSError:
        raise row.error(
            f"needs the database {row.folder / path}, which does not exist; copy the folder dbs of {row.folder.name} too"
        ) from None


@cache
def script(path: Path) -> str:
    """Return the text of a file. It is cached, because many rows use the same database."""
    return path.read_text(encoding="utf-8")


KIND = Kind(
    (
        "code_python",
        "code_javascript",
        "code_bash",
        "code_sql",
        "code_leetcode",
        "code_humanevalpack",
        "code_refactory",
        COMPILED,
    ),
    case,
    optional=frozenset({COMPILED}),
    verifier=ROUTED,
    concurrency=8,
)
