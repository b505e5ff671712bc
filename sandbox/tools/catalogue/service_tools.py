"""Mock tools for a help desk, user accounts, a smart home and a to-do list. Calls can change all of them."""

from __future__ import annotations

from typing import Literal

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.people import people
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import Date
from bestofn.sandbox.tools.when import parse_day
from bestofn.sandbox.tools.world import Table, World, table

TICKET = {"ticket_id": str, "title": str, "priority": str, "status": str, "body": str, "note": (str, None)}
USER = {"user_id": str, "name": str, "email": str, "phone": str, "plan": str, "active": bool}
TODO = {"todo_id": str, "text": str, "due": (str, None), "done": bool}
Priority = Literal["low", "normal", "high", "urgent"]


@table("tickets")
def _tickets(chance: Seeded) -> Table:
    titles = ["Cannot log in", "Invoice is wrong", "App crashes on start", "Feature request: dark mode",
              "Slow search results", "Password reset mail missing"]  # fmt: skip
    return {
        f"TCK-{1001 + number}": {
            "ticket_id": f"TCK-{1001 + number}",
            "title": title,
            "priority": chance.choice(["low", "normal", "high"]),
            "status": "open" if number % 3 else "resolved",
            "body": f"{title}. Reported by a customer.",
            "note": None if number % 3 else "Fixed in the last release.",
        }
        for number, title in enumerate(titles)
    }


@table("users")
def _users(chance: Seeded) -> Table:
    return {
        f"USR-{1001 + number}": {
            "user_id": f"USR-{1001 + number}",
            "name": someone.name,
            "email": someone.email,
            "phone": someone.phone,
            "plan": chance.choice(["free", "basic", "premium"]),
            "active": number != 4,
        }
        for number, someone in enumerate(people(chance, 8))
    }


@table("home")
def _home(chance: Seeded) -> Table:
    rooms = ("living room", "kitchen", "bedroom", "bathroom", "office", "hallway", "garage")
    lights: Table = {
        f"light:{room}": {"device": "light", "room": room, "state": "off", "brightness": 0} for room in rooms
    }
    return lights | {"thermostat": {"device": "thermostat", "room": "living room", "celsius": chance.integer(18, 22)}}


@table("todo")
def _todo(chance: Seeded) -> Table:
    texts = ["Buy milk", "Call the dentist", "Send the report", "Water the plants"]
    return {
        f"TODO-{1001 + number}": {"todo_id": f"TODO-{1001 + number}", "text": text, "due": None, "done": number == 3}
        for number, text in enumerate(texts)
    }


def existing(world: World, name: str, key: str, what: str) -> Result:
    """Return the record ``key`` of the table ``name``.

    Raises ``ToolFailure`` if there is no such record. ``what`` names the kind of record in the message, such as
    "ticket".
    """
    record = world[name].get(key.strip())
    if record is None:
        raise ToolFailure("not_found", f"there is no {what} {key!r}")
    return record


@tool(
    "ticket.create",
    TICKET,
    {"title": "Printer is on fire", "priority": "urgent"},
    fails=[{"title": " "}],
    aliases=["create_ticket", "create_support_ticket", "open_ticket", "submit_ticket"],
    changes=True,
)
def create_ticket(world: World, title: str, priority: Priority = "normal", body: str = "") -> Result:
    """Create a support ticket. Returns the ticket with its id."""
    if not title.strip():
        raise ToolFailure("invalid", "title is empty")
    key = world.new_key("tickets", "TCK-")
    ticket = {"ticket_id": key, "title": title, "priority": priority, "status": "open", "body": body, "note": None}
    world["tickets"][key] = ticket
    return ticket


@tool(
    "ticket.get",
    TICKET,
    {"ticket_id": "TCK-1001"},
    fails=[{"ticket_id": "TCK-9"}],
    aliases=["get_ticket", "ticket_details", "get_ticket_status"],
)
def get_ticket(world: World, ticket_id: str) -> Result:
    """Get a support ticket by its id."""
    return existing(world, "tickets", ticket_id, "ticket")


@tool(
    "ticket.resolve",
    TICKET,
    {"ticket_id": "TCK-1002", "note": "Invoice corrected."},
    fails=[{"ticket_id": "TCK-1001", "note": "again"}, {"ticket_id": "TCK-9", "note": ""}],
    aliases=["resolve_ticket", "close_ticket", "update_ticket_status"],
    changes=True,
)
def resolve_ticket(world: World, ticket_id: str, note: str) -> Result:
    """Resolve an open support ticket and store a note in it. Returns the ticket."""
    ticket = existing(world, "tickets", ticket_id, "ticket")
    if ticket["status"] == "resolved":
        raise ToolFailure("conflict", f"ticket {ticket_id} has already been resolved")
    ticket |= {"status": "resolved", "note": note}
    return ticket


@tool(
    "ticket.list",
    {"tickets": [TICKET]},
    {},
    {"status": "open"},
    fails=[{"status": "lost"}],
    aliases=["list_tickets", "show_tickets", "search_tickets"],
)
def list_tickets(world: World, status: Literal["open", "resolved"] | None = None) -> Result:
    """List the support tickets: all, or only the tickets with a given status."""
    return {"tickets": [ticket for ticket in world["tickets"].values() if status in (None, ticket["status"])]}


@tool(
    "user.get",
    USER,
    {"user_id": "USR-1001"},
    fails=[{"user_id": "USR-9"}],
    aliases=["get_user", "get_user_info", "get_user_profile", "get_customer", "get_user_details", "user_profile"],
)
def get_user(world: World, user_id: str) -> Result:
    """Get the account of a user by the user's id."""
    return existing(world, "users", user_id, "user")


