"""Workers in other processes keep one rate, one pause and one cap, by asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from passhat.agents import Agent, ProviderFault, Usage, load_agent
from passhat.agents.chat import ChatAgent
from passhat.runner.budget import Budget, Sum
from passhat.runner.remote_limits import (
    AccountElsewhere,
    Gatekeeper,
    LimitUpdate,
    RemoteLimits,
    settle,
)

MODEL = "openai:small@http://127.0.0.1:9/v1"
CALL = Usage(100, 1.0)


def model() -> ChatAgent:
    one = load_agent(MODEL)
    assert isinstance(one, ChatAgent)
    return one


class Office:
    """Two workers and their gatekeeper, without processes between them; counts what is said."""

    def __init__(self, here: Agent) -> None:
        self.gate = Gatekeeper([here])
        self.workers = [model(), model()]
        self.lines = [RemoteLimits(), RemoteLimits()]
        self.said = 0

    async def listen(self, line: RemoteLimits) -> None:
        while True:
            for one in await line.poll():
                self.said += 1
                if isinstance(one, LimitUpdate):
                    self.gate.apply(one)
                    for other in self.lines:
                        if other is not line:
                            other.receive([one])
                else:
                    line.receive([await self.gate.answer(one)])

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        for line, worker in zip(self.lines, self.workers, strict=True):
            line.share([worker])
        listening = [asyncio.create_task(self.listen(line)) for line in self.lines]
        try:
            yield
        finally:
            for task in listening:
                task.cancel()


def played(here: ChatAgent, play: Callable[[Office], Awaitable[None]]) -> Office:
    async def whole() -> Office:
        office = Office(here)
        if here.provider.pace.is_limited:
            for worker in office.workers:
                worker.provider.limit(1e9)  # it is the gatekeeper's that counts
        async with asyncio.timeout(60), office.open():
            await play(office)
        return office

    return asyncio.run(whole())


def test_two_workers_take_from_one_bucket() -> None:
    here = model()
    here.provider.limit(20)

    async def play(office: Office) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for _ in range(12):
            await asyncio.gather(*(worker.provider.pace.turn() for worker in office.workers))
        assert loop.time() - start > 0.15  # 24 calls: 20 at once, and 4 at 20 per second

    assert played(here, play).said == 24


def test_without_a_limit_nothing_is_asked_and_a_pause_reaches_everybody() -> None:
    async def play(office: Office) -> None:
        one, other = (worker.provider.pace for worker in office.workers)
        for _ in range(100):
            await one.turn()
            one.note_answer()
            await asyncio.sleep(0)
        assert office.said == 1  # that the provider answers
        assert other.answered
        one.hold(3600.0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert other.left > 60
        # Who begins later is told as well.
        (update,) = office.gate.current_updates()
        assert update.pause > 60
        assert update.answered

    assert played(model(), play).said == 2


def test_a_cap_holds_for_calls_that_are_made_elsewhere() -> None:
    async def play(office: Office) -> None:
        budget = Budget(cost=4.0, first=Sum(100, 2.0))
        account = await budget.admit()
        assert account is not None
        with account, office.gate.keeping(("t", 1), account):
            elsewhere = AccountElsewhere(office.lines[0], ("t", 1))
            for _ in range(4):
                await elsewhere.reserve(CALL)
                elsewhere.settle(Usage(100, 1.0))
            with pytest.raises(ProviderFault, match="could pass the cap"):
                await elsewhere.reserve(CALL)
            settle(account, elsewhere.take_unreported())
        assert elsewhere.usage == Usage(400, 4.0)
        assert (budget.spent.cost, budget.exhausted, budget.cut_off) == (4.0, True, 1)

    played(model(), play)


def test_what_a_worker_had_begun_when_it_died_counts_as_the_most_it_could_be() -> None:
    async def play(office: Office) -> None:
        budget = Budget(cost=2.5, first=Sum(100, 1.0))
        dead, other = await budget.admit(), await budget.admit()
        assert dead is not None
        assert other is not None
        with other:
            with dead, office.gate.keeping(("t", 1), dead):
                elsewhere = AccountElsewhere(office.lines[0], ("t", 1))
                await elsewhere.reserve(CALL)
                elsewhere.settle(Usage(10, 0.1))
                await elsewhere.reserve(CALL)
                assert dead.abandon()
            assert budget.spent.cost == pytest.approx(1.1)
            # What it still waited for is not given to anybody: the rest is the other's.
            await other.reserve(Usage(100, 1.4))
            other.settle(Usage(100, 1.4))
        assert budget.spent.cost == pytest.approx(2.5)

    played(model(), play)
