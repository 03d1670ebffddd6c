"""What a session reports is written down; what nobody reports is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from passhat.agents import Agent, AttemptInfo, Session, Usage
from passhat.runner import run_attempts
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.store import open_store
from passhat.suites.base import Turn


class Frugal(Agent):
    """An agent of somebody's own; its sessions say what they used."""

    name = "frugal"
    closed = 0

    async def session(self, attempt: AttemptInfo) -> _FrugalSession:
        return _FrugalSession(attempt.number)

    async def close(self) -> None:
        self.closed += 1


class _FrugalSession(Session):
    def __init__(self, number: int) -> None:
        # Of the second attempt the money is not known, and nothing of the third.
        known = {1: Usage(30, 0.25), 2: Usage(40, None)}
        if number in known:
            self.usage = known[number]

    async def answer(self, turn: Turn) -> str:
        return "yes" if turn.said == turn.text else "no"


@pytest.mark.usefixtures("folder")
def test_usage_of_a_session_reaches_the_store(tmp_path: Path) -> None:
    agent = Frugal()
    plan = RunSpec(suite="jsonl:tasks.jsonl", agent=agent, attempts=3, top_p=0.5).plan()
    with open_store(str(tmp_path / "store.db")) as store:
        progress = asyncio.run(run_attempts(plan, store, Stop(), lambda _record, _progress: None))
        rows = [row for block in store.rows(plan.record.id) for row in block]
    assert [(row[1], row[6], row[7]) for row in rows] == [
        (1, 30.0, 0.25),
        (2, 40.0, None),
        (3, None, None),
    ] * 5
    assert (progress.passed, progress.tokens, progress.cost, progress.costed) == (15, 350, 1.25, 5)
    assert plan.record.protocol.decoding == {"top_p": 0.5}
    assert agent.closed == 1
