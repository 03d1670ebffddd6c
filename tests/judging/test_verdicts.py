"""From what both judges say to one verdict, over all that they may say; and how executions go.

``verdicts.json`` has the verdict for every answer of split, of plain and about the reference, and
the course of judgements over sandboxes that are none: what is submitted, and what comes of it.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kept_results import check_results
from passhat.judging import examiner as examiner_module
from passhat.judging.examiner import Examiner, References
from passhat.judging.inside import wire
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import Ended, SandboxFault
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, SandboxKind
from passhat.judging.tasks import Case, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import MissingReason, Verdict

HERE = Path(__file__).parent
LIMITS = ProgramLimits(cpu_seconds=2.0, output=10)
PLAIN = {
    "passed": CodeVerdict(Verdict.PASSED, seconds=1.0, cpu_seconds=0.5),
    "failed": CodeVerdict.failed("KeyError", "x"),
    "missing": CodeVerdict.missing(MissingReason.UNSUPPORTED, "no plain"),
}
SPLIT = {
    **PLAIN,
    "passed exactly": CodeVerdict(Verdict.PASSED, is_exact=True),
    "passed with objects": CodeVerdict(Verdict.PASSED, objects=("f(): an object", "g: a class")),
    "failed exactly": CodeVerdict(Verdict.FAILED, "wrong_answer", "4", is_exact=True),
    "late": CodeVerdict.failed("timeout", "2 s"),
    "broken": CodeVerdict.missing(MissingReason.JUDGE_ERROR, "the tests raise"),
    "no sandbox": CodeVerdict.missing(MissingReason.SANDBOX_ERROR, "gone"),
}
REFERENCE = {
    "none": None,
    "passes": (CodeVerdict.passed(), CodeVerdict.passed()),
    "passes with an object": (
        CodeVerdict(Verdict.PASSED, objects=("g: a class", "f(): an object", "h")),
        CodeVerdict.passed(),
    ),
    "in plain alone": (CodeVerdict.missing(MissingReason.UNSUPPORTED, "s"), CodeVerdict.passed()),
    "fails": (CodeVerdict.failed("timeout", "r"), CodeVerdict.failed("memory", "r")),
}


class _Answers(Examiner):
    """An examiner whose judges answer as they are told."""

    def __init__(self, rules: JudgeRules, said: dict[tuple[str, str], CodeVerdict]) -> None:
        self._rules, self._references, self._said = rules, References(), said
        self.asked: list[str] = []

    def _judge_with_retries(self, task: CodeTask, program: str, judge: str) -> CodeVerdict:
        del task
        whose = "reference" if "right" in program else "program"
        self.asked.append(f"{judge} {whose}")
        return self._said[whose, judge]


def _combinations() -> dict[str, str]:
    """For split, plain and reference: the verdict, its seconds and judges, and what was asked."""
    rows: dict[str, str] = {}
    for judges, strict in (("both", False), ("both", True), ("split", False), ("plain", False)):
        rules = f"{judges}{', strict' if strict else ''}"
        for (split, plain), reference in itertools.product(
            itertools.product(SPLIT, PLAIN), REFERENCE
        ):
            said = {("program", "split"): SPLIT[split], ("program", "plain"): PLAIN[plain]}
            if verdicts := REFERENCE[reference]:
                said["reference", "split"], said["reference", "plain"] = verdicts
            examiner = _Answers(JudgeRules(judges=judges, strict=strict), said)
            task = CodeTask("t", tests="assert f()", canonical="right" if verdicts else "")
            verdict = examiner.judge(task, "program")
            parts = [verdict.words, f"{verdict.seconds:g}", str(verdict.is_exact)]
            parts += [" | ".join(" ".join(pair) for pair in verdict.judges)]
            row = "; ".join([*parts, ", ".join(examiner.asked)])
            rows[f"{rules}: {split}, {plain}, {reference}"] = row
    return rows


# -- executions ------------------------------------------------------------------------------------


class _Sandbox:
    """A sandbox in which nothing runs: executions end as they are told."""

    has_namespaces = True
    kind = SandboxKind.LANDLOCK

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name
        self.ends: list[Ended | Exception] = []
        self.control = -1

    def launch(self) -> None:
        pass

    greet = launch

    def close(self) -> None:
        self.log.append(f"{self.name} closed")

    abandon = close

    def submit(self, kind: str, brief: bytes, files: list[int], *, processes: bool = False) -> None:
        parts = sorted(json.loads(brief[4:]))
        words = [kind, f"{len(files)} files", "processes" * processes, *parts[:3]]
        self.log.append(f"{self.name}: {' '.join(word for word in words if word)}")
        if kind == "series":
            self.control = os.dup(files[0])
        elif kind == "script":
            os.write(files[1], SCRIPTED.pop(0))

    def stop(self, *, ending: bool = False, waited: bool = False) -> None:
        self.log.append(f"{self.name} stopped{' at its end' * ending}{' waited' * waited}")

    def wait(self) -> Ended:
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


SCRIPTED: list[bytes] = []


class _Patience:
    """Waits for nothing; a series gets the answer that is next."""

    answers: ClassVar[list[Any]] = []

    def __init__(self, sandboxes: list[_Sandbox], limits: ProgramLimits) -> None:
        assert limits is LIMITS
        self.tests = sandboxes[1]

    def wait(self, awaited: object, ended: _Sandbox) -> None:
        ended.log.append(f"waited for {getattr(awaited, 'name', type(awaited).__name__)}")
        if isinstance(awaited, examiner_module._Series):
            wire.receive(self.tests.control)
            answer = self.answers.pop(0)
            if answer is None:
                os.close(self.tests.control)
            else:
                wire.send(self.tests.control, answer)


def _end(*words: Any, why: str = "ended", status: int = 0, **parts: Any) -> Ended:
    values = {"cpu": 0.25, "seconds": 0.5, "waiting": False, **parts}
    return Ended(why, status, words=(["started"], *words), **values)


TESTS = CodeTask("t", tests="import math\nassert f() == math.pi")
PURE = CodeTask("p", entry_point="f", tests="def check(f):\n    assert f(1) == 2")
SCRIPT = CodeTask("s", cases=(Case(b"1", b"2"), Case(b"2", b"4")))
PASSED = _end(["examined", "passed", "", "", True, []])
REFUSED = _end(["examined", "failed", "OSError", "[Errno 1] no", True, []])
GONE = _end(["examined", "gone", "", "3", True, []])
YES, NO = ["passed", "", "", True, []], ["failed", "wrong_answer", "4", True, []]
FAULT = SandboxFault("lost")
COURSES: dict[str, dict[str, Any]] = {
    "split": {"task": TESTS, "tests": [PASSED], "programs": [_end()]},
    "split of a program that is gone": {
        "task": TESTS, "tests": [GONE], "programs": [_end(status=3)],
    },
    "a refusal, then with processes": {
        "task": TESTS, "tests": [REFUSED, PASSED], "programs": [_end(), _end()],
    },
    "a refusal without processes": {
        "task": TESTS, "tests": [REFUSED], "programs": [_end()], "weak": True,
    },
    "processes from the beginning": {
        "task": TESTS, "tests": [REFUSED], "programs": [_end()], "open": True,
    },
    "a sandbox that breaks twice": {
        "task": TESTS, "tests": [FAULT, FAULT, PASSED], "programs": [_end()] * 3,
    },
    "one that keeps breaking": {
        "task": TESTS, "tests": [FAULT] * 20, "programs": [_end()] * 20,
    },
    "a series": {
        "task": PURE, "answers": [[*YES, True], [*NO, True]], "programs": [_end(), _end()],
        "tests": [], "times": 2,
    },
    "a series that ends": {
        "task": PURE, "answers": [[*NO, False], [*YES, True]], "programs": [_end(), _end()],
        "tests": [_end()], "times": 2,
    },
    "a series that breaks at once": {
        "task": PURE, "answers": [None], "programs": [_end()], "tests": [_end(why="cpu")],
    },
    "a series that breaks later": {
        "task": PURE, "answers": [[*YES, True], None, [*NO, True]], "programs": [_end()] * 3,
        "tests": [_end()], "times": 2,
    },
    "a series that is used up": {
        "task": PURE, "answers": [[*YES, True]] * 17, "programs": [_end()] * 17, "tests": [_end()],
        "times": 17,
    },
    "a script": {"task": SCRIPT, "printed": [b"2\n", b"4"], "programs": [_end(), _end()]},
    "a script that is wrong": {"task": SCRIPT, "printed": [b"3"], "programs": [_end()]},
    "a script that is wrong later": {
        "task": SCRIPT, "printed": [b"2", b"5"], "programs": [_end(), _end()],
    },
    "a script that prints much": {
        "task": SCRIPT, "printed": [b"x" * 11], "programs": [_end(why="stopped")],
    },
    "a script that prints as much as it may": {
        "task": SCRIPT, "printed": [b"x" * 10], "programs": [_end()],
    },
    "a script that raises": {
        "task": SCRIPT, "printed": [b""],
        "programs": [_end(status=1, written=b"Traceback\nlib.Odd: why\n")],
    },
}  # fmt: skip


def _course(course: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    log: list[str] = []
    names = iter(("programs", "tests"))
    monkeypatch.setattr(examiner_module, "Sandbox", lambda *_, **__: _Sandbox(log, next(names)))
    monkeypatch.setattr(examiner_module, "Patience", _Patience)
    sleep: Callable[[float], None] = lambda seconds: log.append(f"paused {seconds:g}")  # noqa: E731
    monkeypatch.setattr("passhat.judging.examiner.time.sleep", sleep)
    _Patience.answers, SCRIPTED[:] = list(course.get("answers", ())), course.get("printed", ())
    interpreter: Any = Interpreter
    judge = Examiner(SandboxKind.LANDLOCK, interpreter, LIMITS, JudgeRules(judges="split"))
    programs: Any = judge.programs
    tests: Any = judge.tests
    programs.ends, tests.ends = list(course["programs"]), list(course.get("tests", ()))
    programs.has_namespaces = not course.get("weak")
    judge.open_at_once = bool(course.get("open"))
    verdicts = []
    for _ in range(course.get("times", 1)):
        verdict = judge.judge(course["task"], "def f(): pass")
        verdicts.append([verdict.words, verdict.seconds, verdict.cpu_seconds, verdict.is_exact])
    left = [len(programs.ends), len(tests.ends), len(_Patience.answers)]
    if judge._series is not None:
        judge._series.close()
    return {"verdicts": verdicts, "left": left, "log": log}


def test_the_whole_verdicts_and_courses(monkeypatch: pytest.MonkeyPatch) -> None:
    results: dict[str, object] = dict(_combinations())
    for name, course in COURSES.items():
        results[name] = _course(course, monkeypatch)
    check_results(HERE / "verdicts.json", results)


def test_an_examiner_that_is_abandoned_judges_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []
    monkeypatch.setattr(examiner_module, "Sandbox", lambda *_, **__: _Sandbox(log, "sandbox"))
    interpreter: Any = Interpreter
    judge = Examiner(SandboxKind.LANDLOCK, interpreter, LIMITS)
    judge.abandon()
    verdict = judge.judge(TESTS, "def f(): pass")
    assert verdict.words == "missing, stopped: the judge was closed"
    assert log == ["sandbox closed", "sandbox closed"]
