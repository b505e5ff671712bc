"""The greedy sample: one more candidate per query, sampled at temperature 0. Used by ``builders.stages.generate``."""

from __future__ import annotations

from dataclasses import replace

from bestofn.builders.records import Request
from bestofn.builders.stages.requests import CandidateRequest


def greedy_request(request: Request, candidate: int) -> CandidateRequest:
    """Return ``request`` at temperature 0, for one sample: the candidate with the index ``candidate``.

    The caller builds ``request`` with the first prompt variant. The candidate is labelled with the arm "greedy".
    """
    sampling = replace(request.sampling, temperature=0.0, top_p=None)
    return CandidateRequest(replace(request, sampling=sampling), (candidate,), (0,), arm="greedy")
