"""How tests are run and what their end is called, in this process and with no other."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging.inside import examine, program
from passhat.judging.inside.stand_ins import ProgramFailed, Unsupported

NAMES = ("solution", "candidate", "tests", "pytest", "__main__")


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The streams and modules of this process stay what they are."""
    modules = {name: sys.modules.get(name) for name in NAMES}
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    yield
    for name, found in modules.items():
        if found is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = found


def _brief(tests: str, **parts: Any) -> dict[str, Any]:
    brief = {"entry_point": "", "helpers": "", "setup": "", "tests": tests, "one_namespace": True}
    brief |= {"has_reference": False, "free": ["f"], "imports": [], "shared": [], "functions": []}
    return brief | parts


# -- plain -----------------------------------------------------------------------------------------

F = "def f(x): return x + 1"
USELESS = "the tests cannot use the answer: "


@pytest.mark.parametrize(
    ("tests", "source", "parts", "outcome"),
    [
        ("assert f(1) == 2", F, {}, ("passed", "passed", "")),
        ("assert f(1) == 3, 'no'", F, {}, ("failed", "wrong_answer", "no")),
        ("assert f(1) == 2", "x = (", {}, ("failed", "SyntaxError", "'(' was never closed")),
        ("assert f(1) == 2", "1 / 0", {}, ("failed", "ZeroDivisionError", "division by zero")),
        ("f('a')", F, {}, ("failed", "TypeError", 'can only concatenate str (not "int") to str')),
        ("f(1)()", F, {}, ("failed", "wrong_answer", f"{USELESS}TypeError: 'int' object is not")),
        ("assert f(1", F, {}, ("failed", "exception", "the tests do not compile: '(' was")),
        (
            *("assert g(1)", F, {"free": ["g"]}),
            ("failed", "missing_entry_point", "the program defines too little: name 'g' is not"),
        ),
        (
            *("assert g(1)", F, {"free": []}),
            ("failed", "wrong_answer", f"{USELESS}NameError: name 'g' is not defined"),
        ),
        (
            *("raise RecursionError('deep')", F, {}),
            ("failed", "RecursionError", "deep"),
        ),
        ("raise MemoryError('much')", F, {}, ("failed", "MemoryError", "much")),
        ("raise SystemExit('over')", F, {}, ("failed", "SystemExit", "over")),
        ("open('/absent/file')", F, {}, ("failed", "FileNotFoundError", "[Errno 2] No such file")),
        ("def test_f():\n    assert f(1) == 3", F, {}, ("failed", "wrong_answer", "")),
        ("def test_f():\n    assert f(1) == 2", F, {}, ("passed", "passed", "")),
        ("def check():\n    assert f(1) == 3, 'c'", F, {}, ("failed", "wrong_answer", "c")),
        ("def check(c):\n    assert c(1) == 3", F, {}, ("passed", "passed", "")),
        # With an entry point, check is given it.
        (
            *("def check(c):\n    assert c(1) == 3, 'c'", F, {"entry_point": "f"}),
            ("failed", "wrong_answer", "c"),
        ),
        (
            *("def check(c):\n    return c(1) == 3", F, {"entry_point": "f"}),
            ("failed", "wrong_answer", "check returns False"),
        ),
        ("def check(c):\n    return 0", F, {"entry_point": "f"}, ("passed", "passed", "")),
        (
            *("assert g(1)", F, {"entry_point": "g"}),
            ("failed", "missing_entry_point", "the program defines no g"),
        ),
        (
            *("assert g(1)", "g = 1", {"entry_point": "g"}),
            ("failed", "missing_entry_point", "g is not a function"),
        ),
        ("import math as f", F + "\nimport f", {}, ("failed", "ModuleNotFoundError", "No module")),
        (
            "assert f(1) == 2",
            "def f(x): return h(x)",
            {"setup": "def h(x): return 2"},
            ("passed", "passed", ""),
        ),
        # What tests import under a name of the program's does not reach it.
        (
            *("from math import pi as y\nassert f(0) == 5", "y = 5\ndef f(x): return y"),
            *({"one_namespace": False}, ("passed", "passed", "")),
        ),
        (
            *("y = 6\nassert f(0) == 6", "y = 5\ndef f(x): return y", {}),
            ("passed", "passed", ""),
        ),
    ],
)
def test_in_one_process_tests_end_as_in_python(
    tests: str, source: str, parts: dict[str, Any], outcome: tuple[str, str, str]
) -> None:
    word, kind, text = examine.examine_plain(source, _brief(tests, **parts))
    assert (word, kind) == outcome[:2]
    assert text.startswith(outcome[2])


