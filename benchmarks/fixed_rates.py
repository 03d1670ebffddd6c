"""Do intervals about these tasks hold at *fixed* success rates? Suites whose truth is known.

    python benchmarks/fixed_rates.py                    # 150 repetitions, three minutes of CPU
    python benchmarks/fixed_rates.py --repetitions 60   # a rough look
    python benchmarks/fixed_rates.py --markdown docs/benchmarks/fixed_rates.md
    python benchmarks/fixed_rates.py --search 300       # 300 s of random cells, the worst printed
    python benchmarks/fixed_rates.py --tables 10000     # solve that many random tables

Running a suite again keeps its tasks and their success rates p_i; only the attempts vary. So a cell
here is a list of fixed rates, and the truth is the mean of f(p_i) over exactly those. Beside the
frontier stand the interval of version 0.1.0 (a Beta-binomial posterior, beta_binomial.py) and a
bootstrap that draws the attempts of every task again (percentile, 400 draws).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from beta_binomial import AtLeast, Form, Gain, rerun_intervals
from measuring import machine, markdown, publish, study_parser
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate import metric
from passhat.stats.estimate.intervals.frontier import (
    Attempted,
    Calibration,
    Statistic,
    _tilts,
    holds,
)
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric, Delta, GPass, Metric, PassAt
from passhat.stats.outcomes import Histogram
from passhat.stats.terms import Terms

DESIGNS: dict[str, tuple[tuple[float, float], ...]] = {
    "all .5": ((0.5, 1.0),),
    "all .9": ((0.9, 1.0),),
    "all .3": ((0.3, 1.0),),
    "all .02": ((0.02, 1.0),),
    "all 1": ((1.0, 1.0),),
    "all 0": ((0.0, 1.0),),
    "half .3, half 1": ((0.3, 0.5), (1.0, 0.5)),
    "half .7, half 0": ((0.7, 0.5), (0.0, 0.5)),
    "10% 0, 90% .95": ((0.0, 0.1), (0.95, 0.9)),
    "3% .5, 97% 1": ((0.5, 0.03), (1.0, 0.97)),
    "thirds .1, .5, .98": ((0.1, 1 / 3), (0.5, 1 / 3), (0.98, 1 / 3)),
}
TASKS = (8, 50)
WORDS: dict[int, tuple[str, ...]] = {
    1: ("pass^1",),
    2: ("pass^1", "pass@2"),
    4: ("pass^4", "pass@4"),
    8: ("pass^4", "gpass@8:0.5"),
}
GAINS = ("all .5", "half .3, half 1", "thirds .1, .5, .98")
PEER_REPETITIONS = 40
WIDTHS = 5
DRAWS = 400
SEARCHED = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)


def rates_of(design: str, tasks: int) -> FloatArray:
    """Fixed rates in the shares of a design; every part has at least one task."""
    parts = DESIGNS[design]
    counts = [max(1, round(share * tasks)) for _, share in parts]
    counts[-1] += tasks - sum(counts)
    return np.repeat([rate for rate, _ in parts], counts)


@dataclass(slots=True)
class Cell:
    """How often each method held the truth in one cell, and how wide it was."""

    word: str
    design: str
    tasks: int
    attempts: int
    coverage: float
    width: float
    peers: dict[str, tuple[float, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.word}, {self.design}, {self.tasks} x {self.attempts}: {self.coverage:.3f}"


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Many runs of the same tasks, as histograms, each different one once."""

    rates: FloatArray
    n: int
    different: IntArray  # (D, n + 1)
    times: IntArray  # how often each came up

    @classmethod
    def of(cls, rates: FloatArray, n: int, repetitions: int, rng: np.random.Generator) -> Simulated:
        passes = rng.binomial(n, rates, size=(repetitions, len(rates)))
        counts = np.stack([(passes == c).sum(axis=1) for c in range(n + 1)], axis=1)
        return cls(rates, n, *np.unique(counts, axis=0, return_counts=True))

    def cells(self, counts: IntArray) -> Histogram:
        seen = np.flatnonzero(counts)
        return Histogram(np.full(len(seen), self.n), seen, counts[seen])

    def truth(self, word: str) -> float:
        return float(metric(word).value_at_rate(self.rates).mean())

    def surely_held(self, chosen: CountMetric, counts: IntArray) -> bool:
        """Whether the true distribution of rates is itself inside the region.

        Then the interval holds the truth, and needs not be computed: its ends are outer bounds
        over the region. The largest likelihood is at most that of the observed shares.
        """
        calibration, tasks = Calibration.at(0.95, len(self.rates)), len(self.rates)
        rates, how_many = np.unique(self.rates, return_counts=True)
        u = chosen.values(np.full(self.n + 1, self.n), np.arange(self.n + 1))
        chance = _binomial(self.n, rates)
        tilts = _tilts(tasks, calibration.surprise)
        moments = np.log(np.exp(np.outer(tilts, u)) @ chance) @ how_many / tasks
        point, step = float(counts @ u) / tasks, float(np.abs(np.diff(u)).max())
        surprise = tilts * point - np.abs(tilts) * calibration.step * step / tasks - moments
        if float(surprise.max()) > calibration.surprise / tasks:
            return False
        seen = counts > 0
        with np.errstate(divide="ignore"):
            logs = np.log(chance @ how_many / tasks)
        own = float(counts[seen] @ logs[seen])
        return own >= float(counts[seen] @ np.log(counts[seen] / tasks)) - calibration.fit


