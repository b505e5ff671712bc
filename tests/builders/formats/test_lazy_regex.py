"""Every lazy regular expression of the package is valid, and behaves as a compiled expression."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
import re
from collections.abc import Iterator

import bestofn.verifiers
from bestofn.builders.formats.lazy_regex import regex


def lazy(value: object, depth: int = 3) -> Iterator[object]:
    if type(value) is type(regex("")):
        yield value
    elif depth and isinstance(value, tuple | list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from lazy(part, depth - 1)


def test_every_expression_of_the_verifiers_compiles() -> None:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(bestofn.verifiers.__path__, "bestofn.verifiers.")
    ]
    expressions = [one for module in modules for value in vars(module).values() for one in lazy(value)]
    assert len(expressions) > 300
    for one in expressions:
        assert isinstance(one, type(regex("")))
        assert re.compile(one.pattern, one.flags)


def test_it_behaves_like_a_compiled_expression() -> None:
    lazy_one, compiled = regex(r"(\d)(b)?", re.IGNORECASE), re.compile(r"(\d)(b)?", re.IGNORECASE)
    text = "a1B c2 3b"
    assert [match.groups() for match in lazy_one.finditer(text)] == [
        match.groups() for match in compiled.finditer(text)
    ]
    assert lazy_one.sub("x", text, count=1) == compiled.sub("x", text, count=1)
    assert lazy_one.search(text, 3).span() == compiled.search(text, 3).span()
    assert (lazy_one.pattern, lazy_one.flags, lazy_one.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert lazy_one.groupindex == compiled.groupindex


def test_it_is_copied_and_pickled_before_and_after_its_first_use() -> None:
    one = regex("a+")
    for _ in range(2):
        assert pickle.loads(pickle.dumps(one)).findall("baa") == copy.deepcopy(one).findall("baa") == ["aa"]
        assert one.findall("baa") == ["aa"]
