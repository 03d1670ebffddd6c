"""What every form of a comparison shows: rows of text and changes by task, made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passhat._display import counted, number
from passhat.stats.compare import Comparison, Comparisons, LiftCurve, Result
from passhat.stats.compare.claims import points
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Run
from passhat.stats.terms import Terms

__all__ = [
    "CURVE_HEADER",
    "PAIR_HEADER",
    "RANK_HEADER",
    "RESULT_HEADER",
    "SLICE_HEADER",
    "TaskChange",
    "curve_rows",
    "pair_rows",
    "protocol_lines",
    "rank_rows",
    "ranking_lines",
    "ranking_note",
    "result_rows",
    "slice_rows",
    "task_changes",
]

_RESULT = ("lift", "interval", "p", "won/lost/tied", "claim")
RESULT_HEADER = ("metric", "A", "B", *_RESULT)
SLICE_HEADER = ("slice", "tasks", "metric", "lift", "interval", "p, Holm", "claim")
PAIR_HEADER = ("pair", "metric", "lift", "interval", "p, Holm", "p, max-T", "claim")
RANK_HEADER = ("run", "name", "metric", "value", "possible ranks")
CURVE_HEADER = ("k", "lift", "band")

Rows = list[tuple[str, ...]]


def result_rows(results: Sequence[Result]) -> Rows:
    """One row per metric."""
    return [
        (found.metric, number(found.value_a), number(found.value_b), *_cells(found))
        for found in results
    ]


def slice_rows(comparison: Comparison) -> Rows:
    """One row per slice and metric."""
    return [
        (
            f"{part.label} = {part.value}",
            f"{part.result.tasks:,}",
            part.result.metric,
            points(part.result.lift),
            part.result.interval_text(),
            part.result.corrected()[0],
            str(part.result.claim),
        )
        for part in comparison.slices
    ]


def pair_rows(comparisons: Comparisons) -> Rows:
    """One row per pair and metric; runs by their numbers, so that long names do not crowd it."""
    number_of = _numbers(comparisons)
    return [
        (
            f"{number_of[pair.b]} over {number_of[pair.a]}",
            found.metric,
            points(found.lift),
            found.interval_text(),
            *found.corrected(),
            str(found.claim),
        )
        for pair in comparisons.pairs
        for found in pair.results
    ]


def rank_rows(comparisons: Comparisons) -> Rows:
    """One row per run and metric, the best value first."""
    number_of = _numbers(comparisons)
    return [
        (number_of[entry.name], entry.name, entry.metric, number(entry.value), str(entry))
        for entry in comparisons.ranks
    ]


def _numbers(comparisons: Comparisons) -> dict[str, str]:
    return {name: str(index) for index, name in enumerate(comparisons.names, 1)}


def curve_rows(curve: LiftCurve) -> Rows:
    """One row per k."""
    return [
        (str(point.k), points(point.lift), f"{points(point.low)} to {points(point.high)}")
        for point in curve.points
    ]


def protocol_lines(comparison: Comparison) -> list[str]:
    """What differs and was allowed, one by one; then what nobody recorded."""
    lines = [f"differs: {entry}" for entry in comparison.agreement.differences]
    unverified = [entry.field for entry in comparison.agreement.unverified]
    if unverified:
        lines.append(
            f"unverified, not recorded on both sides ({counted(len(unverified), 'field')}): "
            f"{', '.join(unverified)}"
        )
    return lines or ["the same in every field"]


def ranking_lines(comparisons: Comparisons) -> list[str]:
    """The same over all pairs: differences pair by pair, what is unverified once."""
    number_of = _numbers(comparisons)
    lines = []
    for each in comparisons.pairs:
        own = f"{number_of[each.b]} over {number_of[each.a]}"
        lines += [f"{own} differs: {entry}" for entry in each.agreement.differences]
    lines += [line for each in comparisons.pairs for line in protocol_lines(each)[-1:]]
    return [line for line in dict.fromkeys(lines) if not line.startswith("differs")]


def ranking_note(comparisons: Comparisons) -> str:
    """How to read the table of pairs."""
    return (
        f"Lifts in points; the {100 * comparisons.level:g}% intervals hold for all pairs at once; "
        "a rank is possible unless they show otherwise."
    )


def _cells(found: Result) -> tuple[str, ...]:
    return (
        points(found.lift),
        found.interval_text(),
        found.p_text(),
        f"{found.wins}/{found.losses}/{found.ties}",
        str(found.claim),
    )


_HALF = 0.5


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A metric of one task under both agents, and the share of its attempts that passed."""

    task: str
    a: float
    b: float
    rate_a: float
    rate_b: float

    @property
    def change(self) -> float:
        return self.b - self.a

    @property
    def flip(self) -> str:
        """Won: at least half of the attempts pass where less did. Lost: the other way. Else empty.

        Attempts, not the metric: pass^8 of a task that passes 7 times in 8 is 0.
        """
        before, after = self.rate_a >= _HALF, self.rate_b >= _HALF
        return "" if before == after else "won" if after else "lost"

    def to_dict(self) -> dict[str, object]:
        return {
            "task": self.task,
            "a": self.a,
            "b": self.b,
            "change": self.change,
            "rate_a": self.rate_a,
            "rate_b": self.rate_b,
            "flip": self.flip or None,
        }


def task_changes(a: Run, b: Run, metric: str, terms: Terms | None = None) -> tuple[TaskChange, ...]:
    """Every paired task, the largest gain first; missing attempts count as the policy says."""
    terms = terms or Terms()
    chosen, policy = parse(metric), terms.missing
    pairing = pair(a.outcomes, b.outcomes, (a.name, b.name)).supporting(
        [chosen], policy, drop_short=terms.drop_short
    )
    sides = (pairing.a, pairing.b)
    a_values, b_values = (values_by_task(side, chosen, policy.completion) for side in sides)
    a_rates, b_rates = (c / n for n, c in (side.counts(policy.completion) for side in sides))
    order: Sequence[int] = np.argsort(a_values - b_values, kind="stable").tolist()
    columns = (a_values, b_values, a_rates, b_rates)
    return tuple(
        TaskChange(pairing.a.tasks[i], *(float(column[i]) for column in columns)) for i in order
    )
