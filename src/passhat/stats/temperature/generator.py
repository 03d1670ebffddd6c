"""The toy's generator: integers, drawn with p(c | T) proportional to exp(-c^2 / 2T).

The normalizer is a theta function. Two sums give it, and each is short where the other is long:

    Z(T) = 1 + 2 sum_{m>0} exp(-m^2 / 2T)                         for T <= 1/(2 pi)
         = sqrt(2 pi T) (1 + 2 sum_{m>0} exp(-2 pi^2 T m^2))      otherwise (Poisson summation)

Where they meet, the fifth term of either is below 1e-33. The variance follows from the same sums:

    V(T) = sum c^2 p(c | T) = 2 T^2 d ln Z / dT
"""

from __future__ import annotations

import numpy as np

from passhat.stats.arrays import FloatArray

__all__ = ["log_chances", "log_normalizer", "variance"]

_SWITCH = 1 / (2 * np.pi)
_TERMS = np.arange(1.0, 6.0)


def log_normalizer(temperature: FloatArray) -> FloatArray:
    """ln Z(T) for an array of temperatures above zero."""
    excess, _ = _sums(temperature)
    smooth = np.where(temperature <= _SWITCH, 0.0, 0.5 * np.log(2 * np.pi * temperature))
    log_z: FloatArray = smooth + np.log1p(excess)
    return log_z


def variance(temperature: FloatArray) -> FloatArray:
    """V(T), the variance of what is generated; it tends to T from T = 1 on."""
    excess, second = _sums(temperature)
    direct = second / (1 + excess)
    poisson = temperature - 4 * np.pi**2 * temperature**2 * direct
    values: FloatArray = np.where(temperature <= _SWITCH, direct, poisson)
    return values


def log_chances(task: FloatArray, temperature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln p(c | T) and ln(1 - p(c | T)), for arrays that broadcast."""
    log_pass: FloatArray = task**2 * (-0.5 / temperature) - log_normalizer(temperature)
    with np.errstate(divide="ignore"):
        log_fail: FloatArray = np.log1p(-np.exp(log_pass))
        cold = (task == 0) & (temperature <= _SWITCH)
        if bool(cold.any()):
            # 1 - p(0) = (Z - 1) / Z cancels, but Z - 1 is the direct sum itself.
            excess = np.broadcast_to(_sums(temperature)[0], log_fail.shape)[cold]
            log_fail[cold] = np.log(excess) - np.log1p(excess)
    return log_pass, log_fail


def _sums(temperature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """2 sum exp(-a m^2) and 2 sum m^2 exp(-a m^2), with the a of whichever sum is shorter."""
    rate = np.where(temperature <= _SWITCH, 0.5 / temperature, 2 * np.pi**2 * temperature)
    terms = 2 * np.exp(-rate[..., None] * _TERMS**2)
    return terms.sum(axis=-1), terms @ _TERMS**2
