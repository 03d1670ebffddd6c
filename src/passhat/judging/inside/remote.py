"""Two processes that use each other's objects: requests, answers, and stand-ins for objects.

One class serves both sides. The tests call functions of the program; while they wait, the program
may call functions that the tests handed to it. The sides are not equal: the tests let the program
do nothing but what a function could do with its arguments, and where the program's own code would
decide a comparison, they stop as unsupported instead of believing it.
"""

from __future__ import annotations

import builtins
import enum
import sys
import time
from _thread import RLock  # threading itself has work to do after every fork
from collections.abc import Callable, Coroutine, Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    GeneratorType,
    ModuleType,
    TracebackType,
)
from typing import Any, Optional

from . import wire

__all__ = ["Peer", "ProgramFailed", "RemoteObject", "Stopped", "Unsupported", "brief_text"]

_LONGEST_NAME = 80
_ALONE, _BATCH, _BATCH_SECONDS = 100, 500, 0.005
"""Items of an iterator that are asked for one by one; items and seconds of a batch after them."""
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and",
           "or", "xor", "lshift", "rshift")  # fmt: skip
_FORWARDED = frozenset(
    f"__{name}__"
    for name in (
        *("len", "iter", "next", "reversed", "contains", "getitem", "setitem", "delitem", "call"),
        *("enter", "exit", "str", "repr", "format", "bytes", "int", "float", "complex", "index"),
        *("round", "trunc", "floor", "ceil", "bool", "neg", "pos", "abs", "invert", "fspath"),
        *("aenter", "aexit", "aiter", "anext", "await"),
        *_BINARY,
        *(f"r{name}" for name in _BINARY),
        *(f"i{name}" for name in _BINARY),
    )
)
_SAFE_DUNDERS = ("__name__", "__doc__", "__qualname__", "__module__", "__signature__")
_REFUSED_FUNCTIONS = (
    *("eval", "exec", "compile", "getattr", "setattr", "delattr", "__import__", "open", "globals"),
    *("locals", "vars", "input", "breakpoint", "exit", "quit", "help"),
)
_PRIVATE = ("_", "gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")
"""Attributes that lead from a function or a generator of the tests to their globals."""


class Stopped(BaseException):
    """The judgement cannot go on. Not an Exception, so that tests do not catch it by accident."""


class Unsupported(Stopped):
    """The tests ask for something that cannot cross the border."""


class ProgramFailed(Stopped):
    """The program has gone, or broke the protocol."""

    def __init__(self, category: str, detail: str) -> None:
        super().__init__(category, detail)
        self.category, self.detail = category, detail


def brief_text(error: BaseException) -> str:
    """The message of an exception, cut; an exception may fail to give it."""
    try:
        return str(error)[:500]
    except BaseException:
        return ""


# -- what stands for an object of the other side --------------------------------------------------


class RemoteObject:
    """An object of the other side: attributes are requested from there."""

    __slots__ = ("__weakref__", "_passhat_number", "_passhat_peer")
    _passhat_number: int
    _passhat_peer: Peer

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


class RemoteFunction(RemoteObject):
    __slots__ = ()

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._passhat_peer.call(self._passhat_number, arguments, keywords)

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
    def __signature__(self) -> Any:
        from inspect import Parameter, Signature

        parts = self._passhat_peer.ask("get", self._passhat_number, "__signature__")
        if parts is None:
            raise AttributeError("__signature__")
        return Signature(
            [
                Parameter(
                    name, getattr(Parameter, kind), default=rest[0] if rest else Parameter.empty
                )
                for name, kind, *rest in parts
            ]
        )


class RemoteIterator(RemoteObject):
    """An iterator of the other side; a long one is read in batches of plain items."""

    __slots__ = ("_passhat_items", "_passhat_taken")
    _passhat_items: list[Any]
    _passhat_taken: int

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        items: list[Any] = self._passhat_items
        if items:
            return items.pop()
        taken = self._passhat_taken + 1
        object.__setattr__(self, "_passhat_taken", taken)
        if taken <= _ALONE:
            return self._passhat_peer.ask("next", self._passhat_number, "")
        batch = self._passhat_peer.ask("next", self._passhat_number, "batch")
        self._passhat_peer.ran_ahead = True
        items.extend(reversed(batch))
        return items.pop()

    def _passhat_require_none(self) -> None:
        if self._passhat_items:
            raise self._passhat_peer.stop(Unsupported("send to a generator after many items"))


