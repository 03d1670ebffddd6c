"""Interval for `delta^k` over new tasks: how much uneven difficulty adds to pass^k.

See `new_tasks` for the bound and its papers; here it is applied to a function of two means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray, special
from passhat.stats.estimate.intervals.new_tasks import (
    UNSEEN,
    Intervals,
    Sides,
    containing,
    drop_empty_cells,
    group_by_cluster,
    scale_values,
    tail_probability,
)
from passhat.stats.estimate.metrics.delta import Tangents

MOST_DRAWS, FEWEST_DRAWS = 20_000, 5_000
"""Standard error of an end at 20 tasks, k = 8: about .002 in a width of .3, and less beyond."""
_MOST_WEIGHTS = 20_000_000
SEED = 20_190_516


def gaffke_delta(
    powers: ArrayLike,
    rates: ArrayLike,
    weights: ArrayLike,
    ks: Sequence[int],
    *,
    level: float = 0.95,
    sides: Sides = "two",
    unseen: float = UNSEEN,
    draws: int | None = None,
    seed: int | np.random.Generator = SEED,
) -> Intervals:
    r"""Interval for `delta^k = E[p^k] - (E p)^k` over tasks like these.

    A function of two means, so both come from the same weights. Gaffke's argument carries over: let
    the unseen task, of share :math:`\varepsilon = e / (\sum w + e)`, sit where it hurts most,

    .. math:: \min \text{ or } \max_{(u, v)} \;
              (1-\varepsilon) X + \varepsilon u - ((1-\varepsilon) Y + \varepsilon v)^k .

    The pairs (pass^k, pass^1) one task can show, for any number of attempts, fill the triangle
    (0, 0), ((k-1)/k, 0), (1, 1): below, because pass^k is convex in c and its last step always
    lies on u = k v - (k - 1); above, because pass^k <= pass^1. The expression is concave in (u, v):
    its minimum is at a corner, its maximum on the edge u = v, where it has a closed form.

    The truth lies in [0, max(mu - mu^k)], so the ends are cut to that; the sample value can be
    negative (a task with c < k passes shows pass^k = 0), and then the interval is extended down to
    it and flagged. The width is never zero: the upper end puts the unseen task off the average.

    ``powers``, (U,) or (M, U) with a row for each of ``ks`` (all >= 2), is pass^k of each cell,
    ``rates`` (U,) its pass^1, and ``weights`` (U,) its number of tasks. Draws go by cell, so the
    order of cells must be canonical, as that of a histogram is. Larger suites get fewer ``draws``,
    since their ends vary less; ``seed`` may be a Generator. The rest as in :func:`gaffke`.
    """
    cells, counts = drop_empty_cells(_rows(powers, rates, ks), weights)
    weights_of_cells = _Weighed(cells, counts, np.ones(counts.size), 1.0)
    return _ends(weights_of_cells, ks, level, sides, unseen, draws, seed)


def gaffke_delta_clusters(
    powers: ArrayLike,
    rates: ArrayLike,
    clusters: ArrayLike,
    ks: Sequence[int],
    *,
    level: float = 0.95,
    sides: Sides = "two",
    unseen: float = UNSEEN,
    draws: int | None = None,
    seed: int | np.random.Generator = SEED,
) -> Intervals:
    r"""The same when tasks of one cluster resemble each other.

    As in `gaffke_clusters` the clusters carry the weights and the unseen one has the size a task
    finds its cluster to have on average; :math:`\varepsilon` is its share of the tasks. What a
    whole cluster shows is an average of points of the triangle and lies in it, so the worst places
    are the same. With one task per cluster this is `gaffke_delta`.

    As :func:`gaffke_delta`, but ``powers`` (T,) or (M, T), ``rates`` (T,) and ``clusters`` are by
    task.
    """
    groups = group_by_cluster(_rows(powers, rates, ks), clusters)
    shapes = np.ones(groups.sizes.size)
    weights_of_clusters = _Weighed(groups.means, shapes, groups.sizes, groups.typical)
    return _ends(weights_of_clusters, ks, level, sides, unseen, draws, seed)


def bound_delta(
    cells: IntArray,
    k: int,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    unseen: float = UNSEEN,
    seed: int | np.random.Generator = SEED,
) -> tuple[float, float]:
    """Ends that reach as far as those of `gaffke_delta` for any filling of missing attempts.

    In every draw each task is filled in where it hurts most, so that the ends may reach a little
    further than those of the worst single filling.

    ``cells`` holds attempts, passes and missing attempts of every task, (3, T); ``clusters`` their
    cluster labels.
    """
    tangents = Tangents.of(k)
    kinds, place, tasks = np.unique(cells, axis=1, return_inverse=True, return_counts=True)
    numbers = np.vstack(tangents.values(kinds))
    given = _Weighed(numbers, tasks.astype(np.float64), np.ones(len(tasks)), 1.0)
    if clusters is not None:
        # They lie between -k and 1, and are grouped as shares.
        groups = group_by_cluster((numbers[:, place.ravel()] + k) / (k + 1), clusters)
        means = (k + 1) * groups.means - k
        given = _Weighed(means, np.ones(groups.sizes.size), groups.sizes, groups.typical)
    draws = _draws_for(given)
    share, samples = _joint_draws(given, unseen, draws, np.random.default_rng(seed))
    lows, highs = np.split(samples + np.tile(tangents.offsets, 2), 2, axis=1)
    # The unseen task at a corner of its triangle, as in `_ends`.
    corners = np.minimum(-tangents.slopes * (k - 1) / k, 1 - tangents.slopes)
    lows = (lows + share * corners).min(axis=1) - tangents.gap
    highs = (highs + share * np.maximum(1 - tangents.slopes, 0.0)).min(axis=1)
    tail, top = tail_probability(level, "two"), (k - 1) * k ** (-k / (k - 1))
    low, high = float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail))
    return min(max(low, 0.0), top), min(max(high, 0.0), top)


def _rows(powers: ArrayLike, rates: ArrayLike, ks: Sequence[int]) -> FloatArray:
    """pass^1 above pass^k for each k, checked."""
    rows = np.vstack([np.asarray(rates, dtype=np.float64), np.atleast_2d(powers)])
    if len(rows) != len(ks) + 1 or min(ks, default=0) < 2:
        raise InvalidValue(f"expected one row of powers for each k >= 2; got ks={list(ks)}")
    return scale_values(rows, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Means of cells or clusters, the Gamma shapes of their weights, and tasks per weight."""

    means: FloatArray
    shapes: FloatArray
    sizes: FloatArray
    unseen_size: float


