"""A small mock database and a key-value store. Calls can change both.

``db.query`` runs the model's SQL in an SQLite database in memory, which contains copies of the tables. Such a query can
only read, and cannot access files or load extensions. Its number of steps and the size of its values are limited. Only
functions that use neither random numbers nor the clock are allowed.
"""

from __future__ import annotations

import math
import sqlite3
from typing import Any

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.people import people
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.world import Record, Table, World, table

STEPS = 2_000_000  # maximum steps of SQLite's virtual machine per query
MAX_ROWS = 200
_COLUMNS = {
    "customers": {"id": "INTEGER", "name": "TEXT", "email": "TEXT", "city": "TEXT"},
    "products": {"id": "INTEGER", "name": "TEXT", "category": "TEXT", "price": "REAL", "stock": "INTEGER"},
    "sales": {"id": "INTEGER", "customer_id": "INTEGER", "product_id": "INTEGER", "quantity": "INTEGER", "day": "TEXT"},
}
_FUNCTIONS = frozenset((
    "abs", "avg", "ceil", "char", "coalesce", "count", "first_value", "floor", "group_concat", "glob", "iif", "ifnull",
    "instr", "lag", "last_value", "lead", "length", "like", "lower", "ltrim", "max", "min", "mod", "nullif", "power",
    "rank", "dense_rank", "replace", "round", "row_number", "rtrim", "sign", "sqrt", "substr", "substring", "sum",
    "total", "trim", "typeof", "unicode", "upper", "string_agg", "ntile", "hex",
))  # fmt: skip


@table("db")
def _database(chance: Seeded) -> Table:
    rows: Table = {}
    for number, someone in enumerate(people(chance, 6), 1):
        city = chance.choice(["Oslo", "London", "Madrid", "Berlin"])
        rows[f"customers:{number}"] = {"id": number, "name": someone.name, "email": someone.email, "city": city}
    goods = [("Desk lamp", "home", 39.0), ("Notebook", "office", 4.5), ("Backpack", "travel", 59.9),
             ("Headphones", "electronics", 89.0), ("Kettle", "home", 34.5)]  # fmt: skip
    for number, (name, category, price) in enumerate(goods, 1):
        stock = chance.integer(0, 40)
        rows[f"products:{number}"] = {"id": number, "name": name, "category": category, "price": price, "stock": stock}
    for number in range(1, 13):
        rows[f"sales:{number}"] = {
            "id": number,
            "customer_id": chance.integer(1, 6),
            "product_id": chance.integer(1, 5),
            "quantity": chance.integer(1, 4),
            "day": f"2026-03-{chance.integer(1, 15):02d}",
        }
    return rows


@table("kv")
def _kv(chance: Seeded) -> Table:
    return {"greeting": {"value": "hello", "ttl": None}, "counter": {"value": "41", "ttl": None}}


def _columns(name: str) -> dict[str, str]:
    if name not in _COLUMNS:
        raise ToolFailure("not_found", f"there is no table {name!r}; expected one of {', '.join(_COLUMNS)}")
    return _COLUMNS[name]


def _rows(world: World, name: str) -> Table:
    return {key: row for key, row in world["db"].items() if key.startswith(f"{name}:")}


def _typed(name: str, values: Record) -> None:
    """Raise ``ToolFailure`` if ``values`` contains an unknown column or a value of the wrong type."""
    columns = _columns(name)
    kinds = {"INTEGER": int, "REAL": (int, float), "TEXT": str}
    for column, value in values.items():
        if column not in columns:
            raise ToolFailure("invalid", f"{name} has no column {column!r}; it has {', '.join(columns)}")
        if value is not None and (not isinstance(value, kinds[columns[column]]) or isinstance(value, bool)):
            raise ToolFailure("invalid", f"{name}.{column} is {columns[column]}; found {value!r}")


