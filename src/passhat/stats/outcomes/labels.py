"""Labels of a run: how often a person and the judge agree, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.arrays import BoolArray, IntArray
from passhat.stats.outcomes.table import Outcomes

_COLUMNS = ("right_passed", "right_failed", "wrong_passed", "wrong_failed", "skipped")


@dataclass(frozen=True, slots=True)
class Anchor(Plain):
    """A labeled attempt of an earlier run that the judge judged again, with its label."""

    attempt: str
    passed_then: bool
    passed_now: bool
    right: bool


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts(Plain):
    """Labeled attempts of each task by label and the judge's verdict."""

    WRITTEN = (
        *("attempts", "skipped_attempts", "draws", "people", "agreement"),
        *("right_passed_total", "right_failed_total", "wrong_passed_total", "wrong_failed_total"),
    )

    tasks: tuple[str, ...]
    """The tasks with a labeled attempt."""
    right_passed: IntArray
    right_failed: IntArray
    wrong_passed: IntArray
    wrong_failed: IntArray
    """``right_passed``, ``right_failed``, ``wrong_passed``, ``wrong_failed``: attempts that people
    call right or wrong and that the judge passed or failed.
    """
    skipped: IntArray
    """Attempts that were looked at and have no label: skipped, or people disagree."""
    draws: tuple[str, ...] = ()
    """How the attempts were chosen, as in ``whole-tasks 10, seed 7``; empty where passhat did not
    draw them.
    """
    people: int = 1
    """How many people labeled."""
    agreement: float | None = None
    """Krippendorff's alpha, where attempts have labels of several people."""
    by_verdict: frozenset[str] = frozenset()
    by_attempts: frozenset[str] = frozenset()
    """``by_verdict``, ``by_attempts``: tasks with labels because single attempts were drawn: with
    other chances for the judge's failures than for its passes, or with the same chance for each
    attempt. Whether all attempts of such a task are labeled depends on the verdicts, or on the
    number of attempts.
    """
    categories: Mapping[str, LabelCounts] = field(default_factory=dict)
    """Labels of the attempts that the judge failed, by the category of the failure."""

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[str, bool, bool | None]], **details: object
    ) -> LabelCounts:
        """Count rows of (task, whether the judge passed it, whether a person calls it right).

        The label is ``None`` where the attempt was skipped.

        Examples
        --------
        >>> counts = LabelCounts.from_rows([("a", True, True), ("a", True, False)])
        >>> counts.wrong_passed.tolist(), counts.attempts
        ([1], 2)
        """
        table: dict[str, list[int]] = {}
        for task, passed, right in rows:
            place = 4 if right is None else 2 * (not right) + (not passed)
            table.setdefault(task, [0] * 5)[place] += 1
        columns = np.array(list(table.values()), np.int64).reshape(-1, 5).T
        return cls(tuple(table), *columns, **details)  # type: ignore[arg-type]

    @classmethod
    def join(cls, parts: Sequence[LabelCounts]) -> LabelCounts:
        """Labels of several runs that one judge judged; a task of two runs counts twice."""
        names = [
            f"{place}/{task}" if place else task
            for place, part in enumerate(parts)
            for task in part.tasks
        ]
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        draws = tuple(dict.fromkeys(draw for part in parts for draw in part.draws))
        people = max(part.people for part in parts)
        details = {**columns, "draws": draws, "people": people}
        return cls(tuple(names), **details)  # type: ignore[arg-type]

    @property
    def right(self) -> IntArray:
        """Attempts at each task that people call right."""
        return self.right_passed + self.right_failed

    @property
    def wrong(self) -> IntArray:
        """Attempts at each task that people call wrong."""
        return self.wrong_passed + self.wrong_failed

    @property
    def attempts(self) -> int:
        """Labeled attempts."""
        return int((self.right + self.wrong).sum())

    @property
    def skipped_attempts(self) -> int:
        return int(self.skipped.sum())

    @property
    def right_passed_total(self) -> int:
        return int(self.right_passed.sum())

    @property
    def right_failed_total(self) -> int:
        """Right attempts that the judge failed: false failures."""
        return int(self.right_failed.sum())

    @property
    def wrong_passed_total(self) -> int:
        """Wrong attempts that the judge passed: false passes."""
        return int(self.wrong_passed.sum())

    @property
    def wrong_failed_total(self) -> int:
        return int(self.wrong_failed.sum())

    def places_in(self, outcomes: Outcomes) -> IntArray:
        """The place of each labeled task among the tasks of a run; -1 where it is not there."""
        places = {task: place for place, task in enumerate(outcomes.tasks)}
        return np.array([places.get(task, -1) for task in self.tasks], np.int64)

    def take(self, rows: BoolArray | IntArray) -> LabelCounts:
        """Some of the tasks."""
        indices = np.arange(len(self.tasks))[rows].tolist()
        return LabelCounts(
            tuple(self.tasks[i] for i in indices),
            **{name: getattr(self, name)[indices] for name in _COLUMNS},
            draws=self.draws,
            people=self.people,
            agreement=self.agreement,
            by_verdict=self.by_verdict,
            by_attempts=self.by_attempts,
        )

    @property
    def looked_at(self) -> IntArray:
        """Attempts at each task that have a label or were skipped."""
        return self.right + self.wrong + self.skipped

    def check(self, outcomes: Outcomes) -> None:
        """Refuse labels that are not about these outcomes: more than a task has attempts."""
        places = self.places_in(outcomes)
        counts = zip(self.tasks, self.looked_at.tolist(), places.tolist(), strict=True)
        for task, count, place in counts:
            if place >= 0 and count > int(outcomes.n[place]):
                raise InvalidValue(f"task {task!r} has more labels than attempts with a verdict.")
