"""Tests of "no difference": exact where they can be, and corrected for how many there are.

The first ones look only at the differences per task. If A and B are exchangeable on a task, its
difference is as likely to be +d as -d; flipping signs at random therefore gives the distribution
that the sum of differences has when nothing is different.

**Within tasks.** Did the mean change on these tasks? The attempts of each task are dealt again.

If no task changed, the attempts of a task are alike under both agents: given its passes under both
together, those of B are hypergeometric. The sum over tasks of B's passes then has a known
distribution, whatever the rates are (the exact test of Mantel and Haenszel, with tasks as strata).

Where tasks did change and their rises and drops cancel, the test still holds. With n attempts on
each side and a change d of a task's rate, the variance it reckons with is on average the true one
plus n d^2 (1 + 1 / (2n - 1)) / 2 per task: never less. That needs the same n on both sides and at
all tasks, and a metric that is the share of passes; elsewhere there is no such test. With one n for
A and another for B the reckoned variance can be less than the true one where changes cancel; then
the test of the means with each side's own variance must agree.

References
----------
N. Mantel and W. Haenszel (1959), Statistical aspects of the analysis of data from retrospective
    studies of disease, J. Natl. Cancer Inst. 22.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from passhat.errors import InvalidCounts, InvalidValue
from passhat.protocol import Alternative
from passhat.stats.arrays import FloatArray, IntArray, log_choose, special
from passhat.stats.compare.pairing import Pairing
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, MissingPolicy

SEED = 20240712
"""Where random signs start: the same data give the same p-value every time."""

_DRAWS = 19_999
_MOST_STEPS = 100_000_000
"""Additions spent on an exact distribution, about a fifth of a second; beyond that it is drawn."""
_MOST_ENUMERATED = 20
_MOST_VALUES = 2_000
_LARGEST_DENOMINATOR = 100_000
_SAME = 1e-9
"""Two sums closer than this share of the largest possible one count as equal."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A p-value and how it was made."""

    p_value: float
    method: str


def sign_test(wins: int, losses: int, alternative: Alternative = "two-sided") -> Tested:
    """The exact sign test: could a fair coin give these wins and losses? Ties are ignored.

    Examples
    --------
    >>> round(sign_test(13, 3, "greater").p_value, 4)
    0.0106
    >>> sign_test(1, 0, "greater").p_value, sign_test(0, 0).p_value
    (0.5, 1.0)
    """
    if wins < 0 or losses < 0:
        raise InvalidCounts(f"wins and losses are counts, not {wins} and {losses}.")
    greater, less = _heads(wins, losses), _heads(losses, wins)
    one_sided = {"greater": greater, "less": less}
    p_value = one_sided.get(alternative, min(1.0, 2 * min(greater, less)))
    return Tested(p_value, "exact sign test")


def _heads(heads: int, tails: int) -> float:
    """P(at least this many heads) of a fair coin."""
    return 1.0 if heads == 0 else float(special.betainc(heads, tails + 1, 0.5))


def sign_flip_test(
    differences: npt.ArrayLike, alternative: Alternative = "two-sided", *, seed: int = SEED
) -> Tested:
    """Could the differences, each with a random sign, sum to this much?

    Exact when the differences are whole multiples of one fraction (as those of pass@k and pass^k
    are) and the table of sums is small enough, or when there are few of them; otherwise by seeded
    draws, with (1 + hits) / (1 + draws).
    """
    d = np.asarray(differences, np.float64)
    if not np.isfinite(d).all():
        raise InvalidValue("the differences must be numbers.")
    sizes, counts = np.unique(np.abs(d[d != 0]), return_counts=True)
    if len(sizes) == 0:
        return Tested(1.0, "exact sign-flip test")
    if len(sizes) == 1:
        wins = int((d > 0).sum())
        exact = sign_test(wins, int(counts[0]) - wins, alternative)
        return Tested(exact.p_value, "exact sign-flip test")
    sums = _all_sums(sizes, counts)
    if sums is not None:
        return Tested(_beyond(*sums, float(d.sum()), alternative), "exact sign-flip test")
    draws = _draw_sums(sizes, counts, np.random.default_rng(seed))
    # The sum that was seen is one of those that were possible; counting it keeps the test honest.
    draws = np.append(draws, d.sum())
    p_value = _beyond(draws, np.full(len(draws), 1 / len(draws)), float(d.sum()), alternative)
    return Tested(p_value, f"sign-flip test, {_DRAWS:,} draws, seed {seed}")


