"""Labels in a store: beside verdicts, only added, and carried along wherever a run goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat.errors import InvalidValue, ReadError
from passhat.protocol import Protocol
from passhat.readers import Needs, read
from passhat.readers.store import import_run, run_from_store
from passhat.reporting.export import as_csv_rows, as_json_lines
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_reading, open_store
from passhat.store.copy import copy_runs, merge_runs
from passhat.store.labels import (
    Label,
    StoredLabel,
    add_labels,
    choose_anchors,
    decide_label,
    load_draws,
    load_label_counts,
    load_labels,
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
