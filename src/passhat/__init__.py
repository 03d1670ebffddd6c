"""passhat: run your agent k times, and know how often it gets it right every time.

The public face. Names are imported when first used, so that ``import passhat`` and
``passhat --help`` load neither NumPy nor SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.errors import PasshatError as PasshatError
    from passhat.protocol import Protocol as Protocol
    from passhat.protocol import Question as Question
    from passhat.readers import read as read
    from passhat.stats.compare import Comparison as Comparison
    from passhat.stats.compare import Comparisons as Comparisons
    from passhat.stats.compare import compare as compare
    from passhat.stats.compare import compare_all as compare_all
    from passhat.stats.estimate import Diagnosis as Diagnosis
    from passhat.stats.estimate import Estimate as Estimate
    from passhat.stats.estimate import Metric as Metric
    from passhat.stats.estimate import diagnose as diagnose
    from passhat.stats.estimate import estimate as estimate
    from passhat.stats.estimate import estimate_all as estimate_all
    from passhat.stats.estimate import exact as exact
    from passhat.stats.estimate import g_pass_at_k as g_pass_at_k
    from passhat.stats.estimate import metric as metric
    from passhat.stats.estimate import pass_at_k as pass_at_k
    from passhat.stats.estimate import pass_hat_k as pass_hat_k
    from passhat.stats.forecast import Forecast as Forecast
    from passhat.stats.forecast import forecast as forecast
    from passhat.stats.gate import GateResult as GateResult
    from passhat.stats.gate import gate as gate
    from passhat.stats.outcomes import Attempt as Attempt
    from passhat.stats.outcomes import Outcomes as Outcomes
    from passhat.stats.outcomes import Run as Run
    from passhat.stats.plan import Plan as Plan
    from passhat.stats.plan import plan as plan

__version__ = "0.1.0"

_HOME = {
    "PasshatError": "passhat.errors",
    "Attempt": "passhat.stats.outcomes",
    "Comparison": "passhat.stats.compare",
    "Comparisons": "passhat.stats.compare",
    "Diagnosis": "passhat.stats.estimate",
    "Estimate": "passhat.stats.estimate",
    "Forecast": "passhat.stats.forecast",
    "GateResult": "passhat.stats.gate",
    "Metric": "passhat.stats.estimate",
    "Outcomes": "passhat.stats.outcomes",
    "Plan": "passhat.stats.plan",
    "Protocol": "passhat.protocol",
    "Question": "passhat.protocol",
    "Run": "passhat.stats.outcomes",
    "compare": "passhat.stats.compare",
    "compare_all": "passhat.stats.compare",
    "diagnose": "passhat.stats.estimate",
    "estimate": "passhat.stats.estimate",
    "estimate_all": "passhat.stats.estimate",
    "exact": "passhat.stats.estimate",
    "forecast": "passhat.stats.forecast",
    "g_pass_at_k": "passhat.stats.estimate",
    "gate": "passhat.stats.gate",
    "metric": "passhat.stats.estimate",
    "pass_at_k": "passhat.stats.estimate",
    "pass_hat_k": "passhat.stats.estimate",
    "plan": "passhat.stats.plan",
    "read": "passhat.readers",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'passhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
