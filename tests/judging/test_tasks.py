"""Code tasks without a sandbox: outputs compared, names found, problems seen before running."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.judging import tasks as module
from passhat.judging.tasks import (
    Case,
    CodeSuite,
    CodeTask,
    discarded_calls,
    free_names,
    function_names,
    method_names,
    shared_state,
    top_level_names,
)
from passhat.stats.outcomes.vocabulary import MissingReason
from passhat.suites.code_samples import find_fences, has_fence, program_in, request_text


@pytest.mark.parametrize(
    ("expected", "output", "accepted"),
    [
        (b"1\n2\n", b"1\n2", True),
        (b"1\n2", b"1 \t\r\n2\r\n\n\n", True),
        (b"", b"\n \n", True),
        (b"1", b" 1", False),  # white space at the start of a line is content
        (b"1\n2", b"1\n\n2", False),
        (b"1\n2", b"2\n1", False),
        (b"1", b"1.0", False),
        (b"Yes", b"yes", False),
        (b"1\n2", b"1", False),
        (b"1", b"1\n2", False),
        (b"a\x00b", b"a\x00b\n", True),
        (b"a\x00b", b"ab", False),
        ("é".encode(), "e\u0301".encode(), False),
    ],
)
def test_outputs_are_compared_line_by_line(expected: bytes, output: bytes, accepted: bool) -> None:
    assert Case(b"", expected).accepts(output) is accepted


@given(st.lists(st.text("ab 1", max_size=4), max_size=5), st.text(" \t\r\n", max_size=3))
def test_an_output_is_accepted_for_itself_with_more_space_behind(
    lines: list[str], behind: str
) -> None:
    text = "\n".join(lines).encode()
    assert Case(b"", text).accepts(text + behind.encode())
    assert not Case(b"", text).accepts(b"x" + text)


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        ("assert f(1) == 2", {"f"}),
        ("assert f(len([1])) == max(2, 1)", {"f"}),
        ("x = f(1)\nassert x == g(x)", {"f", "g"}),
        ("def check(candidate):\n    assert candidate(1) == helper(2)", {"helper"}),
        ("import math\nassert math.isclose(f(1), 2)", {"f"}),
        ("import os.path as p\nassert f(p.sep)", {"f"}),
        ("from solution import f, g as h\nassert f(1) == h(1)", {"f", "g"}),
        ("import candidate\nassert candidate.f(1) == 1", {"f"}),
        ("assert solution.f(1) == candidate.g(2)", {"f", "g"}),
        ("import other\nassert other.f(1) == f(1)", {"f"}),
        ("from . import f\nassert f(1)", set()),
        ("from solution import f as g\nassert g(1)", {"f"}),
        ("case = [1]\nassert sum(case) == total(case)", {"total"}),
        ("assert [f(x) for x in range(3)] == [y for y in (0, 1, 2)]", {"f"}),
        ("assert (lambda n: f(n))(1)", {"f"}),
        ("try:\n    f(1)\nexcept ValueError as error:\n    assert str(error)", {"f"}),
        ("async def go():\n    return f(1)\nimport asyncio\nassert asyncio.run(go())", {"f"}),
        ("match f(1):\n    case [first, *others]:\n        assert first and others", {"f"}),
        ("match f(1):\n    case {'a': 1, **more}:\n        assert more", {"f"}),
        ("match f(1):\n    case int() as number:\n        assert number", {"f"}),
        ("with open(f(1)) as stream:\n    assert stream", {"f"}),
        ("class T:\n    def m(self):\n        return f(self)", {"f"}),
        ("for a, (b, *c) in f(1):\n    assert a + b + c", {"f"}),
        ("assert (n := f(1)) and n", {"f"}),
        ("this is no Python", set()),
    ],
)
def test_names_that_the_program_has_to_define(tests: str, names: set[str]) -> None:
    assert free_names(tests) == names


def test_the_prompt_asks_for_these_names_only() -> None:
    tests = "try:\n    parse('x')\nexcept ValueError as error:\n    assert 'x' in str(error)"
    assert "defines parse. Answer" in request_text(CodeTask("t", tests=tests, text="Parse."))
    answer = (
        "```python\ndef parse(s):\n    raise ValueError(s)\n```\nand to try it:\n"
        "```python\nerror = None\n```"
    )
    assert "raise ValueError" in program_in(answer, CodeTask("t", tests=tests))


def test_names_that_a_source_defines() -> None:
    source = (
        "import os.path\nfrom typing import List as L\nX: int = 1\na = b = 2\n"
        "def f():\n    inner = 1\nasync def g(): pass\nclass C:\n    def m(self): pass\n"
    )
    assert top_level_names(source) >= {"os", "L", "X", "a", "b", "f", "g", "C"}
    assert not top_level_names(source) & {"inner", "m", "List", "path"}
    assert function_names(source) == {"f"}
    assert top_level_names("def (") == set()


@pytest.mark.parametrize(
    ("tests", "state"),
    [
        ("assert f(1) == 1", []),
        ("import time\nassert f(1)", ["time"]),
        ("from unittest import mock\nassert f(mock)", ["unittest.mock"]),
        ("import os.path\nassert f(1)", ["os"]),
        ("def test_f(tmp_path, monkeypatch):\n    assert f(tmp_path)", ["monkeypatch", "tmp_path"]),
        ("assert f(open('x'))", ["open"]),
        ("import math\nassert f(math.pi)", []),
        ("def test_f(self):\n    with self.assertLogs(): f(1)", ["logging"]),
        ("def test_f(self):\n    self.assertWarns(UserWarning, f)", ["warnings"]),
        ("assert f(datetime.now()).today()", ["time"]),
        ("assert f(random.random())", ["random"]),
        ("import unittest\nassert f(unittest.mock)", ["unittest.mock"]),
        ("import os\nimport time\nassert f(open('x'))", ["time", "open", "os"]),
        ("def f(open):\n    return open", ["open"]),
    ],
)
def test_state_that_two_processes_do_not_share(tests: str, state: list[str]) -> None:
    assert shared_state(tests) == state


@pytest.mark.parametrize(
    ("tests", "reason", "words"),
    [
        ("assert f(1", MissingReason.JUDGE_ERROR, "do not compile"),
        ("assert 1 == 1", MissingReason.JUDGE_ERROR, "never call the program"),
        ("x = len([1])\nassert x", MissingReason.JUDGE_ERROR, "never call the program"),
        ("assert f(1)\npytest.importorskip('x')", MissingReason.UNSUPPORTED, "pytest.importorskip"),
        ("async def test_f():\n    assert f(1)", MissingReason.UNSUPPORTED, "test_f"),
        ("def test_f(client):\n    assert f(client)", MissingReason.JUDGE_ERROR, "'client'"),
        ("def test_f(a, b=1):\n    assert f(a)", MissingReason.JUDGE_ERROR, "'a'"),
        ("def check(candidate):\n    assert 1", MissingReason.JUDGE_ERROR, "never call"),
        ("import logging.config\ndictConfig(f(1))", MissingReason.UNSUPPORTED, "logging.config"),
        ("logging.config.fileConfig(f(1))", MissingReason.UNSUPPORTED, "logging.config"),
    ],
)
def test_problems_of_the_tests_are_the_judges_and_not_the_programs(
    tests: str, reason: MissingReason, words: str
) -> None:
    problem = CodeTask("t", tests=tests).problem
    assert problem is not None
    assert problem[0] is reason
    assert words in problem[1]


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(1) == 1",
        "from solution import f\nassert f(1)",
        "import pytest\n@pytest.fixture\ndef one(): return 1\ndef test_f(one): assert f(one)",
        "import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_f(n):\n    assert f(n)",
        "def test_f(n=1):\n    assert f(n)",
    ],
)
def test_tests_without_a_problem(tests: str) -> None:
    assert CodeTask("t", tests=tests).problem is None
    # With inputs and outputs the tests are not needed.
    assert CodeTask("t", tests="broken (", cases=(Case(b"", b""),)).problem is None


def test_names_in_tests() -> None:
    source = (
        "class A:\n    def m(self): pass\n    n = m\n    a.b = 1\n"
        "class B:\n    x = y = 1\ndef f(): pass\nasync def g(): pass\n"
    )
    assert method_names(source) == ["m", "n", "x", "y"]
    assert function_names(source) == {"f"}
    tests = "f(1)\ng.add(2)\nassert g.add(3)\nh(k(4))\nx = j(5)"
    assert discarded_calls(tests) == {"f", "h"}


def test_check_without_an_entry_point_never_calls_the_program() -> None:
    tests = "def check(candidate):\n    assert candidate(1) == 1"
    assert CodeTask("t", tests=tests).problem is not None
    assert CodeTask("t", tests=tests, entry_point="f").problem is None


def test_the_brief_imports_what_the_tests_use_without_importing() -> None:
    brief = CodeTask("t", tests="assert math.isclose(f(1), 1)").brief()
    assert (brief["setup"], brief["modules"]) == ("import math\n", ["math"])
    assert brief["free"] == ["f", "math"]
    assert (brief["imports"], brief["random"]) == ([], False)
    brief = CodeTask("t", tests="import numpy as np, json\nassert f(np)").brief()
    assert brief["imports"] == ["numpy"]  # the standard library is always there


def test_fingerprints_change_with_what_they_are_about() -> None:
    task = CodeTask("t", prompt="p", tests="assert f(1)", helpers="h", cases=(Case(b"1", b"2"),))
    base = CodeSuite.of("s", [task])

    def prints(**changes: object) -> tuple[bool, bool]:
        fields = {
            name: getattr(task, name) for name in ("id", "prompt", "tests", "helpers", "cases")
        }
        other = CodeSuite.of("s", [CodeTask(**(fields | changes))])
        return (
            other.fingerprint == base.fingerprint,
            other.tests_fingerprint == base.tests_fingerprint,
        )

    assert prints() == (True, True)
    assert prints(prompt="q") == (False, True)
    assert prints(text="words") == (False, True)
    assert prints(tests="assert f(2)") == (True, False)
    assert prints(cases=(Case(b"12", b""),)) == (True, False)
    assert prints(canonical="x") == (True, True)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```\na\n```", ["a"]),
        ("```py\na\n```\ntext\n~~~\nb\n~~~", ["a", "b"]),
        ("````\n```\na\n```\n````", ["```\na\n```"]),
        ("~~~\n```\n~~~", ["```"]),
        ("```\nnever closed", ["never closed"]),
        ("- ```\n  a\n    b\n  ```", ["a\n  b"]),
        ("> ```\n> a\n>\n> b\n> ```", ["a\n\nb"]),
        ("no fence, `code` only", []),
        ("```\n```", [""]),
    ],
)
def test_fenced_blocks(text: str, blocks: list[str]) -> None:
    assert list(find_fences(text)) == blocks
    assert has_fence(text) == bool(blocks)


def test_unittest_after_a_prompt_that_defines_the_entry_point_calls_the_program() -> None:
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_one(self): self.assertEqual(f(1), 1)\n"
    )
    prompt = "def f(x):\n    ''' The same. '''\n"
    task = CodeTask("u", prompt=prompt, entry_point="f", helpers=f"{prompt}    pass\n", tests=tests)
    assert task.problem is None
    other = CodeTask("u", entry_point="g", helpers=f"{prompt}    pass\n", tests=tests)
    assert other.problem is not None


def test_a_program_may_have_a_function_with_a_name_of_python() -> None:
    task = CodeTask("sum", tests="assert sum(10, 15) == 6", canonical="def sum(a, b): return 6")
    assert task.problem is None
    assert task.brief()["free"] == ["sum"]
    assert CodeTask("none", tests="assert sum([1]) == 1", canonical="x = 1").problem is not None


# -- what the tests' sandbox is told ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"tests": "assert f(1) == 2"}, {"pure": True, "one_namespace": True, "free": ["f"]}),
        ({"tests": "assert f(1)"}, {"has_reference": False, "methods": [], "library": {}}),
        (
            {"tests": "assert f(1)", "canonical": "class C:\n    def m(self): pass"},
            {"has_reference": True, "methods": ["m"]},
        ),
        ({"tests": "from solution import f\nassert f(1)"}, {"one_namespace": False}),
        ({"tests": "import candidate\nassert candidate.f(1)"}, {"one_namespace": False}),
        # A helper that the tests use is run with them.
        (
            {"tests": "assert f(1) == g(2)", "helpers": "def g(x): return x\n"},
            {"helpers": "def g(x): return x\n", "setup": "def g(x): return x\n", "free": ["f"]},
        ),
        (
            {"tests": "assert f(1)", "helpers": "def g(x): return x\n"},
            {"helpers": "", "setup": "def g(x): return x\n"},
        ),
        (
            {"tests": "assert f(1)", "helpers": "def g(x): return x\n", "prompt": "def f(x):\n"},
            {"helpers": "", "setup": ""},
        ),
        (
            {"tests": "assert f(1)", "helpers": "def f(x): pass\n", "entry_point": "f"},
            {"helpers": "", "free": ["f"], "entry_point": "f"},
        ),
        ({"tests": "assert f(math.pi)"}, {"setup": "import math\n", "modules": ["math"]}),
        (
            {"tests": "assert f(math.pi)", "helpers": "import math\n"},
            {"setup": "import math\n", "helpers": "import math\n", "modules": ["math"]},
        ),
        ({"tests": "import numpy\nimport pytest\nimport os\nassert f(1)"}, {"imports": ["numpy"]}),
        ({"tests": "assert f(random.random())"}, {"random": True, "pure": False}),
        ({"tests": "assert f(1)"}, {"random": False, "files": False, "inexact": False}),
        ({"tests": "assert f(open('x'))"}, {"files": True, "inexact": True, "pure": False}),
        ({"tests": "import sys\nassert f(sys.path)"}, {"files": True}),
        ({"tests": "assert f(1) is g(1)"}, {"inexact": True, "pure": True}),
        ({"tests": "assert f(1) is None"}, {"inexact": False}),
        ({"tests": "import math\nassert f(1)"}, {"late_imports": [("math", "import math")]}),
        (
            {"tests": "from solution import f\nimport math\nassert f(1)"},
            {"late_imports": []},
        ),
        ({"tests": "f(1)\nassert g(1)\nx = h(1)\nh(2)"}, {"discarded": ["f"]}),
    ],
)
def test_what_the_sandbox_of_the_tests_is_told(
    parts: dict[str, Any], expected: dict[str, object]
) -> None:
    brief = CodeTask("t", **parts).brief()
    assert {name: brief[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("tests", "is_pure"),
    [
        ("assert f(1) == sum([1])", True),
        ("def check(c):\n    assert c(1).count(2)", True),
        ("import math\nassert f(1)", False),
        ("class C: pass", False),
        ("with f(1): pass", False),
        ("async def f(): pass", False),
        ("del x", False),
        ("f.a = 1", False),
        ("assert f._a", False),
        ("assert print(f(1))", False),
        ("assert __name__", False),
        ("assert setattr(f, 'a', 1)", False),
    ],
)
def test_tests_that_change_nothing_but_their_names(tests: str, is_pure: bool) -> None:
    assert module._changes_nothing(tests) is is_pure


@pytest.mark.parametrize(
    ("tests", "is_identity"),
    [
        ("assert f(1) is g(1)", True),
        ("assert f(1) is not g(1)", True),
        ("assert f(1) is None", False),
        ("assert True is f(1)", False),
        ("assert f(1) == g(1)", False),
        ("assert 1 < f(1) is g", False),
        ("assert f(1) in [g]", False),
    ],
)
def test_comparisons_of_identity(tests: str, is_identity: bool) -> None:
    assert module._compares_identity(tests) is is_identity


@pytest.mark.parametrize(
    ("line", "bound_name", "root"),
    [
        ("import os", "os", "os"),
        ("import os.path", "os", "os"),
        ("import os.path as p", "p", "os"),
        ("from os import path", "path", "os"),
        ("from os.path import join as j", "j", "os"),
    ],
)
def test_an_import_binds_a_name(line: str, bound_name: str, root: str) -> None:
    (found,) = module._list_imports(module._parse(line).body)
    assert (found.bound_name, found.root, str(found)) == (bound_name, root, line)


@pytest.mark.parametrize(
    ("program", "names", "modules", "expected"),
    [
        ("import math", {"math"}, set(), {"math": ("math", "")}),
        ("import os.path", {"os"}, set(), {"os": ("os", "")}),
        ("import os.path as p", {"p"}, set(), {"p": ("os.path", "")}),
        ("from math import pi as p", {"p"}, set(), {"p": ("math", "pi")}),
        ("from math import pi", {"e"}, set(), {}),
        ("from numpy import pi", {"pi"}, set(), {}),
        ("from math import pi\npi = 3", {"pi"}, set(), {}),
        ("from math import pi\ndef pi(): pass", {"pi"}, set(), {}),
        ("x = math", {"math"}, {"math"}, {"math": ("math", "")}),
        ("math = 1", {"math"}, {"math"}, {}),
    ],
)
def test_names_that_are_the_librarys(
    program: str, names: set[str], modules: set[str], expected: dict[str, tuple[str, str]]
) -> None:
    assert module._library_names(program, names, modules) == expected


@pytest.mark.parametrize(
    ("tests", "reason", "words"),
    [
        ("assert pytest.importorskip('x')", MissingReason.UNSUPPORTED, "pytest.importorskip in"),
        ("with pytest.raises(ValueError): f(1)", None, ""),
        ("async def test_f(): assert f(1)", MissingReason.UNSUPPORTED, "the asynchronous test"),
        ("async def go(): return f(1)", None, ""),
        ("def test_f(db): assert f(db)", MissingReason.JUDGE_ERROR, "test_f needs a fixture 'db'"),
        ("def test_f(db=1): assert f(db)", None, ""),
        ("def helper(db): assert f(db)", None, ""),
        ("@pytest.fixture\ndef db(): return 1\ndef test_f(db): assert f(db)", None, ""),
        ("@pytest.mark.parametrize('db', [1])\ndef test_f(db): assert f(db)", None, ""),
        ("def test_f(tmp_path): assert f(tmp_path)", None, ""),
        ("def test_f(x, tmp_path=2): assert f(x)", MissingReason.JUDGE_ERROR, "fixture 'x'"),
    ],
)
def test_parts_of_pytest_that_the_judge_does_not_have(
    tests: str, reason: MissingReason | None, words: str
) -> None:
    found = module._find_unsupported(tests)
    assert (None if found is None else found[0]) == reason
    assert words in (found or (None, ""))[1]


def test_fingerprints_are_of_prompts_and_of_tests() -> None:
    def suite(**parts: object) -> CodeSuite:
        fields = {"prompt": "p", "entry_point": "e", "text": "", "helpers": "h", "tests": "t"}
        return CodeSuite.of("s", [CodeTask("a", **{**fields, **parts})])  # type: ignore[arg-type]

    first = suite()
    for name in ("prompt", "entry_point", "text"):
        other = suite(**{name: "x"})
        assert other.fingerprint != first.fingerprint
        assert other.tests_fingerprint == first.tests_fingerprint
    for name, value in (("helpers", "x"), ("tests", "x"), ("cases", (Case(b"1", b"2"),))):
        other = suite(**{name: value})
        assert other.fingerprint == first.fingerprint
        assert other.tests_fingerprint != first.tests_fingerprint
    assert len(first.fingerprint) == len(first.tests_fingerprint) == 16