class RemoteGenerator(RemoteIterator):
    """A generator; also for ``isinstance`` and ``inspect.isgenerator``."""

    __slots__ = ()

    @property
    def __class__(self) -> Any:
        return GeneratorType

    @__class__.setter
    def __class__(self, _other: Any) -> None:
        raise TypeError("the class cannot be changed")

    def send(self, value: Any) -> Any:
        self._passhat_require_none()
        return self._passhat_peer.ask("send", self._passhat_number, "", value)

    def throw(self, error: Any, *rest: Any) -> Any:
        if isinstance(error, type):
            error = rest[0] if rest and isinstance(rest[0], BaseException) else error(*rest[:1])
        self._passhat_require_none()
        return self._passhat_peer.ask("throw", self._passhat_number, "", error)

    def close(self) -> None:
        self._passhat_peer.ask("close", self._passhat_number, "")


class RemoteCoroutine(RemoteObject, Coroutine):  # type: ignore[type-arg]
    """Something to await: it runs over there, from beginning to end, when it is awaited here."""

    __slots__ = ()
    cr_code = cr_frame = cr_await = None
    cr_running = False

    def send(self, _value: Any) -> Any:
        raise StopIteration(self._passhat_peer.ask("await", self._passhat_number, ""))

    def throw(self, error: Any, *_rest: Any) -> Any:
        raise error

    def close(self) -> None:
        return None

    def __await__(self) -> Any:
        return self._passhat_peer.ask("await", self._passhat_number, "")
        yield


class RemoteType(type):
    """The class of stand-ins for the instances of a class on the other side."""

    _passhat_link: Peer
    _passhat_class: int

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        owner = next((base for base in bases if isinstance(base, RemoteType)), None)
        if owner is not None and "_passhat_class" not in body:
            peer = owner.__dict__.get("_passhat_link")
            if peer is not None:
                raise peer.stop(Unsupported(f"a subclass of the program's class {owner.__name__}"))
        return super().__new__(cls, name, bases, body)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        return cls._passhat_link.call(cls._passhat_class, arguments, keywords)

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
    """An instance of a class over there."""

    __slots__ = ()


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: RemoteObject, *arguments: Any) -> Any:
        if name in ("__exit__", "__aexit__"):
            arguments = (*arguments[:2], None)  # a traceback cannot cross
        return self._passhat_peer.ask("special", self._passhat_number, name, *arguments)

    forward.__name__ = name
    return forward


def _fields(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, name) for name in type(instance)._passhat_fields)


def _by_fields(name: str) -> Callable[..., Any]:
    """A comparison as a dataclass makes it: by the values of the fields, compared here."""

    def compare(self: Any, other: Any) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return getattr(tuple, name)(_fields(self), _fields(other))

    return compare


def _by_their_code(name: str, kind: str) -> Callable[..., Any]:
    """A comparison that the program's class would decide by code of its own.

    Where the tests know the class, or both sides are objects of the program, the class may be
    meant to decide, so the judgement stops. An object of a class that no test names is compared
    with data here: it is not the data.
    """

    def compare(self: Any, other: Any = None) -> Any:
        if type(self)._passhat_named or isinstance(other, RemoteObject) or name == "__hash__":
            raise self._passhat_peer.stop(
                Unsupported(f"{name} of the program's class {kind}, which decides it by itself")
            )
        return NotImplemented

    return compare


class _RemoteEnumMember:
    """A member of an enumeration that is the same here and there."""

    def __getattr__(self, name: str) -> Any:
        peer = type(self).__dict__.get("_passhat_link") if not name.startswith("_") else None
        if peer is None:
            raise AttributeError(name)
        return peer.ask("of", -1, name, self)


# -- the connection -------------------------------------------------------------------------------


