"""Runs and their estimates, cached until another attempt of the run has finished."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from passhat.dashboard.guard import NotFound
from passhat.dashboard.run_summaries import Summary
from passhat.errors import PasshatError, ReadError
from passhat.readers.store import run_from_counts, run_from_store
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.view import SCHEMA, RunReport
from passhat.reporting.why import NEEDS, AttemptTrace, read_traces
from passhat.stats.estimate import Estimate, estimate_all
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Run, Verdict
from passhat.store import open_reading, open_store
from passhat.store.queries import Group

READ_ONE_BY_ONE = 20_000
"""Attempts up to which a run is read as ``passhat report`` reads it; beyond, tasks are counted."""
_MOST_TASKS = 400_000
"""How many tasks the runs in memory may have together."""
_MOST_SINGLE = 5_000
_CURVE_POINTS = 16
_PATIENCE = 0.15
"""Seconds a page waits for estimates before it is shown without them."""
_REST = 3
"""While a run goes on, its estimates rest for so many times as long as they took: a reader of
other pages meanwhile needs the processor, too."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """Report, curve and outcome groups of one version of a run.

    ``curve`` has pass^k and pass@k with intervals at every k that all tasks reach.
    """

    report: RunReport
    curve: tuple[Estimate, ...]
    groups: tuple[Group, ...]

    @property
    def run(self) -> Run:
        return self.report.run

    def categories(self, verdict: Verdict) -> dict[str, int]:
        """Number of attempts with a verdict, by category or reason."""
        return {group.why: group.attempts for group in self.groups if group.verdict is verdict}


class RunSnapshots:
    """Computes snapshots in the background, two runs at a time, and caches them."""

    def __init__(self, place: str) -> None:
        self._place = place
        # A connection of its own: a long count must not keep pages waiting.
        self._reading = open_reading(place)
        self._lock = threading.Lock()
        self._work = ThreadPoolExecutor(2, "estimates")
        self._whole: ResultCache[RunSnapshot] = ResultCache(_MOST_TASKS)
        self._loaded: ResultCache[Run] = ResultCache(_MOST_TASKS)
        self._traces: ResultCache[list[AttemptTrace]] = ResultCache(_MOST_TASKS)
        self._headlines: ResultCache[tuple[Estimate, Estimate]] = ResultCache(_MOST_TASKS)
        self._rests: dict[str, float] = {}
        self._single: OrderedDict[tuple[str, str, str], Estimate] = OrderedDict()

    def close(self) -> None:
        self._work.shutdown(wait=True, cancel_futures=True)
        self._reading.close()

    def run(self, summary: Summary) -> Run:
        """The run itself, for comparing and forecasting."""
        self._refuse_empty(summary)
        work = partial(self._load, summary)
        return self._future(self._loaded, summary, work).result()

    def traces(self, summary: Summary) -> list[AttemptTrace]:
        """The tool calls of every attempt of a run that is read one by one."""
        self._refuse_empty(summary)
        work = partial(self._read_traces, summary)
        return self._future(self._traces, summary, work).result()

    def _read_traces(self, summary: Summary) -> list[AttemptTrace]:
        with open_store(self._place, must_exist=True, read_only=True) as store:
            return read_traces(run_from_store(store, summary.stored, NEEDS))

    def estimate(self, summary: Summary, word: str) -> Estimate:
        """The estimate of a metric of a run, for new tasks."""
        key = summary.id, summary.version, word
        estimate = self._single.get(key)
        if estimate is None:
            (estimate,) = estimate_all(self.run(summary).outcomes, [word])
            with self._lock:
                self._single[key] = estimate
                while len(self._single) > _MOST_SINGLE:
                    self._single.popitem(last=False)
        return estimate

    def headline(self, summary: Summary) -> tuple[Estimate, Estimate] | None:
        """pass^1 and pass^k for a list of runs; ``None`` until they are computed, without waiting.

        k is the number of attempts that every task has so far.
        """
        if summary.counts.attempts == 0 or summary.is_all_missing:
            return None
        future = self._future(self._headlines, summary, partial(self._headline, summary))
        return future.result() if _has_result(future) else self._headlines.newest(summary.id)

    def _headline(self, summary: Summary) -> tuple[Estimate, Estimate]:
        outcomes = self._load(summary).outcomes
        k = max(1, int((outcomes.n + outcomes.missing).min()))
        first, last = estimate_all(outcomes, [PassHat(1), PassHat(k)])
        return first, last

    def whole(self, summary: Summary) -> RunSnapshot:
        """Everything, however long it takes."""
        self._refuse_empty(summary)
        return self._future(self._whole, summary, partial(self._build, summary)).result()

    def data(self, summary: Summary) -> dict[str, object]:
        """As ``passhat report --json`` prints it, with all that its charts show."""
        snapshot = self.whole(summary)
        (report,) = build_report([snapshot.run], ReportOptions(with_details=True)).runs
        document = report.to_dict()
        if snapshot.run.attempts is None:
            document["failures_by_category"] = snapshot.categories(Verdict.FAILED)
            document["missing_by_reason"] = snapshot.categories(Verdict.MISSING)
        return {"schema": SCHEMA, "runs": [document]}

    def soon(self, summary: Summary) -> RunSnapshot | None:
        """Everything if it is there in a moment; meanwhile nothing, and the page asks again.

        While a run goes on, an older snapshot is better than nothing.
        """
        if summary.counts.attempts == 0:
            return None
        snapshot = self._whole.newest(summary.id)
        future = self.begin(summary)
        if future is None:
            return snapshot
        try:
            return future.result(timeout=_PATIENCE if snapshot is None else 0)
        except TookTooLong:
            return snapshot

    def begin(self, summary: Summary) -> Future[RunSnapshot] | None:
        """Have everything computed; ``None`` while that has to wait its turn."""
        if self._whole.find(summary.id, summary.version) is None and (
            self._whole.is_busy(summary.id, summary.version)
            or (summary.status != "complete" and time.monotonic() < self._rests.get(summary.id, 0))
        ):
            return None
        return self._future(self._whole, summary, partial(self._build, summary))

    def is_ready(self, summary: Summary) -> bool:
        """Whether everything about this version is there, or that it cannot be had."""
        return summary.counts.attempts == 0 or self._whole.is_done(summary.id, summary.version)

    def _future(self, kept: ResultCache[T], summary: Summary, work: Callable[[], T]) -> Future[T]:
        with self._lock:
            future = kept.find(summary.id, summary.version)
            if future is None:
                future = self._work.submit(work)
                kept.keep(summary.id, summary.version, future, summary.counts.tasks)
            return future

    def _refuse_empty(self, summary: Summary) -> None:
        if summary.counts.attempts == 0:
            raise NotFound(f"run {summary.id} has no finished attempt yet.")

    def _load(self, summary: Summary) -> Run:
        if summary.counts.attempts <= READ_ONE_BY_ONE:
            with open_store(self._place, must_exist=True, read_only=True) as store:
                return run_from_store(store, summary.stored)
        return run_from_counts(self._reading, summary.head.key, summary.stored)

    def _build(self, summary: Summary) -> RunSnapshot:
        began = time.monotonic()
        run = self._load(summary)
        (report,) = build_report([run], ReportOptions()).runs
        groups = tuple(self._reading.groups(summary.head.key))
        curve = _curve(run)
        now = time.monotonic()
        self._rests[summary.id] = now + _REST * (now - began)
        return RunSnapshot(report, curve, groups)


def _curve(run: Run) -> tuple[Estimate, ...]:
    """pass^k and pass@k with intervals, at up to sixteen k that all tasks reach.

    Beyond that k the mean would be over other tasks, and the curve would bend for that reason.
    """
    top = int((run.outcomes.n + run.outcomes.missing).min())
    if top < 2:
        return ()
    ks = np.unique(np.linspace(1, top, min(top, _CURVE_POINTS)).round().astype(int)).tolist()
    words = [f"pass{sign}{k}" for sign in "^@" for k in ks]
    try:
        return estimate_all(run.outcomes, words)
    except PasshatError:
        return ()


class ResultCache(Generic[T]):
    """Cache of the newest result of each run; the least recently used are dropped."""

    def __init__(self, most_tasks: int) -> None:
        self._most = most_tasks
        # Futures call back from the threads that complete them, or at once.
        self._lock = threading.RLock()
        self._found: OrderedDict[str, tuple[str, Future[T], int]] = OrderedDict()
        self._before: dict[str, T] = {}

    def find(self, run: str, version: str) -> Future[T] | None:
        with self._lock:
            entry = self._found.get(run)
            if entry is None or entry[0] != version or _worth_another_try(entry[1]):
                return None
            self._found.move_to_end(run)
            return entry[1]

    def keep(self, run: str, version: str, future: Future[T], tasks: int) -> None:
        with self._lock:
            older = self._found.get(run)
            if older is not None and _has_result(older[1]):
                self._before[run] = older[1].result()
            self._found[run] = (version, future, tasks)
            self._found.move_to_end(run)
            while len(self._found) > 1 and self._tasks() > self._most:
                oldest, _ = self._found.popitem(last=False)
                self._before.pop(oldest, None)
        future.add_done_callback(lambda done: self._forget_before(run, done))

    def _tasks(self) -> int:
        return sum(size for _, _, size in self._found.values())

    def _forget_before(self, run: str, done: Future[T]) -> None:
        """Drop the previous result once a newer one is there and was not itself replaced."""
        with self._lock:
            entry = self._found.get(run)
            if entry is not None and entry[1] is done and _has_result(done):
                self._before.pop(run, None)

    def is_busy(self, run: str, version: str) -> bool:
        """Whether another version is being computed: then a newer one has to wait its turn."""
        entry = self._found.get(run)
        return entry is not None and entry[0] != version and not entry[1].done()

    def is_done(self, run: str, version: str) -> bool:
        entry = self._found.get(run)
        if entry is None or entry[0] != version:
            return False
        return entry[1].done() and not _worth_another_try(entry[1])

    def newest(self, run: str) -> T | None:
        """The newest finished result of a run."""
        with self._lock:
            entry, before = self._found.get(run), self._before.get(run)
            return entry[1].result() if entry is not None and _has_result(entry[1]) else before


def _worth_another_try(future: Future[T]) -> bool:
    """A store that could not be read may be back; anything else stays so for the same attempts."""
    return future.done() and isinstance(future.exception(), ReadError)


def _has_result(future: Future[T]) -> bool:
    return future.done() and future.exception() is None
