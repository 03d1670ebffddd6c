"""Runs of many attempts: counted by the database, not read one by one.

Every metric that does not look at the order of attempts needs only how many of each task's attempts
passed. That is counted where the attempts lie, in memory that does not grow with their number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from passhat.readers.base import Needs
from passhat.stats.outcomes import Outcomes, Sums
from passhat.store import Store

__all__ = [
    "FEW_ATTEMPTS",
    "MOST_ATTEMPTS",
    "PAGE_ATTEMPTS",
    "counted_note",
    "is_counted",
    "outcomes_from",
]

FEW_ATTEMPTS = 20_000
"""A run up to here is always read: that costs a few megabytes."""
MOST_ATTEMPTS = 1_000_000
"""A run of more is not read one by one unless somebody says so: that would cost a gigabyte."""
PAGE_ATTEMPTS = 100_000
"""A page shows the single attempts of a run up to here: each costs it 30 bytes, and a kilobyte of
memory while it is made.
"""


def is_counted(attempts: int, needs: Needs) -> bool:
    """Whether so many attempts are counted where they lie."""
    if needs.one_by_one or attempts <= FEW_ATTEMPTS:
        return False
    most = min(needs.attempts_up_to or MOST_ATTEMPTS, MOST_ATTEMPTS)
    return not needs.attempts or attempts > most


def counted_note(attempts: int) -> str:
    """What a report says of a run that was counted, and of what it leaves out for that."""
    said = f"{attempts:,} attempts were counted in the database, not read one by one"
    if attempts <= MOST_ATTEMPTS:
        return said
    return (
        f"{said} (more than {MOST_ATTEMPTS:,}): first@k, first^k and window^w, which need their "
        "order, the spread of what attempts took, and notes on identical answers are left out; "
        "--one-by-one reads them all, whatever memory that takes"
    )


def outcomes_from(store: Store, run: str, attempts: int, needs: Needs) -> tuple[Outcomes, Sums]:
    """What the statistics need, from a store's own counts."""
    found = store.counts(run)
    outcomes = Outcomes.from_counts(
        found.n, found.c, found.tasks, missing=found.m, labels=_labels(found.labels)
    )
    few_enough = attempts <= MOST_ATTEMPTS
    return outcomes, Sums(
        found.reasons,
        store.measure_sums(run) if needs.measures else {},
        store.alike(run) if needs.answers and few_enough else None,
        store.taken(run) if needs.spread and few_enough else None,
    )


def _labels(texts: Sequence[str]) -> dict[str, list[str]]:
    """Slices from the labels of every task as JSON; few of them differ."""
    parsed = {text: json.loads(text) for text in set(texts)}
    names = dict.fromkeys(name for text in dict.fromkeys(texts) for name in parsed[text])
    return {name: [str(parsed[text].get(name, "")) for text in texts] for name in names}
