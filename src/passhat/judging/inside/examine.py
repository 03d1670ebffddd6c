"""Run the hidden tests against a program that lives in another process."""

from __future__ import annotations

import builtins
import inspect
import sys
import unittest
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .pytest_subset import pytest_stand_in, run_functions
from .remote import Program
from .stopping import ProgramFailed, Stopped, Unsupported

__all__ = ["examine"]

Outcome = tuple[str, str, str]
"""passed, failed, gone, unsupported or judge_error; the word for it; what happened."""


class _TestsBroken(Exception):
    """The tests themselves cannot be run."""


def examine(channel: int, brief: dict[str, Any]) -> Outcome:
    """Judge one program. Whatever the tests swallowed, a broken connection never passes."""
    program = Program(channel, frozenset(brief["functions"]))
    try:
        program.load([*brief["free"], brief["entry_point"]])
        outcome = _run(program, brief)
    except Stopped as stopped:
        outcome = _stopped(stopped)
    except _TestsBroken as error:
        outcome = ("judge_error", "judge_error", str(error))
    except BaseException as error:
        outcome = _failed(error, program)
    return _stopped(program.stopped) if program.stopped is not None else outcome


def _stopped(why: Stopped) -> Outcome:
    if isinstance(why, ProgramFailed):
        return ("gone" if why.category == "gone" else "failed", why.category, why.detail)
    return ("unsupported", "unsupported", str(why))


def _failed(error: BaseException, program: Program) -> Outcome:
    name, text = type(error).__name__, _text(error)
    if hasattr(error, "__passhat_name__"):
        return ("failed", name, text)
    if isinstance(error, AssertionError):
        return ("failed", "wrong_answer", text)
    if isinstance(error, (AttributeError, TypeError)) and program.flattened:
        return ("unsupported", "unsupported", f"{text} (a subclass crossed as its plain data)")
    if isinstance(error, (ImportError, NameError, MemoryError)) or program.calls == 0:
        return ("judge_error", "judge_error", f"the tests raise {name}: {text}")
    return ("failed", "wrong_answer", f"the tests cannot use the answer: {name}: {text}")


def _text(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except BaseException:
        return ""


def _run(program: Program, brief: dict[str, Any]) -> Outcome:
    names = _namespace(program, brief)
    entry = brief["entry_point"]
    if entry and entry not in program.names:
        return ("failed", "missing_entry_point", f"the program defines no {entry}")
    code = _compiled(brief["tests"])
    try:
        exec(code, names)
        ran = _run_what_is_defined(names, entry)
    except unittest.SkipTest as error:
        raise _TestsBroken(f"a test was skipped: {error}") from None
    if not ran and not program.calls:
        raise _TestsBroken("the tests never call the program")
    return ("passed", "passed", "")


def _compiled(tests: str) -> Any:
    try:
        return compile(tests, "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _TestsBroken(f"the tests do not compile: {error}") from None


def _namespace(program: Program, brief: dict[str, Any]) -> dict[str, Any]:
    """What the tests see: helpers of the prompt, then the program under the names left free."""
    names: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
    try:
        exec(compile(brief["helpers"], "helpers.py", "exec", dont_inherit=True), names)
    except BaseException as error:
        raise _TestsBroken(f"the helpers raise {type(error).__name__}: {error}") from None
    entry = brief["entry_point"]
    for name in {*brief["free"], entry}:
        if name in program.names and (name == entry or name not in names):
            names[name] = program.names[name]
    if "import" in brief["tests"]:
        _provide_modules(program)
    return names


def _provide_modules(program: Program) -> None:
    """``from solution import f`` and ``import pytest`` work in tests."""
    for name in ("solution", "candidate"):
        module = ModuleType(name)
        module.__dict__.update(program.names)
        sys.modules[name] = module
    sys.modules["pytest"] = pytest_stand_in(Unsupported)


def _run_what_is_defined(names: dict[str, Any], entry: str) -> bool:
    """Call check, test cases or test functions; plain asserts have run already."""
    own = {
        key: value for key, value in names.items() if getattr(value, "__module__", "") == "tests"
    }
    check = names.get("check")
    if entry and inspect.isfunction(check):
        check(names[entry])
        return True
    cases = [v for v in own.values() if isinstance(v, type) and issubclass(v, unittest.TestCase)]
    for case in cases:
        _run_case(case)
    functions: list[Callable[..., Any]] = [
        value for key, value in own.items() if key.startswith("test") and inspect.isfunction(value)
    ]
    return run_functions(functions, own) or bool(cases)


def _run_case(case: type[unittest.TestCase]) -> None:
    """Run a test case so that its exceptions come out as they are."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    if not suite.countTestCases():
        raise _TestsBroken(f"{case.__name__} holds no test")
    for test in suite:
        test.debug()
