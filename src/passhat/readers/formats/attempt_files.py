"""Objects that are an attempt each: small documents in folders, columns of records.

What documents do not state, their paths may say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from passhat._display import some
from passhat.readers.json_records import is_inner, read_object
from passhat.readers.parsing import Rewrite
from passhat.readers.sources import Source, make_folder
from passhat.readers.text_logs import read_attempt_log
from passhat.readers.wide_tables import reward_or_none
from passhat.stats.outcomes.cells import CellCodes
from passhat.stats.outcomes.columns import ALIASES, ColumnMap, fold_name
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords, is_failure_reason

_SUMMARY = re.compile(
    r"(?:^|[_.-])(?:summary|overview|aggregated?|totals?|metrics|stats|statistics|scores?|report)$",
    re.IGNORECASE,
)
_LOG_ENDINGS = (".log", ".txt", ".out", "")
_TRIAL_STEM = re.compile(
    r"(?:(?P<task>.+?)[_.-]+)?(?:(?:run|trial|attempt|seed|sample|rep|try|epoch|iter)[_-]?)?(?P<n>\d+)",
    re.IGNORECASE,
)
_TRIAL_PART = re.compile(
    r"(?:(?:run|trial|attempt|seed|sample|rep|try|epoch|iter)[ _-]?)?\d+", re.IGNORECASE
)
_COUNTED_STEM = re.compile(
    r"(?P<task>.+?)[_.-]+(?:run|trial|attempt|seed|sample|rep|try|epoch|iter)[_-]?(?P<n>\d+)",
    re.IGNORECASE,
)


def _ending(file: Source) -> str:
    """The ending of a name, with a word before it: ``.graded.json`` is not ``.json``."""
    name = PurePosixPath(file.name)  # a file that was converted has another path
    inner = PurePosixPath(name.stem).suffix
    return (inner if inner[1:].isalpha() else "") + name.suffix


def find_verdict(data: Mapping[str, Any]) -> tuple[str, object] | None:
    """The field of an object, or of an object in it, that holds the verdict by its name."""
    return next(iter(_find_verdicts(data)), None)


def _find_verdicts(data: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The field with the verdict of an object, then those of the objects in it."""
    inner = [(f"{name}.", value) for name, value in data.items() if isinstance(value, dict)]
    is_first = True
    for prefix, fields in (("", data), *inner):
        plain = {fold_name(str(k)): (str(k), v) for k, v in fields.items() if not is_inner(v)}
        aliases = (*ALIASES["success"], fold_name(prefix[:-1]))  # {"eval": {"eval": "failure"}}
        for alias in aliases:
            name, value = plain.get(alias, ("", "?!"))
            if reward_or_none(RewardWords(), value) is not None or is_failure_reason(value):
                yield (name if is_first else prefix + name), value
                is_first = False
                break


def find_inner_verdicts(chunk: Chunk, stated: Mapping[str, str]) -> tuple[Rewrite, str] | None:
    """Columns of objects that each hold a verdict, as columns of verdicts: one for each model."""
    if "success" in stated or "success" in ColumnMap.resolve(chunk).meaning:
        return None
    fields = {name: _verdict_field(chunk[name]) for name in chunk}
    names = [name for name, field in fields.items() if field]
    if len(names) < 2 or len({fields[name] for name in names}) > 1:
        return None
    field = fields[names[0]]

    def rewrite(chunk: Chunk, lines: Sequence[int]) -> tuple[Chunk, Sequence[int]]:
        def verdicts(cells: Sequence[object]) -> list[object]:
            return [cell.get(field) if isinstance(cell, dict) else None for cell in cells]

        cells = {name: verdicts(chunk[name]) if name in names else chunk[name] for name in chunk}
        return cells, lines

    return rewrite, f"{some(list(map(repr, names)), 3)} are objects; {field!r} is their verdict"


def _verdict_field(cells: Sequence[object]) -> str:
    """The field with the verdict that all objects of a column have; empty without one."""
    if isinstance(cells, CellCodes):
        return ""
    objects = [cell for cell in cells if cell is not None]
    found = [find_verdict(cell) if isinstance(cell, dict) else None for cell in objects]
    names = {each[0] if each is not None and "." not in each[0] else "" for each in found}
    return names.pop() if len(names) == 1 else ""


def is_summary(file: Source) -> bool:
    """Whether a file is named as what sums up the documents beside it."""
    return _SUMMARY.search(PurePosixPath(file.name).stem) is not None


