"""How often does the sequential gate err, and how much of a suite does it save?

Suites are simulated: success rates from a difficulty distribution, 8 attempts at every task, the
value of a task is its pass^4. The gate looks after every task.

    python benchmarks/sequential.py [--repetitions 1000] [--markdown FILE]

Two tables. The first puts the threshold where a wrong verdict is easiest, on the truth itself, and
counts wrong verdicts; at most 5% are allowed. The second puts the threshold .15 away from the
truth and counts the tasks that were needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from measuring import publish, study_parser
from passhat.stats.estimate import pass_hat_k
from passhat.stats.sequential import ConfidenceSequence

Floats = npt.NDArray[np.float64]
ATTEMPTS, K, AWAY, LEVEL = 8, 4, 0.15, 0.95

DIFFICULTY: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "Beta(.5,.5)": lambda rng, size: rng.beta(0.5, 0.5, size),
    "Beta(2,2)": lambda rng, size: rng.beta(2, 2, size),
    "0/1, 30/70": lambda rng, size: np.where(rng.random(size) < 0.3, 0.0, 1.0),
    "Beta(8,.8)": lambda rng, size: rng.beta(8, 0.8, size),
    "5/95, half each": lambda rng, size: np.where(rng.random(size) < 0.5, 0.05, 0.95),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of a table."""

    form: str
    difficulty: str
    tasks: int
    wrongly_shown: float
    wrongly_refuted: float
    share_to_show: float
    share_to_refute: float


def task_values(rng: np.random.Generator, difficulty: str, tasks: int) -> Floats:
    """The pass^4 of each task of a simulated suite."""
    passes = rng.binomial(ATTEMPTS, DIFFICULTY[difficulty](rng, tasks))
    return np.asarray(pass_hat_k(ATTEMPTS, passes, K), dtype=np.float64)


def true_mean(difficulty: str) -> float:
    """E[p^4] over tasks of this difficulty."""
    rates = DIFFICULTY[difficulty](np.random.default_rng(7), 4_000_000)
    return float(np.mean(rates**K))


def looks(values: Floats, threshold: float, *, strict: bool, total: int | None) -> tuple[str, int]:
    """Look after every task; return the verdict and the tasks it took (all, when open)."""
    sequence = ConfidenceSequence(
        2 * LEVEL - 1, total=total, thresholds=[threshold], points=2
    )  # two sides of 5% each: whichever way the truth lies, only one of them can err
    for count, value in enumerate(values.tolist(), 1):
        sequence.update(value)
        verdict = sequence.decide(threshold, strict=strict)
        if verdict != "open":
            return verdict, count
    return "open", len(values)


def study(form: str, difficulty: str, tasks: int, repetitions: int, seed: int = 0) -> Cell:
    """Simulate one cell."""
    rng = np.random.default_rng([seed, tasks, *difficulty.encode()])
    new_tasks_mean = true_mean(difficulty) if form == "new tasks" else 0.0
    shown, refuted, to_show, to_refute = [], [], [], []
    for _ in range(repetitions):
        values = task_values(rng, difficulty, tasks)
        total = tasks if form == "this run" else None
        truth = float(values.mean()) if form == "this run" else new_tasks_mean
        # "above the truth" is false and "at least the truth" is true: each can err one way.
        # In a fixed suite the last task settles it rightly, so only earlier verdicts can be wrong.
        shown.append(looks(values, truth, strict=True, total=total)[0] == "shown")
        refuted.append(looks(values, truth, strict=False, total=total)[0] == "refuted")
        if truth >= AWAY:
            to_show.append(looks(values, truth - AWAY, strict=False, total=total)[1] / tasks)
        if truth + AWAY <= 1:
            to_refute.append(looks(values, truth + AWAY, strict=False, total=total)[1] / tasks)
    return Cell(
        form,
        difficulty,
        tasks,
        float(np.mean(shown)),
        float(np.mean(refuted)),
        float(np.mean(to_show)) if to_show else float("nan"),
        float(np.mean(to_refute)) if to_refute else float("nan"),
    )


def peeking_error(difficulty: str, tasks: int, repetitions: int, seed: int = 1) -> float:
    """How often an ordinary one-sided 95% t bound, looked at after every task, clears the truth.

    Looks begin with the tenth task; a bound from fewer would make it look even worse.
    """
    rng = np.random.default_rng([seed, tasks, *difficulty.encode()])
    truth = true_mean(difficulty)
    counts = np.arange(1, tasks + 1)
    quantile = stdtrit(np.maximum(counts - 1, 1), LEVEL)
    wrong = 0
    for _ in range(repetitions):
        values = task_values(rng, difficulty, tasks)
        mean = np.cumsum(values) / counts
        variance = np.maximum(np.cumsum(values**2) / counts - mean**2, 0)
        bound = mean - quantile * np.sqrt(variance / np.maximum(counts - 1, 1))
        wrong += bool((bound[9:] > truth).any())
    return wrong / repetitions


def peeking_table(repetitions: int) -> Iterator[str]:
    """What the sequence is for: the same looks at an ordinary bound."""
    yield ""
    yield (
        "For comparison, an ordinary one-sided 95% t bound looked at after every task from the "
        "tenth on: how often it clears the truth at some look (new tasks)."
    )
    yield ""
    yield "| difficulty | 24 tasks | 164 tasks | 500 tasks |"
    yield "| --- | ---: | ---: | ---: |"
    for difficulty in DIFFICULTY:
        shares = [f"{peeking_error(difficulty, t, repetitions):.3f}" for t in (24, 164, 500)]
        yield f"| {difficulty} | {' | '.join(shares)} |"


