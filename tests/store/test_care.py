"""Care of stores: files of released versions, backups, damage."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import InvalidValue, PasshatError, ReadError
from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, open_reading, open_store
from passhat.store.check import check
from passhat.store.copy import back_up, restore
from passhat.suites.base import Judgement, Task

Passhat = Callable[..., Any]
RELEASED = sorted((Path(__file__).parent / "released").glob("*.db"))
TASKS = [Task(f"t{i}", "?") for i in range(20)]
RUN = RunRecord("agent", Protocol(suite="suite"), TASKS)


def fill(place: str) -> None:
    with open_store(place) as store:
        store.begin(RUN, 2)
        wanted = [(task.id, number) for task in TASKS for number in (1, 2)]
        store.claim(RUN.id, wanted)
        talk = [{"role": "agent", "text": "many words, " * 60}]
        store.finish(
            RUN.id,
            [
                AttemptRecord(task, number, Judgement(Verdict(number % 2)), transcript=talk)
                for task, number in wanted
            ],
        )


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.stem)
def test_a_file_of_a_released_version_is_read_as_it_is_and_migrated_when_written(
    released: Path, tmp_path: Path
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(released, path)
    with open_store(str(path), read_only=True) as store, open_reading(str(path)) as reading:
        (run,) = store.runs()
        assert (run.tasks, run.attempts, run.passed, run.missing) == (2, 3, 2, 1)
        assert reading.heads()[0].id == run.id
        ended = store.attempt(run.id, "a", 2)
        assert ended is not None
        assert (ended.verdict, len(ended.said)) == (Verdict.PASSED, 2)
        assert check(store).whole
        with pytest.raises(PasshatError):
            store.remove(run.id)
        done = back_up(store, str(tmp_path / "backup.db"))
        assert (done.runs, done.attempts) == (1, 3)
    assert digest(path) == digest(released)
    with open_store(str(path)) as store:
        # The claim of the old runner has no lease: it is free.
        assert store.release(run.id) == 1
        assert store.claim(run.id, [("b", 2)]) == [("b", 2)]
        assert store.finish(run.id, [AttemptRecord("b", 2, Judgement(Verdict.PASSED))]) == []
        assert store.runs()[0].attempts == 4
        assert check(store).whole


def test_a_backup_is_whole_and_comes_back(store_place: str, tmp_path: Path) -> None:
    fill(store_place)
    target = tmp_path / "backup.db"
    with open_store(store_place) as store:
        done = back_up(store, str(target))
        assert (done.runs, done.attempts) == (1, 40)
        with pytest.raises(InvalidValue, match="not a new file"):
            back_up(store, str(target))
    assert [path.name for path in tmp_path.glob("backup.db*")] == ["backup.db"]
    with open_store(str(target), read_only=True) as kept, open_store(str(tmp_path / "n.db")) as new:
        (copied,) = restore(kept, new)
        assert (copied.equal, copied.attempts) == (True, 40)
        with pytest.raises(InvalidValue, match="has runs already"):
            list(restore(kept, new))


def test_backup_and_restore_by_command(passhat: Passhat, tmp_path: Path) -> None:
    place = str(tmp_path / "a.db")
    fill(place)
    saved, new = str(tmp_path / "saved.db"), str(tmp_path / "new.db")
    ended = passhat("store", "backup", saved, "--store", place)
    assert ended.code == 0
    assert "1 run, 40 attempts" in ended.out
    assert passhat("store", "restore", saved, "--store", new).code == 0
    assert passhat("store", "check", "--store", new).code == 0


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        ("UPDATE attempts SET number = 9 WHERE number = 2", "attempts_beyond_plan"),
        ("UPDATE attempts SET verdict = 7 WHERE number = 2", "unknown_verdicts"),
        ("UPDATE attempts SET verdict = NULL WHERE number = 2", "half_finished"),
        ("UPDATE transcripts SET body = x'00010203'", "unreadable_transcripts"),
        ("UPDATE runs SET protocol = 'no json'", "unreadable_runs"),
        ("DELETE FROM tasks WHERE task = 't3'", "attempts_without_task"),
    ],
)
def test_a_check_names_what_means_nothing(tmp_path: Path, damage: str, field: str) -> None:
    place = str(tmp_path / "a.db")
    fill(place)
    with open_store(place) as store:
        store._db.execute("PRAGMA foreign_keys = OFF")  # as other programs have it
        store._db.execute(damage)
    with open_store(place, read_only=True) as store:
        health = check(store)
    assert getattr(health, field) > 0
    assert not health.whole


@pytest.mark.parametrize("where", ["pages", "log"])
def test_a_flipped_byte_never_gives_a_traceback(
    passhat: Passhat, tmp_path: Path, where: str
) -> None:
    whole, path, log = tmp_path / "whole.db", tmp_path / "flipped.db", tmp_path / "flipped.db-wal"
    with open_store(str(whole)):  # so that the log stays
        fill(str(whole))
        pages, written = whole.read_bytes(), Path(f"{whole}-wal").read_bytes()
    if where == "pages":
        pages = whole.read_bytes()
    draw = random.Random(17)
    commands = [
        *(("runs", "--store", path), ("store", "check", "--store", path), ("report", path)),
        *(("show", "latest", "t1#1", "--store", path), ("export", path), ("read", path)),
        *(("store", "copy", path, tmp_path / "copy.db"), ("doctor", "--store", path)),
    ]
    for turn in range(2 * len(commands)):
        flipped = bytearray(pages if where == "pages" else written)
        flipped[draw.randrange(len(flipped))] ^= draw.randrange(1, 256)
        # Commands take turns: the fixture raises what one does not handle.
        command = commands[turn % len(commands)]
        for left in tmp_path.glob("flipped.db-*"):
            left.unlink()
        path.write_bytes(flipped if where == "pages" else pages)
        if where == "log":
            log.write_bytes(flipped)
        assert passhat(*command).code in (0, 1, 2, 4)


def test_damaged_text_in_a_message_of_the_database_is_an_error_of_ours(
    passhat: Passhat, tmp_path: Path
) -> None:
    path = tmp_path / "a.db"
    fill(str(path))
    # The schema is text, and SQLite quotes what it cannot parse.
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE runs", b"CREATE T\xf5BLE runs", 1))
    for command in (("store", "vacuum", "--store"), ("store", "check", "--store"), ("report",)):
        ended = passhat(*command, path)
        assert (ended.code, "cannot be used as a store" in ended.err) == (2, True)


def test_a_live_file_that_is_copied_without_its_log_is_noticed(
    passhat: Passhat, tmp_path: Path
) -> None:
    place, copy = str(tmp_path / "live.db"), tmp_path / "copy.db"
    with open_store(place) as store:
        shutil.copy(place, copy)  # so far, everything is in the log
        ended = passhat("report", copy)
        assert ended.code == 2
        assert "write-ahead log is absent" in ended.err
        assert "passhat store backup" in ended.err
        store.begin(RUN, 2)
        store.claim(RUN.id, [("t1", 1)])
        store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.finish(RUN.id, [AttemptRecord("t1", 1, Judgement(Verdict.PASSED))])
        copy.unlink()
        shutil.copy(place, copy)
        ended = passhat("store", "check", "--store", copy)
        assert ended.code == 4
        assert "WRITE-AHEAD LOG IS ABSENT" in ended.out
        assert passhat("store", "check", "--store", place).code == 0
    assert passhat("store", "check", "--store", place).code == 0


def test_the_log_of_another_file_is_named(passhat: Passhat, tmp_path: Path) -> None:
    first, second = str(tmp_path / "first.db"), str(tmp_path / "second.db")
    fill(first)
    with open_store(second) as store:
        other = RunRecord("other", Protocol(suite="suite"), TASKS[:3])
        store.begin(other, 1)
        shutil.copy(f"{second}-wal", f"{first}-wal")
    ended = passhat("store", "check", "--store", first)
    assert ended.code == 4
    assert "first.db-wal BELONGS TO ANOTHER FILE" in ended.out


def test_a_store_is_not_made_by_reading(tmp_path: Path) -> None:
    for options in ({"must_exist": True}, {"read_only": True}):
        with pytest.raises(ReadError, match="there is no store"):
            open_store(str(tmp_path / "none.db"), **options)
    assert list(tmp_path.iterdir()) == []
