"""Measures how well the default verifiers agree with labelled answers: ``bestofn benchmark accuracy``.

``measure`` runs the measurement, ``labelled`` reads the sets, and ``figures`` computes the figures. ``kinds`` has one
module per kind of verifier, which converts a labelled row to a query, a candidate and a label.
"""
