"""One attempt at a task of tau2-bench: its conversation crosses over from the worker's process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from passhat.integrations.tau2.server import Connection, WorkerGone
from passhat.readers.tau2_bench import FAILED, MISSING, failed_check
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Episode, Judgement, ToolSpec, Turn
from passhat.suites.orderdesk.calls import RESPOND, Unreadable, read_call, write_call

__all__ = ["Tau2Episode"]

_RETRIES = 2
"""Answers that cannot be read and are asked for again; the next one ends the attempt."""

_PASSES = 1 - 1e-6

_FORM = f"""Answer every message with exactly one call, in this form:
{write_call("tool_name", {"parameter": "value"})}
To talk to the user, call respond:
{write_call(RESPOND, {"content": "What you say."})}
You see either the user's words ("User: ...") or what a tool gave back ("Tool result: ..." or \
"Tool error: ...")."""

_NATIVE_FORM = """Use the tools you have, one call at a time. What you write without a call \
is said to the user."""

_HEADS = {"user": "User", "tool": "Tool result", "error": "Tool error"}


class Tau2Episode(Episode):
    """A conversation that tau2's orchestrator leads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._first: Turn | None = None
        self._end: Mapping[str, Any] | None = None
        self._unreadable: list[str] = []

    async def begin(self, job: Mapping[str, object]) -> None:
        """Send the attempt over and wait for the user's first words."""
        await self._connection.send(job)
        said = await self._received()
        turn = said.get("turn")
        if turn is not None:
            self._first = _introduction(turn)

    def open(self) -> Turn | None:
        """The first turn; none when it was over before the agent was asked."""
        return self._first

    async def reply(self, answer: str) -> Turn | None:
        try:
            call = read_call(answer)
        except Unreadable as error:
            return self._ask_again(str(error))
        if call.name == RESPOND:
            await self._connection.send({"say": str(call.arguments["content"])})
        else:
            made = {"name": call.name, "arguments": dict(call.arguments)}
            await self._connection.send({"call": made})
        turn = (await self._received()).get("turn")
        return None if turn is None else _later(turn)

    async def judge(self) -> Judgement:
        if len(self._unreadable) > _RETRIES:
            return Judgement.failed(
                FailureCategory.FORMAT_ERROR,
                f"{len(self._unreadable)} answers could not be read: {self._unreadable[-1]}",
            )
        if self._end is None:
            await self._received()
        return judgement(self._end or {"fault": "world", "detail": "it has not ended"})

    async def close(self) -> None:
        await self._connection.close()

    async def _received(self) -> dict[str, Any]:
        said = await self._connection.receive()
        if "trouble" in said:
            raise WorkerGone(said["detail"])
        self._end = said.get("end")
        return said

    def _ask_again(self, problem: str) -> Turn | None:
        self._unreadable.append(problem)
        if len(self._unreadable) > _RETRIES:
            return None
        words = f"Your answer could not be read: {problem}. Please try again."
        return Turn(f"{words}\n{_FORM}", said=words, result=words)


def judgement(end: Mapping[str, Any]) -> Judgement:
    """What the worker's last line comes to: the faults of agent, user, judge and world apart."""
    fault, ended, detail = end.get("fault"), str(end.get("ended")), str(end.get("detail", ""))
    if fault == "judge":
        return Judgement.missing(MissingReason.JUDGE_ERROR, detail)
    if fault == "user" or ended == "user_error":
        return Judgement.missing(MissingReason.USER_ERROR, detail or ended)
    if fault == "world" or ended in MISSING:
        return Judgement.missing(MissingReason.INFRASTRUCTURE, detail or ended)
    if ended in FAILED:
        return _failed(FAILED[ended], detail)
    reward = end.get("reward")
    if reward is None:
        return Judgement.missing(MissingReason.JUDGE_ERROR, f"no reward, ended with {ended}")
    if reward >= _PASSES:
        return Judgement.passed()
    return _failed(failed_check(end.get("checks")) or "unknown_failure: no reward", detail)


def _failed(words: str, detail: str) -> Judgement:
    category, _, what = words.partition(": ")
    return Judgement.failed(FailureCategory(category), detail or what)


def _spoken(turn: Mapping[str, Any]) -> str:
    return f"{_HEADS[turn['kind']]}: {turn['text']}"


def _later(turn: Mapping[str, Any]) -> Turn:
    if turn["kind"] == "user":
        return Turn(_spoken(turn), said=turn["text"])
    result = turn["text"] if turn["kind"] == "tool" else _spoken(turn)
    return Turn(_spoken(turn), result=result)


def _introduction(turn: Mapping[str, Any]) -> Turn:
    """The policy, the tools, how to answer, what was said so far, and the user's words."""
    tools = "\n".join(
        f"- {tool['name']}: {tool.get('description', '')}\n"
        f"  parameters: {json.dumps(tool.get('parameters', {}), ensure_ascii=False)}"
        for tool in turn["tools"]
    )
    policy = turn["policy"].strip()
    so_far = "\n".join([*turn["history"], _spoken(turn)])
    return Turn(
        f"{policy}\n\n## Tools\n\n{tools}\n\n## How to answer\n\n{_FORM}\n\n{so_far}",
        system=f"{policy}\n\n## How to answer\n\n{_NATIVE_FORM}",
        said=so_far if turn["history"] else turn["text"],
        tools=tuple(
            ToolSpec(one["name"], one.get("description", ""), one.get("parameters", {}))
            for one in turn["tools"]
        ),
    )
