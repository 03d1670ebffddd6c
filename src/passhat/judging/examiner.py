"""One program against its hidden tests: two sandboxes, a channel between, one verdict.

The tests are somebody's code too, and some of them evaluate what a program returns. So they run
behind the same walls, in a sandbox of their own that the program cannot see.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from passhat.judging.inside import wire
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import Ended, Sandbox, SandboxFault, SandboxSpec, sealed
from passhat.judging.sandbox_kinds import ProgramLimits
from passhat.judging.tasks import Case, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason

__all__ = ["Examiner"]

_TRIES = 20
_LONGEST_PAUSE = 1.0


class Examiner:
    """A worker: the sandbox of programs and the sandbox of tests, used one judgement at a time."""

    def __init__(self, kind: SandboxSpec, interpreter: Interpreter, limits: ProgramLimits) -> None:
        self._limits = limits
        self._abandoned = False
        self.programs = Sandbox(kind, interpreter, limits)
        self.tests = Sandbox(kind, interpreter, limits)

    def start(self) -> None:
        """Start both sandboxes, unless they are running."""
        for sandbox in (self.programs, self.tests):
            sandbox.launch()
        for sandbox in (self.programs, self.tests):
            sandbox.greet()

    def close(self) -> None:
        self.programs.close()
        self.tests.close()

    def abandon(self) -> None:
        """End what is going on, from another thread: it is missing, and nothing follows it."""
        self._abandoned = True
        self.programs.abandon()
        self.tests.abandon()

    def judge(self, task: CodeTask, program: str) -> CodeVerdict:
        """Judge a program. A broken sandbox is replaced and the judgement made again."""
        fault = ""
        for tries in range(_TRIES):
            if self._abandoned:
                break
            try:
                self.start()
                return self._cases(task, program) if task.cases else self._tests(task, program)
            except wire.NotPlain as error:
                return CodeVerdict.failed(FailureCategory.FORMAT_ERROR, f"the program has {error}")
            except SandboxFault as error:
                fault = str(error)
                self.close()
                # What breaks once is replaced at once; what keeps breaking may need a moment.
                time.sleep(min(0.01 * 2**tries, _LONGEST_PAUSE) if tries else 0)
        if self._abandoned:
            return CodeVerdict.missing(MissingReason.STOPPED, "the judge was closed")
        return CodeVerdict.missing(MissingReason.SANDBOX_ERROR, f"{_TRIES} times: {fault}")

    # -- tests in Python -------------------------------------------------------------------------

    def _tests(self, task: CodeTask, program: str) -> CodeVerdict:
        mine, theirs = socket.socketpair()
        with mine, theirs:
            with _shown(_program(program)) as brief:
                self.programs.submit("program", [brief, theirs.fileno()])
            with _shown(_briefing(task)) as brief:
                self.tests.submit("tests", [brief, mine.fileno()])
        examined = self.tests.wait()
        self.programs.stop(ending=_says_gone(examined))
        lived = self.programs.wait()
        judgement = _verdict(examined, lived, self._limits)
        return replace(judgement, seconds=lived.seconds, cpu_seconds=lived.cpu)

    # -- scripts with input and output -----------------------------------------------------------

    def _cases(self, task: CodeTask, program: str) -> CodeVerdict:
        seconds = cpu = 0.0
        judgement = CodeVerdict.passed()
        for number, case in enumerate(task.cases, 1):
            judgement, ended = self._case(case, program, f"case {number}")
            seconds, cpu = seconds + ended.seconds, cpu + ended.cpu
            if not judgement.verdict:
                break
        return replace(judgement, seconds=seconds, cpu_seconds=cpu)

    def _case(self, case: Case, program: str, where: str) -> tuple[CodeVerdict, Ended]:
        reading, writing = os.pipe()
        given = sealed(case.given)
        try:
            with _shown(_program(program)) as brief:
                self.programs.submit("script", [brief, given, writing])
            os.close(writing)
            writing = -1
            output = self._collect(reading)
            ended = self.programs.wait()
        finally:
            for descriptor in (reading, writing, given):
                if descriptor >= 0:
                    os.close(descriptor)
        return _script_verdict(case, output, ended, where, self._limits), ended

    def _collect(self, reading: int) -> bytes:
        """What the script prints, up to the limit; beyond it the script is stopped."""
        parts: list[bytes] = []
        size = 0
        waiting = select.poll()
        waiting.register(reading, select.POLLIN)
        while size <= self._limits.output:
            if not waiting.poll(self._limits.wall_seconds * 1000 + 20_000):
                raise SandboxFault("the script neither prints nor ends")
            part = os.read(reading, 1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        self.programs.stop()
        return b"".join(parts)


@contextmanager
def _shown(content: bytes) -> Iterator[int]:
    """A descriptor on some content, closed afterwards."""
    descriptor = sealed(content)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@lru_cache(maxsize=512)
def _briefing(task: CodeTask) -> bytes:
    """What the tests' sandbox is told; the same for every attempt at a task."""
    return wire.framed(json.dumps(task.brief()).encode())


