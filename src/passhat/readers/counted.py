"""Runs of millions of attempts: counted by the database, never read one by one.

Every metric that does not look at the order of attempts needs only how many of each task's attempts
passed. That is counted where the attempts lie, in memory that does not grow with their number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from passhat.outcomes import Outcomes, Sums
from passhat.store.counting import Counts

__all__ = ["MOST_ATTEMPTS", "counted_note", "outcomes_from"]

MOST_ATTEMPTS = 2_000_000
"""A run of more attempts than this is counted."""


def counted_note(attempts: int) -> str:
    """What a report says of a run that was counted."""
    return (
        f"{attempts:,} attempts were counted in the database, not read one by one (more than "
        f"{MOST_ATTEMPTS:,}): first@k, first^k and window^w, which need their order, and notes on "
        "identical answers are not to be had"
    )


def outcomes_from(found: Counts) -> tuple[Outcomes, Sums]:
    """What the statistics need of a store's own counts."""
    outcomes = Outcomes.from_counts(
        np.frombuffer(found.n, np.int64),
        np.frombuffer(found.c, np.int64),
        found.tasks,
        missing=np.frombuffer(found.m, np.int64),
        labels=_labels(found.labels),
    )
    return outcomes, Sums(found.reasons, found.measures)


def _labels(texts: Sequence[str]) -> dict[str, list[str]]:
    """Slices from the labels of every task as JSON; few of them differ."""
    parsed = {text: json.loads(text) for text in set(texts)}
    names = dict.fromkeys(name for text in dict.fromkeys(texts) for name in parsed[text])
    return {name: [str(parsed[text].get(name, "")) for text in texts] for name in names}
