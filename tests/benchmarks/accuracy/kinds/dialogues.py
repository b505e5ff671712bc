"""Whole dialogues of tau-bench with the expected actions and outputs."""

from __future__ import annotations

from bestofn.builders.records import Candidate, Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow

CHANGING = (
    "book_reservation", "cancel_reservation", "send_certificate", "update_reservation_baggages",
    "update_reservation_flights", "update_reservation_passengers",
)  # fmt: skip


def case(row: LabelledRow) -> Case:
    """Convert one dialogue. The messages up to the first user message are the query, and all others are the answer."""
    messages = row.items("messages")
    start = next((at for at, message in enumerate(messages) if message.get("role") == "user"), len(messages) - 1) + 1
    check = {
        "actions": row.items("expected_actions"),
        "outputs": row.items("expected_outputs"),
        "changing": CHANGING,
    }
    reference = Reference(checks={"dialogue": check})
    query = Query(row.text("id"), "dialogue", tuple(messages[:start]), tuple(row.items("tools")), reference)
    return Case(query, Candidate(0, tuple(messages[start:])), row.outcome())


KIND = Kind(("tool_taubench",), case, verifier=("verifier=dialogue",))
