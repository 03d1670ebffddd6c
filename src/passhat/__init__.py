"""passhat: run your agent k times, and know how often it gets it right every time.

The public API. Names are imported when first used, so that ``import passhat`` and
``passhat --help`` load neither NumPy nor SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from passhat._version import __version__

if TYPE_CHECKING:
    from passhat.agents import Agent as Agent
    from passhat.agents import Session as Session
    from passhat.agents import Usage as Usage
    from passhat.api import allocate as allocate
    from passhat.api import arun as arun
    from passhat.api import compare as compare
    from passhat.api import compare_all as compare_all
    from passhat.api import diagnose as diagnose
    from passhat.api import estimate as estimate
    from passhat.api import estimate_all as estimate_all
    from passhat.api import forecast as forecast
    from passhat.api import gate as gate
    from passhat.api import open_store as open_store
    from passhat.api import plan_attempts as plan_attempts
    from passhat.api import plan_tasks as plan_tasks
    from passhat.api import read as read
    from passhat.api import report as report
    from passhat.api import run as run
    from passhat.api import why as why
    from passhat.errors import PasshatError as PasshatError
    from passhat.protocol import Protocol as Protocol
    from passhat.protocol import Question as Question
    from passhat.readers import Reader as Reader
    from passhat.reporting.public import Explanation as Explanation
    from passhat.reporting.public import Report as Report
    from passhat.stats.compare import Comparison as Comparison
    from passhat.stats.compare import Comparisons as Comparisons
    from passhat.stats.estimate import Diagnosis as Diagnosis
    from passhat.stats.estimate import Estimate as Estimate
    from passhat.stats.estimate import Metric as Metric
    from passhat.stats.estimate import exact as exact
    from passhat.stats.estimate import g_pass_at_k as g_pass_at_k
    from passhat.stats.estimate import metric as metric
    from passhat.stats.estimate import pass_at_k as pass_at_k
    from passhat.stats.estimate import pass_hat_k as pass_hat_k
    from passhat.stats.forecast import Forecast as Forecast
    from passhat.stats.gate import GateResult as GateResult
    from passhat.stats.outcomes import Attempt as Attempt
    from passhat.stats.outcomes import Outcomes as Outcomes
    from passhat.stats.outcomes import Run as Run
    from passhat.stats.outcomes import Verdict as Verdict
    from passhat.stats.plan import Plan as Plan
    from passhat.suites import Episode as Episode
    from passhat.suites import Judgement as Judgement
    from passhat.suites import Suite as Suite
    from passhat.suites import Task as Task
    from passhat.suites import Turn as Turn


_HOME = {
    "Agent": "passhat.agents",
    "Attempt": "passhat.stats.outcomes",
    "Comparison": "passhat.stats.compare",
    "Comparisons": "passhat.stats.compare",
    "Diagnosis": "passhat.stats.estimate",
    "Episode": "passhat.suites",
    "Estimate": "passhat.stats.estimate",
    "Explanation": "passhat.reporting.public",
    "Forecast": "passhat.stats.forecast",
    "GateResult": "passhat.stats.gate",
    "Judgement": "passhat.suites",
    "Metric": "passhat.stats.estimate",
    "Outcomes": "passhat.stats.outcomes",
    "PasshatError": "passhat.errors",
    "Plan": "passhat.stats.plan",
    "Protocol": "passhat.protocol",
    "Question": "passhat.protocol",
    "Reader": "passhat.readers",
    "Report": "passhat.reporting.public",
    "Run": "passhat.stats.outcomes",
    "Session": "passhat.agents",
    "Suite": "passhat.suites",
    "Task": "passhat.suites",
    "Turn": "passhat.suites",
    "Usage": "passhat.agents",
    "Verdict": "passhat.stats.outcomes",
    "allocate": "passhat.api",
    "arun": "passhat.api",
    "compare": "passhat.api",
    "compare_all": "passhat.api",
    "diagnose": "passhat.api",
    "estimate": "passhat.api",
    "estimate_all": "passhat.api",
    "exact": "passhat.stats.estimate",
    "forecast": "passhat.api",
    "g_pass_at_k": "passhat.stats.estimate",
    "gate": "passhat.api",
    "metric": "passhat.stats.estimate",
    "open_store": "passhat.api",
    "pass_at_k": "passhat.stats.estimate",
    "pass_hat_k": "passhat.stats.estimate",
    "plan_attempts": "passhat.api",
    "plan_tasks": "passhat.api",
    "read": "passhat.api",
    "report": "passhat.api",
    "run": "passhat.api",
    "why": "passhat.api",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'passhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
