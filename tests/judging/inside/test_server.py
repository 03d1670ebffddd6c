"""The fork server step by step: what it makes of jobs, words and limits, with no sandbox."""

from __future__ import annotations

import builtins
import gc
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging.inside import examine, program, server, wire


class _Left(BaseException):
    """The process has ended itself."""


class _Log:
    """Notes calls in their order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, name: str, result: object = None) -> Any:
        def call(*words: object, **named: object) -> object:
            parts = [*map(str, words), *(f"{key}={word}" for key, word in named.items())]
            self.lines.append(f"{name}({', '.join(parts)})")
            if isinstance(result, BaseException):
                raise result
            return result

        return call


@pytest.fixture
def log() -> _Log:
    return _Log()


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The judge's end and the server's end."""
    judge, control = socket.socketpair()
    for end in (judge, control):
        end.settimeout(30)
        end.setblocking(True)
    with judge, control:
        yield judge, control


@pytest.fixture
def phase() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        yield page


class _Walls:
    """A confinement that confines nothing."""

    confined = mounted = True
    scratch = "/scratch"

    def __init__(self, log: _Log, **parts: Any) -> None:
        self.freshen, self.enter = log.note("freshen"), log.note("enter")
        self.fork = log.note("fork", 77)
        self.full = False
        vars(self).update(parts)

    def too_much(self) -> bool:
        return self.full


def test_jobs_are_served_one_after_the_other_until_the_judge_is_gone(
    line: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, control = line
    seen: list[object] = []

    def run(job: object, walls: object, files: list[int], end: object, phase: mmap.mmap) -> None:
        seen.append([job, walls, [os.read(file, 9) for file in files], end is control, phase[0]])
        phase[0] = 1
        for file in files:
            os.close(file)

    monkeypatch.setattr(server, "_run", run)
    for number, words in enumerate((b"", b"-?w")):
        judge.sendall(words)  # words for an execution that is over
        file = wire.memory_file(b"brief %d" % number)
        socket.send_fds(judge, [b"+"], [file])
        os.close(file)
        wire.send(judge.fileno(), {"kind": number})
    judge.shutdown(socket.SHUT_WR)
    walls: Any = "walls"
    server._serve(control, walls)
    # A page of its own for each.
    assert seen == [
        [{"kind": 0}, "walls", [b"brief 0"], True, 0],
        [{"kind": 1}, "walls", [b"brief 1"], True, 0],
    ]


@pytest.mark.parametrize("kind", ["program", "tests"])
@pytest.mark.parametrize("waiting", [0, 1])
def test_an_execution_is_watched_and_its_end_reported(
    line: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    log: _Log,
    phase: mmap.mmap,
    kind: str,
    waiting: int,
) -> None:
    judge, control = line
    words = wire.frame(b'["started"]') + wire.frame(b'["more"]')
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
    child = os.dup(files[0])  # what the child would write its report to: found below

    def watch(
        pid: int, job: Any, walls: Any, report: Any, end: Any, start: float
    ) -> dict[str, int]:
        del job, walls
        assert (pid, end) == (77, control)
        assert 0 <= time.monotonic() - start < 60
        phase[0] = waiting
        report._content[: len(words)] = words
        report._size = len(words)
        return {"status": 3}

    monkeypatch.setattr(server, "_watch", watch)
    walls: Any = _Walls(log)
    server._run({"kind": kind}, walls, files, control, phase)
    os.close(child)
    assert log.lines == ["freshen()", "fork()"]
    assert wire.receive(judge.fileno()) == {"status": 3, "waiting": bool(waiting)}
    assert wire.receive_bytes(judge.fileno()) == words
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_the_child_is_told_its_ends(
    line: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    log: _Log,
    phase: mmap.mmap,
) -> None:
    _, control = line
    control = control.dup()

    def become(job: object, walls: object, files: list[int], report: int, page: object) -> None:
        del job, walls
        assert (files, page) == ([5], phase)
        wire.send(report, ["alive"])
        os.close(report)
        raise _Left

    made: list[tuple[int, int]] = []
    pipe = os.pipe

    def make_pipe() -> tuple[int, int]:
        made.append(pipe())
        reading = made[-1][0]
        copies.append(os.dup(reading))
        return made[-1]

    copies: list[int] = []
    monkeypatch.setattr(server, "_child", become)
    monkeypatch.setattr(os, "pipe", make_pipe)
    walls: Any = _Walls(log, fork=lambda: 0)
    with pytest.raises(_Left):
        server._run({"kind": "script"}, walls, [5], control, phase)
    assert control.fileno() == -1  # the child has no way to the judge
    assert wire.receive(copies[0]) == ["alive"]
    assert os.read(copies[0], 1) == b""
    os.close(copies[0])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made[0][0])


