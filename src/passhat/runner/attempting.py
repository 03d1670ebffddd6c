"""One attempt: a fresh world, a fresh session, a conversation, a judgement."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.outcomes import FailureCategory, MissingReason
from passhat.runner.redaction import Redactor
from passhat.store.records import AttemptRecord
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn

__all__ = ["Limits", "attempt", "seed_of"]

T = TypeVar("T")

_JUDGE_TRIES = 3
_START_TRIES = 3
_START_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class Limits:
    """What one attempt may use: turns of the agent, seconds per turn, seconds in all."""

    max_steps: int = 30
    step_seconds: float = 60.0
    attempt_seconds: float = 600.0


@dataclass(slots=True)
class _Made:
    """What is known of an attempt while it goes on."""

    started: float = field(default_factory=time.monotonic)
    steps: int = 0
    retries: int = 0
    transcript: list[dict[str, str]] = field(default_factory=list)

    def say(self, who: str, text: str) -> None:
        self.transcript.append({"role": who, "text": text})


class _Clock:
    """One timer for both limits, set anew for every step: half the cost of two timers."""

    def __init__(self, limits: Limits, suite: Suite) -> None:
        self.limits = limits
        self._now = asyncio.get_running_loop().time
        # Whose delay it is while the world has it; a suite with a user says that it is theirs.
        self._slow: MissingReason = getattr(suite, "slow", MissingReason.INFRASTRUCTURE)
        self._ours: MissingReason | None = self._slow
        self._end = self._now() + limits.attempt_seconds
        # Starting the agent counts towards its first step.
        self.timeout = asyncio.timeout_at(min(self._now() + limits.step_seconds, self._end))

    def next_step(self) -> None:
        """From now on the agent has the time for one step, within what is left of the whole."""
        self._ours = None
        self.timeout.reschedule(min(self._now() + self.limits.step_seconds, self._end))

    def next_reply(self, whose: MissingReason | None = None) -> None:
        """From now on the world or the judge has it: a delay is not the agent's."""
        self.next_step()
        self._ours = whose or self._slow

    def judgement(self) -> Judgement:
        """What a limit that was reached comes to, for whoever had the floor."""
        over = f"wall clock: over {self.limits.attempt_seconds:g} s in all"
        silent = f"wall clock: no answer within {self.limits.step_seconds:g} s"
        reason = over if self._now() >= self._end else silent
        if self._ours is not None:
            return Judgement.missing(self._ours, f"{reason}, and not from the agent")
        return Judgement.failed(FailureCategory.TIMEOUT, reason)


class _OurFault(Exception):
    """The world or the judge broke: the attempt is missing, not failed."""

    def __init__(self, reason: MissingReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def seed_of(base: int, task: str, number: int) -> int:
    """A seed for every attempt that depends on nothing else."""
    digest = hashlib.sha256(f"{base}\n{task}\n{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


async def attempt(
    suite: Suite, agent: Agent, task: Task, info: AttemptInfo, limits: Limits, redact: Redactor
) -> AttemptRecord:
    """Make one attempt. Whatever the agent does, this returns, within its limits."""
    made = _Made()
    clock = _Clock(limits, suite)
    try:
        async with clock.timeout:
            judgement = await _played(suite, agent, task, info, clock, made)
    except TimeoutError:
        judgement = clock.judgement()
    except AgentFault as fault:
        judgement = Judgement.failed(fault.category, fault.detail)
    except _OurFault as fault:
        judgement = Judgement.missing(fault.reason, fault.detail)
    answers = "\n".join(entry["text"] for entry in made.transcript if entry["role"] == "agent")
    return AttemptRecord(
        task=task.id,
        number=info.number,
        judgement=replace(judgement, detail=redact(judgement.detail)[:500]),
        seed=info.seed,
        seconds=time.monotonic() - made.started,
        steps=made.steps,
        retries=made.retries,
        answer_hash=hashlib.sha256(answers.encode()).hexdigest()[:16] if made.steps else "",
        transcript=[{**entry, "text": redact(entry["text"])} for entry in made.transcript],
    )


async def _played(
    suite: Suite, agent: Agent, task: Task, info: AttemptInfo, clock: _Clock, made: _Made
) -> Judgement:
    episode = await _ours(lambda: suite.episode(task, info.seed))
    clock.next_step()
    try:
        await _conversation(episode, agent, info, clock, made)
        clock.next_reply(MissingReason.JUDGE_ERROR)
        return await _judged(episode, made)
    finally:
        close = getattr(episode, "close", None)
        if close is not None:
            await _settled(close())


async def _conversation(
    episode: Episode, agent: Agent, info: AttemptInfo, clock: _Clock, made: _Made
) -> None:
    session = await _started(agent, info, made)
    try:
        turn: Turn | None = await _ours(episode.open)
        while turn is not None:
            if made.steps >= clock.limits.max_steps:
                raise AgentFault(
                    FailureCategory.TIMEOUT,
                    f"max_steps: not done after {clock.limits.max_steps} turns",
                )
            if made.steps:
                clock.next_step()
            turn = await _step(episode, session, turn, clock, made)
    finally:
        await session.close()


async def _started(agent: Agent, info: AttemptInfo, made: _Made) -> Session:
    """A session; an agent that cannot be reached is tried again before it fails."""
    for left in reversed(range(_START_TRIES)):
        try:
            return await agent.session(info)
        except OSError as error:
            if left == 0:
                raise AgentFault(FailureCategory.COMMUNICATION_ERROR, str(error)) from None
            made.retries += 1
            await asyncio.sleep(_START_PAUSE)
        except AgentFault:
            raise
        except Exception as error:
            raise AgentFault(FailureCategory.AGENT_ERROR, _described(error)) from None
    raise AssertionError("unreachable")


async def _step(
    episode: Episode, session: Session, turn: Turn, clock: _Clock, made: _Made
) -> Turn | None:
    made.say("user", turn.text)
    made.steps += 1
    try:
        answer = await session.answer(turn)
    except AgentFault:
        raise
    except Exception as error:
        raise AgentFault(FailureCategory.EXCEPTION, _described(error)) from None
    made.say("agent", answer)
    clock.next_reply()
    return await _ours(lambda: episode.reply(answer))


async def _judged(episode: Episode, made: _Made) -> Judgement:
    """A judge that breaks is asked again; a judge that stays broken leaves a missing attempt."""
    for left in reversed(range(_JUDGE_TRIES)):
        try:
            return await _settled(episode.judge())
        except Exception as error:
            if left == 0:
                raise _OurFault(MissingReason.JUDGE_ERROR, _described(error)) from None
            made.retries += 1
    raise AssertionError("unreachable")


async def _ours(work: Callable[[], T | Awaitable[T]]) -> T:
    """Run the suite's own code: what breaks there is not the agent's fault."""
    try:
        return await _settled(work())
    except Exception as error:
        raise _OurFault(MissingReason.INFRASTRUCTURE, _described(error)) from None


async def _settled(value: T | Awaitable[T]) -> T:
    """The value itself: a suite that has to wait for something answers with an awaitable."""
    return await value if isinstance(value, Awaitable) else value


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
