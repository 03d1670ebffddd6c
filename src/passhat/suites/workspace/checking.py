"""Checks of tasks before any attempt: the start must fail, the reference must pass.

They also find which tests the reference passes, by name: an attempt has to pass the same ones.
Results are kept by content, so that an unchanged task is checked once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from passhat.errors import InvalidValue
from passhat.judging.sandbox import SandboxFault
from passhat.stats.outcomes import Verdict
from passhat.suites.base import TaskCheck, fingerprint
from passhat.suites.workspace.changes import Change, Changes
from passhat.suites.workspace.definition import WorkspaceTask
from passhat.suites.workspace.places import Base, Places
from passhat.suites.workspace.results import FAILED, Expectation, TestRun, decide
from passhat.suites.workspace.testing import Tester

_VERSION = 3
_EXITS = {
    ".py": "import os\nos._exit(0)\n",
    **dict.fromkeys((".js", ".cjs", ".mjs", ".ts"), "process.exit(0);\n"),
    **dict.fromkeys((".sh", ".bash"), "exit 0\n"),
    ".rb": "exit!(0)\n",
    ".pl": "exit 0;\n",
    ".php": "<?php exit(0);\n",
}
_C_EXIT = (
    "\n#include <unistd.h>\n__attribute__((constructor)) static void leave(void) { _exit(0); }\n"
)
_C_FILES = (".c", ".cc", ".cpp", ".cxx")
_WEAK = (
    "code under test that ends its process with exit status 0 passes: take per-test results "
    '(result = "pytest", "tap" or "junit:FILE"), or set trust_exit = true'
)
_SIGNALS = 128
"""Exit statuses from here on are deaths by a signal."""
_PYTEST_FAILURES = 1
_IN_PROCESS = "in one process with the program: can be forged by it"
_APART = "the program runs apart from its tests: it can read them"
_WRITES_FILE = "the program can write the result file"
_UNKNOWN = "whether the program runs apart from its tests is not known"


@dataclass(frozen=True, slots=True)
class Readiness:
    """A task with its prepared start, ready for attempts."""

    base: Base
    expected: Expectation
    check: TaskCheck


class _Stored(msgspec.Struct):
    """A check as it is kept on disk."""

    check: TaskCheck
    expected: Expectation


class Checker:
    """Prepares and checks tasks, each once."""

    def __init__(self, tester: Tester, places: Places, jobs: int) -> None:
        self._tester = tester
        self._places = places
        self._limit = asyncio.Semaphore(jobs)
        self._ready: dict[str, asyncio.Task[Readiness]] = {}

    async def ready(self, task: WorkspaceTask, *, again: bool = False) -> Readiness:
        """The task's start and expectation; ``again`` does not take a stored check."""
        if again or task.id not in self._ready:
            self._ready[task.id] = asyncio.create_task(self._prepare(task, again=again))
        return await asyncio.shield(self._ready[task.id])

    async def _prepare(self, task: WorkspaceTask, *, again: bool) -> Readiness:
        async with self._limit:
            key = await asyncio.to_thread(fingerprint_start, task)
            try:
                base = await self._places.base(
                    task, key, lambda real, path: self._tester.prepare(task, real, path)
                )
            except (InvalidValue, OSError, SandboxFault) as error:
                problem = error.message if isinstance(error, InvalidValue) else str(error)
                empty = TaskCheck(task.id, (problem.rstrip("."),))
                return Readiness(Base(""), Expectation(), empty)
            file = await asyncio.to_thread(self._file, task, key)
            record = None if again else _load(file)
            if record is None:
                record = await self._check(task, base)
                _save(file, record)
        return Readiness(base, record.expected, record.check)

    def _file(self, task: WorkspaceTask, key: str) -> Path:
        parts = [_VERSION, key, task.judge_data(), task.reference_data(), str(self._tester.kind)]
        return self._places.root / "checks" / f"{fingerprint(parts)}.json"

    async def _check(self, task: WorkspaceTask, base: Base) -> _Stored:
        """Test the untouched start and the reference."""
        problems: list[str] = []
        notes: list[str] = []
        try:
            start, flaky = await self._test_twice(task, base, (), "the start")
            problems += flaky
            expected = expectation(task, start, None)
            if task.has_reference:
                changes = await self._tester.reference_changes(task, base)
                run, flaky = await self._test_twice(task, base, changes.changes, "the reference")
                expected = expectation(task, start, run)
                problems += flaky or _reference_problems(task, run, changes, expected)
                if not problems:
                    weak, promise = await self._try_exit(task, base, changes, expected)
                    problems += weak
                    notes.append(promise)
            else:
                notes.append("no reference solution: only the start was tested")
            if decide(task, start, expected).verdict is Verdict.PASSED:
                problems.insert(0, "the untouched start passes")
            elif early := sorted(start.passing & set(task.must_pass)):
                names = f"{early[0]} and {len(early) - 1} more" if len(early) > 1 else early[0]
                notes.append(f"passes at the start already: {names}")
        except (InvalidValue, SandboxFault) as error:
            message = error.message if isinstance(error, InvalidValue) else str(error)
            problems.append(message.rstrip("."))
            expected = Expectation()
        has_names = task.result.kind not in ("exit", "reward")
        if not problems and not expected.required and has_names:
            notes.append("no names of tests are known: a reference would tell them")
        return _Stored(TaskCheck(task.id, tuple(problems), tuple(notes)), expected)

    async def _test_twice(
        self, task: WorkspaceTask, base: Base, changes: Sequence[Change], what: str
    ) -> tuple[TestRun, list[str]]:
        """Test the same files twice; different results would be counted as an agent's failures."""
        run, again = [await self._tester.run_tests(task, base, changes) for _ in range(2)]
        names = sorted(
            name
            for name in {*run.outcomes, *again.outcomes}
            if run.outcomes.get(name) != again.outcomes.get(name)
        )
        if names:
            return run, [f"the tests are flaky: {names[0]} ends differently on {what}, twice run"]
        ends = [(one.end.status, one.end.over, one.reward, one.problem) for one in (run, again)]
        if ends[0] != ends[1]:
            return run, [f"the tests are flaky: they end differently on {what}, twice run"]
        return run, []

    async def _try_exit(
        self, task: WorkspaceTask, base: Base, changes: Changes, expected: Expectation
    ) -> tuple[list[str], str]:
        """Try code that ends the process it runs in with status 0.

        Returns a problem where that passes, and the promise of the task's results: tests that are
        then not reported at all ran in that process.
        """
        exits = [exit_at_once(change) for change in changes.changes]
        writes_file = bool(task.result.path)
        if all(change is None for change in exits):
            return [], _WRITES_FILE if writes_file else _UNKNOWN
        hostile = [new or old for new, old in zip(exits, changes.changes, strict=True)]
        run = await self._tester.run_tests(task, base, hostile)
        passes = decide(task, run, expected).verdict is Verdict.PASSED
        is_gone = bool(expected.required - set(run.outcomes))
        promise = _IN_PROCESS if passes or is_gone else _APART
        if writes_file and promise is _APART:
            promise = _WRITES_FILE
        return [_WEAK] if passes and not task.trust_exit else [], promise


