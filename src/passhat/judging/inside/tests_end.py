"""The tests' end of the connection, which does not trust the program.

A function of the tests that the program may call must not lead it to the tests' globals, frames or
modules, and no comparison is decided by the program's code. Every check here has an attack in
``tests/judging/test_guards.py`` that gets through without it.
"""

from __future__ import annotations

import sys
from enum import EnumMeta
from functools import partial
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any

from . import wire
from .facts import COMPARISONS, FORWARDED
from .peer import Peer, protocol_breach
from .stand_ins import (
    ProgramFailed,
    RemoteObject,
    RemoteType,
    Unsupported,
    is_remote,
    judge_comparisons,
)

Outcome = tuple[str, str, str]
"""passed, failed, gone, unsupported or judge_error; the word for it; what happened."""

_SAFE_DUNDERS = ("__name__", "__doc__", "__qualname__", "__module__")
_PRIVATE = ("_", "gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")
"""Attributes that lead from a function or a generator of the tests to their globals."""
_NEVER_SHOWN = (FrameType, CodeType, TracebackType, ModuleType)
"""Objects from which the program could reach the globals of the tests."""
_MOCK_SETTERS = ("attach_mock", "configure_mock", "mock_add_spec", "reset_mock")
_OBJECTS_EXPECTED = ("", "new ()", "__iter__", "__reversed__")
"""Requests whose answer is an object, or an iterator, which may be one as well."""
_DATA_METHODS = {name for kind in wire.DATA_TYPES for name in dir(kind)}.union(
    ("match", "samefile", "is_relative_to", "relative_to", "joinpath")
)
"""Methods that tests call where they have data; the last ones are of paths."""
_FORMATS = ("format", "format_map", "vformat", "get_field")
"""Methods by which a text reads any attribute of its arguments."""
_MOST_TRAFFIC = 1 << 20
_BLOCK, _MOST_BLOCKS = 624, 16
"""Numbers that Python's generator makes at once, and how many times a program may have it do so."""
_PLAIN = (int, float, str, bool, type(None))


