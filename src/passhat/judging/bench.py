"""The user's choices about judging, and the bench they lead to: tests, sandbox, limits."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Self

from passhat.errors import InvalidValue
from passhat.judging import JUDGE_NAMES
from passhat.judging.examiner import Examiner, References
from passhat.judging.interpreters import Interpreter, find_interpreter
from passhat.judging.sandbox_check import choose_sandbox
from passhat.judging.sandbox_kinds import (
    Container,
    JudgeRules,
    ProgramLimits,
    SandboxKind,
    SandboxSpec,
    read_sandbox,
)
from passhat.judging.tasks import CodeSuite, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.protocol import Protocol
from passhat.stats.outcomes.vocabulary import MissingReason

Work = tuple[CodeTask, str]


@dataclass(eq=False, slots=True)
class _Job:
    """A program in the queue; ``split`` is set when only plain is left to ask."""

    task: CodeTask
    program: str
    future: Future[CodeVerdict]
    ticket: object
    split: CodeVerdict | None = None
    waits_for: set[object] = field(default_factory=set)


class JudgePool:
    """Workers that judge programs until they are closed.

    Each program is judged once. A judgement that a broken sandbox interrupts is made again. In
    plain a program can read its tests, so plain comes after split has judged every program of the
    task that was expected by then: whatever plain might leave behind, nothing is left to read it.
    """

    def __init__(
        self,
        kind: SandboxSpec,
        interpreter: Interpreter,
        limits: ProgramLimits | None = None,
        jobs: int = 1,
        rules: JudgeRules | None = None,
    ) -> None:
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._expected: dict[str, set[object]] = {}
        self._deferred: dict[str, list[_Job]] = {}
        self._closing = threading.Event()
        references = References()
        self._examiners = [
            Examiner(kind, interpreter, limits or ProgramLimits(), rules, references)
            for _ in range(jobs)
        ]
        self._threads = [
            threading.Thread(target=self._work, args=(examiner,), daemon=True)
            for examiner in self._examiners
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def expect(self, task: CodeTask) -> object:
        """Announce a program; a ticket for :meth:`submit`, or for :meth:`forgo` if none comes."""
        ticket = object()
        with self._lock:
            self._expected.setdefault(task.id, set()).add(ticket)
        return ticket

    def submit(self, task: CodeTask, program: str, ticket: object = None) -> Future[CodeVerdict]:
        """Put a program in the queue; the future returns its verdict."""
        job = _Job(task, program, Future(), ticket or self.expect(task))
        with self._lock:
            job.waits_for = set(self._expected.get(task.id, ()))
        self._queue.put(job)
        return job.future

    def forgo(self, task: CodeTask, ticket: object) -> None:
        """Expect the program no longer, or no longer for split; a second time does nothing."""
        with self._lock:
            self._expected.get(task.id, set()).discard(ticket)
            for job in list(self._deferred.get(task.id, ())):
                job.waits_for.discard(ticket)
                if not job.waits_for:
                    self._deferred[task.id].remove(job)
                    self._queue.put(job)

    def close(self) -> None:
        """Stop the workers at once; queued programs are not judged."""
        self._closing.set()
        for examiner in self._examiners:
            examiner.abandon()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        for jobs in self._deferred.values():
            for job in jobs:
                job.future.cancel()

    def _work(self, examiner: Examiner) -> None:
        try:
            while (job := self._queue.get()) is not None:
                if self._closing.is_set():
                    job.future.cancel()
                elif job.split is not None or job.future.set_running_or_notify_cancel():
                    self._judge(examiner, job)
        finally:
            examiner.close()

    def _judge(self, examiner: Examiner, job: _Job) -> None:
        try:
            if job.split is not None:
                job.future.set_result(examiner.judge_together(job.task, job.program, job.split))
                return
            verdict, is_final = examiner.judge_apart(job.task, job.program)
        except Exception as error:  # a bug here must not lose the other judgements
            examiner.close()
            verdict = CodeVerdict.missing(
                MissingReason.JUDGE_ERROR, f"{type(error).__name__}: {error}"
            )
            is_final = True
        if is_final:
            job.future.set_result(verdict)
        else:
            with self._lock:
                job.split = verdict
                job.waits_for &= self._expected[job.task.id]
                self._deferred.setdefault(job.task.id, []).append(job)
        self.forgo(job.task, job.ticket)


def judge_all(
    work: Iterable[Work],
    *,
    kind: SandboxSpec,
    interpreter: Interpreter,
    limits: ProgramLimits | None = None,
    jobs: int = 1,
    rules: JudgeRules | None = None,
) -> Iterator[tuple[int, CodeVerdict]]:
    """Judge programs; yields their positions with the judgements, as they are made."""
    every = list(work)
    # In an order that no program knows: a clock or another counter of the machine then says
    # nothing about how many attempts at its task came before.
    order = random.SystemRandom().sample(range(len(every)), len(every))
    verdicts: SimpleQueue[tuple[int, CodeVerdict]] = SimpleQueue()
    with JudgePool(kind, interpreter, limits, min(jobs, len(every)), rules) as pool:
        tickets = [pool.expect(task) for task, _ in every]
        for position in order:
            future = pool.submit(*every[position], tickets[position])
            future.add_done_callback(
                lambda ended, at=position: (  # type: ignore[misc]
                    None if ended.cancelled() else verdicts.put((at, ended.result()))
                )
            )
        for _ in every:
            yield verdicts.get()


@dataclass(frozen=True, slots=True)
class Bench:
    """The set-up in which programs are judged: tests, sandbox, interpreter, limits."""

    suite: CodeSuite
    kind: SandboxSpec
    interpreter: Interpreter
    limits: ProgramLimits
    jobs: int = 1
    rules: JudgeRules = field(default_factory=JudgeRules)

    @property
    def judge(self) -> str:
        """The judge by name, for the protocol; an absent sandbox is part of it."""
        sandbox = "UNSAFE: no sandbox" if self.kind is SandboxKind.NONE else str(self.kind)
        sandbox += ", perhaps weak" if self.rules.allow_weak else ""
        strict = ", strict" if self.rules.strict else ""
        return (
            f"{JUDGE_NAMES[self.rules.judges]}{strict} ({sandbox}), "
            f"tests {self.suite.tests_fingerprint}, {self._limits}{self._python}"
        )

    def verdicts(self, work: Iterable[Work]) -> Iterator[tuple[int, CodeVerdict]]:
        """Judge programs; yields their positions with the verdicts, as they are made."""
        return judge_all(
            work,
            kind=self.kind,
            interpreter=self.interpreter,
            limits=self.limits,
            jobs=self.jobs,
            rules=self.rules,
        )

    @property
    def _python(self) -> str:
        """The Python that programs run on, and the packages they may import."""
        if isinstance(self.kind, Container):
            return f", {self.kind.python} of the image"
        names = self.interpreter.named
        everything = ", with all that is installed there" if self.interpreter.packages else ""
        packages = f", with {', '.join(names)}" if names else everything
        return f", Python {self.interpreter.version}{packages}"

    def protocol(self, attempts: int | None = None) -> Protocol:
        """The protocol of a run that is judged here."""
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
class JudgingChoice:
    """Sandbox, interpreter, packages, limits and judges for generated programs."""

    sandbox: str = "auto"  # or bubblewrap, landlock, docker:IMAGE, podman:IMAGE
    python: str | None = None  # the interpreter; in a container, its path there
    packages: tuple[str, ...] = ()  # installed ones that programs may import
    unsafe: bool = False  # no sandbox at all
    limits: ProgramLimits = field(default_factory=ProgramLimits)
    jobs: int | None = None  # workers; one per processor unless given
    rules: JudgeRules = field(default_factory=JudgeRules)

    def bench(self, suite: CodeSuite) -> Bench:
        """Choose the sandbox; refused where none, or not the one named, withstands its test."""
        only = read_sandbox(self.sandbox, self.python)
        in_container = isinstance(only, Container)
        if in_container and self.packages:
            raise InvalidValue(
                f"--with does not go with --sandbox {self.sandbox}: packages come with the image.",
                hint="Name an image in which they are installed.",
            )
        interpreter = find_interpreter(None if in_container else self.python, self.packages)
        weak = self.rules.allow_weak
        kind = (
            SandboxKind.NONE if self.unsafe else choose_sandbox(interpreter, only, allow_weak=weak)
        )
        jobs = self.jobs or os.cpu_count() or 1
        return Bench(suite, kind, interpreter, self.limits, jobs, self.rules)
