"""Counting again only where something happened."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.dashboard.conftest import write_run

from passhat.dashboard.run_snapshots import ResultCache, RunSnapshots
from passhat.dashboard.run_summaries import Summaries
from passhat.errors import PasshatError
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, open_reading, open_store
from passhat.store.queries import Reading
from passhat.suites.base import Judgement


class Counting(Reading):
    """Remembers what was counted."""

    def __init__(self, path: str) -> None:
        super().__init__(open_store(path, read_only=True))
        self.counted: list[int | None] = []

    def counts(self, run=None):  # type: ignore[no-untyped-def]
        self.counted.append(run)
        return super().counts(run)


def test_only_what_changed_is_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        first, second = write_run(store, "a", 0.5), write_run(store, "b", 0.5)
        reading = Counting(path)
        summaries = Summaries(reading)
        assert [one.stored for one in reversed(summaries.all())] == store.runs()
        assert reading.counted == [1, 2]
        summaries.all()
        assert reading.counted == [1, 2]
        store.release(second, missing=True)
        store.claim(second, [("retail/005", 2)])
        summaries._again_at.clear()  # as if a while had passed, on a slow machine
        assert summaries.find(second).status == "in progress"
        store.finish(second, [AttemptRecord("retail/005", 2, Judgement(Verdict.PASSED))])
        assert reading.counted[2:] == [2]
        summaries._again_at.clear()
        assert summaries.find(second).stored == store.find(second)
        assert set(reading.counted[2:]) == {2}
        store.remove(first)
        summaries._again_at.clear()
        assert [one.id for one in summaries.all()] == [second]
        with pytest.raises(PasshatError, match="there is no run"):
            summaries.find(first)
        with pytest.raises(PasshatError, match="there is no run"):
            summaries.find("")
        reading.close()


def test_estimates_are_kept_until_another_attempt_has_finished(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        run = write_run(store, "a", 0.5)
        reading = open_reading(path)
        summaries, reports = Summaries(reading), RunSnapshots(path)
        known = reports.whole(summaries.find(run))
        assert reports.whole(summaries.find(run)) is known
        assert reports.is_ready(summaries.find(run))
        store.release(run, missing=True)
        store.claim(run, [("retail/005", 2)])
        store.finish(run, [AttemptRecord("retail/005", 2, Judgement(Verdict.PASSED))])
        summaries._again_at.clear()
        newer = summaries.find(run)
        assert not reports.is_ready(newer)
        assert reports.whole(newer).report.run.outcomes.total_missing == 0
        reports.close()
        reading.close()


def test_what_is_known_stays_until_something_newer_is() -> None:
    kept: ResultCache[str] = ResultCache(100)
    first: Future[str] = Future()
    second: Future[str] = Future()
    # A newer version is begun as soon as this one is there, before anybody else hears of it.
    first.add_done_callback(lambda _: kept.keep("run", "2", second, 1))
    kept.keep("run", "1", first, 1)
    assert kept.newest("run") is None
    first.set_result("one")
    assert kept.newest("run") == "one"
    second.set_result("two")
    assert kept.newest("run") == "two"
    assert kept._before == {}
