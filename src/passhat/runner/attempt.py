"""A single attempt: a fresh world, a fresh session, a conversation, a judgement."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NoReturn, TypeVar, cast, overload

import msgspec

from passhat._plugins import Contract, check_instance, describe_error, shorten_detail
from passhat.agents.base import (
    Agent,
    AgentFault,
    AttemptInfo,
    ModelCall,
    Session,
    StopReason,
    Usage,
)
from passhat.agents.provider_tables import INVALID_CALLS
from passhat.errors import InvalidValue, RunStopped, shorten
from passhat.runner.boundary import Canary, ProcessGuard, call_agent, refuse_unusable
from passhat.runner.redaction import Redactor, encode_data
from passhat.runner.spans import Inbox
from passhat.runner.telemetry import Telemetry
from passhat.runner.time_limits import AttemptLimits, Clock
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store.rows import AttemptRecord, CallRecords
from passhat.suites.base import (
    ANSWER_ROLES,
    Episode,
    Judgement,
    NoVerdict,
    Suite,
    Task,
    Turn,
    WorldFault,
)
from passhat.suites.tool_calls import RESPOND, TOOL_ERROR, Unreadable, read_call, write_call

_CATEGORIES = {
    StopReason.LENGTH: FailureCategory.TRUNCATED,
    StopReason.REFUSED: FailureCategory.REFUSED,
    StopReason.FILTERED: FailureCategory.FILTERED,
}
_OWN_CAUSE = (
    *(FailureCategory.TIMEOUT, FailureCategory.COMMUNICATION_ERROR, FailureCategory.AGENT_ERROR),
    *(FailureCategory.EXCEPTION, FailureCategory.SANDBOX_VIOLATION, FailureCategory.FILTERED),
)
"""Categories that say more than why the last answer ended."""


_LONGEST_NAME = 200
_MOST_MODELS = 20
"""What is kept of names that a server states: of models, fingerprints and conversations."""


def call_records(calls: Sequence[ModelCall], redact: Redactor) -> CallRecords | None:
    """The calls as the store keeps them; ``None`` where there were none."""
    if not calls:
        return None
    answers = [call for call in calls if call.role == "agent" and call.stop]
    cut = [call for call in answers if call.stop == StopReason.LENGTH]
    # The limit that was sent; a server may cut earlier, so the actual length counts where known.
    limits = [int(call.output_tokens or call.limit or 0) for call in cut]
    records = [
        msgspec.structs.replace(
            call, request=redact.clean_data(call.request), reply=redact.clean_data(call.reply)
        )
        for call in calls
    ]
    return CallRecords(
        answers=len(answers),
        cut=len(cut),
        cut_at=min(limits, default=0) or None,
        refused=sum(call.stop == StopReason.REFUSED for call in answers),
        filtered=sum(call.stop == StopReason.FILTERED for call in answers),
        empty=sum(bool(call.empty) for call in answers),
        body=redact(encode_data(records)).encode(),
        served=tuple(
            sorted(
                {
                    (redact(call.model)[:_LONGEST_NAME], redact(call.fingerprint)[:_LONGEST_NAME])
                    for call in calls
                    if call.role == "agent" and call.model
                }
            )[:_MOST_MODELS]
        ),
    )


def explain_failure(judgement: Judgement, calls: Sequence[ModelCall]) -> Judgement:
    """The judgement with the reason that the last model call gives for a failure.

    An answer that was cut, refused or filtered is not simply wrong.
    """
    answers = [call for call in calls if call.role == "agent" and call.stop]
    if judgement.verdict is not Verdict.FAILED or not answers:
        return judgement
    last = answers[-1]
    if judgement.why in _OWN_CAUSE:
        return judgement
    notes = []
    category = _CATEGORIES.get(StopReason(last.stop)) if last.stop in set(StopReason) else None
    if category is FailureCategory.TRUNCATED:
        tokens = last.output_tokens or last.limit
        notes.append("cut at the token limit" + (f" ({tokens:g} tokens)" if tokens else ""))
    elif last.stop_raw.lower() in INVALID_CALLS or last.empty == "no valid call":
        category = FailureCategory.FORMAT_ERROR
        notes.append(f"the model wrote no valid tool call ({last.stop_raw or last.stop})")
    elif last.stop == StopReason.OTHER and last.stop_raw:
        category = FailureCategory.UNKNOWN_FAILURE
        notes.append(f"the answer ended as {last.stop_raw!r}, a reason that passhat does not know")
    elif category is not None:
        notes.append(f"{category} by the model or its provider ({last.stop_raw or last.stop})")
    if last.empty in ("empty", "thinking only"):
        thinking = f" ({last.reasoning_tokens:g} tokens)" if last.reasoning_tokens else ""
        notes.append(
            f"the answer is thinking only{thinking}"
            if last.empty == "thinking only"
            else "the answer is empty"
        )
    if not notes:
        return judgement
    detail = "; ".join([*notes, judgement.detail] if judgement.detail else notes)
    return replace(judgement, why=str(category or judgement.why), detail=detail)


T = TypeVar("T")

_ANY = (Exception, SystemExit, KeyboardInterrupt)
"""Exceptions of suite code: asyncio would end the whole loop for the last two."""
_JUDGE_TRIES_LEFT = _START_TRIES_LEFT = (2, 1, 0)
_START_PAUSE = 0.2
_DETAIL = 500
_LONGEST_EXPECTED = 4_000
"""Characters of an expected answer that are kept with every attempt."""
_LONGEST_DETAIL = 256 * 1024
_LARGEST_AMOUNT = 1e15
_APART = 64 * 1024
"""Longer texts are searched for secrets beside the event loop."""
_NOTHING_TO_CLOSE = (Session.close, Agent.close)
"""Hooks that were not written; an object may be agent and session at once."""


class _AttemptState(msgspec.Struct):
    """State of an attempt while it goes on."""

    info: AttemptInfo
    clock: Clock
    trace: Inbox | None = None
    began: float = msgspec.field(default_factory=time.time)
    started: float = msgspec.field(default_factory=time.monotonic)
    steps: int = 0
    retries: int = 0
    leak: str = ""
    calls_seen: int = 0
    answer_hash: str = ""
    transcript: list[dict[str, str]] = []
    answered: list[tuple[float, int]] = []
    """When each answer came, and its place in the transcript; for the trace alone."""
    carried_out: list[ModelCall] = []
    """Tool calls that the suite carried out; for the trace alone."""
    is_judged: bool = False
    tools_reported: bool = False
    """Whether the suite itself saw the tools that the agent called on its own."""


def seed_of(base: int, task: str, number: int) -> int:
    """A seed for every attempt that depends on nothing else."""
    digest = hashlib.sha256(f"{base}\n{task}\n{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Attempter:
    """Makes attempts of one agent at the tasks of one suite.

    ``canary`` is ``None`` where conversations carry no reference. ``guard`` puts back what an
    agent in this process changes for all. ``stopping`` is whether the run itself is canceled.
    ``timeouts_are_missing`` counts a late answer as the server's fault, not the agent's.
    """

    suite: Suite
    agent: Agent
    limits: AttemptLimits
    redact: Redactor
    canary: Canary | None = None
    guard: ProcessGuard | None = None
    stopping: Callable[[], bool] = _always
    timeouts_are_missing: bool = False
    telemetry: Telemetry | None = None

    async def attempt(self, task: Task, info: AttemptInfo, clock: Clock) -> AttemptRecord:
        """Make an attempt. Returns within the attempt's limits, whatever the agent does."""
        if self.telemetry is None:
            return self._record(task, *await self._run_attempt(task, info, clock))
        trace = await self.telemetry.begin()
        info = replace(info, traceparent=trace.traceparent, otlp_endpoint=trace.endpoint)
        try:
            state, judgement = await self._run_attempt(task, info, clock, trace)
            await self._take_spans(state, await self.telemetry.collect_calls(trace))
        finally:
            self.telemetry.end(trace)
        record = self._record(task, state, judgement)
        calls = [*info.meter.calls, *state.carried_out]
        calls.sort(key=lambda call: state.began if call.started is None else call.started)
        self.telemetry.send(trace, state.began, record, calls)
        return record

    async def _run_attempt(
        self, task: Task, info: AttemptInfo, clock: Clock, trace: Inbox | None = None
    ) -> tuple[_AttemptState, Judgement]:
        state = _AttemptState(info, clock, trace)
        clock.start()
        info.meter.use_clock(clock)
        try:
            judgement = await self._play(task, state)
            state.is_judged = True
            clock.verdict()  # an agent that answered all the same when its time was over
        except asyncio.CancelledError:
            reason = clock.verdict()
            if reason is None and self.stopping():
                raise
            judgement = self._judge_cancellation(clock, reason)
        except AgentFault as fault:
            judgement = Judgement.failed(fault.category, fault.detail)
        except WorldFault as fault:
            judgement = Judgement.missing(fault.reason, fault.detail)
        finally:
            clock.stop()
        return state, judgement

    async def _take_spans(self, state: _AttemptState, calls: Sequence[ModelCall]) -> None:
        """Add the calls in the agent's own spans, unless they were counted already."""
        meter = state.info.meter
        has_usage = meter.by_agent
        tools_known = state.tools_reported or any(call.role == "tool" for call in meter.calls)
        steps = []
        for call in calls:
            if call.role == "tool" and not tools_known:
                meter.record(call)
                steps.append(call)
            elif call.role != "tool" and not has_usage:
                inputs, outputs = call.input_tokens, call.output_tokens
                tokens = None if inputs is None or outputs is None else inputs + outputs
                meter.settle(Usage(tokens, call.cost))
                meter.record(call)
        state.steps += len(steps)
        for call in reversed(steps):
            began = call.started or 0.0
            place = next((index for at, index in state.answered if began <= at), None)
            entries = await self._tool_step(call)
            if place is None:
                state.transcript.extend(entries)
            else:
                state.transcript[place:place] = entries

    def _judge_cancellation(self, clock: Clock, reason: str | None) -> Judgement:
        if reason is None:  # neither a limit nor the end of the run: the agent canceled its task
            clock.forget_cancellations()
            if clock.whose is not None:
                return Judgement.missing(clock.whose, "CancelledError")
            return Judgement.failed(FailureCategory.EXCEPTION, "CancelledError")
        if clock.whose is not None:
            return Judgement.missing(clock.whose, f"{reason}, and not from the agent")
        if self.timeouts_are_missing:
            return Judgement.missing(MissingReason.TIMEOUT, reason)
        return Judgement.failed(FailureCategory.TIMEOUT, reason)

    def _record(self, task: Task, state: _AttemptState, judgement: Judgement) -> AttemptRecord:
        meter = state.info.meter
        if meter.calls:
            judgement = explain_failure(judgement, meter.calls)
        for role in ANSWER_ROLES:
            if text := getattr(judgement, role):
                shown = self.redact(text[:_LONGEST_EXPECTED])
                state.transcript.append({"role": role, "text": shown})
        if judgement.detail:
            detail = self.redact.quote(judgement.detail, _LONGEST_DETAIL)
            judgement = replace(judgement, detail=shorten_detail(detail, _DETAIL))
        usage = meter.usage
        seconds = time.monotonic() - state.started - state.clock.paused
        return AttemptRecord(
            task=task.id,
            number=state.info.number,
            judgement=judgement,
            seed=state.info.seed,
            seconds=seconds,
            steps=state.steps,
            tokens=_as_amount(usage.tokens),
            cost=_as_amount(usage.cost),
            retries=state.retries + meter.retries,
            retry_reason=self._retry_reason(state.info) if meter.retries else "",
            answer_hash=state.answer_hash or (_digest(state.transcript) if state.steps else ""),
            leak=state.leak,
            transcript=state.transcript,
            calls=call_records(meter.calls, self.redact) if meter.calls else None,
            conversation=meter.conversation and self.redact(meter.conversation)[:_LONGEST_NAME],
            is_judged=state.is_judged,
        )

    def _retry_reason(self, info: AttemptInfo) -> str:
        """Why the last call that was made again had failed."""
        causes = [cause for call in info.meter.calls for cause in call.retries]
        return self.redact.quote(causes[-1], _LONGEST_DETAIL)[:80] if causes else ""

    async def _play(self, task: Task, state: _AttemptState) -> Judgement:
        """Hold a conversation in a fresh world, and return its judge's verdict."""
        episode = self._call_suite(state, self.suite.episode, task, state.info.seed)
        if hasattr(episode, "__await__"):
            episode = await episode
        if not isinstance(episode, Episode):
            _refuse(episode, Episode, f"the episode of {self.suite.name}")
        if episode.workspace is not None:
            state.info = state.info.with_workspace(episode.workspace)
        if type(episode).report_calls is not Episode.report_calls:
            episode.report_calls(partial(self._count_tool_call, state))
        episode.join(state.info)
        has_ended = False
        try:
            state.clock.next_step()  # starting the agent counts towards its first step
            session = await _start_session(self.agent, state)
            try:
                await self._conversation(episode, session, state)
            except BaseException:
                with suppress(AgentFault):  # the first fault counts
                    await self._close_session(session, state)
                raise
            await self._close_session(session, state)
            state.clock.judging()
            judgement = await _judge(episode, state)
            has_ended = True
            return judgement
        finally:
            # A suite may have a better test than equal text for equal answers.
            state.answer_hash = episode.answer_hash
            for role, text in episode.remarks:
                state.transcript.append({"role": role, "text": self.redact(text)})
                if self.canary is not None and not state.leak:
                    state.leak = self.canary.stray(text, task.id, state.info.number)
            if getattr(episode.close, "__func__", None) is not Episode.close:
                whose = state.clock.whose
                try:
                    await maybe_await(self._call_suite(state, episode.close))
                finally:
                    if not has_ended:  # a limit that was passed before was not the suite's
                        state.clock.whose = whose

    async def _close_session(self, session: Session, state: _AttemptState) -> None:
        """Take the session's own count of its usage, and end it."""
        try:
            if session.usage is not None:
                state.info.meter.settle(session.usage)
            if getattr(session.close, "__func__", None) not in _NOTHING_TO_CLOSE:
                await call_agent(state.info, state.clock, session.close)
        except (AgentFault, RunStopped):
            raise
        except Exception as error:
            raise AgentFault(FailureCategory.AGENT_ERROR, describe_error(error)) from None

    async def _conversation(self, episode: Episode, session: Session, state: _AttemptState) -> None:
        turn = self._call_suite(state, episode.open)
        turn = _check_turn(await turn if hasattr(turn, "__await__") else turn, episode, "open")
        if self.canary is not None and turn is not None:
            reference = self.canary.token(state.info.task, state.info.number)
            turn = turn.with_reference(reference)
            state.info.meter.conversation = reference  # unless the agent has a name for it
        while turn is not None:
            if state.steps >= self.limits.max_steps:
                raise AgentFault(
                    FailureCategory.TIMEOUT,
                    f"max_steps: not done after {self.limits.max_steps} turns",
                )
            if state.steps or state.clock.whose is not None:
                state.clock.next_step()
            text = self._short(turn.text) or await self._clean_text(turn.text)
            state.transcript.append({"role": "user", "text": text})
            state.steps += 1
            answer = await self._answer(session, turn, state)
            began = time.time() if state.trace is not None else 0.0
            turn = self._call_suite(state, episode.reply, answer)
            turn = _check_turn(await turn if hasattr(turn, "__await__") else turn, episode, "reply")
            if state.trace is not None:
                _note_tool(state, answer, began)

    async def _answer(self, session: Session, turn: Turn, state: _AttemptState) -> str:
        if self.guard is not None:
            self.guard.enter()
        try:
            if self.telemetry is None or state.trace is None:
                answer = await call_agent(state.info, state.clock, session.answer, turn.copy())
            else:
                with self.telemetry.current(state.trace):
                    answer = await call_agent(state.info, state.clock, session.answer, turn.copy())
        except (AgentFault, WorldFault, RunStopped):
            raise
        except Exception as error:
            raise AgentFault(FailureCategory.EXCEPTION, describe_error(error)) from None
        finally:
            changes = "" if self.guard is None else self.guard.leave()
        if not isinstance(answer, str):
            raise AgentFault(
                FailureCategory.FORMAT_ERROR, f"answered a {type(answer).__name__}, not text"
            )
        answer = str.__str__(answer)  # frameworks answer subclasses, which cannot be stored
        if state.info.meter.calls:
            await self._add_tool_steps(state)
        if state.trace is not None:
            state.answered.append((time.time(), len(state.transcript)))
        text = self._short(answer) or await self._clean_text(answer)
        state.transcript.append({"role": "agent", "text": text})
        refuse_unusable(answer)
        if changes:
            raise AgentFault(
                FailureCategory.EXCEPTION, f"changed {changes} of the process it runs in"
            )
        if self.canary is not None and not state.leak:
            state.leak = self.canary.stray(answer, state.info.task, state.info.number)
        return answer

    async def _add_tool_steps(self, state: _AttemptState) -> None:
        """Put the tools that a framework called by itself into the transcript, as steps."""
        calls = state.info.meter.calls
        for call in calls[state.calls_seen :]:
            if call.role == "tool":
                state.steps += 1
                state.transcript.extend(await self._tool_step(call))
        state.calls_seen = len(calls)

    async def _tool_step(self, call: ModelCall) -> list[dict[str, str]]:
        """A tool that the agent called by itself, and its result, as entries of the transcript."""
        text = write_call(call.name, call.request if isinstance(call.request, dict) else {})
        failed = call.error and call.reply is None
        result = f"{TOOL_ERROR}{call.error}" if failed else call.reply
        return [
            {"role": "agent", "text": await self._clean_text(text)},
            {"role": "tool", "text": await self._clean_text(str(result))},
        ]

    def _short(self, text: str) -> str:
        """The text as it is stored; empty where it is too long for that: see _clean_text."""
        return self.redact(text) if len(text) < _APART else ""

    async def _clean_text(self, text: str) -> str:
        """The text as it is stored: without secrets, valid Unicode, not over-long."""
        if len(text) < _APART:
            return self._short(text)
        return await asyncio.to_thread(self.redact.shorten, text)

    def _call_suite(self, state: _AttemptState, work: Callable[..., Any], *words: object) -> Any:
        """Run code of the suite: an error or a delay there is not the agent's fault.

        Returns an awaitable only where the suite waits: a coroutine would cost more than most do.
        """
        try:
            value = work(*words)
        except (WorldFault, RunStopped):
            raise
        except _ANY as error:
            raise WorldFault(MissingReason.INFRASTRUCTURE, describe_error(error)) from None
        # A check of the abstract class would be slower.
        return self._wait_for_suite(state, value) if hasattr(value, "__await__") else value

    async def _wait_for_suite(self, state: _AttemptState, value: Awaitable[T]) -> T:
        try:
            state.clock.next_reply(self.suite.slow_reason)
            return await value
        except (WorldFault, RunStopped):
            raise
        except _ANY as error:
            raise WorldFault(MissingReason.INFRASTRUCTURE, describe_error(error)) from None

    def _count_tool_call(self, state: _AttemptState, call: str, result: str) -> bool:
        """Count a tool that the agent called itself like a call in its answer."""
        state.steps += 1
        state.tools_reported = True
        if state.trace is not None:
            _note_tool(state, call, time.time())
        for role, text in (("agent", call), ("tool", result)):
            state.transcript.append({"role": role, "text": self.redact.shorten(text)})
        state.clock.next_step()
        return state.steps < self.limits.max_steps