# -- the child -------------------------------------------------------------------------------------


def _become(
    monkeypatch: pytest.MonkeyPatch,
    log: _Log,
    phase: mmap.mmap,
    job: str,
    brief: object,
    **parts: Any,
) -> tuple[list[object], BaseException]:
    """What a child reports, and how it leaves; what it does is noted."""
    reading, writing = os.pipe()
    source = wire.memory_file(wire.frame(b"") if brief is None else b"")
    if brief is not None:
        wire.send(source, brief)
        os.lseek(source, 0, os.SEEK_SET)
    monkeypatch.setattr(os, "setsid", log.note("setsid"))
    monkeypatch.setattr(os, "_exit", lambda status: log.note("exit", _Left())(status))
    monkeypatch.setattr(server, "_work", log.note("work", parts.pop("failure", None)))
    monkeypatch.setattr(server, "_connect", log.note("connect"))
    walls: Any = _Walls(log, **parts)
    enabled = gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(BaseException) as left:  # noqa: PT011 - any way to leave
            server._child({"kind": job}, walls, [source, 91, 92], writing, phase)
        assert gc.isenabled()
    finally:
        (gc.enable if enabled else gc.disable)()
    os.close(writing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(source)
    reports = wire.frames(wire.read_all(reading))
    os.close(reading)
    log.lines = [line.replace(f", {writing}, ", ", REPORT, ") for line in log.lines]
    log.lines = [line.replace(str(phase), "PHASE") for line in log.lines]
    return reports, left.value


@pytest.mark.parametrize(
    ("job", "brief", "mounted", "folder"),
    [
        ("program", {"files": True}, True, "/scratch"),
        ("tests", {"files": True}, False, ""),
        ("tests", {"files": False}, True, ""),
        ("series", {}, True, ""),
        ("plain", {"files": True, "imports": ["json"]}, True, "/scratch"),
    ],
)
def test_a_child_is_confined_says_so_and_works(
    monkeypatch: pytest.MonkeyPatch,
    log: _Log,
    phase: mmap.mmap,
    job: str,
    brief: dict[str, Any],
    mounted: bool,
    folder: str,
) -> None:
    reports, left = _become(monkeypatch, log, phase, job, brief, mounted=mounted)
    assert reports == [["started"]]
    assert isinstance(left, _Left)
    work = f"work({{'kind': '{job}'}}, {brief}, [91, 92], REPORT, PHASE, {folder})"
    assert log.lines == ["setsid()", f"enter({{'kind': '{job}'}})", work, "exit(0)"]


def test_a_child_that_fails_at_its_work_has_ended_all_the_same(
    monkeypatch: pytest.MonkeyPatch, log: _Log, phase: mmap.mmap
) -> None:
    failure = ValueError("the work")
    reports, left = _become(monkeypatch, log, phase, "tests", {}, failure=failure)
    assert (reports, log.lines[-1]) == ([["started"]], "exit(0)")
    assert isinstance(left, _Left)


def test_tests_whose_module_is_absent_are_not_begun(
    monkeypatch: pytest.MonkeyPatch, log: _Log, phase: mmap.mmap
) -> None:
    reports, _ = _become(monkeypatch, log, phase, "plain", {"imports": ["json", "no_such_module"]})
    what = "the tests import no_such_module, which the sandbox does not have"
    assert reports[0] == ["untestable", what]
    assert log.lines[2] == "exit(0)"


def test_a_script_leaves_the_servers_loop(monkeypatch: pytest.MonkeyPatch, log: _Log) -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    reports, left = _become(monkeypatch, log, page, "script", {"program": "print(1)"})
    assert reports == []  # it says so before its report is its standard error
    assert isinstance(left, server._Script)
    assert left.source == "print(1)"
    assert page.closed
    assert log.lines[0] == "setsid()"
    assert log.lines[1].startswith("connect([91, 92], ")
    assert log.lines[2:] == ["enter({'kind': 'script'})"]


def test_a_child_that_cannot_be_confined_is_broken(
    monkeypatch: pytest.MonkeyPatch, log: _Log, phase: mmap.mmap
) -> None:
    refusal = log.note("enter", OSError("x" * 600))
    reports, left = _become(monkeypatch, log, phase, "tests", {}, enter=refusal)
    assert reports == [["broken", f"OSError: {'x' * 600}"[:500]]]
    assert isinstance(left, _Left)
    assert log.lines[2] == "exit(70)"


def test_the_ends_of_a_script_are_its_standard_streams(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    reading, report = os.pipe()
    with monkeypatch.context() as patched:
        patched.setattr(os, "dup2", log.note("dup2"))
        patched.setattr(os, "close", log.note("close"))
        server._connect([91, 92], report)
    assert wire.receive(reading) == ["started"]
    moves = ["dup2(91, 0)", "dup2(92, 1)", f"dup2({report}, 2)"]
    assert log.lines == [*moves, "close(91)", "close(92)", f"close({report})"]
    os.close(reading)
    os.close(report)


@pytest.mark.parametrize("kind", ["program", "series", "tests", "plain"])
def test_every_kind_of_job_is_done_by_its_part(
    monkeypatch: pytest.MonkeyPatch, log: _Log, kind: str
) -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    reading, report = os.pipe()
    other = os.dup(reading)
    monkeypatch.setattr(program, "serve", log.note("serve"))
    monkeypatch.setattr(examine, "examine_series", log.note("series"))
    monkeypatch.setattr(examine, "examine", log.note("examine", ("passed", "", "")))
    monkeypatch.setattr(examine, "examine_plain", log.note("plain", ("failed", "x", "y")))
    brief = {"program": "p"}
    server._work({"kind": kind}, brief, [other, 92, 93], report, page, "/f")
    expected = {
        "program": f"serve({other}, {brief}, /f)",
        "series": f"series({other}, [92, 93], {page})",
        "tests": f"examine({other}, {brief}, {page}, /f)",
        "plain": f"plain(p, {brief})",
    }
    assert log.lines[-1].partition("(")[0] == expected[kind].partition("(")[0]
    if not page.closed:
        assert log.lines == [expected[kind]]
    assert page.closed is (kind in ("program", "plain"))
    gone = []
    for name, descriptor in (("report", report), ("other", other)):
        try:
            os.fstat(descriptor)
        except OSError:
            gone.append(name)
        else:
            os.close(descriptor)
    assert gone == {"program": ["report"], "plain": ["other"]}.get(kind, [])
    said = wire.frames(wire.read_all(reading))
    os.close(reading)
    words = {"tests": ["examined", "passed", "", ""], "plain": ["examined", "failed", "x", "y"]}
    assert said == ([words[kind]] if kind in words else [])


# -- the watch -------------------------------------------------------------------------------------

LIMITS = {"cpu": 50.0, "wall": 50.0}


class _Watched:
    """A process of ours that the server watches, with the pipe of its report."""

    def __init__(self, command: str, log: _Log) -> None:
        self.judge, self.control = socket.socketpair()
        reading, writing = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, writing, 1)]
        self.pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], {}, file_actions=actions)
        os.close(writing)
        self.reading = reading
        self.words = server._Words(reading)
        self.walls: Any = _Walls(log)

    def watch(self, **limits: float) -> dict[str, Any]:
        start = time.monotonic()
        job = {**LIMITS, **limits}
        try:
            return server._watch(self.pid, job, self.walls, self.words, self.control, start)
        finally:
            with pytest.raises(ProcessLookupError):
                os.kill(self.pid, 0)
            os.close(self.reading)
            self.judge.close()
            self.control.close()


