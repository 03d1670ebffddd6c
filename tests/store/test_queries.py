"""What the queries answer, value by value: of attempts with all their parts, and of none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, CallRecords, RunRecord, open_reading, open_store
from passhat.store.queries import AttemptFilter
from passhat.store.rows import GATE_PREFIX, CallCounts, Origins
from passhat.suites.base import Judgement, Task

PASSED, FAILED = Judgement(Verdict.PASSED), Judgement(Verdict.FAILED, "wrong_answer", "4, not 5")
NO_CALLS: list[dict[str, Any]] = []


def _calls(*priced: str | None, **counts: Any) -> CallRecords:
    calls = [{"n": place, "priced": table} for place, table in enumerate(priced)]
    numbers = {"answers": 1, "cut": 0, "cut_at": None, "refused": 0, "filtered": 0, "empty": 0}
    return CallRecords(**{**numbers, **counts}, body=json.dumps(calls).encode())


def _store(folder: Path, *records: AttemptRecord, name: str = "", started: str = "") -> str:
    """A store with a run of these attempts; its path."""
    place = str(folder / "store.db")
    tasks = [Task(task, "?") for task in sorted({record.task for record in records})]
    run = RunRecord("agent", Protocol(suite=f"s{started}"), tasks, name=name, started=started)
    with open_store(place) as store:
        store.begin(run, 9)
        store.claim(run.id, [(record.task, record.number) for record in records])
        store.finish(run.id, records)
    return place


def _ask(place: str, question: str, *values: Any) -> Any:
    with open_reading(place) as reading:
        return getattr(reading, question)(*values)


def test_without_a_run_or_an_attempt_every_answer_is_empty(tmp_path: Path) -> None:
    with open_reading(_store(tmp_path, AttemptRecord("a", 1, PASSED))) as reading:
        for run in (None, 99):
            assert reading.call_counts(run) == CallCounts()
            assert reading.origins(run) == Origins({}, 0, 0, 0)
            assert reading.price_sources(run) == []
            assert reading.failure_messages(run) == {}
            assert reading.find_same_answer(run) == ""
        nowhere = (99, 1)
        assert reading.transcript(1, nowhere) == ()
        assert reading.calls(1, nowhere) == NO_CALLS
        assert reading.judgements(1, nowhere) == ()
        assert reading.line(1, nowhere) is None
        assert reading.first_failure(1, 1) is None
        assert reading.task_key(1, "b") is None
        assert reading.task_labels(1, "b") == {}
        assert reading.counts(99) == {}
        assert reading.runs(99) == []


def test_calls_are_counted_over_attempts(tmp_path: Path) -> None:
    served = (("m-1", "f"),)
    place = _store(
        tmp_path,
        AttemptRecord("a", 1, PASSED, calls=_calls("old", answers=3, cut=2, cut_at=50)),
        AttemptRecord("a", 2, PASSED, calls=_calls(None, "old", cut=1, cut_at=80, refused=1)),
        AttemptRecord("b", 1, PASSED, calls=_calls("new", filtered=2, empty=4, served=served)),
        AttemptRecord("b", 2, PASSED),
    )
    with open_reading(place) as reading:
        assert reading.call_counts(1) == CallCounts(5, 3, 50, 80, 1, 2, 4)
        assert reading.price_sources(1) == ["old", "new"]
        assert reading.origins(1).served == {(("m-1", "f"),): 1}
        keys = reading.task_keys(1, ["a", "b", "c"])
        assert sorted(keys) == ["a", "b"]
        assert reading.calls(1, (keys["a"], 2)) == [
            {"n": 0, "priced": None},
            {"n": 1, "priced": "old"},
        ]


def test_conversations_of_agents_are_told_from_references(tmp_path: Path) -> None:
    names = ["c1", "c1", "c2", "ref-1", "ref-2", ""]
    place = _store(
        tmp_path,
        *(
            AttemptRecord("a", number, PASSED, calls=_calls(), conversation=name)
            for number, name in enumerate(names, 1)
        ),
    )
    assert _ask(place, "origins", 1) == Origins({}, 3, 2, 2)


@pytest.mark.parametrize(
    ("answers", "expected", "judgement", "same"),
    [
        (["boom"] * 3, "123", FAILED, "boom"),
        ([" boom "] * 3, "123", FAILED, "boom"),
        (["boom"] * 2, "12", FAILED, ""),  # two tasks may have the same answer
        (["boom", "boom", "bang"], "123", FAILED, ""),
        (["boom"] * 3, "111", FAILED, ""),  # so is the right answer
        (["boom"] * 3, ["", "", ""], FAILED, "boom"),
        (["boom"] * 3, "123", PASSED, ""),
        (["B"] * 3, "123", FAILED, ""),
        (["ok"] * 3, "123", FAILED, "ok"),
        (["Yes"] * 3, "123", FAILED, ""),
        ([""] * 3, "123", FAILED, ""),
    ],
)
def test_an_answer_that_cannot_be_right_everywhere(
    tmp_path: Path, answers: list[str], expected: list[str], judgement: Judgement, same: str
) -> None:
    records = [
        AttemptRecord(
            *(f"t{place}", 1, judgement),
            answer_hash=answer and f"hash of {answer.strip()}",
            transcript=[
                {"role": "agent", "text": answer},
                {"role": "expected", "text": expected[place]},
            ],
        )
        for place, answer in enumerate(answers)
    ]
    assert _ask(_store(tmp_path, *records), "find_same_answer", 1) == same


def test_messages_come_with_their_category_or_reason(tmp_path: Path) -> None:
    missing = Judgement(Verdict.MISSING, "rate_limit", "429")
    bare = Judgement(Verdict.FAILED, "exception", "")
    judgements = {"a": [FAILED, FAILED, bare, missing], "b": [FAILED, PASSED, missing]}
    place = _store(
        tmp_path,
        *(
            AttemptRecord(task, number, judgement)
            for task, row in judgements.items()
            for number, judgement in enumerate(row, 1)
        ),
    )
    with open_reading(place) as reading:
        first, second = (reading.task_keys(1, ["a", "b"])[task] for task in "ab")
        messages = reading.failure_messages(1)
        assert messages["wrong_answer"] == {"4, not 5": 3}
        assert list(messages["exception"].values()) == [1]
        assert reading.failure_messages(1, task=second) == {"wrong_answer": {"4, not 5": 1}}
        assert reading.failure_messages(1, Verdict.MISSING) == {"rate_limit": {"429": 2}}
        assert (reading.first_failure(1, first), reading.first_failure(1, second)) == (1, 1)
        groups = [(group.verdict, group.why, group.attempts) for group in reading.groups(1)]
        assert groups == [
            (Verdict.FAILED, "wrong_answer", 3),
            (Verdict.MISSING, "rate_limit", 2),
            (Verdict.PASSED, "", 1),
            (Verdict.FAILED, "exception", 1),
        ]
        assert [line.number for line in reading.lines(1, AttemptFilter(task=second), 9, None)] == [
            *(1, 2, 3),
        ]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three named runs, and one of the fresh attempts of a gate."""
    folder = tmp_path_factory.mktemp("several")
    for day, name in enumerate(["one", "two", "two", f"{GATE_PREFIX}x"], 1):
        place = _store(
            folder, AttemptRecord("a", 1, PASSED), name=name, started=f"2026-01-0{day}T00:00:00"
        )
    return place


