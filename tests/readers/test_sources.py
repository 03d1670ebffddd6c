"""Files, globs and examples."""

from __future__ import annotations

import json
from collections.abc import Callable
from errno import EACCES
from pathlib import Path

import pytest

from passhat import read
from passhat.errors import ReadError
from passhat.readers.sources import examples, expand


def test_a_glob_and_a_path_name_each_file_once(table: Callable[..., Path]) -> None:
    one, two = table("task,success\na,1\n", "one.csv"), table("task,success\na,1\n", "two.csv")
    found = expand([str(one.parent / "*.csv"), str(one)])
    assert [source.path for source in found] == [one, two]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(ReadError, match="no such file"):
        read(str(tmp_path / "*.csv"))
    with pytest.raises(ReadError, match="is a folder"):
        read(tmp_path)


def test_examples_are_read_by_name() -> None:
    assert "helpdesk" in examples()
    runs = read("example:helpdesk")
    assert [run.name for run in runs] == ["careful", "hasty"]
    assert [len(run.outcomes) for run in runs] == [24, 24]
    with pytest.raises(ReadError, match=r"no such example.*helpdesk"):
        read("example:nothing")


def test_a_file_that_may_not_be_read(
    table: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table("task,success\na,1\n")

    def refuse(
        *_: object, **__: object
    ) -> None:  # root may read everything, so a mode of 000 would not do
        raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ReadError, match="cannot be read: Permission denied"):
        read(path)


def test_a_pointer_of_git_lfs_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 12\n")
    with pytest.raises(ReadError, match="a pointer of Git LFS"):
        read(path)


@pytest.mark.parametrize("first", [(), ("version", "status")])
def test_keys_behind_a_long_list_recognize_a_log(tmp_path: Path, first: tuple[str, ...]) -> None:
    """A tool that sorts keys, or writes the settings last, puts them beyond the head of a file."""
    samples = [
        {"id": f"t{i // 2}", "epoch": i % 2 + 1, "scores": {"exact": {"value": "CI"[i % 2]}}}
        for i in range(2_000)
    ]
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "mine", "task_id": "x", "model": "openai/gpt-4"},
        "results": {"total_samples": 2_000},
    }
    behind = {name: value for name, value in log.items() if name not in first}
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps({**{name: log[name] for name in first}, "samples": samples, **behind})
    )
    (run,) = read(path)
    assert (run.agent, run.outcomes.passes, run.outcomes.scored) == ("openai/gpt-4", 1_000, 2_000)
