"""JUnit XML: test reports, with the reruns of flaky tests.

Every ``testcase`` is an attempt at the test of its name. Runners write reruns in three ways, and
all are read: the same test case again (pytest-repeat), children ``flakyFailure`` and
``rerunFailure`` (Maven Surefire, Gradle), and children ``rerun`` (pytest-rerunfailures).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.parsing import number_or_none
from passhat.readers.records import elements
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

__all__ = ["JUnitReader"]

_ROOT = re.compile(rb"^\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<testsuites?[\s/>]", re.DOTALL)
# pytest-repeat names its repeats test_name[3-10]: the third of ten.
_REPEAT = re.compile(r"^(.*)\[(?:(.*)-)?(\d+)-(\d+)\]$")
_EARLIER = ("flakyFailure", "flakyError", "rerunFailure", "rerunError", "rerun")
_ENDS = {"failure": "wrong_answer", "error": "exception"}


@dataclass(slots=True)
class _Counts:
    tests: float = 0.0
    bad: float = 0.0
    skipped: float = 0.0
    reruns: int = 0

    def accuracy(self) -> dict[str, float]:
        ran = self.tests - self.skipped
        return {"accuracy": (ran - self.bad) / ran} if ran > 0 else {}


class JUnitReader(Reader):
    """``testsuite`` or ``testsuites``; a skipped test is not an attempt."""

    name = "junit"

    def recognizes(self, source: Source) -> bool:
        return _ROOT.match(source.head.removeprefix(b"\xef\xbb\xbf")) is not None

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "JUnit test report", options)
        counts = _Counts()
        number = 0
        for path, element in elements(source, log):
            if element.tag == "testcase":
                number += 1
                with log.row(f"test case {number}"):
                    counts.reruns += _take(log, element, f"test case {number}")
                element.clear()
            elif element.tag == "testsuite" and "testsuite" not in path[:-1]:
                counts.tests += number_or_none(element.get("tests")) or 0.0
                counts.bad += number_or_none(element.get("failures")) or 0.0
                counts.bad += number_or_none(element.get("errors")) or 0.0
                skips = element.get("skipped") or element.get("disabled")
                counts.skipped += number_or_none(skips) or 0.0
        facts = RunFacts(
            source.stem,
            Protocol(judge="JUnit"),
            says=counts.accuracy(),
            counts=("source counts a test that passed after a rerun as passed",)
            if counts.reruns
            else ("source counts test cases, passhat averages over tests",),
            reading=("a test report does not name the agent: the run is named after the file",),
            guessed=True,
        )
        return log.runs(facts)


def _take(log: LogBuilder, case: ET.Element, where: str) -> int:
    """Add the attempts of one test case, earlier tries first; returns how many reruns it had."""
    name, _ = _repeat(case.get("name") or "")
    task = "::".join(part for part in (case.get("classname"), name) if part)
    tags = [child.tag for child in case]
    if "skipped" in tags:
        log.skip("a skipped test")
        return 0
    end = next((child for child in case if child.tag in _ENDS), None)
    earlier = [child for child in case if child.tag in _EARLIER]
    if end is not None and any(child.tag.startswith("rerun") for child in earlier):
        # Surefire writes the first failure as <failure> and the reruns after it.
        tries = [end, *earlier] if end.tag in _ENDS else earlier
        for number, child in enumerate(tries, 1):
            log.add(f"{where}, try {number}", task, False, why=_why(child))
        return len(earlier)
    for number, child in enumerate(earlier, 1):
        log.add(f"{where}, try {number}", task, False, why=_why(child))
    why = "" if end is None else _why(end)
    log.add(where, task, end is None, why=why, seconds=case.get("time"))
    return len(earlier)


def _repeat(name: str) -> tuple[str, int | None]:
    """The test behind a repeat of it, and which repeat it is."""
    match = _REPEAT.match(name)
    if match is None or not 1 <= int(match[3]) <= int(match[4]):
        return name, None
    parameters = f"[{match[2]}]" if match[2] else ""
    return match[1] + parameters, int(match[3])


def _why(child: ET.Element) -> str:
    category = _ENDS["error"] if "error" in child.tag.lower() else _ENDS["failure"]
    message = child.get("message") or child.get("type") or (child.text or "").strip()
    return f"{category}: {message.splitlines()[0] if message else child.tag}"
