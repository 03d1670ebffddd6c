"""Reports and gates for other programs: CSV with one line per estimate, JUnit XML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from xml.etree import ElementTree

from passhat._display import csv_cell
from passhat.report.view import Report, RunReport
from passhat.stats.estimate import Estimate
from passhat.stats.gate import GateResult, GateVerdict, RuleResult

__all__ = ["as_csv", "gate_as_junit"]

_CSV_COLUMNS = (
    "run",
    "slice",
    "metric",
    "value",
    "value_if_passed",
    "low",
    "high",
    "level",
    "about",
    "tasks",
    "attempts",
    "attempts_per_task",
    "missing",
    "missing_policy",
    "method",
    "decoding",
    "tests",
    "protocol",
    "source",
    "notes",
)


def as_csv(report: Report) -> str:
    """A line per estimate, each with its protocol."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in report.runs:
        writer.writerows(
            {name: csv_cell(cell) for name, cell in line.items()} for line in _lines(run)
        )
    return out.getvalue()


def _lines(run: RunReport) -> Iterator[dict[str, object]]:
    for estimate in run.estimates:
        yield _line(run, "", estimate)
    for value, estimates in run.slices.items():
        for estimate in estimates:
            yield _line(run, f"{run.slice_label}={value}", estimate)


def _line(run: RunReport, part: str, estimate: Estimate) -> dict[str, object]:
    promised = dict(run.protocol_lines)
    data = estimate.to_dict()
    data.pop("bounds", None)
    return {
        **data,
        "run": run.name,
        "slice": part,
        "attempts_per_task": promised["attempts per task (n)"],
        "missing": run.run.outcomes.total_missing,
        "missing_policy": promised["missing policy"],
        "decoding": promised["decoding"],
        "tests": promised["tests"],
        "protocol": promised["protocol"],
        "source": run.run.source,
        "notes": "; ".join(estimate.notes),
    }


def gate_as_junit(result: GateResult) -> str:
    """A test case per rule: refuted is a failure, not settled is an error.

    A rule that is not settled is no success, so it must not be shown as one; and it is no refuted
    rule either. Where the gate only warns, it is skipped: JUnit has no warning.
    """
    results = result.results
    unsettled = sum(rule.verdict is GateVerdict.NOT_SETTLED for rule in results)
    warns = result.unsettled in ("pass", "warn")
    suite = ElementTree.Element(
        "testsuite",
        name=f"passhat gate: {_printable(result.name)}",
        tests=str(len(results) + (result.absent > 0)),
        failures=str(sum(rule.verdict is GateVerdict.REFUTED for rule in results)),
        errors=str((0 if warns else unsettled) + (result.absent > 0)),
        skipped=str(unsettled if warns else 0),
    )
    for rule in results:
        _add_case(suite, rule, result.name, warns=warns)
    if result.absent:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_printable(result.name), name="all planned attempts"
        )
        text = f"{result.absent:,} planned attempts are absent"
        ElementTree.SubElement(case, "error", type="incomplete", message=text)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _add_case(suite: ElementTree.Element, result: RuleResult, name: str, *, warns: bool) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=_printable(name), name=str(result.rule)
    )
    kinds = {
        GateVerdict.REFUTED: "failure",
        GateVerdict.NOT_SETTLED: "skipped" if warns else "error",
    }
    kind = kinds.get(result.verdict)
    details = _printable("\n".join((result.sentence, *result.notes)))
    if kind is None:
        ElementTree.SubElement(case, "system-out").text = details
    else:
        entry = ElementTree.SubElement(
            case, kind, type=result.outcome, message=_printable(result.evidence)
        )
        entry.text = details


def _printable(text: str) -> str:
    """XML 1.0 has no way to write control characters."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in text)
