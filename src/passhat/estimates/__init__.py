"""Metrics and what they are worth: the grammar, the estimators, the estimate."""

from passhat.estimates.counting import g_pass_at_k, pass_at_k, pass_hat_k
from passhat.estimates.diagnostics import Diagnosis, diagnose
from passhat.estimates.estimate import Estimate
from passhat.estimates.estimating import default_ks, estimate, estimate_all, missing_effect
from passhat.estimates.exactly import exact
from passhat.estimates.grammar import metric
from passhat.estimates.metrics import Metric

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
