"""A domain of tau2-bench as a suite: its tasks, worlds and judge, in the user's checkout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from passhat.errors import InvalidValue
from passhat.integrations.tau2.server import Connection, Server, WorkerGone
from passhat.readers.formats.tau2_bench import FAILED, MISSING, failed_check
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Episode, Judgement, Settings, Suite, Task, ToolSpec, Turn
from passhat.suites.tool_calls import (
    FORM,
    NATIVE_FORM,
    RESPOND,
    Unreadable,
    UnreadableAnswers,
    read_call,
)

_PASSES = 1 - 1e-6

_HEADS = {"user": "User", "tool": "Tool result", "error": "Tool error"}


class Tau2Episode(Episode):
    """A conversation that is led by tau2's orchestrator."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._first: Turn | None = None
        self._end: Mapping[str, Any] | None = None
        self._unreadable = UnreadableAnswers(FORM)

    async def begin(self, job: Mapping[str, object]) -> None:
        """Send the attempt's job and wait for the user's first message."""
        await self._connection.send(job)
        message = await self._receive()
        turn = message.get("turn")
        if turn is not None:
            self._first = _first_turn(turn)

    def open(self) -> Turn | None:
        """The first turn; none when the episode ended before the agent's first turn."""
        return self._first

    async def reply(self, answer: str) -> Turn | None:
        try:
            call = read_call(answer)
        except Unreadable as error:
            return self._unreadable.ask_again(str(error))
        if call.name == RESPOND:
            await self._connection.send({"say": str(call.arguments["content"])})
        else:
            tool_call = {"name": call.name, "arguments": dict(call.arguments)}
            await self._connection.send({"call": tool_call})
        turn = (await self._receive()).get("turn")
        return None if turn is None else _later_turn(turn)

    async def judge(self) -> Judgement:
        if (failure := self._unreadable.failure()) is not None:
            return failure
        if self._end is None:
            await self._receive()
        return judgement(self._end or {"fault": "world", "detail": "it has not ended"})

    async def close(self) -> None:
        await self._connection.close()

    async def _receive(self) -> dict[str, Any]:
        message = await self._connection.receive()
        if "trouble" in message:
            raise WorkerGone(message["detail"])
        self._end = message.get("end")
        return message


def judgement(end: Mapping[str, Any]) -> Judgement:
    """The judgement for the worker's last line; faults of agent, user, judge and world differ."""
    fault, reason, detail = end.get("fault"), str(end.get("ended")), str(end.get("detail", ""))
    if fault == "judge":
        return Judgement.missing(MissingReason.JUDGE_ERROR, detail)
    if fault == "user" or reason == "user_error":
        return Judgement.missing(MissingReason.USER_ERROR, detail or reason)
    if fault == "world" or reason in MISSING:
        return Judgement.missing(MissingReason.INFRASTRUCTURE, detail or reason)
    if reason in FAILED:
        return _failed(FAILED[reason], detail)
    reward = end.get("reward")
    if reward is None:
        return Judgement.missing(MissingReason.JUDGE_ERROR, f"no reward, ended with {reason}")
    if reward >= _PASSES:
        return Judgement.passed()
    failure = _failed(failed_check(end.get("checks")) or "unknown_failure: no reward", detail)
    return _with_rows(replace(failure, score=float(reward)), end.get("rows") or ())


def _with_rows(failure: Judgement, rows: Sequence[Sequence[Any]]) -> Judgement:
    """The failure with the rows of the database that differ from what the gold actions give."""
    if not rows:
        return failure
    path, value, wanted = rows[0]
    return replace(
        failure,
        detail=f"{failure.detail}: {path} is {value!r}, it should be {wanted!r}",
        expected=json.dumps({path: wanted for path, _, wanted in rows}),
        got=json.dumps({path: value for path, value, _ in rows}),
    )


def _failed(words: str, detail: str) -> Judgement:
    category, _, what = words.partition(": ")
    return Judgement.failed(FailureCategory(category), detail or what)


def _spoken(turn: Mapping[str, Any]) -> str:
    return f"{_HEADS[turn['kind']]}: {turn['text']}"


def _later_turn(turn: Mapping[str, Any]) -> Turn:
    if turn["kind"] == "user":
        return Turn(_spoken(turn), said=turn["text"])
    result = turn["text"] if turn["kind"] == "tool" else _spoken(turn)
    return Turn(_spoken(turn), result=result)


def _first_turn(turn: Mapping[str, Any]) -> Turn:
    """The policy, the tools, how to answer, the history, and the user's message."""
    tools = "\n".join(
        f"- {tool['name']}: {tool.get('description', '')}\n"
        f"  parameters: {json.dumps(tool.get('parameters', {}), ensure_ascii=False)}"
        for tool in turn["tools"]
    )
    policy = turn["policy"].strip()
    so_far = "\n".join([*turn["history"], _spoken(turn)])
    return Turn(
        f"{policy}\n\n## Tools\n\n{tools}\n\n## How to answer\n\n{FORM}\n\n{so_far}",
        system=f"{policy}\n\n## How to answer\n\n{NATIVE_FORM}",
        said=so_far if turn["history"] else turn["text"],
        tools=tuple(
            ToolSpec(tool["name"], tool.get("description", ""), tool.get("parameters", {}))
            for tool in turn["tools"]
        ),
    )