def exit_at_once(change: Change) -> Change | None:
    """The same file with code that ends its process; ``None`` where no way is known."""
    suffix = Path(change.path).suffix
    if change.content is None:
        return None
    if suffix in _EXITS:
        return replace(change, content=_EXITS[suffix].encode())
    if suffix in _C_FILES:
        return replace(change, content=change.content + _C_EXIT.encode())
    return None


def fingerprint_start(task: WorkspaceTask) -> str:
    """The key of a prepared start: its content and its set-up."""
    return fingerprint([task.start.digest, task.setup, task.image]) + task.start.digest[:8]


def expectation(task: WorkspaceTask, start: TestRun, reference: TestRun | None) -> Expectation:
    """Outcomes that a passing attempt must have, by the reference or by the task's own lists."""
    names = frozenset((*task.must_pass, *task.must_stay))
    if reference is None:
        # The start's failures are for the agent to fix; none may be left.
        statuses = {0, _PYTEST_FAILURES} if names and task.result.kind == "pytest" else {0}
        return Expectation(names or start.passing, bool(names), frozenset(statuses))
    failures = FAILED in reference.outcomes.values()
    status = reference.end.status
    has_results = bool(reference.passing) or reference.reward is not None
    statuses = {0, status} if has_results and status < _SIGNALS else {0}
    if names and task.result.kind == "pytest":
        statuses.add(_PYTEST_FAILURES)  # only the named tests count, and others may fail
    return Expectation(names or reference.passing, bool(names) or failures, frozenset(statuses))


def _reference_problems(
    task: WorkspaceTask, run: TestRun, changes: Changes, expected: Expectation
) -> list[str]:
    judgement = decide(task, run, expected)
    if judgement.verdict is Verdict.PASSED:
        return []
    problems = [f"the reference fails: {judgement.detail}"]
    if changes.refused:
        path, why = changes.refused[0]
        problems.append(f"its change of {path} was left out: {why}")
    elif not changes.changes:
        problems.append("it changes nothing")
    else:
        lines = (run.end.output + run.end.errors).strip().splitlines()
        problems += [f"the tests' last line: {lines[-1][:200]}"] if lines else []
    return problems


def _load(file: Path) -> _Stored | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Stored)
    except (OSError, msgspec.DecodeError):
        return None


def _save(file: Path, record: _Stored) -> None:
    """Keep a check; a broken one is made again the next time."""
    if record.check.problems:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_bytes(msgspec.json.encode(record))
    new.rename(file)
