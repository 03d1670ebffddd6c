"""The digits of an interval's ends that every processor agrees on.

Ends come out of solvers, matrix products and special functions whose last digits depend on the
processor; the frontier's are certified to 3e-5 only. They are therefore rounded outward to five
decimals where they are made: a rounded interval holds the exact one, and a report reads the same on
every machine.
"""

from __future__ import annotations

import math

__all__ = ["DECIMALS", "STEP", "round_outward"]

DECIMALS = 5
STEP = 10.0**-DECIMALS
_NOISE = 1e-3  # of a step: an end that is a round number but for the last bits stays that number


def round_outward(
    low: float, high: float, lowest: float = 0.0, highest: float = 1.0
) -> tuple[float, float]:
    """Both ends at five decimals, away from each other, within the range.

    Examples
    --------
    >>> round_outward(0.1234567, 0.5 + 1e-12)
    (0.12345, 0.5)
    """
    floor = math.floor(low / STEP + _NOISE) / 10**DECIMALS
    above = math.ceil(high / STEP - _NOISE) / 10**DECIMALS
    return max(floor, lowest), min(above, highest)
