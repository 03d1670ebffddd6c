"""A model of a store in plain Python: which change a call of a runner may make.

The tables are read after every write, and compared with the last state that was allowed.
"""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass, field
from typing import Any, Protocol

from passhat.agents import AttemptInfo
from passhat.stats.outcomes import Verdict
from passhat.store.rows import unpack_transcript

__all__ = ["Broken", "Call", "Entry", "Key", "Model", "Tables", "Writer", "find_mark", "verdict_of"]

Key = tuple[str, int]


class Broken(AssertionError):
    """The store, or what a runner was told, is not what the model allows."""


def verdict_of(seed: int) -> Verdict:
    """The verdict that an attempt with this seed has, whoever makes it and however often."""
    return Verdict.PASSED if random.Random(seed).random() < 0.6 else Verdict.FAILED


@dataclass(frozen=True)
class Entry:
    """A row of the attempts, with its transcript and calls."""

    owner: str
    verdict: int | None
    seed: int | None
    mark: int | None
    transcript_mark: int | None
    calls_mark: int | None


@dataclass(frozen=True)
class Made:
    """A call of the agent."""

    token: str
    key: Key
    seed: int


@dataclass
class Call:
    """What a process is asking of the store."""

    kind: str
    keys: frozenset[Key] = frozenset()
    marks: dict[Key, int] = field(default_factory=dict)
    drops_missing: bool = False
    is_forced: bool = False


Tables = dict[str, dict[Key, Entry]]
"""Attempts by generation of the run."""


class Writer(Protocol):
    """A process that writes, as the model sees it."""

    call: Call
    token: str
    generation: str

    def owner_was_alive(self, token: str, now: float) -> bool: ...


class Model:
    """What may be in the store: attempts by generation of the run, and who made which answer."""

    def __init__(self) -> None:
        self.tables: Tables = {}
        self.made: list[Made] = []
        self.takeovers = 0
        self.reported: dict[tuple[str, Key], int] = {}
        self.leases: dict[str, tuple[int, float, float]] = {}
        """By token: beats, when the last one was seen, and how long the lease lasts."""

    def note_made(self, process: Writer, attempt: AttemptInfo) -> int:
        """The number of this answer."""
        self.made.append(Made(process.token, (attempt.task, attempt.number), attempt.seed))
        return len(self.made) - 1

    def renew(self, leases: dict[str, list[Any]], now: float) -> None:
        """Take note of renewals; one counts from when the runner decided on it."""
        for token, (beats, seen, seconds) in leases.items():
            if token not in self.leases or self.leases[token][0] != beats:
                self.leases[token] = (beats, min(now, seen), seconds)
        for token in set(self.leases) - set(leases):
            del self.leases[token]

    def is_alive(self, token: str, now: float) -> bool:
        lease = self.leases.get(token)
        return lease is not None and now - lease[1] < lease[2] - 1e-6

    def change(self, tables: Tables, process: Writer, now: float) -> None:
        """Check that the present call of a process may have made this change; keep it."""
        call = process.call
        for generation in self.tables.keys() - tables.keys():
            self._check_removal(generation, call, process, now)
        for generation in tables.keys() - self.tables.keys():
            if call.kind != "begin" or tables[generation]:
                raise Broken(f"{call.kind} made generation {generation}")
        for generation, entries in tables.items():
            before = self.tables.get(generation, {})
            for key in before.keys() | entries.keys():
                if before.get(key) != entries.get(key):
                    self._check_entry(key, before.get(key), entries.get(key), process, now)
            if before != entries and generation != process.generation and call.kind != "release":
                raise Broken(f"{call.kind} of generation {process.generation} wrote {generation}")
        self.tables = tables

    def _generation_of(self, key: Key, entry: Entry) -> str:
        return next(g for g, entries in self.tables.items() if entries.get(key) == entry)

    def _check_removal(self, generation: str, call: Call, process: Writer, now: float) -> None:
        if call.kind != "remove":
            raise Broken(f"{call.kind} removed generation {generation}")
        owners = {e.owner for e in self.tables[generation].values() if e.verdict is None}
        alive = [token for token in owners - {process.token} if self.is_alive(token, now)]
        if alive and not call.is_forced:
            raise Broken(f"a run with live claims of {alive} was removed without force")

    def _check_entry(
        self, key: Key, before: Entry | None, entry: Entry | None, process: Writer, now: float
    ) -> None:
        call, token = process.call, process.token
        if before is None and entry is not None and entry.verdict is None:
            if call.kind != "claim" or key not in call.keys or entry.owner != token:
                raise Broken(f"{call.kind} of {token} made the claim {key}: {entry}")
        elif before is not None and before.verdict is None and entry is None:
            if call.kind != "release":
                raise Broken(f"{call.kind} removed the claim {key}: {before}")
            if before.owner != token:
                self.takeovers += 1
                if process.owner_was_alive(before.owner, now):
                    raise Broken(f"{token} freed {key}, whose owner {before.owner} lives")
        elif before is not None and before.verdict is None and entry is not None:
            self._check_result(key, before, entry, process)
        elif before is not None and entry is None:
            self._check_deletion(key, before, call)
        else:
            raise Broken(f"{call.kind} of {token} changed {key} from {before} to {entry}")

    def _check_deletion(self, key: Key, before: Entry, call: Call) -> None:
        if call.kind != "release" or before.verdict != Verdict.MISSING or not call.drops_missing:
            raise Broken(f"{call} deleted the result {key}: {before}")
        self.reported.pop((self._generation_of(key, before), key), None)

    def _check_result(self, key: Key, before: Entry, entry: Entry, process: Writer) -> None:
        call, token = process.call, process.token
        if call.kind != "finish" or before.owner != token or entry.owner != token:
            raise Broken(f"{call.kind} of {token} finished {key} of {before.owner}")
        if entry.mark is None or call.marks.get(key) != entry.mark:
            raise Broken(f"{key} has {entry}, and {token} wrote {call.marks.get(key)}")
        self.check_whole(key, entry)

    def check_whole(self, key: Key, entry: Entry) -> None:
        """Verdict, seed, cost, transcript and calls are those of one answer."""
        assert entry.mark is not None
        made = self.made[entry.mark]
        if (made.token, made.key, made.seed) != (entry.owner, key, entry.seed):
            raise Broken(f"{key} holds an answer made as {made}: {entry}")
        if entry.verdict == Verdict.MISSING:
            return
        if entry.verdict != verdict_of(made.seed):
            raise Broken(f"{key} has verdict {entry.verdict}, its seed says otherwise")
        if not entry.mark == entry.transcript_mark == entry.calls_mark:
            raise Broken(f"{key} is mixed: {entry}")


def find_mark(packed: bytes | None) -> int | None:
    """The number in a transcript or in calls."""
    if packed is None:
        return None
    try:
        text = json.dumps(unpack_transcript(bytes(packed)))
    except Exception:
        text = zlib.decompress(bytes(packed)).decode()
    _, sign, rest = text.partition("mark ")
    return int(rest.split('"')[0].split("\\")[0].strip()) if sign else None
