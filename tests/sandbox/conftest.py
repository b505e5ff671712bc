"""Fixtures of the sandbox tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def engine_or_none() -> Iterator[Any]:
    """Return a client of the Docker engine; None if there is no engine."""
    docker = pytest.importorskip("docker")
    try:
        client = docker.from_env()
        client.ping()
    except Exception:  # the library raises several kinds of errors
        if os.environ.get("BESTOFN_REQUIRE_DOCKER"):
            raise
        yield None
        return
    yield client
    client.close()


@pytest.fixture
def engine(engine_or_none: Any) -> Any:
    """Return a client of the Docker engine. Skips the test if there is no engine."""
    if engine_or_none is None:
        pytest.skip("no Docker engine answers")
    return engine_or_none
