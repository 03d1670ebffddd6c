"""How often can an interval about these tasks miss? Summed over all outcomes, at the worst rates.

    python benchmarks/these_tasks_exact.py --markdown docs/benchmarks/these_tasks_exact.md

For a few tasks every histogram of passes has its interval, and the chance of each histogram at
given success rates is a product: no draws, no Monte Carlo error. A search then climbs over the
rates for the largest chance of a miss, of either end and of both, so that no friendly choice of
rates hides a bad cell. The true worst can be a little worse than what the search finds. Rates are
free for every task, so where tasks have different n the rate may go with n.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import comb

from measuring import machine, markdown, publish, study_parser
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.compare.these_tasks import lift_on_these_tasks
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms

Sizes = tuple[int, ...]
LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)
RUNS: tuple[tuple[Sizes, CountMetric], ...] = (
    ((2,) * 5, PassHat(1)),
    ((2,) * 5, PassHat(2)),
    ((2,) * 10, PassHat(2)),
    ((4,) * 5, PassHat(4)),
    ((3,) * 6, PassAt(3)),
    ((1, 1, 4, 4), PassHat(1)),
    ((1, 1, 1, 3, 3, 3), PassHat(1)),
    ((2, 2, 2, 4, 4, 4), PassHat(2)),
    ((3, 3, 3, 12), PassHat(3)),
    ((1, 2, 3, 4), PassHat(1)),
)
"""Attempts at each task, and the metric; in the last five n may go with the rate."""
LIFTS: tuple[tuple[Sizes, Sizes, CountMetric], ...] = (
    ((2,) * 5, (2,) * 5, PassHat(1)),
    ((2,) * 5, (2,) * 5, PassHat(2)),
    ((2,) * 4, (4,) * 4, PassHat(2)),
    ((1, 1, 3, 3), (1, 1, 3, 3), PassHat(1)),
    ((1, 1, 4, 4), (2, 2, 2, 2), PassHat(1)),
)
"""Attempts at each task of A and of B."""
CERTAIN: tuple[tuple[int, int, float, tuple[tuple[int, int], ...]], ...] = (
    (99, 1, 0.5, ((99, 40), (402, 80))),
    (16, 1, 0.5, ((16, 7), (68, 8))),
    (9, 4, 0.7, ((9, 24),)),
)
"""Tasks, attempts and rate of a part; tasks and attempts of parts that always pass. The cells of an
audit in which tasks of different n were joined, and 95% covered .383, .75 and .89."""


class Side:
    """The outcomes of some tasks: every histogram of passes, and its chance at given rates."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = np.sort(sizes)
        self.groups = [(int(n), sizes.count(int(n))) for n in np.unique(self.sizes)]
        grown = [_grow(n, tasks) for n, tasks in self.groups]
        self._steps = [steps for steps, _ in grown]
        self.outcomes = [self._histogram(parts) for parts in product(*(last for _, last in grown))]

    def _histogram(self, parts: Sequence[Sizes]) -> Histogram:
        cells = [
            (n, c, tasks)
            for (n, _), counts in zip(self.groups, parts, strict=True)
            for c, tasks in enumerate(counts)
            if tasks
        ]
        n, c, tasks = np.array(cells).T
        return Histogram(n, c, tasks)

    def chances(self, rates: FloatArray) -> FloatArray:
        """The chance of every outcome; ``rates`` in the order of ``sizes``."""
        chances: FloatArray = np.ones(1)
        first = 0
        for (n, tasks), steps in zip(self.groups, self._steps, strict=True):
            c = np.arange(n + 1)
            here: FloatArray = np.ones(1)
            for rate, following in zip(rates[first : first + tasks], steps, strict=True):
                passes = comb(n, c) * rate**c * (1 - rate) ** (n - c)
                weights = (here[:, None] * passes).ravel()
                here = np.bincount(following.ravel(), weights=weights).astype(np.float64)
            chances, first = np.outer(chances, here).ravel(), first + tasks
        return chances

    def __str__(self) -> str:
        return " + ".join(f"{tasks} x {n}" for n, tasks in self.groups)


