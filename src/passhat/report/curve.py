"""A small curve for the terminal: pass@k and pass^k over k."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.report.view import CurvePoint

__all__ = ["AT", "HAT", "draw_curve"]

HAT, AT, BOTH = "●", "○", "◉"
_ROWS = 9
_WIDEST = 16
"""Columns drawn at most; between them ks are thinned evenly."""


def draw_curve(points: Sequence[CurvePoint]) -> list[str]:
    """Lines of text: k to the right, the metric upwards from 0 to 1."""
    chosen = _thinned(points)
    width = max(len(str(point.k)) for point in chosen) + 2
    grid = [[" " * width for _ in chosen] for _ in range(_ROWS)]
    for column, point in enumerate(chosen):
        hat, at = _row(point.pass_hat), _row(point.pass_at)
        grid[at][column] = AT.center(width)
        grid[hat][column] = (BOTH if hat == at else HAT).center(width)
    labels = {0: "1.0", _ROWS // 2: "0.5", _ROWS - 1: "0.0"}
    lines = [
        f"{labels.get(row, ''):>4} {'┤' if row in labels else '│'}{''.join(cells)}"
        for row, cells in enumerate(grid)
    ]
    axis = "".join(str(point.k).center(width) for point in chosen)
    return [*lines, f"{'':>4}  {axis}  k"]


def _row(value: float) -> int:
    return round((1 - min(1.0, max(0.0, value))) * (_ROWS - 1))


def _thinned(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    if len(points) <= _WIDEST:
        return list(points)
    last = len(points) - 1
    picked = sorted({round(i * last / (_WIDEST - 1)) for i in range(_WIDEST)})
    return [points[i] for i in picked]
