"""Batches to a worker and back, without Ray between: few calls, everything once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from passhat.integrations.ray import ray_worker
from passhat.integrations.ray.ray_pool import BatchChannel
from passhat.integrations.ray.ray_worker import BatchResult, Job, RayWorker
from passhat.runner.run_spec import RunSpec
from passhat.runner.time_limits import AttemptLimits

TASKS = tuple(f"t{i}" for i in range(5))


class _Here:
    """A worker of this process, called as one on Ray is; it can die."""

    def __init__(self, agent: str) -> None:
        spec = RunSpec(suite="jsonl:tasks.jsonl", agent=f"python:some_agents:{agent}", attempts=40)
        job = Job(spec, "", "run", TASKS, AttemptLimits(), canary=False, attempts=1)
        self._worker = RayWorker(job)
        self.calls = 0
        self._open: list[Future[Any]] = []
        self.exchange = self

    def remote(self, batches: Sequence[tuple[int, Sequence[tuple[str, int]]]]) -> Any:
        self.calls += 1
        answer: Future[Any] = Future()
        self._open.append(answer)

        def hand_over(done: asyncio.Task[list[tuple[int, BatchResult]]]) -> None:
            if answer.done():
                return
            if (error := done.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(done.result())

        asyncio.ensure_future(self._worker.exchange(batches)).add_done_callback(hand_over)
        return type("Reference", (), {"future": lambda _self: answer})()

    def die(self) -> None:
        for answer in self._open:
            if not answer.done():
                answer.set_exception(ProcessLookupError("gone"))

    async def close(self) -> None:
        await self._worker.close()


@pytest.mark.usefixtures("folder")
def test_what_many_slots_hand_in_goes_in_few_calls_and_comes_back_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Else a slow machine returns what little is finished.
    monkeypatch.setattr(ray_worker, "_GATHER_SECONDS", 60.0)

    async def play() -> tuple[list[tuple[str, int]], int]:
        worker = _Here("ayes")
        channel = BatchChannel(worker)
        wanted = [(task, number) for number in range(1, 9) for task in TASKS]
        left, made = iter(wanted), []

        async def slot() -> None:
            for one in left:
                (record,) = (await channel.make([one])).records
                made.append((record.task, record.number))

        await asyncio.gather(*(slot() for _ in range(8)))
        channel.close()
        await worker.close()
        assert sorted(made) == sorted(wanted)
        return made, worker.calls

    made, calls = asyncio.run(play())
    assert calls <= len(made) / 2


@pytest.mark.usefixtures("folder")
def test_all_that_a_worker_had_is_lost_with_it_and_its_next_life_begins_anew() -> None:
    async def play() -> None:
        worker = _Here("ayes")
        channel = BatchChannel(worker)
        lost = [asyncio.create_task(channel.make([(task, 1)])) for task in TASKS]
        while not worker.calls:
            await asyncio.sleep(0)
        worker.die()
        for one in await asyncio.gather(*lost, return_exceptions=True):
            assert isinstance(one, ProcessLookupError)
        again = await channel.make([("t0", 1), ("t1", 1)])
        assert [record.task for record in again.records] == ["t0", "t1"]
        channel.close()
        await worker.close()

    asyncio.run(play())
