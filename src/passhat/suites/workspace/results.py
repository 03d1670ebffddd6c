"""Results of a test command: exit status, JUnit XML, TAP, a reward file, or pytest's own reports.

``Outcomes of tests by name -> verdict``: which tests must have passed is known from the reference,
which no agent has seen. A report that lacks one of them, however it says "passed", does not pass.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import socket
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.stats.outcomes.rewards import REWARD_TOLERANCE
from passhat.suites.base import Judgement
from passhat.suites.workspace.definition import WorkspaceTask
from passhat.suites.workspace.walls import CommandEnd

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_HERE = Path(__file__).parent
_KEEP_ASSERT = """
const assert = require('assert');
for (const part of [assert, assert.strict, require('node:test')]) Object.freeze(part);
"""
"""Loaded by node before anything else: code under test could make assert accept anything."""
_CONTROLS = """
import unittest

def test_assert_fails():
    values = [1]
    assert values == [2]

def test_raise_fails():
    raise ValueError("a control")

class TestUnit(unittest.TestCase):
    def test_equal_fails(self):
        self.assertEqual(1, 2)

    def test_true_fails(self):
        self.assertTrue(False)
"""
_CONTROL_COUNT = 4
_LARGEST_REPORT = 16 << 20
_MOST_NAMES = 5
_TAP = re.compile(r"^(\s*)(not )?ok\b(?:\s+(\d+))?(?:\s*-)?\s*([^#\n]*?)\s*(?:#\s*(\w+).*)?$")
_PLAN = re.compile(r"^(\s*)1\.\.(\d+)")


@dataclass(frozen=True, slots=True)
class TestRun:
    """Outcomes of one run of a test command.

    ``problem`` says why they cannot be trusted or read; ``reward`` is the number of a reward file.
    """

    __test__ = False  # no test class, whatever its name

    end: CommandEnd
    outcomes: Mapping[str, str] = field(default_factory=dict)
    reward: float | None = None
    problem: str = ""
    is_tampered: bool = False

    @property
    def passing(self) -> frozenset[str]:
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == PASSED)


# -- pytest ----------------------------------------------------------------------------------------


class PytestReport:
    """The judge's end of the plug-in that reports tests; see ``report_tests.py``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        token = secrets.token_hex(8)
        self.module = f"report_{token}"
        shutil.copyfile(_HERE / "report_tests.py", folder / f"{self.module}.py")
        shutil.copyfile(_HERE / "trusted_start.py", folder / "sitecustomize.py")
        (folder / "keep_assert.cjs").write_text(_KEEP_ASSERT)
        (folder / f"controls_{token}.py").write_text(_CONTROLS)
        self._socket = socket.socket(socket.AF_UNIX)
        self._place = folder / "s"
        # The path of a socket may have 107 bytes; a folder of the descriptor table is short.
        with _short_path(folder) as short:
            self._socket.bind(f"{short}/s")
        self._socket.listen(64)
        self._sessions: list[list[dict[str, object]]] = []
        self._threads: list[threading.Thread] = []
        self._over = False
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def environment(self, folder: str) -> dict[str, str]:
        """Variables for the test command; ``folder`` is its path in the sandbox."""
        return {
            "PYTHONPATH": folder,
            "PYTEST_PLUGINS": self.module,
            "PASSHAT_REPORT": f"{folder}/s",
            "NODE_OPTIONS": f'--require "{folder}/keep_assert.cjs"',
        }

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if self._over:
                connection.close()
                return
            session: list[dict[str, object]] = []
            self._sessions.append(session)
            thread = threading.Thread(target=self._receive, args=(connection, session), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _receive(self, connection: socket.socket, session: list[dict[str, object]]) -> None:
        data = bytearray()
        with connection, suppress(OSError):
            while (part := connection.recv(1 << 16)) and len(data) < _LARGEST_REPORT:
                data += part
        for line in bytes(data).splitlines():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            session.append(message if isinstance(message, dict) else {"unreadable": True})

    def close(self) -> None:
        """Take what was sent, once the command has ended."""
        self._over = True
        with (
            suppress(OSError),
            _short_path(self.folder) as short,
            socket.socket(socket.AF_UNIX) as waker,
        ):
            waker.connect(f"{short}/s")
        self._acceptor.join(5)
        self._socket.close()
        for thread in self._threads:
            thread.join(5)

    @property
    def is_used(self) -> bool:
        return bool(self._sessions)

    def read(self) -> tuple[dict[str, str], str]:
        """Outcomes by test, and why they are not to be trusted; empty if they are."""
        outcomes: dict[str, str] = {}
        problem = ""
        controls = 0
        for session in self._sessions:
            if not any("end" in message for message in session):
                problem = problem or "pytest ended before its tests did"
            for message in session:
                outcome = str(message.get("outcome"))
                if "control" in message:
                    controls += 1
                    if outcome != FAILED:
                        problem = "a control passed that must fail: the tests were tampered with"
                elif "test" in message:
                    name = str(message["test"])
                    if outcomes.get(name) != FAILED:  # the worst of set-up, call and tear-down
                        outcomes[name] = outcome
                elif "begin" not in message and "end" not in message:
                    problem = problem or "unreadable reports of tests"
        if self._sessions and controls < _CONTROL_COUNT:
            problem = problem or "the controls, tests that must fail, were not run"
        return outcomes, problem


@contextmanager
def _short_path(folder: Path) -> Iterator[str]:
    """A path below /proc for a folder whose own path may be too long for a socket."""
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


# -- other results ---------------------------------------------------------------------------------


def read_results(
    task: WorkspaceTask, end: CommandEnd, folder: Path, report: PytestReport | None
) -> TestRun:
    """Read the results of a command; ``folder`` holds the result file, if there is one."""
    kind, path = task.result.kind, task.result.path
    outcomes: dict[str, str] = {}
    reward: float | None = None
    problem = ""
    if kind == "tap":
        outcomes, problem = read_tap(end.output)
    elif kind in ("junit", "reward"):
        text, problem = _read_file(folder, path)
        if not problem and kind == "junit":
            outcomes, problem = read_junit(text)
        elif not problem:
            reward, problem = read_reward(text)
    if report is not None and report.is_used:
        # Beside those of a file or an output, which the code under test can write itself.
        reports, why = report.read()
        return TestRun(end, {**outcomes, **reports}, reward, why or problem, bool(why))
    if kind == "pytest":
        problem = "pytest did not report to the judge"
    return TestRun(end, outcomes, reward, problem)


def _read_file(folder: Path, path: str) -> tuple[str, str]:
    """The text of a result file, which must be a plain file; and why it cannot be read."""
    place = folder / path.lstrip("/")
    try:
        parents = [part for part in place.parents if folder in part.parents]
        if any(part.is_symlink() for part in (place, *parents)):
            return "", f"the result file {path} is a link"
        if not place.is_file():
            return "", f"the tests wrote no {path}"
        if place.stat().st_size > _LARGEST_REPORT:
            return "", f"the result file {path} is larger than 16 MiB"
        return place.read_text(encoding="utf-8", errors="replace"), ""
    except OSError as error:
        return "", f"the result file {path} cannot be read ({error.strerror})"


def read_tap(text: str) -> tuple[dict[str, str], str]:
    """Outcomes in TAP (Test Anything Protocol), and what is wrong with it."""
    outcomes: dict[str, str] = {}
    plans: list[int] = []
    count = 0
    for line in text.splitlines():
        if line.startswith("Bail out!"):
            return outcomes, "the tests bailed out"
        if (plan := _PLAN.match(line)) and not plan[1]:
            plans.append(int(plan[2]))
        if (result := _TAP.match(line)) is None:
            continue
        indent, wrong, number, description, directive = result.groups()
        count += not indent
        name = unique_name(description or f"test {number}", outcomes)
        if (directive or "").upper() in ("SKIP", "TODO"):
            outcomes[name] = SKIPPED
        else:
            outcomes[name] = FAILED if wrong else PASSED
    if len(plans) != 1:
        return outcomes, "no plan (1..N) in the TAP output" if not plans else "several TAP plans"
    if plans[0] != count:
        return outcomes, f"the TAP plan has {plans[0]} tests, and {count} were reported"
    return outcomes, ""


def unique_name(name: str, taken: Mapping[str, str]) -> str:
    """The name, numbered where it is taken."""
    if name not in taken:
        return name
    return next(new for i in range(2, len(taken) + 3) if (new := f"{name} ({i})") not in taken)


def read_junit(text: str) -> tuple[dict[str, str], str]:
    """Outcomes in JUnit XML by class and name, and what is wrong with it."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return {}, "the JUnit file declares entities"
    try:
        root = ET.fromstring(text)  # entities are refused above
    except ET.ParseError as error:
        return {}, f"the JUnit file is not XML ({error})"
    outcomes: dict[str, str] = {}
    for case in root.iter("testcase"):
        label = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        tags = {child.tag for child in case}
        outcome = FAILED if tags & {"failure", "error"} else PASSED
        name = unique_name(label or "test", outcomes)
        outcomes[name] = SKIPPED if "skipped" in tags and outcome == PASSED else outcome
    return outcomes, "" if outcomes else "the JUnit file holds no test"


def read_reward(text: str) -> tuple[float | None, str]:
    """The number of a reward file: ``0.5``, or JSON with a key ``reward``."""
    try:
        data = json.loads(text)
        reward = float(data["reward"] if isinstance(data, dict) else data)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None, f"the reward file should hold a number, not {text[:40].strip()!r}"
    if not (math.isfinite(reward) and 0 <= reward <= 1):
        return None, f"the reward must lie between 0 and 1, not {reward:g}"
    return reward, ""


# -- the verdict -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expectation:
    """Outcomes that a passing attempt has.

    ``required`` are names of tests. ``others_may_fail`` holds where the task names its tests or the
    reference has failing ones; ``statuses`` are exit statuses of a test command that ran to its
    own end: 0 and the reference's, never one of a signal.
    """

    required: frozenset[str] = frozenset()
    others_may_fail: bool = False
    statuses: frozenset[int] = frozenset({0})


def decide(task: WorkspaceTask, run: TestRun, expected: Expectation) -> Judgement:
    """The verdict on an attempt by the results of its tests."""
    end = run.end
    if end.over == "time":
        seconds = f"the tests took longer than {task.limits.seconds:g} s"
        return Judgement.failed(FailureCategory.TIMEOUT, seconds)
    if end.over == "disk":
        return Judgement.failed(FailureCategory.SANDBOX_VIOLATION, "the tests filled the disk")
    if run.problem:
        is_attack = run.is_tampered
        category = FailureCategory.SANDBOX_VIOLATION if is_attack else FailureCategory.WRONG_ANSWER
        status = f" (exit status {end.status})" if end.status else ""
        return Judgement.failed(category, run.problem + status)
    failed = {name for name, outcome in run.outcomes.items() if outcome == FAILED}
    lacking = expected.required - run.passing
    wrong = lacking if expected.others_may_fail else lacking | failed
    has_ended = end.status in expected.statuses
    if run.reward is not None and (has_ended or run.reward < task.pass_at - REWARD_TOLERANCE):
        return _decide_reward(task, run.reward, wrong)
    total = len(expected.required | (set() if expected.others_may_fail else run.passing | failed))
    score = None if not total else round(1 - len(wrong) / total, 6)
    if wrong:
        absent = sorted(wrong - set(run.outcomes))
        names = _names(sorted(wrong))
        text = f"{len(wrong)} of {total} tests did not pass: {names}"
        text += f" ({len(absent)} were not run)" if absent else ""
        return replace(Judgement.failed(FailureCategory.WRONG_ANSWER, text), score=score)
    if not has_ended:
        text = f"the test command ended (exit status {end.status})"
        return replace(Judgement.failed(FailureCategory.WRONG_ANSWER, text), score=0.0)
    if task.result.kind != "exit" and not run.passing:
        return Judgement.failed(FailureCategory.WRONG_ANSWER, "no test passed")
    return Judgement(Verdict.PASSED, score=1.0)


def _decide_reward(task: WorkspaceTask, reward: float, wrong: Set[str]) -> Judgement:
    if reward >= task.pass_at - REWARD_TOLERANCE and not wrong:
        return Judgement(Verdict.PASSED, score=reward)
    text = f"the reward is {reward:g}, and {task.pass_at:g} passes"
    if wrong:
        text = f"the reward is {reward:g}, and these tests did not pass: {_names(sorted(wrong))}"
        reward = min(reward, 1 - 1e-6)
    return replace(Judgement.failed(FailureCategory.WRONG_ANSWER, text), score=reward)


def _names(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + rest
