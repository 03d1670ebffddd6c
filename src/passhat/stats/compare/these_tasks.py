"""The lift on exactly these tasks: did the change make this suite better or worse?

The tasks are fixed and so are their success rates; only the attempts would come out differently.
With u the estimate of a metric from c passes in n attempts, the lift D = mean u_B - mean u_A is a
sum of independent terms, and its cumulants depend on the rates only through how often each rate
occurs among the tasks: a distribution G_A for A and G_B for B.

    log E exp(s m D) = m E_A log E[exp(-s u) | p] + m E_B log E[exp(s u) | p]

The interval holds every lift E_B g(p) - E_A g(p) for which some G_A and G_B make the data no
surprise in two ways:

- **counts**: for every j, the share of tasks with at most j passes is one that its Clopper-Pearson
  limits allow. The count is a sum of unequal coins, never more spread than a binomial (Hoeffding
  1956), so the limits hold for fixed rates;
- **lift**: for every s, s D - |s| d - (the cumulants above) / m <= q^2 / (2 m), the signed root of
  a saddlepoint approximation, with d a share of the largest step of D: half, and with few tasks
  up to three quarters. Both constants are those of the interval of a single run.

Both are linear in the weights of G_A and G_B on a grid of rates, and so is the lift: each end is
one linear program. The same idea with one agent and a likelihood region instead of the limits is
the interval of an estimate for these tasks.

References
----------
W. Hoeffding (1956), On the distribution of the number of successes in independent trials, Ann.
    Math. Statist. 27.
H. E. Daniels (1954), Saddlepoint approximations in statistics, Ann. Math. Statist. 25.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import DECIMALS, STEP, FloatArray, IntArray, log_binomial, special
from passhat.stats.compare.lift import Interval, LiftSample, hull
from passhat.stats.compare.pairing import Differences, Pairing, mean_lift
from passhat.stats.compare.significance import pair_drop_p_value, pair_rise_p_value
from passhat.stats.estimate.intervals.frontier import Calibration, thin
from passhat.stats.estimate.intervals.score_levels import cells_at, choose_thresholds
from passhat.stats.estimate.metrics import CountMetric, Metric, ScoreMetric
from passhat.stats.estimate.task_values import TaskValues, verdict_twin
from passhat.stats.outcomes import Completion, Histogram, MissingPolicy, Scores
from passhat.stats.terms import Terms

SparseMatrix = Any
"""A csr_array; the stubs of SciPy's linprog know dense matrices only."""

METHOD = "frontier of task rates by linear programs"

_COUNT_SHARE = 2 / 3
_LARGEST_COUNT_TAIL = 0.05
"""Error of each limit on a count: a share of the end's own error, up to this. Where one agent
always passes, the limits of the other one are the interval: a fixed .05 missed a lift at 99.9% in
.056 of runs. Several limits can miss, each in its own runs; with all of the end's error each, one
end of 5 tasks x 4 misses 1.4 times as often as it should
(docs/benchmarks/these_tasks_exact.md)."""

_STEEPNESS = np.geomspace(0.05, 40, 14)
"""Values of s, in units of one over the range of u."""

_ROOM = 1e-9
"""Added to every limit, so that rates that just meet it are not lost to rounding."""
_MOST_LIMITS = 200
_FEWEST_LIMITS = 8
"""Limits on counts in both directions, over all n and for each n."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The tasks of an agent with the same n: functions of the weights of its grid of rates."""

    share: float  # of all tasks; the sum of the weights
    value: FloatArray
    cumulants: FloatArray
    rows: FloatArray
    limits: FloatArray
    point: float
    step: float