def _grow(n: int, tasks: int) -> tuple[list[IntArray], list[Sizes]]:
    """For each further task where an outcome leads with c passes; and the last outcomes."""
    steps: list[IntArray] = []
    outcomes: list[Sizes] = [(0,) * (n + 1)]
    for _ in range(tasks):
        places: dict[Sizes, int] = {}
        following = np.empty((len(outcomes), n + 1), np.int64)
        for at, counts in enumerate(outcomes):
            for c in range(n + 1):
                more = (*counts[:c], counts[c] + 1, *counts[c + 1 :])
                following[at, c] = places.setdefault(more, len(places))
        steps.append(following)
        outcomes = list(places)
    return steps, outcomes


@dataclass(frozen=True, slots=True)
class Design:
    """Tasks of one or two runs, and the ends of the interval for every (pair of) outcomes."""

    sides: tuple[Side, ...]
    metric: CountMetric
    low: FloatArray
    high: FloatArray

    @classmethod
    def of_run(cls, sizes: Sizes, metric: CountMetric, level: float) -> Design:
        side = Side(sizes)
        ends = []
        for cells in side.outcomes:
            low, high = TheseTasks(cells, Terms(level=level)).interval(metric) or (0.0, 1.0)
            point = float((metric.values(cells.n, cells.c) * cells.tasks).sum()) / len(sizes)
            ends.append((min(low, point), max(high, point)))
        low, high = np.array(ends).T
        return cls((side,), metric, low, high)

    @classmethod
    def of_lift(cls, sizes: tuple[Sizes, Sizes], metric: CountMetric, level: float) -> Design:
        sides = (Side(sizes[0]), Side(sizes[1]))
        tail = (1 - level) / 2
        # The upper end of B over A is minus the lower one of A over B: one end where n is equal.
        equal = sizes[0] == sizes[1]
        pairs = [(a, b) for a in sides[0].outcomes for b in sides[1].outcomes]
        found = [lift_on_these_tasks(a, b, metric, tail, sign=int(equal)) for a, b in pairs]
        shape = tuple(len(side.outcomes) for side in sides)
        low = np.array([interval.low for interval in found]).reshape(shape)
        high = np.array([interval.high for interval in found]).reshape(shape)
        return cls(sides, metric, low, -low.T if equal else high)

    @property
    def sizes(self) -> IntArray:
        """Attempts at every task, those of B as negative numbers."""
        return np.concatenate([side.sizes * (-1) ** at for at, side in enumerate(self.sides)])

    def misses(self, rates: FloatArray) -> tuple[float, float]:
        """The chance that the truth is below the interval, and that it is above."""
        first = len(self.sides[0].sizes)
        parts = (rates,) if len(self.sides) == 1 else (rates[:first], rates[first:])
        truths = [float(self.metric.value_at_rate(part).mean()) for part in parts]
        truth = truths[-1] - sum(truths[:-1])
        below: FloatArray = (truth < self.low - 1e-9).astype(float)
        above: FloatArray = (truth > self.high + 1e-9).astype(float)
        for side, part in zip(self.sides, parts, strict=True):
            chances = side.chances(part)
            below, above = chances @ below, chances @ above
        return float(below), float(above)


Loss = Callable[[tuple[float, float]], float]


def climb(
    design: Design, loss: Loss, rng: np.random.Generator, steps: int
) -> tuple[float, FloatArray]:
    """The largest loss found, and its rates: steps on one rate, on equal rates, or on a side."""
    sizes = design.sizes
    worst, worst_rates = -1.0, np.zeros(len(sizes))
    for start in _starts(sizes, rng):
        rates = start.copy()
        here, scale = loss(design.misses(rates)), 0.3
        for _ in range(steps):
            task = int(rng.integers(len(sizes)))
            alike = (
                rates == rates[task],
                sizes == sizes[task],
                np.sign(sizes) == np.sign(sizes[task]),
                np.arange(len(sizes)) == task,
            )
            chosen = alike[int(rng.integers(len(alike)))]
            moved = rates.copy()
            moved[chosen] = np.clip(rates[task] + scale * rng.normal(), 0.0, 1.0)
            if rng.random() < 0.1:
                moved[chosen] = float(rng.integers(2))
            there = loss(design.misses(moved))
            if there >= here:
                rates, here = moved, there
            else:
                scale = max(0.97 * scale, 0.01)
        if here > worst:
            worst, worst_rates = here, rates
    return worst, worst_rates


