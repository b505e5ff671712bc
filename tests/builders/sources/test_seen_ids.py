"""``SeenIds`` behaves like a set and needs a tenth of its memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.sources import distinct
from bestofn.builders.sources.distinct import SeenIds


@given(names=st.lists(st.integers(0, 60).map(str), max_size=120))
def test_behaves_like_a_set(names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "RECENT", 4)
        ids, known = SeenIds(), set()
        for name in names:
            assert ids.add(name) == (name not in known)
            known.add(name)
