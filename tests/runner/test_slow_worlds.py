"""Whoever has the floor when time runs out: only the agent's own silence is its failure."""

from __future__ import annotations

import asyncio

import pytest

from passhat.agents.base import Agent, AttemptInfo, Session
from passhat.runner.attempt import Attempter
from passhat.runner.redaction import Redactor
from passhat.runner.time_limits import AttemptLimits, Watch
from passhat.stats.outcomes import MissingReason
from passhat.store import AttemptRecord
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn

TASK = Task("t", "?")
LIMITS = AttemptLimits(max_steps=3, step_seconds=0.1, attempt_seconds=0.5)


class _World(Suite):
    """Is slow in one of its parts."""

    name = "slow"

    def __init__(self, part: str) -> None:
        self._part = part

    async def _wait(self, part: str) -> None:
        if part == self._part:
            await asyncio.Event().wait()

    async def episode(self, task: Task, seed: int) -> _Episode:  # noqa: ARG002
        await self._wait("episode")
        return _Episode(self)


class _Episode(Episode):
    def __init__(self, world: _World) -> None:
        self._wait = world._wait

    def open(self) -> Turn:
        return Turn("?")

    async def reply(self, _: str) -> None:
        await self._wait("reply")

    async def judge(self) -> Judgement:
        await self._wait("judge")
        return Judgement.passed()


class _Agent(Agent):
    def __init__(self, world: _World) -> None:
        self._world = world

    async def session(self, _attempt: AttemptInfo) -> _Session:
        return _Session(self._world)


class _Session(Session):
    def __init__(self, world: _World) -> None:
        self._world = world

    async def answer(self, _turn: Turn) -> str:
        await self._world._wait("agent")
        return "!"


async def _attempted(world: Suite, agent: Agent) -> AttemptRecord:
    watch = Watch(LIMITS)
    watching = asyncio.create_task(watch.keep())
    made = await Attempter(world, agent, LIMITS, Redactor()).attempt(
        TASK, AttemptInfo("t", 1, 0), watch.clock()
    )
    watching.cancel()
    return made


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("nothing", ""),
        ("agent", "timeout"),
        ("episode", "infrastructure"),
        ("reply", "infrastructure"),
        ("judge", "judge_error"),
    ],
)
def test_a_delay_is_blamed_on_whoever_had_the_floor(part: str, why: str) -> None:
    world = _World(part)
    made = asyncio.run(_attempted(world, _Agent(world)))
    assert made.judgement.why == why


def test_a_suite_says_whose_delay_it_is() -> None:
    world = _World("reply")
    world.slow_reason = MissingReason.USER_ERROR
    made = asyncio.run(_attempted(world, _Agent(world)))
    assert made.judgement.why == "user_error"
    assert "not from the agent" in made.judgement.detail
