"""Curves over k, within the attempts that were made and beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passhat.errors import PasshatError
from passhat.stats.estimate import Estimate, metric
from passhat.stats.forecast import Forecast, forecast_curve
from passhat.stats.outcomes import Outcomes
from passhat.stats.terms import Terms

__all__ = ["Curves", "build_curves", "curve_words", "k_of"]

_FAR_AT, _FAR_HAT = 10, 4
"""How many times n a forecast reaches: what one good attempt needs, what a streak allows."""


@dataclass(frozen=True, slots=True)
class Curves:
    """What the charts over k show: estimates at every k, and bands beyond n.

    Attributes
    ----------
    pass_hat, pass_at, delta : tuple of Estimate
        At every k that is drawn, about new tasks; ``delta`` starts at k = 2.
    forecast_at, forecast_hat : tuple of Forecast
        pass@k up to ten times n, pass^k up to four times n.
    """

    pass_hat: tuple[Estimate, ...] = ()
    pass_at: tuple[Estimate, ...] = ()
    delta: tuple[Estimate, ...] = ()
    forecast_at: tuple[Forecast, ...] = ()
    forecast_hat: tuple[Forecast, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "pass^k": [_point(point) for point in self.pass_hat],
            "pass@k": [_point(point) for point in self.pass_at],
            "delta^k": [_point(point) for point in self.delta],
            "forecast pass@k": [_band(point) for point in self.forecast_at],
            "forecast pass^k": [_band(point) for point in self.forecast_hat],
        }


_FAMILIES = (("pass^", 1), ("pass@", 1), ("delta^", 2))


def curve_words(ks: Sequence[int]) -> list[str]:
    """The metrics that the curves over these k are made of."""
    return [f"{family}{k}" for family, first in _FAMILIES for k in ks if k >= first]


def build_curves(
    outcomes: Outcomes,
    ks: Sequence[int],
    known: Mapping[str, Estimate],
    terms: Terms,
    *,
    with_forecasts: bool = True,
) -> Curves:
    """Every curve over these k; without two of them there is only the forecast.

    ``known`` holds the estimates of `curve_words` about new tasks.
    """
    hats, ats, deltas = (
        tuple(known[f"{family}{k}"] for k in ks if k >= first) for family, first in _FAMILIES
    )
    if not with_forecasts:
        return Curves(hats, ats, deltas)
    n = max(1, int(outcomes.n.max()))
    return Curves(
        hats,
        ats,
        deltas,
        _forecast(outcomes, f"pass@{_FAR_AT * n}", terms),
        _forecast(outcomes, f"pass^{_FAR_HAT * n}", terms),
    )


def k_of(point: Estimate | Forecast) -> int:
    """The k of an estimate's metric."""
    return metric(point.metric).k


def _forecast(outcomes: Outcomes, word: str, terms: Terms) -> tuple[Forecast, ...]:
    try:
        return forecast_curve(
            outcomes, word, level=terms.level, missing=terms.missing, cluster=terms.cluster
        )
    except PasshatError:  # nothing has a verdict, so nothing can be said beyond n either
        return ()


def _point(point: Estimate) -> dict[str, object]:
    data: dict[str, object] = {
        "k": k_of(point),
        "value": point.value,
        "value_if_passed": point.value_if_passed,
        "low": point.low,
        "high": point.high,
    }
    return data if point.bounds is None else data | {"bounds": list(point.bounds)}


def _band(point: Forecast) -> Mapping[str, object]:
    return {
        "k": k_of(point),
        "low": point.low,
        "high": point.high,
        "observed": point.observed,
        "lines": dict(point.lines),
    }