def _note_tool(state: _AttemptState, answer: str, began: float) -> None:
    """Note a tool call that the suite carried out, if the answer is one."""
    if not answer.startswith("<json>"):
        return
    with suppress(Unreadable):
        name = read_call(answer).name
        if name != RESPOND:
            call = ModelCall(name, role="tool", started=began, seconds=time.time() - began)
            state.carried_out.append(call)


async def _start_session(agent: Agent, state: _AttemptState) -> Session:
    """A session; an agent that cannot be reached is tried again before it fails."""
    for left in _START_TRIES_LEFT:
        try:
            session = await call_agent(state.info, state.clock, agent.session, state.info)
        except OSError as error:
            if left == 0:
                detail = describe_error(error)
                raise AgentFault(FailureCategory.COMMUNICATION_ERROR, detail) from None
            state.retries += 1
            await asyncio.sleep(_START_PAUSE)
        except (AgentFault, WorldFault, RunStopped):
            raise
        except Exception as error:
            raise AgentFault(FailureCategory.AGENT_ERROR, describe_error(error)) from None
        else:
            if not isinstance(session, Session):
                _refuse(session, Session, f"the session of {agent.name}")
            return session
    raise AssertionError("unreachable")


def _refuse(plugin: object, contract: type[Contract], where: str) -> NoReturn:
    """Stop the run: a plug-in returned something that the runner cannot use."""
    try:
        check_instance(plugin, contract, where)
    except InvalidValue as error:
        raise RunStopped(error.message, hint=error.hint) from None
    raise AssertionError("unreachable")