def gather_documents(
    folder: Source, files: Sequence[Source], sums: Sequence[Source] = ()
) -> Source | None:
    """A table of the small documents in a folder, each an attempt; ``None`` where they are not.

    A task that they do not state is the part of the path that differs, and a number behind it the
    attempt. Where two parts differ, one of them may be the model: that is not decided here.
    """
    rows: list[dict[str, object]] = []
    paths: list[tuple[str, ...]] = []
    others = [file.path_below(folder).as_posix() for file in sums]
    endings: set[str] = set()
    for file in files:
        row = _attempt_fields(file)
        if row is None:
            others.append(file.path_below(folder).as_posix())
            continue
        rows.append(row)
        paths.append(file.path_below(folder).with_suffix("").parts)
        endings.add(_ending(file))
    if len(rows) < 2 or 2 * len(rows) <= sum(_ending(file) in endings for file in files):
        return None
    named = ColumnMap.resolve(rows[0]).names_of("model", "task", "trial", "suite")
    keys = [tuple(map(str, map(row.get, named.values()))) for row in rows]
    if {"model", "task"} <= named.keys() and len(set(keys)) < len(keys):
        return None  # of several runs of an agent
    said = f"{len(rows):,} files are an attempt each"
    said += f"; left out, without a verdict: {some(others, 4)}" if others else ""
    has_task = all("task" in ColumnMap.resolve(row).meaning for row in rows)
    missing = _folders_without(paths, others)
    find_places = _places if not has_task else partial(_places_of_tasks, rows=rows)
    places = find_places([*paths, *missing])
    if places is None and not has_task:
        return None
    if places is not None:
        if missing:
            folders = some(["/".join(path[:-1]) for path in missing], 4)
            said += f"; missing, a folder without that file: {folders}"
        rows += [{} for _ in missing]
        rows = [{**row, **place} for row, place in zip(rows, places, strict=True)]
        said += ", named by their paths"
    path = make_folder() / f"{folder.stem}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return Source(folder.name, path, found=folder.found, conversion=said)


def _folders_without(
    paths: Sequence[tuple[str, ...]], others: Sequence[str]
) -> list[tuple[str, ...]]:
    """The folders of attempts whose file with the verdict is not there, as those paths."""
    folders = {path[:-1] for path in paths}
    names, depths = {path[-1] for path in paths}, {len(path) for path in paths}
    if len(folders) < len(paths) or len(names) > 1 or depths != {max(depths)} or depths == {1}:
        return []
    around = {folder[:-1] for folder in folders}
    found = dict.fromkeys(tuple(PurePosixPath(other).parts[:-1]) for other in others)
    return [
        (*folder, *names)
        for folder in found
        if folder not in folders and len(folder) + 1 in depths and folder[:-1] in around
    ]


def _attempt_fields(file: Source) -> dict[str, object] | None:
    """The fields of a document or a log of one attempt; ``None`` without a verdict."""
    data = read_object(file)
    if data is not None:
        verdicts = dict(_find_verdicts(data))
        plain = {str(k): v for k, v in data.items() if not is_inner(v)}
        return plain | verdicts if verdicts else None
    is_text = file.path.suffix.lower() in _LOG_ENDINGS and file.head and b"\0" not in file.head
    return read_attempt_log(file) if is_text else None


def _places_of_tasks(
    paths: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, object]]
) -> list[dict[str, object]] | None:
    """The agent and the number of the attempt, by the paths of records that state their task."""
    named = ColumnMap.resolve(rows[0]).names_of("model", "task", "trial")
    if len({len(path) for path in paths}) > 1 or "model" in named:
        return None
    tasks = [str(row.get(named["task"])) for row in rows]
    columns = [column for column in zip(*paths, strict=True) if len(set(column)) > 1]
    trials = [column for column in columns if all(map(_TRIAL_PART.fullmatch, column))]
    others = [column for column in columns if column not in trials]
    named_tasks = [column for column in others if _are_paired(column, tasks)]
    agents = [column for column in others if column not in named_tasks]
    if len(named_tasks) != 1 or len(trials) > 1 or not (agents or trials):
        return None
    names = dict(zip(named_tasks[0], tasks, strict=False))
    places = []
    for row, part in enumerate(named_tasks[0]):
        if part not in names:  # a task of which no file is there
            return None
        place: dict[str, object] = {named["task"]: names[part]}
        if agents:
            place["model"] = "/".join(column[row] for column in agents)
        if trials and "trial" not in named:
            place["trial"] = re.sub(r"\D", "", trials[0][row])
        places.append(place)
    return places


def _are_paired(parts: Sequence[str], tasks: Sequence[str]) -> bool:
    """Whether each part of a path is of one task, and each task has one."""
    pairs = set(zip(parts, tasks, strict=False))
    return len(pairs) == len({part for part, _ in pairs}) == len({task for _, task in pairs}) > 1


def _places(paths: Sequence[tuple[str, ...]]) -> list[dict[str, object]] | None:
    """The task, and the number of the attempt, by the parts of paths that differ."""
    if len({len(path) for path in paths}) > 1:
        return None
    columns = [column for column in zip(*paths, strict=True) if len(set(column)) > 1]
    if len(columns) == 2 and all(map(_TRIAL_STEM.fullmatch, columns[1])):
        stems = [_TRIAL_STEM.fullmatch(stem) for stem in columns[1]]
        return [
            {"task": task, "trial": match["n"] if match else ""}
            for task, match in zip(columns[0], stems, strict=True)
        ]
    if len(columns) != 1:
        return None
    matches = [_COUNTED_STEM.fullmatch(stem) for stem in columns[0]]
    if all(matches):
        return [{"task": match["task"], "trial": match["n"]} for match in matches if match]
    return [{"task": stem} for stem in columns[0]]
