"""The rules that recognise refusals: one catalogue per topic, the text that is searched, and what the question"
" asks for.

``verifiers.refusal_patterns.classify`` applies them.
"""
