"""Twenty tasks are verified by the final state of the world, as in τ-bench: right calls pass, and a mistake fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bestofn.builders.errors import SourceError
from bestofn.builders.records import Candidate, Query, Reference
from bestofn.sandbox.tools.replay import final_state
from bestofn.verifiers.tools.verifier import ToolVerifier

Call = tuple[str, dict[str, Any]]
LAMP, MAT = ("cart.add", {"product_id": "PRD-1012"}), ("cart.add", {"product_id": "PRD-1006"})
PLACE = ("order.place", {"address_id": "ADR-1", "payment_id": "PAY-1"})
# the task, the right calls, calls that are as good, calls that are wrong
TASKS: list[tuple[str, list[Call], list[Call], list[Call]]] = [
    ("add a to-do", [("todo.add", {"text": "Buy tea"})], [("add_todo", {"text": "buy  tea"})],
     [("todo.add", {"text": "Buy milk"})]),
    ("a to-do with a date", [("todo.add", {"text": "Pay", "due": "2026-03-20"})],
     [("todo.list", {}), ("todo.add", {"text": "Pay", "due": "2026-03-20"})],
     [("todo.add", {"text": "Pay", "due": "2026-03-21"})]),
    ("order a lamp", [LAMP, PLACE], [("shop.search", {"query": "lamp"}), LAMP, ("cart.view", {}), PLACE], [MAT, PLACE]),
    ("order two things", [LAMP, MAT, PLACE], [LAMP, ("cart.view", {}), MAT, PLACE], [LAMP, PLACE]),
    ("only fill the cart", [LAMP], [MAT, LAMP, ("cart.remove", {"product_id": "PRD-1006"})], [LAMP, PLACE]),
    ("cancel an order", [("order.cancel", {"order_id": "ORD-1003", "reason": "too late"})],
     [("order.status", {"order_id": "ORD-1003"}), ("cancel_order", {"order_id": "ORD-1003", "reason": "too late"})], []),
    ("return an item", [("order.return", {"order_id": "ORD-1001", "items": ["PRD-1001"]})],
     [("return_order", {"order_id": "ORD-1001", "items": ["PRD-1001"]})],
     [("order.cancel", {"order_id": "ORD-1003"})]),
    ("transfer money", [("bank.transfer", {"from": "ACC-1001", "to": "ACC-1002", "amount": 100, "currency": "USD"})],
     [("bank.transfer", {"from": "ACC-1001", "to": "ACC-1002", "amount": 100.0, "currency": "usd"})],
     [("bank.transfer", {"from": "ACC-1001", "to": "ACC-1002", "amount": 10, "currency": "USD"})]),
    ("make a meeting", [("calendar.create_event", {"title": "Review", "start": "2026-03-20T10:00", "end": "2026-03-20T11:00"})],
     [("create_event", {"title": "review", "start": "2026-03-20T10:00:00", "end": "2026-03-20 11:00"})],
     [("calendar.create_event", {"title": "Review", "start": "2026-03-21T10:00", "end": "2026-03-21T11:00"})]),
    ("move a meeting", [("calendar.update_event", {"event_id": "EVT-1002", "changes": {"title": "Moved"}})],
     [("calendar.update_event", {"event_id": "EVT-1002", "changes": {"title": "moved"}})],
     [("calendar.update_event", {"event_id": "EVT-1003", "changes": {"title": "Moved"}})]),
    ("delete a meeting", [("calendar.delete_event", {"event_id": "EVT-1004"})],
     [("calendar.list_events", {"from": "2026-03-16", "to": "2026-03-30"}), ("delete_event", {"event_id": "EVT-1004"})],
     [("calendar.delete_event", {"event_id": "EVT-1005"})]),
    ("send a mail", [("email.send", {"to": ["ada.almeida@example.com"], "subject": "Hi", "body": "Hello"})],
     [("send_email", {"to": ["ada.almeida@example.com"], "subject": "hi", "body": "hello"})],
     [("email.send", {"to": ["b@example.com"], "subject": "Hi", "body": "Hello"})]),
    ("answer a mail", [("email.reply", {"message_id": "MSG-1002", "body": "Yes"})],
     [("email.read", {"message_id": "MSG-1002"}), ("email.reply", {"message_id": "MSG-1002", "body": "Yes"})],
     [("email.reply", {"message_id": "MSG-1003", "body": "Yes"})]),
    ("write a file", [("fs.write", {"path": "/home/user/x.txt", "content": "one two"})],
     [("fs.write", {"path": "x.txt", "content": "one "}), ("fs.append", {"path": "~/x.txt", "content": "two"})],
     [("fs.write", {"path": "/home/user/y.txt", "content": "one two"})]),
    ("delete a file", [("fs.delete", {"path": "/home/user/todo.md"})], [("rm", {"path": "~/todo.md"})],
     [("fs.move", {"src": "/home/user/todo.md", "dst": "/home/user/old.md"})]),
    ("change a row", [("db.update", {"table": "products", "where": {"id": 1}, "values": {"price": 20.0}})],
     [("db.update", {"table": "products", "where": {"name": "Desk lamp"}, "values": {"price": 20}})],
     [("db.update", {"table": "products", "where": {"category": "home"}, "values": {"price": 20.0}})]),
    ("resolve a ticket", [("ticket.resolve", {"ticket_id": "TCK-1002", "note": "done"})],
     [("ticket.get", {"ticket_id": "TCK-1002"}), ("resolve_ticket", {"ticket_id": "TCK-1002", "note": "Done"})],
     [("ticket.resolve", {"ticket_id": "TCK-1003", "note": "done"})]),
    ("upgrade a user", [("user.update", {"user_id": "USR-1002", "changes": {"phone": "1"}})],
     [("user.get", {"user_id": "USR-1002"}), ("update_user", {"user_id": "USR-1002", "changes": {"phone": "1"}})],
     [("user.update", {"user_id": "USR-1003", "changes": {"phone": "1"}})]),
    ("cancel a flight", [("flights.cancel", {"booking_id": "BKG-1001"})], [("cancel_flight", {"booking_id": "BKG-1001"})], []),
    ("light in the kitchen", [("home.set_light", {"room": "kitchen", "state": "on", "brightness": 40})],
     [("home.set_light", {"room": "kitchen", "state": "on"}),
      ("home.set_light", {"room": "Kitchen", "state": "on", "brightness": 40})],
     [("home.set_light", {"room": "kitchen", "state": "on"})]),
]  # fmt: skip


def outcome(expected: Any, calls: list[Call]) -> str:
    made = asyncio.run(final_state([{"name": name, "arguments": arguments} for name, arguments in calls]))
    query = Query("q", "tool", ({"role": "user", "content": "?"},), reference=Reference(state=expected))
    candidate = Candidate(0, ({"role": "assistant", "content": "Done."},), detail={"state": made})
    return asyncio.run(ToolVerifier().verify(query, candidate)).outcome


@pytest.mark.parametrize(
    ("name", "right", "as_good", "wrong"), TASKS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_task(name: str, right: list[Call], as_good: list[Call], wrong: list[Call]) -> None:
    expected = asyncio.run(final_state([{"name": name, "arguments": arguments} for name, arguments in right]))
    assert expected
    assert outcome(expected, right) == "pass"
    assert outcome(expected, as_good) == "pass"
    assert outcome(expected, wrong) == "fail"
    assert outcome(expected, [*right, ("todo.add", {"text": "nobody asked"})]) == "fail"


def test_a_reference_that_does_not_run_is_refused() -> None:
    with pytest.raises(SourceError, match=r"reference call order\.place"):
        asyncio.run(final_state([{"name": "order.place", "arguments": {"address_id": "ADR-1", "payment_id": "PAY-1"}}]))
