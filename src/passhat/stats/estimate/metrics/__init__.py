"""Families of metrics, a small file for each, with its formula and its paper."""

from passhat.stats.estimate.metrics.base import CountMetric, Metric, OrderedMetric
from passhat.stats.estimate.metrics.delta import Delta
from passhat.stats.estimate.metrics.ordered import FirstAll, FirstAny, Window
from passhat.stats.estimate.metrics.pass_k import GPass, PassAt, PassHat, Rate
from passhat.stats.estimate.metrics.scored import BestOf, Mean, ScoreMetric, WorstOf

__all__ = [
    "BestOf",
    "CountMetric",
    "Delta",
    "FirstAll",
    "FirstAny",
    "GPass",
    "Mean",
    "Metric",
    "OrderedMetric",
    "PassAt",
    "PassHat",
    "Rate",
    "ScoreMetric",
    "Window",
    "WorstOf",
]
