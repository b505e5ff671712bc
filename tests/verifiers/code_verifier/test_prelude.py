"""The imports that a benchmark's harness puts before each program."""

from __future__ import annotations

import pytest

from bestofn.builders.records import CodeTests, Query
from bestofn.verifiers.code_verifier.prelude import NAMES, offered_names, put_before, with_prelude
from bestofn.verifiers.code_verifier.syntax import read_python

FUNCTION = CodeTests("function", "python", ({"args": [1], "expected": 1},), "f")
ASSERTS = CodeTests("asserts", "python", ({"source": "assert f(1) == 1"},), "f")


def query(prompt: str = "?") -> Query:
    return Query("q", "code", ({"role": "user", "content": prompt},))


def completed(source: str, offered: frozenset[str] = NAMES) -> str:
    return with_prelude(source, read_python(source), offered)


@pytest.mark.parametrize(
    "source",
    [
        "def f(xs: List[int]) -> Optional[int]: return xs[0]\nresult = f([1])",
        "def f(xs):\n    heapify(xs)\n    return heappop(xs)\nresult = f([2, 1])",
        "result = Counter('a')['a'] + bisect.bisect_left([], 1) + math.gcd(1, 1) - 1",
        "result = int(random.random() < 2) + bisect([], 1)",
        "from __future__ import annotations\ndef f(x: List[int]): return ascii_lowercase\nresult = len(f(1)) - 25",
        "def f(head: Optional[ListNode]) -> TreeNode: return TreeNode(1).val\nresult = f(ListNode())",
        "result = reduce(lambda a, b: a * b, accumulate(deque([1])), 1)",
        "class Solution:\n    @cache\n    def f(self): return 1\nresult = Solution().f()",
        "def f(n): return f(n - 1) if n else 1\nresult = f(5000)",
    ],
)
def test_programs_use_the_names_of_the_prelude(source: str) -> None:
    import sys

    limit = sys.getrecursionlimit()
    scope: dict[str, object] = {}
    try:
        exec(compile(completed(source), "main.py", "exec", dont_inherit=True), scope)  # noqa: S102
    finally:
        sys.setrecursionlimit(limit)
    assert scope["result"] == 1


@pytest.mark.parametrize(
    "source",
    [
        "class Counter:\n    pass\nCounter()",
        "from mine import List\nx: List = 1",
        "def search(x): return x\nsearch(1)",
        "class Solution:\n    def search(self, x): return self.search(x)",
        "def f(count):\n    return count",
        "print(pow(2, 3), sum([1]))",
    ],
)
def test_names_that_a_program_defines_are_not_imported(source: str) -> None:
    assert with_prelude(source, read_python(source), NAMES - {"sys"}) == source


def test_harnesses_without_a_prelude_offer_only_what_the_prompt_promises() -> None:
    assert offered_names(FUNCTION, query()) == NAMES
    assert offered_names(CodeTests("stdin", "python", ({"stdin": "", "stdout": "1"},)), query()) == NAMES
    solution = CodeTests("check", "python", ({"source": "def check(candidate): ..."},), "Solution().f")
    assert offered_names(solution, query()) == NAMES
    assert offered_names(ASSERTS, query("Use math.sqrt to find the root.")) == frozenset()
    assert offered_names(ASSERTS, query("def f(x: List[int]) -> int:")) == {"List"}
    assert offered_names(ASSERTS, query("from typing import List\ndef f(x: List[int]) -> int:")) == frozenset()
    assert offered_names(CodeTests("function", "javascript", FUNCTION.cases, "f"), query()) == frozenset()


def test_future_imports_stay_at_the_top() -> None:
    assert put_before("import math", "from __future__ import annotations\nx = 1").startswith("from __future__")
    assert put_before("import math", "x = 1") == "import math\nx = 1"


def test_a_program_with_many_functions_is_searched_once() -> None:
    """The time is linear in the number of functions. In quadratic time, this program would take minutes."""
    names = "\n".join(f"def g{number}(): return heappush" for number in range(20_000))
    assert "setrecursionlimit" not in with_prelude(names, read_python(names), NAMES)
    assert "setrecursionlimit" in with_prelude(f"{names}\ng7()\nheappush", read_python(names), NAMES)
