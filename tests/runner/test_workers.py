"""The runner's ends of workers and of the process that forks them, without either."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.agents.base import AgentFault, AttemptInfo, ModelCall
from passhat.agents.function import FunctionAgent
from passhat.errors import RunStopped
from passhat.runner import workers
from passhat.runner.boundary import BackgroundErrors
from passhat.runner.budget import Account
from passhat.runner.worker_process import ENCODER, EXIT, SIZE, Reply
from passhat.runner.workers import WorkerAgent, _Nursery, _Worker, _WorkerSession
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn, WorldFault


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "the agent ended its process"),
        (9, "the agent's process was killed by SIGKILL"),
        (60, "the agent's process was killed by signal 60"),
        (3 << 8, "the agent ended its process with exit status 3"),
        (0, "the agent ended its process with exit status 0"),
    ],
)
def test_the_end_of_a_process_is_described(status: int | None, words: str) -> None:
    if status == 60 and 60 in set(signal.Signals):
        pytest.skip("this machine has a name for the signal")
    assert workers._describe_end(status, "agent") == words


def _nursery(end: socket.socket, noted: list[int]) -> Any:
    nursery: Any = object.__new__(_Nursery)
    nursery._note_exit, nursery._socket, nursery._buffer = noted.append, end, b""
    nursery._statuses, nursery._changed = {}, asyncio.Event()
    nursery.is_gone, nursery._loop = False, asyncio.get_running_loop()
    nursery._loop.add_reader(end, nursery._read)
    return nursery


def test_ends_of_workers_are_taken_down_as_they_are_reported() -> None:
    async def course() -> None:
        noted: list[int] = []
        far, near = socket.socketpair()
        near.setblocking(False)
        with far, near:
            nursery = _nursery(near, noted)
            nursery._read()  # nothing yet
            assert not nursery._changed.is_set()
            both = EXIT.pack(5, 256) + EXIT.pack(6, 9)
            far.send(both[:11])
            nursery._read()
            assert (noted, nursery._statuses) == ([5], {5: 256})
            assert nursery._changed.is_set()
            asking = asyncio.create_task(nursery.exit_status(6))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not asking.done()
            far.send(both[11:])
            assert await asking == 9
            assert await nursery.exit_status(5) == 256
            assert (noted, nursery._statuses, nursery.is_gone) == ([5, 6], {}, False)
            asking = asyncio.create_task(nursery.exit_status(7))
            far.send(EXIT.pack(0, 0) + EXIT.pack(8, 0))  # the nursery itself has gone
            assert await asking is None
            assert (nursery.is_gone, noted) == (True, [5, 6])
            assert not nursery._loop.remove_reader(near)

    asyncio.run(course())


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_nursery_whose_connection_ends_is_gone(is_broken: bool) -> None:
    async def course() -> None:
        far, near = socket.socketpair()
        near.setblocking(False)
        with near:
            nursery = _nursery(near, [])
            far.close()
            if is_broken:
                near.shutdown(socket.SHUT_RDWR)
            nursery._read()
            assert nursery.is_gone
            assert nursery._changed.is_set()
            assert not nursery._loop.remove_reader(near)
            nursery._note_loss()

    asyncio.run(course())


def test_a_status_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def course() -> None:
        far, near = socket.socketpair()
        near.setblocking(False)
        with far, near:
            assert await _nursery(near, []).exit_status(5) is None

    monkeypatch.setattr(workers, "_STATUS_SECONDS", 0.0)
    asyncio.run(course())


class _Transport(asyncio.Transport):
    """The way to a worker; what is written is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_aborted = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.is_aborted = True


def _frame(reply: Reply) -> bytes:
    data = ENCODER.encode(reply)
    return SIZE.pack(len(data)) + data


def test_a_worker_says_its_id_and_then_answers() -> None:
    async def course() -> None:
        worker, transport = _Worker(), _Transport()
        assert await worker.ask("too early") is None
        worker.connection_made(transport)
        data = SIZE.pack(4321) + _frame(Reply(text="yes")) + _frame(Reply(text="more"))
        worker.data_received(data[:3])
        assert (worker.pid, worker.has_started.done()) == (0, False)
        worker.data_received(data[3:4])
        assert (worker.pid, await worker.has_started) == (4321, True)
        asking = asyncio.create_task(worker.ask(("info", "turn")))
        await asyncio.sleep(0)
        (request,) = transport.written
        assert SIZE.unpack_from(request) == (len(request) - SIZE.size,)
        assert pickle.loads(request[SIZE.size :]) == ("info", "turn")
        half = 4 + len(_frame(Reply(text="yes"))) - 1
        worker.data_received(data[4:half])
        await asyncio.sleep(0)
        assert not asking.done()
        worker.data_received(data[half:])
        reply = await asking
        assert reply is not None
        assert reply.text == "yes"

    asyncio.run(course())


