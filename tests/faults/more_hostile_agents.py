"""Further harms, each as one agent; many of them would be met by the attempt that comes next.

Importing this adds them to ``hostile_agents.AGENTS``. On the prompt "good" an agent answers "yes"
only if the state that it harms on the prompt "bad" is as it should be.
"""

from __future__ import annotations

import _thread
import asyncio
import builtins
import contextlib
import ctypes
import decimal
import faulthandler
import fcntl
import gc
import importlib
import logging
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.hostile_agents import AGENTS

from passhat.agents import AttemptInfo
from passhat.agents.base import Usage

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _F_SETSIG = 1, 22, 10


def _is_well() -> bool:
    return True


def _harm(is_well: Callable[[], bool] = _is_well) -> Callable[[Callable[..., Any]], Any]:
    """Register a harm as a plain function, or as a coroutine if it is one."""

    def register(harm: Callable[..., Any]) -> Any:
        def plain(prompt: str, attempt: AttemptInfo) -> Any:
            if prompt == "bad":
                answer = harm(attempt)
                return "yes" if answer is None else answer
            return "yes" if is_well() else "no"

        async def coroutine(prompt: str, attempt: AttemptInfo) -> Any:
            if prompt == "bad":
                await harm(attempt)
            return "yes" if is_well() else "no"

        AGENTS[harm.__name__] = coroutine if asyncio.iscoroutinefunction(harm) else plain
        return harm

    return register


# -- harm that comes after the answer --------------------------------------------------------------


@_harm()
def ends_its_process_soon(_: object) -> None:
    has_begun = threading.Event()

    def end() -> None:
        has_begun.set()
        time.sleep(0.02)
        os._exit(1)

    _thread.start_new_thread(end, ())
    has_begun.wait()


@_harm()
def dumps_its_stack_soon(_: object) -> None:
    with Path(os.devnull).open("w") as nothing:
        faulthandler.dump_traceback_later(0.02, exit=True, file=os.dup(nothing.fileno()))


@_harm()
def sets_a_profiling_timer(_: object) -> None:
    signal.setitimer(signal.ITIMER_PROF, 0.01)


@_harm()
def sets_a_virtual_timer(_: object) -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.01)


def _wants_signals() -> bool:
    for number in range(3, 20):
        with contextlib.suppress(OSError):
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ASYNC:
                return True
    return False


def _want_signals(signal_number: int) -> None:
    for number in range(3, 20):
        with contextlib.suppress(OSError):
            fcntl.fcntl(number, _F_SETSIG, signal_number)
            fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(number, fcntl.F_SETFL, os.O_ASYNC)


@_harm(lambda: not _wants_signals())
def wants_a_signal_for_input(_: object) -> None:
    _want_signals(signal.SIGIO)


@_harm(lambda: not _wants_signals())
def wants_a_harmless_signal_for_input(_: object) -> None:
    _want_signals(signal.SIGWINCH)


@_harm()
def makes_standard_streams_nonblocking(_: object) -> None:
    for number in range(3):
        os.set_blocking(number, False)


@_harm()
def dies_with_its_parent(_: object) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


# -- state that the next attempt would meet --------------------------------------------------------


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@_harm(lambda: _umask() != 0o777)
def changes_the_umask(_: object) -> None:
    os.umask(0o777)


@_harm(lambda: not signal.pthread_sigmask(signal.SIG_BLOCK, []))
def blocks_signals(_: object) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))


@_harm(lambda: signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN)
def lets_pipes_kill_it(_: object) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _depth(left: int) -> int:
    return 0 if not left else 1 + _depth(left - 1)


@_harm(lambda: _depth(500) == 500)
def allows_no_recursion(_: object) -> None:
    sys.setrecursionlimit(60)


@_harm(lambda: sys.getswitchinterval() < 1)
def keeps_the_interpreter(_: object) -> None:
    sys.setswitchinterval(1000)


@_harm(lambda: socket.getdefaulttimeout() is None)
def hurries_sockets(_: object) -> None:
    socket.setdefaulttimeout(0.001)


@_harm(lambda: decimal.getcontext().prec > 1)
def rounds_everything(_: object) -> None:
    decimal.getcontext().prec = 1


@_harm(gc.isenabled)
def collects_nothing(_: object) -> None:
    gc.disable()


@_harm(lambda: not any(kind == "error" for kind, *_ in warnings.filters))
def raises_warnings(_: object) -> None:
    warnings.simplefilter("error")


@_harm(lambda: not logging.root.manager.disable)
def logs_nothing(_: object) -> None:
    logging.disable(logging.CRITICAL)


@_harm(lambda: os.nice(0) == 0)
def gives_way_to_all(_: object) -> None:
    os.nice(19)


@_harm(lambda: time.tzname[0] != "JST")
def moves_to_tokyo(_: object) -> None:
    os.environ["TZ"] = "JST-9"
    time.tzset()
    del os.environ["TZ"]


@_harm(lambda: importlib.import_module("wave") is not None)
def breaks_imports(_: object) -> None:
    sys.meta_path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()


@_harm(lambda: len([1]) == 1)
def patches_len(_: object) -> None:
    builtins.len = lambda _value: 0


@_harm(lambda: resource.getrlimit(resource.RLIMIT_STACK)[0] != 65536)
def allows_itself_no_stack(_: object) -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (65536, 65536))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


# -- the process and its family --------------------------------------------------------------------


