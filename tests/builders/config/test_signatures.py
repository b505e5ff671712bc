"""The parameters of a constructor are the same if they are read from its source text or from the imported class."""

from __future__ import annotations

import pytest

from bestofn.builders.config.choices import choices_of, constructor_of
from bestofn.builders.config.signatures import hints_of, keyword_parameters
from bestofn.builders.config.source_signatures import signature


@pytest.mark.parametrize("name", sorted(set(choices_of("provider")) - {"local"}))
def test_source_and_class_have_the_same_parameters(name: str) -> None:
    constructor = constructor_of("provider", name)
    parameters = keyword_parameters(constructor)
    described = signature(f"{constructor.__module__}.{constructor.__qualname__}")
    assert parameters
    assert described
    assert {one.name for one in described.parameters} == set(parameters)
    assert set(parameters) <= set(hints_of(constructor))
    required = {key for key, value in parameters.items() if value.default is value.empty}
    assert required == {one.name for one in described.parameters if one.default is None}
