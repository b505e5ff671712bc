"""Math-Verify of Hugging Face as a verifier: a second opinion about mathematics. It needs ``pip install math-verify``.

``conf/verifier/math_verify.yaml`` builds the verifier. Math-Verify rejects an answer that it does not understand.
Therefore it is a second opinion for ``bestofn audit``, and not a verifier for pairs.
"""

from __future__ import annotations

import importlib.util
import logging

from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, Query, Verdict

CONFIDENCE = 0.9


class MathVerify:
    """Compares the answer with each accepted answer in a worker process of ``workers``.

    ``timeout_s`` is the wall-clock limit of one answer in seconds. The verdict is ``abstain`` if there is no reference,
    or if Math-Verify finds no answer or exceeds a limit. Raises ``ConfigError`` if Math-Verify is not installed.
    """

    name = "math_verify"

    def __init__(self, workers: Workers, timeout_s: float = 10.0) -> None:
        if importlib.util.find_spec("math_verify") is None:
            raise ConfigError("Math-Verify is not installed. Install it with: pip install math-verify[antlr4_13_2]")
        self.workers, self.timeout_s = workers, timeout_s

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has a reference answer; otherwise ""."""
        return self.name if query.reference.accepted else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return ``pass`` if Math-Verify accepts the answer, ``fail`` if not, ``abstain`` if it cannot decide."""
        references = query.reference.accepted
        if not references:
            return Verdict("abstain", 0.0, "the query has no reference answer", self.name)
        options = bool(query.reference.choices)
        try:
            equal = await self.workers.call(accepts, references, candidate.text, options, timeout_s=self.timeout_s)
        except (TimeoutError, MemoryError, RecursionError) as error:
            return Verdict("abstain", 0.0, f"Math-Verify did not decide: {error or type(error).__name__}", self.name)
        if equal is None:
            return Verdict("abstain", 0.0, "Math-Verify found no answer, or cannot read the reference", self.name)
        verb = "accepts" if equal else "does not accept"
        return Verdict("pass" if equal else "fail", CONFIDENCE, f"Math-Verify {verb} the answer", self.name)


def accepts(references: tuple[str, ...], text: str, options: bool) -> bool | None:
    """Return whether Math-Verify accepts the answer in ``text``; None if it cannot parse the answer or a reference."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # hides "no time limit"
    plain = (LatexExtractionConfig(), ExprExtractionConfig())
    config = (StringExtractionConfig(), *plain) if options else plain
    answer = parse(text, config, parsing_timeout=0)
    golds = [
        parse(gold if options or "$" in gold or "\\boxed" in gold else f"${gold}$", config, parsing_timeout=0)
        for gold in references
    ]
    readable = [gold for gold in golds if gold]
    if not answer or not readable:
        return None
    return any(bool(verify(gold, answer, timeout_seconds=0)) for gold in readable)
