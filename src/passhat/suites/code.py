"""Code suites for the runner: the agent writes a program, hidden tests judge it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import MappingProxyType

from passhat.errors import ReadError, shorten
from passhat.judging.bench import Bench, JudgePool, JudgingChoice
from passhat.judging.tasks import CodeTask
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn
from passhat.suites.code_files import read_code_suite
from passhat.suites.code_samples import Sample, printable, program_in, request_text

__all__ = ["CodeTasksSuite"]


class CodeTasksSuite(Suite):
    """Programs to write, judged in a sandbox: code:ordercode, or code:PATH to JSON lines."""

    has_tools = False
    judges_programs = True

    def __init__(self, rest: str) -> None:
        self._suite = read_code_suite(rest)
        self.name = self._suite.name
        self.fingerprint = self._suite.fingerprint
        self.judge_fingerprint = self._suite.tests_fingerprint
        for task in self._suite.tasks.values():
            if not task.prompt and not task.text:
                raise ReadError(
                    f"task {shorten(task.id)} has tests but no prompt for an agent.",
                    source=rest,
                    hint="Give every task a prompt, or judge samples with passhat judge.",
                )
        self.tasks = tuple(
            Task(task.id, task.prompt or task.text, MappingProxyType(dict(task.labels)))
            for task in self._suite.tasks.values()
        )
        self._choice = JudgingChoice()
        self._pool: JudgePool | None = None

    def judge_with(self, choice: JudgingChoice) -> None:
        """Choose sandbox, interpreter, limits and judges; before the first episode."""
        self._choice = choice

    @cached_property
    def bench(self) -> Bench:
        """The bench, its sandbox tried with attacks; raises SandboxUnavailable."""
        return self._choice.bench(self._suite)

    @cached_property
    def judge(self) -> str:
        """The judge by name. A plan reads it, so that a refusal comes before any attempt."""
        return self.bench.judge

    def episode(self, task: Task, seed: int) -> _Program:  # noqa: ARG002 - nothing is random here
        return _Program(self, self._suite.tasks[task.id])

    def pool(self) -> JudgePool:
        """The workers that all episodes share; they start with the first program."""
        if self._pool is None:
            bench = self.bench
            self._pool = JudgePool(
                bench.kind, bench.interpreter, bench.limits, bench.jobs, bench.rules
            )
        return self._pool

    def close(self) -> None:
        """End the workers with their sandboxes."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


class _Program(Episode):
    """Asks for a program once, and judges it."""

    def __init__(self, suite: CodeTasksSuite, task: CodeTask) -> None:
        self._suite = suite
        self._task = task
        self._program = ""
        self._answer = ""
        self._off_the_clock: Callable[[], AbstractContextManager[None]] = nullcontext
        self._ticket: object = None
        self.answer_hash = ""

    def join(self, attempt: object) -> None:
        self._off_the_clock = attempt.meter.off_the_clock  # type: ignore[attr-defined]

    def open(self) -> Turn:
        self._ticket = self._suite.pool().expect(self._task)
        return Turn(request_text(self._task))

    def close(self) -> None:
        """Let the judge go on without this program, if there is none."""
        self._suite.pool().forgo(self._task, self._ticket)

    def reply(self, answer: str) -> Turn | None:
        self._answer, self._program = answer, program_in(answer, self._task)
        # Equal for programs that differ in layout and names only: the unit of diversity.
        self.answer_hash = Sample(self._task, 0, self._program).fingerprint
        return None

    async def judge(self) -> Judgement:
        pool = self._suite.pool()
        # Other attempts at the task may have to be split first, which is not this one's time.
        with self._off_the_clock():
            verdict = await asyncio.wrap_future(
                pool.submit(self._task, self._program, self._ticket)
            )
        remarks = [(f"{name} judge", words) for name, words in verdict.judges]
        if self._program.strip() != self._answer.strip():
            remarks.insert(0, ("program", printable(self._program)))
        self.remarks = tuple(remarks)
        return Judgement(verdict.verdict, verdict.category, verdict.detail)
