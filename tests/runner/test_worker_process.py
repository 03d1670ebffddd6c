"""What happens in the processes of agents, looked at from inside: answers, traces, and ends."""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import decimal
import gc
import logging
import os
import pickle
import random
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from passhat.agents.base import AgentFault, AttemptInfo, ModelCall, Usage
from passhat.agents.function import FunctionAgent
from passhat.errors import RunStopped
from passhat.runner import worker_process
from passhat.runner.boundary import BackgroundErrors
from passhat.runner.worker_process import EXIT, SIZE, Reply, _Work
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Turn, WorldFault


class _Ended(BaseException):
    """The process has ended itself."""


class _Log:
    """Notes calls in their order; answers may be a value, a list of values, or an exception."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, name: str, answer: object = None) -> Callable[..., Any]:
        def call(*words: object, **named: object) -> Any:
            self.lines.append(f"{name}({', '.join(map(str, (*words, *named.values())))})")
            said = answer.pop(0) if isinstance(answer, list) else answer
            if isinstance(said, BaseException):
                raise said
            return said

        return call


@pytest.fixture
def log() -> _Log:
    return _Log()


def _work(agent: Callable[..., object], end: int = -1) -> Any:
    """A worker in this process, which stays as it is."""
    work: Any = object.__new__(_Work)
    work._end, work._pid, work._agent = end, os.getpid(), FunctionAgent(agent)
    work._session, work._info = None, AttemptInfo("", 1, 0)
    work._loop, work._errors = asyncio.new_event_loop(), BackgroundErrors()
    work._loop.set_exception_handler(work._errors)
    work._before, work._settings = (
        worker_process._process_state(),
        worker_process._module_settings(),
    )
    work._context = contextvars.copy_context()
    return work


@contextmanager
def _working(agent: Callable[..., object] = str, end: int = -1) -> Iterator[Any]:
    work = _work(agent, end)
    try:
        yield work
    finally:
        work._loop.close()


INFO = AttemptInfo("t", 2, 7)


class _Text(str):
    """Text that is more than text."""


def _raise(error: BaseException) -> Callable[[str], str]:
    def answer(_prompt: str) -> str:
        raise error

    return answer


async def _missing(prompt: str) -> str:
    raise WorldFault(MissingReason.USER_ERROR, f"left at {prompt}")


async def _late(prompt: str) -> str:
    await asyncio.sleep(0)
    return f"late {prompt}"


ANSWERS: dict[str, tuple[Callable[..., object], dict[str, object]]] = {
    "text": (lambda prompt: f"to {prompt}", {"text": "to q"}),
    "a subclass": (lambda _: _Text("yes"), {"text": "yes"}),
    "awaited": (_late, {"text": "late q"}),
    "a number": (
        lambda _: 7, {"fault": "format_error", "detail": "answered 7 (int), not text: expected"},
    ),
    "an exception": (
        _raise(KeyError("k")), {"fault": "exception", "detail": "KeyError: 'k' ("},
    ),
    "an exit": (
        _raise(SystemExit(3)),
        {"fault": "exception", "detail": "SystemExit: 3 (", "is_last": True},
    ),
    "the end of an iterator": (
        _raise(StopIteration()), {"fault": "exception", "detail": "StopIteration"},
    ),
    "a fault of the world": (
        _raise(WorldFault(MissingReason.USER_ERROR, "x")),
        {"fault": "exception", "detail": "WorldFault"},
    ),
    "a fault of the world, awaited": (_missing, {"missing": "user_error", "detail": "left at q"}),
    "a fault": (
        _raise(AgentFault(FailureCategory.REFUSED, "no")), {"fault": "refused", "detail": "no"},
    ),
    "a stop": (_raise(RunStopped("enough")), {"stopped": "enough"}),
    "a stop with a hint": (
        _raise(RunStopped("enough", hint="more")), {"stopped": "enough", "detail": "more"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_and_every_other_end_is_a_reply(name: str) -> None:
    agent, expected = ANSWERS[name]
    with _working(agent) as work:
        reply = work._answer(INFO, Turn("q"))
    parts = msgspec.to_builtins(reply)
    assert parts.get("detail", "").startswith(str(expected.get("detail", "")))
    assert {**parts, "detail": ""} == {**expected, "detail": ""}
    assert type(reply.text) in (str, type(None))


def test_a_reply_has_what_its_turn_used_and_no_more() -> None:
    def answer(prompt: str, attempt: AttemptInfo) -> str:
        seen.append((attempt.task, attempt.number, attempt.seed))
        if prompt != "nothing":
            attempt.meter.settle(Usage(7, 0.25))
            attempt.meter.record(ModelCall(prompt))
            attempt.meter.retries += 2
        return prompt

    seen: list[tuple[str, int, int]] = []
    calls: list[list[str]] = []
    parts = []
    with _working(answer) as work:
        for info, prompt in ((INFO, "a"), (None, "nothing"), (None, "b"), (INFO, "c")):
            reply = work._answer(info, Turn(prompt))
            calls.append([call.name for call in reply.calls])
            parts.append((reply.has_usage, reply.tokens, reply.cost, reply.retries))
        assert work._info.meter is not INFO.meter
    used = (True, 7, 0.25, 2)
    assert parts == [used, (False, None, None, 0), used, used]
    assert calls == [["a"], [], ["b"], ["c"]]
    assert seen == [("t", 2, 7)] * 4


def test_usage_that_became_unknown_is_unknown() -> None:
    assert worker_process._difference(None, 5.0) == 5.0
    assert worker_process._difference(2.0, 5.0) == 3.0
    assert worker_process._difference(2.0, None) is None


def test_a_context_is_that_of_one_attempt() -> None:
    kept = contextvars.ContextVar("kept", default="nothing")

    def answer(prompt: str) -> str:
        before = kept.get()
        kept.set(prompt)
        return before

    with _working(answer) as work:
        turns = ((INFO, "a"), (None, "b"), (INFO, "c"))
        texts = [work._answer(info, Turn(word)).text for info, word in turns]
    assert texts == ["nothing", "a", "nothing"]
    assert kept.get() == "nothing"


# -- what an attempt leaves behind -----------------------------------------------------------------


@pytest.fixture
def childless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may have left processes of ours."""
    monkeypatch.setattr(worker_process, "_has_children", lambda: False)


