"""Recognises refusals: catalogues of phrases, the words of the model itself, and the kind of the question.

``verifiers.refusal_patterns.classify`` applies them.
"""