@tool(
    "user.update",
    USER,
    {"user_id": "USR-1002", "changes": {"plan": "premium"}},
    fails=[
        {"user_id": "USR-1002", "changes": {"user_id": "USR-1"}},
        {"user_id": "USR-1002", "changes": {}},
    ],
    aliases=["update_user", "update_user_profile", "update_customer", "edit_user"],
    changes=True,
)
def update_user(world: World, user_id: str, changes: dict) -> Result:
    """Change the name, email, phone, plan or active state of a user. Returns the changed account."""
    user = existing(world, "users", user_id, "user")
    if not changes:
        raise ToolFailure("invalid", "changes is empty")
    for name, value in changes.items():
        if name not in ("name", "email", "phone", "plan", "active"):
            raise ToolFailure("denied", f"{name!r} cannot be changed; name, email, phone, plan and active can")
        if type(value) is not type(user[name]):
            raise ToolFailure("invalid", f"{name} is {value!r}; expected a {type(user[name]).__name__}")
    user |= changes
    return user


@tool(
    "user.find_by_email",
    USER,
    {"email": "ada.almeida@example.com"},
    fails=[{"email": "nobody"}],
    aliases=["find_user_by_email", "lookup_user", "find_user_id_by_email", "search_user", "find_customer"],
)
def find_by_email(world: World, email: str) -> Result:
    """Find the account of the user who has an e-mail address."""
    for user in world["users"].values():
        if user["email"].lower() == email.strip().lower():
            return user
    raise ToolFailure("not_found", f"no user has the e-mail address {email!r}")


@tool(
    "home.list_devices",
    {"devices": [{"device": str, "room": str, "state?": str, "brightness?": int, "celsius?": float}]},
    {},
    fails=[{"room": "attic"}],
    aliases=["list_devices", "get_devices", "smart_home_devices", "list_smart_devices"],
)
def list_devices(world: World) -> Result:
    """List the devices of the smart home with their states."""
    return {"devices": list(world["home"].values())}


@tool(
    "home.set_light",
    {"device": str, "room": str, "state": str, "brightness": int},
    {"room": "kitchen", "state": "on", "brightness": 60},
    fails=[{"room": "attic", "state": "on"}, {"room": "kitchen", "state": "on", "brightness": 200}],
    aliases=["set_light", "turn_on_light", "control_light", "set_lights", "toggle_light", "smart_light"],
    changes=True,
)
def set_light(world: World, room: str, state: Literal["on", "off"], brightness: int = 100) -> Result:
    """Switch the light of a room on or off. The brightness is in per cent, from 1 to 100."""
    light = existing(world, "home", f"light:{room.strip().lower()}", "light in the room")
    if not 1 <= brightness <= 100:
        raise ToolFailure("invalid", f"brightness is {brightness}; expected 1 to 100")
    light |= {"state": state, "brightness": brightness if state == "on" else 0}
    return light


@tool(
    "home.set_thermostat",
    {"device": str, "room": str, "celsius": float},
    {"celsius": 21.5},
    fails=[{"celsius": 45}],
    aliases=["set_thermostat", "set_temperature", "adjust_thermostat", "control_thermostat"],
    changes=True,
)
def set_thermostat(world: World, celsius: float) -> Result:
    """Set the thermostat of the home to a temperature from 5 to 30 degrees Celsius."""
    if not 5 <= celsius <= 30:
        raise ToolFailure("invalid", f"celsius is {celsius}; expected 5 to 30")
    thermostat = world["home"]["thermostat"]
    thermostat["celsius"] = celsius
    return thermostat


@tool(
    "todo.add",
    TODO,
    {"text": "Pack for the trip", "due": "2026-03-20"},
    fails=[{"text": ""}, {"text": "x", "due": "soon"}],
    aliases=["add_todo", "create_todo", "add_task", "create_task", "add_to_do", "todo_create"],
    changes=True,
)
def add_todo(world: World, text: str, due: Date | None = None) -> Result:
    """Add an item to the to-do list. Returns the item with its id."""
    if not text.strip():
        raise ToolFailure("invalid", "text is empty")
    key = world.new_key("todo", "TODO-")
    item = {"todo_id": key, "text": text, "due": parse_day(due).isoformat() if due else None, "done": False}
    world["todo"][key] = item
    return item


@tool(
    "todo.list",
    {"items": [TODO]},
    {},
    {"done": False},
    fails=[{"done": "maybe"}],
    aliases=["list_todos", "get_todos", "list_tasks", "get_tasks", "show_todo_list"],
)
def list_todos(world: World, done: bool | None = None) -> Result:
    """List the items on the to-do list: all, or only the items that are done or not done."""
    return {"items": [item for item in world["todo"].values() if done in (None, item["done"])]}


@tool(
    "human.handoff",
    {"accepted": bool, "case_id": str, "message": str},
    {"summary": "The customer wants to talk to a person about a refund."},
    fails=[{"summary": ""}],
    aliases=["handoff", "transfer_to_human_agents", "transfer_to_human", "escalate_to_human", "escalate"],
    changes=True,
)
def handoff(world: World, summary: str) -> Result:
    """Transfer the conversation to a person. The summary describes the case. Returns the id of the case."""
    if not summary.strip():
        raise ToolFailure("invalid", "summary is empty")
    key = world.new_key("handoffs", "CASE-")
    world["handoffs"][key] = {"case_id": key, "summary": summary}
    return {"accepted": True, "case_id": key, "message": "A colleague takes over."}


@table("handoffs")
def _handoffs(chance: Seeded) -> Table:
    return {}
