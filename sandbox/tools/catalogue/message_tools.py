"""Mock tools for e-mail, team chat, text messages, contacts and notifications of one user."""

from __future__ import annotations

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.people import people
from bestofn.sandbox.tools.places import plain
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.world import Table, World, table

MAIL = {
    "message_id": str,
    "folder": str,
    "from": str,
    "to": [str],
    "cc": [str],
    "subject": str,
    "body": str,
    "date": str,
}
ME = "me@example.com"


@table("mail")
def _mail(chance: Seeded) -> Table:
    subjects = [
        ("Budget for April", "Please look at the attached numbers before Friday."),
        ("Lunch on Tuesday?", "How about the new place at the harbour, at noon?"),
        ("Your invoice 4711", "The amount due is 349.00 USD, payable by 31 March."),
        ("Flight confirmation", "Your booking reference is QX7PLM, departure 2026-04-02."),
        ("Server maintenance", "The servers will be down on Saturday from 2 to 4."),
        ("Welcome to the team", "We are happy to have you with us."),
    ]
    senders = people(chance, len(subjects))
    mail: Table = {}
    for number, (someone, (subject, body)) in enumerate(zip(senders, subjects, strict=True)):
        key = f"MSG-{1001 + number}"
        mail[key] = {
            "message_id": key,
            "folder": "inbox",
            "from": someone.email,
            "to": [ME],
            "cc": [],
            "subject": subject,
            "body": body,
            "date": f"2026-03-{15 - number:02d}T10:{number * 7:02d}",
        }
    return mail


@table("chat")
def _chat(chance: Seeded) -> Table:
    lines = (
        ("#general", "Good morning everyone"),
        ("#general", "The office is closed on Friday"),
        ("#engineering", "The release is tagged"),
        ("#engineering", "Tests are green again"),
        ("#random", "Who took my mug?"),
    )
    senders = people(chance, len(lines))
    return {
        f"CHT-{1001 + number}": {
            "message_id": f"CHT-{1001 + number}",
            "channel": channel,
            "from": someone.name,
            "text": text,
        }
        for number, (someone, (channel, text)) in enumerate(zip(senders, lines, strict=True))
    }


@table("contacts")
def _contacts(chance: Seeded) -> Table:
    return {
        f"CON-{1001 + number}": {
            "contact_id": f"CON-{1001 + number}",
            "name": someone.name,
            "email": someone.email,
            "phone": someone.phone,
        }
        for number, someone in enumerate(people(chance, 8))
    }


@table("sms")
def _sms(chance: Seeded) -> Table:
    return {}


@table("notifications")
def _notifications(chance: Seeded) -> Table:
    return {}


def _addresses(addresses: list[str]) -> list[str]:
    for address in addresses:
        name, at, host = address.strip().partition("@")
        if not (name and at and "." in host) or " " in address.strip():
            raise ToolFailure("invalid", f"{address!r} is not an e-mail address")
    return [address.strip() for address in addresses]


def _message(world: World, message_id: str) -> Result:
    message = world["mail"].get(message_id.strip())
    if message is None:
        raise ToolFailure("not_found", f"there is no message {message_id!r}")
    return message


def _send(world: World, to: list[str], cc: list[str], subject: str, body: str) -> Result:
    key = world.new_key("mail", "MSG-")
    message = {
        "message_id": key,
        "folder": "sent",
        "from": ME,
        "to": to,
        "cc": cc,
        "subject": subject,
        "body": body,
        "date": world.now.strftime("%Y-%m-%dT%H:%M"),
    }
    world["mail"][key] = message
    return message


@tool(
    "email.send",
    MAIL,
    {"to": ["ada.almeida@example.com"], "subject": "Hello", "body": "How are you?"},
    fails=[{"to": [], "subject": "x", "body": "y"}, {"to": ["nobody"], "subject": "x", "body": "y"}],
    aliases=["send_email", "send_mail", "compose_email", "email_send"],
    changes=True,
)
def send_email(world: World, to: list[str], subject: str, body: str, cc: list[str] | None = None) -> Result:
    """Send an e-mail. Returns the sent e-mail with its id."""
    if not to:
        raise ToolFailure("invalid", "to is empty")
    return _send(world, _addresses(to), _addresses(cc or []), subject, body)


@tool(
    "email.search",
    {"messages": [{"message_id": str, "from": str, "subject": str, "date": str}]},
    {"query": "invoice"},
    {"query": "", "folder": "inbox"},
    fails=[{"query": "x", "folder": "nowhere"}],
    aliases=["search_email", "search_emails", "find_emails", "search_inbox", "list_emails", "fetch_emails"],
)
def search_email(world: World, query: str, folder: str = "") -> Result:
    """Search the e-mails that contain all words of the query, newest first. An empty query finds all e-mails."""
    if folder not in ("", "inbox", "sent"):
        raise ToolFailure("not_found", f"there is no folder {folder!r}; expected inbox or sent")
    sought = plain(query).split()
    matches = [
        message
        for message in world["mail"].values()
        if folder in ("", message["folder"])
        and all(word in plain(f"{message['from']} {message['subject']} {message['body']}") for word in sought)
    ]
    matches.sort(key=lambda message: (message["date"], message["message_id"]), reverse=True)
    return {
        "messages": [{name: message[name] for name in ("message_id", "from", "subject", "date")} for message in matches]
    }


@tool(
    "email.read",
    MAIL,
    {"message_id": "MSG-1003"},
    fails=[{"message_id": "MSG-1"}],
    aliases=["read_email", "get_email", "open_email"],
)
def read_email(world: World, message_id: str) -> Result:
    """Read a complete e-mail."""
    return _message(world, message_id)


