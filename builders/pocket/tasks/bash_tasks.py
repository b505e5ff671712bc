"""Tasks that need a Bash script of one line. The script reads standard input or has no input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from bestofn.builders.pocket.tasks.task import Task
from bestofn.builders.records import CodeTests, Reference

WORDS = ("red", "sun", "tea", "oak", "sky", "fox", "sea", "ice", "owl", "bus", "map", "jam")


def inputs(word: str) -> tuple[str, ...]:
    """Return three test inputs for a script that searches for ``word``.

    The first two inputs have several lines with ``word``. In the second input, every second line is in upper case. The
    third input has no line with ``word``.
    """
    others = [other for other in WORDS if other != word]
    plain = [row for number in range(11) for row in (f"{word} {number}", f"{others[number]} by the door", "no more")]
    capitals = [row.upper() if number % 2 else row for number, row in enumerate(plain)]
    return "".join(f"{row}\n" for row in [*plain, f"old {word}"]), "".join(f"{row}\n" for row in capitals), "one line\n"


def printed(rng: Random) -> Task:
    """Create a task whose solution is a script that prints numbers or a repeated word and reads no input."""
    first, step, count = rng.randint(1, 40), rng.randint(2, 9), rng.randint(3, 9)
    word = rng.choice(WORDS)
    last = first + step * count
    kind = rng.randrange(3)
    if kind == 0:
        question = f"Write a Bash script that prints the numbers from {first} to {last}, one per line."
        answer, slips = f"seq {first} {last}", (f"seq {first} {last - 1}", f"seq {last}", f"seq {first} {last + 1}")
        output = "\n".join(map(str, range(first, last + 1)))
        facts: tuple[object, ...] = ("range", first, last)
    elif kind == 1:
        question = f"Write a Bash script that prints the numbers from {first} to {last} in steps of {step}."
        answer, slips = (
            f"seq {first} {step} {last}",
            (f"seq {first} {last}", f"seq {first} {step + 1} {last}", f"seq {step} {first} {last}"),
        )
        output = "\n".join(map(str, range(first, last + 1, step)))
        facts = ("steps", first, step, last)
    else:
        count += rng.randint(0, 20)
        question = f"Write a Bash script that prints the word {word} {count} times, one per line."
        answer, slips = (
            _repeated(word, count),
            (_repeated(word, count - 1), _repeated(word, count + 1), f"echo {word} {count}"),
        )
        output = "\n".join([word] * count)
        facts = ("word", word, count)
    tests = partial(_tests, "output", [("", output + "\n")])
    return Task("code.bash_printed", facts, question, fenced(answer), tuple(map(fenced, slips)), tests, 0.45)


def filtered(rng: Random) -> Task:
    """Create a task whose solution is a script that filters the lines of standard input.

    The script prints the lines that contain a word, or the lines without this word. Some tasks ask only for the first
    or last matching lines, or for the number of matching lines.
    """
    word, k, kind = rng.choice(WORDS), rng.randint(2, 9), rng.randrange(len(FILTERS))
    cut = rng.choice(("", "", "head", "tail")) if kind != COUNTED else ""
    kept = f" {'first' if cut == 'head' else 'last'} {k}" if cut else ""
    words, _, wrong_kind = FILTERS[kind]

    def source(kind: int = kind, word: str = word, cut: str = cut, k: int = k) -> str:
        return f"grep {FILTERS[kind][1]}'{word}'" + (f" | {cut} -n {k}" if cut else "")

    question = f"Write a Bash script that reads standard input and prints {words.format(kept, word)}."
    other = rng.choice([choice for choice in WORDS if choice != word])
    slips = [source(kind=wrong_kind), source(word=other)]
    if cut:
        slips += [source(cut="tail" if cut == "head" else "head"), source(cut="")]
    tests = partial(_tests, "stdin", [(lines, _expected(kind, lines, word, cut, k)) for lines in inputs(word)])
    facts = (kind, word, cut, k if cut else 0)
    return Task("code.bash_filtered", facts, question, fenced(source()), tuple(map(fenced, slips)), tests, 0.45)


# per filter: text in the question, flag of grep, index of the filter that a wrong answer uses
FILTERS = (
    ("the{} lines that contain {}", "", 1),
    ("the{} lines that do not contain {}", "-v ", 0),
    ("the{} lines that contain {} in upper or lower case", "-i ", 1),
    ("how many{} lines contain {}", "-c ", 0),
)
COUNTED = 3  # index in FILTERS of the filter that counts lines


def _expected(kind: int, lines: str, word: str, cut: str, k: int) -> str:
    rows = lines.splitlines()
    if kind == COUNTED:
        return f"{sum(word in row for row in rows)}\n"
    kept = [row for row in rows if (word in (row.lower() if kind == 2 else row)) != (kind == 1)]
    if cut:
        kept = kept[:k] if cut == "head" else kept[-k:]
    return "".join(row + "\n" for row in kept)


def _repeated(word: str, count: int) -> str:
    return f"for i in $(seq {count}); do echo {word}; done"


def _tests(kind: str, cases: Sequence[tuple[str, str]]) -> Reference:
    if kind == "output":
        return Reference(tests=CodeTests("output", "bash", tuple({"stdout": output} for _, output in cases)))
    return Reference(tests=CodeTests("stdin", "bash", tuple({"stdin": given, "stdout": out} for given, out in cases)))


def fenced(source: str) -> str:
    """Put ``source`` into a Markdown code block."""
    return f"```bash\n{source}\n```"


BASH: dict[str, Callable[[Random], Task]] = {"code.bash_printed": printed, "code.bash_filtered": filtered}
