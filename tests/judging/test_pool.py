"""The order of judgements in a pool; and one that is closed ends at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passhat.judging.bench import JudgePool, judge_all
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_kinds import ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import Verdict

TASK = CodeTask("t", entry_point="f", tests="def check(f):\n    assert f() == 1")


def test_a_worker_that_is_just_starting_its_sandboxes_does_not_go_on(
    best: SandboxKind, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the question whether it was given up and the first process there is a moment."""
    start = Examiner.start

    def given_up_meanwhile(examiner: Examiner) -> None:
        examiner.abandon()
        start(examiner)

    monkeypatch.setattr(Examiner, "start", given_up_meanwhile)
    with JudgePool(best, interpreter, ProgramLimits(cpu_seconds=20)) as pool:
        judged = pool.submit(TASK, "def f():\n    while True: pass").result(timeout=300)
    assert judged.category == "stopped"


def _record_order(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Replace both judges; the order in which they are asked."""
    order: list[tuple[str, str, str]] = []

    def judge(_self: Examiner, task: CodeTask, program: str, judge: str) -> CodeVerdict:
        order.append((task.id, program, judge))
        return CodeVerdict.passed()  # nothing exact: plain has to be asked, too

    monkeypatch.setattr(Examiner, "_judge_with_retries", judge)
    return order


def test_plain_waits_for_the_last_split_of_its_task(
    monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter
) -> None:
    """A program that reads its tests in plain must find no execution to tell them to."""
    order = _record_order(monkeypatch)
    tasks = [replace(TASK, id=name) for name in "ab"]
    work = [(task, f"{number}") for number in range(20) for task in tasks]
    verdicts = dict(judge_all(work, kind=SandboxKind.NONE, interpreter=interpreter, jobs=3))
    assert len(verdicts) == len(work)
    assert len(order) == 2 * len(work)
    for name in "ab":
        judges = [judge for task, _, judge in order if task == name]
        assert judges == ["split"] * 20 + ["plain"] * 20
    # In an order that tells a program nothing: as given once in 40! times.
    programs = [(task, program) for task, program, judge in order if judge == "split"]
    assert programs != [(task.id, program) for task, program in work]


def test_plain_waits_for_attempts_in_flight_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter
) -> None:
    order = _record_order(monkeypatch)
    with JudgePool(SandboxKind.NONE, interpreter) as pool:
        late, failed = pool.expect(TASK), pool.expect(TASK)
        first = pool.submit(TASK, "first")
        other = pool.submit(replace(TASK, id="other"), "x")
        assert other.result(timeout=60).verdict is Verdict.PASSED
        assert not first.done()
        pool.forgo(TASK, failed)
        second = pool.submit(TASK, "second", late)
        # One that begins now is not waited for: else a long run would never ask plain.
        pool.expect(TASK)
        assert {one.result(timeout=60).verdict for one in (first, second)} <= {Verdict.PASSED}
    judges = [(program, judge) for task, program, judge in order if task == TASK.id]
    assert judges[:2] == [("first", "split"), ("second", "split")]
