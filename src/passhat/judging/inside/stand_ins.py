"""Stand-ins: objects and classes that represent those of the process on the other side.

The owner of a class describes it in plain facts; the other side makes the stand-in from them.
Using one sends a request to its owner. A stand-in of the program's object never lets the program's
code decide a comparison in the tests: it stops the judgement as unsupported.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, GeneratorType, ModuleType
from typing import Any, Optional

from .facts import COMPARISONS, FORWARDED, OPERATORS, OWN_MODULES

_ENUMS = ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum")


class Stopped(BaseException):
    """The judgement cannot go on. Not an Exception, so that tests do not catch it by accident."""


class Unsupported(Stopped):
    """The tests ask for something that cannot cross the border."""


class ProgramFailed(Stopped):
    """The program has gone, or broke the protocol."""

    def __init__(self, category: str, detail: str) -> None:
        super().__init__(category, detail)
        self.category, self.detail = category, detail


# -- objects --------------------------------------------------------------------------------------


class RemoteObject:
    """An object of the other side: attributes are requested from there."""

    __slots__ = ("__weakref__", "_passhat_number", "_passhat_peer")
    _passhat_number: int
    _passhat_peer: Any

    def __getattr__(self, name: str) -> Any:
        return self._passhat_peer.ask("get", self._passhat_number, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._passhat_peer.ask("set", self._passhat_number, name, value)

    def __delattr__(self, name: str) -> None:
        self._passhat_peer.ask("del", self._passhat_number, name)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return self._passhat_peer.ask("get", self._passhat_number, "__dict__")

    def __reduce_ex__(self, _protocol: object) -> Any:
        raise self._passhat_peer.stop(Unsupported("copy or pickle of an object of the program"))


def _claim(kind: type) -> Any:
    """A class for ``isinstance``; it has no setter, so that it cannot be changed."""
    return property(lambda _self: kind)


def _call(self: RemoteObject, *arguments: Any, **keywords: Any) -> Any:
    return self._passhat_peer.call(self._passhat_number, arguments, keywords)


class RemoteFunction(RemoteObject):
    """A function of the other side."""

    __slots__ = ()
    __call__ = _call

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self.__getattr__("__doc__")

    @property
    def __module__(self) -> Any:  # type: ignore[override]
        return self.__getattr__("__module__")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return {}

    @property
    def __annotations__(self) -> Any:  # type: ignore[override]
        return self.__getattr__("__annotations__")

    @property
    def __signature__(self) -> Any:
        from inspect import Parameter, Signature

        parameters, result = self._passhat_peer.ask("signature", self._passhat_number, "")
        return Signature([Parameter(**facts) for facts in parameters], **result)


class RemoteLambda(RemoteFunction):
    # A function that is written in Python, for ``isinstance`` too. A docstring would hide its own.
    __slots__ = ()
    __doc__ = RemoteFunction.__doc__
    __class__ = _claim(FunctionType)

    @property
    def __code__(self) -> Any:
        names = tuple(self.__signature__.parameters)  # the same parameters, and nothing else
        empty = (lambda: None).__code__
        return empty.replace(co_argcount=len(names), co_nlocals=len(names), co_varnames=names)


class RemoteIterator(RemoteObject):
    """An iterator of the other side."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._passhat_peer.ask("next", self._passhat_number, "")


class RemoteGenerator(RemoteIterator):
    """A generator; also for ``isinstance`` and ``inspect.isgenerator``."""

    __slots__ = ()
    __class__ = _claim(GeneratorType)


_KINDS: dict[str, type] = {
    "callable": RemoteFunction,
    "function": RemoteLambda,
    "generator": RemoteGenerator,
    "iterator": RemoteIterator,
}


def make_object(peer: Any, number: int, kind: str, make_owner: Callable[[], Any]) -> Any:
    """Make the stand-in for an object; None for an unknown kind."""
    if kind != "instance" and kind not in _KINDS:
        return None
    stand_in = object.__new__(make_owner() if kind == "instance" else _KINDS[kind])
    object.__setattr__(stand_in, "_passhat_peer", peer)
    object.__setattr__(stand_in, "_passhat_number", number)
    return stand_in


# -- classes --------------------------------------------------------------------------------------


