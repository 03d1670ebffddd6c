"""Rows of text and changes by task that every form of a comparison shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted, percent
from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray
from passhat.stats.compare import Comparison, Comparisons, LiftCurve, Result
from passhat.stats.compare.claims import Claim, points
from passhat.stats.compare.claims import headline as claim_headline
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import Population, Terms

__all__ = [
    "CURVE_HEADER",
    "PAIR_HEADER",
    "RANK_HEADER",
    "RESULT_HEADER",
    "SLICE_HEADER",
    "PairedCells",
    "TaskChange",
    "curve_rows",
    "headline",
    "headline_result",
    "largest_changes",
    "lift_text",
    "next_step",
    "pair_rows",
    "paired_cells",
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
    """A row per metric."""
    return [
        (result.metric, percent(result.value_a, 1), percent(result.value_b, 1), *_cells(result))
        for result in results
    ]


def slice_rows(comparison: Comparison) -> Rows:
    """A row per slice and metric."""
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
    """A row per pair and metric; runs by their numbers, to keep the table narrow."""
    number_of = _numbers(comparisons)
    return [
        (
            f"{number_of[pair.b]} over {number_of[pair.a]}",
            result.metric,
            points(result.lift),
            result.interval_text(),
            *result.corrected(),
            str(result.claim),
        )
        for pair in comparisons.pairs
        for result in pair.results
    ]


def rank_rows(comparisons: Comparisons) -> Rows:
    """A row per run and metric, the best value first."""
    number_of = _numbers(comparisons)
    return [
        (number_of[entry.name], entry.name, entry.metric, percent(entry.value, 1), str(entry))
        for entry in comparisons.ranks
    ]


def _numbers(comparisons: Comparisons) -> dict[str, str]:
    return {name: str(index) for index, name in enumerate(comparisons.names, 1)}


def curve_rows(curve: LiftCurve) -> Rows:
    """A row per k."""
    return [
        (str(point.k), points(point.lift), f"{points(point.low)} to {points(point.high)}")
        for point in curve.points
    ]


def protocol_lines(comparison: Comparison) -> list[str]:
    """Allowed differences of the protocols, one by one; then fields that were not recorded."""
    lines = [f"differs: {entry}" for entry in comparison.agreement.differences]
    if comparison.agreement.attempts_text is not None:
        lines.append(f"{comparison.agreement.attempts_text}; no p-value is given")
    return [*lines, *_unverified_lines(comparison)] or [_SAME]


_SAME = "the same in every field"


def _unverified_lines(comparison: Comparison) -> list[str]:
    unverified = [entry.field for entry in comparison.agreement.unverified]
    if not unverified:
        return []
    count = counted(len(unverified), "field")
    return [f"unverified, not recorded on both sides ({count}): {', '.join(unverified)}"]


def ranking_lines(comparisons: Comparisons) -> list[str]:
    """The same over all pairs: differences pair by pair, unverified fields once."""
    number_of = _numbers(comparisons)
    lines = []
    for each in comparisons.pairs:
        own = f"{number_of[each.b]} over {number_of[each.a]}"
        lines += [f"{own} differs: {entry}" for entry in each.agreement.differences]
    for each in comparisons.pairs:
        same = [] if each.agreement.differences else [_SAME]
        lines += _unverified_lines(each) or same
    return list(dict.fromkeys(lines))


def ranking_note(comparisons: Comparisons) -> str:
    """How to read the table of pairs."""
    return (
        f"Lifts in points; the {100 * comparisons.level:g}% intervals hold for all pairs at once; "
        "a rank is possible unless they show otherwise."
    )


def _cells(result: Result) -> tuple[str, ...]:
    return (
        points(result.lift),
        result.interval_text(),
        result.p_text(),
        f"{result.wins}/{result.losses}/{result.ties}",
        str(result.claim),
    )


_HALF = 0.5


@dataclass(frozen=True, slots=True)
class TaskChange(Plain):
    """A metric of one task under both agents, and how many of its attempts passed.

    ``a`` and ``b`` are the metric's values, ``change`` is b minus a. ``flip`` is ``won`` where B
    passes half of its attempts or more and A does not, ``lost`` the other way round; it looks at
    attempts, not at the metric, whose value can be near zero for a task that mostly passes.
    """

    WRITTEN = (..., "rate_a", "rate_b")

    task: str
    a: float
    b: float
    change: float
    flip: str | None
    passed_a: int
    attempts_a: int
    passed_b: int
    attempts_b: int

    @property
    def rate_a(self) -> float | None:
        """The share of A's attempts that passed."""
        return self.passed_a / self.attempts_a if self.attempts_a else None

    @property
    def rate_b(self) -> float | None:
        """The share of B's attempts that passed."""
        return self.passed_b / self.attempts_b if self.attempts_b else None

    @property
    def counts_text(self) -> str:
        """``1 of 8 -> 7 of 8``."""
        return f"{self.passed_a} of {self.attempts_a} -> {self.passed_b} of {self.attempts_b}"


def task_changes(a: Run, b: Run, metric: str, terms: Terms | None = None) -> tuple[TaskChange, ...]:
    """Every paired task, the largest gain first; missing attempts count by the policy."""
    terms = terms or Terms()
    chosen, policy = parse(metric), terms.missing
    pairing = pair(a.outcomes, b.outcomes, (a.name, b.name)).supporting(
        [chosen], policy, drop_short=terms.drop_short
    )
    values_a, values_b = (
        values_by_task(side, chosen, policy.completion) for side in (pairing.a, pairing.b)
    )
    order: Sequence[int] = np.argsort(values_a - values_b, kind="stable").tolist()
    return tuple(_task_change(pairing.a, pairing.b, values_a, values_b, i) for i in order)


