"""The unbiased estimators of one task: n attempts, c passed, k drawn without replacement.

All three are chances in the same urn. Draw k of the n attempts at random:

    pass@k    = P(at least one passed)         = 1 - C(n-c, k) / C(n, k)
    pass^k    = P(all k passed)                = C(c, k) / C(n, k)
    gpass@k:t = P(at least ceil(t k) passed)   = sum over j >= ceil(t k) of the hypergeometric

Binomial coefficients are never formed: n = 10^6 would overflow them, and differences of their
logarithms lose nine digits. Products of ratios keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from passhat.errors import InvalidCounts, InvalidValue
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.outcomes.table import whole_numbers

OnCells = Callable[[IntArray, IntArray, int], FloatArray]
"""(n, c, k) to values; the cells (n, c) are unique and sorted."""

_CHUNK = 1 << 20
"""Entries of a (cells x k) table held at once."""

_RUNNING_PRODUCT = 1 << 14
"""Up to this n one running product over all c is cheaper than choosing."""


def pass_at_k(n: npt.ArrayLike, c: npt.ArrayLike, k: npt.ArrayLike) -> float | FloatArray:
    """Chance that at least one of k attempts passes: ``1 - C(n-c, k) / C(n, k)``.

    Unbiased for k <= n (Chen et al. 2021, arXiv:2107.03374). Takes numbers or arrays.

    Examples
    --------
    >>> round(pass_at_k(10, 2, 5), 3)
    0.778
    """
    sizes, passes, draws, shape = _check_counts(n, c, k)
    return _by_k(sizes, passes, draws, shape, any_of_k)


def pass_hat_k(n: npt.ArrayLike, c: npt.ArrayLike, k: npt.ArrayLike) -> float | FloatArray:
    """Chance that all of k attempts pass: ``C(c, k) / C(n, k)``.

    Unbiased for k <= n (Yao et al. 2024, arXiv:2406.12045). Takes numbers or arrays.

    Examples
    --------
    >>> pass_hat_k(4, [0, 2, 4], 2).round(3).tolist()
    [0.0, 0.167, 1.0]
    """
    sizes, passes, draws, shape = _check_counts(n, c, k)
    return _by_k(sizes, passes, draws, shape, all_of_k)


def g_pass_at_k(
    n: npt.ArrayLike, c: npt.ArrayLike, k: npt.ArrayLike, t: float | str | Fraction
) -> float | FloatArray:
    """Chance that at least ``ceil(t k)`` of k attempts pass (Liu et al. 2024, arXiv:2412.13147).

    The share ``t`` is read as the decimal it is written as, so ``t=0.28, k=25`` asks for 7
    passes and not, by a rounding error, for 8.

    Examples
    --------
    >>> round(g_pass_at_k(10, 5, 4, 0.5), 4)
    0.7381
    """
    share = as_share(t)
    sizes, passes, draws, shape = _check_counts(n, c, k)
    return _by_k(
        sizes,
        passes,
        draws,
        shape,
        lambda size, passed, k: at_least_of_k(size, passed, k, passes_needed(share, k)),
    )


def as_share(t: float | str | Fraction) -> Fraction:
    """Read t as the decimal a person wrote; it must lie in (0, 1]."""
    try:
        share = t if isinstance(t, Fraction) else Fraction(str(t))
    except (ValueError, ZeroDivisionError):
        raise InvalidValue(f"t must be a number above 0 and up to 1, not {t!r}.") from None
    if not 0 < share <= 1:
        raise InvalidValue(f"t must lie above 0 and up to 1, not {t}.")
    return share


def passes_needed(share: Fraction, k: int) -> int:
    """``ceil(t k)``, exactly."""
    return -((-share.numerator * k) // share.denominator)


# -- on unique cells, already checked --------------------------------------------------------------


def any_of_k(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """pass@k at every cell; n must be sorted."""
    return c / n if k == 1 else 1.0 - all_of_k(n, n - c, k)


def all_of_k(n: IntArray, c: IntArray, k: int) -> FloatArray:
    """pass^k at every cell; n must be sorted.

    C(c, k) / C(n, k) is a product of k ratios, and also, by symmetry, one of n - c ratios. The
    second serves all c of the same n with one running product. Only for a large n the shorter of
    the two is taken, cell by cell, so that a cell's value never depends on its neighbours.
    """
    if k == 1:
        return c / n
    values = np.zeros(len(n))
    edges = np.flatnonzero(np.diff(n, prepend=-1, append=-1))
    for start, stop in pairwise(edges.tolist()):
        size, here, out = int(n[start]), c[start:stop], values[start:stop]
        fewer_draws = (size > _RUNNING_PRODUCT) & (size - here > k)
        for rows, product in ((fewer_draws, _over_draws), (~fewer_draws, _over_failures)):
            cells = rows & (here >= k)
            if cells.any():
                out[cells] = product(size, here[cells], k)
    return values


def _over_failures(n: int, c: IntArray, k: int) -> FloatArray:
    """With f(c) = C(c, k) / C(n, k): f(n) = 1 and f(c-1) = f(c) (c-k) / c."""
    steps = np.arange(n, int(c.min()), -1, dtype=np.float64)
    falling = np.concatenate((np.ones(1), (steps - k) / steps)).cumprod()
    return falling[n - c]


def _over_draws(n: int, c: IntArray, k: int) -> FloatArray:
    """The product over i < k of (c-i) / (n-i), for few cells of a large n."""
    values = np.ones(len(c))
    block = max(1, _CHUNK // len(c))
    for start in range(0, k, block):
        draws = np.arange(start, min(start + block, k), dtype=np.float64)
        ratios: FloatArray = (c[:, None] - draws) / (n - draws)
        values *= ratios.prod(axis=1)
    return values


def at_least_of_k(n: IntArray, c: IntArray, k: int, needed: int) -> FloatArray:
    """P(at least ``needed`` of k drawn attempts passed) at every cell.

    Hypergeometric weights are built from the ratio of neighbours, in logarithms, scaled by their
    largest, and divided by their own sum: no coefficient is ever formed.
    """
    rows = max(1, _CHUNK // (k + 1))
    parts = [
        _upper_tail(n[start : start + rows], c[start : start + rows], k, needed)
        for start in range(0, len(n), rows)
    ]
    return np.concatenate(parts)


def _upper_tail(n: IntArray, c: IntArray, k: int, needed: int) -> FloatArray:
    j = np.arange(k, dtype=np.float64)
    size, passes = n[:, None].astype(np.float64), c[:, None].astype(np.float64)
    # weight(j + 1) / weight(j); outside the support the ratio is not used and set to 1.
    top = (passes - j) * (k - j)
    bottom = (j + 1) * (size - passes - k + j + 1)
    is_inner = (top > 0) & (bottom > 0)
    ratio = np.where(is_inner, top, 1.0) / np.where(is_inner, bottom, 1.0)
    logs = np.concatenate((np.zeros((len(n), 1)), np.cumsum(np.log(ratio), axis=1)), axis=1)
    draws = np.arange(k + 1)
    possible = (draws <= c[:, None]) & (draws >= k - (n - c)[:, None])
    logs = np.where(possible, logs, -np.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    # Both parts of the sum apart, so that certain values are exactly 0 or 1.
    upper, fewer = weights[:, needed:].sum(axis=1), weights[:, :needed].sum(axis=1)
    return np.asarray(upper / (upper + fewer), np.float64)


# -- checking and spreading ------------------------------------------------------------------------


def _check_counts(
    n: npt.ArrayLike, c: npt.ArrayLike, k: npt.ArrayLike
) -> tuple[IntArray, IntArray, IntArray, tuple[int, ...]]:
    arrays = [whole_numbers(values, name) for values, name in ((n, "n"), (c, "c"), (k, "k"))]
    try:
        sizes, passes, draws = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InvalidCounts(f"n, c and k do not fit together: their shapes are {shapes}.") from None
    shape = sizes.shape
    sizes, passes, draws = sizes.ravel(), passes.ravel(), draws.ravel()

    def refuse(broken: npt.NDArray[np.bool_], rule: str) -> None:
        if broken.any():
            i = int(np.flatnonzero(broken)[0])
            at = "" if shape == () else f" at element {i}"
            raise InvalidCounts(f"n = {sizes[i]}, c = {passes[i]}, k = {draws[i]}{at}: {rule}")

    refuse(sizes < 1, "n must be at least 1.")
    refuse((passes < 0) | (passes > sizes), "c must lie between 0 and n.")
    refuse(draws < 1, "k must be at least 1.")
    refuse(
        draws > sizes,
        "k must not exceed n; nothing observed says what k attempts would do. "
        "Make more attempts or ask for a smaller k.",
    )
    return sizes, passes, draws, shape


def _by_k(
    n: IntArray,
    c: IntArray,
    k: IntArray,
    shape: tuple[int, ...],
    on_cells: OnCells,
) -> float | FloatArray:
    """Evaluate unique (n, c) once for every k, and spread the values over the elements."""
    values = np.empty(len(n))
    for draws in np.unique(k).tolist():
        here = np.flatnonzero(k == draws) if k.min() != k.max() else slice(None)
        key = n[here] * (int(c.max()) + 1) + c[here]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        values[here] = on_cells(n[here][first], c[here][first], draws)[inverse]
    return float(values[0]) if shape == () else values.reshape(shape)
