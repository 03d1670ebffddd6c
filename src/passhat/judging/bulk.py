"""Judge many samples of one suite: plan, resume, judge, and make a run of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from passhat._display import counted
from passhat.judging import SPLIT_JUDGE
from passhat.judging.interpreters import Interpreter
from passhat.judging.limits import Limits
from passhat.judging.pool import judge_all
from passhat.judging.results import Results, Row, row_of
from passhat.judging.samples import Sample
from passhat.judging.sandbox_kinds import Container, SandboxKind, Walls
from passhat.judging.tasks import CodeSuite
from passhat.protocol import Protocol
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer

__all__ = ["Bench", "Judged", "judge_samples"]

"""How the name of this judge begins, in every protocol."""


@dataclass(frozen=True, slots=True)
class Bench:
    """With what programs are judged: the suite's tests, the sandbox, the interpreter, limits."""

    suite: CodeSuite
    kind: Walls
    interpreter: Interpreter
    limits: Limits
    jobs: int = 1

    @property
    def judge(self) -> str:
        """The judge by name, for the protocol; an absent sandbox is part of it."""
        walls = "UNSAFE: no sandbox" if self.kind is SandboxKind.NONE else str(self.kind)
        return (
            f"{SPLIT_JUDGE} ({walls}), tests {self.suite.tests_fingerprint}, {self._limits}"
            f"{self._python}"
        )

    @property
    def _python(self) -> str:
        """Which Python the programs run on, and what they may import."""
        if isinstance(self.kind, Container):
            return f", {self.kind.python} of the image"
        named = self.interpreter.named
        everything = ", with all that is installed there" if self.interpreter.packages else ""
        granted = f", with {', '.join(named)}" if named else everything
        return f", Python {self.interpreter.version}{granted}"

    def protocol(self, attempts: int | None = None) -> Protocol:
        """What a run judged here promises."""
        return Protocol(
            suite=self.suite.name,
            suite_fingerprint=self.suite.fingerprint,
            tests_fingerprint=self.suite.tests_fingerprint,
            attempts=attempts,
            attempt_seconds=self.limits.cpu_seconds,
            judge=self.judge,
        )

    @property
    def _limits(self) -> str:
        return f"{self.limits.cpu_seconds:g} s cpu, {self.limits.memory >> 20} MiB"


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of it: the run, and how many rows were there."""

    run: Run
    resumed: int


def judge_samples(
    bench: Bench,
    samples: list[Sample],
    source: str,
    out: str | None = None,
    tell: Callable[[Row], None] = lambda _row: None,
) -> Judged:
    """Judge what the results file does not have yet; ``tell`` hears of every new row."""
    results = Results.open(out, samples, bench.judge)
    resumed = len(results.rows)
    left = [sample for sample in samples if sample.key not in results.rows]
    for position, judgement in judge_all(
        ((sample.task, sample.program) for sample in left),
        kind=bench.kind,
        interpreter=bench.interpreter,
        limits=bench.limits,
        jobs=bench.jobs,
    ):
        row = row_of(left[position], judgement, bench.suite.name, bench.judge)
        results.add(row)
        tell(row)
    rows = [results.rows[sample.key] for sample in samples]
    return Judged(_run(bench, samples, rows, source), resumed)


def _run(bench: Bench, samples: list[Sample], rows: list[Row], source: str) -> Run:
    gatherer = AttemptGatherer(ColumnMap.resolve(rows[0]))
    gatherer.add({name: [row[name] for row in rows] for name in rows[0]})
    (found,) = gatherer.runs()
    per_task = found.outcomes.n + found.outcomes.missing
    planned = int(per_task[0]) if per_task.min() == per_task.max() else None
    stem = Path(source).name.split(".")[0]
    absent = len(bench.suite.tasks) - len(found.outcomes)
    return Run(
        name=stem,
        agent=stem,
        outcomes=found.outcomes,
        protocol=bench.protocol(planned),
        attempts=found.attempts,
        source=source,
        reading=(
            f"{counted(len(samples), 'sample')} judged: {bench.judge}",
            *([f"{counted(absent, 'task')} of the suite have no sample"] if absent else []),
        ),
    )
