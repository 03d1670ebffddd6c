"""Run hidden tests: against a program in another process, or together with it in this one.

The first, *split*, is what a verdict can be trusted by: the program never meets the tests. The
second, *plain*, has ordinary Python semantics and can be fooled, so it only ever fails programs.
"""

from __future__ import annotations

import builtins
import inspect
import io
import sys
import unittest
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import program as programs
from .pytest_subset import pytest_module, run_functions
from .remote import Peer, ProgramFailed, Stopped, Unsupported, brief_text

__all__ = ["absent_import", "examine", "examine_plain"]

Outcome = tuple[str, str, str]
"""passed, failed, gone, unsupported or judge_error; the word for it; what happened."""

_MODULES = ("solution", "candidate")


class _TestsBroken(Exception):
    """The tests themselves cannot be run."""


# -- split: the program is somewhere else ---------------------------------------------------------


def examine(channel: int, brief: dict[str, Any], phase: Any) -> Outcome:
    """Judge a program over a connection. A broken connection never passes, whatever tests catch."""
    tests = _Tests(channel, brief, phase)
    try:
        tests.load([*brief["free"], brief["entry_point"]])
        outcome = _run(tests, brief)
    except Stopped as stopped:
        outcome = _stopped(stopped)
    except _TestsBroken as error:
        outcome = ("judge_error", "judge_error", str(error))
    except BaseException as error:
        outcome = tests.doubted(_failed(error, brief), error)
    return _stopped(tests.stopped) if tests.stopped is not None else outcome


