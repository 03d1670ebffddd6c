"""passhat as a green agent: an A2A server that evaluates the agents it is sent to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from a2a.helpers import (
    get_data_parts,
    new_data_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message

from passhat._display import counted
from passhat._serialize import as_json
from passhat.agents.a2a import A2AAgent
from passhat.agents.a2a_wire import whole_numbers
from passhat.errors import PasshatError
from passhat.integrations.agentbeats.assessments import (
    Assessment,
    BadRequest,
    NoRequest,
    Rules,
    is_greeting,
    read_request,
)
from passhat.integrations.agentbeats.battles import BackendReports
from passhat.integrations.agentbeats.strangers import (
    Callers,
    Caps,
    CheckedTransport,
)
from passhat.readers.store import run_from_store
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.documents.attempts import total_facts
from passhat.reporting.run_summary import Summary, summarise
from passhat.reporting.view import Report, RunReport
from passhat.runner import Progress, run_attempts
from passhat.runner.redaction import Redactor
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.stats.estimate.metrics import PassAt, PassHat
from passhat.stats.outcomes import Run, Verdict
from passhat.store import AttemptRecord, Store, open_store

EVALUATOR = "green_agent"
_MARKS = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.MISSING: "missing"}

Seen = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an evaluation, as text and as data; ``failure`` says why it is not whole."""

    text: str
    data: Mapping[str, object]
    winner: str
    failure: str = ""


async def evaluate(
    assessment: Assessment,
    store: Store,
    settings: Settings,
    metered: _Metered,
    name: str,
    seen: Seen,
) -> Result:
    """Make every attempt of every participant, one participant after the other.

    ``name`` tells this evaluation from earlier ones of the same agent: its attempts are fresh.
    """
    hosts, stop = settings.rules.hosts, metered.stop
    runs: dict[str, Run] = {}
    summaries: dict[str, Summary] = {}
    rows: list[dict[str, object]] = []
    seen(assessment.sentence)
    for role, url in assessment.participants.items():
        plan = RunSpec(
            agent=A2AAgent(
                url, transport=lambda: CheckedTransport(hosts), received=metered.count_bytes
            ),
            suite=assessment.suite,
            attempts=assessment.attempts,
            tasks=tuple(task.id for task in assessment.tasks),
            max_steps=assessment.limits.max_steps,
            step_seconds=assessment.limits.step_seconds,
            attempt_seconds=assessment.limits.attempt_seconds,
            jobs=assessment.jobs,
            seed=assessment.seed,
            temperature=assessment.temperature,
            name=f"{name} {role}",
            keep_going=True,  # a participant that always fails has lost, too
            redact=settings.redact,
        ).plan()
        seen(f"{role} at {url}")

        def one(record: AttemptRecord, progress: Progress, role: str = role) -> None:
            rows.append(_row(record))
            seen(progress_line(role, record, progress, assessment.attempts))

        await run_attempts(plan, store, stop, one)
        if not stop.asked or len(store.load_attempts(plan.record.id, finished=True)):
            runs[role] = run_from_store(store, store.find(plan.record.id))
            summaries[role] = summarise(store.iterate_results(plan.record.id), assessment.k)
        if stop.asked:
            break
    failure = "the evaluation was stopped" if stop.asked else ""
    if not runs:
        return _failed(failure)
    # A part of the attempts may be too few for the configured k.
    ks = () if failure else tuple(sorted({1, assessment.k}))
    options = ReportOptions(ks=ks, with_tasks=True)
    # In a thread, so that the event loop can send heartbeats meanwhile.
    report = await asyncio.to_thread(build_report, list(runs.values()), options)
    text = _summary(assessment, dict(zip(runs, report.runs, strict=True)), summaries)
    attempts = json.loads(as_json(summaries))
    data = {**report.to_dict(), "attempts": attempts, "complete": not failure}
    return Result(
        text=f"{failure}; what was made until then:\n{text}" if failure else text,
        # Attempts of several participants would be taken for those of one.
        data=data | ({"results": rows} if len(assessment.participants) == 1 else {}),
        winner=EVALUATOR if failure else _winner(assessment, runs, report),
        failure=failure,
    )


