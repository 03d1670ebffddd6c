"""The same comparison within each slice, corrected for how many slices there are.

Among many slices the best one looks good by chance alone, so none is shown without the others and
every interval pays for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.compare.claims import Looked, points
from passhat.stats.compare.comparison import Result, Setting, judge
from passhat.stats.compare.lift import tail_of
from passhat.stats.compare.pairing import Pairing
from passhat.stats.compare.significance import holm
from passhat.stats.estimate.metrics import Metric
from passhat.stats.terms import Terms

__all__ = ["SliceResult", "slice_results"]


@dataclass(frozen=True, slots=True)
class SliceResult:
    """One metric within one slice."""

    label: str
    value: str
    result: Result

    def __str__(self) -> str:
        found = self.result
        return (
            f"{self.label} = {self.value}: {found.claim}, {found.metric} {points(found.lift)} "
            f"points ({found.interval_text()}; {counted(found.tasks, 'paired task')}; "
            f"{found.looked_at} looked at)"
        )

    def to_dict(self) -> dict[str, object]:
        return {"label": self.label, "value": self.value, **self.result.to_dict()}


def slice_results(
    pairing: Pairing, metrics: Sequence[Metric], label: str, terms: Terms, protocols: str
) -> tuple[SliceResult, ...]:
    """Every metric in every slice: Bonferroni for the intervals, Holm for the p-values."""
    column = np.array(_labels(pairing, label), dtype=object)
    values = sorted(set(column.tolist()))
    count = len(values) * len(metrics)
    what = f"slices of {label!r}" if len(metrics) == 1 else f"results over slices of {label!r}"
    setting = Setting(pairing.names, protocols, Looked(count, what))
    tail = tail_of(terms.level, terms.alternative) / count
    widened = f"Bonferroni over {count} {what}" if count > 1 else ""
    found = []
    for value in values:
        part = pairing.take(np.flatnonzero(column == value))
        for word in metrics:
            differences = part.differences(word, terms.missing)
            judged = judge(word.name, differences, terms, setting, tail=tail, widened_by=widened)
            found.append(SliceResult(label, value, judged))
    corrected = holm([entry.result.p_value for entry in found]).tolist()
    return tuple(
        replace(entry, result=replace(entry.result, p_holm=p))
        for entry, p in zip(found, corrected, strict=True)
    )


def _labels(pairing: Pairing, label: str) -> Sequence[str]:
    """The slice of every paired task; both sides must agree where both say."""
    known = [side.labels[label] for side in (pairing.a, pairing.b) if label in side.labels]
    if not known:
        names = sorted({*pairing.a.labels, *pairing.b.labels})
        raise InvalidValue(
            f"there is no slice called {label!r}; slices here: {', '.join(names) or 'none'}.",
            hint=f"A table names one with a column 'slice:{label}'.",
        )
    for task, mine, theirs in zip(pairing.a.tasks, known[0], known[-1], strict=True):
        if mine != theirs:
            raise InvalidValue(
                f"task {task!r} is in slice {mine!r} of {label!r} in one run and in {theirs!r} in "
                "the other.",
                hint="Give each task the same slice in both.",
            )
    return known[0]
