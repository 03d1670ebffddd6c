"""The pytest plug-in: a test function as many attempts of one task.

    @pytest.mark.passhat(attempts=60, rule="pass^1 >= 0.9")
    def test_refund(agent): ...

    @pytest.mark.passhat(attempts=8, rule="pass^4 >= 0.6", suite="refunds")
    @pytest.mark.parametrize("ticket", TICKETS)
    def test_ticket(agent, ticket): ...

Each attempt runs pytest's whole protocol again: fixtures of function scope are set up and torn
down, a test class is instantiated, mutable parameters are copied. Fixtures of wider scope are
shared, as they are between tests. A test that fails is a failed attempt; a fixture that cannot be
set up is a missing one, since that is not the agent's doing.

Without ``suite`` the rule is about this one task, by Clopper-Pearson bounds on its success
rate (:mod:`passhat.stats.gate.each_task`). With it the tests of the same name are tasks of one
suite, judged together when the session ends, and the rule is about new tasks, or with
``about="these-tasks"`` about exactly these tests again.

Test runs that do not use the mark pay for one look at each test's marks; NumPy is not imported.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol
from _pytest.skipping import evaluate_xfail_marks

if TYPE_CHECKING:
    from passhat.stats.gate import GateResult

_MARK = "passhat"
_XPASS = "[XPASS(strict)]"
_PROPERTY = "passhat"
_HELP = (
    "passhat(attempts, rule, suite=None, level=0.95, allow_unsettled=False, about=None): run the "
    "test as that many attempts of one task and judge the rule, such as 'pass^4 >= 0.6'; with "
    "suite, together with the other tests of that suite when the session ends, about new-tasks or "
    "these-tasks."
)


@dataclass(frozen=True, slots=True)
class _MarkOptions:
    """The arguments of a mark."""

    attempts: int
    rule: str
    suite: str | None = None
    level: float = 0.95
    allow_unsettled: bool = False
    about: str | None = None


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How one attempt ended: passed, failed, or missing, with its reports."""

    number: int
    ended: str
    reports: Sequence[pytest.TestReport]

    @property
    def failing_report(self) -> pytest.TestReport:
        """The report with the reason for the attempt's end."""
        return next((report for report in self.reports if not report.passed), self.reports[-1])


_ASKED = pytest.StashKey[_MarkOptions]()
_MISTAKE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _HELP)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Read the marks before anything is paid for, so that a mistake costs no attempt."""
    for item in items:
        mark = item.get_closest_marker(_MARK)
        if mark is None:
            continue
        try:
            item.stash[_ASKED] = _read_mark(item, mark)
        except pytest.UsageError as error:
            # In a worker of xdist a usage error would be an INTERNALERROR of the whole session.
            if not hasattr(item.config, "workerinput"):
                raise
            item.stash[_MISTAKE] = str(error)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the attempts and report them as one test."""
    options, mistake = item.stash.get(_ASKED, None), item.stash.get(_MISTAKE, None)
    if options is None and mistake is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if options is None:
        failed = _report(item, "setup", "failed", longrepr=mistake)
        reports = [failed, _report(item, "teardown", "passed")]
    else:
        reports = _reports(item, options, _make_attempts(item, options, nextitem))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


# -- reading a mark ---------------------------------------------------------------------------


