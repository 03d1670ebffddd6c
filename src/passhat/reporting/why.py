"""``passhat.why``: the facts on what goes with failure, from the conversations of a run."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import NamedTuple

from passhat._display import some
from passhat.errors import InvalidValue
from passhat.readers import Needs, read
from passhat.readers.parsing import read_conversation
from passhat.readers.store import run_from_store
from passhat.stats.outcomes import Failures, Run, Verdict, summarize_failures
from passhat.stats.outcomes.causes import group_failures
from passhat.stats.outcomes.coercion import kind_of
from passhat.stats.why import Step, TaskWhy, Trace, Why, explain_failures, explain_task
from passhat.store import open_store
from passhat.suites.tool_calls import RESPOND, Unreadable, read_call

NEEDS = Needs(answers=False, measures=False, conversations=True)
"""The data that a run is read with."""


@dataclass(frozen=True, slots=True)
class AttemptTrace:
    """An attempt, judged or not; ``trace`` is ``None`` where there is nothing to compare."""

    task: str
    number: int
    verdict: Verdict
    trace: Trace | None
    why: str = ""
    detail: str = ""


def read_traces(run: Run) -> list[AttemptTrace]:
    """The tool calls of every attempt of a run that was read with its conversations."""
    if run.attempts is None:
        raise InvalidValue(
            f"{run.name} has counts and no single attempts, so there is nothing to compare."
        )
    return list(_traces(run))


def _traces(run: Run) -> Iterator[AttemptTrace]:
    for attempt in run.attempts or ():
        text = attempt.extras.get("conversation", "")
        number = int(attempt.extras.get("number", attempt.number))
        trace = None
        if text and attempt.verdict is not Verdict.MISSING:
            pairs = read_conversation(text)
            steps = steps_of([{"role": role, "text": words} for role, words in pairs])
            cut = attempt.extras.get("cut", "")
            trace = Trace(
                attempt.task,
                number,
                attempt.verdict is Verdict.PASSED,
                steps.calls,
                steps.messages,
                bool(int(cut)) if cut else None,
            )
        reason = attempt.why or "", attempt.detail or ""
        yield AttemptTrace(attempt.task, number, attempt.verdict, trace, *reason)


def build_why(
    run: Run,
    task: str | None = None,
    level: float = 0.95,
    attempts: Sequence[AttemptTrace] | None = None,
) -> Why:
    """Find events that go with failure over the tasks of a run, and look within one of them.

    ``attempts`` are those of the run, where they were read before. A run of one task is always
    looked at within it.
    """
    attempts = read_traces(run) if attempts is None else attempts
    tasks = list(dict.fromkeys(attempt.task for attempt in attempts))
    if task is not None and task not in tasks:
        raise InvalidValue(
            f"{run.name} has no task {task!r}.", hint=f"Its tasks are: {some(tasks, 10)}"
        )
    traces = [attempt.trace for attempt in attempts if attempt.trace is not None]
    chosen = tasks[0] if task is None and len(tasks) == 1 else task
    verdicts = [attempt.verdict for attempt in attempts]
    return Why(
        run.name,
        len(tasks),
        len(attempts),
        verdicts.count(Verdict.PASSED),
        verdicts.count(Verdict.FAILED),
        verdicts.count(Verdict.MISSING),
        len(_silent_verdicts(attempts)),
        sum(bool(trace.calls) for trace in traces),
        _mixed_tasks(traces),
        level,
        explain_failures(traces, level),
        None if chosen is None else _explain(chosen, attempts, level),
        summarize_failures(run),
    )


def _explain(task: str, attempts: Sequence[AttemptTrace], level: float) -> TaskWhy:
    attempts = [attempt for attempt in attempts if attempt.task == task]
    silent = _silent_verdicts(attempts)
    return explain_task(
        task,
        [attempt.trace for attempt in attempts if attempt.trace is not None],
        level=level,
        missing=sum(attempt.verdict is Verdict.MISSING for attempt in attempts),
        silent_passed=silent.count(Verdict.PASSED),
        silent_failed=silent.count(Verdict.FAILED),
        failures=_summarize(attempts),
    )


def _summarize(attempts: Sequence[AttemptTrace]) -> Failures:
    """The failed attempts by cause."""
    messages: dict[str, Counter[str]] = {}
    for attempt in attempts:
        if attempt.verdict is Verdict.FAILED and attempt.why:
            words = [attempt.detail] if attempt.detail and attempt.detail != attempt.why else []
            messages.setdefault(attempt.why, Counter()).update(words or [""])
    judged = sum(attempt.verdict is not Verdict.MISSING for attempt in attempts)
    counts = {why: found.total() for why, found in messages.items()}
    for found in messages.values():
        del found[""]
    return group_failures(counts, messages, judged)


def _silent_verdicts(attempts: Sequence[AttemptTrace]) -> list[Verdict]:
    """The verdicts of judged attempts without a conversation."""
    return [
        attempt.verdict
        for attempt in attempts
        if attempt.trace is None and attempt.verdict is not Verdict.MISSING
    ]


def _mixed_tasks(traces: Sequence[Trace]) -> tuple[str, ...]:
    """Tasks that passed and failed, those with the most of the rarer verdict first."""
    counts: dict[str, list[int]] = {}
    for trace in traces:
        counts.setdefault(trace.task, [0, 0])[trace.passed] += 1
    mixed = [task for task, both in counts.items() if min(both)]
    return tuple(sorted(mixed, key=lambda task: -min(counts[task])))


def read_conversations(run: Run | str | PathLike[str]) -> Run:
    """The run with its conversations, read again where it was read without them."""
    if not isinstance(run, Run | str | PathLike):
        raise InvalidValue(
            f"expected a Run or the path of a log with conversations; got {kind_of(run)}.",
            hint="For verdicts alone, passhat.report says which tasks are flaky.",
        )
    if not isinstance(run, Run):
        runs = read(run, needs=NEEDS)
        if len(runs) > 1:
            names = some([each.name for each in runs], 10)
            raise InvalidValue(
                f"{run} holds {len(runs)} runs.",
                hint=f"Read it with passhat.read and choose one: {names}",
            )
        return runs[0]
    if run.attempts is not None and "conversation" in run.attempts.extras:
        return run
    if run.id and run.source:
        with open_store(run.source, must_exist=True, read_only=True) as store:
            return run_from_store(store, store.find(run.id), NEEDS)
    if not run.source:
        raise InvalidValue(f"{run.name} has no source from which conversations could be read.")
    return next(each for each in read(run.source, needs=NEEDS) if each.name == run.name)


_AGENT = ("agent", "assistant")
_TOOL = ("tool", "tool_result", "function")
_RESULT = re.compile(r"\s*Tool (result|error):")
# tau-bench and many tools of one's own answer "Error: ...", or an object with the key alone.
_ERROR = re.compile(r'\s*(?:Tool error:|Error\b|\{\s*"error"\s*:)', re.IGNORECASE)


class AgentSteps(NamedTuple):
    """The tool calls of an attempt in order, and the number of texts that the agent wrote."""

    calls: tuple[Step, ...]
    messages: int


def steps_of(transcript: Sequence[Mapping[str, str]]) -> AgentSteps:
    """Read the calls of an agent, and which of them failed, from a transcript.

    Results belong to the calls in their order, also where an agent makes several calls at once.

    Examples
    --------
    >>> call = '<json>{"name": "find", "arguments": {"id": 7}}</json>'
    >>> steps_of([{"role": "agent", "text": call}, {"role": "tool", "text": "Error: none"}]).calls
    (Step(name='find', arguments={'id': 7}, failed=True),)
    """
    calls: list[Step] = []
    waiting: deque[int] = deque()
    messages = 0
    for entry in transcript:
        role, text = entry["role"], entry["text"]
        if role in _AGENT:
            step = _read_step(text)
            if step is None:
                messages += 1
            else:
                waiting.append(len(calls))
                calls.append(step)
        elif role in _TOOL or (role == "user" and _RESULT.match(text)):
            if waiting:
                place = waiting.popleft()
                is_error = _ERROR.match(text) is not None
                calls[place] = replace(calls[place], failed=is_error)
        elif role == "user":
            waiting.clear()
    return AgentSteps(tuple(calls), messages)


def _read_step(text: str) -> Step | None:
    try:
        call = read_call(text)
    except Unreadable:
        return None
    return None if call.name == RESPOND else Step(call.name, call.arguments)