def test_an_execution_that_ends_has_its_status_times_and_words(log: _Log) -> None:
    ending = _Watched("printf hello; exit 3", log)
    found = ending.watch()
    assert (found["why"], found["status"]) == ("ended", 3)
    assert 0 <= found["cpu"] < 5
    assert 0 <= found["seconds"] < 60
    assert bytes(ending.words._content[: ending.words._size]) == b"hello"
    killed = _Watched("kill -9 $$", log).watch()
    assert (killed["why"], killed["status"]) == ("ended", -9)


def test_what_is_said_last_is_read_and_the_end_of_a_report_is_none(log: _Log) -> None:
    ending = _Watched("exec 1>&-; read x < /dev/null; exit 0", log)
    assert ending.watch()["why"] == "ended"
    assert ending.words._size == 0


@pytest.mark.parametrize(("word", "why"), [(b"-", "stopped"), (b"w", "wall"), (b"?", "stopped")])
def test_a_word_of_the_judge_ends_it(
    log: _Log, monkeypatch: pytest.MonkeyPatch, word: bytes, why: str
) -> None:
    monkeypatch.setattr(server, "_MOMENT_MS", 10)
    watched = _Watched("exec sleep 60", log)
    watched.judge.send(word)
    found = watched.watch()
    assert (found["why"], found["status"]) == (why, -signal.SIGKILL)


