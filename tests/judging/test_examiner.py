"""From how processes ended to a verdict: the program's fault, ours, or a broken sandbox."""

from __future__ import annotations

import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging import examiner as module
from passhat.judging.examiner import (
    Examiner,
    References,
    _plain_verdict,
    _script_verdict,
    _split_verdict,
)
from passhat.judging.inside import wire
from passhat.judging.sandbox import Ended, SandboxFault
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits
from passhat.judging.tasks import Case, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict

LIMITS = ProgramLimits(cpu_seconds=2.0, output=10)
STARTED = ["started"]


def _end(*words: list[Any], why: str = "ended", status: int = 0, **parts: Any) -> Ended:
    values = {"cpu": 0.1, "seconds": 3.4, "waiting": False, **parts}
    return Ended(why, status, words=words, **values)


ENDS: list[tuple[Ended, str]] = [
    (_end(STARTED, status=3), "exception: the program ended its own process (status 3)"),
    (_end(STARTED, status=-signal.SIGSEGV), "exception: the process died of SIGSEGV"),
    (_end(STARTED, status=-250), "exception: the process died of signal 250"),
    (_end(STARTED, why="cpu", cpu=2.0), "timeout: 2.0 s of processor time"),
    (_end(STARTED, cpu=2.1, status=1), "timeout: 2.1 s of processor time"),
    (_end(STARTED, cpu=2.0, status=3), "exception: the program ended its own process (status 3)"),
    (_end(STARTED, why="wall"), "timeout: 3 s on the wall clock"),
    (_end(STARTED, why="files"), "sandbox_violation: too many files in /tmp"),
    (
        _end(STARTED, why="stopped", cpu=9.0),
        "sandbox_violation: the program closed the judge's channel",
    ),
]
"""Ends of a program that was not done, and the failures that they are."""


@pytest.mark.parametrize(("end", "failure"), ENDS)
def test_the_end_of_a_program_that_was_not_done_is_its_failure(end: Ended, failure: str) -> None:
    expected = f"failed, {failure}"
    assert _plain_verdict(end, LIMITS).words == expected
    gone = _end(["examined", "gone", "", "0", True, []])
    assert _split_verdict(gone, end, LIMITS).words == expected


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (_end(STARTED, ["examined", "passed", "", ""]), "passed"),
        (_end(STARTED, ["examined", "failed", "KeyError", "x"]), "failed, KeyError: KeyError: x"),
        (_end(STARTED, ["examined", "failed", "wrong_answer", "4"]), "failed, wrong_answer: 4"),
        (
            _end(STARTED, ["examined", "passed", "", ""], status=1),
            "failed, exception: the program ended its own process (status 1)",
        ),
        (
            _end(STARTED, ["examined", "passed", "", ""], why="cpu", cpu=3.0),
            "failed, timeout: 3.0 s of processor time",
        ),
        (
            _end(STARTED, ["examined", "sure"]),
            "failed, exception: the program ended its own process (status 0)",
        ),
        (_end(["untestable", "no such thing"]), "missing, unsupported: no such thing"),
    ],
)
def test_a_program_in_one_process_reports_itself(end: Ended, words: str) -> None:
    assert _plain_verdict(end, LIMITS).words == words


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (_end(), "the program's process never began"),
        (_end(["broken", "no memory"]), "no memory"),
        (_end(STARTED, status=-signal.SIGKILL), "was killed from outside"),
    ],
)
def test_a_sandbox_that_breaks_is_no_verdict(end: Ended, message: str) -> None:
    with pytest.raises(SandboxFault, match=message):
        _plain_verdict(end, LIMITS)
    with pytest.raises(SandboxFault, match=message):
        _script_verdict(Case(b"", b""), b"", end, "case 1", LIMITS)


def _report(*words: Any) -> Ended:
    return _end(["examined", *words])


