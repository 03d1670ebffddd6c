"""Copies and merges: block by block, never past a conflict, going on where they were cut off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from passhat.errors import StoreConflict
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
from passhat.store.copy import copy_runs, digest_of, merge_runs
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
