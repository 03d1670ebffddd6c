"""Attacks on the tests' end of the connection: each gets through when its guard is removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

SECRET = """
import sys
class Box: pass
class Form(str): pass
class Source:
    answer = 7391
    form = Form
def check(candidate):
    secret = 7391
    def key(x): return x + secret
    def items():
        hidden = secret
        yield 1
    box = Box()
    box.here, box.traceback = sys._getframe(), None
    box._private = secret
    sys.stdin = Source()
    assert candidate(key, items(), box, Source()) == secret
"""
"""The tests hand over a function, a generator and an object; the answer is in none of them."""

READS = "__globals__[scanner].re.enum.sys.modules[tests].check.__code__.co_consts"
RAW = """
import re
from json import JSONDecodeError as JSONError
def ask(thing, verb, name, *arguments, number=None):
    peer = object.__getattribute__(thing, "_passhat_peer")
    if number is None: number = object.__getattribute__(thing, "_passhat_number")
    return peer.ask(verb, number, name, *arguments)
"""
"""A program may send any request: the stand-ins' own checks are in its hands."""

ATTACKS = {
    "private attributes": "return key.__closure__[0].cell_contents",
    "private attributes by a raw request": (
        'return ask(key, "get", "__closure__")[0].cell_contents'
    ),
    "attributes of a value": (
        'return ask(key, "of", "__closure__", key, number=-1)[0].cell_contents'
    ),
    "a text that reads attributes": (
        f'text = ask(key, "of", "format", str, number=-1)("{{0.__init__.{READS}}}", JSONError)\n'
        '    return int(re.findall("[0-9]{4}", text)[0])'
    ),
    "a class of the tests that formats": (
        f'text = source.form.format("{{0.__init__.{READS}}}", JSONError)\n'
        '    return int(re.findall("[0-9]{4}", text)[0])'
    ),
    "special methods that are none": (
        'return ask(key, "special", "__getattribute__", "__closure__")[0].cell_contents'
    ),
    "the frame of a generator": 'next(items)\n    return items.gi_frame.f_locals["hidden"]',
    "private attributes of an object": "return box._private",
    "other methods of standard input": (
        'return ask(key, "stdin", "__getattribute__", "answer", number=-1)'
    ),
    "assigning to a function": (
        'ask(key, "set", "extra", 1)\n    return 7391 if ask(key, "get", "extra") else 0'
    ),
    "the code of a function": "return key.__code__.co_consts",
}
HOLD_A_FRAME = "return 7391 if box.here is not None else 0"
STOPS = {
    "a class of the judge's own": ("inside.stand_ins", "Unsupported", "BaseException"),
    "a skipped test": ("unittest.case", "SkipTest", "Exception"),
}
RAISING = """
import sys
peer = [o for o in __import__("gc").get_objects() if type(o).__name__ == "_Program"][0]
def f(x):
    error = Exception("chosen")
    plain = peer.export_error_class
    chosen = ["S", {!r}, {!r}, {!r}]
    peer.export_error_class = lambda kind: chosen if kind is Exception else plain(kind)
    raise error
"""

