"""Ending a run as soon as the question it was made for is settled: ``--stop-when``.

The bounds hold at every look, so looking after every task costs nothing in honesty. Tasks are used
in an order drawn beforehand, and each counts once all its attempts are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passhat.stats.gate.sequential_gate import Look, Watcher
from passhat.stats.outcomes import Outcomes, Run, Verdict

__all__ = ["StopRule"]


class StopRule:
    """Takes verdicts as they come, and says when enough is known; without rules, never.

    Parameters
    ----------
    rules : sequence of str
        Such as ``pass^4 >= 0.6``.
    tasks : sequence of str
        Ids of all planned tasks.
    attempts : int
        Attempts planned for every task.
    seed : int or str
        Draws the order of tasks; see :meth:`passhat.runner.run.RunPlan.order_seed`.
    """

    def __init__(
        self, rules: Sequence[str], tasks: Sequence[str], attempts: int, seed: int | str
    ) -> None:
        self._watcher = Watcher(rules, tasks=tasks, attempts=attempts, seed=seed) if rules else None
        self._attempts = attempts
        self._verdicts: dict[str, dict[int, Verdict]] = {}
        self._whole: list[str] = []
        self.look: Look | None = None

    @property
    def settled(self) -> bool:
        return self.look is not None and self.look.settled

    def take(self, task: str, number: int, verdict: Verdict) -> None:
        """Note one verdict. Nothing is looked at before :meth:`ask`."""
        if self._watcher is None or number > self._attempts:
            return
        made = self._verdicts.setdefault(task, {})
        made[number] = verdict
        if len(made) == self._attempts:
            self._whole.append(task)

    def ask(self) -> bool:
        """Whether enough is known, after all verdicts that have come."""
        if self._watcher is not None and self._whole and not self.settled:
            self.look = self._watcher.look(Run("", "", self._outcomes()))
        return self.settled

    def _outcomes(self) -> Outcomes:
        rows = [[int(made[i]) for i in sorted(made)] for made in self._complete()]
        return Outcomes.from_matrix(rows, self._whole)

    def _complete(self) -> Iterable[dict[int, Verdict]]:
        return (self._verdicts[task] for task in self._whole)
