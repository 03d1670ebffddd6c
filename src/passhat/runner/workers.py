"""``python:`` agents in worker processes: what an agent does to its process costs its own attempt.

The runner's process keeps the store, the signals and the exit code. Before the first attempt it
forks a *nursery*, a process with one thread that has the agent's module imported and nothing of the
store. The nursery forks workers when they are asked for, so a worker costs about a millisecond and
shares its memory. A worker makes one attempt at a time: working folder, environment, signal
handlers, descriptors, limits and event loop are the attempt's own. A worker that an agent changed
is replaced after the attempt; one that hangs is killed at the limit; one that ends by itself fails
its attempt.

Answers of workers are data of known types, never pickles: a worker may have been taken over.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeGuard

import msgspec

from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session, Usage
from passhat.agents.function import FunctionAgent
from passhat.agents.prices import PriceTable
from passhat.errors import RunStopped
from passhat.runner.boundary import BackgroundErrors
from passhat.runner.worker_process import (
    EXIT,
    SIZE,
    Reply,
    end_process,
    keep_nursery,
    kill_marked,
)
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Judgement, NoVerdict, Suite, Turn, WorldFault
from passhat.suites.jsonl import QuestionSuite

MOST_WORKERS = 64
"""Attempts at the same time that have a process each; with more, all share the runner's."""
_LONGEST_FRAME = 64 * 2**20
_START_TRIES = 5
_STATUS_SECONDS = 2.0
_LAST_WORDS_SECONDS = 0.1
"""A reply that a worker sent before it ended is read within this."""
_DECODER = msgspec.msgpack.Decoder(Reply)


def can_have_workers(agent: Agent) -> TypeGuard[FunctionAgent]:
    """Whether an agent can be called in processes that are forked from this one.

    Spans of OpenTelemetry are taken from the tracer of the runner's own process, so an agent that
    emits them stays there.
    """
    return (
        type(agent) is FunctionAgent
        and sys.platform == "linux"
        and "opentelemetry.sdk.trace" not in sys.modules
    )


class WorkerAgent(Agent):
    """An agent whose sessions live in worker processes; ``noun`` is its name in messages."""

    def __init__(self, agent: FunctionAgent, noun: str = "agent") -> None:
        self.agent = agent
        self.noun = noun
        self.name = agent.name
        self.source_files = agent.source_files
        self.decoding = agent.decoding
        self._nursery: _Nursery | None = None
        self._lost_nurseries: list[_Nursery] = []
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self.errors = BackgroundErrors()

    def notices(self) -> list[str]:
        lines = self.errors.describe()
        self.errors.take()
        return [*self.agent.notices(), *lines]

    @property
    def price_table(self) -> PriceTable | None:
        """Prices for usage that names a model; set before the first attempt."""
        return self.agent.price_table

    @price_table.setter
    def price_table(self, prices: PriceTable | None) -> None:
        self.agent.price_table = prices

    async def check(self) -> None:
        await self.agent.check()
        self.start()

    async def session(self, attempt: AttemptInfo) -> Session:
        while self._idle:
            worker = self._idle.pop()
            if not worker.is_gone:
                return _WorkerSession(self, worker, attempt)
            self.end(worker)  # something outside ended it between two attempts
        return _WorkerSession(self, await self._start_worker(), attempt)

    async def close(self) -> None:
        for worker in list(self._workers):
            self.end(worker)
        for nursery in (self._nursery, *self._lost_nurseries):
            if nursery is not None:
                nursery.close()
        self._nursery, self._lost_nurseries = None, []
        await self.agent.close()

    def take_back(self, worker: _Worker) -> None:
        """Keep a worker whose attempt is over for the next one."""
        self._idle.append(worker)

    def end(self, worker: _Worker) -> None:
        """End a worker and everything it started."""
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.kill()

    async def exit_status(self, worker: _Worker) -> int | None:
        """How a worker ended, as ``waitpid`` says it; ``None`` where that is not known."""
        nursery = self._nursery
        return None if nursery is None else await nursery.exit_status(worker.pid)

    def start(self) -> _Nursery:
        """Fork the nursery, before the runner has threads and much memory."""
        if self._nursery is not None and self._nursery.is_gone:
            self._replace_nursery()
        if self._nursery is None:
            self._nursery = _Nursery(self.agent, self._note_exit)
        return self._nursery

    def _replace_nursery(self) -> None:
        """Have the next worker forked by a new nursery; workers of the old one may be in use."""
        if self._nursery is not None:
            self._lost_nurseries.append(self._nursery)
            self._nursery = None

    def _note_exit(self, pid: int) -> None:
        """A child of the agent may keep the connection open when the worker itself is gone."""
        for worker in self._workers:
            if worker.pid == pid:
                asyncio.get_running_loop().call_later(
                    _LAST_WORDS_SECONDS, worker.connection_lost, None
                )

    async def _start_worker(self) -> _Worker:
        loop = asyncio.get_running_loop()
        for _ in range(_START_TRIES):
            ours, theirs = socket.socketpair()
            with theirs, suppress(OSError):  # an agent may end the parent of its own process
                self.start().fork(theirs)
            ours.setblocking(False)
            worker: _Worker | None = None
            try:
                _, worker = await loop.create_connection(_Worker, sock=ours)
                if await worker.has_started:
                    self._workers.add(worker)
                    return worker
            except asyncio.CancelledError:  # the run is stopped while a worker starts
                if worker is None:
                    ours.close()
                else:
                    worker.kill()
                raise
            worker.kill()
            self._replace_nursery()
        raise WorldFault(MissingReason.INFRASTRUCTURE, "no worker process could be started")


