"""Workers in other processes keep one rate, one pause and one cap, by asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from passhat.agents import Agent, ProviderFault, Usage, load_agent
from passhat.agents.chat import ChatAgent
from passhat.runner.budget import Account, Budget, Sum
from passhat.runner.remote_limits import (
    AccountElsewhere,
    Answer,
    Gatekeeper,
    LimitUpdate,
    RemoteLimits,
    _SharedPace,
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


# -- one message at a time -------------------------------------------------------------------------


def _worker_pace(*, limited: bool) -> tuple[RemoteLimits, Any]:
    line = RemoteLimits()
    return line, _SharedPace(line, "p", limited=limited)


def test_a_worker_tells_of_a_pause_and_once_of_an_answer() -> None:
    line, pace = _worker_pace(limited=False)
    pace.hold(60.0)
    assert pace.left > 50
    for _ in range(2):
        pace.note_answer()
    told = asyncio.run(line.poll())
    assert told == [LimitUpdate("p", pause=60.0), LimitUpdate("p", answered=True)]


@pytest.mark.parametrize(("before", "answered"), [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("pause", [0.0, 60.0])
def test_what_another_worker_heard_is_taken_over_and_not_told_again(
    before: bool, answered: bool, pause: float
) -> None:
    line, pace = _worker_pace(limited=False)
    pace.answered = before
    pace.apply(LimitUpdate("p", pause, answered))
    assert pace.answered is (before or answered)
    assert (pace.left > 50) is (pause > 0)
    line.close()
    assert asyncio.run(line.poll()) == []


def test_messages_about_other_providers_and_questions_are_left_alone() -> None:
    async def play() -> str:
        line, pace = _worker_pace(limited=False)
        line._paces = {"p": pace}
        asking = asyncio.create_task(line.ask(line.question()))
        await asyncio.sleep(0)
        (question,) = await line.poll()
        assert not isinstance(question, LimitUpdate)
        line.receive([LimitUpdate("other", 60.0), Answer(question.id + 1, "not this one")])
        assert not asking.done()
        line.receive([Answer(question.id, "no"), Answer(question.id, "again")])
        refused = await asking
        assert line._open == {}
        line.receive([Answer(question.id, "late")])
        return refused

    assert asyncio.run(play()) == "no"


def test_a_worker_reports_its_usage_once() -> None:
    async def play() -> None:
        line = RemoteLimits()
        account = AccountElsewhere(line, ("t", 1))
        account.settle(Usage(1.0, 2.0))
        account.forgo()
        reserving = asyncio.create_task(account.reserve(Usage(9.0, 9.0)))
        await asyncio.sleep(0)
        (question,) = await line.poll()
        assert not isinstance(question, LimitUpdate)
        assert (question.attempt, question.settled) == (("t", 1), (Usage(1.0, 2.0), None))
        assert question.worst == Usage(9.0, 9.0)
        line.receive([Answer(question.id)])
        await reserving
        assert account.take_unreported() == ()

    asyncio.run(play())


def test_an_attempt_that_is_over_gets_no_answer_but_that() -> None:
    gate = Gatekeeper([])
    assert not gate.is_needed
    assert gate.current_updates() == []
    question = replace(RemoteLimits().question(), attempt=("t", 1))
    assert asyncio.run(gate.answer(question)) == Answer(question.id, "the attempt is over")
    assert Gatekeeper([model()]).is_needed


@pytest.mark.parametrize(("pause", "answered"), [(0.0, False), (60.0, False), (0.0, True)])
def test_the_gatekeeper_keeps_what_workers_hear(pause: float, answered: bool) -> None:
    gate = Gatekeeper([model()])
    (before,) = gate.current_updates()
    assert (before.pause, before.answered) == (0.0, False)
    gate.apply(LimitUpdate(before.provider, pause, answered))
    (after,) = gate.current_updates()
    assert ((after.pause > 50), after.answered) == (pause > 0, answered)


def test_usage_is_put_on_the_account_that_it_belongs_to() -> None:
    account = Account()
    settle(account, (None, Usage(1.0, 0.5), Usage(2.0, 0.5)))
    assert account.usage == Usage(3.0, 1.0)
