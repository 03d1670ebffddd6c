"""Reports and gates for other programs: CSV, JUnit XML, and scores for experiment trackers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from passhat._display import counted, csv_cell, percent_interval
from passhat._version import __version__
from passhat.readers.platform_client import PlatformClient
from passhat.readers.platforms import PLATFORMS
from passhat.reporting.view import Report, RunReport
from passhat.stats.arrays import LazyModule
from passhat.stats.estimate import Estimate, pass_at_k, pass_hat_k
from passhat.stats.estimate.metrics import PassAt, PassHat
from passhat.stats.outcomes import MissingPolicy, Run
from passhat.stats.terms import Population

if TYPE_CHECKING:
    from passhat.stats import gate
else:
    gate = LazyModule("passhat.stats.gate")

_CSV_COLUMNS = (
    *("run", "slice", "metric", "value", "value_if_passed", "low", "high", "level", "about"),
    *("tasks", "attempts", "attempts_per_task", "missing", "missing_policy", "method"),
    *("decoding", "tests", "protocol", "source", "notes"),
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
    protocol = dict(run.protocol_lines)
    data = estimate.to_dict()
    for name in ("bounds", "value_range"):  # the notes say what missing attempts leave possible
        data.pop(name, None)
    return {
        **data,
        "run": run.name,
        "slice": part,
        "attempts_per_task": protocol["attempts per task (n)"],
        "missing": run.run.outcomes.total_missing,
        "missing_policy": protocol["missing policy"],
        "decoding": protocol["decoding"],
        "tests": protocol["tests"],
        "protocol": protocol["protocol"],
        "source": run.run.source,
        "notes": "; ".join(estimate.notes),
    }


def gate_as_junit(result: gate.GateResult) -> str:
    """A test case per rule: refuted is a failure, not settled is an error.

    A rule that is not settled is no success, so it must not be shown as one; and it is no refuted
    rule either. Where the gate only warns, it is skipped: JUnit has no warning.
    """
    results = result.results
    open_rules = sum(rule.verdict is gate.GateVerdict.NOT_SETTLED for rule in results)
    warns = result.unsettled in ("pass", "warn")
    suite = ElementTree.Element(
        "testsuite",
        name=f"passhat gate: {_printable(result.name)}",
        tests=str(len(results) + result.incomplete),
        failures=str(sum(rule.verdict is gate.GateVerdict.REFUTED for rule in results)),
        errors=str((0 if warns else open_rules) + result.incomplete),
        skipped=str(open_rules if warns else 0),
    )

    def add_case(name: str) -> ElementTree.Element:
        return ElementTree.SubElement(
            suite, "testcase", classname=_printable(result.name), name=name
        )

    for rule in results:
        _fill_case(add_case(str(rule.rule)), rule, warns=warns)
    if result.incomplete:
        text, case = _printable(result.headline), add_case("all planned attempts")
        ElementTree.SubElement(case, "error", type="incomplete", message=text)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _fill_case(case: ElementTree.Element, result: gate.RuleResult, *, warns: bool) -> None:
    kinds = {
        gate.GateVerdict.REFUTED: "failure",
        gate.GateVerdict.NOT_SETTLED: "skipped" if warns else "error",
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


# -- scores for experiment trackers ----------------------------------------------------------


def plain_name(metric: str) -> str:
    """A metric in letters, digits and underscores: ``pass_hat_4`` for ``pass^4``.

    MLflow refuses ``^`` in the name of a metric, and W&B cannot sort by one that has it.
    """
    words = metric.replace("^", "_hat_").replace("@", "_at_")
    return re.sub(r"[^0-9A-Za-z_]+", "_", words)


def task_scores(run: Run, estimate: Estimate) -> dict[str, float]:
    """pass^k or pass@k of every task that has k attempts; their mean is the value of the run."""
    metric = estimate.metric
    if not isinstance(metric, PassAt | PassHat):
        return {}
    completion = MissingPolicy.of(estimate.missing_policy).completion
    n, c = run.outcomes.counts(completion)
    k, value = metric.k, pass_at_k if isinstance(metric, PassAt) else pass_hat_k
    rows = np.flatnonzero(n >= k)
    values = np.atleast_1d(value(n[rows], c[rows], k))
    pairs = zip(rows.tolist(), values.tolist(), strict=True)
    return {run.outcomes.tasks[place]: score for place, score in pairs}


def as_wandb(report: Report) -> str:
    """JSON with the name, config and summary of every run, as W&B's ``wandb.init`` takes them."""
    runs = [
        {"name": run.name, "config": _config(run), "summary": dict(_numbers(run))}
        for run in report.runs
    ]
    return json.dumps({"schema": "passhat.wandb/1", "runs": runs}, indent=2) + "\n"


def as_langfuse(report: Report) -> str:
    """A JSON list of bodies for ``POST /api/public/scores`` of Langfuse.

    The scores of a run are those of a session with the name of the run. Attempts that were read
    from Langfuse get the score of their task on their trace, so that the average over an
    experiment is the value of the run. The ids are the same each time: sending twice changes
    nothing.
    """
    return json.dumps([body for run in report.runs for body in _langfuse(run)], indent=2) + "\n"


