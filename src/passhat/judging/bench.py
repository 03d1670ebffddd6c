"""What a user chose about judging, and the bench that comes of it: tests, sandbox, limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from passhat.errors import InvalidValue
from passhat.judging import JUDGE_NAMES
from passhat.judging.interpreters import Interpreter, find_interpreter
from passhat.judging.pool import Work, judge_all
from passhat.judging.sandbox_check import choose_sandbox
from passhat.judging.sandbox_kinds import (
    Container,
    JudgeRules,
    ProgramLimits,
    SandboxKind,
    SandboxSpec,
    read_sandbox,
)
from passhat.judging.tasks import CodeSuite
from passhat.judging.verdict import CodeVerdict
from passhat.protocol import Protocol

__all__ = ["Bench", "JudgingChoice"]


@dataclass(frozen=True, slots=True)
class Bench:
    """With what programs are judged: the suite's tests, the sandbox, the interpreter, limits."""

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
class JudgingChoice:
    """Sandbox, interpreter, packages, limits and judges for generated programs.

    Parameters
    ----------
    sandbox : str
        ``auto``, ``bubblewrap``, ``landlock``, ``docker:IMAGE`` or ``podman:IMAGE``.
    python : str, optional
        The interpreter; in a container, its path there.
    packages : tuple of str
        Installed packages that programs may import.
    unsafe : bool
        No sandbox at all.
    jobs : int, optional
        Workers; one per processor unless given.
    """

    sandbox: str = "auto"
    python: str | None = None
    packages: tuple[str, ...] = ()
    unsafe: bool = False
    limits: ProgramLimits = field(default_factory=ProgramLimits)
    jobs: int | None = None
    rules: JudgeRules = field(default_factory=JudgeRules)

    def bench(self, suite: CodeSuite) -> Bench:
        """Choose the sandbox. Refuses, before anything is run, when there is none.

        Raises
        ------
        SandboxUnavailable
            When no sandbox, or not the one that was named, withstands the self-test.
        """
        only = read_sandbox(self.sandbox, self.python)
        contained = isinstance(only, Container)
        if contained and self.packages:
            raise InvalidValue(
                f"--with does not go with --sandbox {self.sandbox}: packages come with the image.",
                hint="Name an image in which they are installed.",
            )
        interpreter = find_interpreter(None if contained else self.python, self.packages)
        weak = self.rules.allow_weak
        kind = (
            SandboxKind.NONE if self.unsafe else choose_sandbox(interpreter, only, allow_weak=weak)
        )
        jobs = self.jobs or os.cpu_count() or 1
        return Bench(suite, kind, interpreter, self.limits, jobs, self.rules)
