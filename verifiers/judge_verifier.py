"""A language model as a verifier: for what no program can decide, and never against what one has decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.errors import ProviderError, raise_if_it_stops_the_run
from bestofn.builders.formats.judge_reply import MOST_JUDGED, candidate_text, fenced, object_schema, reply_object
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Completion, Query, Request, Sampling, Verdict, content_text
from bestofn.verifiers.judge_prompts import SYSTEM, Prompt, prompt

SCHEMA = object_schema(
    reasoning={"type": "string"},
    equivalent={"type": ["boolean", "null"]},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)


class Judge:
    """Asks a model whether an answer is right: against the reference where there is one, else by its own lights.

    ``prompt`` names a text of ``verifiers/prompts`` (``math``, ``code``, ``tools``, ``reference``, ``appropriate``), a
    ``.md`` file of one's own, or ``auto``: by the query's split and reference. ``rubric`` is added to it, one free
    sentence or more. ``use_reference=False`` hides the reference (for datasets whose references are not trusted).

    ``samples`` replies are drawn; the majority decides and a tie abstains. The confidence is the mean of those who
    decided, times their share. A model that says it cannot tell makes an abstention; replies that cannot be read make
    an ``error``, never a ``fail``. The answers lie in the journal, under model, prompt, rubric and both texts: asking
    again costs nothing.
    """

    name = "judge"

    def __init__(
        self,
        sampler: Sampler,
        *,
        prompt: str = "auto",
        rubric: str = "",
        samples: int = 1,
        temperature: float | None = None,
        max_tokens: int = 1_500,
        use_reference: bool = True,
    ) -> None:
        if samples < 1:
            raise ValueError(f"samples is {samples}; expected at least 1")
        self.sampler, self.prompt, self.rubric = sampler, prompt, rubric
        self.samples, self.max_tokens, self.use_reference = samples, max_tokens, use_reference
        self.temperature = temperature if temperature is not None else (0.0 if samples == 1 else 0.7)

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        text = candidate_text(candidate, MOST_JUDGED)
        if not text.strip():
            return Verdict("fail", 1.0, "the answer is empty", self.name)
        question = self._prompt_for(query)
        request = self.request_for(query, text, question)
        replies = [self._read(answer, text) for answer in await self.sampler.draw(request, range(self.samples))]
        return self._decided(replies, question)

    def request_for(self, query: Query, text: str, question: Prompt) -> Request:
        """The request of one judgement."""
        material = {"question": _conversation(query)}
        reference = reference_text(query) if self.use_reference else ""
        if reference:
            material["reference"] = reference
        instruction = question.text + (f"\n\nJudge by this:\n{self.rubric}" if self.rubric else "")
        return Request(
            messages=(
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{fenced(**material, answer=text)}\n\n{instruction}"},
            ),
            sampling=Sampling(temperature=self.temperature, max_tokens=self.max_tokens),
            schema=SCHEMA,
        )

    def _prompt_for(self, query: Query) -> Prompt:
        if self.prompt != "auto":
            return prompt(self.prompt)
        if not self.use_reference or not reference_text(query):
            return prompt("appropriate")
        split = query.split.lower()
        named = {"math": "math", "gsm8k": "math", "code": "code", "humaneval": "code"}
        return prompt(
            "tools" if "tool" in split or query.reference.calls is not None else named.get(split, "reference")
        )

    def _read(self, answer: Completion | ProviderError, text: str) -> Mapping[str, Any] | str:
        raise_if_it_stops_the_run(answer)
        if isinstance(answer, ProviderError):
            return f"the judge gave no answer: {answer}"
        return reply_object(answer.text, SCHEMA, text)

    def _decided(self, replies: Sequence[Mapping[str, Any] | str], question: Prompt) -> Verdict:
        read = [reply for reply in replies if not isinstance(reply, str)]
        detail = {"judge_model": self.sampler.model, "judge_prompt": question.id, "samples": len(replies),
                  "unreadable": len(replies) - len(read), "votes": [reply["equivalent"] for reply in read]}  # fmt: skip
        if not read:
            return Verdict("error", 0.0, str(replies[0]), self.name, detail)
        right = [reply for reply in read if reply["equivalent"] is True]
        wrong = [reply for reply in read if reply["equivalent"] is False]
        if len(right) == len(wrong):
            why = "the judge cannot tell" if not right else f"the judge is divided, {len(right)} to {len(wrong)}"
            return Verdict("abstain", 0.0, f"{why}: {read[0]['reasoning']}", self.name, detail)
        side = right if len(right) > len(wrong) else wrong
        confidence = sum(reply["confidence"] for reply in side) / len(side) * len(side) / len(read)
        return Verdict("pass" if side is right else "fail", confidence, side[0]["reasoning"], self.name, detail)


def reference_text(query: Query) -> str:
    """What is known to be right, in words for a judge; "" when nothing is."""
    reference, parts = query.reference, []
    if reference.answer is not None:
        parts.append(reference.answer)
    parts += [f"also accepted: {answer}" for answer in reference.answers]
    if reference.calls is not None:
        parts.append(
            f"expected tool calls: {[dict(call) for call in reference.calls]}" if reference.calls else "no tool call"
        )
    if reference.facts:
        parts.append("the final answer must contain: " + "; ".join(reference.facts))
    if reference.tests is not None:
        cases = [dict(case) for case in reference.tests.cases[:5]]
        parts.append(f"tests ({reference.tests.kind}, {reference.tests.language}): {cases}")
    return "\n".join(parts)


def _conversation(query: Query) -> str:
    said = "\n\n".join(f"[{one.get('role')}]\n{content_text(one.get('content'))}".rstrip() for one in query.messages)
    names = [str((tool.get("function") or tool).get("name")) for tool in query.tools]
    return f"{said}\n\n[tools] {', '.join(names)}" if names else said
