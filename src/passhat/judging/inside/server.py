"""The fork server: one warm interpreter that forks a child for every execution.

It never reads a program or a test. Those arrive in a file that only the child opens, so that no
child inherits what an earlier one was given.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import mmap
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from . import program, wire
from .confinement import Confinement

_STOP, _ENDING, _WAITED = b"-", b"?", b"w"
"""Stop it; it should be ending by itself, so give it a moment first; it has waited too long."""
_MOMENT_MS = 1000
_TICK_MS = 50
_LONGEST_TICK = 0.25
"""Seconds of a tick that count against the wall clock limit, however late the tick comes."""
_MOST_REPORT, _HALF = 64 * 1024, 32 * 1024
# What is loaded makes every fork slower, threading most of all: it has work to do after every fork.
_WARM = (
    *("bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq"),
    *("io", "itertools", "json", "math", "operator", "random", "re", "string", "time", "typing"),
)


class _Script(BaseException):
    """Leaves the server's loop in a child that becomes a script."""

    def __init__(self, source: str) -> None:
        self.source = source


def main() -> bool:
    """Serve jobs from the socket on descriptor 0 until it closes.

    Returns true in a child that has been a script: the interpreter should end there as usual.
    """
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        confinement = _prepare(wire.receive(control.fileno()))
    except Exception as error:
        wire.send(control.fileno(), {"ready": False, "why": f"{type(error).__name__}: {error}"})
        return False
    # What programs print goes nowhere, by whichever descriptor they print it.
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    wire.send(control.fileno(), {"ready": True, "mounted": confinement.mounted})
    try:
        _serve(control, confinement)
    except wire.Closed:
        return False
    except _Script as script:
        source = script.source
    else:
        return False
    # Outside of the handler: an exception of the script has no context of ours.
    program.run_script(source)
    return True


def _serve(control: socket.socket, confinement: Confinement) -> None:
    while True:
        header, descriptors, _, _ = socket.recv_fds(control, 1, 32)
        if not header:
            return
        if header in (_STOP, _ENDING, _WAITED):
            continue  # it crossed with the end of what it was meant for
        job = wire.receive(control.fileno())
        # A new page for every child: what one writes there, the next must not read.
        with mmap.mmap(-1, mmap.PAGESIZE) as phase:
            _run(job, confinement, descriptors, control, phase)


def _prepare(setup: dict[str, Any]) -> Confinement:
    for name in _WARM:
        __import__(name)
    compile("", "", "exec")  # the first time takes milliseconds
    for name in ("exit", "quit"):  # which the site module makes, and that is not loaded
        if not hasattr(builtins, name):
            from _sitebuiltins import Quitter

            setattr(builtins, name, Quitter(name, "Ctrl-D (i.e. EOF)"))
    confinement = Confinement(setup)
    sys.path += setup["packages"]
    # A library that starts threads for every processor would spend its limits on them.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    # The children must not touch, and so copy, what the parent has allocated.
    gc.collect()
    gc.freeze()
    return confinement


def _run(
    job: dict[str, Any],
    confinement: Confinement,
    descriptors: list[int],
    control: socket.socket,
    phase: mmap.mmap,
) -> None:
    if job["kind"] not in ("program", "script"):
        from . import examine  # noqa: F401 - here and not in every child
    confinement.freshen()
    reading, writing = os.pipe()
    start = time.monotonic()
    pid = confinement.fork()
    if pid == 0:
        control.close()
        os.close(reading)
        _child(job, confinement, descriptors, writing, phase)
    for descriptor in (*descriptors, writing):
        os.close(descriptor)
    with _Words(reading) as words:
        ending = _watch(pid, job, confinement, words, control, start)
        wire.send(control.fileno(), {**ending, "waiting": bool(phase[0])})
        words.pass_on(control.fileno())
    os.close(reading)


def _child(
    job: dict[str, Any],
    confinement: Confinement,
    descriptors: list[int],
    report: int,
    phase: mmap.mmap,
) -> None:
    """Become the job. Returns only as a script, by its exception."""
    try:
        os.setsid()
        gc.enable()
        source, *others = descriptors
        brief = wire.receive(source)
        os.close(source)
        if job["kind"] == "script":
            _connect(others, report)
        confinement.enter(job)
        if job["kind"] == "plain":
            from .examine import absent_import

            if problem := absent_import(brief):
                wire.send(report, ["untestable", problem])
                os._exit(0)
        if job["kind"] != "script":
            wire.send(report, ["started"])
    except BaseException as error:
        try:
            wire.send(report, ["broken", f"{type(error).__name__}: {error}"[:500]])
        finally:
            os._exit(70)
    if job["kind"] == "script":
        phase.close()
        raise _Script(brief["program"])
    try:
        folder = confinement.scratch if confinement.mounted and brief.get("files") else ""
        _work(job, brief, others, report, phase, folder)
    finally:
        os._exit(0)


