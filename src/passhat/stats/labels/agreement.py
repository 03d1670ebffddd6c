"""Agreement of people on labels, and of a judge with itself.

Of people: Krippendorff's alpha, and Cohen's kappa of two of them. Of a judge: with several votes on
each attempt, two votes on the same attempt differ by the judge's noise alone; two votes on
different attempts at the same task differ by that and by the attempts. The ratio of both is the
judge's share. What a simulated user adds is part of the attempts' share.

References
----------
J. Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20.
K. Krippendorff (2011), Computing Krippendorff's alpha-reliability, University of Pennsylvania.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain


def krippendorff_alpha(units: Iterable[Sequence[int]]) -> float | None:
    """Agreement on attempts that several people labeled: 1 is full, 0 is that of chance.

    ``units`` are the labels of each attempt; attempts with fewer than two count for nothing.
    ``None`` where no attempt has two labels, or all labels are the same.

    Examples
    --------
    >>> krippendorff_alpha([[1, 1], [0, 0], [1, 0], [1, 1]])
    0.5333333333333333
    """
    pairable = [unit for unit in units if len(unit) > 1]
    totals: Counter[int] = Counter(value for unit in pairable for value in unit)
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    disagreements = sum(
        (len(unit) ** 2 - sum(count * count for count in Counter(unit).values())) / (len(unit) - 1)
        for unit in pairable
    )
    return 1 - (n - 1) * disagreements / expected


def cohen_kappa(pairs: Iterable[tuple[int, int]]) -> float | None:
    """Agreement of two people on the attempts that both labeled; ``None`` where both always agree
    by using one label only, or nothing is shared.

    Examples
    --------
    >>> round(cohen_kappa([(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15), 3)
    0.4
    """
    rows = list(pairs)
    if not rows:
        return None
    n = len(rows)
    observed = sum(one == other for one, other in rows) / n
    first, second = (Counter(row[side] for row in rows) for side in (0, 1))
    chance = sum(first[value] * second[value] for value in first) / n**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


_SEED, _DRAWS = 20_251_120, 2_000
FEWEST_VOTED_TASKS = 5
"""Tasks with two attempts with two votes below which the judge's share is not told."""


@dataclass(frozen=True, slots=True)
class NoiseShares(Plain):
    """The judge's share of the disagreement within tasks, with its interval."""

    judge: float
    low: float
    high: float
    """``judge``, ``low``, ``high``: the share; the rest belongs to the attempts: the agent, its
    world and a simulated user.
    """
    contradicted: int
    attempts: int
    """``contradicted``, ``attempts``: attempts on which votes differ, of those with several votes.
    """
    tasks: int
    """Tasks with several such attempts."""
    level: float


def share_noise(votes: Iterable[tuple[str, int, int]], level: float = 0.95) -> NoiseShares | None:
    """Split the disagreement within tasks by votes of (task, passes, votes) for each attempt.

    ``None`` where fewer than 5 tasks have two attempts with two votes, or nothing disagrees.
    """
    by_task: dict[str, list[tuple[int, int]]] = {}
    contradicted = attempts = 0
    for task, passes, count in votes:
        if count > 1:
            by_task.setdefault(task, []).append((passes, count))
            attempts += 1
            contradicted += 0 < passes < count
    parts = [_split(rows) for rows in by_task.values() if len(rows) > 1]
    within, total = np.array(parts, np.float64).reshape(-1, 2).T
    if len(parts) < FEWEST_VOTED_TASKS or not total.sum():
        return None
    rng = np.random.default_rng(_SEED)
    weights = rng.standard_gamma(1.0, (_DRAWS, len(parts)))
    totals = weights @ total
    shares = np.clip((weights @ within) / np.maximum(totals, 1e-12), 0.0, 1.0)
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2]).tolist()
    share = min(float(within.sum() / total.sum()), 1.0)
    return NoiseShares(
        share, min(low, share), max(high, share), contradicted, attempts, len(parts), level
    )


def count_voted_tasks(votes: Iterable[tuple[str, int, int]]) -> int:
    """Tasks with two attempts that have two votes each."""
    attempts = Counter(task for task, _, count in votes if count > 1)
    return sum(count > 1 for count in attempts.values())


def _split(rows: list[tuple[int, int]]) -> tuple[float, float]:
    """The chance that two votes differ: on one attempt, and on two attempts at the task."""
    same = float(np.mean([2 * s * (r - s) / (r * (r - 1)) for s, r in rows]))
    rates = np.array([s / r for s, r in rows])
    count = len(rates)
    pairs = rates.sum() * (1 - rates).sum() - (rates * (1 - rates)).sum()
    return same, float(2 * pairs / (count * (count - 1)))
