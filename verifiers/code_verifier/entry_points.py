"""The entry point of tests: the name of a function, or an expression such as ``Solution().two_sum``."""

from __future__ import annotations

import re

from bestofn.builders.formats.entry_points import is_name
from bestofn.builders.records import CodeTests

ENTRY_METHOD = re.compile(r"(?:new\s+)?Solution\(\)\.([A-Za-z_]\w*)")
_FORWARDED = {
    "python": "def {name}(*args, **kwargs):\n    return ({entry})(*args, **kwargs)",
    "javascript": "function {name}(...args) {{ return {entry}(...args); }}",
}
_FORWARDED["typescript"] = "function {name}(...args: any[]): any {{ return ({entry} as any)(...args); }}"
_FORWARDER = "bestofn_entry_point"


def with_named_entry_point(source: str, tests: CodeTests) -> tuple[str, str]:
    """Return the program and the name of its function to call.

    The sandbox finds a method of ``Solution`` by its name. For other expressions, a function that evaluates the
    expression is added to the program.
    """
    entry = tests.entry_point.strip()
    method = ENTRY_METHOD.fullmatch(entry)
    if method:
        return source, method[1]
    if not entry or is_name(entry) or tests.language not in _FORWARDED:
        return source, entry
    return f"{source}\n\n{_FORWARDED[tests.language].format(name=_FORWARDER, entry=entry)}\n", _FORWARDER
