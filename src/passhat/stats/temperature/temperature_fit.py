"""Fit runs at several temperatures: pass@k at each, and the best temperature for every k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Unpack

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate import estimate_all
from passhat.stats.estimate.metrics import PassAt
from passhat.stats.outcomes import Run
from passhat.stats.temperature.advice import advise
from passhat.stats.temperature.ladders import Ladder, ladders_of
from passhat.stats.temperature.peak import FEWEST, peaks
from passhat.stats.temperature.rankings import DRAWS, SEED, Redraws, ranking_flips, redraw_tasks
from passhat.stats.temperature.temperature_result import (
    AgentFit,
    BestTemperature,
    Cell,
    Change,
    Exponent,
    TemperatureFit,
)
from passhat.stats.terms import OptionName, TermOptions, Terms

_TAKES: tuple[OptionName, ...] = ("level", "missing", "drop_short")

CANNOT_TELL = (
    "a share of redraws is not the chance of being right: with 30 tasks x 5 attempts, a "
    "temperature that was the best in over 85% of redraws was truly the best in 54% of cases",
    "the exponent of T* over k is no proof of a shape of difficulties: telling Gaussian (0.73) "
    "from exponential (1.05) by it takes about 1,000 tasks x 64 samples at 14 temperatures, "
    "even in the toy",
    "the toy's exponents do not carry over to token temperature: there T is the spread of whole "
    "answers, and a real model's T* levels off near 1",
)


def fit_temperatures(
    runs: Sequence[Run],
    ks: Sequence[int] = (),
    terms: Terms | None = None,
    *,
    seed: int = SEED,
    **options: Unpack[TermOptions],
) -> TemperatureFit:
    """pass@k by temperature, the best temperature for every k, and the gain of changing it.

    Runs of the same agent are told apart by the temperature in their protocol's decoding; several
    agents are fitted each alone, and their rankings are compared. Without ``ks`` they are 1, 2, 4,
    8 ... up to the attempts there are. ``seed`` is that of the bootstrap over tasks, which takes
    ``bound`` as failed.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> from passhat.protocol import Protocol
    >>> def run(temperature, passes):
    ...     decoding = {"temperature": temperature}
    ...     outcomes = Outcomes.from_counts(4, passes)
    ...     return Run("a", "a", outcomes, Protocol(decoding=decoding))
    >>> cold, warm = run(0.2, [4, 0] * 40), run(0.8, [3, 1] * 40)
    >>> print(fit_temperatures([cold, warm], [1, 4]).agents[0].advice)
    raise T from 0.2 to 0.8 for k >= 4: +50.0 points, 35.8 to 62.2.
    """
    if not runs:
        raise InvalidValue("at least one run is needed.")
    if any(k < 1 for k in ks):
        raise InvalidValue(f"k must be at least 1, not {min(ks)}.")
    terms = Terms.from_options(options, terms, takes=_TAKES)
    ladders = ladders_of(runs, sorted(set(ks)), terms.missing, drop_short=terms.drop_short)
    usable = [ladder for ladder in ladders if ladder.ks]
    return TemperatureFit(
        tuple(_fit(ladder, terms, seed) for ladder in usable),
        ranking_flips(usable, terms.missing, seed=seed),
        terms.level,
        f"unbiased pass@k; intervals for new tasks; shares and T* by a bootstrap over tasks "
        f"({DRAWS:,} redraws, seed {seed}); T* is the top of a parabola in ln T through the best "
        "temperature and its neighbors, its interval reaches over all smooth curves through the "
        "points near it; advice by paired lifts, simultaneous over k and temperatures",
        CANNOT_TELL,
    )


def _fit(ladder: Ladder, terms: Terms, seed: int) -> AgentFit:
    policy, level = terms.missing, terms.level
    redraws = redraw_tasks(ladder.values(policy.completion), seed=seed)
    best = redraws.seen.argmax(axis=0).tolist()
    tops, exponent = _best_temperatures(ladder, redraws, best, level)
    notes = list(ladder.notes)
    if ladder.missing:
        notes.append(
            f"{counted(ladder.missing, 'attempt')} without a verdict; policy {policy}, and the "
            "bootstrap counts them as failed unless they are left out"
        )
    if 2 <= len(ladder.temperatures) < FEWEST:
        notes.append("two temperatures are compared; three or more would give a curve of T*")
    return AgentFit(
        ladder.agent,
        len(ladder),
        ladder.temperatures,
        ladder.ks,
        _cells(ladder, redraws.shares_best(), terms),
        tops,
        tuple(_changes(ladder, redraws, best)),
        exponent,
        advise(ladder, best, policy, level),
        tuple(notes),
    )


def _cells(ladder: Ladder, shares: FloatArray, terms: Terms) -> tuple[Cell, ...]:
    words = [PassAt(k) for k in ladder.ks]
    return tuple(
        Cell(k, temperature, estimate, float(shares[i, j]))
        for i, (temperature, rung) in enumerate(zip(ladder.temperatures, ladder.rungs, strict=True))
        for j, (k, estimate) in enumerate(
            zip(ladder.ks, estimate_all(rung, words, terms), strict=True)
        )
    )


def _changes(ladder: Ladder, redraws: Redraws, best: Sequence[int]) -> list[Change]:
    """Every step from one k to the next at which another temperature becomes the best."""
    return [
        Change(
            ladder.ks[j],
            ladder.ks[j + 1],
            ladder.temperatures[before],
            ladder.temperatures[after],
            redraws.share_of_change(j, j + 1, (before, after)),
        )
        for j, (before, after) in enumerate(pairwise(best))
        if before != after
    ]


def _best_temperatures(
    ladder: Ladder, redraws: Redraws, best: Sequence[int], level: float
) -> tuple[tuple[BestTemperature, ...], Exponent | None]:
    """T*(k) with intervals and its exponent, where there are enough temperatures."""
    best_rungs = [ladder.temperatures[rung] for rung in best]
    if len(ladder.temperatures) < FEWEST:
        rows = zip(ladder.ks, best_rungs, strict=True)
        return tuple(BestTemperature(k, t, None, None, None, False) for k, t in rows), None
    temperatures = np.array(ladder.temperatures)
    observed_peaks = peaks(temperatures, redraws.seen.T)
    redrawn = peaks(temperatures, redraws.drawn.transpose(0, 2, 1))
    # What the points allow in each redraw, so that the interval holds the best temperature tried
    # whenever it is the best in more than a 40th of the redraws.
    low = np.minimum(np.quantile(redrawn.low, (1 - level) / 2, axis=0), observed_peaks.top)
    high = np.maximum(np.quantile(redrawn.high, (1 + level) / 2, axis=0), observed_peaks.top)
    tops = tuple(
        BestTemperature(
            k,
            best_rungs[j],
            float(observed_peaks.top[j]),
            float(low[j]),
            float(high[j]),
            bool(observed_peaks.edge[j]),
        )
        for j, k in enumerate(ladder.ks)
    )
    # Where a redraw peaks at T = 0 there is no logarithm, and no slope.
    inner = np.flatnonzero(
        ~observed_peaks.edge & (observed_peaks.top > 0) & (redrawn.top > 0).all(axis=0)
    )
    if len(inner) < FEWEST:
        return tops, None
    log_k = np.log(np.array(ladder.ks)[inner])
    slopes = _slope(log_k, np.log(redrawn.top[:, inner]))
    lower, upper = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2]).tolist()
    value = float(_slope(log_k, np.log(observed_peaks.top[inner])))
    return tops, Exponent(value, lower, upper, ladder.ks[inner[0]], ladder.ks[inner[-1]])


def _slope(x: FloatArray, y: FloatArray) -> FloatArray:
    """The slope of a least-squares line along the last axis."""
    deviations = x - x.mean()
    slope: FloatArray = y @ deviations / (deviations @ deviations)
    return slope
