"""Loads SymPy and the LaTeX grammar. A worker imports this module before its first call (``ProcessPool.preload``)."""

from bestofn.verifiers.math_verifier.symbolic import decide

decide(r"\frac{1}{2}", "0.5")
