"""Attempts of agents and suites of every conduct, in simulated time, and their whole records.

Other tests say why a record is right; ``attempts.json`` says that all of them are still the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kept_results import check_results
from passhat.agents.base import (
    Agent,
    AgentFault,
    AttemptInfo,
    ModelCall,
    ProviderFault,
    Session,
    Usage,
)
from passhat.errors import RunStopped
from passhat.runner import attempt as attempt_module
from passhat.runner.attempt import Attempter, _AttemptState, seed_of
from passhat.runner.boundary import Canary
from passhat.runner.budget import Account
from passhat.runner.redaction import Redactor
from passhat.runner.time_limits import AttemptLimits, Watch
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.suites.base import Episode, Judgement, NoVerdict, Suite, Task, Turn, WorldFault
from simulated_time import SimulatedLoop, run_simulated

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
CANARY = Canary("run/0", ("t", "u"), 3)
Say = str | float | BaseException | Callable[[AttemptInfo], object]
"""What a party does next: says a text, takes seconds, raises, or calls a function."""


async def _do(words: list[Say], info: AttemptInfo) -> Any:
    """Take the next words up to one that is an answer."""
    while words:
        word = words.pop(0)
        if isinstance(word, float):
            await asyncio.sleep(word)
        elif isinstance(word, BaseException):
            raise word
        elif callable(word):
            if (result := word(info)) is not None:
                return await result if isinstance(result, Awaitable) else result
        else:
            return word
    return "done"


LIMITS = AttemptLimits(4, 10.0, 25.0)


@dataclass
class _Case:
    """How agent and suite behave, hook by hook."""

    start: Sequence[Say] = ()
    answers: Sequence[Say] = ("yes",)
    end: Sequence[Say] | None = None
    usage: Usage | None = None
    begin: Sequence[Say] = ()
    open: Sequence[Say] = ("question",)
    replies: Sequence[Say] = ()
    judge: Sequence[Say] = (lambda _: Judgement.passed(),)
    close: Sequence[Say] | None = None
    remarks: tuple[tuple[str, str], ...] = ()
    answer_hash: str = ""
    tools: bool = False
    limits: AttemptLimits = LIMITS
    with_canary: bool = False
    timeouts_are_missing: bool = False
    log: list[str] = field(default_factory=list)


class _Talk(Session):
    def __init__(self, case: _Case, info: AttemptInfo) -> None:
        self.case, self.info = case, info
        self.words = list(case.answers)
        self.usage = case.usage

    async def answer(self, turn: Turn) -> str:
        self.case.log.append(f"asked {turn.text!r}")
        answer: str = await _do(self.words, self.info)
        return answer


class _Closing(_Talk):
    async def close(self) -> None:
        self.case.log.append("session closed")
        await _do(list(self.case.end or ()), self.info)


class _Scripted(Agent):
    """Each start takes the next word, so that the first ones may fail."""

    def __init__(self, case: _Case) -> None:
        self.case = case
        self.words = list(case.start)

    async def session(self, attempt: AttemptInfo) -> Session:
        self.case.log.append("started")
        if self.words:
            made = await _do([self.words.pop(0)], attempt)
            if made != "done":
                return made  # type: ignore[no-any-return]
        return (_Talk if self.case.end is None else _Closing)(self.case, attempt)


class _World(Episode):
    def __init__(self, case: _Case, info: AttemptInfo | None = None) -> None:
        self.case, self.info = case, info or AttemptInfo("t", 1, 0)
        self.replies, self.verdicts = list(case.replies), list(case.judge)

    def join(self, attempt: object) -> None:
        assert isinstance(attempt, AttemptInfo)
        self.info = attempt

    async def open(self) -> Turn | None:
        said = await _do(list(self.case.open), self.info)
        return Turn(said) if isinstance(said, str) else said

    async def reply(self, answer: str) -> Turn | None:
        self.case.log.append(f"heard {answer[:40]!r}")
        if not self.replies:
            return None
        said = await _do(self.replies, self.info)
        return Turn(said) if isinstance(said, str) else said

    async def judge(self) -> Judgement:
        self.case.log.append("judged")
        self.remarks, self.answer_hash = self.case.remarks, self.case.answer_hash
        result: Judgement = await _do(self.verdicts, self.info)
        return result


class _Tools(_World):
    """An episode whose tools the agent calls past the conversation."""

    def report_calls(self, report: Callable[[str, str], bool]) -> None:
        self.report = report

    async def reply(self, answer: str) -> Turn | None:
        for number in range(2):
            is_left = self.report(f"call {number}", f"result {SECRET}")
            self.case.log.append(f"steps left: {is_left}")
        return await super().reply(answer)


class _Left(_World):
    """An episode that wants to be closed."""

    async def close(self) -> None:
        self.case.log.append("episode closed")
        await _do(list(self.case.close or ()), self.info)


class _Plays(Suite):
    tasks = (Task("t", "?"),)
    name = "plays"
    slow_reason = MissingReason.USER_ERROR

    def __init__(self, case: _Case) -> None:
        self.case = case

    async def episode(self, task: Task, seed: int) -> Episode:
        world = _Tools if self.case.tools else _World if self.case.close is None else _Left
        made = await _do(list(self.case.begin), AttemptInfo(task.id, 1, seed))
        return made if made != "done" else world(self.case)


def _call(stop: str = "stop", **parts: Any) -> Callable[[AttemptInfo], None]:
    """Record a call to a model or tool."""
    return lambda info: info.meter.record(ModelCall(parts.pop("name", "m"), stop=stop, **parts))


def _use(tokens: float | None, cost: float | None) -> Callable[[AttemptInfo], None]:
    return lambda info: info.meter.settle(Usage(tokens, cost))


async def _off_the_clock(info: AttemptInfo, seconds: float, answer: str) -> str:
    with info.meter.off_the_clock():
        await asyncio.sleep(seconds)
    return answer


async def _stubborn(seconds: float) -> str:
    """Swallow cancellations and go on."""
    for _ in range(3):
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            continue
    return "late"


def _cancel_itself(_info: AttemptInfo) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def _retried(info: AttemptInfo) -> None:
    info.meter.retries = 3
    info.meter.record(ModelCall("m", stop="stop", retries=["429", f"503 {SECRET} " + "x" * 99]))


def _named(info: AttemptInfo) -> None:
    info.meter.conversation = f"context {SECRET}"


FAILED = Judgement.failed(FailureCategory.WRONG_ANSWER, "4, not 5")
TOOL: dict[str, Any] = {"name": "look", "role": "tool", "request": {"at": 1}, "reply": "a b"}
TWICE = ("again", "and again")
CASES: dict[str, _Case] = {
    "passes": _Case(),
    "fails": _Case(judge=[lambda _: FAILED], answer_hash="h"),
    "a score": _Case(judge=[lambda _: Judgement(Verdict.FAILED, "", "", 0.5, "5", "4", "off")]),
    "a judge's plain result": _Case(judge=[lambda _: 0.25]),
    "a judge's number": _Case(judge=[lambda _: 1]),
    "no verdict": _Case(judge=[lambda _: 2]),
    "a judge that says so": _Case(judge=[NoVerdict("no verdict")]),
    "a judge that recovers": _Case(judge=[ValueError("a"), KeyError("b")]),
    "a judge that recovers and passes": _Case(
        judge=[ValueError("a"), SystemExit(2), lambda _: Judgement.passed()]
    ),
    "a judge that never does": _Case(judge=[ValueError(SECRET)] * 3),
    "a judge of another process": _Case(judge=[AgentFault(FailureCategory.TIMEOUT, "there")] * 3),
    "a judge without a world": _Case(judge=[WorldFault(MissingReason.SANDBOX_ERROR, "gone")]),
    "a judge that stops the run": _Case(judge=[RunStopped("enough")]),
    "a judge that takes its time": _Case(judge=[20.0, lambda _: FAILED]),
    "a judge that takes too long": _Case(judge=[26.0, lambda _: FAILED], close=()),
    "a long detail": _Case(judge=[lambda _: Judgement(Verdict.FAILED, "other", "x y " * 400)]),
    "turns": _Case(answers=["a", "b", "c"], replies=TWICE),
    "too many turns": _Case(replies=["more"] * 9, end=()),
    "nothing to ask": _Case(open=[lambda _: asyncio.sleep(0)]),
    "no turn": _Case(open=[lambda _: 42]),
    "a list for a reply": _Case(replies=[lambda _: ["x"]]),
    "a silent agent": _Case(answers=[" \n"], judge=[lambda _: FAILED]),
    "a number for an answer": _Case(answers=[lambda _: 7], end=()),
    "an answer of a subclass": _Case(answers=[lambda _: type("S", (str,), {})("yes")]),
    "not Unicode": _Case(answers=["a\ud800"]),
    "a secret": _Case(answers=[f"key {SECRET}"], judge=[lambda _: FAILED]),
    "raises": _Case(answers=["a", ValueError(f"with {SECRET}")], replies=TWICE, end=(), close=()),
    "exits": _Case(answers=[SystemExit(3)], end=[ValueError("at the end")]),
    "a fault of the agent": _Case(answers=[AgentFault(FailureCategory.REFUSED, "no")]),
    "a fault of the provider": _Case(answers=[ProviderFault(MissingReason.RATE_LIMIT, "429")]),
    "stops the run": _Case(answers=[RunStopped("stop")]),
    "raises at the end": _Case(end=[ValueError("at the end")]),
    "a fault at the end": _Case(end=[AgentFault(FailureCategory.TIMEOUT, "at the end")]),
    "a start that fails once": _Case(start=[OSError("away")]),
    "a start that fails": _Case(start=[OSError("away")] * 3),
    "a start that raises": _Case(start=[ValueError("wrong")]),
    "a start without a provider": _Case(start=[ProviderFault(MissingReason.ACCOUNT, "no credit")]),
    "a start that is no session": _Case(start=[lambda _: 5]),
    "a late answer": _Case(answers=[9.0, "a", 9.0, "b", 5.0, "c"], replies=TWICE),
    "too late": _Case(answers=["a", 11.0, "b"], replies=TWICE, end=(), close=()),
    "too late in all": _Case(answers=[9.0, "a", 9.0, "b", 9.0, "c"], replies=TWICE),
    "too late, not its fault": _Case(answers=[11.0, "a"], timeouts_are_missing=True),
    "a stubborn agent": _Case(answers=[lambda _: _stubborn(30.0)], end=()),
    "a slow start": _Case(start=[6.0], answers=[6.0, "yes"]),
    "cancels itself": _Case(answers=[_cancel_itself, 1.0, "a"]),
    "cancels itself in a world that closes": _Case(answers=[_cancel_itself, 1.0, "a"], close=()),
    "too late in a world that hangs": _Case(answers=[11.0, "a"], close=[30.0]),
    "waits for a limit": _Case(answers=[lambda info: _off_the_clock(info, 40.0, "a"), 9.0, "b"]),
    "a slow world": _Case(open=[9.0, "question"], replies=[9.0, "again"]),
    "a world that is too slow": _Case(replies=[11.0, "again"], end=()),
    "a world that takes from the agent": _Case(open=[9.0, "q"], answers=[9.5, "a"]),
    "a world that raises": _Case(open=[ValueError(SECRET)]),
    "a world that exits": _Case(replies=[KeyboardInterrupt()]),
    "a world that is gone": _Case(replies=[WorldFault(MissingReason.USER_ERROR, "left")]),
    "a world that stops the run": _Case(begin=[RunStopped("enough")]),
    "no world": _Case(begin=[WorldFault(MissingReason.UNSUPPORTED, "no such tool")]),
    "no episode": _Case(begin=[lambda _: 42]),
    "a world that raises as it closes": _Case(close=[ValueError("late")]),
    "a world that closes after a fault": _Case(answers=[ValueError("a")], close=[0.5]),
    "remarks": _Case(remarks=(("program", f"x = {SECRET}"), ("tests", CANARY.token("u", 2)))),
    "remarks of another": _Case(remarks=(("tests", CANARY.token("u", 2)),), with_canary=True),
    "a reference": _Case(with_canary=True, answers=[CANARY.token("t", 1)]),
    "another's reference": _Case(
        with_canary=True,
        answers=[f"see {CANARY.token('u', 3)}", CANARY.token("t", 2)],
        replies=["x"],
    ),
    "a name of its own": _Case(with_canary=True, answers=[_named, "a"]),
    "usage at the end": _Case(usage=Usage(input_tokens=5, output_tokens=2, cost=0.5)),
    "usage unknown": _Case(usage=Usage(), answers=[_use(5, 0.5), "a"]),
    "usage beyond reason": _Case(usage=Usage(2e15, -1.0)),
    "usage of turns": _Case(answers=[_use(5, 0.5), "a", _use(6, 0.25), "b"], replies=["x"]),
    "retries": _Case(answers=[_retried, "a"]),
    "cut": _Case(
        answers=[_call("length", output_tokens=9, model="m-1", limit=64), "a"],
        judge=[lambda _: FAILED],
    ),
    "cut, and passed": _Case(answers=[_call("length", limit=64), "a"]),
    "refused, then late": _Case(answers=[_call("refused"), 11.0, "a"]),
    "tools of a framework": _Case(
        answers=[_call(**TOOL), _call(model="m"), "a", _call(**{**TOOL, "reply": None}), "b"],
        replies=["x"],
    ),
    "a tool that failed": _Case(
        answers=[_call(name="t", role="tool", error="boom", request="text"), "a"]
    ),
    "tools past the conversation": _Case(tools=True, answers=["a", "b"], replies=["x"]),
}


async def _attempt(case: _Case, loop: SimulatedLoop) -> dict[str, object]:
    watch = Watch(case.limits)
    clock = watch.clock()
    watching = asyncio.create_task(_look(watch, loop))
    attempter = Attempter(
        _Plays(case),
        _Scripted(case),
        case.limits,
        Redactor({"KEY": SECRET}),
        CANARY if case.with_canary else None,
        stopping=lambda: False,
        timeouts_are_missing=case.timeouts_are_missing,
    )
    info = AttemptInfo("t", 1, seed_of(7, "t", 1), meter=Account())
    try:
        record = await attempter.attempt(Task("t", "?"), info, clock)
    except RunStopped as error:
        return {"stopped": str(error), "log": case.log}
    finally:
        watching.cancel()
        await asyncio.wait({watching})
    calls = record.calls
    return {
        "judgement": _short(record.judgement),
        **{name: getattr(record, name) for name in ("seconds", "steps", "tokens", "cost")},
        **{name: getattr(record, name) for name in ("retries", "retry_reason", "leak")},
        **{name: getattr(record, name) for name in ("answer_hash", "conversation", "is_judged")},
        "transcript": [f"{entry['role']}: {entry['text'][:200]}" for entry in record.transcript],
        "calls": None if calls is None else [json.loads(calls.body), calls.answers, calls.served],
        "log": case.log,
        "ended": [loop.time(), clock.due, clock.paused, asyncio.current_task().cancelling()],  # type: ignore[union-attr]
    }


def _short(judgement: Judgement) -> dict[str, object]:
    """Without the parts that are empty, and with the places of errors without their lines."""
    parts = {"verdict": str(judgement.verdict), "why": judgement.why, "score": judgement.score}
    parts["detail"] = re.sub(r"(\.py):\d+", r"\1", judgement.detail)
    return {name: part for name, part in parts.items() if part not in ("", None)}


async def _look(watch: Watch, loop: SimulatedLoop) -> None:
    """What the watch does, without its thread."""
    while True:
        before = loop.time()
        await asyncio.sleep(0.25)
        watch.look(before, loop.time())


def test_the_whole_records_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    records: dict[str, object] = {}
    for name, case in CASES.items():

        async def work(loop: SimulatedLoop, case: _Case = case) -> dict[str, object]:
            clock = SimpleNamespace(time=loop.time, monotonic=loop.time)
            monkeypatch.setattr(attempt_module, "time", clock)
            begin = partial(_AttemptState, began=0.0, started=0.0)
            monkeypatch.setattr(attempt_module, "_AttemptState", begin)
            case.log.clear()
            return await _attempt(case, loop)

        records[name] = run_simulated(work)
    records["seeds"] = [seed_of(0, "t", 1), seed_of(0, "t", 2), seed_of(1, "t", 1)]
    check_results(Path(__file__).with_name("attempts.json"), records)
