"""Bash tests as calls: the host compares outputs as Bash does, or leaves the tests to a run."""

from __future__ import annotations

import asyncio

import pytest

from bestofn.builders.records import Execution, Program
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.verifiers.code_verifier.bash_values import BashScript
from bestofn.verifiers.code_verifier.values import NotValues

READ: dict[str, tuple[str, list[list[object]], list[str], list[str]]] = {
    "one comparison": ('[[ $(f 1 "a b") == "3" ]]', [["f", "1", "a b"]], ["3"], ["4"]),
    "brackets": ('[ "$(f x)" = y ] || exit 1', [["f", "x"]], ["y"], ["y "]),
    "MultiPL-E": (
        'candidate() {\n    f "$@"\n}\n\nset -e\nrun_test() {\n    [[ $(candidate "1") = "2" ]]\n'
        '    [[ $(candidate "\\"q\\"") = "" ]]\n}\n\nrun_test',
        [["f", "1"], ["f", '"q"']],
        ["2", ""],
        ["2", "x"],
    ),
    "a number": ("[[ $(f) -eq 3 ]]", [["f"]], ["3"], ["4"]),
    "a difference": ("[[ $(f) != x ]]", [["f"]], ["y"], ["x"]),
}


@pytest.mark.parametrize("name", READ)
def test_calls_are_read_and_outputs_are_compared(name: str) -> None:
    source, calls, right, wrong = READ[name]
    driven = Program("bash", "", tests=(source,))
    assert [[call["name"], *call["args"]] for call in BashScript(driven).collect()] == calls
    for outputs, passes in ((right, True), (wrong, False)):
        execution = Execution("ok", 0, "", "", 0.0, returns=tuple({"value": one} for one in outputs))
        assert (BashScript(driven).decide(execution) == [None]) is passes


@pytest.mark.parametrize(
    "source",
    [
        "[[ $(f) == a* ]]",
        '[[ "x" == $(f) ]]',
        "[ $(f) = 1 ]",
        "[[ $(f) == 1 ]]\n[[ $(f) == 2 ]]",
        "[[ $(f | sort) == 1 ]]",
        '[[ $(f "$HOME") == 1 ]]',
        "f 4 || exit 1",
        "[[ $(f) == 1 ]] && [[ $(f) == 2 ]]",
        "set -e",
        "[[ $(f) -lt 3 ]]",
    ],
)
def test_what_needs_more_than_outputs_is_left_to_a_run(source: str) -> None:
    with pytest.raises(NotValues):
        BashScript(Program("bash", "", tests=(source,))).collect()


def test_a_number_that_bash_would_evaluate_is_left_to_a_run() -> None:
    execution = Execution("ok", 0, "", "", 0.0, returns=({"value": "1 + 2"},))
    with pytest.raises(NotValues):
        BashScript(Program("bash", "", tests=("[[ $(f) -eq 3 ]]",))).decide(execution)


@pytest.mark.sandbox
def test_the_sandbox_returns_outputs_as_command_substitutions_do() -> None:
    texts = ['a\\b"c\n\td é$x `y`', "x\n\n", "\x01", ""]
    calls = tuple({"name": "f", "args": [text]} for text in texts)

    async def run() -> Execution:
        async with LocalSandbox(workers=1) as sandbox:
            return await sandbox.run(Program("bash", 'set -eu\nf() { printf %s "$1"; false; }', calls=calls))

    returns = asyncio.run(run()).returns
    assert [one.get("value") for one in returns] == [texts[0], "x", None, ""]
