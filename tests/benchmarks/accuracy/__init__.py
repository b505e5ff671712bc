"""Agreement of the default verifiers with labelled answers: ``bestofn benchmark accuracy``.

``measure`` is the runner, ``labelled`` reads the sets, ``figures`` computes the figures. ``kinds`` has one module per
kind of verifier: it converts a labelled row to a query, a candidate and a label.
"""
