"""Tasks in arithmetic and short word problems. The answers have a few worked steps and a result in ``\\boxed``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from bestofn.builders.pocket.tasks.task import Task
from bestofn.builders.records import Reference

NAMES = ("Mia", "Tom", "Ana", "Ben", "Zoe", "Sam", "Lea", "Max", "Ida", "Noah")
THINGS = ("apples", "pens", "books", "coins", "stamps", "cards", "shells", "marbles", "eggs", "tickets")


def addition(rng: Random) -> Task:
    """Create a task that asks for the sum of two numbers."""
    a, b = rng.randint(12, 99), rng.randint(12, 99)
    asked = (f"What is {a} + {b}?", f"Add {a} and {b}.", f"Compute {a} + {b}.")
    tens, units = a // 10 * 10 + b // 10 * 10, a % 10 + b % 10

    def worked(tens: int, units: int, total: int) -> str:
        steps = f"{a // 10 * 10} + {b // 10 * 10} = {tens}, {a % 10} + {b % 10} = {units}"
        return boxed(f"{steps}, {tens} + {units} = {total}.", total)

    slips = [worked(tens, units, a + b + 10), worked(tens, units, a + b - 10), worked(tens, units - 1, a + b - 1)]
    slips += [worked(tens, units + 1, a + b + 1), worked(tens - 10, units, a + b - 10)]
    difficulty = 0.7 if units > 9 else 0.3
    return new_task("addition", (a, b), rng.choice(asked), worked(tens, units, a + b), slips, a + b, difficulty)


def subtraction(rng: Random) -> Task:
    """Create a task that asks for the difference of two numbers."""
    a, b = sorted((rng.randint(12, 99), rng.randint(12, 99)), reverse=True)
    asked = (f"What is {a} - {b}?", f"Subtract {b} from {a}.", f"Compute {a} - {b}.")
    tens, units = b // 10 * 10, b % 10

    def worked(between: int, left: int) -> str:
        return boxed(f"{a} - {tens} = {between}, {between} - {units} = {left}.", left)

    slips = [worked(a - tens, a - b + 10), worked(a - tens, a - b + 1), worked(a - tens, a - tens + units)]
    slips += [worked(a - tens + 10, a - b + 10)]
    difficulty = 0.7 if a % 10 < units else 0.3
    return new_task("subtraction", (a, b), rng.choice(asked), worked(a - tens, a - b), slips, a - b, difficulty)


def multiplication(rng: Random) -> Task:
    """Create a task that asks for the product of a two-digit and a one-digit number."""
    a, b = rng.randint(12, 99), rng.randint(3, 9)
    asked = (f"What is {a} * {b}?", f"Multiply {a} by {b}.", f"Compute {a} * {b}.")
    tens, units = a // 10 * 10, a % 10

    def worked(first: int, second: int, total: int) -> str:
        return boxed(f"{tens} * {b} = {first}, {units} * {b} = {second}, {first} + {second} = {total}.", total)

    first, second = tens * b, units * b
    slips = [worked(first, second + b, first + second + b), worked(first - 10 * b, second, first - 10 * b + second)]
    slips += [worked(first, second, first + second + 10), worked(first, units + b, first + units + b)]
    return new_task("multiplication", (a, b), rng.choice(asked), worked(first, second, a * b), slips, a * b, 0.7)


def gains_and_losses(rng: Random) -> Task:
    """Create a task: a word problem in which somebody first gets and then loses some things."""
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    start, more = rng.randint(11, 60), rng.randint(4, 30)
    less = rng.randint(3, start - 3)
    asked = (
        f"{name} has {start} {thing}, buys {more} more and gives {less} away. How many {thing} are left?",
        f"{name} had {start} {thing}. {name} found {more} and then lost {less}. How many {thing} does {name} have now?",
    )
    between = start + more

    def worked(between: int, left: int, sign: str = "-") -> str:
        return boxed(f"{start} + {more} = {between}, {between} {sign} {less} = {left}.", left)

    slips = [worked(between, between + less, "+"), boxed(f"{start} + {more} = {between}.", between)]
    slips += [worked(between + 10, between + 10 - less), worked(between, between - less + 1)]
    answer = worked(between, between - less)
    return new_task("gains_and_losses", (start, more, less), rng.choice(asked), answer, slips, between - less, 0.6)


def boxes(rng: Random) -> Task:
    """Create a task: a word problem about several boxes with equal content and some additional things."""
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    each, count, more = rng.randint(3, 12), rng.randint(3, 9), rng.randint(2, 19)
    asked = (
        f"{name} has {count} boxes with {each} {thing} each and {more} more. How many {thing} are there in all?",
        f"A box holds {each} {thing}. {name} fills {count} boxes and has {more} over. How many {thing} is that?",
    )
    inside = each * count

    def worked(inside: int, total: int) -> str:
        return boxed(f"{count} * {each} = {inside}, {inside} + {more} = {total}.", total)

    slips = [boxed(f"{count} * {each} = {inside}.", inside), worked(inside + count, inside + count + more)]
    slips += [
        worked(inside, inside + more + 10),
        boxed(f"{count} + {each} + {more} = {count + each + more}.", count + each + more),
    ]
    return new_task(
        "boxes", (each, count, more), rng.choice(asked), worked(inside, inside + more), slips, inside + more, 0.6
    )


def sharing(rng: Random) -> Task:
    """Create a task: a word problem in which some things are kept and all others are shared equally."""
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    friends, each, kept = rng.randint(3, 9), rng.randint(3, 12), rng.randint(2, 15)
    total = friends * each + kept
    asked = (
        f"{name} has {total} {thing}, keeps {kept} and shares the rest among {friends} friends. How many for each?",
        f"Of {total} {thing}, {kept} are broken. The others are shared by {friends} people. How many does each get?",
    )

    def worked(rest: int, got: int) -> str:
        return boxed(f"{total} - {kept} = {rest}, {rest} / {friends} = {got}.", got)

    rest = total - kept
    slips = [
        worked(rest, each + 1),
        worked(rest, each - 1),
        worked(rest + friends, each + 1),
        boxed(f"{total} - {kept} = {rest}.", rest),
    ]
    return new_task("sharing", (total, kept, friends), rng.choice(asked), worked(rest, each), slips, each, 0.5)


def equation(rng: Random) -> Task:
    """Create a task that asks for the solution of a linear equation with one operation."""
    x, plus = rng.randint(6, 60), rng.random() < 0.5
    a = rng.randint(4, 40 if plus else x - 1)
    b = x + a if plus else x - a
    sign, inverse = ("+", "-") if plus else ("-", "+")
    letter = rng.choice("xyn")
    asked = (f"Solve {letter} {sign} {a} = {b} for {letter}.", f"Find {letter} if {letter} {sign} {a} = {b}.")

    def worked(found: int, operation: str = inverse) -> str:
        return boxed(f"{letter} = {b} {operation} {a} = {found}.", found)

    wrong_way = b + a if plus else b - a
    slips = [worked(wrong_way, sign), worked(x + 10), worked(x + 1), worked(x - 1)]
    return new_task("equation", (a, b, sign), rng.choice(asked), worked(x), slips, x, 0.5)


def remainder(rng: Random) -> Task:
    """Create a task that asks for the remainder of a division."""
    divisor, quotient = rng.randint(3, 9), rng.randint(3, 20)
    left = rng.randint(1, divisor - 1)
    a = divisor * quotient + left
    asked = (f"What is the remainder when {a} is divided by {divisor}?", f"Compute {a} mod {divisor}.")

    def worked(multiple: int, left: int) -> str:
        return boxed(f"{divisor} * {multiple // divisor} = {multiple}, {a} - {multiple} = {left}.", left)

    slips = [
        worked(a - left - divisor, left + divisor),
        worked(a - left, left + 1),
        boxed(f"{a} / {divisor} is about {quotient}.", quotient),
    ]
    return new_task("remainder", (a, divisor), rng.choice(asked), worked(a - left, left), slips, left, 0.6)


def fraction(rng: Random) -> Task:
    """Create a task that asks for a fraction of a whole number."""
    below = rng.randint(3, 9)
    above, each = rng.randint(2, below - 1), rng.randint(3, 20)
    whole = below * each
    asked = (f"What is {above}/{below} of {whole}?", f"Find {above}/{below} of {whole}.")

    def worked(each: int, found: int) -> str:
        return boxed(f"{whole} / {below} = {each}, {each} * {above} = {found}.", found)

    slips = [
        boxed(f"{whole} / {below} = {each}.", each),
        worked(each + 1, (each + 1) * above),
        worked(each, each * above + above),
    ]
    return new_task(
        "fraction", (above, below, whole), rng.choice(asked), worked(each, each * above), slips, each * above, 0.5
    )


def rectangle(rng: Random) -> Task:
    """Create a task that asks for the area or the perimeter of a rectangle."""
    a, b, what = rng.randint(3, 30), rng.randint(3, 12), rng.choice(("area", "perimeter"))
    asked = (
        f"A rectangle is {a} cm long and {b} cm wide. What is its {what}?",
        f"Find the {what} of a {a} by {b} rectangle.",
    )
    area = boxed(f"{a} * {b} = {a * b}.", a * b)
    around = boxed(f"{a} + {b} = {a + b}, 2 * {a + b} = {2 * (a + b)}.", 2 * (a + b))
    once = boxed(f"{a} + {b} = {a + b}.", a + b)
    if what == "area":
        off = boxed(f"{a} * {b} = {a * b + b}.", a * b + b)
        return new_task("rectangle", (a, b, what), rng.choice(asked), area, [around, off, once], a * b, 0.5)
    return new_task("rectangle", (a, b, what), rng.choice(asked), around, [area, once], 2 * (a + b), 0.5)


def mean(rng: Random) -> Task:
    """Create a task that asks for the mean of two numbers."""
    a, b = rng.randint(5, 60), rng.randint(5, 60)
    b += (a + b) % 2
    asked = (f"What is the mean of {a} and {b}?", f"Find the average of {a} and {b}.")

    def worked(total: int, half: int) -> str:
        return boxed(f"{a} + {b} = {total}, {total} / 2 = {half}.", half)

    total = a + b
    slips = [boxed(f"{a} + {b} = {total}.", total), worked(total + 10, total // 2 + 5), worked(total, total // 2 + 1)]
    return new_task("mean", (a, b), rng.choice(asked), worked(total, total // 2), slips, total // 2, 0.5)


MATH: dict[str, Callable[[Random], Task]] = {
    f"math.{task.__name__}": task
    for task in (
        addition,
        subtraction,
        multiplication,
        gains_and_losses,
        boxes,
        sharing,
        equation,
        remainder,
        fraction,
        rectangle,
        mean,
    )
}


def boxed(worked: str, answer: int) -> str:
    """Return an answer: the steps ``worked``, then the result ``answer`` in ``\\boxed``."""
    return f"{worked}\nThe answer is \\boxed{{{answer}}}."


def new_task(
    name: str,
    facts: tuple[object, ...],
    question: str,
    answer: str,
    slips: Sequence[str],
    value: int,
    difficulty: float,
) -> Task:
    """Create a math task. Wrong answers that contain the right result or a negative result are removed."""
    right = f"\\boxed{{{value}}}"
    wrong = tuple(slip for slip in slips if right not in slip and "= -" not in slip and "boxed{-" not in slip)
    return Task(f"math.{name}", facts, question, answer, wrong, lambda: Reference(answer=str(value)), difficulty)
