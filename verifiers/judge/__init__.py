"""Verifies answers with a language model (a judge), with or without a rubric."""