def _check_turn(turn: object, episode: Episode, hook: str) -> Turn | None:
    """The next turn of an episode; anything but a turn or nothing stops the run."""
    if turn is None or isinstance(turn, Turn):
        return turn
    text = shorten(turn) if isinstance(turn, str) else "text"
    raise RunStopped(
        f"{type(episode).__name__}.{hook}() returned a {type(turn).__name__}, not a Turn.",
        hint=f"Write return Turn({text}), or return None where nothing is left to say.",
    )


async def _judge(episode: Episode, state: _AttemptState) -> Judgement:
    """The judge's verdict; a judge that keeps failing leaves a missing attempt."""
    for left in _JUDGE_TRIES_LEFT:
        try:
            try:
                result = episode.judge()
            except GeneratorExit as error:  # of the judge itself: nothing was awaited yet
                raise RuntimeError(type(error).__name__) from None
            if isinstance(result, Judgement):
                return result
            return Judgement.from_result(await maybe_await(result))
        except NoVerdict as error:
            raise WorldFault(MissingReason.JUDGE_ERROR, error.message) from None
        except (RunStopped, WorldFault):
            raise
        except _ANY as error:
            if left == 0:
                # A fault comes from another process, with the text of the error there.
                text = error.detail if isinstance(error, AgentFault) else describe_error(error)
                raise WorldFault(MissingReason.JUDGE_ERROR, text) from None
            state.retries += 1
    raise AssertionError("unreachable")


@overload
def maybe_await(value: Awaitable[T]) -> Coroutine[Any, Any, T]: ...


@overload
def maybe_await(value: T | Awaitable[T]) -> Coroutine[Any, Any, T]: ...


async def maybe_await(value: T | Awaitable[T]) -> T:
    """Return the value, awaited if it has to be: a hook may be a plain method or an async one."""
    return await cast("Awaitable[T]", value) if hasattr(value, "__await__") else value


def _digest(transcript: Sequence[Mapping[str, str]]) -> str:
    """A hash of all that the agent answered."""
    return _digest_text("\n".join([e["text"] for e in transcript if e["role"] == "agent"]))


@lru_cache(maxsize=256)
def _digest_text(answers: str) -> str:
    return hashlib.sha256(answers.encode()).hexdigest()[:16]


def _as_amount(number: object) -> float | None:
    """A recorded amount; what is no finite number, negative or beyond reason is not recorded."""
    if isinstance(number, int | float) and 0 <= number <= _LARGEST_AMOUNT:
        return number
    return None
