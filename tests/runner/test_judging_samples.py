"""Samples become a run of the store: judged once, resumed, and refused when they changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.store import open_store

RIGHT = "    return min(10, 2 * max(0, days_late))\n"
WRONG = "    return 2 * days_late\n"
CALL = ("judge", "s.jsonl", "-s", "code:ordercode", "--store", "s.db")


def _write(*bodies: str) -> None:
    rows = [{"task_id": "ordercode/late_credit", "completion": body} for body in bodies]
    Path("s.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_is_kept_resumed_extended_and_never_mixed(passhat: Callable[..., Any]) -> None:
    _write(RIGHT, WRONG)
    first = passhat(*CALL, "--json")
    assert first.code == 0, first.err
    (report,) = json.loads(first.out)["runs"]
    assert (report["passed"], report["attempts"]) == (1, 2)
    assert report["failures_by_category"] == {"wrong_answer": 1}
    assert any("no two attempts at a task are the same program" in one for one in report["notes"])
    _write(RIGHT, WRONG, RIGHT, RIGHT)
    more = passhat(*CALL, "--json")
    assert "2 of 4 were there" in more.err
    notes = json.loads(more.out)["runs"][0]["notes"]
    assert any("4 attempts, 2 distinct programs" in note for note in notes)
    with open_store("s.db", must_exist=True) as store:
        (run,) = store.runs()
        ended = store.attempt(run.id, "ordercode/late_credit", 2)
    assert (run.attempts, run.passed, run.planned, run.status) == (4, 3, 4, "complete")
    assert ended is not None
    assert WRONG in ended.transcript[-1]["text"]
    _write(WRONG, WRONG)
    refused = passhat(*CALL)
    assert refused.code == 2
    assert "was made from another sample" in refused.err
    assert passhat(*CALL, "--name", "second").code == 0
    assert passhat(*CALL, "-o", "r.jsonl").code == 2


def test_the_protocol_is_that_of_a_run_by_the_runner(passhat: Callable[..., Any]) -> None:
    _write(RIGHT)
    assert passhat(*CALL).code == 0
    task = "ordercode/late_credit"
    made = passhat(
        *("run", "-s", "code:ordercode", "-a", "demo:coder", "-n", "1", "--task", task),
        *("--store", "s.db"),
    )
    assert made.code == 0, made.err
    with open_store("s.db") as store:
        judged, ran = (store.protocol(run.id) for run in store.runs())
    for field in ("suite", "suite_fingerprint", "tests_fingerprint", "judge"):
        assert getattr(judged, field) == getattr(ran, field)
