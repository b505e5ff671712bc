"""Tasks that need one SQL query on one small table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from bestofn.builders.pocket.tasks.task import Task
from bestofn.builders.records import CodeTests, Reference


@dataclass(frozen=True)
class Table:
    """A table with a text column, a text column with repeated values, and two integer columns.

    ``label``, ``group`` and ``numbers`` are the names of these columns. ``labels`` and ``groups`` are the values of the
    text columns.
    """

    name: str
    label: str
    group: str
    numbers: tuple[str, str]
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def words(self) -> str:
        """The table and its columns as a question writes them, for example ``people(name, city, age, height)``."""
        return f"{self.name}({self.label}, {self.group}, {', '.join(self.numbers)})"


TABLES = (
    Table("people", "name", "city", ("age", "height"), ("Mia", "Tom", "Ana", "Ben", "Zoe"), ("Oslo", "Rome", "Lima")),
    Table(
        "items", "title", "kind", ("price", "stock"), ("pen", "cup", "lamp", "desk", "book"), ("home", "office", "toy")
    ),
    Table("trips", "code", "country", ("days", "cost"), ("A1", "B2", "C3", "D4", "E5"), ("Peru", "Japan", "Kenya")),
)
COMPARED = {"more than": ">", "less than": "<", "at least": ">=", "at most": "<="}
NEIGHBOUR = {">": ">=", "<": "<=", ">=": ">", "<=": "<"}


def chosen(rng: Random) -> Task:
    """Create a task whose solution selects rows by one number column and sorts them by the other."""
    table, words, k = rng.choice(TABLES), rng.choice(list(COMPARED)), rng.randint(5, 60)
    number, other = rng.sample(table.numbers, 2)
    down = rng.random() < 0.5
    sign = COMPARED[words]

    def source(sign: str, order: str, limit: int = k) -> str:
        return fenced(f"SELECT {table.label} FROM {table.name} WHERE {number} {sign} {limit} ORDER BY {order};")

    order, turned = (f"{other} DESC", other) if down else (other, f"{other} DESC")
    question = (
        f"Table {table.words}. Write a SQL query for the {table.label} of all {table.name} with {number} {words} {k}, "
        f"by {other}{' from high to low' if down else ''}."
    )
    slips = (
        source(NEIGHBOUR[sign], order),
        source(sign, turned),
        source(sign, number if not down else f"{number} DESC"),
    )
    answer = source(sign, order)
    tests = partial(_tests, table, answer, k, ordered=True)
    return Task("code.sql_chosen", (table.name, number, sign, k, order), question, answer, slips, tests, 0.5)


def counted(rng: Random) -> Task:
    """Create a task whose solution computes one aggregate over the rows that match a condition."""
    table, words, k = rng.choice(TABLES), rng.choice(list(COMPARED)), rng.randint(5, 60)
    number, other = rng.sample(table.numbers, 2)
    sign = COMPARED[words]
    asked, figure, wrong = rng.choice(
        (
            (f"the number of {table.name}", "COUNT(*)", f"SUM({number})"),
            (f"the sum of {other} of all {table.name}", f"SUM({other})", f"SUM({number})"),
            (f"the largest {other} of all {table.name}", f"MAX({other})", f"MIN({other})"),
            (f"the smallest {other} of all {table.name}", f"MIN({other})", f"MAX({other})"),
        )
    )

    def source(figure: str, sign: str, limit: int = k) -> str:
        return fenced(f"SELECT {figure} FROM {table.name} WHERE {number} {sign} {limit};")

    question = f"Table {table.words}. Write a SQL query for {asked} with {number} {words} {k}."
    answer = source(figure, sign)
    slips = (source(wrong, sign), source(figure, {">": "<", "<": ">", ">=": "<=", "<=": ">="}[sign]))
    tests = partial(_tests, table, answer, k, ordered=False)
    return Task("code.sql_counted", (table.name, figure, number, sign, k), question, answer, slips, tests, 0.5)


def _tests(table: Table, answer: str, k: int, *, ordered: bool) -> Reference:
    """Return tests on one table. Its numbers include ``k`` − 1, ``k`` and ``k`` + 1, so that ``<`` and ``<=`` differ.

    No number is repeated within a column, so sorting has no ties.
    """
    rng = Random(f"{table.name} {k}")
    firsts, seconds = ([k - 1, k, k + 1, *rng.sample([n for n in range(90) if abs(n - k) > 1], 9)] for _ in range(2))
    rng.shuffle(firsts)
    rng.shuffle(seconds)
    rows = [
        (f"{rng.choice(table.labels)} {row}", rng.choice(table.groups), *pair)
        for row, pair in enumerate(zip(firsts, seconds, strict=True))
    ]
    columns = f"{table.label} TEXT, {table.group} TEXT, {table.numbers[0]} INTEGER, {table.numbers[1]} INTEGER"
    values = ",\n".join(f"('{name}', '{group}', {first}, {second})" for name, group, first, second in rows)
    setup = f"CREATE TABLE {table.name} ({columns});\nINSERT INTO {table.name} VALUES\n{values};"
    with sqlite3.connect(":memory:") as database:
        database.executescript(setup)
        expected = [list(row) for row in database.execute(unfenced(answer))]
    case = {"setup": setup, "expected": expected, "ordered": ordered}
    return Reference(tests=CodeTests("sql", "sql", (case,)))


def fenced(source: str) -> str:
    """Put ``source`` into a Markdown code block."""
    return f"```sql\n{source}\n```"


def unfenced(answer: str) -> str:
    """Return the source in the Markdown code block of ``answer``."""
    return answer.removeprefix("```sql\n").removesuffix("\n```")


SQL: dict[str, Callable[[Random], Task]] = {"code.sql_chosen": chosen, "code.sql_counted": counted}