_EVALUATIONS = ("all", "env", "communicate", "action", "nl_assertions", "all_ignore_basis")
_MAX_STEPS = 200
"""tau2's own limit: messages of agent, user and tools together."""


_ORIGINAL = "original/"
"""Before a domain of the first tau-bench: ``tau2:original/retail``."""
_ORIGINAL_STEPS = 30
"""Turns of the agent there."""


class Tau2Suite(Suite):
    """tau2-bench in a checkout of yours: tau2:retail, or tau2:original/retail for tau-bench."""

    slow_reason = MissingReason.USER_ERROR
    """Missing reason when no turn comes in time: tools answer at once, a user may be a model."""

    takes_user = True
    """``--user`` is tau2's own business: its simulator is told the model's name."""

    max_steps = 100
    """Turns of the agent; tau2's own limit of 200 messages is never reached later."""

    def __init__(self, word: str) -> None:
        self.name = f"tau2:{word}"
        self._is_original = word.startswith(_ORIGINAL)
        if self._is_original:
            self.max_steps = _ORIGINAL_STEPS
        self._domain, _, evaluation = word.removeprefix(_ORIGINAL).partition("@")
        self._evaluation = evaluation or "all"
        checks = ("all",) if self._is_original else _EVALUATIONS
        if not self._domain or self._evaluation not in checks:
            raise InvalidValue(
                f"{self.name!r} is not a domain of tau2-bench.",
                hint="Name one as in tau2:retail, or tau2:retail@CHECK with CHECK one of "
                f"{', '.join(_EVALUATIONS)}; tau2:original/retail is that of tau-bench.",
            )
        self._settings: Settings | None = None
        self._server: Server | None = None
        self.user_simulator = "scripted"

    def configure(self, settings: Settings) -> None:
        """Set the checkout, its interpreter, and the user simulator."""
        self._settings = settings
        self.user_simulator = settings.user or "scripted"

    @cached_property
    def tasks(self) -> Sequence[Task]:
        return tuple(
            Task(task["id"], task["prompt"], MappingProxyType({"judge": task["judge"]}))
            for task in self._described["tasks"]
        )

    @cached_property
    def fingerprint(self) -> str:
        return str(self._described["fingerprint"])

    @cached_property
    def judge_fingerprint(self) -> str:
        return f"{self._evaluation}-{self._described['judge_fingerprint']}"

    async def episode(self, task: Task, seed: int) -> Tau2Episode:
        episode = Tau2Episode(await self._start_server().connect())
        try:
            await episode.begin(
                {
                    "domain": self._domain,
                    "task_id": task.id,
                    "seed": seed,
                    "user": self.user_simulator,
                    "evaluation": self._evaluation,
                    "max_steps": _MAX_STEPS,
                }
            )
        except BaseException:
            await episode.close()
            raise
        return episode

    async def close(self) -> None:
        """End the process in the checkout; the next attempt would start another."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @cached_property
    def _described(self) -> dict[str, Any]:
        description: dict[str, Any] = self._start_server().ask({"describe": self._domain})[
            "described"
        ]
        return description

    def _start_server(self) -> Server:
        if self._server is None:
            settings = self._settings or Settings()
            checkout = _checkout(settings.tau2, is_original=self._is_original)
            python = settings.tau2_python or _python_of(checkout)
            self._server = Server(checkout, python)
        return self._server


def _checkout(path: str | None, *, is_original: bool = False) -> Path:
    name = "tau-bench" if is_original else "tau2-bench"
    if path is None:
        raise InvalidValue(
            f"tau2 suites run in a checkout of {name}, and none is named.",
            hint="Name it with --set tau2=PATH or the environment variable PASSHAT_TAU2. Get one "
            f"with: git clone https://github.com/sierra-research/{name}",
        )
    checkout = Path(path)
    folders = ("tau_bench",) if is_original else ("src/tau2", "tau2")
    if not any((checkout / part).is_dir() for part in folders):
        is_other = (checkout / ("src/tau2" if is_original else "tau_bench")).is_dir()
        other = "tau2:DOMAIN" if is_original else "tau2:original/DOMAIN"
        raise InvalidValue(
            f"{path} is not a checkout of {name}: it has no folder {folders[0]}.",
            hint=f"It is one of the other version: name its domains as {other}."
            if is_other
            else "Name the folder that git clone made.",
        )
    return checkout.resolve()


def _python_of(checkout: Path) -> str:
    """The interpreter of the checkout's own environment, or else passhat's interpreter."""
    interpreter = checkout / ".venv" / "bin" / "python"
    return str(interpreter) if os.access(interpreter, os.X_OK) else sys.executable