@pytest.mark.parametrize(
    ("tests", "program", "words"),
    [
        (_report("passed", "", "", True, []), _end(), "passed"),
        (_report("failed", "wrong_answer", "4", False, []), _end(), "failed, wrong_answer: 4"),
        (_report("unsupported", "", "mock", True, []), _end(), "missing, unsupported: mock"),
        (
            _report("gone", "", "100000", True, []),
            _end(STARTED, why="cpu", cpu=3.0),
            "missing, unsupported: tests that ask the program 100,000 times",
        ),
        (
            _report("gone", "", "100000", True, []),
            _end(STARTED, why="files"),
            "failed, sandbox_violation: too many files in /tmp",
        ),
        (
            _end(why="cpu"),
            _end(STARTED),
            "missing, judge_error: the tests ran out of time (cpu)",
        ),
        (
            _end(why="wall", waiting=True),
            _end(STARTED),
            "failed, timeout: an answer that takes too long to make or to read",
        ),
        (
            _end(why="wall"),
            _end(STARTED, why="cpu"),
            "failed, timeout: an answer that takes too long to make or to read",
        ),
        (
            _end(status=4),
            _end(STARTED),
            "missing, judge_error: the tests ended without a verdict (status 4)",
        ),
    ],
)
def test_tests_in_a_process_of_their_own_say_the_verdict(
    tests: Ended, program: Ended, words: str
) -> None:
    assert _split_verdict(tests, program, LIMITS).words == words


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (_end(status=-signal.SIGKILL), "the tests' process was killed from outside"),
        (_end(["broken", "lost"]), "lost"),
        (_report("gone", "", "0", True, []), "never began"),
    ],
)
def test_tests_that_break_are_no_verdict(tests: Ended, message: str) -> None:
    with pytest.raises(SandboxFault, match=message):
        _split_verdict(tests, _end(), LIMITS)


def test_only_a_verdict_is_exact() -> None:
    for outcome, is_exact in (("passed", True), ("failed", True), ("unsupported", False)):
        verdict = _split_verdict(_report(outcome, "", "", True, ["a"]), _end(), LIMITS)
        assert (verdict.is_exact, verdict.objects) == (is_exact, ("a",))
    assert not _split_verdict(_report("passed", "", "", False, []), _end(), LIMITS).is_exact


@pytest.mark.parametrize(
    ("output", "end", "words"),
    [
        (b"4\n", _end(STARTED), "passed"),
        (b"5\n", _end(STARTED), "failed, wrong_answer: case 2: the output differs"),
        (b"4" * 11, _end(STARTED), "failed, wrong_answer: case 2: printed more than 10 bytes"),
        (b"4" * 10, _end(STARTED), "failed, wrong_answer: case 2: the output differs"),
        (
            b"4\n",
            _end(STARTED, status=1, written=b"Traceback\n  x\nshop.KeyError: 'a'\n"),
            "failed, KeyError: case 2: KeyError: 'a'",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, written=b""),
            "failed, exception: case 2: the script ended with status 1",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, written=b"no exception at all"),
            "failed, exception: case 2: the script ended with status 1",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, written=b"E" * 81 + b": x"),
            "failed, exception: case 2: the script ended with status 1",
        ),
        (
            b"4\n",
            _end(STARTED, status=1, cpu=2.1, written=b"KeyError: x"),
            "failed, timeout: case 2: 2.1 s of processor time",
        ),
        (
            b"4\n",
            _end(STARTED, status=3),
            "failed, exception: case 2: the program ended its own process (status 3)",
        ),
        (b"4\n", _end(STARTED, why="wall"), "failed, timeout: case 2: 3 s on the wall clock"),
    ],
)
def test_a_script_is_judged_by_its_end_and_then_by_its_output(
    output: bytes, end: Ended, words: str
) -> None:
    assert _script_verdict(Case(b"", b"4"), output, end, "case 2", LIMITS).words == words