@pytest.mark.usefixtures("childless")
def test_a_process_as_it_was_is_used_again() -> None:
    with _working() as work:
        assert not work._has_changed()
        timer = work._loop.call_later(50, print)
        timer.cancel()
        assert not work._has_changed()
        sys.modules["passhat_worker_test"] = sys
        try:
            assert not work._has_changed()
        finally:
            del sys.modules["passhat_worker_test"]


def _patch_loop(name: str, value: object) -> Callable[[Any, pytest.MonkeyPatch], None]:
    return lambda work, _: getattr(work._loop, name)(value)


def _leave_task(work: Any, _: object) -> None:
    work._loop.create_task(asyncio.sleep(0))


def _leave_descriptor(_: object, patch: pytest.MonkeyPatch) -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    # What is patched last is undone first.
    patch.setattr(os, "getcwd", os.getcwd)
    OPEN.append(descriptor)


def _leave_nonblocking(_: object, __: object) -> None:
    os.set_blocking(OPEN[0], False)


def _leave_filters(work: Any, patch: pytest.MonkeyPatch) -> None:
    del work
    patch.setattr(warnings, "filters", [("ignore", None, Warning, None, 0), *warnings.filters])


OPEN: list[int] = []
CHANGES: dict[str, Callable[[Any, pytest.MonkeyPatch], object]] = {
    "a task": _leave_task,
    "a task factory": _patch_loop("set_task_factory", asyncio.Task),
    "an exception handler": _patch_loop("set_exception_handler", None),
    "debugging": _patch_loop("set_debug", True),
    "a timer": lambda work, _: work._loop.call_later(50, print),
    "a closed loop": lambda work, _: work._loop.close(),
    "a working folder": lambda _, patch: patch.chdir("/"),
    "a variable": lambda _, patch: patch.setenv("PASSHAT_WORKER_TEST", "1"),
    "a mask": lambda _, __: os.umask(0o123),
    "a handler": lambda _, __: signal.signal(signal.SIGUSR1, lambda *_: None),
    "a blocked signal": lambda _, __: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}),
    "a timer of the process": lambda _, __: signal.setitimer(signal.ITIMER_VIRTUAL, 90),
    "a time limit of sockets": lambda _, __: socket.setdefaulttimeout(5),
    "a descriptor": _leave_descriptor,
    "a descriptor that does not block": _leave_nonblocking,
    "a thread": lambda _, __: THREADS[0].start(),
    "no collection": lambda _, __: gc.disable(),
    "another limit of recursion": lambda _, __: sys.setrecursionlimit(900),
    "other switches": lambda _, __: sys.setswitchinterval(0.01),
    "other modules": lambda _, patch: patch.setattr(sys, "path", ["x", *sys.path]),
    "another output": lambda _, patch: patch.setattr(sys, "stdout", sys.stderr),
    "another sleep": lambda _, patch: patch.setattr(time, "sleep", print),
    "another seed": lambda _, patch: patch.setattr(random, "seed", print),
    "another print": lambda _, patch: patch.setattr(builtins, "print", len),
    "no logging": lambda _, __: logging.disable(logging.ERROR),
    "other filters": _leave_filters,
    "an importer": lambda _, patch: patch.setattr(sys, "meta_path", [*sys.meta_path, object()]),
    "a process": lambda _, patch: patch.setattr(worker_process, "_has_children", lambda: True),
    "what the look needs": lambda _, patch: patch.setattr(os, "umask", None),
}
THREADS: list[threading.Thread] = []


