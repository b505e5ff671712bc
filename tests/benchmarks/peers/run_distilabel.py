"""distilabel: n completions per request. It waits for a whole batch of rows before the next batch, so a batch has as many
rows as requests may be in flight.

pip install 'distilabel[openai]==1.5.3' requests aiohttp
"""

from __future__ import annotations

from work import MODEL, N, Work, given_work


def run(work: Work) -> None:
    """Sample all completions with the task ``TextGeneration``."""
    from distilabel.models import OpenAILLM  # type: ignore[import-not-found]
    from distilabel.pipeline import Pipeline  # type: ignore[import-not-found]
    from distilabel.steps import LoadDataFromDicts  # type: ignore[import-not-found]
    from distilabel.steps.tasks import TextGeneration  # type: ignore[import-not-found]

    with Pipeline(name="speed") as pipeline:
        load = LoadDataFromDicts(data=[{"instruction": prompt} for prompt in work.prompts], batch_size=work.concurrency)
        generate = TextGeneration(
            llm=OpenAILLM(model=MODEL, base_url=work.url, api_key="none"),
            num_generations=N,
            group_generations=True,
            input_batch_size=work.concurrency,
        )
        load >> generate  # type: ignore[reportUnusedExpression]
    pipeline.run(use_cache=False)


if __name__ == "__main__":
    run(given_work())
