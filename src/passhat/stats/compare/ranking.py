"""Many agents on the same tasks: the ranks that are possible, and who is worth the price.

Every pair is tested in both directions and Holm's procedure decides which differences are shown,
so that with the wanted confidence *none* of them is false. An agent's best possible rank is one
below the number of agents shown to be better, its worst one above those shown to be worse: all true
ranks are held at once (Mogstad, Romano, Shaikh and Wilhelm 2024, Inference for Ranks).

About new tasks the p-value of a pair is the tail at which Gaffke's bound of the lift reaches zero,
which is computed and not simulated. About these tasks it is that of the exact test within tasks
where the share of passes is compared and all tasks have the same number of attempts; elsewhere
the bound on new tasks is taken, which holds there as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np

from passhat.stats.arrays import BoolArray, FloatArray
from passhat.stats.compare.lift import LiftSample
from passhat.stats.compare.significance import drop_p_value, holm, is_share_of_passes
from passhat.stats.estimate.intervals.dirichlet_mean import lower_probability
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.estimate.task_values import values_by_task, verdict_twin
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes
from passhat.stats.terms import Population, Terms

_DRAWS = 1_000
_SEED = 20_261_118
_MOST_STEPS = 400
"""Exact sums of that many steps; there may be more than a thousand pairs."""
_MOST_CELLS = 1_000_000
_CELLS = 512
"""Different lifts of a pair at most; finer ones are rounded against the claim."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The order of agents, as far as it is shown."""

    metric: Metric
    """The metric that ranks."""
    values: FloatArray
    """Its value for each agent."""
    p_values: FloatArray
    """Agents x agents: of the row's agent being better than the column's: one-sided, not corrected.
    """
    is_better: BoolArray
    """Agents x agents: whether the row's agent is shown to be better than the column's, all pairs
    together.
    """
    best: list[int]
    worst: list[int]
    """``best``, ``worst``: the possible ranks of each agent."""
    method: str
    """How pairs were tested."""

    @property
    def order(self) -> list[int]:
        """The agents, the best value first; ties by their possible ranks."""
        keys = [
            (-round(v, 12), b + w)
            for v, b, w in zip(self.values.tolist(), self.best, self.worst, strict=True)
        ]
        return sorted(range(len(keys)), key=lambda i: (*keys[i], i))


def rank_agents(sides: Sequence[Outcomes], metric: Metric, terms: Terms) -> Ranking:
    """Rank agents whose outcomes are of the same tasks in the same order."""
    policy = terms.missing
    twin = verdict_twin(metric, *sides)
    lowest = np.stack([values_by_task(side, twin, policy.completion) for side in sides], axis=1)
    highest = lowest
    if policy is MissingPolicy.BOUND and any(side.total_missing for side in sides):
        highest = np.stack(
            [values_by_task(side, twin, Completion.AS_PASSED) for side in sides], axis=1
        )
    method = "Gaffke's bound on [-1, 1]"
    p_values = None
    if terms.about() is Population.THESE_TASKS:
        p_values = _p_within_tasks(sides, twin, policy)
        method = method if p_values is None else "exact test within tasks"
    if p_values is None:
        clusters = None if terms.cluster is None else sides[0].label(terms.cluster)
        p_values = _p_by_bound(lowest, highest, clusters)
    is_better, best, worst = rank_sets(p_values, 1 - terms.level)
    return Ranking(metric, lowest.mean(axis=0), p_values, is_better, best, worst, method)


def rank_sets(p_values: FloatArray, alpha: float) -> tuple[BoolArray, list[int], list[int]]:
    """Pairs that Holm shows to differ, and the best and worst rank of each agent."""
    count = len(p_values)
    is_better = np.zeros((count, count), np.bool_)
    pairs = list(combinations(range(count), 2))
    # A pair is one hypothesis, "no difference": Holm counts pairs, not their two directions.
    if pairs:
        two_sided = [min(1.0, 2 * min(p_values[i, j], p_values[j, i])) for i, j in pairs]
        for (i, j), corrected in zip(pairs, holm(two_sided).tolist(), strict=True):
            if corrected <= alpha:
                first = p_values[i, j] <= p_values[j, i]
                is_better[(i, j) if first else (j, i)] = True
    best = (1 + is_better.sum(axis=0)).tolist()
    worst = (count - is_better.sum(axis=1)).tolist()
    return is_better, best, worst


