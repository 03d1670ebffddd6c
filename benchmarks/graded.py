"""Coverage of mean, worst@k and best@k: intervals of scores between 0 and 1.

    python benchmarks/graded.py [--repetitions 60] [--markdown FILE]

A task is a distribution of scores. About these tasks the distributions are fixed and only the
attempts are drawn again; about new tasks the distributions are drawn each time, too. Beside the
intervals stands a bootstrap of each task's attempts, which is what harnesses do with scores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from measuring import publish, study_parser
from passhat import Outcomes, estimate_all
from passhat.stats.estimate.metrics import BestOf, ScoreMetric, WorstOf
from passhat.stats.outcomes import Scores

Floats = npt.NDArray[np.float64]
K = 4
STEPS = 4
"""Scores are 0, 1/4, 1/2, 3/4 and 1."""
METRICS: dict[str, ScoreMetric] = {
    "mean": WorstOf(1),
    f"worst@{K}": WorstOf(K),
    f"best@{K}": BestOf(K),
}
NEW_TASKS_TIMES = 5
"""Intervals about new tasks are cheap: so many times the repetitions."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Tasks whose quality is drawn from a Beta; scores have five levels."""

    name: str
    tasks: int
    n: int
    quality: tuple[float, float]

    def draw_quality(self, rng: np.random.Generator, count: int) -> Floats:
        return rng.beta(*self.quality, count)

    def draw_scores(self, rng: np.random.Generator, quality: Floats) -> Floats:
        return rng.binomial(STEPS, quality[:, None], (len(quality), self.n)) / STEPS

    def truth(self, word: str, quality: Floats) -> float:
        """The mean over tasks of the area under P(S > t)^k, or under 1 - P(S <= t)^k."""
        above = np.asarray(binom.sf(np.arange(STEPS)[:, None], STEPS, quality), np.float64)
        k = METRICS[word].k
        values = 1 - (1 - above) ** k if word.startswith("best") else above**k
        return float(values.mean())


CELLS = (
    Cell("20 tasks x 4, Beta(2, 2)", 20, 4, (2, 2)),
    Cell("20 tasks x 8, Beta(.5, .5)", 20, 8, (0.5, 0.5)),
    Cell("50 tasks x 4, Beta(8, .8)", 50, 4, (8, 0.8)),
    Cell("50 tasks x 8, Beta(.3, 3)", 50, 8, (0.3, 3)),
    Cell("30 tasks x 6, all alike", 30, 6, (200, 200)),
)


def bootstrap(rng: np.random.Generator, scores: Floats, metric: ScoreMetric) -> tuple[float, float]:
    """The 95% percentile interval when the attempts of each task are drawn again."""
    values = []
    for _ in range(200):
        places = rng.integers(0, scores.shape[1], scores.shape)
        rows = np.take_along_axis(scores, places, axis=1)
        starts = np.arange(0, rows.size + 1, rows.shape[1])
        values.append(float(metric.values(Scores(rows.reshape(-1), starts)).mean()))
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


@dataclass(slots=True)
class Tally:
    """Misses on either side."""

    below: int = 0
    above: int = 0

    def add(self, low: float, high: float, truth: float) -> None:
        self.below += low > truth + 1e-9
        self.above += high < truth - 1e-9


def study(cell: Cell, repetitions: int, seed: int, *, about: str) -> Iterator[str]:
    """A line of the table for each metric."""
    repetitions *= 1 if about == "these tasks" else NEW_TASKS_TIMES
    rng = np.random.default_rng(seed)
    quality = cell.draw_quality(rng, cell.tasks)
    many = cell.draw_quality(rng, 20_000)
    is_fixed = about == "these tasks"
    truths = {word: cell.truth(word, quality if is_fixed else many) for word in METRICS}
    tallies = {word: (Tally(), Tally()) for word in METRICS}
    for _ in range(repetitions):
        quality = quality if is_fixed else cell.draw_quality(rng, cell.tasks)
        scores = cell.draw_scores(rng, quality)
        for word, found in zip(
            METRICS, estimate_all(Outcomes.from_scores(scores), METRICS, about=about), strict=True
        ):
            ours, theirs = tallies[word]
            ours.add(found.low or 0.0, found.high or 0.0, truths[word])
            if is_fixed:
                theirs.add(*bootstrap(rng, scores, METRICS[word]), truths[word])
    for word, (ours, theirs) in tallies.items():
        coverage = 1 - (ours.below + ours.above) / repetitions
        peer = "–"
        if is_fixed:
            peer = f"{1 - (theirs.below + theirs.above) / repetitions:.3f}"
        end = max(ours.below, ours.above) / repetitions
        print(about, cell.name, word, coverage, end, peer, file=sys.stderr, flush=True)
        yield (
            f"| {about} | {cell.name} | {word} | {repetitions} | {coverage:.3f} | {end:.3f} | "
            f"{peer} |"
        )


def page(repetitions: int) -> Iterator[str]:
    error = (0.95 * 0.05 / repetitions) ** 0.5
    yield "# Intervals of scores between 0 and 1, measured"
    yield ""
    yield (
        f"Made by `python benchmarks/graded.py --repetitions {repetitions}`. Nominal 95%: each end "
        f"may miss in .025. One Monte Carlo standard error of {repetitions} repetitions at .95: "
        f"{error:.3f}. Scores have five levels. The bootstrap draws the "
        "attempts of each task again."
    )
    yield ""
    yield "| about | tasks | metric | repetitions | coverage | larger miss of an end | bootstrap |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    for about, first in (("these tasks", 0), ("new tasks", 100)):
        for seed, cell in enumerate(CELLS, first):
            yield from study(cell, repetitions, seed, about=about)


def main() -> None:
    options = study_parser(__doc__, 60).parse_args()
    publish("\n".join(page(options.repetitions)) + "\n", options.markdown)


if __name__ == "__main__":
    main()
