"""Do intervals for new tasks hold the truth when tasks come in clusters? Its truth is known.

    python benchmarks/clusters.py                     # 200 repetitions, eight minutes of CPU
    python benchmarks/clusters.py --repetitions 40    # a rough look
    python benchmarks/clusters.py --markdown docs/benchmarks/clusters.md

A task has the success rate of its cluster with the chance that "alike" gives, else one of its own;
both come from the same prior (those of coverage.py), so that the truth is the prior's. Sizes of
clusters are equal, or half of the clusters are nine times as large as the others. Beside the
interval with clusters stands the one that does not know of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from coverage import PRIORS, Prior
from measuring import machine, markdown, publish, study_parser
from passhat import Outcomes, estimate_all
from passhat.stats.arrays import IntArray
from passhat.stats.compare.lift import LiftSample

CLUSTERS = (10, 30)
SIZES = {"5 each": (5, 5), "1 or 9": (1, 9)}
ALIKE = (0.5, 1.0)
ATTEMPTS = 8
WORDS = ("pass^4", "delta^2", "delta^4")
WAYS = ("clusters", "ignored")
ENDS = ("low", "high")


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric in one design, with its clusters or without: how often it held, how wide."""

    word: str
    way: str
    design: str
    clusters: int
    coverage: float
    width: float

    def __str__(self) -> str:
        return f"{self.word}, {self.design}: {self.coverage:.3f}"


def truth(word: str, prior: Prior) -> float:
    """What the interval should hold."""
    kind, k = word.split("^")
    power = prior.moment(int(k))
    return power - prior.moment(1) ** int(k) if kind == "delta" else power


def study(
    prior: Prior, clusters: int, sizes: str, alike: float, repetitions: int
) -> Iterator[Cell]:
    """Simulate one design from a seed of its own."""
    seed = [404, PRIORS.index(prior), clusters, list(SIZES).index(sizes), round(10 * alike)]
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(clusters), np.resize(SIZES[sizes], clusters))
    labels = {"cluster": [str(cluster) for cluster in member]}
    wanted = np.array([truth(word, prior) for word in WORDS])
    hits = np.zeros((repetitions, len(WAYS), len(WORDS)))
    widths = np.zeros_like(hits)
    for at in range(repetitions):
        shared = prior.draw(rng, (1, clusters))[0][member]
        own = prior.draw(rng, (1, member.size))[0]
        rates = np.where(rng.random(member.size) < alike, shared, own)
        passes = rng.binomial(ATTEMPTS, rates)
        outcomes = Outcomes.from_counts(ATTEMPTS, passes.tolist(), labels=labels)
        for row, label in enumerate(("cluster", None)):
            found = estimate_all(outcomes, WORDS, cluster=label)
            lows, highs = (np.array([getattr(one, end) for one in found]) for end in ENDS)
            hits[at, row] = (lows <= wanted) & (wanted <= highs)
            widths[at, row] = highs - lows
    design = f"{prior.name}, {clusters} clusters of {sizes}, alike {alike:g}"
    for (row, way), (column, word) in product(enumerate(WAYS), enumerate(WORDS)):
        hit, width = (float(kept[:, row, column].mean()) for kept in (hits, widths))
        yield Cell(word, way, design, clusters, hit, width)


def page(cells: list[Cell], repetitions: int) -> str:
    """The study as Markdown."""
    error = np.sqrt(0.95 * 0.05 / repetitions)
    known = sorted((c for c in cells if c.way == WAYS[0]), key=lambda cell: cell.coverage)
    parts = [
        "# Intervals for tasks in clusters, measured",
        "Made by `python benchmarks/clusters.py --markdown docs/benchmarks/clusters.md`. "
        f"{len(PRIORS)} distributions of success rates x {' or '.join(map(str, CLUSTERS))} "
        f"clusters x sizes {' and '.join(SIZES)} x tasks like their cluster with chance "
        f"{' or '.join(f'{one:g}' for one in ALIKE)}, {ATTEMPTS} attempts, {repetitions:,} suites "
        f"each, nominal 95%. Standard error of a cell at .95: {error:.3f}. {machine()}.",
        markdown(
            ("metric", "clusters", "mean coverage", "worst cell", "below .93", _widths()),
            [_row(word, way, cells) for word in WORDS for way in WAYS],
        ),
        '"Ignored" is the interval of `passhat report` without `--cluster`.',
        "Worst cells with clusters: " + "; ".join(map(str, known[:6])) + ".",
        correlated_table(repetitions),
    ]
    return "\n\n".join(parts) + "\n"


