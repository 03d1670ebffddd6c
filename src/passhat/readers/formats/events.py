"""Files of events: the start and the end of an attempt by its id."""

from __future__ import annotations

from itertools import islice
from typing import Any

from passhat.readers.json_records import read_object
from passhat.readers.records import RecordFile, content_kind, plain_log
from passhat.readers.sources import Source, make_folder
from passhat.readers.wide_tables import reward_or_none
from passhat.readers.zip_members import write_lines
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.rewards import RewardWords

_KINDS = ("event", "ev", "event_type", "type", "kind", "event_name", "name", "msg", "phase", "op")
_MOST_KINDS = 12
_PEEK = 100
_MOST_BYTES = 256 << 20
_Events = list[dict[str, Any]]


def expand_events(source: Source) -> Source | None:
    """A row for each attempt of a file of events; ``None`` where the file holds no such events.

    ``{"ev": "start", "id": 7, "task": "a"}`` and ``{"ev": "end", "id": 7, "passed": true}`` are
    one attempt by their id. A start without an end is a missing one.
    """
    if source.path.stat().st_size > _MOST_BYTES:
        return None
    records = RecordFile(source, plain_log(source)).records()
    if content_kind(source) == "JSON":
        lists = [part for part in (read_object(source) or {}).values() if _are_objects(part)]
        events: _Events = lists[0] if len(lists) == 1 else []
        records = iter(())
    else:
        events = [r.data for r in islice(records, _PEEK) if isinstance(r.data, dict)]
    kind = next((k for k in _KINDS if sum(k in row for row in events) > len(events) / 2), None)
    if kind is None or len({str(row.get(kind)) for row in events}) > _MOST_KINDS:
        return None
    events += [record.data for record in records if isinstance(record.data, dict)]
    events = [row for row in events if kind in row]
    for name in events[0]:
        values = [row.get(name) for row in events]
        if name == kind or not all(isinstance(value, str | int) for value in values):
            continue
        by_kind: dict[str, dict[object, _Events]] = {}
        for row, value in zip(events, values, strict=True):
            by_kind.setdefault(str(row[kind]), {}).setdefault(value, []).append(row)
        found = _join_events(by_kind, len(set(values)), {kind, name})
        if found is not None:
            rows, start, end, missing = found
            path = make_folder() / f"{source.stem}.jsonl"
            write_lines(path, rows)
            said = f"{start!r} and {end!r} with the same {name!r} are one attempt"
            said += f"; missing, without {end!r}: {missing}" if missing else ""
            return Source(source.name, path, found=source.found, conversion=said)
    return None


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(v, dict) for v in value)


def _join_events(
    by_kind: dict[str, dict[object, _Events]], count: int, used: set[str]
) -> tuple[_Events, str, str, int] | None:
    """The rows, the kinds that start and end an attempt, and the number without an end."""
    once = {
        kind: {value: rows[0] for value, rows in groups.items()}
        for kind, groups in by_kind.items()
        if all(len(rows) == 1 for rows in groups.values())
    }
    start = next((kind for kind, rows in once.items() if len(rows) == count > 1), None)
    ends = {
        kind: name
        for kind, rows in once.items()
        if start is not None and kind != start
        if (name := _verdict_name(list(rows.values()), next(iter(once[start].values()))))
    }
    if start is None or len(ends) != 1:
        return None
    ((end, verdict),) = ends.items()
    joined = []
    for value, first in once[start].items():
        last = once[end].get(value, {verdict: None})
        row = {**first, **{name: cell for name, cell in last.items() if name not in first}}
        plain = {k: v for k, v in row.items() if k not in used and not isinstance(v, dict | list)}
        joined.append(plain)
    return joined, start, end, count - len(once[end])


def _verdict_name(ends: _Events, start: dict[str, Any]) -> str | None:
    """The only field of the last events with a verdict that the first have not."""
    meaning = ColumnMap.resolve(ends[0]).meaning
    if meaning.get("task", "") not in {*start, ""}:
        return None  # an attempt of its own
    words = RewardWords()
    fields = [name for name in ends[0] if name not in start]
    found = [
        name
        for name in fields
        if all(reward_or_none(words, row.get(name)) in (0.0, 1.0) for row in ends)
    ]
    stated = [name for name in found if name == meaning.get("success")]
    bools = [name for name in found if all(isinstance(row[name], bool) for row in ends)]
    choices = next((names for names in (stated, bools, found) if names), [])
    return choices[0] if len(choices) == 1 else None
