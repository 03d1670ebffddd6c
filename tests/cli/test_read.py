"""passhat read: what was recognized, and an exit code that tells a partial read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat.readers import sources

Passhat = Callable[..., Any]
ROWS = [
    {"task_id": 0, "reward": 1.0, "trial": 0, "traj": []},
    {"task_id": 0, "reward": None, "trial": 1, "traj": []},
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(ROWS))
    return path


def test_it_says_what_was_recognized(passhat: Passhat, log: Path) -> None:
    ended = passhat("read", log)
    assert ended.code == 0
    assert "recognized as tau_bench: 1 run" in ended.out
    assert "2 rows, 2 attempts read" in ended.out
    assert "missing: judge_error 1" in ended.out
    assert ended.out.endswith("1 file, 1 run, 2 attempts, 1 missing\n")
    assert ended.err == ""


def test_a_partial_read_ends_with_4_and_says_what_was_lost(passhat: Passhat, log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-20])
    for command in (["read"], ["report"], ["export"], ["explain", "pass^1"]):
        ended = passhat(*command, log)
        assert ended.code == 4, command
        assert f"{log}, row 2: the file ends in the middle of it" in ended.err
    ended = passhat("read", log, "--json")
    (file,) = json.loads(ended.out)["files"]
    assert file["tally"]["rows"] == file["tally"]["attempts"] + file["tally"]["lost"] == 2


def test_json(passhat: Passhat, log: Path) -> None:
    data = json.loads(passhat("read", log, "--json").out)
    assert data["schema"] == "passhat.reading/1"
    assert data["files"][0]["reader"] == "tau_bench"
    assert data["runs"][0]["missing_by_reason"] == {"judge_error": 1}


def test_a_folder_with_something_else_in_it(passhat: Passhat, log: Path) -> None:
    (log.parent / "notes.txt").write_text("hello")
    ended = passhat("read", log.parent)
    assert ended.code == 0
    assert "notes.txt\n  passed over: " in ended.out
    (log.parent / "empty").mkdir()
    ended = passhat("read", log.parent / "empty")
    assert ended.code == 2
    assert "is a folder without any log" in ended.err


def test_standard_input(passhat: Passhat, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources._save_standard_input.cache_clear()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    ended = passhat("read", "-")
    assert ended.code == 0
    assert "stdin: 1 task" in ended.out
    sources._save_standard_input.cache_clear()


@pytest.mark.parametrize("models", ["x", "xy"])
def test_standard_input_is_offered_no_command_that_reads_it_again(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch, models: str
) -> None:
    rows = [f"{m},{task},{k},{int(k > 1)}" for m in models for task in "abc" for k in (1, 2)]
    text = "\n".join(["model,task,trial,success", *rows])
    sources._save_standard_input.cache_clear()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    ended = passhat("report", "-")
    assert ended.code == 0
    assert "Next:" not in ended.out
    sources._save_standard_input.cache_clear()


def test_a_scorer_that_no_source_has_is_refused(passhat: Passhat, log: Path) -> None:
    (log.parent / "two.json").write_text(json.dumps(ROWS))
    log.rename(log.parent / "sub.json")
    files = sorted(log.parent.glob("*.json"))
    assert "2 runs" in passhat("read", *files).out.splitlines()[-1]
    ended = passhat("read", *files, "--scorer", "x")
    assert (ended.code, ended.out) == (2, "")
    assert "no source has several (read as: tau_bench)" in ended.err
