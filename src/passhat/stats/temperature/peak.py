"""T* between the temperatures tried: where a smooth curve through the points near the best peaks.

A curve over temperature is lopsided, so only the points next to the best one say where it peaks: a
parabola through all temperatures within a factor of two was off by .1 to .15 on a real language
model (docs/temperature.md). Between the points nothing was measured, and several curves
fit equally well. The peak is therefore a range, from the lowest to the highest of

- the best temperature tried itself (the peak of every monotone interpolation),
- the top of the parabola through it and its two neighbors, over ln T and over T,
- the top of the two cubics through it and three neighbors, over ln T and over T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.protocol import Protocol
from passhat.stats.arrays import BoolArray, FloatArray, IntArray
from passhat.stats.outcomes import Outcomes, Run


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownRates:
    """Success rates, temperatures x tasks.

    Attempts drawn from them are a benchmark whose pass@k and T*(k) can be looked up.
    """

    agent: str
    tasks: tuple[str, ...]
    temperatures: tuple[float, ...]
    rates: FloatArray

    def __repr__(self) -> str:
        tasks, temperatures = len(self.tasks), len(self.temperatures)
        return f"<KnownRates of {self.agent}: {tasks:,} tasks at {temperatures} temperatures>"

    def pass_at_k(self, k: int) -> FloatArray:
        """The true pass@k at every temperature."""
        with np.errstate(divide="ignore"):
            failed = np.exp(k * np.log1p(-self.rates))
        values: FloatArray = (1 - failed).mean(axis=1)
        return values

    def best_temperature(self, k: int) -> float:
        """T*(k): the top of a parabola through the best temperature and its neighbors."""
        return float(peaks(np.array(self.temperatures), self.pass_at_k(k)).top)

    def draw(self, attempts: int, rng: np.random.Generator) -> list[Run]:
        """A run per temperature, with independent attempts at every task."""
        passes = rng.binomial(attempts, self.rates)
        return [
            Run(
                f"{self.agent} T={temperature:g}",
                self.agent,
                Outcomes.from_counts(attempts, passed, self.tasks),
                Protocol(attempts=attempts, decoding={"temperature": temperature}),
            )
            for temperature, passed in zip(self.temperatures, passes, strict=True)
        ]

    def at(self, *temperatures: float) -> KnownRates:
        """The same at the temperatures nearest to these only."""
        log_temperatures = np.log(self.temperatures)
        rows = sorted({int(np.abs(log_temperatures - np.log(t)).argmin()) for t in temperatures})
        row_temperatures = tuple(self.temperatures[row] for row in rows)
        return KnownRates(self.agent, self.tasks, row_temperatures, self.rates[rows])


FEWEST = 3
"""Temperatures that a peak needs."""
_TIE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """Peaks of many curves; arrays of the curves' shape, in units of temperature."""

    top: FloatArray
    """The top of the parabola over ln T (over T next to T = 0)."""
    low: FloatArray
    high: FloatArray
    """``low``, ``high``: the range of peaks that the points allow; it holds the best temperature
    tried.
    """
    edge: BoolArray
    """Whether the best temperature tried is the lowest or the highest one, so that the curve may
    peak beyond. T = 0 is no edge: nothing is colder.
    """


