"""Builds the request for the greedy candidate: one more candidate per query, sampled at temperature 0.

Used by ``builders.stages.generate``.
"""

from __future__ import annotations

from dataclasses import replace

from bestofn.builders.records import Request
from bestofn.builders.stages.requests import CandidateRequest


def greedy_request(request: Request, candidate: int) -> CandidateRequest:
    """Return the request for the greedy candidate: one sample of ``request`` at temperature 0.

    ``candidate`` is the index of the candidate, and its arm is "greedy". The caller builds ``request`` with the first
    prompt variant.
    """
    sampling = replace(request.sampling, temperature=0.0, top_p=None)
    return CandidateRequest(replace(request, sampling=sampling), (candidate,), (0,), arm="greedy")