class _Worker(asyncio.Protocol):
    """The runner's end of a worker: one request, then one reply."""

    def __init__(self) -> None:
        self.pid = 0
        self.has_started: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()
        self._reply: asyncio.Future[bytes | None] | None = None
        self._transport: asyncio.Transport | None = None
        self.is_gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        # A frame is its length, four bytes in network order, and then msgpack.
        self._buffer += data
        if not self.pid and len(self._buffer) >= SIZE.size:  # its first word is its process id
            (self.pid,) = SIZE.unpack_from(self._buffer)
            del self._buffer[: SIZE.size]
            if not self.has_started.done():  # canceled: the run is stopped
                self.has_started.set_result(True)
        if len(self._buffer) >= SIZE.size:
            (size,) = SIZE.unpack_from(self._buffer)
            if size > _LONGEST_FRAME:
                self._resolve(None)
            elif len(self._buffer) >= SIZE.size + size:
                frame = bytes(self._buffer[SIZE.size : SIZE.size + size])
                del self._buffer[: SIZE.size + size]
                self._resolve(frame)

    def connection_lost(self, _error: Exception | None) -> None:
        self.is_gone = True
        if not self.has_started.done():
            self.has_started.set_result(False)
        self._resolve(None)

    async def ask(self, request: object) -> Reply | None:
        """Send a request and return the reply; ``None`` when the worker ended without one."""
        if self.is_gone or self._transport is None:
            return None
        self._reply = asyncio.get_running_loop().create_future()
        data = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        self._transport.write(SIZE.pack(len(data)) + data)
        frame = await self._reply
        try:
            return None if frame is None else _DECODER.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def kill(self) -> None:
        """Kill the worker and its children."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.is_gone = True
        if self._transport is not None:
            self._transport.abort()

    def _resolve(self, frame: bytes | None) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(frame)


class _WorkerSession(Session):
    """An attempt in a worker."""

    def __init__(self, agent: WorkerAgent, worker: _Worker, attempt: AttemptInfo) -> None:
        self._agent = agent
        self._worker: _Worker | None = worker
        self._attempt = attempt
        self._info: AttemptInfo | None = replace(attempt, meter=None)  # type: ignore[arg-type]
        self._is_last = False
        self._is_answering = False

    async def answer(self, turn: Turn) -> str:
        worker = self._worker
        if worker is None:
            raise AgentFault(FailureCategory.EXCEPTION, "the agent's process has ended")
        info, self._info = self._info, None
        self._is_answering = True
        reply = await worker.ask((info, turn))
        self._is_answering = False
        if reply is None:
            status = await self._agent.exit_status(worker)
            self._end()
            raise AgentFault(FailureCategory.EXCEPTION, _describe_end(status, self._agent.noun))
        self._is_last |= reply.is_last
        self._agent.errors.add(max(0, reply.errors), reply.first_error)
        self._note_usage(reply)
        if reply.text is not None:
            return reply.text
        if reply.missing:
            raise WorldFault(MissingReason(reply.missing), reply.detail)
        if reply.stopped:
            raise RunStopped(reply.stopped, hint=reply.detail or None)
        raise AgentFault(_as_category(reply.fault), reply.detail)

    async def close(self) -> None:
        if self._worker is None:
            return
        if self._is_answering or self._is_last:  # given up at its limit, or not as it was
            self._end()
            return
        self._agent.take_back(self._worker)
        self._worker = None

    def _end(self) -> None:
        if self._worker is not None:
            self._agent.end(self._worker)
            self._worker = None

    def _note_usage(self, reply: Reply) -> None:
        meter = self._attempt.meter
        if reply.has_usage:
            meter.settle(Usage(reply.tokens, reply.cost))
        meter.retries += max(0, reply.retries)
        for call in reply.calls:
            meter.record(call)


def _as_category(word: str) -> FailureCategory:
    try:
        return FailureCategory(word)
    except ValueError:
        return FailureCategory.EXCEPTION


def _describe_end(status: int | None, noun: str) -> str:
    if status is None:
        return f"the {noun} ended its process"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        return f"the {noun}'s process was killed by {name}"
    return f"the {noun} ended its process with exit status {os.WEXITSTATUS(status)}"


class _GraderWorkers:
    """Graders of a suite that are Python functions, called in worker processes.

    A grader that hangs, exits or changes its process costs its own verdict, and one that blocks, as
    a synchronous client does, holds up no other attempt.
    """

    def __init__(self, suite: QuestionSuite) -> None:
        def grade(answer: str, attempt: AttemptInfo) -> str:
            try:
                return msgspec.json.encode(suite.grade(attempt.task, answer)).decode()
            except NoVerdict as error:
                return msgspec.json.encode(error.message).decode()

        self._workers = WorkerAgent(FunctionAgent(grade), "judge")
        self._free = asyncio.Semaphore(MOST_WORKERS)
        self.start, self.close = self._workers.start, self._workers.close

    async def grade(self, attempt: object, answer: str) -> Judgement:
        """The verdict on an answer; an error of the grader is raised as an ``AgentFault``."""
        assert isinstance(attempt, AttemptInfo)
        info = AttemptInfo(attempt.task, attempt.number, attempt.seed)
        async with self._free:
            session = await self._workers.session(info)
            try:
                text = await session.answer(Turn(answer))
            finally:
                await session.close()
        verdict: Judgement | str = _VERDICTS.decode(text)
        if isinstance(verdict, str):
            raise NoVerdict(verdict)
        return verdict


_VERDICTS: msgspec.json.Decoder[Judgement | str] = msgspec.json.Decoder(Judgement | str)


def attach_graders(suite: Suite) -> None:
    """Have graders that are Python functions called in worker processes, if there are any."""
    if isinstance(suite, QuestionSuite) and suite.runs_code and sys.platform == "linux":
        suite.grader_pool = _GraderWorkers(suite)


class _Nursery:
    """The runner's end of the process that forks workers."""

    def __init__(self, agent: FunctionAgent, note_exit: Callable[[int], None]) -> None:
        self._note_exit = note_exit
        self._mark = secrets.token_hex(8)
        ours, theirs = socket.socketpair()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()  # or what is buffered would be written twice
        with warnings.catch_warnings():
            # From Python 3.12 on: other threads may hold locks. The nursery uses none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            end_process(keep_nursery, theirs, agent, self._mark)
        theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._buffer = b""
        self._statuses: dict[int, int] = {}
        self._changed = asyncio.Event()
        self.is_gone = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours, self._read)

    def fork(self, worker_end: socket.socket) -> None:
        """Have a worker forked at the other end of a socket."""
        socket.send_fds(self._socket, [b"+"], [worker_end.fileno()])

    async def exit_status(self, pid: int) -> int | None:
        """The status with which a worker ended; waited for a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STATUS_SECONDS):
                while pid not in self._statuses and not self.is_gone:
                    self._changed.clear()
                    await self._changed.wait()
        return self._statuses.pop(pid, None)

    def close(self) -> None:
        """End the nursery; it ends its workers first."""
        self._note_loss()
        self._socket.close()
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._pid, 0)
            if os.WIFSIGNALED(status):
                kill_marked(self._mark)

    def _note_loss(self) -> None:
        if not self.is_gone:
            self.is_gone = True
            self._loop.remove_reader(self._socket)

    def _read(self) -> None:
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._note_loss()
        self._buffer += data
        while len(self._buffer) >= EXIT.size:
            pid, status = EXIT.unpack_from(self._buffer)
            self._buffer = self._buffer[EXIT.size :]
            if not pid:  # the nursery itself
                self._note_loss()
                break
            self._statuses[pid] = status
            self._note_exit(pid)
        self._changed.set()
