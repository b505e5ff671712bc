"""Reads the prose of models: which statements their writer asserts, denies, doubts, declines or takes back.

Mathematics, multiple choice, short answers and the classification of refusals use this package, for answers and for
references. ``languages`` has the words of denial by language.
"""
