"""The operations that the driver can request on objects of the program. ``exported`` performs them."""

from __future__ import annotations

import builtins
import copy
import operator
import pickle
import types
from collections.abc import Callable
from typing import Any, Protocol

from bestofn.sandbox.inside import descriptions, plain
from bestofn.sandbox.inside.coroutines import Coroutines
from bestofn.sandbox.inside.replacements import Replaced


class Program(Protocol):
    """The attributes of ``exported.Exported`` that the operations use."""

    module: types.ModuleType
    replaced: Replaced
    coroutines: Coroutines


def _exit_context(exported: Program, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    error = args[0] if args else None
    result = getattr(target, name)(type(error) if error else None, error, None)
    return exported.coroutines.awaited(result) if name == "__aexit__" else result


def _special(exported: Program, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    return getattr(builtins, name)(target, *args) if hasattr(builtins, name) else getattr(target, name)(*args)


def _copy(target: Any, name: str) -> object:
    return pickle.loads(pickle.dumps(target)) if name == "pickle" else getattr(copy, name)(target)


MEMBER_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (property, staticmethod, classmethod)}


def _subclass(exported: Program, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    """Create the class ``name``, which the tests derive from classes of the program."""
    bases, members = args
    content = {**dict(members), "__module__": exported.module.__name__}
    return types.new_class(name, tuple(bases), kwargs, lambda namespace: namespace.update(content))


def _inherited(exported: Program, target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> object:
    """Return the member ``name`` of the class ``target``, bound to the object ``args[0]``, as ``super()`` does."""
    member = vars(target)[name]
    bind = getattr(type(member), "__get__", None)
    return member if bind is None else bind(member, args[0], type(args[0]))


OPERATIONS: dict[str, Callable[[Program, Any, str, list[Any], dict[str, Any]], object]] = {
    "call": lambda exported, target, name, args, kwargs: target(*args, **kwargs),
    "get": lambda exported, target, name, args, kwargs: getattr(target, name),
    "set": lambda exported, target, name, args, kwargs: exported.replaced.set_member(target, name, args[0]),
    "delete": lambda exported, target, name, args, kwargs: exported.replaced.delete_member(target, name),
    "step": lambda exported, target, name, args, kwargs: exported.coroutines.step(target, *args),
    "cancel": lambda exported, target, name, args, kwargs: exported.coroutines.cancel(target),
    "subclass": _subclass,
    "members": lambda exported, target, name, args, kwargs: [str(one) for one in vars(target)],
    "inherited": _inherited,
    "is_instance": lambda exported, target, name, args, kwargs: isinstance(args[0], target),
    "await_special": lambda exported, target, name, args, kwargs: exported.coroutines.awaited(
        getattr(target, name)(*args)
    ),
    "equal": lambda exported, target, name, args, kwargs: target == args[0],
    "operate": lambda exported, target, name, args, kwargs: getattr(operator, name)(*args),
    "exit": _exit_context,
    "special": _special,
    "generator": lambda exported, target, name, args, kwargs: getattr(target, name)(*args),
    "copy": lambda exported, target, name, args, kwargs: _copy(target, name),
    "vars": lambda exported, target, name, args, kwargs: dict(vars(target)),
    "names_of": lambda exported, target, name, args, kwargs: [str(one) for one in dir(target)],
    "content": lambda exported, target, name, args, kwargs: _content(target),
    "signature": lambda exported, target, name, args, kwargs: descriptions.signature_form(target),
    "annotations": lambda exported, target, name, args, kwargs: [
        [str(key), descriptions.annotation_form(value)] for key, value in target.__annotations__.items()
    ],
}


def _content(target: Any) -> object:
    """Return the content of an object whose class is derived from a builtin container, as the builtin container.

    Raises ``plain.NotPlain`` if the object is not a container.
    """
    for kind in (list, dict, set, frozenset, tuple):
        if isinstance(target, kind):
            return kind(kind.items(target) if kind is dict else kind.__iter__(target))  # type: ignore[attr-defined]
    raise plain.NotPlain("the object is not a container")
