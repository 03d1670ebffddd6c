"""The boundary around an agent: its attempt always ends, and the run goes on."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import asyncio
import hashlib
import os
import re
import signal
import sys
import threading
import time
import types
from collections.abc import (
    Awaitable,
    Callable,
    Container,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import suppress
from typing import Any, TypeVar, cast

from passhat._plugins import describe_error
from passhat.agents.base import AgentFault, AttemptInfo
from passhat.agents.function import THREAD_PREFIX
from passhat.runner.redaction import LONGEST_TEXT
from passhat.runner.time_limits import Clock, LoopBlocked
from passhat.stats.outcomes import FailureCategory

T = TypeVar("T")

_LOOK_SECONDS = 0.003
_IN_WORKERS = (
    "An agent given as python:MODULE:NAME runs in worker processes, where it changes only its own."
)
_getsignal = _signal.getsignal
"""Of the C module: signal.getsignal looks for an enum, which takes 100 times as long."""
_LEFT_BEHIND: list[tuple[str, asyncio.AbstractEventLoop, object]] = []
"""Attempt, loop and coroutine. Kept, so that Python does not throw an exception into it."""


async def call_agent(
    info: AttemptInfo,
    clock: Clock,
    work: Callable[..., Awaitable[T]],
    *arguments: object,
) -> T:
    """Call ``work(*given)``, an agent's code; its exceptions fail its attempt.

    ``SystemExit`` and ``KeyboardInterrupt`` must not leave the task, since asyncio ends the whole
    loop for them.
    """
    call = None
    try:
        clock.blocking.enter()
        try:
            value: Any = work(*arguments)
            if type(value) is types.CoroutineType:
                steps: Any = value  # what nearly all agents have; a wrapper would only cost time
            elif hasattr(value, "__await__"):
                steps = value.__await__()
            else:
                return cast("T", value)
            try:
                waiting = steps.send(None)
            except StopIteration as stop:  # it never had to wait
                return cast("T", stop.value)
        finally:
            _leave(clock)
        call = _Call(info, steps, clock)
        return cast("T", await call.rest(waiting))
    except LoopBlocked:
        clock.blocking.leave()
        raise AgentFault(FailureCategory.TIMEOUT, _describe_blocking(clock)) from None
    except (StopIteration, StopAsyncIteration) as error:
        raise AgentFault(FailureCategory.EXCEPTION, describe_error(error)) from None
    except Exception:
        raise
    except BaseException as error:
        is_cancellation = isinstance(error, asyncio.CancelledError | GeneratorExit)
        if is_cancellation and call is not None and call.is_canceled:
            raise
        raise AgentFault(FailureCategory.EXCEPTION, describe_error(error)) from None


def _leave(clock: Clock) -> None:
    """After a step of an agent: one that held up the event loop beyond its limit is over."""
    if clock.blocking.leave():
        raise AgentFault(FailureCategory.TIMEOUT, _describe_blocking(clock))


def _describe_blocking(clock: Clock) -> str:
    return f"{clock.describe_step_limit()}; it blocked the event loop"


class _Call:
    """A call of an agent's coroutine that has to wait, and can be abandoned.

    A coroutine that swallows its cancellation would block the run forever. So it is driven here,
    as ``await`` would do it, until it ignored the end of its time: then it is never resumed again.
    A task for every call would do the same, at three times the processor time of a whole short
    attempt. Cancellations of its own (``asyncio.timeout`` cancels, too) are handed on to it.
    """

    __slots__ = ("_clock", "_info", "_steps", "is_canceled")

    def __init__(self, info: AttemptInfo, steps: Any, clock: Clock) -> None:
        self._info = info
        self._steps = steps
        self._clock = clock
        self.is_canceled = False
        """Whether a cancellation came from outside; an agent may raise the same by itself."""

    @types.coroutine
    def rest(self, waiting: Any) -> Generator[Any, Any, Any]:
        steps = self._steps
        enter = self._clock.blocking.enter
        go_on: Callable[[Any], Any]
        try:
            while True:
                try:
                    value = yield waiting
                except GeneratorExit:  # our own coroutine is closed
                    self.is_canceled = True
                    steps.close()
                    raise
                except asyncio.CancelledError as error:
                    self.is_canceled = True
                    if self._clock.is_over():
                        attempt = f"{self._info.task}#{self._info.number}"
                        _LEFT_BEHIND.append((attempt, asyncio.get_running_loop(), steps))
                        raise
                    # It may wait once more to clean up, and raise the cancellation after that.
                    go_on, value = steps.throw, error
                except BaseException as error:
                    go_on, value = steps.throw, error
                else:
                    go_on = steps.send
                enter()
                try:
                    waiting = go_on(value)
                finally:
                    _leave(self._clock)
        except StopIteration as stop:  # the return value of the coroutine
            return stop.value


def hide_task(task: asyncio.Task[T] | None) -> asyncio.Task[T]:
    """Take a task of the runner out of ``asyncio.all_tasks()``: agents cancel what they find."""
    assert task is not None
    asyncio._unregister_task(task)
    return task


def run_guarded(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new event loop, as ``asyncio.run`` does.

    A loop that an agent stops, or that ``SystemExit`` in a task of an agent ends, goes on.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        asyncio.set_event_loop(loop)
        main = hide_task(loop.create_task(work))
        while True:
            try:
                return loop.run_until_complete(main)
            except (SystemExit, RuntimeError):
                if main.done():
                    raise
            except KeyboardInterrupt:
                if not main.done():
                    main.cancel()
                    with suppress(asyncio.CancelledError):
                        loop.run_until_complete(main)
                raise


class BackgroundErrors:
    """Exception handler of an event loop: counts errors that no code waited for.

    They are those of tasks that an agent left; Python would print a traceback for each.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def __call__(self, _loop: object, context: dict[str, Any]) -> None:
        self.count += 1
        # Not its text: secrets may be in it.
        error, message = context.get("exception"), str(context.get("message", ""))
        self.first = self.first or (message[:80] if error is None else type(error).__name__)

    def take(self) -> tuple[int, str]:
        """The errors since the last call: how many, and the first."""
        errors = self.count, self.first
        self.count, self.first = 0, ""
        return errors

    def add(self, count: int, first: str) -> None:
        """Take over the errors of another process."""
        self.count += count
        self.first = self.first or first

    def describe(self) -> list[str]:
        """The line to print, if there were any."""
        if not self.count:
            return []
        which = "1 error" if self.count == 1 else f"{self.count:,} errors"
        return [
            f"{which} in background tasks of the agent, which it did not wait for: {self.first}."
        ]


