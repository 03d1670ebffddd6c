"""Value against price on a leaderboard, with the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterator

from passhat._display import duration, money, percent, some
from passhat.reporting.figures.base import LONGEST_LABEL, WIDTH, Figure
from passhat.reporting.figures.vega_lite import Row, Spec, constant, field, layer, marks
from passhat.reporting.leaderboard.facts import PRICES, Board, BoardAgent
from passhat.reporting.view import number_labels

_CHARACTER, _LINE, _MARGIN = 6.5, 15.0, 10.0
"""Pixels: of a character and a line of a label, and beyond the plot."""
_TITLES = {"cost": "US dollars per attempt", "seconds": "seconds per attempt"}
_WRITE = {"cost": money, "seconds": duration}


def price_figures(board: Board) -> Iterator[Figure]:
    """A chart for every price that at least two agents recorded."""
    for measure in PRICES:
        agents = [agent for agent in board.agents if measure in agent.fronts]
        if len(agents) > 1:
            yield _price_figure(board, agents, measure)


def _price_figure(board: Board, agents: list[BoardAgent], measure: str) -> Figure:
    word = board.ranked_by[0]
    write = _WRITE[measure]
    rows: list[Row] = []
    labels = number_labels([agent.name for agent in agents], LONGEST_LABEL)
    for agent, label in zip(agents, labels, strict=True):
        estimate = agent.find(word)
        is_on_front, share = agent.fronts[measure]
        assert estimate is not None
        price = agent.use[measure].per_attempt
        rows.append(
            {
                "name": agent.name,
                "label": label,
                "price": price,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "front": "on the front" if is_on_front else "behind it",
                "share": share,
                "tip": f"{agent.name}: {word} {percent(estimate.value)}, {write(price)} per "
                f"attempt; on the front in {percent(share, 0)} of redraws of the tasks",
            }
        )
    front = sorted(
        (row for row in rows if row["front"] == "on the front"),
        key=lambda row: float(str(row["price"])),
    )
    names = [str(row["label"]) for row in front]
    return Figure(
        f"price-{measure}",
        f"{word} against {'cost' if measure == 'cost' else 'time'}",
        f"On the Pareto front: {some(names, 8)}. No other agent is as good for less.",
        f"Points of {word} over {_TITLES[measure]}, with intervals. A line joins the agents for "
        "which no other is at least as good and cheaper.",
        _chart(rows, front, measure, str(word)),
        ("agent", _TITLES[measure], str(word), "on the front", "in redraws of the tasks"),
        tuple(
            (
                str(row["name"]),
                write(float(str(row["price"]))),
                percent(float(str(row["value"]))),
                "yes" if row["front"] == "on the front" else "no",
                percent(float(str(row["share"])), 0),
            )
            for row in rows
        ),
    )


def _chart(rows: list[Row], front: list[Row], measure: str, word: str) -> Spec:
    prices = [float(str(row["price"])) for row in rows]
    is_wide = min(prices) > 0 and max(prices) / min(prices) > 8
    scale: Spec = {"nice": True, "zero": not is_wide, "padding": 12}
    width, height = WIDTH + 40, 260
    if is_wide:
        scale |= {"type": "log"}
    x = field("price:Q", title=_TITLES[measure], scale=scale, axis={"grid": False, "tickCount": 5})
    y_scale = {"domain": [0, 1.02], "nice": False}
    y_axis = {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%"}
    y = field("value:Q", title=word, scale=y_scale, axis=y_axis)
    sides = {"domain": ["on the front", "behind it"], "range": ["var(--c3)", "var(--faint)"]}
    color = field("front:N", scale=sides, legend=None)
    low = field("low:Q", title=word, scale=y_scale, axis=y_axis)
    rule: Spec = {"strokeWidth": 1.5, "opacity": 0.4, "aria": False}
    step: Spec = {"interpolate": "step-after", "strokeWidth": 1.5, "strokeDash": [4, 3]}
    step |= {"aria": False, "opacity": 0.8}
    dot: Spec = {"filled": True, "size": 60, "opacity": 0.95}
    text: Spec = {"dy": -7, "fontSize": 11, "aria": False}
    to_right: Spec = text | {"align": "left", "dx": 7}
    to_left: Spec = text | {"align": "right", "dx": -7}
    candidates = [*front[::-1], *(row for row in rows if row not in front)]
    right, left = _place_labels(candidates, width, height, is_log=is_wide)
    return layer(
        [
            marks(rows, "rule", rule, x=x, y=low, y2="high:Q", color=color),
            marks(front, "line", step, x=x, y=y, color=constant("var(--c3)")),
            marks(rows, "point", dot, x=x, y=y, color=color, description="tip:N"),
            marks(right, "text", to_right, x=x, y=y, text="label:N", color=color),
            marks(left, "text", to_left, x=x, y=y, text="label:N", color=color),
        ],
        width=width,
        height=height,
    )


def _place_labels(
    rows: list[Row], width: float, height: float, *, is_log: bool
) -> tuple[list[Row], list[Row]]:
    """The rows with a label to their right, and to their left; one that would overlap has none."""
    prices = [float(str(row["price"])) for row in rows]
    prices = [math.log(price) for price in prices] if is_log else prices
    low = min(prices) if is_log else min(0.0, *prices)
    reach = max(prices) - low or 1.0
    taken: list[tuple[float, float, float]] = []
    sides: tuple[list[Row], list[Row]] = [], []
    for row, price in zip(rows, prices, strict=True):
        x, y = width * (price - low) / reach, height * (1 - float(str(row["value"])))
        length = _CHARACTER * len(str(row["label"]))
        for side, start in zip(sides, (x + 7, x - 7 - length), strict=True):
            is_free = all(
                abs(y - other) > _LINE or start > end or start + length < begin
                for begin, end, other in taken
            )
            if is_free and start >= 0 and start + length <= width + _MARGIN:
                side.append(row)
                taken.append((start, start + length, y))
                break
    return sides