@pytest.mark.parametrize(
    ("word", "detail", "words", "category"),
    [
        ("PermissionError", "no", "failed, sandbox_violation: no", "sandbox_violation"),
        ("wrong_answer", "4", "failed, wrong_answer: 4", "wrong_answer"),
        ("Timeout", "x", "failed, exception: Timeout: x", "exception"),
        ("StopIteration", "", "failed, exception: StopIteration:", "exception"),
        ("KeyError", "'a'", "failed, KeyError: KeyError: 'a'", "exception"),
        ("exception", "x", "failed, exception: x", "exception"),
        ("wrong_answer", "a\nb \x00 " + "c" * 400, None, "wrong_answer"),
    ],
)
def test_a_failure_has_a_category_and_a_line(
    word: str, detail: str, words: str | None, category: str
) -> None:
    verdict = CodeVerdict.failed(word, detail)
    assert verdict.verdict is Verdict.FAILED
    assert verdict.category == category
    if words is None:
        assert verdict.detail.startswith("a b \ufffd c")
        assert len(verdict.detail) == 300
    else:
        assert verdict.words == words


# -- from the words of two judges to one verdict ---------------------------------------------------

PASSED = CodeVerdict.passed()
WRONG = CodeVerdict.failed("wrong_answer", "no")
LATE = CodeVerdict.failed("timeout", "late")
ODD = CodeVerdict.missing(MissingReason.UNSUPPORTED, "odd")
BROKEN = CodeVerdict.missing(MissingReason.JUDGE_ERROR, "broken")
GONE = CodeVerdict.missing(MissingReason.SANDBOX_ERROR, "gone")
TASK = CodeTask("t", tests="assert f(1) == 2", canonical="def f(x): return 2")