def lift_on_these_tasks(
    a: Histogram, b: Histogram, metric: CountMetric, tail: float, *, sign: int = 0
) -> Interval:
    """The interval of the lift of B over A on the tasks of both histograms.

    ``a`` and ``b`` say how many of the same tasks have c passes in n attempts. ``tail`` is the
    error probability of each end; ``sign`` is 0 for both ends, 1 for the lower only, -1 for the
    upper only.
    """
    if not 0 < tail < 1:
        raise InvalidValue(f"tail must lie between 0 and 1, not {tail:g}.")
    tail = min(tail, 0.5)  # beyond a half the bound would lie on the wrong side of the lift
    tasks = int(a.tasks.sum())
    if tasks != int(b.tasks.sum()):
        raise InvalidValue("both sides need the same tasks.")
    count_tail = min(_COUNT_SHARE * tail, _LARGEST_COUNT_TAIL)
    steepness = np.concatenate([-_STEEPNESS[::-1], _STEEPNESS]) / (metric.highest - metric.lowest)
    groups = [
        *_groups(thin(a, metric.k), metric, -steepness, -1.0, count_tail),
        *_groups(thin(b, metric.k), metric, steepness, 1.0, count_tail),
    ]
    # Where very many attempts were thinned the groups' point is not quite the lift: the ends are
    # moved by the difference.
    near = sum(group.point for group in groups)
    lift = _mean(b, metric) - _mean(a, metric)
    low, high = -1.0, 1.0
    if sign >= 0:
        low = max(-1.0, _end(groups, steepness, near, tasks, tail, 1.0) + lift - near)
    if sign <= 0:
        high = min(1.0, -_end(groups, steepness, near, tasks, tail, -1.0) + lift - near)
    return Interval(min(low, lift), max(high, lift))


def _mean(cells: Histogram, metric: CountMetric) -> float:
    return TaskValues(metric.values(cells.n, cells.c), cells.tasks).mean


def _end(
    groups: Sequence[_Group],
    steepness: FloatArray,
    lift: float,
    tasks: int,
    tail: float,
    direction: float,
) -> float:
    """The smallest ``direction`` times lift that the data allow."""
    from scipy.sparse import block_diag, csr_array

    calibration = Calibration.at(1 - 2 * tail, tasks)
    room = calibration.surprise / tasks
    step = calibration.step * max(group.step for group in groups) / tasks
    program = _Program(
        -np.hstack([group.cumulants for group in groups]),
        room - steepness * lift + np.abs(steepness) * step + _ROOM,
        # A limit is about one group: with many different n, nearly all entries are zero.
        block_diag([csr_array(group.rows) for group in groups], "csr"),
        np.concatenate([group.limits for group in groups]) + _ROOM,
        block_diag([csr_array(np.ones((1, len(group.value)))) for group in groups], "csr"),
        np.array([group.share for group in groups]),
    )
    return program.smallest(direction * np.concatenate([group.value for group in groups]))


@dataclass(frozen=True, slots=True)
class _Program:
    """Linear constraints on the weights; the limits on counts may be dropped."""

    firm_rows: FloatArray
    firm_limits: FloatArray
    rows: SparseMatrix
    limits: FloatArray
    equal_rows: SparseMatrix
    equal_values: FloatArray

    def smallest(self, objective: FloatArray) -> float:
        """The smallest value of the objective; -1, the least that any lift can be, if none is."""
        from scipy.sparse import csr_array, vstack

        firm_rows = csr_array(self.firm_rows)
        limits = np.concatenate([self.firm_limits, self.limits])
        value = self._solve(objective, vstack([firm_rows, self.rows], "csr"), limits)
        if value is None:
            # Counts less spread than any rates make them, such as 7 of 8 on every task: no limit on
            # them can be trusted, and the constraint on the lift alone carries the level. The rates
            # that come closest gave an interval of 0.1 points for 30 tasks x 8.
            value = self._solve(objective, firm_rows, self.firm_limits)
        return -1.0 if value is None else value

    def _solve(self, objective: FloatArray, rows: SparseMatrix, limits: FloatArray) -> float | None:
        from scipy.optimize import linprog

        result = linprog(
            objective,
            A_ub=rows,
            b_ub=limits,
            A_eq=self.equal_rows,
            b_eq=self.equal_values,
            bounds=(0, None),
            method="highs",
        )
        return None if result.status != 0 or result.fun is None else float(result.fun)