def _row(record: AttemptRecord) -> dict[str, object]:
    """An attempt in the form of AgentBeats evaluators, which ``passhat report`` reads."""
    judgement = record.judgement
    return {
        "task_id": record.task,
        "attempt": record.number,
        "passed": None if judgement.verdict is Verdict.MISSING else bool(judgement.verdict),
        "failure_category": judgement.why or None,
        "time_used": record.seconds,
        "steps": record.steps,
    }


def progress_line(role: str, record: AttemptRecord, progress: Progress, attempts: int) -> str:
    """An attempt as a line of text, for progress messages."""
    judgement = record.judgement
    why = f", {judgement.why}: {judgement.detail}" if judgement.why else ""
    return (
        f"{role}: {record.task} attempt {record.number}/{attempts}: {_MARKS[judgement.verdict]} "
        f"({counted(int(record.steps or 0), 'step')}, {record.seconds or 0:.1f} s{why}); "
        f"{progress.done} of {progress.total} done, {progress.passed} passed"
    )


def _summary(
    assessment: Assessment, reports: Mapping[str, RunReport], summaries: Mapping[str, Summary]
) -> str:
    lines = [
        f"{assessment.suite.name}: {counted(len(assessment.tasks), 'task')}, "
        f"{counted(assessment.attempts, 'attempt')} each"
    ]
    for role, report in reports.items():
        outcomes = report.run.outcomes
        lines += ["", f"{role}: {report.headline}"]
        lines += [
            f"  {each}"
            for each in report.main_estimates
            if isinstance(each.metric, PassAt | PassHat)
        ]
        lines.append(
            f"  {outcomes.passes} of {counted(outcomes.scored, 'attempt')} passed, "
            f"{outcomes.total_missing} missing"
        )
        lines += [f"  {name}: {text}" for name, text in total_facts(summaries[role])]
        lines += [f"  {text}" for text in _usage(report.run)]
        lines += [f"  {row.task} {row.dots}" for row in report.tasks]
        lines += [f"  note: {note}" for note in report.notes]
    lines += [f"note: {note}" for note in assessment.notes]
    return "\n".join(line.rstrip() for line in lines)


def _usage(run: Run) -> Iterator[str]:
    """Tokens and money of a run, where the agent tells them."""
    for name, unit in (("tokens", "{:,.0f} tokens"), ("cost", "cost ${:,.4f}")):
        if (amount := run.measured(name)) is not None:
            yield unit.format(amount.total)


def _winner(assessment: Assessment, runs: Mapping[str, Run], report: Report) -> str:
    """A backend of version 1 wants a name: the best participant, if it is good enough."""
    values = {}
    for role, run in zip(runs, report.runs, strict=True):
        estimate = run.find(PassHat(assessment.k))
        values[role] = 0.0 if estimate is None else estimate.value
    best = max(values.values())
    if best < assessment.win_at:
        return EVALUATOR
    first = [role for role, value in values.items() if value == best]
    return first[0] if len(first) == 1 else "draw"


_HEARTBEAT_SECONDS = 1.5
"""Clients give up when nothing comes for five seconds: slow attempts must not look like death."""
_WAITING_SECONDS = 3.0
"""The same for those that wait, which may be many."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the server, from its command line."""

    store_path: str
    rules: Rules = field(default_factory=Rules)
    most_at_once: int = 2
    caps: Caps = field(default_factory=Caps)
    redact: Redactor = field(default_factory=Redactor)


CALLER = "passhat-caller"
"""Where the address of the caller is in the state of a call."""


_MOST_WAITING = 200
"""Evaluations that wait for their turn; the next one is refused."""


