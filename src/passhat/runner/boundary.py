"""The boundary around an agent: whatever its code does, its attempt ends and the run goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from passhat.agents.base import AgentFault
from passhat.runner.redaction import LONGEST_TEXT
from passhat.stats.outcomes import FailureCategory

__all__ = ["THREAD_PREFIX", "ProcessGuard", "call_agent", "described", "refuse_unusable", "stuck"]

T = TypeVar("T")

_GRACE_SECONDS = 1.0
"""How long an agent may take to give way when its time is over; then it is left behind."""
THREAD_PREFIX = "passhat agent "
"""Names of threads and tasks in which agents run, followed by the attempt's id."""
_LEFT_BEHIND: set[asyncio.Task[Any]] = set()
"""Kept, so that Python does not end them by throwing an exception into the agent's code."""


async def call_agent(work: Callable[[], Awaitable[T]], attempt: str) -> T:
    """Call code of an agent; every exception it raises is its own, and fails its attempt.

    It runs in a task of its own, so that it can be left behind: a coroutine that swallows its
    cancellation would otherwise hold up the run for ever. ``SystemExit`` and ``KeyboardInterrupt``
    that it raises must not leave that task either, since asyncio ends the whole loop for them.
    """
    task = asyncio.create_task(_contained(work), name=f"{THREAD_PREFIX}{attempt}")
    try:
        value, error = await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with suppress(asyncio.CancelledError):  # a time limit that is over cancels again and again
            await asyncio.wait({task}, timeout=_GRACE_SECONDS)
        if not task.done():
            _leave_behind(task)
        raise
    if error is None:
        return cast("T", value)
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        raise error
    raise AgentFault(FailureCategory.EXCEPTION, described(error))


async def _contained(work: Callable[[], Any]) -> tuple[object, BaseException | None]:
    try:
        value = work()
        return (await value if hasattr(value, "__await__") else value), None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, error  # the agent raised it by itself
    except BaseException as error:
        return None, error


def _leave_behind(task: asyncio.Task[Any]) -> None:
    """Go on without a task that ignores its cancellation; asyncio would wait for it at the end."""
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_LEFT_BEHIND.discard)
    cast("Any", task)._log_destroy_pending = False
    cast("Any", asyncio)._unregister_task(task)


def stuck(earlier: Container[threading.Thread] = ()) -> list[str]:
    """Attempts whose agent still runs, in a thread or a task, although their time was over.

    ``earlier`` are threads that were there before the run.
    """
    names = [thread.name for thread in threading.enumerate() if thread not in earlier]
    loop = asyncio.get_running_loop()
    names += [
        task.get_name() for task in _LEFT_BEHIND if task.get_loop() is loop and not task.done()
    ]
    return sorted(name.removeprefix(THREAD_PREFIX) for name in names if THREAD_PREFIX in name)


def described(error: BaseException) -> str:
    """The error as text; one whose ``__str__`` raises or returns no text is named only."""
    name = type(error).__name__
    try:
        text = str(error)
        return f"{name}: {text}" if text else name
    except BaseException:
        return f"{name} (it cannot be shown as text)"


def refuse_unusable(answer: str) -> None:
    """Fail an answer that is too long, or that is not valid Unicode."""
    if len(answer) > LONGEST_TEXT:
        raise AgentFault(
            FailureCategory.FORMAT_ERROR,
            f"answered {len(answer):,} characters; at most {LONGEST_TEXT:,} are allowed",
        )
    # Two quick looks that are enough for nearly every answer.
    if answer.isascii():
        return
    try:
        answer.encode()
    except UnicodeEncodeError as error:
        raise AgentFault(
            FailureCategory.FORMAT_ERROR,
            f"answered text that is not valid Unicode (a lone surrogate at {error.start:,})",
        ) from None


class ProcessGuard:
    """Puts back what an agent in this process changed for the whole process.

    The working directory, standard output and error, and handlers of signals belong to the run. A
    stream that is replaced is left alone: ``redirect_stdout`` does that for a while.
    """

    def __init__(self) -> None:
        self._folder = _folder()
        self._streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        self._numbers = {name: _number(stream) for name, stream in self._streams.items()}
        self._copies = {
            name: None if number is None else os.dup(number)
            for name, number in self._numbers.items()
        }
        self._main = threading.current_thread() is threading.main_thread()
        names = ("SIGINT", "SIGTERM", "SIGHUP")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        self._handlers = {number: signal.getsignal(number) for number in numbers}

    def changed(self) -> str:
        """What was changed since, put back now; empty if nothing was."""
        found = []
        if _folder() != self._folder:
            found.append("the working directory")
            with suppress(OSError):
                os.chdir(self._folder)
        for name, stream in self._streams.items():
            if getattr(stream, "closed", False) or getattr(getattr(sys, name), "closed", False):
                found.append(f"sys.{name} (closed)")
                self._put_back(name)
        for number, handler in self._handlers.items():
            if signal.getsignal(number) is not handler:
                found.append(f"the handler of {signal.Signals(number).name}")
                if self._main and handler is not None:
                    signal.signal(number, handler)
        return " and ".join(found)

    def close(self) -> None:
        for copy in self._copies.values():
            if copy is not None:
                with suppress(OSError):
                    os.close(copy)

    def _put_back(self, name: str) -> None:
        stream, copy = self._streams[name], self._copies[name]
        number = self._numbers[name]
        if getattr(stream, "closed", False) and copy is not None and number is not None:
            with suppress(OSError):
                os.dup2(copy, number)
                stream = os.fdopen(number, "w", encoding="utf-8", errors="replace")
            self._streams[name] = stream
        setattr(sys, name, stream)


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return ""


def _number(stream: Any) -> int | None:
    """The descriptor of a stream, if it has one."""
    try:
        return int(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None