CLOSE = "def check(f):\n    for x in (1.5, 2.5):\n        assert abs(f(x) - (2 * x + 1)) < 1e-6"
TWICE = "def f(x): return 2 * x + 1"
POINT = "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n"
PAIR = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    x: int\n"
COLOR = "from enum import Enum\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\n"
MANAGER = "import contextlib\n@contextlib.contextmanager\ndef f(x):\n    yield 2 * x + 1\n"
MATRIX = """
class M:
    def __init__(s, rows): s.rows = rows
    def __getitem__(s, i): return M(s.rows[i]) if isinstance(s.rows[i], list) else s.rows[i]
    def __len__(s): return len(s.rows)
    def __sub__(s, o): return M([a - o for a in s.rows])
"""
MOCK = "from unittest.mock import MagicMock\nlog = MagicMock()\n"
STARTS = "assert f(2).startswith('5')"
YES = "def yes(): pass\nyes.startswith = lambda o: True\n"
FACTS = """
import sys
peers = sys.modules["inside.peer"]
describe = peers.describe_class
def lie(kind, peer):
    facts = describe(kind, peer)
    facts.update(chosen(peer) if kind.__name__ == "Color" else {})
    return facts
peers.describe_class = lie
"""
ANSWERS = {
    "a difference of nothing": (
        CLOSE, TWICE, "class Z:\n    def __sub__(s, o): return 0.0\ndef f(x): return Z()",
    ),
    "a difference from the other side": (
        CLOSE.replace("f(x) - (2 * x + 1)", "(2 * x + 1) - f(x)"), TWICE,
        "class Z:\n    def __rsub__(s, o): return 0.0\ndef f(x): return Z()",
    ),
    "a difference of a class that the tests name": (
        "p = f(2)\nassert isinstance(p, Point) and abs(Point(1).x - 1) < 1e-6",
        f"{POINT}def f(x): return Point(x)",
        "class Point:\n    def __init__(s, x): pass\n    def __sub__(s, o): return 0.0\n"
        "    x = property(lambda s: s)\ndef f(x): return Point(x)",
    ),
    "an answer that contains everything": (
        "assert 5 in f(2)", "def f(x): return [2 * x + 1]",
        "class Z:\n    def __contains__(s, o): return True\n    def __iter__(s): yield 0\n"
        "def f(x): return Z()",
    ),
    "an answer that begins with everything": (
        "assert f(2).startswith('5')", "def f(x): return str(2 * x + 1)",
        "class Z:\n    def startswith(s, o): return True\ndef f(x): return Z()",
    ),
    "an object that is no set": (
        "assert not f(2).difference({5})", "def f(x): return {2 * x + 1}",
        "class Z:\n    def difference(s, o): return set()\ndef f(x): return Z()",
    ),
    "an object of the class that has the method": (
        "assert abs(Solution().f(2) - 5) < 1e-6 and Solution().g(2).startswith('5')",
        "class Solution:\n    def f(s, x): return 2 * x + 1\n    def g(s, x): return '5'",
        "class Solution:\n    def f(s, x): return s\n    g = f\n"
        "    def __sub__(s, o): return 0.0\n    def startswith(s, o): return True",
    ),
    "an end in place of answers": (
        "for got, x in zip(map(f, [1, 2]), [1, 2]): assert got == 2 * x + 1", TWICE,
        "def f(x): raise StopIteration",
    ),
    "a block that keeps failures": (
        "with f(2) as y: assert y == 5", MANAGER,
        "class Z:\n    def __enter__(s): return 0\n    def __exit__(s, *a): return True\n"
        "def f(x): return Z()",
    ),
    "guesses until the tests are content": (
        "def see(y): assert y == 5\nf(2, see)", "def f(x, see): see(2 * x + 1)",
        "def f(x, see):\n    for guess in range(9):\n        try: return see(guess)\n"
        "        except BaseException: pass",
    ),
    "a class whose objects are all the same": (
        "assert f(2) == Point(5)", f"{POINT}def f(x): return Point(2 * x + 1)",
        f"{POINT}    def __post_init__(s): s.x = 0\ndef f(x): return Point(0)",
    ),
    "a class without anything to compare": (
        "assert f(2) == Point(5)", f"{POINT}def f(x): return Point(2 * x + 1)",
        "from dataclasses import dataclass, field\n@dataclass\nclass Point:\n"
        "    x: int = field(compare=False)\ndef f(x): return Point(0)",
    ),
    "tuples that are all the same": (
        "assert f(2) == Pair(5)", f"{PAIR}def f(x): return Pair(2 * x + 1)",
        f"{PAIR}new = Pair.__new__\nPair.__new__ = lambda c, x: new(c, 0)\n"
        "def f(x): return Pair(0)",
    ),
    "numbers that are all the same": (
        "assert f(2) == Degrees(5)", "class Degrees(float): pass\ndef f(x): return Degrees(5)",
        "class Degrees(float):\n    def __new__(c, x): return float.__new__(c, 0)\n"
        "def f(x): return Degrees(0)",
    ),
    "members that are all the same": (
        "assert f(2) == Color.BLUE", f"{COLOR}def f(x): return Color.BLUE",
        f"{COLOR.replace('2', '1')}def f(x): return Color.RED",
    ),
    "a member that is a method": (
        "assert f(2) == 5", TWICE,
        f"{FACTS}{COLOR}def chosen(p):\n"
        "    return {'members': [['RED', 1], ['__eq__', p.encode(lambda *a: True)]]}\n"
        "def f(x): return Color.RED",
    ),
    "the next random numbers of the tests": (
        "import random\nfor x in range(5):\n    y = random.random()\n"
        "    assert f(y) == 2 * y + 1", TWICE,
        "import random\nSEEN = []\ndef f(x):\n    random.seed(1)\n    SEEN.append(x)\n"
        "    return 2 * x + 1 if x in SEEN[:2] else 0",
    ),
    "a pattern that takes forever": (
        "import re\nassert not re.match(f(2), 'a' * 40 + '!')", "def f(x): return 'b'",
        "def f(x): return '(a+)+$'",
    ),
    "a number that fills the memory": (
        "assert len([0] * f(2)) == 5", TWICE, "def f(x): return 10 ** 12",
    ),
    "a list that lets everything be removed": (
        "r = f(2)\nr.remove(5)\nassert not r", "def f(x): return [2 * x + 1]",
        "class Z:\n    def remove(s, o): pass\n    def __len__(s): return 0\ndef f(x): return Z()",
    ),
    "a member that begins with everything": (
        STARTS, "def f(x): return str(2 * x + 1)",
        "import enum\nclass Z(enum.Enum):\n    A = 1\n    def startswith(s, o): return True\n"
        "def f(x): return Z.A",
    ),
    "a function that begins with everything": (
        STARTS, "def f(x): return str(2 * x + 1)", f"{YES}def f(x): return yes",
    ),
    "a class that begins with everything": (
        STARTS, "def f(x): return str(2 * x + 1)",
        "class Z:\n    startswith = staticmethod(lambda o: True)\ndef f(x): return Z",
    ),
    "an iterator that begins with everything": (
        STARTS, "def f(x): return str(2 * x + 1)",
        "class Z:\n    def __next__(s): pass\n    def startswith(s, o): return True\n"
        "Z.__module__ = 'elsewhere'\ndef f(x): return Z()",
    ),
    "an exception that begins with everything": (
        STARTS, "def f(x): return str(2 * x + 1)",
        "def f(x):\n    e = ValueError()\n    e.startswith = lambda o: True\n    return e",
    ),
    "an item of a generator": (
        "for y in f(2): assert y.startswith('5')", "def f(x): yield str(2 * x + 1)",
        f"{YES}def f(x): yield yes",
    ),
    "an attribute of an exception": (
        "try: f(2)\nexcept ValueError as e: assert e.code.startswith('5')",
        "def f(x):\n    e = ValueError()\n    e.code = str(2 * x + 1)\n    raise e",
        f"{YES}def f(x):\n    e = ValueError()\n    e.code = yes\n    raise e",
    ),
    "a variable that is a class": (
        "assert VOWELS.issuperset('ae') and f('a')", "VOWELS = set('aeiou')\ndef f(x): return 1",
        "class VOWELS: issuperset = staticmethod(lambda o: True)\ndef f(x): return 1",
    ),
    "an attribute that is called names": (
        "assert Box().names.startswith('5')", "class Box: names = '5'",
        f"{YES}class Box:\n    class names: startswith = yes.startswith",
    ),
    "an argument of a callback": (
        "got = []\nf(2, got.append)\nassert got[0].startswith('5')",
        "def f(x, see): see(str(2 * x + 1))", f"{YES}def f(x, see): see(yes)",
    ),
    "a default of a parameter": (
        "import inspect\nassert inspect.signature(f).parameters['x'].default.startswith('5')",
        "def f(x='5'): pass", f"{YES}def f(x=yes): pass",
    ),
    "a difference in a named class": (
        "assert abs(V(3, 4).norm() - 5) < 1e-6",
        "class V:\n    def __init__(s, x, y): s.x, s.y = x, y\n"
        "    def __sub__(s, o): return V(s.x - o.x, s.y - o.y)\n"
        "    def norm(s): return (s.x ** 2 + s.y ** 2) ** 0.5",
        "class V:\n    def __init__(s, *a): pass\n    def __sub__(s, o): return 0.0\n"
        "    def norm(s): return s",
    ),
    "a number that is a matrix": (
        "m = M([[1, 2.5]])\nassert len(m[0]) == 2 and abs(m[0][1] - 2.5) < 1e-6", MATRIX,
        "class M:\n    def __init__(s, r): pass\n    def __getitem__(s, i): return s\n"
        "    def __len__(s): return 2\n    def __sub__(s, o): return 0.0",
    ),
    "a text that is a table": (
        "t = Table({'a': {'b': 'xy'}})\nassert t.get('a').get('b').startswith('x')",
        "class Table:\n    def __init__(s, d): s.d = d\n    def get(s, k):\n"
        "        v = s.d[k]\n        return Table(v) if isinstance(v, dict) else v",
        "class Table:\n    def __init__(s, d): pass\n    def get(s, k): return s\n"
        "    def startswith(s, o): return True",
    ),
    "an object that asks what it contains": (
        "r = f(2)\nassert any(x in r for x in (4, 5)) and list(r) == [5]",
        "def f(x): return [2 * x + 1]",
        "class Z:\n    seen = []\n    def __contains__(s, o): s.seen.append(o)\n"
        "    def __iter__(s): return iter(s.seen[1:])\ndef f(x): return Z()",
    ),
    "a function of the library": (
        "assert f(3) == sqrt(9)", "from math import sqrt\ndef f(x): return sqrt(x * x)",
        "def sqrt(x): return 0\ndef f(x): return 0",
    ),
    "a module of the library": (
        "assert f(3) == math.sqrt(9)", "import math\ndef f(x): return math.sqrt(x * x)",
        "class math: sqrt = staticmethod(lambda x: 0)\ndef f(x): return 0",
    ),
    "a module under another name": (
        "assert f(3) == m.sqrt(9)", "import math as m\ndef f(x): return m.sqrt(x * x)",
        "class m: sqrt = staticmethod(lambda x: 0)\ndef f(x): return 0",
    ),
    "a block that keeps mistakes": (
        "with f(2) as y: assert y['x'] == 5",
        "import contextlib\n@contextlib.contextmanager\ndef f(x):\n    yield {'x': 2 * x + 1}\n",
        "class Z:\n    def __enter__(s): return 0\n    def __exit__(s, *a): return True\n"
        "def f(x): return Z()",
    ),
    "an exception of every kind": (
        "for x, kind in ((0, TypeError), (1, ValueError)):\n    try: f(x)\n    except kind: pass",
        "def f(x): raise (ValueError if x else TypeError)",
        "class All(TypeError, ValueError): pass\ndef f(x): raise All",
    ),
    "an exception of the library that is of two kinds": (
        "for x, kind in ((0, OSError), (1, ValueError)):\n    try: f(x)\n    except kind: pass",
        "def f(x): raise (ValueError if x else OSError)",
        "import io\ndef f(x): raise io.UnsupportedOperation",
    ),
    "a mock that the program makes": (
        f"{MOCK}assert f(log) == {{'sent': 12}}\nlog.send.assert_called_with(12)",
        "def f(log):\n    log.send(12)\n    return {'sent': 12}",
        "def f(log):\n    yes = type(log)(**{'__eq__.return_value': True})\n"
        "    log.send(yes)\n    return {'sent': yes}",
    ),
    "a mock of the class of a function that is replaced": (
        "import unittest\nfrom unittest.mock import patch\nclass T(unittest.TestCase):\n"
        "    @patch('time.sleep')\n    def test_f(self, sleep):\n"
        "        self.assertEqual(f(3), 7)\n        sleep.assert_called_once_with(3)",
        "import time\ndef f(x):\n    time.sleep(x)\n    return 2 * x + 1",
        "import time\ndef f(x):\n    time.sleep(x)\n"
        "    return type(time.sleep.any)(**{'__eq__': lambda s, o: True})",
    ),
    "an object of a class of the tests that is equal to much": (
        "class Close:\n    def __init__(s, x, by): s.x, s.by = x, by\n"
        "    def __eq__(s, o): return abs(s.x - o) <= s.by\n"
        "def check(f):\n    assert f(Close(20, 1)) == 41",
        "def f(goal): return int(2 * goal.x + 1)",
        "def f(goal): return type(goal)(0, 1e9)",
    ),
    "arguments of a partial function": (
        "from functools import partial\ndef is_at(want, i): return i == want\n"
        "def check(f):\n    assert f(partial(is_at, 5)) == 5",
        "def f(test): return next(i for i in range(99) if test(i))",
        "def f(test): return test.args[0]",
    ),
    "the text of a partial function": (
        "from functools import partial\ndef is_at(want, i): return i == want\n"
        "def check(f):\n    assert f(partial(is_at, 5)) == 5",
        "def f(test): return next(i for i in range(99) if test(i))",
        "def f(test): return int(f'{test!r}'.rpartition(', ')[2][:-1])",
    ),
    "the default of a parameter": (
        "def check(f):\n    assert f(lambda i, want=5: i == want) == 5",
        "def f(test): return next(i for i in range(99) if test(i))",
        "import inspect\n"
        "def f(test): return inspect.signature(test).parameters['want'].default",
    ),
    "an assertion that the program keeps and tries again": (
        "def check(f):\n    left = [5, 3]\n    def dial(n):\n"
        "        if n != left[0]: raise AssertionError('no')\n        left.pop(0)\n"
        "    assert f(dial) == 'open'\n    assert not left",
        "def f(dial):\n    dial(5)\n    dial(3)\n    return 'open'",
        "def f(dial):\n    for n in [*range(9)] * 2:\n        try: dial(n)\n"
        "        except BaseException: pass\n    return 'open'",
    ),
}  # fmt: skip
"""Tests, a right program, and one that gives no right answer and would have the tests accept it."""
NOT_MIRRORED = (
    "a class whose objects are all the same",
    "a class without anything to compare",
    "tuples that are all the same",
    "numbers that are all the same",
)
"""Tests that compare objects of the program's classes: plain Python alone cannot confirm any."""


