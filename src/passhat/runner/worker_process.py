"""The processes of :mod:`passhat.runner.workers`: the nursery that forks, and the workers."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import asyncio
import builtins
import gc
import inspect
import io
import locale
import logging
import operator
import os
import pickle
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from passhat._plugins import describe_error
from passhat.agents.base import AgentFault, AttemptInfo, ModelCall
from passhat.agents.function import FunctionAgent, copy_context
from passhat.errors import RunStopped
from passhat.runner.boundary import BackgroundErrors, refuse_unusable
from passhat.runner.redaction import make_plain
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn, WorldFault

SIZE = struct.Struct("!I")
EXIT = struct.Struct("!ii")
"""Process id and status, as the nursery reports them."""
_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
_ALL_SIGNALS = tuple(map(int, signal.valid_signals()))


# Not by their modules: an agent may patch those.
_read, _write = os.read, os.write


class Reply(msgspec.Struct, omit_defaults=True):
    """A worker's answer to one turn; exactly one of text, fault, missing and stopped is set."""

    text: str | None = None
    fault: str = ""
    missing: str = ""
    stopped: str = ""
    detail: str = ""
    tokens: float | None = None
    cost: float | None = None
    has_usage: bool = False
    retries: int = 0
    calls: list[ModelCall] = []
    errors: int = 0
    first_error: str = ""
    """Errors in background tasks of the agent."""
    is_last: bool = False
    """The agent changed its process: this worker ends with the attempt."""


ENCODER = msgspec.msgpack.Encoder(enc_hook=str)


def end_process(work: Callable[..., object], *arguments: object) -> NoReturn:
    """Do something in a forked process, and end it: nothing of the runner's is cleaned up."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)  # it is the pipe of the runner's event loop
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        asyncio._set_running_loop(None)
        work(*arguments)
        status = 0
    finally:
        os._exit(status)


def _close_descriptors(*kept: int) -> None:
    """Close everything that was inherited, such as the store, but the standard streams."""
    low = 3
    for number in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(low, number)
        low = number + 1


def keep_nursery(control: socket.socket, agent: FunctionAgent, mark: str) -> None:
    """Fork workers until the runner is gone; report those that end."""
    _close_descriptors(control.fileno())
    os.environ[_MARK] = mark
    os.setsid()
    gc.collect()
    gc.freeze()  # so that collections in workers do not copy every page
    _adopt_orphans()
    if pid := os.fork():
        _guard_nursery(pid, control)
        return
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    workers: set[int] = set()
    _adopt_orphans()  # a fork does not inherit it
    while True:
        ready, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
        while workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid in workers:
                workers.discard(pid)
                with suppress(OSError):  # the runner may be gone
                    control.send(EXIT.pack(pid, status))
                _kill_children(workers)
        if control.fileno() in ready:
            message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not message:
                break
            pid = os.fork()
            if pid == 0:
                end_process(_keep_worker, descriptors[0], agent)
            os.close(descriptors[0])
            workers.add(pid)
    _end_workers(workers)


def _guard_nursery(nursery: int, control: socket.socket) -> None:
    """Watch the nursery, which is the parent of every agent, and may be the victim of one.

    One that an agent stops goes on. Workers of one that an agent killed go on as well; whatever is
    left when the runner needs none of them any more is killed.
    """
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGCONT)
        elif pid == nursery:
            break
    with suppress(OSError):  # the runner may be gone
        control.send(EXIT.pack(0, 0))
        while control.recv(64):  # requests that the nursery did not get to
            pass
    _end_workers(set())


def _end_workers(workers: set[int]) -> None:
    for pid in workers:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    _kill_children(set())
    with suppress(ChildProcessError):
        for _ in range(_REAP_LOOKS):  # a child of another user cannot be killed
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(_REAP_SECONDS)
            _kill_children(workers)


_REAP_LOOKS, _REAP_SECONDS = 200, 0.005
_PR_SET_CHILD_SUBREAPER = 36


def _adopt_orphans() -> None:
    """Become the parent of processes that a worker leaves, also of those in their own session."""
    import ctypes

    with suppress(Exception):  # without it they outlive the run, as they would in a shell
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_MARK = "PASSHAT_WORKERS"
"""Variable that marks the programs that agents start, also when they have another parent."""


def kill_marked(mark: str) -> None:
    """Kill the programs that agents of a nursery started: an agent may have killed its guard."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{_MARK}={mark}\0".encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


def _kill_children(workers: set[int]) -> None:
    """Kill the processes that workers left; a worker that is gone took its group along already."""
    with suppress(OSError):
        pids = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
        for pid in {int(pid) for pid in pids} - workers:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


