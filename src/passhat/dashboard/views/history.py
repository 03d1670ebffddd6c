"""A suite over many runs: the trend with intervals, and where suite or protocol changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from passhat._display import number
from passhat._serialize import Plain
from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import address, day
from passhat.dashboard.run_summaries import Summary
from passhat.dashboard.svg_charts import Mark, Plot, Point, Series, draw
from passhat.errors import PasshatError
from passhat.protocol import Difference, Protocol
from passhat.stats.estimate import Estimate, metric

__all__ = ["history"]

SCHEMA = "passhat.history/1"
_MOST_RUNS = 60
_MOST_LINES = 6
_SUITE = ("suite", "suite_fingerprint", "tests_fingerprint")


@dataclass(frozen=True, slots=True)
class Step(Plain):
    """A run of the suite; ``changes`` are the differences from the run before."""

    run: Summary
    estimate: Estimate | None
    trouble: str
    changes: tuple[Difference, ...]

    @property
    def suite_changed(self) -> bool:
        return any(change.field in _SUITE for change in self.changes)

    def _as_dict(self) -> dict[str, object]:
        return {
            "run": self.run.id,
            "agent": self.run.head.agent,
            "name": self.run.head.name,
            "started": self.run.head.started,
            "status": self.run.status,
            "attempts": self.run.counts.attempts,
            "estimate": self.estimate,
            "trouble": self.trouble or None,
            "changes": [str(change) for change in self.changes],
        }


def history(state: AppState, request: PageRequest) -> Answer:
    """The newest sixty runs of a suite in the order in which they were started."""
    everything = state.summaries.all()
    suites = sorted({summary.head.suite for summary in everything})
    suite = request.text("suite") or (everything[0].head.suite if everything else "")
    word = str(metric(request.text("metric") or "pass^1"))
    agent = request.text("agent")
    of_suite = [
        summary for summary in everything if summary.head.suite == suite and summary.counts.attempts
    ]
    of_agent = [summary for summary in of_suite if not agent or summary.head.agent == agent][
        :_MOST_RUNS
    ][::-1]
    steps = _steps(state, of_agent, word)
    data = {
        "schema": SCHEMA,
        "suite": suite,
        "metric": word,
        "agent": agent or None,
        "runs": steps,
    }
    if request.form == "json":
        return Json(data)
    if request.form == "csv":
        return _csv(steps, word)
    return Html(
        "history.html.j2",
        {
            "suite": suite,
            "suites": suites,
            "agents": sorted({summary.head.agent for summary in of_suite}),
            "agent": agent,
            "word": word,
            "steps": steps,
            "plot": _plot(steps, suite, word),
            "left_out": max(0, len(of_suite) - len(of_agent)) if not agent else 0,
        },
    )


def _steps(state: AppState, runs: Sequence[Summary], word: str) -> list[Step]:
    steps = []
    before: Protocol | None = None
    for run in runs:
        key = run.head.key
        protocol = state.reading.plan_of(key).add_to_protocol(state.reading.protocol(key))
        changes = () if before is None else _changes(before, protocol)
        before = protocol
        estimate, trouble = None, ""
        try:
            estimate = state.snapshots.estimate(run, word)
        except PasshatError as error:
            trouble = error.message
        steps.append(Step(run, estimate, trouble, changes))
    return steps


def _changes(before: Protocol, after: Protocol) -> tuple[Difference, ...]:
    """Fields that both recorded and that differ."""
    return tuple(entry for entry in before.differences(after) if entry.known)


def _plot(steps: Sequence[Step], suite: str, word: str) -> Markup:
    places = {agent: i for i, agent in enumerate(dict.fromkeys(s.run.head.agent for s in steps), 1)}
    lines = []
    for agent, place in list(places.items())[:_MOST_LINES]:
        points = [
            Point(
                x,
                step.estimate.value,
                step.estimate.low,
                step.estimate.high,
                _tip(step),
                _href(step),
            )
            for x, step in enumerate(steps)
            if step.estimate is not None and step.run.head.agent == agent
        ]
        if points:
            lines.append(Series(_short(agent), points, place, bars=True))
    marks = [
        Mark(x - 0.5, f"{day(step.run.head.started)}: {'; '.join(map(str, step.changes))}")
        for x, step in enumerate(steps)
        if step.changes
    ]
    with_value = [x for x, step in enumerate(steps) if step.estimate is not None]
    step = max(1, -(-len(with_value) // 6))
    visible = [mark for mark in marks if with_value and with_value[0] <= mark.x <= with_value[-1]]
    return draw(
        Plot(
            "trend",
            f"{word} of {suite} over {len(with_value)} runs",
            f"Points are runs in the order in which they were started, bars their 95% intervals "
            f"for new tasks; {len(visible)} vertical lines mark where suite or protocol changed.",
            lines,
            x_title="runs, in order of their start",
            ticks=_ticks(steps, with_value[::step]),
            marks=visible,
            width=680,
        )
    )


def _ticks(steps: Sequence[Step], places: Sequence[int]) -> list[tuple[float, str]]:
    """Days; where all runs are of one day, hours and minutes."""
    stamps = [(x, day(steps[x].run.head.started)) for x in places]
    one_day = len({stamp[:10] for _, stamp in stamps}) == 1
    return [(x, stamp[11:] if one_day else stamp[5:10]) for x, stamp in stamps]


def _short(agent: str) -> str:
    return agent if len(agent) <= 24 else f"{agent[:23]}…"


def _tip(step: Step) -> str:
    assert step.estimate is not None
    return (
        f"{step.run.title} {step.run.id}, {day(step.run.head.started)}: {step.estimate.metric} = "
        f"{number(step.estimate.value)} {step.estimate.interval_text()}"
    )


def _href(step: Step) -> str:
    return address("runs", step.run.id)


def _csv(steps: Sequence[Step], word: str) -> Csv:
    header = ("run", "agent", "name", "started", "metric", "value", "low", "high", "level")
    rows = []
    for step in steps:
        estimate = step.estimate
        numbers = (
            (estimate.value, estimate.low, estimate.high, estimate.level) if estimate else ("",) * 4
        )
        head = step.run.head
        changes = "; ".join(map(str, step.changes))
        rows.append((head.id, head.agent, head.name, head.started, word, *numbers, changes))
    return Csv((*header, "changes"), rows)
