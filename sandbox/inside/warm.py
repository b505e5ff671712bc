"""Runs a sample program and its tests in a new box, so that the children of the box need less processor time.

Python executes a function faster after several calls. It then stores the results of its lookups in memory, and
forked children inherit this memory. Without these calls, each child would do the lookups itself. It would also write to
memory pages that it shares with its parent, and the kernel would copy each of these pages.

``start`` calls ``warm_up`` before the first request, when no program exists. The sample is a constant of this module.
"""

from __future__ import annotations

import json
import os
import sys

from bestofn.sandbox.inside import driver, plain, program, texts
from bestofn.sandbox.inside.exported import Exported, is_request
from bestofn.sandbox.inside.link import Link, SharedLink

_TIMES = 12  # Python specializes a function after 8 calls
_SOURCE = "def double(x):\n    return 2 * x\n"
_JOB = {
    "setup": "",
    "cases": ["def check(candidate):\n    assert candidate(4) == 8\n    assert candidate([1]) == [1, 1]\n",
              "assert double(4) == 8"],
    "entry_point": "double",
    "key": "",
}  # fmt: skip
_MODULES = ("__main__", "solution")  # the tests replace them


class _Loop(Link):
    """The driver's link to a program in the same process. The program answers when the driver wants to receive."""

    def __init__(self, exported: Exported, incoming: int, outgoing: int) -> None:
        super().__init__(incoming, outgoing)
        self.exported = exported

    def receive(self) -> plain.Form:
        """Let the program answer the request that the driver has sent, and return the answer."""
        link = self.exported.link
        link.send(self.exported.answer(link.take(is_request)))
        return super().receive()


def warm_up() -> None:
    """Run the sample several times. ``sys.modules`` is restored afterwards."""
    texts.python_folders()
    before = {name: sys.modules.get(name) for name in _MODULES}
    for _ in range(_TIMES):
        program.rehearse()
        _converse()
    for name, module in before.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


def _converse() -> None:
    """Run the tests of the sample once. Raises ``RuntimeError`` if a test fails."""
    requests, to_program = os.pipe()
    answers, to_driver = os.pipe()
    try:
        job = json.loads(json.dumps(_JOB))
        exported = Exported(program.load(_SOURCE, "solution"), SharedLink(requests, to_driver))
        failed = [line for line in driver.verdicts(job, _Loop(exported, answers, to_program)) if not line["passed"]]
    finally:
        for end in (requests, to_program, answers, to_driver):
            os.close(end)
    if failed:
        raise RuntimeError(f"the sample program fails its tests: {failed[0]['error']}")
