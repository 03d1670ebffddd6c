"""a2a:URL against real servers: both protocol versions, every kind of reply, fresh contexts."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from a2a.helpers import (
    new_data_message,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    StreamResponse,
)
from starlette.applications import Starlette

from passhat.agents.a2a_wire import Reply
from passhat.runner import run_attempts
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.runner.time_limits import Clock, Watch
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.store import AttemptRecord, open_store
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn

Serving = Callable[[Callable[[str], Any]], str]


class Counting(Suite):
    """Three words said in one conversation; each answer must count exactly those."""

    name = "counting"
    tasks = (Task("a", "count"), Task("b", "count"))
    fingerprint = judge_fingerprint = "1"

    def episode(self, _task: Task, _seed: int) -> CountingEpisode:
        return CountingEpisode()


class CountingEpisode(Episode):
    def __init__(self) -> None:
        self.answers: list[str] = []

    def open(self) -> Turn:
        return Turn("one")

    def reply(self, answer: str) -> Turn | None:
        self.answers.append(answer)
        return Turn(("two", "three")[len(self.answers) - 1]) if len(self.answers) < 3 else None

    def judge(self) -> Judgement:
        if self.answers == ["1 one", "2 two", "3 three"]:
            return Judgement.passed()
        return Judgement.failed(FailureCategory.WRONG_ANSWER, str(self.answers))


class Counts(AgentExecutor):
    """Answers with how many messages this conversation has had, and with what was said now."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.heard: Counter[str] = Counter()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        own = str(context.context_id)
        self.heard[own] += 1
        text = f"{self.heard[own]} {context.get_user_input()}"
        if self.kind == "message":
            await event_queue.enqueue_event(new_text_message(text, context_id=own))
            return
        if self.kind == "data":
            await event_queue.enqueue_event(new_data_message({"said": [2, text]}, context_id=own))
            return
        assert context.message is not None
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, own)
        await updater.start_work(new_text_message("one moment", context_id=own))
        words = new_text_message(text, context_id=own)
        if self.kind == "question":
            await updater.requires_input(words)
        elif self.kind == "login":
            await updater.requires_auth(new_text_message("log in at /login", context_id=own))
        elif self.kind == "file":
            file = Part(raw=text.encode(), media_type="text/plain; charset=utf-8", filename="a.txt")
            await updater.add_artifact([file])
            await updater.complete()
        elif self.kind == "status":
            await updater.complete(words)
        elif self.kind == "failed":
            await updater.failed(new_text_message("out of paper", context_id=own))
        else:
            half = len(text) // 2
            await updater.add_artifact([new_text_part(text[:half])], artifact_id="x")
            await updater.add_artifact([new_text_part(text[half:])], artifact_id="x", append=True)
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def application(
    executor: AgentExecutor, url: str, *, streaming: bool, versions: tuple[str, ...] = ("1.0",)
) -> Starlette:
    card = AgentCard(
        name="counts",
        description="counts messages",
        version="1",
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[AgentSkill(id="count", name="count", description="counts", tags=["count"])],
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version=version, url=url)
            for version in versions
        ],
    )
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
    routes = create_agent_card_routes(card)
    routes += create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True)
    return Starlette(routes=routes)


def attempts(
    url: str, tmp_path: Path, n: int = 4, *, stop: Stop | None = None
) -> list[AttemptRecord]:
    made: list[AttemptRecord] = []
    plan = RunSpec(suite=Counting(), agent=f"a2a:{url}", attempts=n).plan()
    with open_store(str(tmp_path / "store.db")) as store:
        work = run_attempts(plan, store, stop or Stop(), lambda record, _: made.append(record))
        asyncio.run(work)
    return made


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "plain"])
@pytest.mark.parametrize("kind", ["message", "artifact", "status", "question"])
def test_every_attempt_is_a_conversation_of_its_own(
    kind: str, streaming: bool, serving: Serving, tmp_path: Path
) -> None:
    agent = Counts(kind)
    url = serving(lambda url: application(agent, url, streaming=streaming))
    made = attempts(url, tmp_path)
    assert [str(one.judgement.verdict) for one in made] == ["passed"] * 8, made[0].judgement
    assert sorted(agent.heard.values()) == [3] * 8  # eight contexts, three messages in each
    assert {one.conversation for one in made} == set(agent.heard)


