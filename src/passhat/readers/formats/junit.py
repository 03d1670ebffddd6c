"""JUnit XML: test reports, with the reruns of flaky tests.

Every ``testcase`` is an attempt at the test of its name. Runners write reruns in three ways, and
all are read: the same test case again (pytest-repeat), children ``flakyFailure`` and
``rerunFailure`` (Maven Surefire, Gradle), and children ``rerun`` (pytest-rerunfailures).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.parsing import number_or_none
from passhat.readers.records import elements
from passhat.readers.sources import Source
from passhat.readers.text_logs import numbered_tests
from passhat.stats.outcomes import Run

_ROOT = re.compile(rb"^\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<testsuites?[\s/>]", re.DOTALL)
# pytest-repeat names its repeats test_name[3-10]: the third of ten.
_REPEAT = re.compile(r"^(.*)\[(?:(.*)-)?(\d+)-(\d+)\]$")
# A parameter of the test's own: test_name[trial2], test_name[case-seed 1].
_NAMED_REPEAT = re.compile(
    r"^(.*)\[(?:(.*)-)?(?:attempt|trial|run|try|rep|repeat|repetition|seed|epoch)[\s_#=-]*(\d+)\]$",
    re.IGNORECASE,
)
_NUMBERED_SUITE = re.compile(
    r"(.*?)(?<![a-z])(?:attempt|trial|run|try|rep|repeat|repetition|seed|epoch|iteration)[\s_#=.:-]*\d+\W*",
    re.IGNORECASE,
)
_EARLIER = ("flakyFailure", "flakyError", "rerunFailure", "rerunError", "rerun")
_STATED = ("tests", "failures", "errors", "skipped", "disabled")
_ENDS = {"failure": "wrong_answer", "error": "exception"}


@dataclass(frozen=True, slots=True)
class _Attempt:
    where: str
    task: str
    passed: bool | None
    why: str
    seconds: str | None = None


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
        for path, element in elements(source, log):
            if element.tag == "testcase":
                number += 1
                with log.row(f"test case {number}"):
                    attempts += _attempts_of(element, f"test case {number}")
                reruns += sum(child.tag in _EARLIER for child in element)
                element.clear()
            elif element.tag == "testsuite" and "testsuite" not in path[:-1]:
                name = element.get("name") or ""
                for word in _STATED:
                    counts[name][word] += int(number_or_none(element.get(word)) or 0)
                suites.setdefault(name, []).extend(attempts)
                attempts = []
        if attempts:  # of a file that is cut off
            suites.setdefault("", []).extend(attempts)
        is_run = _are_runs(suites)
        numbered = is_run and _are_attempts(list(suites))
        is_run = is_run and not numbered
        for name, rows in suites.items():
            for row in rows:
                with log.row(row.where):
                    log.add(
                        *(row.where, row.task, row.passed),
                        run=name if is_run else "",
                        why=row.why,
                        seconds=row.seconds,
                    )

        def facts(run: str) -> RunFacts:
            stated = counts[run] if is_run else sum(counts.values(), Counter[str]())
            ran = stated["tests"] - stated["skipped"] - stated["disabled"]
            bad = stated["failures"] + stated["errors"]
            return RunFacts(
                run or source.stem,
                Protocol(judge="JUnit"),
                says={"accuracy": (ran - bad) / ran} if ran > 0 else {},
                counts=("source counts a test that passed after a rerun as passed",)
                if reruns
                else ("source counts test cases, passhat averages over tests",),
                reading=("a test report does not name the agent: the run is named after the file",),
                decisions=(
                    *(("suites with the same tests are a run each",) if is_run else ()),
                    *(("suites that differ in a number alone are attempts",) if numbered else ()),
                    *numbered_tests(row.task for rows in suites.values() for row in rows),
                ),
                guessed=True,
            )

        return log.runs(facts)


def _are_runs(suites: Mapping[str, Sequence[_Attempt]]) -> bool:
    """Whether suites of other names hold the same tests, as one for each agent does."""
    tests = [{row.task for row in rows} for rows in suites.values() if rows]
    return len(tests) > 1 and all(2 * len(tests[0] & other) > len(other) for other in tests)


def _are_attempts(names: Sequence[str]) -> bool:
    """Whether only the number of an attempt tells suites apart: trial-1, trial-2."""
    parts = [_NUMBERED_SUITE.fullmatch(name) for name in names if name]
    return all(parts) and len({match[1] for match in parts if match}) == 1


def _attempts_of(case: ET.Element, where: str) -> Iterator[_Attempt]:
    """The attempts of one test case, earlier tries first."""
    name, _ = _repeat(case.get("name") or "")
    task = "::".join(part for part in (case.get("classname"), name) if part)
    end = next((child for child in case if child.tag in _ENDS), None)
    skipped = next((child for child in case if child.tag == "skipped"), None)
    earlier = [child for child in case if child.tag in _EARLIER]
    # Surefire writes the first failure as <failure> and the reruns after it.
    is_last = end is None or not any(child.tag.startswith("rerun") for child in earlier)
    tries = earlier if is_last or end is None else [end, *earlier]
    for number, child in enumerate(tries, 1):
        yield _Attempt(f"{where}, try {number}", task, False, _why(child))
    if skipped is not None:
        yield _Attempt(where, task, None, f"not_recorded: {skipped.get('message') or 'skipped'}")
    elif is_last:
        why = "" if end is None else _why(end)
        yield _Attempt(where, task, end is None, why, case.get("time"))


def _repeat(name: str) -> tuple[str, int | None]:
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
