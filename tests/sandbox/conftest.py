"""Fixtures of the sandbox tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from tests.requirements import missing, need


@pytest.fixture
def engine_or_none() -> Iterator[Any]:
    """Return a client of the Docker engine; None if there is no engine."""
    if missing("docker"):
        yield None
        return
    with contextlib.closing(docker.from_env()) as client:
        yield client


@pytest.fixture
def engine(engine_or_none: Any) -> Any:
    """Return a client of the Docker engine. Skips the test if there is no engine."""
    need("docker")
    return engine_or_none
