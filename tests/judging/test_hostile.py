"""No hostile program passes, none does harm, and nothing is left behind."""

from __future__ import annotations

import os
import runpy
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from passhat.judging.commands import DEVICES
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox_check import examine_machine
from passhat.judging.sandbox_kinds import ProgramLimits, SandboxKind, SandboxSpec
from passhat.judging.tasks import Case, CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

PROGRAMS = runpy.run_path(str(Path(__file__).with_name("hostile.py")))
HOSTILE: dict[str, str] = PROGRAMS["HOSTILE"]
ENDINGS: dict[str, str] = PROGRAMS["ENDINGS"]
SCRIPTS: dict[str, str] = PROGRAMS["SCRIPTS"]
NOTES: dict[str, tuple[str, str]] = PROGRAMS["NOTES"]

TESTS = '''
def check(candidate):
    """hidden tests of total"""
    for xs in ([1, 2], [5], []):
        assert candidate(list(xs)) == sum(xs) + 7391
        assert abs(candidate(list(xs)) - (sum(xs) + 7391)) < 1e-6
'''
RIGHT = "def total(xs):\n    return sum(xs) + 7391\n"
TASK = CodeTask("total", entry_point="total", tests=TESTS, canonical=RIGHT)
CATEGORIES = {
    "infinite loop": "timeout",
    "memory bomb": "memory",
    "fork bomb": "exception",
    "connects to loopback": "exception",
    "a verdict of its own": "sandbox_violation",
    "a verdict of its own, then something unsupported": "judges_disagree",
    "exits with 0": "exception",
    "segmentation fault": "exception",
    "takes its time to end": "sandbox_violation",
    "closes every descriptor": "sandbox_violation",
}
MOST_CPU = 2 * (1 + 2 + 1)
"""Seconds of processor time that two judges may spend on a program of the fixture ``examiner``: its
limit of half a second as the kernel counts it, which is what holds where the fork server stands
still, and a second for the kernel to notice."""
WAITING = ("a thread that never ends",)
"""Scripts that only the wall clock ends."""
SWALLOWING = CodeTask(
    "total",
    entry_point="total",
    tests="def check(candidate):\n    try:\n        candidate([1])\n    except:\n        pass\n",
)


@dataclass(frozen=True)
class Bait:
    home: Path
    secret: Path
    port: int
    listener: socket.socket

    def fill(self, program: str) -> str:
        for name, value in (("home", self.home), ("secret", self.secret), ("port", self.port)):
            program = program.replace(f"{{{name}}}", str(value))
        return program.replace("{{}}", "{}")


@pytest.fixture(scope="module", autouse=True)
def already_there() -> set[int]:
    """Processes that earlier tests keep, such as a browser; autouse, to be counted first."""
    return _descendants()


@pytest.fixture(scope="module")
def bait(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bait]:
    home = tmp_path_factory.mktemp("home")
    (home / "secret").write_text("hidden tests of total")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0)
        yield Bait(home, home / "secret", listener.getsockname()[1], listener)


def test_a_right_program_passes(examiner: Examiner) -> None:
    judged = examiner.judge(TASK, RIGHT)
    assert judged.verdict is Verdict.PASSED


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_program_passes(
    name: str, examiner: Examiner, bait: Bait, already_there: set[int]
) -> None:
    before = _watched(bait)
    judged = examiner.judge(TASK, bait.fill(HOSTILE[name]))
    assert judged.verdict is not Verdict.PASSED, judged
    assert judged.verdict is Verdict.FAILED or judged.why == "judges_disagree", judged
    assert judged.category == CATEGORIES.get(name, judged.category), judged
    assert _watched(bait) == before
    with pytest.raises(BlockingIOError):
        bait.listener.accept()
    # Two sandboxes: bubblewrap, its init and the server, each; and the tests, which may go on.
    assert len(_descendants() - already_there) <= 7


def _watched(bait: Bait) -> dict[str, tuple[int, ...]]:
    """Mode, owner, times and size of what a program might change outside of its own folders."""
    kept = {}
    for path in (bait.home, bait.secret, Path(os.__file__), *map(Path, DEVICES)):
        state = path.stat()
        kept[str(path)] = (
            *(state.st_mode, state.st_uid, state.st_gid, state.st_mtime_ns, state.st_ctime_ns),
            state.st_size,
        )
    return kept | {"names": tuple(map(hash, sorted(path.name for path in bait.home.iterdir())))}


