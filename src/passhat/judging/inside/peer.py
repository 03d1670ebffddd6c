"""One end of the connection between tests and program: requests, answers, references to objects.

The tests call functions of the program; while they wait, the program may call functions that the
tests handed to it. This is what both ends share. The ends differ in trust, and each has its own
subclass: :mod:`.tests_end` guards the tests, :mod:`.program` has nothing to guard.
"""

from __future__ import annotations

import builtins
import enum
import sys
from _thread import RLock  # threading itself has work to do after every fork
from types import BuiltinFunctionType, ModuleType
from typing import Any, Optional

from . import wire
from .facts import LONGEST_NAME, OWN_MODULES, describe_class, describe_signature, flatten, kind_of
from .folder import Folder
from .stand_ins import (
    ProgramFailed,
    RemoteObject,
    RemoteType,
    Stopped,
    Unsupported,
    error_text,
    make_class,
    make_object,
)

_VIEW_MAKERS: dict[str, Any] = {
    "K": lambda items: dict.fromkeys(items).keys(),
    "V": lambda items: dict(enumerate(items)).values(),
    "I": lambda items: dict(items).items(),
}


_UNREADABLE = (wire.Malformed, TypeError, ValueError, AttributeError, RecursionError, OSError)


def brief_text(error: BaseException) -> str:
    """The message of an exception, cut; an exception may fail to give it."""
    try:
        return str(error)[:500]
    except BaseException:
        return ""


def protocol_breach(what: str) -> ProgramFailed:
    """The failure of a program that does not follow the protocol."""
    return ProgramFailed("PermissionError", f"wrote on the judge's channel: {what}")


