"""No text of a user, a service or a model reaches the terminal as a control sequence."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats.terminal_text import CONTROLS, TerminalHandler, escaped, escaped_output, unescaped
from tests.commands import run_here
from tests.runs import write_run


@given(st.text())
def test_no_control_character_is_left_and_json_keeps_its_meaning(text: str) -> None:
    assert not CONTROLS.search(escaped(text))
    assert json.loads(escaped(json.dumps(text, ensure_ascii=False))) == text


def test_prints_logs_and_tracebacks_are_escaped() -> None:
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors), escaped_output(), escaped_output():
        print("a\x1b[2Jb\n\tc", "é\u00a0")
        sys.stdout.writelines(["\rbar", "x\ry"])
        handler = logging.StreamHandler(sys.stderr)
        handler.emit(logging.LogRecord("x", 30, "", 0, "\x9b31m%s", ("\x07",), None))
        unescaped(sys.stdout).write("\x1b[1m")
        assert sys.stdout.isatty() is False
    assert output.getvalue() == "a\\u001b[2Jb\n\tc é\u00a0\n\rbarx\\u000dy\x1b[1m"
    assert errors.getvalue() == "\\u009b31m\\u0007\n"


def test_log_records_go_to_the_present_standard_error() -> None:
    handler, first, second = TerminalHandler(), io.StringIO(), io.StringIO()
    for stream in (first, second):
        with redirect_stderr(stream), escaped_output():
            handler.emit(logging.LogRecord("x", 30, "", 0, "\x07", (), None))
        first.close()
    assert second.getvalue() == "\\u0007\n"


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_control_characters_in_a_run_are_not_printed(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = write_run(tmp_path / "run", 6, model="tiny\x1b]0;title\x07")
    for command in ("inspect", "analyze"):
        done = run_here([command, str(run), *words])
        assert not CONTROLS.search(done.stdout + done.stderr)
        assert done.returncode == 0


def test_control_characters_on_the_command_line_are_not_printed(tmp_path: Path) -> None:
    done = run_here(["inspect", f"{tmp_path}/no\x1b[31m-run"])
    assert done.returncode == 2
    assert not CONTROLS.search(done.stdout + done.stderr)
    assert "\\u001b[31m" in done.stderr


PRINTS = """
import os, sys
from bestofn.builders.formats.terminal_text import escaped_output

with escaped_output():
    file = open(sys.argv[1], "w")
    print("45.2–50.6 %")
    print("more", file=sys.stderr, flush=True)
    sys.stdin.read()
    file.write(f"{file.fileno() > 2} {os.get_inheritable(1)}")
"""


def test_closed_streams_are_opened_so_that_no_file_gets_their_number(tmp_path: Path) -> None:
    file = tmp_path / "file"
    subprocess.run(
        ["sh", "-c", '"$@" <&- >&- 2>&-', "sh", sys.executable, "-c", PRINTS, str(file)], check=True, timeout=120
    )
    assert file.read_text() == "True True"


def test_characters_that_the_terminal_lacks_are_escaped(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-c", PRINTS, str(tmp_path / "file")]
    done = subprocess.run(words, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    assert (done.stdout, done.stderr) == (b"45.2\\u201350.6 %\n", b"more\n")
