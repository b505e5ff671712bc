"""Mock tools for programs, repositories, packages and network registries. Programs run only in the sandbox."""

from __future__ import annotations

import ast
import http
import json
from datetime import timedelta
from typing import Literal

from bestofn.builders.formats.linear_regex import PatternError, find_all
from bestofn.builders.records import Limits, Program
from bestofn.sandbox.tools.mock_tool import Result, ToolBroken, ToolFailure, tool
from bestofn.sandbox.tools.people import people
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.when import format_time
from bestofn.sandbox.tools.world import Record, Table, World, table

ISSUE = {"issue_id": str, "repo": str, "title": str, "body": str, "state": str}
_REPOS = ("acme/website", "acme/api", "acme/docs")


@table("issues")
def _issues(chance: Seeded) -> Table:
    titles = (
        "Typo in the readme",
        "Login fails with long names",
        "Add a dark theme",
        "Tests are flaky",
        "Update the licence",
    )
    return {
        f"ISS-{1001 + number}": {
            "issue_id": f"ISS-{1001 + number}",
            "repo": _REPOS[number % 3],
            "title": title,
            "body": f"{title}, as seen in the last release.",
            "state": "closed" if number == 4 else "open",
        }
        for number, title in enumerate(titles)
    }


@tool(
    "code.run_python",
    {"stdout": str, "stderr": str, "exit_code": (int, None), "timed_out": bool},
    fails=[{"code": ""}],
    aliases=[
        "run_python",
        "python",
        "python_interpreter",
        "execute_python",
        "code_interpreter",
        "run_code",
        "execute_code",
    ],
)
async def run_python(world: World, code: str) -> Result:
    """Run a Python program. Returns its standard output, standard error and exit code."""
    if not code.strip():
        raise ToolFailure("invalid", "code is empty")
    if world.sandbox is None:
        raise ToolBroken("there is no sandbox to run code in")
    limits = Limits(wall_s=10.0, stdout_bytes=64 << 10)
    execution = await world.sandbox.run(Program("python", code, limits=limits))
    if execution.status == "infra":
        raise ToolBroken("the sandbox could not run the program")
    return {
        "stdout": execution.stdout,
        "stderr": execution.stderr[-4000:],
        "exit_code": execution.exit_code,
        "timed_out": execution.status == "timeout",
    }


@tool(
    "code.lint",
    {"language": str, "problems": [{"line": int, "message": str}]},
    {"code": "x = 1\nprint( x\n", "language": "python"},
    {"code": '{"a": 1,}', "language": "json"},
    fails=[{"code": "x", "language": "cobol"}],
    aliases=["lint_code", "check_syntax", "lint", "validate_code", "syntax_check"],
)
def lint(world: World, code: str, language: Literal["python", "json"]) -> Result:
    """Check the syntax of Python or JSON code without running it. Returns the problems with their line numbers."""
    problems: list[Record] = []
    if len(code) > 50_000:
        raise ToolFailure("invalid", "the code is longer than 50000 characters")
    try:
        if language == "json":
            json.loads(code)
        else:
            ast.parse(code)
    except json.JSONDecodeError as error:
        problems.append({"line": error.lineno, "message": error.msg})
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problems.append({"line": getattr(error, "lineno", None) or 1, "message": str(error).split(" (")[0]})
    return {"language": language, "problems": problems}


def _repo(name: str) -> str:
    if name.strip().lower() not in _REPOS:
        raise ToolFailure("not_found", f"there is no repository {name!r}; expected one of {', '.join(_REPOS)}")
    return name.strip().lower()


def _commits(world: World, repo: str) -> list[Record]:
    chance = world.chance("commits", repo)
    messages = ("Fix the build", "Add tests for login", "Rename the settings", "Speed up the search", "Update packages",
                "Correct the docs", "Handle empty input", "First release")  # fmt: skip
    authors = people(chance, 4)
    return [
        {
            "commit": chance.letters(10, "0123456789abcdef"),
            "author": chance.choice(authors).name,
            "date": format_time(world.now - timedelta(days=2 * number, hours=chance.integer(0, 20))),
            "message": message,
        }
        for number, message in enumerate(messages)
    ]


