"""Draw attempts to label at random: single attempts, or all attempts of whole tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue

Attempt = tuple[str, int]


class DrawKind(StrEnum):
    """Units that a draw gave the same chance: tasks, attempts, or attempts of one verdict."""

    WHOLE_TASKS = "whole tasks"
    ATTEMPTS = "attempts"
    BY_VERDICT = "attempts by verdict"
    OTHER = "not by passhat"

    @classmethod
    def of(cls, text: str) -> DrawKind:
        """The kind of a draw by the record of it.

        Examples
        --------
        >>> print(DrawKind.of("sample 5 of 9 passed and 2 of 3 failed, seed 1"))
        attempts by verdict
        """
        return next((kind for kind, form in _RECORDS.items() if form.match(text)), cls.OTHER)


_RECORDS = {
    DrawKind.WHOLE_TASKS: re.compile(r"whole tasks \d+ of \d+, seed -?\d+$"),
    DrawKind.ATTEMPTS: re.compile(r"sample \d+ of \d+, seed -?\d+$"),
    DrawKind.BY_VERDICT: re.compile(r"sample \d+ of \d+ passed and \d+ of \d+ failed, seed -?\d+$"),
}
"""A draw is known by its record, in a store and in exports: the forms that are written below."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Attempts in the order in which they are to be labeled, and how they were drawn."""

    attempts: tuple[Attempt, ...]
    text: str


def draw_attempts(
    passed: Sequence[Attempt],
    failed: Sequence[Attempt],
    size: int,
    seed: int,
    failures: int | None = None,
) -> Draw:
    """Draw single attempts, without regard to the verdict or so many of the judge's failures.

    The order is random, so that labeling may end at any point.

    Examples
    --------
    >>> drawn = draw_attempts([("a", 1), ("b", 1)], [("a", 2)], size=2, seed=7, failures=1)
    >>> sorted(number for _, number in drawn.attempts)
    [1, 2]
    """
    rng = np.random.default_rng(seed)
    total = len(passed) + len(failed)
    if not total:
        raise InvalidValue("there is no attempt with a verdict to label.")
    if failures is None:
        attempts = sorted([*passed, *failed])
        chosen = [attempts[i] for i in rng.permutation(total)[:size].tolist()]
        return Draw(tuple(chosen), f"sample {len(chosen)} of {total}, seed {seed}")
    if not 0 <= failures <= size:
        raise InvalidValue(f"of {counted(size, 'attempt')}, {failures} cannot be failures.")
    parts = []
    for attempts, count in ((sorted(passed), size - failures), (sorted(failed), failures)):
        parts.append([attempts[i] for i in rng.permutation(len(attempts))[:count].tolist()])
    chosen = [*parts[0], *parts[1]]
    chosen = [chosen[i] for i in rng.permutation(len(chosen)).tolist()]
    return Draw(
        tuple(chosen),
        f"sample {len(parts[0])} of {len(passed)} passed and {len(parts[1])} of {len(failed)} "
        f"failed, seed {seed}",
    )


def draw_whole_tasks(attempts: Sequence[Attempt], count: int, seed: int) -> Draw:
    """Draw tasks, with all of their attempts; task after task, so that finished tasks stay random.

    Examples
    --------
    >>> draw_whole_tasks([("a", 1), ("a", 2), ("b", 1)], 1, seed=0).text
    'whole tasks 1 of 2, seed 0'
    """
    tasks: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts):
        tasks.setdefault(attempt[0], []).append(attempt)
    if not tasks:
        raise InvalidValue("there is no attempt with a verdict to label.")
    names = list(tasks)
    order = np.random.default_rng(seed).permutation(len(names))[:count].tolist()
    chosen = tuple(attempt for place in order for attempt in tasks[names[place]])
    return Draw(chosen, f"whole tasks {len(order)} of {len(names)}, seed {seed}")
