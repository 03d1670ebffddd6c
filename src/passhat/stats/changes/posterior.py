"""Which revision changed it: the posterior over change points from all attempts made so far.

One revision among many is taken to have broken something. A revision contains the change or it
does not, so for every candidate all attempts fall into two pools per task: before and after. The
marginal likelihood of a task mixes four explanations: its rate is the same in both pools; it fell
by an amount (in logits) that many tasks share; it fell by any amount; or it has to do with
another revision, or with an improvement, and says nothing about this candidate. The last one
bounds what a single task can say, so that a second change elsewhere does not decide alone. The
shares of the explanations and the common amount are unknown, and are averaged over a grid.

Independent rates before and after for every task would be overconfident where a drop is spread
thinly over all tasks (48% right where 95% was claimed); the common amount is the remedy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.arrays import BoolArray, FloatArray, IntArray, special

_STEP = 0.25
_LOGITS = np.arange(-22, 23) * _STEP
_LOG_P, _LOG_Q = -np.log1p(np.exp(-_LOGITS)), -np.log1p(np.exp(_LOGITS))
_RATES = np.exp(_LOG_P)
_JEFFREYS = np.exp(0.5 * (_LOG_P + _LOG_Q))
_SHIFTS = (1, 2, 3, 4, 6, 8, 12, 18)
"""Common drops in steps of the grid: 6 points at a rate of one half, up to always against never."""
_ELSEWHERE = 0.02
"""Of the tasks that moved on their own, the share that another revision may have moved."""
_SHARES = tuple(
    (common * (1 - (1 + _ELSEWHERE) * single), single)
    for single in (0.01, 0.03, 0.1, 0.3, 0.9)
    for common in (0.0, 0.5, 0.98)
)
"""Shares of tasks with the common drop, and of tasks with a drop of their own."""
_PRIOR_TASKS = 5.0
"""The weight of the first guess about how rates are spread, in tasks."""
_SPREAD_STEPS = 3


def in_order(count: int) -> BoolArray:
    """Which of ``count`` revisions in a row contain the change, by candidate: it and those after.

    Examples
    --------
    >>> in_order(3).astype(int).tolist()
    [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    """
    return np.triu(np.ones((count, count), np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class ChangePosterior:
    """The chances of all candidates, and the rates before and after."""

    chances: FloatArray
    """The chance of every candidate."""
    before: FloatArray
    after: FloatArray
    """``before``, ``after``: the expected rate of every task without and with the change, at the
    likeliest candidate.
    """

    @property
    def best(self) -> int:
        """The likeliest candidate."""
        return int(self.chances.argmax())

    def smallest_set(self, level: float) -> tuple[int, ...]:
        """The fewest candidates that hold the change with this chance, in their order."""
        order = np.argsort(-self.chances, kind="stable")
        count = int(np.searchsorted(np.cumsum(self.chances[order]), level - 1e-12)) + 1
        return tuple(sorted(order[:count].tolist()))


def locate_change(contains: BoolArray, n: IntArray, c: IntArray) -> ChangePosterior:
    """The posterior over candidates.

    ``contains`` (candidates x revisions) says whether a revision contains a candidate's change; see
    :func:`in_order`. ``n`` and ``c`` (revisions x tasks) are attempts with a verdict and passes.
    """
    tried = n.any(axis=1)
    rows, group = np.unique(contains[:, tried], axis=0, return_inverse=True)
    group = group.ravel()
    sizes = np.bincount(group)
    tasks = np.asarray(n.any(axis=0), np.bool_)
    n, c = n[tried][:, tasks], c[tried][:, tasks]
    marks = rows.astype(np.int64)
    n_after, c_after = marks @ n, marks @ c
    n_before, c_before = n.sum(axis=0) - n_after, c.sum(axis=0) - c_after
    spread = _fit_spread(n, c)
    model = _Model(
        np.log(spread),
        _log_likelihood(n_before, c_before),
        _log_likelihood(n_after, c_after),
        np.log(sizes / sizes.sum()),
    )
    logs = model.log_posterior()
    chances_of_rows = np.exp(logs - special.logsumexp(logs))
    before, after = np.full(len(tasks), np.nan), np.full(len(tasks), np.nan)
    before[tasks], after[tasks] = model.expected_rates(int((chances_of_rows / sizes).argmax()))
    return ChangePosterior((chances_of_rows / sizes)[group], before, after)


def _fit_spread(n: IntArray, c: IntArray) -> FloatArray:
    """How rates are spread over tasks: weights on the grid, learned from all revisions."""
    first_guess: FloatArray = _JEFFREYS / _JEFFREYS.sum()
    spread = first_guess
    logs = _log_likelihood(n.sum(axis=0), c.sum(axis=0))
    likelihood = np.exp(logs - logs.max(axis=-1, keepdims=True))
    for _ in range(_SPREAD_STEPS):
        shares = likelihood * spread
        shares /= shares.sum(axis=-1, keepdims=True)
        total = _PRIOR_TASKS * first_guess + shares.sum(axis=0)
        spread = np.asarray(total / total.sum(), np.float64)
    return spread


def _log_likelihood(n: IntArray, c: IntArray) -> FloatArray:
    """Log-likelihood of counts at every rate of the grid, along a last axis."""
    logs: FloatArray = c[..., None] * _LOG_P + (n - c)[..., None] * _LOG_Q
    return logs


def _log_mean(logs: FloatArray) -> FloatArray:
    """log(sum(exp(logs))) over the last axis; quicker than the general function."""
    top = logs.max(axis=-1)
    total: FloatArray = top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))
    return total


class _Model:
    """Marginal likelihoods of tasks under the explanations, for every way to split revisions."""

    def __init__(
        self, log_spread: FloatArray, before: FloatArray, after: FloatArray, prior: FloatArray
    ) -> None:
        self._log_spread, self._prior = log_spread, prior
        self._before, self._after = before + log_spread, after
        self._same = _log_mean((self._before + after)[0])
        self._common = np.stack([_log_mean(self._shift_terms(shift)) for shift in _SHIFTS])
        self._single = _log_mean(self._drop_terms())
        both = _log_mean(self._before) + _log_mean(after + log_spread)
        self._elsewhere = special.logsumexp(both + prior[:, None], axis=0)

    def _shift_terms(self, shift: int, rows: slice | int = slice(None)) -> FloatArray:
        """Terms of the common drop: the rate after is ``shift`` steps below that before."""
        after = self._after[rows]
        lowest = np.repeat(after[..., :1], shift, axis=-1)
        lower_terms = np.concatenate([lowest, after[..., :-shift]], axis=-1)
        return np.asarray(self._before[rows] + lower_terms, np.float64)

    def _drop_terms(self, rows: slice | int = slice(None)) -> FloatArray:
        """Terms of a drop by any amount, by the rate before; the rate after is below it."""
        after = self._after[rows] + self._log_spread
        top = after.max(axis=-1, keepdims=True)
        below = np.cumsum(np.exp(after - top), axis=-1)[..., :-1]
        spread = np.exp(self._log_spread)
        scale = np.log(float(spread[1:] @ np.cumsum(spread)[:-1]))
        with np.errstate(divide="ignore"):
            logs = np.log(below) + top
        return np.asarray(self._before[rows][..., 1:] + logs - scale, np.float64)

    def _mixtures(self) -> list[tuple[float, float, int | None]]:
        """(share with the common drop, share with a drop of its own, the common drop)."""
        return [
            (common, single, place)
            for common, single in _SHARES
            for place in (range(len(_SHIFTS)) if common else (None,))
        ]

    def _log_tasks(self, common: float, single: float, place: int | None) -> FloatArray:
        """Log-likelihood of every task under a mixture, for every split."""
        same = 1 - (1 + _ELSEWHERE) * single - common
        elsewhere = np.log(_ELSEWHERE * single) + self._elsewhere
        logs = np.logaddexp(np.log(single) + self._single, elsewhere)
        logs = np.logaddexp(logs, np.log(max(same, 1e-12)) + self._same)
        if place is not None:
            logs = np.logaddexp(logs, np.log(common) + self._common[place])
        return np.asarray(logs, np.float64)

    def _log_weight(self, common: float) -> float:
        """The mixtures of one pair of shares have the weight of one."""
        return -float(np.log(len(_SHIFTS))) if common else 0.0

    def log_posterior(self) -> FloatArray:
        """Of every split, up to a constant."""
        logs = [
            self._log_tasks(common, single, place).sum(axis=-1) + self._log_weight(common)
            for common, single, place in self._mixtures()
        ]
        return np.asarray(special.logsumexp(logs, axis=0) + self._prior, np.float64)

    def expected_rates(self, row: int) -> tuple[FloatArray, FloatArray]:
        """The expected rate of every task before and after, at one split."""
        mixtures = self._mixtures()
        by_task = np.stack([self._log_tasks(*mixture)[row] for mixture in mixtures])
        weights = by_task.sum(axis=-1) + [self._log_weight(common) for common, _, _ in mixtures]
        weights = np.exp(weights - special.logsumexp(weights))
        evidence = np.stack([self._same, self._elsewhere, self._single[row], *self._common[:, row]])
        chances = np.zeros_like(evidence)
        for weight, logs, (common, single, place) in zip(weights, by_task, mixtures, strict=True):
            shares = np.zeros(len(evidence))
            same = max(1 - (1 + _ELSEWHERE) * single - common, 1e-12)
            shares[:3] = same, _ELSEWHERE * single, single
            if place is not None:
                shares[3 + place] = common
            chances += weight * shares[:, None] * np.exp(evidence - logs)
        rates = self._rates(row)
        before, after = (np.stack(side) for side in zip(*rates, strict=True))
        return (chances * before).sum(axis=0), (chances * after).sum(axis=0)

    def _rates(self, row: int) -> list[tuple[FloatArray, FloatArray]]:
        """Expected rates before and after: the same, elsewhere, an own drop, each common drop."""
        same = _weigh(self._before[row] + self._after[row]) @ _RATES
        after = _weigh(self._after[row] + self._log_spread)
        below = np.cumsum(after, axis=-1)[..., :-1]
        mean_below = np.cumsum(after * _RATES, axis=-1)[..., :-1] / np.maximum(below, 1e-300)
        drop = _weigh(self._drop_terms(row))
        rates = [(same, same), (same, same), (drop @ _RATES[1:], (drop * mean_below).sum(axis=-1))]
        for shift in _SHIFTS:
            shares = _weigh(self._shift_terms(shift, row))
            lower = _RATES[np.maximum(np.arange(len(_RATES)) - shift, 0)]
            rates.append((shares @ _RATES, shares @ lower))
        return rates


def _weigh(logs: FloatArray) -> FloatArray:
    """Shares of the terms over the last axis."""
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True), np.float64)