class _AgentOutput(io.TextIOWrapper):
    """Standard output of an agent, which ends its last line when an attempt is over.

    Otherwise the text of an ``input("say: ")`` stands before the first word of the next message.
    """

    is_within_line = False

    def write(self, text: str, /) -> int:
        if text:
            self.is_within_line = not text.endswith("\n")
        return super().write(text)

    def end_line(self) -> None:
        if self.is_within_line:
            self.write("\n")


def _keep_worker(descriptor: int, agent: FunctionAgent) -> None:
    _Work(socket.socket(fileno=descriptor), agent).keep()


class _Work:
    """A worker: one attempt after the other, while its process stays as it was."""

    def __init__(self, end: socket.socket, agent: FunctionAgent) -> None:
        _close_descriptors(end.fileno())
        os.setsid()  # a signal to its group reaches the agent's own children only
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        random.seed()  # a fork has the state of all its siblings
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed()
        with suppress(Exception):  # a stream of another kind, as in a notebook, is left alone
            if sys.stdout.fileno() == 1:
                raw = os.fdopen(1, "wb", closefd=False)
                sys.stdout = _AgentOutput(raw, sys.stdout.encoding, "replace", line_buffering=True)
        self._end = end.detach()
        self._flags = _status_flags(self._end)
        self._pid = os.getpid()
        self._agent = agent
        self._session: Any = None
        self._info = AttemptInfo("", 1, 0)
        self._loop = asyncio.new_event_loop()
        self._errors = BackgroundErrors()
        self._loop.set_exception_handler(self._errors)
        asyncio.set_event_loop(self._loop)
        self._before = _process_state()
        self._settings = _module_settings()
        self._context = copy_context()

    def keep(self) -> None:
        """Answer requests until the runner is gone."""
        self._send(SIZE.pack(self._pid))
        while True:
            (size,) = SIZE.unpack(self._receive(SIZE.size))
            reply = self._answer(*pickle.loads(self._receive(size)))
            if os.getpid() != self._pid:
                os._exit(0)  # the agent forked, and its child came back here, too
            reply.is_last |= self._has_changed()
            reply.errors, reply.first_error = self._errors.take()
            frame = _encode(reply)
            self._reset_flags()
            self._send(SIZE.pack(len(frame)) + frame)

    def _reset_flags(self) -> None:
        """Make the connection block and send no signals: an agent may have changed that."""
        import fcntl

        fcntl.fcntl(self._end, fcntl.F_SETFL, self._flags)

    def _send(self, data: bytes) -> None:
        while data:
            data = data[_write(self._end, data) :]

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = _read(self._end, min(size, 2**20))
            if not part:
                os._exit(0)  # the runner is gone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _answer(self, info: AttemptInfo | None, turn: Turn) -> Reply:
        reply = Reply()
        meter = self._info.meter
        try:
            if info is not None:
                self._info = replace(info, meter=type(meter)())
                meter = self._info.meter
                self._context = copy_context()
                self._session = self._agent.start(self._info)
            before, seen, retries = meter.usage, len(meter.calls), meter.retries
            raw = self._call(turn)
            if inspect.isawaitable(raw):
                raw = self._loop.run_until_complete(_wait_for(raw))
            text = self._session.read_answer(raw)
            refuse_unusable(text)
            reply.text = str.__str__(text)  # not a subclass of it
            if meter.usage != before:
                reply.has_usage = True
                reply.tokens = _difference(before.tokens, meter.usage.tokens)
                reply.cost = _difference(before.cost, meter.usage.cost)
            reply.calls, reply.retries = meter.calls[seen:], meter.retries - retries
        except AgentFault as fault:
            reply.fault, reply.detail = str(fault.category), fault.detail
        except WorldFault as fault:
            reply.missing, reply.detail = str(fault.reason), fault.detail
        except RunStopped as error:
            reply.stopped, reply.detail = error.message, error.hint or ""
        except Exception as error:
            reply.fault, reply.detail = str(FailureCategory.EXCEPTION), describe_error(error)
        except BaseException as error:
            reply.fault, reply.detail = str(FailureCategory.EXCEPTION), describe_error(error)
            reply.is_last = True
        return reply

    def _call(self, turn: Turn) -> Any:
        try:
            return self._context.run(self._session.call, turn)
        except (StopIteration, WorldFault) as error:
            # A plain function has no access to the run: any exception is its own failure.
            raise AgentFault(FailureCategory.EXCEPTION, type(error).__name__) from None

    def _has_changed(self) -> bool:
        """Whether the attempt left the process in another state, or something running in it."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                if isinstance(stream, _AgentOutput):
                    stream.end_line()
                stream.flush()
        try:
            is_clean = not (self._loop.is_closed() or asyncio.all_tasks(self._loop))
            loop_state = (None, self._errors, False, None, True)
            if not is_clean or _loop_state(self._loop) != loop_state or _has_children():
                return True
            before, self._settings = self._settings, _module_settings()
            if before != self._settings and before[0] == self._settings[0]:
                return True
            return _process_state() != self._before
        except Exception:  # what the look itself needs was changed
            return True


async def _wait_for(awaitable: Any) -> Any:
    return await awaitable


def _encode(reply: Reply) -> bytes:
    try:
        return ENCODER.encode(reply)
    except Exception:  # a lone surrogate, or an object that cannot be shown
        return ENCODER.encode(make_plain(reply))


_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    *((time, name) for name in ("monotonic", "time", "sleep", "perf_counter")),
    *((asyncio, name) for name in ("sleep", "get_running_loop", "wait_for", "create_task")),
    *((os, name) for name in ("_exit", "getcwd", "close", "fork", "killpg")),
    *((socket, name) for name in ("socket", "socketpair")),
    (asyncio, "new_event_loop"),
    (asyncio, "all_tasks"),
    (random, "seed"),
    (pickle, "loads"),
)
"""Functions that this module and the next attempt rely on."""


def _loop_state(loop: asyncio.AbstractEventLoop) -> tuple[object, ...]:
    """Settings of the event loop that an agent can change for the next attempt."""
    return (
        *(loop.get_task_factory(), loop.get_exception_handler(), loop.get_debug()),
        asyncio._get_running_loop(),
        not any(not timer.cancelled() for timer in getattr(loop, "_scheduled", ())),
    )


def _module_settings() -> tuple[object, ...]:
    """Number of modules, and settings that a module may change when it is imported."""
    return (
        len(sys.modules),
        list(warnings.filters),
        logging.root.manager.disable,
        (list(sys.meta_path), list(sys.path_hooks)),
    )


def _has_children() -> bool:
    """Whether the attempt left a process, which may be one in a session of its own."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _process_state() -> tuple[object, ...]:
    """State of this process that an agent can change, for a comparison after its attempt.

    What a module may change when it is first imported is left out: its worker would be replaced
    after every attempt, and import it again in each.
    """
    import resource

    descriptors = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
    try:
        folder = os.getcwd()  # noqa: PTH109 - after every attempt; a Path takes ten times as long
        root = os.stat("/")  # noqa: PTH116 - as above
    except OSError:
        return ("",)
    mask = os.umask(0o077)
    os.umask(mask)
    return (
        (folder, root.st_ino, root.st_dev, mask, os.getuid(), os.getgid(), os.getppid()),
        dict(os.environ),
        [_signal.getsignal(number) for number in _ALL_SIGNALS],
        _signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        [_signal.getitimer(number)[0] > 0 for number in _TIMERS],
        [resource.getrlimit(number) for number in _LIMITS],
        os.getpriority(os.PRIO_PROCESS, 0),
        (locale.setlocale(locale.LC_ALL), time.tzname, socket.getdefaulttimeout()),
        [(number, _status_flags(int(number))) for number in descriptors],
        (threading.active_count(), _thread._count()),
        (min(sys.getrecursionlimit(), 1000), sys.getswitchinterval(), gc.isenabled()),
        "asyncio" in sys.modules and __name__ in sys.modules,
        (id(sys.stdout), id(sys.stderr), list(sys.path)),
        [id(vars(module).get(name)) for module, name in _FUNCTIONS],
        [id(function) for function in _BUILTINS(vars(builtins))],
    )


def _status_flags(descriptor: int) -> int:
    """Whether a descriptor blocks, and whether the kernel signals its owner when it is ready."""
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_GETFL)
    except OSError:  # the listing's own, closed by now
        return -1


_TIMERS = tuple(value for name, value in vars(_signal).items() if name.startswith("ITIMER_"))
_BUILTINS = operator.itemgetter("open", "print", "len", "isinstance", "dict", "str", "getattr")


def _limits() -> tuple[int, ...]:
    import resource

    return tuple(value for name, value in vars(resource).items() if name.startswith("RLIMIT_"))


_LIMITS = _limits() if sys.platform != "win32" else ()


def _difference(before: float | None, after: float | None) -> float | None:
    return None if after is None else after - (before or 0)
