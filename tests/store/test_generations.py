"""A run that is removed and begun again is another one: nothing of the first gets into it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from passhat.errors import InvalidValue, RunStopped
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.suites.base import Judgement, Task

RUN = RunRecord("agent", Protocol(suite="suite"), [Task(name, "?") for name in "abc"])
DONE = AttemptRecord("a", 1, Judgement(Verdict.PASSED))


@pytest.fixture
def runner(store_place: str) -> Iterator[Store]:
    """A runner inside its first attempt."""
    with open_store(store_place) as store:
        store.begin(RUN, 4)
        assert store.claim(RUN.id, [("a", 1), ("b", 1)]) == [("a", 1), ("b", 1)]
        yield store


def test_a_run_that_is_being_made_is_not_removed(runner: Store, store_place: str) -> None:
    with open_store(store_place) as other:
        with pytest.raises(InvalidValue, match="2 attempts"):
            other.remove(RUN.id)
        assert runner.finish(RUN.id, [DONE]) == []
        runner.release(RUN.id)
        other.remove(RUN.id)
        assert other.runs() == []


def test_results_of_a_removed_run_are_refused(runner: Store, store_place: str) -> None:
    with open_store(store_place) as other:
        other.remove(RUN.id, force=True)
        for call in (
            lambda: runner.finish(RUN.id, [DONE]),
            lambda: runner.claim(RUN.id, [("c", 1)]),
        ):
            with pytest.raises(RunStopped, match="was removed"):
                call()
        assert other.runs() == []


def test_nothing_of_a_removed_run_is_in_the_one_begun_after_it(
    runner: Store, store_place: str
) -> None:
    with open_store(store_place) as other:
        other.remove(RUN.id, force=True)
        other.begin(RUN, 4)
        assert other.claim(RUN.id, [("a", 1)]) == [("a", 1)]
        for call in (
            lambda: runner.finish(RUN.id, [DONE]),
            lambda: runner.claim(RUN.id, [("b", 1)]),
        ):
            with pytest.raises(RunStopped, match="was removed"):
                call()
        assert other.finish(RUN.id, [DONE]) == []
        (stored,) = other.runs()
        assert (stored.attempts, stored.passed, stored.total) == (1, 1, 12)
        assert len(other.load_attempts(RUN.id)) == 1
        counts = other.read("SELECT count(*) FROM attempts")
        assert counts == [(1,)]


def test_a_runner_that_begins_anew_goes_on(runner: Store, store_place: str) -> None:
    with open_store(store_place) as other:
        other.remove(RUN.id, force=True)
    runner.begin(RUN, 4)
    assert runner.claim(RUN.id, [("a", 1)]) == [("a", 1)]
    assert runner.finish(RUN.id, [DONE]) == []


def test_two_runners_of_one_run_share_its_generation(runner: Store, store_place: str) -> None:
    with open_store(store_place) as other:
        other.begin(RUN, 4)
        assert other.claim(RUN.id, [("a", 1), ("c", 1)]) == [("c", 1)]
        assert runner.finish(RUN.id, [DONE]) == []