class Peer:
    """An end of the connection.

    ``side`` is 0 for the tests and 1 for the program: it tells whose object a number is. The first
    byte of ``phase`` is 1 while this side waits for the other or reads what that sent. ``folder``
    is a scratch folder whose files both sides share; empty if they share none.
    """

    def __init__(self, channel: int, side: int, phase: Any = None, folder: str = "") -> None:
        self._channel = channel
        self._side = side
        self._phase = phase if phase is not None else [0]
        self._lock = RLock()
        self._folder = Folder(folder) if folder else None
        self._codec = wire.Codec(side, self._export, self.adopt)
        self.decode = self._codec.decode
        self._exports: dict[int, Any] = {}
        self._export_numbers: dict[int, int] = {}
        self._infos: list[list[Any]] = []
        self._stand_ins: dict[int, Any] = {}
        self._described: dict[int, list[Any]] = {}
        self.traffic = self.requests = 0
        self.flattened, self.behaves = "", False
        self.stopped: Optional[Stopped] = None  # noqa: UP045 - Python 3.9

    # Where the two ends differ.

    def additions(self) -> dict[str, Any]:
        """Further fields of the next message."""
        return {}

    def expect(self, message: dict[str, Any]) -> None:
        """Prepare for the value in a message."""

    def absorb(self, message: dict[str, Any]) -> None:
        """Process further fields of a message."""

    def serve_other(self, verb: str, _name: str, _arguments: tuple[Any, ...]) -> Any:
        """Serve a request that is not about an object."""
        raise AttributeError(verb)

    def check_request(self, verb: str, target: Any, name: str) -> None:
        """Raise AttributeError for a request that the other side may not make."""

    def check_export(self, value: Any) -> None:
        """Raise NotPlain for an object that the other side may not use."""

    def export_builtin(self, value: Any) -> Any:
        """Encode a function of a built-in module."""
        return self.export_object(value)

    def error_number(self, _error: BaseException) -> int:
        """The number by which an exception is known when it comes back."""
        return -1

    def adopt_other(self, _tag: str, _parts: list[Any]) -> Any:
        """Decode a tag that only this end accepts."""
        raise wire.Malformed("an unknown tag")

    def comparisons(self, name: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Comparison methods of the stand-in for a class."""
        raise NotImplementedError

    def on_send_failure(self, error: Exception) -> BaseException:
        """The exception for a value that cannot be sent."""
        return wire.NotPlain(str(error))

    def on_closed(self) -> BaseException:
        """The exception for a connection that has ended."""
        return wire.Closed()

    def stop(self, why: Stopped) -> Stopped:
        """Remember the first reason: a test that swallows it cannot pass afterwards."""
        self.stopped = self.stopped or why
        return self.stopped

    # -- asking ----------------------------------------------------------------------------------

    def call(self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call an object of the other side."""
        return self.ask("call", number, "", arguments, tuple(keywords.items()))

    construct = call  # a class of the other side

    def ask(self, verb: str, number: int, name: str, *arguments: Any) -> Any:
        """Send a request and serve the other side until its answer comes."""
        with self._lock:
            if self.stopped is not None:
                raise self.stopped
            self.requests += 1
            self._send({"q": [verb, number, name]}, arguments)
            while True:
                self._phase[0] = 1
                message, value = self.receive()
                self._phase[0] = 0
                if "q" in message:
                    self.serve(message, value)
                    continue
                return self._read_answer(message, value)

    def _read_answer(self, message: dict[str, Any], value: Any) -> Any:
        answer = message.get("a")
        if answer == "value":
            return value
        if answer == "stop":
            raise StopIteration(value)
        if answer == "raised" and isinstance(value, BaseException):
            raise value
        if answer == "unsupported":
            raise self.stop(Unsupported(str(message.get("text"))[:200]))
        raise self.stop(protocol_breach("an unknown answer"))

    def _send(self, message: dict[str, Any], value: Any) -> None:
        try:
            data, contents = self._codec.write(value)
            message = {**message, "d": data, **self.additions()}
            if contents:
                message["c"] = contents
            if self._infos:
                message["k"], self._infos = self._infos, []
            # From here on it waits: time to look through files of the other side is not its own.
            self._phase[0] = 1
            if self._folder is not None and (changes := self._folder.changes()):
                message["f"] = changes
            self.traffic += wire.send(self._channel, message)
        except wire.Closed:
            raise self.stop(ProgramFailed("gone", str(self.requests))) from None
        except (wire.NotPlain, RecursionError) as error:
            raise self.on_send_failure(error) from None

    def receive(self) -> tuple[dict[str, Any], Any]:
        """Read a message and the value in it."""
        try:
            size, message = wire.receive_sized(self._channel)
            self.traffic += size
            if type(message) is not dict:
                raise wire.Malformed("a message without parts")
            for info in message.get("k", ()):
                number, *rest = info
                self._described[number] = rest
            self.expect(message)
            value = self._codec.read(message.get("d"), message.get("c", ()))
            if self._folder is not None and "f" in message:
                self._folder.apply(message["f"])
            self.absorb(message)
        except wire.Closed:
            raise self.on_closed() from None
        except MemoryError:
            raise self.stop(ProgramFailed("memory", "its answer takes too much memory")) from None
        except _UNREADABLE as error:
            raise self.stop(protocol_breach(brief_text(error))) from None
        return message, value

    # -- answering -------------------------------------------------------------------------------

    def serve(self, message: dict[str, Any], value: Any) -> None:
        """Perform a request of the other side, and answer."""
        text = ""
        try:
            verb, number, name = message["q"]
            answer, result = "value", self._perform(verb, number, name, value)
        except StopIteration as error:
            answer, result = "stop", error.value
        except (wire.NotPlain, Stopped) as error:
            answer, result, text = "unsupported", None, str(error)
        except BaseException as error:
            answer, result = "raised", error
        try:
            self._send({"a": answer, "text": text} if text else {"a": answer}, result)
        except wire.NotPlain as error:
            self._send({"a": "unsupported", "text": f"an answer that is {error}"}, None)

    def _perform(self, verb: str, number: int, name: str, arguments: tuple[Any, ...]) -> Any:
        if verb == "of":
            # A member of an enumeration crosses as itself: its owner may be this side. Nothing else
            # does: a class of this process would lead to its modules, by ``str.format`` alone.
            member = arguments[0] if isinstance(arguments[0], enum.Enum) else None
            self.check_request("get", member, name)
            return getattr(member, name)
        if number not in self._exports:
            return self.serve_other(verb, name, arguments)
        target = self._exports[number]
        self.check_request(verb, target, name)
        if verb == "call":
            values, keywords = arguments
            return target(*values, **dict(keywords))
        if verb == "get":
            return getattr(target, name)
        if verb == "set":
            return setattr(target, name, *arguments)
        if verb == "del":
            return delattr(target, name)
        if verb == "special":
            return _bind_special(target, name)(*arguments)
        if verb == "next":
            return next(target)
        if verb == "signature":
            return self.describe_function(target)
        raise AttributeError(verb)

    def describe_function(self, target: Any) -> Any:
        return describe_signature(target)

    # -- writing what is not data ----------------------------------------------------------------

    def _export(self, value: Any, depth: int) -> Any:  # noqa: C901 - one branch per kind
        kind, mine, other = type(value), self._side, 1 - self._side
        if isinstance(kind, RemoteType) or isinstance(value, RemoteObject):
            return ["o", other, object.__getattribute__(value, "_passhat_number")]
        if isinstance(value, RemoteType):
            return ["C", other, value._passhat_class]
        number = kind.__dict__.get("_passhat_class")
        if number is not None and isinstance(value, enum.Enum):
            return ["M", other, number, _member_key(value)]
        if isinstance(value, BaseException):
            return self._export_error(value, depth)
        if isinstance(value, type):
            return self._export_class(value)
        if isinstance(value, enum.Enum):
            return ["M", mine, self.number_class(kind), _member_key(value)]
        if isinstance(value, ModuleType):
            raise wire.NotPlain("a module")
        if kind.__module__ == "dataclasses":
            raise wire.NotPlain("a field of a dataclass")
        if isinstance(value, BuiltinFunctionType) and type(value.__self__) is ModuleType:
            return self.export_builtin(value)
        if mine == 0 and isinstance(value, tuple) and hasattr(kind, "_fields"):
            # A program may trust what the tests say about their classes, and not the reverse.
            self.flattened = self.flattened or kind.__name__
            return ["N", kind.__name__, list(kind._fields), *self._encode_all(value, depth)]
        tag, *rest = flatten(value)
        if not tag:
            return self.export_object(value)
        if tag == "~":
            name, behaves, data = rest
            self.flattened, self.behaves = self.flattened or name, self.behaves or behaves
            return [tag, name, behaves, self._codec.encode(data, depth)]
        return [tag, *self._encode_all(rest[0], depth)]

    def _encode_all(self, items: Any, depth: int) -> list[Any]:
        return [self._codec.encode(item, depth) for item in items]

    def _export_class(self, value: type) -> Any:
        if getattr(builtins, value.__name__, None) is value:
            return ["T", value.__name__]
        if issubclass(value, BaseException):
            return self.export_error_class(value)
        return ["C", self._side, self.number_class(value)]

    def export_error_class(self, value: type) -> Any:
        """Encode a class of exceptions: by name where both sides have it."""
        if getattr(builtins, value.__name__, None) is value:
            return ["T", value.__name__]
        module: Any = sys.modules.get(value.__module__)
        if getattr(module, value.__name__, None) is value and value.__module__ not in OWN_MODULES:
            mro: list[type] = list(value.__mro__)
            base = next(
                parent for parent in mro if getattr(builtins, parent.__name__, None) is parent
            )
            return ["S", value.__module__, value.__name__, base.__name__]
        return ["C", self._side, self.number_class(value)]

    def _export_error(self, error: BaseException, depth: int) -> Any:
        origin = vars(error).get("_passhat_origin")
        if origin is not None:
            return ["X", origin]
        attributes = {
            name: data
            for name, data in vars(error).items()
            if not name.startswith("_passhat") and self._can_cross(data)
        }
        arguments = [data if self._can_cross(data) else brief_text(error) for data in error.args]
        cause = error.__cause__ if depth < 8 and error.__cause__ is not error else None
        parts = (arguments, attributes, brief_text(error), cause, self.error_number(error))
        return ["E", self.export_error_class(type(error)), *self._encode_all(parts, depth)]

    def _can_cross(self, value: Any) -> bool:
        try:
            self._codec.encode(value)
        except (wire.NotPlain, RecursionError):
            return False
        return True

    def number_of(self, value: Any) -> int:
        """The number of an object of this side, a new one if it has none."""
        number = self._export_numbers.get(id(value))
        if number is None:
            number = len(self._exports)
            self._exports[number] = value
            self._export_numbers[id(value)] = number
        return number

    def number_class(self, kind: type) -> int:
        """The number of a class; the other side is told about it once."""
        is_new = id(kind) not in self._export_numbers
        number = self.number_of(kind)
        if is_new:
            self._infos.append([number, "class", describe_class(kind, self)])
        return number

    def encode(self, value: Any) -> Any:
        """A value as the other side reads it."""
        return self._codec.encode(value)

    def export_object(self, value: Any) -> Any:
        """Encode an object as a reference."""
        self.check_export(value)
        is_new = id(value) not in self._export_numbers
        number = self.number_of(value)
        if is_new:
            kind = kind_of(value)
            if kind == "awaitable":
                raise wire.NotPlain("a coroutine")
            owner = self.number_class(type(value)) if kind == "instance" else -1
            self._infos.append([number, kind, owner])
        return ["o", self._side, number]

    # -- reading what is not data ----------------------------------------------------------------

    def adopt(self, data: list[Any], depth: int) -> Any:
        """Decode what is not plain data."""
        tag, *parts = data
        if tag == "o":
            owner, number = parts
            return self._exports[number] if owner == self._side else self.adopt_object(number)
        if tag == "C":
            owner, number = parts
            if owner == self._side:
                return self._exports[number]
            return self.adopt_class(number)
        if tag == "M":
            owner, number, key = parts
            kind = self._exports[number] if owner == self._side else self.adopt_class(number)
            return kind[key] if type(key) is str else kind(key)
        if tag == "~":
            name, behaves, content = parts
            self.flattened = self.flattened or str(name)[:LONGEST_NAME]
            self.behaves = self.behaves or behaves is True
            return self.decode(content, depth)
        if tag == "T":
            return _builtin_class(*parts)
        if tag == "S":
            return _library_error(*parts)
        if tag == "E":
            return self._adopt_error(parts, depth)
        if tag in _VIEW_MAKERS:
            return _VIEW_MAKERS[tag]([self.decode(item, depth) for item in parts])
        return self.adopt_other(tag, parts)

    def adopt_object(self, number: int) -> Any:
        """The stand-in for an object of the other side."""
        if number not in self._stand_ins:
            kind, owner = self._described[number]
            stand_in = make_object(self, number, kind, lambda: self.adopt_class(owner))
            if stand_in is None:
                raise wire.Malformed("an object of an unknown kind")
            self._stand_ins[number] = stand_in
        return self._stand_ins[number]

    def adopt_class(self, number: int) -> Any:
        """The stand-in for a class of the other side."""
        if number not in self._stand_ins:
            word, facts = self._described[number]
            if word != "class" or type(facts) is not dict:
                raise wire.Malformed("an object in place of a class")
            self._stand_ins[number] = make_class(self, number, facts)
        return self._stand_ins[number]

    def adopt_error_class(self, data: list[Any]) -> Any:
        """Decode the class of an exception, or a base of it."""
        return Peer.adopt(self, data, 0)

    def _adopt_error(self, parts: list[Any], depth: int) -> BaseException:
        kind = self.adopt_error_class(parts[0])
        arguments, attributes, text, cause, number = [
            self.decode(part, depth) for part in parts[1:]
        ]
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise wire.Malformed("an exception that is none")
        try:
            error = kind(*arguments)
        except Exception:
            error = kind.__new__(kind)
            error.args = tuple(arguments)
        for name, value in attributes.items():
            try:
                setattr(error, str(name), value)
            except (AttributeError, TypeError):
                continue
        if isinstance(cause, BaseException):
            error.__cause__ = cause
        error._passhat_text = str(text)  # type: ignore[attr-defined]
        if number >= 0:
            error._passhat_origin = number  # type: ignore[attr-defined]
        return error


def _bind_special(target: Any, name: str) -> Any:
    """A special method as the interpreter finds it; a mock has objects in place of functions."""
    kind = type(target)
    method = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if method is None:
        raise AttributeError(name)
    return method.__get__(target, kind) if hasattr(type(method), "__get__") else method


def _member_key(member: enum.Enum) -> Any:
    """The name of a member; the number of a flag, since several of them have no name."""
    return int(member.value) if isinstance(member, enum.Flag) else member.name


def _builtin_class(name: str) -> Any:
    kind = getattr(builtins, name, None)
    if not isinstance(kind, type):
        raise wire.Malformed("an unknown class")
    return kind


def _library_error(module: str, name: str, base: str) -> Any:
    """An exception class of the standard library, by names that the other side wrote.

    It is looked up only in modules that are imported already: the other side must not choose what
    is run here. Tests that name the class have imported its module.
    """
    if module.split(".")[0] not in ("inside", *OWN_MODULES):
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            return kind
    return type(str(name)[:LONGEST_NAME], (_builtin_class(base),), {"__str__": error_text})
