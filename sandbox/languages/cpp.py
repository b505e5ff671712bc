"""C++: g++ compiles the program, together with its tests if there are any."""

from __future__ import annotations

import re

from bestofn.sandbox.inside.jobs import Job
from bestofn.sandbox.languages.compiled import Toolchain, compiled_language
from bestofn.sandbox.languages.cpp_calls import CALLS

_ALL_HEADERS = "#include <bits/stdc++.h>\n"  # for answers that include nothing; they take a second to compile
_OF_CALLS = (
    "cmath", "cstdio", "cstring", "map", "sstream", "stdexcept", "string", "tuple", "type_traits", "unordered_map",
    "utility", "vector",
)  # fmt: skip
_OF_TESTS = {
    "algorithm": "sort|max|min|equal", "cmath": "f?abs|sqrt|pow|round|isnan", "iostream": "cout|cerr|endl",
    "map": "map", "optional": "optional|nullopt", "set": "set", "string": "string|to_string",
    "tuple": "tuple|make_tuple", "unordered_map": "unordered_map", "unordered_set": "unordered_set",
    "utility": "pair|make_pair", "vector": "vector",
}  # fmt: skip
"""Header -> the names in tests that need it. Tests of datasets rely on the headers in the prompt."""
_STANDARD_TYPE = re.compile(
    r"(?<![\w:.])(?:string\b(?!\s*\()|(?:vector|map|set|pair|tuple|optional|unordered_(?:map|set))\s*<)"
)
_USING = re.compile(r"^using namespace std", re.MULTILINE)  # not within a function
_MAIN = re.compile(r"\bint\s+main\s*\([^)]*\)\s*(?=\{)")
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[{}]",
    re.DOTALL,
)

_REPORT = r"""
#undef main
#undef assert
static void __report(const char *key) {
  char line[160];
  int size = snprintf(line, sizeof line, "{\"passed\":true,\"error\":\"\",\"key\":\"%s\"}\n", key);
  fflush(nullptr);
  if (write(3, line, (size_t)size) < 0) _exit(1);
}
int main() {
  @CASES@
  return 0;
}
"""


def sources(job: Job) -> dict[str, str]:
    """Return the program as one file, with a main function that runs its tests or makes its calls."""
    if job["calls"]:
        name = job["calls"][0]["name"]
        headers = _headers(job["source"], *_OF_CALLS)
        return {"main.cpp": f"{headers}#define main __program_main\n{job['source']}\n{CALLS.replace('@NAME@', name)}"}
    if not job["cases"]:
        return {"main.cpp": job["source"]}
    parts = [_headers(job["source"], "cstdio"), "#define main __program_main", job["source"], "#undef main"]
    runs = []
    for number, case in enumerate(job["cases"]):
        name = f"__tests_{number}"
        parts += ["#undef NDEBUG", "#include <assert.h>", _offered(job["source"], case)]
        if _MAIN.search(case):
            parts.append(_as_function(case, name))
        else:
            parts += [f"static int {name}() {{", case, "return 0; }"]
        runs.append(f"if (int code = {name}()) return code;")
    key = "char key[65] = {}; auto got = read(4, key, 64); if (got < 0) return 1;"
    # All tests run before the first report. The key is read after them, so that an early exit reports nothing.
    cases = " ".join([*runs, key, *["__report(key);"] * len(runs)])
    return {"main.cpp": "\n".join(parts) + _REPORT.replace("@CASES@", cases)}


def _offered(source: str, case: str) -> str:
    """Return the ``#include`` and ``using`` lines that the test ``case`` needs.

    The prompts of the datasets contain these lines. The tests rely on them, but a program may omit them.
    """
    lines = [f"#include <{header}>" for header, names in _OF_TESTS.items() if re.search(rf"\b(?:{names})\b", case)]
    if _STANDARD_TYPE.search(case) and not _USING.search(f"{source}\n{case}"):
        lines.append("using namespace std;")
    return "\n".join(lines)


def _as_function(case: str, name: str) -> str:
    """Return a test whose function ``main`` is renamed to ``name``, with ``return 0`` added at its end."""
    begin = _MAIN.search(case)
    if begin is None:
        return case
    renamed, depth = f"{case[: begin.start()]}static int {name}(int argc = 0, char **argv = nullptr) ", 0
    for token in _TOKEN.finditer(case, begin.end()):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth:
            return f"{renamed}{case[begin.end() : token.start()]}return 0; }}{case[token.end() :]}"
    return renamed + case[begin.end() :]


def _headers(source: str, *more: str) -> str:
    own = "" if re.search(r"^\s*#\s*include", source, re.MULTILINE) else _ALL_HEADERS
    return own + "".join(f"#include <{name}>\n" for name in (*more, "unistd.h"))


def _commands(names: list[str]) -> list[list[str]]:
    # -O1: half the time of -O2 to compile
    return [["g++", "-std=c++20", "-O1", "-w", "-fmax-errors=5", "-o", "program", "main.cpp", "-pthread"]]


TOOLCHAIN = Toolchain("g++", "program", sources, _commands)
LANGUAGE = compiled_language(TOOLCHAIN)
