"""Verifies shell tasks: the files that a Bash script leaves behind, and its output.

``conf/verifier/shell.yaml`` builds the verifier; ``docs/verifiers.md`` describes the check ``shell`` of a query. The
script runs in the sandbox. The expected state never enters the sandbox, so a script cannot read and print it.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping
from dataclasses import dataclass

from bestofn.builders.protocols import Sandbox
from bestofn.builders.records import Candidate, Limits, Outcome, Program, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.code_verifier.extraction import extract
from bestofn.verifiers.code_verifier.runtimes import Need, Runtimes
from bestofn.verifiers.code_verifier.tallies import sandbox_problem, short, why_ended

ANSWER = ".answer.sh"
STATE = r"""
bash .answer.sh </dev/null >.answer.out 2>.answer.err
printf 'status %s\n' "$?"
rm -f .answer.sh
chmod -R u+rwX . 2>/dev/null
find . -mindepth 1 \( -type d -o -not -type f -o -size +1023k \) -print0 | sort -z | while IFS= read -r -d '' path; do
  [[ -f $path && $(stat -Lc %s "$path") -lt 1047553 ]] && continue
  printf '%s %s\n' "$([[ -d $path ]] && echo folder || echo other)" "$(printf '%s' "${path#./}" | base64 -w0)"
done
find -L . -type f -size -1024k -print0 | sort -z | while IFS= read -r -d '' path; do
  printf '%s %s\n' "$(printf '%s' "${path#./}" | base64 -w0)" "$(base64 -w0 <"$path")"
done
"""
"""Runs the script of an answer in the folder of the files, and prints its exit status and the files that it leaves.

A line ``other PATH`` or ``folder PATH`` stands for an entry without printed content: a folder, a pipe, a broken
link, or a file of 1 MB or more.
"""
_UNREAD = {"folder", "other"}
_CONTENT_UNKNOWN = "\0"  # the text of such an entry; it equals no expected text


@dataclass(frozen=True, slots=True)
class Expected:
    """A shell task: the files before and after the script, and its output.

    ``files`` maps a path to the text before the script. ``after`` maps a path to the expected text; None means that the
    file must not exist. ``stdout`` is the expected output, or None if any output is right. ``others``: whether the
    script may add or change files that are not in ``after``.
    """

    files: Mapping[str, str]
    after: Mapping[str, str | None]
    stdout: str | None
    others: bool


class ShellVerifier:
    """Verifies the Bash script of an answer with ``reference.checks["shell"]``.

    ``timeout_s`` is the wall-clock limit of a script in seconds, ``memory_mb`` its memory limit in MB.
    """

    name = "shell"

    def __init__(self, sandbox: Sandbox, timeout_s: float = 10.0, memory_mb: int = 512) -> None:
        self.sandbox = sandbox
        self.limits = Limits(wall_s=timeout_s, cpu_s=3 * timeout_s, memory_mb=memory_mb)

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has a check that can be read; otherwise ""."""
        return self.name if expected_of(query) else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict. The explanation names the first file or output that differs."""
        started = time.perf_counter()
        expected = expected_of(query)
        if expected is None:
            return Verdict("abstain", 0.0, "the query has no check 'shell' that can be read", self.name)
        found = extract(candidate.text, "bash")
        if not found.source:
            return Verdict("abstain", 0.0, "the answer contains no bash program", self.name)
        program = Program("bash", STATE, files={**expected.files, ANSWER: found.source}, limits=self.limits)
        execution = await self.sandbox.run(program)
        if problem := sandbox_problem(execution):
            return Verdict("error", 0.0, problem, self.name)
        left = read_state(execution.stdout) if execution.status == "ok" else None
        difference = why_ended(execution) if left is None else first_difference(expected, left)
        if difference and (lacking := await self._lacking(found.source, (left or {}).get(".answer.err", ""))):
            return Verdict("error", 0.0, lacking, self.name)
        is_cut = found.guessed or (candidate.stop_reason == "length" and not found.complete)
        if difference and (is_cut or execution.status == "output"):
            doubt = "the answer may not contain the whole script" if is_cut else "the files that are left are too large"
            return Verdict("abstain", 0.0, f"{doubt}; {difference}"[:500], self.name)
        outcome: Outcome = "fail" if difference else "pass"
        explanation = difference or "the files and the output are as expected"
        seconds = time.perf_counter() - started
        return calibrated(Verdict(outcome, 0.0, explanation[:500], self.name, {"rule": "shell"}, seconds))

    async def _lacking(self, source: str, stderr: str) -> str:
        """Return which commands the sandbox does not have, and how to add them; "" if it has all commands."""
        return await Runtimes(self.sandbox).lacking("bash", Need(source, "", stderr))


def shell_task(
    *, sandbox: Sandbox | None = None, timeout_s: float = 10.0, memory_mb: int = 512
) -> ShellVerifier | None:
    """Return the verifier of shell tasks; None without a sandbox, because no script can run then."""
    return None if sandbox is None else ShellVerifier(sandbox, timeout_s, memory_mb)


def expected_of(query: Query) -> Expected | None:
    """Return the shell task of ``query``; None if the query has no shell task, or if the task cannot be read."""
    check = (query.reference.checks or {}).get("shell")
    if not isinstance(check, Mapping):
        return None
    files, after, stdout = check.get("files") or {}, check.get("after") or {}, check.get("stdout")
    if not isinstance(files, Mapping) or not isinstance(after, Mapping) or not (after or stdout is not None):
        return None
    if any(path.startswith("/") or ".." in path.split("/") for path in map(str, files)):
        return None
    texts = {str(path): str(text) for path, text in files.items()}
    wanted = {str(path): None if text is None else str(text) for path, text in after.items()}
    return Expected(texts, wanted, None if stdout is None else str(stdout), bool(check.get("others", True)))


def read_state(output: str) -> dict[str, str] | None:
    """Return {path: text} from the output of the program ``STATE``; None if the output is not complete."""
    lines = output.splitlines()
    if not lines or not lines[0].startswith("status "):
        return None
    left: dict[str, str] = {}
    for line in lines[1:]:
        path, _, text = line.partition(" ")
        try:
            if path in _UNREAD:
                left[_decoded(text)] = _CONTENT_UNKNOWN + path
                continue
            left[_decoded(path)] = _decoded(text)
        except (binascii.Error, ValueError):
            return None
    return left


def first_difference(expected: Expected, left: Mapping[str, str]) -> str:
    """Return the first difference between the expected state and ``left``, the files after the script; "" if none."""
    for path, text in expected.after.items():
        if text is None and path in left:
            return f"the file {path} should not exist"
        if text is not None and (path not in left or left[path].startswith(_CONTENT_UNKNOWN)):
            return f"there is no file {path}" + (" below 1 MB" if path in left else "")
        if text is not None and not same_text(text, left[path]):
            return f"the file {path} is {short(left[path])}; expected {short(text)}"
    if expected.stdout is not None and not same_text(expected.stdout, left.get(".answer.out", "")):
        return f"the output is {short(left.get('.answer.out', ''))}; expected {short(expected.stdout)}"
    return "" if expected.others else _changed_too_much(expected, left)


def _changed_too_much(expected: Expected, left: Mapping[str, str]) -> str:
    folder = _CONTENT_UNKNOWN + "folder"
    kept = {path: text for path, text in left.items() if not path.startswith(".answer.") and text != folder}
    for path in sorted({*kept, *expected.files} - set(expected.after)):
        if kept.get(path) != expected.files.get(path):
            return f"the file {path} was {'changed' if path in kept and path in expected.files else 'added or removed'}"
    return ""


def same_text(one: str, other: str) -> bool:
    """Return whether two texts have the same lines. White space at the end of a line or of the text is ignored."""
    lines = [[line.rstrip() for line in text.rstrip().splitlines()] for text in (one, other)]
    return lines[0] == lines[1]


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")