def test_an_agent_of_version_0_3_within_the_new_sdk(serving: Serving, tmp_path: Path) -> None:
    agent = Counts("artifact")
    url = serving(lambda url: application(agent, url, streaming=True, versions=("0.3",)))
    made = attempts(url, tmp_path)
    assert {one.judgement.verdict for one in made} == {Verdict.PASSED}, made[0].judgement
    assert sorted(agent.heard.values()) == [3] * 8


@pytest.fixture
def old_agent(old_a2a: Path) -> Iterator[Callable[[str, str], Iterator[str]]]:
    """Start an agent; the lines that it writes, its address first."""
    started: list[subprocess.Popen[str]] = []
    program = Path(__file__).parents[1] / "old_a2a" / "agent.py"

    def start(kind: str, streaming: str) -> Iterator[str]:
        command = [str(old_a2a), str(program), kind, streaming]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return map(str.strip, process.stdout)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("kind", "streaming"),
    [("message", "no"), ("message", "yes"), ("task", "no"), ("task", "yes"), ("question", "yes")],
)
def test_a_real_agent_of_sdk_0_3_26(
    kind: str, streaming: str, old_agent: Callable[[str, str], Iterator[str]], tmp_path: Path
) -> None:
    made = attempts(next(old_agent(kind, streaming)), tmp_path)
    assert len(made) == 8
    # Were a context shared, its count would not start at one.
    assert [str(one.judgement.verdict) for one in made] == ["passed"] * 8, made[0].judgement


def test_a_task_that_fails_is_the_agents_error(serving: Serving, tmp_path: Path) -> None:
    url = serving(lambda url: application(Counts("failed"), url, streaming=False))
    (one, *_) = attempts(url, tmp_path, n=1)
    assert one.judgement.why == "agent_error"
    assert "out of paper" in one.judgement.detail


def test_a_task_that_asks_for_a_login_is_missing(serving: Serving, tmp_path: Path) -> None:
    url = serving(lambda url: application(Counts("login"), url, streaming=False))
    (one, *_) = attempts(url, tmp_path, n=1)
    assert (str(one.judgement.verdict), one.judgement.why) == ("missing", "unsupported")
    assert "log in at /login" in one.judgement.detail


def test_an_answer_in_an_inline_text_file_is_read(serving: Serving, tmp_path: Path) -> None:
    url = serving(lambda url: application(Counts("file"), url, streaming=False))
    assert str(attempts(url, tmp_path, n=1)[0].judgement.verdict) == "passed"


def test_a_data_part_is_read_as_json_with_whole_numbers(serving: Serving, tmp_path: Path) -> None:
    url = serving(lambda url: application(Counts("data"), url, streaming=False))
    (one, *_) = attempts(url, tmp_path, n=1)
    assert one.transcript[1]["text"] == '{"said": [2, "1 one"]}'


