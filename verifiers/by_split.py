"""Routes a query to the verifier of its domain."""

from __future__ import annotations

from builders.protocols import Verifier
from builders.records import Candidate, Query, Verdict

ALIASES = {
    "gsm8k": "math",
    "aime": "math",
    "humaneval": "code",
    "mbpp": "code",
    "tool_use": "tool_calling",
    "tools": "tool_calling",
}


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


def domain_of(query: Query) -> str:
    """math, code, tool_calling, or "" when neither the split nor the reference tells."""
    split = query.split.lower().removesuffix("_v1").removesuffix("_v2")
    split = ALIASES.get(split, split)
    if split in ("math", "code", "tool_calling"):
        return split
    if query.reference.tests is not None:
        return "code"
    if query.reference.calls is not None:
        return "tool_calling"
    return "math" if query.reference.answer is not None else ""
