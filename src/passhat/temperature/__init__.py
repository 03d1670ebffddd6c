"""Which temperature is best for pass@k: a toy that shows why it depends on k, and your own runs.

The toy (generator, task sets, T*(k), laws) is a model of nothing but the interplay of k,
temperature and difficulty. What a benchmark of your own says is in :func:`fit_temperatures`.
"""

from passhat.temperature.fitting import fit_temperatures
from passhat.temperature.known import KnownRates
from passhat.temperature.laws import (
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
from passhat.temperature.optimum import Optimum, best_temperatures, expected_pass_at_k
from passhat.temperature.rankings import Lead, RankingFlip
from passhat.temperature.result import AgentFit, TemperatureFit
from passhat.temperature.tasks import FAMILIES, SHAPES, TaskSet, family, shape

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