def test_one_that_should_be_ending_gets_a_moment(log: _Log) -> None:
    watched = _Watched("read x < /dev/null; exit 4", log)
    watched.judge.send(b"?")
    found = watched.watch()
    assert (found["why"], found["status"]) == ("ended", 4)


def test_without_a_judge_it_is_over(log: _Log) -> None:
    watched = _Watched("exec sleep 60", log)
    watched.judge.shutdown(socket.SHUT_WR)
    with pytest.raises(wire.Closed):
        watched.watch()


@pytest.mark.parametrize(("limit", "why"), [("wall", "wall"), ("cpu", "cpu"), ("files", "files")])
def test_a_limit_ends_it(log: _Log, monkeypatch: pytest.MonkeyPatch, limit: str, why: str) -> None:
    monkeypatch.setattr(server, "_TICK_MS", 1)
    watched = _Watched("exec sleep 60", log)
    watched.walls.full = limit == "files"
    found = watched.watch(**({} if limit == "files" else {limit: -1.0 if limit == "cpu" else 0.0}))
    assert (found["why"], found["status"]) == (why, -signal.SIGKILL)


def test_a_child_without_walls_is_ended_with_its_group(
    log: _Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "killpg", log.note("killpg", ProcessLookupError()))
    monkeypatch.setattr(os, "kill", log.note("kill", ProcessLookupError()))
    walls: Any = _Walls(log)
    server._kill(5, walls)
    walls.confined = False
    server._kill(5, walls)
    assert log.lines == ["kill(5, 9)", "killpg(5, 9)", "kill(5, 9)"]


def test_clocks_count_late_ticks_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0, 0.0]
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(server, "_cpu_time", lambda _pid: now[1])
    monkeypatch.setattr(server, "_TICK_MS", 62.5)
    clock = server._Clock(5, 10.0)
    course = []
    for at, worked in ((10.0625, 0.0), (10.15625, 0.0), (20.0, 0.5), (20.25, 1.0), (20.5, 1.5)):
        now[:] = at, worked
        course.append((clock.is_due(), clock.limit_reached({"cpu": 1.0, "wall": 0.75})))
    assert course == [(False, ""), (True, ""), (True, ""), (True, ""), (True, "cpu")]
    assert clock._wall == 0.90625
    assert clock.limit_reached({"cpu": 2.0, "wall": 0.90625}) == ""
    now[0] += 0.03125
    assert clock.limit_reached({"cpu": 2.0, "wall": 0.90625}) == "wall"


