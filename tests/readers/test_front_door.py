"""Files of unknown origin: bombs, pipes, devices, long lines, escapes, one broken file of many."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mutations
from passhat import read
from passhat.errors import ReadError
from passhat.readers import json_records, read_all
from passhat.readers.sources import UNPACKED_FLOOR, UnpackedTooLarge

Passhat = Callable[..., Any]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passhat.readers.sources.UNPACKED_FLOOR", 100_000)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("kind", ["gzip", "zstd", "zip", "lying zip"])
def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, kind: str) -> None:
    content = b"[" + b" " * 5_000_000 + b"]"
    path = tmp_path / "bomb.json"
    if kind == "gzip":
        path.write_bytes(gzip.compress(b'[{"task_id": 0, "reward": 1, "traj": []},' + content[1:]))
    elif kind == "zstd":
        import zstandard

        path.write_bytes(zstandard.compress(b'[{"task_id": 0, "reward": 1, "traj": []},' + content))
    else:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", "{}")
            archive.writestr("summaries.json", content)
        data = out.getvalue()
        if kind == "lying zip":
            data = data.replace(len(content).to_bytes(4, "little"), (9).to_bytes(4, "little"))
        path.write_bytes(data)
    with pytest.raises(UnpackedTooLarge, match="--max-unpacked"):
        read(path)
    try:  # allowed, and then there is little or nothing in it
        read(path, max_unpacked=50_000_000)
    except UnpackedTooLarge:
        pytest.fail("the stated limit was not used")
    except ReadError:
        pass


def test_the_usual_logs_are_far_from_the_limit() -> None:
    assert UNPACKED_FLOOR >= 50_000_000


def test_pipes_and_devices_are_refused_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ReadError, match="is a pipe"):
        read(tmp_path / "pipe.csv")
    with pytest.raises(ReadError, match="is a device"):
        read("/dev/zero")
    (tmp_path / "good.csv").write_text("task,success\na,1\n")
    found = read_all(tmp_path)
    assert [name for name, _ in found.passed_over] == [str(tmp_path / "pipe.csv")]


def test_a_long_line_is_cut_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records, "_LONG_LINE", 4096)
    monkeypatch.setattr(json_records, "_LONGEST_TEXT", 64)
    talk = 'He said "no" \\ ü \u2028' * 4_000
    rows = [{"task": "a", "trial": i, "success": 1, "answer": talk} for i in range(3)]
    for ascii_only in (True, False):
        path = tmp_path / "long.jsonl"
        path.write_text("\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows))
        (run,) = read(path)
        assert (run.outcomes.attempts, run.losses) == (3, ())


def test_one_broken_file_of_several_is_named_and_the_others_are_reported(
    passhat: Passhat, tmp_path: Path
) -> None:
    (tmp_path / "good.csv").write_text("task,success\na,1\na,0\n")
    (tmp_path / "bad.json").write_text('{"weather": "fine"}')
    ended = passhat("report", tmp_path / "good.csv", tmp_path / "bad.json", "-k", "1")
    assert ended.code == 4
    assert "bad.json: is valid JSON, but not of a format passhat knows" in ended.err
    assert "good" in ended.out
    with pytest.raises(ReadError, match="weather"):
        read([tmp_path / "good.csv", tmp_path / "bad.json"])


@pytest.mark.parametrize("command", ["read", "report", "explain", "export"])
def test_no_escape_reaches_the_terminal(passhat: Passhat, tmp_path: Path, command: str) -> None:
    path = tmp_path / "evil\x1b[2J.csv"
    path.write_text("model,task,trial,success\n\x1b]0;t\x07m,\x1b[31mred\x9b2J\u202e,0,1\n")
    ended = passhat(command, path)
    for text in (ended.out, ended.err):
        assert not {"\x1b", "\x07", "\x9b"} & set(text), command
    lost = tmp_path / "lost.csv"
    lost.write_text("task,success\na,1\nb,\x1b[2Jno\n")
    ended = passhat(command, lost)
    assert "\x1b" not in ended.out + ended.err


def test_damaged_files_of_every_format_are_read_or_refused() -> None:
    outcomes, formats, _ = mutations.run(150, seed=3)
    assert set(outcomes) <= {"read", "read, with losses", "refused"}
    assert len(formats) >= 15
