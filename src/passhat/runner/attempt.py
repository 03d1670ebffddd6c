"""One attempt: a fresh world, a fresh session, a conversation, a judgement."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar, cast

from passhat._plugins import Contract, check_instance
from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.errors import InvalidValue, RunStopped
from passhat.runner.canaries import Canary
from passhat.runner.redaction import Redactor
from passhat.runner.time_limits import AttemptLimits, Clock
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.store.rows import AttemptRecord
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn, WorldFault

__all__ = ["AttemptLimits", "Attempter", "awaited", "seed_of", "settled"]

T = TypeVar("T")

_JUDGE_TRIES = 3
_START_TRIES = 3
_START_PAUSE = 0.2
_DETAIL = 500


@dataclass(slots=True)
class _Made:
    """What is known of an attempt while it goes on."""

    info: AttemptInfo
    clock: Clock
    started: float = field(default_factory=time.monotonic)
    steps: int = 0
    retries: int = 0
    leak: str = ""
    answer_hash: str = ""
    transcript: list[dict[str, str]] = field(default_factory=list)


def seed_of(base: int, task: str, number: int) -> int:
    """A seed for every attempt that depends on nothing else."""
    digest = hashlib.sha256(f"{base}\n{task}\n{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


@dataclass(frozen=True, slots=True)
class Attempter:
    """Makes attempts of one agent at the tasks of one suite.

    ``canary`` is ``None`` where conversations carry no reference.
    """

    suite: Suite
    agent: Agent
    limits: AttemptLimits
    redact: Redactor
    canary: Canary | None = None

    async def attempt(self, task: Task, info: AttemptInfo, clock: Clock) -> AttemptRecord:
        """Make one attempt. Whatever the agent does, this returns, within its limits."""
        made = _Made(info, clock)
        clock.start()
        info.meter.timed_by(clock)
        try:
            judgement = await self._played(task, made)
            clock.verdict()  # an agent that answered all the same when its time was over
        except asyncio.CancelledError:
            reason = clock.verdict()
            if reason is None:
                raise
            judgement = (
                Judgement.failed(FailureCategory.TIMEOUT, reason)
                if clock.whose is None
                else Judgement.missing(clock.whose, f"{reason}, and not from the agent")
            )
        except AgentFault as fault:
            judgement = Judgement.failed(fault.category, fault.detail)
        except WorldFault as fault:
            judgement = Judgement.missing(fault.reason, fault.detail)
        finally:
            clock.stop()
        return self._record(task, made, judgement)

    def _record(self, task: Task, made: _Made, judgement: Judgement) -> AttemptRecord:
        if judgement.detail:
            judgement = replace(judgement, detail=self.redact(judgement.detail)[:_DETAIL])
        used = made.info.meter.usage
        answers = "\n".join([one["text"] for one in made.transcript if one["role"] == "agent"])
        return AttemptRecord(
            task=task.id,
            number=made.info.number,
            judgement=judgement,
            seed=made.info.seed,
            seconds=time.monotonic() - made.started - made.clock.paused,
            steps=made.steps,
            tokens=used.tokens,
            cost=used.cost,
            retries=made.retries + made.info.meter.retries,
            answer_hash=made.answer_hash or (_digest(answers) if made.steps else ""),
            leak=made.leak,
            transcript=made.transcript,
        )

    async def _played(self, task: Task, made: _Made) -> Judgement:
        """A conversation in a world of its own, and the word of its judge."""
        episode = await self._ours(made, self.suite.episode, task, made.info.seed)
        _checked(episode, Episode, f"the episode of {self.suite.name}")
        episode.report_calls(partial(self._called, made))
        episode.join(made.info)
        try:
            made.clock.next_step()  # starting the agent counts towards its first step
            session = await _started(self.agent, made)
            try:
                await self._conversation(episode, session, made)
            finally:
                if session.usage is not None:
                    made.info.meter.settle(session.usage)
                await awaited(session.close())
            made.clock.judging()
            return await _judged(episode, made)
        finally:
            # A suite may know better than the letters which answers are the same.
            made.answer_hash = episode.answer_hash
            await settled(episode.close())

    async def _conversation(self, episode: Episode, session: Session, made: _Made) -> None:
        turn: Turn | None = await self._ours(made, episode.open)
        if self.canary is not None and turn is not None:
            turn = turn.with_reference(self.canary.token(made.info.task, made.info.number))
        while turn is not None:
            if made.steps >= self.limits.max_steps:
                raise AgentFault(
                    FailureCategory.TIMEOUT,
                    f"max_steps: not done after {self.limits.max_steps} turns",
                )
            if made.steps or made.clock.whose is not None:
                made.clock.next_step()
            made.transcript.append({"role": "user", "text": self.redact(turn.text)})
            made.steps += 1
            answer = await self._answer(session, turn, made)
            turn = await self._ours(made, episode.reply, answer)

    async def _answer(self, session: Session, turn: Turn, made: _Made) -> str:
        try:
            answer = await awaited(session.answer(turn))
        except (AgentFault, WorldFault, RunStopped):
            raise
        except Exception as error:
            raise AgentFault(FailureCategory.EXCEPTION, _described(error)) from None
        made.transcript.append({"role": "agent", "text": self.redact(answer)})
        if self.canary is not None and not made.leak:
            made.leak = self.canary.stray(answer, made.info.task, made.info.number)
        return answer

    async def _ours(self, made: _Made, work: Callable[..., T | Awaitable[T]], *given: object) -> T:
        """Run the suite's own code: what breaks or drags on there is not the agent's fault."""
        try:
            value = work(*given)
            # Asking the abstract class would be slower, and this is asked several times an attempt.
            if not hasattr(value, "__await__"):
                return value
            made.clock.next_reply(self.suite.slow_reason)
            return await cast("Awaitable[T]", value)
        except (WorldFault, RunStopped):
            raise
        except Exception as error:
            raise WorldFault(MissingReason.INFRASTRUCTURE, _described(error)) from None

    def _called(self, made: _Made, call: str, result: str) -> bool:
        """A tool that the agent called by itself counts like one it asked for in its answer."""
        made.steps += 1
        made.transcript.append({"role": "agent", "text": self.redact(call)})
        made.transcript.append({"role": "tool", "text": self.redact(result)})
        made.clock.next_step()
        return made.steps < self.limits.max_steps


async def _started(agent: Agent, made: _Made) -> Session:
    """A session; an agent that cannot be reached is tried again before it fails."""
    for left in reversed(range(_START_TRIES)):
        try:
            session = await awaited(agent.session(made.info))
        except OSError as error:
            if left == 0:
                raise AgentFault(FailureCategory.COMMUNICATION_ERROR, str(error)) from None
            made.retries += 1
            await asyncio.sleep(_START_PAUSE)
        except (AgentFault, WorldFault, RunStopped):
            raise
        except Exception as error:
            raise AgentFault(FailureCategory.AGENT_ERROR, _described(error)) from None
        else:
            return _checked(session, Session, f"the session of {agent.name}")
    raise AssertionError("unreachable")


def _checked(made: T, contract: type[Contract], where: str) -> T:
    """Stop the run if a plug-in returned something that the runner cannot use."""
    if isinstance(made, contract):
        return made
    try:
        check_instance(made, contract, where)
    except InvalidValue as error:
        raise RunStopped(error.message, hint=error.hint) from None
    raise AssertionError("unreachable")


async def _judged(episode: Episode, made: _Made) -> Judgement:
    """A judge that breaks is asked again; a judge that stays broken leaves a missing attempt."""
    for left in reversed(range(_JUDGE_TRIES)):
        try:
            return await settled(episode.judge())
        except RunStopped:
            raise
        except Exception as error:
            if left == 0:
                raise WorldFault(MissingReason.JUDGE_ERROR, _described(error)) from None
            made.retries += 1
    raise AssertionError("unreachable")


async def settled(value: T | Awaitable[T]) -> T:
    """The value itself: a suite that has to wait for something answers with an awaitable."""
    return await cast("Awaitable[T]", value) if hasattr(value, "__await__") else value


async def awaited(value: Awaitable[T]) -> T:
    """The result of a hook that is declared async; a plain method is accepted as well."""
    return await value if hasattr(value, "__await__") else cast("T", value)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