@pytest.mark.parametrize("name", ENDINGS)
def test_an_ending_that_a_program_chooses_is_its_failure(name: str, examiner: Examiner) -> None:
    judged = examiner.judge(TASK, ENDINGS[name])
    assert judged.verdict is Verdict.FAILED, judged
    assert judged.cpu_seconds <= MOST_CPU


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in WAITING])
def test_a_script_cannot_forge_its_way(name: str, examiner: Examiner) -> None:
    task = CodeTask("s", cases=(Case(b"1 2\n", b"3\n"),))
    assert examiner.judge(task, SCRIPTS[name]).verdict is Verdict.FAILED, name
    assert examiner.judge(task, "print(sum(map(int, input().split())))").verdict is Verdict.PASSED


def test_no_note_survives_to_the_next_attempt(examiner: Examiner) -> None:
    task = CodeTask("note", tests="assert f() == '7391'")
    found = []
    for place, (leave, read) in NOTES.items():
        for program in (f"{leave}\ndef f(): return 0", f"def f(): return {read}"):
            judged = examiner.judge(task, program)
        if judged.verdict is Verdict.PASSED:
            found.append(place)
    assert found == []


LOCKS = """
import fcntl, os
def f(): return '7391' if seen(fcntl.flock) or seen(fcntl.lockf) else '0'
def seen(lock):
    one, other = open(os.__file__), open(os.__file__)
    lock(one, fcntl.LOCK_SH)
    try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: return True
    try: return fcntl.fcntl(other, fcntl.F_GETLK, bytes(32)) != bytes(32)
    except OSError: return False
"""


def test_a_lock_on_a_shared_file_is_seen_by_nobody(examiner: Examiner) -> None:
    """Else attempts at the same time could signal to each other."""
    task = CodeTask("lock", tests="assert f() == '7391'")
    assert examiner.judge(task, LOCKS).why == "wrong_answer"


COUNTERS = {
    "pid": "os.getpid()",
    "file": "os.stat(open('/tmp/x', 'w').fileno()).st_ino",
    "folder": "(os.mkdir('/dev/shm/x'), os.stat('/dev/shm/x').st_ino)[1]",
}


@pytest.mark.parametrize("name", COUNTERS)
def test_a_program_cannot_count_the_programs_before_it(name: str, examiner: Examiner) -> None:
    """Else the k-th attempt would know that it is the k-th, and could try the k-th answer."""
    seen = set()
    for others in range(4):
        for _ in range(others):
            examiner.judge(CodeTask("other", tests="assert f() == 1"), "def f(): return 1")
        program = f"import os\ndef f(): return {COUNTERS[name]}"
        task = CodeTask("count", tests="number = f()\nassert False, str(number)")
        seen.add(examiner.judge(task, program).detail)
    assert len(seen) == 1, seen


INSIDE = {
    "processes": """
import multiprocessing
def f():
    with multiprocessing.get_context("fork").Pool(2) as pool: return pool.map(abs, [-1, 2])
""",
    "another Python": """
import subprocess, sys
def f():
    command = [sys.executable, "-I", "-S", "-c", "print('[1, 2]')"]
    return eval(subprocess.run(command, capture_output=True, text=True).stdout)
""",
    "loopback": """
import socket
def f():
    server = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(server.getsockname())
    server.accept()[0].sendall(bytes([1, 2]))
    return list(near.recv(2))
""",
    "shared memory": """
from multiprocessing.shared_memory import SharedMemory
def f():
    shared = SharedMemory(create=True, size=2)
    shared.buf[:2] = bytes([1, 2])
    result = list(shared.buf[:2])
    shared.close()
    shared.unlink()
    return result
""",
}
PLAIN_DATA = CodeTask("inside", tests="assert f() == [1, 2]")


