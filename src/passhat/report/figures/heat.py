"""pass@k over k and temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passhat._display import counted, number
from passhat.report.figures.base import MOST_RUNS, Figure
from passhat.report.figures.vega_lite import Row, Spec, field, layered, marks, stacked
from passhat.stats.outcomes import Run

if TYPE_CHECKING:
    from passhat.stats.temperature import TemperatureFit

__all__ = ["heat_figure", "heatmap"]


def heatmap(runs: Sequence[Run], *, level: float, missing: str) -> Figure | None:
    """pass@k over k and temperature, where runs of one agent differ in temperature."""
    heats = {run.protocol.decoding.get("temperature") for run in runs}
    if len(heats - {None}) < 2:
        return None
    from passhat.errors import PasshatError
    from passhat.stats.temperature import fit_temperatures

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
        colour = field("value:Q", scale={"scheme": "cividis", "domain": [0, 1]}, legend=None)
        cell: Spec = {"stroke": "var(--paper)", "strokeWidth": 2}
        ink = {"condition": {"test": "datum.value > 0.55", "value": "#111"}, "value": "#fff"}
        words: Spec = {"fontSize": 12, "aria": False}
        layers = [
            marks(rows, "rect", cell, x=x, y=y, color=colour, description="tip:N"),
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
