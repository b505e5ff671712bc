"""A small mock file system. Calls can change it. It exists only in the mock world and never touches a disk."""

from __future__ import annotations

import csv as comma_separated
import fnmatch
import io
import json
import posixpath
import re
from typing import Any

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.world import Table, World, table

MAX_CHARS = 100_000
_START = {
    "/home/user/notes.txt": "Buy milk\nCall Ada about the budget\nRenew the passport before May\n",
    "/home/user/todo.md": "# To do\n\n- [ ] write report\n- [x] send invoice\n",
    "/home/user/report.md": (
        "# Quarterly report\n\nRevenue rose by 12 per cent to 4.2 million.\nCosts fell by 3 per cent.\n"
    ),
    "/home/user/data/sales.csv": (
        "region,product,units,price\nnorth,apples,120,1.5\nsouth,apples,80,1.4\nnorth,pears,45,2.2\nwest,plums,60,3.0\n"
    ),
    "/home/user/data/people.csv": "name,age,city\nAda,36,London\nBjorn,41,Oslo\nCarmen,29,Madrid\n",
    "/home/user/config.json": '{"theme": "dark", "language": "en", "backup": {"enabled": true, "hour": 3}}',
    "/home/user/archive.zip": "[zip] photos/beach.jpg=48211\nphotos/hill.jpg=51007\nreadme.txt=812\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/var/log/app.log": (
        "09:00 INFO started\n09:02 WARNING slow query\n09:05 ERROR connection lost\n09:06 INFO reconnected\n"
    ),
}


@table("files")
def _files(chance: Seeded) -> Table:
    return {path: {"content": content, "modified": "2026-03-10T12:00"} for path, content in _START.items()}


def _path(path: str) -> str:
    """Return an absolute path without ``.`` and ``..``. A relative path is below the user's home folder."""
    path = path.strip()
    if not path or "\0" in path or len(path) > 500:
        raise ToolFailure("invalid", f"{path!r} is not a path")
    if path.startswith("~"):
        path = "/home/user" + path[1:]
    clean = posixpath.normpath(posixpath.join("/home/user", path))
    return "/" + clean.lstrip("/")


def _content(world: World, path: str) -> str:
    where = _path(path)
    record = world["files"].get(where)
    if record is None:
        kind = "is a folder" if _is_folder(world, where) else "does not exist"
        raise ToolFailure("not_found", f"{where} {kind}")
    return record["content"]


def _is_folder(world: World, path: str) -> bool:
    return path == "/" or any(name.startswith(path.rstrip("/") + "/") for name in world["files"])


def _writable(path: str) -> str:
    where = _path(path)
    if not where.startswith(("/home/user/", "/tmp/")):
        raise ToolFailure("denied", f"{where} cannot be changed; only files below /home/user and /tmp can")
    return where


def _put(world: World, where: str, content: str) -> Result:
    if len(content) > MAX_CHARS:
        raise ToolFailure("invalid", f"a file can have at most {MAX_CHARS} characters")
    if _is_folder(world, where):
        raise ToolFailure("conflict", f"{where} is a folder")
    world["files"][where] = {"content": content, "modified": world.now.strftime("%Y-%m-%dT%H:%M")}
    return {"path": where, "bytes": len(content.encode("utf-8", "replace"))}


@tool(
    "fs.list",
    {"path": str, "entries": [{"name": str, "type": str}]},
    {"path": "/home/user"},
    fails=[{"path": "/nowhere"}],
    aliases=["list_files", "ls", "list_directory", "list_dir", "directory_list"],
)
def list_folder(world: World, path: str) -> Result:
    """List the files and folders in a folder."""
    where = _path(path)
    if not _is_folder(world, where):
        raise ToolFailure("not_found", f"there is no folder {where}")
    start = where.rstrip("/") + "/"
    names: dict[str, str] = {}
    for name in world["files"]:
        if name.startswith(start):
            head, *rest = name[len(start) :].split("/")
            names[head] = "folder" if rest else "file"
    return {"path": where, "entries": [{"name": name, "type": names[name]} for name in sorted(names)]}


@tool(
    "fs.read",
    {"path": str, "content": str, "total_lines": int},
    {"path": "/home/user/notes.txt"},
    {"path": "/var/log/app.log", "offset": 1, "limit": 2},
    fails=[{"path": "/home/user/none.txt"}, {"path": "/home/user"}],
    aliases=["read_file", "cat", "open_file", "get_file_contents", "view_file"],
)
def read(world: World, path: str, offset: int = 0, limit: int = 1000) -> Result:
    """Read a text file: at most `limit` lines, after the first `offset` lines are skipped.

    Returns the text and the number of lines in the file.
    """
    lines = _content(world, path).splitlines(keepends=True)
    part = lines[max(offset, 0) : max(offset, 0) + max(limit, 0)]
    return {"path": _path(path), "content": "".join(part), "total_lines": len(lines)}


