"""A task for ``inspect eval``: sums of two numbers, with a system prompt and stop strings."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def arithmetic() -> Task:
    samples = [Sample(input=f"What is {n} + {n + 1}?", target=str(2 * n + 1)) for n in range(48)]
    config = GenerateConfig(max_tokens=64, seed=1, temperature=0.5, top_p=0.9, logprobs=True, top_logprobs=2)
    return Task(samples, solver=generate(), scorer=includes(), config=config)
