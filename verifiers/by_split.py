"""Routes a query to the verifier of its domain."""

from __future__ import annotations

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.refusal_classifier import RefusalClassifier
from bestofn.verifiers.with_refusal import WithRefusal

ALIASES = {
    "gsm8k": "math",
    "aime": "math",
    "humaneval": "code",
    "mbpp": "code",
    "tool": "tool_calling",
    "tool_use": "tool_calling",
    "tools": "tool_calling",
    "function_calling": "tool_calling",
}


def routed(
    *,
    math: Verifier | None = None,
    code: Verifier | None = None,
    tool_calling: Verifier | None = None,
    default: Verifier | None = None,
    refusals: RefusalClassifier | None = None,
) -> Verifier:
    """``BySplit`` over these verifiers, with what ``refusals`` finds stored beside every verdict."""
    by_split = BySplit(math=math, code=code, tool_calling=tool_calling, default=default)
    return WithRefusal(by_split, refusals) if refusals else by_split


class BySplit:
    """The verifier named by the query's split; for an unknown split, the one that its reference calls for.

    Without a verifier of that domain the answer goes to ``default``, and without that it is an abstention.
    """

    name = "by_split"

    def __init__(
        self,
        *,
        math: Verifier | None = None,
        code: Verifier | None = None,
        tool_calling: Verifier | None = None,
        default: Verifier | None = None,
    ) -> None:
        self.math, self.code, self.tool_calling, self.default = math, code, tool_calling, default

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        domain = domain_of(query)
        verifier = {"math": self.math, "code": self.code, "tool_calling": self.tool_calling}.get(domain) or self.default
        if verifier is None:
            return Verdict("abstain", 0.0, f"no verifier for {domain or query.split!r}", self.name)
        return await verifier.verify(query, candidate)


def domain_of_split(split: str) -> str:
    """math, code, tool_calling, or "" for a split that names none of them."""
    name = split.lower().removesuffix("_v1").removesuffix("_v2")
    name = ALIASES.get(name, name)
    return name if name in ("math", "code", "tool_calling") else ""


def domain_of(query: Query) -> str:
    """math, code, tool_calling, or "" when neither the split nor the reference tells."""
    domain = domain_of_split(query.split)
    if domain:
        return domain
    if query.reference.tests is not None:
        return "code"
    if query.reference.calls is not None:
        return "tool_calling"
    return "math" if query.reference.answer is not None else ""
