"""pass@k over k and temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passhat._display import counted, number
from passhat.outcomes import Run
from passhat.report.figures.base import MOST_RUNS, Figure, Row, chart_of, joined

if TYPE_CHECKING:
    from passhat.temperature import TemperatureFit

__all__ = ["heat_figure", "heatmap"]


def heatmap(runs: Sequence[Run], *, level: float, missing: str) -> Figure | None:
    """pass@k over k and temperature, where runs of one agent differ in temperature."""
    heats = {run.protocol.decoding.get("temperature") for run in runs}
    if len(heats - {None}) < 2:
        return None
    from passhat.errors import PasshatError
    from passhat.temperature import fit_temperatures

    try:
        fit = fit_temperatures(runs, level=level, missing=missing)
    except PasshatError:  # the runs do not line up, and passhat temperature fit says why
        return None
    return heat_figure(fit)


def heat_figure(fit: TemperatureFit) -> Figure | None:
    """The same from a fit."""
    agents = [found for found in fit.agents if len(found.temperatures) > 1]
    if not agents:
        return None
    import altair as alt

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
        x = alt.X("k:N", sort=None, title="k", axis=alt.Axis(labelAngle=0))
        heats_down = [f"{heat:g}" for heat in reversed(found.temperatures)]
        y = alt.Y("T:N", sort=heats_down, title="temperature")
        base = chart_of(rows)
        scheme = alt.Scale(scheme="cividis", domain=[0, 1])
        layers = [
            base.mark_rect(stroke="var(--paper)", strokeWidth=2).encode(
                x=x,
                y=y,
                color=alt.Color("value:Q", scale=scheme, legend=None),
                description="tip:N",
            ),
            base.mark_text(fontSize=12, aria=False).encode(
                x=x,
                y=y,
                text="text:N",
                color=alt.condition("datum.value > 0.55", alt.value("#111"), alt.value("#fff")),
            ),
        ]
        panels.append(
            alt.LayerChart(
                layer=layers,
                title=found.agent,
                width=max(120, 46 * len(found.ks)),
                height=34 * len(found.temperatures),
            )
        )
    return Figure(
        "heatmap",
        "pass@k by temperature",
        " ".join(f"{found.agent}: {found.advice}" for found in agents[:MOST_RUNS]),
        "A table of pass@k with k to the right and temperature upwards; brighter is higher. "
        + "; ".join(f"{found.agent}, {counted(found.tasks, 'task')}" for found in agents),
        joined(panels),
        ("agent", "T", "k", "pass@k", "interval", "chance to be the best"),
        tuple(
            (
                found.agent,
                f"{cell.temperature:g}",
                str(cell.k),
                number(cell.estimate.value),
                cell.estimate.interval_text(),
                number(cell.chance_best, 2),
            )
            for found in agents
            for cell in found.cells
        ),
    )
