"""Sets the transport of the providers in a test. The fixture ``transport`` runs a test with both transports."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from bestofn.builders.providers.http_service import HttpBatchService

TRANSPORTS = ("direct", "sdk")


def use_transport(monkeypatch: pytest.MonkeyPatch, transport: str) -> str:
    """Set ``transport`` for all providers that the test creates and whose service has an SDK."""
    construct = HttpBatchService.__init__

    @functools.wraps(construct)  # its signature lists the settings
    def init(self: HttpBatchService, **settings: Any) -> None:
        construct(self, **{**settings, "transport": transport})

    monkeypatch.setattr(HttpBatchService, "__init__", init)
    return transport
