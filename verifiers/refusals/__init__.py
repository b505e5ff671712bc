"""The rules that recognise refusals: a catalogue per topic, the searched text, and what the question asks for.

``verifiers.refusal_patterns.classify`` applies them.
"""
