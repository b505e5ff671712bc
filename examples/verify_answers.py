"""Verify single answers, without a run and without a model."""

import asyncio

from bestofn import get_verifier
from bestofn.builders.records import Candidate, Query, Reference

query = Query(
    "q1", "math", ({"role": "user", "content": "How long is the rope?"},), reference=Reference(answer="4.8 m")
)
answers = [r"The rope is \boxed{480\ \text{cm}} long.", r"\boxed{4.8}", r"\boxed{48\ \text{m}}", "I do not know."]


async def main() -> None:
    verifier = get_verifier("math")
    for index, answer in enumerate(answers):
        candidate = Candidate(index, ({"role": "assistant", "content": answer},))
        verdict = await verifier.verify(query, candidate)
        print(f"{verdict.outcome:<8} {verdict.confidence:.2f}  {answer}  ({verdict.explanation})")


asyncio.run(main())
