"""passhat: run your agent k times, and know how often it gets it right every time.

The public face. Names are imported when first used, so that ``import passhat`` and
``passhat --help`` load neither NumPy nor SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.comparison import Comparison as Comparison
    from passhat.comparison import Comparisons as Comparisons
    from passhat.comparison import compare as compare
    from passhat.comparison import compare_all as compare_all
    from passhat.errors import PasshatError as PasshatError
    from passhat.estimates import Diagnosis as Diagnosis
    from passhat.estimates import Estimate as Estimate
    from passhat.estimates import Metric as Metric
    from passhat.estimates import diagnose as diagnose
    from passhat.estimates import estimate as estimate
    from passhat.estimates import estimate_all as estimate_all
    from passhat.estimates import exact as exact
    from passhat.estimates import g_pass_at_k as g_pass_at_k
    from passhat.estimates import metric as metric
    from passhat.estimates import pass_at_k as pass_at_k
    from passhat.estimates import pass_hat_k as pass_hat_k
    from passhat.forecasts import Forecast as Forecast
    from passhat.forecasts import forecast as forecast
    from passhat.gates import GateResult as GateResult
    from passhat.gates import gate as gate
    from passhat.outcomes import Attempt as Attempt
    from passhat.outcomes import Outcomes as Outcomes
    from passhat.outcomes import Run as Run
    from passhat.planning import Plan as Plan
    from passhat.planning import plan as plan
    from passhat.protocol import Protocol as Protocol
    from passhat.protocol import Question as Question
    from passhat.readers import read as read

__version__ = "0.1.0"

_HOME = {
    "PasshatError": "passhat.errors",
    "Attempt": "passhat.outcomes",
    "Comparison": "passhat.comparison",
    "Comparisons": "passhat.comparison",
    "Diagnosis": "passhat.estimates",
    "Estimate": "passhat.estimates",
    "Forecast": "passhat.forecasts",
    "GateResult": "passhat.gates",
    "Metric": "passhat.estimates",
    "Outcomes": "passhat.outcomes",
    "Plan": "passhat.planning",
    "Protocol": "passhat.protocol",
    "Question": "passhat.protocol",
    "Run": "passhat.outcomes",
    "compare": "passhat.comparison",
    "compare_all": "passhat.comparison",
    "diagnose": "passhat.estimates",
    "estimate": "passhat.estimates",
    "estimate_all": "passhat.estimates",
    "exact": "passhat.estimates",
    "forecast": "passhat.forecasts",
    "g_pass_at_k": "passhat.estimates",
    "gate": "passhat.gates",
    "metric": "passhat.estimates",
    "pass_at_k": "passhat.estimates",
    "pass_hat_k": "passhat.estimates",
    "plan": "passhat.planning",
    "read": "passhat.readers",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'passhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
