"""Coverage of nominal 95% intervals on simulated suites whose truth is known.

168 cells = 7 difficulty priors x tasks {20, 50, 164, 500} x attempts {4, 8} x {pass^1, pass^4,
pass@4}. Every cell is simulated afresh from its own seed, so any part of the study can be repeated.

    python benchmarks/coverage.py            # the full study, 1,000 repetitions, about five minutes
    python benchmarks/coverage.py --quick    # 60 repetitions on a quarter of the cells
    python benchmarks/coverage.py --write    # the full study, kept in docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import comb

import interval_peers as peers
from beta_binomial import AtLeast
from measuring import machine, write_section
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.intervals.dirichlet_mean import lower_quantile

METRICS = {"pass^1": AtLeast(1, 1), "pass^4": AtLeast(4, 4), "pass@4": AtLeast(1, 4)}
TASKS = (20, 50, 164, 500)
ATTEMPTS = (4, 8)
SHAPES = (1.0, 0.85, 0.75, 0.5)  # of Gaffke's unseen task
BLOCK = 50  # repetitions whose bootstrap resamples are held at once


@dataclass(frozen=True, slots=True)
class Prior:
    """How the success rates of tasks are distributed: Beta(a, b), or 0 and 1 with P(1) = a."""

    name: str
    a: float
    b: float | None = None

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> FloatArray:
        """Success rates of `size[1]` tasks in each of `size[0]` suites."""
        if self.b is None:
            return (rng.random(size) < self.a).astype(np.float64)
        return rng.beta(self.a, self.b, size)

    def moment(self, k: int) -> float:
        """`E p^k`."""
        if self.b is None:
            return self.a if k else 1.0
        return float(np.prod([(self.a + j) / (self.a + self.b + j) for j in range(k)]))

    def truth(self, metric: AtLeast) -> float:
        """`E g(p)`, the number a new-tasks interval should cover."""
        if metric.m == metric.k:
            return self.moment(metric.k)
        fail = sum((-1) ** j * comb(metric.k, j) * self.moment(j) for j in range(metric.k + 1))
        return float(1 - fail)


PRIORS = (
    Prior("Beta(.5, .5)", 0.5, 0.5),
    Prior("Beta(2, 2)", 2.0, 2.0),
    Prior("0/1, 30/70", 0.7),
    Prior("Beta(.1, .4)", 0.1, 0.4),
    Prior("0/1, 5/95", 0.95),
    Prior("Beta(8, .8)", 8.0, 0.8),
    Prior("Beta(.3, 6)", 0.3, 6.0),
)


@dataclass(frozen=True, slots=True)
class Suites:
    """R simulated suites of one design: histograms of successes and the true rates behind them."""

    prior: Prior
    tasks: int
    attempts: int
    hist: FloatArray  # (R, n + 1)
    rates: FloatArray  # (R, T)

    def values(self, metric: AtLeast) -> FloatArray:
        """Return the unbiased per-task value of the metric at c = 0..n."""
        n, c = self.attempts, np.arange(self.attempts + 1)
        if metric.m == metric.k:
            return np.asarray(comb(c, metric.k) / comb(n, metric.k))
        return np.asarray(1 - comb(n - c, metric.k) / comb(n, metric.k))


@dataclass(frozen=True, slots=True)
class Cell:
    """What one method did in one cell."""

    name: str
    tasks: int
    coverage: float
    width: float


def simulate(prior: Prior, tasks: int, attempts: int, repetitions: int) -> Suites:
    """Draw suites from a seed that only this design has."""
    rng = np.random.default_rng([168, PRIORS.index(prior), tasks, attempts])
    rates = prior.draw(rng, (repetitions, tasks))
    passes = rng.binomial(attempts, rates)
    hist = np.stack([(passes == c).sum(axis=1) for c in range(attempts + 1)], axis=1)
    return Suites(prior, tasks, attempts, hist.astype(np.float64), rates)


def gaffke_ends(hist: FloatArray, values: FloatArray, unseen: float) -> peers.Ends:
    """Gaffke's interval for many histograms at once; equal ones are solved once."""
    distinct, member = np.unique(hist, axis=0, return_inverse=True)
    rows = np.broadcast_to(values, distinct.shape)
    low = lower_quantile(rows, distinct, peers.TAIL, unseen=unseen)
    high = 1 - lower_quantile(1 - rows, distinct, peers.TAIL, unseen=unseen)
    return low[member.ravel()], high[member.ravel()]