class _Box:
    """A sandbox that notes what is asked of it."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name, self.has_namespaces = log, name, True

    def __getattr__(self, what: str) -> Any:
        return lambda *_, **__: self.log.append(f"{self.name} {what}")


def _examiner(
    monkeypatch: pytest.MonkeyPatch, verdicts: dict[str, Any] | None = None, **rules: Any
) -> Any:
    """An examiner whose judges say these verdicts; those on the reference begin with ``r``."""
    log: list[str] = []
    boxes = iter(("programs", "tests"))
    monkeypatch.setattr(module, "Sandbox", lambda *_, **__: _Box(log, next(boxes)))
    nothing: Any = None
    examiner: Any = Examiner(nothing, nothing, LIMITS, JudgeRules(**rules))
    examiner.log = log

    def judge(_task: CodeTask, program: str, judge: str) -> CodeVerdict:
        name = f"r{judge}" if "return 2" in program else judge
        log.append(name)
        found: CodeVerdict = (verdicts or {})[name]
        return found

    if verdicts is not None:
        examiner._judge_with_retries = judge
    return examiner


def _outcome(verdict: CodeVerdict) -> tuple[str, str]:
    return verdict.why, verdict.detail


@pytest.mark.parametrize(
    ("verdicts", "expected", "is_final", "asked"),
    [
        ({"split": PASSED}, PASSED, False, ["split"]),
        ({"split": replace(PASSED, is_exact=True)}, PASSED, True, ["split"]),
        ({"split": WRONG}, WRONG, False, ["split"]),
        (
            *({"split": replace(WRONG, is_exact=True), "rsplit": PASSED}, WRONG, True),
            ["split", "rsplit"],
        ),
        ({"split": ODD}, ODD, False, ["split"]),
        ({"split": GONE}, GONE, True, ["split"]),
        ({"split": BROKEN, "rsplit": WRONG}, BROKEN, True, ["split", "rsplit"]),
        (
            {"split": BROKEN, "rsplit": PASSED},
            CodeVerdict.failed("wrong_answer", "the tests cannot use the answer: broken"),
            *(False, ["split", "rsplit"]),
        ),
    ],
)
def test_split_alone_is_final_where_plain_can_add_nothing(
    monkeypatch: pytest.MonkeyPatch,
    verdicts: dict[str, CodeVerdict],
    expected: CodeVerdict,
    is_final: bool,
    asked: list[str],
) -> None:
    examiner = _examiner(monkeypatch, verdicts)
    verdict, final = examiner.judge_apart(TASK, "program")
    assert (_outcome(verdict), verdict.verdict) == (_outcome(expected), expected.verdict)
    assert final is is_final
    assert examiner.log == asked


@pytest.mark.parametrize("judges", ["plain", "split"])
def test_one_judge_alone_is_final(monkeypatch: pytest.MonkeyPatch, judges: str) -> None:
    examiner = _examiner(monkeypatch, {judges: WRONG}, judges=judges)
    assert examiner.judge_apart(TASK, "program") == (WRONG, True)
    assert examiner.judge(TASK, "program") == WRONG
    assert examiner.log == [judges, judges]


@pytest.mark.parametrize("judges", ["both", "plain", "split"])
def test_a_script_is_judged_by_its_output_alone(
    monkeypatch: pytest.MonkeyPatch, judges: str
) -> None:
    task = CodeTask("t", cases=(Case(b"1", b"2"),))
    examiner = _examiner(monkeypatch, {"script": WRONG}, judges=judges)
    assert examiner.judge(task, "program") == WRONG


def test_tests_that_cannot_judge_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = _examiner(monkeypatch, {})
    verdict, is_final = examiner.judge_apart(CodeTask("t", tests="assert 1"), "program")
    assert (verdict.why, verdict.detail) == ("judge_error", "the tests never call the program")
    assert is_final
    assert examiner.log == []


CONFIRMED = "split: missing, unsupported: odd; plain: passed; split confirms the reference solution"


@pytest.mark.parametrize(
    ("plain", "split", "reference", "strict", "expected"),
    [
        (PASSED, PASSED, PASSED, False, ("", "")),
        (WRONG, PASSED, PASSED, False, ("wrong_answer", "no")),
        (LATE, WRONG, PASSED, False, ("timeout", "late")),
        (
            *(PASSED, WRONG, PASSED, False),
            ("judges_disagree", "split: failed, wrong_answer: no; plain: passed"),
        ),
        (
            *(PASSED, LATE, PASSED, False),
            (
                "judges_disagree",
                "split: failed, timeout: late; plain: passed; split confirms the reference "
                "solution",
            ),
        ),
        (PASSED, LATE, WRONG, False, ("unconfirmed", "late")),
        (PASSED, ODD, PASSED, False, ("judges_disagree", CONFIRMED)),
        (PASSED, ODD, ODD, False, ("unconfirmed", "odd")),
        (PASSED, ODD, ODD, True, ("unsupported", "odd")),
    ],
)
def test_two_judges_make_one_verdict(
    monkeypatch: pytest.MonkeyPatch,
    plain: CodeVerdict,
    split: CodeVerdict,
    reference: CodeVerdict,
    strict: bool,
    expected: tuple[str, str],
) -> None:
    seconds = {"plain": replace(plain, seconds=1.0, cpu_seconds=0.25)}
    verdicts = {**seconds, "rsplit": reference, "rplain": PASSED}
    examiner = _examiner(monkeypatch, verdicts, strict=strict)
    split = replace(split, seconds=2.0, cpu_seconds=0.5)
    verdict = examiner.judge_together(TASK, "program", split)
    assert _outcome(verdict) == expected
    assert verdict.judges == (("split", split.words), ("plain", plain.words))
    assert (verdict.seconds, verdict.cpu_seconds) == (3.0, 0.75)


@pytest.mark.parametrize(
    ("verdict", "references", "expected"),
    [
        (PASSED, (ODD, ODD), ("", "")),
        (ODD, (ODD, ODD), ("unsupported", "odd")),
        (WRONG, (PASSED, ODD), ("wrong_answer", "no")),
        (WRONG, (ODD, PASSED), ("wrong_answer", "no")),
        (
            *(WRONG, (ODD, LATE)),
            ("unsupported", "the reference solution fails here too (failed, timeout: late)"),
        ),
    ],
)
def test_a_failure_of_the_reference_as_well_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
    verdict: CodeVerdict,
    references: tuple[CodeVerdict, CodeVerdict],
    expected: tuple[str, str],
) -> None:
    verdicts = dict(zip(("rsplit", "rplain"), references, strict=True))
    assert _outcome(_examiner(monkeypatch, verdicts)._excuse(TASK, verdict)) == expected
    without = replace(TASK, canonical="")
    assert _examiner(monkeypatch, {})._excuse(without, verdict) == verdict


OBJECTS = "split passes {}, where the reference gives none"


@pytest.mark.parametrize(
    ("objects", "reference", "reference_objects", "detail"),
    [
        ((), PASSED, (), ""),
        (("a",), PASSED, ("a", "b"), ""),
        (("a", "b"), PASSED, ("a",), OBJECTS.format("b")),
        (("a", "b"), WRONG, ("a",), OBJECTS.format("b")),
        (("a",), WRONG, ("a",), "split passes a, but not the reference solution"),
    ],
)
def test_objects_are_compared_with_those_of_the_reference(
    monkeypatch: pytest.MonkeyPatch,
    objects: tuple[str, ...],
    reference: CodeVerdict,
    reference_objects: tuple[str, ...],
    detail: str,
) -> None:
    examiner = _examiner(monkeypatch, {"rsplit": replace(reference, objects=reference_objects)})
    verdict = examiner._compare_objects(TASK, replace(PASSED, objects=objects))
    assert _outcome(verdict) == ("unsupported" if detail else "", detail)
    failed = replace(WRONG, objects=("c",))
    assert examiner._compare_objects(TASK, failed) is failed
    without = replace(PASSED, objects=("c",))
    assert examiner._compare_objects(replace(TASK, canonical=""), without) is without


def test_a_reference_is_judged_once_by_each_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = _examiner(monkeypatch, {"rsplit": PASSED, "rplain": WRONG})
    references = References()
    for judge, verdict in (("split", PASSED), ("plain", WRONG), ("split", PASSED)):
        assert references.of(TASK, examiner, judge) is verdict
    assert examiner.log == ["rsplit", "rplain"]
    absent = examiner.judge_reference(replace(TASK, canonical=""), "split")
    assert _outcome(absent) == ("unsupported", "the task has no reference")


def test_workers_share_the_references_that_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = _examiner(monkeypatch, {})
    assert isinstance(examiner._references, References)
    monkeypatch.setattr(module, "Sandbox", lambda *_, **__: None)
    shared, nothing = References(), SimpleNamespace()
    first: Any = nothing
    assert Examiner(first, first, LIMITS, references=shared)._references is shared


@pytest.mark.parametrize(
    ("judges", "started"),
    [
        ("plain", ["programs launch", "programs greet"]),
        ("both", ["programs launch", "tests launch", "programs greet", "tests greet"]),
    ],
)
def test_sandboxes_are_started_at_once_closed_and_abandoned(
    monkeypatch: pytest.MonkeyPatch, judges: str, started: list[str]
) -> None:
    examiner = _examiner(monkeypatch, judges=judges)
    examiner.start()
    assert examiner.log == started
    examiner.log.clear()
    examiner._series = SimpleNamespace(close=lambda: examiner.log.append("series closed"))
    examiner.close()
    examiner.close()
    assert examiner.log == ["series closed", *["programs close", "tests close"] * 2]
    examiner.log.clear()
    examiner.abandon()
    assert examiner.log == ["programs abandon", "tests abandon"]
    verdict = examiner._judge_with_retries(TASK, "program", "split")
    assert _outcome(verdict) == ("stopped", "the judge was closed")


@pytest.mark.parametrize(
    ("breaks", "expected", "pauses"),
    [
        (0, ("", ""), []),
        (1, ("", ""), [0]),
        (7, ("", ""), [0, 0.02, 0.04, 0.08, 0.16, 0.2, 0.2]),
        (19, ("", ""), None),
        (20, ("sandbox_error", "20 times: broke 20"), None),
    ],
)
def test_a_sandbox_that_breaks_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
    breaks: int,
    expected: tuple[str, str],
    pauses: list[float] | None,
) -> None:
    examiner = _examiner(monkeypatch)
    slept: list[float] = []
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=slept.append))
    tries: list[int] = []

    def once(*_: object) -> CodeVerdict:
        tries.append(1)
        if len(tries) <= breaks:
            raise SandboxFault(f"broke {len(tries)}")
        return PASSED

    examiner._once = once
    assert _outcome(examiner._judge_with_retries(TASK, "program", "split")) == expected
    assert len(tries) == min(breaks + 1, 20)
    assert examiner.log.count("programs close") == breaks
    if pauses is not None:
        assert slept == pytest.approx(pauses)


def test_a_program_that_cannot_be_sent_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = _examiner(monkeypatch)

    def once(*_: object) -> CodeVerdict:
        raise wire.NotPlain("a lone surrogate")

    examiner._once = once
    verdict = examiner._judge_with_retries(TASK, "program", "split")
    assert _outcome(verdict) == (FailureCategory.FORMAT_ERROR, "the program has a lone surrogate")


REFUSED = CodeVerdict.failed("sandbox_violation", "[Errno 1] Operation not permitted")


@pytest.mark.parametrize(
    ("verdict", "open_at_once", "namespaces", "expected", "calls"),
    [
        (PASSED, False, True, PASSED, [False]),
        (WRONG, False, True, WRONG, [False]),
        (REFUSED, False, True, REFUSED, [False, True]),
        (REFUSED, True, True, REFUSED, [True]),
        (replace(PASSED, detail="[Errno 1]"), False, True, PASSED, [False]),
        (
            *(REFUSED, False, False),
            CodeVerdict.missing(
                MissingReason.UNSUPPORTED,
                "this sandbox allows neither processes nor connections "
                "([Errno 1] Operation not permitted)",
            ),
            [False],
        ),
    ],
)
def test_what_is_refused_is_tried_once_more_with_processes(
    monkeypatch: pytest.MonkeyPatch,
    verdict: CodeVerdict,
    open_at_once: bool,
    namespaces: bool,
    expected: CodeVerdict,
    calls: list[bool],
) -> None:
    examiner = _examiner(monkeypatch)
    examiner.open_at_once, examiner.programs.has_namespaces = open_at_once, namespaces
    made: list[bool] = []

    def plain(*_: object) -> CodeVerdict:
        made.append(examiner._processes)
        return verdict

    examiner._plain = plain
    found = examiner._once(TASK, "program", "plain")
    assert (found.verdict, found.why) == (expected.verdict, expected.why)
    assert made == calls


def test_the_first_case_that_fails_ends_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    examiner = _examiner(monkeypatch)
    verdicts = [PASSED, WRONG, PASSED]
    asked: list[str] = []

    def case(_case: Case, _program: str, where: str) -> Any:
        asked.append(where)
        return verdicts.pop(0), SimpleNamespace(seconds=1.5, cpu=0.25)

    examiner._case = case
    task = CodeTask("t", cases=(Case(b"", b""),) * 3)
    verdict = examiner._cases(task, "program")
    assert asked == ["case 1", "case 2"]
    assert (verdict.why, verdict.seconds, verdict.cpu_seconds) == ("wrong_answer", 3.0, 0.5)
    verdicts[:] = [PASSED] * 3
    verdict = examiner._cases(task, "program")
    assert (verdict.why, verdict.seconds, verdict.cpu_seconds) == ("", 4.5, 0.75)
