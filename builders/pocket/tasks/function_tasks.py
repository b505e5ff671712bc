"""Tasks that need a small function in Python or JavaScript."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Literal

from bestofn.builders.pocket.tasks.task import Task
from bestofn.builders.records import CodeTests, Language, Reference

NAMES = ("solve", "compute", "transform", "process", "build")
CodeLanguage = Literal["python", "javascript"]


@dataclass(frozen=True)
class Operation:
    """One operation: its description in a question, its source per language, and the function ``apply``."""

    words: str
    python: str
    javascript: str
    apply: Callable[..., Any]

    def source(self, language: Language) -> str:
        """Return the source of the operation in ``language``."""
        return self.python if language == "python" else self.javascript


# --- numbers: f(x) = scale, then shift -------------------------------------------------------------------------------


def _scaled(k: int) -> Operation:
    return Operation(f"x times {k}", f"x * {k}", f"x * {k}", lambda x: x * k)


SQUARED = Operation("x squared", "x * x", "x * x", lambda x: x * x)
CUBED = Operation("x cubed", "x * x * x", "x * x * x", lambda x: x * x * x)


def _shifted(k: int) -> Operation:
    if k < 0:
        return Operation(f"minus {-k}", f"- {-k}", f"- {-k}", lambda y: y + k)
    return Operation(f"plus {k}", f"+ {k}", f"+ {k}", lambda y: y + k)


def numbers(rng: Random, language: CodeLanguage) -> Task:
    """Create a task whose solution is a function of one number, such as ``x * 3 + 7``.

    The function adds a constant to a multiple, the square or the cube of ``x``.
    """
    k, shift = rng.randint(2, 12), rng.choice([*range(-20, 0), *range(1, 21)])
    scale = rng.choice([_scaled(k), _scaled(k), _scaled(k), SQUARED, CUBED])
    name = rng.choice(NAMES)

    def text(scale: Operation, shift: int) -> str:
        return returned(name, "x", f"{scale.source(language)} {_shifted(shift).source(language)}", language)

    wanted = f"{scale.words} {_shifted(shift).words}"
    asked = f"Write a {label(language)} function {head(name, 'x', language)} that returns {wanted}."
    other = {SQUARED.words: CUBED, CUBED.words: SQUARED}.get(scale.words, _scaled(k + 1))
    slips = (text(scale, -shift), text(other, shift), text(scale, shift + (1 if shift != -1 else 2)))
    values = (0, 1, 2, 3, 5, 10, -4)
    tests = partial(function_tests, name, [(x,) for x in values], lambda x: scale.apply(x) + shift, language)
    return Task(f"code.{language}_numbers", (scale.words, shift), asked, text(scale, shift), slips, tests, 0.4)


# --- lists: filter, map, aggregate -----------------------------------------------------------------------------------


def _filters(k: int) -> tuple[Operation, ...]:
    return (
        Operation("even numbers", "x % 2 == 0", "x % 2 === 0", lambda x: x % 2 == 0),
        Operation("odd numbers", "x % 2 == 1", "x % 2 !== 0", lambda x: x % 2 == 1),
        Operation(f"numbers greater than {k}", f"x > {k}", f"x > {k}", lambda x: x > k),
        Operation(f"numbers less than {k}", f"x < {k}", f"x < {k}", lambda x: x < k),
        Operation(f"numbers of at least {k}", f"x >= {k}", f"x >= {k}", lambda x: x >= k),
        Operation(f"numbers of at most {k}", f"x <= {k}", f"x <= {k}", lambda x: x <= k),
    )


MISTAKEN_FILTER = {0: 1, 1: 0, 2: 4, 3: 5, 4: 2, 5: 3}  # filter -> filter in a wrong answer: odd for even, >= for >


def _maps(k: int) -> tuple[Operation, ...]:
    return (
        Operation("", "x", "", lambda x: x),
        Operation(f", each times {k}", f"x * {k}", f".map(x => x * {k})", lambda x: x * k),
        Operation(f", each plus {k}", f"x + {k}", f".map(x => x + {k})", lambda x: x + k),
        Operation(", each squared", "x * x", ".map(x => x * x)", lambda x: x * x),
    )


AGGREGATES = (
    Operation("a list of the", "[{}]", "{}", list),
    Operation("the sum of the", "sum({})", "{}.reduce((a, b) => a + b, 0)", sum),
    Operation("the number of", "len([{}])", "{}.length", len),
)


@dataclass(frozen=True)
class Lists:
    """A function such as ``sum(x * 3 for x in xs if x > 5)``.

    ``aggregate``, ``filter`` and ``map`` are indices in ``AGGREGATES``, ``_filters`` and ``_maps``.
    """

    aggregate: int
    filter: int
    map: int
    k: int  # the number in the filter
    by: int  # the number in the map

    @property
    def parts(self) -> tuple[Operation, Operation, Operation]:
        """The operations of the function: aggregate, filter and map."""
        return AGGREGATES[self.aggregate], _filters(self.k)[self.filter], _maps(self.by)[self.map]

    @property
    def words(self) -> str:
        """The description of the function in the question."""
        gather, keep, change = self.parts
        return f"{gather.words} {keep.words} in xs{change.words}"

    def source(self, language: Language) -> str:
        gather, keep, change = (part.source(language) for part in self.parts)
        if language == "python":
            return gather.format(f"{change} for x in xs if {keep}")
        return gather.format(f"xs.filter(x => {keep}){change}")

    def apply(self, xs: Sequence[int]) -> Any:
        """Compute the result of the function for ``xs``."""
        gather, keep, change = self.parts
        return gather.apply([change.apply(x) for x in xs if keep.apply(x)])


def lists(rng: Random, language: CodeLanguage) -> Task:
    """Create a task whose solution is a function that filters a list, changes its items, and aggregates them."""
    gather = rng.randrange(len(AGGREGATES))
    change = 0 if AGGREGATES[gather].apply is len else rng.randrange(4)
    wanted = Lists(gather, rng.randrange(6), change, rng.randint(1, 20), rng.randint(2, 9))
    name = rng.choice(NAMES)
    others = [replace(wanted, filter=MISTAKEN_FILTER[wanted.filter])]
    if wanted.filter > 1:
        others.append(replace(wanted, k=wanted.k + 1))
    if wanted.map:
        others.append(replace(wanted, map=0))
    if wanted.aggregate == 1:
        others.append(replace(wanted, aggregate=0))
    values = list_inputs(wanted.k)
    expected = [wanted.apply(*value) for value in values]
    wrong = [other for other in others if [other.apply(*value) for value in values] != expected]
    asked = f"Write a {label(language)} function {head(name, 'xs', language)} that returns {wanted.words}."
    tests = partial(function_tests, name, values, wanted.apply, language)
    facts = (wanted.words,)
    slips = tuple(returned(name, "xs", other.source(language), language) for other in wrong)
    return Task(
        f"code.{language}_lists",
        facts,
        asked,
        returned(name, "xs", wanted.source(language), language),
        slips,
        tests,
        0.5,
    )


def list_inputs(k: int) -> list[tuple[list[int]]]:
    """Return test inputs: lists with values near the boundary ``k``, with odd and even values, and an empty list."""
    return [
        ([k - 1, k, k + 1, k + 2],),
        ([1, 2, 3, 4, 5, 6, 7, 8],),
        ([30, -3, 12, 0, 7, 19, -8],),
        ([],),
        ([k, k, 2 * k + 1],),
    ]


# --- texts: two steps in sequence ------------------------------------------------------------------------------------


def _steps(k: int, letter: str) -> tuple[Operation, ...]:
    return (
        Operation("reversed", "[::-1]", ".split('').reverse().join('')", lambda s: s[::-1]),
        Operation("in upper case", ".upper()", ".toUpperCase()", str.upper),
        Operation("in lower case", ".lower()", ".toLowerCase()", str.lower),
        Operation(f"cut to its first {k} characters", f"[:{k}]", f".slice(0, {k})", lambda s: s[:k]),
        Operation(f"without its first {k} characters", f"[{k}:]", f".slice({k})", lambda s: s[k:]),
        Operation(
            f"with every '{letter}' replaced by '*'",
            f".replace('{letter}', '*')",
            f".replaceAll('{letter}', '*')",
            lambda s: s.replace(letter, "*"),
        ),
    )


MISTAKEN_STEP = {0: 1, 1: 2, 2: 1, 3: 4, 4: 3, 5: 0}  # step -> step in a wrong answer


def texts(rng: Random, language: CodeLanguage) -> Task:
    """Create a task whose solution is a function that changes a text in two steps."""
    k, letter, name = rng.randint(2, 6), rng.choice("aeilnorst"), rng.choice(NAMES)
    first, second = rng.sample(range(6), 2)
    steps = _steps(k, letter)
    values = [("Oslo station",), ("banana",), ("a",), ("",), ("Remote Islands",), ("TOTAL solar eclipse",), ("x1 y2",)]

    def source(places: Sequence[int], steps: Sequence[Operation] = steps) -> str:
        return returned(name, "s", "s" + "".join(steps[place].source(language) for place in places), language)

    def outputs(places: Sequence[int], steps: Sequence[Operation] = steps) -> list[str]:
        made = [value for (value,) in values]
        for place in places:
            made = [steps[place].apply(value) for value in made]
        return made

    expected, longer = outputs((first, second)), _steps(k + 1, letter)
    others = [(first,), (second,), (MISTAKEN_STEP[first], second), (first, MISTAKEN_STEP[second]), (second, first)]
    slips = [source(places) for places in others if outputs(places) != expected]
    if outputs((first, second), longer) != expected:
        slips.append(source((first, second), longer))
    done = f"{steps[first].words} and then {steps[second].words}"
    asked = f"Write a {label(language)} function {head(name, 's', language)} that returns s {done}."
    results = dict(zip((value for (value,) in values), expected, strict=True))
    tests = partial(function_tests, name, values, results.__getitem__, language)
    facts = (steps[first].words, steps[second].words)
    return Task(f"code.{language}_texts", facts, asked, source((first, second)), tuple(slips), tests, 0.5)


# --- shared by all families ------------------------------------------------------------------------------------------


def label(language: Language) -> str:
    """Return the name of ``language`` as written in a question."""
    return {"python": "Python", "javascript": "JavaScript"}[language]


def head(name: str, parameter: str, language: Language) -> str:
    """Return the first line of the function as written in the question, for example `def solve(x)`."""
    return f"`{'def' if language == 'python' else 'function'} {name}({parameter})`"


def returned(name: str, parameter: str, expression: str, language: Language) -> str:
    """Return a Markdown code block with the source of a function that returns ``expression``."""
    if language == "python":
        return f"```python\ndef {name}({parameter}):\n    return {expression}\n```"
    return f"```javascript\nfunction {name}({parameter}) {{\n  return {expression};\n}}\n```"


def function_tests(
    name: str, values: Sequence[tuple[Any, ...]], apply: Callable[..., Any], language: Language
) -> Reference:
    """Return tests that call the function ``name`` with each of ``values``. ``apply`` computes the expected result."""
    cases: list[Mapping[str, Any]] = [{"args": list(value), "expected": apply(*value)} for value in values]
    return Reference(tests=CodeTests("function", language, tuple(cases), entry_point=name))


CODE_LANGUAGES: tuple[CodeLanguage, ...] = ("python", "javascript")
FUNCTIONS: dict[str, Callable[[Random], Task]] = {
    f"code.{language}_{make.__name__}": partial(make, language=language)
    for language, make in itertools.product(CODE_LANGUAGES, (numbers, lists, texts))
}