@pytest.mark.parametrize("case", ["nonsense", "too long", "just not", "gone"])
def test_a_worker_that_breaks_off_gives_no_reply(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    async def course() -> None:
        worker = _Worker()
        worker.connection_made(_Transport())
        worker.data_received(SIZE.pack(1))
        asking = asyncio.create_task(worker.ask("x"))
        await asyncio.sleep(0)
        if case == "gone":
            worker.connection_lost(None)
            assert worker.is_gone
        else:
            size = {"nonsense": 1, "too long": 5, "just not": 4}[case]
            worker.data_received(SIZE.pack(size))
            await asyncio.sleep(0)
            assert asking.done() is (case == "too long")
            worker.data_received(b"\xc1" * (0 if case == "too long" else size))
        assert await asking is None
        assert await worker.ask("again") is None if case == "gone" else True

    monkeypatch.setattr(workers, "_LONGEST_FRAME", 4)
    asyncio.run(course())


def test_a_worker_that_never_starts_and_one_that_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def course() -> None:
        worker, transport = _Worker(), _Transport()
        worker.kill()
        assert killed == []
        worker.connection_made(transport)
        worker.connection_lost(None)
        assert not await worker.has_started
        worker.pid = 77
        worker.kill()
        assert killed == [(77, signal.SIGKILL)]
        assert worker.is_gone
        assert transport.is_aborted

    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda *words: killed.append(words))
    asyncio.run(course())


# -- sessions --------------------------------------------------------------------------------------


class _Agent:
    """The pool of workers; what happens to them is kept."""

    noun = "agent"

    def __init__(self) -> None:
        self.log: list[str] = []
        self.errors = BackgroundErrors()

    def take_back(self, worker: object) -> None:
        self.log.append(f"back {worker}")

    def end(self, worker: object) -> None:
        self.log.append(f"end {worker}")

    async def exit_status(self, worker: object) -> int:
        self.log.append(f"status of {worker}")
        return 9


class _Replies:
    def __init__(self, replies: list[Reply | None]) -> None:
        self.replies = replies
        self.asked: list[Any] = []

    def __str__(self) -> str:
        return "worker"

    async def ask(self, request: object) -> Reply | None:
        self.asked.append(request)
        return self.replies.pop(0)


def _session(*replies: Reply | None) -> tuple[Any, _Agent, _Replies, Account]:
    agent, worker, meter = _Agent(), _Replies(list(replies)), Account()
    made: Any = (agent, worker, AttemptInfo("t", 1, 0, meter=meter))
    return _WorkerSession(*made), agent, worker, meter


def test_a_session_answers_counts_and_gives_its_worker_back() -> None:
    async def course() -> None:
        first = Reply(
            *("yes", "", "", "", ""), tokens=5.0, cost=0.25, has_usage=True, retries=2,
            calls=[ModelCall("m")], errors=3, first_error="KeyError",
        )  # fmt: skip
        session, agent, worker, meter = _session(first, Reply(text="b", retries=-1, errors=-1))
        assert [await session.answer(Turn(word)) for word in "pq"] == ["yes", "b"]
        (info, turn), (no_info, again) = worker.asked
        assert (info.task, info.meter, turn.text) == ("t", None, "p")
        assert (no_info, again.text) == (None, "q")
        assert (meter.usage.tokens, meter.usage.cost, meter.retries) == (5.0, 0.25, 2)
        assert [call.name for call in meter.calls] == ["m"]
        assert agent.errors.take() == (3, "KeyError")
        await session.close()
        await session.close()
        assert agent.log == ["back worker"]
        with pytest.raises(AgentFault, match="has ended"):
            await session.answer(Turn("r"))

    asyncio.run(course())


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (Reply(fault="refused", detail="no"), AgentFault, "no"),
        (Reply(fault="nonsense", detail="x"), AgentFault, "x"),
        (Reply(missing="user_error", detail="left"), WorldFault, "left"),
        (Reply(stopped="enough", detail="hint"), RunStopped, "enough"),
    ],
)
def test_other_ends_of_a_turn_are_raised(reply: Reply, error: type[Exception], words: str) -> None:
    async def course() -> None:
        session, agent, _, _ = _session(reply)
        with pytest.raises(error) as caught:
            await session.answer(Turn("p"))
        assert words in str(caught.value)
        if isinstance(caught.value, AgentFault):
            known = reply.fault == "refused"
            expected = FailureCategory.REFUSED if known else FailureCategory.EXCEPTION
            assert caught.value.category is expected
        if isinstance(caught.value, RunStopped):
            assert caught.value.hint == "hint"
        await session.close()
        assert agent.log == ["back worker"]

    asyncio.run(course())


