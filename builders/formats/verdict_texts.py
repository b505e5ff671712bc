"""Texts that verifiers write into explanations of verdicts. Other modules find such verdicts by these texts."""

from __future__ import annotations

RUNS_DISAGREE = "the strict and the plain run disagree"
"""The beginning of the explanation of an ``abstain`` whose program fails in the strict run and passes in the plain run.

The plain run executes the tests as benchmarks do. ``run_figures`` counts these verdicts.
"""
