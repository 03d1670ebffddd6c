"""What both ends of the connection make of programs: all parts of it, in processes without walls.

The tests and programs are those of the tests in a sandbox, which say what is right. None of them
writes files or starts processes. ``inside.json`` has what split says (outcome, word, detail,
whether it is exact, where objects were, requests), then plain except for attacks.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

from kept_results import check_results
from passhat.judging import inside
from passhat.judging.tasks import CodeTask

HERE = Path(__file__).parent


OWN = {
    "data of every kind": (
        """
import collections, datetime, decimal, fractions, uuid, array
from solution import f, same
values = [None, True, 1.5, -(2 ** 13000), 'a', b'b', 2j, range(1, 9, 2), ..., NotImplemented,
    decimal.Decimal('1.50'), fractions.Fraction(1, 3), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 6, fold=1), datetime.timedelta(-1, 2, 3),
    datetime.time(1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    datetime.timezone.utc, uuid.UUID(int=7), array.array('d', [1.5]),
    bytearray(b'x'), collections.deque([1], 3), collections.Counter('aab'),
    collections.OrderedDict(b=1, a=2), (1, (2,)), frozenset({3}), {4}, {'k': [5]}]
for value in values:
    assert repr(f(value)) == repr(value) and same(value, repr(value))
more = f(collections.defaultdict(list, a=[1]))
more['b'].append(2)
assert dict(more) == {'a': [1], 'b': [2]}
""",
        "def f(x): return x\ndef same(x, text): return repr(x) == text",
    ),
    "containers that change": (
        """
rows = [[1], {'a': 2}, {3}, bytearray(b'x')]
assert f(rows) is rows[0] and rows == [[1, 9], {'a': 2, 'b': 0}, set(), bytearray(b'xy')]
rows[1]['c'] = rows
assert g()[1]['c'] is rows and rows[0] == [1, 9, 9]
rows.clear()
assert g() == [] and g() is rows
""",
        """
def f(rows):
    global kept
    kept = rows
    rows[0].append(9); rows[1]['b'] = 0; rows[2].clear(); rows[3] += b'y'
    return rows[0]
def g():
    if kept: kept[0].append(9)
    return kept
""",
    ),
    "a class with many methods": (
        """
v = V([1, 2, 3])
assert len(v) == 3 and v[0] == 1 and 2 in [*v] and list(v) == [1, 2, 3]
assert list(reversed(v)) == [3, 2, 1]
v[1] = 5
del v[0]
assert str(v) == '<5, 3>' and repr(v) == 'V([5, 3])' and f'{v:x}' == 'x' and bool(v) and v() == 8
assert (v + v).items == [5, 3, 5, 3] and (-v).items == [-5, -3]
assert int(v) == 8 and float(v) == 8.0
v += V([1])
assert v.items == [5, 3, 1] and v.total == 9 and V.made > 0 and V.of(4).items == [4]
assert V.two() == 2
v.items = [7]
assert v.total == 7 and isinstance(v, V) and not isinstance(3, V) and issubclass(V, V)
with v as w: assert w is v
try:
    v.absent
    assert False
except AttributeError as error: assert 'absent' in str(error)
assert hasattr(v, 'items') and not hasattr(v, 'other') and type(v).__name__ == 'V'
assert V.__doc__ == 'Vs.'
v = V([5, 3])
assert (v * 2).items == [10, 6] and 5 in v
assert v == V([5, 3]) and v != V([5]) and v < V([6]) and not v > V([6]) and v <= v and v >= v
assert hash(v) == hash(V([5, 3])) and {v: 1}[V([5, 3])] == 1
""",
        """
import functools
@functools.total_ordering
class V:
    'Vs.'
    made = 0
    def __init__(s, items): s.items = list(items); V.made += 1
    def __len__(s): return len(s.items)
    def __getitem__(s, i): return s.items[i]
    def __setitem__(s, i, x): s.items[i] = x
    def __delitem__(s, i): del s.items[i]
    def __contains__(s, x): return x in s.items
    def __iter__(s): return iter(s.items)
    def __reversed__(s): return reversed(s.items)
    def __str__(s): return '<' + ', '.join(map(str, s.items)) + '>'
    def __repr__(s): return f'V({s.items})'
    def __format__(s, form): return form
    def __call__(s): return sum(s.items)
    def __add__(s, o): return V(s.items + o.items)
    def __iadd__(s, o): s.items += o.items; return s
    def __mul__(s, n): return V([x * n for x in s.items])
    def __neg__(s): return V([-x for x in s.items])
    def __eq__(s, o): return s.items == o.items
    def __lt__(s, o): return s.items < o.items
    def __hash__(s): return hash(tuple(s.items))
    def __int__(s): return sum(s.items)
    def __float__(s): return float(sum(s.items))
    def __enter__(s): return s
    def __exit__(s, *_): return False
    @property
    def total(s): return sum(s.items)
    @classmethod
    def of(cls, *items): return cls(items)
    @staticmethod
    def two(): return 2
