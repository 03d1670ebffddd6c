"""Small guards of the runner, each with a case that fails without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from passhat.agents import Agent, AttemptInfo, Session
from passhat.agents.pacing import Pace
from passhat.agents.provider import retry_after
from passhat.protocol import Protocol
from passhat.runner import run_attempts
from passhat.runner.run import RunPlan, Stop
from passhat.runner.run_spec import RunSpec
from passhat.runner.time_limits import AttemptLimits, Clock, Watch
from passhat.runner.users import _UserModel
from passhat.stats.outcomes import MissingReason
from passhat.store import AttemptRecord, AttemptSet, open_store
from passhat.suites.base import Turn
from passhat.suites.jsonl import JsonLinesSuite

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Yes(Agent, Session):
    async def session(self, _attempt: AttemptInfo) -> Session:
        return self

    async def answer(self, _turn: Turn) -> str:
        return "yes"


def _plan(folder: Path, tasks: int, attempts: int, **options: Any) -> RunPlan:
    lines = [f'{{"id": "t{i:02}", "prompt": "?", "answer": "yes"}}' for i in range(tasks)]
    (folder / "tasks.jsonl").write_text("\n".join(lines))
    suite = JsonLinesSuite(str(folder / "tasks.jsonl"))
    return RunSpec(agent=Yes(), suite=suite, attempts=attempts, **options).plan()


@pytest.mark.parametrize(
    "word", ["-5", "-0.1", (NOON - timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")]
)
def test_a_retry_after_in_the_past_is_now(word: str) -> None:
    assert retry_after({"retry-after": word}, NOON) == 0.0


def test_a_wait_without_end_is_no_wait() -> None:
    assert retry_after({"retry-after": "inf"}) is None
    assert retry_after({"retry-after": "nan"}) is None


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    pace = Pace()
    pace.hold(100.0)
    pace.hold(1.0)
    assert pace.left > 50


def test_every_round_has_its_own_order_and_all_tasks(tmp_path: Path) -> None:
    plan = _plan(tmp_path, tasks=12, attempts=4)
    order = list(plan.order_attempts())
    rounds = [[task for task, number in order if number == k] for k in range(1, 5)]
    assert len({tuple(tasks) for tasks in rounds}) == 4
    assert {frozenset(tasks) for tasks in rounds} == {frozenset(rounds[0])}
    assert [number for _, number in order] == sorted(number for _, number in order)
    assert order == list(_plan(tmp_path, tasks=12, attempts=4).order_attempts())
    assert order != list(_plan(tmp_path, tasks=12, attempts=4, seed=1).order_attempts())


def test_attempts_that_are_stored_are_left_out_of_the_order(tmp_path: Path) -> None:
    plan = _plan(tmp_path, tasks=5, attempts=3)
    order = list(plan.order_attempts())
    stored = AttemptSet([*((f"t{i:02}", 1) for i in range(5)), ("t03", 2)])
    assert list(plan.left(stored)) == [attempt for attempt in order if attempt not in stored]


def test_a_result_that_was_dropped_is_not_in_the_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(tmp_path, tasks=2, attempts=2)
    seen = []
    with open_store(str(tmp_path / "s.db")) as store:
        finish = store.finish

        def finish_without_first(run: str, records: Sequence[AttemptRecord]) -> list[AttemptRecord]:
            """Another runner took the first attempt over, and gave it up."""
            monkeypatch.setattr(store, "finish", finish)
            first, *others = records
            store._db.execute(
                "DELETE FROM attempts WHERE number = ? AND task IN "
                "(SELECT key FROM tasks WHERE task = ?)",
                (first.number, first.task),
            )
            return [*finish(run, others), first]

        monkeypatch.setattr(store, "finish", finish_without_first)
        progress = asyncio.run(
            run_attempts(plan, store, Stop(), lambda record, _: seen.append(record.task))
        )
        # It is made again: by the workers, if they are still at it, or by the same command.
        again = asyncio.run(run_attempts(plan, store, Stop(), lambda *_: None))
        assert store.find(plan.record.id).attempts == 4
    assert progress.dropped == 1
    assert progress.total == progress.done == len(seen) == 4 - again.done


def test_the_address_of_a_user_is_not_part_of_its_name() -> None:
    class Model(Yes):
        name = "openai:gpt"
        decoding = {"base_url": "http://localhost:1", "temperature": 0.5}  # noqa: RUF012

    assert _UserModel(Model()).name == "openai:gpt temperature=0.5"


def test_an_address_makes_another_run_and_can_be_compared() -> None:
    here, there = (
        Protocol(suite="s", decoding={"base_url": url, "temperature": 0.0}) for url in "ab"
    )
    assert here.digest != there.digest
    assert dict(here._flat()) == dict(there._flat())


class _Loop:
    now = 0.0

    def time(self) -> float:
        return self.now


class _Task:
    """What a clock needs of a task, with a time that the test sets."""

    def __init__(self) -> None:
        self.loop = _Loop()
        self.cancels = 0

    def get_loop(self) -> _Loop:
        return self.loop

    def cancel(self) -> None:
        self.cancels += 1

    def uncancel(self) -> int:
        self.cancels -= 1
        return self.cancels


def _clock(limits: AttemptLimits) -> tuple[Watch, Clock, _Task]:
    watch, task = Watch(limits), _Task()
    clock = Clock(limits, task, watch._blocking)  # type: ignore[arg-type]
    watch._clocks.append(clock)
    clock.start()
    return watch, clock, task


def test_a_step_is_over_at_its_limit_and_not_before() -> None:
    watch, clock, task = _clock(AttemptLimits(5, step_seconds=10.0, attempt_seconds=60.0))
    watch.look(9.9, 9.999)
    assert task.cancels == 0
    watch.look(9.9, 10.0)
    assert task.cancels == 1
    assert clock.verdict() == "wall clock: no answer within 10 s"


def test_an_attempt_is_over_at_its_limit_in_all() -> None:
    watch, clock, task = _clock(AttemptLimits(5, step_seconds=10.0, attempt_seconds=25.0))
    for now in (10.0, 20.0):
        task.loop.now = now - 1
        clock.next_step()
    watch.look(24.9, 24.999)
    assert task.cancels == 0
    watch.look(24.9, 25.0)
    assert clock.verdict() == "wall clock: over 25 s in all"


def test_time_in_which_the_machine_slept_is_forgiven() -> None:
    watch, clock, task = _clock(AttemptLimits(5, step_seconds=10.0, attempt_seconds=60.0))
    watch.look(1.0, 3_601.0)
    assert task.cancels == 0
    assert 3_000 < clock.due < 3_700


def test_a_pause_is_not_on_the_clock() -> None:
    watch, clock, task = _clock(AttemptLimits(5, step_seconds=10.0, attempt_seconds=60.0))
    task.loop.now = 4.0
    clock.pause()
    watch.look(99.9, 100.0)
    task.loop.now = 100.0
    clock.resume()
    watch.look(105.9, 105.999)
    assert task.cancels == 0
    watch.look(105.9, 106.0)
    assert (task.cancels, clock.paused) == (1, 96.0)


def test_a_judge_that_is_late_is_not_the_agents_fault() -> None:
    watch, clock, task = _clock(AttemptLimits(5, step_seconds=10.0, attempt_seconds=60.0))
    task.loop.now = 30.0
    clock.judging()
    watch.look(89.9, 89.999)
    assert task.cancels == 0
    watch.look(89.9, 90.0)
    assert (task.cancels, clock.whose) == (1, MissingReason.JUDGE_ERROR)