def _read_mark(item: pytest.Item, mark: pytest.Mark) -> _MarkOptions:
    from passhat.errors import PasshatError
    from passhat.stats.gate.each_task import check_one_task_rule
    from passhat.stats.gate.rules import parse_rule
    from passhat.stats.terms import Population

    try:
        options = _MarkOptions(*mark.args, **mark.kwargs)
    except TypeError as error:
        reason = str(error).replace("_MarkOptions.__init__()", "the mark")
        raise pytest.UsageError(f"{item.nodeid}: {reason}. It reads {_HELP}") from None
    attempts: object = options.attempts
    if not isinstance(attempts, int) or attempts < 1:
        raise pytest.UsageError(
            f"{item.nodeid}: attempts must be a whole number from 1, not {attempts!r}."
        )
    if not 0.5 < options.level < 1:
        raise pytest.UsageError(
            f"{item.nodeid}: level is one-sided and lies between 0.5 and 1, not {options.level!r}."
        )
    if options.about is not None and options.suite is None:
        raise pytest.UsageError(
            f"{item.nodeid}: about={options.about!r} changes nothing without suite=: the rule is "
            "about this one test."
        )
    try:
        if options.about is not None:
            Population.of(options.about)
        if options.suite is None:
            check_one_task_rule(options.rule, options.attempts)
        elif parse_rule(options.rule).relative:
            raise pytest.UsageError(f"{item.nodeid}: there is no base to compare with in pytest.")
    except PasshatError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None
    return options


# -- making attempts --------------------------------------------------------------------------


def _make_attempts(
    item: pytest.Item, options: _MarkOptions, nextitem: pytest.Item | None
) -> list[_Attempt]:
    """Run the protocol once per attempt; a test that skips itself at once is skipped."""
    parameters = _function_parameters(item)
    attempts: list[_Attempt] = []
    for number in range(1, options.attempts + 1):
        _refresh(item, parameters)
        # To the parent as the "next item" pytest tears down this test and nothing above it, so
        # that fixtures of wider scope live on until the last attempt.
        after: Any = nextitem if number == options.attempts else item.parent
        reports = runtestprotocol(item, log=False, nextitem=after)
        attempts.append(_Attempt(number, _ended(reports), reports))
        if number == 1 and (attempts[0].ended == "skipped" or hasattr(reports[0], "wasxfail")):
            item.session._setupstate.teardown_exact(nextitem)  # as pytest would have done
            break
        if item.session.shouldstop or item.session.shouldfail:
            break
    return attempts


def _ended(reports: Sequence[pytest.TestReport]) -> str:
    """How an attempt ended: a failed call is a failure, an error before it is missing."""
    call = next((report for report in reports if report.when == "call"), None)
    if any(report.skipped and not hasattr(report, "wasxfail") for report in reports):
        return "skipped"
    if call is None:
        return "missing"
    # A strict xfail turns a pass into a failure; the mark is about the rule, not one attempt.
    is_strict_pass = call.failed and str(call.longrepr).startswith(_XPASS)
    return "passed" if call.passed or is_strict_pass else "failed"


def _function_parameters(item: pytest.Item) -> dict[str, object]:
    """Parameters of function scope; those of wider scope belong to shared fixtures."""
    callspec = getattr(item, "callspec", None)
    scopes = getattr(callspec, "_arg2scope", {})
    return {
        name: value
        for name, value in getattr(callspec, "params", {}).items()
        if getattr(scopes.get(name), "value", "function") == "function"
    }


def _refresh(item: pytest.Item, parameters: dict[str, object]) -> None:
    """Reset the item for the next attempt: no instance, no output, no parameter is kept."""
    if getattr(item, "cls", None) is not None:
        for name in ("_instance", "_obj"):
            item.__dict__.pop(name, None)
    item._report_sections.clear()
    for name, value in parameters.items():
        try:
            item.callspec.params[name] = copy.deepcopy(value)  # type: ignore[attr-defined]
        except Exception:
            # A lock or a connection cannot be copied; it is shared, as it is in plain pytest.
            item.callspec.params[name] = value  # type: ignore[attr-defined]


# -- reporting them as one test ---------------------------------------------------------------