@pytest.mark.parametrize(("word", "name"), [("latest", "two"), ("latest~2", "one"), ("one", "one")])
def test_a_run_is_found_by_its_age_or_name(several: str, word: str, name: str) -> None:
    with open_reading(several) as reading:
        assert reading.find(word, "here").name == name


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("latest~3", "here: there is no run 'latest~3', only 3 runs."),
        ("two", "here: 2 runs are named 'two'."),
        ("", "here: 4 runs start with ''."),
        ("zzz", "here: there is no run 'zzz'."),
    ],
)
def test_a_word_for_no_run_or_for_several_is_refused(several: str, word: str, message: str) -> None:
    with open_reading(several) as reading, pytest.raises(InvalidValue) as caught:
        reading.find(word, "here")
    assert str(caught.value).startswith(message)
    ids = [run.id for run in reading_runs(several)]
    listed = {"zzz": ids, "": ids, "two": ids[1:3]}.get(word, [])
    assert str(caught.value.hint) == (
        f"Runs here: {', '.join(listed)}." if listed else "passhat runs lists them."
    )


def reading_runs(place: str) -> list[Any]:
    with open_reading(place) as reading:
        return reading.runs()


def test_a_task_that_a_run_does_not_have_has_no_failure(tmp_path: Path) -> None:
    place = _store(tmp_path, AttemptRecord("a", 2, FAILED))
    with open_store(place) as store:
        (run,) = store.runs()
        assert store.first_failure(run.id, "a") == 2
        assert store.first_failure(run.id, "no such task") is None
