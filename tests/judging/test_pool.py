"""A pool that is closed ends at once, whatever its workers are at."""

from __future__ import annotations

import pytest

from passhat.judging.bench import JudgePool
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import SandboxKind
from passhat.judging.sandbox_kinds import ProgramLimits
from passhat.judging.tasks import CodeTask

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
