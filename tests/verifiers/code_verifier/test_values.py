"""Python tests that only call functions with plain values are read on the host; all others are left to the sandbox."""

from __future__ import annotations

import math
import types
from collections import deque
from typing import Any

import pytest

from bestofn.builders.records import CodeTests, Execution, Program
from bestofn.sandbox.inside.program import Held, find_function
from bestofn.verifiers.code_verifier.driven import with_tests
from bestofn.verifiers.code_verifier.values import NotValues, Script

TABLE = """def check(candidate):
    def close(a, b):
        for x, y in zip(a, b):
            if abs(x - y) > 1e-6:
                return False
        return len(a) == len(b)
    for given, wanted in [([1], [1.0]), ([2, 3], [2.0, 3.0])]:
        assert close(candidate(given), wanted), f"wrong for {given}"
"""
STATEFUL = """def run(x):
    return 0
class Solution:
    n = 0
    def run(self, x):
        self.n += x
        return self.n
"""
# source, entry point, calls [(name, args)], results, whether the test passes
READ: dict[str, tuple[str, str, list[Any], list[Any], bool]] = {
    "an equation": ("assert f([3, 1]) == [1, 3]", "", [("f", [[3, 1]])], [[1, 3]], True),
    "a wrong result": ("assert f(1) == 2", "", [("f", [1])], [3], False),
    "a tolerance": ("import math\nassert math.isclose(f(2), 4.0, rel_tol=0.1)", "", [("f", [2])], [4.1], True),
    "a table and a helper": (TABLE, "g", [("g", [[1]]), ("g", [[2, 3]])], [[1.0], [2.0, 3.0]], True),
    "a table and a wrong result": (TABLE, "g", [("g", [[1]]), ("g", [[2, 3]])], [[1.0], [2.0, 3.5]], False),
    "several in one": ("assert f(1) == 2 and f(2) == 3", "", [("f", [1]), ("f", [2])], [2, 3], True),
    "a comprehension": ("assert [x + 1 for x in f(1)] == [2, 3]", "", [("f", [1])], [[1, 2]], True),
    "a method of Solution": ("assert Solution().run(4) is None", "", [("run", [4])], [None], True),
    "views of a result": ("assert f(1).keys() == {'b', 'a'}", "", [("f", [1])], [{"a": 1, "b": 2}], True),
    "a view is no list": ("assert f(1).values() == [1]", "", [("f", [1])], [{"a": 1}], False),
    "an iterator is no list": ("assert reversed(f(1)) == [2, 1]", "", [("f", [1])], [[1, 2]], False),
    "an iterator ends once": ("z = zip([1])\nassert f(list(z) + list(z)) == 1", "", [("f", [[(1,)]])], [1], True),
    "a loop over its list": (
        "x = [3, 2, 1]\nfor y in x:\n    x.remove(y)\nassert f(x) == 1",
        "",
        [("f", [[2]])],
        [1],
        True,
    ),
    "an early default": ("i = 1\ng = lambda x=i: x\ni = 2\nassert f(g()) == 1", "", [("f", [1])], [1], True),
    "a kept default": (
        "def g(a=[]):\n    a.append(1)\n    return len(a)\nassert f(g() + g()) == 1",
        "",
        [("f", [3])],
        [1],
        True,
    ),
    "an iterable with an effect": (
        "x = [[1], [2]]\nassert [f(y) for y in x.pop()] == [0] and len(x) == 1",
        "",
        [("f", [2])],
        [0],
        True,
    ),
    "another kind of sequence": ("assert [x for x in f(1)] == [1]", "", [("f", [1])], [deque([1])], True),
    "a comparison that ends early": ("assert not 2 < f(1) < None", "", [("f", [1])], [1], True),
    "a test function": (
        "def test_one():\n    got = f('a')\n    assert got.upper() == 'A'",
        "",
        [("f", ["a"])],
        ["a"],
        True,
    ),
}
LEFT = {
    "an expected error": "import pytest\nwith pytest.raises(ValueError):\n    f(1)",
    "an argument that depends on a result": "assert f(f(1)) == 1",
    "a class": "s = Stack()\nassert s.pop() == 1",
    "a loop over a result": "for x in f(1):\n    assert x > 0",
    "a random argument": "import random\nassert f(random.random()) < 1",
    "identity": "x = [1]\nassert f(x) is x",
    "a mock": "from unittest.mock import Mock\nassert f(Mock()) == 1",
    "a call that another result decides": "assert f(1) or f(2) == 3",
    "an endless loop": "while True:\n    assert f(1)",
    "a huge number": "assert f(9 ** 9 ** 9) == 1",
    "no call": "assert 1 == 1",
    "a function as an argument": "assert f(len) == 1",
    "an argument with the same list twice": "assert f([[0]] * 2) == 1",
    "a list that changes under another name": "a = b = []\na += [1]\nassert f(b) == 1",
    "a changed argument": "x = [1]\ny = f(x)\nx.append(2)\nassert y == [1]",
    "a changed result": "x = f(1)\nx.append(2)\nassert f(1) == [1]",
    "any call": "assert any(f(x) == 1 for x in [1, 2])",
    "a call that a comparison decides": "assert not f(1) < f(2) < f(3)",
    "a stored generator expression": "g = (f(x) for x in [1])\nassert list(g) == [1] and list(g) == []",
    "a generator": "def g():\n    for x in []:\n        yield x\nassert f(g() is None) == 1",
    "a parametrized test": "@mark('x')\ndef test_f(x):\n    assert f(1) == 1",
}


