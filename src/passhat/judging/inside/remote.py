"""The tests' side of the border: the connection to the program, and what comes over it.

Data arrives as exact built-in types; for what is not data there are the stand-ins of ``stand_ins``.
"""

from __future__ import annotations

import builtins
from typing import Any

from . import wire
from .stand_ins import (
    Opaque,
    Remote,
    RemoteClass,
    RemoteFunction,
    RemoteGenerator,
    RemoteIterator,
)
from .stopping import ProgramFailed, Stopped, Unsupported

__all__ = ["Program"]


class Program:
    """The connection to the program, and what is known of it."""

    def __init__(self, channel: int, functions: frozenset[str]) -> None:
        self._channel = channel
        self._functions = functions
        self.names: dict[str, object] = {}
        self.exceptions: dict[str, type[BaseException]] = {}
        self.calls = 0
        self.flattened = False
        self.stopped: Stopped | None = None

    def load(self, names: list[str]) -> None:
        """Wait until the program is loaded; learn which of these names it defines."""
        hello = self._receive()
        if hello[0] == "failed" and _are(hello[1:], str, str):
            raise self.stop(ProgramFailed(hello[1], hello[2]))
        if hello != ["ready"]:
            raise self.stop(_broken("its first words"))
        self._request("names", names)
        reply = self._receive()
        if reply[0] != "names" or not _are(reply[1:], list):
            raise self.stop(_broken("its names"))
        for entry in reply[1]:
            if type(entry) is not list or len(entry) != 3 or not _are(entry[:2], str, str):
                raise self.stop(_broken("its names"))
            if entry[0] in names:
                self._learn(*entry)

    def _learn(self, name: str, kind: str, data: Any) -> None:
        if kind == "exception":
            self.names[name] = self._exception(name, data)
        elif kind == "class" and name not in self._functions:
            self.names[name] = RemoteClass(self, _number(data), name)
        elif kind in ("class", "callable"):
            self.names[name] = RemoteFunction(self, _number(data), name)
        else:
            self.names[name] = self._decode(data)

    # -- asking ----------------------------------------------------------------------------------

    def ask(self, *request: Any) -> Any:
        """Send a request; the decoded answer, or the program's exception raised here."""
        self._request(*request)
        reply = self._receive()
        self.calls += 1
        return self._reply(reply)

    def _request(self, *request: Any) -> None:
        if self.stopped is not None:
            raise self.stopped
        try:
            wire.send(self._channel, request)
        except wire.Closed:
            raise self.stop(ProgramFailed("gone", "")) from None
        except wire.NotPlain as error:
            raise self.stop(Unsupported(f"the tests pass {error}")) from None

    def call(self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call something over there; changed arguments are changed here as well."""
        given = list(arguments)
        answer = self.ask("call", number, self.encode(given), self.encode(keywords))
        if type(answer) is _Changed:
            _write_back(given, answer.arguments)
            return None
        return answer

    def encode(self, value: object) -> Any:
        try:
            return wire.encode(value, self._stand_in)
        except wire.NotPlain as error:
            raise self.stop(Unsupported(str(error))) from None

    def _receive(self) -> list[Any]:
        try:
            reply = wire.receive(self._channel)
        except wire.Closed:
            raise self.stop(ProgramFailed("gone", "")) from None
        except wire.Malformed as error:
            raise self.stop(_broken(str(error))) from None
        if type(reply) is not list or not reply or type(reply[0]) is not str:
            raise self.stop(_broken("a reply without a verb"))
        return reply

    def _reply(self, reply: list[Any]) -> Any:
        if reply[0] == "value" and len(reply) == 2:
            return self._decode(reply[1])
        if reply[0] == "value" and len(reply) == 3 and reply[1] is None:
            return _Changed(self._decode(reply[2]))
        if reply[0] == "stop":
            raise StopIteration
        if reply[0] == "excess" and _are(reply[1:], str):
            raise self.stop(ProgramFailed("PermissionError", f"it returns {reply[1][:200]}"))
        if reply[0] == "raised" and len(reply) == 5 and _are(reply[1:2], str):
            raise self._error(reply[1], reply[2], self._decode(reply[3]), reply[4])
        raise self.stop(_broken("an unknown reply"))

    def _decode(self, data: Any) -> Any:
        try:
            return wire.decode(data, self._adopt)
        except (wire.Malformed, RecursionError) as error:
            raise self.stop(_broken(str(error))) from None

    def stop(self, why: Stopped) -> Stopped:
        """Remember the first reason: a test that swallows it cannot pass afterwards."""
        self.stopped = self.stopped or why
        return self.stopped

    # -- what is not plain -----------------------------------------------------------------------

    def _adopt(self, stand_in: list[Any]) -> object:
        if stand_in[0] == "~" and len(stand_in) == 2:
            self.flattened = True
            return self._decode(stand_in[1])
        if stand_in[0] != "o" or not _are(stand_in[1:], int, str, str):
            raise wire.Malformed("an unknown tag")
        _, number, kind, name = stand_in
        if kind in ("generator", "iterator"):
            return (RemoteGenerator if kind == "generator" else RemoteIterator)(self, number)
        if kind == "awaitable":
            raise self.stop(Unsupported("the program returns an awaitable"))
        return (RemoteFunction if kind == "callable" else Opaque)(self, number, name)

    def _stand_in(self, value: object) -> list[Any]:
        if isinstance(value, Remote) and value._program is self:
            return ["o", value._number]
        raise wire.NotPlain(f"a {type(value).__name__}, which cannot cross the border")

    def _exception(self, name: str, bases: Any) -> type[BaseException]:
        """The built-in exception of that name, or one of the tests' own that stands for it."""
        known = _builtin_exception(name)
        if known is not None:
            return known
        if name not in self.exceptions:
            names = [base for base in bases if type(base) is str] if type(bases) is list else []
            found = (_builtin_exception(base) for base in names)
            base = next((one for one in found if one is not None), Exception)
            self.exceptions[name] = type(str(name), (base,), {"__module__": "solution"})
        return self.exceptions[name]

    def _error(self, name: str, bases: Any, arguments: Any, text: Any) -> BaseException:
        kind = self._exception(name, bases)
        try:
            error = kind(*arguments)
        except Exception:
            error = Exception(str(text)[:500])
        error.__passhat_name__ = name  # type: ignore[attr-defined]
        return error


def _broken(what: str) -> ProgramFailed:
    return ProgramFailed("PermissionError", f"wrote on the judge's channel: {what}")


def _are(parts: list[Any], *kinds: type) -> bool:
    return [type(part) for part in parts] == list(kinds)


def _number(stand_in: Any) -> int:
    if type(stand_in) is list and len(stand_in) == 4 and type(stand_in[1]) is int:
        return stand_in[1]
    return -1


def _builtin_exception(name: str) -> type[BaseException] | None:
    found = getattr(builtins, name, None)
    good = isinstance(found, type) and issubclass(found, BaseException)
    return found if good else None


class _Changed:
    """A call that returned nothing and changed its arguments."""

    def __init__(self, arguments: list[Any]) -> None:
        self.arguments = arguments


def _write_back(given: list[Any], after: Any) -> None:
    for mine, theirs in zip(given, after):  # noqa: B905 - Python 3.9
        if type(mine) is not type(theirs):
            continue
        if type(mine) in (list, bytearray):
            mine[:] = theirs
        elif type(mine) in (dict, set):
            mine.clear()
            mine.update(theirs)
