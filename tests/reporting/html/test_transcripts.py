"""What a page knows of the single attempts of a stored run, from either kind of store."""

from __future__ import annotations

import pytest

from passhat.protocol import Protocol
from passhat.readers import read
from passhat.reporting.html.payload import attempts_data, transcripts_of
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, open_store
from passhat.suites.base import Judgement, Task


@pytest.mark.parametrize("name", ["", "base (v1). old; x"])
def test_seeds_and_conversations_of_a_stored_run(store_place: str, name: str) -> None:
    record = RunRecord("agent", Protocol(suite="suite"), [Task("b", "?"), Task("a", "?")], name)
    said = [{"role": "user", "text": "hello"}]
    with open_store(store_place) as store:
        store.begin(record, 1)
        store.claim(record.id, [("a", 1), ("b", 1)])
        passed = Judgement(Verdict.PASSED)
        store.finish(
            record.id,
            [
                AttemptRecord("a", 1, passed, seed=2**40, transcript=said),
                AttemptRecord("b", 1, passed),
            ],
        )
    (run,) = read(store_place)
    found = transcripts_of(run, wanted=None)
    assert found.bodies == {"a": {1: [("user", "hello")]}}
    data = attempts_data([run], ["run"], [found])
    assert data["tasks"] == ["b", "a"]
    assert data["runs"][0]["seeds"] == ["", str(2**40)]  # type: ignore[index]
