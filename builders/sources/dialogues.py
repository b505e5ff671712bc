"""Generates dialogues about the mock world: a user with a goal, tools that change data, and a policy.

``conf/dataset/starter_dialogues.yaml`` uses it. A right dialogue leaves the world in the expected state and states what
the user wants to know. The recorded answers of a query (``provider=recorded``) are one right dialogue and several wrong
ones. ``provider=NAME`` samples dialogues with a simulated user (``bestofn.sandbox.tools.simulated_user``).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.tool_calls import call
from bestofn.builders.records import JsonObject, Message, PositiveCount, Query, Reference

if TYPE_CHECKING:
    from bestofn.sandbox.tools.world import World

Call = tuple[str, JsonObject]
POLICY = """You are the assistant of a customer service. The customer is identified already.

- Look up the order or account before you answer questions about it or change it.
- Before an action that changes data, say what you are about to do and wait until the customer confirms it.
- Only orders in processing can be cancelled, and only delivered orders can be returned. Refuse anything else.
- After an action, tell the customer the amount or the identifier that results from it.
- Give no information that does not come from the customer or from the tools.

The customer is {customer}."""
CUSTOMERS = ("Ada Almeida", "Bo Berg", "Chi Chen", "Dina Dahl", "Eli Evans", "Fay Fischer", "Gus Garcia")
INSTRUCTION = (
    "You are {customer}, a customer. {goal} If the assistant asks for a confirmation, give it if it is what you want."
    " {wish}"
)
TOOLS = (
    "order.status", "order.cancel", "order.return", "cart.add", "cart.view", "order.place", "shop.search",
    "bank.balance", "bank.transfer", "human.handoff",
)  # fmt: skip
FREE_TEXT = ("reason", "description")
"""Fields of records whose text the assistant chooses, so their values are not compared."""


@dataclass(frozen=True, slots=True)
class Task:
    """A goal of a user, with a right way to reach it and a wrong one.

    ``lookup`` is the call that the assistant needs before it proposes ``actions``. ``actions`` are empty if the policy
    forbids what the user wants. ``wrong`` are actions that reach another state. The assistant must state ``outputs``.
    """

    opening: str
    goal: str
    wish: str
    lookup: Call
    proposal: str
    actions: tuple[Call, ...]
    wrong: tuple[Call, ...]
    outputs: tuple[str, ...]


def _cancellation(draw: random.Random, world: World) -> Task:
    order = world["orders"]["ORD-1003"]
    why = draw.choice(["you ordered it by mistake", "you have found it cheaper", "you no longer need it"])
    opening = draw.choice(
        ["Please cancel my order ORD-1003.", "I want to cancel ORD-1003.", "Can you cancel ORD-1003?"]
    )
    return Task(
        opening,
        f"You want to cancel your order ORD-1003, because {why}.",
        "You want to know how much money you get back.",
        ("order_status", {"order_id": "ORD-1003"}),
        "Your order ORD-1003 is in processing, so I can cancel it. Shall I do this?",
        (("order_cancel", {"order_id": "ORD-1003"}),),
        (),
        (_amount(order["total"]),),
    )


def _return(draw: random.Random, world: World) -> Task:
    order = world["orders"]["ORD-1001"]
    name = order["items"][0]["name"].lower()
    opening = draw.choice(
        [f"I want to send back the {name} of order ORD-1001.", f"How do I return my {name}? ORD-1001."]
    )
    return Task(
        opening,
        f"You want to return the {name} of your order ORD-1001.",
        "You want to know the total of the order.",
        ("order_status", {"order_id": "ORD-1001"}),
        f"The order ORD-1001 is delivered, so the {name} can be returned. Shall I start the return?",
        (("order_return", {"order_id": "ORD-1001", "items": [order["items"][0]["product_id"]]}),),
        (("order_cancel", {"order_id": "ORD-1003"}),),
        (_amount(order["total"]),),
    )


def _purchase(draw: random.Random, world: World) -> Task:
    key = draw.choice(["PRD-1002", "PRD-1006", "PRD-1009", "PRD-1012", "PRD-1014"])
    product, quantity = world["products"][key], draw.randrange(1, 4)
    payment, address = draw.choice(["PAY-1", "PAY-2"]), draw.choice(["ADR-1", "ADR-2"])
    name = product["name"].lower()
    return Task(
        f"I would like to buy {quantity} of this: {name}.",
        f"You want to buy {quantity} pieces of the product {name}, with the payment method {payment}, to {address}.",
        "You want to know the number of the new order and the price of everything together.",
        ("shop_search", {"query": name}),
        f"That is {_amount(product['price'])} per piece. Shall I order {quantity} with {payment} to {address}?",
        (
            ("cart_add", {"product_id": key, "qty": quantity}),
            ("order_place", {"address_id": address, "payment_id": payment}),
        ),
        (
            ("cart_add", {"product_id": key, "qty": quantity + 1}),
            ("order_place", {"address_id": address, "payment_id": payment}),
        ),
        ("ORD-1005", _amount(product["price"] * quantity)),
    )


def _forbidden(draw: random.Random, world: World) -> Task:
    opening = draw.choice(
        ["Cancel ORD-1002 please.", "I need to cancel my order ORD-1002.", "Stop the order ORD-1002!"]
    )
    return Task(
        opening,
        "You want to cancel your order ORD-1002.",
        "If this is not possible, you want to know the state of the order, and you want nothing else.",
        ("order_status", {"order_id": "ORD-1002"}),
        "I cannot cancel ORD-1002, because it has the status shipped. Only orders in processing can be cancelled.",
        (),
        (("order_cancel", {"order_id": "ORD-1003"}),),
        ("shipped",),
    )


def _transfer(draw: random.Random, world: World) -> Task:
    amount, balance = draw.randrange(10, 200), world["accounts"]["ACC-1001"]["balance"]
    currency = world["accounts"]["ACC-1001"]["currency"]
    arguments = {"from": "ACC-1001", "to": "ACC-1002", "amount": amount, "currency": currency}
    return Task(
        "I want to move money to my other account.",
        f"You want to transfer {amount} {currency} from your account ACC-1001 to your account ACC-1002.",
        "You want to know the new balance of ACC-1001.",
        ("bank_balance", {"account_id": "ACC-1001"}),
        f"Your account ACC-1001 has enough money. Shall I transfer {amount} {currency} to ACC-1002?",
        (("bank_transfer", arguments),),
        (("bank_transfer", arguments | {"amount": amount + 10}),),
        (_amount(balance - amount),),
    )


def _amount(value: float) -> str:
    return f"{round(value, 2):.2f}"


KINDS: dict[str, Callable[[random.Random, World], Task]] = {
    "cancellation": _cancellation,
    "return": _return,
    "purchase": _purchase,
    "forbidden": _forbidden,
    "transfer": _transfer,
}


class Dialogues:
    """Generates ``size`` dialogues from ``seed``, which cycle through ``kinds``. ``metadata["kind"]`` is the kind.

    ``cancellation``, ``return``, ``purchase`` and ``transfer`` need calls that change data. ``forbidden``: the policy
    forbids what the user wants, so nothing may change. Each dialogue has a separate initial world.
    """

    def __init__(
        self,
        *,
        kinds: Sequence[str] = tuple(KINDS),
        size: PositiveCount = 40,
        seed: int = 0,
        max_queries: PositiveCount | None = None,
        name: str = "starter_dialogues",
        license: str = "mit",
    ) -> None:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown or not kinds:
            raise SourceError(f"dataset.kinds is {list(kinds)}; expected some of {', '.join(KINDS)}")
        self.kinds, self.seed = tuple(kinds), seed
        self.size = size if max_queries is None else min(size, max_queries)
        self.name, self.license = name, license

    def __iter__(self) -> Iterator[Query]:
        for number in range(self.size):
            yield self._query(number, self.kinds[number % len(self.kinds)])

    def _query(self, number: int, kind: str) -> Query:
        from bestofn.sandbox.tools.catalogue import CATALOGUE  # its import takes long
        from bestofn.sandbox.tools.world import World

        task = KINDS[kind](random.Random(f"{self.seed} {number}"), World(number))
        world = World(number)
        right = _played(world, task, task.actions, _closing(task))
        check = {"state": _expected_state(world), "outputs": list(task.outputs)}
        customer = f"{CUSTOMERS[number % len(CUSTOMERS)]}, number C-{1001 + number}"
        metadata = {
            "kind": kind,
            "world_seed": number,
            "user_instruction": INSTRUCTION.format(customer=customer, goal=task.goal, wish=task.wish),
            "candidates": [right, *_wrong(number, task)],
        }
        messages = (
            {"role": "system", "content": POLICY.format(customer=customer)},
            {"role": "user", "content": task.opening},
        )
        tools = tuple(CATALOGUE[name].declaration() for name in TOOLS)
        reference = Reference(checks={"dialogue": check})
        return Query(f"{kind}-{number}", "dialogue", messages, tools, reference, self.name, metadata)


def _wrong(seed: int, task: Task) -> Iterator[list[Message]]:
    """Yield wrong dialogues.

    In these dialogues, the assistant claims success without any action, acts rightly but does not state ``outputs``,
    or does the actions ``wrong``.
    """
    from bestofn.sandbox.tools.world import World

    if task.actions:
        yield _played(World(seed), task, (), _closing(task))
        yield _played(World(seed), task, task.actions, "It is done. Is there anything else?")
    if task.wrong:
        yield _played(World(seed), task, task.wrong, _closing(task))


def _played(world: World, task: Task, actions: Sequence[Call], closing: str) -> list[Message]:
    """Return the messages after the user's first one: lookup, proposal, confirmation, actions, closing."""
    messages = [*_called(world, 0, task.lookup), {"role": "assistant", "content": task.proposal}]
    if task.actions or actions:
        messages.append(
            {"role": "user", "content": "Yes, please do that." if task.actions else "Then do what you can."}
        )
        for number, action in enumerate(actions, 1):
            messages += _called(world, number, action)
        messages.append({"role": "assistant", "content": closing})
    return messages


def _called(world: World, number: int, made: Call) -> list[Message]:
    from bestofn.sandbox.tools.catalogue import CATALOGUE

    name, arguments = made
    result = CATALOGUE[name.replace("_", ".", 1)](world, arguments)
    call_id = f"call_{number}"
    return [
        {"role": "assistant", "content": None, "tool_calls": [call(name, arguments, call_id)]},
        {"role": "tool", "tool_call_id": call_id, "name": name, "content": json.dumps(result)},
    ]


def _closing(task: Task) -> str:
    return f"It is done. Here is what you need to know: {', '.join(task.outputs)}."


def _expected_state(world: World) -> dict[str, object]:
    """Return the changed records of ``world`` without ``FREE_TEXT``, the fields that the assistant may word freely."""
    return {
        table: {
            key: record and {field: value for field, value in record.items() if field not in FREE_TEXT}
            for key, record in records.items()
        }
        for table, records in world.changes().items()
    }
