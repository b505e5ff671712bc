"""A copy of the process composes the configuration, and this process imports modules until the copy has a result."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bestofn.builders.config.copied_process import modules_of_choices

SCRIPT = """
import os, sys, time
from bestofn.builders.config.copied_process import result_of_copy
from bestofn.builders.errors import ConfigError

def refuse():
    raise ConfigError("n is 0")

def warn():
    print("a warning", file=sys.stderr)
    return 1
"""


def printed(lines: str) -> str:
    """Run ``SCRIPT`` and ``lines`` in a new process, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + lines], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("lambda: {'pid': os.getppid() == here}", "{'pid': True}"),
        ("lambda: 1 / 0", "None"),
        ("lambda: None", "None"),
        ("lambda: os._exit(3)", "None"),
        ("lambda: sys.exit(3)", "None"),
        ("warn", "None"),
    ],
)
def test_only_the_result_of_a_function_without_output_is_used(function: str, result: str) -> None:
    assert printed(f"here = os.getpid()\nprint(result_of_copy({function}, []))") == f"{result}\n"


def test_a_wrong_setting_is_an_error_of_this_process() -> None:
    lines = "try:\n    result_of_copy(refuse, [])\nexcept ConfigError as error:\n    print(error)"
    assert printed(lines) == "n is 0\n"


def test_modules_are_imported_until_the_result_is_there() -> None:
    lines = (
        "print(result_of_copy(lambda: time.sleep(0.5) or 7, ['colorsys', 'there_is_no_such_module', 'statistics']))\n"
    )
    assert printed(lines + "print('colorsys' in sys.modules, 'statistics' in sys.modules)") == "7\nTrue True\n"


def test_a_process_that_has_imported_hydra_is_not_copied() -> None:
    assert printed("import hydra\nprint(result_of_copy(lambda: 1, []))") == "None\n"


def test_the_modules_of_choices_are_those_of_their_classes() -> None:
    words = ["dataset=jsonl", "provider=openai_chat", "n=3", "verifier=[x]", "hub=none", "provider.model=m", "-m"]
    assert modules_of_choices(words) == [
        "bestofn.builders.sources.mapped",
        "bestofn.builders.providers.openai_chat",
        "bestofn.builders.config.objects",
    ]
