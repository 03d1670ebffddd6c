"""Numbers that a source states, beside those that passhat computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from passhat._display import counted, number
from passhat._serialize import Plain
from passhat.errors import MetricError
from passhat.stats.arrays import IntArray
from passhat.stats.estimate import metric, pass_at_k, pass_hat_k
from passhat.stats.estimate.metrics import PassAt, PassHat
from passhat.stats.outcomes import Completion, Run

_Ways = Iterator[tuple[float, str]]
_Estimator = Callable[[IntArray, IntArray, int], Any]


@dataclass(frozen=True, slots=True)
class SourceCheck(Plain):
    """A number that the source states; ``computed`` is None where passhat refuses it."""

    WRITTEN = ("metric", ("source", "says"), ("passhat", "computed"), "agrees", "why")

    metric: str
    says: float
    computed: float | None
    agrees: bool
    why: str

    def __str__(self) -> str:
        verdict = "the same" if self.agrees else "not the same"
        text = f"{self.metric} {number(self.says)}, passhat {number(self.computed)}: {verdict}"
        return f"{text}; {self.why}" if self.why else text


def check_source(run: Run) -> tuple[SourceCheck, ...]:
    """Compare every number that the source printed."""
    return tuple(_check(run, name, says) for name, says in run.source_says.items())


def _check(run: Run, name: str, says: float) -> SourceCheck:
    if name == "stderr":
        return _compare_source(run, name, says, _stderr_ways(run))
    try:
        parsed_metric = metric("pass^1" if name == "accuracy" else name)
    except MetricError:
        parsed_metric = None
    if not isinstance(parsed_metric, PassAt | PassHat):
        return SourceCheck(name, says, None, False, _counting_text(run))
    at = isinstance(parsed_metric, PassAt)
    return _compare_source(
        run, name, says, _ways(run, parsed_metric.k, pass_at_k if at else pass_hat_k)
    )


def _compare_source(run: Run, name: str, says: float, ways: _Ways) -> SourceCheck:
    """The first way is passhat's own; the others explain."""
    first_value, remark = next(ways)
    computed = None if math.isnan(first_value) else first_value
    if computed is not None and _close(computed, says):
        return SourceCheck(name, says, computed, True, remark)
    why = next((why for value, why in ways if _close(value, says)), None)
    return SourceCheck(name, says, computed, False, why or _counting_text(run))


def _ways(run: Run, k: int, estimator: _Estimator) -> _Ways:
    """pass@k or pass^k, computed in the ways that harnesses compute it."""
    all_n, all_c = run.outcomes.counts(Completion.AS_FAILED)
    n, c = run.outcomes.counts(Completion.DROPPED)
    missing = run.outcomes.total_missing
    attempts = f"{counted(missing, 'attempt')} without a verdict"
    as_failed = f"source counts {attempts} as failures" if missing else ""
    short = all_n < k
    yield _over_tasks(all_n, all_c, k, estimator) if not short.any() else math.nan, as_failed
    left = int((n < k).sum())
    tasks = f"{counted(left, 'task')} with fewer than {k}"
    if missing:
        also = f" and with them {tasks}" if left else ""
        yield _over_tasks(n, c, k, estimator), f"source leaves {attempts} out{also}"
    if short.any():
        yield _over_tasks(all_n, all_c, k, estimator), f"source left {tasks} attempts out"
        yield _short_as_passed(all_n, all_c, k, estimator)
    if k == 1:
        reason = "source averages over attempts, passhat over tasks"
        yield float(all_c.sum() / all_n.sum()), reason
        yield float(c.sum() / max(1, n.sum())), f"{reason}; source leaves {attempts} out"


def _over_tasks(n: IntArray, c: IntArray, k: int, estimator: _Estimator) -> float:
    """The mean over the tasks that have k attempts."""
    keep = n >= k
    return float(np.mean(estimator(n[keep], c[keep], k))) if keep.any() else math.nan


def _short_as_passed(n: IntArray, c: IntArray, k: int, estimator: _Estimator) -> tuple[float, str]:
    """The well-known mistake: 1 - C(n-c, k) / C(n, k) with n < k, taken to be 1."""
    values = np.ones(len(n))
    if (n >= k).any():
        values[n >= k] = estimator(n[n >= k], c[n >= k], k)
    mean, low, high = float(values.mean()), int(n.min()), int(n.max())
    had = f"n = {low}" if low == high else f"n = {low} to {high}"
    return mean, (
        f"source printed {number(mean)} with {had}: it counts a task with fewer than {k} attempts "
        "as passed; passhat refuses k > n"
    )


def _stderr_ways(run: Run) -> _Ways:
    """The standard error of the mean over tasks, as inspect_ai and lm-eval print it."""
    reason = "the spread of task means over the root of their number"
    for completion in (Completion.AS_FAILED, Completion.DROPPED):
        n, c = run.outcomes.counts(completion)
        means = c[n > 0] / n[n > 0]
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else 0.0
        yield spread / max(1, len(means)) ** 0.5, reason
        reason = "source leaves attempts without a verdict out"


def _counting_text(run: Run) -> str:
    """How this source counts, as far as its reader can state it."""
    return "; ".join(run.source_counts) or "the source does not say how it counted"


def _close(value: float, says: float) -> bool:
    """Equal, as far as the source printed digits."""
    decimals = len(repr(says).partition(".")[2])
    return abs(value - says) <= min(5e-4, max(1e-6, 0.6 * 10.0**-decimals))