""",
    ),
    "errors and generators": (
        """
import unittest, pytest
def check_error(error):
    assert type(error).__name__ == 'Odd' and isinstance(error, KeyError) and error.args == (1, 'a')
    assert str(error) == 'odd'
class T(unittest.TestCase):
    def test_error(self):
        with self.assertRaises(Odd) as caught: f(0)
        check_error(caught.exception)
        with self.assertRaisesRegex(ZeroDivisionError, 'zero'): f(1)
    def test_generator(self):
        g = f(2)
        self.assertEqual([next(g), g.send(5), next(g, None)], [1, 10, None])
        g = f(2)
        next(g)
        with self.assertRaises(ValueError): g.throw(ValueError('x'))
        g.close()
    def test_callback(self):
        self.assertEqual(f(3, lambda x, *, y: x + y), 3)
        with self.assertRaises(LookupError): f(3, self.broken)
    def broken(self, x, *, y): raise LookupError(x)
def test_output(capsys):
    f(4)
    out = capsys.readouterr()
    assert (out.out, out.err) == ('hello\\n', 'oh')
@pytest.mark.parametrize('n', [5, 6])
def test_random(n):
    import random
    random.seed(n)
    first = random.random()
    random.seed(n)
    assert f(5) == first and f(6) == 5
""",
        """
import random, sys
class Odd(KeyError):
    def __str__(self): return 'odd'
def f(way, call=None):
    if way == 0: raise Odd(1, 'a')
    if way == 1: return 1 / 0
    if way == 2: return (lambda: (yield from steps()))()
    if way == 3: return call(1, y=2)
    if way == 4:
        print('hello'); sys.stderr.write('oh')
    if way == 5: return random.random()
    return 5
def steps():
    x = yield 1
    yield 2 * x
""",
    ),
    "an attribute of the class of an exception": (
        "try: f()\nexcept Odd as error: assert error.code == 7",
        "class Odd(Exception):\n    code = 7\ndef f(): raise Odd",
    ),
    "random numbers of both": (
        """
import random
random.seed(3)
first, second, third = random.random(), f(), random.random()
again = random.Random(3)
assert [first, second, third] == [again.random() for _ in range(3)]
random.seed(4)
g(4)
assert random.random() == random.Random(4).random()
random.seed(5)
many = h(700)
again = random.Random(5)
assert [again.random() for _ in range(701)][-1] == random.random() and len(many) == 700
""",
        """
import random
def f(): return random.random()
def g(x): random.seed(x)
def h(n): return [random.random() for _ in range(n)]
""",
    ),
    "names of the library": (
        """
assert f(datetime(2024, 1, 2)) == datetime(2024, 1, 3) and math.floor(g()) == 3
assert day(days=1) == timedelta(1) and isinstance(f(datetime(2024, 1, 2)), datetime)
""",
        """
import math
from datetime import datetime, timedelta
from datetime import timedelta as day
def f(x): return x + day(1)
def g(): return math.pi
""",
    ),
    "a variable that is a list": ("assert DATA == [1, {'a': 2}]", "DATA = [1, {'a': 2}]"),
    "a variable that is a number": ("assert SIZE == 5", "SIZE = 5"),
    "a variable that is none of these": ("assert SIZE is not None", "SIZE = object()"),
    "what the tests patch": (
        """
import unittest
from unittest.mock import patch, MagicMock, Mock
import solution
class T(unittest.TestCase):
    @patch('solution.fetch')
    def test_name(self, fetch):
        fetch.return_value = 3
        self.assertEqual(solution.f(2), 5)
        fetch.assert_called_once_with(2)
    def test_object(self):
        log = Mock()
        log.side_effect = [1, ValueError('no')]
        self.assertEqual(solution.g(log), 1)
        with self.assertRaises(ValueError): solution.g(log)
        self.assertEqual(log.call_count, 2)
        self.assertEqual(log.call_args.args, ('x',))
    def test_again(self):
        with patch('solution.fetch', lambda x: x): self.assertEqual(solution.f(4), 8)
        self.assertEqual(solution.f(4), 4)
""",
        "def fetch(x): return 0\ndef f(x): return x + fetch(x)\ndef g(log): return log('x')",
    ),
    "marks and fixtures": (
        """