@pytest.fixture(scope="module")
def split(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    examiner = Examiner(best, interpreter, ProgramLimits(), JudgeRules("split"))
    yield examiner
    examiner.close()


@pytest.fixture(scope="module")
def small(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    examiner = Examiner(best, interpreter, ProgramLimits(cpu_seconds=1))
    yield examiner
    examiner.close()


def _task(tests: str = SECRET) -> CodeTask:
    return CodeTask("guard", entry_point="f", tests=tests)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_way_from_an_argument_to_the_tests(name: str, split: Examiner) -> None:
    program = f"{RAW}\ndef f(key, items, box, source):\n    {ATTACKS[name]}"
    assert split.judge(_task(), program).verdict is not Verdict.PASSED
    right = "def f(key, items, box, source): return key(0)"
    assert split.judge(_task(), right).verdict is Verdict.PASSED


def test_a_frame_is_not_handed_over(split: Examiner) -> None:
    program = f"def f(key, items, box, source):\n    {HOLD_A_FRAME}"
    verdict = split.judge(_task(), program)
    assert verdict.verdict is Verdict.MISSING
    assert "a frame" in verdict.detail


@pytest.mark.parametrize("name", STOPS)
def test_an_exception_cannot_choose_the_verdict(name: str, split: Examiner) -> None:
    """A program raises what the judge itself uses to stop, or to skip."""
    tests = "import unittest\ndef check(f):\n    assert f(1) == 7391"
    verdict = split.judge(_task(tests), RAISING.format(*STOPS[name]))
    assert verdict.verdict is Verdict.FAILED, verdict
    assert "chosen" in verdict.detail


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_decides_whether_it_is_right(name: str, small: Examiner) -> None:
    tests, right, wrong = ANSWERS[name]
    task = CodeTask(name, entry_point="f" if "check" in tests else "", tests=tests, canonical=right)
    verdicts = [small.judge(task, program) for program in (right, wrong)]
    if name in NOT_MIRRORED:
        assert [verdict.why for verdict in verdicts] == ["unconfirmed", "unconfirmed"]
        assert all("of the program's class" in verdict.detail for verdict in verdicts)
    else:
        assert verdicts[0].verdict is Verdict.PASSED
        is_failure = verdicts[1].verdict is Verdict.FAILED
        assert is_failure or verdicts[1].why == "judges_disagree", verdicts


WITHOUT_REFERENCE = {
    "a class in place of a function": (
        "r = f(2)\nr.remove(5)\nassert not r",
        "class f:\n    def __init__(s, x): pass\n    def remove(s, o): pass\n"
        "    def __len__(s): return 0",
    ),
    "an object that is its own answer": (
        "b = Bag()\nb.put(5)\nr = b.items()\nr.remove(5)\nassert not r",
        "class Bag:\n    def put(s, x): pass\n    def items(s): return s\n"
        "    def remove(s, o): pass\n    def __len__(s): return 0",
    ),
    "a module of the library": ANSWERS["a module of the library"][::2],
    "a block that keeps mistakes": ANSWERS["a block that keeps mistakes"][::2],
    "an exception of every kind": ANSWERS["an exception of every kind"][::2],
    "an attribute of an exception": ANSWERS["an attribute of an exception"][::2],
    **{
        name: ANSWERS[name][::2]
        for name in (
            "an exception of the library that is of two kinds",
            "a mock that the program makes",
        )
    },
}
NEVER_CALLED = {
    "behind a guard": "def main():\n    assert f(2) == 5\nif __name__ == '__main__':\n    main()",
    "in a method of no test class": "class Checks:\n    def test_f(self): assert f(2) == 5",
    "in a generator": "def test_f():\n    yield f(2) == 5",
    "in a suite of their own": "import unittest\ndef load_tests(loader, tests, pattern):\n"
    "    return unittest.FunctionTestCase(lambda: f(2) == 5)",
}


@pytest.mark.parametrize("name", NEVER_CALLED)
def test_tests_that_call_no_program_pass_none(name: str, small: Examiner) -> None:
    task = CodeTask(name, entry_point="f", tests=NEVER_CALLED[name], canonical=TWICE)
    for program in (TWICE, "def f(x): return 0"):
        verdict = small.judge(task, program)
        assert (verdict.why, verdict.detail) == ("judge_error", "the tests never call the program")


def test_a_check_that_returns_false_has_failed(small: Examiner) -> None:
    for tests in (
        "def check(candidate): return candidate(2) == 5",
        "def test_f(): return f(2) == 5",
        "def check():\n    assert f(2) == 5",
    ):
        task = CodeTask("t", entry_point="f" if "candidate" in tests else "", tests=tests)
        assert small.judge(task, TWICE).verdict is Verdict.PASSED
        assert small.judge(task, "def f(x): return 0").why == "wrong_answer"


def test_a_helper_called_check_does_not_stand_for_the_tests(small: Examiner) -> None:
    helper = "import unittest\nseen = []\ndef check(): assert seen\n"
    case = "class T(unittest.TestCase):\n    def test_f(self): self.assertEqual(f(2), 5)"
    for tests in (helper + case, f"{helper}def test_f(): assert f(2) == 5"):
        task = CodeTask("t", tests=tests)
        assert small.judge(task, TWICE).verdict is Verdict.PASSED
        assert small.judge(task, "def f(x): return 0").why == "wrong_answer"


def test_what_a_program_names_is_not_called_for_it(small: Examiner) -> None:
    tests = (
        "import logging.config\nlogging.config.dictConfig(f(2))\nassert logging.root.level == 40"
    )
    verdict = small.judge(CodeTask("t", entry_point="f", tests=tests), "def f(x): return {}")
    assert (verdict.why, "logging.config" in verdict.detail) == ("unsupported", True)


CALLS = {
    "an object that the tests make": (
        "s = Stack()\ns.append(5)\nassert s.pop() == 5",
        "class Stack:\n    def __init__(s): s.x = []\n    def append(s, x): s.x.append(x)\n"
        "    def pop(s): return s.x.pop()",
    ),
    "calls one after the other": (
        "assert Query().select('a').where('b').text == 'ab'",
        "class Query:\n    text = ''\n    def select(s, x): s.text += x; return s\n"
        "    where = select",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_REFERENCE)
def test_without_a_reference_no_object_is_told_what_is_expected(name: str, small: Examiner) -> None:
    tests, wrong = WITHOUT_REFERENCE[name]
    verdict = small.judge(CodeTask(name, tests=tests), wrong)
    assert verdict.why == "unconfirmed", verdict


@pytest.mark.parametrize("name", CALLS)
def test_without_a_reference_methods_are_called(name: str, small: Examiner) -> None:
    tests, right = CALLS[name]
    assert small.judge(CodeTask(name, tests=tests), right).verdict is Verdict.PASSED


def test_an_object_of_the_library_is_no_wrong_answer(small: Examiner) -> None:
    """Comparisons and checks that only one process can make end as unconfirmed, not as failed."""
    for tests, right in (
        (
            "assert f(1) == {'x': 1}",
            "from collections import ChainMap\ndef f(x): return ChainMap({'x': x})",
        ),
        (
            "import re\nassert isinstance(f('a'), re.Pattern)",
            "import re\ndef f(x): return re.compile(x)",
        ),
    ):
        verdict = small.judge(CodeTask("library", tests=tests, canonical=right), right)
        assert verdict.why == "unconfirmed", verdict


def test_generators_and_functions_take_values_where_the_reference_has_them(
    small: Examiner,
) -> None:
    for tests, right in (
        ("g = f()\nnext(g)\nassert g.send(5) == 10", "def f():\n    x = yield\n    yield 2 * x"),
        ("f.many(int)\nassert f(2) == 3", "def f(x): return x + 1\nf.many = lambda kind: None"),
    ):
        task = CodeTask("send", tests=tests, canonical=right)
        assert small.judge(task, right).verdict is Verdict.PASSED


def test_an_object_that_no_test_looks_at_is_no_difference(small: Examiner) -> None:
    tests = "b = Bag()\nb.put(5)\nb.put(6)\nassert b.size() == 2"
    lines = "class Bag:\n    def __init__(s): s.x = []\n    def size(s): return len(s.x)\n"
    right = f"{lines}    def put(s, x): s.x.append(x)"
    task = CodeTask("bag", tests=tests, canonical=right)
    assert small.judge(task, f"{right}; return s").verdict is Verdict.PASSED
