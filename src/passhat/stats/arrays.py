"""Array types, loading and threads of linear algebra, and digits of intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt


class LazyModule:
    """A module that is imported when its first name is used: SciPy's take as long as a report."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    from scipy import special as special
    from scipy.linalg import lapack as lapack
    from threadpoolctl import ThreadpoolController
else:
    special = LazyModule("scipy.special")
    lapack = LazyModule("scipy.linalg.lapack")

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
VerdictArray = npt.NDArray[np.int8]

P = ParamSpec("P")
R = TypeVar("R")


def log_choose(n: int | IntArray, k: IntArray) -> FloatArray:
    """Logarithm of the number of ways to choose k of n."""
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(ways, np.float64)


def log_binomial(n: int | IntArray, c: IntArray, rates: FloatArray) -> FloatArray:
    """Logarithm of the chance that c of n attempts pass; shapes are broadcast."""
    logs = log_choose(n, c) + special.xlogy(c, rates) + special.xlog1py(n - c, -rates)
    return np.asarray(logs, np.float64)


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run a solver with one thread of the linear algebra.

    Its matrices are a few hundred wide: threads spend their time waiting for each other. Eight
    intervals of ragged tasks took 1.8 s with one thread and 57 s with two.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with _limit_threads():
            return function(*args, **kwargs)

    return run


def _limit_threads() -> AbstractContextManager[object]:
    pools = _thread_pools()
    return nullcontext() if pools is None else pools.limit(limits=1, user_api="blas")


@cache
def _thread_pools() -> ThreadpoolController | None:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # installed without dependencies: slower where there are many threads
        return None
    return ThreadpoolController()


# Ends of intervals come out of solvers, matrix products and special functions whose last digits
# depend on the processor; the frontier's are certified to 3e-5 only. They are therefore rounded
# outward to five decimals where they are made: a rounded interval holds the exact one, and a report
# reads the same on every machine.
DECIMALS = 5
STEP = 10.0**-DECIMALS
_NOISE = 1e-3  # of a step: an end that is a round number but for the last bits stays that number


def round_outward(
    low: float, high: float, lowest: float = 0.0, highest: float = 1.0
) -> tuple[float, float]:
    """Both ends at five decimals, away from each other, within the range.

    Examples
    --------
    >>> round_outward(0.1234567, 0.5 + 1e-12)
    (0.12345, 0.5)
    """
    floor = math.floor(low / STEP + _NOISE) / 10**DECIMALS
    above = math.ceil(high / STEP - _NOISE) / 10**DECIMALS
    return max(floor, lowest), min(above, highest)
