"""Forecasts as plain data, the same for the command line and for pages."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.stats.forecast import SCHEMA, Forecast, Reach
from passhat.stats.outcomes import Run

__all__ = ["default_words", "forecast_data"]


def default_words(run: Run) -> tuple[str, str]:
    """As far as a forecast is worth while: ten times n, and four times n."""
    n = max(int(run.outcomes.n.max()), 1)
    return f"pass@{10 * n}", f"pass^{4 * n}"


def forecast_data(
    run: Run, found: Sequence[Forecast], inverse: Sequence[Reach], users: int
) -> dict[str, object]:
    """Under the schema of forecasts; every digit."""
    return {
        "schema": SCHEMA,
        "run": run.name,
        "results": [one.to_dict() | {"in_words": one.users(users)} for one in found],
        "reach": [one.to_dict() for one in inverse],
    }
