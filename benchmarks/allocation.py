"""Attempts where they decide: do intervals hold with unequal n, and what is saved?

Tasks have fixed success rates. In every repetition an earlier run of 8 attempts per task is drawn,
`passhat plan --allocate` takes n per task from it (same total), and a new run is drawn with that n,
by the same agent or by one whose rates moved: half a logit up everywhere, and those of three tasks
in ten exchanged with each other. Recorded is

- whether the interval about these tasks holds the truth, and its width beside that of 8 each;
- whether the interval of the lift over the earlier run, on these tasks, holds the truth; the
  earlier run is the one that n was taken from, as in a gate;
- the saving: of the attempts that equal n needs for the same standard error, at the true rates.

    python benchmarks/allocation.py [--repetitions N] [--minutes M] [--markdown FILE]

The smallest n (k or 1.5 k) is the one that the allocator takes for the first earlier run of a
shape; choosing it anew each time costs ten times as long as everything else. With --minutes the
first round ends early, with as many repetitions of every cell as were made. Cells that read below
.95 then are repeated SECOND times, because the lowest of 88 cells is low by chance alone.
"""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from measuring import ROOT, machine, markdown, publish, study_parser
from passhat.examples import smollm2, transformer
from passhat.stats.compare.these_tasks import lift_on_these_tasks
from passhat.stats.estimate import metric
from passhat.stats.estimate.intervals.frontier import Calibration, holds
from passhat.stats.estimate.intervals.these_tasks import TheseTasks
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Outcomes
from passhat.stats.outcomes.cells import cells_of
from passhat.stats.plan import Allocator
from passhat.stats.plan.difficulty import binomial_chances
from passhat.stats.terms import Terms

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
EARLIER = 8
WIDTHS = 20
"""Repetitions in which widths are compared, too."""
DOUBT, SECOND = 0.95, 300
"""Coverage below which a cell is looked at again, and how often it is repeated then."""
SHARED = ROOT.parent / "shared" / "data"


def shapes(data: Path) -> Iterator[tuple[str, bool, Floats]]:
    """Name, whether it is real, and the success rates of its tasks."""
    model = smollm2()
    for temperature in (0.1, 0.3, 0.7):
        rates = model.rates[model.temperatures.index(temperature)]
        yield f"SmolLM2, T = {temperature:g}", True, rates
    stages = transformer()
    for stage in ("middle", "late"):
        own = stages[stage]
        near = int(np.argmin(np.abs(np.array(own.temperatures) - 0.4)))
        yield f"transformer, {stage}, T = {own.temperatures[near]:g}", True, own.rates[near]
    for name, file in (
        ("tau-bench airline (c/4)", "tau_bench_airline_gpt4o.csv"),
        ("HumanEval, CodeGen 16B", "humaneval_codegen16b_t08.csv.gz"),
    ):
        if (data / file).is_file():
            yield name, True, shares(data / file)
        else:
            print(f"left out, {file} is not in {data.name}: {name}")
    rng = np.random.default_rng(21)
    settled = np.concatenate([np.zeros(30), np.ones(30), rng.uniform(0, 1, 40)])
    yield "60% settled", False, settled
    yield "Beta(.5, .5)", False, rng.beta(0.5, 0.5, 100)
    yield "Beta(2, 1)", False, rng.beta(2, 1, 100)
    yield "10% never, 90% at .95", False, np.concatenate([np.zeros(10), np.full(90, 0.95)])


def shares(path: Path) -> Floats:
    """The share of attempts that passed, task by task."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    tasks: dict[str, list[int]] = {}
    for row in csv.DictReader(text.splitlines()):
        tasks.setdefault(row["task"], []).append(int(row["success"]))
    return np.array([np.mean(made) for made in tasks.values()])


def moved(rates: Floats) -> Floats:
    """The rates of a changed agent."""
    rng = np.random.default_rng(9)
    odds = np.clip(rates, 1e-9, 1 - 1e-9)
    changed = 1 / (1 + (1 - odds) / odds * np.exp(-0.5))
    changed = np.where((rates == 0) | (rates == 1), rates, changed)
    some = rng.choice(len(rates), round(0.3 * len(rates)), replace=False)
    changed[some] = changed[rng.permutation(some)]
    return np.asarray(changed, np.float64)


def spread(chosen: CountMetric, n: int, rates: Floats) -> Floats:
    """The variance of a task's estimate from n attempts."""
    u = chosen.values(np.full(n + 1, n), np.arange(n + 1))
    chance = binomial_chances(n, rates)
    return np.maximum(chance @ u**2 - (chance @ u) ** 2, 0)


