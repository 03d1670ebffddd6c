"""Demo coders write right or plausibly wrong programs, by skill and temperature."""

from __future__ import annotations

import asyncio

import pytest

from passhat.agents import load_agent
from passhat.agents.base import AgentFault, AttemptInfo
from passhat.suites.base import Turn
from passhat.suites.code_samples import program_in, request_text
from passhat.suites.ordercode import ORDER_TASKS

RIGHT = {one.task.id: one.task.program(one.task.canonical).strip() for one in ORDER_TASKS}


def share_right(coder: str, temperature: float, attempts: int = 12) -> float:
    agent = load_agent(coder)

    async def whole() -> list[bool]:
        found = []
        for one in ORDER_TASKS:
            for number in range(attempts):
                info = AttemptInfo(one.task.id, number, 1000 + number, temperature)
                session = await agent.session(info)
                answer = await session.answer(Turn(request_text(one.task)))
                await session.close()
                found.append(program_in(answer, one.task).strip().endswith(RIGHT[one.task.id]))
        return found

    found = asyncio.run(whole())
    return sum(found) / len(found)


def test_heat_and_haste_make_worse_programs() -> None:
    careful = [share_right("demo:coder", temperature) for temperature in (0.0, 0.7, 3.0)]
    assert careful[0] > careful[1] > careful[2] > 0.1
    assert careful[0] < 1  # it likes a wrong program best on some tasks
    assert share_right("demo:hasty-coder", 0.7) < careful[1] - 0.1


def test_at_temperature_0_every_attempt_is_alike() -> None:
    share = share_right("demo:coder", 0.0)
    assert share * len(ORDER_TASKS) == pytest.approx(round(share * len(ORDER_TASKS)))


def test_they_know_no_other_suite() -> None:
    async def wrong() -> None:
        session = await load_agent("demo:coder").session(AttemptInfo("x", 1, 1))
        await session.answer(Turn("What is 2 + 2?"))

    with pytest.raises(AgentFault, match="code:ordercode"):
        asyncio.run(wrong())
