"""The report for other programs: JSON with everything, CSV with one line per estimate."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from passhat.report.view import Report, RunReport
from passhat.stats.estimate import Estimate

__all__ = ["as_csv", "as_json"]

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


def as_json(report: Report) -> str:
    """The report under its schema; numbers with every digit they have."""
    return json.dumps(report.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(report: Report) -> str:
    """One line per estimate, each with the protocol that it rests on."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in report.runs:
        writer.writerows(_lines(run))
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
