"""Which temperature is best for pass@k: fits of runs, and a toy model of why it depends on k.

:func:`fit_temperatures` fits runs at several temperatures. The toy (generator, task sets, T*(k),
laws) models only how k, temperature and difficulty interact.
"""

from passhat.stats.temperature.laws import (
    Point,
    Study,
    fit_law,
    fit_log_logit,
    head_or_tail,
    study,
    sweep,
)
from passhat.stats.temperature.optimum import best_temperatures, expected_pass_at_k
from passhat.stats.temperature.peak import KnownRates
from passhat.stats.temperature.rankings import RankingFlip
from passhat.stats.temperature.tasks import SHAPES, TaskSet, family, shape
from passhat.stats.temperature.temperature_fit import fit_temperatures
from passhat.stats.temperature.temperature_result import AgentFit, TemperatureFit

__all__ = [
    "SHAPES",
    "AgentFit",
    "KnownRates",
    "Point",
    "RankingFlip",
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
