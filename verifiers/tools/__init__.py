"""Verifies the tool calls of an answer, of a whole dialogue, and their effects."""
