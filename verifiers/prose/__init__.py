"""Reads the prose of models: thinking, sentences and boxes, and what its writer asserts, denies, declines or takes back.

Mathematics, multiple choice, short answers and the classification of refusals use this package, for answers and for
references. ``languages`` has the words of denial by language.
"""
