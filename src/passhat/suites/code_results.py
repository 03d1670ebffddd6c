"""Results: samples become rows, rows become a run, and judging resumes from a file of rows.

Judging resumes by subtraction: samples minus the rows that are there. A row that a broken sandbox
left without a verdict counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from passhat._display import counted
from passhat.errors import ReadError
from passhat.judging.bench import Bench
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer
from passhat.stats.outcomes.vocabulary import MissingReason, Verdict
from passhat.suites.code_files import json_lines
from passhat.suites.code_samples import Sample

__all__ = ["Judged", "Results", "judge_samples", "row_of"]

Row = dict[str, object]
_AGAIN = (MissingReason.SANDBOX_ERROR, MissingReason.STOPPED)


def row_of(sample: Sample, judgement: CodeVerdict, suite: str, judge: str) -> Row:
    """An attempt as a row; every reader recognizes the column names."""
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
        "judges": dict(judgement.judges) or None,
        "raw": sample.raw or None,
    }


@dataclass(frozen=True, slots=True)
class Results:
    """Rows so far, by task and trial, and the file they are kept in, if any."""

    rows: dict[tuple[str, int], Row]
    path: Path | None = None

    @classmethod
    def open(cls, path: str | None, samples: Iterable[Sample], judge: str) -> Results:
        """Continue a file of results, or begin a new one."""
        if path is None or not Path(path).exists():
            return cls({}, None if path is None else Path(path))
        samples_by_key = {sample.key: sample for sample in samples}
        rows: dict[tuple[str, int], Row] = {}
        for line, row in json_lines(_without_partial_line(path)):
            key = (str(row.get("task")), int(str(row.get("trial", -1))))
            sample = samples_by_key.get(key)
            if sample is None or row.get("answer") != sample.fingerprint:
                raise _foreign(path, line, "another sample")
            if row.get("judge") != judge:
                raise _foreign(path, line, f"another judge ({row.get('judge')})")
            if row.get("failure") not in _AGAIN:
                rows[key] = row
        results = cls(rows, Path(path))
        results._write_all()
        return results

    def add(self, row: Row) -> None:
        """Keep a row, on disk before anything else happens."""
        self.rows[str(row["task"]), int(str(row["trial"]))] = row
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def _write_all(self) -> None:
        assert self.path is not None
        temporary = self.path.with_name(f"{self.path.name}.part")
        temporary.write_text("".join(f"{json.dumps(row)}\n" for row in self.rows.values()), "utf-8")
        temporary.replace(self.path)


def _without_partial_line(path: str) -> str:
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
        hint="Name another file with -o, or remove this one to begin again.",
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged run and the number of its rows that were reused."""

    run: Run
    resumed: int


def judge_samples(
    bench: Bench,
    samples: list[Sample],
    source: str,
    out: str | None = None,
    tell: Callable[[Row], None] = lambda _row: None,
) -> Judged:
    """Judge samples without a row in the results file; ``tell`` is called with every new row."""
    results = Results.open(out, samples, bench.judge)
    resumed = len(results.rows)
    left = [sample for sample in samples if sample.key not in results.rows]
    for position, judgement in bench.verdicts((sample.task, sample.program) for sample in left):
        row = row_of(left[position], judgement, bench.suite.name, bench.judge)
        results.add(row)
        tell(row)
    rows = [results.rows[sample.key] for sample in samples]
    return Judged(_run(bench, samples, rows, source), resumed)


def _run(bench: Bench, samples: list[Sample], rows: list[Row], source: str) -> Run:
    gatherer = AttemptGatherer(ColumnMap.resolve(rows[0]))
    gatherer.add({name: [row[name] for row in rows] for name in rows[0]})
    (run,) = gatherer.runs()
    outcomes = Outcomes.from_columns(run.columns)
    per_task = outcomes.n + outcomes.missing
    attempts = int(per_task[0]) if per_task.min() == per_task.max() else None
    stem = Path(source).name.split(".")[0]
    absent = len(bench.suite.tasks) - len(outcomes)
    return Run(
        name=stem,
        agent=stem,
        outcomes=outcomes,
        protocol=bench.protocol(attempts),
        attempts=run.attempts,
        source=source,
        reading=(
            f"{counted(len(samples), 'sample')} judged: {bench.judge}",
            *([f"{counted(absent, 'task')} of the suite have no sample"] if absent else []),
        ),
    )