def _beyond(sums: FloatArray, chances: FloatArray, seen: float, alternative: Alternative) -> float:
    """The chance of a sum at least as extreme as the observed sum."""
    # Sums that are equal on paper differ in their last bits; counting them in can only raise p.
    slack = _SAME * float(np.abs(sums).max())
    if alternative == "greater":
        hits = sums >= seen - slack
    elif alternative == "less":
        hits = sums <= seen + slack
    else:
        hits = np.abs(sums) >= abs(seen) - slack
    return min(1.0, float(chances[hits].sum()))


def _all_sums(sizes: FloatArray, counts: IntArray) -> tuple[FloatArray, FloatArray] | None:
    """Every sum that signs can make with its chance, or ``None`` when there are too many."""
    whole_sizes = _whole_multiples(sizes)
    if whole_sizes is not None:
        unit, multiples = whole_sizes
        reach = sum(m * h for m, h in zip(multiples, counts.tolist(), strict=True))
        if (2 * reach + 1) * int(counts.sum()) <= _MOST_STEPS:
            chances = _sums_of_wholes(multiples, counts.tolist(), reach)
            return unit * np.arange(-reach, reach + 1, dtype=np.float64), chances
    if int(counts.sum()) <= _MOST_ENUMERATED:
        sums = np.zeros(1)
        for size in np.repeat(sizes, counts).tolist():
            sums = np.concatenate((sums + size, sums - size))
        return sums, np.full(len(sums), 1 / len(sums))
    return None


def _sums_of_wholes(multiples: Sequence[int], counts: Sequence[int], reach: int) -> FloatArray:
    """Chances of the sums -reach ... reach, one task after the other."""
    # Places in a table of whole numbers are exact: equal sums meet, in whatever order they come.
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    span = 0
    for step, times in zip(multiples, counts, strict=True):
        for _ in range(times):
            reached = slice(reach - span, reach + span + 1)
            inner = 0.5 * chances[reached]
            chances[reached] = 0.0
            span += step
            chances[reach - span : reach + span + 1 - 2 * step] += inner
            chances[reach - span + 2 * step : reach + span + 1] += inner
    return chances


