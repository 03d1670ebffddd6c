"""Run hidden tests: against a program in another process, or together with it in this one.

The first, *split*, is what a verdict can be trusted by: the program never meets the tests. The
second, *plain*, has ordinary Python semantics and can be fooled, so it only ever fails programs.
"""

from __future__ import annotations

import builtins
import inspect
import os
import sys
import unittest
from collections.abc import Callable
from os.path import realpath
from types import ModuleType
from typing import Any

from . import program as programs
from . import wire
from .peer import brief_text
from .pytest_subset import pytest_module, run_functions
from .stand_ins import ProgramFailed, Stopped, Unsupported, forward_patches, is_remote
from .tests_end import Outcome, TestsEnd

_MODULES = ("solution", "candidate")


class _TestsBroken(Exception):
    """The tests themselves cannot be run."""


# -- split: the program is somewhere else ---------------------------------------------------------


def examine_series(control: int, channels: list[int], phase: Any) -> None:
    """Judge programs one after the other, for tests that change nothing but their own names.

    It ends after the first judgement in which anything but exact data crossed, or that made it
    import a module: the next program must not be able to tell what this one did.
    """
    programs.new_module("tests")
    modules = len(sys.modules)
    for channel in channels:
        phase[0] = 1
        brief = wire.receive(control)
        phase[0] = 0
        outcome = examine(channel, brief, phase, "")
        os.close(channel)
        is_clean = outcome[3] and len(sys.modules) == modules
        wire.send(control, [*outcome, is_clean])
        if not is_clean:
            return


def examine(
    channel: int, brief: dict[str, Any], phase: Any, folder: str
) -> tuple[str, str, str, bool, list[str]]:
    """Judge a program over a connection. A broken connection never passes, whatever tests catch.

    The last parts are whether plain Python could see nothing more than crossed the connection, and
    where the program gave objects.
    """
    tests = TestsEnd(channel, brief, phase, folder)
    if not _judgements:
        sys.addaudithook(_forbid_execution(list(sys.path)))
    _judgements[:] = [tests]
    try:
        tests.load([*brief["free"], brief["entry_point"]])
        outcome = _run(tests, brief)
        is_meant = "AssertionError" in brief["tests"] and brief["has_reference"]
        if tests.has_shown_failure and not is_meant:
            outcome = ("unsupported", "unsupported", "a failed assertion that the program keeps")
    except Stopped as stopped:
        outcome = _describe_stop(stopped)
    except _TestsBroken as error:
        outcome = ("judge_error", "judge_error", str(error))
    except BaseException as error:
        outcome = tests.doubt(_describe_failure(error, brief), error)
    if tests.stopped is not None:
        outcome = _describe_stop(tests.stopped)
    return (*outcome, tests.is_exact, sorted(tests.objects))


_HARMLESS = {
    *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
    *(("collections", name) for name in ("Counter", "OrderedDict", "defaultdict", "deque")),
    *(("builtins", name) for name in ("bytearray", "complex", "frozenset", "range", "set")),
    *(("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID")),
}
"""Classes that data in a pickle may be of; calling them executes nothing else."""
_WRITABLE = ("/tmp", "/dev/shm")
_IMPORT = ("<frozen importlib._bootstrap>", "_find_and_load")
_GENERATORS = ("/collections/__init__.py", "/dataclasses.py")
"""Modules that execute code which they have made from names that they checked."""


_judgements: list[TestsEnd] = []  # the one under way


def _forbid_execution(path: list[str]) -> Callable[[str, tuple[Any, ...]], None]:
    """A hook that stops tests that would execute data: the program may have chosen what it says."""
    home = __file__.rpartition("/")[0]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "pickle.find_class":
            what = "" if arguments in _HARMLESS else f"unpickle {arguments[0]}.{arguments[1]}"
        elif event in ("exec", "code.__new__", "function.__new__"):
            frame = sys._getframe(1)
            file = frame.f_code.co_filename
            is_known = file.startswith(home) or file.endswith(_GENERATORS) or _is_importing(frame)
            what = "" if is_known else "execute text as code"
        elif event == "import" and sys.path != path:
            roots = map(realpath, set(sys.path) - set(path))
            is_writable = any(root.startswith(_WRITABLE) for root in roots)
            what = "import from a scratch folder" if is_writable else ""
        else:
            return
        if what:
            what = f"the tests {what}, which the program may have chosen"
            raise _judgements[0].stop(Unsupported(what))

    return watch


def _is_importing(frame: Any) -> bool:
    """Whether an import statement is under way, by the path that was there from the beginning."""
    while frame is not None:
        if (frame.f_code.co_filename, frame.f_code.co_name) == _IMPORT:
            return True
        frame = frame.f_back
    return False


def _describe_stop(why: Stopped) -> Outcome:
    if isinstance(why, ProgramFailed):
        return ("gone" if why.category == "gone" else "failed", why.category, why.detail)
    return ("unsupported", "unsupported", str(why)[:500])


def _describe_failure(error: BaseException, brief: dict[str, Any]) -> Outcome:
    name, text = type(error).__name__[:80], brief_text(error)
    if is_remote(error):
        word, text = programs.describe(error)
        return ("failed", word, text)
    if isinstance(error, AssertionError):
        return ("failed", "wrong_answer", text)
    if _misses_a_name(error, brief):
        return ("failed", "missing_entry_point", f"the program defines too little: {text}")
    if isinstance(error, ImportError) and (absent := absent_import(brief)):
        return ("unsupported", "unsupported", absent)
    if isinstance(error, (ImportError, NameError, MemoryError)):
        return ("judge_error", "judge_error", f"the tests raise {name}: {text}")
    return ("failed", "wrong_answer", f"the tests cannot use the answer: {name}: {text}")


