"""Outcomes from records in memory: the same columns and rules as a table in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passhat.errors import InvalidValue
from passhat.stats.outcomes.attempts import Attempt
from passhat.stats.outcomes.cells import RowError
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, OutcomeColumns
from passhat.stats.outcomes.vocabulary import Verdict

__all__ = ["columns_from_records"]


def columns_from_records(records: Iterable[Mapping[str, object] | Attempt]) -> OutcomeColumns:
    """See :meth:`Outcomes.from_records`."""
    rows = [_as_mapping(record, index) for index, record in enumerate(records)]
    if not rows:
        raise InvalidValue("there are no records: at least one attempt is needed.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = ColumnMap.resolve(names)
    if not columns.holds_attempts:
        raise InvalidValue(
            f"records need a task and a success; these have: {', '.join(map(str, names))}.",
            hint="Name them 'task' and 'success', or use an alias such as task_id and passed.",
        )
    gatherer = AttemptGatherer(columns)
    try:
        gatherer.add({name: [row.get(name) for row in rows] for name in names})
        runs = gatherer.runs()
    except RowError as error:
        other = "" if error.other is None else f" (see record {error.other})"
        raise InvalidValue(f"record {error.row}: {error.message}{other}") from None
    if len(runs) > 1:
        raise InvalidValue(
            f"the records belong to {len(runs)} runs (they differ in model, suite or temperature).",
            hint="Make one Outcomes for each.",
        )
    return runs[0].columns


def _as_mapping(record: Mapping[str, object] | Attempt, index: int) -> Mapping[str, object]:
    if isinstance(record, Attempt):
        success = None if record.verdict is Verdict.MISSING else bool(record.verdict)
        return {"task": record.task, "trial": record.number, "success": success}
    if isinstance(record, Mapping):
        return record
    raise InvalidValue(
        f"record {index} is a {type(record).__name__}; a mapping such as "
        '{"task": "a", "success": True} or an Attempt is needed.'
    )