CASE = """
import unittest
log = []
class T(unittest.TestCase):
    {mark}
    def test_f(self):
        self.assertEqual(f(1), {right})
    {more}
"""


@pytest.mark.parametrize(
    ("right", "mark", "more", "outcome"),
    [
        (2, "", "", "passed"),
        (3, "", "", "wrong_answer"),
        (3, "@unittest.expectedFailure", "", "passed"),
        (2, "@unittest.expectedFailure", "", "wrong_answer"),
        (3, "@unittest.skip('x')", "def test_g(self): pass", "passed"),
        (3, "@unittest.skip('x')", "", "wrong_answer"),
        (2, "", "def test_g(self): raise unittest.SkipTest('x')", "wrong_answer"),
        (2, "", "@classmethod\n    def setUpClass(cls): assert False", "wrong_answer"),
        (2, "", "@classmethod\n    def tearDownClass(cls): assert False", "wrong_answer"),
        (
            2,
            "",
            "@classmethod\n    def setUpClass(cls): cls.addClassCleanup(1 .bit_length, 9)",
            "wrong_answer",
        ),
    ],
)
def test_cases_are_run_one_by_one(right: int, mark: str, more: str, outcome: str) -> None:
    tests = CASE.format(mark=mark, right=right, more=more)
    assert examine.examine_plain(F, _brief(tests))[1] == outcome


@pytest.mark.parametrize("name", ["setUpModule", "tearDownModule"])
@pytest.mark.parametrize("has_case", [True, False])
def test_fixtures_of_a_module_go_with_its_cases(name: str, has_case: bool) -> None:
    tests = CASE.format(mark="", right=2, more="") if has_case else ""
    tests += f"\ndef {name}():\n    assert False, 'fixture'\n"
    outcome = examine.examine_plain(F, _brief(tests))
    assert outcome == (
        ("failed", "wrong_answer", "fixture") if has_case else ("passed", "passed", "")
    )


@pytest.mark.parametrize(
    ("imports", "text"),
    [
        ([], ""),
        (["json"], ""),
        (
            ["json", "absent_a", "absent_b"],
            "the tests import absent_a, which the sandbox does not have",
        ),
    ],
)
def test_modules_that_the_tests_need_are_looked_for(imports: list[str], text: str) -> None:
    assert examine.absent_import(_brief("", imports=imports)) == text


# -- split -----------------------------------------------------------------------------------------


class _End:
    """The tests' end of a connection over which nothing comes."""

    is_exact, has_shown_failure, is_used = True, False, True
    stopped: Any = None

    def __init__(self, *_: object) -> None:
        self.objects = {"b", "a"}
        self.names: dict[str, Any] = {"f": lambda x: x + 1}
        self.doubts: list[object] = []

    def load(self, names: list[str]) -> None:
        self.asked = names

    def doubt(self, outcome: Any, _error: BaseException) -> Any:
        self.doubts.append(outcome)
        return outcome


def _examine(monkeypatch: pytest.MonkeyPatch, brief: dict[str, Any], **parts: Any) -> Any:
    kind = type("_End", (_End,), parts)
    monkeypatch.setattr(examine, "TestsEnd", kind)
    monkeypatch.setattr(sys, "addaudithook", lambda _: None)
    monkeypatch.setattr(examine, "_judgements", [])
    return examine.examine(3, brief, [0], "")


