"""Converts a JavaScript module to a script, because the sandbox and the tests refer to its functions by name.

This module also removes the type annotations of TypeScript. It recognises only the forms that models usually write. The
result may be wrong, so the verifier never fails a program that was TypeScript.
"""

from __future__ import annotations

import re

_IMPORTS = (
    (
        re.compile(r"^import\s+\*\s+as\s+([\w$]+)\s+from\s+(['\"][^'\"]+['\"]);?", re.MULTILINE),
        r"const \1 = require(\2);",
    ),
    (re.compile(r"^import\s+([\w$]+)\s+from\s+(['\"][^'\"]+['\"]);?", re.MULTILINE), r"const \1 = require(\2);"),
    (re.compile(r"^import\s+(['\"][^'\"]+['\"]);?", re.MULTILINE), r"require(\1);"),
)
_NAMED_IMPORT = re.compile(r"^import\s+(?:([\w$]+)\s*,\s*)?\{([^}]*)\}\s+from\s+(['\"][^'\"]+['\"]);?", re.MULTILINE)
_EXPORT_LIST = re.compile(r"^export\s*\{[^}]*\}(?:\s*from\s*['\"][^'\"]+['\"])?;?[ \t]*$", re.MULTILINE)
_EXPORT_NAME = re.compile(r"^export\s+default\s+[\w$]+;?[ \t]*$", re.MULTILINE)
_EXPORT_NAMED = re.compile(
    r"^export\s+(?:default\s+)?(?=(?:async\s+)?function\b\s*\*?\s*[\w$]+|class\s+(?!extends\b)[\w$]+|const\b|let\b|var\b)",
    re.MULTILINE,
)
_EXPORT_VALUE = re.compile(r"^export\s+default\s+", re.MULTILINE)
_EXPORTED_FUNCTION = re.compile(
    r"^module\.exports\s*=\s*(?=(?:async\s+)?(?:function\s*\*?\s*\(|\([^()\n]*\)\s*=>|[A-Za-z_$][\w$]*\s*=>))",
    re.MULTILINE,
)
_MODULE_ONLY = re.compile(r"^(?:import|export)\b", re.MULTILINE)
_TOP_AWAIT = re.compile(r"^(?:(?:const|let|var) [^=\n]+= *)?await\b|\bimport\.meta\b", re.MULTILINE)


def as_script(source: str, entry_point: str) -> str:
    """Return the module ``source`` as a script: without ``export``, and with ``require`` instead of ``import``.

    A default export without a name, and ``module.exports = …``, get the name ``entry_point``. A module that awaits
    at its top level, or uses ``import.meta``, works only as a module and keeps its form.
    """
    if not _MODULE_ONLY.search(source) or _TOP_AWAIT.search(source):
        nameless = is_nameless(source, entry_point)
        return _EXPORTED_FUNCTION.sub(f"const {entry_point} = module.exports = ", source, 1) if nameless else source
    source = _NAMED_IMPORT.sub(_required, source)
    for pattern, replacement in _IMPORTS:
        source = pattern.sub(replacement, source)
    source = _EXPORT_NAMED.sub("", _EXPORT_NAME.sub("", _EXPORT_LIST.sub("", source)))
    nameless = is_nameless(source, entry_point)
    return _EXPORT_VALUE.sub(f"const {entry_point} = " if nameless else "module.exports = ", source)


def is_nameless(source: str, entry_point: str) -> bool:
    """Return whether ``entry_point`` is a plain name that ``source`` neither assigns nor declares."""
    if not re.fullmatch(r"[A-Za-z_$][\w$]*", entry_point):
        return False
    name = re.escape(entry_point)
    return not re.search(rf"\b{name}\s*=[^=]|\b(?:function\*?|class)\s+{name}\b", source)


def _required(match: re.Match[str]) -> str:
    default, members, module = match.groups()
    fields = ", ".join(re.sub(r"\s+as\s+", ": ", member.strip()) for member in members.split(",") if member.strip())
    whole = f"const {default} = require({module}); " if default else ""
    return f"{whole}const {{ {fields} }} = require({module});"


