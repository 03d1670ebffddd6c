"""Beyond n: what k attempts would do when only n were made, as a band and as lines.

``forecast`` is also ``passhat.forecast``. The room is called forecasts, so that no module hides
the function.
"""

from passhat.forecasts.forecasting import forecast, forecast_all, forecast_curve
from passhat.forecasts.inverse import Reach, keeps, reaches
from passhat.forecasts.lines import FORMULAS
from passhat.forecasts.result import SCHEMA, Forecast

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
