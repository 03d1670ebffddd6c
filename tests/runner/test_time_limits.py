"""The limits of attempts that hold unless others are set, and how they are kept.

``clocks.json`` has the state of a clock behind every call, and what a watch does at every tick.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from kept_results import check_results
from passhat.runner import time_limits
from passhat.runner.spending import Spending
from passhat.runner.time_limits import AttemptLimits, Clock, LoopWatch, Watch
from passhat.stats.outcomes import MissingReason


def test_the_limits_that_the_pages_state() -> None:
    """They are part of the protocol of a run: another default would begin other runs."""
    limits = AttemptLimits()
    assert (limits.max_steps, limits.step_seconds, limits.attempt_seconds) == (30, 60.0, 600.0)
    spending = Spending()
    assert (spending.cost, spending.tokens, spending.retries) == (None, None, 8)


# -- clocks and the watch over the event loop, step by step ----------------------------------------


async def _clock_course() -> dict[str, object]:
    """Every call of a clock at times of its own, and the state behind each."""
    now = 0.0
    task = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.sleep(0)
    told: list[str] = []
    watch = Watch(AttemptLimits(5, 10.0, 25.0), told.append)
    clock = Clock(AttemptLimits(5, 10.0, 25.0), task, LoopWatch(10.0, told.append))
    clock._now = lambda: now
    watch._clocks.append(clock)
    course: dict[str, object] = {}

    def note(what: str) -> None:
        state = [clock.due, clock._end, clock.paused, str(clock.whose), clock.is_over()]
        course[f"{len(course)}. {what} at {now:g}"] = [*state, task.cancelling()]

    note("before")
    for at, what, call in (
        (0.0, "start", clock.start),
        (1.0, "next step", clock.next_step),
        (4.0, "the world's turn", lambda: clock.next_reply(MissingReason.USER_ERROR)),
        (5.0, "pause", clock.pause),
        (6.0, "pause again", clock.pause),
        (7.0, "resume once", clock.resume),
        (8.0, "next step while paused", clock.next_step),
        (9.0, "forgive while paused", lambda: clock.forgive(2.0)),
        (10.0, "resume", clock.resume),
        (11.0, "forgive", lambda: clock.forgive(2.0)),
        (21.0, "a step near the end", clock.next_step),
        (22.0, "a look in time", lambda: watch.look(21.8, 22.0)),
        (29.0, "a look that is late", lambda: watch.look(28.0, 29.0)),
        (32.7, "a look just before", lambda: watch.look(32.5, 32.7)),
        (32.75, "a look that is not late", lambda: watch.look(32.0, 32.75)),
        (33.5, "a look soon after", lambda: watch.look(33.3, 33.5)),
        (33.75, "a look a second after", lambda: watch.look(33.5, 33.75)),
    ):
        now = at
        call()
        note(what)
    course["verdict"] = clock.verdict()
    note("the verdict")
    clock.stop()
    note("stop")
    now = 50.0
    clock.start()
    note("start again")
    course["no verdict"] = clock.verdict()
    now = 60.0
    watch.look(59.9, now)
    note("a step that is late")
    task.cancel()
    course["canceled from outside, too"] = clock.verdict()
    task.cancel()
    clock.forget_cancellations()
    note("forgotten")
    clock.judging()
    note("the judge's turn")
    watch.forget(clock)
    watch.look(0.0, 100.0)
    note("after it was forgotten")
    course["told"] = told
    task.cancel()
    return course


class _Ticks:
    """The event that a watch waits for: each wait is a step of a script."""

    def __init__(self, watch: LoopWatch, script: list[tuple[float, str]]) -> None:
        self.watch, self.script, self.now = watch, script, 100.0
        self.left: list[bool] = []

    def wait(self, seconds: float) -> bool:
        assert seconds == 0.05
        if not self.script:
            return True
        elapsed, what = self.script.pop(0)
        self.now += elapsed
        for word in what.split():
            if word == "enter":
                self.watch.enter()
            elif word == "leave":
                self.left.append(self.watch.leave())
            else:
                self.waited += float(word)
        return False

    waited = 0.0


TICKS: dict[str, list[tuple[float, str]]] = {
    "quick steps": [(0.05, "enter"), (0.05, "leave enter"), (0.05, "leave")] * 40,
    "one that blocks": [(0.05, "enter"), *[(0.05, "")] * 30, (0.05, "leave")],
    "one that is interrupted again": [(0.05, "enter"), *[(0.05, "")] * 65, (0.05, "leave")],
    "one behind another": [
        (0.05, "enter"),
        *[(0.05, "")] * 15,
        (0.05, "leave enter"),
        *[(0.05, "")] * 15,
        (0.05, "leave"),
    ],
    "the process stood still": [(0.05, "enter"), *[(0.5, "")] * 9, (0.05, "leave")],
    "no processor": [(0.05, "enter"), *[(0.05, "0.04")] * 30, (0.05, "leave")],
    "one that cannot be ended": [(0.05, "enter"), *[(0.1, "")] * 120, (0.05, "leave")],
}


def _watch_course(script: list[tuple[float, str]], monkeypatch: pytest.MonkeyPatch) -> object:
    told: list[str] = []
    watch = LoopWatch(1.0, told.append)
    ticks = _Ticks(watch, list(script))
    raised: list[object] = []

    def note(thread: int, error: type[BaseException] | None) -> None:
        assert thread == threading.get_ident()
        raised.append([round(ticks.now - 100, 2), error and error.__name__])

    monkeypatch.setattr(watch, "_over", ticks)
    monkeypatch.setattr(watch, "_waiting_seconds", lambda: ticks.waited)
    clock = SimpleNamespace(monotonic=lambda: ticks.now)
    with monkeypatch.context() as patched:
        patched.setattr(time_limits, "_raise_in_thread", note)
        patched.setattr(time_limits, "time", clock)
        watch._keep()
    return {"raised": raised, "left": [sum(ticks.left), len(ticks.left)], "told": _own(told)}


def _own(told: list[str]) -> list[str]:
    return [line.replace(f"kill -9 {os.getpid()}", "kill -9 PID") for line in told]


def test_a_blocked_loop_is_told_where_attempts_run_at_once() -> None:
    async def course() -> None:
        watch = Watch(AttemptLimits(), told.append)
        for expected in ([], ["blocked"]):
            watch.clock()
            watch._note_blocking("blocked")
            assert told == expected

    told: list[str] = []
    asyncio.run(course())


def test_the_whole_course_of_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    courses: dict[str, object] = dict(asyncio.run(_clock_course()))
    for name, script in TICKS.items():
        courses[name] = _watch_course(script, monkeypatch)
    watches = [
        Watch(AttemptLimits(1, *seconds)) for seconds in ((60.0, 600.0), (0.05, 9.0), (9.0, 2.0))
    ]
    courses["how often it looks"] = [[watch._pause, watch._held_up] for watch in watches]
    check_results(Path(__file__).with_name("clocks.json"), courses)


# -- where a watch begins --------------------------------------------------------------------------


def _start_and_stop(log: list[object]) -> None:
    watch = LoopWatch(1.0, log.append)
    watch._keep = lambda: None  # type: ignore[method-assign]
    try:
        watch.start()
        log.append([watch._handler is not None, watch._thread_id == threading.get_ident()])
        watch.stop()
        log.append(watch._handler)
    except ValueError as error:
        log.append(error)


@pytest.mark.parametrize("nudge", [time_limits._NUDGE, None])
def test_the_signal_of_a_watch_is_handled_in_the_main_thread_alone(
    monkeypatch: pytest.MonkeyPatch, nudge: signal.Signals | None
) -> None:
    monkeypatch.setattr(time_limits, "_NUDGE", nudge)
    before = signal.getsignal(signal.SIGURG)
    log: list[object] = []
    _start_and_stop(log)
    assert log == [[nudge is not None, True], None]
    assert signal.getsignal(signal.SIGURG) == before
    log.clear()
    thread = threading.Thread(target=_start_and_stop, args=(log,))
    thread.start()
    thread.join()
    assert log == [[False, True], None]
    assert signal.getsignal(signal.SIGURG) == before