def _program(text: str) -> bytes:
    return wire.framed(json.dumps({"program": text}).encode())


def _says_gone(examined: Ended) -> bool:
    match examined.words[-1] if examined.words else None:
        case ["examined", "gone", str(), str()]:
            return True
    return False


def _verdict(examined: Ended, lived: Ended, limits: ProgramLimits) -> CodeVerdict:
    """From the tests' word; only when the program is gone, from how it went."""
    if examined.why in ("cpu", "wall"):
        return CodeVerdict.missing(
            MissingReason.JUDGE_ERROR, f"the tests ran out of time ({examined.why})"
        )
    if examined.status == -signal.SIGKILL:
        raise SandboxFault("the tests' process was killed from outside")
    last = examined.words[-1] if examined.words else None
    match last:
        case ["examined", "passed", str(), str()]:
            return CodeVerdict.passed()
        case ["examined", "failed", str(word), str(detail)]:
            return CodeVerdict.failed(word, detail)
        case ["examined", "gone", str(), str()]:
            return _departure(lived, limits)
        case ["examined", "unsupported", str(), str(detail)]:
            return CodeVerdict.missing(MissingReason.UNSUPPORTED, detail)
        case ["examined", "judge_error", str(), str(detail)]:
            return CodeVerdict.missing(MissingReason.JUDGE_ERROR, detail)
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
    return CodeVerdict.missing(
        MissingReason.JUDGE_ERROR, f"the tests ended without a verdict (status {examined.status})"
    )


def _departure(lived: Ended, limits: ProgramLimits) -> CodeVerdict:
    """The failure of a program that went away while it was asked something."""
    match lived.words[-1] if lived.words else None:
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
        case None:
            raise SandboxFault("the program's process never began")
    if lived.why == "cpu" or lived.cpu > limits.cpu_seconds:
        return CodeVerdict.failed(FailureCategory.TIMEOUT, f"{lived.cpu:.1f} s of processor time")
    if lived.why == "wall":
        return CodeVerdict.failed(
            FailureCategory.TIMEOUT, f"{lived.seconds:.0f} s on the wall clock"
        )
    if lived.why == "files":
        return CodeVerdict.failed(FailureCategory.SANDBOX_VIOLATION, "too many files in /tmp")
    if lived.why == "stopped":
        return CodeVerdict.failed(
            FailureCategory.SANDBOX_VIOLATION, "the program closed the judge's channel"
        )
    if lived.status == -signal.SIGKILL:
        # Nobody here sent that signal: the machine ran out of memory, or somebody interfered.
        raise SandboxFault("the program's process was killed from outside")
    if lived.status < 0:
        name = signal.Signals(-lived.status).name
        return CodeVerdict.failed(FailureCategory.EXCEPTION, f"the process died of {name}")
    return CodeVerdict.failed(
        FailureCategory.EXCEPTION, f"the program ended its own process (status {lived.status})"
    )


def _script_verdict(
    case: Case, output: bytes, ended: Ended, where: str, limits: ProgramLimits
) -> CodeVerdict:
    if len(output) > limits.output:
        return CodeVerdict.failed(
            FailureCategory.WRONG_ANSWER, f"{where}: printed more than {limits.output:,} bytes"
        )
    last = ended.words[-1] if ended.words else None
    match last:
        case ["failed", str(word), str(detail)]:
            return CodeVerdict.failed(word, f"{where}: {detail}")
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
    if ended.why != "ended" or ended.status != 0:
        found = _departure(ended, limits)
        return replace(found, detail=f"{where}: {found.detail}")
    if not case.accepts(output):
        return CodeVerdict.failed(FailureCategory.WRONG_ANSWER, f"{where}: the output differs")
    return CodeVerdict.passed()
