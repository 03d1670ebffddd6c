"""One small file per family of metrics, each with its formula and its paper."""

from passhat.estimates.metrics.base import CountMetric, Metric, OrderedMetric
from passhat.estimates.metrics.delta import Delta
from passhat.estimates.metrics.g_pass import GPass
from passhat.estimates.metrics.ordered import FirstAll, FirstAny, Window
from passhat.estimates.metrics.pass_at import PassAt
from passhat.estimates.metrics.pass_hat import PassHat, Rate

__all__ = [
    "CountMetric",
    "Delta",
    "FirstAll",
    "FirstAny",
    "GPass",
    "Metric",
    "OrderedMetric",
    "PassAt",
    "PassHat",
    "Rate",
    "Window",
]