@pytest.mark.usefixtures("childless")
@pytest.mark.parametrize("name", CHANGES)
def test_what_an_attempt_leaves_ends_its_worker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    THREADS[:] = [threading.Thread(target=over.wait)]
    OPEN[:] = [os.open(os.devnull, os.O_RDONLY)]
    mask = os.umask(0o077)
    os.umask(mask)
    limit, interval, handler = sys.getrecursionlimit(), sys.getswitchinterval(), signal.SIGUSR1
    before = signal.getsignal(handler)
    try:
        with monkeypatch.context() as patch, _working() as work:
            CHANGES[name](work, patch)
            assert work._has_changed()
            for task in () if work._loop.is_closed() else asyncio.all_tasks(work._loop):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    work._loop.run_until_complete(task)
    finally:
        over.set()
        if THREADS[0].ident is not None:
            THREADS[0].join()
        gc.enable()
        os.umask(mask)
        sys.setrecursionlimit(limit)
        sys.setswitchinterval(interval)
        signal.signal(handler, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {handler})
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        socket.setdefaulttimeout(None)
        logging.disable(logging.NOTSET)
        for descriptor in OPEN:
            os.close(descriptor)


def test_a_working_folder_that_is_gone_is_a_state_of_its_own(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    monkeypatch.setattr(os, "getcwd", log.note("getcwd", OSError()))
    assert worker_process._process_state() == ("",)


@pytest.mark.parametrize("has_any", [False, True])
def test_children_are_asked_for_and_left_to_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, log: _Log, has_any: bool
) -> None:
    monkeypatch.setattr(os, "waitid", log.note("waitid", None if has_any else ChildProcessError()))
    assert worker_process._has_children() is has_any
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    assert log.lines == [f"waitid({os.P_ALL}, 0, {options})"]