def correlated(clusters: int, sizes: str, repetitions: int) -> tuple[float, float, float]:
    """Coverage of an estimate and of a lift where large clusters differ from small ones.

    Every cluster passes or fails as a whole, more often if it is large; the lift of a cluster is
    +.5 or -.5, more often positive if it is large. Returns both coverages, and how often a rule at
    the truth is shown by mistake.
    """
    rng = np.random.default_rng([7, clusters, *sizes.encode()])
    many = _drawn_sizes(rng, 400_000, sizes)
    weights = many / many.sum()
    truth = float(weights @ np.where(many > 4, 0.75, 0.35))
    lift = float(weights @ np.where(many > 4, 0.2, -0.2))
    held = np.zeros(3)
    for _ in range(repetitions):
        size = _drawn_sizes(rng, clusters, sizes)
        large = size > 4
        passed = rng.random(clusters) < np.where(large, 0.75, 0.35)
        labels = np.repeat(np.arange(clusters), size).astype(str).tolist()
        passes = np.repeat(passed * ATTEMPTS, size)
        outcomes = Outcomes.from_counts(ATTEMPTS, passes, labels={"cluster": labels})
        (found,) = estimate_all(outcomes, ["pass^1"], cluster="cluster")
        assert found.low is not None
        assert found.high is not None
        better = rng.random(clusters) < np.where(large, 0.7, 0.3)
        d = np.repeat(np.where(better, 0.5, -0.5), size)
        interval = LiftSample.of(d, labels).interval(0.025)
        one_sided = LiftSample.of(d, labels).interval(0.05, "greater").low
        held += [
            found.low <= truth <= found.high,
            interval.low <= lift <= interval.high,
            one_sided > lift,
        ]
    estimate, of_lift, shown = (held / repetitions).tolist()
    return estimate, of_lift, shown


def _drawn_sizes(rng: np.random.Generator, clusters: int, sizes: str) -> IntArray:
    if sizes == "2 or 14":
        return np.where(rng.random(clusters) < 0.5, 2, 14)
    return np.maximum(1, np.round(rng.lognormal(1.2, 1, clusters))).astype(np.int64)


def correlated_table(repetitions: int) -> str:
    rows = []
    for clusters in (10, 20, 40):
        for sizes in ("2 or 14", "lognormal"):
            estimate, lift, shown = correlated(clusters, sizes, repetitions)
            rows.append((clusters, sizes, f"{estimate:.3f}", f"{lift:.3f}", f"{shown:.3f}"))
    text = (
        "Where size goes with difficulty: clusters pass or fail as a whole, large ones twice as "
        f"often; {repetitions:,} suites each. Coverage of `report --cluster` and of the lift of "
        "`compare --cluster`, and how often a one-sided 95% bound of the lift lies above the truth."
    )
    header = ("clusters", "sizes", "estimate", "lift", "one-sided miss of the lift")
    return f"{text}\n\n{markdown(header, rows)}"


def _widths() -> str:
    return f"width at {' / '.join(map(str, CLUSTERS))} clusters"


def _row(word: str, way: str, cells: list[Cell]) -> tuple[object, ...]:
    own = [cell for cell in cells if (cell.word, cell.way) == (word, way)]
    hit = np.array([cell.coverage for cell in own])
    widths = [np.mean([cell.width for cell in own if cell.clusters == g]) for g in CLUSTERS]
    return (
        word,
        way,
        f"{hit.mean():.3f}",
        f"{hit.min():.3f}",
        f"{(hit < 0.93).sum()} of {len(hit)}",
        " / ".join(f"{one:.3f}" for one in widths),
    )


def main() -> None:
    """Run the study and print it."""
    options = study_parser(__doc__, 200).parse_args()
    cells = [
        cell
        for prior in PRIORS
        for clusters in CLUSTERS
        for sizes in SIZES
        for alike in ALIKE
        for cell in study(prior, clusters, sizes, alike, options.repetitions)
    ]
    text = page(cells, options.repetitions)
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
