"""Tasks that are labeled whole, and whether the choice of them is fair."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np

from passhat._display import counted, percent
from passhat.errors import Hint, InvalidValue
from passhat.stats.arrays import BoolArray, IntArray
from passhat.stats.labels.drawing import DrawKind
from passhat.stats.outcomes import Outcomes
from passhat.stats.outcomes.labels import LabelCounts

FEWEST_TASKS = 5
"""Whole tasks below which there is nothing to learn a judge's error from."""
_HARDLY_BY_CHANCE = 0.001


def find_whole_tasks(outcomes: Outcomes, labels: LabelCounts) -> tuple[IntArray, BoolArray]:
    """The place of each labeled task, and whether all of its scored attempts were looked at."""
    places, looked_at = labels.places_in(outcomes), labels.looked_at
    whole = (places >= 0) & (looked_at > 0)
    whole[whole] &= looked_at[whole] == outcomes.n[places[whole]]
    return places, whole


def unequal_chances(outcomes: Outcomes, labels: LabelCounts) -> frozenset[str]:
    """Tasks whose chance to be labeled whole depends on their verdicts or their size."""
    if len(np.unique(outcomes.n)) == 1:
        return labels.by_verdict
    return labels.by_verdict | labels.by_attempts


def label_tasks(
    outcomes: Outcomes, labels: LabelCounts, *, skipped_right: bool = False
) -> tuple[IntArray, IntArray]:
    """Tasks that are labeled whole by a fair choice: their places, and how many are right.

    A task that is whole because single attempts were drawn is left out where the chance of that
    differs between tasks: all attempts of a task that failed throughout are easily among the
    judge's failures.
    """
    places, whole = find_whole_tasks(outcomes, labels)
    if int(whole.sum()) < len(outcomes):  # with all of them there is no choice that could err
        unfair = unequal_chances(outcomes, labels)
        whole &= np.array([task not in unfair for task in labels.tasks], np.bool_)
    right = labels.right + (labels.skipped if skipped_right else 0)
    order = np.argsort(places[whole], kind="stable")
    return places[whole][order], right[whole][order]


def refuse_few_tasks(count: int, outcomes: Outcomes, labels: LabelCounts) -> None:
    """Refuse a correction by fewer whole tasks than can show the judge's error."""
    if count >= FEWEST_TASKS:
        return
    _, whole = find_whole_tasks(outcomes, labels)
    unfair = int(whole.sum()) - count
    problem = (
        f"{counted(count, 'task')} {'has' if count == 1 else 'have'} a label on every attempt; "
        f"at least {FEWEST_TASKS} are needed."
    )
    if unfair:
        draws = [text for text in labels.draws if DrawKind.of(text) is not DrawKind.WHOLE_TASKS]
        problem = (
            f"{counted(count, 'task')} of a fair choice {'has' if count == 1 else 'have'} a label "
            f"on every attempt; at least {FEWEST_TASKS} are needed. {unfair:,} more are labeled "
            "whole because single attempts were drawn, which happens to some tasks more easily "
            f"than to others ({'; '.join(draws)}), and they do not count."
        )
    raise InvalidValue(
        problem,
        hint=Hint(
            "Label whole tasks that are drawn at random: {draw_whole_tasks}. "
            "Labels of single attempts serve the correction by error rates: {correction}.",
            draw_whole_tasks=None,
            correction="errors",
        ),
    )


def refuse_choice(outcomes: Outcomes, labels: LabelCounts, places: IntArray) -> None:
    """Refuse whole tasks without a recorded draw that the judge's verdicts tell from the others.

    Tasks drawn at random pass as often as the others, up to chance.
    """
    others = np.setdiff1d(np.arange(len(outcomes)), places)
    if labels.draws or min(len(places), len(others)) < FEWEST_TASKS:
        return
    rates = outcomes.c / np.maximum(outcomes.n, 1)
    spread = float(rates.var())
    deviation = sqrt(spread * (1 / len(places) + 1 / len(others)))
    difference = float(rates[places].mean() - rates[others].mean())
    if not deviation or 2 * NormalDist().cdf(-abs(difference) / deviation) >= _HARDLY_BY_CHANCE:
        return
    raise InvalidValue(
        f"the judge passes {percent(float(rates[places].mean()), 0)} of attempts at the "
        f"{counted(len(places), 'task')} that are labeled whole and "
        f"{percent(float(rates[others].mean()), 0)} at the others: they were hardly drawn at "
        "random, and cannot speak for the others.",
        hint=Hint(
            "Label whole tasks that are drawn at random: {draw_whole_tasks}.", draw_whole_tasks=None
        ),
    )


def unfair_notes(outcomes: Outcomes, labels: LabelCounts, count: int) -> tuple[str, ...]:
    """A note on tasks that are labeled whole and do not count."""
    unfair = int(find_whole_tasks(outcomes, labels)[1].sum()) - count
    if not unfair:
        return ()
    return (
        f"{counted(unfair, 'task')} labeled whole {'does' if unfair == 1 else 'do'} not count: "
        "single attempts were drawn there, and not every task had the same chance",
    )