import unittest, pytest
seen = []
def setUpModule(): seen.append('module')
class A(unittest.TestCase):
    @classmethod
    def setUpClass(cls): seen.append('class')
    def setUp(self): self.x = f(1)
    @unittest.skip('not now')
    def test_skip(self): assert False
    @unittest.expectedFailure
    def test_fails(self): self.assertEqual(f(1), 5)
    def test_passes(self):
        for i in range(2):
            with self.subTest(i=i): self.assertEqual(self.x, 2)
    def tearDown(self): seen.append('down')
@pytest.fixture
def two(): yield f(1); seen.append('end')
class TestB:
    def setup_method(self): self.y = f(2)
    def test_b(self, two): assert two == 2 and self.y == 3
def test_last(): assert seen == ['module', 'class', 'down'], seen
""",
        "def f(x): return x + 1",
    ),
}
"""Tests and programs that use much of what may cross; some break, and the first word counts."""


def _tables(name: str) -> dict[str, Any]:
    return runpy.run_path(str(HERE / name))


def _case(program: str, **parts: Any) -> tuple[CodeTask, str]:
    return CodeTask("t", **parts), program


def _styles(styles: dict[str, Any]) -> dict[str, tuple[CodeTask, str]]:
    """(task, program) of the tables of styles and constructs."""
    cases: dict[str, tuple[CodeTask, str]] = {}
    for name, (tests, program) in OWN.items():
        cases[name] = _case(program, tests=tests)
        cases[f"{name}, with a reference"] = _case(program, tests=tests, canonical=program)
    for name, tests in styles["STYLES"].items():
        cases[f"{name}, right"] = _case("def f(x): return 2 * x", tests=tests)
        cases[f"{name}, wrong"] = _case("def f(x): return 2 if x == 1 else 0.2", tests=tests)
        cases[f"{name}, absent"] = _case("def g(x): return 2 * x", tests=tests)
    for name, (tests, program, _) in styles["CONSTRUCTS"].items():
        if name != "many bytes":
            cases[name] = _case(program, tests=tests)
    crossing = styles["test_what_crosses_the_border"].pytestmark[0].args[1]
    for number, (tests, program) in enumerate(crossing):
        cases[f"crossing {number}"] = _case(program, tests=tests)
        if number % 3 == 0:
            cases[f"crossing {number}, none"] = _case("def f(*_): pass", tests=tests)
    words = styles["test_failures_have_their_word"].pytestmark[0].args[1]
    check = "def check(f):\n    assert f(2) + 1 == 3"
    for program, word in words:
        if word != "memory":
            cases[f"failure, {word}"] = _case(program, tests=check, entry_point="f")
    task = styles["CHECK"]
    for number, body in enumerate(("return helper(x)", "return 0\ndef helper(x): return 0")):
        cases[f"helpers {number}"] = (task, task.program(f"    {body}\n"))
    return cases


def _guards(guards: dict[str, Any]) -> dict[str, tuple[CodeTask, str]]:
    """(task, program) of the tables of attacks; names with a colon."""
    cases: dict[str, tuple[CodeTask, str]] = {}
    for name, body in guards["ATTACKS"].items():
        program = f"{guards['RAW']}def f(key, items, box, source):\n    {body}\n"
        cases[f"attack: {name}"] = _case(program, tests=guards["SECRET"], entry_point="f")
    for name in ("a pattern that takes forever", "a number that fills the memory"):
        del guards["ANSWERS"][name]
    for name, (tests, right, wrong) in guards["ANSWERS"].items():
        entry = "f" if "def check" in tests else ""
        case = _case(wrong, tests=tests, entry_point=entry, canonical=right)
        cases[f"answer: {name}"] = case
    for table in ("WITHOUT_REFERENCE", "CALLS"):
        for name, (tests, program) in guards[table].items():
            cases[f"{table.lower()}: {name}"] = _case(program, tests=tests)
    return cases


def test_the_whole_outcome_of_split_and_plain(tmp_path: Path) -> None:
    tasks = {
        name: {"brief": brief, "program": program, "plain": ":" not in name}
        for name, (task, program) in (
            _styles(_tables("test_styles.py")) | _guards(_tables("test_guards.py"))
        ).items()
        if not (brief := task.brief())["files"]
    }
    folder = Path(inside.__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, HERE / "without_sandbox.py", folder],
        input=json.dumps(tasks),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    # The words of Python's own errors differ from version to version.
    text = re.sub(r"((?:Type|Attribute|Syntax)Error(?:: |\", \"))[^\"]*", r"\1", ended.stdout)
    results = json.loads(re.sub("0x[0-9a-f]+", "0x", text))
    briefs = {f"brief of {name}": task["brief"] for name, task in tasks.items() if task["plain"]}
    check_results(HERE / "inside.json", results | briefs)