def script(source: str, entry: str = "") -> Script:
    return Script(with_tests(Program("python", ""), CodeTests("asserts", "python", ({"source": source},), entry)))


@pytest.mark.parametrize("name", READ)
def test_calls_are_collected_and_their_results_decide(name: str) -> None:
    source, entry, wanted, results, passes = READ[name]
    assert [(call["name"], call["args"]) for call in script(source, entry).collect()] == wanted
    execution = Execution("ok", 0, "", "", 0.0, returns=tuple({"value": one} for one in results))
    (verdict,) = script(source, entry).decide(execution)
    assert (verdict is None) == passes


@pytest.mark.parametrize("name", LEFT)
def test_everything_else_is_left_to_the_sandbox(name: str) -> None:
    with pytest.raises(NotValues):
        script(LEFT[name]).collect()


@pytest.mark.parametrize(
    "answer", [{"error": "NotPlain: a generator is not plain data"}, {"value": 1, "changed": True}]
)
def test_results_that_need_more_than_their_value_are_left_too(answer: dict[str, Any]) -> None:
    with pytest.raises(NotValues):
        script("assert f(1) == 1").decide(Execution("ok", 0, "", "", 0.0, returns=(answer,)))


@pytest.mark.parametrize(
    "source",
    [
        "x = [2, 1]\nassert f(x) == sorted(x) and x",
        "x = [2, 1]\ny = x\nassert f(x) == [1, 2] and y == [2, 1]",
        "x = [2, 1]\nfor i in [0]:\n    assert f(x) == [1, 2]",
        "def g(a):\n    return f(a)\nassert g([2, 1]) == [1, 2]",
        "x = [2, 1]\ndef g():\n    return x\nassert f(g()) == [1, 2]",
        "x = ([2, 1],)\nassert f(*x) == [1, 2]",
    ],
)
def test_an_argument_that_the_tests_can_read_again_is_watched(source: str) -> None:
    (call,) = script(source).collect()
    assert call["watched"]


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("a = []\ndef g(x):\n    a.append(x)\ng(f(1))\nassert f(a) == 1", [1, 1]),
        ("a = []\n[a.append(x) for x in f(1)]\nassert f(len(a)) == 1", [[5], 1]),
        ("a = []\ndef g(x):\n    a.append(x)\ng(f(1))\nif a:\n    assert f(2) == 1\nassert f(3) == 1", [1, 1]),
    ],
)
def test_calls_that_depend_on_a_result_in_a_hidden_way_are_left(source: str, values: list[Any]) -> None:
    with pytest.raises(NotValues):
        script(source).decide(Execution("ok", 0, "", "", 0.0, returns=tuple({"value": one} for one in values)))


@pytest.mark.parametrize(
    ("source", "value"), [("assert f(1) == [1]", [math.nan]), ("assert f(1) in [float('nan')]", math.nan)]
)
def test_nan_that_may_be_compared_by_identity_is_left(source: str, value: Any) -> None:
    with pytest.raises(NotValues):
        script(source).decide(Execution("ok", 0, "", "", 0.0, returns=({"value": value},)))


def test_a_setup_that_changes_a_part_of_a_value_is_left() -> None:
    tests = CodeTests("asserts", "python", ({"source": "assert f(x) == 1"},), setup="x = [0]\nx[0] = 1")
    with pytest.raises(NotValues):
        Script(with_tests(Program("python", ""), tests)).collect()


def test_a_method_that_was_read_once_is_of_one_object() -> None:
    one, two = script("g = Solution().run\nassert g(1) == 1 and g(2) == 2").collect()
    assert one["instance"] == two["instance"]
    one, two = script("assert Solution().run(1) == 1 and Solution().run(2) == 2").collect()
    assert one["instance"] == two["instance"] == 0
    (one,) = script("assert run(1) == 1").collect()
    assert "instance" not in one


def test_a_program_that_ends_early_fails_the_rest() -> None:
    (verdict,) = script("assert f(1) == 1").decide(Execution("ok", 0, "", "", 0.0))
    assert verdict is not None
    assert "ended before" in str(verdict["why"])


def test_a_call_with_an_instance_finds_the_method() -> None:
    module = types.ModuleType("solution")
    exec(STATEFUL, module.__dict__)  # noqa: S102
    instances: dict[int, Any] = {}
    assert find_function(module, "run")(5) == 0
    assert [find_function(module, "run", instances, number)(5) for number in (0, 0, 1, 1, 2)] == [5, 5, 5, 10, 5]


def test_a_value_that_the_program_changes_later_is_told() -> None:
    held, early = Held(), [1]
    assert held.keep(early)
    assert held.keep([2])
    assert held.is_unchanged()
    early.append(3)
    assert not held.is_unchanged()
    assert not held.keep([early])
