"""Forecasts at a k beyond the n attempts that were made, as a band and as lines.

``forecast`` is also ``passhat.forecast``. The room is called forecasts, so that no module hides
the function.
"""

from passhat.stats.forecast.forecaster import (
    SCHEMA,
    Forecast,
    forecast,
    forecast_all,
    forecast_curve,
)
from passhat.stats.forecast.inverse import Reach, keeps, reaches
from passhat.stats.forecast.lines import FORMULAS

__all__ = [
    "FORMULAS",
    "SCHEMA",
    "Forecast",
    "Reach",
    "forecast",
    "forecast_all",
    "forecast_curve",
    "keeps",
    "reaches",
]
