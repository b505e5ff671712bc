"""Imported by a worker before its first call (``ProcessPool.preload``): SymPy and the tables of the LaTeX grammar."""

from bestofn.verifiers.math_verifier.symbolic import decide

decide(r"\frac{1}{2}", "0.5")