class RemoteType(type):
    """The class of stand-ins for the instances of a class on the other side."""

    _passhat_link: Any
    _passhat_class: int

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        owner = next((base for base in bases if isinstance(base, RemoteType)), None)
        if owner is not None and "_passhat_class" not in body:
            peer = owner.__dict__.get("_passhat_link")
            if peer is not None:
                raise peer.stop(Unsupported(f"a subclass of the program's class {owner.__name__}"))
        return super().__new__(cls, name, bases, body)

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, other: type) -> bool:
        if cls.__dict__.get("_passhat_decides"):
            what = f"isinstance by the program's class {cls.__name__}, which decides it by itself"
            raise cls._passhat_link.stop(Unsupported(what))
        return type.__subclasscheck__(cls, other)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        instance = cls._passhat_link.construct(cls._passhat_class, arguments, keywords)
        if not isinstance(instance, RemoteObject):
            # Data that the tests expect would be what the program's class makes of it.
            what = f"an object of the program's class {cls.__name__}, which crosses as data"
            raise cls._passhat_link.stop(Unsupported(what))
        return instance

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_passhat") or "_passhat_class" not in cls.__dict__:
            raise AttributeError(name)
        return cls._passhat_link.ask("get", cls._passhat_class, name)

    def __setattr__(cls, name: str, value: object) -> None:
        if name.startswith(("_passhat", "__abstractmethods__", "_abc_")):
            type.__setattr__(cls, name, value)
        else:
            cls._passhat_link.ask("set", cls._passhat_class, name, value)


class RemoteInstance(RemoteObject, metaclass=RemoteType):
    """An instance of a class of the other side."""

    __slots__ = ()


class _RemoteEnumMember:
    """A member of an enumeration that has the same members on both sides."""

    def __getattr__(self, name: str) -> Any:
        peer = type(self).__dict__.get("_passhat_link") if not name.startswith("_") else None
        if peer is None:
            raise AttributeError(name)
        return peer.ask("of", -1, name, self)


def make_class(peer: Any, number: int, facts: dict[str, Any]) -> Any:
    """Make the stand-in for a class from the facts that its owner sent."""
    name = str(facts["name"])
    body: dict[str, Any] = {"__module__": "solution", "_passhat_class": number}
    if "enum" in facts:
        home = str(facts.get("module"))
        # The module ``solution`` of this side would ask the other one for this very class.
        namesake = None if home in OWN_MODULES else getattr(sys.modules.get(home), name, None)
        if isinstance(namesake, enum.EnumMeta) and namesake.__module__ not in OWN_MODULES:
            return namesake  # of the library, which both sides have
        members = [(key, peer.decode(value)) for key, value in facts["members"]]
        if any(key.startswith("_") for key, _ in members):
            raise ValueError("a member that would be a method")
        base = getattr(enum, facts["enum"] if facts["enum"] in _ENUMS else "Enum")
        enumeration = base(name, members, module="solution", type=_RemoteEnumMember)
        type.__setattr__(enumeration, "_passhat_class", number)
        type.__setattr__(enumeration, "_passhat_link", peer)
        return enumeration
    if any(type(base) is list for base in facts["bases"]):
        bases = tuple(map(peer.adopt_error_class, facts["bases"]))
        return type(name, bases, {**body, "__str__": error_text})
    return _make_instance_class(peer, name, facts, body)


def _make_instance_class(peer: Any, name: str, facts: dict[str, Any], body: dict[str, Any]) -> Any:
    for special in facts["special"]:
        if special in FORWARDED:
            body[special] = _call if special == "__call__" else _forward(special)
    body.update(__slots__=(), _passhat_link=peer, _passhat_named=False)
    body["_passhat_decides"] = facts.get("decides") is True
    body["_passhat_library"] = facts.get("library") is True
    body.update(peer.comparisons(name, facts))
    if type(facts.get("doc")) is str:
        body["__doc__"] = facts["doc"]
    bases = [peer.adopt_class(base) for base in facts["bases"]]
    bases = [base for base in bases if isinstance(base, RemoteType)]
    return RemoteType(name, tuple(bases) or (RemoteInstance,), body)


def error_text(self: Any) -> str:
    """``str`` of an exception whose class is the other side's."""
    text: Optional[str] = self.__dict__.get("_passhat_text")  # noqa: UP045 - Python 3.9
    return BaseException.__str__(self) if text is None else text


def is_remote(error: object) -> bool:
    """Whether an exception came from the other side."""
    return "_passhat_text" in getattr(error, "__dict__", {})


# -- operators and comparisons --------------------------------------------------------------------


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: RemoteObject, *arguments: Any) -> Any:
        if name == "__exit__":
            arguments = (*arguments[:2], None)  # a traceback cannot cross
        return self._passhat_peer.ask("special", self._passhat_number, name, *arguments)

    forward.__name__ = name
    return forward


