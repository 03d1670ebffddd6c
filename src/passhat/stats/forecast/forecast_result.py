"""The result of a forecast: a band, and the model lines that run inside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from passhat._display import counted, html_table, number
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import GPass, PassAt

__all__ = ["SCHEMA", "Forecast"]

SCHEMA = "passhat.forecast/1"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The band of a metric at one k, whatever the shape of the difficulty.

    Attributes
    ----------
    metric : str
        The word of the grammar, as in ``pass@1000``.
    low, high : float
        The ends of the band.
    level : float
        The confidence of the band, for this k.
    lines : mapping of str to float or None
        The value of each named model; ``None`` where it runs outside the band.
    observed : float or None
        The unbiased estimate, where every task has k attempts.
    about : str
        The population it speaks about.
    method : str
        How the band was computed.
    tasks, attempts : int
        The data behind it.
    warnings : tuple of str
        Reasons for caution: k far beyond n, few clusters.
    notes : tuple of str
        Other remarks.
    """

    metric: str
    low: float
    high: float
    level: float
    lines: Mapping[str, float | None] = field(default_factory=lambda: MappingProxyType({}))
    observed: float | None = None
    about: str = "new tasks"
    method: str = ""
    tasks: int = 0
    attempts: int = 0
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def band_text(self) -> str:
        """The band in brackets."""
        return f"[{number(self.low)}, {number(self.high)}]"

    def users(self, count: int = 10_000) -> str:
        """The band as people: how many of ``count`` users it is good to.

        Each user brings one task like these and comes k times.
        """
        chosen = parse(self.metric)
        low, high = math.floor(self.low * count + 1e-9), math.ceil(self.high * count - 1e-9)
        many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        times = "once" if chosen.k == 1 else f"{chosen.k:,} times"
        if isinstance(chosen, PassAt):
            what = f"who each try {times}, {many} succeed at least once"
        elif isinstance(chosen, GPass):
            what = f"who each come {times}, {many} are served well at least {chosen.needed:,} times"
        else:
            what = f"who each come {times}, {many} never see a failure"
        return f"of {count:,} users {what}"

    def __str__(self) -> str:
        return (
            f"{self.metric} in {self.band_text()} ({self.level:.0%} band, {self.about}; "
            f"{counted(self.tasks, 'task')}, {counted(self.attempts, 'attempt')})"
        )

    def _repr_html_(self) -> str:
        rows = [("band", self.band_text())]
        if self.observed is not None:
            rows.append(("observed", number(self.observed)))
        rows += [(name, _line_text(value)) for name, value in self.lines.items()]
        rows += [("method", self.method), *(("warning", text) for text in self.warnings)]
        rows += [("note", text) for text in self.notes]
        return html_table(str(self), ("", ""), rows)

    def to_dict(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "lines": dict(self.lines),
            "observed": self.observed,
            "about": self.about,
            "method": self.method,
            "tasks": self.tasks,
            "attempts": self.attempts,
            "in_words": self.users(),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def _line_text(value: float | None) -> str:
    return "outside the band" if value is None else number(value)
