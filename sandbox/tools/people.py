"""Invented people for the tables of the mock world: names, e-mail addresses, phone numbers."""

from __future__ import annotations

from dataclasses import dataclass

from bestofn.sandbox.tools.seeded import Seeded

_FIRST = ("Ada", "Bjorn", "Carmen", "Deniz", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kavya", "Lena",
          "Mateo", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Stefan", "Tomoko")  # fmt: skip
_LAST = ("Almeida", "Berg", "Castro", "Dahl", "Eriksen", "Fischer", "Garcia", "Hansen", "Ito", "Jansen", "Kumar",
         "Larsen", "Moreau", "Novak", "Okafor", "Petrov", "Quinn", "Rossi", "Silva", "Tanaka")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """One invented person: name, e-mail address and phone number."""

    name: str
    email: str
    phone: str


def person(chance: Seeded) -> Person:
    """Return a person with a random first and last name."""
    first, last = chance.choice(_FIRST), chance.choice(_LAST)
    phone = f"+1-555-{chance.integer(100, 999)}-{chance.integer(1000, 9999)}"
    return Person(f"{first} {last}", f"{first}.{last}@example.com".lower(), phone)


def people(chance: Seeded, count: int) -> list[Person]:
    """Return up to 20 different people. All first names differ, and all last names differ.

    The first person is Ada Almeida in every world.
    """
    firsts = [_FIRST[0], *chance.sample(_FIRST[1:], count - 1)]
    lasts = [_LAST[0], *chance.sample(_LAST[1:], count - 1)]
    return [
        Person(f"{a} {b}", f"{a}.{b}@example.com".lower(), f"+1-555-{chance.integer(100, 999)}-{1000 + number}")
        for number, (a, b) in enumerate(zip(firsts, lasts, strict=True))
    ]
