"""Sends each query to the verifier of its domain. ``conf/verifier/by_split.yaml`` and ``with_judge.yaml`` build it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.verifiers.refusal_classifier import RefusalClassifier
from bestofn.verifiers.with_refusal import WithRefusal


@dataclass(frozen=True, slots=True)
class Domain:
    """How queries of a domain are recognised: other names of its split, and the reference that only it has."""

    splits: tuple[str, ...]
    has_reference: Callable[[Reference], bool]


DOMAINS = {
    "code": Domain(("humaneval", "mbpp"), lambda reference: reference.tests is not None),
    "tool_calling": Domain(
        ("tool", "tool_use", "tools", "function_calling"), lambda reference: reference.calls is not None
    ),
    "math": Domain(("gsm8k", "aime"), lambda reference: reference.answer is not None),
}
"""The domains that come with bestofn. References are checked in this order. A domain that is not listed here is
recognised by a split of the same name."""
ALIASES = {split: name for name, domain in DOMAINS.items() for split in domain.splits}


def routed(
    *,
    domains: Mapping[str, Verifier | None],
    default: Verifier | None = None,
    refusals: RefusalClassifier | None = None,
) -> Verifier:
    """``BySplit`` over ``domains``. With ``refusals``, every verdict also records whether the answer refuses."""
    by_split = BySplit(domains, default)
    return WithRefusal(by_split, refusals) if refusals else by_split


class BySplit:
    """The verifier of the query's domain, by split name; for an unknown split, by the kind of its reference.

    ``domains`` maps a domain to its verifier. A domain without a verifier (absent, or None) goes to ``default``.
    Without a default the verdict is an abstention.
    """

    name = "by_split"

    def __init__(self, domains: Mapping[str, Verifier | None], default: Verifier | None = None) -> None:
        self.domains, self.default = dict(domains), default

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """The verdict of the verifier that is responsible for ``query``."""
        domain = domain_of(query, self.domains)
        verifier = self.domains.get(domain) or self.default
        if verifier is None:
            return Verdict("abstain", 0.0, f"there is no verifier for {domain or query.split!r}", self.name)
        return await verifier.verify(query, candidate)


def domain_of_split(split: str, more: Collection[str] = ()) -> str:
    """The domain that ``split`` names, or "". ``more``: domains besides those in ``DOMAINS``."""
    name = split.lower().removesuffix("_v1").removesuffix("_v2")
    name = name if name in more else ALIASES.get(name, name)
    return name if name in DOMAINS or name in more else ""


def domain_of(query: Query, more: Collection[str] = ()) -> str:
    """The domain of ``query`` by its split, else by its reference; "" when neither shows it."""
    named = domain_of_split(query.split, more)
    if named:
        return named
    return next((name for name, domain in DOMAINS.items() if domain.has_reference(query.reference)), "")