def test_the_end_of_tests_comes_with_what_crossed(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = _brief("assert f(1) == 2")
    assert _examine(monkeypatch, brief) == ("passed", "passed", "", True, ["a", "b"])
    assert _examine(monkeypatch, brief, is_exact=False)[3] is False
    unused = _examine(monkeypatch, brief, is_used=False)
    assert unused[:3] == ("judge_error", "judge_error", "the tests never call the program")
    stopped = _examine(monkeypatch, brief, stopped=Unsupported("odd"))
    assert stopped[:3] == ("unsupported", "unsupported", "odd")


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize("word", ["AssertionError", "ValueError"])
def test_a_failure_that_the_program_keeps_is_meant_where_the_tests_name_it(
    monkeypatch: pytest.MonkeyPatch, shown: bool, reference: bool, word: str
) -> None:
    brief = _brief(f"{word}\nassert f(1) == 2", has_reference=reference)
    outcome = _examine(monkeypatch, brief, has_shown_failure=shown)
    is_meant = word == "AssertionError" and reference
    assert outcome[0] == ("unsupported" if shown and not is_meant else "passed")


@pytest.mark.parametrize(
    ("tests", "parts", "outcome"),
    [
        ("assert f(1) == 3, 'no'", {}, ("failed", "wrong_answer", "no")),
        ("f(1)()", {}, ("failed", "wrong_answer", f"{USELESS}TypeError: 'int' object is not")),
        ("assert f(1", {}, ("judge_error", "judge_error", "the tests do not compile")),
        ("f(1)", {"helpers": "1 / 0"}, ("judge_error", "judge_error", "the helpers raise Zero")),
        (
            *("f(1)", {"entry_point": "g"}),
            ("failed", "missing_entry_point", "the program defines no g"),
        ),
        (
            *("f(g)", {"free": ["f", "g"]}),
            ("failed", "missing_entry_point", "the program defines too little: name 'g' is not"),
        ),
        (
            *("f(g)", {}),
            ("judge_error", "judge_error", "the tests raise NameError: name 'g' is not defined"),
        ),
        ("import absent_a", {}, ("judge_error", "judge_error", "the tests raise ModuleNotFound")),
        (
            *("import absent_a", {"imports": ["absent_a"]}),
            ("unsupported", "unsupported", "the tests import absent_a, which the sandbox does"),
        ),
        (
            *("from solution import g", {}),
            ("failed", "missing_entry_point", "the program defines too little: cannot import name"),
        ),
        ("raise MemoryError('m')", {}, ("judge_error", "judge_error", "the tests raise MemoryErr")),
        (
            *("import unittest\nraise unittest.SkipTest('x')", {}),
            ("judge_error", "judge_error", "a test was skipped: x"),
        ),
        (
            "def check(c):\n    assert c(1) == 3, 'c'",
            {"entry_point": "f"},
            ("failed", "wrong_answer", "c"),
        ),
    ],
)
def test_the_end_of_tests_in_a_process_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
    tests: str,
    parts: dict[str, Any],
    outcome: tuple[str, str, str],
) -> None:
    learn = lambda _self, _names: None  # noqa: E731
    found = _examine(monkeypatch, _brief(tests, **parts), learn=learn)
    assert found[:2] == outcome[:2]
    assert found[2].startswith(outcome[2])


@pytest.mark.parametrize(
    ("why", "outcome"),
    [
        (ProgramFailed("gone", "ended"), ("gone", "gone", "ended")),
        (ProgramFailed("timeout", "late"), ("failed", "timeout", "late")),
        (Unsupported("x" * 501), ("unsupported", "unsupported", "x" * 500)),
    ],
)
def test_why_a_judgement_stopped(why: Any, outcome: tuple[str, str, str]) -> None:
    assert examine._describe_stop(why) == outcome


