"""Forecasts as text for a terminal, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from passhat._display import counted, number, percent, percent_range
from passhat.reporting.terminal import captured, facts, plain, plain_table
from passhat.stats.forecast import FORMULAS, SCHEMA, Forecast, Reach
from passhat.stats.outcomes import Run

__all__ = ["default_words", "forecast_data", "render_forecast", "render_summary"]

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
        "results": [each.to_dict() | {"in_words": each.users(users)} for each in forecasts],
        "reach": inverse,
    }


def render_summary(
    run: Run,
    forecasts: Sequence[Forecast],
    inverse: Sequence[Reach],
    console: Console,
    *,
    users: int = 10_000,
) -> str:
    """Forecasts in at most 15 lines: their meaning, the bands, and how to narrow them."""
    return captured(console, lambda: _summary(run, forecasts, inverse, users))


def _summary(
    run: Run, forecasts: Sequence[Forecast], inverse: Sequence[Reach], users: int
) -> Iterator[RenderableType]:
    outcomes = run.outcomes
    tasks = counted(len(outcomes), "task")
    yield Text.assemble(plain(run.name, "bold"), f"   {tasks}, {outcomes.attempts_text()} each")
    for reach in inverse[:3]:
        yield plain(str(reach), "italic")
    last = _last_of_each_family(forecasts)
    for each in last[:2]:
        sentence = each.users(users)
        yield plain(f"{sentence[0].upper()}{sentence[1:]}.", "italic")
    if forecasts:
        shown = _some_of(forecasts, _MOST_ROWS if len(last) < 2 else _MOST_ROWS - 1)
        rows = [
            (str(each.metric), percent(each.observed), percent_range(each.low, each.high))
            for each in shown
        ]
        yield plain_table(("metric", "observed", f"{100 * forecasts[0].level:g}% band"), rows)
        yield plain(_next_step(last))
    yield plain("Model lines, notes and method: --full. Every digit: --json.", "grey50")


def _some_of(forecasts: Sequence[Forecast], most: int) -> list[Forecast]:
    """At most so many of them, the last among them."""
    step = -(-len(forecasts) // most)
    return list(forecasts[::-1][::step][::-1])


def _next_step(forecasts: Sequence[Forecast]) -> str:
    """Whether more attempts or more tasks would narrow the widest band."""
    widest = max(forecasts, key=lambda each: each.high - each.low)
    if widest.observed is None:
        return (
            f"Next: more attempts per task; {widest.metric} is beyond those made, so its band is "
            "wide however many tasks there are."
        )
    return "Next: more tasks; the band is as narrow as an interval for new tasks can be."


def _last_of_each_family(forecasts: Sequence[Forecast]) -> list[Forecast]:
    """The forecast with the largest k of every family of metrics, in their order."""
    last = {type(each.metric): each for each in forecasts}
    return list(last.values())


def render_forecast(
    run: Run,
    forecasts: Sequence[Forecast],
    inverse: Sequence[Reach],
    console: Console,
    *,
    users: int = 10_000,
) -> str:
    """The bands with the model lines inside them, then their meaning, then notes."""
    return captured(console, lambda: _parts(run, forecasts, inverse, users))


def _parts(
    run: Run, forecasts: Sequence[Forecast], inverse: Sequence[Reach], users: int
) -> Iterator[RenderableType]:
    yield Text.assemble(plain(run.name, "bold"), "   ", plain(run.source, "grey50"))
    yield plain(str(run.outcomes))
    yield Text("")
    for reach in inverse:
        yield plain(str(reach), "italic")
    if inverse:
        yield Text("")
    if not forecasts:
        return
    level = f"{100 * forecasts[0].level:g}%"
    yield Text(f"{level} band for new tasks, and lines inside it", style="bold")
    yield _table(forecasts)
    yield facts(_facts(forecasts, users))


def _table(forecasts: Sequence[Forecast]) -> RenderableType:
    models = list(
        dict.fromkeys(_SHORT.get(name, name) for each in forecasts for name in each.lines)
    )
    rows = []
    for each in forecasts:
        drawn = {_SHORT.get(name, name): value for name, value in each.lines.items()}
        cells = [number(drawn.get(name)) for name in models]
        rows.append([str(each.metric), number(each.observed), each.band_text(), *cells])
    return plain_table(("metric", "seen", "band", *models), rows)


def _facts(forecasts: Sequence[Forecast], users: int) -> Iterator[tuple[str, str]]:
    last = _last_of_each_family(forecasts)
    for each in last:
        yield "In words", each.users(users)
    for warning in dict.fromkeys(text for each in last for text in each.warnings):
        yield "Warning", warning
    for note in dict.fromkeys(text for each in last for text in each.notes):
        yield "Note", note
    for name in dict.fromkeys(name for each in last for name in each.lines):
        yield "Lines", f"{_SHORT.get(name, name)}: {FORMULAS[name]}"
    yield "Method", forecasts[-1].method
