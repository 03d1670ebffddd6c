"""A gate's verdicts for other programs: JSON, and JUnit XML for CI systems that read tests."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from passhat.stats.gate import GateResult, GateVerdict, RuleResult

__all__ = ["gate_as_json", "gate_as_junit"]


def gate_as_json(result: GateResult) -> str:
    """The gate under its schema."""
    return json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def gate_as_junit(result: GateResult) -> str:
    """One test case per rule: refuted is a failure, not settled is an error.

    A rule that is not settled is no success, so it must not be shown as one; and it is no refuted
    rule either.
    """
    found = result.results
    suite = ElementTree.Element(
        "testsuite",
        name=f"passhat gate: {_printable(result.name)}",
        tests=str(len(found) + (result.absent > 0)),
        failures=str(sum(one.verdict is GateVerdict.REFUTED for one in found)),
        errors=str(
            sum(one.verdict is GateVerdict.NOT_SETTLED for one in found) + (result.absent > 0)
        ),
        skipped="0",
    )
    for one in found:
        _add_case(suite, one, result.name)
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


def _add_case(suite: ElementTree.Element, found: RuleResult, name: str) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=_printable(name), name=str(found.rule)
    )
    kind = {GateVerdict.REFUTED: "failure", GateVerdict.NOT_SETTLED: "error"}.get(found.verdict)
    details = _printable("\n".join((found.sentence, *found.notes)))
    if kind is None:
        ElementTree.SubElement(case, "system-out").text = details
    else:
        entry = ElementTree.SubElement(
            case, kind, type=str(found.verdict), message=_printable(found.evidence)
        )
        entry.text = details


def _printable(text: str) -> str:
    """XML 1.0 has no way to write control characters."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in text)
