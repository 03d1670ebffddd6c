"""How often can an interval about these tasks miss? Summed over all outcomes, at the worst rates.

    python benchmarks/these_tasks_exact.py               # about two minutes of CPU
    python benchmarks/these_tasks_exact.py --markdown docs/benchmarks/these_tasks_exact.md

For a few tasks every histogram of passes has its interval, and the chance of each histogram at
given success rates is a product: no draws, no Monte Carlo error. A search then climbs over the
rates for the largest chance of a miss, of either end and of both, so that no friendly choice of
rates hides a bad cell. The true worst can be a little worse than what the search finds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement

import numpy as np

from measuring import machine, markdown, publish, study_parser
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms

CELLS: tuple[tuple[tuple[int, ...], CountMetric], ...] = (
    ((2,) * 5, PassHat(1)),
    ((2,) * 5, PassHat(2)),
    ((2,) * 10, PassHat(2)),
    ((4,) * 5, PassHat(4)),
    ((3,) * 6, PassAt(3)),
    ((1, 1, 4, 4), PassHat(1)),
    ((1, 1, 1, 3, 3, 3), PassHat(1)),
)
"""Attempts at each task, and the metric; in the last two n may go with the rate."""
LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)

Outcome = tuple[tuple[int, int], ...]
Ends = dict[Outcome, tuple[float, float]]
Misses = tuple[float, float]


def all_ends(sizes: Sequence[int], metric: CountMetric, level: float) -> Ends:
    """The interval of every outcome, an outcome being the sorted pairs (n, c) of all tasks."""
    ends: Ends = {}
    for outcome in _outcomes(sizes):
        n, c = (np.array(side) for side in zip(*outcome, strict=True))
        pairs, tasks = np.unique(np.stack([n, c]), axis=1, return_counts=True)
        cells = Histogram(pairs[0], pairs[1], tasks)
        low, high = TheseTasks(cells, Terms(level=level)).interval(metric) or (0.0, 1.0)
        point = float((metric.values(pairs[0], pairs[1]) * tasks).sum()) / len(n)
        ends[outcome] = (min(low, point), max(high, point))
    return ends


def _outcomes(sizes: Sequence[int]) -> Iterator[Outcome]:
    """Every multiset of (n, c): tasks of the same n are interchangeable."""
    groups = {n: list(sizes).count(n) for n in sorted(set(sizes))}

    def extend(rest: Sequence[int]) -> Iterator[Outcome]:
        if not rest:
            yield ()
            return
        for passes in combinations_with_replacement(range(rest[0] + 1), groups[rest[0]]):
            for more in extend(rest[1:]):
                yield (*((rest[0], c) for c in passes), *more)

    return extend(list(groups))


def chances(sizes: Sequence[int], rates: FloatArray) -> dict[Outcome, float]:
    """The chance of every outcome at these rates, task by task."""
    from scipy.stats import binom

    known: dict[Outcome, float] = {(): 1.0}
    for n, rate in sorted(zip(sizes, rates.tolist(), strict=True)):
        following: dict[Outcome, float] = {}
        for c, chance in enumerate(binom.pmf(np.arange(n + 1), n, rate).tolist()):
            for outcome, weight in known.items():
                key = tuple(sorted((*outcome, (n, c))))
                following[key] = following.get(key, 0.0) + weight * chance
        known = following
    return known


def misses(ends: Ends, sizes: Sequence[int], rates: FloatArray, metric: CountMetric) -> Misses:
    """The chance that the truth is below the interval, and that it is above."""
    truth = float(metric.value_at_rate(rates).mean())
    below = above = 0.0
    for outcome, chance in chances(sizes, rates).items():
        low, high = ends[outcome]
        below += chance * (truth < low - 1e-9)
        above += chance * (truth > high + 1e-9)
    return below, above


def climb(
    ends: Ends,
    sizes: Sequence[int],
    metric: CountMetric,
    loss: Callable[[Misses], float],
    rng: np.random.Generator,
    steps: int,
) -> tuple[float, FloatArray]:
    """The largest loss found, and its rates: steps on one rate, on equal rates, or on all."""
    worst, worst_rates = -1.0, np.zeros(len(sizes))
    by_size = np.unique(np.array(sizes), return_inverse=True)[1]
    starts = [np.full(len(sizes), 0.75), np.full(len(sizes), 0.3), (by_size > 0) * 0.5 + 0.5]
    for start in [*starts, rng.random(len(sizes))]:
        rates = np.asarray(start, np.float64)
        here, scale = loss(misses(ends, sizes, rates, metric)), 0.3
        for _ in range(steps):
            task = int(rng.integers(len(sizes)))
            same = (rates == rates[task], by_size == by_size[task], np.arange(len(sizes)) == task)
            chosen = same[int(rng.integers(3))]
            moved = rates.copy()
            moved[chosen] = np.clip(rates[task] + scale * rng.normal(), 0.0, 1.0)
            if rng.random() < 0.1:
                moved[chosen] = float(rng.integers(2))
            there = loss(misses(ends, sizes, moved, metric))
            if there >= here:
                rates, here = moved, there
            else:
                scale = max(0.97 * scale, 0.02)
        if here > worst:
            worst, worst_rates = here, rates
    return worst, worst_rates


def main() -> None:
    parser = study_parser(__doc__)
    parser.add_argument("--steps", type=int, default=60, help="steps of each climb")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    rows = []
    for sizes, metric in CELLS:
        attempts = " + ".join(f"{sizes.count(n)} x {n}" for n in sorted(set(sizes)))
        for level in LEVELS:
            ends = all_ends(sizes, metric, level)
            both, rates = climb(ends, sizes, metric, sum, rng, options.steps)
            one, _ = climb(ends, sizes, metric, max, rng, options.steps)
            width = float(np.mean([high - low for low, high in ends.values()]))
            tail = (1 - level) / 2
            rows.append(
                (
                    attempts,
                    str(metric),
                    f"{100 * level:g}%",
                    f"{1 - both:.4f}",
                    f"{one:.4f}",
                    f"{one / tail:.2f}",
                    f"{width:.3f}",
                    " ".join(f"{rate:.2f}" for rate in np.sort(rates)),
                )
            )
            print(*rows[-1], sep="  ", file=sys.stderr)
    header = (
        *("tasks x n", "metric", "level", "coverage", "one end misses", "of nominal"),
        *("mean width", "worst rates"),
    )
    text = f"# {TITLE}\n\n{INTRODUCTION} {machine()}.\n\n{markdown(header, rows)}\n"
    publish(text, options.markdown)


TITLE = "Intervals about these tasks at the worst success rates, exactly"
INTRODUCTION = (
    "Made by `python benchmarks/these_tasks_exact.py`. Every outcome of a few tasks is weighed by "
    "its chance; the rates are those at which a search found the largest chance of a miss."
)


if __name__ == "__main__":
    main()
