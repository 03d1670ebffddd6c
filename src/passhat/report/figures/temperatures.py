"""Figures of a fit of temperatures: pass@k over T, the best T over k, and who leads where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

from passhat._display import counted, number
from passhat.errors import PasshatError
from passhat.report.figures.base import MOST_RUNS, Figure
from passhat.report.figures.lines import Panel, Scale, k_scale, panel
from passhat.report.figures.vega_lite import Row, Spec, field, layered, marks, stacked
from passhat.stats.outcomes import Run
from passhat.stats.temperature import AgentFit, RankingFlip, TemperatureFit
from passhat.stats.terms import Terms

__all__ = ["fit_figures", "heat_figure", "heatmap"]

_MOST_FLIPS = 6
_TALL = 200


def fit_figures(fit: TemperatureFit) -> Iterator[Figure]:
    """Every figure that the fit has numbers for."""
    for number_of, agent in enumerate(fit.agents[:MOST_RUNS], 1):
        if len(agent.temperatures) > 1:
            yield _over_temperature(agent, f"temperature-{number_of}")
    drawn = [_best(fit), heat_figure(fit), _leads(fit.flips[:_MOST_FLIPS])]
    yield from (figure for figure in drawn if figure is not None)


def _over_temperature(agent: AgentFit, name: str) -> Figure:
    ks = _some(agent.ks)
    rows: list[Row] = [
        {
            "x": cell.temperature,
            "series": f"k = {cell.k}",
            "value": cell.estimate.value,
            "low": cell.estimate.low,
            "high": cell.estimate.high,
            "tip": f"T = {cell.temperature:g}: {cell.estimate.metric} = "
            f"{number(cell.estimate.value)} {cell.estimate.interval_text()}",
        }
        for cell in agent.cells
        if cell.k in ks
    ]
    low, high = agent.temperatures[0], agent.temperatures[-1]
    margin = 0.03 * (high - low)
    x = Scale("temperature", low - margin, high + margin, form="~g")
    return Figure(
        name,
        f"{agent.agent}: pass@k over temperature",
        f"{str(agent.advice)[0].upper()}{str(agent.advice)[1:]}",
        f"Lines of pass@k of {agent.agent} over the temperature, one for each k, with their "
        "intervals for new tasks shaded.",
        panel(Panel(rows, [f"k = {k}" for k in ks], x, _shares(agent), height=_TALL)),
        ("T", "k", "pass@k", "interval"),
        tuple(
            (
                f"{cell.temperature:g}",
                str(cell.k),
                number(cell.estimate.value),
                cell.estimate.interval_text(),
            )
            for cell in agent.cells
        ),
    )


def _shares(agent: AgentFit) -> Scale:
    """Tenths just around the intervals: a temperature moves pass@k by a few points."""
    ends = [(found.low or 0.0, found.high or 1.0) for found in (c.estimate for c in agent.cells)]
    low = floor(10 * min(end for end, _ in ends)) / 10
    high = ceil(10 * max(end for _, end in ends)) / 10
    return Scale("share of tasks", low, high + 0.005, form=".0%")


def _some(ks: Sequence[int]) -> list[int]:
    """As many as can be told apart, the first and the last among them."""
    step = -(-(len(ks) - 1) // (MOST_RUNS - 1)) or 1
    return sorted({*ks[::step], ks[-1]})


def _best(fit: TemperatureFit) -> Figure | None:
    """T* over k with its interval, for agents with three temperatures or more."""
    curves = [agent for agent in fit.agents if any(one.between for one in agent.best)][:MOST_RUNS]
    if not curves:
        return None
    rows: list[Row] = [
        {
            "x": one.k,
            "series": agent.agent,
            "value": one.between,
            "low": one.low,
            "high": one.high,
            "tip": f"{agent.agent}, k = {one.k}: T* = {one.between:.3g}, "
            f"{one.low:.3g} to {one.high:.3g}",
        }
        for agent in curves
        for one in agent.best
        if one.between is not None
    ]
    top = max(one.high or 0.0 for agent in curves for one in agent.best)
    fingerprints = [f"{agent.agent}: {agent.exponent}." for agent in curves if agent.exponent]
    return Figure(
        "best",
        "The best temperature over k",
        " ".join(fingerprints)
        or "T* is the top of a parabola in ln T through the best temperature and its neighbors.",
        "Lines of T*, the temperature that is best for pass@k, over k, with their intervals "
        "shaded; one for each agent.",
        panel(
            Panel(
                rows,
                [agent.agent for agent in curves],
                k_scale([one.k for agent in curves for one in agent.best]),
                Scale("best temperature T*", 0, 1.05 * top, form="~g"),
                height=_TALL,
            )
        ),
        ("agent", "k", "best tried", "T*", "interval", ""),
        tuple((agent.agent, *row) for agent in curves for row in agent.best_rows()),
    )


def _leads(flips: Sequence[RankingFlip]) -> Figure | None:
    """Who leads at each (k, T), for pairs whose order flips."""
    if not flips:
        return None
    panels = []
    for flip in flips:
        rows: list[Row] = [
            {
                "k": str(one.k),
                "T": f"{one.temperature:g}",
                "leader": one.leader,
                "text": f"{'A' if one.leader == flip.a else 'B' if one.leader else '='} "
                f"{one.share:.0%}",
                "tip": f"k = {one.k}, T = {one.temperature:g}: {one.leader or 'neither'} leads by "
                f"{100 * one.lead:.1f} points ({one.share:.0%} of redraws)",
            }
            for one in flip.leads
        ]
        heats = [f"{t:g}" for t in sorted({one.temperature for one in flip.leads}, reverse=True)]
        x = field("k:N", sort=None, title="k", axis={"labelAngle": 0})
        y = field("T:N", sort=heats, title="temperature")
        colors = ["var(--c1)", "var(--c2)", "var(--line)"]
        scale = {"domain": [flip.a, flip.b, ""], "range": colors}
        color = field("leader:N", scale=scale, legend=None)
        cell: Spec = {"stroke": "var(--paper)", "strokeWidth": 2, "opacity": 0.35}
        words: Spec = {"fontSize": 12, "aria": False, "color": "var(--ink)"}
        layers = [
            marks(rows, "rect", cell, x=x, y=y, color=color, description="tip:N"),
            marks(rows, "text", words, x=x, y=y, text="text:N"),
        ]
        title = f"A {flip.a}   B {flip.b}"
        width, height = max(120, 56 * len({one.k for one in flip.leads})), 34 * len(heats)
        panels.append(layered(layers, title=title, width=width, height=height))
    return Figure(
        "leads",
        "Where the ranking flips",
        " ".join(f"{str(flip)[0].upper()}{str(flip)[1:]}." for flip in flips),
        "For each pair of agents a table with k to the right and temperature upwards: who leads "
        "there, A or B, and the share of redraws in which it leads.",
        stacked(panels),
        ("A", "B", "k", "T", "leader", "lead in points", "of redraws"),
        tuple(
            (
                flip.a,
                flip.b,
                str(one.k),
                f"{one.temperature:g}",
                one.leader or "–",
                f"{100 * one.lead:.1f}",
                f"{one.share:.0%}",
            )
            for flip in flips
            for one in flip.leads
        ),
    )


def heatmap(runs: Sequence[Run], terms: Terms) -> Figure | None:
    """pass@k over k and temperature, where runs of one agent differ in temperature."""
    heats = {run.protocol.decoding.get("temperature") for run in runs}
    if len(heats - {None}) < 2:
        return None
    from passhat.stats.temperature import fit_temperatures

    try:
        fit = fit_temperatures(runs, terms=terms)
    except PasshatError:  # the runs do not line up, and passhat temperature fit says why
        return None
    return heat_figure(fit)


def heat_figure(fit: TemperatureFit) -> Figure | None:
    """The same from a fit."""
    agents = [found for found in fit.agents if len(found.temperatures) > 1]
    if not agents:
        return None
    panels = []
    for found in agents[:MOST_RUNS]:
        rows: list[Row] = [
            {
                "k": str(cell.k),
                "T": f"{cell.temperature:g}",
                "value": cell.estimate.value,
                "text": number(cell.estimate.value, 2),
                "tip": f"k = {cell.k}, T = {cell.temperature:g}: {cell.estimate.metric} = "
                f"{number(cell.estimate.value)} {cell.estimate.interval_text()}",
            }
            for cell in found.cells
        ]
        x = field("k:N", sort=None, title="k", axis={"labelAngle": 0})
        heats_down = [f"{heat:g}" for heat in reversed(found.temperatures)]
        y = field("T:N", sort=heats_down, title="temperature")
        color = field("value:Q", scale={"scheme": "cividis", "domain": [0, 1]}, legend=None)
        cell: Spec = {"stroke": "var(--paper)", "strokeWidth": 2}
        ink = {"condition": {"test": "datum.value > 0.55", "value": "#111"}, "value": "#fff"}
        words: Spec = {"fontSize": 12, "aria": False}
        layers = [
            marks(rows, "rect", cell, x=x, y=y, color=color, description="tip:N"),
            marks(rows, "text", words, x=x, y=y, text="text:N", color=ink),
        ]
        width, height = max(120, 46 * len(found.ks)), 34 * len(found.temperatures)
        panels.append(layered(layers, title=found.agent, width=width, height=height))
    return Figure(
        "heatmap",
        "pass@k by temperature",
        " ".join(f"{found.agent}: {found.advice}" for found in agents[:MOST_RUNS]),
        "A table of pass@k with k to the right and temperature upwards; brighter is higher. "
        + "; ".join(f"{found.agent}, {counted(found.tasks, 'task')}" for found in agents),
        stacked(panels),
        ("agent", "T", "k", "pass@k", "interval", "best in redraws"),
        tuple(
            (
                found.agent,
                f"{cell.temperature:g}",
                str(cell.k),
                number(cell.estimate.value),
                cell.estimate.interval_text(),
                f"{cell.share_best:.0%}",
            )
            for found in agents
            for cell in found.cells
        ),
    )
