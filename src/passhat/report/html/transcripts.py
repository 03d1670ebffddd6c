"""Conversations of attempts, where a run comes from a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from passhat.errors import PasshatError
from passhat.stats.outcomes import Run
from passhat.store import Store, is_address, open_store

__all__ = ["SMALL", "Transcripts", "transcripts_of"]

SMALL = 1_000_000
"""Characters of conversation that a page holds without being asked to."""
_FEW = 4_000
"""Attempts that are looked through for that."""
_MAGIC = b"SQLite format 3\x00"

Body = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Of one run: the numbers of its attempts, and the turns of each (role, text)."""

    numbers: Mapping[str, Sequence[int]] = field(default_factory=lambda: MappingProxyType({}))
    bodies: Mapping[str, Mapping[int, Body]] = field(default_factory=lambda: MappingProxyType({}))
    left_out: bool = False

    @property
    def size(self) -> int:
        """Characters of all that was said; what was said twice counts once."""
        said = {
            text
            for attempts in self.bodies.values()
            for body in attempts.values()
            for _, text in body
        }
        return sum(map(len, said))


def transcripts_of(run: Run, *, wanted: bool | None) -> Transcripts:
    """The conversations of a stored run; ``wanted`` None takes them only where they are small."""
    if run.attempts is None and run.aggregates is not None:  # too many to be looked at one by one
        return Transcripts(left_out=True)
    opened = _opened(run.source, wanted=bool(wanted))
    if opened is None:
        return Transcripts()
    with opened as store:
        try:
            stored = store.find(run.name.rsplit(" ", 1)[-1])
        except PasshatError:  # a run with that name was made by somebody else
            return Transcripts()
        numbers = _numbers(store, stored.id)
        if wanted is False or (wanted is None and run.outcomes.attempts > _FEW):
            return Transcripts(numbers, left_out=True)
        bodies: dict[str, dict[int, Body]] = {}
        for task, own in numbers.items():
            for number in own:
                ended = store.attempt(stored.id, task, number)
                if ended is not None and ended.transcript:
                    turns = [(turn["role"], turn["text"]) for turn in ended.transcript]
                    bodies.setdefault(task, {})[number] = turns
    found = Transcripts(numbers, bodies)
    if wanted is None and found.size > SMALL:
        return Transcripts(numbers, left_out=True)
    return found


def _numbers(store: Store, run: str) -> dict[str, list[int]]:
    """The numbers of the finished attempts at every task."""
    numbers: dict[str, list[int]] = {}
    for block in store.rows(run):
        for task, number, *_ in block:
            numbers.setdefault(str(task), []).append(int(str(number)))
    return numbers


def _opened(source: str, *, wanted: bool) -> Store | None:
    """The store that a run was read from, where it is one."""
    if not (is_address(source) or _is_store(source)):
        return None
    try:
        return open_store(source, must_exist=True, read_only=True)
    except PasshatError:
        # A password that stood in the address is not known any more.
        if wanted or not is_address(source):
            raise
        return None


def _is_store(source: str) -> bool:
    path = Path(source)
    if not source or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_MAGIC)) == _MAGIC
