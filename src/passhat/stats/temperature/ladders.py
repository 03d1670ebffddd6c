"""Runs of one agent at several temperatures, lined up: the same tasks on every rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from passhat._display import counted, some
from passhat.errors import Hint, InvalidValue, NotComparable
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.pairing import common_tasks, restrict
from passhat.stats.estimate import default_ks, pass_at_k
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run

_EXPECTED = ("decoding.temperature", "attempts")
"""Protocol fields that may differ between the rungs of a ladder."""


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """An agent: its temperatures, ascending, and the outcomes of the same tasks at each.

    ``ks`` are the requested values that every task supports.
    """

    agent: str
    temperatures: tuple[float, ...]
    rungs: tuple[Outcomes, ...]
    ks: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rungs[0])

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.rungs[0].tasks)

    @property
    def missing(self) -> int:
        """Attempts without a verdict, over all rungs."""
        return sum(rung.total_missing for rung in self.rungs)

    def values(self, completion: Completion) -> FloatArray:
        """Unbiased pass@k of every task: temperatures x k x tasks."""
        ks = np.array(self.ks)[:, None]
        return np.stack(
            [np.asarray(pass_at_k(*rung.counts(completion), ks)) for rung in self.rungs]
        )


def ladders_of(
    runs: Sequence[Run], ks: Sequence[int], policy: MissingPolicy, *, drop_short: bool = False
) -> tuple[Ladder, ...]:
    """Group runs by agent; refuse runs without a temperature or with too few attempts.

    Without ``ks`` they are 1, 2, 4, 8 ... as far as each agent's attempts go; ``drop_short`` leaves
    out tasks with fewer attempts than the largest requested k.
    """
    without = [run.name for run in runs if _temperature(run) is None]
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if _temperature(run) is not None:
            groups.setdefault(run.agent, []).append(run)
    if not groups:
        raise InvalidValue(
            f"no run records its temperature: {some(without)}.",
            hint=Hint(
                "A table needs a column for it, such as temperature; if yours has another name: "
                "{columns}",
                columns={"temperature": "COLUMN"},
            ),
        )
    note = (f"left out, since no temperature is recorded: {some(without)}",) if without else ()
    ladders = [
        _ladder(agent, agent_runs, ks, policy, note, drop_short)
        for agent, agent_runs in groups.items()
    ]
    if not any(ladder.ks for ladder in ladders):
        raise InvalidValue(
            f"no agent has enough attempts at every task for k = {min(ks, default=1)}.",
            hint=Hint(
                "Ask for a smaller k, or leave short tasks out ({drop_short}).", drop_short=True
            )
            if min(ks, default=1) > 1
            else Hint("Some task has no verdict at all: {missing} fills it in.", missing="bound"),
        )
    return tuple(ladders)


def _temperature(run: Run) -> float | None:
    value = run.protocol.decoding.get("temperature")
    return float(value) if isinstance(value, int | float) else None


def _ladder(
    agent: str,
    runs: Sequence[Run],
    ks: Sequence[int],
    policy: MissingPolicy,
    notes: tuple[str, ...],
    drop_short: bool,
) -> Ladder:
    by_temperature = sorted(runs, key=lambda run: _temperature(run) or 0.0)
    temperatures = [_temperature(run) or 0.0 for run in by_temperature]
    _refuse_other_differences(agent, by_temperature, temperatures)
    shared = common_tasks(
        [run.outcomes for run in by_temperature], [run.name for run in by_temperature]
    )
    alone = sum(len(run.outcomes) for run in by_temperature) - len(shared) * len(by_temperature)
    if alone:
        notes += (f"{counted(alone, 'result')} of tasks that not every temperature has left out",)
    rungs = [restrict(run.outcomes, shared) for run in by_temperature]
    if drop_short and ks:
        rungs, left_out = _without_short(rungs, max(ks), policy)
        if left_out:
            notes += (f"{counted(left_out, 'task')} with fewer than {max(ks)} attempts left out",)
    fewest = min(int(rung.counts(policy.completion)[0].min()) for rung in rungs)
    common_ks = tuple(k for k in ks or default_ks_of(fewest) if k <= fewest)
    beyond = [str(k) for k in ks if k > fewest]
    if beyond:
        notes += (
            f"pass@{', '.join(beyond)} not answered: some task has {counted(fewest, 'attempt')}",
        )
    return Ladder(agent, tuple(temperatures), tuple(rungs), common_ks, notes)


def default_ks_of(fewest: int) -> tuple[int, ...]:
    """1, 2, 4, 8 ... up to so many attempts."""
    return default_ks(Outcomes.from_counts(fewest, [0])) if fewest else ()


def _without_short(
    rungs: Sequence[Outcomes], k: int, policy: MissingPolicy
) -> tuple[list[Outcomes], int]:
    fewest = np.min([rung.counts(policy.completion)[0] for rung in rungs], axis=0)
    keep = np.flatnonzero(fewest >= k)
    if len(keep) == 0:
        raise InvalidValue(
            f"no task has {counted(k, 'attempt')} at every temperature.",
            hint=f"Ask for a smaller k: up to {int(fewest.max())} can be asked of some tasks.",
        )
    return [rung.take(keep) for rung in rungs], len(fewest) - len(keep)


def _refuse_other_differences(
    agent: str, runs: Sequence[Run], temperatures: Sequence[float]
) -> None:
    """Temperature must be all that differs; each temperature must come once."""
    for before, after in pairwise(runs):
        differences = [
            entry
            for entry in before.protocol.differences(after.protocol)
            if entry.known and entry.field not in _EXPECTED
        ]
        if differences:
            raise NotComparable(
                f"{before.name} and {after.name} differ in more than temperature: "
                f"{'; '.join(map(str, differences))}.",
                differences=[entry.field for entry in differences],
                hint="Fit runs that are alike in everything else.",
            )
    twice = {t for t in temperatures if temperatures.count(t) > 1}
    if twice:
        raise InvalidValue(
            f"{agent} has more than one run at temperature {min(twice):g}.",
            hint="Join their attempts into one run, or name only one of the sources.",
        )
