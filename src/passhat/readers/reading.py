"""read(): from what a user typed to runs with unique names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike

from passhat._display import counted, some
from passhat.errors import NoRows, ReadError, UnknownFormat
from passhat.readers.base import Needs, Reader, ReadOptions, registered_readers
from passhat.readers.identity import joined, without_retries
from passhat.readers.sources import Source, expand, files_inside
from passhat.stats.outcomes import Run
from passhat.store import DEFAULT_PATH

__all__ = ["FileRead", "Reading", "read", "read_all"]


@dataclass(frozen=True, slots=True)
class FileRead:
    """One source that was recognized, and the runs found in it."""

    source: str
    reader: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """All that came of the sources a user named.

    ``files`` are what each file holds; ``runs`` what is left after runs that were begun again are
    counted once and, when asked, runs of the same agent are joined. ``passed_over`` are files in a
    named folder that are no logs, with what is wrong with them.
    """

    runs: tuple[Run, ...]
    files: tuple[FileRead, ...]
    passed_over: tuple[tuple[str, str], ...]


def read(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    columns: Mapping[str, str] | None = None,
    pass_at: float | None = None,
    scorer: str | None = None,
    join: bool = False,
    labels: Iterable[str] = (),
    store: str = DEFAULT_PATH,
    needs: Needs | None = None,
) -> list[Run]:
    """Read runs from files.

    Parameters
    ----------
    sources : path, glob, folder or several of them
        ``example:helpdesk`` is a table that ships with passhat, ``-`` is standard input.
    columns : mapping, optional
        What the table calls a column, as in ``{"model": "llm"}``.
    pass_at : float, optional
        The reward from which an attempt passes; needed when rewards go beyond 1.
    scorer : str, optional
        Whose verdicts count, where a log holds those of several judges.
    join : bool
        Make one run of all that have the same agent and set-up: k files with one attempt per task
        become k attempts.
    labels : iterable of str
        Columns to keep as labels of the tasks, beside those named ``slice:NAME``.
    store : str
        Where a word that is no file is looked up as the id of a run: a path or an address.
    needs : Needs, optional
        What the runs are for. Of a store or a Parquet file with many attempts only that is read;
        without it, single attempts of runs up to a million.

    Returns
    -------
    list of Run
        One per agent and set-up. Each says in ``reading`` what was taken for what, and in
        ``losses`` what could not be read.
    """
    found = read_all(
        sources,
        columns=columns,
        pass_at=pass_at,
        scorer=scorer,
        join=join,
        labels=labels,
        store=store,
        needs=needs,
    )
    return list(found.runs)


def read_all(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    columns: Mapping[str, str] | None = None,
    pass_at: float | None = None,
    scorer: str | None = None,
    join: bool = False,
    labels: Iterable[str] = (),
    store: str = DEFAULT_PATH,
    needs: Needs | None = None,
) -> Reading:
    """As :func:`read`, with what was found in which file."""
    words = [sources] if isinstance(sources, str | PathLike) else list(sources)
    needs = needs or Needs()
    # Only attempts can be joined, not their counts.
    needs = replace(needs, attempts=needs.attempts or join)
    options = ReadOptions(dict(columns or {}), pass_at, scorer, tuple(labels), needs)
    readers = registered_readers()
    files: list[FileRead] = []
    passed_over: list[tuple[str, str]] = []
    for source in expand(map(str, words), store):
        if source.is_folder and _reader_of(source, readers) is None:
            _read_folder(source, readers, options, files, passed_over)
        else:
            files.append(_read_one(source, readers, options))
    if not files:
        raise ReadError("matches nothing that passhat can read.", source=", ".join(map(str, words)))
    runs = without_retries([run for file in files for run in file.runs])
    runs = joined(runs) if join else runs
    return Reading(tuple(_with_unique_names(runs)), tuple(files), tuple(passed_over))


def _read_folder(
    folder: Source,
    readers: list[Reader],
    options: ReadOptions,
    files: list[FileRead],
    passed_over: list[tuple[str, str]],
) -> None:
    """Every log in a folder; what is none is passed over, and said to be."""
    found: list[FileRead] = []
    wrong: list[tuple[str, str]] = []
    for source in files_inside(folder, lambda one: _reader_of(one, readers) is not None):
        reader = _reader_of(source, readers)
        try:
            found.append(_read_one(source, readers, options))
        except ReadError as error:
            if reader is not None and reader.name != "table":
                raise
            wrong.append((source.name, error.message.removeprefix(f"{source.name}: ")))
    if not found and folder.found:
        # A glob also matches folders the user did not mean.
        passed_over.append((folder.name, "a folder without any log"))
        return
    if not found:
        raise ReadError(
            "is a folder without any log or table that passhat can read"
            + (f" ({counted(len(wrong), 'file')} looked at)." if wrong else "."),
            source=folder.name,
            hint=f"Name the files: '{folder.name}/*.csv'",
        )
    if wrong:
        said = f"passed over in {folder.name}: {some([name for name, _ in wrong])}"
        found = [
            replace(f, runs=tuple(replace(r, reading=(*r.reading, said)) for r in f.runs))
            for f in found
        ]
    files += found
    passed_over += wrong


def _reader_of(source: Source, readers: list[Reader]) -> Reader | None:
    return next((reader for reader in readers if reader.recognizes(source)), None)


def _read_one(source: Source, readers: list[Reader], options: ReadOptions) -> FileRead:
    reader = _reader_of(source, readers)
    if reader is not None:
        return FileRead(source.name, reader.name, tuple(reader.read(source, options)))
    if not source.head:
        raise NoRows("the file is empty.", source=source.name)
    names = ", ".join(reader.name for reader in readers)
    raise UnknownFormat(
        f"no reader recognizes the content (it starts with {source.head[:16]!r}).",
        source=source.name,
        hint=f"Readers installed: {names}.",
    )


def _with_unique_names(runs: list[Run]) -> list[Run]:
    """Name the source, then a number, where two runs would have the same name."""
    named = runs
    taken = Counter(run.name for run in named)
    named = [
        replace(run, name=f"{run.name} ({run.source})") if taken[run.name] > 1 else run
        for run in named
    ]
    taken = Counter(run.name for run in named)
    seen: Counter[str] = Counter()
    unique = []
    for run in named:
        seen[run.name] += 1
        number = f" #{seen[run.name]}" if taken[run.name] > 1 else ""
        unique.append(replace(run, name=run.name + number))
    return unique
