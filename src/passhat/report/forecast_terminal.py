"""Forecasts as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from passhat._display import number
from passhat.report.tables import captured, facts, plain, plain_table
from passhat.stats.forecast import FORMULAS, Forecast, Reach
from passhat.stats.outcomes import Run

__all__ = ["render_forecast"]

_SHORT = {
    "zero-inflated beta-binomial": "inflated",
    "one-inflated beta-binomial": "inflated",
    "beta-binomial": "beta",
    "logit-normal": "normal",
}


def render_forecast(
    run: Run,
    found: Sequence[Forecast],
    inverse: Sequence[Reach],
    console: Console,
    *,
    users: int = 10_000,
) -> str:
    """The bands with the lines inside them, then what they mean, then what to beware of."""
    return captured(console, lambda: _parts(run, found, inverse, users))


def _parts(
    run: Run, found: Sequence[Forecast], inverse: Sequence[Reach], users: int
) -> Iterator[RenderableType]:
    yield Text.assemble(plain(run.name, "bold"), "   ", plain(run.source, "grey50"))
    yield plain(str(run.outcomes))
    yield Text("")
    for reach in inverse:
        yield plain(str(reach), "italic")
    if inverse:
        yield Text("")
    if not found:
        return
    yield Text(f"{found[0].level:.0%} band for new tasks, and lines inside it", style="bold")
    yield _table(found)
    yield facts(_facts(found, users))


def _table(found: Sequence[Forecast]) -> RenderableType:
    models = list(dict.fromkeys(_SHORT.get(name, name) for one in found for name in one.lines))
    rows = []
    for one in found:
        drawn = {_SHORT.get(name, name): value for name, value in one.lines.items()}
        cells = [number(drawn.get(name)) for name in models]
        rows.append([one.metric, number(one.observed), one.band_text(), *cells])
    return plain_table(("metric", "seen", "band", *models), rows)


def _facts(found: Sequence[Forecast], users: int) -> Iterator[tuple[str, str]]:
    # Of a curve only its last point is put into words; families keep their order.
    last = {one.metric.partition("@")[0].partition("^")[0] + one.metric[4:5]: one for one in found}
    for one in last.values():
        yield "In words", one.users(users)
    notes = dict.fromkeys(note for one in last.values() for note in one.notes)
    for note in notes:
        text = note.removeprefix("warning: ")
        yield ("Note" if text == note else "Warning"), text
    for name in dict.fromkeys(name for one in last.values() for name in one.lines):
        yield "Lines", f"{_SHORT.get(name, name)}: {FORMULAS[name]}"
    yield "Method", found[-1].method
