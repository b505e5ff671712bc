"""Builds the requests for the candidates of a query.

``builders.stages.generate`` calls ``RequestBuilder``. The persona, the prompt variant and the answer form are added to
the system prompt of the request, never to the stored prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.formats.exact_json import check_json
from bestofn.builders.formats.prompt_texts import paragraphs, with_system_text
from bestofn.builders.records import Arm, Candidate, JsonObject, Persona, Query, Request, Sampling
from bestofn.builders.stages import prompt_variants, steps_form

AnswerForm = Literal["text", "steps"]


@dataclass(frozen=True, slots=True)
class CandidateRequest:
    """One request and the indices of the candidates that it produces.

    Sample ``samples[k]`` of ``request`` becomes the candidate with the index ``candidates[k]``. ``variant`` is the
    prompt variant, and ``arm`` says how the candidates are sampled.
    """

    request: Request
    candidates: Sequence[int]
    samples: Sequence[int]
    variant: str = ""
    arm: Arm = "sample"


class RequestBuilder:
    """Builds the requests of a query. Candidate i is sampled with prompt variant i modulo the number of variants.

    ``variants`` lists names of prompt variants (see ``prompt_variants``). ``own_variants`` maps the names of the user's
    own variants to their texts. If ``answer_form`` is "steps", the response is requested as JSON and stored as text
    (see ``steps_form``). ``schema`` is the JSON Schema of a structured response; with "steps", the default is the
    schema in ``steps_form``.
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
        check_json(sampling.extra, "sampling.extra")
        self.sampling = sampling
        self.variants = prompt_variants.select(variants, own_variants or {})
        self._before = paragraphs((persona.text if persona else "", system_prompt))
        self._in_steps = answer_form == "steps"
        self._schema = steps_form.SCHEMA if self._in_steps and schema is None else schema

    def request(self, query: Query, variant: str | None = None) -> Request:
        """Return the request for ``query`` with the prompt variant ``variant``; None means the first variant."""
        text = self.variants[next(iter(self.variants)) if variant is None else variant]
        after = paragraphs((text, steps_form.INSTRUCTION if self._in_steps else ""))
        return Request(
            messages=with_system_text(query.messages, self._before, after),
            tools=query.tools,
            sampling=self.sampling,
            schema=self._schema,
        )

    def requests(self, query: Query, candidates: Sequence[int]) -> Iterator[CandidateRequest]:
        """Yield the requests for the candidates with the indices ``candidates``: one request per prompt variant in use.

        If ``candidates`` are consecutive numbers, the samples of each request are consecutive too. One service call can
        then return all samples of a request.
        """
        width = len(self.variants)
        for position, variant in enumerate(self.variants):
            numbers = [number for number in candidates if number % width == position]
            if numbers:
                samples = [number // width for number in numbers]
                yield CandidateRequest(self.request(query, variant), numbers, samples, variant)

    def samples_per_request(self, n: int) -> list[int]:
        """Return the number of samples of each prompt variant if a query has ``n`` candidates."""
        width = len(self.variants)
        return [len(range(position, n, width)) for position in range(width)]

    def read(self, candidate: Candidate) -> Candidate:
        """Return ``candidate`` with the response in its stored form.

        If ``answer_form`` is "steps", the JSON response is converted to text. Otherwise the response is unchanged.
        """
        return steps_form.as_text(candidate) if self._in_steps else candidate