def _starts(sizes: IntArray, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Equal rates, rates that go with n, one agent that always passes, and two that are drawn."""
    yield np.full(len(sizes), 0.75)
    yield np.full(len(sizes), 0.3)
    yield np.where(np.abs(sizes) > np.abs(sizes).min(), 1.0, 0.5)
    yield np.where(sizes > 0, 1.0, 0.33)
    yield np.where(sizes > 0, 0.4, 0.9)
    a, b = rng.random(2).tolist()
    yield np.where(sizes > 0, a, b)
    yield rng.random(len(sizes))


def measure_certain(level: float) -> Iterator[tuple[str, ...]]:
    """pass^1 where only one part of the tasks is uncertain: its misses below and above, exactly."""
    for tasks, n, rate, others in CERTAIN:
        side = Side((n,) * tasks)
        size = tasks + sum(count for count, _ in others)
        truth = (tasks * rate + size - tasks) / size
        rest = np.array([(attempts, attempts, count) for count, attempts in others]).T
        below = above = width = 0.0
        for cells, chance in zip(side.outcomes, side.chances(np.full(tasks, rate)), strict=True):
            if chance < 1e-7:  # together less than 1e-4, counted as misses
                below, above = below + chance, above + chance
                continue
            parts = np.hstack([np.stack([cells.n, cells.c, cells.tasks]), rest])
            ends = TheseTasks(Histogram(*parts), Terms(level=level)).interval(PassHat(1))
            low, high = ends or (0.0, 1.0)
            below += chance * (truth < low - 1e-9)
            above += chance * (truth > high + 1e-9)
            width += chance * (high - low)
        name = f"{tasks} x {n} at {rate:g}, " + " + ".join(f"{m} x {k}" for m, k in others)
        tail, one = (1 - level) / 2, max(below, above)
        yield (
            *(f"{name} at 1", "pass^1", f"{100 * level:g}%", f"{1 - below - above:.4f}"),
            *(f"{one:.5f}", f"{one / tail:.2f}", f"{width:.3f}", "as named"),
        )


def designs(level: float, part: str) -> Iterator[tuple[str, Design]]:
    for sizes, metric in RUNS if part != "lifts" else ():
        yield str(Side(sizes)), Design.of_run(sizes, metric, level)
    for a, b, metric in LIFTS if part != "runs" else ():
        sides = str(Side(a)) if a == b else f"{Side(a)}, B {Side(b)}"
        yield f"lift, {sides}", Design.of_lift((a, b), metric, level)


def row(name: str, design: Design, level: float, steps: int) -> tuple[str, ...]:
    rng = np.random.default_rng(1)
    both, rates = climb(design, sum, rng, steps)
    one, one_rates = climb(design, max, rng, steps)
    tail = (1 - level) / 2
    first = len(design.sides[0].sizes)
    worst = rates if 1 - both < level - 0.01 else one_rates
    return (
        name,
        str(design.metric),
        f"{100 * level:g}%",
        f"{1 - both:.4f}",
        f"{one:.5f}",
        f"{one / tail:.2f}",
        f"{float(np.mean(design.high) - np.mean(design.low)):.3f}",
        " / ".join(
            " ".join(f"{rate:.2f}" for rate in part)
            for part in (worst[:first], worst[first:])
            if len(part)
        ),
    )


def main() -> None:
    parser = study_parser(__doc__)
    parser.add_argument("--steps", type=int, default=150, help="steps of each climb")
    parser.add_argument("--levels", type=float, nargs="+", default=LEVELS)
    parser.add_argument("--part", choices=("all", "runs", "lifts", "certain"), default="all")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for level in options.levels:
        if options.part in ("all", "certain"):
            rows += measure_certain(level)
        for name, design in designs(level, options.part) if options.part != "certain" else ():
            rows.append(row(name, design, level, options.steps))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    header = (
        *("tasks x n", "metric", "level", "coverage", "one end misses", "of nominal"),
        *("mean width", "worst rates (A / B)"),
    )
    rows.sort(key=lambda cell: cell[:2])
    text = f"# {TITLE}\n\n{INTRODUCTION} {machine()}.\n\n{markdown(header, rows)}\n"
    publish(text, options.markdown)


TITLE = "Intervals about these tasks at the worst success rates, exactly"
INTRODUCTION = (
    "Made by `python benchmarks/these_tasks_exact.py`. Every outcome of a few tasks is weighed by "
    "its chance; the rates are those at which a search found the largest chance of a miss. Rates "
    "are free for every task, so where tasks have different n the rate may go with n. The goal is "
    "a coverage of at least the level less .02, and at each end at most 1.2 times the nominal miss "
    "of (1 - level) / 2. A gate's 95% is one end of the rows of 90%."
)


if __name__ == "__main__":
    main()
