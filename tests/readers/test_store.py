"""Attempts of a store with what a view of them needs: details, conversations, or neither."""

from __future__ import annotations

from typing import Any

import pytest

from passhat.protocol import Protocol
from passhat.readers import Needs
from passhat.readers.store import run_from_store
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, CallRecords, RunRecord, open_store
from passhat.suites.base import Judgement, Task

TALK = [
    {"role": "user", "text": "q"},
    {"role": "agent", "text": "first"},
    {"role": "agent", "text": "last"},
    {"role": "expected", "text": "right"},
]


def _extras(**needs: bool) -> list[dict[str, Any]]:
    run = RunRecord("agent", Protocol(suite="s"), [Task("a", "?")])
    judgement = Judgement(Verdict.FAILED, "wrong_answer", "no")
    calls = CallRecords(2, 1, 14, 0, 0, 0, b"[]")
    records = [
        AttemptRecord("a", 1, judgement, 7, retries=3, transcript=TALK, calls=calls),
        AttemptRecord("a", 2, judgement),
    ]
    with open_store(":memory:") as store:
        store.begin(run, 2)
        store.claim(run.id, [("a", 1), ("a", 2)])
        store.finish(run.id, records)
        attempts = run_from_store(store, store.find(run.id), Needs(**needs)).attempts
    assert attempts is not None
    return [dict(attempt.extras) for attempt in attempts]


@pytest.mark.parametrize("conversations", [True, False])
@pytest.mark.parametrize("details", [True, False])
def test_an_attempt_has_what_is_needed_and_no_more(details: bool, conversations: bool) -> None:
    first, second = _extras(details=details, conversations=conversations)
    names = ["retries", "answer", "expected"] * details + ["conversation", "cut"] * conversations
    assert first["seed"] == "7"
    assert set(names) <= set(first)
    absent = {"retries", "answer", "expected", "conversation", "cut"} - set(names)
    assert not absent & set(first)
    if details:
        assert (first["retries"], first["answer"], first["expected"]) == ("3", "last", "right")
        assert (second["retries"], second.get("answer") or "") == ("0", "")
    if conversations:
        assert "q" in first["conversation"]
        assert "last" in first["conversation"]
        assert first["cut"] == "1"
        assert not {"cut", "conversation"} & {name for name, text in second.items() if text}
