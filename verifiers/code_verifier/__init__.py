"""The code verifier: runs the program in an answer against the reference tests."""

from bestofn.verifiers.code_verifier.extraction import extract_program
from bestofn.verifiers.code_verifier.verifier import CodeVerifier

__all__ = ["CodeVerifier", "extract_program"]