def list_stuck_attempts(earlier: Container[threading.Thread] = ()) -> list[str]:
    """Attempts whose agent still runs, in a thread or a task, although their time was over.

    ``earlier`` are threads that were there before the run.
    """
    names = [thread.name for thread in threading.enumerate() if thread not in earlier]
    ids = [name.removeprefix(THREAD_PREFIX) for name in names if name.startswith(THREAD_PREFIX)]
    here = asyncio.get_running_loop()
    return sorted([*ids, *(attempt for attempt, loop, _ in _LEFT_BEHIND if loop is here)])


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
    """Restores process-wide state that an agent in this process changed.

    The working directory, standard output and error, and handlers of signals belong to the run. A
    stream that is replaced is left alone: ``redirect_stdout`` does that for a while. Without
    ``always`` the working directory is looked at a few hundred times a second at most. While
    several agents run at once a change may be any one's: it is told once, and fails no attempt.
    """

    def __init__(self, tell: Callable[[str], object], *, always: bool = True) -> None:
        self._tell = tell
        self._inside = 0
        self._is_told = False
        self._always = always
        self._looked = 0.0
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
        self._handlers = {number: _getsignal(number) for number in numbers}
        self._loop = asyncio.get_running_loop()
        self._factory = self._loop.get_task_factory()
        self._errors, self._handler = BackgroundErrors(), self._loop.get_exception_handler()
        self._loop.set_exception_handler(self._errors)

    def enter(self) -> None:
        """An agent is about to be called."""
        self._inside += 1

    def leave(self) -> str:
        """Restore changes; return their names if the agent that came back made them."""
        self._inside -= 1
        asyncio._set_running_loop(self._loop)
        changes = self._restore_changes()
        if changes and self._inside:
            if not self._is_told:
                self._is_told = True
                self._tell(f"an agent changed {changes} of the process it runs in. {_IN_WORKERS}")
            return ""
        return changes

    def _restore_changes(self) -> str:
        changes = []
        now = time.monotonic()
        # Asking for the working directory is a system call, too slow for thousands a second.
        if self._always or now - self._looked > _LOOK_SECONDS:
            self._looked = now
            if _folder() != self._folder:
                changes.append("the working directory")
                try:
                    os.chdir(self._folder)
                except OSError:  # it was deleted: told once, and not held against the others
                    self._folder = _folder()
        if not changes and self._is_untouched():
            return ""
        changes += self._restore_streams()
        for number, handler in self._handlers.items():
            if _getsignal(number) is not handler:
                changes.append(f"the handler of {signal.Signals(number).name}")
                if self._main and handler is not None:
                    signal.signal(number, handler)
        if self._loop.get_task_factory() is not self._factory:
            changes.append("the task factory of the event loop")
            self._loop.set_task_factory(self._factory)
        return " and ".join(changes) if changes else ""

    def _is_untouched(self) -> bool:
        """Whether nothing else is changed, as after nearly every answer."""
        stdout, stderr = self._streams.values()
        if sys.stdout is not stdout or sys.stderr is not stderr:
            return False
        if _is_closed(stdout) or _is_closed(stderr):
            return False
        for number, handler in self._handlers.items():
            if _getsignal(number) is not handler:
                return False
        return self._loop.get_task_factory() is self._factory

    def _restore_streams(self) -> list[str]:
        changes = []
        for name, stream in self._streams.items():
            present = sys.stdout if name == "stdout" else sys.stderr
            is_closed = _is_closed(stream) or (present is not stream and _is_closed(present))
            if stream is not None and is_closed:  # it is None under pythonw
                changes.append(f"sys.{name} (closed)")
                self._put_back(name)
        return changes

    def close(self) -> None:
        self._loop.set_exception_handler(self._handler)
        for line in self._errors.describe():
            self._tell(line)
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


