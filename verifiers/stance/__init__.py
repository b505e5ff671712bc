"""The stance of an answer: whether it answers, asks, hedges, refuses or names a flaw, and the verifiers of stances."""