class Turns:
    """Evaluations that wait for their turn: first come, first served."""

    def __init__(self, most_at_once: int) -> None:
        self._most_at_once = most_at_once
        self._waiting: dict[str, asyncio.Event] = {}
        self.going_on = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return self.going_on >= self._most_at_once and self.waiting >= _MOST_WAITING

    def sentence(self, name: str) -> str:
        """Return how many are before this one; empty if it does not wait."""
        if name not in self._waiting:
            return ""
        before = list(self._waiting).index(name)
        return (
            f"waiting for its turn: {counted(self.going_on, 'evaluation')} going on, "
            f"{before} before this one"
        )

    async def wait(self, name: str, stop: Stop, say: Seen) -> bool:
        """Wait until it is this evaluation's turn; ``False`` if it was stopped before."""
        called = self._waiting[name] = asyncio.Event()
        stop.when_impatient(called.set)
        self._call_next()
        try:
            if not called.is_set():
                say(self.sentence(name))
            await called.wait()
            if not stop.asked:
                self.going_on += 1
            return not stop.asked
        finally:
            del self._waiting[name]
            self._call_next()

    def end(self) -> None:
        """Leave room for the next one."""
        self.going_on -= 1
        self._call_next()

    def _call_next(self) -> None:
        # Only the first is called: it calls the next one when it has left the queue.
        if self._waiting and self.going_on < self._most_at_once:
            next(iter(self._waiting.values())).set()


class _Metered:
    """Counts the time and bytes of one evaluation, and stops it at its caller's caps."""

    def __init__(self, callers: Callers, caller: str, assessment: Assessment, stop: Stop) -> None:
        self._callers, self._caller = callers, caller
        self._usage = callers.begin(caller, runs=1, attempts=assessment.total_attempts)
        self._timer: asyncio.TimerHandle | None = None
        self._began = 0.0
        self.stop = stop
        self.reason = ""

    def __enter__(self) -> None:
        self._began = self._callers.clock()  # waiting for its turn costs nothing
        seconds_left = self._callers.left(self._caller, "seconds")
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds_left, self._over, "seconds")

    def __exit__(self, *_: object) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._usage.seconds = self._callers.clock() - self._began

    def count_bytes(self, count: int) -> None:
        self._usage.bytes += count
        if self._callers.left(self._caller, "bytes") <= 0:
            self._over("bytes")

    def _over(self, name: str) -> None:
        cap = getattr(self._callers.caps, name)
        self.end(f": its caller has used its {cap:,.0f} {name} an hour (--cap {name}=NUMBER)")

    def end(self, reason: str) -> None:
        """Stop the evaluation at once."""
        self.reason = reason
        self.stop.give_up()


