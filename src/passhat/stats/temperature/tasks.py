"""The toy's eval sets: the requested integers and their frequencies.

A task is an integer c; |c| is its difficulty. A set is kept as the histogram of |c|: the same
work serves 10^4 sampled tasks and a whole population.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray, IntArray

_REACH = 40.0
"""A population ends where a task is exp(-40) times as frequent as the most frequent one."""
_FARTHEST = 50_000
"""Where the power law ends."""

Density = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class TaskSet:
    """An eval set of the toy."""

    difficulty: FloatArray
    """The different values of |c|, ascending."""
    weight: FloatArray
    """The share of tasks at each of them; sums to 1."""
    name: str = "tasks"
    """Its name in tables and figures."""
    parameter: str = ""
    """The parameter within its family, as in ``s = 4``."""

    @classmethod
    def of(cls, tasks: IntArray, name: str = "tasks") -> TaskSet:
        """The histogram of tasks given one by one.

        Examples
        --------
        >>> found = TaskSet.of(np.array([-1, 1, 2, 0]))
        >>> found.difficulty.tolist(), found.weight.tolist()
        ([0.0, 1.0, 2.0], [0.25, 0.5, 0.25])
        """
        if len(tasks) == 0:
            raise InvalidValue("an eval set needs at least one task.")
        values, counts = np.unique(np.abs(tasks), return_counts=True)
        return cls(values.astype(np.float64), counts / len(tasks), name)

    @classmethod
    def from_density(
        cls, density: Density, farthest: int, family: str, parameter: str, *, easiest: int = 0
    ) -> TaskSet:
        """The population with frequencies proportional to ``density(|c|)``."""
        difficulty = np.arange(easiest, farthest + 1, dtype=np.float64)
        both_signs = np.where(difficulty == 0, 1.0, 2.0)
        weight = both_signs * density(difficulty)
        positive = weight > 0
        name = f"{family}, {parameter}"
        return cls(difficulty[positive], weight[positive] / weight.sum(), name, parameter)

    @property
    def spread(self) -> float:
        """The standard deviation of c."""
        return float(np.sqrt(self.weight @ self.difficulty**2))

    def sample(self, size: int, rng: np.random.Generator) -> TaskSet:
        """An eval set of ``size`` tasks drawn from this population."""
        counts = rng.multinomial(size, self.weight)
        positive = counts > 0
        return TaskSet(
            self.difficulty[positive], counts[positive] / size, self.name, self.parameter
        )


def _gaussian(spread: float) -> TaskSet:
    farthest = int(np.ceil(spread * np.sqrt(2 * _REACH)))
    return TaskSet.from_density(
        lambda c: np.exp(-(c**2) / (2 * spread**2)), farthest, "Gaussian", f"s = {spread:g}"
    )


def _exponential(spread: float) -> TaskSet:
    scale = spread / np.sqrt(2)
    farthest = int(np.ceil(scale * _REACH))
    return TaskSet.from_density(
        lambda c: np.exp(-c / scale), farthest, "exponential", f"s = {spread:g}"
    )


def _power(gamma: float) -> TaskSet:
    return TaskSet.from_density(
        lambda c: c**-gamma, _FARTHEST, "power law", f"gamma = {gamma:g}", easiest=1
    )


FAMILIES = MappingProxyType({"gaussian": _gaussian, "exponential": _exponential, "power": _power})
"""The families of the study, by name; each is made from one number."""


def family(name: str, parameter: float) -> TaskSet:
    """The population of one of the three families.

    exp(-c^2 / 2s^2), exp(-|c| sqrt(2) / s), or |c|^-gamma with 1 <= |c| <= 50,000; ``parameter`` is
    the nominal spread s, or gamma.

    Examples
    --------
    >>> round(family("gaussian", 8).spread, 6)
    8.0
    """
    if name not in FAMILIES:
        raise InvalidValue(f"{name!r} is not a family.", hint=f"There are: {', '.join(FAMILIES)}.")
    if not parameter > 0:
        raise InvalidValue(f"the parameter of a family must be above 0, not {parameter}.")
    return FAMILIES[name](parameter)


def _cut_laplace(x: FloatArray) -> FloatArray:
    """exp(-x / b) up to 3b, and nothing beyond; b makes the standard deviation 1."""
    scale = 1 / np.sqrt((2 - 17 * np.exp(-3.0)) / (1 - np.exp(-3.0)))
    population: FloatArray = np.where(x <= 3 * scale, np.exp(-x / scale), 0.0)
    return population


SHAPES: MappingProxyType[str, tuple[Density, float]] = MappingProxyType(
    {
        "Laplace": (lambda x: np.exp(-np.sqrt(2) * x), _REACH / np.sqrt(2)),
        "Laplace, tail cut off": (_cut_laplace, 3.0),
        "hyperbolic secant": (lambda x: 1 / np.cosh(np.pi * x / 2), 2 * _REACH / np.pi),
        "Student t3": (lambda x: (1 + x**2) ** -2, _FARTHEST / 512),
        "Gaussian": (lambda x: np.exp(-(x**2) / 2), np.sqrt(2 * _REACH)),
    }
)
"""Densities of standard deviation 1 (up to a factor), and how far out they are followed.

Head and tail are swapped in two of them: the hyperbolic secant has the smooth head of a Gaussian
and the tail of a Laplace, Student's t3 that head and a power-law tail. One loses its tail.
"""


def shape(name: str, spread: float) -> TaskSet:
    """The population with one of the ``SHAPES``, stretched to a standard deviation."""
    if name not in SHAPES:
        raise InvalidValue(f"{name!r} is not a shape.", hint=f"There are: {', '.join(SHAPES)}.")
    density, reach = SHAPES[name]
    farthest = int(np.ceil(reach * spread))
    return TaskSet.from_density(lambda c: density(c / spread), farthest, name, f"s = {spread:g}")