def new_task_ends(suites: Suites) -> Iterator[tuple[str, str, peers.Ends]]:
    """Yield (method, metric, ends) of everybody's interval for new tasks."""
    hist = suites.hist
    simple: dict[str, Callable[[FloatArray, FloatArray], peers.Ends]] = {
        "logit-t, Wilson if binary (evalstats)": peers.logit_t_or_wilson,
        "logit-t": peers.logit_t,
        "t over tasks (inspect)": peers.t_over_tasks,
    }
    for name, metric in METRICS.items():
        values = suites.values(metric)
        for unseen in SHAPES:
            yield f"**Gaffke a={unseen:g}**", name, gaffke_ends(hist, values, unseen)
        for method, function in simple.items():
            yield method, name, function(hist, values)
        any_pass = metric.m < metric.k
        ends = peers.scorio_uniform(hist, metric.k, any_pass=any_pass)
        yield "uniform prior per task (scorio)", name, ends
    yield from _bootstrap_ends(suites)


def _bootstrap_ends(suites: Suites) -> Iterator[tuple[str, str, peers.Ends]]:
    rng = np.random.default_rng([suites.tasks, suites.attempts, 7])
    parts: dict[tuple[str, str], list[peers.Ends]] = defaultdict(list)
    for start in range(0, len(suites.hist), BLOCK):
        hist = suites.hist[start : start + BLOCK]
        tasks, levels = peers.task_resamples(hist, rng), peers.two_level_resamples(hist, rng)
        for name, metric in METRICS.items():
            values = suites.values(metric)
            parts["BCa over tasks (scipy)", name].append(peers.bca(tasks, hist, values))
            parts["percentile over tasks", name].append(peers.percentile(tasks, values))
            parts["two-level bootstrap (agentrel)", name].append(peers.percentile(levels, values))
    for (method, name), blocks in parts.items():
        low, high = (np.concatenate(ends) for ends in zip(*blocks, strict=True))
        yield method, name, (low, high)


def study(repetitions: int, designs: list[tuple[Prior, int, int]]) -> dict[str, list[Cell]]:
    """Coverage and width of every method in every cell."""
    results: dict[str, list[Cell]] = defaultdict(list)
    began = time.perf_counter()
    for done, (prior, tasks, attempts) in enumerate(designs, start=1):
        suites = simulate(prior, tasks, attempts, repetitions)
        label = f"{prior.name}, {tasks} x {attempts}"
        for method, name, (low, high) in new_task_ends(suites):
            truth = prior.truth(METRICS[name])
            hit = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
            width = float((high - low).mean())
            results[method].append(Cell(f"{name}, {label}", tasks, float(hit.mean()), width))
        spent = time.perf_counter() - began
        print(f"{done}/{len(designs)} {label} ({spent:.0f} s)", file=sys.stderr, flush=True)
    return results


def table(methods: dict[str, list[Cell]]) -> str:
    """One row per method, as Markdown."""
    lines = [
        "| method | mean coverage | worst cell | below .90 | below .93 | width at 20 / 164 tasks |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for method, cells in methods.items():
        hit = np.array([cell.coverage for cell in cells])
        width = {t: np.mean([cell.width for cell in cells if cell.tasks == t]) for t in (20, 164)}
        lines.append(
            f"| {method} | {hit.mean():.3f} | {hit.min():.3f} | {(hit < 0.9).sum()} "
            f"| {(hit < 0.93).sum()} | {width[20]:.3f} / {width[164]:.3f} |"
        )
    return "\n".join(lines)


def worst_cells(methods: dict[str, list[Cell]], method: str, count: int = 5) -> str:
    """Name the cells where a method does worst."""
    cells = sorted(methods[method], key=lambda cell: cell.coverage)[:count]
    return "; ".join(f"{cell.name}: {cell.coverage:.3f}" for cell in cells)


def main() -> None:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small and deterministic")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="keep the tables in the docs")
    options = parser.parse_args()
    designs = [(prior, t, n) for prior in PRIORS for t in TASKS for n in ATTEMPTS]
    repetitions = 60 if options.quick else options.repetitions
    if options.quick:
        designs = [design for design in designs if design[1] in (20, 164) and design[2] == 4]
    results = study(repetitions, designs)
    error = np.sqrt(0.95 * 0.05 / repetitions)
    parts = [
        f"{3 * len(designs)} cells, {repetitions:,} repetitions each, nominal 95%. Monte Carlo "
        f"standard error of a cell at .95: {error:.3f}; of a mean over cells: at most "
        f"{error / np.sqrt(len(designs)):.4f} (the metrics of a design share their suites). "
        f"Bootstraps use {peers.RESAMPLES:,} resamples. {machine()}."
    ]
    best = next(iter(results))
    parts += ["### About new tasks", table(results)]
    parts += [f"Worst cells of {best}: {worst_cells(results, best)}."]
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        write_section("coverage", text)


if __name__ == "__main__":
    main()
