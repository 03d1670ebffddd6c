"""The list of runs with their counts, counted again only where something happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from passhat.dashboard.guard import NotFound
from passhat.store.queries import Reading, RunCounts, RunHead
from passhat.store.rows import FRESH_PREFIXES, StoredRun, summarize_run

_MANY = 50
"""From so many changed runs on, counting all of them in one go is quicker."""
_LONG, _PATIENCE = 0.1, 10
"""A count that took longer than a tenth of a second is kept for ten times as long as it took,
however much goes on meanwhile."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A run and its counts; ``version`` is the same exactly when both are."""

    head: RunHead
    counts: RunCounts
    version: str

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def total(self) -> int:
        """Attempts that are planned, over all tasks."""
        return max(self.stored.total, self.counts.attempts)

    @property
    def failed(self) -> int:
        return self.counts.attempts - self.counts.passed - self.counts.missing

    @property
    def status(self) -> str:
        return self.stored.status

    @property
    def is_all_missing(self) -> bool:
        """Whether attempts were made and not one of them has a verdict."""
        return self.counts.attempts > 0 and self.counts.missing == self.counts.attempts

    @property
    def rate(self) -> float | None:
        """The share of judged attempts that passed."""
        judged_count = self.counts.attempts - self.counts.missing
        return self.counts.passed / judged_count if judged_count else None

    @property
    def title(self) -> str:
        """The agent, and the run's own name where it has one."""
        return f"{self.head.agent} ({self.head.name})" if self.head.name else self.head.agent

    @property
    def stored(self) -> StoredRun:
        """As ``passhat runs`` lists it."""
        return summarize_run(self.head, self.counts)


class Summaries:
    """All runs of a store, served from memory until something is written."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._lock = threading.Lock()
        self._change: object = None
        self.is_settled = False
        """Whether everything that had changed at the last look was counted."""
        self._judged: dict[int, int] = {}
        self._known: dict[int, Summary] = {}
        self._again_at: dict[int, float] = {}
        self._listed: Mapping[str, Summary] = {}
        self._temperatures: dict[int, str] = {}

    def temperature(self, summary: Summary) -> str:
        """``T = 0.7`` where the run recorded it; a protocol never changes, so it is read once."""
        key = summary.head.key
        if key not in self._temperatures:
            value = self._reading.protocol(key).decoding.get("temperature")
            self._temperatures[key] = "" if value is None else f"T = {value}"
        return self._temperatures[key]

    def all(self, *, fresh: bool = False) -> list[Summary]:
        """Every run, the newest first; with ``fresh`` also those of gates and searches."""
        runs = list(self._refresh().values())[::-1]
        return [run for run in runs if fresh or not run.head.name.startswith(FRESH_PREFIXES)]

    def find(self, word: str) -> Summary:
        """A run by its id or the beginning of it."""
        summaries = self._refresh()
        if word in summaries:
            return summaries[word]
        matches = [summary for run, summary in summaries.items() if run.startswith(word)]
        if len(matches) == 1 and word:
            return matches[0]
        what = f"{len(matches)} runs start with" if matches and word else "there is no run"
        raise NotFound(f"{what} {word!r} in {self._reading.path}.")

    def _refresh(self) -> Mapping[str, Summary]:
        with self._lock:
            change = self._reading.change()
            if change != self._change:
                self.is_settled = self._count_again()
                self._change = change if self.is_settled else None
            return self._listed

    def _count_again(self) -> bool:
        """Recount changed runs; false when some of them are left for later."""
        newest = max(self._judged.values(), default=0)
        self._judged |= self._reading.newest_judgements(newest)
        heads = [
            replace(head, judged=self._judged.get(head.key, 0)) for head in self._reading.heads()
        ]
        stale_heads = [
            head
            for head in heads
            if head.key not in self._known or self._known[head.key].version != head.version
        ]
        now = time.monotonic()
        due = [head for head in stale_heads if self._again_at.get(head.key, 0.0) <= now]
        all_counts = self._reading.counts() if len(due) > _MANY else {}
        for head in due:
            began = time.monotonic()
            counts = all_counts.get(head.key) or self._reading.counts(head.key).get(head.key)
            took = time.monotonic() - began
            self._known[head.key] = Summary(head, counts or RunCounts(), head.version)
            if took > _LONG:
                self._again_at[head.key] = time.monotonic() + _PATIENCE * took
        self._known = {head.key: self._known[head.key] for head in heads}
        self._listed = {summary.id: summary for summary in self._known.values()}
        return len(due) == len(stale_heads)
