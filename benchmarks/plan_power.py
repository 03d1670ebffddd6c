"""Does a plan for 80% power give 80% power?

Two agents with known success rates are planned for from pilots of both (8 attempts per task), at
the true lift. Then evaluations of the planned size are simulated and judged as `passhat compare`
judges them: by the interval of the lift with its pseudo-tasks.

    python benchmarks/plan_power.py [--markdown FILE]

A large pilot shows what the formula is worth, one of 100 tasks what a real plan is worth: there the
spread over 25 pilots is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from measuring import publish, study_parser
from passhat.stats.compare.lift import LiftSample
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Outcomes
from passhat.stats.plan import plan_tasks

Floats = npt.NDArray[np.float64]
Rates = Callable[[np.random.Generator, tuple[int, ...]], tuple[Floats, Floats]]
PILOT_ATTEMPTS, LARGE, SMALL = 8, 5_000, 30
PILOTS, EVALUATIONS = 12, 40


def _middle(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    a = rng.uniform(0.1, 0.75, shape)
    return a, np.clip(a + 0.08 + rng.normal(0, 0.1, shape), 0, 1)


def _ceiling(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    a = rng.beta(8, 1.2, shape)
    return a, 1 - (1 - a) * rng.uniform(0.3, 1, shape)


def _two_kinds(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    a = np.where(rng.random(shape) < 0.5, 0.08, 0.9)
    return a, np.clip(a + rng.uniform(-0.02, 0.14, shape), 0, 1)


AGENTS: dict[str, Rates] = {
    "middling": _middle,
    "near the ceiling": _ceiling,
    "two kinds of task": _two_kinds,
}
CELLS = (("pass^1", 8), ("pass^4", 8))


def planned(rng: np.random.Generator, rates: Rates, word: str, n: int, size: int) -> int:
    """The tasks that a plan from pilots of this size asks for."""
    chosen = _metric(word)
    a, b = (float(np.mean(chosen.value_at_rate(p))) for p in rates(rng, (500_000,)))
    pilots = [
        Outcomes.from_counts(PILOT_ATTEMPTS, rng.binomial(PILOT_ATTEMPTS, p))
        for p in rates(rng, (size,))
    ]
    made = plan_tasks(pilots[0], against=pilots[1], metric=word, detect=b - a, attempts=n)
    return next(row.tasks for row in made.rows if row.attempts == n)


def power(
    rng: np.random.Generator, rates: Rates, word: str, n: int, tasks: int, repetitions: int
) -> tuple[float, float]:
    """The share of evaluations that see the lift, and the skew of the differences."""
    value = _metric(word).values(np.full(n + 1, n), np.arange(n + 1))
    a, b = rates(rng, (repetitions, tasks))
    d = value[rng.binomial(n, b)] - value[rng.binomial(n, a)]
    skew = float(np.mean((d - d.mean()) ** 3) / d.std() ** 3)
    return float(
        np.mean([LiftSample.of(row).interval(0.025, "greater").low > 0 for row in d])
    ), skew


def _metric(word: str) -> CountMetric:
    chosen = metric(word)
    assert isinstance(chosen, CountMetric)
    return chosen


def table() -> Iterator[str]:
    """The study as Markdown."""
    yield "# Does a plan for 80% power give 80% power?"
    yield ""
    yield (
        f"Made by `python benchmarks/plan_power.py`. Both agents have a pilot with "
        f"{PILOT_ATTEMPTS} attempts per task; the true lift is planned for; the 95% interval of "
        f"`passhat compare` judges, about new tasks. Large pilot: {LARGE:,} tasks, "
        f"{5 * EVALUATIONS} evaluations, standard error .03. Small pilot: {SMALL} tasks, {PILOTS} "
        f"pilots with {EVALUATIONS} evaluations each; smallest, mean and largest power. Version "
        "0.1.0 gave .66 from pilots of 30 tasks. Plans are made for the variance that 80% of the "
        "redraws of the pilot's tasks stay below, so most pilots give more than was promised."
    )
    yield ""
    yield (
        "| agents | metric | attempts | skew | tasks planned | power, large pilot "
        "| power, small pilot |"
    )
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for name, rates in AGENTS.items():
        for word, n in CELLS:
            rng = np.random.default_rng([5, n, *name.encode(), *word.encode()])
            tasks = planned(rng, rates, word, n, LARGE)
            reached, skew = power(rng, rates, word, n, tasks, 5 * EVALUATIONS)
            small = [
                power(rng, rates, word, n, planned(rng, rates, word, n, SMALL), EVALUATIONS)[0]
                for _ in range(PILOTS)
            ]
            yield (
                f"| {name} | {word} | {n} | {skew:+.1f} | {tasks:,} | {reached:.3f} | "
                f"{min(small):.2f}, {np.mean(small):.2f}, {max(small):.2f} |"
            )


def main() -> None:
    options = study_parser(__doc__).parse_args()
    text = "\n".join(table()) + "\n"
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
