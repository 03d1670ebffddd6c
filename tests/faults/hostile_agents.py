"""Agents that harm the process they run in when the prompt says so, and answer "yes" otherwise.

``AGENTS`` names them all, each as a plain function and, where that makes sense, as a coroutine.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import ctypes
import gc
import locale
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

AGENTS: dict[str, Callable[..., Any]] = {}
HANGING: set[str] = set()


def _agent(harm: Callable[[], Any]) -> Callable[[], Any]:
    """Register a harm as a plain function and as a coroutine."""
    name = harm.__name__

    def plain(prompt: str) -> Any:
        answer = harm() if prompt == "bad" else None
        return "yes" if answer is None else answer

    async def coroutine(prompt: str) -> Any:
        await asyncio.sleep(0)
        return plain(prompt)

    AGENTS[name] = plain
    AGENTS[f"async_{name}"] = coroutine
    return harm


def _async_agent(harm: Callable[[], Any]) -> Callable[[], Any]:
    """Register a harm that only a coroutine can do."""

    async def coroutine(prompt: str) -> Any:
        if prompt == "bad":
            await harm()
        return "yes"

    AGENTS[f"async_{harm.__name__}"] = coroutine
    return harm


class _Base(BaseException):
    pass


class _Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@_agent
def ends_its_process() -> None:
    os._exit(0)


@_agent
def ends_its_process_with_an_error() -> None:
    os._exit(3)


@_agent
def exits() -> None:
    sys.exit("bye")


@_agent
def interrupts() -> None:
    raise KeyboardInterrupt


@_agent
def raises_another_base() -> None:
    raise _Base("b")


@_agent
def raises_without_text() -> None:
    raise _Silent


@_agent
def raises_a_novel() -> None:
    raise ValueError("x" * 10_000_000)


@_agent
def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@_agent
def terminates_itself() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@_agent
def sends_itself_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)


@_agent
def aborts() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.abort()


@_agent
def reads_at_null() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


@_agent
def kills_its_group() -> None:
    os.killpg(0, signal.SIGKILL)


@_agent
def kills_its_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


@_agent
def leaves_a_deleted_folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    shutil.rmtree(folder)


@_agent
def works_in_a_folder_of_its_own() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pass


@_agent
def closes_descriptors() -> None:
    os.closerange(0, 256)


@_agent
def closes_standard_output() -> None:
    sys.stdout.close()
    sys.stderr = None


@_agent
def opens_many_files() -> None:
    for _ in range(50):
        os.open(os.devnull, os.O_RDONLY)


@_agent
def allows_itself_no_file() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@_agent
def allows_itself_no_descriptor() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


@_agent
def runs_out_of_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    bytearray(2**31)


@_agent
def sets_an_alarm() -> None:
    signal.alarm(1)


@_agent
def handles_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)


@_agent
def patches_time() -> None:
    time.monotonic = time.time = lambda: 0.0
    time.sleep = lambda _seconds: None


@_agent
def patches_asyncio() -> None:
    asyncio.sleep = asyncio.wait = asyncio.get_running_loop = None  # type: ignore[assignment]


@_agent
def patches_builtins() -> None:
    builtins.print = builtins.open = None  # type: ignore[assignment]


@_agent
def patches_sockets() -> None:
    socket.socket.send = socket.socket.recv = None  # type: ignore[assignment, method-assign]


@_agent
def empties_the_environment() -> None:
    os.environ.clear()


@_agent
def changes_the_locale() -> None:
    locale.setlocale(locale.LC_ALL, "C")


@_agent
def forgets_modules() -> None:
    sys.modules.clear()


@_agent
def seeds_everything() -> None:
    random.seed(0)


@_agent
def stops_collecting() -> None:
    gc.disable()
    sys.settrace(lambda *_: None)


@_agent
def leaves_threads() -> None:
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(600,)).start()


@_agent
def leaves_a_program() -> None:
    subprocess.Popen(["sleep", "600"])


@_agent
def forks_and_both_return() -> None:
    os.fork()


@_agent
def forks_and_the_child_stays() -> None:
    if os.fork() == 0:
        time.sleep(600)
    else:
        os._exit(1)


@_agent
def recurses() -> None:
    recurses()


@_agent
def answers_a_number() -> int:
    return 42


@_agent
def answers_half_a_letter() -> str:
    return "yes \udcff"


@_agent
def answers_too_much() -> str:
    return "yes" * 3_000_000


@_agent
def prints_a_lot() -> None:
    sys.stdout.write("x" * 100_000)
    os.write(1, b"y" * 10_000)


@_agent
def stops_iterating() -> None:
    raise StopIteration


@_agent
def never_ends() -> None:
    while True:
        pass


@_agent
def sleeps() -> None:
    time.sleep(600)


@_agent
def stops_its_process() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@_agent
def ignores_signals_and_sleeps() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(600)


@_async_agent
async def cancels_all_tasks() -> None:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)


@_async_agent
async def stops_the_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


@_async_agent
async def closes_the_loop() -> None:
    asyncio.get_running_loop().close()


@_async_agent
async def cancels_itself() -> None:
    raise asyncio.CancelledError


@_async_agent
async def leaves_tasks() -> None:
    for _ in range(3):
        asyncio.create_task(asyncio.sleep(600))  # noqa: RUF006


@_async_agent
async def swallows_its_cancellation() -> None:
    while True:
        with contextlib.suppress(BaseException):
            await asyncio.sleep(600)


@_async_agent
async def exits_in_a_task() -> None:
    async def leave() -> None:
        sys.exit(3)

    await asyncio.create_task(leave())


@_async_agent
async def sets_a_task_factory() -> None:
    asyncio.get_running_loop().set_task_factory(lambda *_, **__: 1 / 0)  # type: ignore[arg-type]


@_agent
def makes_descriptors_nonblocking() -> None:
    for number in range(3, 40):
        with contextlib.suppress(OSError):
            os.set_blocking(number, False)


@_agent
def leaves_a_daemon() -> None:
    subprocess.Popen(["sleep", "4321"], start_new_session=True)


def repeats(prompt: str) -> str:
    """Answer with the prompt."""
    return prompt


def grade(answer: str, expected: str) -> bool:
    """A grader that harms its process in the way that is expected, if the answer says so."""
    return bool(AGENTS[expected](answer) == "yes")


HANGING |= {
    name
    for name in AGENTS
    if name.endswith(
        (
            "never_ends",
            "sleeps",
            "stops_its_process",
            "swallows_its_cancellation",
        )
    )
}
globals().update(AGENTS)
