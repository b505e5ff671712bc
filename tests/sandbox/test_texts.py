"""The driver evaluates only harmless text from a program, and regular expressions recognize tests in Bash."""

from __future__ import annotations

import pytest

from bestofn.sandbox.inside.refusals import Refused
from bestofn.sandbox.inside.texts import evaluators, is_harmless
from bestofn.sandbox.languages import bash_scripts


@pytest.mark.parametrize(
    "text", ["int", "list[int] | None", "typing.Optional[int]", "'Tree'", "-1 + 2", "[1, {'a': 2}]"]
)
def test_types_and_values_are_harmless(text: str) -> None:
    assert is_harmless(text)


@pytest.mark.parametrize(
    "text",
    ["print(1)", "().__class__", "(lambda: 1)", "[x for x in y]", "f'{x}'", "exec('1')", "a.b()", "x := 1", "int(", ""],
)
def test_texts_that_could_run_are_not(text: str) -> None:
    assert not is_harmless(text)


def test_eval_accepts_names_of_the_tests_and_texts_that_the_tests_contain() -> None:
    made = evaluators("exec('import os')", {"Point"})
    assert made["eval"]("Point(x=1)", {"Point": dict}) == {"x": 1}
    made["exec"]("import os", {})
    for name, text in (
        ("eval", "__import__('os')"),
        ("eval", "getattr(1, 'real')"),
        ("exec", "import sys"),
        ("eval", b"1"),
    ):
        with pytest.raises(Refused, match="the tests call"):
            made[name](text)


@pytest.mark.parametrize(
    ("tests", "settings"),
    [
        ('[[ "a b" == $(f) ]]', "__patterns=yes"),
        ('[[ "$(f)" == "a b" ]]', "__patterns=''"),
        ('[[ $(f) == "$x" ]]', "__patterns=''"),
        ("case $x in $(f)) ;; esac", "__patterns=yes"),
        ("(( $(f) == 5 ))", "__textual=yes"),
        ("(( ${#x} == 5 ))", "__textual=''"),
        ('[ "$(f)" = 5 ]', "__textual=''"),
        ("paste <(f 1) <(f 2)", "__together=yes"),
        ("f 2>&1 && g", "__together=''"),
    ],
)
def test_what_bash_tests_do_with_outputs_is_recognized(tests: str, settings: str) -> None:
    assert settings in bash_scripts.tests_script("f", [tests]).splitlines()


@pytest.mark.parametrize("tests", ['eval "$(f)"', "source <(f)", "declare -f f | grep sed", "[[ x =~ $(f) ]]"])
def test_bash_tests_that_execute_an_output_fail_in_the_strict_run(tests: str) -> None:
    assert bash_scripts.tests_script("f", [tests]) == "exit 1"


@pytest.mark.parametrize(
    "tests", ["declare -f f >/dev/null", "type f >/dev/null 2>&1", '[ "$(type -t f)" = function ]']
)
def test_bash_tests_may_ask_whether_a_function_exists(tests: str) -> None:
    assert bash_scripts.tests_script("f", [tests]) != "exit 1"
