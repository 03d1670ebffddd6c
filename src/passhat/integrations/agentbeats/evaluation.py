"""One evaluation, from an assessment to a result: attempts into the store, a report out of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from passhat.integrations.agentbeats.assessments import Assessment
from passhat.readers.store import run_from_store
from passhat.report.build import ReportOptions, build_report
from passhat.report.view import Report, RunReport
from passhat.runner import Progress, run_attempts
from passhat.runner.redaction import Redactor
from passhat.runner.run import Stop
from passhat.runner.run_spec import RunSpec
from passhat.stats.outcomes import Run, Verdict
from passhat.store import AttemptRecord, Store

__all__ = ["EVALUATOR", "Result", "Stopped", "evaluate", "told"]

EVALUATOR = "green_agent"
_MARKS = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.MISSING: "missing"}

Seen = Callable[[str], None]


class Stopped(Exception):
    """The evaluation was asked to end early."""

    def __init__(self) -> None:
        super().__init__("the evaluation was stopped")


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an evaluation, for people and for programs."""

    text: str
    data: Mapping[str, object]
    winner: str


async def evaluate(
    asked: Assessment, store: Store, *, name: str, redact: Redactor, stop: Stop, seen: Seen
) -> Result:
    """Make every attempt of every participant, one participant after the other.

    ``name`` tells this evaluation from earlier ones of the same agent: its attempts are fresh.
    """
    runs: dict[str, Run] = {}
    made: list[dict[str, object]] = []
    for role, url in asked.participants.items():
        plan = RunSpec(
            agent=f"a2a:{url}",
            suite=asked.suite,
            attempts=asked.attempts,
            tasks=tuple(task.id for task in asked.tasks),
            max_steps=asked.limits.max_steps,
            step_seconds=asked.limits.step_seconds,
            attempt_seconds=asked.limits.attempt_seconds,
            jobs=asked.jobs,
            seed=asked.seed,
            temperature=asked.temperature,
            name=f"{name} {role}",
            redact=redact,
        ).plan()
        seen(
            f"{role}: {len(asked.tasks)} tasks of {asked.suite.name}, "
            f"{asked.attempts} attempts each, at {url}"
        )

        def one(record: AttemptRecord, progress: Progress, role: str = role) -> None:
            made.append(_row(record))
            seen(told(role, record, progress, asked.attempts))

        await run_attempts(plan, store, stop, one)
        if stop.asked:
            raise Stopped
        runs[role] = run_from_store(store, store.find(plan.record.id))
    options = ReportOptions(ks=tuple(sorted({1, asked.k})), with_tasks=True)
    # Beside the event loop, which gives signs of life meanwhile.
    report = await asyncio.to_thread(build_report, list(runs.values()), options)
    return Result(
        text=_summary(asked, dict(zip(runs, report.runs, strict=True))),
        # Attempts of several participants would be taken for those of one.
        data=report.to_dict() | ({"results": made} if len(runs) == 1 else {}),
        winner=_winner(asked, runs, report),
    )


def _row(record: AttemptRecord) -> dict[str, object]:
    """One attempt as evaluators on AgentBeats write it, and as ``passhat report`` reads it."""
    ended = record.judgement
    return {
        "task_id": record.task,
        "attempt": record.number,
        "passed": None if ended.verdict is Verdict.MISSING else bool(ended.verdict),
        "failure_category": ended.why or None,
        "time_used": record.seconds,
        "steps": record.steps,
    }


def told(role: str, record: AttemptRecord, progress: Progress, attempts: int) -> str:
    """One attempt in a line, for progress messages."""
    ended = record.judgement
    why = f", {ended.why}: {ended.detail}" if ended.why else ""
    return (
        f"{role}: {record.task} attempt {record.number}/{attempts}: {_MARKS[ended.verdict]} "
        f"({record.steps or 0:g} steps, {record.seconds or 0:.1f} s{why}); "
        f"{progress.done} of {progress.total} done, {progress.passed} passed"
    )


def _summary(asked: Assessment, reports: Mapping[str, RunReport]) -> str:
    lines = [f"{asked.suite.name}: {len(asked.tasks)} tasks, {asked.attempts} attempts each"]
    for role, report in reports.items():
        outcomes = report.run.outcomes
        lines += ["", f"{role}: {report.headline}"]
        new = [estimate for estimate in report.estimates if estimate.about == "new tasks"]
        lines += [f"  {one}" for one in new if one.metric.startswith("pass")]
        lines.append(
            f"  {outcomes.passes} of {outcomes.scored} attempts passed, "
            f"{outcomes.total_missing} missing"
        )
        failures = report.run.failures_by_category.items()
        lines += [f"  failed by {why}: {count}" for why, count in failures]
        lines += [f"  {row.task} {row.dots}" for row in report.tasks]
        lines += [f"  note: {note}" for note in report.notes]
    lines += [f"note: {note}" for note in asked.notes]
    return "\n".join(line.rstrip() for line in lines)


def _winner(asked: Assessment, runs: Mapping[str, Run], report: Report) -> str:
    """A backend of version 1 wants a name: the best participant, if it is good enough."""
    values = {}
    for role, one in zip(runs, report.runs, strict=True):
        estimate = one.find(f"pass^{asked.k}")
        values[role] = 0.0 if estimate is None else estimate.value
    best = max(values.values())
    if best < asked.win_at:
        return EVALUATOR
    first = [role for role, value in values.items() if value == best]
    return first[0] if len(first) == 1 else "draw"