def _chosen(world: World, name: str, where: Record) -> Table:
    _typed(name, where)
    fitting = _rows(world, name).items()
    return {key: row for key, row in fitting if all(row[column] == value for column, value in where.items())}


@tool(
    "db.list_tables",
    {"tables": [{"name": str, "rows": int}]},
    {},
    fails=[{"database": "x"}],
    aliases=["list_tables", "show_tables", "get_tables", "sql_db_list_tables"],
)
def list_tables(world: World) -> Result:
    """List the tables of the database with their numbers of rows."""
    return {"tables": [{"name": name, "rows": len(_rows(world, name))} for name in _COLUMNS]}


@tool(
    "db.schema",
    {"table": str, "columns": [{"name": str, "type": str}]},
    {"table": "products"},
    fails=[{"table": "secrets"}],
    aliases=["get_schema", "describe_table", "table_schema", "sql_db_schema", "get_table_schema"],
)
def schema(world: World, table: str) -> Result:
    """List the columns of a table with their types."""
    return {"table": table, "columns": [{"name": name, "type": kind} for name, kind in _columns(table).items()]}


@tool(
    "db.query",
    {"columns": [str], "rows": [[(str, float, None)]], "truncated": bool},
    {"sql": "SELECT category, count(*) FROM products GROUP BY category ORDER BY category"},
    {"sql": "SELECT name FROM customers WHERE id <= 2 ORDER BY id"},
    fails=[
        {"sql": "DELETE FROM products"},
        {"sql": "SELECT * FROM nowhere"},
        {"sql": "ATTACH DATABASE '/etc/passwd' AS x"},
        {"sql": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c"},
        {"sql": "SELECT length(zeroblob(900000000))"},
    ],
    aliases=[
        "run_sql",
        "sql_query",
        "query_database",
        "execute_sql",
        "execute_query",
        "database_query",
        "sql_db_query",
    ],
)
def query(world: World, sql: str) -> Result:
    """Run a read-only SQL query (SQLite) on the tables customers, products and sales. Returns at most 200 rows."""
    connection = _loaded(world)
    try:
        connection.set_authorizer(_reading_only)
        steps = iter(range(STEPS // 1000))
        connection.set_progress_handler(lambda: next(steps, None) is None, 1000)
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise ToolFailure("denied", "db.query only reads; to change rows, use db.insert, db.update or db.delete")
        rows = cursor.fetchmany(MAX_ROWS + 1)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        reason = "the query takes too long" if "interrupted" in str(error) else str(error)[:200]
        raise ToolFailure("invalid", reason) from None
    finally:
        connection.close()
    return {
        "columns": [column[0] for column in cursor.description],
        "rows": [[_plain(value) for value in row] for row in rows[:MAX_ROWS]],
        "truncated": len(rows) > MAX_ROWS,
    }


def _loaded(world: World) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 20_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100)
    connection.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20)
    for name, columns in _COLUMNS.items():
        stated = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {name} ({stated})")
        marks = ", ".join("?" * len(columns))
        rows = [[row[column] for column in columns] for row in _rows(world, name).values()]
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    return connection


def _reading_only(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@tool(
    "db.insert",
    {"table": str, "row": dict},
    {"table": "products", "row": {"name": "Mug", "category": "home", "price": 9.5, "stock": 12}},
    fails=[{"table": "products", "row": {"colour": "red"}}, {"table": "nowhere", "row": {}}],
    aliases=["insert_row", "insert_record", "add_row", "create_record", "db_insert"],
    changes=True,
)
def insert(world: World, table: str, row: dict) -> Result:
    """Insert a row into a table. Returns the complete row.

    The database assigns an id if none is given. Columns that are left out are null.
    """
    _typed(table, row)
    number = max(existing["id"] for existing in _rows(world, table).values()) + 1 if _rows(world, table) else 1
    if row.get("id", number) != number and f"{table}:{row['id']}" in world["db"]:
        raise ToolFailure("conflict", f"{table} already has a row with id {row['id']}")
    number = row.get("id") or number
    full = {column: row.get(column) for column in _columns(table)} | {"id": number}
    world["db"][f"{table}:{number}"] = full
    return {"table": table, "row": full}


@tool(
    "db.update",
    {"table": str, "updated": int},
    {"table": "products", "where": {"id": 2}, "values": {"price": 5.0}},
    fails=[
        {"table": "products", "where": {"id": 2}, "values": {"id": 3}},
        {"table": "products", "where": {}, "values": {"price": 1.0}},
    ],
    aliases=["update_row", "update_record", "modify_record", "db_update"],
    changes=True,
)
def update(world: World, table: str, where: dict, values: dict) -> Result:
    """Update the rows in which all columns have the values given in `where`. Returns the number of updated rows.

    `values` contains the new values by column. `where` must not be empty, and an id cannot be changed.
    """
    if not where or "id" in values:
        raise ToolFailure("denied", "where must contain at least one column, and values must not contain id")
    _typed(table, values)
    chosen = _chosen(world, table, where)
    for row in chosen.values():
        row |= values
    return {"table": table, "updated": len(chosen)}


@tool(
    "db.delete",
    {"table": str, "deleted": int},
    {"table": "sales", "where": {"id": 3}},
    fails=[{"table": "sales", "where": {}}],
    aliases=["delete_row", "delete_record", "remove_record", "db_delete"],
    changes=True,
)
def delete(world: World, table: str, where: dict) -> Result:
    """Delete the rows in which all columns have the values given in `where`. Returns the number of deleted rows.

    `where` must not be empty.
    """
    if not where:
        raise ToolFailure(
            "denied", "where is empty; expected at least one column, because db.delete never deletes all rows at once"
        )
    chosen = _chosen(world, table, where)
    for key in chosen:
        del world["db"][key]
    return {"table": table, "deleted": len(chosen)}


@tool(
    "db.count",
    {"table": str, "count": int},
    {"table": "customers"},
    {"table": "products", "where": {"category": "home"}},
    fails=[{"table": "products", "where": {"colour": "red"}}],
    aliases=["count_rows", "count_records", "row_count"],
)
def count(world: World, table: str, where: dict | None = None) -> Result:
    """Count the rows of a table in which all columns have the values given in `where`.

    Without `where`, all rows are counted.
    """
    _columns(table)
    return {"table": table, "count": len(_chosen(world, table, where or {}))}


@tool(
    "kv.get",
    {"key": str, "value": str},
    {"key": "greeting"},
    fails=[{"key": "nothing"}],
    aliases=["get_value", "cache_get", "redis_get", "get_key"],
)
def kv_get(world: World, key: str) -> Result:
    """Get the value of a key in the key-value store."""
    if key not in world["kv"]:
        raise ToolFailure("not_found", f"there is no key {key!r}")
    return {"key": key, "value": world["kv"][key]["value"]}


@tool(
    "kv.set",
    {"key": str, "value": str, "ttl": (int, None)},
    {"key": "greeting", "value": "hi"},
    {"key": "session", "value": "abc", "ttl": 60},
    fails=[{"key": "", "value": "x"}, {"key": "k", "value": "x", "ttl": 0}],
    aliases=["set_value", "cache_set", "redis_set", "set_key", "put_value"],
    changes=True,
)
def kv_set(world: World, key: str, value: str, ttl: int | None = None) -> Result:
    """Set the value of a key in the key-value store.

    The time to live (ttl) is in seconds. It is stored, but the key never expires.
    """
    if not key or len(key) > 200 or len(value) > 100_000 or (ttl is not None and ttl < 1):
        raise ToolFailure(
            "invalid",
            "key must have 1 to 200 characters, value at most 100000 characters, and ttl must be at least 1 second",
        )
    world["kv"][key] = {"value": value, "ttl": ttl}
    return {"key": key, "value": value, "ttl": ttl}
