"""Curator: one request per completion, because it keeps only the first completion of a reply.

pip install 'bespokelabs-curator==0.1.31' aiohttp
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from work import MODEL, N, Work, given_work


def run(work: Work) -> None:
    """Sample all completions with ``curator.LLM``."""
    os.environ.update(OPENAI_API_KEY="none", CURATOR_CACHE_DIR=os.getcwd(), TELEMETRY_ENABLED="0")
    if (
        litellm := find_spec("litellm")
    ) and litellm.origin:  # it contains the vocabulary that tiktoken downloads otherwise
        os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers")
    from bespokelabs import curator  # type: ignore[import-not-found]
    from datasets import Dataset

    class Answers(curator.LLM):
        """Sends the question of a row as the prompt."""

        def prompt(self, row: dict) -> str:
            return row["question"]

        def parse(self, row: dict, response: str) -> dict:
            return {"question": row["question"], "answer": response}

    limits = {"max_requests_per_minute": 10_000_000, "max_tokens_per_minute": 10_000_000_000}
    engine = Answers(
        model_name=MODEL,
        backend="openai",
        backend_params={"base_url": work.url, "max_concurrent_requests": work.concurrency, **limits},
    )
    # A row with its number, because equal requests would be answered from the cache.
    engine(Dataset.from_list([{"question": f"{prompt} ({number})"} for prompt in work.prompts for number in range(N)]))


if __name__ == "__main__":
    run(given_work())
