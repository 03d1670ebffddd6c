"""Diagnostics to check before trusting a number."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from passhat._display import counted, number, some
from passhat._serialize import Plain
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes import Attempts, Completion, Outcomes

_AVERAGES_DISAGREE = 0.005
"""Half a point between run average and task average is worth a note."""


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Plain):
    """Facts about a run from the shape of its outcomes.

    Attributes
    ----------
    attempt_average, task_average : float
        The share of all attempts that passed, and the average over tasks of each task's share.
    flaky : int
        Tasks that passed sometimes and failed sometimes.
    always, never : int
        Tasks whose attempts all passed, or all failed.
    icc : float or None
        ICC(1), the share of the variance between attempts that is the task's; ``None`` when it
        has no meaning (one attempt per task, or nothing varies).
    all_alike : bool
        On no task did two attempts end differently, though there were at least two.
    notes : tuple of str
        Remarks for the reader of the report.
    """

    # Not the notes: a report writes them with its own.
    WRITTEN = ("attempt_average", "task_average", "flaky", "always", "never", "icc", "all_alike")

    attempt_average: float
    task_average: float
    flaky: int
    always: int
    never: int
    icc: float | None
    all_alike: bool
    notes: tuple[str, ...]

    def __str__(self) -> str:
        counts = f"{self.always} always passed, {self.flaky} flaky, {self.never} never passed"
        return "\n".join([f"tasks: {counts}", *self.notes])


def diagnose(
    outcomes: Outcomes,
    attempts: Attempts | None = None,
    alike_answers: tuple[int, int] | None = None,
    planned: IntArray | None = None,
) -> Diagnosis:
    """Look for attempts that are all alike, short tasks, flaky tasks and uneven weights.

    Attempts without a verdict are left out here: they say nothing about how the agent behaves.
    ``alike_answers`` are the tasks with several answers, and those where all are the same, where
    that was counted and there are no ``attempts`` to look at. ``planned`` are the attempts planned
    for each task, where they differ.
    """
    has_score = outcomes.n > 0
    n, c = outcomes.n[has_score], outcomes.c[has_score]
    if len(n) == 0:
        return Diagnosis(0.0, 0.0, 0, 0, 0, None, False, ("no attempt has a verdict",))
    always, never = int((c == n).sum()), int((c == 0).sum())
    flaky = len(n) - always - never
    is_uniform = flaky == 0 and bool((n >= 2).all())
    attempt_average, task_average = float(c.sum() / n.sum()), float(np.mean(c / n))
    icc = icc1(n, c)
    notes = [
        *_uniformity_notes(is_uniform, always, never, int(n.min()), int(n.max())),
        *_identical_answer_notes(
            alike_answers or _count_equal_answers(attempts), _count_replays(attempts)
        ),
        *_short_notes(outcomes, planned),
    ]
    if abs(attempt_average - task_average) > _AVERAGES_DISAGREE:
        notes.append(
            f"averaging over attempts gives {number(attempt_average)}, over tasks "
            f"{number(task_average)}: tasks with more attempts weigh more in the first; passhat "
            "reports the second"
        )
    if flaky:
        share = "" if icc is None else f"; the task's share of the variance, ICC(1), is {icc:.3f}"
        notes.append(
            f"{flaky:,} of {counted(len(n), 'task')} passed sometimes and failed sometimes{share}"
        )
    return Diagnosis(
        attempt_average, task_average, flaky, always, never, icc, is_uniform, tuple(notes)
    )


def icc1(n: IntArray, c: IntArray) -> float | None:
    """ICC(1) of 0/1 attempts in tasks, by one-way analysis of variance, unequal n allowed.

    (MSB - MSW) / (MSB + (n0 - 1) MSW), with n0 the usual average size for unequal groups (Shrout
    and Fleiss 1979; Donner 1986).
    """
    tasks, attempts = len(n), int(n.sum())
    if tasks < 2 or attempts <= tasks:
        return None
    rate = c / n
    mean = c.sum() / attempts
    between = float(np.sum(n * (rate - mean) ** 2)) / (tasks - 1)
    within = float(np.sum(c * (1 - rate))) / (attempts - tasks)
    size = (attempts - float(np.sum(n.astype(np.float64) ** 2)) / attempts) / (tasks - 1)
    total = between + (size - 1) * within
    return None if total == 0 else (between - within) / total


def _uniformity_notes(alike: bool, always: int, never: int, fewest: int, most: int) -> list[str]:
    if not alike:
        return []
    times = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return [
        f"on every task the {times} attempts ended alike ({always:,} always passed, {never:,} "
        "always failed): pass@k and pass^k are the same for every k. The attempts themselves do "
        "not show why: clear-cut tasks, temperature 0 and a cache all look like this"
    ]


def _count_equal_answers(attempts: Attempts | None) -> tuple[int, int]:
    """Number of tasks with several recorded answers, and of those with equal answers."""
    if attempts is None or attempts.answers is None:
        return 0, 0
    several = same = 0
    for start, stop in zip(
        attempts.starts[:-1].tolist(), attempts.starts[1:].tolist(), strict=True
    ):
        answers = attempts.answers[start:stop]
        if stop - start >= 2 and answers.all():
            several += 1
            same += int((answers == answers[0]).all())
    return several, same


def _identical_answer_notes(answers: tuple[int, int], replayed: int) -> list[str]:
    """Identical answers are no proof of a cache: short answers repeat at any temperature.

    Measured: at temperature 0.2, with 720 different seeds sent, 10 of 60 tasks had only identical
    answers. Recorded seconds that are equal to the last digit, too, are evidence.
    """
    several, same = answers
    if same == 0:
        return []
    which = "all" if same == several else f"{same:,} of {several:,}"
    return [
        f"on {which} tasks with several answers all answers are identical"
        + (
            f"; on {replayed:,} of them the recorded seconds are identical, too: the answers look "
            "cached"
            if replayed
            else ""
        )
    ]


def _count_replays(attempts: Attempts | None) -> int:
    """Tasks with several identical answers that also took exactly the same time."""
    seconds = None if attempts is None else attempts.measures.get("seconds")
    if attempts is None or attempts.answers is None or seconds is None:
        return 0
    count = 0
    for start, stop in pairwise(attempts.starts.tolist()):
        answers, took = attempts.answers[start:stop], seconds[start:stop]
        is_equal = bool(answers.all() and (answers == answers[0]).all())
        # Seconds of 0 or whole numbers are equal by rounding.
        fine = bool((took > 0).all() and (took % 1 != 0).all())
        count += stop - start >= 2 and is_equal and fine and bool((took == took[0]).all())
    return count


def _short_notes(outcomes: Outcomes, planned: IntArray | None) -> list[str]:
    n, _ = outcomes.counts(Completion.DROPPED)
    top = int(n.max())
    short = np.flatnonzero(n < (top if planned is None else planned))
    if len(short) == 0:
        return []
    if planned is not None:
        names = some([outcomes.tasks[i] for i in short.tolist()], 5)
        return [f"{counted(len(short), 'task')} with fewer scored attempts than planned: {names}"]
    fewest = int(n[short].min())
    names = some([outcomes.tasks[i] for i in short[:6].tolist()] + [""] * max(0, len(short) - 6))
    return [
        f"{counted(len(short), 'task')} with fewer scored attempts than the {top:,} of the rest, "
        f"down to {fewest:,}: {names}"
    ]
