"""What other tools ship, written from their documented formulas, vectorised over repetitions.

Every function takes histograms of successes, (R, n + 1) for R simulated suites, the values (n + 1,)
the metric gives to c = 0..n successes, and returns the two ends, (R,) each. The scorio formula was
checked against scorio 0.2.3, logit-t against evalstats 0.3.3; both agree to nine digits.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, expit, logit, ndtr, ndtri, stdtrit
from scipy.stats import binom

from passhat.stats.arrays import FloatArray

Ends = tuple[FloatArray, FloatArray]
TAIL = 0.025
RESAMPLES = 1000


def _mean_and_error(hist: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    tasks = int(hist[0].sum())
    mean = hist @ values / tasks
    square = np.maximum(hist @ values**2 / tasks - mean**2, 0.0)
    return mean, np.sqrt(square / (tasks - 1)), tasks


def t_over_tasks(hist: FloatArray, values: FloatArray) -> Ends:
    """`mean +- t s / sqrt(T)` cut to [0, 1] (inspect's `ci()`, uncut there)."""
    mean, error, tasks = _mean_and_error(hist, values)
    reach = -stdtrit(tasks - 1, TAIL) * error
    return np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)


def logit_t(hist: FloatArray, values: FloatArray) -> Ends:
    """Use the t interval on the logit scale; it has no width where all tasks agree."""
    mean, error, tasks = _mean_and_error(hist, values)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -stdtrit(tasks - 1, TAIL) * error / (mean * (1 - mean))
        low, high = expit(logit(mean) - reach), expit(logit(mean) + reach)
    flat = error == 0
    return np.where(flat, mean, low), np.where(flat, mean, high)


def logit_t_or_wilson(hist: FloatArray, values: FloatArray) -> Ends:
    """Wilson where every task shows 0 or 1, logit-t elsewhere (evalstats' default)."""
    low, high = logit_t(hist, values)
    mean, _, tasks = _mean_and_error(hist, values)
    z2 = float(ndtri(TAIL)) ** 2
    centre = (mean + z2 / (2 * tasks)) / (1 + z2 / tasks)
    reach = np.sqrt(z2 * (mean * (1 - mean) / tasks + z2 / (4 * tasks**2))) / (1 + z2 / tasks)
    binary = hist[:, (values > 0) & (values < 1)].sum(axis=1) == 0
    return np.where(binary, centre - reach, low), np.where(binary, centre + reach, high)


def task_resamples(hist: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Histograms of suites drawn with replacement, (R, resamples, n + 1)."""
    tasks = int(hist[0].sum())
    drawn = rng.multinomial(tasks, hist / tasks, size=(RESAMPLES, len(hist)))
    return drawn.swapaxes(0, 1).astype(np.float64)


def two_level_resamples(hist: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Redraw tasks and then attempts: given a task, c* ~ Binomial(n, c / n)."""
    n = hist.shape[1] - 1
    redraw = binom.pmf(np.arange(n + 1), n, np.arange(n + 1)[:, None] / n)
    tasks = int(hist[0].sum())
    chance = hist / tasks @ redraw
    chance /= chance.sum(axis=1, keepdims=True)
    drawn = rng.multinomial(tasks, chance, size=(RESAMPLES, len(hist)))
    return drawn.swapaxes(0, 1).astype(np.float64)


def percentile(resamples: FloatArray, values: FloatArray) -> Ends:
    """Quantiles of the resampled means."""
    means = resamples @ values / resamples[0, 0].sum()
    low, high = np.quantile(means, [TAIL, 1 - TAIL], axis=1)
    return low, high


def bca(resamples: FloatArray, hist: FloatArray, values: FloatArray) -> Ends:
    """Bias-corrected and accelerated bootstrap (Efron 1987); undefined where all tasks agree."""
    tasks = hist[0].sum()
    mean = hist @ values / tasks
    means = np.sort(resamples @ values / tasks, axis=1)
    below = (means < mean[:, None] - 1e-12).mean(axis=1)
    tied = (np.abs(means - mean[:, None]) <= 1e-12).mean(axis=1)
    off = values - mean[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = ndtri(below + tied / 2)
        acceleration = (hist * off**3).sum(axis=1) / (6 * (hist * off**2).sum(axis=1) ** 1.5)
        ends = []
        for z in (float(ndtri(TAIL)), -float(ndtri(TAIL))):
            level = ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
            place = np.nan_to_num(level) * (means.shape[1] - 1)
            index = np.clip(np.round(place).astype(np.intp), 0, means.shape[1] - 1)
            ends.append(np.take_along_axis(means, index[:, None], axis=1)[:, 0])
    flat = np.ptp(means, axis=1) == 0
    return np.where(flat, mean, ends[0]), np.where(flat, mean, ends[1])


def scorio_uniform(hist: FloatArray, k: int, *, any_pass: bool) -> Ends:
    """Put a normal interval around the mean of independent uniform-prior posteriors (scorio)."""
    n = hist.shape[1] - 1
    good = np.arange(n + 1.0)
    a, b = (1 + n - good, 1 + good) if any_pass else (1 + good, 1 + n - good)
    first = np.exp(betaln(a + k, b) - betaln(a, b))
    second = np.exp(betaln(a + 2 * k, b) - betaln(a, b))
    tasks = hist[0].sum()
    mean = hist @ first / tasks
    mean = 1 - mean if any_pass else mean
    reach = -ndtri(TAIL) * np.sqrt(hist @ (second - first**2)) / tasks
    return np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