def peaks(temperatures: FloatArray, values: FloatArray) -> Peaks:
    """The peak of every curve along the last axis of ``values``; at least three temperatures.

    Examples
    --------
    >>> t = np.array([0.2, 0.4, 0.8, 1.6])
    >>> curve = peaks(t, 1 - np.log(t / 0.5) ** 2)
    >>> round(float(curve.top), 6), float(curve.low), round(float(curve.high), 2)
    (0.5, 0.4, 0.57)
    """
    shape = values.shape[:-1]
    curves = values.reshape(-1, values.shape[-1])
    highest = curves.max(axis=1, keepdims=True) - _TIE
    first: IntArray = (curves >= highest).argmax(axis=1)
    last: IntArray = len(temperatures) - 1 - (curves[:, ::-1] >= highest).argmax(axis=1)
    with np.errstate(divide="ignore"):
        log_t = np.log(temperatures)  # T = 0 has none: tops over ln T are NaN next to it
    over_log = np.exp(_parabola_top(log_t, curves, first))
    over_t = _parabola_top(temperatures, curves, first)
    tops = [over_log, over_t]
    if len(temperatures) > FEWEST:
        for before in (1, 2):
            tops.append(np.exp(_cubic_top(log_t, curves, first, before)))
            tops.append(_cubic_top(temperatures, curves, first, before))
    is_tied = first != last
    between = (temperatures[first] + temperatures[last]) / 2
    top = np.where(is_tied, between, np.where(np.isnan(over_log), over_t, over_log))
    top = np.clip(top, temperatures[0], temperatures[-1])  # exp(ln T) may round past an end
    low = np.fmin.reduce([temperatures[first], *tops])
    high = np.fmax.reduce([temperatures[last], *tops])
    edge = (last == len(temperatures) - 1) | ((first == 0) & bool(temperatures[0] > 0))
    return Peaks(*(part.reshape(shape) for part in (top, low, high, edge)))


def _windows(
    x: FloatArray, curves: FloatArray, start: IntArray, points: int
) -> tuple[FloatArray, FloatArray]:
    """The x and the values of ``points`` neighbors from each curve's start on."""
    columns = start[:, None] + np.arange(points)
    return x[columns], np.take_along_axis(curves, columns, axis=1)


def _between_neighbors(x: FloatArray, best: IntArray, top: FloatArray) -> FloatArray:
    """The tops that lie between the neighbors of the best point; NaN for others."""
    low, high = x[np.maximum(best - 1, 0)], x[np.minimum(best + 1, len(x) - 1)]
    return np.where((low <= top) & (top <= high), top, np.nan)


def _parabola_top(x: FloatArray, curves: FloatArray, best: IntArray) -> FloatArray:
    """The top of the parabola through the best point and its neighbors, by divided differences."""
    at, y = _windows(x, curves, np.clip(best - 1, 0, len(x) - 3), 3)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = np.diff(y, axis=1) / np.diff(at, axis=1)
        bend = (rise[:, 1] - rise[:, 0]) / (at[:, 2] - at[:, 0])
        top = (at[:, 0] + at[:, 1]) / 2 - rise[:, 0] / (2 * bend)
    # At an end of the temperatures the parabola may peak beyond the range: the end, then.
    clipped = np.clip(top, x[np.maximum(best - 1, 0)], x[np.minimum(best + 1, len(x) - 1)])
    flat = np.where(np.isfinite(at).all(axis=1), x[best], np.nan)
    return np.where(bend < 0, clipped, flat)


def _cubic_top(x: FloatArray, curves: FloatArray, best: IntArray, before: int) -> FloatArray:
    """The top of the cubic through four points that start ``before`` points before the best."""
    at, y = _windows(x, curves, np.clip(best - before, 0, len(x) - 4), 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.diff(y, axis=1) / np.diff(at, axis=1)
        second = np.diff(first, axis=1) / (at[:, 2:] - at[:, :-2])
        third = (second[:, 1] - second[:, 0]) / (at[:, 3] - at[:, 0])
        # Newton's form, differentiated: a (x - x1)^2 + b (x - x1) + c with x1 the second point.
        left, right = at[:, 1] - at[:, 0], at[:, 2] - at[:, 1]
        a = 3 * third
        b = 2 * second[:, 0] + 2 * third * (left - right)
        c = first[:, 0] + second[:, 0] * left - third * left * right
        root = np.sqrt(b * b - 4 * a * c)
        # Of the two stationary points the maximum is the one with falling slope; this form of it
        # stays exact where the cubic term vanishes.
        top = at[:, 1] + 2 * c / (-b + root)
    return _between_neighbors(x, best, top)
