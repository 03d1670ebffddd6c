"""Advice: which temperature to use at which k, and its gain over a single temperature."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from passhat._serialize import Plain
from passhat.stats.compare.claims import points
from passhat.stats.compare.lift import Interval, LiftSample, hull, simultaneous_tail
from passhat.stats.compare.pairing import Differences, pair
from passhat.stats.estimate.metrics import PassAt
from passhat.stats.outcomes import MissingPolicy
from passhat.stats.temperature.ladders import Ladder


@dataclass(frozen=True, slots=True)
class Gain(Plain):
    """The gain of a temperature over the base temperature at a k, in shares of tasks."""

    WRITTEN = (..., "shown")

    k: int
    temperature: float
    lift: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the gain is above zero by its whole interval."""
        return self.low > 0

    def __str__(self) -> str:
        low, high = (points(end, signed=False) for end in (self.low, self.high))
        return f"{points(self.lift)} points, {low} to {high}"


@dataclass(frozen=True, slots=True)
class Advice(Plain):
    """The temperature to use at every k."""

    base: float
    """The best temperature tried at the smallest k."""
    ks: tuple[int, ...]
    """Every k looked at."""
    best: tuple[Gain, ...]
    """At every k the best temperature tried, where that is not ``base``. It is recommended where
    its gain is shown; elsewhere ``base`` is kept.
    """
    tried: int
    """How many temperatures were tried."""

    @property
    def steps(self) -> tuple[tuple[float, tuple[int, ...]], ...]:
        """Recommended temperatures in the order of k, each with its run of ks."""
        gains = {gain.k: gain.temperature for gain in self.best if gain.shown}
        by_k = [(k, gains.get(k, self.base)) for k in self.ks]
        return tuple(
            (temperature, tuple(k for k, _ in group))
            for temperature, group in groupby(by_k, key=lambda entry: entry[1])
        )

    def __str__(self) -> str:
        start = f"T = {self.base:g}"
        if self.tried < 2:
            return f"{start} is the only temperature tried: run others to choose between them."
        if not self.best:
            return f"keep {start}: none of the others does better at any k looked at."
        gains = [gain for gain in self.best if gain.shown]
        if not gains:
            lead = max(self.best, key=lambda gain: gain.lift)
            return (
                f"keep {start}: no other is shown to be better. The largest lead is that of "
                f"T = {lead.temperature:g} at k = {lead.k}: {lead}."
            )
        last = gains[-1]
        if len(self.steps) == 2:
            temperature, ks = self.steps[1]
            verb = "raise" if temperature > self.base else "lower"
            gain_text = f"{last} at k = {last.k}" if ks[0] != last.k else str(last)
            return f"{verb} T from {self.base:g} to {temperature:g} for k >= {ks[0]}: {gain_text}."
        return (
            f"{_direction([temperature for temperature, _ in self.steps])}: "
            + ", ".join(f"{temperature:g} at k = {_span(ks)}" for temperature, ks in self.steps)
            + f". At k = {last.k} that gains {last} over T = {self.base:g}."
        )

    def _as_dict(self) -> dict[str, object]:
        steps = [{"temperature": temperature, "ks": ks} for temperature, ks in self.steps]
        return {"base": self.base, "steps": steps, "best": self.best, "sentence": str(self)}


def _direction(temperatures: Sequence[float]) -> str:
    if list(temperatures) == sorted(temperatures):
        return "raise T with k"
    if list(temperatures) == sorted(temperatures, reverse=True):
        return "lower T with k"
    return "choose T by k"


def _span(ks: Sequence[int]) -> str:
    return str(ks[0]) if len(ks) == 1 else f"{ks[0]} to {ks[-1]}"


def advise(ladder: Ladder, best: Sequence[int], policy: MissingPolicy, level: float) -> Advice:
    """Recommend the best temperature tried at each k, where its gain is shown.

    ``best`` has the rung with the largest pass@k for every k. Every temperature is compared with
    the base at every k, paired over tasks, with intervals that hold for all of them at once: the
    best one is picked after looking.
    """
    base = best[0]
    others = [rung for rung in range(len(ladder.rungs)) if rung != base]
    cells = {(k, rung) for k, rung in zip(ladder.ks, best, strict=True) if rung != base}
    gains = _gains(ladder, base, others, cells, policy, level) if cells else {}
    return Advice(
        ladder.temperatures[base],
        ladder.ks,
        tuple(gains[entry] for entry in sorted(cells)),
        len(ladder.rungs),
    )


def _gains(
    ladder: Ladder,
    base: int,
    others: Sequence[int],
    cells: Collection[tuple[int, int]],
    policy: MissingPolicy,
    level: float,
) -> dict[tuple[int, int], Gain]:
    """The gains in some cells, with intervals that allow for a choice among all cells."""
    differences: list[tuple[int, int, Differences]] = []
    for rung in others:
        pairing = pair(ladder.rungs[base], ladder.rungs[rung])
        differences += [(k, rung, pairing.differences(PassAt(k), policy)) for k in ladder.ks]
    columns = np.stack([entry.values for _, _, entry in differences], axis=1)
    tail = simultaneous_tail(columns, level, "two-sided")
    gains = {}
    for k, rung, entry in differences:
        if (k, rung) not in cells:
            continue
        interval: Interval = hull(LiftSample.of(side).interval(tail) for side in entry.fills)
        gains[k, rung] = Gain(k, ladder.temperatures[rung], entry.lift, interval.low, interval.high)
    return gains
