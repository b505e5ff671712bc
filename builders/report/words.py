"""The glossary of the HTML pages: the words of their headings and labels, each explained in one sentence."""

from __future__ import annotations

WORDS = {
    "pass@1": "The share of answers that pass: what one sample per query is expected to reach.",
    "pass@k": "The share of queries with at least one passing answer among k samples.",
    "best of k": "The share of queries whose answer passes when the reward chooses one of k samples.",
    "verified answer": "A candidate whose verdict is pass.",
    "pair": "A preference for training: one chosen and one rejected answer to the same query.",
    "cost": "What all requests of the run have cost, by the prices of the models.",
    "split": "The kind of query. Each split has its verifier.",
    "candidate": "One answer of the model to a query. Candidates are numbered from 0.",
    "pass": "The verifier accepts the answer.",
    "fail": "The verifier refutes the answer. Only such answers become the rejected side of a verified pair.",
    "abstain": "The verifier cannot decide about the answer.",
    "error": "The answer is missing, or its verification failed.",
    "reward": "A score of the answer, which orders the candidates of a query. It is not the verdict.",
    "share correct": "The share of queries whose chosen answer passes.",
    "difficulty": "The share of a query's candidates that pass: 0 is hardest, 1 is easiest.",
    "margin": "The score of the chosen answer minus the score of the rejected one.",
    "chosen": "The preferred side of a pair.",
    "rejected": "The other side of a pair.",
    "attempt": "How often the candidate was sampled again; the first sample is attempt 0.",
    "confidence": "How sure the verifier is of its verdict, from 0 to 1.",
    "refusal": "The model refuses to answer.",
    "reference": "What the dataset knows about the correct answer. The verifier compares answers with it.",
    "second opinion": "Another verifier or a person, asked about a sample of the verdicts by bestofn audit.",
    "false fails": "Right answers with the verdict fail.",
    "false passes": "Wrong answers with the verdict pass.",
    "95 %": "The confidence interval of the value, over the queries.",
}
"""Word -> its explanation. The pages show it when the reader points at the word, and in a list at the end."""


def word_of(label: str) -> str:
    """Return the entry of ``WORDS`` that explains ``label``, such as "pass@4" or "best of 8 by reward"; "" if none."""
    if label in WORDS:
        return label
    if label.startswith("pass@"):
        return "pass@k"
    if label.startswith("best of "):
        return "best of k"
    singular = label.removesuffix("s")
    return singular if singular in WORDS else ""


def explanation_of(label: str) -> str:
    """Return the explanation of ``label``; "" if the glossary has none."""
    return WORDS.get(word_of(label), "")
