"""From how processes ended to a verdict: the program's fault, ours, or a broken sandbox."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from passhat.judging.examiner import _plain_verdict, _script_verdict, _split_verdict
from passhat.judging.sandbox import Ended, SandboxFault
from passhat.judging.sandbox_kinds import ProgramLimits
from passhat.judging.tasks import Case
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes import Verdict

LIMITS = ProgramLimits(cpu_seconds=2.0, output=10)
STARTED = ["started"]


def _end(*words: list[Any], why: str = "ended", status: int = 0, **parts: Any) -> Ended:
    values = {"cpu": 0.1, "seconds": 3.4, "waiting": False, **parts}
    return Ended(why, status, words=words, **values)


ENDS: list[tuple[Ended, str]] = [
    (_end(STARTED, status=3), "exception: the program ended its own process (status 3)"),
    (_end(STARTED, status=-signal.SIGSEGV), "exception: the process died of SIGSEGV"),
    (_end(STARTED, status=-250), "exception: the process died of signal 250"),
    (_end(STARTED, why="cpu", cpu=2.0), "timeout: 2.0 s of processor time"),
    (_end(STARTED, cpu=2.1, status=1), "timeout: 2.1 s of processor time"),
    (_end(STARTED, cpu=2.0, status=3), "exception: the program ended its own process (status 3)"),
    (_end(STARTED, why="wall"), "timeout: 3 s on the wall clock"),
    (_end(STARTED, why="files"), "sandbox_violation: too many files in /tmp"),
    (
        _end(STARTED, why="stopped", cpu=9.0),
        "sandbox_violation: the program closed the judge's channel",
    ),
]
"""Ends of a program that was not done, and the failures that they are."""


@pytest.mark.parametrize(("end", "failure"), ENDS)
def test_the_end_of_a_program_that_was_not_done_is_its_failure(end: Ended, failure: str) -> None:
    expected = f"failed, {failure}"
    assert _plain_verdict(end, LIMITS).words == expected
    gone = _end(["examined", "gone", "", "0", True, []])
    assert _split_verdict(gone, end, LIMITS).words == expected


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (_end(STARTED, ["examined", "passed", "", ""]), "passed"),
        (_end(STARTED, ["examined", "failed", "KeyError", "x"]), "failed, KeyError: KeyError: x"),
        (_end(STARTED, ["examined", "failed", "wrong_answer", "4"]), "failed, wrong_answer: 4"),
        (
            _end(STARTED, ["examined", "passed", "", ""], status=1),
            "failed, exception: the program ended its own process (status 1)",
        ),
        (
            _end(STARTED, ["examined", "passed", "", ""], why="cpu", cpu=3.0),
            "failed, timeout: 3.0 s of processor time",
        ),
        (
            _end(STARTED, ["examined", "sure"]),
            "failed, exception: the program ended its own process (status 0)",
        ),
        (_end(["untestable", "no such thing"]), "missing, unsupported: no such thing"),
    ],
)
def test_a_program_in_one_process_reports_itself(end: Ended, words: str) -> None:
    assert _plain_verdict(end, LIMITS).words == words


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (_end(), "the program's process never began"),
        (_end(["broken", "no memory"]), "no memory"),
        (_end(STARTED, status=-signal.SIGKILL), "was killed from outside"),
    ],
)
def test_a_sandbox_that_breaks_is_no_verdict(end: Ended, message: str) -> None:
    with pytest.raises(SandboxFault, match=message):
        _plain_verdict(end, LIMITS)
    with pytest.raises(SandboxFault, match=message):
        _script_verdict(Case(b"", b""), b"", end, "case 1", LIMITS)


def _report(*words: Any) -> Ended:
    return _end(["examined", *words])


@pytest.mark.parametrize(
    ("tests", "program", "words"),
    [
        (_report("passed", "", "", True, []), _end(), "passed"),
        (_report("failed", "wrong_answer", "4", False, []), _end(), "failed, wrong_answer: 4"),
        (_report("unsupported", "", "mock", True, []), _end(), "missing, unsupported: mock"),
        (
            _report("gone", "", "100000", True, []),
            _end(STARTED, why="cpu", cpu=3.0),
            "missing, unsupported: tests that ask the program 100,000 times",
        ),
        (
            _report("gone", "", "100000", True, []),
            _end(STARTED, why="files"),
            "failed, sandbox_violation: too many files in /tmp",
        ),
        (
            _end(why="cpu"),
            _end(STARTED),
            "missing, judge_error: the tests ran out of time (cpu)",
        ),
        (
            _end(why="wall", waiting=True),
            _end(STARTED),
            "failed, timeout: an answer that takes too long to make or to read",
        ),
        (
            _end(why="wall"),
            _end(STARTED, why="cpu"),
            "failed, timeout: an answer that takes too long to make or to read",
        ),
        (
            _end(status=4),
            _end(STARTED),
            "missing, judge_error: the tests ended without a verdict (status 4)",
        ),
    ],
)
def test_tests_in_a_process_of_their_own_say_the_verdict(
    tests: Ended, program: Ended, words: str
) -> None:
    assert _split_verdict(tests, program, LIMITS).words == words


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (_end(status=-signal.SIGKILL), "the tests' process was killed from outside"),
        (_end(["broken", "lost"]), "lost"),
        (_report("gone", "", "0", True, []), "never began"),
    ],
)
def test_tests_that_break_are_no_verdict(tests: Ended, message: str) -> None:
    with pytest.raises(SandboxFault, match=message):
        _split_verdict(tests, _end(), LIMITS)


def test_only_a_verdict_is_exact() -> None:
    for outcome, is_exact in (("passed", True), ("failed", True), ("unsupported", False)):
        verdict = _split_verdict(_report(outcome, "", "", True, ["a"]), _end(), LIMITS)
        assert (verdict.is_exact, verdict.objects) == (is_exact, ("a",))
    assert not _split_verdict(_report("passed", "", "", False, []), _end(), LIMITS).is_exact


@pytest.mark.parametrize(
    ("output", "end", "words"),
    [
        (b"4\n", _end(STARTED), "passed"),
        (b"5\n", _end(STARTED), "failed, wrong_answer: case 2: the output differs"),
        (b"4" * 11, _end(STARTED), "failed, wrong_answer: case 2: printed more than 10 bytes"),
        (b"4" * 10, _end(STARTED), "failed, wrong_answer: case 2: the output differs"),
        (
            b"4\n",
            _end(STARTED, status=1, written=b"Traceback\n  x\nshop.KeyError: 'a'\n"),
            "failed, KeyError: case 2: KeyError: 'a'",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, written=b""),
            "failed, exception: case 2: the script ended with status 1",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, written=b"no exception at all"),
            "failed, exception: case 2: the script ended with status 1",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, written=b"E" * 81 + b": x"),
            "failed, exception: case 2: the script ended with status 1",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, cpu=2.1, written=b"KeyError: x"),
            "failed, timeout: case 2: 2.1 s of processor time",
        ),
        (
            b"4\n",
            _end(STARTED, status=3),
            "failed, exception: case 2: the program ended its own process (status 3)",
        ),
        (b"4\n", _end(STARTED, why="wall"), "failed, timeout: case 2: 3 s on the wall clock"),
    ],
)
def test_a_script_is_judged_by_its_end_and_then_by_its_output(
    output: bytes, end: Ended, words: str
) -> None:
    assert _script_verdict(Case(b"", b"4"), output, end, "case 2", LIMITS).words == words


@pytest.mark.parametrize(
    ("word", "detail", "words", "category"),
    [
        ("PermissionError", "no", "failed, sandbox_violation: no", "sandbox_violation"),
        ("wrong_answer", "4", "failed, wrong_answer: 4", "wrong_answer"),
        ("Timeout", "x", "failed, exception: Timeout: x", "exception"),
        ("StopIteration", "", "failed, exception: StopIteration:", "exception"),
        ("KeyError", "'a'", "failed, KeyError: KeyError: 'a'", "exception"),
        ("exception", "x", "failed, exception: x", "exception"),
        ("wrong_answer", "a\nb \x00 " + "c" * 400, None, "wrong_answer"),
    ],
)
def test_a_failure_has_a_category_and_a_line(
    word: str, detail: str, words: str | None, category: str
) -> None:
    verdict = CodeVerdict.failed(word, detail)
    assert verdict.verdict is Verdict.FAILED
    assert verdict.category == category
    if words is None:
        assert verdict.detail.startswith("a b \ufffd c")
        assert len(verdict.detail) == 300
    else:
        assert verdict.words == words
