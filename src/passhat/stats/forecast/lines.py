"""Named models that draw one line where the data allow a whole band.

All of them are fitted to pass@k. pass^k is the same problem in the mirror: with passes and failures
exchanged, pass^k is 1 - pass@k. None of them is right everywhere, so a line is only drawn where it
runs inside the band.

| name | formula |
| --- | --- |
| power law | -log pass@k = a k^-b, fitted to the observed pass@k |
| log-logit | logit pass@k = a + b log k, fitted to the observed pass@k |
| beta-binomial | p ~ Beta(a, b):  pass@k = 1 - B(a, b+k) / B(a, b) |
| zero-inflated beta-binomial | p = 0 with chance z, else Beta(a, b) |
| logit-normal | logit p ~ Normal(m, s) |

For pass^k the inflation is at p = 1, and the power law is -log(1 - pass^k) = a k^-b. For gpass@k:t
only the distributions of p say anything. Those are fitted by maximum likelihood.

References
----------
B. Brown et al. (2024), Large Language Monkeys: Scaling inference compute with repeated sampling,
    arXiv:2407.21787 (the exponentiated power law).
M. Hughes et al. (2024), Best-of-N jailbreaking, arXiv:2412.03556 (forecasts by a power law).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from passhat.stats.arrays import FloatArray, special
from passhat.stats.estimate.counting import any_of_k
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat, Rate
from passhat.stats.estimate.mixture import scaled_likelihood
from passhat.stats.forecast.band import rate_grid
from passhat.stats.outcomes import Histogram

FORMULAS = MappingProxyType(
    {
        "power law": "-log pass@k = a k^-b",
        "beta-binomial": "p ~ Beta(a, b)",
        "zero-inflated beta-binomial": "p = 0 with chance z, else p ~ Beta(a, b)",
        "one-inflated beta-binomial": "p = 1 with chance z, else p ~ Beta(a, b)",
        "logit-normal": "logit p ~ Normal(m, s)",
        "log-logit": "logit pass@k = a + b log k",
    }
)

Lines = dict[str, float]
"""The value of each model, by its name; a model that could not be fitted is absent."""

_MOST_KS = 30


def lines_of(cells: Histogram, metrics: Sequence[CountMetric]) -> list[Lines]:
    """The values of every model for every metric.

    Nothing when all attempts ended alike, or when no task was attempted twice: then the data do
    not distinguish one shape from another.
    """
    passes = int(cells.c @ cells.tasks)
    is_uniform = passes in (0, int(cells.n @ cells.tasks))
    if is_uniform or int(cells.n.max()) < 2:
        return [{} for _ in metrics]
    lines: list[Lines] = [{} for _ in metrics]
    for mirror in (False, True):
        places = [
            i for i, metric in enumerate(metrics) if isinstance(metric, PassHat | Rate) is mirror
        ]
        if places:
            fitted_metrics = [PassAt(metrics[i].k) if mirror else metrics[i] for i in places]
            fits = _fit_models(_mirror(cells) if mirror else cells, fitted_metrics, mirrored=mirror)
            for name, values in fits:
                for i, value in zip(places, values, strict=True):
                    if value is not None:
                        lines[i][name] = 1 - value if mirror else value
    return lines


def _mirror(cells: Histogram) -> Histogram:
    return Histogram(cells.n, cells.n - cells.c, cells.tasks)


_Values = tuple[str, list[float | None]]


def _fit_models(
    cells: Histogram, metrics: Sequence[CountMetric], *, mirrored: bool
) -> Iterator[_Values]:
    law = _power_law(cells)
    yield (
        "power law",
        [law(metric.k) if law and isinstance(metric, PassAt) else None for metric in metrics],
    )
    mixture = _Mixture.of(cells, metrics)
    inflated_name = f"{'one' if mirrored else 'zero'}-inflated beta-binomial"
    start = mixture.fit(_beta, (_mean(cells), 0.0))
    yield "beta-binomial", mixture.values(_beta(mixture.edges, start), metrics)
    best = mixture.fit(_beta_with_zeros, (*start, -1.0))
    yield inflated_name, mixture.values(_beta_with_zeros(mixture.edges, best), metrics)
    normal = mixture.fit(_logit_normal, (_mean(cells), 0.5))
    yield "logit-normal", mixture.values(_logit_normal(mixture.edges, normal), metrics)
    straight = None if mirrored else _log_logit(cells)
    yield (
        "log-logit",
        [
            straight(metric.k) if straight and isinstance(metric, PassAt) else None
            for metric in metrics
        ],
    )


# -- fitted to the observed curve ------------------------------------------------------------------


def _observe_curve(cells: Histogram) -> tuple[FloatArray, FloatArray]:
    """k, evenly spread over its logarithm, and the unbiased pass@k; where 0 < pass@k < 1."""
    largest = int(cells.n.min())
    ks = np.unique(np.geomspace(1, largest, _MOST_KS).round().astype(np.int64))
    size = float(cells.tasks.sum())
    rates = [float(cells.tasks @ any_of_k(cells.n, cells.c, k)) / size for k in ks.tolist()]
    values = np.array(rates)
    is_inner = (values > 0) & (values < 1)
    return ks[is_inner].astype(float), values[is_inner]


def _power_law(cells: Histogram) -> Callable[[int], float] | None:
    ks, values = _observe_curve(cells)
    if len(ks) < 2:
        return None
    slope, intercept = np.polyfit(np.log(ks), np.log(-np.log(values)), 1)
    return lambda k: float(np.exp(-np.exp(intercept + slope * math.log(k))))


def _log_logit(cells: Histogram) -> Callable[[int], float] | None:
    ks, values = _observe_curve(cells)
    if len(ks) < 2:
        return None
    slope, intercept = np.polyfit(np.log(ks), special.logit(values), 1)
    return lambda k: float(special.expit(intercept + slope * math.log(k)))


# -- distributions of the success rate -------------------------------------------------------------

_Parameters = tuple[float, ...]
_Family = Callable[[FloatArray, _Parameters], FloatArray]
"""Edges between the rates of the grid, and parameters, to the mass at each rate."""


def _beta(edges: FloatArray, at: _Parameters) -> FloatArray:
    """Parameters: logit of the mean, log of a + b."""
    mean, size = special.expit(np.clip(at[0], -14, 14)), math.exp(min(max(at[1], -6), 9))
    return np.diff(special.betainc(mean * size, (1 - mean) * size, edges), prepend=0.0, append=1.0)


def _beta_with_zeros(edges: FloatArray, at: _Parameters) -> FloatArray:
    """The same, then the logit of the share of tasks with p = 0."""
    share = float(special.expit(np.clip(at[2], -14, 14)))
    mass = (1 - share) * _beta(edges, at[:2])
    mass[0] += share
    return mass


def _logit_normal(edges: FloatArray, at: _Parameters) -> FloatArray:
    """Parameters: mean, and log of the standard deviation, of the logit."""
    spread = math.exp(min(max(at[1], -3), 4))
    return np.diff(special.ndtr((special.logit(edges) - at[0]) / spread), prepend=0.0, append=1.0)


def _mean(cells: Histogram) -> float:
    """The logit of the share of attempts that passed, kept away from its ends."""
    attempts = float(cells.n @ cells.tasks)
    return float(special.logit((float(cells.c @ cells.tasks) + 0.5) / (attempts + 1)))


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """A grid of rates on which any distribution is a vector of masses."""

    tasks: FloatArray
    rates: FloatArray
    edges: FloatArray
    likelihood: FloatArray

    @classmethod
    def of(cls, cells: Histogram, metrics: Sequence[CountMetric]) -> _Mixture:
        rates = rate_grid(int(cells.n.max()), metrics)
        edges = (rates[:-1] + rates[1:]) / 2
        return cls(cells.tasks.astype(float), rates, edges, scaled_likelihood(cells, rates))

    def fit(self, family: _Family, start: _Parameters) -> _Parameters:
        """The parameters of maximum likelihood."""
        from scipy.optimize import minimize

        def loss(at: FloatArray) -> float:
            chances = self.likelihood @ family(self.edges, tuple(at.tolist()))
            return -float(self.tasks @ np.log(np.maximum(chances, 1e-300)))

        best = minimize(
            loss,
            np.array(start),
            method="Nelder-Mead",
            options={"xatol": 1e-3, "fatol": 1e-4, "maxiter": 400},
        )
        return tuple(best.x.tolist())

    def values(self, mass: FloatArray, metrics: Sequence[CountMetric]) -> list[float | None]:
        return [float(mass @ metric.value_at_rate(self.rates)) for metric in metrics]
