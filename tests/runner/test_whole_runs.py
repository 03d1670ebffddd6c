"""Runs of every course: what is told, counted and stored, and the order of it all.

One worker makes the attempts, so that their order is the plan's. ``runs.json`` says that all of it
is still the same, but what is made while a run is being ended (``late``); other tests say why it is
right.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from kept_results import check_results
from passhat.agents.base import Agent, AttemptInfo, ProviderFault, Session, Usage
from passhat.errors import PasshatError
from passhat.protocol import Protocol
from passhat.runner import run as run_module
from passhat.runner.budget import Budget, Sum, Used
from passhat.runner.run import Progress, RunPlan, Stop, run_attempts
from passhat.stats.outcomes import MissingReason
from passhat.store import AttemptRecord, PlannedAttempts, RunRecord, Store, open_store
from passhat.suites.base import Episode, Judgement, Suite, Task, TaskCheck, Turn

TASKS = [Task(name, "?", {"band": name[0]}) for name in ("a1", "a2", "b1")]
RECORD = RunRecord("agent", Protocol(suite="s"), TASKS, started="2026-01-01T00:00:00")
Answer = Callable[[AttemptInfo], object]


class _Agent(Agent):
    name = "agent"

    def __init__(self, answer: Answer, log: list[str]) -> None:
        self.answer, self.log = answer, log

    async def session(self, attempt: AttemptInfo) -> Session:
        self.log.append(f"{attempt.task}#{attempt.number}")
        return _Session(self.answer, attempt)

    async def check(self) -> None:
        self.log.append("agent checked")

    async def close(self) -> None:
        self.log.append("agent closed")


class _Session(Session):
    def __init__(self, answer: Answer, attempt: AttemptInfo) -> None:
        self.say, self.attempt = answer, attempt

    async def answer(self, turn: Turn) -> str:
        del turn
        result = self.say(self.attempt)
        if isinstance(result, BaseException):
            raise result
        return str(result)


class _Asks(Suite):
    name = "s"
    tasks = TASKS
    takes_reference = True

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = broken

    def check(self, tasks: Sequence[Task]) -> list[TaskCheck]:
        return [TaskCheck(one.id, ("bad",) * (one.id in self.broken)) for one in tasks]

    def episode(self, task: Task, seed: int) -> Episode:
        del seed
        return _Question(task)


class _Question(Episode):
    def __init__(self, task: Task) -> None:
        self.task, self.said = task, ""

    def open(self) -> Turn:
        return Turn(self.task.prompt)

    def reply(self, answer: str) -> None:
        self.said = answer

    def judge(self) -> Judgement:
        return Judgement.from_result(self.said == "yes", "not yes")


def _by_number(attempt: AttemptInfo) -> object:
    return "yes" if attempt.number % 2 or attempt.task == "b1" else "no"


def _using(attempt: AttemptInfo) -> object:
    attempt.meter.settle(Usage(10.0 * attempt.number, 0.5))
    return "yes"


def _fails(error: BaseException) -> Answer:
    return lambda _attempt: error


def _fails_later(attempt: AttemptInfo) -> object:
    return ValueError(f"at {attempt.task}") if attempt.number > 1 else "yes"


def _without_credit(attempt: AttemptInfo) -> object:
    fault = ProviderFault(MissingReason.ACCOUNT, "no credit")
    return fault if attempt.number == 2 else "no"


def _limited(attempt: AttemptInfo) -> object:
    fault = ProviderFault(MissingReason.RATE_LIMIT, "429")
    return "yes" if (attempt.number, attempt.task) == (1, "a2") else fault


Prepare = Callable[[Store, Store], object]


def _plan(answer: Answer, log: list[str], told: list[str], **parts: Any) -> RunPlan:
    attempts = parts.pop("attempts", PlannedAttempts(2))
    suite = _Asks(parts.pop("broken", ()))
    agent = _Agent(answer, log)
    plan = RunPlan(suite, agent, RECORD, TASKS, attempts, jobs=1, tell=told.append)
    return replace(plan, **parts)


def _abandoned(store: Store, other: Store) -> None:
    """Another runner held two attempts, and has made one."""
    other.begin(RECORD, 2)
    other.claim(RECORD.id, [("a1", 1), ("a2", 1), ("b1", 2)])
    other.finish(RECORD.id, [AttemptRecord("a1", 1, Judgement.passed())])
    store._db.execute("UPDATE leases SET seen = seen - 1e6")


def _finished(store: Store, _other: Store) -> None:
    store.begin(RECORD, 2)
    places = [(task.id, number) for task in TASKS for number in (1, 2)]
    store.claim(RECORD.id, places)
    store.finish(RECORD.id, [AttemptRecord(*place, Judgement.passed()) for place in places])


def _half(store: Store, _other: Store) -> None:
    store.begin(RECORD, 1)
    store.claim(RECORD.id, [("a1", 1), ("b1", 1)])
    records = [AttemptRecord(task, 1, Judgement.passed()) for task in ("a1", "b1")]
    store.finish(RECORD.id, records)


def _budget(cost: float, **parts: Any) -> Budget:
    return Budget(cost=cost, first=Sum(10.0, 1.0), **parts)


CASES: dict[str, dict[str, Any]] = {
    "all of it": {"answer": _by_number},
    "another seed": {"answer": _by_number, "seed": 5},
    "more attempts of a run": {"answer": _by_number, "prepare": _half},
    "a run that is complete": {"answer": _by_number, "prepare": _finished, "broken": ["a1"]},
    "tasks that are broken": {"answer": _by_number, "broken": ["a1", "b1"]},
    "numbers by task": {
        "answer": _by_number, "attempts": PlannedAttempts(3, {"a1": 1, "a2": 3, "b1": 2}),
    },
    "a rule that is not": {"answer": _by_number, "stop_when": ("pass^1 >= 0.5",)},
    "references": {"answer": _by_number, "canary": True},
    "a set-up mistake": {
        "answer": _fails(ValueError("no key")), "prepare": _half, "late": ("made",),
    },
    "the same, and on": {"answer": _fails(ValueError("no key")), "keep_going": True},
    "errors later": {"answer": _fails_later},
    "no credit": {"answer": _without_credit},
    "limits of rate": {
        "answer": _limited, "give_up_after": 2, "late": ("made", "stored", "written", "runs"),
    },
    "a cap": {"answer": _using, "budget": lambda: _budget(2.0)},
    "a cap that is reached": {
        "answer": _using, "budget": lambda: _budget(1.0, before=Used(Sum(5.0, 1.0), Sum(), 1)),
    },
    "a cap of tokens": {
        "answer": _using, "budget": lambda: Budget(tokens=50, first=Sum(10.0, 0.0)),
    },
    "a cap, and nothing said": {"answer": _by_number, "budget": lambda: _budget(2.0)},
    "a runner that is gone": {"answer": _by_number, "prepare": _abandoned},
}  # fmt: skip


def _run(case: dict[str, Any], place: Path) -> dict[str, object]:
    log: list[str] = []
    told: list[str] = []
    parts = dict(case)
    answer, prepare = parts.pop("answer"), parts.pop("prepare", None)
    late = parts.pop("late", ())
    if "budget" in parts:
        parts["budget"] = parts["budget"]()
    plan = _plan(answer, log, told, **parts)
    result: dict[str, object] = {}
    written: list[str] = []

    def seen(record: AttemptRecord, progress: Progress) -> None:
        written.append(f"{record.task}#{record.number}: {progress.done} of {progress.total}")

    with (
        open_store(str(place)) as store,
        open_store(str(place), lease_seconds=3600.0) as other,
    ):
        store._db.execute("PRAGMA synchronous = OFF")
        if prepare is not None:
            prepare(store, other)
        stop = Stop()
        try:
            progress = asyncio.run(run_attempts(plan, store, stop, seen))
            result["progress"] = {
                field.name: getattr(progress, field.name) for field in fields(progress)[:-1]
            }
            result["settled"] = progress.settled and str(progress.settled.result.headline)
        except PasshatError as error:
            words = re.sub(r"(\.py):\d+", r"\1", str(error))
            result["error"] = f"{type(error).__name__}: {words}"
        result |= {"told": told, "made": log, "written": written, "stopped": stop.asked}
        with suppress(PasshatError):
            result["stored"] = [
                f"{task}#{number} {verdict} {why}; {seed}"
                for task, number, verdict, why, *_, seed, _, _, _ in (
                    row for block in store.rows(RECORD.id) for row in block
                )
            ]
            result["runs"] = [
                [run.planned, run.total, run.attempts, run.status] for run in store.runs()
            ]
            claimed = store.read("SELECT count(*) FROM attempts WHERE finished IS NULL")
            result["still claimed"] = claimed[0][0]
        if plan.budget is not None:
            budget = plan.budget
            result["budget"] = [budget.spent, budget.need, budget.exhausted, budget.attempt_count]
    return {name: part for name, part in result.items() if name not in late}


def test_the_whole_course_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passhat.runner.queues._DRAIN_SECONDS", 0.001)
    monkeypatch.setattr("passhat.runner.queues._QUERY_SECONDS", 0.0)
    monkeypatch.setattr(run_module, "_LOOK_SECONDS", 0.01)
    results: dict[str, object] = {}
    for number, (name, case) in enumerate(CASES.items()):
        results[name] = _run(case, tmp_path / f"{number}.db")
    check_results(Path(__file__).with_name("runs.json"), results)
