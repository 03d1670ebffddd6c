"""The contracts of plug-ins: defaults, misspelt hooks, and objects that are none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from passhat.agents import Agent, AttemptInfo, Session, Usage, as_agent, load_agent
from passhat.errors import InvalidValue, RunStopped
from passhat.runner import run_attempts
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.store import open_store
from passhat.suites import Episode, Judgement, Suite, Task, Turn, load_suite


class Parrot(Agent, Session):
    async def session(self, _attempt: AttemptInfo) -> Session:
        return self

    async def answer(self, turn: Turn) -> str:
        return turn.text


class Echo(Episode):
    def open(self) -> Turn:
        return Turn("hello")

    def reply(self, answer: str) -> None:
        self.heard = answer

    def judge(self) -> Judgement:
        assert self.heard == "hello"
        return Judgement.passed()


class Echoes(Suite):
    tasks = (Task("a", "hello"), Task("b", "hello"))

    def episode(self, _task: Task, _seed: int) -> Episode:
        return Echo()


def _verdicts(suite: Suite, agent: Agent, folder: Path) -> list[tuple[str, str]]:
    plan = RunSpec(suite=suite, agent=agent, attempts=2).plan()
    with open_store(str(folder / "store.db")) as store:
        asyncio.run(run_attempts(plan, store, Stop(), lambda _record, _progress: None))
        rows = [row for block in store.rows(plan.record.id) for row in block]
    return [(str(row[2]), str(row[3])) for row in rows]


def test_the_required_hooks_are_enough(tmp_path: Path) -> None:
    assert _verdicts(Echoes(), Parrot(), tmp_path) == [("1", "")] * 4
    assert (Echoes().name, Echoes().judge, Parrot().name) == ("Echoes", "Echoes", "Parrot")
    assert Echoes().fingerprint == Echoes().fingerprint != Echoes().judge_fingerprint


def test_plain_methods_where_async_ones_are_declared(tmp_path: Path) -> None:
    class Plain(Agent, Session):
        def session(self, _attempt: AttemptInfo) -> Any:
            return self

        def answer(self, turn: Turn) -> Any:
            return turn.text

        def close(self) -> Any:
            return None

        def check(self) -> Any:
            return None

    assert _verdicts(Echoes(), Plain(), tmp_path) == [("1", "")] * 4


MISSPELT = [
    (Session, "clsoe", "close"),
    (Session, "anwser", "answer"),
    (Agent, "sesion", "session"),
    (Agent, "chek", "check"),
    (Suite, "judge_wiht", "judge_with"),
    (Suite, "configur", "configure"),
    (Suite, "with_users", "with_user"),
    (Episode, "opne", "open"),
    (Episode, "repyl", "reply"),
    (Episode, "report_call", "report_calls"),
]


@pytest.mark.parametrize(("contract", "name", "hook"), MISSPELT)
def test_a_misspelt_method_is_an_error(contract: type, name: str, hook: str) -> None:
    with pytest.raises(InvalidValue, match=f"{name}.*{hook}.*Rename it to {hook}, or to _{name}"):
        type("Mine", (contract,), {name: lambda self: self})


@pytest.mark.parametrize("name", ["takes_refrence", "user_simulater", "max_step", "fingerprnt"])
def test_a_misspelt_attribute_is_an_error(name: str) -> None:
    with pytest.raises(InvalidValue, match=name):
        type("Mine", (Suite,), {name: 1})
    with pytest.raises(InvalidValue, match="should be an attribute"):
        type("Mine", (Suite,), {"fingerprint": lambda self: str(self)})
    with pytest.raises(InvalidValue, match="should be a method"):
        type("Mine", (Episode,), {"close": None})


def test_names_of_its_own_are_free() -> None:
    class Mine(Session):
        closed = False

        def helper(self) -> None: ...

        def _clsoe(self) -> None: ...

        async def answer(self, turn: Turn) -> str:
            return turn.text

        def answers(self) -> list[str]:  # the hook itself is there: this is no misspelling
            return []

    assert Mine().usage is None


MODULE = """
from passhat.agents import Agent, Session
from passhat.suites import Episode, Suite, Task

class NoSession(Agent):
    async def prepare(self): ...

class Duck:
    name = "duck"
    async def session(self, attempt): ...

class Own(Agent):
    name = "mine"
    async def session(self, attempt):
        return Duck()

"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugs_here.py").write_text(
        MODULE
        + "\nclass Suite1(Suite):\n    tasks = [Task('a', 'b')]\n"
        + "class Late(Suite):\n    def __init__(self):\n        self.takes_refrence = True\n"
        + "    tasks = [Task('a', 'b')]\n    def episode(self, task, seed): ...\n"
        + "class NotASuite:\n    tasks = []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "plugs_here", raising=False)


@pytest.mark.usefixtures("module")
def test_what_is_loaded_is_checked() -> None:
    with pytest.raises(InvalidValue, match="has no session"):
        load_agent("python:plugs_here:NoSession")
    with pytest.raises(InvalidValue, match="is not an Agent: it is the class Duck"):
        load_agent("python:plugs_here:Duck")
    with pytest.raises(InvalidValue, match="has no episode"):
        load_suite("python:plugs_here:Suite1")
    with pytest.raises(InvalidValue, match="is not a Suite"):
        load_suite("python:plugs_here:NotASuite")
    with pytest.raises(InvalidValue, match="takes_refrence"):
        load_suite("python:plugs_here:Late")
    assert load_agent("python:plugs_here:Own").name == "mine"
    with pytest.raises(InvalidValue, match="has no 'nothing'"):
        load_agent("python:plugs_here:nothing")


@pytest.mark.usefixtures("module")
def test_a_session_or_episode_that_is_none_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunStopped, match="the session of mine is not a Session: it is a Duck"):
        _verdicts(Echoes(), load_agent("python:plugs_here:Own"), tmp_path)

    class Wrong(Echoes):
        def episode(self, _task: Task, _seed: int) -> Any:
            return {"open": "hello"}

    with pytest.raises(RunStopped, match="the episode of Wrong is not an Episode: it is a dict"):
        _verdicts(Wrong(), Parrot(), tmp_path)

    class Silent(Echoes):
        def episode(self, _task: Task, _seed: int) -> Episode:
            return Episode()

    with pytest.raises(RunStopped, match="Episode has no open"):
        _verdicts(Silent(), Parrot(), tmp_path)


def test_functions_and_classes_are_agents() -> None:
    def answer(prompt: str) -> str:
        return prompt

    class Memory:
        def __call__(self, prompt: str) -> str:
            return prompt

    class Usable(Session):
        usage = Usage(1, 0.5)

    assert as_agent(answer).name.endswith(
        "test_plugins:test_functions_and_classes_are_agents.<locals>.answer"
    )
    assert as_agent(Memory).name.endswith("Memory")
    assert as_agent("demo:careful").name == "demo:careful"
    assert as_agent(Parrot()).name == "Parrot"
    assert Usable().usage == Usage(1, 0.5)
    wrong: Any
    for wrong in (3, None, [], object()):
        with pytest.raises(InvalidValue, match="is not an Agent"):
            as_agent(wrong)