def _is_closed(stream: Any) -> bool:
    return stream is None or bool(getattr(stream, "closed", False))


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - after every answer; a Path takes ten times as long
    except OSError:  # it was deleted
        return ""


def _number(stream: Any) -> int | None:
    """The descriptor of a stream, if it has one."""
    try:
        return int(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None


_TOKEN = re.compile(r"\bref-[0-9a-f]{12}\b")


class Canary:
    """The references of a run, by which leaks between attempts are detected.

    They are derived from ``key``, the run's id and seed, so that a run that is resumed later has
    the same ones; to an agent they are random. ``attempts`` are planned for every one of ``tasks``.
    """

    def __init__(self, key: str, tasks: Sequence[str], attempts: int) -> None:
        self._key = hashlib.sha256(key.encode()).digest()
        self._tasks = tasks
        self._attempts = attempts

    def token(self, task: str, number: int) -> str:
        """The reference of an attempt."""
        text = f"{task}#{number}".encode()
        return "ref-" + hashlib.blake2b(text, key=self._key, digest_size=6).hexdigest()

    def stray(self, answer: str, task: str, number: int) -> str:
        """The id of another attempt whose reference is in the answer; empty when there is none."""
        if "ref-" not in answer:
            return ""
        tokens = set(_TOKEN.findall(answer)) - {self.token(task, number)}
        if not tokens:
            return ""
        # Rare, so all references are made again rather than kept.
        return next((name for token, name in self._all() if token in tokens), "")

    def _all(self) -> Iterator[tuple[str, str]]:
        for task in self._tasks:
            for number in range(1, self._attempts + 1):
                yield self.token(task, number), f"{task}#{number}"
