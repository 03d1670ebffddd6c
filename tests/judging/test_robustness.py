"""Whatever is killed while judgements are under way, each is made once, and made right."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import socket
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import pytest

from passhat.judging.bench import judge_all
from passhat.judging.examiner import Examiner
from passhat.judging.inside import relay
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import Sandbox, SandboxKind
from passhat.judging.sandbox_kinds import ProgramLimits
from passhat.judging.tasks import CodeTask

TASK = CodeTask(
    "t",
    entry_point="f",
    tests="def check(f):\n    assert [f(i) for i in range(20)] == list(range(20))",
)
_JUDGED_PER_KILL = 10
RIGHT, WRONG = "def f(x): return x", "def f(x): return -x"


def test_killing_at_random_loses_nothing(best: SandboxKind, interpreter: Interpreter) -> None:
    work = [(TASK, WRONG if number % 4 == 0 else RIGHT) for number in range(200)]
    turns: SimpleQueue[bool] = SimpleQueue()
    killed: list[int] = []
    others = frozenset(_below(os.getpid()))  # a browser or a server that other tests keep
    killer = threading.Thread(target=_kill_at_random, args=(turns, killed, others))
    killer.start()
    found = []
    try:
        for judged in judge_all(work, kind=best, interpreter=interpreter, jobs=2):
            found.append(judged)
            # By progress, not by the clock: a busy machine must not be killed faster than it works.
            if len(found) % _JUDGED_PER_KILL == 0:
                turns.put(True)
    finally:
        turns.put(False)
        killer.join()
    assert sorted(position for position, _ in found) == list(range(200))
    wrong = [
        judgement
        for position, judgement in found
        if int(judgement.verdict) != (0 if position % 4 == 0 else 1)
    ]
    assert wrong == []
    assert len(killed) >= 10


def test_a_pool_may_be_closed_at_any_moment_of_a_start(
    best: SandboxKind, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the program that is judged next would be waited for, for as long as it may take."""
    examiner = Examiner(best, interpreter, ProgramLimits())
    real = Sandbox._launch_process

    def launch(sandbox: Sandbox, theirs: socket.socket) -> None:
        examiner.abandon()  # there is nothing yet that could be killed
        real(sandbox, theirs)

    monkeypatch.setattr(Sandbox, "_launch_process", launch)
    try:
        judged = examiner.judge(TASK, "import time\ntime.sleep(3600)")
    finally:
        examiner.close()
    assert judged.why == "stopped"
    assert (examiner.programs.starts, examiner.tests.starts) == (1, 0)


def test_a_jobs_stream_is_seen_before_its_report_can_come() -> None:
    """What comes of a stream behind the report would be taken for that of the next job."""
    seen: list[bool] = []

    class Control:
        """A fork server that has its report ready as soon as it is asked."""

        def sendmsg(self, *_: object) -> None:
            seen.append(bool(select.select([watched], [], [], 0)[0]))

        sendall = sendmsg

    passing = relay._Relay(cast("socket.socket", Control()))
    watched = passing._woken
    try:
        passing._begin(b"s")
        assert seen == [True, True]
    finally:
        assert passing._stream is not None
        for descriptor in (passing._stream, passing._woken, passing._wake):
            os.close(descriptor)


def _kill_at_random(turns: SimpleQueue[bool], killed: list[int], others: frozenset[int]) -> None:
    """Kill a process of the judge, whichever: bubblewrap, its init, a server or a child."""
    chance = random.Random(6)
    while turns.get():
        time.sleep(chance.random() * 0.05)  # at any moment of a judgement
        below = [pid for pid in _below(os.getpid()) if pid not in others]
        if below:
            victim = chance.choice(below)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)


def _below(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
            except OSError:
                continue
    found: list[int] = []
    border = {root}
    while border:
        border = {pid for pid, parent in parents.items() if parent in border}
        found += sorted(border)
    return found
