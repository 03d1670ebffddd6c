"""Test reports as JUnit XML, with the reruns of flaky tests.

Every ``testcase`` is an attempt at the test of its name. Runners write reruns in three ways, and
all are read: the same test case again (pytest-repeat), children ``flakyFailure`` and
``rerunFailure`` (Maven Surefire, Gradle), and children ``rerun`` (pytest-rerunfailures).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import split_numbered
from passhat.readers.parsing import number_or_none
from passhat.readers.records import elements
from passhat.readers.sources import Source
from passhat.readers.text_logs import (
    numbered_tests,
)
from passhat.stats.outcomes import Run

_ROOT = re.compile(rb"^\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<testsuites?[\s/>]", re.DOTALL)
# pytest-repeat names its repeats test_name[3-10]: the third of ten.
_REPEAT = re.compile(r"^(.*)\[(?:(.*)-)?(\d+)-(\d+)\]$")
# A parameter of the test's own: test_name[trial2], test_name[case-seed 1].
_NAMED_REPEAT = re.compile(
    r"^(.*)\[(?:(.*)-)?(?:attempt|trial|run|try|rep|repeat|repetition|seed|epoch)[\s_#=-]*(\d+)\]$",
    re.IGNORECASE,
)
_NUMBER = (
    r"(?:attempt|trial|run|try|rep|repeat|repetition|seed|epoch|iteration|sample|rollout)"
    r"[\s_#=.:-]*\d+"
)
_NUMBERED_SUITE = re.compile(
    rf"(.*?)(?<![a-z]){_NUMBER}\W*|{_NUMBER}[\s_#=.:/-]+(\D.*)", re.IGNORECASE
)
_NUMBERED_NAME = re.compile(rf"\W*{_NUMBER}\W*|#?\d+", re.IGNORECASE)
_EARLIER = ("flakyFailure", "flakyError", "rerunFailure", "rerunError", "rerun")
_STATED = ("tests", "failures", "errors", "skipped", "disabled")
_ENDS = {"failure": "wrong_answer", "error": "exception"}
# pytest's words for an error outside the test itself.
_FIXTURE_ERROR = re.compile(r"(?:failed on|test) (setup|teardown)\b")


@dataclass(frozen=True, slots=True)
class _Attempt:
    where: str
    group: str
    name: str
    passed: bool | None
    why: str
    seconds: str | None = None

    @property
    def task(self) -> str:
        return "::".join(part for part in (self.group, self.name) if part)


class JUnitReader(Reader):
    """``testsuite`` or ``testsuites``; a skipped test is missing."""

    name = "junit"

    def recognizes(self, source: Source) -> bool:
        return _ROOT.match(source.head.removeprefix(b"\xef\xbb\xbf")) is not None

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "JUnit test report", options)
        attempts: list[_Attempt] = []
        suites: dict[str, list[_Attempt]] = {}
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        number = reruns = 0
        last_name = None
        for path, element in elements(source, log):
            if element.tag == "testcase":
                number += 1
                name_of_case = element.get("classname"), element.get("name")
                is_same = last_name == name_of_case and attempts and attempts[-1].passed is False
                last_name = name_of_case
                if is_same and _fixture_error(element) == "teardown":
                    element.clear()  # pytest writes it beside the failure of the same test
                    continue
                with log.row(f"test case {number}"):
                    attempts += _attempts_of(element, f"test case {number}")
                reruns += sum(child.tag in _EARLIER for child in element)
                element.clear()
            elif element.tag == "testsuite" and "testsuite" not in path[:-1]:
                name = element.get("name") or ""
                for word in _STATED:
                    counts[name][word] += int(number_or_none(element.get(word)) or 0)
                counts[name]["stated"] += element.get("failures") is not None
                suites.setdefault(name, []).extend(attempts)
                attempts = []
        if attempts:  # of a file that is cut off
            suites.setdefault("", []).extend(attempts)
        suites, numbering = _name_by_group(suites)
        run_of, grouping = _assign_runs(suites)
        for name, rows in suites.items():
            for row in rows:
                with log.row(row.where):
                    log.add(
                        *(row.where, row.task, row.passed),
                        run=run_of[name],
                        why=row.why,
                        seconds=row.seconds,
                    )

        def facts(run: str) -> RunFacts:
            stated = sum((c for n, c in counts.items() if run_of.get(n, "") == run), Counter[str]())
            ran = stated["tests"] - stated["skipped"] - stated["disabled"]
            bad = stated["failures"] + stated["errors"]
            return RunFacts(
                run or source.stem,
                Protocol(judge="JUnit"),
                says={"accuracy": (ran - bad) / ran} if ran > 0 and stated["stated"] else {},
                counts=("source counts a test that passed after a rerun as passed",)
                if reruns
                else ("source counts test cases, passhat averages over tests",),
                reading=("a test report does not name the agent: the run is named after the file",),
                decisions=(
                    *(line for line in (grouping, numbering) if line),
                    *numbered_tests(row.task for rows in suites.values() for row in rows),
                ),
                guessed=True,
            )

        return [split_numbered(run) for run in log.runs(facts)]


def _are_runs(suites: Mapping[str, Sequence[_Attempt]]) -> bool:
    """Whether suites of other names hold the same tests, as one for each agent does."""
    tests = [{row.task for row in rows} for rows in suites.values() if rows]
    return len(tests) > 1 and all(2 * len(tests[0] & other) > len(other) for other in tests)


def _assign_runs(suites: Mapping[str, Sequence[_Attempt]]) -> tuple[dict[str, str], str]:
    """The run of each suite, empty for the only one, and the decision that it rests on."""
    if not _are_runs(suites):
        return dict.fromkeys(suites, ""), ""
    models = {}
    for name in filter(None, suites):
        match = _NUMBERED_SUITE.fullmatch(name)
        if match is None:
            return {name: name for name in suites}, "suites with the same tests are a run each"
        models[name] = (match[1] or match[2] or "").strip(" _.:/#([-")
    sizes = Counter(models.values())
    if len(sizes) > 1 and min(sizes.values()) == 1:
        return {name: name for name in suites}, "suites with the same tests are a run each"
    models |= dict.fromkeys(suites.keys() - models.keys(), "")
    is_single = len(sizes) == 1
    return (
        dict.fromkeys(suites, "") if is_single else models,
        "suites that differ in a number alone are attempts",
    )


def _name_by_group(
    suites: dict[str, list[_Attempt]],
) -> tuple[dict[str, list[_Attempt]], str]:
    """The suites with their tests named by the class, where the names number the attempts.

    Or by the name, where the classes number them.
    """
    rows = [row for suite in suites.values() for row in suite]
    for number, label in (("name", "group"), ("group", "name")):
        numbers, labels = ({getattr(row, part) for row in rows} for part in (number, label))
        is_numbered = len(numbers) > 1 and all(map(_NUMBERED_NAME.fullmatch, numbers))
        if not is_numbered or "" in labels or 2 * len(labels) > len(rows):
            continue
        named = {
            name: [replace(row, group="", name=getattr(row, label)) for row in suite]
            for name, suite in suites.items()
        }
        said = f"{getattr(rows[0], number)!r} is an attempt at {getattr(rows[0], label)!r}"
        return named, said
    return suites, ""


def _attempts_of(case: ET.Element, where: str) -> Iterator[_Attempt]:
    """The attempts of one test case, earlier tries first."""
    name, _ = split_repeat(case.get("name") or "")
    task = (case.get("classname") or "", name)
    end = next((child for child in case if child.tag in _ENDS), None)
    skipped = next((child for child in case if child.tag == "skipped"), None)
    earlier = [child for child in case if child.tag in _EARLIER]
    # Surefire writes the first failure as <failure> and the reruns after it.
    is_last = end is None or not any(child.tag.startswith("rerun") for child in earlier)
    tries = earlier if is_last or end is None else [end, *earlier]
    for number, child in enumerate(tries, 1):
        yield _Attempt(f"{where}, try {number}", *task, False, _why(child))
    if end is not None and end.tag == "error" and _fixture_error(case):
        reason = (end.get("message") or "").splitlines()[0]
        yield _Attempt(where, *task, None, f"infrastructure: {reason}")
    elif skipped is not None:
        yield _Attempt(where, *task, None, f"not_recorded: {skipped.get('message') or 'skipped'}")
    elif is_last:
        why = "" if end is None else _why(end)
        yield _Attempt(where, *task, end is None, why, case.get("time"))


def _fixture_error(case: ET.Element) -> str:
    """``setup`` or ``teardown`` where the error of a test case is one outside the test."""
    messages = [child.get("message") or "" for child in case if child.tag == "error"]
    matches = [_FIXTURE_ERROR.match(message) for message in messages]
    return next((match[1] for match in matches if match), "")


def split_repeat(name: str) -> tuple[str, int | None]:
    """The test behind a repeat of it, and which repeat it is."""
    match = _REPEAT.match(name)
    if match is None or not 1 <= int(match[3]) <= int(match[4]):
        match = _NAMED_REPEAT.match(name)
    if match is None:
        return name, None
    parameters = f"[{match[2]}]" if match[2] else ""
    return match[1] + parameters, int(match[3])


def _why(child: ET.Element) -> str:
    category = _ENDS["error"] if "error" in child.tag.lower() else _ENDS["failure"]
    message = child.get("message") or child.get("type") or (child.text or "").strip()
    return f"{category}: {message.splitlines()[0] if message else child.tag}"
