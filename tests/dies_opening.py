"""A verifier that kills its process when it is opened, for tests of lost workers."""

from __future__ import annotations

import os

from tests.last_number import LastNumber


class DiesOpening(LastNumber):
    async def __aenter__(self) -> None:
        os._exit(1)

    async def __aexit__(self, *exc: object) -> None: ...