def _p_by_bound(
    lowest: FloatArray, highest: FloatArray, clusters: Sequence[str] | None
) -> FloatArray:
    """The tail at which the lower bound of each lift reaches zero."""
    count = lowest.shape[1]
    p_values = np.ones((count, count))
    samples: dict[int, list[tuple[int, int, LiftSample]]] = {}
    for i, j in permutations(range(count), 2):
        sample = LiftSample.of(_coarsen(lowest[:, i] - highest[:, j]), clusters)
        # Half of the pairs point the wrong way, and no bound can show them.
        if sample.mean > 0:
            samples.setdefault(len(sample.values), []).append((i, j, sample))
    for group in samples.values():
        shares = np.stack([(1 + sample.values) / 2 for _, _, sample in group])
        counts = np.stack([sample.counts for _, _, sample in group])
        sizes = np.stack([sample.sizes for _, _, sample in group])
        typical = np.array([sample.typical_size for _, _, sample in group])
        found = lower_probability(shares, counts, 0.5, sizes=sizes, unseen_size=typical)
        for (i, j, _), p in zip(group, found.tolist(), strict=True):
            p_values[i, j] = p
    return p_values


def _coarsen(differences: FloatArray) -> FloatArray:
    """Differences rounded down to steps where there are too many different ones."""
    if len(differences) <= _CELLS or len(np.unique(differences)) <= _CELLS:
        return differences
    return np.maximum(np.floor(differences * _CELLS / 2) / (_CELLS / 2), -1.0)


def _p_within_tasks(
    sides: Sequence[Outcomes], metric: Metric, policy: MissingPolicy
) -> FloatArray | None:
    """Of the exact test within tasks; ``None`` where it does not apply."""
    n, _ = sides[0].counts(policy.completion)
    size = int(n[0])
    if not isinstance(metric, CountMetric) or not is_share_of_passes(metric, size):
        return None
    is_bound = policy is MissingPolicy.BOUND
    counts = [side.counts(policy.completion) for side in sides]
    if any(bool((side_n != size).any()) for side_n, _ in counts):
        return None
    low = [c for _, c in counts]
    high = [
        side.counts(Completion.AS_PASSED)[1] if is_bound else c
        for side, c in zip(sides, low, strict=True)
    ]
    p_values = np.ones((len(sides), len(sides)))
    for i, j in permutations(range(len(sides)), 2):
        if low[i].sum() > high[j].sum():  # the other direction cannot be shown
            p_values[i, j] = drop_p_value(size, low[i], high[j], most_steps=_MOST_STEPS)
    return p_values


def find_groups(ranking: Ranking) -> list[tuple[int, ...]]:
    """Groups of agents of which none is shown to be better than another, in the order of rank.

    From every agent downwards the agents that none of the group beats; a group within another one
    is left out.
    """
    differs = ranking.is_better | ranking.is_better.T
    groups: list[tuple[int, ...]] = []
    order = ranking.order
    for place, first in enumerate(order):
        group = [first]
        for other in order[place + 1 :]:
            if not differs[other, group].any():
                group.append(other)
        if not any(set(group) <= set(earlier) for earlier in groups):
            groups.append(tuple(group))
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """The Pareto front of value and price.

    ``share`` is the part of redraws of the tasks in which an agent is on it.
    """

    is_on_front: BoolArray
    share: FloatArray = field(default_factory=lambda: np.zeros(0))


def find_front(values: FloatArray, prices: FloatArray) -> Front:
    """The agents for which no other is at least as good and cheaper, or better and as cheap.

    ``values`` and ``prices`` (tasks x agents) are the value and the mean price of an attempt on
    each task. The tasks are drawn again with Rubin's weights, the same for all agents.
    """
    plain = np.full((1, len(values)), 1 / len(values))
    is_on_front = next(_fronts(values, prices, plain))[0]
    draws = max(min(_DRAWS, _MOST_CELLS // len(values)), 50)
    weights = np.random.default_rng(_SEED).dirichlet(np.ones(len(values)), draws)
    share = np.concatenate(list(_fronts(values, prices, weights))).mean(axis=0)
    return Front(is_on_front, share)


def _fronts(values: FloatArray, prices: FloatArray, weights: FloatArray) -> Iterator[BoolArray]:
    # Agents that tie on paper must tie here, too: the last bits of a product differ by processor.
    value, price = (np.round(weights @ side, 12) for side in (values, prices))
    for start in range(0, len(weights), 50):
        v, p = value[start : start + 50], price[start : start + 50]
        as_good = v[:, :, None] >= v[:, None, :]
        as_cheap = p[:, :, None] <= p[:, None, :]
        is_same = (v[:, :, None] == v[:, None, :]) & (p[:, :, None] == p[:, None, :])
        yield ~(as_good & as_cheap & ~is_same).any(axis=1)
