"""Verdicts on programs in a real sandbox, for test files that list programs with their expected outcome."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import pytest

from bestofn.builders.errors import SandboxError
from bestofn.builders.records import Candidate, CodeTests, Query, Reference, Verdict
from bestofn.verifiers.code_verifier import CodeVerifier

TOO_BUSY = "too busy to time a program"  # such an execution says nothing about the program
TRIES = 4


def written(*cases: Any, kind: str = "asserts", language: str = "python", **more: Any) -> CodeTests:
    """Return tests with ``cases``. Each case is source code or, for the kind ``function``, a dictionary."""
    listed = tuple({"source": case} if isinstance(case, str) else case for case in cases)
    return CodeTests(kind, language, listed, **more)  # type: ignore[arg-type]


def verdicts_in(backend: Any, programs: Mapping[str, tuple[CodeTests, str]]) -> dict[str, Verdict]:
    """Return the verdict on each program. Skips the test if the sandbox cannot run on this machine."""

    async def every() -> dict[str, Verdict]:
        async with backend(workers=1) as sandbox:
            verifier = CodeVerifier(sandbox)
            found: dict[str, Verdict] = {}
            for name, (tests, program) in programs.items():
                query = Query("q", "code", ({"role": "user", "content": "?"},), reference=Reference(tests=tests))
                answer = f"````{tests.language}\n{program}\n````"
                candidate = Candidate(0, ({"role": "assistant", "content": answer},))
                for _ in range(TRIES):
                    found[name] = await verifier.verify(query, candidate)
                    if TOO_BUSY not in found[name].explanation:
                        break
            return found

    try:
        return asyncio.run(every())
    except SandboxError as error:
        if os.environ.get("BESTOFN_REQUIRE_DOCKER"):
            raise
        pytest.skip(str(error))