def _whole_multiples(sizes: FloatArray) -> tuple[float, list[int]] | None:
    """The largest fraction that all sizes are multiples of, and the multiples."""
    if len(sizes) > _MOST_VALUES:
        return None
    shares = [Fraction(size).limit_denominator(_LARGEST_DENOMINATOR) for size in sizes.tolist()]
    pairs = zip(shares, sizes.tolist(), strict=True)
    if any(share == 0 or abs(float(share) - size) > 1e-12 for share, size in pairs):
        return None
    bottom = lcm(*(share.denominator for share in shares))
    wholes = [share.numerator * (bottom // share.denominator) for share in shares]
    common = int(np.gcd.reduce(np.array(wholes, dtype=object)))
    return common / bottom, [whole // common for whole in wholes]


def _draw_sums(sizes: FloatArray, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    """Sums under random signs; equal sizes are flipped together by one binomial draw."""
    sums = np.zeros(_DRAWS)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        sums += size * (2 * rng.binomial(count, 0.5, _DRAWS) - count)
    return sums


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Holm's correction: the chance of any false alarm among all of them stays below the level.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    raw = np.asarray(p_values, np.float64)
    order = np.argsort(raw, kind="stable")
    steps = raw[order] * np.arange(len(raw), 0, -1)
    corrected_p = np.empty_like(raw)
    corrected_p[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected_p


def max_t(
    differences: FloatArray, alternative: Alternative = "two-sided", *, seed: int = SEED
) -> FloatArray:
    """Step-down max-T p-values of several comparisons on the same tasks.

    ``differences`` is tasks x comparisons; a task that a comparison does not look at has difference
    0 there.

    Notes
    -----
    A task's signs are flipped in all comparisons at once, which keeps how they hang together
    (Westfall and Young 1993). Each sum is divided by sqrt(sum d^2), which no flip changes.
    """
    d = np.asarray(differences, np.float64)
    scale = np.sqrt((d**2).sum(axis=0))
    shares = np.divide(d, scale, out=np.zeros_like(d), where=scale > 0)
    observed_sums = _apply_side(shares.sum(axis=0), alternative)
    order = np.argsort(-observed_sums, kind="stable")
    rows, counts = _distinct_rows(shares[:, order])
    hits = np.zeros(d.shape[1])
    rng = np.random.default_rng(seed)
    draw_count = 0
    while draw_count < _DRAWS:
        block = min(2_000, _DRAWS - draw_count)
        flips = 2.0 * rng.binomial(counts, 0.5, (block, len(counts))) - counts
        sums = _apply_side(flips @ rows, alternative)
        # Step down: a comparison competes with itself and those that look weaker than it.
        largest = np.maximum.accumulate(sums[:, ::-1], axis=1)[:, ::-1]
        hits += (largest >= observed_sums[order] - _SAME).sum(axis=0)
        draw_count += block
    corrected_p = np.empty(d.shape[1])
    corrected_p[order] = np.maximum.accumulate((1 + hits) / (1 + _DRAWS))
    return corrected_p


def _apply_side(sums: FloatArray, alternative: Alternative) -> FloatArray:
    if alternative == "two-sided":
        return np.abs(sums)
    return sums if alternative == "greater" else -sums


def _distinct_rows(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """Each row once up to its sign, with its count; rows of zeros are omitted."""
    rows = rows[(rows != 0).any(axis=1)]
    if len(rows) == 0:
        return np.zeros((1, rows.shape[1])), np.ones(1, np.int64)
    first = np.argmax(rows != 0, axis=1)
    signs = np.sign(rows[np.arange(len(rows)), first])
    # A row and its negative have the same flips, so one binomial draw flips all of a kind.
    distinct, counts = np.unique(rows * signs[:, None], axis=0, return_counts=True)
    return distinct, counts


# -- within tasks ---------------------------------------------------------------------------------

_MOST_EXACT_STEPS = 5_000
"""Beyond so many steps of the sum its variance is over 600, and the normal distribution will do."""
_LARGEST_SPLIT = 0.25
_MOST_SPLIT_CELLS = 5_000_000
"""Additions per number of passes, about 30 ms: 90 tasks x 8, or 30 x 100."""


def drop_p_value(
    n: int, c_a: IntArray, c_b: IntArray, *, most_steps: int = _MOST_EXACT_STEPS
) -> float:
    """The chance that B has so few passes in all, had no task changed; n attempts on each side.

    Beyond ``most_steps`` of the sum it is that of a normal distribution.

    Examples
    --------
    >>> drop_p_value(1, np.array([1, 1, 1, 1, 0]), np.array([0, 0, 0, 0, 1]))
    0.1875
    """
    size = np.full(len(c_a), n)
    return unequal_drop_p_value(size, c_a, size, c_b, most_steps=most_steps)


def unequal_drop_p_value(
    n_a: IntArray,
    c_a: IntArray,
    n_b: IntArray,
    c_b: IntArray,
    *,
    most_steps: int = _MOST_EXACT_STEPS,
) -> float:
    """The same where both sides, and tasks, have different numbers of attempts.

    Given what a task passed on both sides, B's passes are hypergeometric if it did not change.
    """
    passes = c_a + c_b
    least = np.maximum(passes - n_a, 0)
    steps = np.minimum(passes, n_b) - least
    observed = int(c_b.sum() - least.sum())
    if int(steps.sum()) > most_steps:
        total = n_a + n_b
        shares = passes / total
        variance = float((n_a * n_b * shares * (1 - shares) / np.maximum(total - 1, 1)).sum())
        mean = float((n_b * shares - least).sum())
        # Half a step for continuity: the sum is a whole number.
        return _normal_tail((observed + 0.5 - mean) / np.sqrt(variance))
    chances = np.ones(1)
    cells = np.stack([n_a, n_b, passes])[:, steps > 0]
    for first, second, total_passes in cells.T.tolist():
        chances = np.convolve(chances, share_chances(first, second, total_passes))
    return min(1.0, float(chances[: observed + 1].sum()))


def split_drop_p_value(n: int, c_a: IntArray, c_b: IntArray) -> float:
    """As :func:`drop_p_value`, with equal sums told apart by how many tasks moved.

    Sums are whole numbers, so the plain test errs less often than it may (1.8% instead of 2.5% of
    30 tasks x 8). Here an outcome with the observed sum counts only if it has no more tasks that
    moved by over one standard deviation than were observed. Where rises and drops cancel, more
    tasks move, and nearly all outcomes count. Never above the plain p-value; large sums, of which
    single ones hardly matter, and sums that are far from any claim are not split.

    Examples
    --------
    >>> a, b = np.array([4, 4, 4, 2]), np.array([2, 2, 3, 1])
    >>> round(drop_p_value(4, a, b), 4), round(split_drop_p_value(4, a, b), 4)
    (0.0219, 0.0202)
    """
    p_value = drop_p_value(n, c_a, c_b)
    passes = c_a + c_b
    least = np.maximum(passes - n, 0)
    steps = np.minimum(passes, n) - least
    varies = steps > 0
    tasks, reach = int(varies.sum()), int(steps.sum())
    if p_value > _LARGEST_SPLIT or tasks * tasks * reach > _MOST_SPLIT_CELLS:
        return p_value
    # chances[i, j]: B has i passes above its least and j tasks moved, over the tasks so far.
    chances = np.zeros((reach + 1, tasks + 1))
    chances[0, 0] = 1.0
    span = observed_moves = 0
    pairs = zip(passes[varies].tolist(), c_b[varies].tolist(), strict=True)
    for number, (total, c) in enumerate(pairs):
        first = max(total - n, 0)
        x = np.arange(first, min(total, n) + 1)
        # (x - mean)^2 > variance of the hypergeometric distribution, in whole numbers.
        moves = (2 * n - 1) * (2 * x - total) ** 2 > total * (2 * n - total)
        before = chances[: span + 1, : number + 1].copy()
        chances[: span + 1, : number + 1] = 0.0
        for i, (chance, move) in enumerate(zip(share_chances(n, n, total), moves, strict=True)):
            chances[i : i + span + 1, int(move) : int(move) + number + 1] += chance * before
        span += len(x) - 1
        observed_moves += int(moves[c - first])
    observed = int(c_b.sum() - least.sum())
    below = float(chances[:observed].sum())
    return min(p_value, below + float(chances[observed, : observed_moves + 1].sum()))


def _normal_tail(score: float) -> float:
    return float(special.ndtr(score))


def share_chances(n_a: int, n_b: int, passes: int) -> FloatArray:
    """Chances of B's passes, from the fewest possible on, given those of both."""
    x = np.arange(max(passes - n_a, 0), min(passes, n_b) + 1)
    # Only ratios matter: the coefficients themselves overflow from about a thousand attempts on.
    logs = log_choose(n_b, x) + log_choose(n_a, passes - x)
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum(), np.float64)


def _unpooled_drop_p(n_a: int, n_b: int, c_a: IntArray, c_b: IntArray) -> float:
    """The p-value of a drop of the mean, each side with the variance of its own attempts."""
    variance = sum(
        float((c * (n - c)).sum()) / (n * n * (n - 1)) for n, c in ((n_a, c_a), (n_b, c_b))
    )
    drop = float((c_b / n_b - c_a / n_a).sum())
    return float(drop >= 0) if variance == 0 else _normal_tail(drop / np.sqrt(variance))


def pair_drop_p_value(pairing: Pairing, metric: CountMetric, policy: MissingPolicy) -> float | None:
    """The p-value of a drop with missing attempts counted against it; ``None`` without a test."""
    return _p_value(pairing, metric, policy, drop=True)


def pair_rise_p_value(pairing: Pairing, metric: CountMetric, policy: MissingPolicy) -> float | None:
    """The p-value of a rise, as :func:`pair_drop_p_value`."""
    return _p_value(pairing, metric, policy, drop=False)


def lift_deviation(pairing: Pairing, metric: CountMetric, policy: MissingPolicy) -> float | None:
    """The standard deviation of the lift that the test reckons with; ``None`` without a test."""
    counts = _equal_counts(pairing, metric, policy, drop=True)
    if counts is None or counts[0] != counts[1]:
        return None
    n, _, c_a, c_b = counts
    passes = c_a + c_b
    variance = float((passes * (2 * n - passes)).sum()) / (4 * (2 * n - 1))
    return 2 * float(np.sqrt(variance)) / (n * len(pairing))


def longer_drop_p_value(
    pairing: Pairing, metric: CountMetric, policy: MissingPolicy
) -> float | None:
    """As :func:`pair_drop_p_value`, where B has more attempts at every task than A."""
    counts = _equal_counts(pairing, metric, policy, drop=True)
    if counts is None or min(counts[:2]) < 2:
        return None
    n_a, n_b, c_a, c_b = counts
    size_a, size_b = (np.full(len(pairing), n) for n in (n_a, n_b))
    exact = unequal_drop_p_value(size_a, c_a, size_b, c_b)
    return max(exact, _unpooled_drop_p(n_a, n_b, c_a, c_b))


def _p_value(
    pairing: Pairing, metric: CountMetric, policy: MissingPolicy, *, drop: bool
) -> float | None:
    counts = _equal_counts(pairing, metric, policy, drop=drop)
    if counts is None or counts[0] != counts[1]:
        return None
    n, _, c_a, c_b = counts
    # A rise of the passes is a drop of the failures.
    return split_drop_p_value(n, c_a, c_b) if drop else split_drop_p_value(n, n - c_a, n - c_b)


def _equal_counts(
    pairing: Pairing, metric: CountMetric, policy: MissingPolicy, *, drop: bool
) -> tuple[int, int, IntArray, IntArray] | None:
    """Attempts per task and the passes of both sides, missing ones counted against the change."""
    pessimist = optimist = policy.completion
    if policy is MissingPolicy.BOUND:
        pessimist, optimist = Completion.AS_FAILED, Completion.AS_PASSED
    n_a, c_a = pairing.a.counts(pessimist if drop else optimist)
    n_b, c_b = pairing.b.counts(optimist if drop else pessimist)
    sizes = int(n_a[0]), int(n_b[0])
    if not (bool((n_a == sizes[0]).all()) and bool((n_b == sizes[1]).all())):
        return None
    if not all(is_share_of_passes(metric, n) for n in sizes):
        return None
    return *sizes, c_a, c_b


def is_share_of_passes(metric: CountMetric, n: int) -> bool:
    """Whether a metric of n attempts is the share that passed, which the exact test is about."""
    counts = np.arange(n + 1)
    return n >= metric.k and np.allclose(metric.values(np.full(n + 1, n), counts), counts / n)
