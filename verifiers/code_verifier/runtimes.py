"""Finds modules, commands and interpreters that a sandbox lacks. A program that needs one never gets ``fail``.

The verifier uses this module only for programs that did not pass. The needs of a program are read from its source. A
*probe*, a small program of bestofn in the same sandbox, shows whether the sandbox has them. Therefore the output of the
tested program has no influence.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import Execution, Limits, Program
from bestofn.sandbox.languages.go import missing_modules
from bestofn.sandbox.languages.rust import missing_crates
from bestofn.verifiers.code_verifier.syntax import imported_modules

# Modules of Python 2. They exist nowhere, so a program that imports one is wrong.
PYTHON_2 = frozenset(
    {
        *("BaseHTTPServer", "ConfigParser", "Cookie", "HTMLParser", "Queue", "SocketServer", "StringIO", "Tkinter"),
        *("UserDict", "UserList", "__builtin__", "cPickle", "cStringIO", "commands", "cookielib", "exceptions"),
        *("httplib", "md5", "robotparser", "sets", "sha", "thread", "urllib2", "urlparse", "xmlrpclib"),
    }
)
# Modules of the standard library that a distribution packages separately, or that newer versions of Python lack.
_OPTIONAL = frozenset(
    {
        *(
            "asynchat",
            "asyncore",
            "audioop",
            "cgi",
            "crypt",
            "curses",
            "dbm",
            "distutils",
            "ensurepip",
            "idlelib",
            "imp",
        ),
        *("lib2to3", "readline", "smtpd", "telnetlib", "test", "tkinter", "turtle", "turtledemo", "venv"),
    }
)
_OWN = frozenset({"__main__", "main", "solution"})  # names of the program itself
# Commands that are not part of every Linux system. A missing command that is not listed is a mistake of the program.
_COMMANDS = frozenset(
    {
        *("bc", "column", "curl", "dc", "file", "gawk", "gcc", "git", "jq", "less", "make", "node", "openssl", "perl"),
        *(
            "php",
            "pip",
            "ps",
            "python",
            "python3",
            "rev",
            "rg",
            "rsync",
            "ruby",
            "sqlite3",
            "tree",
            "unzip",
            "vim",
            "wget",
        ),
        *("which", "xmllint", "xxd", "yq", "zip", "zsh"),
    }
)

_PYTHON_PROBE = """import importlib.util, json
def has(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
print(json.dumps([name for name in {names} if not has(name)]))
"""
_NODE_PROBE = """const has = (name) => { try { require.resolve(name); return true; } catch { return false; } };
console.log(JSON.stringify({names}.filter((name) => !has(name))));
"""
_BASH_PROBE = """missing=
for name in {names}; do command -v "$name" >/dev/null || missing+="${missing:+,}\\"$name\\""; done
echo "[$missing]"
"""
_CPP_PROBE = """#include <iostream>
#include <string>
int main() {
std::string missing;
{names}
std::cout << "[" << missing.substr(!missing.empty()) << "]";
}
"""


# Packages that the sandbox replaces for tests, and names of the program.
_DRIVEN = frozenset({"lodash", "vitest", "@jest/globals", "mocha", "solution", "index", "main"})


@dataclass(frozen=True, slots=True)
class Need:
    """The texts that show which modules and commands a run needs: the program, its tests and standard error."""

    source: str
    tests: str = ""
    stderr: str = ""


def _node_packages(need: Need) -> set[str]:
    return _required(need.source) | (_required(need.tests) - _DRIVEN)


def _required(source: str) -> set[str]:
    found = re.findall(r"(?:\brequire\(|\bimport\(|\bfrom\s|^import\s)\s*['\"]([^'\"\n]+)['\"]", source, re.MULTILINE)
    packages = {name for name in found if not name.startswith((".", "/", "node:"))}
    return {"/".join(name.split("/")[: 2 if name.startswith("@") else 1]) for name in packages}


_NOT_FOUND = re.compile(r"(?<![\w.-])([\w.-]+): (?:command )?not found")  # each word is tried once, from its beginning


def _commands(need: Need) -> set[str]:
    reported = set(_NOT_FOUND.findall(need.stderr)) & _COMMANDS
    return {name for name in reported if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", need.source + need.tests)}


_JAVA_IMPORT = re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+?)(?:\.\*)?\s*;", re.MULTILINE)
_JAVA = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.w3c.dom", "org.xml.sax", "org.ietf.jgss", "netscape.")
_CPP_INCLUDE = re.compile(r"^\s*#\s*include\s*<([\w./+-]+)>", re.MULTILINE)


def _rust_crates(need: Need) -> set[str]:
    return missing_crates(need.source) | missing_crates(need.tests)


def _go_modules(need: Need) -> set[str]:
    return missing_modules(f"{need.source}\n{need.tests}")


def _java_packages(need: Need) -> set[str]:
    imported = _JAVA_IMPORT.findall(f"{need.source}\n{need.tests}")
    return {name for name in imported if "." in name and not name.startswith(_JAVA)}


def _cpp_checks(names: list[str]) -> str:
    return "".join(f'#if !__has_include(<{name}>)\nmissing += ",\\"{name}\\"";\n#endif\n' for name in names)


def _cpp_headers(need: Need) -> set[str]:
    return set(_CPP_INCLUDE.findall(f"{need.source}\n{need.tests}"))


def _python_modules(need: Need) -> set[str]:
    """Return the imported modules that the sandbox may not have.

    Modules that only the tests import are not included: if one is missing, the sandbox reports ``broken``.
    """
    return imported_modules(need.source) - PYTHON_2 - _OWN - (sys.stdlib_module_names - _OPTIONAL)


@dataclass(frozen=True, slots=True)
class _Language:
    """The functions that read and probe the needs of a program in one language.

    If ``probe`` is "", the sandbox is assumed to have only the compiler and its standard library.
    """

    needs: Callable[[Need], set[str]]
    probe: str
    names: Callable[[list[str]], str]  # the names in the syntax of the probe
    interpreter: str
    kind: str


_LANGUAGES = {
    "python": _Language(_python_modules, _PYTHON_PROBE, repr, "Python", "Python module"),
    "javascript": _Language(_node_packages, _NODE_PROBE, json.dumps, "Node", "Node package"),
    "bash": _Language(_commands, _BASH_PROBE, " ".join, "Bash", "command"),
    "cpp": _Language(_cpp_headers, _CPP_PROBE, _cpp_checks, "g++", "C++ header"),
    "rust": _Language(_rust_crates, "", " ".join, "rustc", "Rust crate"),
    "go": _Language(_go_modules, "", " ".join, "Go", "Go module"),
    "java": _Language(_java_packages, "", " ".join, "Java", "Java package"),
}


class Runtimes:
    """Finds out which modules and commands one sandbox has. Each name is probed once."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._missing: dict[tuple[str, str], bool] = {}

    async def lacking(self, name: str, need: Need) -> str:
        """Return what the sandbox lacks to run a program in the language ``name``; "" if it lacks nothing.

        Standard error is only used for Bash, and only to choose which commands are probed.
        """
        language = _LANGUAGES.get(name)
        if language is None:
            return ""
        names = language.needs(need)
        problem = await self._probe(name, language, names)
        if problem:
            return problem
        missing = sorted(one for one in names if self._missing[name, one])
        if not missing:
            return ""
        return _advice(language.kind, missing)

    async def _probe(self, name: str, language: _Language, names: Iterable[str]) -> str:
        """Probe the ``names`` that were not probed before. Return why the interpreter does not work; "" if it works."""
        asked = sorted(one for one in {"", *names} if (name, one) not in self._missing)  # "" is the interpreter itself
        if not asked:
            return ""
        wanted = [one for one in asked if one]
        missing: list[str] | None = [] if language.probe else wanted
        if language.probe and (wanted or name == "javascript"):
            source = language.probe.replace("{names}", language.names(wanted))
            execution = await self.sandbox.run(Program(name, source, limits=Limits(wall_s=20, cpu_s=20)))  # type: ignore[arg-type]
            missing = _listed(execution)
            if missing is None:
                return _no_interpreter(language.interpreter, execution)
        self._missing.update({(name, one): one in (missing or ()) for one in asked})
        return ""


def _listed(execution: Execution) -> list[str] | None:
    try:
        return list(json.loads(execution.stdout)) if execution.status == "ok" else None
    except (ValueError, TypeError):
        return None


def _no_interpreter(interpreter: str, execution: Execution) -> str:
    reason = str(execution.detail.get("reason") or execution.stderr.strip()[-200:] or execution.status)
    return f"{interpreter} does not work in the sandbox: {reason}"


# Packages whose name is not that of their module.
_PACKAGES = {
    "Crypto": "pycryptodome", "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil", "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "PyYAML",
}  # fmt: skip


# A module with one of these names is often a further file of the same answer. It may also be a package.
_OTHER_FILES = frozenset({
    "app", "base", "common", "config", "const", "constants", "core", "exceptions", "helper", "helpers", "lib", "misc",
    "models", "module", "my_module", "mymodule", "node", "parser", "schemas", "settings", "tools", "tree",
    "util", "utilities", "utils",
})  # fmt: skip


def _advice(kind: str, missing: list[str]) -> str:
    """Return a message that names the ``missing`` modules or commands, and how to add them to the sandbox."""
    text = f"the sandbox has no {kind} {', '.join(map(repr, missing))}"
    packages = [_PACKAGES.get(name, name) for name in missing if name not in sys.stdlib_module_names]
    if kind != "Python module" or not packages:
        return text
    text += f"; add it with sandbox.packages=[{','.join(packages)}]"
    if _OTHER_FILES.isdisjoint(missing):
        return text
    return f"{text} if it is a package. If it is another file of the answer: only one file of an answer is run"