@_harm()
def allows_itself_no_system_call(_: object) -> None:
    _LIBC.prctl(_PR_SET_SECCOMP, 1)


@_harm()
def is_traced(_: object) -> None:
    _LIBC.ptrace(0, 0, 0, 0)


@_harm(lambda: os.getuid() != 65534)
def becomes_nobody(_: object) -> None:
    os.setgid(65534)
    os.setuid(65534)


@_harm(lambda: Path("/proc/self").exists())
def has_another_root(_: object) -> None:
    os.chroot(tempfile.mkdtemp())


@_harm()
def stops_its_parent(_: object) -> None:
    os.kill(os.getppid(), signal.SIGSTOP)


@_harm()
def leaves_a_daemon_and_kills_its_parent(_: object) -> None:
    subprocess.Popen(["sleep", "4322"], start_new_session=True)
    os.kill(os.getppid(), signal.SIGKILL)


@_harm()
def leaves_a_daemon_that_kills_its_parent(_: object) -> None:
    command = f"sleep 0.05; kill -9 {os.getppid()}; sleep 4323"
    subprocess.Popen(["sh", "-c", command], start_new_session=True)


@_harm()
def leaves_many_daemons(_: object) -> None:
    for _number in range(10):
        subprocess.Popen(["sleep", "4324"], start_new_session=True)


@_harm()
def leaves_a_daemon_of_python(_: object) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


@_harm()
def becomes_another_program(_: object) -> None:
    os.execv("/bin/true", ["true"])


# -- its connection to the runner ------------------------------------------------------------------


def _connection() -> int:
    for number in range(3, 64):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as end:
            if end.family == socket.AF_UNIX and end.getpeername() == "":
                return number
    raise AssertionError


@_harm()
def writes_rubbish_to_the_runner(_: object) -> None:
    os.write(_connection(), b"\xff\xff\xff\xff rubbish")


@_harm()
def answers_twice(_: object) -> None:
    frame = msgspec.msgpack.encode({"text": "yes"})
    os.write(_connection(), 2 * (len(frame).to_bytes(4, "big") + frame))


@_harm()
def hangs_up(_: object) -> None:
    with socket.socket(fileno=os.dup(_connection())) as end:
        end.shutdown(socket.SHUT_RDWR)


@_harm()
def talks_to_nothing(_: object) -> None:
    os.dup2(os.open(os.devnull, os.O_RDWR), _connection())


@_harm()
def patches_its_worker(_: object) -> None:
    from passhat.runner import worker_process

    for name in ("_read", "_write", "_encode", "_process_state"):
        setattr(worker_process, name, None)


@_harm()
def forgets_passhat(_: object) -> None:
    for name in [name for name in sys.modules if name.startswith("passhat")]:
        del sys.modules[name]


# -- values ----------------------------------------------------------------------------------------


class _Lying:
    @property
    def __class__(self) -> Any:
        return str

    @__class__.setter
    def __class__(self, _kind: Any) -> None:
        raise TypeError

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@_harm()
def answers_something_that_seems_text(_: object) -> object:
    return _Lying()


class _Text(str):
    __slots__ = ()

    def isascii(self) -> bool:
        return True

    def encode(self, *_: object) -> bytes:
        os._exit(7)

    def __len__(self) -> int:
        return 10**12


@_harm()
def answers_text_of_another_kind(_: object) -> str:
    return _Text("no")


@_harm()
def uses_no_number_of_tokens(attempt: AttemptInfo) -> None:
    for cost in (math.nan, math.inf, -1e300):
        attempt.meter.settle(Usage(-5.5, cost))


@_harm()
def breaks_its_meter(attempt: AttemptInfo) -> None:
    attempt.meter.calls = None  # type: ignore[assignment]
    attempt.meter.retries = "many"  # type: ignore[assignment]


@_harm()
def retries_beyond_all_numbers(attempt: AttemptInfo) -> None:
    attempt.meter.retries = 10**400


@_harm()
def raises_a_group_of_groups(_: object) -> None:
    error: Exception = ValueError("x")
    for _number in range(5000):
        error = ExceptionGroup("g", [error])
    raise error


class _Unnamed(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


class _UnnamedError(Exception, metaclass=_Unnamed):
    pass


@_harm()
def raises_an_error_without_a_name(_: object) -> None:
    raise _UnnamedError


class _Waiting:
    def __await__(self) -> Iterator[int]:
        yield 42


@_harm()
def answers_what_cannot_be_awaited(_: object) -> Awaitable[int]:
    return _Waiting()  # type: ignore[return-value]


# -- coroutines ------------------------------------------------------------------------------------


@_harm()
async def runs_the_loop_within_itself(_: object) -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, loop.stop)
    asyncio._set_running_loop(None)
    loop.run_forever()


@_harm()
async def empties_the_loop(_: object) -> None:
    asyncio.get_running_loop()._ready.clear()  # type: ignore[attr-defined]


@_harm()
async def leaves_tasks_that_fail(_: object) -> None:
    async def fail() -> None:
        raise RuntimeError("x" * 3000)

    tasks = [asyncio.create_task(fail()) for _number in range(20)]
    await asyncio.sleep(0)
    del tasks


@_harm()
async def handles_signals_in_the_loop(_: object) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: None)


@_harm()
async def leaves_a_generator(_: object) -> None:
    async def count() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(600)

    async for _number in count():
        break


ADDED = [name for name, agent in AGENTS.items() if agent.__module__ == __name__]
globals().update({name: AGENTS[name] for name in ADDED})