def test_the_processor_time_of_a_process() -> None:
    before = time.process_time()
    assert before <= server._cpu_time(os.getpid()) <= time.process_time() + 0.1
    assert server._cpu_time(2**22 + 1) == 0.0


def test_of_a_long_report_the_beginning_and_the_end_are_kept(
    line: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_REPORT", 8)
    monkeypatch.setattr(server, "_HALF", 4)
    reading, writing = os.pipe()
    with server._Words(reading) as words:
        assert not words.read()  # nothing yet
        os.write(writing, b"abcdefghijklmnop")
        assert words.read()
        os.write(writing, b"QRST")
        assert words.read()
        os.write(writing, b"uv")
        assert words.read()
        os.close(writing)
        assert not words.read()  # its end
        judge, control = line
        words.pass_on(control.fileno())
    assert wire.receive_bytes(judge.fileno()) == b"abcdefghuvmnopQRST"[:8] + b"QRSTuv"
    assert words._content.closed
    os.close(reading)


# -- the beginning ---------------------------------------------------------------------------------


def test_what_a_server_loads_and_sets_before_the_first_child(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    made: list[object] = []

    def confine(setup: object) -> str:
        made.append(setup)
        return "walls"

    monkeypatch.setattr(server, "Confinement", confine)
    monkeypatch.setattr(
        server, "gc", SimpleNamespace(collect=log.note("collect"), freeze=log.note("freeze"))
    )
    monkeypatch.setattr(sys, "path", ["a"])
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "9")
    leave = builtins.exit
    monkeypatch.delattr(builtins, "exit")
    setup = {"packages": ["b", "c"]}
    walls: Any = server._prepare(setup)
    assert walls == "walls"
    assert made == [setup]
    assert sys.path == ["a", "b", "c"]
    assert (os.environ["OPENBLAS_NUM_THREADS"], os.environ["OMP_NUM_THREADS"]) == ("1", "1")
    assert repr(builtins.exit) == repr(leave)
    assert log.lines == ["collect()", "freeze()"]


@pytest.mark.parametrize("end", ["closed", "broken", "script", "over", "unavailable"])
def test_a_server_greets_serves_and_ends(
    line: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    log: _Log,
    end: str,
) -> None:
    judge, control = line
    system = SimpleNamespace(
        dup=lambda at: 33 if at == 0 else at,
        open=log.note("open", 9),
        dup2=log.note("dup2"),
        devnull="null",
        O_RDWR=2,
    )
    failures = {"broken": wire.Closed(), "script": server._Script("print(2)")}
    monkeypatch.setattr(server, "os", system)
    ends = {33: control}
    monkeypatch.setattr(server, "socket", SimpleNamespace(socket=lambda fileno: ends[fileno]))
    monkeypatch.setattr(server, "_serve", log.note("serve", failures.get(end)))
    monkeypatch.setattr(program, "run_script", log.note("run"))
    walls = SimpleNamespace(mounted=True)
    refusal = ValueError("no walls") if end == "unavailable" else walls
    monkeypatch.setattr(server, "_prepare", log.note("prepare", refusal))
    if end == "closed":
        judge.shutdown(socket.SHUT_WR)
    else:
        wire.send(judge.fileno(), {"set": "up"})
    was_script = server.main()
    assert was_script is (end == "script")
    hello = wire.receive(judge.fileno())
    begin = ["open(null, 2)", "dup2(9, 0)"]
    if end in ("closed", "unavailable"):
        why = "Closed: " if end == "closed" else "ValueError: no walls"
        assert hello == {"ready": False, "why": why}
        assert log.lines[:2] == begin
        assert "dup2(9, 1)" not in log.lines  # what it complains about is still heard
        return
    assert hello == {"ready": True, "mounted": True}
    assert log.lines[:5] == [*begin, "prepare({'set': 'up'})", "dup2(9, 1)", "dup2(9, 2)"]
    assert [line for line in log.lines if line.startswith("run")] == (
        ["run(print(2))"] if was_script else []
    )
