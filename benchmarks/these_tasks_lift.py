"""The lift on these tasks at fixed success rates: coverage, misses and width.

    python benchmarks/these_tasks_lift.py [--repetitions 100] [--markdown FILE]

A re-run keeps the tasks and their rates, so the rates are fixed and only the attempts are drawn
again. Named cells first (those of the audit among them), then a random search over tasks, attempts,
k, both metrics and up to three rates for each agent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from measuring import publish, study_parser
from passhat.stats.compare.lift import LiftSample
from passhat.stats.compare.these_tasks import lift_on_these_tasks
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, Histogram, Outcomes

Floats = npt.NDArray[np.float64]
RATES = np.array([0, 1, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
SEARCHED = 25


@dataclass(frozen=True, slots=True)
class Cell:
    """Fixed rates of both agents, and what is asked of them."""

    name: str
    a: Floats
    b: Floats
    n: int
    word: str


def named() -> Iterator[Cell]:
    spread = np.linspace(0.02, 0.99, 30)
    six = spread.copy()
    six[::5] = 0.0
    half = np.repeat([0.3, 1.0], 50)
    one = np.r_[np.ones(29), 0.5]
    yield Cell("30 from .02 to .99, unchanged", spread, spread, 8, "pass^1")
    yield Cell("six of them broken", spread, six, 8, "pass^1")
    yield Cell("30 from .02 to .99, unchanged", spread, spread, 8, "pass^4")
    yield Cell("24 at .95, unchanged", np.full(24, 0.95), np.full(24, 0.95), 4, "pass^4")
    yield Cell("50 at .3, 50 at 1", half, half, 4, "pass@4")
    yield Cell("20 at .3", np.full(20, 0.3), np.full(20, 0.3), 4, "pass^4")
    yield Cell("29 at 1, one at .5", one, one, 4, "pass@4")
    yield Cell("30 at .5, down to .35", np.full(30, 0.5), np.full(30, 0.35), 8, "pass^1")


def searched(rng: np.random.Generator) -> Iterator[Cell]:
    for _ in range(SEARCHED):
        tasks, n = int(rng.choice([5, 10, 20, 30, 60, 100])), int(rng.choice([2, 3, 4, 8]))
        k, sign = int(rng.integers(1, n + 1)), str(rng.choice(["^", "@"]))
        kinds = rng.choice(3, tasks, p=rng.dirichlet([0.7] * 3))
        a = rng.choice(RATES, 3)[kinds]
        b = a if rng.random() < 0.4 else rng.choice(RATES, 3)[kinds]
        yield Cell(f"{tasks} tasks", a, b, n, f"pass{sign}{k}")


def cells_of(rng: np.random.Generator, rates: Floats, n: int) -> tuple[Histogram, Floats]:
    passes = rng.binomial(n, rates)
    cells = Outcomes.from_counts(n, passes).histogram(Completion.AS_FAILED)
    return cells, passes.astype(np.float64)


def study(cell: Cell, repetitions: int, seed: int) -> tuple[float, float, float, float]:
    """Coverage, the larger miss, the mean width, and that of the lift on new tasks."""
    rng = np.random.default_rng(seed)
    chosen = metric(cell.word)
    assert isinstance(chosen, CountMetric)
    truth = float((chosen.value_at_rate(cell.b) - chosen.value_at_rate(cell.a)).mean())
    value = chosen.values(np.full(cell.n + 1, cell.n), np.arange(cell.n + 1))
    missed, widths = np.zeros(2), np.zeros(2)
    for at in range(repetitions):
        (a, c_a), (b, c_b) = (cells_of(rng, rates, cell.n) for rates in (cell.a, cell.b))
        interval = lift_on_these_tasks(a, b, chosen, 0.025)
        missed += [interval.low > truth + 1e-9, interval.high < truth - 1e-9]
        widths[0] += interval.high - interval.low
        if at % 10 == 0:
            new = LiftSample.of(value[c_b] - value[c_a]).interval(0.025)
            widths[1] += 10 * (new.high - new.low)
    low, high = (missed / repetitions).tolist()
    here, new_tasks = (widths / repetitions).tolist()
    return 1 - low - high, max(low, high), here, new_tasks


def page(repetitions: int) -> Iterator[str]:
    error = (0.95 * 0.05 / repetitions) ** 0.5
    yield "# The lift on these tasks at fixed success rates, measured"
    yield ""
    yield (
        f"Made by `python benchmarks/these_tasks_lift.py --repetitions {repetitions}`. Nominal "
        f"95%; one Monte Carlo standard error of a cell at .95: {error:.3f}. Beside the width "
        "is that of the lift on new tasks from the same data."
    )
    yield ""
    yield "| rates | n | metric | coverage | larger miss | width | width, new tasks |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    search = []
    for seed, cell in enumerate([*named(), *searched(np.random.default_rng(12))]):
        coverage, miss, width, new = study(cell, repetitions, seed)
        print(cell.name, cell.n, cell.word, coverage, file=sys.stderr, flush=True)
        if cell.name.endswith("tasks"):
            search.append((coverage, cell))
            continue
        yield (
            f"| {cell.name} | {cell.n} | {cell.word} | {coverage:.3f} | {miss:.3f} | {width:.3f} | "
            f"{new:.3f} |"
        )
    worst, where = min(search, key=lambda pair: pair[0])
    mean = float(np.mean([coverage for coverage, _ in search]))
    yield ""
    yield (
        f"Random search, {len(search)} cells: mean coverage {mean:.3f}, worst {worst:.3f} "
        f"({where.name}, n = {where.n}, {where.word})."
    )


def main() -> None:
    options = study_parser(__doc__, 100).parse_args()
    publish("\n".join(page(options.repetitions)) + "\n", options.markdown)


if __name__ == "__main__":
    main()
