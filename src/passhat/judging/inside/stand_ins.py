"""What stands for the program's objects among the tests.

Nothing that the program wrote decides a comparison here. An object of the program's own is opaque:
it equals nothing but itself. Iterators and functions it returns can be used, since what comes out
of them is data again. Objects of a class that the tests made themselves forward attributes,
methods, ``len``, iteration and items; an operator on them would be the program's own opinion, so
it ends the judgement as unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from .stopping import ProgramFailed, Stopped, Unsupported

if TYPE_CHECKING:
    from .remote import Program

__all__ = [
    "Instance",
    "Opaque",
    "Remote",
    "RemoteClass",
    "RemoteFunction",
    "RemoteGenerator",
    "RemoteIterator",
]

_MOST_ITEMS = 50_000
"""Items that tests may take from one iterator: an endless one is the program's fault."""


class Remote:
    """Something that lives in the program's process."""

    _program: Program
    _number: int

    def __init__(self, program: Program, number: int, name: str = "") -> None:
        self.__dict__.update(_program=program, _number=number, __name__=name)


class Opaque(Remote):
    """An object of the program's own: true, and equal to nothing but itself."""


class RemoteFunction(Remote):
    """A function of the program."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._program.call(self._number, arguments, keywords)


class RemoteIterator(Remote):
    """An iterator of the program: what comes out of it is data."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        taken = self.__dict__["_taken"] = self.__dict__.get("_taken", 0) + 1
        if taken > _MOST_ITEMS:
            raise self._program.stop(ProgramFailed("timeout", "an iterator that does not end"))
        return self._program.ask("next", self._number)


class RemoteGenerator(RemoteIterator):
    """A generator; ``isinstance`` and ``inspect.isgenerator`` say so too."""

    @property
    def __class__(self) -> Any:
        return GeneratorType

    @__class__.setter
    def __class__(self, _other: Any) -> None:
        raise TypeError("the class cannot be changed")


class RemoteClass(Remote):
    """A class of the program; calling it makes an instance over there."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        made = self._program.call(self._number, arguments, keywords)
        return Instance(made._program, made._number) if isinstance(made, Remote) else made

    def __getattr__(self, name: str) -> Any:
        return self._program.ask("get", self._number, name)


class Instance(RemoteClass):
    """An object that the tests made by calling a class of the program."""

    def __setattr__(self, name: str, value: object) -> None:
        self._program.ask("set", self._number, name, self._program.encode(value))

    def _forward(self, name: str, *arguments: object) -> Any:
        encoded = [self._program.encode(one) for one in arguments]
        return self._program.ask("special", self._number, name, encoded)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._program.call(self._number, arguments, keywords)

    def __len__(self) -> int:
        return self._forward("__len__")  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        raise self._opinion("bool()")

    def __iter__(self) -> Any:
        return self._forward("__iter__")

    def __contains__(self, item: object) -> bool:
        return self._forward("__contains__", item)  # type: ignore[no-any-return]

    def __getitem__(self, key: object) -> Any:
        return self._forward("__getitem__", key)

    def __setitem__(self, key: object, value: object) -> None:
        self._forward("__setitem__", key, value)

    def __delitem__(self, key: object) -> None:
        self._forward("__delitem__", key)

    def __str__(self) -> str:
        return self._forward("__str__")  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return self._forward("__repr__")  # type: ignore[no-any-return]

    def _opinion(self, what: str) -> Stopped:
        return self._program.stop(Unsupported(f"{what} on an object of the program's own class"))

    def __hash__(self) -> int:
        raise self._opinion("hash()")


def _operator(name: str) -> Any:
    def refuse(self: Instance, *_others: object) -> Any:
        raise self._opinion(name)

    return refuse


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul"):
    setattr(Instance, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("truediv", "floordiv", "mod", "pow", "neg", "abs", "and", "or", "xor", "matmul"):
    setattr(Instance, f"__{_name}__", _operator(f"__{_name}__"))
