"""Verifies constraints on the form of a response: the kinds of IFEval and IFBench, and further kinds."""

from __future__ import annotations

from bestofn.verifiers.constraints import general, ifbench, ifeval, iftrain, m_ifeval
from bestofn.verifiers.constraints.verifier import ConstraintsVerifier

KINDS = (ifbench, ifeval, iftrain, m_ifeval, general)
"""The modules that fill the table of constraints."""

__all__ = ["KINDS", "ConstraintsVerifier"]
