"""Says in Python what a message says in words of the command line: ``sampling.n=4`` becomes ``sampling={"n": 4}``."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from bestofn.builders.errors import ConfigError, SourceError

_PRICE = re.compile(r"'?\+prices=\{([^:{}]+): \{input: ([\d.]+), output: ([\d.]+)\}\}'?")
_WORD = re.compile(r"(?<![\w'\"./{\[=?&])([a-z_]+(?:\.[A-Za-z_]+)*)=([A-Za-z_][\w-]*|-?\d+(?:\.\d+)?)(?![\w(/:.=]\S)")
_VALUES = {"true": "True", "false": "False", "null": "None"}
_PLACE = "dataset.columns."


@contextlib.contextmanager
def python_messages() -> Iterator[None]:
    """Let errors about settings in the block speak of arguments of Python."""
    try:
        yield
    except (ConfigError, SourceError) as error:
        error.args = (in_python(str(error)), *error.args[1:])
        raise


def in_python(message: str) -> str:
    """Return ``message`` with its ``key=value`` words as arguments of a function."""
    return _WORD.sub(_argument, _PRICE.sub(_prices, message))


def _prices(found: re.Match[str]) -> str:
    model, given, written = found.groups()
    return f'prices={{"{model}": {{"input": {given}, "output": {written}}}}}'


def _argument(found: re.Match[str]) -> str:
    key, value = found.groups()
    shown = _VALUES.get(value) or (value if value[-1].isdigit() and value.lstrip("-")[0].isdigit() else f'"{value}"')
    names = key.removeprefix(_PLACE).split(".") if not key.startswith(_PLACE) else ["columns", key[len(_PLACE) :]]
    for name in reversed(names[1:]):
        shown = f'{{"{name}": {shown}}}'
    return f"{names[0]}={shown}"