def test_processes_and_connections_are_open_inside(
    kind: SandboxSpec, interpreter: Interpreter
) -> None:
    """In namespaces of its own; the hostile programs above are tried there as well."""
    examiner = Examiner(kind, interpreter, ProgramLimits())
    try:
        words = {name: examiner.judge(PLAIN_DATA, INSIDE[name]).words for name in INSIDE}
        assert words == dict.fromkeys(INSIDE, "passed")
        # A sandbox that has no namespaces to give cannot judge them.
        examiner.programs.has_namespaces = False
        judged = examiner.judge(PLAIN_DATA, INSIDE["processes"])
        assert (judged.verdict, judged.why) == (Verdict.MISSING, "unsupported"), judged
        judged = examiner.judge(PLAIN_DATA, "def f(): return open('/etc/shadow')")
        assert judged.verdict is Verdict.FAILED
    finally:
        examiner.close()


def test_the_self_test_finds_no_channel_but_those_that_are_known(
    kind: SandboxSpec, interpreter: Interpreter
) -> None:
    finding = examine_machine(interpreter, kind)
    assert finding.holds, str(finding)
    assert finding.channels == ("pipes", "clock")


def test_nothing_says_when_the_last_program_wrote_a_file(examiner: Examiner) -> None:
    """The time since when /tmp is there would be a note that each later program can read."""
    task = CodeTask("note", tests="assert f() == 0")
    examiner.judge(task, "open('/tmp/x', 'w')\ndef f(): return 0")
    examiner.judge(task, "def f(): return 0")
    coarse = 0.01  # the clock of files
    tests = f"assert f() > {time.time() - coarse}"
    program = "import os\ndef f(): return os.stat('/tmp').st_ctime"
    assert examiner.judge(CodeTask("age", tests=tests), program).verdict is Verdict.PASSED


def test_a_long_report_leaves_no_trace_in_the_fork_server(examiner: Examiner) -> None:
    """Later programs inherit its heap: its size, and from which size on memory is mapped."""
    script = CodeTask("s", cases=(Case(b"", b"x"),))
    look = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
top = libc.sbrk(0)
raise ValueError([top, *(libc.malloc(n) < top + (1 << 24) for n in range(120000, 300000, 20000))])
"""
    before = examiner.judge(script, look).detail
    for size in (50_000, 150_000, 300_000):
        examiner.judge(script, f"import sys\nsys.stderr.write('x' * {size})\nsys.exit(1)")
        assert examiner.judge(script, look).detail == before


@pytest.mark.parametrize("name", ["exits with 0", "noise on every descriptor"])
def test_tests_that_swallow_everything_do_not_pass_it(name: str, examiner: Examiner) -> None:
    assert examiner.judge(SWALLOWING, HOSTILE[name]).verdict is Verdict.FAILED


def test_waiting_instead_of_working_ends_by_the_wall_clock(
    best: SandboxKind, interpreter: Interpreter
) -> None:
    """A limit that ends a program before it began is the sandbox's fault, and tried again."""
    examiner = Examiner(best, interpreter, ProgramLimits(cpu_seconds=60, wall=1))
    script = CodeTask("s", cases=(Case(b"1 2\n", b"3\n"),))
    try:
        judged = [
            examiner.judge(TASK, "import time\ndef total(xs): time.sleep(3600)"),
            examiner.judge(TASK, "import time\ntime.sleep(3600)"),
            examiner.judge(script, SCRIPTS["a thread that never ends"]),
        ]
    finally:
        examiner.close()
    assert [one.why for one in judged] == ["timeout"] * 3
    assert all("wall clock" in one.detail for one in judged)


def test_nothing_is_left_when_a_judge_ends(best: SandboxKind, interpreter: Interpreter) -> None:
    before = _descendants()
    examiner = Examiner(best, interpreter, ProgramLimits(cpu_seconds=1))
    examiner.judge(TASK, HOSTILE["daemon"])
    examiner.close()
    deadline = time.monotonic() + 60
    while _descendants() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _descendants() <= before


def _descendants() -> set[int]:
    """Processes below this one, zombies that others will reap left out."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found: set[int] = set()
    border = {os.getpid()}
    while border:
        border = {pid for pid, parent in parents.items() if parent in border}
        found |= border
    return found