@tool(
    "fs.write",
    {"path": str, "bytes": int},
    {"path": "/home/user/new.txt", "content": "hello\n"},
    fails=[{"path": "/etc/passwd", "content": "x"}, {"path": "/home/user/data", "content": "x"}],
    aliases=["write_file", "create_file", "save_file", "write_to_file"],
    changes=True,
)
def write(world: World, path: str, content: str) -> Result:
    """Write a text file. If the file exists, its content is replaced."""
    return _put(world, _writable(path), content)


@tool(
    "fs.append",
    {"path": str, "bytes": int},
    {"path": "/home/user/notes.txt", "content": "Water the plants\n"},
    fails=[{"path": "/var/log/app.log", "content": "x"}],
    aliases=["append_file", "append_to_file", "add_to_file"],
    changes=True,
)
def append(world: World, path: str, content: str) -> Result:
    """Append text to the end of a file. If the file does not exist, it is created."""
    where = _writable(path)
    before = world["files"].get(where, {"content": ""})["content"]
    return _put(world, where, before + content)


@tool(
    "fs.move",
    {"src": str, "dst": str},
    {"src": "/home/user/todo.md", "dst": "/home/user/done/todo.md"},
    fails=[
        {"src": "/home/user/none", "dst": "/home/user/x"},
        {"src": "/home/user/todo.md", "dst": "/home/user/notes.txt"},
    ],
    aliases=["move_file", "rename_file", "mv", "rename"],
    changes=True,
)
def move(world: World, src: str, dst: str) -> Result:
    """Move or rename a file. An existing file is never overwritten."""
    source, target = _writable(src), _writable(dst)
    _content(world, source)
    if target in world["files"] or _is_folder(world, target):
        raise ToolFailure("conflict", f"{target} exists")
    world["files"][target] = world["files"].pop(source)
    return {"src": source, "dst": target}


@tool(
    "fs.delete",
    {"deleted": str},
    {"path": "/home/user/report.md"},
    fails=[{"path": "/home/user/none"}, {"path": "/etc/hosts"}],
    aliases=["delete_file", "remove_file", "rm", "unlink"],
    changes=True,
)
def delete(world: World, path: str) -> Result:
    """Delete a file."""
    where = _writable(path)
    _content(world, where)
    del world["files"][where]
    return {"deleted": where}


@tool(
    "fs.search",
    {"matches": [{"path": str, "line?": int, "text?": str}]},
    {"pattern": "*.csv"},
    {"pattern": "ERROR", "path": "/var/log"},
    fails=[{"pattern": ""}],
    aliases=["search_files", "find_files", "grep", "find", "search_in_files"],
)
def search(world: World, pattern: str, path: str = "/") -> Result:
    """Search the files below a folder.

    If the pattern contains * or ?, returns the files whose name matches it. Otherwise, returns the lines that contain
    the pattern.
    """
    if not pattern.strip() or len(pattern) > 200:
        raise ToolFailure("invalid", "pattern is empty or longer than 200 characters")
    start = _path(path).rstrip("/") + "/"
    inside = {name: record for name, record in sorted(world["files"].items()) if (name + "/").startswith(start)}
    if "*" in pattern or "?" in pattern:
        names = [name for name in inside if _fits(pattern, posixpath.basename(name)) or _fits(pattern, name)]
        return {"matches": [{"path": name} for name in names]}
    matches = [
        {"path": name, "line": number, "text": line}
        for name, record in inside.items()
        for number, line in enumerate(record["content"].splitlines(), 1)
        if pattern in line
    ]
    return {"matches": matches[:100]}


def _fits(pattern: str, name: str) -> bool:
    if pattern.count("*") > 4:
        raise ToolFailure("invalid", "a pattern can contain at most four *")
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


@tool(
    "fs.stat",
    {"path": str, "type": str, "bytes": int, "modified": (str, None)},
    {"path": "/home/user/config.json"},
    {"path": "/home/user/data"},
    fails=[{"path": "/nope"}],
    aliases=["file_info", "stat", "get_file_info", "file_size"],
)
def stat(world: World, path: str) -> Result:
    """Get the type, size in bytes and modification time of a file or folder."""
    where = _path(path)
    if where not in world["files"] and _is_folder(world, where):
        return {"path": where, "type": "folder", "bytes": 0, "modified": None}
    size = len(_content(world, where).encode("utf-8", "replace"))
    return {"path": where, "type": "file", "bytes": size, "modified": world["files"][where]["modified"]}