@dataclass
class Cell:
    """One shape, metric and agent; everything is counted up over repetitions."""

    shape: str
    real: bool
    word: str
    rates: Floats
    new_rates: Floats
    floor: int | None = None
    held: list[bool] = field(default_factory=list)
    lift_held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    even_widths: list[float] = field(default_factory=list)
    savings: list[float] = field(default_factory=list)
    lowest: list[int] = field(default_factory=list)
    highest: list[int] = field(default_factory=list)

    @property
    def metric(self) -> CountMetric:
        chosen = metric(self.word)
        assert isinstance(chosen, CountMetric)
        return chosen

    @property
    def coverage(self) -> float:
        """The lower one of the interval's and the lift's."""
        return min(float(np.mean(self.held)), float(np.mean(self.lift_held)))

    @property
    def changed(self) -> bool:
        return self.new_rates is not self.rates

    def repeat(self, seed: int, *, even: bool) -> None:
        """One earlier run, its allocation, and a new run."""
        rng = np.random.default_rng([seed, *self.shape.encode(), *self.word.encode(), self.changed])
        chosen, tasks = self.metric, len(self.rates)
        earlier = Outcomes.from_counts(EARLIER, rng.binomial(EARLIER, self.rates))
        allocator = Allocator(earlier, chosen)
        total = EARLIER * tasks
        floors = allocator.floors(total)
        if self.floor is None and floors:
            self.floor = min(
                floors, key=lambda n: allocator.half_width(allocator.allocate(total, n))
            )
        if floors:
            floor = self.floor if self.floor in floors else floors[0]
            assert floor is not None
            n = allocator.allocate(total, floor)
        else:
            n = allocator.uniform(total)
        self.lowest.append(int(n.min()))
        self.highest.append(int(n.max()))
        self.savings.append(self._saving(n))
        c = rng.binomial(n, self.new_rates)
        truth = float(chosen.value_at_rate(self.new_rates).mean())
        self.held.append(self._holds(n, c, truth))
        if even:
            low, high = self._interval(n, c)
            self.widths.append(high - low)
            same = np.full(tasks, EARLIER)
            low, high = self._interval(same, rng.binomial(same, self.new_rates))
            self.even_widths.append(high - low)
        lift = truth - float(chosen.value_at_rate(self.rates).mean())
        ends = lift_on_these_tasks(earlier.histogram(), cells_of(n, c), chosen, 0.025)
        self.lift_held.append(ends.low <= lift <= ends.high)

    def _holds(self, n: Ints, c: Ints, truth: float) -> bool:
        """Whether the interval holds the truth: one end is enough to know."""
        chosen = self.metric
        parts = TheseTasks(cells_of(n, c), Terms()).statistics(
            lambda size, passes: chosen.values(np.full(len(passes), size), passes),
            chosen.value_at_rate,
            chosen.k,
        )
        return holds(parts, Calibration.at(Terms().level, len(n)), truth)

    def _interval(self, n: Ints, c: Ints) -> tuple[float, float]:
        cells = cells_of(n, c)
        low, high = TheseTasks(cells, Terms()).interval(self.metric) or (0.0, 1.0)
        point = float(self.metric.values(cells.n, cells.c) @ cells.tasks) / cells.size
        return min(low, point), max(high, point)

    def _saving(self, n: Ints) -> float:
        """1 - attempts made / attempts that equal n needs for the same variance, at the truth."""
        own = sum(
            float(spread(self.metric, size, self.rates[n == size]).sum())
            for size in np.unique(n).tolist()
        )
        sizes = np.arange(self.metric.k, 8 * EARLIER)
        equal = np.array([self._equal(size) for size in sizes.tolist()])
        needed = float(np.interp(-own, -equal, sizes))
        return 1 - float(n.sum()) / (needed * len(n))

    def _equal(self, n: int) -> float:
        key = (self.shape, self.word, n)
        if key not in _EQUAL:
            _EQUAL[key] = float(spread(self.metric, n, self.rates).sum())
        return _EQUAL[key]


