"""Calls of a store in their thread, tried again while it is away; claims in blocks that grow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from passhat.errors import ReadError, RunStopped, StoreUnavailable
from passhat.runner import queues
from passhat.runner.queues import Claims, Outbox, StoreRetry, StoreThread, raise_first_error
from passhat.runner.redaction import Redactor
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord
from passhat.suites.base import Judgement

Key = tuple[str, int]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_PAUSE_SECONDS", 0.01), ("_DRAIN_SECONDS", 0.0)):
        monkeypatch.setattr(queues, name, seconds)


@pytest.fixture
def thread() -> Iterator[StoreThread]:
    thread = StoreThread()
    yield thread
    thread.close()


def test_a_call_runs_in_the_one_thread_and_its_error_comes_back(thread: StoreThread) -> None:
    async def calls() -> tuple[str, str]:
        with pytest.raises(KeyError, match="away"):
            await thread(partial({"here": 1}.__getitem__, "away"))
        names = [await thread(lambda: threading.current_thread().name) for _ in range(2)]
        return names[0], names[1]

    assert asyncio.run(calls()) == ("store", "store")


def test_a_call_that_was_given_up_is_not_made(thread: StoreThread) -> None:
    gate, made = threading.Event(), list[int]()
    first = thread.submit(gate.wait)
    second = thread.submit(partial(made.append, 2))
    assert second.cancel()
    third = thread.submit(partial(made.append, 3))
    gate.set()
    assert first.result(10)
    third.result(10)
    assert made == [3]


class Away:
    """A store that answers at the third call."""

    def __init__(self, failures: int = 2) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise StoreUnavailable(f"is locked ({self.calls}).", source="s.db")
        return "done"


def test_a_store_that_is_away_is_asked_again_and_announced_once(thread: StoreThread) -> None:
    told: list[str] = []

    async def retry() -> tuple[str, bool, bool]:
        retry = StoreRetry(60.0, told.append, thread)
        before = retry.has_failed
        return await retry(Away()), before, retry.has_failed

    assert asyncio.run(retry()) == ("done", False, True)
    (notice,) = told
    assert notice.endswith("is locked (1). Trying again for 60 s.")


@pytest.mark.parametrize("hurried", [False, True])
def test_it_is_given_up_after_its_time_or_when_asked(thread: StoreThread, hurried: bool) -> None:
    store = Away(99)

    async def retry() -> None:
        retry = StoreRetry(60.0 if hurried else 0.0, lambda _: None, thread)
        assert not retry.hurried
        if hurried:
            retry.hurry()
        assert retry.hurried == hurried
        await retry(store)

    with pytest.raises(StoreUnavailable):
        asyncio.run(retry())
    assert store.calls == 1


def test_any_other_error_is_not_tried_again(thread: StoreThread) -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        raise ReadError("is damaged.", source="s.db")

    async def retry() -> None:
        await StoreRetry(60.0, lambda _: None, thread)(work)

    with pytest.raises(ReadError, match="is damaged"):
        asyncio.run(retry())
    assert calls == [1]


def test_a_call_that_does_not_come_back_is_announced_interrupted_and_refused(
    thread: StoreThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_ANNOUNCE_SECONDS", "_CALL_SECONDS", "_INTERRUPTED_SECONDS", "_STEP_SECONDS"):
        monkeypatch.setattr(queues, name, 0.02)
    gate, told = threading.Event(), list[str]()
    interrupts: list[int] = []

    async def stuck() -> None:
        retry = StoreRetry(60.0, told.append, thread, partial(interrupts.append, 1))
        await retry(gate.wait)

    with pytest.raises(ReadError, match=r"a call has not returned for 0\.02 s"):
        asyncio.run(stuck())
    gate.set()
    assert told == ["The store has not answered for 0.02 s. Trying again for 60 s."]
    assert interrupts


def _claims(
    claim: Callable[[Sequence[Key]], list[Key]],
    thread: StoreThread,
    count: int = 10,
    **options: object,
) -> Claims:
    retry = StoreRetry(1.0, lambda _: None, thread)
    todo = iter([("t", number) for number in range(1, count + 1)])
    return Claims(claim, todo, 2, options.pop("wanted", lambda: True), retry, **options)  # type: ignore[arg-type]


async def _take_all(claims: Claims) -> list[int]:
    numbers = []
    while (attempt := await claims.next_attempt()) is not None:
        numbers.append(attempt[1])
    return numbers


def test_claims_come_in_order_in_blocks_that_double_while_they_are_quick(
    thread: StoreThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks: list[int] = []

    def claim(block: Sequence[Key]) -> list[Key]:
        blocks.append(len(block))
        return list(block)

    async def play(quick: float) -> list[int]:
        monkeypatch.setattr(queues, "_QUICK_SECONDS", quick)
        claims = _claims(claim, thread, 20)
        numbers = await _take_all(claims)
        assert claims.handed_out == 20
        assert claims.in_flight == {("t", number) for number in numbers}
        return numbers

    assert asyncio.run(play(1e9)) == list(range(1, 21))
    assert blocks == [4, 8, 8]
    blocks.clear()
    asyncio.run(play(0.0))
    assert blocks == [2] * 10
    blocks.clear()
    monkeypatch.setattr(queues, "_LARGEST_BLOCK", 5)
    asyncio.run(play(1e9))
    assert blocks == [4, 5, 5, 5, 1]


def test_attempts_of_others_and_those_in_flight_are_left_out(thread: StoreThread) -> None:
    refused: list[int] = []

    async def play() -> list[int]:
        claims = _claims(
            lambda block: [key for key in block if key[1] != 3], thread, refuse=refused.append
        )
        claims.in_flight.add(("t", 5))
        return await _take_all(claims)

    assert asyncio.run(play()) == [1, 2, 4, 6, 7, 8, 9, 10]
    assert sum(refused) == 1


def test_nothing_is_handed_out_once_no_more_is_wanted(thread: StoreThread) -> None:
    wanted = [True]

    async def play() -> tuple[object, object]:
        claims = _claims(list, thread, wanted=lambda: wanted[0])
        first = await claims.next_attempt()
        wanted[0] = False
        return first, await claims.next_attempt()

    assert asyncio.run(play()) == (("t", 1), None)


def test_what_others_left_is_taken_up_and_asked_for_once_in_a_while(thread: StoreThread) -> None:
    left = [iter([("u", 1)]), None]
    asked: list[int] = []

    async def refill() -> Iterator[Key] | None:
        asked.append(1)
        return left[len(asked) - 1]

    async def play() -> list[int]:
        claims = _claims(list, thread, 2, refill=refill)
        numbers = await _take_all(claims)
        assert await claims.next_attempt() is None
        claims.add(iter([("v", 9)]))
        return [*numbers, *await _take_all(claims)]

    assert asyncio.run(play()) == [1, 2, 1, 9]
    assert asked == [1]  # the second question would have come within the same second


def test_claims_that_were_lost_are_dropped(thread: StoreThread) -> None:
    ours, refused = [True], list[int]()

    async def play() -> list[int]:
        claims = _claims(
            lambda block: list(block) if ours[0] else [], thread, 4, refuse=refused.append
        )
        first = await claims.next_attempt()
        assert first == ("t", 1)
        ours[0] = False
        await claims.check()
        await claims.check()  # nothing is pending any more
        return await _take_all(claims)

    assert asyncio.run(play()) == []
    assert refused == [0, 1, 2]


def _record(number: int) -> AttemptRecord:
    return AttemptRecord("t", number, Judgement(Verdict.PASSED))


def test_results_are_taken_together_and_an_empty_list_is_the_end() -> None:
    async def play() -> list[list[int]]:
        outbox, taken = Outbox(), []
        for number in (1, 2):
            outbox.put(_record(number))
        taken.append(await outbox.take())
        outbox.put(_record(3))
        outbox.close()
        taken += [await outbox.take(), await outbox.take()]
        return [[record.number for record in records] for records in taken]

    assert asyncio.run(play()) == [[1, 2], [3], []]


@pytest.mark.parametrize(("decisive", "most"), [(False, 1000), (True, 50)])
def test_so_many_results_wait_unwritten(decisive: bool, most: int) -> None:
    async def play() -> tuple[bool, bool, bool]:
        outbox = Outbox(decisive=decisive)
        for number in range(most - 1):
            outbox.put(_record(number))
        early = asyncio.ensure_future(_wait(outbox))
        await asyncio.sleep(0.001)
        outbox.put(_record(most))
        late = asyncio.ensure_future(_wait(outbox))
        await asyncio.sleep(0.001)
        before = late.done()
        await outbox.take()
        await asyncio.wait({late}, timeout=10)
        return early.done(), before, late.done()

    assert asyncio.run(play()) == (True, False, True)


async def _wait(outbox: Outbox) -> None:
    await outbox.wait_for_room()


def test_of_errors_in_several_workers_the_first_is_raised() -> None:
    async def play(*errors: Exception) -> None:
        async def fail() -> None:
            if errors:
                raise ExceptionGroup("x", [ExceptionGroup("y", errors), OSError("other")])

        task = asyncio.ensure_future(fail())
        await asyncio.wait({task})
        raise_first_error(task, Redactor())

    asyncio.run(play())
    with pytest.raises(RunStopped, match="first"):
        asyncio.run(play(KeyError("a mistake"), RunStopped("first"), ReadError("x", source="y")))
    with pytest.raises(ExceptionGroup):
        asyncio.run(play(KeyError("a mistake")))
