"""Forecasts beyond the attempts that were made, and plans for the next run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat._display import counted, percent, percent_range
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Heading,
    Level,
    NextStep,
    Note,
    Section,
    Sentence,
    Table,
    upper_first,
)
from passhat.stats.forecast import FORMULAS, SCHEMA, Forecast, Reach
from passhat.stats.outcomes import Run
from passhat.stats.plan import Plan
from passhat.stats.plan.allocation import Allocation

_MOST_ROWS = 6

_SHORT = {
    "zero-inflated beta-binomial": "inflated",
    "one-inflated beta-binomial": "inflated",
    "beta-binomial": "beta",
    "logit-normal": "normal",
}


def default_words(run: Run) -> tuple[str, str]:
    """The metrics of a forecast by default: pass@k at ten times n, pass^k at four times n."""
    n = max(int(run.outcomes.n.max()), 1)
    return f"pass@{10 * n}", f"pass^{4 * n}"


def forecast_data(
    run: Run, forecasts: Sequence[Forecast], inverse: Sequence[Reach], users: int
) -> dict[str, object]:
    """The forecasts under their schema, with every digit."""
    return {
        "schema": SCHEMA,
        "run": run.name,
        "results": [
            forecast.to_dict() | {"in_words": forecast.users(users)} for forecast in forecasts
        ],
        "reach": inverse,
    }


def forecast_document(
    run: Run, forecasts: Sequence[Forecast], inverse: Sequence[Reach], *, users: int = 10_000
) -> Document:
    """Build the document of a run's forecasts: their meaning, the bands, and how to narrow them."""
    sections = {
        "lead": _lead(run, forecasts, inverse, users),
        "bands": _bands(forecasts),
        "next": _next_steps(forecasts),
        "method": _method(forecasts, users),
    }
    return Document(run.name, tuple(Section(name, tuple(part)) for name, part in sections.items()))


def _lead(
    run: Run, forecasts: Sequence[Forecast], inverse: Sequence[Reach], users: int
) -> Iterator[Block]:
    outcomes = run.outcomes
    size = f"{counted(len(outcomes), 'task')}, {outcomes.attempts_text()} each"
    yield Heading(run.name, size, level=Level.SHORT)
    yield Heading(run.name, run.source, level=Level.FULL)
    yield Sentence(str(outcomes), level=Level.FULL)
    for place, reach in enumerate(inverse):
        yield Sentence(f"{reach}.", "lead", level=Level.BOTH if place < 3 else Level.FULL)
    for forecast in _last_of_each_family(forecasts)[:2]:
        yield Sentence(f"{upper_first(forecast.users(users))}.", "lead")
    if len(outcomes) == 1:
        yield Sentence("That is about users with other tasks, of which one task says nothing.")


def _bands(forecasts: Sequence[Forecast]) -> Iterator[Block]:
    if not forecasts:
        return
    level = f"{100 * forecasts[0].level:g}%"
    limit = _MOST_ROWS if len(_last_of_each_family(forecasts)) < 2 else _MOST_ROWS - 1
    rows = tuple(
        (str(each.metric), _observed_text(each, 0), percent_range(each.low, each.high))
        for each in _thin(forecasts, limit)
    )
    yield Table(("metric", "observed", f"{level} band"), rows, level=Level.SHORT)
    models = list(
        dict.fromkeys(_SHORT.get(name, name) for forecast in forecasts for name in forecast.lines)
    )
    full = []
    for forecast in forecasts:
        line_values = {_SHORT.get(name, name): value for name, value in forecast.lines.items()}
        cells = [percent(line_values.get(name), 1) for name in models]
        band = (_observed_text(forecast, 1), percent_range(forecast.low, forecast.high))
        full.append((str(forecast.metric), *band, *cells))
    caption = f"{level} band for new tasks, and lines inside it"
    yield Table(("metric", "seen", "band", *models), tuple(full), caption, level=Level.FULL)


def _observed_text(forecast: Forecast, digits: int) -> str:
    """The observed value; a range where missing attempts may have passed or failed."""
    low, high = percent(forecast.observed, digits), percent(forecast.observed_if_passed, digits)
    return low if forecast.observed_if_passed is None or low == high else f"{low} to {high}"


def _next_steps(forecasts: Sequence[Forecast]) -> Iterator[Block]:
    """Whether more attempts or more tasks would narrow the widest band."""
    if forecasts:
        widest = max(_last_of_each_family(forecasts), key=lambda each: each.high - each.low)
        text = "more tasks would narrow the band; it is as narrow as these can make it."
        if widest.observed is None:
            text = (
                f"more attempts per task would narrow the band: {widest.metric} is beyond those "
                "made, and more tasks alone leave it wide."
            )
        yield NextStep(text)
    yield Note("Model lines, notes and method: --full. Every digit: --json.", level=Level.SHORT)


def _method(forecasts: Sequence[Forecast], users: int) -> Iterator[Block]:
    if not forecasts:
        return
    last = _last_of_each_family(forecasts)
    entries = [("In words", forecast.users(users)) for forecast in last[2:]]
    entries += [("Warning", text) for forecast in last for text in forecast.warnings]
    entries += [("Note", text) for forecast in last for text in forecast.notes]
    names = [name for forecast in last for name in forecast.lines]
    entries += [("Lines", f"{_SHORT.get(name, name)}: {FORMULAS[name]}") for name in names]
    entries = list(dict.fromkeys(entries))
    yield Facts((*entries, ("Method", forecasts[-1].method)), level=Level.FULL)


def _thin(forecasts: Sequence[Forecast], most: int) -> list[Forecast]:
    """At most so many of them, the last among them."""
    step = -(-len(forecasts) // most)
    return list(forecasts[::-1][::step][::-1])


def _last_of_each_family(forecasts: Sequence[Forecast]) -> list[Forecast]:
    """The forecast with the largest k of every family of metrics, in their order."""
    last = {type(forecast.metric): forecast for forecast in forecasts}
    return list(last.values())


# -- plans ----------------------------------------------------------------------------------------


def plan_document(plan: Plan) -> Document:
    """Build the document of a plan: the answer, the ways to reach it, and what it rests on."""
    return Document.of("Plan", _plan_blocks(plan))


def _plan_blocks(plan: Plan) -> Iterator[Block]:
    yield Sentence(plan.sentence, "lead")
    yield plan_table(plan) if plan.allocation is None else allocation_table(plan.allocation)
    yield Facts(tuple(("Remarks", remark) for remark in plan.remarks()))


def plan_table(plan: Plan) -> Table:
    """The ways to reach the goal, without columns that were not recorded."""
    header = ["attempts per task", "tasks", "attempts in all"]
    header += ["cost"] if plan.rows[0].cost is not None else []
    header += ["hours in a row"] if plan.rows[0].seconds is not None else []
    rows = []
    for row in plan.rows:
        cells = [f"{row.attempts:,}", f"{row.tasks:,}", f"{row.total_attempts:,}"]
        cells += [] if row.cost is None else [f"{row.cost:,.2f}"]
        cells += [] if row.seconds is None else [f"{row.seconds / 3600:,.1f}"]
        rows.append(tuple(cells))
    return Table(tuple(header), tuple(rows), "Ways to reach it", ())


def allocation_table(allocation: Allocation) -> Table:
    rows = tuple(
        (
            *(f"{number:,}" for number in (level.attempts, level.tasks, level.total)),
            percent_range(*level.passed_before, 0),
        )
        for level in allocation.table
    )
    header = ("attempts each", "tasks", "attempts in all", "passed before")
    return Table(header, rows, "Attempts by group of tasks", ())
