"""The program's side: load it, answer calls with plain data. Nothing here is trusted.

A hostile program can rewrite all of this at run time. It then only chooses what it answers, which
is its right: the verdict is made elsewhere, from the answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import GeneratorType, ModuleType
from typing import Any

from . import wire

__all__ = ["run_script", "serve"]

MODULE = "solution"


def serve(channel: int, source: str) -> None:
    """Load the program and answer the tests until they are done."""
    kept: dict[int, object] = {}
    keep = _keeper(kept)
    module = _module(MODULE)
    failure = _load(source, module)
    if failure is not None:
        wire.send(channel, ["failed", *failure])
        return
    wire.send(channel, ["ready"])
    while True:
        try:
            request = wire.receive(channel)
        except wire.Closed:
            return
        try:
            if request[0] == "names":
                reply = ["names", list(_named(module, request[1], keep))]
            else:
                reply = _answer(request, kept, keep)
        except BaseException as error:
            reply = _raised(error)
        _send(channel, reply)


def run_script(source: str) -> list[str] | None:
    """Run the program as a script; the failure, if it is one."""
    return _load(source, _module("__main__"))


def _module(name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    return module


def _load(source: str, module: ModuleType) -> list[str] | None:
    try:
        code = compile(source, f"{module.__name__}.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OverflowError) as error:
        return ["SyntaxError", str(error)]
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        return None if module.__name__ == "__main__" and not error.code else _described(error)
    except BaseException as error:
        return _described(error)
    return None


def _described(error: BaseException) -> list[str]:
    number = getattr(error, "errno", None)
    kind = "PermissionError" if isinstance(error, OSError) and number in (1, 30, 38) else ""
    try:
        text = str(error)[:500]
    except BaseException:
        text = ""
    return [kind or type(error).__name__[:80], text]


def _named(module: ModuleType, names: list[str], keep: Any) -> Iterator[list[Any]]:
    """Of these names those that the program defines: kind, and the stand-in or the value."""
    for name in names:
        value = vars(module).get(name, module)
        if value is module:
            continue
        if isinstance(value, type) and issubclass(value, BaseException):
            yield [name, "exception", _bases(value)]
            continue
        kind = "class" if isinstance(value, type) else "callable" if callable(value) else "value"
        yield [name, kind, wire.encode(value, keep)]


def _bases(kind: type) -> list[str]:
    return [base.__name__ for base in kind.__mro__][:20]


def _answer(request: list[Any], kept: dict[int, object], keep: Any) -> list[Any]:
    verb, number, *rest = request
    target: Any = kept[number]
    if verb == "call":
        return _call(target, rest[0], rest[1], kept, keep)
    if verb == "get":
        return ["value", wire.encode(getattr(target, rest[0]), keep)]
    if verb == "set":
        setattr(target, rest[0], _decoded(rest[1], kept))
        return ["value", None]
    if verb == "next":
        try:
            return ["value", wire.encode(next(target), keep)]
        except StopIteration:
            return ["stop"]
    arguments = [_decoded(one, kept) for one in rest[1]]
    return ["value", wire.encode(getattr(type(target), rest[0])(target, *arguments), keep)]


def _call(
    function: Any, given: list[Any], named: list[Any], kept: dict[int, object], keep: Any
) -> list[Any]:
    arguments, keywords = _decoded(given, kept), _decoded(named, kept)
    result = function(*arguments, **keywords)
    if result is not None:
        return ["value", wire.encode(result, keep)]
    # A call that returns nothing was made for what it does to its arguments.
    after = wire.encode(arguments, keep)
    return ["value", None] if after == given else ["value", None, after]


def _decoded(data: Any, kept: dict[int, object]) -> Any:
    return wire.decode(data, lambda stand_in: kept[stand_in[1]])


def _raised(error: BaseException) -> list[Any]:
    if isinstance(error, wire.NotPlain):
        return ["excess", str(error)]
    name, text = _described(error)
    try:
        arguments = wire.encode(list(error.args), _refuse_to_keep)
    except Exception:
        arguments = ["l", text]
    return ["raised", name, _bases(type(error)), arguments, text]


def _refuse_to_keep(value: object) -> list[Any]:
    raise wire.NotPlain(type(value).__name__)


def _send(channel: int, reply: list[Any]) -> None:
    try:
        wire.send(channel, reply)
    except wire.NotPlain as error:
        wire.send(channel, ["excess", str(error)])


def _keeper(kept: dict[int, object]) -> Any:
    def keep(value: object) -> list[Any]:
        plain = _plain_base(value)
        if plain is not None:
            return ["~", wire.encode(plain, keep)]
        number = len(kept)
        kept[number] = value
        return ["o", number, _kind(value), type(value).__name__[:80]]

    return keep


_BASES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
)


def _plain_base(value: Any) -> object:
    """A subclass of built-in data as the data it holds, by the built-in's own methods."""
    for base, make in _BASES:
        if isinstance(value, base):
            return make(value)
    if isinstance(value, dict):
        return {key: dict.__getitem__(value, key) for key in dict.__iter__(value)}
    if isinstance(value, (type({}.keys()), type({}.values()), type({}.items()))):
        return list(value)
    if type(value).__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return None


def _kind(value: object) -> str:
    if isinstance(value, GeneratorType):
        return "generator"
    if hasattr(type(value), "__next__"):
        return "iterator"
    if hasattr(type(value), "__await__"):
        return "awaitable"
    return "callable" if callable(value) else "object"