class GreenAgent(AgentExecutor):
    """Accepts a request, streams a line for every attempt, ends with the artifact "Result"."""

    def __init__(
        self, settings: Settings, say: Callable[[str], object] = lambda _line: None
    ) -> None:
        self._settings = settings
        self._say = say
        self._stops: dict[str, Stop] = {}
        self.turns = Turns(settings.most_at_once)
        self.callers = Callers(settings.caps)
        self.finished = 0

    def stop_all(self) -> int:
        """Give up every evaluation, waiting ones too; returns how many there were."""
        for stop in self._stops.values():
            stop.give_up()
        return len(self._stops)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        text = context.get_user_input() or _data_text(context.message)
        task = context.current_task or new_task_from_user_message(context.message)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        else:  # the task as it was would be taken for the answer
            await updater.start_work()
        if is_greeting(text):  # backends of version 1 read artifacts and status updates only
            await updater.add_artifact([new_text_part("ready to evaluate")], name="Ready")
            await updater.complete()
            return
        caller = str(context.call_context.state.get(CALLER, ""))
        try:
            assessment = await self._admit(text, caller)
        except NoRequest as error:
            # Input required, not refused: the next message of the task may be a request.
            await updater.requires_input(_words(f"Send a request: {error}", updater))
            return
        except BadRequest as error:
            self._say(f"rejected: {error}")
            await updater.reject(_words("Rejected: " + "; ".join(error.reasons), updater))
            return
        stop = self._stops[task.id] = Stop()
        try:
            await self._evaluate(
                assessment, task.id, _Metered(self.callers, caller, assessment, stop), updater
            )
        finally:
            del self._stops[task.id]
            self.finished += 1

    async def _admit(self, text: str, caller: str) -> Assessment:
        """Read a request; refuse it if it exceeds this caller's rights or caps."""
        assessment = read_request(text, self._settings.rules)
        urls = {f"participant {role!r}": url for role, url in assessment.participants.items()}
        if assessment.battle is not None and assessment.battle.backend_url:
            urls["the backend"] = assessment.battle.backend_url
        for whose, url in urls.items():
            if wrong := await self._settings.rules.hosts.refusal_when_resolved(url, whose):
                raise BadRequest(wrong)
        if wrong := self.callers.refusal(caller, runs=1, attempts=assessment.total_attempts):
            raise BadRequest(wrong)
        if self.turns.is_full:
            raise BadRequest(
                f"busy: {counted(self.turns.going_on, 'evaluation')} going on and "
                f"{self.turns.waiting} "
                "waiting; try again later"
            )
        return assessment

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        stop = self._stops.get(str(context.task_id))
        if stop is not None:
            stop.give_up()
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()

    async def _evaluate(
        self, assessment: Assessment, task_id: str, metered: _Metered, updater: TaskUpdater
    ) -> None:
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        reports = None
        if assessment.battle is not None and assessment.battle.backend_url:
            end = partial(metered.end, ": its backend refuses reports, so the battle is over there")
            reports = BackendReports(assessment.battle, self._settings.rules.hosts, end)

        def report_line(line: str) -> None:
            line = self._settings.redact(line)
            self._say(line)
            lines.put_nowait(line)
            if reports is not None:
                reports.progress(line)

        telling = asyncio.create_task(_tell(lines, updater, lambda: self.turns.sentence(task_id)))
        try:
            result = await self._result(assessment, task_id, metered, report_line)
            self._say(result.text)
            if reports is not None:  # a slow backend is waited for, with signs of life
                reports.result(result.winner, result.text, result.data)
                await reports.close()
                if reports.lost:
                    self._say(f"{reports.lost} reports did not reach {assessment.battle}")
        finally:
            lines.put_nowait(None)
            await telling
        await _finish(result, updater)

    async def _result(
        self, assessment: Assessment, task_id: str, metered: _Metered, seen: Callable[[str], None]
    ) -> Result:
        name = assessment.battle.id if assessment.battle is not None else task_id
        if not await self.turns.wait(task_id, metered.stop, seen):
            return _failed(f"the evaluation was stopped before it began{metered.reason}")
        try:
            with metered, open_store(self._settings.store_path) as store:
                result = await evaluate(assessment, store, self._settings, metered, name, seen)
        except Exception as error:  # the caller waits for a result and must learn of it
            cause = str(error) if isinstance(error, PasshatError) else repr(error)
            return _failed(self._settings.redact(f"the evaluation failed: {cause}"))
        finally:
            self.turns.end()
        if result.failure:
            result = replace(result, failure=f"{result.failure}{metered.reason}")
        return result


async def _tell(
    lines: asyncio.Queue[str | None], updater: TaskUpdater, waiting: Callable[[], str]
) -> None:
    """Stream a status update for every line, and a sign of life where lines are far apart."""
    last = "working"
    while True:
        pause = _WAITING_SECONDS if waiting() else _HEARTBEAT_SECONDS
        try:
            line = await asyncio.wait_for(lines.get(), pause)
        except TimeoutError:
            life = waiting() or f"still working; last: {last}"
            await updater.start_work(_words(life, updater))
            continue
        if line is None:
            return
        last = line
        await updater.start_work(_words(line, updater))


async def _finish(result: Result, updater: TaskUpdater) -> None:
    if result.data:
        data = json.loads(json.dumps(result.data, allow_nan=False, default=str))
        name = "Partial result" if result.failure else "Result"
        await updater.add_artifact([new_text_part(result.text), new_data_part(data)], name=name)
    if result.failure:
        await updater.failed(_words(result.failure, updater))
    else:
        await updater.complete()


def _data_text(message: Message) -> str:
    """A request in a data part, as if it were text."""
    data = get_data_parts(message.parts)
    return json.dumps(whole_numbers(data[0])) if data else ""


def _failed(why: str) -> Result:
    return Result(why, {}, EVALUATOR, why)


def _words(text: str, updater: TaskUpdater) -> Message:
    return new_text_message(text, context_id=updater.context_id, task_id=updater.task_id)