class Peer:
    """An end of the connection.

    Parameters
    ----------
    channel : int
        The descriptor of the connection.
    trusted : bool
        Whether the other side is trusted: true for the program, which has nothing to lose.
    phase : sequence of int, optional
        Its first byte is 1 while this side waits for the other or reads what that sent.
    """

    def __init__(self, channel: int, *, trusted: bool, phase: Any = None) -> None:
        self._channel = channel
        self._trusted = trusted
        self._me, self._other = (1, 0) if trusted else (0, 1)
        self._phase = phase if phase is not None else [0]
        self._lock = RLock()
        self._codec = wire.Codec(self._me, self._export, self._adopt)
        self._exports: dict[int, Any] = {}
        self._export_numbers: dict[int, int] = {}
        self._infos: list[list[Any]] = []
        self._stand_ins: dict[int, Any] = {}
        self._described: dict[int, list[Any]] = {}
        self._loop: Any = None
        self._errors: dict[int, BaseException] = {}
        self.calls = 0
        self.ran_ahead = False
        self.flattened, self.behaves = "", False
        self.stopped: Optional[Stopped] = None  # noqa: UP045 - Python 3.9

    # What an end adds to every message, and does with what the other end added.

    def additions(self) -> dict[str, Any]:
        return {}

    def absorb(self, message: dict[str, Any]) -> None:
        """Process additional fields of a message."""

    def stop(self, why: Stopped) -> Stopped:
        """Remember the first reason: a test that swallows it cannot pass afterwards."""
        self.stopped = self.stopped or why
        return self.stopped

    # -- asking ----------------------------------------------------------------------------------

    def call(self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self.ask("call", number, "", arguments, tuple(keywords.items()))

    def ask(self, verb: str, number: int, name: str, *arguments: Any) -> Any:
        """Send a request and serve the other side until its answer comes."""
        with self._lock:
            if self.stopped is not None:
                raise self.stopped
            self._send({"q": [verb, number, name]}, arguments)
            while True:
                self._phase[0] = 1
                message, value = self._receive()
                self._phase[0] = 0
                if "q" in message:
                    self.serve(message, value)
                    continue
                self.calls += 1
                return self._answer(message, value)

    def _answer(self, message: dict[str, Any], value: Any) -> Any:
        answer = message.get("a")
        if answer == "value":
            return value
        if answer == "stop":
            raise StopIteration(value)
        if answer == "raised" and isinstance(value, BaseException):
            raise value
        if answer == "excess":
            raise self.stop(self._excess(str(message.get("text"))[:200]))
        if answer == "unsupported":
            raise self.stop(Unsupported(str(message.get("text"))[:200]))
        raise self.stop(_broken("an unknown answer"))

    def _excess(self, text: str) -> Stopped:
        return ProgramFailed("PermissionError", f"its answer is {text}")

    def _send(self, message: dict[str, Any], value: Any) -> None:
        try:
            data, contents = self._codec.write(value)
            message = {**message, "d": data, **self.additions()}
            if contents:
                message["c"] = contents
            if self._infos:
                message["k"], self._infos = self._infos, []
            if not self._trusted and (unused := self._codec.unused()):
                message["x"] = unused
            wire.send(self._channel, message)
        except wire.Closed:
            raise self.stop(ProgramFailed("gone", "")) from None
        except (wire.NotPlain, RecursionError) as error:
            if self._trusted:
                raise wire.NotPlain(str(error)) from None
            raise self.stop(Unsupported(f"the tests pass {error}")) from None

    def _receive(self) -> tuple[dict[str, Any], Any]:
        try:
            message = wire.receive(self._channel)
            if type(message) is not dict:
                raise wire.Malformed("a message without parts")
            for info in message.get("k", ()):
                number, *rest = info
                self._described[number] = rest
            value = self._codec.read(message.get("d"), message.get("c", ()))
            # Only now: what the other side changed last and then let go of is in the message too.
            self._codec.forget(message.get("x", ()) if self._trusted else ())
            self.absorb(message)
        except wire.Closed:
            if self._trusted:
                raise
            raise self.stop(ProgramFailed("gone", "")) from None
        except MemoryError:
            raise self.stop(ProgramFailed("memory", "its answer takes too much memory")) from None
        except (wire.Malformed, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self.stop(_broken(brief_text(error))) from None
        return message, value

    # -- answering -------------------------------------------------------------------------------

    def receive_request(self) -> tuple[dict[str, Any], Any]:
        """Wait for a request."""
        return self._receive()

    def serve(self, message: dict[str, Any], value: Any) -> None:
        """Perform a request of the other side, and answer."""
        text = ""
        try:
            verb, number, name = message["q"]
            answer, result = self._perform(verb, number, name, value)
        except StopIteration as error:
            answer, result = "stop", error.value
        except wire.NotPlain as error:
            answer, result, text = "excess", None, str(error)
        except Stopped as error:
            if not self._trusted:
                raise
            answer, result, text = "unsupported", None, str(error)
        except BaseException as error:
            if not self._trusted and not isinstance(error, Exception):
                raise
            answer, result = "raised", error
        try:
            self._send({"a": answer, "text": text} if text else {"a": answer}, result)
        except wire.NotPlain as error:
            self._send({"a": "excess", "text": str(error)}, None)

    def _perform(  # noqa: C901 - one branch per verb
        self, verb: str, number: int, name: str, arguments: tuple[Any, ...]
    ) -> Any:
        if verb == "of":
            return "value", getattr(arguments[0], name)
        if number not in self._exports:
            return self.other_request(verb, name, arguments)
        target = self._exports[number]
        if not self._trusted:
            self._check(verb, target, name)
        if verb == "call":
            given, named = arguments
            return "value", target(*given, **dict(named))
        if verb == "get":
            return "value", _signature(target) if name == "__signature__" else getattr(target, name)
        if verb == "set":
            setattr(target, name, *arguments)
            return "value", None
        if verb == "del":
            delattr(target, name)
            return "value", None
        if verb == "special":
            return "value", getattr(type(target), name)(target, *arguments)
        if verb == "next":
            return "value", self._batch(number, target) if name == "batch" else next(target)
        if verb in ("send", "throw", "close"):
            return "value", getattr(target, verb)(*arguments)
        if verb == "await":
            return "value", self._awaited(target)
        raise AttributeError(verb)

    def _batch(self, number: int, target: Any) -> list[Any]:
        """Some items at once, as long as they are plain and come fast."""
        if number in self._errors:
            raise self._errors.pop(number)
        items: list[Any] = []
        until = time.monotonic() + _BATCH_SECONDS
        try:
            while not items or (type(items[-1]) in _PLAIN_ITEMS and len(items) < _BATCH):
                items.append(next(target))
                if time.monotonic() > until:
                    break
        except BaseException as error:
            if not items:
                raise
            self._errors[number] = error
        return items

    def other_request(self, verb: str, _name: str, _arguments: tuple[Any, ...]) -> Any:
        """Requests of an end other than the use of objects."""
        raise AttributeError(verb)

    def _check(self, verb: str, target: Any, name: str) -> None:
        """Refuse access that would let the program into the tests: globals, frames and modules."""
        if verb in ("get", "set", "del"):
            own = isinstance(target, type) or type(target).__module__ in ("tests", "unittest.mock")
            known = verb == "get" and (name in _SAFE_DUNDERS or hasattr(type(target), name))
            if name.startswith(_PRIVATE) and name not in _SAFE_DUNDERS:
                raise AttributeError(name)
            if not own and not known:
                raise AttributeError(name)
        elif verb == "special" and name not in _FORWARDED and name not in _COMPARISONS:
            raise AttributeError(name)

    def _awaited(self, awaitable: Any) -> Any:
        import asyncio

        async def wait() -> Any:
            return await awaitable

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            return self._loop.run_until_complete(wait())
        if self._trusted:
            raise Unsupported("await inside await")
        raise self.stop(Unsupported("the program awaits what the tests handed to it"))

    # -- writing what is not data ----------------------------------------------------------------

    def _export(self, value: Any, depth: int) -> Any:  # noqa: C901 - one branch per kind
        kind = type(value)
        if isinstance(kind, RemoteType) or isinstance(value, RemoteObject):
            return ["o", self._other, object.__getattribute__(value, "_passhat_number")]
        if isinstance(value, RemoteType):
            return ["C", self._other, value._passhat_class]
        number = kind.__dict__.get("_passhat_class")
        if number is not None and isinstance(value, enum.Enum):
            return ["M", self._other, number, value.name]
        if number is not None and isinstance(value, tuple):
            return ["N", self._other, number, *self._encode_all(value, depth)]
        if isinstance(value, BaseException):
            return self._export_error(value, depth)
        if isinstance(value, type):
            return self._export_class(value)
        if isinstance(value, enum.Enum):
            return ["M", self._me, self._class_number(kind), value.name]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            items = tuple(tuple.__iter__(value))
            return ["N", self._me, self._class_number(kind), *self._encode_all(items, depth)]
        if isinstance(value, ModuleType):
            raise wire.NotPlain("a module")
        if isinstance(value, BuiltinFunctionType) and type(value.__self__) is ModuleType:
            return self._export_builtin(value)
        return self._flattened(value, depth) or self._export_object(value)

    def _encode_all(self, items: Any, depth: int) -> list[Any]:
        return [self._codec.encode(item, depth) for item in items]

    def _export_builtin(self, value: Any) -> Any:
        module = str(value.__self__.__name__)
        if module == "builtins" and value.__name__ in _REFUSED_FUNCTIONS:
            raise wire.NotPlain(f"the function {value.__name__}")
        # The program may look anything up; the tests make no functions of what it names.
        return ["B", module, value.__name__] if not self._trusted else self._export_object(value)

    def _export_class(self, value: type) -> Any:
        if getattr(builtins, value.__name__, None) is value:
            return ["T", value.__name__]
        if issubclass(value, BaseException):
            return self._exception_class(value)
        return ["C", self._me, self._class_number(value)]

    def _exception_class(self, value: type) -> Any:
        if getattr(builtins, value.__name__, None) is value:
            return ["T", value.__name__]
        module: Any = sys.modules.get(value.__module__)
        if getattr(module, value.__name__, None) is value and value.__module__ not in _OWN_MODULES:
            mro: list[type] = list(value.__mro__)
            base = next(each for each in mro if getattr(builtins, each.__name__, None) is each)
            return ["S", value.__module__, value.__name__, base.__name__]
        return ["C", self._me, self._class_number(value)]

    def _export_error(self, error: BaseException, depth: int) -> Any:
        own = vars(error).get("_passhat_own")
        if own is not None:
            return ["X", own]
        attributes = {
            name: data
            for name, data in vars(error).items()
            if not name.startswith("_passhat") and self._crosses(data)
        }
        arguments = [data if self._crosses(data) else brief_text(error) for data in error.args]
        number = -1 if self._trusted else self._number_of(error)
        cause = error.__cause__ if depth < 8 and error.__cause__ is not error else None
        parts = (arguments, attributes, brief_text(error), cause, number)
        return ["E", self._exception_class(type(error)), *self._encode_all(parts, depth)]

    def _crosses(self, value: Any) -> bool:
        try:
            self._codec.encode(value)
        except (wire.NotPlain, RecursionError):
            return False
        return True

    def _number_of(self, value: Any) -> int:
        number = self._export_numbers.get(id(value))
        if number is None:
            number = len(self._exports)
            self._exports[number] = value
            self._export_numbers[id(value)] = number
        return number

    def _class_number(self, kind: type) -> int:
        known = id(kind) in self._export_numbers
        number = self._number_of(kind)
        if not known:
            self._infos.append([number, "class", self._class_facts(kind)])
        return number

    def _class_facts(self, kind: type) -> dict[str, Any]:
        """Facts about a class that the other side needs to make a stand-in of it."""
        facts: dict[str, Any] = {"name": str(kind.__name__)[:_LONGEST_NAME]}
        if isinstance(kind, enum.EnumMeta):
            known = ("IntFlag", "Flag", "IntEnum", "StrEnum")
            facts["enum"] = next(
                (n for n in known if hasattr(enum, n) and issubclass(kind, getattr(enum, n))),
                "Enum",
            )
            known_members: dict[str, Any] = dict(kind.__members__)
            members = [(name, member.value) for name, member in known_members.items()]
            facts["members"] = [[name, self._codec.encode(data)] for name, data in members]
            return facts
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            facts["fields"] = [str(name) for name in kind._fields]
            return facts
        if issubclass(kind, BaseException):
            facts["bases"] = [self._exception_class(base) for base in _error_bases(kind)]
            return facts
        own = [base for base in kind.__mro__[:-1] if not issubclass(base, _NO_STAND_IN)]
        facts["bases"] = [
            self._class_number(base) for base in kind.__bases__ if base.__module__ in _OWN_MODULES
        ]
        names = {name for base in own for name, value in vars(base).items() if value is not None}
        facts["special"] = sorted(names & _FORWARDED)
        facts["doc"] = kind.__doc__[:4000] if type(kind.__doc__) is str else None
        facts.update(_comparison_facts(kind, own))
        return facts

    def _export_object(self, value: Any) -> Any:
        known = id(value) in self._export_numbers
        if not self._trusted and isinstance(value, _NEVER_SHOWN):
            raise wire.NotPlain(f"a {type(value).__name__}")
        number = self._number_of(value)
        if not known:
            kind = _kind(value)
            owner = self._class_number(type(value)) if kind == "instance" else -1
            self._infos.append([number, kind, owner])
        return ["o", self._me, number]

    def _flattened(self, value: Any, depth: int) -> Any:
        """A subclass of built-in data, or a view on it, as the data it holds."""
        kind = type(value)
        for view, tag in _VIEWS:
            if kind is view:
                return [tag, *self._encode_all(list(value), depth)]
        for base, make in _BASES:
            if isinstance(value, base):
                name, own = str(kind.__name__)[:_LONGEST_NAME], _behaves(kind, base)
                return ["~", name, own, self._codec.encode(make(value), depth)]
        if kind.__module__.split(".")[0] == "numpy" and hasattr(value, "tolist"):
            return ["~", f"numpy {kind.__name__}", True, self._codec.encode(value.tolist(), depth)]
        return None

    # -- reading what is not data ----------------------------------------------------------------

    def _adopt(self, data: list[Any], depth: int) -> Any:  # noqa: C901 - one branch per tag
        tag, *parts = data
        decode = self._codec.decode
        if tag == "o":
            owner, number = parts
            return self._exports[number] if owner == self._me else self._stand_in(number)
        if tag == "C":
            owner, number = parts
            if owner == self._me:
                return self._exports[number]
            made = self._class(number)
            if isinstance(made, RemoteType):
                type.__setattr__(made, "_passhat_named", True)
            return made
        if tag in ("M", "N"):
            owner, number, *rest = parts
            made = self._exports[number] if owner == self._me else self._class(number)
            if tag == "M":
                return made[rest[0]]
            return tuple.__new__(made, [decode(item, depth) for item in rest])
        if tag == "~":
            name, behaves, content = parts
            self.flattened = self.flattened or str(name)[:_LONGEST_NAME]
            self.behaves = self.behaves or behaves is True
            return decode(content, depth)
        if tag == "T":
            return _builtin_class(*parts)
        if tag == "S":
            return _library_error(*parts)
        if tag == "B" and self._trusted:
            return getattr(__import__(parts[0]), parts[1])
        if tag == "E":
            return self._error(parts, depth)
        if tag == "X" and not self._trusted:
            return self._exports[parts[0]]
        if tag in _VIEW_MAKERS:
            return _VIEW_MAKERS[tag]([decode(item, depth) for item in parts])
        raise wire.Malformed("an unknown tag")

    def _stand_in(self, number: int) -> Any:
        if number in self._stand_ins:
            return self._stand_ins[number]
        kind, owner = self._described[number]
        if kind == "instance":
            made = object.__new__(self._class(owner))
        elif kind in _STAND_INS:
            made = object.__new__(_STAND_INS[kind])
        else:
            raise wire.Malformed("an object of an unknown kind")
        object.__setattr__(made, "_passhat_peer", self)
        object.__setattr__(made, "_passhat_number", number)
        if kind in ("generator", "iterator"):
            object.__setattr__(made, "_passhat_items", [])
            object.__setattr__(made, "_passhat_taken", 0)
        self._stand_ins[number] = made
        return made

    def _class(self, number: int) -> Any:
        if number not in self._stand_ins:
            word, facts = self._described[number]
            if word != "class" or type(facts) is not dict:
                raise wire.Malformed("an object in place of a class")
            self._stand_ins[number] = self._made_class(number, facts)
        return self._stand_ins[number]

    def _made_class(self, number: int, facts: dict[str, Any]) -> Any:
        name = str(facts["name"])
        body: dict[str, Any] = {"__module__": "solution", "_passhat_class": number}
        if "enum" in facts:
            members = [(key, self._codec.decode(value)) for key, value in facts["members"]]
            base = getattr(enum, facts["enum"] if facts["enum"] in _ENUMS else "Enum")
            made = base(name, members, module="solution", type=_RemoteEnumMember)
            type.__setattr__(made, "_passhat_class", number)
            type.__setattr__(made, "_passhat_link", self)
            return made
        if "fields" in facts and "bases" not in facts:
            from collections import namedtuple

            plain = namedtuple(name, facts["fields"])  # type: ignore[misc]
            body.update(__slots__=(), __getattr__=_tuple_attribute(self))
            # Called over there: defaults and checks are the other side's.
            body["__new__"] = lambda _cls, *given, **named: self.call(number, given, named)
            return type(name, (plain,), body)
        if any(type(base) is list for base in facts["bases"]):
            bases = tuple(self._adopt(base, 0) for base in facts["bases"])
            return type(name, bases, {**body, "__str__": _error_text})
        return self._made_instance_class(name, facts, body)

    def _made_instance_class(self, name: str, facts: dict[str, Any], body: dict[str, Any]) -> Any:
        for special in facts["special"]:
            if special in _FORWARDED:
                body[special] = _forward(special)
        fields, order = facts.get("fields"), facts.get("order")
        body.update(
            __slots__=(), _passhat_link=self, _passhat_named=False, _passhat_fields=fields or ()
        )
        if self._trusted:
            body.update({each: _forward(each) for each in facts.get("compared", ())})
            if "__eq__" in body:
                body["__hash__"] = _forward("__hash__")
        elif fields is not None:
            compared = list(_COMPARISONS if order else _COMPARISONS[:1])
            body.update({each: _by_fields(each) for each in compared})
            body["__hash__"] = (lambda own: hash(_fields(own))) if facts.get("hashed") else None
            others = set(facts.get("compared", ())) - {*compared, "__hash__"}
            body.update({each: _by_their_code(each, name) for each in others})
        else:
            compared = [each for each in facts.get("compared", ()) if each in _COMPARISONS]
            body.update({each: _by_their_code(each, name) for each in compared})
            if "__eq__" in body:
                body["__hash__"] = _by_their_code("__hash__", name)
        if facts.get("all_fields") is not None:
            body.update(_dataclass_face(facts["all_fields"], facts))
        if type(facts.get("doc")) is str:
            body["__doc__"] = facts["doc"]
        bases = [self._class(number) for number in facts["bases"]]
        bases = [base for base in bases if isinstance(base, RemoteType)]
        return RemoteType(name, tuple(bases) or (RemoteInstance,), body)

    def _error(self, parts: list[Any], depth: int) -> BaseException:
        kind = self._adopt(parts[0], depth)
        arguments, attributes, text, cause, number = [
            self._codec.decode(part, depth) for part in parts[1:]
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
        if self._trusted:
            error._passhat_own = number  # type: ignore[attr-defined]
        return error


# -- facts about objects --------------------------------------------------------------------------

_PLAIN_ITEMS = (int, float, str, bool, type(None))
_NEVER_SHOWN = (FrameType, CodeType, TracebackType, ModuleType)
"""From these the program could reach the globals of the tests."""
_OWN_MODULES = ("solution", "__main__", "tests", "candidate")
_NO_STAND_IN = (BaseException,)
_ENUMS = ("Enum", "IntEnum", "Flag", "IntFlag", "StrEnum")
_STAND_INS: dict[str, type] = {
    "callable": RemoteFunction,
    "generator": RemoteGenerator,
    "iterator": RemoteIterator,
    "awaitable": RemoteCoroutine,
}
_VIEWS: tuple[tuple[type, str], ...] = (
    (type({}.keys()), "K"),
    (type({}.values()), "V"),
    (type({}.items()), "I"),
)
_VIEW_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "K": lambda items: dict.fromkeys(items).keys(),
    "V": lambda items: dict(enumerate(items)).values(),
    "I": lambda items: dict(items).items(),
}
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


def _behaves(kind: type, base: type) -> bool:
    """Whether a subclass of built-in data does more than hold and compare the data."""
    usual = {*_COMPARISONS, "__hash__", "__init__", "__new__", "__repr__", "__str__", "__module__"}
    usual |= {
        "__doc__",
        "__dict__",
        "__weakref__",
        "__slots__",
        "__annotations__",
        "__firstlineno__",
    }
    usual |= {"__static_attributes__", "__qualname__", "__orig_bases__", "__parameters__"}
    mine = kind.__mro__[: kind.__mro__.index(base)]
    return any(name not in usual for each in mine for name in vars(each))


def _kind(value: Any) -> str:
    kind = type(value)
    if kind is GeneratorType:
        return "generator"
    if hasattr(kind, "__await__") and kind.__module__ not in _OWN_MODULES:
        return "awaitable"
    if callable(value) and kind.__module__ in ("builtins", "functools", "operator"):
        return "callable"
    if hasattr(kind, "__next__") and kind.__module__ not in _OWN_MODULES:
        return "iterator"
    return "instance"


def _comparison_facts(kind: Any, own: list[type]) -> dict[str, Any]:
    """Which comparisons the class makes, and whether a dataclass made them for it."""
    facts: dict[str, Any] = {}
    compared = {name for base in own for name in vars(base)} & {*_COMPARISONS, "__hash__"}
    if compared:
        facts["compared"] = sorted(compared)
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is None:
        return facts
    known = kind.__dataclass_fields__.values()
    real = [field for field in known if getattr(field._field_type, "name", "") == "_FIELD"]
    facts["all_fields"] = [field.name for field in real]
    facts["frozen"], facts["hashed"] = bool(parameters.frozen), kind.__hash__ is not None
    written = getattr(getattr(kind, "__eq__", None), "__code__", None)
    if parameters.eq and written is not None and written.co_filename == "<string>":
        facts["fields"] = [field.name for field in real if field.compare]
        facts["order"] = bool(parameters.order)
    return facts


def _dataclass_face(names: list[str], facts: dict[str, Any]) -> dict[str, Any]:
    """The attributes that ``dataclasses.fields`` and ``asdict`` read."""
    from dataclasses import make_dataclass

    plain = make_dataclass("plain", [str(name) for name in names], frozen=bool(facts.get("frozen")))
    return {name: plain.__dict__[name] for name in ("__dataclass_fields__", "__dataclass_params__")}


def _error_bases(kind: type) -> list[type]:
    return [base for base in kind.__bases__ if issubclass(base, BaseException)]


def _error_text(self: Any) -> str:
    text = self.__dict__.get("_passhat_text")
    return BaseException.__str__(self) if text is None else text


def _tuple_attribute(peer: Peer) -> Callable[[Any, str], Any]:
    def attribute(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return peer.ask("of", -1, name, self)

    return attribute


def _builtin_class(name: str) -> Any:
    known = getattr(builtins, name, None)
    if not isinstance(known, type):
        raise wire.Malformed("an unknown class")
    return known


def _library_error(module: str, name: str, base: str) -> Any:
    """An exception class of the standard library, by names that the other side wrote.

    It is looked up only in modules that are imported already: the other side must not choose what
    is run here. Tests that name the class have imported its module.
    """
    if module.split(".")[0] not in ("inside", *_OWN_MODULES):
        known = getattr(sys.modules.get(module), name, None)
        if isinstance(known, type) and issubclass(known, BaseException):
            return known
    return type(str(name)[:_LONGEST_NAME], (_builtin_class(base),), {"__str__": _error_text})


def _signature(function: Any) -> Any:
    from inspect import Parameter, signature

    try:
        known = signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        (one.name, one.kind.name, *([] if one.default is Parameter.empty else [one.default]))
        for one in known
    ]


def _broken(what: str) -> ProgramFailed:
    return ProgramFailed("PermissionError", f"wrote on the judge's channel: {what}")
