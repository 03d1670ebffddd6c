"""Metrics and their estimates: the grammar, the estimators, the intervals."""

from passhat.stats.estimate.counting import g_pass_at_k, pass_at_k, pass_hat_k
from passhat.stats.estimate.diagnostics import Diagnosis, diagnose
from passhat.stats.estimate.estimator import (
    Estimate,
    default_ks,
    estimate,
    estimate_all,
    exact,
    missing_effect,
)
from passhat.stats.estimate.grammar import metric
from passhat.stats.estimate.metrics import Metric

__all__ = [
    "Diagnosis",
    "Estimate",
    "Metric",
    "default_ks",
    "diagnose",
    "estimate",
    "estimate_all",
    "exact",
    "g_pass_at_k",
    "metric",
    "missing_effect",
    "pass_at_k",
    "pass_hat_k",
]
