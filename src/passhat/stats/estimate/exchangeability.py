"""Whether the position of an attempt goes with its verdict.

Intervals, forecasts and ordered metrics take the attempts at a task as exchangeable: any order of
them is as likely as any other. Published tables break this (sorted by verdict, or by a temperature
that rises from sample to sample), and so do agents that learn, caches, and providers that change a
model during a run.

Within a task, T_i = sum of (position - mean position) over its passes has the mean 0 under
exchangeability and the variance SS(position) c (n - c) / (n (n - 1)), whatever the task's rate.
Their sum over tasks is compared with its permutation distribution: by a normal quantile, and with
few attempts by permutations within tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat._display import percent
from passhat.stats.arrays import BoolArray, FloatArray, special
from passhat.stats.outcomes import Completion, Outcomes
from passhat.stats.outcomes.order import Sequences

_SEED = 20240712
_DRAWS = 20_000
_FEW = 400
"""Attempts at tasks that passed and failed, up to which permutations are drawn."""
_UNLIKELY = 1e-3
"""A warning is printed with every report, so that it must not come up by chance."""


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """The test of exchangeability by position."""

    p_value: float
    """Two-sided."""
    early: float
    late: float
    """``early``, ``late``: the pass rate in the first and in the second half of each task's
    attempts.
    """


def position_effect(outcomes: Outcomes) -> PositionEffect | None:
    """Test position against verdict within tasks; ``None`` where the order says nothing.

    Attempts without a verdict are left out. Tasks that always end alike have no order to look at.

    Examples
    --------
    >>> effect = position_effect(Outcomes.from_matrix([[1, 1, 1, 0, 0, 0]] * 6))
    >>> effect.early, effect.late, effect.p_value < 0.001
    (1.0, 0.0, True)
    """
    if outcomes.order is None:
        return None
    sequences = outcomes.order.completed(Completion.DROPPED)
    lengths = sequences.lengths
    task = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(task)) - sequences.starts[task]
    centered = (place + 0.5) / lengths[task] - 0.5
    n = lengths.astype(np.float64)
    c = np.bincount(task, weights=sequences.passed, minlength=len(n))
    varied = (c > 0) & (c < n)
    if not varied.any():
        return None
    spread = np.bincount(task, weights=centered**2, minlength=len(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(varied, spread * c * (n - c) / (n * (n - 1)), 0.0)
    total = float(centered @ sequences.passed)
    used = varied[task]
    if int(used.sum()) <= _FEW:
        p_value = _permutation_p(sequences, centered, varied, abs(total))
    else:
        p_value = 2 * float(special.ndtr(-abs(total) / np.sqrt(variance.sum())))
    early, late = used & (centered < 0), used & (centered > 0)
    return PositionEffect(
        p_value, float(sequences.passed[early].mean()), float(sequences.passed[late].mean())
    )


def _permutation_p(
    sequences: Sequences, centered: FloatArray, varied: BoolArray, total: float
) -> float:
    """The share of permutations within tasks that are as far from 0, the data's own included."""
    rng = np.random.default_rng(_SEED)
    sums = np.zeros(_DRAWS)
    for index in np.flatnonzero(varied).tolist():
        here = slice(sequences.starts[index], sequences.starts[index + 1])
        passes = np.tile(sequences.passed[here], (_DRAWS, 1))
        sums += rng.permuted(passes, axis=1) @ centered[here]
    return (1 + int((np.abs(sums) >= total - 1e-9).sum())) / (1 + _DRAWS)


def position_warnings(outcomes: Outcomes, consequence: str) -> tuple[str, ...]:
    """A warning where positions and verdicts go together; ``consequence`` ends its sentence."""
    effect = position_effect(outcomes)
    if effect is None or effect.p_value >= _UNLIKELY:
        return ()
    return (
        f"the order of attempts matters: of tasks that pass and fail, {percent(effect.early)} of "
        f"early attempts passed and {percent(effect.late)} of late ones (p < 0.001 by permutation "
        f"within tasks); {consequence}",
    )