class TestsEnd(Peer):
    """The tests' end: it also shows the program's prints, and shares random numbers."""

    __test__ = False  # not a test class of pytest's

    def __init__(self, channel: int, brief: dict[str, Any], phase: Any, folder: str) -> None:
        super().__init__(channel, 0, phase, folder)
        self.names: dict[str, Any] = {}
        self._brief, self._has_reference = brief, brief["has_reference"]
        self._random: Any = None
        self.mirrored = self.is_used = False
        self.variable = self.refused = self.library = ""
        self.has_shown_failure = False
        self.objects: set[str] = set()
        self._request = self._part = ""
        self._sources: dict[int, str] = {}
        self._untold: dict[int, str] = {}
        self._constructed: set[int] = set()

    def load(self, names: list[str]) -> None:
        """Wait until the program is loaded; learn which of these names it defines."""
        self._phase[0] = 1
        hello, _ = self.receive()
        self._phase[0] = 0
        failure = hello.get("failure")
        if hello.get("a") == "failed" and type(failure) is list and len(failure) == 2:
            raise self.stop(ProgramFailed(str(failure[0])[:80], str(failure[1])[:500]))
        if hello.get("a") != "ready":
            raise self.stop(protocol_breach("neither ready nor failed"))
        self.learn(names)

    def learn(self, names: list[str]) -> None:
        """Ask which of these names the program defines."""
        answer = self.ask("names", -1, "", names)
        if type(answer) is not tuple or [type(part) for part in answer] != [dict, dict]:
            raise self.stop(protocol_breach("no table of names"))
        values, modules = answer
        library = self._brief["library"]
        for name in names:
            is_module = name in modules and name in self._brief["modules"]
            if is_module or (name in library and (name in values or name in modules)):
                # Imports of the reference, or of the program where both have the module, are made
                # here: what they stand for is the library's, whatever the program says it is.
                module, attribute = library.get(name, (name, ""))
                if is_module and module == name:  # ``from datetime import datetime`` or without
                    attribute = name if modules[name] == f"{name}.{name}" else ""
                source = __import__(module, fromlist=["_"])
                self.names[name] = getattr(source, attribute) if attribute else source
            elif name in values and name in self._brief["modules"] and not self._has_reference:
                raise self.stop(Unsupported(f"{name} is a module or the program's own"))
            elif name in values:
                is_data = not isinstance(values[name], (RemoteObject, RemoteType))
                self.is_used = self.is_used or is_data  # tests may look at it without a request
                self.names[name] = self._as_function(values[name], name)
                # A variable is read once here: the program may assign it anew.
                self.variable = self.variable or (name if type(values[name]) in _PLAIN else "")

    def _as_function(self, value: Any, name: str) -> Any:
        """A class where the reference has a function is no more than something to call.

        Without a reference a name in lower case is a function's.
        """
        if isinstance(value, RemoteObject):
            self._sources[value._passhat_number] = name
        number = value.__dict__.get("_passhat_class") if isinstance(value, type) else None
        if number is None:
            return value
        is_guess = not self._has_reference and not name[0].isupper()
        if name in self._brief["functions"] or is_guess:
            self._sources[number] = name
            return lambda *values, **keywords: self.call(number, values, keywords)
        self._note("a class", name)
        if isinstance(value, RemoteType):
            type.__setattr__(value, "_passhat_named", True)
        return value

    # -- what crosses with every message ---------------------------------------------------------

    def additions(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if numbers := self._codec.drop_unused():
            fields["x"] = numbers
        if self._brief["random"]:
            import random

            if (state := random.getstate()) != self._random:
                self._random = fields["r"] = state
        return fields

    def absorb(self, message: dict[str, Any]) -> None:
        for key, stream in (("o", sys.stdout), ("e", sys.stderr)):
            if type(message.get(key)) is str:
                stream.write(message[key])
        if "r" in message and self._random is not None and (state := self._follow(*message["r"])):
            import random

            random.setstate(state)
            self._random = state

    def _follow(self, _version: int, words: list[int], gauss: Any) -> Any:
        """The state of random numbers that the program has drawn up to; none if it did not draw.

        A program that seeds them would choose what the tests draw.
        """
        from random import Random

        source = Random()
        source.setstate(self._random)
        *block, index = words
        first = self._random[1][-1]
        for _ in range(_MOST_BLOCKS):
            version, (*numbers, _at), _gauss = source.getstate()
            if numbers == block and type(index) is int and first <= index <= _BLOCK:
                same = gauss == self._random[2]
                return (version, (*numbers, index), self._random[2] if same else None)
            source.getrandbits(32 * _BLOCK)
            first = 0
        return None

    # -- exactness -------------------------------------------------------------------------------

    @property
    def is_exact(self) -> bool:
        """Whether nothing but exact data crossed, and the tests look at nothing else.

        Then they would see the same in one process. A program that was ended for its processor
        time is another matter where much data crossed: reading and writing that is its own work.
        """
        is_plain = not (self.mirrored or self.flattened or self.variable or self._codec.forgot)
        return is_plain and not self._brief["inexact"] and self.traffic < _MOST_TRAFFIC

    def ask(self, verb: str, number: int, name: str, *arguments: Any) -> Any:
        if verb not in ("call", "names"):
            self.mirrored = True
        self.is_used = self.is_used or verb != "names"
        self._note_use(verb, number, name)
        before, self._request = self._request, "" if verb == "names" else name or verb
        if verb == "call":
            source = self._sources.get(number, "")
            self._request = source if source.endswith("()()") else f"{source}()"
            self._refuse_to_tell(number, *arguments)
        try:
            answer = super().ask(verb, number, name, *arguments)
        except StopIteration:
            if verb == "next" or name == "__next__" or "StopIteration" in self._brief["tests"]:
                raise
            # It would end a map or a zip of the tests before they have seen anything.
            raise self.stop(ProgramFailed("StopIteration", "")) from None
        finally:
            self._request = before
        if verb in ("get", "of") and isinstance(answer, RemoteObject):
            self._note_method(number, name, answer)
        elif name == "__exit__" and answer and arguments[0] is not None:
            self._note("an exception of the tests that is swallowed", name, is_doubtful=True)
        return answer

    def construct(self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if not self._stand_ins[number]._passhat_named:
            self._note("a class", self._sources.get(number, "?"))
        self._sources[number] = "new "
        instance = self.call(number, arguments, keywords)
        if isinstance(instance, RemoteObject):
            self._constructed.add(instance._passhat_number)
        return instance

    # -- objects in place of data ----------------------------------------------------------------
    #
    # A program that does not know an answer may return an object with the methods that the tests
    # call, and wait to be told it. So objects are used only where the reference gives objects, too,
    # which the judge compares; and only methods that the tests must mean are told a value.

    def is_expected(self, name: str) -> bool:
        """Whether tests are about this method: the reference defines it."""
        return name in self._brief["methods"]

    def _note(self, what: str, place: str, *, is_doubtful: bool = False) -> None:
        self.objects.add(f"{place}: {what}")
        if is_doubtful and not self._has_reference:
            raise self.stop(Unsupported(what))

    def expect(self, message: dict[str, Any]) -> None:
        is_raised = message.get("a") == "raised"
        self._part = " argument" if "q" in message else " raised" if is_raised else ""

    def _note_use(self, verb: str, number: int, name: str) -> None:
        """Note where an object came from that the tests use; functions and iterators may be."""
        kind, is_class = self._class_of(number)
        source = self._sources.get(number, "")
        if verb == "of":
            self._note("a member of an enumeration", name)
        elif isinstance(kind, RemoteType):
            is_noted = is_class and (verb == "call" or kind._passhat_named)
            if not is_noted and source not in _OBJECTS_EXPECTED:
                self._note("an object", source)
        elif kind is not type(None) and verb == "get" and name[:2] != "__":
            self._note("attributes of a function or an iterator", source)

    def _note_method(self, number: int, name: str, method: RemoteObject) -> None:
        """Remember the name by which a method was found, unless it may be told anything."""
        kind, is_class = self._class_of(number)
        is_named = kind.__dict__.get("_passhat_named", False)
        may_be_told = name not in _DATA_METHODS
        if self._has_reference:
            # Of functions and iterators the reference has the same, and data has no such method.
            may_be_told = may_be_told and (is_named or not isinstance(kind, RemoteType))
            may_be_told = may_be_told or self.is_expected(name)
        else:
            may_be_told = may_be_told or number in self._constructed or (is_named and is_class)
        self._untold[method._passhat_number] = "" if may_be_told else name

    def _class_of(self, number: int) -> tuple[type, bool]:
        """The class of a stand-in, and whether that is the stand-in itself."""
        owner = self._stand_ins.get(number)
        return (owner, True) if isinstance(owner, RemoteType) else (type(owner), False)

    def check_operand(self, kind: str, name: str, operand: Any) -> None:
        """Stop where an operator would tell the program what the tests expect.

        Not where the operator is what they test: then the reference must be told the same.
        """
        if isinstance(operand, RemoteObject):
            return
        if not self.is_expected(name):
            what = f"{name} of the program's class {kind} with a value of the tests"
            raise self.stop(Unsupported(what))
        if type(operand) in (int, float, str) and name != "__contains__":
            self._note(operand[:40] if type(operand) is str else str(hash(operand)), name)

    def _refuse_to_tell(self, number: int, values: tuple[Any, ...], keywords: Any) -> None:
        name = self._untold.get(number)
        values = (*values, *(value for _, value in keywords))
        if name and any(not isinstance(value, RemoteObject) for value in values):
            what = f"{name} of an object of the program, with a value of the tests"
            raise self.stop(Unsupported(what))

    def adopt(self, data: list[Any], depth: int) -> Any:
        value = super().adopt(data, depth)
        if data[0] == "C" and self._request and isinstance(value, RemoteType):
            self._sources.setdefault(value._passhat_class, self._request + self._part)
        if data[0] == "E":
            for name, one in vars(value).items():
                if isinstance(one, RemoteObject):
                    self._untold[one._passhat_number] = name
            if any(len(kind.__bases__) > 1 for kind in type(value).__mro__):
                self._note("an exception of several kinds", "raised", is_doubtful=True)
        return value

    def number_of(self, value: Any) -> int:
        if not isinstance(value, BaseException):
            self.mirrored = True
        return super().number_of(value)

    def adopt_class(self, number: int) -> Any:
        self.mirrored = True
        kind = super().adopt_class(number)
        if isinstance(kind, RemoteType) and kind._passhat_library:
            self.library = self.library or kind.__name__
        if isinstance(kind, EnumMeta) and "_passhat_class" in vars(kind):
            members: Any = kind.__members__
            values = [member.value for member in members.values()]
            if any(value in values[:at] for at, value in enumerate(values)):
                raise self.stop(Unsupported(f"{kind.__name__} has two names for one member"))
        return kind

    def adopt_object(self, number: int) -> Any:
        # A function of the program is called; whatever else is done with it is a request.
        kind = self._described[number][0]
        if kind not in ("callable", "function"):
            self.mirrored = True
        is_discarded = self._request[-2:] == "()" and self._request[:-2] in self._brief["discarded"]
        if self._request and not is_discarded:
            self._sources[number] = self._request + self._part
            self._constructed.discard(number)
        return super().adopt_object(number)

    # -- guards ----------------------------------------------------------------------------------

    def check_request(self, verb: str, target: Any, name: str) -> None:
        """Refuse access that would let the program into the tests: globals, frames and modules."""
        if verb in ("get", "set", "del"):
            owner = target if isinstance(target, type) else type(target)
            is_private = name.startswith(_PRIVATE) and name not in _SAFE_DUNDERS
            is_mock = owner.__module__ == "unittest.mock"
            is_private = is_private or (name in _FORMATS and not is_mock)
            is_private = is_private or (owner is partial and name in ("args", "keywords", "func"))
            if is_mock and name[:2] != "__" and not name.startswith(("_mock", "_spec")):
                is_private = is_private and hasattr(owner, name)  # else the tests gave it to it
            if verb == "get":
                is_refused = is_private or (is_mock and name in _MOCK_SETTERS)
            else:
                # Mocks and methods are how the tests look at what the program did.
                is_refused = is_private or is_mock or callable(getattr(owner, name, None))
            if is_refused:
                self.refused = name
                raise AttributeError(name)
            is_ours = owner.__module__ in _OUR_MODULES
            is_method = verb == "get" and (owner is target or hasattr(owner, name))
            if not is_ours and not is_method and name not in _SAFE_DUNDERS:
                raise AttributeError(name)
        elif verb == "special" and name not in FORWARDED and name not in COMPARISONS:
            raise AttributeError(name)
        elif isinstance(target, type) and (verb == "call" or name == "__call__"):
            # A mock that the program makes equals whatever it is to equal.
            self._note("an object of a class of the tests", target.__name__, is_doubtful=True)

    def describe_function(self, target: Any) -> Any:
        parameters, result = super().describe_function(target)
        for parameter in [one for one in parameters if "default" in one]:
            self._note("a default", "the signature of a function")  # perhaps what they expect
            if not self._has_reference:
                parameter["default"], self.refused = None, self.refused or "a default"
        return parameters, result

    def check_export(self, value: Any) -> None:
        if isinstance(value, _NEVER_SHOWN):
            raise wire.NotPlain(f"a {type(value).__name__}")

    def export_builtin(self, value: Any) -> Any:
        # By name, which the program looks up for itself: it gets no function of this process.
        return ["B", str(value.__self__.__name__), value.__name__]

    def error_number(self, error: BaseException) -> int:
        if isinstance(error, AssertionError) and not is_remote(error):
            self.has_shown_failure = True
            self._note("an assertion of the tests that fails", "a callback")
        return self.number_of(error)

    def adopt_other(self, tag: str, parts: list[Any]) -> Any:
        if tag == "X":
            return self._exports[parts[0]]
        return super().adopt_other(tag, parts)

    def comparisons(self, name: str, facts: dict[str, Any]) -> dict[str, Any]:
        return judge_comparisons(name, facts)

    def on_send_failure(self, error: Exception) -> BaseException:
        return self.stop(Unsupported(f"the tests pass {error}"))

    def on_closed(self) -> BaseException:
        return self.stop(ProgramFailed("gone", str(self.requests)))

    # -- doubts ----------------------------------------------------------------------------------

    def doubt(self, outcome: Outcome, error: BaseException) -> Outcome:
        """The same, unless something crossed that is not mirrored: then it may be our failure."""
        if outcome[0] != "failed":
            return outcome
        shared, foreign = self._brief["shared"], self._foreign_class()
        if shared:
            why = f"the tests use {shared[0]}, which the processes may not share in all respects"
        elif isinstance(error, NameError) and is_remote(error) and self._brief["one_namespace"]:
            why = "the program uses a name that it does not define, and the tests may"
        elif foreign:
            why = f"the tests hand over an object of {foreign}"
        elif self.flattened and (self.behaves or isinstance(error, (AttributeError, TypeError))):
            why = f"{self.flattened}, a subclass of built-in data, crosses as the plain data"
        elif reference := self._reference(error):
            why = f"{reference} crosses as a reference"
        elif self.refused:
            why = f"the program reads {self.refused} of an object of the tests"
        elif self.variable:
            why = f"the tests read {self.variable}, a variable of the program"
        elif self._codec.forgot:
            why = "the tests keep more containers than can be compared"
        else:
            return outcome
        return ("unsupported", "unsupported", f"{why} ({outcome[2]})")

    def _reference(self, error: BaseException) -> str:
        """A class whose attributes stay on the program's side."""
        if isinstance(error, AttributeError) and is_remote(getattr(error, "obj", None)):
            return "the class of an exception"  # attributes of the exception itself cross
        return f"{self.library} of the library" if self.library else ""

    def _foreign_class(self) -> str:
        """The class of an object that the tests handed over, apart from functions and classes."""
        plain = (type(lambda: 0), type(len), type, BaseException)
        return next(
            (type(one).__name__ for one in self._exports.values() if not isinstance(one, plain)), ""
        )


_OUR_MODULES = ("tests", "unittest.mock")
"""Modules whose objects have attributes that the program may read, unless private."""