def _binomial(n: int, rates: FloatArray) -> FloatArray:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(n + 1)[:, None], n, rates), np.float64)


def _holds(cells: Histogram, chosen: Metric, truth: float) -> bool:
    """Whether the interval holds the truth; of a frontier only the end beside it is computed."""
    if isinstance(chosen, CountMetric) and int(cells.n[0]) > 1 and cells.size > 1:
        statistic = Statistic(
            Attempted.of(cells),
            lambda n, c: chosen.values(np.full(len(c), n), c),
            chosen.value_at_rate,
        )
        return holds([statistic], Calibration.at(0.95, cells.size), truth)
    low, high = ends_of(cells, chosen.name)
    return low - 1e-9 <= truth <= high + 1e-9


def ends_of(cells: Histogram, word: str) -> tuple[float, float]:
    """The interval as `estimate` reports it, without the missing-attempt machinery."""
    chosen = metric(word)
    assert isinstance(chosen, CountMetric | Delta)
    low, high = TheseTasks(cells, Terms()).interval(chosen) or (0.0, 0.0)
    if isinstance(chosen, Delta):
        return low, high
    point = float(chosen.values(cells.n, cells.c) @ cells.tasks) / cells.size
    return min(low, point), max(high, point)


def study(
    design: str,
    rates: FloatArray,
    n: int,
    words: Sequence[str],
    repetitions: int,
    rng: np.random.Generator,
    *,
    peers: bool = True,
) -> Iterator[Cell]:
    """Simulate one list of rates."""
    runs = Simulated.of(rates, n, repetitions, rng)
    for word in words:
        truth, chosen, held = runs.truth(word), metric(word), 0
        for counts, times in zip(runs.different, runs.times.tolist(), strict=True):
            sure = isinstance(chosen, CountMetric) and n > 1 and runs.surely_held(chosen, counts)
            if not sure:
                sure = _holds(runs.cells(counts), chosen, truth)
            held += times * sure
        few = runs.different[rng.permutation(len(runs.different))[:WIDTHS]]
        width = np.mean([np.subtract(*ends_of(runs.cells(c), word)[::-1]) for c in few])
        cell = Cell(word, design, len(rates), n, held / repetitions, float(width))
        if peers:
            cell.peers = dict(_peers(runs, word, rng))
        yield cell


def _form(word: str) -> Form:
    chosen = metric(word)
    if isinstance(chosen, Delta):
        return Gain(chosen.k)
    if isinstance(chosen, GPass):
        return AtLeast(chosen.needed, chosen.k)
    return AtLeast(1 if isinstance(chosen, PassAt) else chosen.k, chosen.k)


def _peers(
    runs: Simulated, word: str, rng: np.random.Generator
) -> Iterator[tuple[str, tuple[float, float]]]:
    chosen, truth, n = metric(word), runs.truth(word), runs.n
    share = runs.times / runs.times.sum()
    drawn = runs.different[rng.choice(len(share), PEER_REPETITIONS, p=share)]
    old, boot = [], []
    for counts in drawn:
        cells = runs.cells(counts)
        c = np.arange(n + 1)
        again = rng.binomial(n, np.repeat(c, counts) / n, size=(DRAWS, len(runs.rates)))
        if isinstance(chosen, CountMetric):
            u = chosen.values(np.full(n + 1, n), c)
            point, values = float(counts @ u) / len(runs.rates), u[again].mean(axis=1)
        else:
            assert isinstance(chosen, Delta)
            power, mean = (part.values(np.full(n + 1, n), c) for part in chosen.parts)
            point = chosen.combine(
                float(counts @ power) / counts.sum(), float(counts @ mean) / counts.sum()
            )
            values = power[again].mean(axis=1) - mean[again].mean(axis=1) ** chosen.k
        fit = rerun_intervals(cells, np.array([point]), [_form(word)])
        old.append((float(fit.lows[0]), float(fit.highs[0])))
        boot.append(tuple(np.quantile(values, [0.025, 0.975]).tolist()))
    for name, ends in (("old", old), ("bootstrap", boot)):
        held = np.mean([low - 1e-9 <= truth <= high + 1e-9 for low, high in ends])
        yield name, (float(held), float(np.mean([high - low for low, high in ends])))