_TYPE = r"(?:readonly\s+)?[A-Za-z_$][\w$.]*(?:<[^;{}()=]*?>)?(?:\[\])*"
_LITERAL_TYPE = r"'[^']*'|\"[^\"]*\""
_ONE_TYPE = rf"(?:{_TYPE}|\[[^\]]*\]|\{{[^{{}}]*\}}|{_LITERAL_TYPE})(?:\[\])*"
_TYPES = rf"{_ONE_TYPE}(?:\s*[|&]\s*(?:{_TYPE}|{_LITERAL_TYPE}))*"
_PRIMITIVE = r"(?:number|string|boolean|any|void|unknown|never|bigint)"
_MARKS = re.compile(  # none of these is valid JavaScript
    r"^\s*(?:export\s+)?(?:interface\s+\w+[^\n]*\{|type\s+\w+(?:<[^>]*>)?\s*=|enum\s+\w+\s*\{)"
    r"|\(\s*(?:\.\.\.)?[\w$]+\??\s*:|\b(?:const|let|var)\s+[\w$]+\s*:|^\s*(?:private|public|protected|readonly)\s+[\w$]"
    rf"|\)\s*:\s*(?:{_PRIMITIVE}|[A-Z]\w*<[^;{{}}()]*>)(?:\[\])*\s*(?:\{{|=>)|\bas\s+(?:const|{_PRIMITIVE})\b",
    re.MULTILINE,
)
_TYPESCRIPT_TAGS = ("typescript", "ts", "tsx")


_QUOTED = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL)


def is_typescript(source: str, tag: str) -> bool:
    """Guess whether ``source`` has type annotations. ``tag`` is the language name on the code fence."""
    return tag in _TYPESCRIPT_TAGS or bool(_MARKS.search(_QUOTED.sub("''", source)))


_DECLARATIONS = re.compile(
    r"^[ \t]*(?:export\s+)?(?:interface\s+[^{]*\{[^}]*\}|type\s+\w+(?:<[^>]*>)?\s*=[^;]*;|declare\s[^\n]*)[ \t]*\n?",
    re.MULTILINE,
)


def without_types(source: str) -> str:
    """Return TypeScript source without interfaces, type aliases, annotations, ``as`` and type arguments."""
    source = _DECLARATIONS.sub("", source)
    source = re.sub(r"\b(?:private|public|protected|readonly)\s+(?=[\w$])", "", source)
    source = re.sub(
        r"(\bfunction\s*[\w$]*|\bclass\s+[\w$]+|^\s+[\w$]+)<[^()>]*>(?=\s*[({]|\s+extends)",
        r"\1",
        source,
        flags=re.MULTILINE,
    )
    source = re.sub(rf"(\bnew\s+[\w$]+|\.[\w$]+)<(?:{_TYPES})(?:\s*,\s*{_TYPES})*>(?=\()", r"\1", source)
    source = re.sub(rf"\)\s*:\s*(?:\w+\s+is\s+)?{_TYPES}(?=\s*(?:\{{|=>))", ")", source)
    source = re.sub(rf"(\b(?:const|let|var)\s+[\w$]+)\s*!?:\s*{_TYPES}(?=\s*[=;\n])", r"\1", source)
    source = re.sub(r"\(([^()]*)\)(?=\s*(?:\{|=>))", _parameters, source)
    source = re.sub(rf"^(\s+[\w$]+)[?!]?:\s*{_TYPES}(?=\s*[=;]\s*)", r"\1", source, flags=re.MULTILINE)
    return re.sub(rf"\s+as\s+(?:const\b|{_TYPES})|(?<=[\w\])])!(?=[.\[;,)])", "", source)


def _parameters(match: re.Match[str]) -> str:
    return "(" + re.sub(rf"(?<![?\w$])((?:\.\.\.)?[\w$]+)\??\s*:\s*{_TYPES}", r"\1", match[1]) + ")"