def _groups(
    cells: Histogram, metric: CountMetric, steepness: FloatArray, sign: float, count_tail: float
) -> Iterator[_Group]:
    total = float(cells.tasks.sum())
    sizes = np.unique(cells.n).tolist()
    most = max(_FEWEST_LIMITS, _MOST_LIMITS // len(sizes))
    for n in sizes:
        rates = _rates(n)
        log_chance = _log_binomial(n, rates)
        u = metric.values(np.full(n + 1, n), np.arange(n + 1))
        here = cells.n == n
        counts = np.zeros(n + 1)
        counts[cells.c[here]] = cells.tasks[here]
        share = float(counts.sum()) / total
        cumulative = np.cumsum(np.exp(log_chance), axis=1)[:, :-1]
        low, high = _clopper_pearson(np.cumsum(counts)[:-1], counts.sum(), count_tail)
        limits = list(_tightest(cells.c[here], n, low, high, most))
        yield _Group(
            share,
            sign * metric.value_at_rate(rates),
            # At most e^40 with chances of at least e^-700: nothing over- or underflows in the sum.
            np.log(np.exp(np.outer(steepness, u)) @ np.exp(log_chance).T),
            np.array([way * cumulative[:, j] for j, way, _ in limits]),
            np.array([way * limit * share for _, way, limit in limits]),
            sign * float(counts @ u) / total,
            float(np.abs(np.diff(u)).max()),
        )


def _tightest(
    seen: IntArray, n: int, low: FloatArray, high: FloatArray, most: int
) -> Iterator[tuple[int, float, float]]:
    """The limits on the share of tasks with at most j passes that imply all others.

    Between two numbers of passes that were seen, the count and so its limits stay the same, while
    the share under any rates grows with j: the upper limit says most at the last such j, the lower
    one at the first. Of very many numbers some are taken; what is left out widens the interval.
    """
    places = np.unique(seen)
    places = places[np.unique(np.linspace(0, len(places) - 1, most).round().astype(int))]
    for j in (places[places > 0] - 1).tolist():
        yield j, 1.0, float(high[j])
    for j in places[places < n].tolist():
        yield j, -1.0, float(low[j])


def _rates(n: int) -> FloatArray:
    """0, 1, the middle on an arcsine scale, and tails as far as n attempts can distinguish."""
    points = 24 + 4 * int(np.sqrt(n))
    middle = np.sin(np.linspace(0, np.pi / 2, points + 1)) ** 2
    tail = np.geomspace(0.002 / n, float(middle[1]), 6)[:-1]
    return np.unique(np.concatenate([middle, tail, 1 - tail]))


def _log_binomial(n: int, rates: FloatArray) -> FloatArray:
    """Log chance of 0 to n passes, one row per rate."""
    c: IntArray = np.arange(n + 1)
    return np.maximum(log_binomial(n, c, rates[:, None]), -700.0)


def _clopper_pearson(count: FloatArray, tasks: float, tail: float) -> tuple[FloatArray, FloatArray]:
    low = np.where(
        count > 0, special.betaincinv(np.maximum(count, 1), tasks - count + 1, tail), 0.0
    )
    high = np.where(
        count < tasks,
        special.betaincinv(count + 1, np.maximum(tasks - count, 1), 1 - tail),
        1.0,
    )
    return low, high


# -- from pairs of runs --------------------------------------------------------------------------


def bound_lift(pairing: Pairing, metric: Metric, terms: Terms, tail: float) -> Interval:
    """The interval of the lift on the paired tasks, for every way to fill in missing attempts.

    An ordered metric takes the interval of its unordered twin, widened to hold its own lift. With
    one attempt per task the bound on new tasks is the narrower one that holds. Where the share of
    passes is compared, zero is left out if the exact test within tasks rejects it: the interval is
    the set of lifts that their tests do not reject, and zero has a sharper test than the others.
    """
    metric = verdict_twin(metric, pairing.a, pairing.b)
    if isinstance(metric, ScoreMetric):
        return _bound_score_lift(pairing, metric, terms, tail)
    twin = _find_count_twin(metric, pairing, terms)
    if twin is None:
        raise InvalidValue(
            f"the lift of {metric} on these tasks has no interval.",
            hint=Hint("Ask about new tasks ({about}), or for pass^k or pass@k.", about="new tasks"),
        )
    differences = pairing.differences(metric, terms.missing)
    open_ways = terms.missing is MissingPolicy.BOUND and differences.open > 0
    plain = terms.missing.completion
    passed = Completion.AS_PASSED if open_ways else plain
    sign = {"two-sided": 0, "greater": 1, "less": -1}[terms.alternative]
    a, a_passed = (pairing.a.histogram(way) for way in (plain, passed))
    b, b_passed = (pairing.b.histogram(way) for way in (plain, passed))
    if max(int(cells.n.max()) for cells in (a, b)) == 1:
        # One attempt tells nothing of single rates, but the pairs still do: unequal tasks spread
        # their sum less than tasks drawn from one population, so the bound on new tasks holds.
        ends = hull(LiftSample.of(d).interval(tail, terms.alternative) for d in differences.fills)
        return _leave_out_zero(ends, pairing, metric, terms, tail)
    if open_ways:
        low = lift_on_these_tasks(a_passed, b, twin, tail, sign=1).low if sign >= 0 else -1.0
        high = lift_on_these_tasks(a, b_passed, twin, tail, sign=-1).high if sign <= 0 else 1.0
        ends = Interval(low, high)
    else:
        ends = lift_on_these_tasks(a, b, twin, tail, sign=sign)
    return _leave_out_zero(_holding_lifts(ends, differences), pairing, metric, terms, tail)


def _holding_lifts(ends: Interval, differences: Differences) -> Interval:
    """The interval, widened to hold the lift for every way to fill in missing attempts."""
    lifts = [mean_lift(d) for d in differences.fills]
    return hull([ends, *(Interval(lift, lift) for lift in lifts)])


def _bound_score_lift(pairing: Pairing, metric: ScoreMetric, terms: Terms, tail: float) -> Interval:
    """The interval of the lift in a metric of scores: the average over thresholds.

    Where one attempt is made at each task, the bound on new tasks holds here, too.
    """
    differences = pairing.differences(metric, terms.missing)
    plain = terms.missing.completion
    is_open = terms.missing is MissingPolicy.BOUND and differences.open > 0
    if max(int(side.counts(plain)[0].max()) for side in (pairing.a, pairing.b)) == 1:
        return hull(LiftSample.of(d).interval(tail, terms.alternative) for d in differences.fills)
    passed = Completion.AS_PASSED if is_open else plain
    low = high = None
    if terms.alternative != "less":
        ways = pairing.a.graded(passed), pairing.b.graded(plain)
        low = mean_lift(differences.lowest) - _score_reach(*ways, metric, tail, 1)
    if terms.alternative != "greater":
        ways = pairing.a.graded(plain), pairing.b.graded(passed)
        high = mean_lift(differences.highest) + _score_reach(*ways, metric, tail, -1)
    ends = Interval(
        -1.0 if low is None else max(low, -1.0), 1.0 if high is None else min(high, 1.0)
    )
    return _holding_lifts(ends, differences)


def _score_reach(a: Scores, b: Scores, metric: ScoreMetric, tail: float, sign: int) -> float:
    """How far the lower end (sign 1) or the upper end (-1) lies from the lift."""
    verdict_metric, reach = metric.verdict_metric, 0.0
    for threshold in choose_thresholds(a, b):
        cells_a, cells_b = cells_at(a, threshold), cells_at(b, threshold)
        lift = _mean(cells_b, verdict_metric) - _mean(cells_a, verdict_metric)
        ends = lift_on_these_tasks(cells_a, cells_b, verdict_metric, tail, sign=sign)
        reach += threshold.weight * (lift - ends.low if sign > 0 else ends.high - lift)
    return reach


def _leave_out_zero(
    ends: Interval, pairing: Pairing, metric: Metric, terms: Terms, tail: float
) -> Interval:
    """End the interval before zero where the exact test within tasks shows a change."""
    if not isinstance(metric, CountMetric) or not ends.low <= 0 <= ends.high:
        return ends
    if terms.alternative != "greater":
        p_drop = pair_drop_p_value(pairing, metric, terms.missing)
        if p_drop is not None and p_drop <= tail:
            return end_below_zero(ends, pairing)
    if terms.alternative != "less":
        p_rise = pair_rise_p_value(pairing, metric, terms.missing)
        if p_rise is not None and p_rise <= tail:
            return Interval(_half_step(pairing), ends.high)
    return ends


def end_below_zero(ends: Interval, pairing: Pairing) -> Interval:
    """The interval without zero and all rises, for a drop that a test of its own shows."""
    return Interval(ends.low, min(ends.high, -_half_step(pairing)))


def _half_step(pairing: Pairing) -> float:
    """Half of what one attempt moves the lift by, not less than the decimals of an interval."""
    return max(round(1 / (pairing.a.attempts + pairing.b.attempts), DECIMALS), STEP)


def can_bound_lift(metric: Metric, pairing: Pairing, terms: Terms) -> bool:
    """Whether the lift of a metric has an interval about these tasks."""
    return isinstance(metric, ScoreMetric) or _find_count_twin(metric, pairing, terms) is not None


def _find_count_twin(metric: Metric, pairing: Pairing, terms: Terms) -> CountMetric | None:
    """The metric itself if it depends on counts only, or a count metric of equal truth."""
    attempts, _ = pairing.a.counts(terms.missing.completion)
    return metric.as_count_metric(int(attempts.max()))