def _misses_a_name(error: BaseException, brief: dict[str, Any]) -> bool:
    """Whether the tests use a name that the program does not define."""
    name = getattr(error, "name", None)
    if isinstance(error, ImportError):
        return name in _MODULES
    return isinstance(error, NameError) and name in brief["free"]


def _run(tests: TestsEnd, brief: dict[str, Any]) -> Outcome:
    names = _namespace(tests, brief)
    entry = brief["entry_point"]
    if entry and not callable(tests.names.get(entry)):
        return _no_entry(entry, entry in tests.names)
    code = _compile(brief["tests"])
    before = dict(names)
    try:
        exec(code, names)
        _run_tests(names, before, entry)
    except unittest.SkipTest as error:
        if is_remote(error):
            raise  # by the program, which cannot choose to be skipped
        raise _TestsBroken(f"a test was skipped: {error}") from None
    if not tests.is_used:
        raise _TestsBroken("the tests never call the program")
    return ("passed", "passed", "")


def _no_entry(entry: str, defined: bool) -> Outcome:
    what = f"{entry} is not a function" if defined else f"the program defines no {entry}"
    return ("failed", "missing_entry_point", what)


def _compile(tests: str) -> Any:
    try:
        return compile(tests, "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise _TestsBroken(f"the tests do not compile: {error}") from None


def _namespace(tests: TestsEnd, brief: dict[str, Any]) -> dict[str, Any]:
    """Globals of the tests: helpers of the prompt, then the program under the names left free."""
    module = programs.new_module("tests")
    names: dict[str, Any] = vars(module)
    names["__builtins__"] = builtins
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
    if "unittest.mock" in brief["shared"]:
        forward_patches(tests.ask)
    return names


def _provide_modules(tests: TestsEnd) -> None:
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
    vars(sys.modules["tests"])["__getattr__"] = attribute  # for patches by name
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
        code = _compile(brief["tests"])
    except _TestsBroken as error:
        return ("failed", "exception", str(error))
    # Descriptor 1 leads nowhere.
    sys.stdout = sys.stderr = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    module = programs.new_module(_MODULES[0])
    sys.modules[_MODULES[1]] = module
    names = module.__dict__
    programs.run_trusted(brief["setup"], module)
    failure = programs.load(source, module)
    if failure is not None:
        return ("failed", failure[0], failure[1])
    entry = brief["entry_point"]
    if entry and not callable(names.get(entry)):
        return _no_entry(entry, entry in names)
    if "pytest" in brief["tests"]:
        sys.modules["pytest"] = pytest_module(Unsupported)
    before = dict(names)
    test_names: dict[str, Any] = names if brief["one_namespace"] else _TestNames(names)
    sys.modules["tests"] = module  # for patches by name
    test_names["__name__"] = "tests"  # which test cases are known by
    try:
        exec(code, test_names)
        _run_tests(test_names, before, entry, before.get(entry))
    except BaseException as error:
        return _describe_plain_failure(error, brief)
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


def _describe_plain_failure(error: BaseException, brief: dict[str, Any]) -> Outcome:
    last = error.__traceback__
    raised_by_program = False
    while last is not None:
        raised_by_program = last.tb_frame.f_code.co_filename == "solution.py"
        last = last.tb_next
    word, text = programs.describe(error)
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


def _run_tests(
    names: dict[str, Any], before: dict[str, Any], entry: str, candidate: Any | None = None
) -> None:
    """Call check, test cases or test functions of the tests; plain asserts have run already."""
    definitions = {
        key: value for key, value in names.items() if before.get(key, before) is not value
    }
    check = definitions.get("check")
    if entry and inspect.isfunction(check):
        result = check(names[entry] if candidate is None else candidate)
        assert result is not False, "check returns False"
        return
    classes = [value for value in definitions.values() if isinstance(value, type)]
    cases = [kind for kind in classes if issubclass(kind, unittest.TestCase)]
    cases = [case for case in cases if case.__module__ == "tests"]
    fixtures = [definitions.get(name) if cases else None for name in _MODULE_FIXTURES]
    for step in (fixtures[0], *cases, fixtures[1]):
        if inspect.isfunction(step):
            step()
        elif step in cases:
            _run_case(step)
    functions: list[Callable[..., Any]] = [
        value
        for key, value in definitions.items()
        if key.startswith("test") and inspect.isfunction(value)
    ]
    has_others = cases or functions or any(name.startswith("Test") for name in definitions)
    if not has_others and inspect.isfunction(check) and not inspect.signature(check).parameters:
        functions = [check]
    run_functions(functions, definitions)


_MODULE_FIXTURES = ("setUpModule", "tearDownModule")


def _run_case(case: type[unittest.TestCase]) -> None:
    """Run a test case so that its exceptions come out as they are."""
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    if not suite.countTestCases():
        return
    case.setUpClass()
    tests: list[Any] = list(suite)
    # By their mark alone: a program could raise what skips a test.
    marks = [hasattr(getattr(test, test._testMethodName), "__unittest_skip__") for test in tests]
    for test, is_skipped in zip(tests, marks):  # noqa: B905 - Python 3.9
        if is_skipped and not all(marks):
            continue
        mark = "__unittest_expecting_failure__"
        fails = getattr(case, mark, getattr(getattr(test, test._testMethodName), mark, False))
        try:
            test.debug()
        except Exception as error:
            if not fails or isinstance(error, unittest.SkipTest):
                raise
        else:
            assert not fails, "a test that is to fail passes"
    case.tearDownClass()
    case.doClassCleanups()
    for _, noted, _ in getattr(case, "tearDown_exceptions", ()):  # they are not raised there
        raise noted