def test_a_worker_that_is_not_as_it_was_is_ended() -> None:
    async def course() -> None:
        session, agent, _, _ = _session(Reply(text="a", is_last=True), Reply(text="b"))
        assert [await session.answer(Turn("p")) for _ in range(2)] == ["a", "b"]
        await session.close()
        assert agent.log == ["end worker"]
        session, agent, _, _ = _session(None)
        with pytest.raises(AgentFault, match="killed by SIGKILL"):
            await session.answer(Turn("p"))
        await session.close()
        assert agent.log == ["status of worker", "end worker"]
        session, agent, _, _ = _session()
        session._is_answering = True  # given up at its limit
        await session.close()
        assert agent.log == ["end worker"]

    asyncio.run(course())


# -- starting workers ------------------------------------------------------------------------------


class _Nurseries:
    """Nurseries of which only the one with a number starts a worker; the others break off."""

    def __init__(self, working: int) -> None:
        self.working = working
        self.made: list[Any] = []
        self.ends: list[socket.socket] = []

    def __call__(self, *_: object) -> Any:
        number = len(self.made)
        nursery = SimpleNamespace(
            is_gone=False, number=number, fork=lambda end: self.fork(number, end), close=list
        )
        self.made.append(nursery)
        return nursery

    def fork(self, number: int, end: socket.socket) -> None:
        if number == self.working:
            self.ends.append(end.dup())
            self.ends[-1].send(SIZE.pack(4321))


@pytest.mark.parametrize(("working", "count"), [(0, 1), (1, 2), (4, 5), (5, 5)])
def test_a_worker_that_breaks_off_is_started_again_by_another_nursery(
    monkeypatch: pytest.MonkeyPatch, working: int, count: int
) -> None:
    nurseries = _Nurseries(working)
    killed: list[object] = []
    monkeypatch.setattr(workers, "_Nursery", nurseries)
    monkeypatch.setattr(_Worker, "kill", lambda worker: killed.append(worker))

    async def course() -> None:
        agent = WorkerAgent(FunctionAgent(lambda prompt: prompt))
        if working < workers._START_TRIES:
            worker = await agent._start_worker()
            assert worker.pid == 4321
            assert agent._workers == {worker}
            assert agent._nursery is nurseries.made[-1]
            worker._transport.abort()  # type: ignore[union-attr]
            await asyncio.sleep(0)
        else:
            with pytest.raises(WorldFault, match="no worker process could be started"):
                await agent._start_worker()
            assert agent._workers == set()
        lost = nurseries.made[: min(working, count)]
        assert agent._lost_nurseries == lost
        assert len(killed) == len(lost)

    asyncio.run(course())
    for end in nurseries.ends:
        end.close()
    assert len(nurseries.made) == count


def test_a_nursery_that_is_gone_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    nurseries = _Nurseries(0)
    monkeypatch.setattr(workers, "_Nursery", nurseries)
    agent = WorkerAgent(FunctionAgent(lambda prompt: prompt))
    first = agent.start()
    assert agent.start() is first
    nurseries.made[0].is_gone = True
    second = agent.start()
    assert second is not first
    assert agent._lost_nurseries == [first]
    agent._replace_nursery()
    agent._replace_nursery()
    assert agent._lost_nurseries == [first, second]


def test_idle_workers_are_used_again_and_those_that_are_gone_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def course() -> None:
        agent = WorkerAgent(FunctionAgent(lambda prompt: prompt))
        ended: list[object] = []
        gone, good = _Worker(), _Worker()
        gone.is_gone = True
        monkeypatch.setattr(_Worker, "kill", lambda worker: ended.append(worker))
        for worker in (good, gone):
            agent.take_back(worker)
        session: Any = await agent.session(AttemptInfo("t", 1, 2))
        assert session._worker is good
        assert (ended, agent._idle) == ([gone], [])
        agent.take_back(good)
        agent.end(good)
        assert (ended, agent._idle) == ([gone, good], [])

    asyncio.run(course())
