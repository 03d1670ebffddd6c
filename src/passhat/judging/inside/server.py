"""The fork server: one warm interpreter that forks a child for every execution.

It never reads a program or a test. Those arrive in a file that only the child opens, so that no
child inherits what an earlier one was given.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import socket
import sys
import time
from typing import Any

from . import examine, landlock, program, seccomp, wire
from .limits import apply_limits

__all__ = ["main"]

_STOP, _ENDING = b"-", b"?"
"""Stop it; it should be ending by itself, so give it a moment first."""
_MOMENT_MS = 5000
_MOST_TO_END = 0.2
"""Seconds of processor time that ending takes; whoever uses more goes on with something else."""
_TICK_MS = 50
_MOST_FILES = 2000
_MOST_REPORT = 64 * 1024
_PAGE = 1 << 16
"""The kernel rounds sizes up to pages, which are no larger than this anywhere."""
_ENGINES_OWN = ("proc", "sys", "dev", "run", "tmp")
# Not threading, nor what imports it: it has work to do after every fork.
_WARM = (
    *("bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "hashlib"),
    *(
        "heapq",
        "io",
        "itertools",
        "json",
        "math",
        "operator",
        "queue",
        "random",
        "re",
        "statistics",
    ),
    *("string", "textwrap", "time", "traceback", "typing", "unittest"),
)


def main() -> None:
    """Serve jobs from the socket on descriptor 0 until it closes."""
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        setup = _prepare(wire.receive(control.fileno()))
    except Exception as error:
        wire.send(control.fileno(), {"ready": False, "why": f"{type(error).__name__}: {error}"})
        return
    # What programs print goes nowhere, by whichever descriptor they print it.
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    wire.send(control.fileno(), {"ready": True, "python": sys.version.split()[0]})
    while True:
        try:
            header, descriptors, _, _ = socket.recv_fds(control, 1, 4)
            if not header:
                return
            if header in (_STOP, _ENDING):
                continue  # it crossed with the end of what it was meant for
            job = {**setup, **wire.receive(control.fileno())}
            wire.send(control.fileno(), _run(job, descriptors, control))
        except wire.Closed:
            return


def _prepare(setup: dict[str, Any]) -> dict[str, Any]:
    for name in _WARM:
        __import__(name)
    if setup["private"]:
        require_private(setup["scratch"], setup["scratch_bytes"])
    if setup["landlock"]:
        landlock.restrict(setup["listable"], setup["readable"])
    if setup["container"]:
        _restrict_container(setup["readable"], setup["scratch"])
    sys.path += setup["packages"]
    # A library that starts threads for every processor would spend its limits on them.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    setup["filter"] = seccomp.Filter() if setup["confined"] else None
    # The children must not touch, and so copy, what the parent has allocated.
    gc.collect()
    gc.freeze()
    return setup


def require_private(folder: str, most: int) -> None:
    """Refuse a scratch folder that is not ours alone: it is emptied after every program.

    It must be a mount of its own, no larger than the limit, and empty. An engine that shows the
    host's /tmp instead, for whatever reason, must not cost anybody a file.
    """
    space = os.statvfs(folder)
    if not os.path.ismount(folder):
        why = "is not a mount of its own"
    elif space.f_blocks * space.f_frsize > most + _PAGE:
        why = "is larger than was asked for"
    elif os.listdir(folder):  # noqa: PTH208 - pathlib is slow to import
        why = "is not empty"
    else:
        return
    raise seccomp.Unavailable(f"{folder} {why}, so it may be somebody's; nothing was run")


def _restrict_container(devices: list[str], scratch: str) -> None:
    """An engine always shows /proc and /sys; Landlock takes them away, where there is Landlock.

    Where there is none the self-test finds that other processes can be seen, and the judge refuses.
    """
    if not landlock.abi():
        return
    shown = [f"/{name}" for name in os.listdir("/") if name not in _ENGINES_OWN]  # noqa: PTH208
    landlock.restrict([], [*shown, *devices], [scratch])


def _run(job: dict[str, Any], descriptors: list[int], control: socket.socket) -> dict[str, Any]:
    reading, writing = os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        control.close()
        os.close(reading)
        _child(job, descriptors, writing)
    for descriptor in (*descriptors, writing):
        os.close(descriptor)
    ended = _watch(pid, job, reading, control, started)
    os.close(reading)
    return {**ended, "spent": not _clean(job["scratch"])}


def _child(job: dict[str, Any], descriptors: list[int], report: int) -> None:
    """Become the job. Never returns."""
    try:
        os.setsid()
        gc.enable()
        source, *others = descriptors
        brief = wire.receive(source)
        os.close(source)
        if job["kind"] == "script":
            os.dup2(others[0], 0)
            os.dup2(others[1], 1)
            for descriptor in others:
                os.close(descriptor)
        apply_limits(job)
        if job["scratch"]:
            os.chdir(job["scratch"])
        if job["filter"] is not None:
            job["filter"].install(os.getpid())
        wire.send(report, ["started"])
        _work(job, brief, others, report)
    except BaseException as error:
        try:
            wire.send(report, ["broken", f"{type(error).__name__}: {error}"[:500]])
        finally:
            os._exit(70)
    os._exit(0)


def _work(job: dict[str, Any], brief: dict[str, Any], others: list[int], report: int) -> None:
    if job["kind"] == "tests":
        wire.send(report, ["examined", *examine.examine(others[0], brief)])
    elif job["kind"] == "program":
        # The program's process keeps no way to the server.
        os.close(report)
        program.serve(others[0], brief["program"])
    else:
        failure = program.run_script(brief["program"])
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        wire.send(report, ["failed", *failure] if failure else ["ended"])
        os._exit(1 if failure else 0)


def _watch(
    pid: int, job: dict[str, Any], report: int, control: socket.socket, started: float
) -> dict[str, Any]:
    """Wait for the child, the judge's word to stop it, or a limit; then leave nothing of it."""
    handle = os.pidfd_open(pid)
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    waiting.register(control.fileno(), select.POLLIN)
    why = ""
    try:
        while not why:
            ready = dict(waiting.poll(_TICK_MS))
            if handle in ready:
                why = "ended"
            elif ready:
                why = _told(control, pid, handle)
            else:
                why = _limit_reached(pid, job, started)
        # What the child says last is in the pipe before it dies; read it before the limits do.
        words = _words(report)
        _kill(pid, job)
        _, status, usage = os.wait4(pid, 0)
    finally:
        os.close(handle)
    if why == "closed":
        raise wire.Closed
    return {
        "why": why,
        "status": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "seconds": time.monotonic() - started,
        "memory": usage.ru_maxrss * 1024,
        "words": words,
    }


