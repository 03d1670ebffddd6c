"""Which temperature is best for pass@k: a toy that shows why it depends on k, and your own runs.

The toy (generator, task sets, T*(k), laws) is a model of nothing but the interplay of k,
temperature and difficulty. What a benchmark of your own says is in :func:`fit_temperatures`.
"""

from passhat.stats.temperature.known import KnownRates
from passhat.stats.temperature.laws import (
    LogLogit,
    Point,
    ScalingLaw,
    Study,
    fit_law,
    fit_log_logit,
    head_or_tail,
    study,
    sweep,
)
from passhat.stats.temperature.optimum import Optimum, best_temperatures, expected_pass_at_k
from passhat.stats.temperature.rankings import Lead, RankingFlip
from passhat.stats.temperature.tasks import FAMILIES, SHAPES, TaskSet, family, shape
from passhat.stats.temperature.temperature_fit import fit_temperatures
from passhat.stats.temperature.temperature_result import AgentFit, TemperatureFit

__all__ = [
    "FAMILIES",
    "SHAPES",
    "AgentFit",
    "KnownRates",
    "Lead",
    "LogLogit",
    "Optimum",
    "Point",
    "RankingFlip",
    "ScalingLaw",
    "Study",
    "TaskSet",
    "TemperatureFit",
    "best_temperatures",
    "expected_pass_at_k",
    "family",
    "fit_law",
    "fit_log_logit",
    "fit_temperatures",
    "head_or_tail",
    "shape",
    "study",
    "sweep",
]
