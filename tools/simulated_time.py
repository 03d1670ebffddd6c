"""Event loops and threads that go on only when a simulation says so, by its clock."""

from __future__ import annotations

import asyncio
import threading
from asyncio import events
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["NEVER", "Fiber", "Killed", "SimulatedLoop", "run_simulated"]

T = TypeVar("T")

NEVER = float("inf")


class Killed(BaseException):
    """Ends what a killed process was doing."""


class _Selector:
    def select(self, _timeout: float | None) -> list[Any]:
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop that takes one turn when it is told to, by the simulation's clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock_of_simulation = clock
        self._selector = _Selector()

    def time(self) -> float:
        return self._clock_of_simulation()

    def _process_events(self, _events: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def turn(self) -> None:
        """Run what is due, once."""
        events._set_running_loop(self)
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            events._set_running_loop(None)

    def due(self) -> float:
        """When there is something to do."""
        if self._ready:  # type: ignore[attr-defined]
            return 0.0
        return min(
            (timer.when() for timer in self._scheduled if not timer.cancelled()),  # type: ignore[attr-defined]
            default=NEVER,
        )


class Fiber:
    """A thread that runs only while :meth:`resume` waits for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.done = False
        self.is_killed = False
        self.ready_at = 0.0
        self.fault = ""
        self.statement = ""

    def _run(self) -> None:
        self._turn.acquire()
        with suppress(Killed):
            self._work()
        self.done = True
        self._back.release()

    def resume(self) -> None:
        """Let it run to its next statement, or to its end."""
        self._turn.release()
        self._back.acquire()

    def wait(self, statement: str) -> str:
        """Called inside: wait for the next turn; return the fault that is to happen."""
        self.statement = statement
        self._back.release()
        self._turn.acquire()
        if self.is_killed:
            raise Killed
        fault, self.fault = self.fault, ""
        return fault

    def kill(self) -> None:
        """End it where it is."""
        self.is_killed = True
        while not self.done:
            self.resume()
        self._thread.join()


def run_simulated(work: Callable[[SimulatedLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in simulated time, which begins at 0 and jumps to what is due."""
    now = 0.0
    loop = SimulatedLoop(lambda: now)
    try:
        main = loop.create_task(work(loop))
        while not main.done():
            due = loop.due()
            assert due < NEVER, "nothing is left that could end it"
            now = max(now, due)
            loop.turn()
        return main.result()
    finally:
        loop.close()
