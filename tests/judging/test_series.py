"""Tests that change nothing judge one program after the other in one process."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from passhat.judging import inside
from passhat.judging.commands import plain_command
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import FailureCategory, Verdict

CHECK = "def check(f):\n    assert f([3, 1]) == [1, 3]\n    assert f([2]) == [2]\n"
TASK = CodeTask("t", entry_point="f", tests=CHECK)
OTHER = CodeTask("o", entry_point="f", tests=f"import math\n{CHECK}")
RIGHT, WRONG = "f = sorted", "def f(x): return x"

PURE = [
    CHECK,
    "assert f(1) == {'a': (1.5, None)}\nassert all(f(i) for i in range(3))",
    "def check(f):\n    try:\n        f(1)\n    except ValueError:\n        pass\n",
]
IMPURE = [
    "import math\nassert f(1) == math.pi",
    "from sys import setrecursionlimit\nassert f(1)",
    "class A: pass\nassert f(A)",
    "with f(1) as x: pass",
    "x = f(1)\nx.a = 2",
    "x = f(1)\ndel x.a",
    "assert f(1).__class__ is int",
    "assert f(open('x'))",
    "__builtins__['len'] = 1\nassert f(1)",
    "setattr(f, 'a', 1)\nassert f(1)",
    "exec('1')\nassert f(1)",
    "print(f(1))",
    "assert globals()['f'](1)",
    "assert f('random')",  # with its state, which one program could hand to the next
    "def test_a(tmp_path): assert f(tmp_path / 'x')",
    "def test_a(monkeypatch): monkeypatch.chdir(f(1))",
]


@pytest.mark.parametrize("tests", PURE)
def test_tests_that_only_call_and_compare_are_pure(tests: str) -> None:
    assert CodeTask("t", entry_point="f", tests=tests).brief()["pure"]


@pytest.mark.parametrize("tests", IMPURE)
def test_tests_that_could_leave_something_are_not(tests: str) -> None:
    assert not CodeTask("t", entry_point="f", tests=tests).brief()["pure"]


@pytest.fixture
def judge(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    examiner = Examiner(best, interpreter, ProgramLimits(cpu_seconds=0.5, wall=120))
    yield examiner
    examiner.close()


def test_one_process_judges_many_and_every_verdict_is_right(judge: Examiner) -> None:
    kept = []
    for number in range(40):
        program = WRONG if number % 3 == 0 else RIGHT
        verdict = judge.judge(TASK, program)
        assert verdict.verdict is (Verdict.FAILED if number % 3 == 0 else Verdict.PASSED), verdict
        kept.append(judge._series)
    assert len({id(one) for one in kept if one is not None}) == 3  # of 16 programs each
    assert judge.tests.starts == 1


def test_what_is_not_pure_has_a_process_of_its_own(judge: Examiner) -> None:
    assert judge.judge(TASK, RIGHT).verdict is Verdict.PASSED
    assert judge._series is not None
    assert judge.judge(OTHER, RIGHT).verdict is Verdict.PASSED
    assert judge._series is None
    assert judge.judge(TASK, WRONG).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "program",
    [
        "class Yes(list):\n    def __eq__(self, other): return True\ndef f(x): return Yes()",
        "class A: pass\ndef f(x): return A()",
        "from pathlib import Path\ndef f(x): return Path('/')",  # which the tests import then
        "import uuid\ndef f(x): return uuid.UUID(int=1)",
    ],
)
def test_a_program_that_leaves_a_trace_is_the_last_of_its_process(
    judge: Examiner, program: str
) -> None:
    assert judge.judge_apart(TASK, RIGHT)[0].verdict is Verdict.PASSED
    assert judge._series is not None
    assert judge.judge_apart(TASK, program)[0].verdict is not Verdict.PASSED
    assert judge._series is None
    assert judge.judge_apart(TASK, RIGHT)[0].verdict is Verdict.PASSED


def test_a_program_that_ends_or_hangs_does_not_harm_the_next(judge: Examiner) -> None:
    endings = {
        "import os\ndef f(x): os._exit(0)": FailureCategory.EXCEPTION,
        "def f(x):\n    while True: pass": FailureCategory.TIMEOUT,
        "def f(x): raise KeyError(x)": "KeyError",
    }
    for program, why in endings.items():
        assert judge.judge(TASK, RIGHT).verdict is Verdict.PASSED
        assert judge.judge(TASK, program).why == why
    assert judge.judge(TASK, RIGHT).verdict is Verdict.PASSED


def test_limits_of_several_judgements_are_not_those_of_one(judge: Examiner) -> None:
    """The tests work for most of their limit, each time: the process ends, and no judgement."""
    tests = "def check(f):\n    assert sum(range(20_000_000)) > 0\n    assert f(1) == 1\n"
    task = CodeTask("slow", entry_point="f", tests=tests)
    found = [judge.judge(task, "def f(x): return x").verdict for _ in range(8)]
    assert found == [Verdict.PASSED] * 8


def test_the_server_finds_bytecode_of_its_modules(interpreter: Interpreter) -> None:
    plain_command(interpreter)
    modules = Path(inside.__file__).parent.glob("*.py")
    assert [path for path in modules if not Path(cache_from_source(str(path))).is_file()] == []
