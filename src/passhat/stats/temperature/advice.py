"""Advice in one sentence: which temperature to change to, from which k on, and what it gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.compare.claims import points
from passhat.stats.compare.lift import Interval, Spread, hull
from passhat.stats.compare.pairing import Differences, pair
from passhat.stats.compare.simultaneous import simultaneous_tail
from passhat.stats.estimate.metrics import PassAt
from passhat.stats.outcomes import MissingPolicy
from passhat.stats.temperature.ladders import Ladder

__all__ = ["advise"]


@dataclass(frozen=True, slots=True)
class _Gain:
    """What another temperature gains over the one that is best at the smallest k."""

    k: int
    rung: int
    lift: float
    interval: Interval

    def __str__(self) -> str:
        low, high = (points(end, signed=False) for end in (self.interval.low, self.interval.high))
        return f"{points(self.lift)} points, {low} to {high}"


def advise(ladder: Ladder, base: int, policy: MissingPolicy, level: float) -> str:
    """Keep the temperature that is best at the smallest k, or change it from some k on.

    Every other temperature is held against it at every k, paired over tasks, with intervals that
    hold for all of them at once: the best one is picked after looking.
    """
    others = [rung for rung in range(len(ladder.rungs)) if rung != base]
    start = f"T = {ladder.temperatures[base]:g}"
    if not others:
        return f"{start} is the only temperature tried: run others to choose between them."
    gains = _gains(ladder, base, others, policy, level)
    top = {k: max((g for g in gains if g.k == k), key=lambda g: g.lift) for k in ladder.ks}
    last = top[ladder.ks[-1]]
    if last.interval.low <= 0:
        widest = max(top.values(), key=lambda gain: gain.lift)
        if widest.lift <= 0:
            return f"keep {start}: none of the others does better at any k looked at."
        return (
            f"keep {start}: no other is shown to be better. The largest lead is that of "
            f"T = {ladder.temperatures[widest.rung]:g} at k = {widest.k}: {widest}."
        )
    same = {gain.k: gain for gain in gains if gain.rung == last.rung}
    first = last
    for k in reversed(ladder.ks):
        if same[k].interval.low <= 0:
            break
        first = same[k]
    verb = "raise" if last.rung > base else "lower"
    target = f"{ladder.temperatures[base]:g} to {ladder.temperatures[last.rung]:g}"
    gained = f"{last} at k = {last.k}" if first.k != last.k else str(last)
    return f"{verb} T from {target} for k >= {first.k}: {gained}."


def _gains(
    ladder: Ladder, base: int, others: list[int], policy: MissingPolicy, level: float
) -> list[_Gain]:
    found: list[tuple[int, int, Differences]] = []
    for rung in others:
        pairing = pair(ladder.rungs[base], ladder.rungs[rung])
        found += [(k, rung, pairing.differences(PassAt(k), policy)) for k in ladder.ks]
    columns = np.stack([entry.values for _, _, entry in found], axis=1)
    tail = simultaneous_tail(columns, level, "two-sided")
    return [
        _Gain(
            k,
            rung,
            float(entry.values.mean()),
            hull(Spread.of(d).interval(tail) for d in (entry.values, entry.lowest, entry.highest)),
        )
        for k, rung, entry in found
    ]
