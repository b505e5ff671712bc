"""Runs a sample program and its tests in a new box, so that the children of the box need less processor time.

Python executes a function faster after several calls. It then stores the results of its lookups in memory, and
forked children inherit this memory. Without these calls, each child would do the lookups itself. It would also write to
memory pages that it shares with its parent, and the kernel would copy each of these pages.

``start`` calls ``warm_up`` before the first request, when no program exists. The sample is a constant of this module.
"""

from __future__ import annotations

import ast
import sys

from bestofn.sandbox.inside import plain, program
from bestofn.sandbox.inside.case_runner import CaseRunner

_TIMES = 12  # Python specializes a function after 8 calls
_SOURCE = "def double(x):\n    return 2 * x\n"
_CASES = ("def check(candidate):\n    assert candidate(4) == 8\n", "assert double(4) == 8")
_MODULES = ("__main__", "solution")  # the tests replace them


def warm_up() -> None:
    """Run the sample several times. ``sys.modules`` is restored afterwards."""
    before = {name: sys.modules.get(name) for name in _MODULES}
    for _ in range(_TIMES):
        program.rehearse()
        runner = CaseRunner(ast.parse(""), [ast.parse(case) for case in _CASES], "double")
        runner.begin()
        module = program.load(_SOURCE, "solution")
        plain.dumps({"value": plain.encode(program.find_function(module, "double")(*plain.decode([4])))})
        runner.use(module)
        for case in runner.cases:
            runner.run(case)
    for name, module_before in before.items():
        if module_before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module_before
