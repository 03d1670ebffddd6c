"""Models that judge by a rubric or play the user: every course of their answers, whole.

``panels.json`` has the judgement, the records of calls, and what each model was asked with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from kept_results import check_results
from passhat.agents.base import Agent, AttemptInfo, Session, Usage
from passhat.errors import PasshatError, RunStopped
from passhat.runner.users import RubricAgent, _UserModel
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import Turn, WorldFault
from simulated_time import SimulatedLoop, run_simulated

Said = str | float | BaseException


class _Model(Agent):
    """A model that gives one answer after the other."""

    decoding = MappingProxyType({"temperature": 0.5, "base_url": "http://x", "max": 3})

    def __init__(self, name: str, said: Sequence[Said], log: list[str]) -> None:
        self.__dict__["name"] = name
        self.said, self.log = list(said), log

    async def session(self, attempt: AttemptInfo) -> Session:
        settings = [attempt.task, attempt.number, attempt.seed, attempt.temperature]
        self.log.append(f"{self.name} starts: {settings}")
        return _Talk(self, attempt)

    async def close(self) -> None:
        self.log.append(f"{self.name} closes")


class _Talk(Session):
    def __init__(self, model: _Model, attempt: AttemptInfo) -> None:
        self.model, self.attempt = model, attempt

    async def answer(self, turn: Turn) -> str:
        meter, said = self.attempt.meter, self.model.said.pop(0)
        self.model.log.append(f"{self.model.name} is asked as {meter.role}: {turn.text[-20:]!r}")
        meter.settle(Usage(5.0, 0.25))
        if isinstance(said, float):
            await asyncio.sleep(said)
            return "late"
        if isinstance(said, BaseException):
            raise said
        return said

    async def close(self) -> None:
        self.model.log.append(f"{self.model.name} ends")
        raise ValueError("at the end")


LIMIT = WorldFault(MissingReason.RATE_LIMIT, "429")
BROKE = WorldFault(MissingReason.ACCOUNT, "no credit")
CAPPED = WorldFault(MissingReason.BUDGET, "cap")
PANELS: dict[str, tuple[int, dict[str, list[Said]]]] = {
    "one that passes": (1, {"a": ["Good.\nPASS"]}),
    "one that fails": (1, {"a": ["It passes nothing: FAIL"]}),
    "one that names both": (1, {"a": ["FAIL, no: Passed"]}),
    "one that names none": (1, {"a": ["compass"]}),
    "two of three": (3, {"a": ["pass", "fails", "PASSED"]}),
    "one of three": (3, {"a": ["pass", "fails", "FAILED"]}),
    "as many": (2, {"a": ["PASS", "FAIL"]}),
    "one lost": (2, {"a": ["PASS", "well"]}),
    "a panel": (1, {"a": ["PASS"], "b": ["FAIL"], "c": ["PASS"]}),
    "a panel that is lost": (2, {"a": ["x", "y"], "b": ["z", "z"]}),
    "a panel with one lost": (2, {"a": ["x", "FAIL"], "b": ["FAIL", "PASS"]}),
    "a limit of rate": (1, {"a": [LIMIT]}),
    "no credit": (1, {"a": [BROKE]}),
    "the cap": (2, {"a": ["PASS", CAPPED]}),
}
USERS: dict[str, list[Said]] = {
    "answers": ["one", "two"],
    "is late": ["one", 121.0],
    "is just in time": [119.0],
    "a limit of rate": [LIMIT],
    "no credit": [BROKE],
    "the cap": [CAPPED],
    "stops the run": [RunStopped("enough")],
    "raises": [ValueError("odd")],
}


async def _panel(repeats: int, answers: dict[str, list[Said]]) -> list[object]:
    log: list[str] = []
    info = AttemptInfo("t", 2, 40, 0.7)
    models = [_Quiet(name, said, log) for name, said in answers.items()]
    judge = RubricAgent(*models)
    try:
        judgement: Any = await judge(info, "why?", "so", "be short", repeats)
        result = [str(judgement.verdict), judgement.why, judgement.detail]
        result += [judgement.expected, judgement.difference]
    except (PasshatError, WorldFault, RuntimeError) as error:
        result = [type(error).__name__, str(error)]
    return [judge.name, result, _calls(info), info.meter.usage.total, info.meter.by_agent, log]


class _Quiet(_Model):
    """A model whose sessions end without an error."""

    async def session(self, attempt: AttemptInfo) -> Session:
        talk = await super().session(attempt)
        talk.close = self._end  # type: ignore[method-assign]
        return talk

    async def _end(self) -> None:
        self.log.append(f"{self.name} ends")


def _calls(info: AttemptInfo) -> list[object]:
    return [msgspec.to_builtins(call) for call in info.meter.calls]


async def _user(said: list[Said], loop: SimulatedLoop) -> list[object]:
    log: list[str] = []
    info = AttemptInfo("t", 2, 40, 0.7)
    user = _UserModel(_Model("u", said, log))
    session = await user.start(info)
    heard: list[object] = [user.name]
    for _ in said:
        try:
            heard.append(await session.answer(Turn("hello")))
        except (PasshatError, WorldFault) as error:
            reason = str(error.reason) if isinstance(error, WorldFault) else ""
            heard.append([type(error).__name__, reason, str(error)])
    await session.close()
    await user.close()
    return [*heard, loop.time(), info.meter.usage.total, info.meter.by_agent, log]


def test_the_whole_course_of_panels_and_users() -> None:
    results: dict[str, object] = {}
    for name, (repeats, answers) in PANELS.items():
        copies = {model: list(said) for model, said in answers.items()}
        results[name] = run_simulated(lambda _, r=repeats, c=copies: _panel(r, c))  # type: ignore[misc]
    for name, said in USERS.items():
        results[f"user {name}"] = run_simulated(lambda loop, s=said: _user(list(s), loop))  # type: ignore[misc]
    check_results(Path(__file__).with_name("panels.json"), results)
