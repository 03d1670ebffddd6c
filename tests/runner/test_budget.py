"""The ledger behind a cap: spent and reserved together never pass it."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.agents.base import ProviderFault, Usage
from passhat.runner.budget import Budget, Sum, Used

CALL = Usage(100, 1.0)


@given(
    seed=st.integers(0, 10_000),
    cap=st.floats(0.5, 60.0),
    first=st.floats(0.5, 40.0),
    jobs=st.integers(1, 12),
)
def test_no_order_of_events_passes_the_cap(seed: int, cap: float, first: float, jobs: int) -> None:
    dice = random.Random(seed)
    budget = Budget(cost=cap, tokens=None, first=Sum(100.0, first))
    truly_spent = 0.0
    reasons: set[str] = set()

    async def worker() -> None:
        nonlocal truly_spent
        while (account := await budget.admit()) is not None:
            with account:
                try:
                    for _ in range(dice.randint(1, 6)):
                        await account.reserve(CALL)
                        await asyncio.sleep(0)
                        truly_spent += (used := dice.random())
                        what = dice.random()
                        if what < 0.8:
                            account.settle(Usage(100 * used, used))
                        elif what < 0.9:
                            account.settle(Usage())  # nobody knows
                        else:
                            truly_spent -= used
                            account.forgo()
                        assert truly_spent <= cap + 1e-6
                except ProviderFault as fault:
                    reasons.add(str(fault.reason))

    async def play() -> None:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(jobs):
                group.create_task(worker())

    asyncio.run(play())
    assert budget.exhausted
    assert reasons <= {"budget"}
    assert truly_spent <= budget.spent.cost + 1e-6
    assert budget.spent.cost <= cap + 1e-6


def test_what_nobody_knows_counts_as_the_most_it_could_be() -> None:
    async def play() -> Budget:
        budget = Budget(cost=10.0, first=Sum(100, 2.0))
        account = await budget.admit()
        assert account is not None
        with account:
            await account.reserve(CALL)
            account.settle(Usage())
        assert account.usage == Usage(None, None)
        return budget

    assert asyncio.run(play()).spent == Sum(100, 1.0)


def test_a_server_that_counts_beyond_the_bound_is_believed_and_expected_to_go_on() -> None:
    async def play() -> None:
        budget = Budget(cost=10.0, first=Sum(100, 2.0))
        account = await budget.admit()
        assert account is not None
        with account:
            await account.reserve(CALL)
            account.settle(Usage(400, 4.0))
            assert budget.spent == Sum(400, 4.0)
            await account.reserve(CALL)  # now taken for 4
            account.settle(Usage(400, 4.0))
            with pytest.raises(ProviderFault):
                await account.reserve(CALL)

    asyncio.run(play())


def test_an_attempt_in_flight_waits_for_others_before_it_is_cut_off() -> None:
    async def play() -> list[str]:
        budget = Budget(cost=4.0, first=Sum(100, 2.0))
        long, short = await budget.admit(), await budget.admit()
        assert long is not None
        assert short is not None
        events: list[str] = []

        async def goes_on() -> None:
            with long:
                for _ in range(3):
                    await long.reserve(CALL)
                    long.settle(Usage(100, 1.0))
                events.append("long done")

        task = asyncio.create_task(goes_on())
        await asyncio.sleep(0)
        with short:
            await short.reserve(CALL)
            short.settle(Usage(10, 0.1))
            events.append("short done")
        await task
        return events

    assert asyncio.run(play()) == ["short done", "long done"]


def test_what_the_rest_would_take_is_the_average_of_what_was_made() -> None:
    before = Used(Sum(300, 0.6), largest=Sum(1, 0.3), attempt_count=3)
    budget = Budget(cost=1.0, first=Sum(1, 9.0), before=before)
    assert budget.expected(10).cost == pytest.approx(2.0)


@pytest.mark.parametrize(("used", "at_once"), [(None, True), (0.0, True), (0.5, False)])
def test_whether_an_attempt_was_refused_before_it_used_anything(
    used: float | None, at_once: bool
) -> None:
    async def play() -> tuple[bool, bool]:
        budget = Budget(cost=1.0, first=Sum(100, 1.0))
        account = await budget.admit()
        assert account is not None
        with account:
            if used is not None:
                await account.reserve(Usage(0, 1.0))
                account.settle(Usage(0, used))
            before = account.refused_at_once
            with pytest.raises(ProviderFault):
                await account.reserve(Usage(0, 2.0))
        return before, account.refused_at_once

    assert asyncio.run(play()) == (False, at_once)
