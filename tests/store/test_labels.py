"""Labels in a store: beside verdicts, only added, and carried along wherever a run goes."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import InvalidValue, ReadError
from passhat.protocol import Protocol
from passhat.readers import Needs, read
from passhat.readers.store import import_run, run_from_store
from passhat.reporting.export import as_csv_rows, as_json_lines
from passhat.stats.outcomes import Verdict
from passhat.stats.outcomes.labels import LabelCounts
from passhat.store import AttemptRecord, RunRecord, Store, open_reading, open_store
from passhat.store.copy import copy_runs, merge_runs
from passhat.store.labels import (
    DrawnAttempt,
    JudgeVotes,
    Label,
    StoredLabel,
    _single_draws,
    add_labels,
    choose_anchors,
    count_labels,
    decide_label,
    labels_from_attempts,
    load_draws,
    load_label_counts,
    load_labels,
    load_votes,
    parse_labels,
    save_draw,
)
from passhat.suites.base import Judgement, Task

TASKS = ("a", "b", "c")


def fill(store: Store) -> str:
    """Three tasks with two attempts: the first passed, the second failed; c#2 is missing."""
    run = RunRecord("agent", Protocol(suite="s"), [Task(name, "") for name in TASKS])
    store.begin(run, 2)
    places = [(task, number) for task in TASKS for number in (1, 2)]
    store.claim(run.id, places)
    judgements = {1: Judgement.passed(), 2: Judgement(Verdict.FAILED, "wrong_answer", "")}
    store.finish(
        run.id,
        [
            AttemptRecord(
                task,
                number,
                Judgement(Verdict.MISSING, "judge_error", "")
                if (task, number) == ("c", 2)
                else judgements[number],
            )
            for task, number in places
        ],
    )
    return run.id


def words(store: Store, run: str) -> list[tuple[str, int, str, str]]:
    labels = load_labels(store._queries, store._key(run))
    return [(label.task, label.number, label.person, str(label.label)) for label in labels]


