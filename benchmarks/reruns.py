"""Do re-runs intervals of delta^k and window^w hold the truth? Suites whose truth is known.

    python benchmarks/reruns.py                     # 300 repetitions, four minutes of CPU
    python benchmarks/reruns.py --repetitions 50    # a rough look
    python benchmarks/reruns.py --markdown docs/benchmarks/reruns.md

The truth is that of exactly the simulated tasks: mean(p^k) - mean(p)^k for delta^k, and for
window^w the chance of w passes in a row in as many attempts. The seven difficulty priors are those
of coverage.py, and beside them tasks that are all alike, where delta^k is exactly 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coverage import PRIORS
from measuring import machine, markdown, publish, study_parser
from passhat import Outcomes, estimate_all
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate.intervals.ordered_metrics import InARow

ALIKE = {"all tasks .6": 0.6, "all tasks .95": 0.95}
NAMES = (*(prior.name for prior in PRIORS), *ALIKE)
TASKS = (20, 50, 164)
ATTEMPTS = (4, 8)
WORDS = ("delta^2", "delta^4", "window^2", "window^4")
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric in one design: how often its interval held the truth, and how wide it was."""

    word: str
    prior: str
    tasks: int
    attempts: int
    coverage: float
    width: float

    def __str__(self) -> str:
        return f"{self.word}, {self.prior}, {self.tasks} x {self.attempts}: {self.coverage:.3f}"


def truth(word: str, rates: FloatArray, attempts: int) -> float:
    """What the interval should hold."""
    kind, k = word.split("^")
    if kind == "delta":
        return float(np.mean(rates ** int(k)) - np.mean(rates) ** int(k))
    return float(InARow(int(k), attempts).value(rates).mean())


def study(name: str, tasks: int, attempts: int, repetitions: int) -> Iterator[Cell]:
    """Simulate one design from a seed of its own."""
    rng = np.random.default_rng([303, NAMES.index(name), tasks, attempts])
    hits = np.zeros((repetitions, len(WORDS)))
    widths = np.zeros_like(hits)
    for at in range(repetitions):
        prior = next((one for one in PRIORS if one.name == name), None)
        rates = np.full(tasks, ALIKE[name]) if prior is None else prior.draw(rng, (1, tasks))[0]
        passed = rng.random((tasks, attempts)) < rates[:, None]
        found = estimate_all(Outcomes.from_matrix(passed.astype(int)), WORDS, about="these tasks")
        for column, (word, one) in enumerate(zip(WORDS, found, strict=True)):
            assert one.low is not None
            assert one.high is not None
            hits[at, column] = one.low - SLACK <= truth(word, rates, attempts) <= one.high + SLACK
            widths[at, column] = one.high - one.low
    for column, word in enumerate(WORDS):
        yield Cell(
            word,
            name,
            tasks,
            attempts,
            float(hits[:, column].mean()),
            float(widths[:, column].mean()),
        )


def page(cells: list[Cell], repetitions: int) -> str:
    """The study as Markdown."""
    varied = [cell for cell in cells if cell.prior not in ALIKE]
    alike = [cell for cell in cells if cell.prior in ALIKE]
    error = np.sqrt(0.95 * 0.05 / repetitions)
    parts = [
        "# Re-runs intervals of delta^k and window^w, measured",
        "Made by `python benchmarks/reruns.py --markdown docs/benchmarks/reruns.md`. "
        f"{len(NAMES)} distributions of success rates x tasks {_listed(TASKS)} x attempts "
        f"{_listed(ATTEMPTS)}, {repetitions:,} suites each, nominal 95%. Standard error of a cell "
        f"at .95: {error:.3f}. {machine()}.",
        "## Tasks that differ",
        markdown(
            ("metric", "mean coverage", "worst cell", "below .90", "width at 20 / 164 tasks"),
            [_row(word, [cell for cell in varied if cell.word == word]) for word in WORDS],
        ),
        "Worst cells: " + "; ".join(map(str, sorted(varied, key=lambda c: c.coverage)[:6])) + ".",
        "## Tasks that are all alike",
        "Every task has the success rate .6, or every one .95, so that delta^k is exactly 0, the "
        "end of its range.",
        markdown(
            ("metric", "mean coverage", "worst cell", "below .90", "width at 20 / 164 tasks"),
            [_row(word, [cell for cell in alike if cell.word == word]) for word in WORDS],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _listed(numbers: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"


def _row(word: str, cells: list[Cell]) -> tuple[object, ...]:
    hit = np.array([cell.coverage for cell in cells])
    width = {t: np.mean([cell.width for cell in cells if cell.tasks == t]) for t in (20, 164)}
    return (
        word,
        f"{hit.mean():.3f}",
        f"{hit.min():.3f}",
        f"{(hit < 0.9).sum()} of {len(hit)}",
        f"{width[20]:.3f} / {width[164]:.3f}",
    )


def main() -> None:
    """Run the study and print it."""
    options = study_parser(__doc__, 300).parse_args()
    cells = [
        cell
        for name in NAMES
        for tasks in TASKS
        for attempts in ATTEMPTS
        for cell in study(name, tasks, attempts, options.repetitions)
    ]
    text = page(cells, options.repetitions)
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
