"""Watching a value of these tasks: attempts in rounds, one block at every task.

What *this run* will read is known once its last attempt is in, so at a threshold equal to the true
rate it is above it half of the time. A claim about *these tasks* keeps the noise of attempts: the
rates are fixed, the attempts are drawn. A round is a block of k attempts at every task; its values
are independent, their means differ from task to task, and their average is the metric. Fixed
stakes on all values of a round, looked at when the round is complete, are a fair game against every
average (:meth:`~passhat.stats.sequential.ConfidenceSequence.update_round`). Unequal rates make it
cautious, never wrong.

Against a baseline, the attempts of both runs are split into as many rounds as the shorter one has
blocks of k, and a value is the difference of the two estimates of a task. The baseline's attempts
are noise as well, so each of them is used in one round only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from passhat.errors import InvalidValue
from passhat.stats.arrays import BoolArray, FloatArray, IntArray
from passhat.stats.estimate.metrics import CountMetric
from passhat.stats.outcomes import Completion, Outcomes


@dataclass(frozen=True, slots=True)
class Rounds:
    """How the planned attempts are split: block by block, the same for every task."""

    metric: CountMetric
    """Evaluated on every block."""
    blocks: tuple[slice, ...]
    """The attempts of each round."""
    base_blocks: tuple[slice, ...] = ()
    """Those of the baseline; empty without one."""

    @classmethod
    def split(cls, metric: CountMetric, attempts: int, base_attempts: int | None = None) -> Rounds:
        """Blocks of k attempts; with few in one of the runs, larger blocks of the other one."""
        shorter = attempts if base_attempts is None else min(attempts, base_attempts)
        count = shorter // metric.k
        if count == 0:
            raise InvalidValue(f"{metric} needs {metric.k} attempts per task, not {shorter}.")
        base_blocks = () if base_attempts is None else _even_blocks(base_attempts, count)
        return cls(metric, _even_blocks(attempts, count), base_blocks)

    def complete(self, ready: IntArray) -> int:
        """How many rounds are in, given the attempts that every task has."""
        return sum(block.stop <= int(ready.min()) for block in self.blocks)

    def values(self, index: int, passed: BoolArray, base_passed: BoolArray | None) -> FloatArray:
        """The value of every task in a round: the metric, or its difference to the baseline."""
        here = self._block_values(passed[:, self.blocks[index]])
        if base_passed is None:
            return here
        return here - self._block_values(base_passed[:, self.base_blocks[index]])

    def _block_values(self, passed: BoolArray) -> FloatArray:
        tasks, n = passed.shape
        c = passed.sum(axis=1)
        return self.metric.values(np.full(tasks, n), c)


def _even_blocks(attempts: int, count: int) -> tuple[slice, ...]:
    ends = [attempts * i // count for i in range(count + 1)]
    return tuple(slice(ends[i], ends[i + 1]) for i in range(count))


def attempts_in_order(
    outcomes: Outcomes, attempts: int, completion: Completion, rng: np.random.Generator
) -> tuple[BoolArray, IntArray]:
    """Whether each attempt passed, tasks x attempts, and how many of each task are in.

    Attempts after a gap in the numbers wait for it: the quick ones are not like the rest. Where the
    order is unknown it is drawn, and a task has its attempts once all of them are in.
    """
    passed = np.zeros((len(outcomes), attempts), np.bool_)
    ready = np.zeros(len(outcomes), np.int64)
    for index, verdicts in enumerate(_sequences(outcomes, attempts, completion, rng)):
        passed[index, : len(verdicts)] = verdicts
        ready[index] = len(verdicts)
    return passed, ready


def _sequences(
    outcomes: Outcomes, attempts: int, completion: Completion, rng: np.random.Generator
) -> Iterator[BoolArray]:
    order = outcomes.order
    if order is None:
        n, c = outcomes.counts(completion)
        for made, passes in zip(n.tolist(), c.tolist(), strict=True):
            whole = rng.permutation(np.arange(made) < passes)
            yield whole[:attempts] if made >= attempts else whole[:0]
        return
    sequences = order.completed(completion)
    for index in range(len(outcomes)):
        here = slice(sequences.starts[index], sequences.starts[index + 1])
        verdicts = sequences.passed[here]
        if order.numbers is not None:
            gaps = np.flatnonzero(order.numbers[here] != np.arange(len(verdicts)))
            verdicts = verdicts[: gaps[0]] if len(gaps) else verdicts
        yield verdicts[:attempts]