def _reports(
    item: pytest.Item, options: _MarkOptions, attempts: Sequence[_Attempt]
) -> list[pytest.TestReport]:
    is_not_run = attempts[0].ended == "missing" and hasattr(attempts[0].reports[0], "wasxfail")
    if attempts[0].ended == "skipped" or is_not_run:  # xfail(run=False)
        return list(attempts[0].reports)
    causes = _causes(attempts)
    counts = {
        "n": sum(attempt.ended in ("passed", "failed") for attempt in attempts),
        "c": sum(attempt.ended == "passed" for attempt in attempts),
        "missing": sum(attempt.ended in ("missing", "skipped") for attempt in attempts),
    }
    outcome, text = "passed", ""
    if options.suite is None:
        outcome, text = _one_task_outcome(item, options, counts)
    worst = next((attempt for attempt in attempts if attempt.ended != "passed"), None)
    if outcome == "failed" and worst is not None:
        text += f"\n{_summarize_causes([causes], counts['n'])}"
        text += f"\n\nattempt {worst.number} ({worst.ended}):\n{worst.failing_report.longreprtext}"
    setup = _report(item, "setup", "passed")
    call = _report(
        item,
        "call",
        outcome,
        longrepr=text or None,
        sections=[] if worst is None else list(worst.failing_report.sections),
        duration=sum(report.duration for attempt in attempts for report in attempt.reports),
    )
    if options.suite is None:
        _apply_xfail(item, call, attempts)
    record = {"task": item.nodeid, **asdict(options), **counts, "causes": causes}
    call.user_properties.append((_PROPERTY, json.dumps(record)))
    broken = [
        report
        for attempt in attempts
        for report in attempt.reports
        if report.when == "teardown" and report.failed
    ]
    return [setup, call, *(broken[:1] or [_report(item, "teardown", "passed")])]


def _causes(attempts: Sequence[_Attempt]) -> dict[str, dict[str, int]]:
    """How often each message came with a category: a failed assertion is a wrong answer."""
    causes: dict[str, dict[str, int]] = {}
    for attempt in attempts:
        if attempt.ended == "failed":
            crash = getattr(attempt.failing_report.longrepr, "reprcrash", None)
            message = "" if crash is None else str(crash.message).partition("\n")[0]
            is_assertion = not message or message.startswith(
                ("assert ", "AssertionError", "Failed")
            )
            messages = causes.setdefault("wrong_answer" if is_assertion else "exception", {})
            messages[message] = messages.get(message, 0) + 1
    return causes


def _summarize_causes(causes: Sequence[dict[str, dict[str, int]]], attempts: int) -> str:
    """The failures of all tests by cause, in a line; empty where none failed."""
    from passhat.stats.outcomes.causes import group_failures

    messages: dict[str, dict[str, int]] = {}
    for cause in causes:
        for category, texts in cause.items():
            total = messages.setdefault(category, {})
            for text, count in texts.items():
                total[text] = total.get(text, 0) + count
    counts = {category: sum(texts.values()) for category, texts in messages.items()}
    sentence = group_failures(counts, messages, attempts).sentence()
    return f"failures: {sentence}" if sentence else ""


def _apply_xfail(item: pytest.Item, call: pytest.TestReport, attempts: Sequence[_Attempt]) -> None:
    """Report a rule that is expected to fail as pytest reports such a test.

    pytest itself leaves an attempt failed that ended by another exception than ``raises`` names.
    """
    xfail = evaluate_xfail_marks(item)
    if xfail is None or item.config.option.runxfail:
        return
    is_other_failure = any(
        report.failed and report.when != "teardown" and not str(report.longrepr).startswith(_XPASS)
        for attempt in attempts
        for report in attempt.reports
    )
    if call.failed and is_other_failure:
        return
    if call.failed:
        call.outcome, call.wasxfail = "skipped", xfail.reason
    elif xfail.strict:
        call.outcome, call.longrepr = "failed", f"{_XPASS} {xfail.reason}"
    else:
        call.wasxfail = xfail.reason


