"""Reads the parameters of a class or function from its source text and does not import it.

The help of a choice and shell completion use this module, so that they need not import heavy libraries such as torch.
``signatures.py`` checks values against the imported objects.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True, slots=True)
class Parameter:
    """A keyword parameter as written in the source. If ``default`` is None, a value is required.

    If the type of the parameter is a dataclass, ``record`` is the dotted path of the dataclass. The user can then set
    each field of the dataclass.
    """

    name: str
    annotation: str
    default: str | None
    record: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """The docstring and the keyword parameters of a class or function."""

    docstring: str
    parameters: tuple[Parameter, ...]


def signature(target: str) -> Signature | None:
    """Return the signature of the class or function at the dotted path ``target``; None if its source is not found."""
    located = _located(target)
    if located is None:
        return None
    module, node = located
    docstring = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        return Signature(docstring, tuple(_parameters(module, node, skip_data=True)))
    return Signature(docstring, tuple(_of_class(module, node)))


def _located(target: str) -> tuple[str, Definition] | None:
    """Return (module, definition) of ``target``. If a module only imports the name, the import is followed."""
    module, _, name = target.rpartition(".")
    tree = _tree(module) if module else None
    if tree is None:
        return None
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _located(f"{node.module}.{alias.name}")
    return None


@functools.lru_cache(maxsize=256)
def _tree(module: str) -> ast.Module | None:
    path = _file(module)
    return ast.parse(path.read_text(encoding="utf-8")) if path else None


def _file(module: str) -> Path | None:
    """Return the source file of ``module``; None if there is none. The packages of bestofn are not imported."""
    parts = module.split(".")
    if parts[0] == "bestofn":
        base = Path(__file__).resolve().parents[2].joinpath(*parts[1:])
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _of_class(module: str, node: ast.ClassDef) -> Iterator[Parameter]:
    """Yield the parameters of ``__init__``; if the class has none, yield inherited parameters and dataclass fields.

    If ``__init__`` has ``**settings: Unpack[SomeTypedDict]``, the inherited parameters that are keys of this dictionary
    come first.
    """
    inherited = [parameter for base in node.bases for parameter in _of_base(module, base)]
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            names = _unpacked_names(module, item.args.kwarg)
            yield from (parameter for parameter in inherited if parameter.name in names)
            yield from _parameters(module, item)
            return
    if not _is_dataclass(node):
        yield from inherited
        return
    yield from inherited
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield _parameter(module, item.target.id, item.annotation, item.value)


def _unpacked_names(module: str, keywords: ast.arg | None) -> set[str]:
    """Return the keys of ``SomeTypedDict`` in ``**settings: Unpack[SomeTypedDict]``; an empty set for other types."""
    match keywords:
        case ast.arg(annotation=ast.Subscript(value=ast.Name(id="Unpack"), slice=ast.Name(id=name))):
            return _keys(f"{module}.{name}")
    return set()


def _keys(target: str) -> set[str]:
    """Return the keys of the ``TypedDict`` at the dotted path ``target``, including the keys of its bases."""
    located = _located(target)
    if located is None or not isinstance(located[1], ast.ClassDef):
        return set()
    module, typed = located[0], located[1]
    keys = {
        item.target.id for item in typed.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    return keys.union(*(_keys(f"{module}.{base.id}") for base in typed.bases if isinstance(base, ast.Name)))


def _of_base(module: str, base: ast.expr) -> list[Parameter]:
    located = _located(f"{module}.{base.id}") if isinstance(base, ast.Name) else None
    if located is None or not isinstance(located[1], ast.ClassDef):
        return []
    return list(_of_class(located[0], located[1]))


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def _parameters(module: str, function: ast.FunctionDef, *, skip_data: bool = False) -> Iterator[Parameter]:
    """Yield the parameters of ``function``.

    If ``skip_data`` is true and a positional parameter is required, this parameter is data. Then only the keyword-only
    parameters are yielded.
    """
    arguments = function.args
    positional = [argument for argument in (*arguments.posonlyargs, *arguments.args) if argument.arg != "self"]
    defaults = list(arguments.defaults)
    required = len(positional) - len(defaults)
    if not (skip_data and required > 0):
        padded: Sequence[ast.expr | None] = [None] * required + defaults
        for argument, default in zip(positional, padded, strict=True):
            yield _parameter(module, argument.arg, argument.annotation, default)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(module, argument.arg, argument.annotation, default)


def _parameter(module: str, name: str, annotation: ast.expr | None, default: ast.expr | None) -> Parameter:
    kind = ast.unparse(annotation) if annotation else ""
    return Parameter(name, kind, _default_text(default) if default else None, _record(module, annotation))


def _default_text(default: ast.expr) -> str:
    """Return the default as written in the source; for a product of two numbers, return its value."""
    match default:
        case ast.BinOp(
            ast.Constant(value=int() | float() as left), ast.Mult(), ast.Constant(value=int() | float() as right)
        ):
            return repr(left * right)
    return ast.unparse(default)


def _record(module: str, annotation: ast.expr | None) -> str:
    """Return the dotted path of the first dataclass in ``annotation``; "" if it contains no dataclass."""
    names = [node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)] if annotation else []
    for name in names:
        located = _located(f"{module}.{name}") if name[0].isupper() else None
        if located and isinstance(located[1], ast.ClassDef) and _is_dataclass(located[1]):
            return f"{located[0]}.{located[1].name}"
    return ""