_EQUAL: dict[tuple[str, str, int], float] = {}


def measured(data: Path, repetitions: int, minutes: float | None) -> tuple[list[Cell], float]:
    """All cells, repetition by repetition, until the time is over; and the first round's lowest."""
    cells = [
        Cell(name, real, word, rates, after)
        for name, real, rates in shapes(data)
        for word in ("pass^1", "pass^4")
        for after in (rates, moved(rates))
    ]
    began = time.monotonic()
    for repetition in range(repetitions):
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            break
        for cell in cells:
            cell.repeat(repetition, even=repetition < WIDTHS and not cell.changed)
    lowest = min(cell.coverage for cell in cells)
    for cell in cells:
        if cell.coverage < DOUBT:
            for repetition in range(len(cell.held), SECOND):
                cell.repeat(repetition, even=False)
    return cells, lowest


def page(cells: list[Cell], first: float) -> str:
    """The study as Markdown."""
    repetitions = min(len(cell.held) for cell in cells)
    rows = []
    for same, other in zip(cells[::2], cells[1::2], strict=True):
        gain = 1 - float(np.mean(same.widths)) / float(np.mean(same.even_widths))
        rows.append(
            (
                f"{same.shape}{'' if same.real else ' (simulated)'}",
                f"{len(same.rates):,}",
                same.word,
                f"{np.mean(same.lowest):.0f} to {np.mean(same.highest):.0f}",
                f"{np.mean(same.savings):.0%}",
                f"{np.min(same.savings):.0%}",
                f"{gain:+.0%}",
                f"{np.mean(same.held):.3f}",
                f"{np.mean(other.held):.3f}",
                f"{np.mean(same.lift_held):.3f}",
                f"{np.mean(other.lift_held):.3f}",
                ", ".join(sorted({f"{len(cell.held)}" for cell in (same, other)})),
            )
        )
    coverage = [float(np.mean(held)) for cell in cells for held in (cell.held, cell.lift_held)]
    real = [cell for cell in cells[::2] if cell.real and cell.word == "pass^4"]
    header = (
        *("rates", "tasks", "metric", "n", "saved", "least saved", "interval narrower by"),
        *("coverage", "agent changed", "lift", "lift, agent changed", "repetitions"),
    )
    error = float(np.sqrt(0.95 * 0.05 / repetitions))
    return f"""# Attempts where they decide, measured

Made by `python benchmarks/allocation.py`. In each of {repetitions} or more repetitions an earlier
run of {EARLIER} attempts per task is drawn, n per task is taken from it (same total), and a new run
is drawn. "Saved" is the share of the attempts that equal n would need for the same standard error,
at the true rates: the mean over earlier runs, and the least. Widths are those of the interval about
these tasks, beside {EARLIER} attempts at each. Coverage is that of the nominal 95% interval about
these tasks, and of the lift over the very run that n was taken from; for the same agent, and for
one whose rates moved (half a logit up, and three tasks in ten exchanged with each other). Standard
error of a cell at .95: {error:.3f}; cells that read below {DOUBT:g} after {repetitions} repetitions
were repeated {SECOND} times (standard error {np.sqrt(0.95 * 0.05 / SECOND):.3f}). {machine()}.

Lowest coverage of {len(coverage)} cells: {min(coverage):.3f} ({first:.3f} in the first round,
before low cells were repeated; only those were, so {first:.3f} is the cautious number); mean
{np.mean(coverage):.3f}. Mean
saving at pass^4 over the {len(real)} real shapes:
{np.mean([np.mean(cell.savings) for cell in real]):.0%}; the least of a shape is
{min(float(np.mean(cell.savings)) for cell in real):.0%}.

{markdown(header, rows)}
"""


def main() -> None:
    parser = study_parser(__doc__, 400)
    parser.add_argument("--minutes", type=float, help="end after so long")
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of the shared data")
    options = parser.parse_args()
    cells, lowest = measured(options.data, options.repetitions, options.minutes)
    publish(page(cells, lowest), options.markdown)


if __name__ == "__main__":
    main()