@tool(
    "git.log",
    {"repo": str, "commits": [{"commit": str, "author": str, "date": str, "message": str}]},
    {"repo": "acme/api", "n": 3},
    fails=[{"repo": "acme/none"}],
    aliases=["git_log", "get_commits", "list_commits", "commit_history"],
)
def git_log(world: World, repo: str, n: int = 10) -> Result:
    """List the latest commits of a repository (acme/website, acme/api or acme/docs), newest first."""
    name = _repo(repo)
    return {"repo": name, "commits": _commits(world, name)[: max(n, 0)]}


@tool(
    "git.diff",
    {"repo": str, "files": [{"path": str, "added": int, "removed": int}]},
    {"repo": "acme/docs", "a": "HEAD~2", "b": "HEAD"},
    fails=[{"repo": "acme/docs", "a": "HEAD", "b": "nowhere"}],
    aliases=["git_diff", "compare_commits", "get_diff"],
)
def git_diff(world: World, repo: str, a: str, b: str) -> Result:
    """List the files that differ between two commits, with the numbers of added and removed lines.

    A commit is a hash, HEAD or HEAD~n.
    """
    name = _repo(repo)
    commits = [commit["commit"] for commit in _commits(world, name)]

    def position(revision: str) -> int:
        text = revision.strip()
        if text in commits:
            return commits.index(text)
        back = text.removeprefix("HEAD").removeprefix("~") or "0"
        if text.startswith("HEAD") and back.isdigit() and int(back) < len(commits):
            return int(back)
        raise ToolFailure("not_found", f"there is no commit {revision!r}")

    low, high = sorted((position(a), position(b)))
    chance = world.chance("diff", name, low, high)
    paths = chance.sample(["README.md", "src/app.py", "src/search.py", "tests/test_app.py", "setup.cfg"], high - low)
    return {
        "repo": name,
        "files": [
            {"path": path, "added": chance.integer(1, 60), "removed": chance.integer(0, 30)} for path in sorted(paths)
        ],
    }


@tool(
    "issues.list",
    {"repo": str, "issues": [ISSUE]},
    {"repo": "acme/website"},
    {"repo": "acme/api", "state": "open"},
    fails=[{"repo": "acme/none"}],
    aliases=["list_issues", "get_issues", "github_issues", "search_issues"],
)
def list_issues(world: World, repo: str, state: Literal["open", "closed", "all"] = "all") -> Result:
    """List the issues of a repository: all, open or closed."""
    name = _repo(repo)
    issues = [i for i in world["issues"].values() if i["repo"] == name and state in ("all", i["state"])]
    return {"repo": name, "issues": issues}


@tool(
    "issues.create",
    ISSUE,
    {"repo": "acme/website", "title": "Footer overlaps", "body": "On narrow screens."},
    fails=[{"repo": "acme/none", "title": "x"}, {"repo": "acme/api", "title": ""}],
    aliases=["create_issue", "open_issue", "file_bug", "report_bug"],
    changes=True,
)
def create_issue(world: World, repo: str, title: str, body: str = "") -> Result:
    """Create an issue in a repository. Returns the issue with its id."""
    name = _repo(repo)
    if not title.strip():
        raise ToolFailure("invalid", "title is empty")
    key = world.new_key("issues", "ISS-")
    world["issues"][key] = {"issue_id": key, "repo": name, "title": title, "body": body, "state": "open"}
    return world["issues"][key]


@tool(
    "packages.info",
    {"name": str, "ecosystem": str, "version": str, "licence": str, "summary": str, "weekly_downloads": int},
    {"name": "left-pad", "ecosystem": "npm"},
    fails=[{"name": "not a name", "ecosystem": "pypi"}],
    aliases=["package_info", "get_package", "pypi_lookup", "npm_lookup", "get_package_version"],
)
def package(world: World, name: str, ecosystem: Literal["pypi", "npm", "cargo"]) -> Result:
    """Get the newest version, licence, summary and weekly downloads of a package in the mock registries."""
    key = name.strip().lower()
    if not key or not all(character.isalnum() or character in "-_.@/" for character in key):
        raise ToolFailure("not_found", f"there is no package {name!r}")
    chance = world.chance("package", ecosystem, key)
    return {
        "name": key,
        "ecosystem": ecosystem,
        "version": f"{chance.integer(0, 9)}.{chance.integer(0, 30)}.{chance.integer(0, 20)}",
        "licence": chance.choice(["MIT", "Apache-2.0", "BSD-3-Clause"]),
        "summary": f"{key}: a small library.",
        "weekly_downloads": chance.integer(100, 5_000_000),
    }