@tool(
    "archive.list",
    {"path": str, "entries": [{"name": str, "bytes": int}]},
    {"path": "/home/user/archive.zip"},
    fails=[{"path": "/home/user/notes.txt"}],
    aliases=["list_archive", "zip_list", "list_zip", "inspect_archive"],
)
def list_archive(world: World, path: str) -> Result:
    """List the files in an archive with their sizes in bytes."""
    content = _content(world, path)
    if not content.startswith("[zip] "):
        raise ToolFailure("invalid", f"{_path(path)} is not an archive")
    pairs = [line.rpartition("=") for line in content.removeprefix("[zip] ").splitlines()]
    return {"path": _path(path), "entries": [{"name": name, "bytes": int(size)} for name, _, size in pairs]}


_WHERE = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|=|<|>)\s*'?\"?([^'\"]*)'?\"?\s*\Z")


@tool(
    "csv.query",
    {"columns": [str], "rows": [[str]]},
    {"path": "/home/user/data/sales.csv", "columns": ["product", "units"], "where": "region = north"},
    {"path": "/home/user/data/sales.csv", "where": "units > 50"},
    fails=[
        {"path": "/home/user/data/sales.csv", "columns": ["colour"]},
        {"path": "/home/user/data/sales.csv", "where": "drop table"},
    ],
    aliases=["query_csv", "read_csv", "filter_csv", "csv_query"],
)
def query_csv(world: World, path: str, columns: list[str] | None = None, where: str = "") -> Result:
    """Query the rows of a CSV file.

    A condition in `where` such as "units > 50" selects rows; `columns` selects columns.
    """
    rows = list(comma_separated.reader(io.StringIO(_content(world, path))))
    if not rows:
        raise ToolFailure("invalid", f"{_path(path)} is empty")
    header, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    unknown = [name for name in columns or () if name not in header]
    if unknown:
        raise ToolFailure("not_found", f"there is no column {unknown[0]!r}; the file has {', '.join(header)}")
    if where.strip():
        match = _WHERE.match(where[:300])
        if not match or match.group(1) not in header:
            raise ToolFailure("invalid", f"{where!r} is not a condition; write it as in 'units > 50'")
        at, operator, value = header.index(match.group(1)), match.group(2), match.group(3).strip()
        body = [row for row in body if _holds(row[at], operator, value)]
    names = columns or header
    return {"columns": names, "rows": [[row[header.index(name)] for name in names] for row in body]}


def _holds(cell: str, operator: str, value: str) -> bool:
    left: Any = cell
    right: Any = value
    try:
        left, right = float(cell), float(value)
    except ValueError:
        left, right = cell.strip().lower(), value.lower()
    return {
        "=": left == right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
        "<=": left <= right,
        ">=": left >= right,
    }[operator]


@tool(
    "json.get",
    {"value": Any},
    {"path": "/home/user/config.json", "pointer": "/backup/hour"},
    fails=[{"path": "/home/user/config.json", "pointer": "/nothing"}, {"path": "/home/user/notes.txt", "pointer": ""}],
    aliases=["read_json", "get_json_value", "json_query", "json_path"],
)
def get_json(world: World, path: str, pointer: str) -> Result:
    """Get the value at a JSON pointer in a JSON file, for example "/a/0/b". The pointer "" is the whole document."""
    try:
        value = json.loads(_content(world, path))
    except (ValueError, RecursionError):
        raise ToolFailure("invalid", f"{_path(path)} does not contain JSON") from None
    for part in pointer.strip().lstrip("/").split("/") if pointer.strip("/ ") else ():
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise ToolFailure("not_found", f"there is nothing at {pointer!r}") from None
    return {"value": value}


@tool(
    "process.list",
    {"processes": [{"pid": int, "name": str, "cpu_percent": float, "memory_mb": int}]},
    {},
    fails=[{"pid": 1}],
    aliases=["list_processes", "ps", "running_processes", "get_processes"],
)
def processes(world: World) -> Result:
    """List the running processes with their CPU and memory use."""
    chance = world.chance("processes")
    names = ("init", "sshd", "postgres", "nginx", "python", "cron")
    return {
        "processes": [
            {
                "pid": 1 if number == 0 else 300 + 17 * number,
                "name": name,
                "cpu_percent": chance.number(0, 25, 1),
                "memory_mb": chance.integer(4, 900),
            }
            for number, name in enumerate(names)
        ]
    }


_ENVIRONMENT = {"HOME": "/home/user", "USER": "user", "LANG": "en_US.UTF-8", "SHELL": "/bin/bash", "TZ": "UTC"}


@tool(
    "env.get",
    {"name": str, "value": str},
    {"name": "HOME"},
    fails=[{"name": "SECRET_KEY"}],
    aliases=["get_env", "getenv", "environment_variable", "get_environment_variable"],
)
def get_env(world: World, name: str) -> Result:
    """Get the value of an environment variable of the mock machine."""
    if name not in _ENVIRONMENT:
        raise ToolFailure("not_found", f"there is no variable {name!r}")
    return {"name": name, "value": _ENVIRONMENT[name]}
