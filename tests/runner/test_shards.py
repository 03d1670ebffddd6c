"""A run in shards, merged, is the run that one machine would have made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.errors import InvalidValue
from passhat.runner.task_choice import Shard
from passhat.store import open_store
from passhat.suites.base import Task

Passhat = Callable[..., Any]
RUN = ["run", "-s", "orderdesk/retail", "-a", "demo:hasty", "-n", "3", "--random", "7"]


def _attempts(place: str) -> list[tuple[object, ...]]:
    """All that does not depend on the clock."""
    with open_store(place, must_exist=True) as store:
        (run,) = store.runs()
        found: list[tuple[object, ...]] = []
        for task, number, _ in store.verdicts(run.id):
            ended = store.attempt(run.id, task, number)
            assert ended is not None
            found.append(
                (
                    *(run.id, run.planned, run.tasks, task, number, ended.verdict, ended.why),
                    *(ended.detail, ended.steps, *map(str, ended.transcript)),
                )
            )
    return found


@pytest.mark.usefixtures("folder", "way")
def test_merged_shards_equal_the_whole_run(passhat: Passhat) -> None:
    assert passhat(*RUN, "--store", "whole.db").code == 0
    for number in (1, 2, 3):
        ended = passhat(*RUN, "--store", f"part{number}.db", "--shard", f"{number}/3")
        assert ended.code == 0
    parts = [f"part{number}.db" for number in (3, 1, 2)]
    assert passhat("store", "merge", *parts, "--store", "merged.db").code == 0
    whole, merged = _attempts("whole.db"), _attempts("merged.db")
    assert len(whole) == 21
    assert merged == whole
    numbers = ["report", "--metric", "pass^2", "--metric", "first@2", "--json"]
    one = json.loads(passhat(*numbers, "whole.db").out)
    other = json.loads(passhat(*numbers, "merged.db").out)
    assert one["runs"][0]["estimates"] == other["runs"][0]["estimates"]


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_a_shard_is_refused(passhat: Passhat, folder: Path) -> None:
    for text in ("0/3", "4/3", "3", "a/b", "1/0"):
        ended = passhat(*RUN, "--shard", text)
        assert ended.code == 2
        assert "is not a shard" in ended.err
    assert "nothing to do" in passhat(*RUN, "--shard", "9/9").err
    assert "sees only its own" in passhat(*RUN, "--shard", "1/2", "--stop-when", "rate > 0.5").err
    assert not (folder / ".passhat").exists()


def test_shards_are_disjoint_and_complete() -> None:
    tasks = [Task(str(i), "") for i in range(10)]
    parts = [Shard(number, 4).of(tasks) for number in (1, 2, 3, 4)]
    assert sorted(int(task.id) for part in parts for task in part) == list(range(10))
    assert {len(part) for part in parts} == {2, 3}
    with pytest.raises(InvalidValue):
        Shard(4, 4).of(tasks[:3])
