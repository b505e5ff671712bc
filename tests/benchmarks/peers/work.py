"""The work of an engine in this comparison. The scripts ``run_*.py`` run in environments without bestofn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

MODEL, N = "mock-model", 4


@dataclass(frozen=True, slots=True)
class Work:
    """To sample ``N`` completions for each prompt from the server at ``url``, with ``concurrency`` requests at once."""

    url: str
    prompts: Sequence[str]
    concurrency: int


def given_work() -> Work:
    """Return the work that the command line describes: URL PROMPTS CONCURRENCY."""
    url, prompts, concurrency = sys.argv[1:]
    questions = [f"Question {number}: what is {number}+1?" for number in range(int(prompts))]
    return Work(url, questions, int(concurrency))
