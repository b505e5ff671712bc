"""Texts that verifiers write into explanations of verdicts. Other modules find such verdicts by these texts."""

from __future__ import annotations

RUNS_DISAGREE = "the comparison of results and the plain run disagree"
"""The beginning of the explanation of an ``abstain`` whose results differ from the expected ones, but whose tests pass.

The plain run executes the tests with the program, as benchmarks do. ``run_figures`` counts these verdicts.
"""
