"""Coverage, width and power of intervals for the lift, on suites whose truth is known.

    python benchmarks/lift.py            # all cells, about a quarter of an hour on one core
    python benchmarks/lift.py --quick    # 200 repetitions of every cell, about a minute

Prints a Markdown table on standard output and its progress on standard error. Bootstrap weights,
random subsets and Gaffke's weights are drawn once for every block of repetitions and used on all
of them: each repetition still sees proper weights, and one matrix product does the work.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincinv, ndtr, ndtri, stdtrit

from passhat.stats.arrays import FloatArray
from passhat.stats.compare.lift import LiftSample
from passhat.stats.estimate import metric

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
BLOCK = 1_000
RESAMPLES = 1_000
Rates = Callable[[np.random.Generator, tuple[int, int]], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulated situation."""

    group: str
    name: str
    shift: float
    rates: Rates
    truth: Callable[[str], float]
    tasks: int
    n: int
    metric: str


# -- situations ------------------------------------------------------------------------------------


def beta(a: float, b: float) -> Callable[[FloatArray], FloatArray]:
    """Success rates from uniform numbers."""
    return lambda u: np.asarray(betaincinv(a, b, u), np.float64)


def two_point(
    low: float, high: float, share_low: float = 0.5
) -> Callable[[FloatArray], FloatArray]:
    return lambda u: np.where(u < share_low, low, high)


def shifted(
    prior: Callable[[FloatArray], FloatArray], shift: float
) -> tuple[Rates, Callable[[str], float]]:
    """B succeeds more often by ``shift`` on every task, as far as 1 allows."""
    grid = prior((np.arange(200_000) + 0.5) / 200_000)

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        # A table of quantiles stands in for the prior: drawing by inversion would be slow.
        p = grid[rng.integers(0, len(grid), shape)]
        return p, np.minimum(1.0, p + shift)

    def truth(word: str) -> float:
        known = metric(word).known
        return float(np.mean(known(np.minimum(1.0, grid + shift)) - known(grid)))

    return rates, truth


def exchanged(prior: Callable[[FloatArray], FloatArray]) -> tuple[Rates, Callable[[str], float]]:
    """No lift on average, though A and B are good at different tasks."""
    grid = prior((np.arange(200_000) + 0.5) / 200_000)

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        return grid[rng.integers(0, len(grid), shape)], grid[rng.integers(0, len(grid), shape)]

    return rates, lambda _word: 0.0


