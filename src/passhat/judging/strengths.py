"""What is known of the strength of tests, kept beside the store for every later report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from passhat.judging.mutants import TestStrength

__all__ = ["keep_strengths", "known_strengths", "strengths_folder"]

_SCHEMA = "passhat.test-strength/1"
_FIELDS = ("task", "killed", "mutants", "canonical_passes")


def strengths_folder(store_path: str) -> Path:
    """Where they are kept: beside a store, whether that exists or not."""
    return Path(store_path).parent / "tests"


def keep_strengths(folder: Path, tests_fingerprint: str, found: Iterable[TestStrength]) -> Path:
    """Write them down; other tests have another fingerprint, so these never go out of date."""
    rows = [{name: getattr(one, name) for name in _FIELDS} for one in found]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tests_fingerprint}.json"
    beside = path.with_suffix(".part")
    text = json.dumps({"schema": _SCHEMA, "tests": tests_fingerprint, "tasks": rows}, indent=2)
    beside.write_text(text + "\n", encoding="utf-8")
    beside.replace(path)
    return path


def known_strengths(folder: Path, tests_fingerprint: str) -> dict[str, TestStrength]:
    """What was kept for these tests, by task; nothing when nobody has looked."""
    path = folder / f"{tests_fingerprint}.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = [TestStrength(**{name: row[name] for name in _FIELDS}) for row in data["tasks"]]
    except (OSError, ValueError, TypeError, KeyError):
        return {}  # a report does not fail for want of a remark
    return {one.task: one for one in rows}