def search(seconds: float, repetitions: int, seed: int = 0) -> list[Cell]:
    """Random lists of one to three rates, ordered by coverage."""
    rng = np.random.default_rng(seed)
    cells: list[Cell] = []
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        tasks, n = int(rng.choice([5, 8, 10, 20, 30, 50, 100, 200])), int(rng.integers(1, 9))
        k, kind = int(rng.integers(1, n + 1)), rng.choice(["pass^", "pass@"])
        chosen = rng.choice(SEARCHED, int(rng.integers(1, 4)), replace=False)
        counts = rng.multinomial(tasks, rng.dirichlet(np.ones(len(chosen))))
        design = ", ".join(
            f"{c} at {p:g}" for p, c in zip(chosen, counts.tolist(), strict=True) if c
        )
        rates = np.repeat(chosen, counts)
        cells += study(design, rates, n, [f"{kind}{k}"], repetitions, rng, peers=False)
    return sorted(cells, key=lambda cell: cell.coverage)


def random_tables(count: int, seed: int = 0) -> str:
    """Solve random tables, ragged ones among them; says how many failed and how long one took."""
    rng = np.random.default_rng(seed)
    failures, began = 0, time.process_time()
    for _ in range(count):
        tasks = int(rng.integers(2, 200))
        n = (
            rng.integers(1, 17, tasks)
            if rng.random() < 0.3
            else np.full(tasks, rng.integers(1, 17))
        )
        a, b = rng.choice([0.01, 0.3, 1.0, 5.0], 2).tolist()
        c = rng.binomial(n, rng.beta(a, b, tasks))
        pairs, counts = np.unique(np.stack([n, c], axis=1), axis=0, return_counts=True)
        cells = Histogram(pairs[:, 0], pairs[:, 1], counts)
        k = int(rng.integers(1, int(n.min()) + 1))
        word = f"{rng.choice(['pass^', 'pass@'])}{k}"
        low, high = ends_of(cells, word)
        failures += not (np.isfinite([low, high]).all() and -1e-4 <= low < high <= 1 + 1e-4)
    each = (time.process_time() - began) / count
    return f"{count:,} random tables: {failures} failures, {1000 * each:.1f} ms CPU each."


def page(cells: list[Cell], repetitions: int, extra: Sequence[str]) -> str:
    """The study as Markdown."""
    error = np.sqrt(0.95 * 0.05 / repetitions)
    rows = [
        (
            cell.design,
            cell.tasks,
            cell.attempts,
            cell.word,
            f"**{cell.coverage:.3f}**, {cell.width:.3f}",
            *(f"{held:.2f}, {width:.3f}" for held, width in cell.peers.values()),
        )
        for cell in cells
    ]
    summary = [("frontier", [cell.coverage for cell in cells], [cell.width for cell in cells])]
    for name, key in (("Beta-binomial posterior (0.1.0)", "old"), ("bootstrap", "bootstrap")):
        peers = [cell.peers[key] for cell in cells]
        summary.append((name, [held for held, _ in peers], [width for _, width in peers]))
    parts = [
        "# Intervals about these tasks at fixed success rates, measured",
        "Made by `python benchmarks/fixed_rates.py --markdown docs/benchmarks/fixed_rates.md`. "
        f"{len(cells)} cells, {repetitions:,} runs each for the frontier and {PEER_REPETITIONS} "
        "for the other two, nominal 95%. Standard error of a cell at .95: "
        f"{error:.3f} and {np.sqrt(0.95 * 0.05 / PEER_REPETITIONS):.3f}. {machine()}.",
        markdown(
            ("method", "mean coverage", "worst cell", "cells below .93", "mean width"),
            [
                (
                    name,
                    f"{np.mean(held):.3f}",
                    f"{np.min(held):.3f}",
                    f"{sum(h < 0.93 for h in held)} of {len(held)}",
                    f"{np.mean(width):.3f}",
                )
                for name, held, width in summary
            ],
        ),
        "Worst cells of the frontier: "
        + "; ".join(map(str, sorted(cells, key=lambda cell: cell.coverage)[:6]))
        + ".",
        *extra,
        "## Every cell",
        "Coverage, mean width.",
        markdown(
            ("rates", "tasks", "n", "metric", "frontier", "Beta-binomial (0.1.0)", "bootstrap"),
            rows,
        ),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the study and print it."""
    parser = study_parser(__doc__, 150)
    parser.add_argument("--search", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--tables", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.tables:
        print(random_tables(options.tables, options.seed))
        return
    if options.search:
        found = search(options.search, options.repetitions, options.seed)
        print(f"{len(found)} cells, mean {np.mean([cell.coverage for cell in found]):.3f}")
        print("\n".join(map(str, found[:25])))
        return
    cells: list[Cell] = []
    for index, (design, tasks) in enumerate((d, t) for d in DESIGNS for t in TASKS):
        for n, words in WORDS.items():
            rng = np.random.default_rng([323, index, n])
            rates = rates_of(design, tasks)
            cells += study(design, rates, n, words, options.repetitions, rng)
            print(cells[-1], file=sys.stderr, flush=True)
    for design in GAINS:
        rng = np.random.default_rng([324, GAINS.index(design)])
        rates = rates_of(design, 20)
        cells += study(design, rates, 4, ("delta^2",), options.repetitions, rng)
    publish(page(cells, options.repetitions, ()), options.markdown)


if __name__ == "__main__":
    main()
