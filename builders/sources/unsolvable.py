"""Problems that provably have no solution, each with a *twin*: a solvable problem with the same wording.

``conf/dataset/unsolvable.yaml`` uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random

from bestofn.builders.errors import SourceError
from bestofn.builders.records import PositiveCount, Query, Reference

MAX_TRIES = 50  # after this many repeated problems, a repetition is accepted
SHORT_MONTHS = {
    "February": (31, 28),
    "April": (90, 30),
    "June": (151, 30),
    "September": (243, 30),
    "November": (304, 30),
}
"""Month → (days of the year before the month, days in the month), in a year that is not a leap year."""


@dataclass(frozen=True, slots=True)
class Twins:
    """A solvable problem with its answer, and an unsolvable problem with the same wording.

    ``why`` proves that the second problem has no solution.
    """

    solvable: str
    answer: int
    unsolvable: str
    why: str


def integer_multiple(rng: Random) -> Twins:
    """Ask for the whole number x with factor · x = product; unsolvable if the factor does not divide the product."""
    factor, times = rng.randint(3, 9), rng.randint(4, 20)
    off = factor * times + rng.randint(1, factor - 1)
    ask = f"Which whole number multiplied by {factor} gives {{}}?"
    return Twins(ask.format(factor * times), times, ask.format(off), f"{off} is no multiple of {factor}")


def sum_and_double(rng: Random) -> Twins:
    """Ask for x from two equations in x and y; unsolvable if the equations contradict each other."""
    x, y = rng.randint(5, 30), rng.randint(2, 20)
    first = f"Two numbers x and y satisfy x + y = {x + y}"
    return Twins(
        f"{first} and x + 2y = {x + 2 * y}. What is x?",
        x,
        f"{first} and 2x + 2y = {2 * (x + y) + 1}. What is x?",
        f"the second equation says x + y = {x + y}.5",
    )


def triangle_sides(rng: Random) -> Twins:
    """Ask for the perimeter of a triangle; unsolvable if one side is longer than the other two together."""
    a, b = rng.randint(3, 9), rng.randint(3, 9)
    short, long = a + b - 1, a + b + rng.randint(2, 9)
    ask = f"A triangle has sides of {a} cm, {b} cm and {{}} cm. What is its perimeter in cm?"
    return Twins(ask.format(short), a + b + short, ask.format(long), f"{a} + {b} is less than {long}")


def real_square(rng: Random) -> Twins:
    """Ask for a real square root; unsolvable if the square is negative."""
    n = rng.randint(3, 15)
    ask = f"Find the positive real number x with x^2 + {n} = {{}}."
    return Twins(ask.format(n * n + n), n, ask.format(n - rng.randint(1, n - 1)), "no real square is negative")


def part_of_whole(rng: Random) -> Twins:
    """Ask for a whole minus a part; unsolvable if the part is larger than the whole."""
    whole = rng.randint(8, 30)
    part, more = rng.randint(2, whole - 2), whole + rng.randint(2, 9)
    ask = f"A bag holds {whole} marbles in all. {{}} of them are red and the rest are blue. How many are blue?"
    return Twins(ask.format(part), whole - part, ask.format(more), "the red ones are more than all")


def mean_of_three(rng: Random) -> Twins:
    """Give the mean of three positive numbers and one of them; ask for the sum of the other two.

    Unsolvable if the given number is larger than the sum of all three.
    """
    mean = rng.randint(5, 20)
    one, large = rng.randint(2, mean), 3 * mean + rng.randint(1, 9)
    ask = f"Three positive whole numbers have a mean of {mean}. One of them is {{}}. What is the sum of the other two?"
    return Twins(ask.format(one), 3 * mean - one, ask.format(large), f"the three together are only {3 * mean}")


def between(rng: Random) -> Twins:
    """Ask for the whole number between two numbers, such as 20 and 22; unsolvable for neighbours such as 20 and 21."""
    low = rng.randint(10, 90)
    ask = f"Which whole number is greater than {low} and less than {{}}?"
    return Twins(ask.format(low + 2), low + 1, ask.format(low + 1), "none lies between neighbours")


def two_factors(rng: Random) -> Twins:
    """Ask for the smaller of two factors of a number; unsolvable if the number is prime."""
    small, large = rng.choice((2, 3, 5, 7)), rng.choice((11, 13, 17, 19, 23))
    prime = rng.choice((29, 31, 37, 41, 43, 47, 53, 59, 61, 67))
    ask = "The number {} is the product of two whole numbers that are both greater than 1. What is the smaller of them?"
    return Twins(ask.format(small * large), small, ask.format(prime), f"{prime} is prime")


def third_angle(rng: Random) -> Twins:
    """Ask for the third angle of a triangle; unsolvable if the first two together exceed 180 degrees."""
    first, second = rng.randint(30, 80), rng.randint(30, 80)
    too_wide = rng.randint(181 - first, 200 - first)
    ask = f"Two angles of a triangle in the plane measure {first} and {{}} degrees. How many degrees has the third?"
    return Twins(ask.format(second), 180 - first - second, ask.format(too_wide), "two angles alone exceed 180 degrees")


def coins(rng: Random) -> Twins:
    """Ask for the number of 5-cent coins in an amount; unsolvable if the amount is not a multiple of 5."""
    fives = rng.randint(3, 15)
    odd = 5 * fives + rng.randint(1, 4)
    ask = "You have as many 5-cent coins as you like and no others. How many of them pay exactly {} cents?"
    return Twins(ask.format(5 * fives), fives, ask.format(odd), f"{odd} is no multiple of 5")


def day_of_year(rng: Random) -> Twins:
    """Ask for the day of the year of a date; unsolvable if the month has no such day."""
    month = rng.choice(tuple(SHORT_MONTHS))
    before, days = SHORT_MONTHS[month]
    day, lost = rng.randint(2, days), rng.randint(days + 1, 31)
    ask = f"In a year that is not a leap year, which day of the year, counted from 1 January as day 1, is {{}} {month}?"
    return Twins(ask.format(day), before + day, ask.format(lost), f"that {month} has {days} days")


def consecutive(rng: Random) -> Twins:
    """Ask for the smaller of two consecutive numbers with a given sum; unsolvable if the sum is even."""
    low = rng.randint(10, 80)
    ask = "The sum of two consecutive whole numbers is {}. What is the smaller one?"
    return Twins(ask.format(2 * low + 1), low, ask.format(2 * low), "the sum of neighbours is odd")


FAMILIES: Mapping[str, Callable[[Random], Twins]] = {
    family.__name__: family
    for family in (
        integer_multiple, sum_and_double, triangle_sides, real_square, part_of_whole, mean_of_three,
        between, two_factors, third_angle, coins, day_of_year, consecutive,
    )
}  # fmt: skip


class Unsolvable:
    """Generates ``size`` pairs of a solvable and an unsolvable problem, from twelve families. Nothing is downloaded.

    The splits are ``math`` (solvable) and ``no_solution``. ``metadata`` has ``posed`` (``well``, ``no_solution``),
    ``flaw`` (the proof), ``family``, and ``origin``, which is equal for both problems of a pair. ``max_queries`` limits
    the queries in total.
    """

    name = "unsolvable"

    def __init__(
        self, *, size: int = 60, seed: int = 0, max_queries: PositiveCount | None = None, license: str = ""
    ) -> None:
        self.license = license
        if size < 1:
            raise SourceError(f"dataset.size is {size}; expected at least 1 problem")
        self.size, self.seed, self.max_queries = size, seed, max_queries

    def __iter__(self) -> Iterator[Query]:
        yield from islice(self._queries(), self.max_queries)

    def _queries(self) -> Iterator[Query]:
        rng, names = Random(f"unsolvable {self.seed}"), list(FAMILIES)
        seen: set[str] = set()
        for number in range(self.size):
            family = names[number % len(names)]
            twins = _unseen(FAMILIES[family], rng, seen)
            origin = f"{family}-{number // len(names)}"
            facts = {"family": family, "origin": origin}
            yield Query(
                f"{origin}#well",
                "math",
                ({"role": "user", "content": twins.solvable},),
                reference=Reference(answer=str(twins.answer)),
                source=self.name,
                metadata={**facts, "posed": "well"},
            )
            yield Query(
                f"{origin}#no_solution",
                "no_solution",
                ({"role": "user", "content": twins.unsolvable},),
                source=self.name,
                metadata={**facts, "posed": "no_solution", "flaw": twins.why},
            )


def _unseen(family: Callable[[Random], Twins], rng: Random, seen: set[str]) -> Twins:
    """Generate twins until their unsolvable text is not in ``seen``, and add this text to ``seen``.

    If all of ``MAX_TRIES`` further texts are in ``seen``, the last twins are returned.
    """
    twins = family(rng)
    for _ in range(MAX_TRIES):
        if twins.unsolvable not in seen:
            break
        twins = family(rng)
    seen.add(twins.unsolvable)
    return twins