@tool(
    "regex.test",
    {"matches": bool, "found": [str]},
    {"pattern": r"\d{4}-\d{2}", "text": "due 2026-03 and 2026-04"},
    {"pattern": "(a+)+$", "text": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
    fails=[{"pattern": "(", "text": "x"}, {"pattern": r"(a)\1", "text": "aa"}],
    aliases=["test_regex", "regex_match", "match_regex", "regex_test", "find_pattern"],
)
def regex(world: World, pattern: str, text: str) -> Result:
    """Find the parts of a text that match a regular expression, at most 100.

    Back-references and look-around are not supported.
    """
    try:
        texts = find_all(pattern, text[:5000])
    except PatternError as error:
        raise ToolFailure("invalid", str(error)) from None
    return {"matches": bool(texts), "found": texts[:100]}


@tool(
    "http.status",
    {"code": int, "name": str, "meaning": str, "class": str},
    {"code": 404},
    fails=[{"code": 799}],
    aliases=["http_status", "status_code_meaning", "get_http_status", "explain_status_code"],
)
def http_status(world: World, code: int) -> Result:
    """Get the name, meaning and class of an HTTP status code."""
    try:
        status = http.HTTPStatus(code)
    except ValueError:
        raise ToolFailure("not_found", f"there is no HTTP status {code}") from None
    kinds = ("information", "success", "redirection", "client error", "server error")
    return {
        "code": code,
        "name": status.phrase,
        "meaning": status.description or status.phrase,
        "class": kinds[code // 100 - 1],
    }


def _domain(domain: str) -> str:
    name = domain.strip().lower().rstrip(".")
    labels = name.split(".")
    if len(labels) < 2 or not all(label.replace("-", "").isalnum() and label.isascii() for label in labels):
        raise ToolFailure("invalid", f"{domain!r} is not a domain name")
    if labels[-1] in ("invalid", "local"):
        raise ToolFailure("not_found", f"{name} does not exist")
    return name


@tool(
    "dns.lookup",
    {"domain": str, "type": str, "records": [str]},
    {"domain": "example.com"},
    {"domain": "example.org", "type": "MX"},
    fails=[{"domain": "nothing"}, {"domain": "host.invalid"}],
    aliases=["dns_lookup", "resolve_domain", "nslookup", "dig", "get_dns_records"],
)
def dns(world: World, domain: str, type: Literal["A", "AAAA", "MX", "TXT", "NS"] = "A") -> Result:
    """Look up the DNS records of a domain. All addresses are from the ranges that are reserved for documentation."""
    name = _domain(domain)
    chance = world.chance("dns", name, type)
    records = {
        "A": [f"203.0.113.{chance.integer(1, 254)}"],
        "AAAA": [f"2001:db8::{chance.letters(4, '123456789abcdef')}"],
        "MX": [f"10 mail.{name}"],
        "TXT": ["v=spf1 -all"],
        "NS": [f"ns1.{name}", f"ns2.{name}"],
    }[type]
    return {"domain": name, "type": type, "records": records}


@tool(
    "whois.lookup",
    {"domain": str, "registrar": str, "created": str, "expires": str, "status": str},
    {"domain": "example.com"},
    fails=[{"domain": "nothing"}],
    aliases=["whois", "domain_info", "whois_lookup", "check_domain"],
)
def whois(world: World, domain: str) -> Result:
    """Look up the registration of a domain: registrar, creation date, expiry date and status."""
    name = _domain(domain)
    chance = world.chance("whois", name)
    year = chance.integer(1996, 2023)
    month, day = chance.integer(1, 12), chance.integer(1, 28)
    return {
        "domain": name,
        "registrar": chance.choice(["Northern Names", "Open Registry", "Domain House"]),
        "created": f"{year}-{month:02d}-{day:02d}",
        "expires": f"{chance.integer(2027, 2030)}-{month:02d}-{day:02d}",
        "status": "active",
    }