def rare_flips(share: float, up: float) -> tuple[Rates, Callable[[str], float]]:
    """Both always agree, but for a small share of tasks that only one of them ever solves."""

    def rates(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        p = (rng.random(shape) < 0.5).astype(float)
        u = rng.random(shape)
        gained, lost = u < share * up, u > 1 - share * (1 - up)
        a = np.where(gained, 0.0, np.where(lost, 1.0, p))
        b = np.where(gained, 1.0, np.where(lost, 0.0, p))
        return a, b

    return rates, lambda _word: share * (2 * up - 1)


def main_cells() -> Iterator[Cell]:
    priors = {"Beta(.5,.5)": beta(0.5, 0.5), "Beta(2,2)": beta(2, 2), "5/95": two_point(0.05, 0.95)}
    for name, prior in priors.items():
        for shift in (0.0, 0.05, 0.15):
            rates, truth = shifted(prior, shift)
            for tasks, n, word in _sizes():
                yield Cell("main", f"{name} {shift:+.2f}", shift, rates, truth, tasks, n, word)


def stress_cells() -> Iterator[Cell]:
    situations = {
        "rare flips 1%, both ways": rare_flips(0.01, 0.5),
        "rare flips 3%, both ways": rare_flips(0.03, 0.5),
        "rare flips 3%, B only": rare_flips(0.03, 1.0),
        "rare flips 10%, both ways": rare_flips(0.10, 0.5),
        "null, different tasks, Beta(.5,.5)": exchanged(beta(0.5, 0.5)),
        "null, different tasks, 5/95": exchanged(two_point(0.05, 0.95)),
        "near 1, null": shifted(beta(8, 0.8), 0.0),
        "near 1, +.05": shifted(beta(8, 0.8), 0.05),
        "near 0, null": shifted(beta(0.3, 6), 0.0),
        "near 0, different tasks": exchanged(beta(0.3, 6)),
    }
    for name, (rates, truth) in situations.items():
        for tasks, n, word in _sizes():
            yield Cell("stress", name, np.nan, rates, truth, tasks, n, word)


def _sizes() -> Iterator[tuple[int, int, str]]:
    for tasks in (20, 50, 164):
        for n in (1, 4, 8):
            for word in ("pass^1", "pass^4") if n >= 4 else ("pass^1",):
                yield tasks, n, word


# -- methods: differences (repetitions x tasks) to two ends each -----------------------------------

Ends = tuple[FloatArray, FloatArray]


def pseudo_tasks(d: FloatArray, _rng: np.random.Generator) -> Ends:
    found = [LiftSample.of(row).interval(TAIL) for row in d]
    return np.array([i.low for i in found]), np.array([i.high for i in found])


def paired_t(d: FloatArray, _rng: np.random.Generator) -> Ends:
    mean, reach = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(d.shape[1])
    reach *= -stdtrit(d.shape[1] - 1, TAIL)
    return np.clip(mean - reach, -1, 1), np.clip(mean + reach, -1, 1)


def resampled(d: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Means of resampled tasks, repetitions x resamples."""
    tasks = d.shape[1]
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), RESAMPLES) / tasks
    return np.asarray(d @ weights.T, np.float64)


def percentile(d: FloatArray, rng: np.random.Generator) -> Ends:
    return _ends(resampled(d, rng))


def bca(d: FloatArray, rng: np.random.Generator) -> Ends:
    means = np.sort(resampled(d, rng), axis=1)
    centred = d - d.mean(axis=1, keepdims=True)
    below = (means < d.mean(axis=1, keepdims=True) - 1e-12).mean(axis=1)
    ties = (np.abs(means - d.mean(axis=1, keepdims=True)) <= 1e-12).mean(axis=1)
    bias = ndtri(np.clip(below + ties / 2, 1e-3, 1 - 1e-3))
    squares = (centred**2).sum(axis=1)
    cubes = (centred**3).sum(axis=1)
    skew = np.divide(cubes, 6 * squares**1.5, out=np.zeros(len(d)), where=squares > 0)
    ends = []
    for z in (ndtri(TAIL), -ndtri(TAIL)):
        share = ndtr(bias + (bias + z) / (1 - skew * (bias + z)))
        index = np.clip((share * RESAMPLES).astype(int), 0, RESAMPLES - 1)
        ends.append(means[np.arange(len(d)), index])
    return ends[0], ends[1]


def sign_flip_inversion(d: FloatArray, rng: np.random.Generator) -> Ends:
    """The lifts that a sign-flip test does not reject.

    Flipping the tasks of a subset gives a sum as large as the one seen exactly when the mean of
    that subset is at most the supposed lift, so the ends are quantiles of means of random subsets
    (Hartigan 1969).
    """
    subsets = (rng.random((RESAMPLES, d.shape[1])) < 0.5).astype(float)
    subsets[~subsets.any(axis=1)] = 1.0
    return _ends(d @ subsets.T / subsets.sum(axis=1))


def gaffke(extra: float) -> Callable[[FloatArray, np.random.Generator], Ends]:
    def ends(d: FloatArray, rng: np.random.Generator) -> Ends:
        weights = rng.exponential(size=(RESAMPLES, d.shape[1]))
        e = rng.gamma(extra, size=RESAMPLES)
        total = weights.sum(axis=1) + e
        inner = ((d + 1) / 2) @ weights.T
        low, _ = _ends(inner / total)
        _, high = _ends((inner + e) / total)
        return 2 * low - 1, 2 * high - 1

    return ends


def _ends(draws: FloatArray) -> Ends:
    """The two outer quantiles; draws need not be sorted."""
    low, high = int(TAIL * RESAMPLES), int((1 - TAIL) * RESAMPLES)
    parted = np.partition(draws, (low, high), axis=1)
    return parted[:, low], parted[:, high]


METHODS: dict[str, Callable[[FloatArray, np.random.Generator], Ends]] = {
    "**pseudo-tasks** (passhat)": pseudo_tasks,
    "paired t": paired_t,
    "percentile bootstrap": percentile,
    "BCa": bca,
    "sign-flip inversion": sign_flip_inversion,
    "Gaffke a=.5 on [-1, 1]": gaffke(0.5),
    "Gaffke a=1 on [-1, 1]": gaffke(1.0),
}
TEST = "sign test (n=1), sign-flip test"


def rejects(d: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Whether the two-sided test rejects at 1 - LEVEL."""
    if n == 1:
        wins, losses = (d > 0).sum(axis=1), (d < 0).sum(axis=1)
        most = np.maximum(wins, losses)
        tail = np.where(
            most > 0, betainc(np.maximum(most, 1), np.minimum(wins, losses) + 1, 0.5), 1
        )
        return np.asarray(np.minimum(1, 2 * tail) <= 1 - LEVEL, float)
    signs = rng.choice((-1.0, 1.0), (RESAMPLES - 1, d.shape[1]))
    seen = np.abs(d.sum(axis=1, keepdims=True))
    hits = (np.abs(d @ signs.T) >= seen - 1e-9).sum(axis=1)
    return np.asarray((1 + hits) / RESAMPLES <= 1 - LEVEL, float)


# -- the study -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """Averages over the repetitions of one cell."""

    cell: Cell
    coverage: dict[str, float]
    width: dict[str, float]
    excludes: dict[str, float]
    above: dict[str, float]


def study(cell: Cell, repetitions: int, seed: int) -> Result:
    rng = np.random.default_rng(seed)
    truth = cell.truth(cell.metric)
    values = metric(cell.metric).values(  # type: ignore[attr-defined]
        np.full(cell.n + 1, cell.n), np.arange(cell.n + 1)
    )
    sums: dict[str, FloatArray] = {name: np.zeros(4) for name in (*METHODS, TEST)}
    for start in range(0, repetitions, BLOCK):
        a, b = cell.rates(rng, (min(BLOCK, repetitions - start), cell.tasks))
        d = values[rng.binomial(cell.n, b)] - values[rng.binomial(cell.n, a)]
        for name, method in METHODS.items():
            low, high = method(d, rng)
            covered = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
            above, below = low > 1e-9, high < -1e-9
            sums[name] += [covered.sum(), (high - low).sum(), (above | below).sum(), above.sum()]
        sums[TEST][2] += rejects(d, cell.n, rng).sum()
    shares = {name: total / repetitions for name, total in sums.items()}
    column = [{name: float(share[i]) for name, share in shares.items()} for i in range(4)]
    return Result(cell, *column)


def table(results: list[Result], repetitions: int) -> Iterator[str]:
    main = [r for r in results if r.cell.group == "main"]
    stress = [r for r in results if r.cell.group == "stress"]
    yield (
        "| method | mean coverage | worst cell | cells below .93 | width / paired t | "
        'power at +.05 | power at +.15 | null cells: says "improvement", at most | '
        "stress: worst, cells below .93 |"
    )
    yield "|" + " --- |" * 9
    for name in METHODS:
        covered = np.array([r.coverage[name] for r in main])
        hard = np.array([r.coverage[name] for r in stress])
        ratio = relative_width(main, name)
        nulls = [r.above[name] for r in results if r.cell.truth(r.cell.metric) == 0]
        yield (
            f"| {name} | {covered.mean():.3f} | {covered.min():.3f} | {(covered < 0.93).sum()} | "
            f"{ratio:.2f} | {power(main, name, 0.05):.3f} | {power(main, name, 0.15):.3f} | "
            f"{max(nulls):.3f} | {hard.min():.3f}, {(hard < 0.93).sum()} of {len(hard)} |"
        )
    yield (
        f"| {TEST} | – | – | – | – | {power(main, TEST, 0.05):.3f} | "
        f"{power(main, TEST, 0.15):.3f} | – | – |"
    )
    error = np.sqrt(LEVEL * (1 - LEVEL) / repetitions)
    yield ""
    yield (
        f"{len(main)} cells and {len(stress)} stress cells, {repetitions:,} repetitions each, "
        f"nominal {LEVEL:.0%}; the Monte Carlo standard error of one cell's coverage is "
        f"{error:.4f} at .95. Resamples, subsets and weights: {RESAMPLES:,}."
    )


def by_tasks(results: list[Result]) -> Iterator[str]:
    """Width and power of graded and 0/1 differences at each number of tasks."""
    main = [r for r in results if r.cell.group == "main"]
    names = ("**pseudo-tasks** (passhat)", "paired t", "percentile bootstrap", "BCa", TEST)
    yield (
        "| tasks | n | width / paired t | " + " | ".join(f"power: {name}" for name in names) + " |"
    )
    yield "|" + " --- |" * (3 + len(names))
    for tasks in (20, 50, 164):
        for n in (1, 4, 8):
            here = [r for r in main if (r.cell.tasks, r.cell.n) == (tasks, n)]
            ratio = relative_width(here, names[0])
            powers = " | ".join(f"{power(here, name, 0.15):.3f}" for name in names)
            yield f"| {tasks} | {n} | {ratio:.2f} | {powers} |"


def relative_width(results: list[Result], name: str) -> float:
    """The mean width over these cells, against that of the paired t interval."""
    return sum(r.width[name] for r in results) / sum(r.width["paired t"] for r in results)


def power(results: list[Result], name: str, shift: float) -> float:
    """How often zero is excluded, over the cells with this shift."""
    return float(np.mean([r.excludes[name] for r in results if r.cell.shift == shift]))


def worst(results: list[Result]) -> Iterator[str]:
    """The cells in which each method covers least."""
    yield "| method | worst cell | tasks | n | metric | coverage |"
    yield "|" + " --- |" * 6
    for name in METHODS:
        r = min(results, key=lambda r: r.coverage[name])
        yield (
            f"| {name} | {r.cell.name} | {r.cell.tasks} | {r.cell.n} | {r.cell.metric} | "
            f"{r.coverage[name]:.3f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="200 repetitions of every cell")
    parser.add_argument("--repetitions", type=int, default=8_000)
    asked = parser.parse_args()
    repetitions = 200 if asked.quick else asked.repetitions
    cells = [*main_cells(), *stress_cells()]
    started, results = time.perf_counter(), []
    for index, cell in enumerate(cells, 1):
        results.append(study(cell, repetitions, seed=index))
        spent = time.perf_counter() - started
        left = spent / index * (len(cells) - index)
        print(f"\r{index} of {len(cells)} cells, {left:.0f} s left ", end="", file=sys.stderr)
    print(file=sys.stderr)
    for part in (table(results, repetitions), by_tasks(results), worst(results)):
        print("\n".join(part), end="\n\n")


if __name__ == "__main__":
    main()