def test_a_line_that_an_agent_left_open_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("wb") as raw:
        output = worker_process._AgentOutput(raw, "utf-8", write_through=True)
        for text in ("whole\n", "", "say: ", "", "more"):
            assert output.write(text) == len(text)
            if text == "whole\n":
                output.end_line()
        output.end_line()
        output.end_line()
        output.flush()
        assert path.read_text() == "whole\nsay: more\n"
        output.detach()


# -- the connection --------------------------------------------------------------------------------


def test_requests_are_answered_until_the_runner_is_gone(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    write = os.write
    monkeypatch.setattr(worker_process, "_write", lambda end, data: write(end, data[:5]))
    monkeypatch.setattr(os, "_exit", log.note("exit", _Ended()))
    changes = [False, True]
    runner, end = socket.socketpair()
    with runner, end, _working(lambda prompt: prompt * 2, end.fileno()) as work:
        work._flags = worker_process._status_flags(end.fileno())
        work._has_changed = lambda: changes.pop(0)
        work._errors.add(2, "KeyError")
        for request in ((INFO, Turn("a")), (None, Turn("b"))):
            data = pickle.dumps(request)
            runner.sendall(SIZE.pack(len(data)) + data)
        runner.shutdown(socket.SHUT_WR)
        end.setblocking(False)
        work._reset_flags()
        with pytest.raises(_Ended):
            work.keep()
        assert os.get_blocking(end.fileno())
        end.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: runner.recv(999), b""))
    assert log.lines == ["exit(0)"]
    assert SIZE.unpack_from(said)[0] == os.getpid()
    said = said[SIZE.size :]
    replies = []
    while said:
        (size,) = SIZE.unpack_from(said)
        replies.append(msgspec.msgpack.decode(said[SIZE.size : SIZE.size + size], type=Reply))
        said = said[SIZE.size + size :]
    assert [msgspec.to_builtins(reply) for reply in replies] == [
        {"text": "aa", "errors": 2, "first_error": "KeyError"},
        {"text": "bb", "is_last": True},
    ]


