"""passhat store: copy, merge, check, vacuum."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, CallRecords, RunRecord, check, open_store
from passhat.store.copy import digest_of
from passhat.suites.base import Judgement, Task

Passhat = Callable[..., Any]

TASKS = [Task(f"t{i}", "?", {"kind": "a"}) for i in range(6)]
RUN = RunRecord("agent", Protocol(suite="suite"), TASKS)


def fill(
    place: str | Path, tasks: range, numbers: range = range(1, 4), seconds: float = 1.5
) -> str:
    """Attempts at some of the tasks, in a store of their own."""
    wanted = [(f"t{i}", number) for i in tasks for number in numbers]
    with open_store(str(place)) as store:
        store.begin(RUN, 3)
        store.claim(RUN.id, wanted)
        store.finish(
            RUN.id,
            [
                AttemptRecord(
                    *(task, number, Judgement(Verdict(number % 3 - 1), "why", "det\x00ail")),
                    seconds=seconds,
                    transcript=[{"role": "user", "text": f"{task} {number} " * 100}],
                    calls=CallRecords(1, 0, None, 0, 0, 0, b"[]"),
                )
                for task, number in wanted
            ],
        )
    return str(place)


def test_a_copy_there_and_back_is_equal(passhat: Passhat, tmp_path: Path, store_place: str) -> None:
    first = fill(tmp_path / "first.db", range(6))
    ended = passhat("store", "copy", first, store_place)
    assert ended.code == 0
    assert "18 attempts, 18 added; equal on both sides" in ended.out
    ended = passhat("store", "copy", store_place, tmp_path / "back.db")
    assert "18 attempts, 18 added; equal on both sides" in ended.out
    with open_store(first) as one, open_store(str(tmp_path / "back.db")) as other:
        assert digest_of(one, RUN.id) == digest_of(other, RUN.id)
        there, back = one.attempt(RUN.id, "t1", 2), other.attempt(RUN.id, "t1", 2)
        assert there is not None
        assert back is not None
        assert there.transcript == back.transcript
        assert one.protocol(RUN.id) == other.protocol(RUN.id)


def test_a_copy_goes_on_where_it_stopped(
    passhat: Passhat, tmp_path: Path, store_place: str
) -> None:
    first = fill(tmp_path / "first.db", range(6))
    passhat("store", "copy", first, store_place)
    with open_store(store_place) as other:
        other._db.execute("DELETE FROM attempts WHERE number = 2")
        other._db.execute("DELETE FROM transcripts WHERE number = 3")
        other.claim(RUN.id, [("t0", 2)])  # somebody is at it
    ended = passhat("store", "copy", first, store_place)
    assert "18 attempts, 6 added; equal on both sides" in ended.out
    assert (
        "18 attempts, 0 added; equal on both sides"
        in passhat("store", "copy", first, store_place).out
    )


def test_what_differs_is_not_overwritten(
    passhat: Passhat, tmp_path: Path, store_place: str
) -> None:
    first = fill(tmp_path / "first.db", range(6))
    fill(store_place, range(5, 6), seconds=9.0)
    ended = passhat("store", "copy", first, store_place)
    assert ended.code == 2
    assert "t5#1" in ended.err
    assert "Nothing was overwritten" in ended.err


def test_shards_are_joined_and_conflicts_leave_the_target_as_it_was(
    passhat: Passhat, tmp_path: Path, store_place: str
) -> None:
    parts = [fill(tmp_path / f"part{i}.db", range(2 * i, 2 * i + 2)) for i in range(3)]
    ended = passhat("store", "merge", *parts, "--store", store_place)
    assert ended.code == 0
    assert f"{RUN.id}: 18 of 18 attempts, complete" in ended.err
    assert passhat("store", "merge", *parts, "--store", store_place).code == 0  # again: the same
    clash = fill(tmp_path / "clash.db", range(3), seconds=9.0)
    other = str(tmp_path / "other.db")
    ended = passhat("store", "merge", parts[2], clash, parts[0], "--store", other)
    assert ended.code == 2
    assert "is another attempt" in ended.err
    with open_store(other) as store:
        assert store.runs() == []
    assert passhat("store", "merge", "nowhere.db", "--store", other).code == 2


def test_a_sound_store_is_called_sound(passhat: Passhat, store_place: str) -> None:
    fill(store_place, range(6))
    ended = passhat("store", "check", "--store", store_place)
    assert ended.code == 0
    assert "18 finished attempts, 18 transcripts" in ended.out
    assert "is sound" in ended.out
    said = json.loads(passhat("store", "check", "--store", store_place, "--json").out)
    assert said["whole"] is True
    assert said["attempts"] == 18


def test_orphans_and_damage_are_found(passhat: Passhat, tmp_path: Path) -> None:
    place = fill(tmp_path / "store.db", range(6))
    with closing(sqlite3.connect(place, isolation_level=None)) as database:
        database.execute("DELETE FROM tasks WHERE task = 't1'")
        database.execute("DELETE FROM attempts WHERE number = 3 AND task <> 2")
    ended = passhat("store", "check", "--store", place)
    assert ended.code == 4
    assert "3 attempts BELONG TO NO TASK" in ended.out
    assert "5 transcripts without an attempt" in ended.out
    with Path(place).open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096)
    ended = passhat("store", "check", "--store", place)
    assert ended.code == 4
    assert "IS DAMAGED" in ended.out
    assert "Traceback" not in ended.err


def test_claims_of_the_dead_are_told_from_those_of_the_living(
    passhat: Passhat, store_place: str
) -> None:
    import os
    import socket

    fill(store_place, range(1))
    with open_store(store_place) as store:
        store.claim(RUN.id, [("t1", 1), ("t1", 2)])
        owner = f"{socket.gethostname()}/{os.getpid()}/0"  # this process, started at another time
        store._db.execute("UPDATE attempts SET owner = ? WHERE number = 2", (owner,))
        said = json.loads(passhat("store", "check", "--store", store_place, "--json").out)
    assert (said["open_claims"], said["abandoned_claims"]) == (2, 1)


def test_old_transcripts_are_forgotten_and_verdicts_stay(
    passhat: Passhat, store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_AT_ONCE", 4)  # so that it takes several transactions
    fill(store_place, range(6))
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat(timespec="milliseconds")
    with open_store(store_place) as store:
        store._db.execute("UPDATE attempts SET finished = ? WHERE number = 1", (old,))
    ended = passhat("store", "vacuum", "--store", store_place, "--transcripts-older-than", "30d")
    assert ended.code == 0
    assert "deleted 6 transcripts" in ended.out
    with open_store(store_place) as store:
        assert store.runs()[0].attempts == 18
        first, second = store.attempt(RUN.id, "t0", 1), store.attempt(RUN.id, "t0", 2)
        assert first is not None
        assert second is not None
        assert (len(first.transcript), len(second.transcript)) == (0, 1)


@pytest.mark.parametrize("age", ["soon", "30", "-1d", "99999999999999d"])
def test_an_age_that_is_none_is_refused(passhat: Passhat, tmp_path: Path, age: str) -> None:
    place = fill(tmp_path / "store.db", range(1))
    ended = passhat("store", "vacuum", "--store", place, "--transcripts-older-than", age)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_an_ordered_rule_knows_where_a_stored_attempt_is_absent(
    passhat: Passhat, tmp_path: Path, store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts 1 and 3 of two tasks are there: 2 is unknown, and 3 is not the second one."""
    fill(store_place, range(4))
    fill(store_place, range(4, 6), numbers=range(1, 4, 2))
    monkeypatch.setenv("PASSHAT_STORE", store_place)
    # Of attempts 1 to 3 the first failed, the second passed, the third is missing.
    ended = passhat("gate", RUN.id, "first@2 >= 0.3", "first^1 <= 0.5", "--missing", "fail")
    assert ended.code == 4
    assert "first@2 is 0.667" in ended.out
    assert "first^1 is 0.000" in ended.out
    ended = passhat(
        "gate", RUN.id, "first@2 >= base - 0.9", "--against", RUN.id, "--allow", "--json"
    )
    assert json.loads(ended.out)["absent"] == 2
    rows = [f"t{task},{trial},1\n" for task in range(6) for trial in range(3)]
    (other := tmp_path / "other.csv").write_text("task,trial,success\n" + "".join(rows))
    for command in (("report", RUN.id), ("compare", RUN.id, other)):
        ended = passhat(*command, "--metric", "first@2", "--full")
        assert ended.code == 0
        assert "2 tasks with a gap in the numbers" in " ".join(ended.out.split())