def _ends(
    given: _Weighed,
    ks: Sequence[int],
    level: float,
    sides: Sides,
    unseen: float,
    draws: int | None,
    seed: int | np.random.Generator,
) -> Intervals:
    """Both ends from joint draws, with the unseen task or cluster where it hurts most."""
    k = np.asarray(ks, dtype=np.float64)
    tasks = given.shapes * given.sizes
    means = given.means @ tasks / tasks.sum()
    points = means[1:] - means[0] ** k
    draws = _draws_for(given) if draws is None else draws
    share, samples = _joint_draws(given, unseen, draws, np.random.default_rng(seed))
    power, rate = samples[:, 1:], samples[:, :1]  # already multiplied by (1 - share)
    tail = tail_probability(level, sides)

    low_corners = (
        power - (rate + share * (k - 1) / k) ** k,
        power + share - (rate + share) ** k,
    )
    lows = np.quantile(np.minimum(*low_corners), tail, axis=0)
    best = np.clip(k ** (-1 / (k - 1)) - rate, 0.0, share)  # share times the worst task's rate
    highs = np.quantile(power + best - (rate + best) ** k, 1 - tail, axis=0)

    top = (k - 1) * k ** (-k / (k - 1))
    lows = np.zeros_like(top) if sides == "upper" else np.clip(lows, 0.0, top)
    highs = top if sides == "lower" else np.clip(highs, 0.0, top)
    return containing(points, lows, highs)


def _draws_for(given: _Weighed) -> int:
    """Fewer draws for more tasks: their ends hardly vary between draws."""
    draws = int(np.clip(20 * MOST_DRAWS / given.shapes.sum(), FEWEST_DRAWS, MOST_DRAWS))
    return min(draws, max(1_000, _MOST_WEIGHTS // given.shapes.size))


def _joint_draws(
    given: _Weighed, unseen: float, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the unseen share of tasks, (draws, 1), and the seen part of M means, (draws, M)."""
    block = max(1, 2_000_000 // given.shapes.size)
    # The unseen task decides the ends of small suites: evenly spread over its distribution, and
    # independent of the others, it costs less noise than a random draw.
    spread = (np.arange(draws) + 0.5) / draws
    strata = -np.log1p(-spread) if unseen == 1 else special.gammaincinv(unseen, spread)
    strata = rng.permutation(strata) * given.unseen_size
    shares, parts = [], []
    for start in range(0, draws, block):
        size = min(block, draws - start)
        extra = strata[start : start + size, None]
        gammas = rng.standard_gamma(given.shapes, size=(size, given.shapes.size)) * given.sizes
        total = gammas.sum(axis=1, keepdims=True) + extra
        shares.append(extra / total)
        parts.append(gammas @ given.means.T / total)
    return np.concatenate(shares), np.concatenate(parts)
