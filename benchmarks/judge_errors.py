"""Do corrected intervals hold the truth when the judge is sometimes wrong? Its errors are known.

    python benchmarks/judge_errors.py                     # 200 repetitions, 6 minutes of CPU
    python benchmarks/judge_errors.py --repetitions 40    # a rough look
    python benchmarks/judge_errors.py --markdown docs/benchmarks/judge_errors.md

Suites of tasks with success rates from a prior; a judge whose errors are alike for all attempts,
vary by task, or are made always at some tasks; labels of some attempts without an error. The
interval without correction, the one by whole tasks and the one by error rates stand beside
truescore's PPI++ on the values of the same whole tasks, where truescore is installed. Error rates
are tried on every third suite only: they take twice the time of all others together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from measuring import machine, markdown, publish, study_parser
from passhat import Outcomes, estimate
from passhat.errors import PasshatError
from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.estimate import metric
from passhat.stats.labels.correction import correct
from passhat.stats.labels.error_rates import ErrorPair
from passhat.stats.labels.judge_error import alikeness
from passhat.stats.outcomes.labels import LabelCounts

try:
    from truescore import ppi_estimate
except ImportError:
    ppi_estimate = None

Draw = Callable[[np.random.Generator, int], FloatArray]
PRIORS: dict[str, Draw] = {
    "80% at .98, else uniform": lambda rng, m: np.where(rng.random(m) < 0.8, 0.98, rng.random(m)),
    "Beta(8, .8)": lambda rng, m: rng.beta(8, 0.8, m),
    "0 or 1, 50/50": lambda rng, m: (rng.random(m) < 0.5).astype(float),
    "0 or 1, 10/90": lambda rng, m: (rng.random(m) < 0.9).astype(float),
    "uniform": lambda rng, m: rng.random(m),
    "Beta(.5, 3)": lambda rng, m: rng.beta(0.5, 3, m),
    "all at 1": lambda rng, m: 1.0 + 0 * rng.random(m),
}
FEW_PRIORS = ("80% at .98, else uniform", "0 or 1, 10/90", "uniform")
"""Distributions in designs other than the main one."""
KINDS = ("alike", "by task", "always wrong at some")
WAYS = ("judge alone", "whole tasks", "errors", "truescore")
_BETA_SIZE = 2.0


@dataclass(frozen=True, slots=True)
class Design:
    """Tasks, attempts (fewest and most), labels, error rate, metric."""

    labels: int
    error: float = 0.05
    word: str = "pass^8"
    tasks: int = 50
    attempts: tuple[int, int] = (8, 8)

    def __str__(self) -> str:
        low, high = self.attempts
        n = f"{low}" if low == high else f"{low} to {high}"
        return f"{self.tasks} x {n}, {self.labels} labels, errors {self.error:g}, {self.word}"


MAIN = Design(200)
_EVERY = 3
"""Suites for one on which error rates are tried."""
_MOVED = 0.1
"""A correction by error rates that errs by more, as errors are not alike, should be noticed."""
DESIGNS = (
    MAIN,
    Design(200, 0.15),
    Design(50),
    Design(100, 0.15, "pass^2"),
    Design(400, 0.1, "pass^4", 100, (4, 12)),
)


@dataclass(slots=True)
class Tally:
    """How often an interval held the truth, its mean width, and how often there was none."""

    hits: int = 0
    width: float = 0.0
    count: int = 0
    refused: int = 0
    warned: int = 0

    def add(self, low: float, high: float, truth: float) -> None:
        self.count += 1
        self.hits += low - 1e-9 <= truth <= high + 1e-9
        self.width += min(high, 1.0) - max(low, 0.0)

    @property
    def coverage(self) -> float:
        return self.hits / self.count if self.count else float("nan")

    @property
    def mean_width(self) -> float:
        return self.width / self.count if self.count else float("nan")


@dataclass(slots=True)
class Cell:
    """A design with a prior and a kind of error."""

    design: Design
    prior: str
    kind: str
    moved: float
    ways: dict[str, Tally] = field(default_factory=lambda: {way: Tally() for way in WAYS})

    @property
    def noticed(self) -> float:
        """The share of runs in which a correction by error rates was refused or warned about."""
        tally = self.ways["errors"]
        return (tally.refused + tally.warned) / (tally.refused + tally.count)

    @property
    def ratio(self) -> dict[str, float]:
        base = self.ways["judge alone"].mean_width
        return {way: tally.mean_width / base for way, tally in self.ways.items()}


def error_rates(
    kind: str, error: float, tasks: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """False passes and false failures of each task."""
    if kind == "alike":
        return np.full(tasks, error), np.full(tasks, error)
    if kind == "by task":
        a, b = (rng.beta(error * _BETA_SIZE, (1 - error) * _BETA_SIZE, tasks) for _ in range(2))
        return a, b
    wrong = (rng.random(tasks) < error).astype(float)
    return wrong, wrong


def simulate(
    design: Design, prior: str, kind: str, rng: np.random.Generator
) -> tuple[Outcomes, list[BoolArray], list[BoolArray]]:
    """Outcomes by the judge, and every attempt as it is and as it was judged."""
    rates = PRIORS[prior](rng, design.tasks)
    n = rng.integers(design.attempts[0], design.attempts[1] + 1, design.tasks)
    a, b = error_rates(kind, design.error, design.tasks, rng)
    true = [rng.random(size) < rate for size, rate in zip(n, rates, strict=True)]
    judged = [
        np.where(right, rng.random(right.size) >= b[i], rng.random(right.size) < a[i])
        for i, right in enumerate(true)
    ]
    counts = [int(row.sum()) for row in judged]
    return Outcomes.from_counts(n.tolist(), counts), true, judged


def label(
    places: list[tuple[int, int]], true: list[BoolArray], judged: list[BoolArray]
) -> LabelCounts:
    """Labels of some attempts, named as the outcomes name their tasks."""
    rows = [(str(i), bool(judged[i][j]), bool(true[i][j])) for i, j in places]
    return LabelCounts.from_rows(rows, draws=("study",))


def truth(design: Design, prior: str) -> float:
    """The metric over the prior."""
    rates = PRIORS[prior](np.random.default_rng(1), 400_000)
    return float(np.mean(metric(design.word).value_at_rate(rates)))


def shift_by_dependence(design: Design, prior: str, kind: str, wanted: float) -> float:
    """What a correction by error rates errs by in the limit, with the mean rates known exactly."""
    rng, size = np.random.default_rng(2), 400_000
    p = PRIORS[prior](rng, size)
    a, b = error_rates(kind, design.error, size, rng)
    mean_a = float((a * (1 - p)).mean() / max((1 - p).mean(), 1e-12))
    mean_b = float((b * p).mean() / max(p.mean(), 1e-12))
    shift, slope = ErrorPair(mean_a, mean_b).line
    rates = shift + slope * (a + (1 - a - b) * p)  # the corrected rate of each task
    value = float(np.mean(metric(design.word).value_at_rate(rates)))
    return min(max(value, 0.0), 1.0) - wanted


def study(design: Design, prior: str, kind: str, repetitions: int) -> Cell:
    """One cell from a seed of its own; tasks to label are the first, as all are alike."""
    seed = [29, DESIGNS.index(design), list(PRIORS).index(prior), KINDS.index(kind)]
    rng = np.random.default_rng(seed)
    wanted = truth(design, prior)
    cell = Cell(design, prior, kind, shift_by_dependence(design, prior, kind, wanted))
    for repetition in range(repetitions):
        outcomes, true, judged = simulate(design, prior, kind, rng)
        whole, count = [], 0
        for task, row in enumerate(true):
            if count + row.size > design.labels:
                break
            whole += [(task, j) for j in range(row.size)]
            count += row.size
        everything = [(i, j) for i, row in enumerate(true) for j in range(row.size)]
        picked = rng.choice(len(everything), min(design.labels, len(everything)), replace=False)
        sample = [everything[i] for i in picked.tolist()]
        plain = estimate(outcomes, design.word)
        cell.ways["judge alone"].add(plain.low or 0.0, plain.high or 1.0, wanted)
        labels = label(whole, true, judged)
        found = correct(outcomes, labels, design.word)
        low, high = found.estimate.low, found.estimate.high
        cell.ways["whole tasks"].add(low or 0.0, high or 0.0, wanted)
        if repetition % _EVERY == 0:
            _try_errors(cell, outcomes, label(sample, true, judged), wanted)
        if ppi_estimate is not None:
            values = _values(design, judged), _values(design, true)
            size = len({i for i, _ in whole})
            if size < design.tasks - 1:
                peer = ppi_estimate(values[0], values[1][:size], np.arange(size))
                cell.ways["truescore"].add(float(peer.low), float(peer.high), wanted)
    return cell


def _try_errors(cell: Cell, outcomes: Outcomes, labels: LabelCounts, wanted: float) -> None:
    tally = cell.ways["errors"]
    try:
        found = correct(outcomes, labels, cell.design.word, correction="errors")
    except PasshatError:
        tally.refused += 1
        return
    tally.add(found.estimate.low or 0.0, found.estimate.high or 0.0, wanted)
    tally.warned += alikeness(labels).is_doubtful


def _values(design: Design, rows: list[BoolArray]) -> FloatArray:
    parsed = metric(design.word)
    return np.array(
        [parsed.values(np.array([row.size]), np.array([int(row.sum())]))[0] for row in rows]  # type: ignore[attr-defined]
    )


def cells(repetitions: int) -> Iterator[Cell]:
    for design in DESIGNS:
        for prior in PRIORS if design == MAIN else FEW_PRIORS:
            for kind in KINDS:
                yield study(design, prior, kind, repetitions)


def _entry(cell: Cell, way: str) -> str:
    tally = cell.ways[way]
    if not tally.count:
        return "refused" if tally.refused else "–"
    text = f"{tally.coverage:.3f} / {tally.mean_width:.2f}"
    if way != "judge alone":
        text += f" ({cell.ratio[way]:.2f})"
    if tally.refused or tally.warned:
        runs = tally.count + tally.refused
        text += f"; refused {tally.refused / runs:.2f}, warned {tally.warned / runs:.2f}"
    return text


def page(done: list[Cell], repetitions: int) -> str:
    """The study as Markdown."""
    error = np.sqrt(0.95 * 0.05 / repetitions)
    parts = [
        "# A judge that is sometimes wrong, measured",
        "Made by `python benchmarks/judge_errors.py --markdown docs/benchmarks/judge_errors.md`. "
        f"{len(DESIGNS)} designs, {len(PRIORS)} distributions of success rates ({len(FEW_PRIORS)} "
        f"beyond the first design), {len(KINDS)} kinds of error, {repetitions:,} suites "
        f"each (every {_EVERY}rd for error rates), nominal 95%, about new tasks. Standard error of "
        f"a cell at .95: {error:.3f}, of error rates {error * np.sqrt(_EVERY):.3f}. {machine()}.",
        "Each entry is coverage / mean width (times the width without correction). By whole tasks "
        "and truescore's PPI++ (`ppi_estimate` on the values of whole tasks) as many tasks are "
        "labeled whole as the labels allow; error rates use as many attempts drawn at random. "
        "A correction by error rates is refused where the test of alikeness rejects at 5% or the "
        "judge may be too poor, and warns where the test is below 20%. Moved: what a correction by "
        "error rates would err by, in points, because errors are not alike, with the mean rates "
        "known exactly.",
        _summary(done),
    ]
    for design in DESIGNS:
        rows = [
            (
                cell.prior,
                cell.kind,
                *(_entry(cell, way) for way in WAYS),
                f"{100 * cell.moved:+.1f}",
            )
            for cell in done
            if cell.design == design
        ]
        parts += [f"## {design}", markdown(("success rates", "errors", *WAYS, "moved"), rows)]
    return "\n\n".join(parts) + "\n"


def _summary(done: list[Cell]) -> str:
    whole = [cell.ways["whole tasks"].coverage for cell in done]
    alike = [cell for cell in done if cell.kind == "alike" and cell.ways["errors"].count]
    main = [cell for cell in done if cell.design == MAIN]
    ratios = [cell.ratio["whole tasks"] for cell in main]
    error_ratios = [
        cell.ratio["errors"] for cell in main if cell.kind == "alike" and cell.ways["errors"].count
    ]
    dependent = [cell for cell in done if cell.design.labels == 200 and cell.kind != "alike"]
    moved = [cell.noticed for cell in dependent if abs(cell.moved) > _MOVED]
    others = [cell.noticed for cell in dependent if abs(cell.moved) <= _MOVED]
    peers = [cell.ways["truescore"].coverage for cell in done if cell.ways["truescore"].count]
    lines = [
        ("whole tasks, worst coverage of all cells", f"{min(whole):.3f}"),
        ("whole tasks, mean coverage", f"{np.mean(whole):.3f}"),
        (f"whole tasks, width at {MAIN}, mean ratio", f"{np.mean(ratios):.2f}"),
        (
            "errors, worst coverage where errors are alike",
            f"{min(cell.ways['errors'].coverage for cell in alike):.3f}",
        ),
        (f"errors, width at {MAIN}, alike, mean ratio", f"{np.mean(error_ratios):.2f}"),
        (
            f"errors, refused or warned at 200 labels where dependence moves pass^8 by more than "
            f"{100 * _MOVED:g} points ({len(moved)} cells)",
            f"{min(moved):.2f} at least, {np.mean(moved):.2f} on average",
        ),
        (
            f"the same where it moves pass^8 by less ({len(others)} cells)",
            f"{min(others):.2f} at least, {np.mean(others):.2f} on average",
        ),
    ]
    if peers:
        lines.append(("truescore, worst and mean", f"{min(peers):.3f}, {np.mean(peers):.3f}"))
    return markdown(("over all cells", "measured"), lines)


def main() -> None:
    parser = study_parser(__doc__, 200)
    chosen = parser.parse_args()
    publish(page(list(cells(chosen.repetitions)), chosen.repetitions), chosen.markdown)


if __name__ == "__main__":
    main()