def _langfuse(run: RunReport) -> Iterator[dict[str, object]]:
    ours = run.run
    has_traces = ours.attempts is not None and _LANGFUSE_TITLE in ours.reading
    for estimate in _scores(run):
        shared = {"name": estimate.metric.name, "dataType": "NUMERIC"}
        yield {
            "id": _same_id(run.name, estimate.metric.name),
            "sessionId": run.name[:_LONGEST_SESSION],
            "value": estimate.value,
            **shared,
            "comment": _interval_sentence(estimate),
            "metadata": {"passhat": __version__, **estimate.to_dict()},
        }
        scores = task_scores(ours, estimate) if has_traces else {}
        for attempt in ours.attempts or ():
            trace = attempt.extras.get("source_id")
            if trace and attempt.task in scores:
                yield {
                    "id": _same_id(trace, estimate.metric.name),
                    "traceId": trace,
                    "value": scores[attempt.task],
                    **shared,
                }


_LANGFUSE_TITLE = "Langfuse scores"
"""The title of the mapping that reads Langfuse."""
_LONGEST_SESSION = 200


def send_to_mlflow(report: Report, experiment: str) -> list[str]:
    """Log every run to an MLflow server as a finished run; return the addresses of these runs.

    The server is the one that ``MLFLOW_TRACKING_URI`` names; the experiment is made if absent.
    """
    with PlatformClient(PLATFORMS["mlflow"], f"mlflow:{experiment}") as client:
        path = "/api/2.0/mlflow"
        entry = client.get_or_none(
            f"{path}/experiments/get-by-name", experiment_name=experiment
        ) or {"experiment": client.post(f"{path}/experiments/create", {"name": experiment})}
        number = entry["experiment"]["experiment_id"]
        return [_send_run(client, path, number, run) for run in report.runs]


def _send_run(client: PlatformClient, path: str, experiment: str, run: RunReport) -> str:
    now = int(time.time() * 1000)
    tags = {
        "mlflow.note.content": run.headline,
        "passhat.version": __version__,
        "passhat.protocol": run.protocol.digest,
    }
    info = client.post(
        f"{path}/runs/create",
        {
            "experiment_id": experiment,
            "run_name": run.name[:_LONGEST_VALUE],
            "start_time": now,
            "tags": _pairs(tags),
        },
    )["run"]["info"]
    params = {name: str(value)[:_LONGEST_VALUE] for name, value in _config(run).items()}
    metrics = [
        {"key": name, "value": value, "timestamp": now, "step": 0} for name, value in _numbers(run)
    ]
    body = {"run_id": info["run_id"]}
    client.post(f"{path}/runs/log-batch", {**body, "params": _pairs(params)})
    for start in range(0, len(metrics), _BATCH):
        client.post(f"{path}/runs/log-batch", {**body, "metrics": metrics[start : start + _BATCH]})
    client.post(f"{path}/runs/update", {**body, "status": "FINISHED", "end_time": now})
    return f"{client.shown_url}/#/experiments/{experiment}/runs/{info['run_id']}"


_BATCH = 500
"""MLflow takes at most 1,000 metrics in one request."""
_LONGEST_VALUE = 500


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _scores(run: RunReport) -> Iterator[Estimate]:
    """One estimate per metric that has a value: those about new tasks come first."""
    names = set()
    for estimate in run.estimates:
        if estimate.metric not in names and not math.isnan(estimate.value):
            names.add(estimate.metric)
            yield estimate


def _numbers(run: RunReport) -> Iterator[tuple[str, float]]:
    """Every number under a plain name; an interval about these tasks says so in its name."""
    for estimate in _scores(run):
        yield plain_name(estimate.metric.name), estimate.value
        if estimate.value_if_passed not in (None, estimate.value):
            name = f"{plain_name(estimate.metric.name)}_if_missing_passed"
            yield name, float(estimate.value_if_passed or 0)
    for estimate in run.estimates:
        is_usual = estimate.population is Population.NEW_TASKS
        about = "" if is_usual else f"_{plain_name(estimate.population)}"
        for end, value in (("low", estimate.low), ("high", estimate.high)):
            if value is not None and not math.isnan(value):
                yield f"{plain_name(estimate.metric.name)}_{end}{about}", value


def _config(run: RunReport) -> dict[str, object]:
    """The facts that the numbers rest on, as far as they are known."""
    outcomes = run.run.outcomes
    facts = {
        "agent": run.run.agent,
        "suite": run.protocol.suite,
        "judge": run.protocol.judge,
        **{f"decoding.{key}": value for key, value in run.protocol.decoding.items()},
        "tasks": len(outcomes),
        "attempts_per_task": outcomes.attempts_text(),
        "passed": outcomes.passes,
        "missing": outcomes.total_missing,
        "missing_policy": run.protocol.missing,
        "level": run.level,
        "source": run.run.source,
        "protocol": run.protocol.digest,
        "passhat": __version__,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _interval_sentence(estimate: Estimate) -> str:
    counts = f"{counted(estimate.tasks, 'task')}, {counted(estimate.attempts, 'attempt')}"
    if estimate.low is None or estimate.level is None:
        return counts
    return (
        f"{100 * estimate.level:g}% interval for {estimate.population}: "
        f"{percent_interval(estimate.low, estimate.high)}; {counts}"
    )


def _same_id(*parts: str) -> str:
    return "passhat-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _printable(text: str) -> str:
    """XML 1.0 has no way to write control characters."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in text)