def test_a_child_that_an_agent_forked_answers_nothing(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    monkeypatch.setattr(os, "_exit", log.note("exit", _Ended()))
    runner, end = socket.socketpair()
    with runner, end, _working(lambda prompt: prompt, end.fileno()) as work:
        work._pid = os.getpid() + 1
        data = pickle.dumps((INFO, Turn("a")))
        runner.sendall(SIZE.pack(len(data)) + data)
        with pytest.raises(_Ended):
            work.keep()
        assert runner.recv(99) == SIZE.pack(work._pid)
    assert log.lines == ["exit(0)"]


def test_a_reply_that_cannot_be_written_is_made_plain() -> None:
    reply = Reply(text="x", calls=[ModelCall("m", request={"a": "\ud800"})])
    decoded = msgspec.msgpack.decode(worker_process._encode(reply), type=Reply)
    assert (decoded.text, decoded.calls[0].name) == ("x", "m")


# -- the processes above it ------------------------------------------------------------------------


@pytest.mark.parametrize("is_fine", [True, False])
def test_a_forked_process_ends_without_a_clean_up(
    monkeypatch: pytest.MonkeyPatch, log: _Log, is_fine: bool
) -> None:
    own = SimpleNamespace(
        set_wakeup_fd=log.note("wakeup"), signal=log.note("signal"), SIG_DFL="default"
    )
    monkeypatch.setattr(worker_process, "signal", own)
    monkeypatch.setattr(worker_process, "_SIGNALS", (2, 15))
    monkeypatch.setattr(asyncio, "_set_running_loop", log.note("loop"))
    monkeypatch.setattr(os, "_exit", log.note("exit", _Ended()))
    with pytest.raises(_Ended):
        worker_process.end_process(log.note("work", None if is_fine else ValueError()), 1, "x")
    begin = ["wakeup(-1)", "signal(2, default)", "signal(15, default)", "loop(None)"]
    assert log.lines == [*begin, "work(1, x)", f"exit({0 if is_fine else 1})"]


def test_every_descriptor_is_closed_but_those_that_are_kept(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    monkeypatch.setattr(os, "closerange", log.note("close"))
    monkeypatch.setattr(os, "sysconf", lambda _: 99)
    worker_process._close_descriptors(9, 5)
    assert log.lines == ["close(3, 5)", "close(6, 9)", "close(10, 99)"]


def test_workers_and_what_they_left_are_ended(monkeypatch: pytest.MonkeyPatch, log: _Log) -> None:
    missing: list[object] = [None, ProcessLookupError(), PermissionError()]
    monkeypatch.setattr(os, "killpg", log.note("killpg", missing))
    monkeypatch.setattr(os, "waitpid", log.note("wait", [(5, 0), (0, 0), ChildProcessError()]))
    monkeypatch.setattr(worker_process, "_kill_children", log.note("children"))
    clock = SimpleNamespace(sleep=log.note("sleep"))
    monkeypatch.setattr(worker_process, "time", clock)
    worker_process._end_workers({5, 6, 7})
    assert sorted(log.lines[:3]) == [f"killpg({pid}, 9)" for pid in (5, 6, 7)]
    waits = [f"wait(-1, {os.WNOHANG})", "children({5, 6, 7})"]
    assert log.lines[3:] == [
        "children(set())",
        *waits,
        waits[0],
        "sleep(0.005)",
        *waits[1:],
        waits[0],
    ]


def test_a_child_that_cannot_be_killed_is_not_waited_for_ever(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    monkeypatch.setattr(os, "waitpid", lambda *_: (0, 0))
    monkeypatch.setattr(worker_process, "_kill_children", lambda _: None)
    monkeypatch.setattr(worker_process, "time", SimpleNamespace(sleep=log.note("sleep")))
    worker_process._end_workers(set())
    assert len(log.lines) == 200  # a second


def test_processes_that_workers_left_are_killed(
    monkeypatch: pytest.MonkeyPatch, log: _Log, tmp_path: Path
) -> None:
    children = SimpleNamespace(read_text=lambda: "5 6 7 8\n")
    monkeypatch.setattr(worker_process, "Path", lambda *_: children)
    failures: list[object] = [ProcessLookupError(), PermissionError(), None]
    monkeypatch.setattr(os, "kill", log.note("kill", failures))
    worker_process._kill_children({6})
    assert sorted(log.lines) == ["kill(5, 9)", "kill(7, 9)", "kill(8, 9)"]
    monkeypatch.setattr(worker_process, "Path", lambda *_: tmp_path / "absent")
    worker_process._kill_children(set())


def test_programs_with_the_mark_are_killed(
    monkeypatch: pytest.MonkeyPatch, log: _Log, tmp_path: Path
) -> None:
    for pid, text in ((11, "A=1\0PASSHAT_WORKERS=abc\0"), (12, "PASSHAT_WORKERS=abcd\0"), (13, "")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_text(text)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "environ").write_text("PASSHAT_WORKERS=abc\0")
    (tmp_path / "14").mkdir()
    (tmp_path / "14" / "environ").mkdir()  # it cannot be read
    monkeypatch.setattr(worker_process, "Path", lambda _: tmp_path)
    monkeypatch.setattr(os, "kill", log.note("kill"))
    worker_process.kill_marked("abc")
    assert log.lines == ["kill(11, 9)"]


def _control(log: _Log, received: list[object]) -> Any:
    return SimpleNamespace(
        fileno=lambda: 4,
        send=lambda data: log.note("send")(*EXIT.unpack(data)),
        recv=log.note("recv", received),
    )


STOPPED = 0x137F
"""The status of a process that SIGSTOP stopped."""


@pytest.mark.parametrize("is_runner_there", [True, False])
def test_the_nursery_is_guarded(
    monkeypatch: pytest.MonkeyPatch, log: _Log, is_runner_there: bool
) -> None:
    ends = [(7, STOPPED), (8, 0), (7, 9)]
    monkeypatch.setattr(os, "waitpid", log.note("wait", ends))
    monkeypatch.setattr(os, "kill", log.note("kill"))
    monkeypatch.setattr(worker_process, "_end_workers", log.note("end workers"))
    control = _control(log, [b"+", b""])
    if not is_runner_there:
        control.send = lambda _: log.note("send", OSError())()
    worker_process._guard_nursery(7, control)
    wait = f"wait(-1, {os.WUNTRACED})"
    waits = [wait, f"kill(7, {signal.SIGCONT})", wait, wait]
    said = ["send(0, 0)", "recv(64)", "recv(64)"] if is_runner_there else ["send()"]
    assert log.lines == [*waits, *said, "end workers(set())"]


class _Nursery:
    """The system around a nursery: what is ready, who has ended, and what is forked."""

    def __init__(
        self,
        log: _Log,
        patch: pytest.MonkeyPatch,
        forks: list[int],
        ended: list[tuple[int, int]],
    ) -> None:
        self.control = _control(log, [])
        self.ready: list[list[int]] = []
        patch.setattr(worker_process, "_close_descriptors", log.note("close all but"))
        patch.setattr(worker_process, "_adopt_orphans", log.note("adopt"))
        patch.setattr(worker_process, "_guard_nursery", log.note("guard"))
        patch.setattr(worker_process, "_kill_children", lambda left: log.note("kill")(sorted(left)))
        patch.setattr(worker_process, "_end_workers", lambda left: log.note("end")(sorted(left)))
        patch.setattr(
            worker_process, "end_process", lambda *words: log.note("child", _Ended())(*words[1:])
        )
        self.messages: list[tuple[bytes, list[int]]] = []
        own = SimpleNamespace(recv_fds=self.receive)
        patch.setattr(worker_process, "socket", own)
        patch.setattr(
            worker_process, "select", SimpleNamespace(select=lambda *_: (self.ready.pop(0), [], []))
        )
        system = SimpleNamespace(
            environ={}, setsid=log.note("setsid"), fork=log.note("fork", forks),
            pipe=lambda: (21, 22), set_blocking=log.note("blocking"), read=log.note("read"),
            waitpid=log.note("wait", ended), close=log.note("close"), WNOHANG=1,
        )  # fmt: skip
        patch.setattr(worker_process, "os", system)
        self.system = system
        signals = SimpleNamespace(
            set_wakeup_fd=log.note("wakeup"), signal=lambda number, _: log.note("signal")(number),
            SIGCHLD="child",
        )  # fmt: skip
        patch.setattr(worker_process, "signal", signals)
        patch.setattr(
            worker_process,
            "gc",
            SimpleNamespace(collect=log.note("collect"), freeze=log.note("freeze")),
        )

    def receive(self, control: object, size: int, most: int) -> Any:
        assert control is self.control
        assert (size, most) == (1, 1)
        return (*self.messages.pop(0), 0, 0)


BEGIN = ["close all but(4)", "setsid()", "collect()", "freeze()", "adopt()", "fork()"]
LOOP = ["blocking(22, False)", "wakeup(22)", "signal(child)", "adopt()"]


def _nursery(log: _Log, patch: pytest.MonkeyPatch, **parts: Any) -> _Nursery:
    made = _Nursery(log, patch, list(parts["forks"]), list(parts.get("ended", ())))
    made.ready, made.messages = list(parts.get("ready", ())), list(parts.get("messages", ()))
    return made


def test_the_first_process_of_a_nursery_is_its_guard(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    made = _nursery(log, monkeypatch, forks=[9])
    agent: Any = "agent"
    worker_process.keep_nursery(made.control, agent, "mark")
    assert made.system.environ == {"PASSHAT_WORKERS": "mark"}
    assert log.lines[:-1] == BEGIN
    assert log.lines[-1].startswith("guard(9, ")


def test_a_nursery_forks_on_request_and_reports_ends(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    made = _nursery(
        log,
        monkeypatch,
        forks=[0, 31, 32],
        ready=[[4], [4], [21], [21, 4]],
        messages=[(b"+", [51]), (b"+", [52]), (b"", [])],
        ended=[(0, 0), (31, 256), (77, 0), (0, 0), (0, 0)],
    )
    agent: Any = "agent"
    worker_process.keep_nursery(made.control, agent, "mark")
    wait = "wait(-1, 1)"
    assert log.lines == [
        *(*BEGIN, *LOOP),
        *("fork()", "close(51)"),
        *(wait, "fork()", "close(52)"),
        *("read(21, 4096)", wait, "send(31, 256)", "kill([32])", wait, wait),
        *("read(21, 4096)", wait, "end([32])"),
    ]


def test_a_forked_worker_keeps_to_its_own_end(monkeypatch: pytest.MonkeyPatch, log: _Log) -> None:
    made = _nursery(log, monkeypatch, forks=[0, 0], ready=[[4]], messages=[(b"+", [51])])
    agent: Any = "agent"
    with pytest.raises(_Ended):
        worker_process.keep_nursery(made.control, agent, "mark")
    assert log.lines == [*BEGIN, *LOOP, "fork()", "child(51, agent)"]


def test_a_worker_begins_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, log: _Log
) -> None:
    for name, answer in (("setsid", None), ("open", 61), ("dup2", None), ("close", None)):
        monkeypatch.setattr(os, name, log.note(name, answer))
    monkeypatch.setattr(worker_process, "_close_descriptors", log.note("close all but"))
    monkeypatch.setattr(random, "seed", log.note("seed"))
    own = SimpleNamespace(random=SimpleNamespace(seed=log.note("numpy")))
    monkeypatch.setitem(sys.modules, "numpy", own)
    monkeypatch.setattr(worker_process, "_status_flags", lambda end: f"flags {end}")
    monkeypatch.setattr(worker_process, "_process_state", lambda: "state")
    monkeypatch.setattr(worker_process, "_module_settings", lambda: "settings")
    monkeypatch.setattr(asyncio, "set_event_loop", log.note("loop"))
    loop = SimpleNamespace(set_exception_handler=log.note("handler"))
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: loop)
    output = SimpleNamespace(fileno=lambda: 5)  # of another kind: it is left alone
    monkeypatch.setattr(sys, "stdout", output)
    end = SimpleNamespace(fileno=lambda: 60, detach=lambda: 60)
    agent: Any = "agent"
    socket_end: Any = end
    work = _Work(socket_end, agent)
    state: Any = (work._end, work._flags, work._pid, work._before, work._settings, work._session)
    assert state == (60, "flags 60", os.getpid(), "state", "settings", None)
    assert sys.stdout is output
    moves = [f"open({os.devnull}, {os.O_RDONLY})", "dup2(61, 0)", "close(61)"]
    calls = ["close all but(60)", "setsid()", *moves, "seed()", "numpy()"]
    assert log.lines[:7] == calls
    assert [line.partition("(")[0] for line in log.lines[7:]] == ["handler", "loop"]


def test_the_precision_that_an_attempt_sets_is_gone_in_the_next() -> None:
    def coarse(_: str) -> str:
        before = decimal.getcontext().prec
        decimal.getcontext().prec = 5
        return f"{before}: {decimal.Decimal(1) / 3}"

    with decimal.localcontext(prec=9), _working(coarse) as work:
        texts = [work._answer(INFO, Turn("q")).text for _ in range(2)]
        again = work._answer(None, Turn("q")).text  # the next turn of the same attempt
        assert decimal.getcontext().prec == 9
    assert texts == ["9: 0.33333"] * 2
    assert again == "5: 0.33333"
