"""Does the band hold the truth beyond n? Coverage and width, on suites whose truth is known.

    python benchmarks/forecast.py                  # all of it, about half an hour on one core
    python benchmarks/forecast.py --quick          # 20 repetitions of every cell
    python benchmarks/forecast.py --small          # only small suites and clusters, ten minutes
    python benchmarks/forecast.py --markdown FILE  # also writes the page

Prints Markdown on standard output and its progress on standard error.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.special import betaincinv, betaln, expit, gammaln, ndtri, xlog1py, xlogy
from scipy.stats import binom

from measuring import ROOT, machine, markdown, publish, study_parser
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.forecast.band import Admissible, cutoff_for, rare_tasks
from passhat.stats.forecast.lines import lines_of
from passhat.stats.forecast.views import Views
from passhat.stats.outcomes import Histogram, Outcomes
from passhat.stats.terms import Terms

TASKS = 100
ATTEMPTS = 8
DATA = ROOT.parent / "shared" / "data"
REAL = "transformer_multiplication_p.csv.gz"
TEMPERATURE = 0.95
LINE_DRAWS = 5


@dataclass(frozen=True, slots=True)
class World:
    """A distribution of success rates: how to draw from it, and its rates for the truth."""

    name: str
    rates: FloatArray

    def draw(self, rng: np.random.Generator, tasks: int) -> FloatArray:
        return self.rates[rng.integers(0, len(self.rates), tasks)]

    def truth(self, chosen: CountMetric) -> float:
        return float(np.mean(chosen.value_at_rate(self.rates)))


def worlds() -> Iterator[World]:
    """Each as the quantiles of its distribution."""
    u = (np.arange(200_000) + 0.5) / 200_000
    yield World("Beta(.5, 1.5)", np.asarray(betaincinv(0.5, 1.5, u), np.float64))
    yield World("logit-normal(-1, 2)", np.asarray(expit(-1 + 2 * ndtri(u)), np.float64))
    tame = np.asarray(betaincinv(1, 2, np.maximum(u - 0.25, 0) / 0.75), np.float64)
    yield World("25% impossible", np.where(u < 0.25, 0.0, tame))
    yield World("log-uniform(1e-4, 1)", np.exp(np.log(1e-4) * (1 - u)))
    yield World("two-point .05, .9", np.where(u < 0.5, 0.05, 0.9))


def asked(n: int) -> list[CountMetric]:
    """2x, 10x and 100x n for pass@k, 2x and 4x for pass^k."""
    words = [f"pass@{n * times}" for times in (2, 10, 100)]
    words += [f"pass^{n * times}" for times in (2, 4)]
    return [one for one in map(metric, words) if isinstance(one, CountMetric)]


# -- the peer: one family, taken to be true --------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BetaBinomial:
    """The 95% likelihood interval within the beta-binomial family, on a grid of its parameters."""

    log_chance: FloatArray  # (parameters, 0..n passes)
    values: FloatArray  # (metrics, parameters)

    @classmethod
    def of(cls, n: int, metrics: Sequence[CountMetric]) -> BetaBinomial:
        mean, size = np.meshgrid(expit(np.linspace(-7, 7, 561)), np.exp(np.linspace(-4, 5, 181)))
        a, b = (mean * size).ravel(), ((1 - mean) * size).ravel()
        c = np.arange(n + 1)
        ways = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
        chance = ways + betaln(a[:, None] + c, b[:, None] + n - c) - betaln(a, b)[:, None]
        values = [
            np.exp(betaln(a + one.k, b) - betaln(a, b))
            if one.name.startswith("pass^")
            else -np.expm1(betaln(a, b + one.k) - betaln(a, b))
            for one in metrics
        ]
        return cls(chance, np.array(values))

    def intervals(self, cells: Histogram) -> list[tuple[float, float]]:
        fit = self.log_chance[:, cells.c] @ cells.tasks
        kept = self.values[:, fit >= fit.max() - 1.92]
        return list(zip(kept.min(axis=1).tolist(), kept.max(axis=1).tolist(), strict=True))


# -- measuring -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """How often an interval held the truth, and how wide it was."""

    held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def add(self, low: float, high: float, truth: float) -> None:
        self.held.append(low <= truth <= high)
        self.widths.append(high - low)

    @property
    def coverage(self) -> float:
        return float(np.mean(self.held))

    @property
    def text(self) -> str:
        return f"{self.coverage:.3f} | {np.mean(self.widths):.3f}"


def measure(
    world: World, n: int, repetitions: int, rng: np.random.Generator
) -> tuple[list[Tally], list[Tally]]:
    """The band's and the beta-binomial's tallies, one per metric."""
    metrics = asked(n)
    truths = [world.truth(one) for one in metrics]
    family = BetaBinomial.of(n, metrics)
    band, peer = [Tally() for _ in metrics], [Tally() for _ in metrics]
    for _ in range(repetitions):
        passes = rng.binomial(n, world.draw(rng, TASKS))
        cells = Outcomes.from_counts(n, passes).histogram()
        admissible = Admissible.of(cells, metrics)
        for i, (one, ends) in enumerate(zip(metrics, family.intervals(cells), strict=True)):
            cutoff = cutoff_for(0.95, rare_tasks(cells, one))
            band[i].add(*admissible.ends(one, cutoff), truths[i])
            peer[i].add(*ends, truths[i])
    return band, peer


HEADER = (
    *("difficulty", "n", "metric", "truth"),
    *("band covers", "width", "beta-binomial covers", "width"),
)


def table(
    chosen: Sequence[tuple[World, int]], repetitions: int, seed: int
) -> tuple[str, list[Tally]]:
    rows, tallies = [], []
    for index, (world, n) in enumerate(chosen):
        start = time.perf_counter()
        band, peer = measure(world, n, repetitions, np.random.default_rng([seed, index]))
        tallies += band
        for one, ours, theirs in zip(asked(n), band, peer, strict=True):
            cells = [*ours.text.split(" | "), *theirs.text.split(" | ")]
            rows.append([world.name, n, one.name, f"{world.truth(one):.3f}", *cells])
        took = time.perf_counter() - start
        print(f"{world.name}, n = {n}: {took:.0f} s", file=sys.stderr, flush=True)
        print("\n".join(str(row) for row in rows[-5:]), file=sys.stderr, flush=True)
    return markdown(HEADER, rows), tallies


def real_worlds(source: Path) -> list[World]:
    """The exact success rates of four training stages at the temperature nearest to 0.95."""
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    names = [name for name in rows[0] if name[0] == "T"]
    column = min(names, key=lambda name: abs(float(name[1:]) - TEMPERATURE))
    stages = dict.fromkeys(row["stage"] for row in rows)
    return [
        World(stage, np.array([float(row[column]) for row in rows if row["stage"] == stage]))
        for stage in stages
    ]


def line_errors(chosen: Sequence[World]) -> str:
    """Mean absolute error of every line in points, n attempts at each of the 1,500 tasks."""
    rng = np.random.default_rng(8)
    errors: dict[tuple[int, str], dict[str, list[float]]] = {}
    for world in chosen:
        for n in (8, 100):
            for _ in range(LINE_DRAWS):
                cells = Outcomes.from_counts(n, rng.binomial(n, world.rates)).histogram()
                for one, lines in zip(asked(n), lines_of(cells, asked(n)), strict=True):
                    times = f"{one.name[:5]} at {one.k // n}x"
                    for name, value in lines.items():
                        short = name.replace("zero-", "").replace("one-", "")
                        slot = errors.setdefault((n, times), {}).setdefault(short, [])
                        slot.append(100 * abs(value - world.truth(one)))
    models = list(errors[8, "pass@ at 2x"])
    rows = [
        [n, times, *(f"{np.mean(found[m]):.1f}" if m in found else "–" for m in models)]
        for (n, times), found in errors.items()
    ]
    return markdown(("n", "forecast", *models), rows)


def page(repetitions: int, real_repetitions: int, source: Path) -> Iterator[str]:
    """The study as Markdown."""
    yield "# Does the band hold the truth beyond n?"
    yield ""
    yield (
        f"Made by `python benchmarks/forecast.py --repetitions {repetitions} --real-repetitions "
        f"{real_repetitions}` ({machine()}). Suites of {TASKS} tasks with "
        f"{ATTEMPTS} attempts each, {repetitions} repetitions of every line, nominal 95% (cutoff "
        f"2.5); Monte Carlo standard error at .95: {(0.0475 / repetitions) ** 0.5:.3f}. The truth "
        "is that of new tasks. Beside the band: the 95% likelihood interval of the beta-binomial "
        "family, which takes its own shape to be true."
    )
    yield ""
    simulated, tallies = table([(world, ATTEMPTS) for world in worlds()], repetitions, 1)
    yield simulated
    yield ""
    yield f"Lowest coverage of the band: {min(one.coverage for one in tallies):.3f}."
    yield ""
    yield "## On the success rates of a real model"
    yield ""
    if not source.is_file():
        yield "Left out: the folder shared/data is not beside this checkout."
        return
    yield (
        "A small transformer that learned to multiply, at four stages of its training: the exact "
        f"chance of the right answer to 1,500 tasks at temperature 0.95. {TASKS} tasks are drawn "
        f"from them, then n attempts at each; {real_repetitions} repetitions, Monte Carlo standard "
        f"error at .95: {(0.0475 / real_repetitions) ** 0.5:.3f}."
    )
    yield ""
    real = real_worlds(source)
    cells = [(world, n) for n in (8, 100) for world in real]
    measured, tallies = table(cells, real_repetitions, 2)
    yield measured
    yield ""
    yield f"Lowest coverage of the band: {min(one.coverage for one in tallies):.3f}."
    yield ""
    yield "## How far off is each line?"
    yield ""
    yield (
        "Mean absolute error in points over the four stages, n attempts at each of the 1,500 "
        f"tasks, {LINE_DRAWS} draws. Inflated: at p = 0 for pass@k, at p = 1 for pass^k."
    )
    yield ""
    yield line_errors(real)
    yield ""
    yield from small_page(repetitions)


# -- small suites and clusters ---------------------------------------------------------------------

SMALL_HEADER = ("tasks", "difficulty", "n", "cutoff 2.5 covers", "now covers", "width then", "now")
CLUSTER_HEADER = ("clusters", "tasks each", "metric", "tasks alone", "with --cluster", "width")


def extreme_worlds() -> Iterator[World]:
    """Where one kind of task is hardly seen."""
    u = (np.arange(20_000) + 0.5) / 20_000
    yield World("5% impossible, else .9", np.where(u < 0.05, 0.0, 0.9))
    yield World("20% impossible, else .8", np.where(u < 0.2, 0.0, 0.8))
    yield World("15% certain, else .3", np.where(u < 0.15, 1.0, 0.3))
    yield World("all .02", np.full(10, 0.02))
    yield World("all .5", np.full(10, 0.5))


def small_metrics(n: int) -> list[CountMetric]:
    words = (f"pass@{n}", f"pass@{4 * n}", f"pass^{4 * n}")
    return [one for one in map(metric, words) if isinstance(one, CountMetric)]


def exact_table() -> str:
    """Coverage of pass@1 at one attempt per task, at the worst of 2,000 rates: every outcome."""
    truth = np.linspace(0.0005, 0.9995, 2_000)
    rows = []
    for tasks in (5, 10, 20, 50, 100, 400):
        passed = np.arange(tasks + 1)
        share = passed / tasks
        best = xlogy(passed, share) + xlog1py(tasks - passed, -share)
        at = xlogy(passed[:, None], truth) + xlog1py((tasks - passed)[:, None], -truth)
        deficit = best[:, None] - at
        chance = binom.pmf(passed[:, None], tasks, truth)
        now = [cutoff_for(0.95, min(c, tasks - c)) for c in passed.tolist()]
        worst = [
            float((chance * (deficit <= cutoff)).sum(axis=0).min())
            for cutoff in (2.5, np.array(now)[:, None])
        ]
        rows.append([tasks, *(f"{value:.3f}" for value in worst)])
    return markdown(("tasks", "cutoff 2.5 covers", "now covers"), rows)


def small_table(repetitions: int) -> tuple[str, float, float]:
    """Coverage at 5 and 10 tasks: the worst metric of every cell, with both cutoffs."""
    rows: list[list[object]] = []
    worst = [1.0, 1.0]
    chosen = (*list(worlds())[::2], *extreme_worlds())
    for index, (tasks, n, world) in enumerate(
        (tasks, n, world) for tasks, n in ((5, 4), (10, 1), (10, 2), (10, 4)) for world in chosen
    ):
        rng = np.random.default_rng([5, index])
        metrics = small_metrics(n)
        truths = [world.truth(one) for one in metrics]
        known: dict[tuple[int, ...], list[tuple[float, float]]] = {}
        tallies = [[Tally(), Tally()] for _ in metrics]
        for _ in range(repetitions):
            passes = tuple(sorted(rng.binomial(n, world.draw(rng, tasks)).tolist()))
            if passes not in known:
                cells = Outcomes.from_counts(n, list(passes)).histogram()
                admissible = Admissible.of(cells, metrics)
                known[passes] = [
                    admissible.ends(one, cutoff_for(0.95, rare))
                    for one in metrics
                    for rare in (np.inf, rare_tasks(cells, one))
                ]
            for i, truth in enumerate(truths):
                for j in (0, 1):
                    low, high = known[passes][2 * i + j]
                    tallies[i][j].add(low - 1e-6, high + 1e-6, truth)
        least = [min(both[j].coverage for both in tallies) for j in (0, 1)]
        widths = [float(np.mean([np.mean(both[j].widths) for both in tallies])) for j in (0, 1)]
        worst = [min(old, new) for old, new in zip(worst, least, strict=True)]
        numbers = [f"{value:.3f}" for value in (*least, *widths)]
        rows.append([tasks, world.name, n, *numbers])
        print(rows[-1], file=sys.stderr, flush=True)
    return markdown(SMALL_HEADER, rows), worst[0], worst[1]


def cluster_table(repetitions: int) -> tuple[str, float]:
    """Tasks of one cluster share most of their difficulty; sizes go with difficulty."""
    rows: list[list[object]] = []
    worst = 1.0
    for index, (count, size) in enumerate(((20, 5), (40, 5))):
        rng = np.random.default_rng([6, index])
        for word in ("pass^4", "pass^16"):
            chosen = metric(word)
            assert isinstance(chosen, CountMetric)
            # Truth over tasks of new clusters: the larger a cluster, the harder its tasks.
            levels = rng.beta(0.3, 0.3, 200_000)
            weights = np.where(levels < 0.5, size + 2.0, size - 2.0)
            own = np.clip(levels + rng.normal(0, 0.05, levels.size), 0, 1)
            truth = float(np.average(chosen.value_at_rate(own), weights=weights))
            plain, clustered = Tally(), Tally()
            for _ in range(repetitions):
                level = rng.beta(0.3, 0.3, count)
                sizes = np.where(level < 0.5, size + 2, size - 2)
                label = np.repeat(np.arange(count), sizes)
                rates = np.clip(level[label] + rng.normal(0, 0.05, label.size), 0, 1)
                outcomes = Outcomes.from_counts(
                    4, rng.binomial(4, rates), labels={"repo": [str(i) for i in label]}
                )
                for tally, terms in ((plain, Terms()), (clustered, Terms(cluster="repo"))):
                    views = Views.of(outcomes, [outcomes.histogram()], [chosen], terms)
                    tally.add(views.low(chosen), views.high(chosen), truth)
            worst = min(worst, clustered.coverage)
            cells = [f"{plain.coverage:.3f}", *clustered.text.split(" | ")]
            rows.append([count, f"{size - 2} or {size + 2}", word, *cells])
            print(rows[-1], file=sys.stderr, flush=True)
    return markdown(CLUSTER_HEADER, rows), worst


def small_page(repetitions: int) -> Iterator[str]:
    """Small suites and clusters as Markdown."""
    yield "## One attempt per task, exactly"
    yield ""
    yield (
        "With n = 1 the band of pass@1 is a likelihood interval of a proportion, so its coverage "
        "can be counted. At the worst of 2,000 true rates:"
    )
    yield ""
    yield exact_table()
    yield ""
    yield "## Small suites"
    yield ""
    yield (
        f"Made by `python benchmarks/forecast.py --small --repetitions {repetitions}` "
        f"({machine()}). 5 and 10 tasks, n attempts each; pass@n, pass@4n and pass^4n, of which "
        "the lowest coverage is shown and the mean width. The cutoff was 2.5 throughout in "
        "version 0.1.0; it now rises to 3 where one kind of task (never or always passed) was "
        f"hardly seen. Monte Carlo standard error at .95: {(0.0475 / repetitions) ** 0.5:.3f}."
    )
    yield ""
    text, before, now = small_table(repetitions)
    yield text
    yield ""
    yield f"Lowest coverage: {before:.3f} with the cutoff 2.5, {now:.3f} now."
    yield ""
    yield "## Clusters"
    yield ""
    yield (
        "Tasks of one repository share their difficulty up to .05; large repositories are harder. "
        f"4 attempts each, {repetitions // 2} repetitions. Tasks alone: the same band without "
        "`--cluster`."
    )
    yield ""
    text, worst = cluster_table(repetitions // 2)
    yield text
    yield ""
    yield f"Lowest coverage with `--cluster`: {worst:.3f}."


def main() -> None:
    parser = study_parser(__doc__, 500)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--real-repetitions", type=int, default=200)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real success rates")
    parser.add_argument("--small", action="store_true", help="only small suites and clusters")
    options = parser.parse_args()
    if options.small:
        publish("\n".join(small_page(options.repetitions)) + "\n", options.markdown)
        return
    if options.quick:
        options.repetitions = options.real_repetitions = 20
    made = page(options.repetitions, options.real_repetitions, options.data / REAL)
    text = "\n".join(made) + "\n"
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
