"""Figures of a temperature fit: pass@k over T, the best T over k, and the leader at each (k, T)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

from passhat._display import counted, number, percent
from passhat.errors import PasshatError
from passhat.reporting.figures.base import MOST_RUNS, Figure, estimate_tip
from passhat.reporting.figures.lines import Panel, Scale, k_scale, panel
from passhat.reporting.figures.vega_lite import Row, Spec, field, layer, marks, stack
from passhat.stats.outcomes import Run
from passhat.stats.temperature import AgentFit, RankingFlip, TemperatureFit, fit_temperatures
from passhat.stats.terms import Terms

_MOST_FLIPS = 6
_TALL = 200


def fit_figures(fit: TemperatureFit) -> Iterator[Figure]:
    """Every figure that the fit has numbers for."""
    for place, agent in enumerate(fit.agents[:MOST_RUNS], 1):
        if len(agent.temperatures) > 1:
            yield _over_temperature(agent, f"temperature-{place}")
    figures = [best_figure(fit), heat_figure(fit), _leads(fit.flips[:_MOST_FLIPS])]
    yield from (figure for figure in figures if figure is not None)


def curve_figure(fit: TemperatureFit) -> Figure | None:
    """pass@k over temperature of the first agent that has several."""
    agent = next((agent for agent in fit.agents if len(agent.temperatures) > 1), None)
    return None if agent is None else _over_temperature(agent, "temperature")


def _over_temperature(agent: AgentFit, name: str) -> Figure:
    ks = _thin(agent.ks)
    rows: list[Row] = [
        {
            "x": cell.temperature,
            "series": f"k = {cell.k}",
            "value": cell.estimate.value,
            "low": cell.estimate.low,
            "high": cell.estimate.high,
            "tip": estimate_tip(cell.estimate, f"T = {cell.temperature:g}"),
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
            (f"{cell.temperature:g}", str(cell.k), number(e.value), e.interval_text())
            for cell in agent.cells
            for e in (cell.estimate,)
        ),
    )


def _shares(agent: AgentFit) -> Scale:
    """Tenths just around the intervals: a temperature moves pass@k by a few points."""
    ends = [(e.low or 0.0, e.high or 1.0) for e in (cell.estimate for cell in agent.cells)]
    low = floor(10 * min(end for end, _ in ends)) / 10
    high = ceil(10 * max(end for _, end in ends)) / 10
    return Scale("share of tasks", low, high + 0.005, form=".0%")


def _thin(ks: Sequence[int]) -> list[int]:
    """As many as can be distinguished, including the first and the last."""
    step = -(-(len(ks) - 1) // (MOST_RUNS - 1)) or 1
    return sorted({*ks[::step], ks[-1]})


def best_figure(fit: TemperatureFit) -> Figure | None:
    """T* over k with its interval, for agents with three temperatures or more."""
    curves = [
        agent for agent in fit.agents if any(best.between is not None for best in agent.best)
    ][:MOST_RUNS]
    if not curves:
        return None
    rows: list[Row] = [
        {
            "x": best.k,
            "series": agent.agent,
            "value": best.between,
            "low": best.low,
            "high": best.high,
            "tip": f"{agent.agent}, k = {best.k}: T* = {best.between:.3g}, "
            f"{best.low:.3g} to {best.high:.3g}",
        }
        for agent in curves
        for best in agent.best
        if best.between is not None
    ]
    top = max(best.high or 0.0 for agent in curves for best in agent.best)
    x = k_scale([best.k for agent in curves for best in agent.best])
    y = Scale("best temperature T*", 0, 1.05 * top, form="~g")
    fingerprints = [f"{agent.agent}: {agent.exponent}." for agent in curves if agent.exponent]
    return Figure(
        "best",
        "The best temperature over k",
        " ".join(fingerprints)
        or "T* is the top of a parabola in ln T through the best temperature and its neighbors.",
        "Lines of T*, the temperature that is best for pass@k, over k, with their intervals "
        "shaded; one for each agent.",
        panel(Panel(rows, [agent.agent for agent in curves], x, y, height=_TALL)),
        ("agent", "k", "best tried", "T*", "interval", ""),
        tuple((agent.agent, *row) for agent in curves for row in agent.best_rows()),
    )


def _leads(flips: Sequence[RankingFlip]) -> Figure | None:
    """The leader at each (k, T), for pairs whose order flips."""
    if not flips:
        return None
    panels = []
    for flip in flips:
        rows: list[Row] = [
            {
                "k": str(lead.k),
                "T": f"{lead.temperature:g}",
                "leader": lead.leader,
                "text": f"{'A' if lead.leader == flip.a else 'B' if lead.leader else '='} "
                f"{percent(lead.share, 0)}",
                "tip": f"k = {lead.k}, T = {lead.temperature:g}: {lead.leader or 'neither'} "
                f"leads by {100 * lead.lead:.1f} points ({percent(lead.share, 0)} of redraws)",
            }
            for lead in flip.leads
        ]
        colors = ["var(--c1)", "var(--c2)", "var(--line)"]
        scale = {"domain": [flip.a, flip.b, ""], "range": colors}
        color = field("leader:N", scale=scale, legend=None)
        title, look = f"A {flip.a}   B {flip.b}", {"opacity": 0.35}
        temperatures = sorted({lead.temperature for lead in flip.leads})
        panels.append(_grid(rows, temperatures, title, 56, color, look, {"color": "var(--ink)"}))
    return Figure(
        "leads",
        "Where the ranking flips",
        " ".join(f"{str(flip)[0].upper()}{str(flip)[1:]}." for flip in flips),
        "For each pair of agents a table with k to the right and temperature upwards: who leads "
        "there, A or B, and the share of redraws in which it leads.",
        stack(panels),
        ("A", "B", "k", "T", "leader", "lead in points", "of redraws"),
        tuple(
            (
                flip.a,
                flip.b,
                str(lead.k),
                f"{lead.temperature:g}",
                lead.leader or "–",
                f"{100 * lead.lead:.1f}",
                percent(lead.share, 0),
            )
            for flip in flips
            for lead in flip.leads
        ),
    )


def _grid(
    rows: Sequence[Row],
    temperatures: Sequence[float],
    title: str,
    step: int,
    color: Spec,
    look: Spec,
    words: Spec,
    ink: Spec | None = None,
) -> Spec:
    """A table of cells with their text: k to the right in steps of pixels, T upwards."""
    x = field("k:N", sort=None, title="k", axis={"labelAngle": 0})
    y = field("T:N", sort=[f"{t:g}" for t in reversed(temperatures)], title="temperature")
    cell: Spec = {"stroke": "var(--paper)", "strokeWidth": 2, **look}
    words = {"fontSize": 12, "aria": False, **words}
    layers = [
        marks(rows, "rect", cell, x=x, y=y, color=color, description="tip:N"),
        marks(rows, "text", words, x=x, y=y, text="text:N", **({"color": ink} if ink else {})),
    ]
    width = max(120, step * len({row["k"] for row in rows}))
    return layer(layers, title=title, width=width, height=34 * len(temperatures))


def fit_of(runs: Sequence[Run], terms: Terms) -> TemperatureFit | None:
    """The fit of runs that differ in temperature; ``None`` where they do not line up."""
    temperatures = {run.protocol.decoding.get("temperature") for run in runs}
    if len(temperatures - {None}) < 2:
        return None
    try:
        return fit_temperatures(runs, terms=terms)
    except PasshatError:  # passhat temperature fit reports the reason
        return None


def heat_figure(fit: TemperatureFit) -> Figure | None:
    """pass@k over k and temperature."""
    agents = [agent for agent in fit.agents if len(agent.temperatures) > 1]
    if not agents:
        return None
    panels = []
    for agent in agents[:MOST_RUNS]:
        rows: list[Row] = [
            {
                "k": str(cell.k),
                "T": f"{cell.temperature:g}",
                "value": cell.estimate.value,
                "text": number(cell.estimate.value, 2),
                "tip": estimate_tip(cell.estimate, f"k = {cell.k}, T = {cell.temperature:g}"),
            }
            for cell in agent.cells
        ]
        color = field("value:Q", scale={"scheme": "cividis", "domain": [0, 1]}, legend=None)
        ink = {"condition": {"test": "datum.value > 0.55", "value": "#111"}, "value": "#fff"}
        title = agent.agent
        panels.append(_grid(rows, agent.temperatures, title, 46, color, {}, {}, ink))
    return Figure(
        "heatmap",
        "pass@k by temperature",
        " ".join(f"{agent.agent}: {agent.advice}" for agent in agents[:MOST_RUNS]),
        "A table of pass@k with k to the right and temperature upwards; brighter is higher. "
        + "; ".join(f"{agent.agent}, {counted(agent.tasks, 'task')}" for agent in agents),
        stack(panels),
        ("agent", "T", "k", "pass@k", "interval", "best in redraws"),
        tuple(
            (
                agent.agent,
                f"{cell.temperature:g}",
                str(cell.k),
                number(cell.estimate.value),
                cell.estimate.interval_text(),
                percent(cell.share_best, 0),
            )
            for agent in agents
            for cell in agent.cells
        ),
    )
