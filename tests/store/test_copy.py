"""Copies and merges: block by block, never past a conflict, going on where they were cut off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from passhat.errors import InvalidValue, ReadError, StoreConflict
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import (
    AttemptRecord,
    CallRecords,
    JudgementSource,
    RunRecord,
    Store,
    StoredJudgement,
    copy,
    open_store,
)
from passhat.store.copy import back_up, copy_runs, digest_of, merge_runs
from passhat.store.sqlite import SqliteStore
from passhat.suites.base import Judgement, Task

TASKS = [Task(f"t{i}", "?", {"kind": "a"}) for i in range(6)]
RUN = RunRecord("agent", Protocol(suite="suite"), TASKS)
MADE = {"t0": 3, "t1": 9, "t2": 1, "t3": 1, "t5": 4}


def fill(store: Store, made: dict[str, int], seconds: float = 1.5) -> Store:
    """Attempts of a run, each with a conversation, and a later word on the first of each task."""
    wanted = [(task, number) for task, count in made.items() for number in range(1, count + 1)]
    store.begin(RUN, 9)
    store.claim(RUN.id, wanted)
    talk = [{"role": "user", "text": "hello"}]
    store.finish(
        RUN.id,
        [
            AttemptRecord(
                *one,
                Judgement(Verdict.PASSED, ""),
                seconds=seconds,
                transcript=talk,
                calls=CallRecords(2, 1, 14, 0, 0, 0, b'[{"name": "openai:m"}]', (("m-2", ""),)),
                conversation=f"context {one}",
            )
            for one in wanted
        ],
    )
    for task in made:
        said = StoredJudgement(Verdict.FAILED, "wrong_state", "", JudgementSource.HUMAN, "2026")
        store.add_judgement(RUN.id, task, 1, said)
    return store


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    """Some empty stores."""
    with ExitStack() as opened:
        yield [opened.enter_context(open_store(str(tmp_path / f"{i}.db"))) for i in range(3)]


@pytest.fixture
def target(store_place: str) -> Iterator[Store]:
    with open_store(store_place) as store:
        yield store


@pytest.mark.parametrize("size", [1, 2, 4, 7, 18, 100])
def test_blocks_of_any_size_hold_every_attempt_once(
    stores: list[Store], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fill(stores[0], MADE)
    whole = digest_of(source, RUN.id)
    monkeypatch.setattr(copy, "_ATTEMPTS", size)
    cut = list(copy.blocks(source, RUN.id))
    assert max(block.attempts for block in cut) <= size
    numbers = [row for block in cut for row in block.rows(source, "attempts", ["number"])]
    assert numbers == [(task, n) for task, count in MADE.items() for n in range(1, count + 1)]
    assert sum(block.attempts for block in cut) == 18
    assert digest_of(source, RUN.id) == whole
    assert {table: found.rows for table, found in whole.items()} == {
        "attempts": 18,
        "transcripts": 18,
        "calls": 18,
        "origins": 18,
        "judgements": 5,
        "labels": 0,
        "label_draws": 0,
        "anchors": 0,
    }


@pytest.mark.parametrize("size", [2, 4])
def test_small_blocks_make_the_same_copy(
    stores: list[Store], target: Store, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fill(stores[0], MADE)
    monkeypatch.setattr(copy, "_ATTEMPTS", size)
    # A run may have a hundred million tasks: they are not looked up all at once.
    monkeypatch.setattr(Store, "_tasks", None)
    told: list[tuple[str, int]] = []
    (copied,) = copy_runs(source, target, [RUN.id], lambda what, _run, n: told.append((what, n)))
    assert copied.equal
    assert copied.added == 18
    assert ("copied", 18) in told
    assert ("read again", 18) in told
    monkeypatch.undo()
    assert digest_of(target, RUN.id) == digest_of(source, RUN.id)
    assert [(one.attempts, one.tasks) for one in target.runs()] == [(18, 6)]


class _CutOff(BaseException):
    pass


@pytest.mark.parametrize("within", [False, True])
def test_a_merge_that_was_cut_off_goes_on(
    stores: list[Store], target: Store, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    fill(stores[0], {"t0": 3, "t1": 9})
    fill(stores[1], {"t2": 1, "t3": 1, "t5": 4})
    monkeypatch.setattr(copy, "_ATTEMPTS", 4)
    written = 0

    def tell(doing: str, *_: object) -> None:
        nonlocal written
        written += doing == "copied"
        if written == 2:
            raise _CutOff

    told = tell
    with monkeypatch.context() as patched:
        if within:  # in the middle of a block, which then leaves nothing
            patched.setattr(target, "_tell", lambda _run: tell("copied"))
            told = lambda *_: None  # noqa: E731
        with pytest.raises(_CutOff):
            list(merge_runs(stores[:2], target, told))
    there = target.find(RUN.id).attempts
    assert 0 < there < 18
    found = list(merge_runs(stores[:2], target))
    assert [one.attempts for one in found] == [12, 6]
    assert sum(one.added for one in found) == 18 - there
    assert not any(one.added for one in merge_runs(stores[:2], target))
    list(merge_runs(stores[:2], stores[2]))
    assert digest_of(target, RUN.id) == digest_of(stores[2], RUN.id)


@pytest.mark.parametrize("with_target", [True, False])
def test_a_conflict_at_the_end_is_found_before_anything_is_written(
    stores: list[Store], target: Store, monkeypatch: pytest.MonkeyPatch, with_target: bool
) -> None:
    monkeypatch.setattr(copy, "_ATTEMPTS", 2)
    fill(stores[0], {"t0": 3, "t1": 9})
    fill(stores[1], {"t2": 1, "t5": 4})
    fill(target if with_target else stores[2], {"t5": 4}, seconds=9.0)
    before = digest_of(target, RUN.id) if with_target else None
    with pytest.raises(StoreConflict, match=r"t5#1 of run .* is another attempt"):
        list(merge_runs(stores, target))
    if with_target:
        assert digest_of(target, RUN.id) == before
    else:
        assert target.runs() == []


def test_what_an_attempt_left_behind_is_no_conflict(stores: list[Store], target: Store) -> None:
    source = fill(stores[0], {"t0": 2})
    source._db.execute("UPDATE transcripts SET body = x'00' WHERE number = 2")
    source._db.execute("DELETE FROM attempts WHERE number = 2")
    (copied,) = copy_runs(source, target, [RUN.id])
    assert copied.target["transcripts"].rows == 1
    # It was made again, here and not there.
    fill(stores[1], {"t0": 2})
    target._db.execute("DELETE FROM attempts WHERE number = 1")
    (copied,) = copy_runs(stores[1], target, [RUN.id])
    assert copied.equal
    assert copied.added == 2


def test_a_zero_byte_becomes_the_sign_for_it_and_everything_else_stays(stores: list[Store]) -> None:
    """PostgreSQL's text cannot hold one; numbers beside it are no texts."""
    source, target, *_ = stores
    source.begin(RUN, 9)
    source.claim(RUN.id, [("t0", 1), ("t0", 2)])
    texts = {1: "a\x00b", 2: "a\\x00b"}  # the second one only looks like it
    source.finish(
        RUN.id,
        [
            AttemptRecord(
                *("t0", number, Judgement(Verdict.FAILED, "exception", text)),
                seconds=1.5,
                tokens=7.0,
                answer_hash=f"hash {number}",
                transcript=[{"role": "agent", "text": text}],
            )
            for number, text in texts.items()
        ],
    )
    source._db.execute("UPDATE attempts SET detail = ? WHERE number = 1", (texts[1],))
    list(copy_runs(source, target, [RUN.id]))
    for number, detail in ((1, "a\ufffdb"), (2, texts[2])):
        ended = target.attempt(RUN.id, "t0", number)
        assert ended is not None
        assert (ended.detail, ended.seconds) == (detail, 1.5)
        original = source.attempt(RUN.id, "t0", number)
        assert original is not None
        assert ended.transcript == original.transcript