def _one_task_outcome(
    item: pytest.Item, options: _MarkOptions, counts: dict[str, int]
) -> tuple[str, str]:
    from passhat.errors import PasshatError
    from passhat.stats.gate.each_task import judge_one_task

    try:
        result = judge_one_task(item.name, options.rule, level=options.level, **counts)
    except PasshatError as error:  # the session was stopped after fewer attempts than k
        return "failed", f"passhat: {error}"
    return _passes(result, allow_unsettled=options.allow_unsettled), f"passhat: {result}"


def _passes(result: GateResult, *, allow_unsettled: bool) -> str:
    allowed = (0, 3) if allow_unsettled else (0,)
    return "passed" if result.exit_code in allowed else "failed"


def _report(
    item: pytest.Item,
    when: str,
    outcome: str,
    *,
    longrepr: str | None = None,
    sections: Sequence[tuple[str, str]] = (),
    duration: float = 0.0,
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome=outcome,  # type: ignore[arg-type]
        longrepr=longrepr if outcome == "failed" else None,
        when=when,  # type: ignore[arg-type]
        sections=sections,
        duration=duration,
        user_properties=list(item.user_properties),
    )


# -- suites, where the session is reported ----------------------------------------------------


def _found(report: pytest.TestReport) -> dict[str, Any] | None:
    if report.when != "call":
        return None
    text = next((value for name, value in report.user_properties if name == _PROPERTY), None)
    return None if text is None else json.loads(str(text))


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """A test of a suite is neither passed nor failed by itself: it is attempted."""
    if not isinstance(report, pytest.TestReport) or not report.passed:
        return None
    record = _found(report)
    if record is None or record["suite"] is None:
        return None
    made = record["n"] + record["missing"]
    ended = f"{record['c']} of {made} passed" if record["n"] else f"none of {made} judged"
    return "attempted", "a", f"ATTEMPTED ({ended})"


class _Gatherer:
    """Results of the tests of each suite; one per session, and none in a worker of xdist."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[str, dict[str, Any]]] = {}
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record = _found(report)
        if record is not None and record["suite"] is not None:
            self._tasks.setdefault(record["suite"], {})[record["task"]] = record

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        outcomes = [self._judge(name, list(tasks.values())) for name, tasks in self._tasks.items()]
        if "failed" in outcomes and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _judge(self, name: str, tasks: list[dict[str, Any]]) -> str:
        from passhat.errors import PasshatError

        try:
            result, allow = _judge_suite(name, tasks)
        except PasshatError as error:
            self._lines.append(f"suite {name}: {error}")
            return "failed"
        self._lines += f"suite {result}".splitlines()
        scored = sum(task["n"] for task in tasks)
        if causes := _summarize_causes([task["causes"] for task in tasks], scored):
            self._lines.append(f"  {causes}")
        outcome = _passes(result, allow_unsettled=allow)
        if outcome == "passed" and result.exit_code:
            self._lines.append("  (not settled is allowed by the mark)")
        return outcome

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._lines:
            terminalreporter.section("passhat")
            for line in self._lines:
                terminalreporter.write_line(line)


def _judge_suite(name: str, tasks: list[dict[str, Any]]) -> tuple[GateResult, bool]:
    from passhat.errors import InvalidValue
    from passhat.stats.gate import gate
    from passhat.stats.outcomes import Outcomes, Run

    names = ("rule", "level", "allow_unsettled", "about")
    settings = {tuple(task[name] for name in names) for task in tasks}
    if len(settings) > 1:
        listed = "; ".join(sorted(map(str, settings)))
        raise InvalidValue(
            f"its marks disagree on ({', '.join(names)}): {listed}.",
            hint="Give all tests of a suite the same rule.",
        )
    rule, level, allow, about = settings.pop()
    outcomes = Outcomes.from_counts(
        [task["n"] for task in tasks],
        [task["c"] for task in tasks],
        [task["task"] for task in tasks],
        missing=[task["missing"] for task in tasks],
    )
    return gate(Run(name, name, outcomes), rule, level=level, about=about), bool(allow)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Gatherer(), "passhat-suites")