class _Tests(Peer):
    """The tests' end: it also shows the program's prints, and shares input and random numbers."""

    def __init__(self, channel: int, brief: dict[str, Any], phase: Any) -> None:
        super().__init__(channel, trusted=False, phase=phase)
        self.names: dict[str, Any] = {}
        self.namespace: dict[str, Any] = {}
        self._brief = brief
        self._input, self._stdin = builtins.input, sys.stdin
        self._random: Any = None

    def load(self, names: list[str]) -> None:
        """Wait until the program is loaded; learn which of these names it defines."""
        self._phase[0] = 1
        hello, _ = self._receive()
        self._phase[0] = 0
        failure = hello.get("d")
        if hello.get("a") == "failed" and type(failure) is list and len(failure) == 2:
            raise self.stop(ProgramFailed(str(failure[0])[:80], str(failure[1])[:500]))
        if hello.get("a") != "ready":
            raise self.stop(ProgramFailed("PermissionError", "wrote on the judge's channel"))
        self.learn(names)

    def learn(self, names: list[str]) -> None:
        """Ask which of these names the program defines."""
        known = self.ask("names", -1, "", names)
        self.calls -= 1
        if type(known) is not dict:
            raise self.stop(ProgramFailed("PermissionError", "wrote on the judge's channel"))
        for name in names:
            if name in known:
                self.names[name] = self._as_function(known[name], name)

    def _as_function(self, value: Any, name: str) -> Any:
        """A class where the reference has a function is no more than something to call."""
        if isinstance(value, type) and name in self._brief["functions"]:
            number = value.__dict__.get("_passhat_number")
            if number is not None:
                type.__setattr__(value, "_passhat_named", False)
                return lambda *given, **named: self.call(number, given, named)
        return value

    def additions(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if builtins.input is not self._input or sys.stdin is not self._stdin:
            more["i"] = True
        if self._brief["random"]:
            import random

            if (state := random.getstate()) != self._random:
                self._random = more["r"] = state
        return more

    def absorb(self, message: dict[str, Any]) -> None:
        for key, stream in (("o", sys.stdout), ("e", sys.stderr)):
            if type(message.get(key)) is str:
                stream.write(message[key])
        if "r" in message and self._brief["random"]:
            import random

            version, numbers, gauss = message["r"]
            random.setstate((version, tuple(numbers), gauss))
            self._random = random.getstate()
        for name, value in message.get("g", ()):
            if name in self.names and type(value) in (int, float, str, bool, type(None)):
                if self.namespace.get(name, self) is self.names[name]:
                    self.namespace[name] = value
                self.names[name] = value

    def other_request(self, verb: str, name: str, arguments: tuple[Any, ...]) -> Any:
        if verb == "input":
            return "value", input(*map(str, arguments))
        if verb == "stdin" and name in ("read", "readline"):
            return "value", getattr(sys.stdin, name)(*arguments)
        return super().other_request(verb, name, arguments)

    def doubted(self, outcome: Outcome, error: BaseException) -> Outcome:
        """The same, unless something crossed that is not mirrored: then it may be our failure."""
        if outcome[0] != "failed":
            return outcome
        shared, handed = self._brief["shared"], self._handed()
        if shared:
            why = f"the tests use {shared[0]}, which the program's process does not share"
        elif handed:
            why = f"the tests hand over an object of {handed}"
        elif self.flattened and (self.behaves or isinstance(error, (AttributeError, TypeError))):
            why = f"{self.flattened}, a subclass of built-in data, crosses as the plain data"
        elif self.ran_ahead:
            why = "an iterator is read in batches, ahead of the tests"
        elif self._codec.forgot:
            why = "the tests keep more containers than can be compared"
        else:
            return outcome
        return ("unsupported", "unsupported", f"{why} ({outcome[2]})")

    def _handed(self) -> str:
        plain = (type(lambda: 0), type(len), type, BaseException)
        return next(
            (type(one).__name__ for one in self._exports.values() if not isinstance(one, plain)), ""
        )


def _stopped(why: Stopped) -> Outcome:
    if isinstance(why, ProgramFailed):
        return ("gone" if why.category == "gone" else "failed", why.category, why.detail)
    return ("unsupported", "unsupported", str(why)[:500])


def _failed(error: BaseException, brief: dict[str, Any]) -> Outcome:
    name, text = type(error).__name__[:80], brief_text(error)
    if "_passhat_text" in getattr(error, "__dict__", {}):
        word, text = programs.described(error)
        return ("failed", word, text)
    if isinstance(error, AssertionError):
        return ("failed", "wrong_answer", text)
    if _misses_a_name(error, brief):
        return ("failed", "missing_entry_point", f"the program defines too little: {text}")
    if isinstance(error, (ImportError, NameError, MemoryError)):
        return ("judge_error", "judge_error", f"the tests raise {name}: {text}")
    return ("failed", "wrong_answer", f"the tests cannot use the answer: {name}: {text}")


def _misses_a_name(error: BaseException, brief: dict[str, Any]) -> bool:
    """Whether the tests use a name that the program does not define."""
    name = getattr(error, "name", None)
    if isinstance(error, ImportError):
        return name in _MODULES
    return isinstance(error, NameError) and name in brief["free"]


def _run(tests: _Tests, brief: dict[str, Any]) -> Outcome:
    names = _namespace(tests, brief)
    entry = brief["entry_point"]
    if entry and not callable(tests.names.get(entry)):
        return _no_entry(entry, entry in tests.names)
    code = _compiled(brief["tests"])
    before = dict(names)
    try:
        exec(code, names)
        _run_what_is_defined(names, before, entry)
    except unittest.SkipTest as error:
        raise _TestsBroken(f"a test was skipped: {error}") from None
    return ("passed", "passed", "")


def _no_entry(entry: str, defined: bool) -> Outcome:
    what = f"{entry} is not a function" if defined else f"the program defines no {entry}"
    return ("failed", "missing_entry_point", what)


def _compiled(tests: str) -> Any:
    try:
        return compile(tests, "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _TestsBroken(f"the tests do not compile: {error}") from None


def _namespace(tests: _Tests, brief: dict[str, Any]) -> dict[str, Any]:
    """Globals of the tests: helpers of the prompt, then the program under the names left free."""
    names: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
    try:
        exec(compile(brief["helpers"], "helpers.py", "exec", dont_inherit=True), names)
    except BaseException as error:
        raise _TestsBroken(f"the helpers raise {type(error).__name__}: {error}") from None
    entry = brief["entry_point"]
    for name in {*brief["free"], entry}:
        if name in tests.names and (name == entry or name not in names):
            names[name] = tests.names[name]
    if "import" in brief["tests"]:
        _provide_modules(tests)
    tests.namespace = names
    return names


def _provide_modules(tests: _Tests) -> None:
    """``from solution import f`` and ``import pytest`` work in tests."""

    def attribute(name: str) -> Any:
        if not name.startswith("__"):
            if name not in tests.names:
                tests.learn([name])
            if name in tests.names:
                return tests.names[name]
        raise AttributeError(f"the program defines no {name}")

    for name in _MODULES:
        module = ModuleType(name)
        module.__getattr__ = attribute  # type: ignore[method-assign]
        sys.modules[name] = module
    sys.modules["pytest"] = pytest_module(Unsupported)


# -- plain: the program is here -------------------------------------------------------------------


def absent_import(brief: dict[str, Any]) -> str:
    """A module that the tests import and this interpreter lacks; checked before the program."""
    if not brief["imports"]:
        return ""
    from importlib.util import find_spec

    absent = [name for name in brief["imports"] if find_spec(name) is None]
    return f"the tests import {absent[0]}, which the sandbox does not have" if absent else ""


def examine_plain(source: str, brief: dict[str, Any]) -> Outcome:
    """Run the tests in the program's process, as plain Python would; the result is untrusted."""
    try:
        code = _compiled(brief["tests"])
    except _TestsBroken as error:
        return ("failed", "exception", str(error))
    sys.stdout = sys.stderr = _Nowhere()
    module = programs.new_module(_MODULES[0])
    sys.modules[_MODULES[1]] = module
    names = module.__dict__
    if brief["setup"]:
        exec(compile(brief["setup"], "helpers.py", "exec", dont_inherit=True), names)
    failure = programs.load(source, module)
    if failure is not None:
        return ("failed", failure[0], failure[1])
    entry = brief["entry_point"]
    if entry and not callable(names.get(entry)):
        return _no_entry(entry, entry in names)
    if "pytest" in brief["tests"]:
        sys.modules["pytest"] = pytest_module(Unsupported)
    seen = _TestNames(names)
    try:
        exec(code, seen)
        _run_what_is_defined(seen, {}, entry, names.get(entry))
    except BaseException as error:
        return _failed_plainly(error, brief)
    return ("passed", "passed", "")


class _TestNames(dict[str, Any]):
    """Globals of the tests: their own names, then those of the program as they are now.

    What the tests import under a name that the program also uses must not reach the program.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(__name__="tests", __builtins__=builtins)
        self._names = names

    def __missing__(self, name: str) -> Any:
        return self._names[name]


class _Nowhere(io.TextIOBase):
    """Standard output that keeps nothing."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def _failed_plainly(error: BaseException, brief: dict[str, Any]) -> Outcome:
    last = error.__traceback__
    raised_by_program = False
    while last is not None:
        raised_by_program = last.tb_frame.f_code.co_filename == "solution.py"
        last = last.tb_next
    word, text = programs.described(error)
    if _misses_a_name(error, brief):
        return ("failed", "missing_entry_point", f"the program defines too little: {text}")
    if raised_by_program or not isinstance(error, Exception) or isinstance(error, OSError):
        return ("failed", word, text)
    if isinstance(error, AssertionError):
        return ("failed", "wrong_answer", text)
    if isinstance(error, (MemoryError, RecursionError)):
        return ("failed", word, text)
    return ("failed", "wrong_answer", f"the tests cannot use the answer: {word}: {text}")


# -- both -----------------------------------------------------------------------------------------


def _run_what_is_defined(
    names: dict[str, Any], before: dict[str, Any], entry: str, candidate: Any | None = None
) -> None:
    """Call check, test cases or test functions of the tests; plain asserts have run already."""
    own = {key: value for key, value in names.items() if before.get(key, before) is not value}
    check = own.get("check")
    if entry and inspect.isfunction(check):
        check(names[entry] if candidate is None else candidate)
        return
    for value in list(own.values()):
        case = isinstance(value, type) and issubclass(value, unittest.TestCase)
        if case and value.__module__ == "tests":
            _run_case(value)
    functions: list[Callable[..., Any]] = [
        value for key, value in own.items() if key.startswith("test") and inspect.isfunction(value)
    ]
    run_functions(functions, own)


def _run_case(case: type[unittest.TestCase]) -> None:
    """Run a test case so that its exceptions come out as they are."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    if not suite.countTestCases():
        return
    case.setUpClass()
    for test in suite:
        test.debug()
    case.tearDownClass()
