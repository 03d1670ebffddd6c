"""Coverage of the metrics that are no plain mean of counts: delta^k and window^w.

    python benchmarks/other_metrics.py [--repetitions 100] [--markdown FILE]

About these tasks the rates of all tasks are fixed and only the attempts are drawn again. About new
tasks the rates are drawn from a distribution each time, and the truth is its own. ``window^w``
depends on the number of attempts, and so does its truth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from measuring import publish, study_parser
from passhat import Outcomes, estimate_all
from passhat.stats.estimate.metrics.ordered import ShuffledWindow

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator], Floats]


@dataclass(frozen=True, slots=True)
class Design:
    """Where the rates come from: one fixed suite, or a distribution of tasks."""

    name: str
    n: int
    draw: Draw
    population: Floats | None = None  # many rates of the distribution; None for fixed rates

    @property
    def about(self) -> str:
        return "these tasks" if self.population is None else "new tasks"


def fixed() -> Iterator[Design]:
    for name, n, rates in (
        ("10 at .3, 10 at 1", 4, np.repeat([0.3, 1.0], 10)),
        ("15 at .5", 4, np.full(15, 0.5)),
        ("20 from .05 to .95", 8, np.linspace(0.05, 0.95, 20)),
        ("18 always, 2 never", 4, np.r_[np.ones(18), 0.0, 0.0]),
        ("50 at .95", 4, np.full(50, 0.95)),
        ("60 at .02, 4 at .9", 4, np.r_[np.full(60, 0.02), np.full(4, 0.9)]),
    ):
        yield Design(name, n, lambda _rng, rates=rates: rates)  # type: ignore[misc]


def drawn() -> Iterator[Design]:
    rng = np.random.default_rng(0)
    for name, tasks, a, b in (
        ("20 of Beta(.5, .5)", 20, 0.5, 0.5),
        ("20 of Beta(2, 2)", 20, 2.0, 2.0),
        ("50 of Beta(8, .8)", 50, 8.0, 0.8),
        ("50 of Beta(.3, 6)", 50, 0.3, 6.0),
        ("30 of Beta(20, 20)", 30, 20.0, 20.0),
    ):

        def draw(source: np.random.Generator, a: float = a, b: float = b, m: int = tasks) -> Floats:
            return source.beta(a, b, m)

        yield Design(name, 4, draw, rng.beta(a, b, 400_000))


def truths(rates: Floats, n: int) -> dict[str, float]:
    """The true values of the metrics at these rates."""
    values = {f"delta^{k}": float(np.mean(rates**k) - np.mean(rates) ** k) for k in sorted({2, n})}
    return values | {"window^2": float(ShuffledWindow(2, n).value_at_rate(rates).mean())}


def study(design: Design, repetitions: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """For each metric: coverage, the larger miss, and the mean width."""
    rng = np.random.default_rng(seed)
    rates = design.draw(rng)
    wanted = truths(rates if design.population is None else design.population, design.n)
    missed = {word: np.zeros(2) for word in wanted}
    widths = dict.fromkeys(wanted, 0.0)
    for _ in range(repetitions):
        rates = design.draw(rng)
        rows = (rng.random((len(rates), design.n)) < rates[:, None]).astype(int)
        for found in estimate_all(Outcomes.from_matrix(rows), list(wanted), about=design.about):
            assert found.low is not None
            assert found.high is not None
            word = found.metric.name
            truth = wanted[word]
            missed[word] += [found.low > truth + 1e-9, found.high < truth - 1e-9]
            widths[word] += found.high - found.low
    return {
        word: (
            1 - float(missed[word].sum()) / repetitions,
            float(missed[word].max()) / repetitions,
            widths[word] / repetitions,
        )
        for word in wanted
    }


def page(repetitions: int) -> Iterator[str]:
    error = (0.95 * 0.05 / repetitions) ** 0.5
    yield "# Intervals of delta^k and window^w, measured"
    yield ""
    yield (
        f"Made by `python benchmarks/other_metrics.py --repetitions {repetitions}`. Nominal 95%; "
        f"one Monte Carlo standard error of a cell at .95: {error:.3f}. Intervals about these "
        "tasks are drawn at fixed rates, those about new tasks with new rates each time."
    )
    yield ""
    yield "| about | rates | n | metric | coverage | larger miss | width |"
    yield "| --- | --- | ---: | --- | ---: | ---: | ---: |"
    worst = 1.0
    for seed, design in enumerate([*fixed(), *drawn()]):
        for word, (coverage, miss, width) in study(design, repetitions, seed).items():
            print(design.about, design.name, word, coverage, file=sys.stderr, flush=True)
            worst = min(worst, coverage)
            yield (
                f"| {design.about} | {design.name} | {design.n} | {word} | {coverage:.3f} | "
                f"{miss:.3f} | {width:.3f} |"
            )
    yield ""
    yield f"Worst cell: {worst:.3f}."


def main() -> None:
    options = study_parser(__doc__, 100).parse_args()
    publish("\n".join(page(options.repetitions)) + "\n", options.markdown)


if __name__ == "__main__":
    main()
