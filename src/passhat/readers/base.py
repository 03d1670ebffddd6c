"""The door through which readers come in; passhat's own use it too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

__all__ = ["COUNTS_ONLY", "GROUP", "Needs", "ReadOptions", "Reader", "registered_readers"]

GROUP = "passhat.readers"


@dataclass(frozen=True, slots=True)
class Needs:
    """What will be asked of runs, so that a large store or Parquet file is asked for no more.

    Every number that follows from how many attempts of each task passed needs none of these.

    Attributes
    ----------
    attempts : bool
        Single attempts: their order, and what each of them took. Beyond a million they are not
        read unless ``one_by_one`` says so.
    attempts_up_to : int, optional
        Only in runs of so many attempts, where that is less than a million.
    measures : bool
        Seconds, steps, tokens and cost of all attempts together.
    spread : bool
        How these are spread over attempts: the numbers of every attempt, and nothing else of it.
        Beyond a million they are not read either.
    answers : bool
        Whether attempts at a task gave the identical answer.
    one_by_one : bool
        Read every attempt, whatever memory that takes.
    growing : bool
        Somebody is still writing: the last line of a table counts once it is ended.
    """

    attempts: bool = True
    measures: bool = True
    answers: bool = True
    one_by_one: bool = False
    attempts_up_to: int | None = None
    spread: bool = False
    growing: bool = False


COUNTS_ONLY = Needs(attempts=False, measures=False, answers=False)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user said about how to read.

    ``columns`` maps passhat's name of a column to the table's; ``pass_at`` is the reward from
    which an attempt passes, ``None`` when nobody said; ``scorer`` names the judge whose verdicts
    count where a log holds those of several; ``labels`` names columns to keep as labels of the
    tasks; ``needs`` is what the runs are read for.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    pass_at: float | None = None
    scorer: str | None = None
    labels: tuple[str, ...] = ()
    needs: Needs = field(default_factory=Needs)


class Reader(Protocol):
    """Reads one format."""

    name: str

    def recognises(self, source: Source) -> bool:
        """Whether the content looks like this format; must not read the whole file."""

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        """All runs in the source; raises ReadError with file and line when it is broken."""


def registered_readers() -> list[Reader]:
    """Every installed reader, the general table reader last since it recognises the most."""
    return [entry.load()() for entry in _entries(tuple(sys.path))]


@lru_cache(maxsize=1)
def _entries(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Found once for every search path: looking through all packages takes longer than reading."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name == "table", entry.name))
    return tuple(found)
