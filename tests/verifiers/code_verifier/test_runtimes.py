"""Programs that need modules, commands or packages that the sandbox lacks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bestofn.builders.records import Candidate, CodeTests, Execution, Program, Query, Reference, Verdict
from bestofn.verifiers.code_verifier import CodeVerifier


class Without:
    """A sandbox that lacks the modules ``missing``. Every program fails in it."""

    name = "without"

    def __init__(self, *missing: str, stderr: str = "", works: bool = True) -> None:
        self.missing, self.stderr, self.works = missing, stderr, works
        self.programs: list[Program] = []

    async def run(self, program: Program) -> Execution:
        self.programs.append(program)
        if any(mark in program.source for mark in ("has(name)", "command -v", "__has_include")):
            if not self.works:
                return Execution("error", 127, "", "node is not installed in the sandbox", 0.0)
            named = [name for name in self.missing if name in program.source]
            return Execution("ok", 0, json.dumps(named), "", 0.0)
        return Execution("error", 1, "", self.stderr, 0.0)


def verdict(sandbox: Any, answer: str, language: str = "python") -> Verdict:
    tests = CodeTests("stdin", language, ({"stdin": "", "stdout": "1"},))  # type: ignore[arg-type]
    query = Query("q", "code", ({"role": "user", "content": "?"},), reference=Reference(tests=tests))
    text = f"```{language}\n{answer}\n```"
    return asyncio.run(CodeVerifier(sandbox).verify(query, Candidate(0, ({"role": "assistant", "content": text},))))


@pytest.mark.parametrize(
    "source",
    [
        "import pandas as pd\nprint(pd)",
        "from pandas import DataFrame\nprint(DataFrame)",
        "def main():\n    import pandas\nmain()",
        "try:\n    import pandas\nexcept ImportError:\n    raise SystemExit(1)",
        "import importlib\nimportlib.import_module('pandas')",
    ],
)
def test_a_missing_module_is_an_error_with_its_name(source: str) -> None:
    found = verdict(Without("pandas"), source)
    assert found.outcome == "error"
    assert "'pandas'" in found.explanation
    assert "sandbox.packages=[pandas]" in found.explanation


def test_what_is_there_or_cannot_exist_is_not_an_excuse() -> None:
    sandbox = Without("pandas")
    assert verdict(sandbox, "import numpy\nprint(2)").outcome == "fail"
    assert verdict(sandbox, "import urllib2\nprint(2)").outcome == "fail"
    assert verdict(sandbox, "import math\nraise ModuleNotFoundError(\"No module named 'pandas'\")").outcome == "fail"
    assert verdict(sandbox, "import math\nprint(2)").outcome == "fail"


def test_a_name_is_probed_once() -> None:
    async def twice() -> int:
        sandbox = Without()
        verifier = CodeVerifier(sandbox)  # type: ignore[arg-type]
        tests = CodeTests("stdin", "python", ({"stdin": "", "stdout": "1"},))
        query = Query("q", "code", ({"role": "user", "content": "?"},), reference=Reference(tests=tests))
        for number in range(3):
            text = f"```python\nimport numpy\nprint({number})\n```"
            await verifier.verify(query, Candidate(0, ({"role": "assistant", "content": text},)))
        return len(sandbox.programs)

    assert asyncio.run(twice()) == 4


def test_a_missing_node_is_an_error_with_its_name() -> None:
    found = verdict(Without(works=False), "console.log(2)", "javascript")
    assert (found.outcome, "Node" in found.explanation) == ("error", True)
    assert verdict(Without(), "console.log(2)", "javascript").outcome == "fail"


def test_a_missing_package_of_node_is_an_error() -> None:
    for source in ("const _ = require('lodash');", "import _ from 'lodash';", "const x = require('lodash/fp');"):
        found = verdict(Without("lodash"), source, "javascript")
        assert (found.outcome, "'lodash'" in found.explanation) == ("error", True), source


def test_a_missing_command_is_an_error_if_others_have_it() -> None:
    found = verdict(Without("jq", stderr="main.sh: line 1: jq: command not found"), "jq . <<< 1", "bash")
    assert (found.outcome, "'jq'" in found.explanation) == ("error", True)
    typo = verdict(Without("ecko", stderr="main.sh: line 1: ecko: command not found"), "ecko 1", "bash")
    assert typo.outcome == "fail"


def test_one_long_word_on_standard_error_is_read_in_linear_time() -> None:
    """Up to 64 KiB of standard error are searched in linear time. Quadratic time would block the build for a minute."""
    stderr = "a" * 65_536 + " jq: command not found"
    found = verdict(Without(stderr=stderr), "jq .", "bash")
    assert found.outcome == "fail"


def test_the_advice_for_a_missing_module_covers_a_file_of_the_answer() -> None:
    found = verdict(Without("utils"), "from utils import helper\nprint(helper())")
    assert found.outcome == "error"
    assert "sandbox.packages=[utils] if it is a package" in found.explanation
    assert "another file of the answer" in found.explanation


@pytest.mark.parametrize(
    ("language", "source", "name"),
    [
        ("rust", "use rand::Rng;\nfn main() { println!(\"{}\", rand::thread_rng().gen_range(0..9)); }", "rand"),
        ("rust", "extern crate regex;\nfn main() { regex::Regex::new(\"a\").unwrap(); }", "regex"),
        ("go", 'package main\nimport (\n\t"fmt"\n\t"github.com/foo/bar"\n)\nfunc main() { fmt.Println(bar.X) }', "github.com/foo/bar"),
        ("java", "import org.apache.commons.lang3.StringUtils;\nclass Main {}", "org.apache.commons.lang3.StringUtils"),
        ("cpp", "#include <boost/any.hpp>\n#include <vector>\nint main() {}", "boost/any.hpp"),
    ],
)  # fmt: skip
def test_a_missing_library_of_a_compiled_language_is_an_error(language: str, source: str, name: str) -> None:
    found = verdict(Without("boost/any.hpp"), source, language)
    assert (found.outcome, f"'{name}'" in found.explanation) == ("error", True), found


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("rust", "use rand::Rng;\nuse std::fmt;\nmod own { pub fn f() {} }\nuse own::f;\nfn main() { f(); }"),
        ("go", 'import "fmt"\n\nvar names = []string{\n\t"a.txt",\n}\n\nfunc main() { fmt.Println(names) }'),
        ("java", "import java.util.*;\nimport static java.lang.Math.*;\nclass Main {}"),
        ("cpp", "#include <vector>\nint main() {}"),
    ],
)
def test_a_program_fails_if_the_sandbox_has_what_it_uses(language: str, source: str) -> None:
    assert verdict(Without(), source, language).outcome == "fail"
