"""The file of results: one row per judged attempt, a table that every command reads.

Judging resumes by subtraction: samples minus the rows that are there. A row that a broken sandbox
left without a verdict counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from passhat.errors import ReadError
from passhat.judging.code_suites import json_lines
from passhat.judging.verdict import Judgement
from passhat.judging.samples import Sample
from passhat.stats.outcomes.vocabulary import MissingReason, Verdict

__all__ = ["Results", "row_of"]

Row = dict[str, object]
_AGAIN = (MissingReason.SANDBOX_ERROR, MissingReason.STOPPED)


def row_of(sample: Sample, judgement: Judgement, suite: str, judge: str) -> Row:
    """One attempt as a row; the column names are those that every reader knows."""
    verdict = judgement.verdict
    return {
        "suite": suite,
        "task": sample.task.id,
        "trial": sample.trial,
        "success": None if verdict is Verdict.MISSING else int(verdict),
        "failure": judgement.why or None,
        "detail": judgement.detail or None,
        "seconds": round(judgement.seconds, 4),
        "cpu_seconds": round(judgement.cpu_seconds, 4),
        "answer": sample.fingerprint,
        "judge": judge,
        "program": sample.program,
    }


@dataclass(frozen=True, slots=True)
class Results:
    """Rows so far, by task and trial, and the file they are kept in, if any."""

    rows: dict[tuple[str, int], Row]
    path: Path | None = None

    @classmethod
    def open(cls, path: str | None, samples: Iterable[Sample], judge: str) -> Results:
        """Take up a file where it was left, or begin one."""
        if path is None or not Path(path).exists():
            return cls({}, None if path is None else Path(path))
        wanted = {sample.key: sample for sample in samples}
        rows: dict[tuple[str, int], Row] = {}
        for line, row in json_lines(_mended(path)):
            key = (str(row.get("task")), int(str(row.get("trial", -1))))
            sample = wanted.get(key)
            if sample is None or row.get("answer") != sample.fingerprint:
                raise _foreign(path, line, "another sample")
            if row.get("judge") != judge:
                raise _foreign(path, line, f"another judge ({row.get('judge')})")
            if row.get("failure") not in _AGAIN:
                rows[key] = row
        kept = cls(rows, Path(path))
        kept._write_all()
        return kept

    def add(self, row: Row) -> None:
        """Keep a row, on disk before anything else happens."""
        self.rows[str(row["task"]), int(str(row["trial"]))] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _write_all(self) -> None:
        assert self.path is not None
        beside = self.path.with_name(f"{self.path.name}.part")
        beside.write_text("".join(f"{json.dumps(row)}\n" for row in self.rows.values()), "utf-8")
        beside.replace(self.path)


def _mended(path: str) -> str:
    """The same file without a last line that was cut off in the writing."""
    content = Path(path).read_bytes()
    if content and not content.endswith(b"\n"):
        Path(path).write_bytes(content[: content.rfind(b"\n") + 1])
    return path


def _foreign(path: str, line: int, what: str) -> ReadError:
    return ReadError(
        f"the row was made from {what}, so judging cannot go on here.",
        source=path,
        line=line,
        hint="Name another file with --out, or remove this one to begin again.",
    )