def forward_comparisons(facts: dict[str, Any]) -> dict[str, Any]:
    """Comparisons that the other side decides: right where the other side is trusted."""
    body: dict[str, Any] = {name: _forward(name) for name in facts["compared"]}
    if "__eq__" in body:
        body["__hash__"] = _forward("__hash__")
    return body


def judge_comparisons(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Comparisons that the program's code has no part in: they stop the judgement.

    Nor is it told what the tests expect, by an operator that takes it.
    """
    body: dict[str, Any] = {}
    for method in OPERATORS & set(facts["special"]):
        body[method] = _operate_untold(method)
    if "__contains__" in facts["special"]:
        body["__contains__"] = _contain
    for method in {*COMPARISONS, "__hash__"} & set(facts["compared"]):
        body[method] = _stop_at(method, name)
    return body


def _operate_untold(name: str) -> Callable[..., Any]:
    forward = _forward(name)

    def operate(self: Any, operand: Any, *rest: Any) -> Any:
        self._passhat_peer.check_operand(type(self).__name__, name, operand)
        return forward(self, operand, *rest)

    return operate


def _contain(self: Any, item: Any) -> bool:
    """Membership by looking through the items, which the program names without being told."""
    if hasattr(type(self), "__iter__") and any(item is one or item == one for one in list(self)):
        return True
    self._passhat_peer.check_operand(type(self).__name__, "__contains__", item)
    return bool(self._passhat_peer.ask("special", self._passhat_number, "__contains__", item))


def _stop_at(name: str, kind: str) -> Callable[..., Any]:
    """Make a comparison that the program's class would decide by code of its own.

    Where the tests name the class, the reference has such a method, the class is the library's or
    both sides are objects of the program, the class may be meant to decide, so the judgement stops.
    An object of any other class is compared with data here: it is not the data.
    """

    def compare(self: Any, other: Any = None) -> Any:
        kind_decides = type(self)._passhat_named or type(self)._passhat_library
        kind_decides = kind_decides or self._passhat_peer.is_expected(name)
        if kind_decides or isinstance(other, RemoteObject) or name == "__hash__":
            raise self._passhat_peer.stop(
                Unsupported(f"{name} of the program's class {kind}, which decides it by itself")
            )
        return NotImplemented

    return compare


# -- patches --------------------------------------------------------------------------------------
#
# What tests replace by ``unittest.mock.patch`` is replaced in the program's process too. There a
# stand-in takes the place, so that every call of the program reaches the mock in the tests.

_STREAMS = (("sys", "stdout"), ("sys", "stderr"))
"""What the program prints reaches the tests anyway."""
_ABSENT = object()


def forward_patches(ask: Any) -> None:
    """From now on, also ask the program's side for every patch, and for its end."""
    from unittest import mock

    patcher: Any = mock._patch
    enter, leave = patcher.__enter__, patcher.__exit__

    def begin(self: Any) -> Any:
        result = enter(self)
        if place := _place_of(self):
            ask("patch", -1, "", *place, getattr(self.target, self.attribute))
        return result

    def end(self: Any, *error: Any) -> Any:
        place = _place_of(self)
        result = leave(self, *error)
        if place:
            ask("unpatch", -1, "")
        return result

    patcher.__enter__, patcher.__exit__ = begin, end


def _place_of(patch: Any) -> tuple[str, str, str] | None:
    """Module, class in it and attribute of a patch; none for an object of the tests."""
    owner = patch.target
    module, name = getattr(owner, "__module__", None), getattr(owner, "__qualname__", "")
    if isinstance(owner, ModuleType):
        module, name = owner.__name__, ""
    elif not isinstance(owner, type):
        return None
    if module is None or (module == "tests" and name) or (module, patch.attribute) in _STREAMS:
        return None
    # Tests that patch their own module mean the program, which plain Python runs in it.
    return "solution" if module == "tests" else str(module), name, patch.attribute


class Patches:
    """Patches in the program's process, the last one on top."""

    def __init__(self) -> None:
        self._stack: list[tuple[Any, str, Any]] = []

    def begin(self, module: str, name: str, attribute: str, value: Any) -> None:
        owner: Any = __import__(module, fromlist=["_"])
        for step in filter(None, name.split(".")):
            owner = getattr(owner, step)
        self._stack.append((owner, attribute, vars(owner).get(attribute, _ABSENT)))
        setattr(owner, attribute, value)

    def end(self) -> None:
        owner, attribute, value = self._stack.pop()
        if value is _ABSENT:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, value)
