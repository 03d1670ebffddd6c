"""A run: one agent, one protocol, and the outcomes of its attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from passhat._display import counted, html_table
from passhat._serialize import Plain
from passhat.protocol import Protocol
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes.attempts import (
    Aggregates,
    Attempt,
    Attempts,
    MeasureColumns,
    MeasureSum,
)
from passhat.stats.outcomes.labels import Anchor, LabelCounts
from passhat.stats.outcomes.table import Outcomes
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason, Verdict

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of a source that could not be used: its place, and the problem.

    ``rows`` is how many rows of the source went with it; 0 when that cannot be known, as when a
    file ends too early. ``hint`` is advice that helps with all rows of the same problem.
    """

    where: str
    what: str
    rows: int = 1
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


@dataclass(frozen=True, slots=True)
class Tally(Plain):
    """The rows of one source: ``rows == attempts + skipped + lost``, always."""

    WRITTEN = ("rows", "attempts", "skipped", "lost", "losses", "absent")

    rows: int
    """Rows in the source, sound or not."""
    attempts: int
    """Rows that became attempts, over all runs of the source."""
    skipped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Rows left aside on purpose, by reason: another filter's copy, a cached answer."""
    losses: tuple[Loss, ...] = ()
    """The broken parts."""
    absent: int = 0
    """Attempts that the source planned and that have no row; they are missing, not skipped."""

    @property
    def lost(self) -> int:
        """Rows that could not be read."""
        return sum(loss.rows for loss in self.losses)

    def sentences(self) -> tuple[str, ...]:
        """The counts for a person to check."""
        lines = [f"{counted(self.rows, 'row')}, {counted(self.attempts, 'attempt')} read"]
        lines += [f"{counted(count, 'row')} skipped: {why}" for why, count in self.skipped.items()]
        if self.absent:
            lines.append(f"{counted(self.absent, 'planned attempt')} without a row: missing")
        if self.losses:
            kinds = "; ".join(map(str, self.losses[:3]))
            rest_text = f" and {len(self.losses) - 3:,} more" if len(self.losses) > 3 else ""
            lines.append(f"LOST {counted(self.lost, 'row')}: {kinds}{rest_text}")
        return tuple(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Run(Plain):
    """A run: one agent, one protocol, its attempts.

    Parameters
    ----------
    name : str
        The name in reports; unique within one reading.
    agent : str
        The agent that was evaluated.
    outcomes : Outcomes
        The only thing statistics accept.
    protocol : Protocol
        The protocol of the run; fields that were not recorded are ``None``.
    attempts : Attempts, optional
        Attempt by attempt, where the source has them (a table of counts has not).
    source : str
        Where it was read from.
    source_says : mapping
        Numbers that the source itself printed, as shares of 1, by metric.
    source_counts : tuple of str
        How the source is known to count, where that differs from passhat's way.
    notes : tuple of str
        Findings about the attempts that do not put the numbers in doubt.
    warnings : tuple of str
        Warnings to read before any number, such as a leak between attempts or answers
        that were cut at the token limit.
    reading : tuple of str
        How the reader read columns and fields, and the parts it ignored.
    decisions : tuple of str
        Choices of the reader that change a number: a threshold, a column of several candidates, a
        sheet, an encoding, runs that were joined, copies that count once. Reports print them.
    tally : Tally, optional
        Counts of the rows of the source; all runs of one source share it.
    origin : str
        An id that the source itself gave to the run. Two files with the same one are one run that
        was begun again, not two.
    edited : str
        When the source was last edited by hand, as it states; of two files of one run the later
        edit counts.
    aggregates : Aggregates, optional
        Reasons and measures of a run whose attempts were counted where they lie.
    agent_guessed : bool
        Whether ``agent`` comes from the name of a file or folder: the source itself names none.
    attempts_counted : bool
        Whether ``protocol.attempts`` is how many there are: the source itself states no plan.
    estimates : tuple
        Headline estimates, shown when the run is printed; ``passhat.run`` fills them in.
    id, started : str
        The run in passhat's own store, and when it began; empty where it is not known.
    planned : array, optional
        Attempts planned for each task of ``outcomes``, where they differ by task.
    planned_for : str
        The metric that they were planned for.
    words : tuple of str
        The words of a command that reads it again, where that takes more than ``source``: a file
        inside an archive, joined files, stated columns.
    about : mapping
        What is stated of the agent and used by no statistic: ``model``, ``model_version`` (of
        passhat's own runs the models that answered, as their servers state them), ``provider``,
        ``revision``, the commit of the code that it was begun with, and ``prices``, the tables
        that its cost comes from.
    messages : mapping of str to mapping of str to int
        How often each message came with a category of failure, where the source counts them.
    same_answer : str
        The text that every attempt at every task gave, where that looks like a mistake.
    missing_details : mapping of str to mapping of str to int
        The same for the reasons of missing attempts.
    labels : LabelCounts, optional
        Labels of some attempts against the judge's verdicts.
    judge_votes : tuple
        Votes of a judge that is a model: (task, passes, votes) of each attempt it voted on.
    anchors : tuple of Anchor
        Labeled attempts of an earlier run that the judge, a model, judged again with this run.
    stream : callable, optional
        Reads the rows of :meth:`iterate_rows` from the source again, where attempts are not kept.
    """

    name: str
    agent: str
    outcomes: Outcomes
    protocol: Protocol = field(default_factory=Protocol)
    attempts: Attempts | None = None
    source: str = ""
    source_says: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    source_counts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    tally: Tally | None = None
    origin: str = ""
    edited: str = ""
    aggregates: Aggregates | None = None
    agent_guessed: bool = False
    attempts_counted: bool = False
    estimates: tuple[object, ...] = ()
    warnings: tuple[str, ...] = ()
    id: str = ""
    started: str = ""
    planned: IntArray | None = None
    planned_for: str = ""
    words: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    messages: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    same_answer: str = ""
    missing_details: Mapping[str, Mapping[str, int]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    labels: LabelCounts | None = None
    judge_votes: tuple[tuple[str, int, int], ...] = ()
    anchors: tuple[Anchor, ...] = ()
    stream: Callable[[], Iterator[dict[str, object]]] | None = None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The broken parts of the source; a report on the rest is incomplete."""
        return () if self.tally is None else self.tally.losses

    @property
    def missing_by_reason(self) -> dict[str, int]:
        """How many attempts have no verdict, by reason, most frequent first."""
        if self.attempts is not None:
            return self.attempts.reasons(Verdict.MISSING)
        if self.aggregates is not None:
            return self.aggregates.by_reason(Verdict.MISSING)
        missing = self.outcomes.total_missing
        return {str(MissingReason.NOT_RECORDED): missing} if missing else {}

    @property
    def failures_by_category(self) -> dict[str, int]:
        """Number of failed attempts by category, where the source gives reasons."""
        if self.attempts is None and self.aggregates is not None:
            return self.aggregates.by_reason(Verdict.FAILED)
        if self.attempts is None or self.attempts.detail is None:
            return {}
        return self.attempts.reasons(Verdict.FAILED)

    @property
    def failure_messages(self) -> Mapping[str, Mapping[str, int]]:
        """How often each message came with a category of failure, where there are messages."""
        if self.messages or self.attempts is None:
            return self.messages
        return self.attempts.messages(Verdict.FAILED)

    @property
    def missing_messages(self) -> Mapping[str, Mapping[str, int]]:
        """How often each message came with a reason of missing, where there are messages."""
        if self.missing_details or self.attempts is None:
            return self.missing_details
        return self.attempts.messages(Verdict.MISSING)

    @property
    def measure_columns(self) -> Attempts | MeasureColumns | None:
        """Measures of single attempts; ``None`` where they were not read."""
        if self.attempts is not None or self.aggregates is None:
            return self.attempts
        return self.aggregates.columns

    def measured(self, measure: str) -> MeasureSum | None:
        """Seconds, steps, tokens or cost over the attempts that recorded it; ``None`` if none."""
        columns = self.measure_columns
        if columns is None:
            return None if self.aggregates is None else self.aggregates.measures.get(measure)
        column = columns.measures.get(measure)
        is_recorded = None if column is None else ~np.isnan(column)
        if column is None or is_recorded is None or not is_recorded.any():
            return None
        passed = int((columns.verdicts[is_recorded] == Verdict.PASSED).sum())
        return MeasureSum(int(is_recorded.sum()), float(column[is_recorded].sum()), passed)

    def iterate_attempts(self) -> Iterator[Attempt]:
        """The attempts one by one; a table of counts has none, so they are made from the counts."""
        if self.attempts is not None:
            yield from self.attempts
            return
        for task, n, c, missing in zip(
            self.outcomes.tasks,
            self.outcomes.n.tolist(),
            self.outcomes.c.tolist(),
            self.outcomes.missing.tolist(),
            strict=True,
        ):
            verdicts = [Verdict.PASSED] * c + [Verdict.FAILED] * (n - c)
            for number, verdict in enumerate([*verdicts, *[Verdict.MISSING] * missing], 1):
                yield Attempt(task, number, verdict, _UNKNOWN_WHY[verdict])

    def iterate_rows(self) -> Iterator[dict[str, object]]:
        """The attempts one by one, each as ``Attempt.to_dict`` has it."""
        if self.stream is not None:
            return self.stream()
        return (attempt.to_dict() for attempt in self.iterate_attempts())

    def label_rows(self) -> dict[str, tuple[str, ...]]:
        """The labels of each task, in the order of ``outcomes.labels``."""
        labels = self.outcomes.labels
        if not labels:
            return {}
        return dict(zip(self.outcomes.tasks, zip(*labels.values(), strict=True), strict=True))

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame with a row per attempt; pandas must be installed.

        ``passed`` is ``pd.NA`` where an attempt is missing; labels of tasks are columns.
        """
        import pandas as pd

        frame = pd.DataFrame(self._columns())
        return frame.astype({"passed": "boolean", "attempt": "int64"})

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame with a row per attempt; polars must be installed.

        ``passed`` is null where an attempt is missing; labels of tasks are columns.
        """
        import polars as pl

        return pl.DataFrame(
            self._columns(),
            schema_overrides={"passed": pl.Boolean, "attempt": pl.Int64},
            infer_schema_length=None,
        )

    def _columns(self) -> dict[str, list[object]]:
        """The attempts in columns; a column that is empty throughout is left out."""
        labels = self.label_rows()
        rows = [
            {
                "run": self.name,
                "agent": self.agent,
                **attempt.to_dict(),
                **dict(zip(self.outcomes.labels, labels.get(attempt.task, ()), strict=False)),
            }
            for attempt in self.iterate_attempts()
        ]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in (*_ALWAYS, *names)}
        return {
            name: cells
            for name, cells in columns.items()
            # A store keeps the attempt's number a second time, as it names it.
            if name in _ALWAYS or (name != "number" and any(cell is not None for cell in cells))
        }

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.outcomes}", *map(str, self.estimates)])

    def __repr__(self) -> str:
        return f"<Run {self.name}: {self.outcomes}>"

    def _repr_html_(self) -> str:
        rows = [
            ("agent", self.agent),
            ("source", self.source or "–"),
            ("tasks", f"{len(self.outcomes):,}"),
            ("attempts", self.outcomes.attempts_text()),
            ("missing", counted(self.outcomes.total_missing, "attempt")),
            ("protocol", self.protocol.digest),
        ]
        return html_table(self.name, ("", ""), rows)

    def _as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "agent": self.agent,
            "source": self.source,
            "about": dict(self.about),
            "protocol": {"digest": self.protocol.digest, **self.protocol.to_dict()},
            "outcomes": self.outcomes,
            "missing_by_reason": self.missing_by_reason,
            "failures_by_category": self.failures_by_category,
            "source_says": dict(self.source_says),
            "source_counts": list(self.source_counts),
            "reading": list(self.reading),
            "decisions": list(self.decisions),
            "tally": self.tally,
        }


_ALWAYS = ("run", "agent", "task", "attempt", "passed")
"""Columns of a data frame even where nothing was attempted."""
_UNKNOWN_WHY = MappingProxyType(
    {
        Verdict.PASSED: None,
        Verdict.FAILED: str(FailureCategory.UNKNOWN_FAILURE),
        Verdict.MISSING: str(MissingReason.NOT_RECORDED),
    }
)
"""Category or reason of an attempt that only a count tells of."""


def served_change(base: Run, run: Run) -> str:
    """Say that one agent's answers came from other models than before; empty where they did not.

    Names such as ``gpt-5`` stay while the model behind them changes.
    """
    before, now = (one.about.get("model_version", "") for one in (base, run))
    if not before or not now or before == now or base.agent != run.agent:
        return ""
    return f"{run.agent} was answered by {before} before and by {now} now"
