"""Facts about objects and classes, from which the process on the other side makes stand-ins."""

from __future__ import annotations

import enum
from _abc import _get_dump  # type: ignore[import-not-found]
from abc import ABCMeta
from collections.abc import Callable
from types import FunctionType, GeneratorType
from typing import Any

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and",
           "or", "xor", "lshift", "rshift")  # fmt: skip
OPERATORS = {f"__{kind}{name}__" for name in _BINARY for kind in ("", "r", "i")}
FORWARDED = frozenset(
    f"__{name}__"
    for name in (
        *("len", "iter", "next", "reversed", "contains", "getitem", "setitem", "delitem", "call"),
        *("enter", "exit", "str", "repr", "format", "bytes", "int", "float", "complex", "index"),
        *("round", "trunc", "floor", "ceil", "bool", "neg", "pos", "abs", "invert", "fspath"),
    )
).union(OPERATORS)
LONGEST_NAME = 80
OWN_MODULES = ("solution", "__main__", "tests", "candidate")
"""Modules whose classes get stand-ins; the other side imports the rest by itself."""
_VIEWS: tuple[tuple[type, str], ...] = (
    (type({}.keys()), "K"),
    (type({}.values()), "V"),
    (type({}.items()), "I"),
)
_BASES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (dict, lambda value: {key: dict.__getitem__(value, key) for key in dict.__iter__(value)}),
)
_PASSIVE = {
    *(*COMPARISONS, "__hash__", "__init__", "__new__", "__repr__", "__str__", "__module__"),
    *("__doc__", "__dict__", "__weakref__", "__slots__", "__annotations__", "__firstlineno__"),
    *("__static_attributes__", "__qualname__", "__orig_bases__", "__parameters__"),
}
"""What a subclass of built-in data may define and still do no more than hold and compare it."""


def kind_of(value: Any) -> str:
    """The kind of stand-in that an object needs."""
    kind = type(value)
    if kind is GeneratorType:
        return "generator"
    if kind is FunctionType:
        return "function"
    if hasattr(kind, "__await__") and kind.__module__ not in OWN_MODULES:
        return "awaitable"
    if callable(value) and kind.__module__ in ("builtins", "functools", "operator"):
        return "callable"
    if hasattr(kind, "__next__") and kind.__module__ not in (*OWN_MODULES, "unittest.mock"):
        return "iterator"
    return "instance"


def flatten(value: Any) -> list[Any]:
    """A subclass of built-in data, or a view on it, as a tag and the data it holds.

    The tag is empty for any other object.
    """
    kind = type(value)
    for view, tag in _VIEWS:
        if kind is view:
            return [tag, list(value)]
    for base, copy in _BASES:
        if base in kind.__mro__:  # an object may claim another class
            subclasses = kind.__mro__[: kind.__mro__.index(base)]
            behaves = any(name not in _PASSIVE for owner in subclasses for name in vars(owner))
            return ["~", str(kind.__name__)[:LONGEST_NAME], behaves, copy(value)]
    if kind.__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        return ["~", f"numpy {kind.__name__}", True, value.tolist()]
    return [""]


def describe_signature(function: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The parameters of a function and what it returns, as arguments for ``inspect``."""
    from inspect import signature

    facts = signature(function)
    parameters = [
        {
            name: int(value) if name == "kind" else value
            for name in ("name", "kind", "default", "annotation")
            if (value := getattr(parameter, name)) is not parameter.empty
        }
        for parameter in facts.parameters.values()
    ]
    result = facts.return_annotation
    return parameters, {} if result is facts.empty else {"return_annotation": result}


def describe_class(kind: type, peer: Any) -> dict[str, Any]:
    """Facts from which the other side makes the stand-in for a class."""
    facts: dict[str, Any] = {"name": str(kind.__name__)[:LONGEST_NAME]}
    if isinstance(kind, enum.EnumMeta):
        bases = [getattr(enum, name, None) for name in ("IntFlag", "Flag", "IntEnum", "StrEnum")]
        base = next((base for base in bases if base and issubclass(kind, base)), enum.Enum)
        members: dict[str, Any] = dict(kind.__members__)
        facts["enum"], facts["module"] = base.__name__, kind.__module__
        facts["members"] = [[name, peer.encode(member.value)] for name, member in members.items()]
        return facts
    if issubclass(kind, BaseException):
        parents = [base for base in kind.__bases__ if issubclass(base, BaseException)]
        facts["bases"] = [peer.export_error_class(base) for base in parents]
        return facts
    lineage = [base for base in kind.__mro__[:-1] if not issubclass(base, BaseException)]
    facts["bases"] = [
        peer.number_class(base) for base in kind.__bases__ if base.__module__ in OWN_MODULES
    ]
    names = {name for base in lineage for name, value in vars(base).items() if value is not None}
    facts["special"] = sorted(names & FORWARDED)
    facts["library"] = kind.__module__ not in OWN_MODULES
    facts["doc"] = kind.__doc__[:4000] if type(kind.__doc__) is str else None
    # A metaclass, a hook or a registration makes instances of what does not inherit.
    facts["decides"] = (
        type(kind) not in (type, ABCMeta)
        or any("__subclasshook__" in vars(base) for base in lineage)
        or (type(kind) is ABCMeta and bool(_get_dump(kind)[0]))
    )
    methods = {name for base in lineage for name in vars(base)}
    facts["compared"] = sorted(methods & {*COMPARISONS, "__hash__"})
    return facts