def _task_change(
    a: Outcomes, b: Outcomes, values_a: FloatArray, values_b: FloatArray, i: int
) -> TaskChange:
    counts = (int(a.c[i]), int(a.n[i]), int(b.c[i]), int(b.n[i]))
    flip = None
    if counts[1] and counts[3]:
        before, after = counts[0] / counts[1] >= _HALF, counts[2] / counts[3] >= _HALF
        flip = None if before == after else "won" if after else "lost"
    value_a, value_b = float(values_a[i]), float(values_b[i])
    return TaskChange(a.tasks[i], value_a, value_b, value_b - value_a, flip, *counts)


def largest_changes(changes: Sequence[TaskChange]) -> Iterator[tuple[str, list[str]]]:
    """The tasks that gained and those that lost, the largest change first."""
    gained = [change for change in changes if change.change > 0]
    lost = [change for change in reversed(changes) if change.change < 0]
    for title, moved in (("Gained", gained), ("Lost", lost)):
        if moved:
            yield title, [f"{change.task} {change.counts_text}" for change in moved]


def headline(comparison: Comparison, a: str, b: str) -> str:
    """The result in one sentence; ``a`` and ``b`` are the labels of the runs."""
    result = headline_result(comparison)
    text = claim_headline(replace(result.evidence, a=a, b=b))
    return text if result.tasks > 1 else f"{text} One task says nothing about other tasks."


def headline_result(comparison: Comparison) -> Result:
    """The result that is settled with the most demanding metric, else the most demanding one."""
    settled = [each for each in comparison.results if each.claim is not Claim.INCONCLUSIVE]
    return (settled or list(comparison.results))[-1]


def lift_text(result: Result, unit: str = " points") -> str:
    """``+39 points (11 to 63)``; only one end where the test has a direction."""
    width = result.high - result.low
    digits = 0 if width >= 0.05 or width == 0 else 1
    lift, low, high = (_points(share, digits) for share in (result.lift, result.low, result.high))
    sign = "+" if result.lift > 0 and not lift.startswith("0") else ""
    if result.alternative == "greater":
        interval = f"at least {low}"
    elif result.alternative == "less":
        interval = f"at most {high}"
    else:
        interval = f"{low} to {high}"
    return f"{sign}{lift}{unit} ({interval})"


def _points(share: float, digits: int) -> str:
    """A share in points; a number that is not zero never reads as zero."""
    value = 100 * share
    while value and digits < 3 and round(abs(value), digits) == 0:
        digits += 1
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


@dataclass(frozen=True, slots=True)
class PairedCells:
    """The paired table of two runs: counts of tasks, or shares where tasks have more attempts."""

    both: float
    only_a: float
    only_b: float
    neither: float
    counted: bool

    def text(self, a: str, b: str) -> str:
        """The four cells in a line."""
        cells = zip(
            ("both pass", f"only {b}", f"only {a}", "both fail"),
            (self.both, self.only_b, self.only_a, self.neither),
            strict=True,
        )
        shown = ", ".join(
            f"{name} {value:.0f}" if self.counted else f"{name} {percent(value, 0)}"
            for name, value in cells
        )
        return f"{'Tasks' if self.counted else 'Attempts'}: {shown}"


def paired_cells(a: Outcomes, b: Outcomes) -> PairedCells | None:
    """How attempts of both runs at the same task end; ``None`` without a shared judged task.

    With one attempt each the cells count tasks. With more they are the mean over tasks of what two
    attempts, one of each run, would give: p_a p_b and so on, since attempts are independent.
    """
    place = {task: i for i, task in enumerate(b.tasks)}
    pairs = [
        (i, place[task])
        for i, task in enumerate(a.tasks)
        if task in place and a.n[i] and b.n[place[task]]
    ]
    if not pairs:
        return None
    rows_a, rows_b = (np.array(rows) for rows in zip(*pairs, strict=True))
    rate_a, rate_b = a.c[rows_a] / a.n[rows_a], b.c[rows_b] / b.n[rows_b]
    single = bool((a.n[rows_a] == 1).all() and (b.n[rows_b] == 1).all())
    scale = 1 if single else len(pairs)
    return PairedCells(
        float((rate_a * rate_b).sum()) / scale,
        float((rate_a * (1 - rate_b)).sum()) / scale,
        float(((1 - rate_a) * rate_b).sum()) / scale,
        float(((1 - rate_a) * (1 - rate_b)).sum()) / scale,
        single,
    )


def next_step(comparison: Comparison) -> str:
    """A step that would settle the headline; empty where it is settled."""
    evidence = headline_result(comparison).evidence
    if evidence.claim is not Claim.INCONCLUSIVE:
        return ""
    if evidence.undecided:
        return "judge or repeat the missing attempts; they alone could turn the result around"
    if evidence.needed is None:
        return "no number of tasks would settle this lift; look at single tasks instead"
    if evidence.population is Population.THESE_TASKS:
        return f"about {evidence.needed:,} attempts per task would settle this lift"
    return (
        f"about {evidence.needed:,} paired tasks like these would settle this lift "
        f"({evidence.tasks:,} now)"
    )
