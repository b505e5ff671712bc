"""Builds the requests that the candidates of a query are sampled with.

``builders.stages.generate`` asks a ``RequestBuilder`` which requests bring the candidates that it needs. The persona,
the prompt variant and the answer form go into the system prompt of the request, never into the stored prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.records import (
    Arm,
    Candidate,
    JsonObject,
    Persona,
    Query,
    Request,
    Sampling,
    paragraphs,
    with_system_text,
)
from bestofn.builders.stages import prompt_variants, steps_form

AnswerForm = Literal["text", "steps"]


@dataclass(frozen=True, slots=True)
class CandidateRequest:
    """One request and the candidates that its samples become.

    Sample ``samples[k]`` of ``request`` becomes the candidate number ``candidates[k]``.
    """

    request: Request
    candidates: Sequence[int]
    samples: Sequence[int]
    variant: str = ""
    arm: Arm = "sample"


class RequestBuilder:
    """Turns a query into requests: candidate i is sampled with prompt variant i modulo their number.

    ``variants`` names prompt variants (see ``prompt_variants``). ``own_variants`` adds the user's: name -> text.
    ``answer_form`` "steps" requests JSON and stores it as text (see ``steps_form``). ``schema`` is the JSON Schema of a
    structured response; None with "steps": the schema of ``steps_form``.
    """

    def __init__(
        self,
        *,
        sampling: Sampling = Sampling(),
        persona: Persona | None = None,
        system_prompt: str = "",
        variants: Sequence[str] = (),
        own_variants: Mapping[str, str] | None = None,
        answer_form: AnswerForm = "text",
        schema: JsonObject | None = None,
    ) -> None:
        self.sampling = sampling
        self.variants = prompt_variants.select(variants, own_variants or {})
        self._before = paragraphs((persona.text if persona else "", system_prompt))
        self._in_steps = answer_form == "steps"
        self._schema = steps_form.SCHEMA if self._in_steps and schema is None else schema

    def request(self, query: Query, variant: str | None = None) -> Request:
        """The request for ``query`` with a prompt variant; None: the first one."""
        text = self.variants[next(iter(self.variants)) if variant is None else variant]
        after = paragraphs((text, steps_form.INSTRUCTION if self._in_steps else ""))
        return Request(
            messages=with_system_text(query.messages, self._before, after),
            tools=query.tools,
            sampling=self.sampling,
            schema=self._schema,
        )

    def requests(self, query: Query, candidates: Sequence[int]) -> Iterator[CandidateRequest]:
        """One request per prompt variant that is needed for ``candidates``.

        The samples of a request are numbered without gaps, so that one call to the service can bring all of them.
        """
        width = len(self.variants)
        for position, variant in enumerate(self.variants):
            numbers = [number for number in candidates if number % width == position]
            if numbers:
                samples = [number // width for number in numbers]
                yield CandidateRequest(self.request(query, variant), numbers, samples, variant)

    def samples_per_request(self, n: int) -> list[int]:
        """The number of samples that each variant's request brings when a query has ``n`` candidates."""
        width = len(self.variants)
        return [len(range(position, n, width)) for position in range(width)]

    def read(self, candidate: Candidate) -> Candidate:
        """``candidate`` with its response in the form that is stored: steps become text."""
        return steps_form.as_text(candidate) if self._in_steps else candidate