def test_labels_stand_beside_verdicts_and_the_newest_of_a_person_counts(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        run = fill(store)
        before = list(store.verdicts(run))
        assert add_labels(store, run, [StoredLabel("a", 1, "ada", Label.WRONG)]).new == 1
        assert add_labels(store, run, [StoredLabel("a", 1, "ada", Label.WRONG)]).new == 0
        assert add_labels(store, run, [StoredLabel("a", 1, "ada", Label.RIGHT)]).changed == 1
        add_labels(store, run, [StoredLabel("a", 1, "bob", Label.WRONG)])
        assert words(store, run) == [("a", 1, "ada", "right"), ("a", 1, "bob", "wrong")]
        add_labels(store, run, [StoredLabel("a", 1, "bob", None)])
        assert words(store, run) == [("a", 1, "ada", "right")]
        assert list(store.verdicts(run)) == before
        rows = store.read("SELECT person, label FROM labels ORDER BY key")
        assert rows == [("ada", 0), ("ada", 1), ("bob", 0), ("bob", None)]


def test_what_cannot_be_labeled_is_refused(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        run = fill(store)
        for label, reason in (
            (StoredLabel("a", 9, "ada", Label.RIGHT), "no finished attempt a#9"),
            (StoredLabel("c", 2, "ada", Label.RIGHT), "no verdict of the judge"),
            (StoredLabel("a", 1, " ", Label.RIGHT), "name of a person"),
        ):
            with pytest.raises(InvalidValue, match=reason):
                add_labels(store, run, [StoredLabel("a", 1, "x", Label.RIGHT), label])
        assert words(store, run) == []


def test_counts_take_the_majority_against_the_verdict_that_counts_now(tmp_path: Path) -> None:
    from passhat.store import JudgementSource, StoredJudgement

    with open_store(str(tmp_path / "s.db")) as store:
        run = fill(store)
        assert load_label_counts(store._queries, store._key(run)) is None
        people = {"ada": Label.RIGHT, "bob": Label.RIGHT, "eve": Label.WRONG}
        labels = [StoredLabel("a", 2, name, label) for name, label in people.items()]
        labels += [StoredLabel("b", 1, "ada", Label.RIGHT), StoredLabel("b", 1, "bob", Label.WRONG)]
        add_labels(store, run, labels)
        save_draw(store, run, "sample 2 of 5, seed 1", [("a", 2), ("b", 1)])
        counts = load_label_counts(store._queries, store._key(run))
        assert counts is not None
        assert (counts.right_failed_total, counts.skipped_attempts, counts.people) == (1, 1, 3)
        assert {why: one.right_failed_total for why, one in counts.categories.items()} == {
            "wrong_answer": 1
        }
        assert counts.draws == ("sample 2 of 5, seed 1",)
        assert counts.agreement is not None
        assert counts.agreement < 0.5
        again = StoredJudgement(Verdict.PASSED, "", "", JudgementSource.REGRADE)
        store.add_judgement(run, "a", 2, again)
        counts = load_label_counts(store._queries, store._key(run))
        assert counts is not None
        assert (counts.right_failed_total, counts.right_passed_total) == (0, 1)


def test_anchors_are_labels_of_the_newest_run_of_the_suite(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        runs = []
        for day, suite in enumerate(("s", "s", "other", "s"), 1):
            protocol = Protocol(suite=suite)
            started = f"2026-01-0{day}T00:00:00+00:00"
            run = RunRecord("agent", protocol, [Task("a", "")], name=f"{day}", started=started)
            store.begin(run, 1)
            store.claim(run.id, [("a", 1)])
            store.finish(run.id, [AttemptRecord("a", 1, Judgement.passed())])
            runs.append(run.id)
        for labeled in runs[:3]:
            add_labels(store, labeled, [StoredLabel("a", 1, "ada", Label.WRONG)])
        assert choose_anchors(store, runs[3], "s") == [(runs[1], "a", 1)]
        assert choose_anchors(store, runs[3], "none") == []


def test_labels_go_with_a_run_when_it_is_copied_and_merged(tmp_path: Path) -> None:
    with (
        open_store(str(tmp_path / "one.db")) as one,
        open_store(str(tmp_path / "two.db")) as two,
        open_store(str(tmp_path / "all.db")) as both,
    ):
        run = fill(one)
        list(copy_runs(one, two, [run]))
        add_labels(one, run, [StoredLabel("a", 1, "ada", Label.RIGHT)])
        save_draw(one, run, "sample 1", [("a", 1)])
        add_labels(two, run, [StoredLabel("b", 1, "bob", Label.WRONG)])
        list(merge_runs([one, two], both))
        assert words(both, run) == [("a", 1, "ada", "right"), ("b", 1, "bob", "wrong")]
        assert [drawn.draw for drawn in load_draws(both._queries, both._key(run))] == ["sample 1"]
        list(merge_runs([one], both))
        assert len(words(both, run)) == 2


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_carries_labels_and_an_import_brings_them_back(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"runs.{form}"
    with open_store(str(tmp_path / "s.db")) as store:
        run = fill(store)
        add_labels(store, run, [StoredLabel("a", 1, "ada", Label.WRONG, "late", "2026-01-01")])
        save_draw(store, run, "sample 1 of 5, seed 1", [("a", 1)])
        stored = run_from_store(store, store.find(run), Needs(details=True))
        write = as_json_lines if form == "jsonl" else as_csv_rows
        path.write_text("".join(write([stored])))
    (again,) = read([str(path)], needs=Needs(details=True))
    assert again.labels is not None
    assert (again.labels.wrong_passed_total, again.labels.draws) == (1, ("sample 1 of 5, seed 1",))
    with open_store(str(tmp_path / "other.db")) as store:
        run, _ = import_run(store, again)
        import_run(store, again)
        (label,) = load_labels(store._queries, store._key(run))
        assert label == StoredLabel("a", 1, "ada", Label.WRONG, "late", "2026-01-01")
        assert len(store.read("SELECT * FROM labels")) == 1


def test_a_page_reads_labels_without_writing(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    with open_store(place) as store:
        run = fill(store)
        add_labels(store, run, [StoredLabel("a", 1, "ada", Label.RIGHT)])
        key = store._key(run)
    with open_reading(place) as reading:
        assert len(load_labels(reading, key)) == 1


@pytest.mark.parametrize("right", range(4))
@pytest.mark.parametrize("wrong", range(4))
def test_a_majority_decides(right: int, wrong: int) -> None:
    words = [Label.RIGHT] * right + [Label.WRONG] * wrong
    decision = None if right == wrong else right > wrong
    assert decide_label(words) is decision
    assert decide_label([None, Label.SKIPPED, *reversed(words)]) is decision


def test_labels_that_cannot_be_read_are_named() -> None:
    for text in ("{", '[{"person": "a", "label": "maybe"}]', "[1]"):
        with pytest.raises((ReadError, InvalidValue)):
            parse_labels("a", 1, text)


# -- counting --------------------------------------------------------------------------------------

PASSED, FAILED, MISSING = Verdict.PASSED, Verdict.FAILED, Verdict.MISSING


def _label(task: str, label: Label | None, person: str = "p", number: int = 1) -> StoredLabel:
    return StoredLabel(task, number, person, label, "", "")


@pytest.mark.parametrize(
    ("verdicts", "tasks"),
    [
        ({}, []),
        ({("a", 1): (MISSING, "")}, []),
        ({("a", 1): (PASSED, "")}, ["a"]),
        ({("a", 1): (FAILED, "")}, ["a"]),
        ({("a", 2): (PASSED, "")}, []),
        ({("a", 1): (FAILED, ""), ("b", 1): (PASSED, "")}, ["a", "b"]),
    ],
)
def test_only_attempts_with_a_verdict_are_counted(
    verdicts: dict[tuple[str, int], tuple[Verdict, str]], tasks: list[str]
) -> None:
    counts = count_labels([_label("a", Label.RIGHT), _label("b", Label.WRONG)], verdicts)
    seen: list[list[tuple[str, bool, bool | None]]] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            LabelCounts, "from_rows", classmethod(lambda _, rows, **__: seen.append(list(rows)))
        )
        count_labels([_label("a", Label.RIGHT), _label("b", Label.WRONG)], verdicts)
    expected = {"a": True, "b": False}
    (rows,) = seen
    assert rows == [(task, verdicts[task, 1][0] is PASSED, expected[task]) for task in tasks]
    assert counts.people == 1


def test_labels_that_were_taken_back_are_no_labels_and_categories_are_of_failures() -> None:
    labels = [_label("a", None), _label("b", Label.WRONG), _label("c", Label.RIGHT, "q")]
    verdicts = {("b", 1): (FAILED, "timeout"), ("c", 1): (PASSED, "odd"), ("a", 1): (FAILED, "x")}
    counts = count_labels(labels, verdicts)
    assert list(counts.categories) == ["timeout"]
    assert counts.people == 2
    assert counts.draws == ()


def _attempts(*parts: tuple[str, str]) -> Any:
    attempts = [
        SimpleNamespace(task=task, number=1, verdict=PASSED, why=None, extras={"labels": text})
        for task, text in parts
    ]
    return type("_Attempts", (list,), {"extras": ("labels",)})(attempts)


def test_labels_of_an_export_are_counted_with_its_verdicts() -> None:
    right = '[{"person": "p", "label": "right"}, {"draw": "d", "place": 2}]'
    counts = labels_from_attempts(_attempts(("a", right), ("b", "")))
    assert counts is not None
    assert (counts.people, counts.draws) == (1, ("d",))
    assert labels_from_attempts(_attempts(("a", ""))) is None
    assert labels_from_attempts(_attempts(("a", '[{"draw": "d", "place": 1}]'))) is None
    assert labels_from_attempts(None) is None
    without = _attempts(("a", right))
    type(without).extras = ("cost",)
    assert labels_from_attempts(without) is None


@pytest.mark.parametrize(
    ("text", "labels", "draws"),
    [
        ("[]", [], []),
        ("[{}]", [], []),
        ('[{"draw": "", "place": 1}]', [], []),
        ('[{"draw": "d"}]', [], [("d", 0)]),
        ('[{"draw": "d", "place": null}]', [], [("d", 0)]),
        ('[{"draw": "d", "place": 3}, {"draw": "e", "place": 1}]', [], [("d", 3), ("e", 1)]),
        ('[{"person": "", "label": "right"}]', [], []),
        ('[{"person": "p", "label": "right"}]', [("p", Label.RIGHT, "", "")], []),
        (
            '[{"person": "p", "label": "wrong", "note": "n", "at": "2026"}]',
            [("p", Label.WRONG, "n", "2026")],
            [],
        ),
        ('[{"person": "p", "label": "right", "note": null}]', [("p", Label.RIGHT, "", "")], []),
    ],
)
def test_labels_and_draws_of_an_attempt_are_read(
    text: str, labels: list[tuple[Any, ...]], draws: list[tuple[str, int]]
) -> None:
    found, places = parse_labels("t", 4, text)
    assert [(one.person, one.label, one.note, one.at) for one in found] == labels
    assert [(one.draw, one.place) for one in places] == draws
    assert {(one.task, one.number) for one in found} <= {("t", 4)}
    assert {(one.task, one.number) for one in places} <= {("t", 4)}


@pytest.mark.parametrize(
    ("call", "votes"),
    [
        ({"name": "m"}, None),
        ({"name": "m", "votes": []}, None),
        ({"name": "m", "votes": None, "lost_votes": None}, None),
        ({"name": "m", "lost_votes": 0}, None),
        ({"name": "m", "lost_votes": 1}, ((), 1)),
        ({"name": "m", "votes": [True, False]}, ((True, False), 0)),
        ({"name": "m", "votes": [False], "lost_votes": 2}, ((False,), 2)),
    ],
)
def test_votes_are_those_of_judges(
    call: dict[str, Any], votes: tuple[tuple[bool, ...], int] | None
) -> None:
    body = zlib.compress(json.dumps([call]).encode())
    queries: Any = SimpleNamespace(_all=lambda *_: [("t", 2, body)])
    assert JudgeVotes("t", 2, "m", ()).lost == 0
    expected = [] if votes is None else [JudgeVotes("t", 2, "m", *votes)]
    assert load_votes(queries, 1) == expected


def _drawn(draw: str, *places: tuple[str, int]) -> list[DrawnAttempt]:
    return [DrawnAttempt(draw, at, task, number) for at, (task, number) in enumerate(places)]


@pytest.mark.parametrize(
    ("labeled", "by_attempts"),
    [
        ([], {"a", "b"}),
        ([("a", 1)], {"a", "b"}),
        ([("a", 1), ("a", 2)], {"b"}),
        ([("b", 1)], {"a", "b"}),  # an earlier task is not finished
        ([("a", 1), ("a", 2), ("b", 1)], set()),
    ],
)
def test_tasks_before_the_first_unfinished_one_are_whole(
    labeled: list[tuple[str, int]], by_attempts: set[str]
) -> None:
    draws = [
        *_drawn("sample 2 of 9, seed 1", ("a", 1), ("b", 1)),
        *_drawn("whole tasks 2 of 3, seed 1", ("a", 1), ("a", 2), ("b", 1))[::-1],
    ]
    by_verdict, found = _single_draws(draws, labeled)
    assert (set(by_verdict), set(found)) == (set(), by_attempts)