@tool(
    "email.reply",
    MAIL,
    {"message_id": "MSG-1002", "body": "Gladly, see you there."},
    fails=[{"message_id": "MSG-1", "body": "x"}, {"message_id": "MSG-1002", "body": " "}],
    aliases=["reply_email", "reply_to_email", "answer_email"],
    changes=True,
)
def reply(world: World, message_id: str, body: str) -> Result:
    """Reply to an e-mail. Returns the sent reply."""
    message = _message(world, message_id)
    if not body.strip():
        raise ToolFailure("invalid", "body is empty")
    subject = message["subject"] if message["subject"].startswith("Re: ") else f"Re: {message['subject']}"
    return _send(world, [message["from"]], [], subject, body)


@tool(
    "chat.post",
    {"message_id": str, "channel": str, "from": str, "text": str},
    {"channel": "#general", "text": "Lunch?"},
    fails=[{"channel": "#secret", "text": "x"}, {"channel": "#general", "text": ""}],
    aliases=[
        "post_message",
        "send_message",
        "slack_post",
        "send_slack_message",
        "send_chat_message",
        "post_to_channel",
    ],
    changes=True,
)
def post(world: World, channel: str, text: str) -> Result:
    """Post a message in a channel of the team chat."""
    name = _channel(world, channel)
    if not text.strip():
        raise ToolFailure("invalid", "text is empty")
    key = world.new_key("chat", "CHT-")
    world["chat"][key] = {"message_id": key, "channel": name, "from": "me", "text": text}
    return world["chat"][key]


def _channel(world: World, channel: str) -> str:
    name = "#" + channel.strip().lstrip("#").lower()
    known = {message["channel"] for message in world["chat"].values()}
    if name not in known:
        raise ToolFailure("not_found", f"there is no channel {channel!r}; expected one of {', '.join(sorted(known))}")
    return name


@tool(
    "chat.history",
    {"channel": str, "messages": [{"message_id": str, "channel": str, "from": str, "text": str}]},
    {"channel": "#engineering", "limit": 5},
    fails=[{"channel": "#secret"}],
    aliases=["get_messages", "channel_history", "slack_history", "read_channel", "get_chat_history"],
)
def chat_history(world: World, channel: str, limit: int = 20) -> Result:
    """Get the latest messages of a chat channel, oldest first."""
    name = _channel(world, channel)
    messages = [message for message in world["chat"].values() if message["channel"] == name]
    return {"channel": name, "messages": messages[-max(limit, 0) :] if limit > 0 else []}


@tool(
    "sms.send",
    {"sms_id": str, "to": str, "text": str, "parts": int},
    {"to": "+1-555-123-4567", "text": "On my way"},
    fails=[{"to": "Ada", "text": "x"}],
    aliases=["send_sms", "send_text", "send_text_message", "text_message"],
    changes=True,
)
def send_sms(world: World, to: str, text: str) -> Result:
    """Send a text message (SMS) to a telephone number."""
    if sum(character.isdigit() for character in to) < 7 or any(character.isalpha() for character in to):
        raise ToolFailure("invalid", f"{to!r} is not a telephone number")
    key = world.new_key("sms", "SMS-")
    world["sms"][key] = {"sms_id": key, "to": to.strip(), "text": text, "parts": max(1, -(-len(text) // 160))}
    return world["sms"][key]


@tool(
    "contacts.search",
    {"contacts": [{"contact_id": str, "name": str, "email": (str, None), "phone": (str, None)}]},
    {"query": "ada"},
    fails=[{"query": ""}],
    aliases=["search_contacts", "find_contact", "lookup_contact", "get_contact", "get_contact_info"],
)
def search_contacts(world: World, query: str) -> Result:
    """Search contacts by part of the name, e-mail address or telephone number."""
    sought = plain(query)
    if not sought:
        raise ToolFailure("invalid", "query is empty")
    matches = [
        contact
        for contact in world["contacts"].values()
        if sought in plain(f"{contact['name']} {contact['email'] or ''} {contact['phone'] or ''}")
    ]
    return {"contacts": matches}


@tool(
    "contacts.add",
    {"contact_id": str, "name": str, "email": (str, None), "phone": (str, None)},
    {"name": "Zoe Zimmer", "email": "zoe@example.com"},
    fails=[{"name": ""}, {"name": "Zoe", "email": "zoe"}],
    aliases=["add_contact", "create_contact", "save_contact", "new_contact"],
    changes=True,
)
def add_contact(world: World, name: str, email: str | None = None, phone: str | None = None) -> Result:
    """Add a contact to the address book. Returns the contact with its id."""
    if not name.strip():
        raise ToolFailure("invalid", "name is empty")
    key = world.new_key("contacts", "CON-")
    address = _addresses([email])[0] if email else None
    world["contacts"][key] = {"contact_id": key, "name": name.strip(), "email": address, "phone": phone}
    return world["contacts"][key]


@tool(
    "notifications.push",
    {"notification_id": str, "user_id": str, "title": str, "body": str},
    {"user_id": "USR-1001", "title": "Hello", "body": "You have mail"},
    fails=[{"user_id": "USR-9", "title": "x", "body": "y"}],
    aliases=["push_notification", "send_notification", "notify_user", "send_push_notification"],
    changes=True,
)
def push(world: World, user_id: str, title: str, body: str) -> Result:
    """Send a push notification to a user."""
    if user_id.strip() not in world["users"]:
        raise ToolFailure("not_found", f"there is no user {user_id!r}")
    key = world.new_key("notifications", "NTF-")
    world["notifications"][key] = {"notification_id": key, "user_id": user_id.strip(), "title": title, "body": body}
    return world["notifications"][key]
