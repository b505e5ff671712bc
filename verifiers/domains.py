"""The domains of queries, and the domain of a split or of a reference. This module imports no verifier.

``by_split`` uses it to choose verifiers. ``builders.sources.mapped`` uses it for datasets without a column of splits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from bestofn.builders.records import Reference
from bestofn.verifiers.reference_form import has_text


@dataclass(frozen=True, slots=True)
class Domain:
    """The rules that recognise the queries of a domain.

    ``splits`` contains split names of this domain other than its own name. ``has_reference`` returns whether a
    reference is of the kind that this domain uses.
    """

    splits: tuple[str, ...]
    has_reference: Callable[[Reference], bool]


DOMAINS = {
    "code": Domain(("humaneval", "mbpp"), lambda reference: reference.tests is not None),
    "tool_calling": Domain(
        ("tool", "tool_use", "tools", "function_calling"), lambda reference: reference.calls is not None
    ),
    "choice": Domain(
        ("mcq", "multiple_choice", "mmlu", "mmlu_pro", "arc"),
        lambda reference: bool(reference.choices and reference.accepted),
    ),
    "math": Domain(("gsm8k", "aime"), lambda reference: bool(reference.accepted) and not has_text(reference)),
    "short_answer": Domain(
        ("qa", "open_qa", "trivia", "triviaqa", "nq", "nq_open", "simpleqa"), lambda reference: bool(reference.accepted)
    ),
}
"""The domains that bestofn includes. References are checked in this order. Any other domain is recognised only if
its name equals the split name."""
ALIASES = {split: name for name, domain in DOMAINS.items() for split in domain.splits}


def domain_of_split(split: str, more: Collection[str] = ()) -> str:
    """Return the domain of the split name, or "" if it is unknown.

    ``more`` contains names of domains that are not in ``DOMAINS``.
    """
    name = split.lower().removesuffix("_v1").removesuffix("_v2")
    name = name if name in more else ALIASES.get(name, name)
    return name if name in DOMAINS or name in more else ""


def domain_of_reference(reference: Reference) -> str:
    """Return the domain to which a reference belongs, or "" if it has no known form."""
    return next((name for name, domain in DOMAINS.items() if domain.has_reference(reference)), "")
