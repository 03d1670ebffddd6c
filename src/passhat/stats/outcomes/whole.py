"""Whole numbers from what a caller hands in, or an error that names the bad element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from passhat.errors import InvalidCounts, shorten
from passhat.stats.arrays import BoolArray, IntArray

__all__ = ["first_bad", "whole_numbers"]


def whole_numbers(values: npt.ArrayLike, name: str) -> IntArray:
    """As ``int64``; integers in other types are converted, fractions and text refused."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise InvalidCounts(f"{name} must be whole numbers, not {shorten(values)}.")
    broken = ~(np.isfinite(array) & (array == np.floor(array)))
    first_bad(broken, lambda i: f"{_at(name, array, i)} is not a whole number.")
    return array.astype(np.int64)


def first_bad(broken: BoolArray, message: Callable[[int], str]) -> None:
    """Raise about the first element that is marked; do nothing when none is."""
    if broken.any():
        raise InvalidCounts(message(int(np.flatnonzero(broken)[0])))


def _at(name: str, array: npt.NDArray[np.floating], index: int) -> str:
    place = name if array.ndim == 0 else f"{name}[{index}]"
    return f"{place} = {array.reshape(-1)[index]:g}"
