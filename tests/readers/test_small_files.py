"""Hundreds of small files of every shape: all that is read of them, and every refusal and hint.

``small_files.json`` lists the files with the options they are read with. After a change that is
meant, ``PASSHAT_WRITE_RESULTS=1 python -m pytest`` with this file writes the folder
``small_files_read`` again. Other tests say why a reading is right; this one says that it is the
same as before, in every branch that small files reach.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kept_results import check_results
from passhat._serialize import to_data
from passhat.errors import PasshatError
from passhat.readers import Needs, read_all

FILES = Path(__file__).with_name("small_files.json")
RESULTS = Path(__file__).with_name("small_files_read")
GROUPS = 12


def _compact(data: Any) -> Any:
    """Data without what is empty."""
    if isinstance(data, dict):
        parts = {key: _compact(part) for key, part in data.items()}
        return {key: part for key, part in parts.items() if part not in (None, "", [], {})}
    return [_compact(part) for part in data] if isinstance(data, list | tuple) else data


def _write_files(folder: Path, files: dict[str, str | dict[str, str]]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_bytes(content.encode())
        else:
            path.write_bytes(base64.b64decode(content["b64"]))


def _read(sources: list[str], options: dict[str, Any]) -> Any:
    if "needs" in options:
        options = {**options, "needs": Needs(**options["needs"])}
    try:
        found = read_all(sources, **options)
    except PasshatError as error:
        return [type(error).__name__, error.message, str(error.hint or "")]
    runs = [[run, *(run.attempts or ())] for run in found.runs]
    readers = [file.reader for file in found.files]
    return _compact(to_data([readers, runs, found.passed_over, found.refused]))


@pytest.mark.parametrize("group", range(GROUPS))
def test_small_files_are_read_as_before(
    group: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = json.loads(FILES.read_text(encoding="utf-8"))
    results: dict[str, object] = {}
    for number in range(group, len(cases), GROUPS):
        folder = tmp_path / "small" / str(number)  # some runs are named after it
        _write_files(folder, cases[number]["files"])
        monkeypatch.chdir(folder)  # names in messages are relative
        results[str(number)] = _read(cases[number]["sources"], cases[number]["options"])
    check_results(RESULTS / f"{group}.json", results)
