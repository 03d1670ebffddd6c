"""The options of labels, and labels from a table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from passhat.stats.outcomes import Run
    from passhat.store.labels import StoredLabel

F = TypeVar("F", bound=Callable[..., Any])
CORRECTIONS = {"whole-tasks": "whole tasks", "errors": "errors"}


class _CorrectionType(click.ParamType[str]):
    """Whole tasks or errors; a source after the bare flag is told what to do."""

    name = "correction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in CORRECTIONS.values():
            return str(value)
        if value not in CORRECTIONS:
            self.fail(
                f"{value!r} is neither whole-tasks nor errors. A source comes before it: "
                f"passhat report {value} --corrected",
                param,
                ctx,
            )
        return CORRECTIONS[str(value)]


def corrected_option(function: F) -> F:
    """``--corrected``, with the method as an optional value."""
    return click.option(
        "--corrected",
        type=_CorrectionType(),
        is_flag=False,
        flag_value="whole tasks",
        metavar="[errors]",
        help="Correct by labels of whole tasks; or by the judge's error rates, as in "
        "--corrected errors.",
    )(function)


def labels_option(function: F) -> F:
    """``--labels``: labels from a table, for runs outside of a store."""
    return click.option(
        "--labels",
        "label_files",
        multiple=True,
        metavar="FILE",
        help="Labels of the runs: CSV with task, attempt, label (and run), as in labels.csv.",
    )(function)


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A label with its place in a table; ``run`` is empty where the table names none."""

    run: str
    label: StoredLabel
    source: str
    line: int


_SEPARATORS = ",;\t"


def read_label_table(path: str, person: str = "") -> list[LabelRow]:
    """The rows of a table that have a label.

    Columns: task, attempt, label; run, person, note and at if there are. Spreadsheets of many
    countries separate them by semicolons.
    """
    from passhat._display import csv_text
    from passhat.errors import PasshatError, ReadError
    from passhat.store.labels import Label, StoredLabel

    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ReadError(f"cannot be read: {why}.", source=path) from None
    first = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=first.count)
    rows = csv.DictReader(text.splitlines(keepends=True), delimiter=separator)
    names = rows.fieldnames or []
    lacking = [name for name in ("task", "attempt", "label") if name not in names]
    if lacking:
        raise ReadError(
            f"has no column {' and '.join(lacking)}.",
            source=path,
            hint="passhat label RUN -o labels.csv writes a table to fill in.",
        )
    labels = []
    for row in rows:
        cells = {name: csv_text(cell or "").strip() for name, cell in row.items() if name}
        if not cells["label"]:
            continue
        where = rows.line_num
        try:
            number = int(cells["attempt"].rpartition("#")[2])
            label = Label.of(cells["label"])
        except PasshatError as error:
            raise ReadError(error.message, source=path, line=where) from None
        except ValueError:
            raise ReadError(
                f"has the attempt {cells['attempt']!r}; a whole number is needed.",
                source=path,
                line=where,
            ) from None
        name = cells.get("person") or person or "table"
        note, at = cells.get("note", ""), cells.get("at", "")
        stored = StoredLabel(cells["task"], number, name, label, note, at)
        labels.append(LabelRow(cells.get("run", ""), stored, path, where))
    return labels


def refuse_contradictions(rows: Iterable[LabelRow]) -> None:
    """Refuse two different labels of one person for one attempt."""
    from passhat.errors import ReadError

    earlier: dict[tuple[str, str, int, str], LabelRow] = {}
    for row in rows:
        label = row.label
        before = earlier.setdefault((row.run, label.task, label.number, label.person), row)
        if before.label.label != label.label:
            where = f"line {before.line}"
            if before.source != row.source:
                where += f" of {before.source}"
            raise ReadError(
                f"calls {label.task}#{label.number} {label.label}, and {where} calls it "
                f"{before.label.label}, both by {label.person}.",
                source=row.source,
                line=row.line,
                hint="Keep one of the two rows; labels of two people need a column person.",
            )


def refuse_strangers(rows: Iterable[LabelRow], attempts: Container[tuple[str, int]]) -> None:
    """Refuse labels of attempts that no run has, or that no judge has judged."""
    from passhat.errors import ReadError

    for row in rows:
        if (row.label.task, row.label.number) not in attempts:
            raise ReadError(
                f"labels {row.label.task}#{row.label.number}, and there is no such attempt with a "
                "verdict.",
                source=row.source,
                line=row.line,
                hint="The columns task and attempt name it as passhat export does; attempts count "
                "from 1. Remove the row if it is about another run.",
            )


def with_labels(runs: Sequence[Run], files: Iterable[str]) -> list[Run]:
    """The runs with the labels of tables; a row without a run is about every run that has it."""
    from passhat.errors import InvalidValue
    from passhat.stats.outcomes import Verdict
    from passhat.store.labels import count_labels

    rows = [row for path in files for row in read_label_table(path)]
    if not rows:
        return list(runs)
    refuse_contradictions(rows)
    labeled, judged = [], set[tuple[str, int]]()
    for run in runs:
        if run.attempts is None:
            raise InvalidValue(
                f"{run.name} is known by its counts only, so labels of attempts cannot be matched."
            )
        verdicts = {
            (attempt.task, attempt.number): (attempt.verdict, attempt.why or "")
            for attempt in run.attempts
            if attempt.verdict is not Verdict.MISSING
        }
        judged |= verdicts.keys()
        named = [row for row in rows if row.run in (run.name, run.id) and row.run]
        refuse_strangers(named, verdicts)
        ours = [row.label for row in rows if row.run in ("", run.name, run.id)]
        matches = [label for label in ours if (label.task, label.number) in verdicts]
        counts = count_labels(matches, verdicts) if matches else None
        labeled.append(replace(run, labels=counts or run.labels))
    refuse_strangers((row for row in rows if not row.run), judged)
    if all(run.labels is None for run in labeled):
        names = dict.fromkeys(row.run for row in rows)
        raise InvalidValue(
            f"none of the labels is about these runs: they name {', '.join(names)}.",
            hint=f"The runs are {', '.join(run.name for run in runs)}.",
        )
    return labeled
