"""Which temperature is best for pass@k: fits of runs, and a toy model of why it depends on k.

:func:`fit_temperatures` fits runs at several temperatures. The toy (generator, task sets, T*(k),
laws) models only how k, temperature and difficulty interact.
"""

from passhat.stats.temperature.advice import Advice
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
from passhat.stats.temperature.peak import KnownRates
from passhat.stats.temperature.rankings import Lead, RankingFlip
from passhat.stats.temperature.tasks import FAMILIES, SHAPES, TaskSet, family, shape
from passhat.stats.temperature.temperature_fit import fit_temperatures
from passhat.stats.temperature.temperature_result import AgentFit, TemperatureFit

__all__ = [
    "FAMILIES",
    "SHAPES",
    "Advice",
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