# -- conflicts, backups and damage, one by one -----------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("agent = 'x'", "has another agent in"),
        ("suite = 'x', name = 'y'", "has another suite and name in"),
        ("protocol = '{}'", "has another protocol in"),
        ("allocation = '{}'", "has other numbers of attempts per task in"),
        ("planned = 1", ""),
        ("started = '1999'", ""),
        ("revision = 'x'", ""),
    ],
)
def test_another_run_with_the_same_id_is_refused(
    stores: list[Store], change: str, words: str
) -> None:
    source, target = fill(stores[0], {"t0": 1}), fill(stores[1], {"t1": 1})
    target._db.execute(f"UPDATE runs SET {change}")

    def look() -> None:
        copy._refuse_conflicts(source, [target], RUN.id, lambda *_: None)

    if words:
        with pytest.raises(StoreConflict, match=words):
            look()
    else:
        look()


@pytest.mark.parametrize("is_refused", [True, False])
def test_tasks_with_other_labels_are_refused(stores: list[Store], is_refused: bool) -> None:
    source, target = fill(stores[0], {"t0": 1}), fill(stores[1], {"t1": 1})
    if is_refused:
        target._db.execute("UPDATE tasks SET labels = '{}' WHERE task = 't3'")
        with pytest.raises(StoreConflict, match=r"task 't3' of run .* has other labels in"):
            list(merge_runs([source], target))
        assert target.runs()[0].attempts == 1
    else:
        (merged,) = merge_runs([source], target)
        assert (merged.added, target.runs()[0].attempts) == (1, 2)


