"""Attacks on the tests' end of the connection: each gets through when its guard is removed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import SandboxKind
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

SECRET = """
import sys
class Box: pass
class Source:
    answer = 7391
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

RAW = """
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


@pytest.fixture(scope="module")
def split(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    examiner = Examiner(best, interpreter, ProgramLimits(), JudgeRules("split"))
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
