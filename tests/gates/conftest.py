"""Bounds to judge by, independent of how passhat makes its intervals."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.estimates import Estimate, metric
from passhat.estimates.metrics import Metric
from passhat.estimates.per_task import per_task
from passhat.gates import Tools
from passhat.outcomes import Completion, Outcomes


def _gaffke(outcomes: Outcomes, chosen: Metric, level: float, way: Completion) -> np.ndarray:
    """Gaffke's interval on the values of the tasks, by 4,000 draws."""
    values = per_task(outcomes, chosen, way)
    rng = np.random.default_rng(0)
    weights = rng.standard_gamma(1.0, (4000, len(values)))
    extra = rng.standard_gamma(1.0, 4000)
    total = weights.sum(axis=1) + extra
    tail = (1 - level) / 2
    return np.array(
        [
            np.quantile(weights @ values / total, tail),
            values.mean(),
            np.quantile((weights @ values + extra) / total, 1 - tail),
        ]
    )


def gaffke_estimate(
    outcomes: Outcomes,
    word: str | Metric,
    *,
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,  # noqa: ARG001 - the estimator's signature
) -> Estimate:
    chosen = metric(word)
    ways = {
        "bound": (Completion.AS_FAILED, Completion.AS_PASSED),
        "fail": (Completion.AS_FAILED, Completion.AS_FAILED),
        "exclude": (Completion.DROPPED, Completion.DROPPED),
    }[missing]
    low, high = (_gaffke(outcomes, chosen, level, way) for way in ways)
    return Estimate(
        chosen.name,
        float(low[1]),
        float(high[1]) if missing == "bound" else None,
        float(low[0]),
        float(high[2]),
        level,
        "new tasks",
        "Gaffke",
        len(outcomes),
        outcomes.attempts,
    )


@pytest.fixture(scope="session")
def gaffke() -> Tools:
    return Tools(estimate=gaffke_estimate)
