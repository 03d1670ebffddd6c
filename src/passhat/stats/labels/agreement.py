"""How far people agree on labels: Krippendorff's alpha, and Cohen's kappa of two of them.

References
----------
J. Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20.
K. Krippendorff (2011), Computing Krippendorff's alpha-reliability, University of Pennsylvania.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["cohen_kappa", "krippendorff_alpha"]


def krippendorff_alpha(units: Iterable[Sequence[int]]) -> float | None:
    """Agreement on attempts that several people labeled: 1 is full, 0 is that of chance.

    Parameters
    ----------
    units
        The labels of each attempt; attempts with fewer than two count for nothing.

    Returns
    -------
    float or None
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