def _told(control: socket.socket, pid: int, handle: int) -> str:
    """What becomes of the child now that the judge said something."""
    word = control.recv(1)
    if word == _ENDING:
        # Its connection closed before the rest of it; who is to blame shows in how it ends.
        return "ended" if _ends(pid, handle) else "stopped"
    return "stopped" if word == _STOP else "closed"


def _ends(pid: int, handle: int) -> bool:
    """Whether the child is about to end; on a busy machine that takes a while, but no work."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    before = _used(pid)
    for _ in range(_MOMENT_MS // _TICK_MS):
        if waiting.poll(_TICK_MS):
            return True
        if _used(pid) - before > _MOST_TO_END:
            return False
    return False


def _used(pid: int) -> float:
    """Processor time of another process, by the kernel's rule for making its clock's number."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _limit_reached(pid: int, job: dict[str, Any], started: float) -> str:
    if _used(pid) > job["cpu"]:
        return "cpu"
    if time.monotonic() - started > job["wall"]:
        return "wall"
    return "files" if job["private"] and _files(job["scratch"]) > _MOST_FILES else ""


def _files(folder: str) -> int:
    space = os.statvfs(folder)
    return space.f_files - space.f_ffree


def _words(report: int) -> str:
    """What the child wrote, unread, without waiting for more."""
    os.set_blocking(report, False)
    content = b""
    try:
        while len(content) < _MOST_REPORT:
            part = os.read(report, _MOST_REPORT)
            if not part:
                break
            content += part
    except BlockingIOError:
        pass
    return content.hex()


def _kill(pid: int, job: dict[str, Any]) -> None:
    """End the child; without a filter it may have children of its own."""
    if not job["confined"]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _clean(folder: str) -> bool:
    """Remove what the child left, so that no program finds what another one wrote.

    False when that did not work: then the judge takes a new sandbox.
    """
    if not folder:
        return True
    try:
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)  # noqa: PTH108
        return not os.listdir(folder)  # noqa: PTH208
    except (OSError, RecursionError):
        return False
