"""Shell tasks in the real sandbox: the files that a script leaves behind, and its output."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.verifiers.shell_task import ShellVerifier, read_state, same_text, shell_task
from tests.requirements import need

LOGS = {"logs/a.txt": "one\ntwo\n", "logs/b.txt": "three\n", "notes": "keep me\n"}
MERGE = {"files": LOGS, "after": {"all.txt": "one\ntwo\nthree\n", "logs/a.txt": None}, "stdout": "3", "others": False}
RIGHT = "cat logs/*.txt > all.txt && rm logs/a.txt && wc -l < all.txt"


@pytest.fixture(scope="module")
def verify() -> Iterator[Any]:
    need("local")
    sandbox = LocalSandbox(workers=1)
    with asyncio.Runner() as runner:
        runner.run(sandbox.__aenter__())

        def run(script: str, check: Any) -> Verdict:
            query = Query("q", "shell", (), reference=Reference(checks={"shell": check}))
            answer = Candidate(0, ({"role": "assistant", "content": f"```bash\n{script}\n```"},))
            return runner.run(ShellVerifier(sandbox, timeout_s=2.0).verify(query, answer))

        yield run
        runner.run(sandbox.__aexit__())


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        (RIGHT, "pass", "as expected"),
        (f"({RIGHT}); exit 7", "pass", "as expected"),
        (f"{RIGHT}; echo more", "fail", "the output is"),
        ("cat logs/*.txt > all.txt; echo 3", "fail", "logs/a.txt should not exist"),
        ("rm logs/a.txt; echo 3", "fail", "there is no file all.txt"),
        ("cp logs/b.txt all.txt; rm logs/a.txt; echo 3", "fail", "the file all.txt is"),
        (f"{RIGHT}; rm notes", "fail", "the file notes was added or removed"),
        (f"{RIGHT}; echo x >> notes", "fail", "the file notes was changed"),
        (f"{RIGHT}; touch 'a new\nfile'", "fail", "added or removed"),
        ("kill -9 $PPID", "fail", ""),
        ("exec 1>&2; echo 'status 0'", "fail", "there is no file all.txt"),
        ("while :; do :; done", "fail", ""),
        ("ln -s logs/b.txt all.txt; rm logs/a.txt; echo 3", "fail", "the file all.txt is"),
        ("rg one logs > all.txt", "error", "rg"),
        (f"{RIGHT}; mkdir -p more/folders", "pass", "as expected"),
        (f"{RIGHT}; mkdir logs/a.txt", "fail", "logs/a.txt should not exist"),
        (f"{RIGHT}; mkfifo logs/a.txt", "fail", "logs/a.txt should not exist"),
        (f"{RIGHT}; ln -s nowhere logs/a.txt", "fail", "logs/a.txt should not exist"),
        (f"{RIGHT}; head -c 2000000 /dev/zero > logs/a.txt", "fail", "logs/a.txt should not exist"),
        ("cat logs/*.txt > all.txt; chmod 000 logs; echo 3", "fail", "logs/a.txt should not exist"),
        (f"{RIGHT}; head -c 2000000 /dev/zero > more", "fail", "the file more was added or removed"),
        (f"{RIGHT}; rm all.txt; mkdir all.txt", "fail", "there is no file all.txt"),
    ],
)
def test_the_final_state_decides(script: str, outcome: str, reason: str, verify: Any) -> None:
    found = verify(script, MERGE)
    assert (found.outcome, reason in found.explanation) == (outcome, True), found.explanation


def test_other_files_may_change_unless_the_check_forbids_it(verify: Any) -> None:
    assert verify(f"{RIGHT}; rm notes", {**MERGE, "others": True}).outcome == "pass"
    assert verify("printf '\\xff' > raw; echo ok", {"stdout": "ok"}).outcome == "pass"


@pytest.mark.parametrize(
    "check", [None, 3, {}, {"files": LOGS}, {"after": ["x"]}, {"files": {"/etc/x": ""}, "stdout": "a"}]
)
def test_a_check_that_cannot_be_read_decides_nothing(check: Any) -> None:
    query = Query("q", "shell", (), reference=Reference(checks={"shell": check}))
    verifier = ShellVerifier(None)  # type: ignore[arg-type]
    assert verifier.verified_by(query) == ""
    assert asyncio.run(verifier.verify(query, Candidate(0))).outcome == "abstain"
    assert shell_task(sandbox=None) is None


@given(st.text(), st.text())
def test_any_output_is_read(output: str, text: str) -> None:
    for one in (output, f"status 0\n{output}", f"status 0\nYQ== {output}"):
        assert read_state(one) is None or isinstance(read_state(one), dict)
    assert same_text(text, f"{text}\n")