def test_a_task_that_goes_on_is_waited_for(serving: Serving, tmp_path: Path) -> None:
    """A server that answers before it is done: the task is asked for until it is."""

    class Late(Counts):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            assert context.message is not None
            own = str(context.context_id)
            self.heard[own] += 1
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            await asyncio.sleep(0.05)
            text = f"{self.heard[own]} {context.get_user_input()}"
            await TaskUpdater(event_queue, task.id, own).complete(
                new_text_message(text, context_id=own)
            )

    from a2a.client import ClientConfig

    class Impatient(ClientConfig):
        """A configuration that asks for an answer at once."""

        def __init__(self, **given: Any) -> None:
            super().__init__(**given, polling=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("a2a.client.ClientConfig", Impatient)
        url = serving(lambda url: application(Late("late"), url, streaming=False))
        made = attempts(url, tmp_path, n=1)
    assert {one.judgement.verdict for one in made} == {Verdict.PASSED}, made[0].judgement


class Works(Counts):
    """Begins, says so, and goes on until it is cancelled, in one of several ways."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.asked: list[str] = []
        self.answered = threading.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        await TaskUpdater(event_queue, task.id, task.context_id).start_work()
        await asyncio.Event().wait()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.asked.append(str(context.task_id))
        if self.kind == "refuses":
            raise NotImplementedError
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()
        self.answered.set()


@pytest.fixture
def over_once_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of an attempt is over as soon as its task is known here, and not before."""
    clocks: list[Clock] = []
    make, take = Watch.clock, Reply.take

    def noted(watch: Watch) -> Clock:
        clocks.append(make(watch))
        return clocks[-1]

    def take_and_end(reply: Reply, event: StreamResponse) -> None:
        take(reply, event)
        assert reply.task_id
        (own,) = (one for one in clocks if one._task is asyncio.current_task())
        own.due = 0.0

    monkeypatch.setattr(Watch, "clock", noted)
    monkeypatch.setattr(Reply, "take", take_and_end)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is told to cancel may take its time."""
    monkeypatch.setattr("passhat.agents.a2a._SECONDS", 60.0)


@pytest.mark.usefixtures("over_once_begun", "patient")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_task_is_cancelled_when_the_time_is_over(
    version: str, serving: Serving, tmp_path: Path
) -> None:
    agent = Works("cancels")
    url = serving(lambda url: application(agent, url, streaming=True, versions=(version,)))
    made = attempts(url, tmp_path, n=1)
    assert [one.judgement.why for one in made] == ["timeout", "timeout"]
    assert len(set(agent.asked)) == 2  # each task once
    assert agent.answered.is_set()


class Timeouts:
    """The module asyncio, whose time limits end when they are told to."""

    def __init__(self) -> None:
        self._running: list[tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    def timeout(self, _seconds: float) -> asyncio.Timeout:
        self._running.append((asyncio.get_running_loop(), asyncio.timeout(None)))
        return self._running[-1][1]

    def end(self) -> None:
        """End them all, from another thread."""
        for loop, limit in self._running:
            loop.call_soon_threadsafe(limit.reschedule, 0.0)


@pytest.mark.usefixtures("over_once_begun", "patient")
def test_an_agent_that_refuses_to_cancel_changes_nothing(serving: Serving, tmp_path: Path) -> None:
    agent = Works("refuses")
    url = serving(lambda url: application(agent, url, streaming=True))
    made = attempts(url, tmp_path, n=1)
    assert [one.judgement.why for one in made] == ["timeout", "timeout"]
    assert len(agent.asked) == 2


@pytest.mark.usefixtures("over_once_begun")
def test_an_agent_that_never_cancels_is_given_up(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts = Timeouts()
    monkeypatch.setattr("passhat.agents.a2a.asyncio", timeouts)

    class Hangs(Works):
        async def cancel(self, context: RequestContext, _: EventQueue) -> None:
            self.asked.append(str(context.task_id))
            if len(self.asked) == 2:
                timeouts.end()
            await asyncio.Event().wait()

    agent = Hangs("hangs")
    url = serving(lambda url: application(agent, url, streaming=True))
    made = attempts(url, tmp_path, n=1)
    assert [one.judgement.why for one in made] == ["timeout", "timeout"]
    assert len(agent.asked) == 2


@pytest.mark.usefixtures("patient")
def test_a_task_is_cancelled_when_the_user_gives_up(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Stop()
    told: set[str] = set()
    take = Reply.take

    def take_and_stop(reply: Reply, event: StreamResponse) -> None:
        """Give up once both tasks are known here; Ctrl-C twice."""
        take(reply, event)
        told.add(reply.task_id)
        if len(told) == 2 and not stop.asked:
            stop.ask()
            stop.ask()

    monkeypatch.setattr(Reply, "take", take_and_stop)
    agent = Works("cancels")
    url = serving(lambda url: application(agent, url, streaming=True))
    assert attempts(url, tmp_path, n=1, stop=stop) == []
    assert set(agent.asked) == told
    assert agent.answered.is_set()


@pytest.mark.usefixtures("over_once_begun", "patient")
def test_a_real_agent_of_sdk_0_3_26_is_told_to_cancel(
    old_agent: Callable[[str, str], Iterator[str]], tmp_path: Path
) -> None:
    said = old_agent("works", "yes")
    made = attempts(next(said), tmp_path, n=1)
    assert [one.judgement.why for one in made] == ["timeout", "timeout"]
    assert [next(said), next(said)] == ["cancelled", "cancelled"]