def test_a_merge_keeps_the_earlier_beginning_and_the_larger_plan(stores: list[Store]) -> None:
    source, target = fill(stores[0], {"t0": 1}), fill(stores[1], {"t1": 1})
    source._db.execute("UPDATE runs SET planned = 12, started = '2001'")
    target._db.execute("UPDATE runs SET planned = 9, started = '2000'")
    list(merge_runs([source], target))
    assert target.read("SELECT planned, started FROM runs") == [(12, "2000")]
    source._db.execute("UPDATE runs SET planned = 3, started = '1999'")
    list(merge_runs([source], target))
    assert target.read("SELECT planned, started FROM runs") == [(12, "1999")]


def test_an_attempt_without_its_task_stays_where_it_is(stores: list[Store]) -> None:
    source = fill(stores[0], {"t0": 1, "t1": 1})
    (block,) = copy.blocks(source, RUN.id)
    assert [row[0] for row in block.rows(source, "attempts", ["number"])] == ["t0", "t1"]
    keys = {name: key for key, name in block.names.items()}
    source._db.execute("PRAGMA foreign_keys = OFF")
    source._db.execute(
        "INSERT INTO attempts (run, task, number, verdict, why, finished) "
        "VALUES (1, ?, 7, 1, '', '')",
        (keys["t0"],),
    )
    part = replace(block, names={key: name for key, name in block.names.items() if name != "t0"})
    wide = replace(part, names={**part.names, 99: "gone"})
    assert [row[0] for row in part.rows(source, "attempts", ["number"])] == ["t1"]
    assert [row[0] for row in wide.rows(source, "attempts", ["number"])] == ["t1"]
    low = replace(part, names={0: "gone", **part.names})
    assert [row[0] for row in low.rows(source, "attempts", ["number"])] == ["t1"]


def test_a_backup_that_cannot_be_read_leaves_nothing(
    stores: list[Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fill(stores[0], {"t0": 1})
    target = tmp_path / "backups.db"
    Path(f"{target}.part").write_text("of an earlier try")
    is_sound = SqliteStore.is_sound

    def leave_logs(store: SqliteStore) -> bool:
        for end in ("-wal", "-shm"):
            Path(f"{store._file}{end}").touch()
        return is_sound(store) and store.path == source.path

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "is_sound", leave_logs)
        patched.setattr(SqliteStore, "close", lambda store: store._db.close())
        with pytest.raises(ReadError, match="the backup cannot be read back"):
            back_up(source, str(target))
    assert list(tmp_path.glob("backups.db*")) == []
    done = back_up(source, str(target))
    assert (done.runs, done.attempts) == (1, 1)
    for name in (str(target), "postgresql://host/db"):
        with pytest.raises(InvalidValue, match="is not a new file"):
            back_up(source, name)


def test_rows_that_did_not_arrive_are_counted(stores: list[Store]) -> None:
    source, target = fill(stores[0], {"t0": 2}), stores[1]
    list(copy_runs(source, target, [RUN.id]))
    target._db.execute("DELETE FROM transcripts")
    with pytest.raises(ReadError, match=r"2 rows of transcripts of run .* did not arrive"):
        copy._verify(source, target, RUN.id, 2, lambda *_: None)
    # What the target has more is no damage.
    again = copy._verify(target, source, RUN.id, 2, lambda *_: None)
    assert (again.equal, again.attempts, again.added) == (False, 2, 2)
