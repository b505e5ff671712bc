"""Tasks that need one tool call. Each task declares two or three tools.

The tools have the names and parameters of the mock tools, so that a build can execute the calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from bestofn.builders.formats.tool_calls import declaration
from bestofn.builders.pocket.tasks.task import Task
from bestofn.builders.records import JsonObject, Reference, Tool

CITIES = (
    "Oslo", "Paris", "Rome", "Madrid", "Berlin", "Tokyo", "Lima", "Cairo", "Delhi", "London",
    "Vienna", "Dublin", "Lisbon", "Athens", "Prague", "Warsaw", "Nairobi", "Toronto", "Chicago", "Sydney",
)  # fmt: skip
MONEY = ("USD", "EUR", "GBP", "JPY", "CHF", "NOK", "SEK", "CAD", "AUD", "INR")
ROOMS = ("kitchen", "bedroom", "office", "hallway", "garage", "bathroom")
LENGTHS = ("km", "mi", "m", "ft", "cm", "in")

Arguments = JsonObject


@dataclass(frozen=True)
class ToolQuestion:
    """A question for one tool, with the right arguments, plausible wrong arguments, and an example result."""

    question: str
    arguments: Arguments
    wrong: tuple[Arguments, ...]
    result: JsonObject
    difficulty: float = 0.5


def _tool(name: str, description: str, required: JsonObject, **optional: JsonObject) -> Tool:
    parameters = {"type": "object", "properties": {**required, **optional}, "required": list(required)}
    return declaration(name, description, parameters)


TEXT, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
UNITS = {"type": "string", "enum": ["metric", "imperial"]}
TOOLS = {
    tool["function"]["name"]: tool
    for tool in (
        _tool("weather_current", "The current weather of a city.", {"location": TEXT}, units=UNITS),
        _tool("weather_forecast", "The weather forecast of a city.", {"location": TEXT, "days": INTEGER}),
        _tool(
            "geo_distance",
            "The distance between two places.",
            {"a": TEXT, "b": TEXT, "unit": {"type": "string", "enum": ["km", "mi"]}},
        ),
        _tool("fx_convert", "An amount of money in another currency.", {"amount": NUMBER, "base": TEXT, "quote": TEXT}),
        _tool(
            "home_set_light",
            "Switch a room's light.",
            {"room": TEXT, "state": {"type": "string", "enum": ["on", "off"]}},
        ),
        _tool("home_set_thermostat", "Set the thermostat.", {"celsius": NUMBER}),
        _tool("calculator_evaluate", "The value of an arithmetic expression.", {"expression": TEXT}),
        _tool("math_prime_factors", "The prime factors of a number.", {"n": INTEGER}),
        _tool("units_convert", "A length in another unit.", {"value": NUMBER, "from_unit": TEXT, "to_unit": TEXT}),
        _tool("ticket_get", "A support ticket by its id.", {"ticket_id": TEXT}),
        _tool("bank_balance", "The balance of an account.", {"account_id": TEXT}),
    )
}


def weather(rng: Random) -> ToolQuestion:
    """Create a question about the current weather in a city, in metric or imperial units."""
    city, units = rng.choice(CITIES), rng.choice(("metric", "imperial"))
    degrees = {"metric": "Celsius", "imperial": "Fahrenheit"}[units]
    other = "imperial" if units == "metric" else "metric"
    question = rng.choice(
        (f"How warm is it in {city} now, in {degrees}?", f"What is the weather in {city}, in {degrees}?")
    )
    wrong = ({"location": city, "units": other}, {"location": _other(rng, CITIES, city), "units": units})
    result = {
        "location": city,
        "temperature": rng.randint(-9, 35) + rng.randint(0, 9) / 10,
        "conditions": "rain",
        "humidity": rng.randint(30, 95),
        "units": units,
    }
    return ToolQuestion(question, {"location": city, "units": units}, wrong, result)


def forecast(rng: Random) -> ToolQuestion:
    """Create a question about the weather forecast of a city for a number of days."""
    city, days = rng.choice(CITIES), rng.randint(2, 14)
    question = rng.choice(
        (f"Give me the forecast for {city} for {days} days.", f"What will the next {days} days in {city} be like?")
    )
    wrong = (
        {"location": city, "days": days + 1},
        {"location": city, "days": days - 1},
        {"location": _other(rng, CITIES, city), "days": days},
    )
    listed = [
        {
            "date": f"2026-01-{day + 10}",
            "high": rng.randint(0, 30) + 0.5,
            "low": rng.randint(-9, 9) + 0.1,
            "conditions": rng.choice(("clear", "fog", "snow")),
            "rain_chance": rng.randint(0, 99),
        }
        for day in range(2)
    ]
    return ToolQuestion(
        question, {"location": city, "days": days}, wrong, {"location": city, "units": "metric", "days": listed}
    )


def distance(rng: Random) -> ToolQuestion:
    """Create a question about the distance between two cities."""
    a, b = rng.sample(CITIES, 2)
    unit = rng.choice(("km", "mi"))
    name = {"km": "kilometres", "mi": "miles"}[unit]
    question = rng.choice(
        (f"How many {name} is it from {a} to {b}?", f"What is the distance from {a} to {b} in {name}?")
    )
    wrong = (
        {"a": a, "b": b, "unit": "mi" if unit == "km" else "km"},
        {"a": b, "b": a, "unit": unit},
        {"a": a, "b": a, "unit": unit},
    )
    return ToolQuestion(
        question,
        {"a": a, "b": b, "unit": unit},
        wrong,
        {"a": a, "b": b, "distance": rng.randint(100, 9000), "unit": unit},
    )


def money(rng: Random) -> ToolQuestion:
    """Create a question about the value of an amount of money in another currency."""
    amount = rng.randint(5, 900)
    base, quote = rng.sample(MONEY, 2)
    question = rng.choice((f"How much is {amount} {base} in {quote}?", f"Convert {amount} {base} to {quote}."))
    arguments = {"amount": amount, "base": base, "quote": quote}
    wrong = (
        {**arguments, "base": quote, "quote": base},
        {**arguments, "amount": amount + 10},
        {**arguments, "quote": _other(rng, MONEY, quote)},
    )
    return ToolQuestion(
        question,
        arguments,
        wrong,
        {"amount": amount, "base": base, "quote": quote, "converted": rng.randint(5, 9000) + 0.25},
    )


def light(rng: Random) -> ToolQuestion:
    """Create a request to switch the light of a room on or off."""
    room, state, hour = rng.choice(ROOMS), rng.choice(("on", "off")), rng.randint(1, 12)
    why = rng.choice(
        (f"It is {hour} o'clock. ", f"I am back at {hour}. ", f"{rng.choice(('Mia', 'Tom', 'Ana'))} comes at {hour}. ")
    )
    question = f"{why}Please switch the light in the {room} {state}."
    wrong = (
        {"room": room, "state": "off" if state == "on" else "on"},
        {"room": _other(rng, ROOMS, room), "state": state},
    )
    return ToolQuestion(
        question, {"room": room, "state": state}, wrong, {"room": room, "state": state, "brightness": 100}, 0.3
    )


def thermostat(rng: Random) -> ToolQuestion:
    """Create a request to change the temperature of the thermostat by a number of degrees."""
    now, change = rng.randint(14, 24), rng.randint(1, 4)
    warmer = rng.random() < 0.5
    celsius = now + change if warmer else now - change
    question = f"The thermostat is at {now} degrees. Make it {change} degrees {'warmer' if warmer else 'cooler'}."
    wrong = ({"celsius": now - change if warmer else now + change}, {"celsius": change}, {"celsius": celsius + 1})
    return ToolQuestion(question, {"celsius": celsius}, wrong, {"celsius": celsius, "mode": "heat"}, 0.7)


def calculation(rng: Random) -> ToolQuestion:
    """Create a question about an arithmetic expression that is written in words."""
    a, b, c = rng.randint(11, 99), rng.randint(2, 99), rng.randint(2, 9)
    kind = rng.randrange(3)
    words, expression, wrong = (
        (f"{a} plus {b}, all times {c}", f"({a} + {b}) * {c}", (f"{a} + {b} * {c}", f"({a} + {b}) + {c}")),
        (f"{a} times {b} minus {c}", f"{a} * {b} - {c}", (f"{a} * {b} + {c}", f"{a} + {b} - {c}")),
        (f"{a} minus {b}, all divided by {c}", f"({a} - {b}) / {c}", (f"{a} - {b} / {c}", f"({a} - {b}) * {c}")),
    )[kind]
    question = rng.choice((f"Calculate {words}.", f"Use the calculator: {words}."))
    return ToolQuestion(
        question,
        {"expression": expression},
        tuple({"expression": one} for one in wrong),
        {"expression": expression, "value": rng.randint(10, 9000)},
        0.6,
    )


def factors(rng: Random) -> ToolQuestion:
    """Create a question about the prime factors of a number."""
    n = rng.randint(20, 9999)
    question = rng.choice((f"What are the prime factors of {n}?", f"Factor {n} into primes."))
    return ToolQuestion(
        question,
        {"n": n},
        ({"n": n + 1}, {"n": n * 10}, {"n": n - 10}),
        {"n": n, "factors": [2, rng.randint(3, 99)], "is_prime": False},
        0.4,
    )


def length(rng: Random) -> ToolQuestion:
    """Create a question about the conversion of a length to another unit."""
    value = rng.randint(2, 500)
    here, there = rng.sample(LENGTHS, 2)
    question = rng.choice((f"How many {there} are {value} {here}?", f"Convert {value} {here} to {there}."))
    arguments = {"value": value, "from_unit": here, "to_unit": there}
    wrong = ({**arguments, "from_unit": there, "to_unit": here}, {**arguments, "value": value + 1})
    return ToolQuestion(
        question,
        arguments,
        wrong,
        {"value": value, "from_unit": here, "to_unit": there, "result": rng.randint(1, 900) + 0.5},
    )


def ticket(rng: Random) -> ToolQuestion:
    """Create a question about the support ticket with a random number."""
    number = rng.randint(1000, 1999)
    question = rng.choice((f"Show me ticket TCK-{number}.", f"What is the state of ticket TCK-{number}?"))
    wrong = ({"ticket_id": f"TCK-{number + 1}"}, {"ticket_id": str(number)}, {"ticket_id": f"ACC-{number}"})
    return ToolQuestion(
        question,
        {"ticket_id": f"TCK-{number}"},
        wrong,
        {"ticket_id": f"TCK-{number}", "title": "a broken lamp", "status": "open"},
        0.4,
    )


def balance(rng: Random) -> ToolQuestion:
    """Create a question about the balance of an account."""
    number = rng.randint(1000, 1999)
    question = rng.choice((f"How much money is on account ACC-{number}?", f"What is the balance of ACC-{number}?"))
    wrong = ({"account_id": f"ACC-{number - 1}"}, {"account_id": str(number)}, {"account_id": f"TCK-{number}"})
    return ToolQuestion(
        question,
        {"account_id": f"ACC-{number}"},
        wrong,
        {"account_id": f"ACC-{number}", "balance": rng.randint(1, 9000) + 0.5, "currency": "EUR"},
        0.4,
    )


QUESTIONS: Mapping[str, Callable[[Random], ToolQuestion]] = {
    "weather_current": weather,
    "weather_forecast": forecast,
    "geo_distance": distance,
    "fx_convert": money,
    "home_set_light": light,
    "home_set_thermostat": thermostat,
    "calculator_evaluate": calculation,
    "math_prime_factors": factors,
    "units_convert": length,
    "ticket_get": ticket,
    "bank_balance": balance,
}


def single_call(rng: Random) -> Task:
    """Create a task whose question needs one call of one of the declared tools."""
    name = rng.choice(list(QUESTIONS))
    others = rng.sample([other for other in QUESTIONS if other != name], rng.randint(1, 2))
    offered = [name, *others]
    rng.shuffle(offered)
    ask = QUESTIONS[name](rng)
    wrong = [written(name, arguments) for arguments in ask.wrong]
    wrong.append("I cannot do that with the tools that I have.")
    return Task(
        "tool_calling.single_call",
        (name, ask.question) if name.startswith("home_") else (name, *sorted(ask.arguments.items())),
        ask.question,
        written(name, ask.arguments),
        tuple(wrong),
        lambda: Reference(calls=({"name": name, "arguments": dict(ask.arguments)},)),
        ask.difficulty,
        tuple(TOOLS[tool] for tool in offered),
        f"Done: {name} has answered.",
        ask.result,
    )


def written(name: str, arguments: Arguments) -> str:
    """Return a tool call as text, in the format that the policy and its chat template use."""
    return f'<tool_call>{{"name": "{name}", "arguments": {json.dumps(arguments)}}}</tool_call>'


def _other(rng: Random, choices: tuple[str, ...], but: str) -> str:
    return rng.choice([choice for choice in choices if choice != but])


TOOL_CALLING: dict[str, Callable[[Random], Task]] = {"tool_calling.single_call": single_call}
