"""How fast is T*(k) on the histogram, and does the interval of a fitted T*(k) cover the truth?

Speed. The sweep of the study: 3 families x 8 spreads x 40 values of k, eval sets of 10,000 sampled
tasks. The naive way evaluates mean(1 - (1 - p)^k) over the tasks on a grid of temperatures, since
it may have several maxima, and searches around the best, one k at a time. A search without the grid
is timed too: it is quicker and may stop at the wrong maximum. All run in this process; CPU seconds
are counted, since machines are shared.

Coverage. Attempts are drawn from the models whose success rates ship with passhat, so that T*(k)
is known; tasks are drawn with replacement. The interval of version 0.1.0, a parabola through all
temperatures within a factor of two of the best, is measured beside the present one.

Shares. How often is the temperature with the largest share of redraws truly the best of those
tried?

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
from passhat.examples import smollm2, transformer
from passhat.stats.estimate import pass_at_k
from passhat.stats.temperature import KnownRates, TaskSet, best_temperatures, family
from passhat.stats.temperature.optimum import log_normalizer
from passhat.stats.temperature.peak import peaks
from passhat.stats.temperature.rankings import redraw_tasks

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


REPETITIONS = 300
SEVEN, FOUR = (0.1, 0.2, 0.4, 0.57, 0.8, 1.13, 1.6), (0.2, 0.4, 0.8, 1.13)
STEPS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.35, 1.75)
SHARE_SIZES = ((30, 5), (100, 16), (400, 64))


@dataclass(frozen=True)
class Design:
    """A model, the temperatures tried, tasks x attempts, and the k asked for."""

    model: str
    ladder: tuple[float, ...]
    tasks: int
    attempts: int
    ks: tuple[int, ...]


DESIGNS = (
    *(
        Design(stage, ladder, *size, (2, 4, 8, 16))
        for stage in ("early", "middle", "late")
        for ladder in (SEVEN, FOUR)
        for size in ((200, 16), (1500, 200))
    ),
    *(Design("SmolLM2", ladder, 100, 16, (2, 4, 8, 16)) for ladder in (STEPS, FOUR)),
    *(Design("SmolLM2", ladder, 590, 1024, (2, 8, 64, 512)) for ladder in (STEPS, FOUR)),
)


def naive(tasks: Floats, k: int, *, grid: bool) -> float:
    """T*(k) by maximising the value over all tasks."""

    def minus_value(log_t: float) -> float:
        t = np.exp(log_t)
        p = np.exp(-(tasks**2) / (2 * t) - log_normalizer(np.asarray(t)))
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


def model(name: str) -> KnownRates:
    """The success rates of a model that ships with passhat."""
    return smollm2() if name == "SmolLM2" else transformer()[name]


def within_factor_two(log_t: Floats, curves: Floats) -> Floats:
    """ln T* as version 0.1.0 had it: least squares over the temperatures within a factor of 2."""
    tops = np.empty(curves.shape[:-1])
    best = curves.argmax(axis=-1)
    for rung in np.unique(best):
        near = np.flatnonzero(np.abs(log_t - log_t[rung]) <= np.log(2) + 1e-9)
        first, last = min(int(near[0]), rung - 1), max(int(near[-1]), rung + 1)
        first, last = max(first, 0), min(last, len(log_t) - 1)
        if last - first < 2:
            first, last = (0, 2) if first == 0 else (last - 2, last)
        x = log_t[first : last + 1]
        own = curves[best == rung][:, first : last + 1]
        bend, tilt, _ = np.linalg.pinv(np.vander(x - log_t[rung], 3)) @ own.T
        with np.errstate(divide="ignore", invalid="ignore"):
            top = np.where(bend < 0, -tilt / (2 * bend), 0.0)
        tops[best == rung] = np.clip(log_t[rung] + top, x[0], x[-1])
    return tops


def drawn_values(rates: KnownRates, design: Design, rng: np.random.Generator) -> Floats:
    """Unbiased pass@k (temperatures x k x tasks) of fresh attempts at a sample of tasks."""
    chosen = rng.integers(0, len(rates.tasks), design.tasks)
    passes = rng.binomial(design.attempts, rates.rates[:, chosen])
    ks = np.array(design.ks)[:, None]
    return np.stack([np.asarray(pass_at_k(design.attempts, row, ks)) for row in passes])


@dataclass(frozen=True)
class Coverage:
    """For every k: the share of intervals that hold the truth, and upper end over lower end."""

    hits: Floats
    ratio: Floats

    @classmethod
    def of(cls, ends: list[tuple[Floats, Floats]], truth: Floats) -> Coverage:
        low, high = (np.array(side) for side in zip(*ends, strict=True))
        inside = (low * (1 - 1e-9) <= truth) & (truth <= high * (1 + 1e-9))
        return cls(inside.mean(axis=0), np.exp(np.log(high / low).mean(axis=0)))

    def cells(self) -> list[str]:
        return [
            f"{hit:.3f} ({ratio:.2f})" for hit, ratio in zip(self.hits, self.ratio, strict=True)
        ]


def covered(design: Design) -> tuple[Coverage, Coverage]:
    """The coverage of T*(k) by version 0.1.0 and now."""
    whole = model(design.model)
    rates = whole.at(*design.ladder)
    temperatures = np.array(rates.temperatures)
    truth = np.array([whole.best_temperature(k) for k in design.ks])
    rng = np.random.default_rng([11, len(design.ladder), design.tasks, *design.model.encode()])
    old, new = [], []
    for _ in range(REPETITIONS):
        values = drawn_values(rates, design, rng)
        curves = redraw_tasks(values, draws=400).drawn.transpose(0, 2, 1)
        tops = np.exp(within_factor_two(np.log(temperatures), curves))
        old.append((np.quantile(tops, 0.025, axis=0), np.quantile(tops, 0.975, axis=0)))
        peak = peaks(temperatures, curves)
        new.append((np.quantile(peak.low, 0.025, axis=0), np.quantile(peak.high, 0.975, axis=0)))
    return Coverage.of(old, truth), Coverage.of(new, truth)


def coverage_table() -> Iterator[str]:
    """The second study as Markdown."""
    yield ""
    yield "## Does the interval of T*(k) cover the truth?"
    yield ""
    yield (
        f"Tasks and attempts drawn from the models that ship with passhat, {REPETITIONS} "
        "repetitions (standard error .013 at .95). Nominal 95%. In brackets: the upper end over "
        "the lower end, on average. Four k each: 2, 4, 8, 16 (590 x 1,024: 2, 8, 64, 512). 0.1.0: "
        "a parabola through all temperatures within a factor of two of the best."
    )
    yield ""
    yield "| model | temperatures | tasks x attempts | method | k | k | k | k |"
    yield "| --- | --- | --- | --- |" + " --- |" * 4
    worst = [1.0, 1.0]
    for design in DESIGNS:
        tried = f"{len(design.ladder)}: {min(design.ladder)} to {max(design.ladder)}"
        size = f"{design.tasks:,} x {design.attempts:,}"
        for at, (name, result) in enumerate(zip(("0.1.0", "now"), covered(design), strict=True)):
            worst[at] = min(worst[at], float(result.hits.min()))
            yield f"| {design.model} | {tried} | {size} | {name} | {' | '.join(result.cells())} |"
    yield ""
    yield f"Worst cell: {worst[0]:.3f} by version 0.1.0, {worst[1]:.3f} now."


def shares_table() -> Iterator[str]:
    """The third study as Markdown."""
    yield ""
    yield "## Is a share of redraws the chance of being right?"
    yield ""
    yield (
        "The temperature with the largest share of redraws, and how often it is truly the best of "
        f"those tried; SmolLM2 and the early transformer, 8 and 7 temperatures, k = 1, 2, 4, "
        f"{REPETITIONS} repetitions each. It is not: with few tasks a share is too sure of itself."
    )
    yield ""
    yield "| tasks x attempts | share up to .5 | .5 to .7 | .7 to .85 | above .85 |"
    yield "| --- | --- | --- | --- | --- |"
    for tasks, attempts in SHARE_SIZES:
        largest, right = [], []
        for name, ladder in (("SmolLM2", STEPS), ("early", SEVEN)):
            design = Design(name, ladder, tasks, attempts, (1, 2, 4))
            rates = model(name).at(*ladder)
            truth = np.stack([rates.pass_at_k(k) for k in design.ks]).argmax(axis=1)
            rng = np.random.default_rng([13, tasks, *name.encode()])
            for _ in range(REPETITIONS):
                shares = redraw_tasks(drawn_values(rates, design, rng), draws=400).shares_best()
                largest.append(shares.max(axis=0))
                right.append(shares.argmax(axis=0) == truth)
        share, hit = np.concatenate(largest), np.concatenate(right)
        bins = np.digitize(share, [0.5, 0.7, 0.85])
        cells = [
            f"{own.mean():.2f} of {len(own):,}" if len(own) else "–"
            for own in (hit[bins == b] for b in range(4))
        ]
        yield f"| {tasks:,} x {attempts} | {' | '.join(cells)} |"


def main() -> None:
    options = study_parser(__doc__).parse_args()
    text = "\n".join([*table(), *coverage_table(), *shares_table()]) + "\n"
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
