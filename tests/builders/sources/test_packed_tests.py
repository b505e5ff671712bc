"""LiveCodeBench's packed tests are decoded without executing their pickle."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.sources.code_forms import livecodebench, pickled_text
from tests.builders.sources.dataset_files import packed


class Hostile:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (print, ("a pickle ran",))


def test_a_packed_text_is_read_and_no_pickle_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert pickled_text(packed([1])) == "[1]"
    for protocol in range(2, 6):
        text = "naïve \U0001f40d\n" * 50
        assert pickled_text(base64.b64encode(zlib.compress(pickle.dumps(text, protocol))).decode()) == text
    for other in (Hostile(), ["a", "b"], ("a",), {"a": "b"}, b"a", 7, ["a", Hostile()]):
        assert pickled_text(base64.b64encode(zlib.compress(pickle.dumps(other))).decode()) is None
    assert "a pickle ran" not in capsys.readouterr().out
    assert pickled_text(packed("x" * 5000), max_bytes=1000) is None
    assert pickled_text(packed([1])[:-8]) is None


def test_unreadable_private_tests_leave_no_tests() -> None:
    public = json.dumps([{"input": "1", "output": "1", "testtype": "stdin"}])
    assert livecodebench(public) == ("stdin", ({"stdin": "1", "stdout": "1"},), "")
    assert livecodebench("eJxLSk0EAAHLAPI=") is None
    assert livecodebench([public, "eJxLSk0EAAHLAPI="]) is None
    assert livecodebench([public, packed("no list")]) is None
    assert livecodebench([public, None]) == livecodebench(public)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: base64.b64encode(zlib.compress(raw)).decode()))
def test_packed_tests_of_any_bytes_never_raise(text: str) -> None:
    assert pickled_text(text) is None or isinstance(pickled_text(text), str)
    livecodebench(["[]", text])
