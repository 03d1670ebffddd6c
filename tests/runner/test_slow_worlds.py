"""Whoever has the floor when time runs out: only the agent's own silence is its failure."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.agents.base import AttemptInfo
from passhat.runner.attempt import Attempter, AttemptLimits
from passhat.runner.redaction import Redactor
from passhat.runner.time_limits import Watch
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement, Task, Turn

TASK = Task("t", "?")
LIMITS = AttemptLimits(max_steps=3, step_seconds=0.1, attempt_seconds=0.5)


class _World:
    """Is slow in one of its parts."""

    name = "slow"

    def __init__(self, part: str) -> None:
        self._part = part

    async def _wait(self, part: str) -> None:
        if part == self._part:
            await asyncio.Event().wait()

    async def episode(self, *_: object) -> _World:
        await self._wait("episode")
        return self

    def open(self) -> Turn:
        return Turn("?")

    async def reply(self, _: str) -> None:
        await self._wait("reply")

    async def judge(self) -> Judgement:
        await self._wait("judge")
        return Judgement.passed()


async def _session(world: _World) -> Any:
    async def answer(_: Turn) -> str:
        await world._wait("agent")
        return "!"

    async def close() -> None: ...

    return SimpleNamespace(answer=answer, close=close)


async def _attempted(world: Any, agent: Any) -> AttemptRecord:
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
    world: Any = _World(part)
    agent: Any = SimpleNamespace(name="agent", session=lambda _: _session(world))
    made = asyncio.run(_attempted(world, agent))
    assert made.judgement.why == why


def test_a_suite_says_whose_delay_it_is() -> None:
    world: Any = _World("reply")
    world.slow = "user_error"
    agent: Any = SimpleNamespace(name="agent", session=lambda _: _session(world))
    made = asyncio.run(_attempted(world, agent))
    assert made.judgement.why == "user_error"
    assert "not from the agent" in made.judgement.detail
