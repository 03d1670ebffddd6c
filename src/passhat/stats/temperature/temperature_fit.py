"""Your own benchmark: runs at several temperatures, and which one is best for which k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Unpack

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.estimate import estimate_all
from passhat.stats.outcomes import Run
from passhat.stats.temperature.advice import advise
from passhat.stats.temperature.ladders import Ladder, ladders_of
from passhat.stats.temperature.rankings import ranking_flips
from passhat.stats.temperature.redraws import DRAWS, SEED, Resampled, resample
from passhat.stats.temperature.temperature_result import (
    AgentFit,
    BestTemperature,
    Cell,
    Change,
    Exponent,
    TemperatureFit,
)
from passhat.stats.terms import OptionName, TermOptions, Terms

__all__ = ["CANNOT_TELL", "fit_temperatures"]

_TAKES: tuple[OptionName, ...] = ("level", "missing", "drop_short")

CANNOT_TELL = (
    "the exponent of T* over k is no proof of a shape of difficulties: telling Gaussian (0.73) "
    "from exponential (1.05) by it takes about 1,000 tasks x 64 samples at 14 temperatures, "
    "even in the toy",
    "the toy's exponents do not carry over to token temperature: there T is the spread of whole "
    "answers, and a real model's T* levels off near 1",
)
_FEWEST_FOR_CURVE = 3


def fit_temperatures(
    runs: Sequence[Run],
    ks: Sequence[int] = (),
    terms: Terms | None = None,
    *,
    seed: int = SEED,
    **options: Unpack[TermOptions],
) -> TemperatureFit:
    """pass@k by temperature, the best temperature for every k, and what changing it gains.

    Parameters
    ----------
    runs : sequence of Run
        Runs of the same agent are told apart by the temperature in their protocol's decoding.
        Several agents may be given; each is fitted alone, and their rankings are compared.
    ks : sequence of int
        Values of k; 1, 2, 4, 8 ... up to the attempts there are, unless given.
    terms : Terms, optional
        All options in one object; keywords change single ones.
    level : float
        The confidence of the intervals.
    missing : {"bound", "fail", "exclude"}
        What attempts without a verdict count as. The bootstrap takes ``bound`` as failed.
    drop_short : bool
        Leave out tasks with fewer than k attempts.
    seed : int
        Of the bootstrap over tasks.

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
    raise T from 0.2 to 0.8 for k >= 4: +50.0 points, 36.5 to 61.1.
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
        f"unbiased pass@k; intervals for new tasks; chances and T* by a bootstrap over tasks "
        f"({DRAWS:,} draws, seed {seed}); T* is the top of a parabola in ln T around the best "
        "temperature; advice by paired lifts, simultaneous over k and temperatures",
        CANNOT_TELL,
    )


def _fit(ladder: Ladder, terms: Terms, seed: int) -> AgentFit:
    policy, level = terms.missing, terms.level
    drawn = resample(ladder.values(policy.completion), seed=seed)
    best = drawn.seen.argmax(axis=0)
    tops, exponent = _curve(ladder, drawn, level)
    notes = list(ladder.notes)
    if ladder.missing:
        notes.append(
            f"{counted(ladder.missing, 'attempt')} without a verdict; policy {policy}, and the "
            "bootstrap counts them as failed unless they are left out"
        )
    if 2 <= len(ladder.temperatures) < _FEWEST_FOR_CURVE:
        notes.append("two temperatures are compared; three or more would give a curve of T*")
    return AgentFit(
        ladder.agent,
        len(ladder),
        ladder.temperatures,
        ladder.ks,
        _cells(ladder, drawn.chance_best(), terms),
        tops,
        tuple(_changes(ladder, drawn, best.tolist())),
        exponent,
        advise(ladder, int(best[0]), policy, level),
        tuple(notes),
    )


def _cells(ladder: Ladder, chance: FloatArray, terms: Terms) -> tuple[Cell, ...]:
    words = [f"pass@{k}" for k in ladder.ks]
    return tuple(
        Cell(k, heat, found, float(chance[i, j]))
        for i, (heat, rung) in enumerate(zip(ladder.temperatures, ladder.rungs, strict=True))
        for j, (k, found) in enumerate(
            zip(ladder.ks, estimate_all(rung, words, terms), strict=True)
        )
    )


def _changes(ladder: Ladder, drawn: Resampled, best: list[int]) -> list[Change]:
    """Every step from one k to the next at which another temperature becomes the best."""
    return [
        Change(
            ladder.ks[j],
            ladder.ks[j + 1],
            ladder.temperatures[before],
            ladder.temperatures[after],
            drawn.chance_of_change(j, j + 1, (before, after)),
        )
        for j, (before, after) in enumerate(pairwise(best))
        if before != after
    ]


def _curve(
    ladder: Ladder, drawn: Resampled, level: float
) -> tuple[tuple[BestTemperature, ...], Exponent | None]:
    """T*(k) with intervals and its exponent, where there are enough temperatures above 0."""
    tried = [ladder.temperatures[i] for i in drawn.seen.argmax(axis=0)]
    first = int(ladder.temperatures[0] == 0)
    if len(ladder.temperatures) - first < _FEWEST_FOR_CURVE:
        rows = (
            BestTemperature(k, t, None, None, None, False)
            for k, t in zip(ladder.ks, tried, strict=True)
        )
        return tuple(rows), None
    log_t = np.log(ladder.temperatures[first:])
    seen, edge, redrawn = drawn.tops(log_t, first)
    low, high = np.quantile(redrawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    found = tuple(
        BestTemperature(k, tried[j], *_exp(seen[j], low[j], high[j]), edge=bool(edge[j]))
        for j, k in enumerate(ladder.ks)
    )
    inside = np.flatnonzero(~edge)
    if len(inside) < _FEWEST_FOR_CURVE:
        return found, None
    log_k = np.log(np.array(ladder.ks)[inside])
    slopes = _slope(log_k, redrawn[:, inside])
    below, above = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2]).tolist()
    value = float(_slope(log_k, seen[inside]))
    return found, Exponent(value, below, above, ladder.ks[inside[0]], ladder.ks[inside[-1]])


def _exp(value: float, low: float, high: float) -> tuple[float, float, float]:
    return float(np.exp(value)), float(np.exp(low)), float(np.exp(high))


def _slope(x: FloatArray, y: FloatArray) -> FloatArray:
    """Least squares along the last axis."""
    centred = x - x.mean()
    found: FloatArray = y @ centred / (centred @ centred)
    return found