@pytest.mark.parametrize(
    ("event", "arguments", "what"),
    [
        ("pickle.find_class", ("datetime", "date"), ""),
        ("pickle.find_class", ("builtins", "eval"), "unpickle builtins.eval"),
        ("open", ("x",), ""),
        ("import", ("x",), ""),
    ],
)
def test_tests_must_not_execute_what_the_program_may_have_chosen(
    monkeypatch: pytest.MonkeyPatch, event: str, arguments: tuple[str, ...], what: str
) -> None:
    stops: list[str] = []

    def stop(why: Unsupported) -> BaseException:
        stops.append(str(why))
        return why

    monkeypatch.setattr(examine, "_judgements", [SimpleNamespace(stop=stop)])
    watch = examine._forbid_execution(list(sys.path))
    if what:
        with pytest.raises(Unsupported):
            watch(event, arguments)
        assert stops == [f"the tests {what}, which the program may have chosen"]
    else:
        watch(event, arguments)


@pytest.mark.parametrize(
    ("folder", "is_refused"), [("/tmp/x", True), ("/dev/shm", True), ("/opt/x", False)]
)
def test_tests_must_not_import_what_the_program_may_have_written(
    monkeypatch: pytest.MonkeyPatch, folder: str, is_refused: bool
) -> None:
    def stop(why: Unsupported) -> BaseException:
        return why

    monkeypatch.setattr(examine, "_judgements", [SimpleNamespace(stop=stop)])
    watch = examine._forbid_execution(["/usr/lib"])
    monkeypatch.setattr(sys, "path", ["/usr/lib", folder])
    if is_refused:
        with pytest.raises(Unsupported, match="import from a scratch folder"):
            watch("import", ("x",))
    else:
        watch("import", ("x",))


# -- the program's end -----------------------------------------------------------------------------


def _program() -> Any:
    found: Any = object.__new__(program._Program)
    found._out, found._err, found._random = program._Printed(), program._Printed(), None
    return found


def test_what_is_printed_goes_with_the_next_message_and_only_once() -> None:
    end = _program()
    assert end.additions() == {}
    end._out.write("a")
    end._out.write("b")
    end._err.write("c")
    assert end.additions() == {"o": "ab", "e": "c"}
    assert end.additions() == {}
    end._out.write("while it is loaded")
    end._err.write("as well")
    end.forget_printed()
    assert end.additions() == {}
    assert (end._out.size, end._err.size) == (0, 0)


@pytest.mark.parametrize(("size", "kept"), [(3, "xxx"), (4, "")])
def test_so_much_is_kept_of_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, size: int, kept: str
) -> None:
    monkeypatch.setattr(program, "_MOST_PRINTED", 3)
    out = program._Printed()
    assert out.write("x" * size) == size
    assert out.take() == kept
    assert out.writable()
    with pytest.raises(TypeError, match="must be str, not int"):
        out.write(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "described"),
    [
        (ValueError("x"), ["ValueError", "x"]),
        *((OSError(number, "x"), ["PermissionError", f"[Errno {number}] x"]) for number in (1, 13)),
        (OSError(errno.EROFS, "x"), ["PermissionError", "[Errno 30] x"]),
        (OSError(errno.ENOSYS, "x"), ["PermissionError", "[Errno 38] x"]),
        (OSError(errno.ENOENT, "x"), ["FileNotFoundError", "[Errno 2] x"]),
        (type("E" * 99, (Exception,), {})(), ["E" * 80, ""]),
    ],
)
def test_an_exception_is_described_by_its_name(error: Exception, described: list[str]) -> None:
    assert program.describe(error) == described


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("x = 1", None),
        ("x = (", ["SyntaxError", "'(' was never closed (solution.py, line 1)"]),
        ("x = '\0'", ["SyntaxError", "source code string cannot contain null bytes"]),
        ("raise KeyError('k')", ["KeyError", "'k'"]),
        ("import sys; sys.exit(3)", ["SystemExit", "3"]),
    ],
)
def test_a_program_is_loaded_or_says_why_not(source: str, failure: list[str] | None) -> None:
    module = program.new_module("solution")
    assert sys.modules["solution"] is module
    assert program.load(source, module) == failure
    program.run_trusted("y = 2", module)
    program.run_trusted("", module)
    assert module.y == 2
