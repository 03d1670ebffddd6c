"""read(): from what a user typed to runs with unique names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike

from passhat.errors import UnknownFormat
from passhat.outcomes import Run
from passhat.readers.registry import ReadOptions, registered_readers
from passhat.readers.sources import Source, expand

__all__ = ["read"]


def read(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    columns: Mapping[str, str] | None = None,
    pass_at: float | None = None,
    labels: Iterable[str] = (),
) -> list[Run]:
    """Read runs from files.

    Parameters
    ----------
    sources : path, glob or several of them
        ``example:helpdesk`` is a table that ships with passhat.
    columns : mapping, optional
        What the table calls a column, as in ``{"model": "llm"}``.
    pass_at : float, optional
        The reward from which an attempt passes; needed when rewards go beyond 1.
    labels : iterable of str
        Columns to keep as labels of the tasks, beside those named ``slice:NAME``.

    Returns
    -------
    list of Run
        One per agent and set-up. Each says in ``reading`` what was taken for what.
    """
    words = [sources] if isinstance(sources, str | PathLike) else list(sources)
    options = ReadOptions(dict(columns or {}), pass_at, tuple(labels))
    runs = [run for source in expand(map(str, words)) for run in _read_one(source, options)]
    return _with_unique_names(runs)


def _read_one(source: Source, options: ReadOptions) -> list[Run]:
    readers = registered_readers()
    for reader in readers:
        if reader.recognises(source):
            return reader.read(source, options)
    if not source.head:
        raise UnknownFormat("the file is empty.", source=source.name)
    names = ", ".join(reader.name for reader in readers)
    raise UnknownFormat(
        f"no reader recognises the content (it starts with {source.head[:16]!r}).",
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
