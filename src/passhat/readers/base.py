"""The contract of a reader, the options it is given, and the list of installed readers."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

from passhat.errors import InvalidValue
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

__all__ = [
    "COUNTS_ONLY",
    "FEW_ATTEMPTS",
    "GROUP",
    "MOST_ATTEMPTS",
    "PAGE_ATTEMPTS",
    "Needs",
    "ReadOptions",
    "Reader",
    "is_counted",
    "load_readers",
    "note_counted",
]

GROUP = "passhat.readers"
"""The entry-point group; passhat's own readers are registered in it, too."""

FEW_ATTEMPTS = 20_000
"""Runs up to this size are always read attempt by attempt: that costs a few megabytes."""
MOST_ATTEMPTS = 1_000_000
"""Larger runs are counted by the database unless ``one_by_one`` is set: a million attempts take
about a gigabyte of memory.
"""
PAGE_ATTEMPTS = 100_000
"""Runs up to this size show single attempts on an HTML page: each adds 30 bytes to the page and
a kilobyte of memory while the page is built.
"""


@dataclass(frozen=True, slots=True)
class Needs:
    """Parts of the data that a command uses, so that nothing else is read from a large source.

    Numbers that follow from how many attempts of each task passed need none of these.

    Attributes
    ----------
    attempts : bool
        Single attempts: their order and their measures. Runs of more than a million attempts are
        counted instead, unless ``one_by_one`` is set.
    attempts_up_to : int, optional
        Single attempts only in runs up to this size, where that is less than a million.
    measures : bool
        Total seconds, steps, tokens and cost.
    spread : bool
        The distribution of these measures over attempts. Not read beyond a million attempts.
    answers : bool
        Whether attempts at a task gave the identical answer.
    details : bool
        The judge's words, retries and answers of single attempts in a store.
    one_by_one : bool
        Read every attempt, in spite of the memory that takes.
    growing : bool
        The file is still being written: the last line counts once it has ended.
    """

    attempts: bool = True
    measures: bool = True
    answers: bool = True
    one_by_one: bool = False
    attempts_up_to: int | None = None
    spread: bool = False
    growing: bool = False
    details: bool = False


COUNTS_ONLY = Needs(attempts=False, measures=False, answers=False)


def is_counted(attempts: int, needs: Needs) -> bool:
    """Whether a run of this size is counted by the database rather than read."""
    if needs.one_by_one or attempts <= FEW_ATTEMPTS:
        return False
    limit = min(needs.attempts_up_to or MOST_ATTEMPTS, MOST_ATTEMPTS)
    return not needs.attempts or attempts > limit


def note_counted(attempts: int) -> str:
    """The note on a run that was counted: its report omits figures on single attempts."""
    note = f"{attempts:,} attempts were counted in the database, not read one by one"
    if attempts <= MOST_ATTEMPTS:
        return note
    return (
        f"{note} (more than {MOST_ATTEMPTS:,}): first@k, first^k and window^w, which need their "
        "order, the spread of what attempts took, and notes on identical answers are left out; "
        "--one-by-one reads them all, whatever memory that takes"
    )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a source, as the user stated it.

    Attributes
    ----------
    columns : mapping
        passhat's name of a column to the table's, as in ``{"model": "llm"}``.
    pass_at : float, optional
        The reward from which an attempt passes; ``None`` when not stated.
    scorer : str, optional
        The judge whose verdicts count, where a log holds those of several.
    labels : tuple of str
        Columns to keep as labels of the tasks.
    needs : Needs
        The parts of the data that are needed.
    agent : str, optional
        The agent of all runs; overrides the name in a source or in its file name.
    records, trials, passes : str, optional
        Where the records of a file are, which fields hold one attempt each, and what passes; see
        :class:`passhat.readers.mapping.RecordMap`.
    mapping : path, optional
        A mapping as TOML.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    pass_at: float | None = None
    scorer: str | None = None
    labels: tuple[str, ...] = ()
    needs: Needs = field(default_factory=Needs)
    agent: str | None = None
    records: str | None = None
    trials: str | None = None
    passes: str | None = None
    mapping: str | None = None

    @property
    def is_mapped(self) -> bool:
        """Whether the user states how the records of a file are to be read."""
        options = (self.records, self.trials, self.passes, self.mapping)
        return any(option is not None for option in options)


class Reader:
    """Base class of all readers: one file format each.

    A reader needs a ``name`` and the two methods below; everything else has a default. Register
    the class in the entry-point group ``passhat.readers``.
    """

    name: ClassVar[str] = ""
    """The format's name, as ``passhat read`` prints it."""

    general: ClassVar[bool] = False
    """Whether this reader takes nearly any file, and so is asked after all others."""

    repeats_in_siblings: ClassVar[bool] = False
    """Whether the harness keeps k repeats as k sibling folders, so that they join by themselves."""

    has_scorers: ClassVar[bool] = False
    """Whether a log may hold the verdicts of several judges, so that ``--scorer`` chooses one."""

    def recognizes(self, source: Source) -> bool:
        """Whether the content looks like this format.

        Look at ``source.head`` and ``source.outline``, never at the whole file, and not at the
        file's name: people rename files.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method recognizes(source)")

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        """All runs in the source.

        Raise ReadError with file and line where nothing can be read; a broken row is reported
        with ``LogBuilder.lose`` and the others are read.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method read(source, options)")

    def __init_subclass__(cls, **keywords: object) -> None:
        """Point out a public name that is nearly that of a hook, which would never be called."""
        super().__init_subclass__(**keywords)
        hooks = [name for name in vars(Reader) if not name.startswith("_")]
        for name in vars(cls):
            if name.startswith("_") or name in hooks:
                continue
            near = difflib.get_close_matches(name, hooks, n=1, cutoff=0.75)
            if near:
                raise TypeError(
                    f"{cls.__name__}.{name} is not a hook of a reader. Did you mean {near[0]!r}? "
                    f"The hooks are: {', '.join(hooks)}."
                )


def load_readers() -> list[Reader]:
    """Every installed reader, those that take nearly any file last."""
    readers = [reader for entry in _entries(tuple(sys.path)) for reader in _load_entry(entry)]
    return sorted(readers, key=lambda reader: reader.general)


def _load_entry(entry: EntryPoint) -> list[Reader]:
    """The reader that an entry point names, or those that its function returns."""
    try:
        target: Any = entry.load()
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidValue(
            f"the reader {entry.name!r} ({entry.value}) cannot be loaded: {error}",
            hint="Fix or uninstall the package that brings it.",
        ) from None
    if inspect.isclass(target) and issubclass(target, Reader):
        return [target()]
    readers: list[Reader] = [] if inspect.isclass(target) else list(target())
    if inspect.isclass(target) or not all(isinstance(reader, Reader) for reader in readers):
        raise InvalidValue(
            f"the reader {entry.name!r} ({entry.value}) is not a subclass of passhat's Reader.",
            hint="Write: from passhat.readers import Reader; class MyReader(Reader): ...",
        )
    return readers


@lru_cache(maxsize=1)
def _entries(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of readers, cached per search path: the scan takes longer than reading."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda entry: entry.name))
