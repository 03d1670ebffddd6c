"""How fast is T*(k) on the histogram, and does the interval of a fitted T*(k) cover the truth?

Speed. The sweep of the study: 3 families x 8 spreads x 40 values of k, eval sets of 10,000 sampled
tasks. The naive way evaluates mean(1 - (1 - p)^k) over the tasks on a grid of temperatures, since
it may have several maxima, and searches around the best, one k at a time. A search without the grid
is timed too: it is quicker and may stop at the wrong maximum. All run in this process; CPU seconds
are counted, since machines are shared.

Coverage. Attempts are drawn from the transformer that ships with passhat, whose T*(k) is known;
tasks are drawn with replacement from its 1,500.

    python benchmarks/temperature.py [--markdown FILE]
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from measuring import machine, publish, study_parser
from passhat.examples import transformer
from passhat.stats.estimate import pass_at_k
from passhat.stats.temperature import TaskSet, best_temperatures, family
from passhat.stats.temperature.generator import log_normaliser
from passhat.stats.temperature.redraws import resample

Floats = npt.NDArray[np.float64]

TASKS = 10_000
KS = sorted({round(k) for k in np.geomspace(1, 65_536, 52)})[:40]
PARAMETERS = {
    "gaussian": [float(1 << i) for i in range(8)],
    "exponential": [float(1 << i) for i in range(8)],
    "power": [4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.5],
}
GRID = 60
COMPARED_FROM = 1e-6
"""The naive way is held against ours where the failure it minimises is above this."""


FIT_KS, FIT_TASKS, FIT_ATTEMPTS, REPETITIONS = (2, 4, 8, 16), 200, 16, 400
LADDERS = ((0.1, 0.2, 0.4, 0.57, 0.8, 1.13, 1.6), (0.2, 0.4, 0.8, 1.13))


def naive(tasks: Floats, k: int, *, grid: bool) -> float:
    """T*(k) by maximising the value over all tasks."""

    def minus_value(log_t: float) -> float:
        t = np.exp(log_t)
        p = np.exp(-(tasks**2) / (2 * t) - log_normaliser(np.asarray(t)))
        return -float(np.mean(1 - (1 - p) ** k))

    low, high = np.log(0.02), 2 * np.log(max(np.abs(tasks).max(), 1)) + 0.5
    if grid:
        points = np.linspace(low, high, GRID)
        at = int(np.argmin([minus_value(point) for point in points]))
        low, high = points[max(at - 1, 0)], points[min(at + 1, GRID - 1)]
    found = minimize_scalar(
        minus_value, bounds=(low, high), method="bounded", options={"xatol": 1e-8}
    )
    return float(np.exp(found.x))


def drawn(name: str, parameter: float) -> tuple[Floats, TaskSet]:
    """The same eval set, task by task and as a histogram."""
    rng = np.random.default_rng([7, *name.encode(), int(100 * parameter)])
    population = family(name, parameter)
    tasks = rng.choice(population.difficulty, size=TASKS, p=population.weight)
    return tasks, TaskSet.of(tasks.astype(np.int64), population.name)


@dataclass(frozen=True)
class Row:
    """CPU seconds of the three ways, and how far the naive ones are from ours."""

    name: str
    with_grid: float
    search_only: float
    ours: float
    wrong_with_grid: int
    wrong_search_only: int
    compared: int


def measured(name: str) -> Row:
    """One family."""
    sets = [drawn(name, parameter) for parameter in PARAMETERS[name]]
    start = time.process_time()
    ours = [best_temperatures(histogram, KS) for _, histogram in sets]
    seconds = [time.process_time() - start]
    wrong = []
    for grid in (True, False):
        start = time.process_time()
        theirs = [[naive(tasks, k, grid=grid) for k in KS] for tasks, _ in sets]
        seconds.append(time.process_time() - start)
        apart = [
            abs(np.log(other / best.temperature))
            for row, others in zip(ours, theirs, strict=True)
            for best, other in zip(row, others, strict=True)
            if best.temperature > 0 and best.value < 1 - COMPARED_FROM
        ]
        wrong.append(sum(value > 1e-3 for value in apart))
    return Row(name, seconds[1], seconds[2], seconds[0], wrong[0], wrong[1], len(apart))


def table() -> Iterator[str]:
    """The study as Markdown."""
    yield "# Temperature: speed and coverage"
    yield ""
    yield "## How fast is T*(k) of the toy?"
    yield ""
    yield (
        f"Made by `python benchmarks/temperature.py`. 8 eval sets of {TASKS:,} tasks for each "
        f"family, {len(KS)} values of k from {KS[0]} to {KS[-1]:,}. Naive: pass@k over all tasks "
        f"on a grid of {GRID} temperatures, then a search around the best, one k at a time. Search "
        "only: the same without the grid, so that it may stop at the wrong maximum. passhat: the "
        "stationarity condition on the histogram of |c|, all k at once. CPU seconds; "
        f"{machine()}. Apart: T* differs by more than 0.1%, among the optima whose failure "
        f"probability is above {COMPARED_FROM:g}; below, the value is flat and searching it finds "
        "nothing."
    )
    yield ""
    yield (
        "| family | naive | search only | passhat | naive / passhat | search only / passhat "
        "| apart |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
    rows = [measured(name) for name in PARAMETERS]
    for row in rows:
        yield _line(
            row.name,
            row.with_grid,
            row.search_only,
            row.ours,
            f"{row.wrong_with_grid} and {row.wrong_search_only} of {row.compared}",
        )
    yield _line(
        "**all**",
        sum(row.with_grid for row in rows),
        sum(row.search_only for row in rows),
        sum(row.ours for row in rows),
        "",
    )


def _line(name: str, slow: float, search: float, quick: float, apart: str) -> str:
    return (
        f"| {name} | {slow:.1f} | {search:.1f} | {quick:.3f} | {slow / quick:.0f} "
        f"| {search / quick:.0f} | {apart} |"
    )


def covered(stage: str, ladder: tuple[float, ...]) -> tuple[Floats, Floats]:
    """The share of fits whose interval holds the truth, and the width of ln T*, for every k."""
    whole = transformer()[stage]
    rates = whole.at(*ladder)
    log_t = np.log(rates.temperatures)
    truth = np.log([whole.best_temperature(k) for k in FIT_KS])
    rng = np.random.default_rng([11, len(ladder), *stage.encode()])
    hits, widths = [], []
    for _ in range(REPETITIONS):
        chosen = rng.integers(0, len(rates.tasks), FIT_TASKS)
        passes = rng.binomial(FIT_ATTEMPTS, rates.rates[:, chosen])
        ks = np.array(FIT_KS)[:, None]
        values = np.stack([np.asarray(pass_at_k(FIT_ATTEMPTS, row, ks)) for row in passes])
        _, _, redrawn = resample(values, draws=500).tops(log_t, 0)
        low, high = np.quantile(redrawn, [0.025, 0.975], axis=0)
        hits.append((low - 1e-9 <= truth) & (truth <= high + 1e-9))
        widths.append(high - low)
    return np.mean(hits, axis=0), np.exp(np.mean(widths, axis=0))


def coverage_table() -> Iterator[str]:
    """The second study as Markdown."""
    yield ""
    yield "## Does the interval of T*(k) cover the truth?"
    yield ""
    yield (
        f"{FIT_TASKS} tasks drawn from the transformer that ships with passhat, {FIT_ATTEMPTS} "
        f"attempts each, {REPETITIONS} repetitions (standard error .011 at .95). Nominal 95%. In "
        "brackets: the upper end over the lower end, on average. What a fit of 200 tasks knows of "
        "T* is a factor of two to four between the ends."
    )
    yield ""
    yield "| model | temperatures | " + " | ".join(f"k = {k}" for k in FIT_KS) + " |"
    yield "| --- | --- |" + " --- |" * len(FIT_KS)
    for stage in ("early", "middle", "late"):
        for ladder in LADDERS:
            hits, widths = covered(stage, ladder)
            cells = (f"{hit:.3f} ({width:.1f})" for hit, width in zip(hits, widths, strict=True))
            tried = f"{len(ladder)}: {min(ladder)} to {max(ladder)}"
            yield f"| {stage} | {tried} | {' | '.join(cells)} |"


def main() -> None:
    options = study_parser(__doc__).parse_args()
    text = "\n".join([*table(), *coverage_table()]) + "\n"
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