BINARY = (
    (60, 0.9, 58), (60, 0.6, 45), (100, 0.5, 65), (100, 0.9, 80), (164, 0.8, 148),
    (24, 0.5, 18), (60, 0.9, 60),
)  # fmt: skip
"""Finite suites of 0 and 1: tasks, threshold, tasks that pass."""


def binary_looks(
    values: Floats, threshold: float, *, strict: bool, binary: bool
) -> tuple[str, int]:
    """As :func:`looks` for a finite suite, with the mixture for 0 and 1 or without it."""
    sequence = ConfidenceSequence(
        2 * LEVEL - 1, total=len(values), thresholds=[threshold], points=2, binary=binary
    )
    for count, value in enumerate(values.tolist(), 1):
        sequence.update(value)
        verdict = sequence.decide(threshold, strict=strict)
        if verdict != "open":
            return verdict, count
    return "open", len(values)


def binary_table(repetitions: int) -> Iterator[str]:
    """What the hypergeometric mixture saves, and how often it errs."""
    yield ""
    yield "## Suites of 0 and 1"
    yield ""
    yield (
        "Where every task is worth 0 or 1, a finite suite is watched by a mixture of "
        "hypergeometric likelihoods instead of fixed stakes. "
        f"{repetitions:,} drawn orders of each suite; share of the suite used, "
        "and wrong verdicts with the threshold on the truth itself, the worse of "
        "both sides. The order in which tasks finish plays no part: a task that is next in the "
        "drawn order is waited for, so the table holds for an agent whose failures come last."
    )
    yield ""
    yield "| tasks | rule | truth | used, stakes | used, mixture | saved | wrong, mixture |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    for tasks, threshold, passes in BINARY:
        rng = np.random.default_rng([9, tasks, passes])
        suite = np.repeat([1.0, 0.0], [passes, tasks - passes])
        used = np.zeros(2)
        wrong = np.zeros(2)
        truth = passes / tasks
        for _ in range(repetitions):
            rng.shuffle(suite)
            for way, binary in enumerate((False, True)):
                used[way] += binary_looks(suite, threshold, strict=False, binary=binary)[1] / tasks
            wrong[0] += binary_looks(suite, truth, strict=True, binary=True)[0] == "shown"
            wrong[1] += binary_looks(suite, truth, strict=False, binary=True)[0] == "refuted"
        stakes, mixture = (used / repetitions).tolist()
        error = max((wrong / repetitions).tolist())
        yield (
            f"| {tasks} | >= {threshold:g} | {truth:.3f} | {stakes:.3f} | {mixture:.3f} | "
            f"{1 - mixture / stakes:.0%} | {error:.3f} |"
        )


def _share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def table(cells: list[Cell], repetitions: int) -> Iterator[str]:
    """The study as Markdown."""
    error = (0.05 * 0.95 / repetitions) ** 0.5
    yield "# The sequential gate: how often it errs, and what it saves"
    yield ""
    yield (
        f"Made by `python benchmarks/sequential.py --repetitions {repetitions}`. "
        f"{ATTEMPTS} attempts at every task, "
        f"pass^{K} per task, one-sided level {LEVEL:.0%}, a look after every task. Monte Carlo "
        f"error of a share near 5%: {error:.3f} (one standard error)."
    )
    yield ""
    yield (
        '"This run" draws without replacement and asks what all its tasks would read; "new '
        'tasks" asks about tasks like these. Wrong verdicts are counted with the threshold on the '
        f"truth itself, the worst place; the share used with the threshold {AWAY:g} away. A run "
        "that stays open to the end counts as the whole suite. Suites whose truth is less than "
        f"{AWAY:g} from 0 or 1 have no threshold there and are left out of that column (– when all "
        "are); a threshold that lands near 0 or 1 is easy, so look at the largest share as well as "
        "the mean. Five of the seven difficulty distributions of the coverage study."
    )
    yield ""
    yield (
        "| about | difficulty | tasks | wrongly shown | wrongly refuted | share used to show "
        "| share used to refute |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for cell in cells:
        yield (
            f"| {cell.form} | {cell.difficulty} | {cell.tasks} | {cell.wrongly_shown:.3f} | "
            f"{cell.wrongly_refuted:.3f} | {_share(cell.share_to_show)} | "
            f"{_share(cell.share_to_refute)} |"
        )
    yield ""
    yield "| about | tasks | worst error | mean share used | largest share used |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for form, tasks in dict.fromkeys((cell.form, cell.tasks) for cell in cells):
        group = [cell for cell in cells if (cell.form, cell.tasks) == (form, tasks)]
        worst = max(max(cell.wrongly_shown, cell.wrongly_refuted) for cell in group)
        shares = [share for cell in group for share in (cell.share_to_show, cell.share_to_refute)]
        yield (
            f"| {form} | {tasks} | {worst:.3f} | {np.nanmean(shares):.2f} | "
            f"{np.nanmax(shares):.2f} |"
        )


def main() -> None:
    options = study_parser(__doc__, 1000).parse_args()
    cells = []
    for form in ("this run", "new tasks"):
        for tasks in (24, 164, 500):
            for difficulty in DIFFICULTY:
                cells.append(study(form, difficulty, tasks, options.repetitions))
                print(cells[-1], file=sys.stderr)
    lines = [
        *table(cells, options.repetitions),
        *peeking_table(options.repetitions),
        *binary_table(options.repetitions),
    ]
    text = "\n".join(lines) + "\n"
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
