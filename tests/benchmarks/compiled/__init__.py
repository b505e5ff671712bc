"""Labelled programs in compiled languages: right programs, and wrong programs that differ by one edit.

``programs`` reads the files of this folder, ``values`` writes values in each language, and ``forms`` writes the tests in
the forms that HumanEvalPack, MultiPL-E and users write. ``__main__`` writes the set for ``bestofn benchmark accuracy``.
"""
