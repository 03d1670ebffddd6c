"""The two figures of the article on pass^k: four suites with the same average, over k."""

from __future__ import annotations

from types import MappingProxyType

from passhat._display import number
from passhat.report.figures.base import Figure
from passhat.report.figures.lines import Panel, Scale, k_scale, panel
from passhat.report.figures.vega_lite import Row, stacked
from passhat.stats.estimate import exact

__all__ = ["SHAPES_OF_DIFFICULTY", "article_delta", "article_sweep"]

SHAPES_OF_DIFFICULTY = MappingProxyType(
    {
        "homogeneous": (0.5,) * 6,
        "no skew": (0.2, 0.8) * 3,
        "negative skew": (0.07, 0.715, 0.715) * 2,
        "positive skew": (0.93, 0.285, 0.285) * 2,
    }
)
_KS = tuple(range(1, 17))
_SHARE = Scale("share of tasks", 0, 1.02, ticks=(0, 0.25, 0.5, 0.75, 1), form=".0%")


def article_sweep() -> Figure:
    """pass@k and pass^k of the four shapes over k."""
    panels, table = [], []
    for family, asks in (("pass@", "at least one of k passes"), ("pass^", "all of k pass")):
        rows = _rows(family, list(SHAPES_OF_DIFFICULTY))
        title = f"{family}k, {asks}"
        shapes = list(SHAPES_OF_DIFFICULTY)
        panels.append(panel(Panel(rows, shapes, k_scale(_KS), _SHARE, title=title, height=200)))
        table += [
            (str(r["series"]), f"{family}{r['x']}", number(float(str(r["value"])), 4)) for r in rows
        ]
    return Figure(
        "article-sweep",
        "Same average, four shapes: pass@k and pass^k over k",
        "All four suites pass half of all attempts. At k = 8 the homogeneous one has the highest "
        f"pass@k ({exact(SHAPES_OF_DIFFICULTY['homogeneous'], 'pass@8'):.3f}) and the lowest "
        f"pass^k ({exact(SHAPES_OF_DIFFICULTY['homogeneous'], 'pass^8'):.3f}).",
        "Two panels of lines over k from 1 to 16 for suites of six tasks with an average success "
        "rate of one half: homogeneous, no skew, negative skew and positive skew. The order of the "
        "four is not the same in the two panels.",
        stacked(panels),
        ("suite", "metric", "value"),
        tuple(table),
    )


def article_delta() -> Figure:
    """delta^k of the three shapes that are not homogeneous, over k."""
    shapes = [name for name in SHAPES_OF_DIFFICULTY if name != "homogeneous"]
    rows = _rows("delta^", shapes)
    peaks = {
        name: max(
            (row for row in rows if row["series"] == name), key=lambda row: float(str(row["value"]))
        )
        for name in shapes
    }
    y = Scale("delta^k", 0, max(float(str(row["value"])) for row in rows) * 1.1, form=".2~f")
    return Figure(
        "article-delta",
        "What uneven difficulty adds to pass^k",
        "Without tasks that always pass, delta^k rises, peaks and fades: "
        + ", ".join(f"{name} at k = {row['x']}" for name, row in peaks.items())
        + ".",
        "Lines of delta^k, pass^k minus the k-th power of pass^1, over k from 1 to 16 for three "
        "suites with an average success rate of one half. All rise from 0 to a peak and fall.",
        panel(Panel(rows, list(SHAPES_OF_DIFFICULTY), k_scale(_KS), y, height=240)),
        ("suite", "metric", "value"),
        tuple(
            (str(r["series"]), f"delta^{r['x']}", number(float(str(r["value"])), 4)) for r in rows
        ),
    )


def _rows(family: str, shapes: list[str]) -> list[Row]:
    found: list[Row] = []
    for name in shapes:
        for k in _KS:
            value = (
                0.0
                if family == "delta^" and k == 1
                else exact(SHAPES_OF_DIFFICULTY[name], f"{family}{k}")
            )
            found.append(
                {
                    "x": k,
                    "series": name,
                    "value": value,
                    "tip": f"{name}: {family}{k} = {number(value, 4)}",
                }
            )
    return found