def _connect(others: list[int], report: int) -> None:
    """Connect the input and the output of a script; its report goes to standard error."""
    wire.send(report, ["started"])
    os.dup2(others[0], 0)
    os.dup2(others[1], 1)
    os.dup2(report, 2)
    for descriptor in (*others, report):
        os.close(descriptor)


def _work(
    job: dict[str, Any],
    brief: dict[str, Any],
    others: list[int],
    report: int,
    phase: mmap.mmap,
    folder: str,
) -> None:
    if job["kind"] == "program":
        os.close(report)  # the program's process keeps no way to the server
        phase.close()
        program.serve(others[0], brief, folder)
        return
    from . import examine

    if job["kind"] == "series":
        examine.examine_series(others[0], others[1:], phase)
    elif job["kind"] == "tests":
        wire.send(report, ["examined", *examine.examine(others[0], brief, phase, folder)])
    else:
        phase.close()
        os.close(others[0])
        outcome = examine.examine_plain(brief["program"], brief)
        wire.send(report, ["examined", *outcome])


def _watch(
    pid: int,
    job: dict[str, Any],
    confinement: Confinement,
    words: _Words,
    control: socket.socket,
    start: float,
) -> dict[str, Any]:
    """Wait for the child to end, a stop request or a limit; then remove everything of it."""
    handle = os.pidfd_open(pid)
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.register(control.fileno(), select.POLLIN)
    waiting.register(words.report, select.POLLIN)
    why, clock = "", _Clock(pid, start)
    try:
        while not why:
            ready = dict(waiting.poll(_TICK_MS))
            if handle in ready:
                why = "ended"
            elif control.fileno() in ready:
                why = _after_word(control, handle)
            elif words.report in ready and not words.read():
                waiting.unregister(words.report)
            if not why and (not ready or clock.is_due()):
                why = clock.limit_reached(job) or ("files" if confinement.too_much() else "")
        # What the child says last is in the pipe before it dies; read it before the limits do.
        while words.read():
            pass
        _kill(pid, confinement)
        _, status, usage = os.wait4(pid, 0)
    finally:
        os.close(handle)
    if why == "closed":
        raise wire.Closed
    return {
        "why": why,
        "status": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "seconds": time.monotonic() - start,
    }


def _after_word(control: socket.socket, handle: int) -> str:
    """The child's state after a message of the judge."""
    word = control.recv(1)
    if word == _ENDING:
        # Its connection closed before the rest of it; who is to blame shows in how it ends.
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        return "ended" if waiting.poll(_MOMENT_MS) else "stopped"
    return {_STOP: "stopped", _WAITED: "wall"}.get(word, "closed")


def _cpu_time(pid: int) -> float:
    """Processor time of another process, by the kernel's rule for making its clock's number."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


class _Clock:
    """Processor time of a child, and its time on the wall clock."""

    def __init__(self, pid: int, start: float) -> None:
        self._pid, self._last, self._wall = pid, start, 0.0

    def is_due(self) -> bool:
        return time.monotonic() - self._last > _TICK_MS / 1000

    def limit_reached(self, job: dict[str, Any]) -> str:
        """The limit that the child has reached; empty if none."""
        now = time.monotonic()
        # A tick that comes late says that the machine stood still, and the program with it.
        self._wall += min(now - self._last, _LONGEST_TICK)
        self._last = now
        if _cpu_time(self._pid) > job["cpu"]:
            return "cpu"
        return "wall" if self._wall > job["wall"] else ""


class _Words:
    """The beginning and the end of a child's report, in memory of its own.

    Later children inherit this process's heap: where that has once grown to the length of a report,
    the addresses of what they allocate tell them the length.
    """

    def __init__(self, report: int) -> None:
        os.set_blocking(report, False)
        self.report, self._size = report, 0
        self._content = mmap.mmap(-1, 2 * _MOST_REPORT)

    def __enter__(self) -> _Words:
        return self

    def __exit__(self, *_: object) -> None:
        self._content.close()

    def read(self) -> bool:
        """Read on; false at the end, and where there is nothing yet."""
        if self._size == len(self._content):
            self._content.move(_MOST_REPORT, _MOST_REPORT + _HALF, _HALF)
            self._size -= _HALF
        with memoryview(self._content) as view, view[self._size :] as place:
            try:
                count = os.readv(self.report, [place])
            except BlockingIOError:
                return False
        self._size += count
        return count > 0

    def pass_on(self, control: int) -> None:
        """Send it as one frame."""
        wire.write_all(control, self._size.to_bytes(4, "big"))
        with memoryview(self._content) as view, view[: self._size] as words:
            wire.write_all(control, words)


def _kill(pid: int, confinement: Confinement) -> None:
    """End the child; without a filter it may have children of its own."""
    if not confinement.confined:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
