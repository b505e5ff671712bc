"""A value that ``has_exact_type`` accepts is one that pydantic returns unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Interval, MinLen
from pydantic import ConfigDict, TypeAdapter

from bestofn.builders.config.exact_types import has_exact_type
from bestofn.builders.protocols import Reward
from bestofn.builders.records import Count, PositiveNumber, Sampling, Share
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.reward.verification_reward import VerificationReward

HINTS: Sequence[Any] = (
    *(bool, int, float, str, int | None, str | int, float | int, Literal["a", "b"], Literal[1, True], Count, Share),
    *(PositiveNumber, Annotated[int, Ge(1)] | None, Annotated[float, Interval(gt=0, le=2)], Annotated[str, MinLen(9)]),
    *(Sequence[str], list[int], tuple[str, ...], Mapping[str, Any], dict[str, int], Mapping[str, Sequence[float]]),
    *(Sampling, RateLimits, Reward, Callable[[int], int], Literal["a"] | Sequence[Literal["a"]]),
)
VALUES: Sequence[Any] = (
    *(True, False, 0, 1, -1, 2**70, 0.0, 0.5, 1.0, -0.5, float("nan"), float("inf"), "", "a", "1", "true", "\ud800"),
    *(
        "ä",
        None,
        [],
        ["a"],
        ["a", 1],
        [1],
        [True],
        [0.5],
        ("a",),
        {},
        {"a": 1},
        {"a": 0.5},
        {"a": [1]},
        {1: 1},
        {"\ud800": 1},
    ),
    *(Sampling(), RateLimits(), VerificationReward(), len, object()),
)


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_accepted_values_are_those_that_pydantic_returns_unchanged(hint: Any) -> None:
    config = None if hint in (Sampling, RateLimits) else ConfigDict(arbitrary_types_allowed=True)
    adapter: TypeAdapter[Any] = TypeAdapter(hint, config=config)
    for value in VALUES:
        if has_exact_type(value, hint):
            assert _same(adapter.validate_python(value), value), (value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        *(
            (64, int),
            (0.5, Share),
            (None, int | None),
            ("a", Literal["a"]),
            ("text", str | None),
            (["a"], Sequence[str]),
        ),
        *(
            ({"a": 1}, Mapping[str, Any]),
            (Sampling(), Sampling),
            (len, Callable[[Any], int]),
            (VerificationReward(), Reward),
        ),
    ],
)
def test_usual_values_need_no_pydantic(value: object, hint: Any) -> None:
    assert has_exact_type(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"), [(True, int), (1, float), ("1", int), (2.0, Share), (("a",), Sequence[str])]
)
def test_other_values_are_left_to_pydantic(value: object, hint: Any) -> None:
    assert not has_exact_type(value, hint)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and (one == other or (one != one and other != other))
