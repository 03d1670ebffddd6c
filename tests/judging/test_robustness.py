"""Whatever is killed while judgements are under way, each is made once, and made right."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from passhat.judging.bench import JudgePool
from passhat.judging.examiner import Examiner
from passhat.judging.inside import confinement as walls
from passhat.judging.inside import relay, server
from passhat.judging.inside.confinement import Confinement
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import Sandbox
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxKind
from passhat.judging.tasks import Case, CodeTask
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason, Verdict

TASK = CodeTask(
    "t",
    entry_point="f",
    tests="def check(f):\n    assert [f(i) for i in range(20)] == list(range(20))",
)
_KILLS = 10
RIGHT, WRONG = "def f(x): return x", "def f(x): return -x"


def test_killing_at_random_loses_nothing(best: SandboxKind, interpreter: Interpreter) -> None:
    chance = random.Random(6)
    others = frozenset(_below(os.getpid()))  # a browser or a server that other tests keep
    found: list[int] = []
    with JudgePool(best, interpreter, ProgramLimits(wall=120), jobs=2) as pool:
        for _ in range(_KILLS):
            # One kill per round, not by the clock: a busy machine must not be killed faster than
            # it works, nor work faster than it is killed.
            programs = [WRONG, RIGHT, RIGHT, RIGHT, WRONG, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT]
            judged = [pool.submit(TASK, program) for program in programs]
            _kill_at_random(chance, others)
            found += [int(one.result().verdict) for one in judged]
    assert found == [0, 1, 1, 1, 0, 1, 1, 1, 1, 1] * _KILLS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives programs a user id of their own")
def test_sandboxes_at_work_at_once_do_not_share_a_limit_of_threads(
    best: SandboxKind, interpreter: Interpreter, contained: Examiner
) -> None:
    """The kernel counts the threads of a user."""
    other = Examiner(best, interpreter, ProgramLimits(wall=120))
    program = "import os\ndef f(x): raise ValueError(f'user {os.getuid()}')"
    try:
        users = [examiner.judge(TASK, program).detail for examiner in (contained, other)]
    finally:
        other.close()
    assert all("user " in user for user in users), users
    assert users[0] != users[1]


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


def test_a_machine_that_stands_still_uses_up_no_time_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that nothing let work has not waited for so long."""
    looks: list[float] = []

    def an_hour_later() -> float:
        looks.append(3600.0 * len(looks))
        return looks[-1]

    clock = SimpleNamespace(monotonic=an_hour_later, clock_gettime=time.clock_gettime)
    monkeypatch.setattr(server, "time", clock)
    confinement = cast("Confinement", SimpleNamespace(confined=True, too_much=lambda: False))
    near, far = socket.socketpair()
    reading, writing = os.pipe()
    pid = os.posix_spawnp("sleep", ["sleep", "600"], {})
    with near, far, server._Words(reading) as words:
        limits = {"cpu": 60, "wall": 1}
        ended = server._watch(pid, limits, confinement, words, far, 0.0)
    os.close(reading)
    os.close(writing)
    assert ended["why"] == "wall"
    assert len(looks) > 1 / server._LONGEST_TICK


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


def _kill_at_random(chance: random.Random, others: frozenset[int]) -> None:
    """Kill a process of the judge, whichever: bubblewrap, its init, a server or a child."""
    time.sleep(chance.random() * 0.05)  # at any moment of a judgement
    while True:
        below = [pid for pid in _below(os.getpid()) if pid not in others]
        try:
            os.kill(chance.choice(below), signal.SIGKILL)
        except (IndexError, ProcessLookupError):  # none has started yet, or it has just ended
            time.sleep(0.001)
        else:
            return


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


def test_a_kernel_without_landlock_has_version_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "_call", lambda *_: -1)
    assert walls._landlock_version() == 0


WAITING = {
    "sleeps in steps": "import time\ndef f(x):\n    while True: time.sleep(0.001)",
    "sleeps at its import": "import time\ntime.sleep(3600)\ndef f(x): return x",
    "reads what is meant for its judge": (
        "import os\n"
        "def f(x):\n"
        "    for number in range(3, 64):\n"
        "        try: os.read(number, 1)\n"
        "        except OSError: pass"
    ),
}
APART = replace(TASK, tests=f"class Held: pass\nHeld.x = 1\n{TASK.tests}")
"""The tests have a process of their own."""


@pytest.fixture(scope="module")
def patient(best: SandboxKind, interpreter: Interpreter) -> Iterator[Examiner]:
    """Its limit of the wall clock is one that no test could wait for."""
    limits = ProgramLimits(cpu_seconds=0.5, wall=3600)
    made = Examiner(best, interpreter, limits, JudgeRules("split"))
    yield made
    made.close()


@pytest.mark.parametrize("task", [TASK, APART], ids=["series", "apart"])
@pytest.mark.parametrize("name", WAITING)
def test_a_program_that_only_waits_is_ended(patient: Examiner, name: str, task: CodeTask) -> None:
    assert patient.judge(task, WAITING[name]).why == FailureCategory.TIMEOUT


@pytest.mark.parametrize("first", ["", "import os; os.close(1)", "print(1, flush=True)"])
def test_a_script_that_only_waits_is_ended(patient: Examiner, first: str) -> None:
    program = f"{first}\nimport time\nwhile True: time.sleep(.001)"
    assert patient.judge(CodeTask("t", cases=(Case(b"", b"1"),)), program).why == "timeout"


BURNS = """
import os, time
def f(x):
    while True:
        for _ in range(8):
            if os.fork() == 0:
                begin = time.process_time()
                while time.process_time() - begin < 0.4: pass
                os._exit(0)
        for _ in range(8): os.wait()
"""


def test_a_program_that_only_starts_others_is_ended(
    best: SandboxKind, interpreter: Interpreter
) -> None:
    """Each of them stays below its limit."""
    examiner = Examiner(best, interpreter, ProgramLimits(cpu_seconds=0.5, wall=3600))
    try:
        assert examiner.judge(TASK, BURNS).verdict is Verdict.FAILED
    finally:
        examiner.close()


def test_a_script_that_drips_is_ended(patient: Examiner) -> None:
    program = "import time\nwhile True: print('1', end='', flush=True); time.sleep(.1)"
    assert patient.judge(CodeTask("t", cases=(Case(b"", b"1"),)), program).why == "timeout"


def test_one_process_that_only_waits_is_ended(best: SandboxKind, interpreter: Interpreter) -> None:
    limits = ProgramLimits(cpu_seconds=0.5, wall=3600)
    examiner = Examiner(best, interpreter, limits, JudgeRules("plain"))
    try:
        verdict = examiner.judge(TASK, WAITING["sleeps in steps"])
    finally:
        examiner.close()
    assert verdict.why == FailureCategory.TIMEOUT


def test_tests_that_only_wait_are_not_the_programs_fault(patient: Examiner) -> None:
    task = replace(TASK, tests="import time\ndef check(f): time.sleep(3600)")
    assert patient.judge(task, RIGHT).why == MissingReason.JUDGE_ERROR


def test_time_in_which_it_works_or_would_is_not_waiting(patient: Examiner) -> None:
    """Also that of processes that it starts, beside others that want the processor as well."""
    work = "import time\nwhile time.process_time() < 1.2: pass"
    program = (
        "import subprocess, sys\n"
        "def f(x):\n"
        "    if x == 0:\n"
        f"        for _ in range(3): subprocess.run([sys.executable, '-c', {work!r}], check=True)\n"
        "    return x"
    )
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        verdict = patient.judge(TASK, program)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert verdict.verdict is Verdict.PASSED, verdict
