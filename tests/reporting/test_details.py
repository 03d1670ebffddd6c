"""What charts show: the same numbers as the estimates, and measures that add up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from passhat import Outcomes, Run, compare, estimate, forecast, read
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.details import Details
from passhat.reporting.measures import measures_of
from passhat.reporting.task_changes import task_changes
from passhat.stats.outcomes import Attempt, Verdict
from passhat.stats.outcomes.attempts import Attempts


def _details(run: Run, **options: object) -> Details:
    (found,) = build_report([run], ReportOptions(with_details=True, **options)).runs  # type: ignore[arg-type]
    assert found.details is not None
    return found.details


def test_curves_are_the_estimates_at_every_k() -> None:
    run = read("example:helpdesk")[0]
    (report,) = build_report([run], ReportOptions(with_details=True)).runs
    assert report.details is not None
    curves = report.details.curves
    assert [str(found.metric) for found in curves.pass_hat] == [f"pass^{k}" for k in range(1, 9)]
    drawn = {str(one.metric): one for one in (*curves.pass_hat, *curves.pass_at, *curves.delta)}
    shared = [one for one in report.estimates if one.population == "new tasks"]
    assert shared
    for found in shared:
        assert drawn[str(found.metric)] == found
    assert drawn["pass^3"] == estimate(run.outcomes, "pass^3")
    assert curves.forecast_at[-1] == forecast(run, "pass@80")
    assert curves.forecast_hat[-1].metric.name == "pass^32"
    json.dumps(report.to_dict(), allow_nan=False)


def test_missing_attempts_under_each_policy() -> None:
    run = read("example:helpdesk")[0]
    assert run.outcomes.total_missing
    policies = _details(run).policies
    assert set(policies) == {"pass^1", "pass^8", "pass@8"}
    for way in ("bound", "fail", "exclude"):
        assert policies["pass^1"][way] == estimate(run.outcomes, "pass^1", missing=way)
    assert policies["pass^8"]["exclude"] is None
    whole = Run("whole", "whole", Outcomes.from_counts(4, [1, 2, 3]))
    assert _details(whole).policies == {}


def test_one_attempt_per_task_still_gives_a_page() -> None:
    found = _details(Run("one", "one", Outcomes.from_counts(1, [1, 0, 1])))
    assert found.curves.pass_hat == ()
    assert (found.plan, found.widths) == (None, ())
    assert found.curves.forecast_at


def test_widths_shrink_with_tasks_and_attempts() -> None:
    found = _details(Run("a", "a", Outcomes.from_counts(4, [0, 1, 2, 3, 4] * 8)))
    width = {(one.tasks, one.attempts): one.width for one in found.widths}
    assert {tasks for tasks, _ in width} == {20, 40, 80, 160, 320}
    for (tasks, attempts), wide in width.items():
        assert width.get((2 * tasks, attempts), 0) < wide
        assert width.get((tasks, 2 * attempts), 0) < wide
    assert found.plan is not None
    assert found.plan.pilot_reaches == pytest.approx(width[40, 4] / 2)


def _attempts(cost: list[list[float]], verdicts: list[list[int]]) -> Attempts:
    starts = np.concatenate(([0], np.cumsum([len(row) for row in cost])))
    flat = [value for row in verdicts for value in row]
    column = np.array([value for row in cost for value in row])
    tasks = tuple(map(str, range(len(cost))))
    return Attempts(tasks, starts, np.array(flat, np.int8), measures={"cost": column})


def test_what_a_success_costs() -> None:
    found = measures_of(_attempts([[1, 3], [2, 2], [4, np.nan]], [[1, 0], [1, 1], [0, 1]]), 0.95)
    (cost,) = found
    assert (cost.attempts, cost.passed) == (5, 3)
    assert cost.mean == pytest.approx(12 / 5)
    assert cost.per_solved == pytest.approx(4.0)
    assert cost.low is not None
    assert cost.high is not None
    assert 0 < cost.low < 4 < cost.high
    passed, failed = cost.spread
    assert (passed.verdict, passed.median, failed.median) == ("passed", 2, 3.5)
    (none,) = measures_of(_attempts([[1.0, 2.0]], [[0, 0]]), 0.95)
    assert (none.per_solved, none.low) == (None, None)
    assert measures_of(None, 0.95) == ()


def test_the_interval_of_the_ratio_covers() -> None:
    """400 suites with a known cost per success: at least 93 in 100 intervals hold it."""
    draw = np.random.default_rng(11)
    inside = 0
    for _ in range(400):
        rates = draw.beta(2, 2, 40)
        verdicts = (draw.random((40, 4)) < rates[:, None]).astype(int)
        cost = draw.gamma(2, 1, (40, 4))
        (found,) = measures_of(_attempts(cost.tolist(), verdicts.tolist()), 0.95)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 2 / 0.5 <= found.high
    assert inside >= 0.93 * 400


FLIPS = ((0.4, 0.5), (0.5, 0.4), (0.5, 0.9), (0, 0.4))


def test_changes_are_the_lift_task_by_task() -> None:
    a, b = read("example:helpdesk")
    changes = task_changes(a, b, "pass^1")
    lift = compare(a, b, "pass^1").results[0]
    assert np.mean([one.change for one in changes]) == pytest.approx(lift.lift)
    assert sum(one.change > 1e-12 for one in changes) == lift.wins
    assert [one.change for one in changes] == sorted((o.change for o in changes), reverse=True)


def test_a_flip_looks_at_attempts_and_not_at_the_metric() -> None:
    """7 of 8 attempts pass and pass^8 is 0: the task did not flip."""
    a, b = (
        Run(name, name, Outcomes.from_counts(8, c, ["t1", "t2", "t3"]))
        for name, c in (("a", [8, 3, 5]), ("b", [7, 4, 3]))
    )
    changes = {one.task: one for one in task_changes(a, b, "pass^8")}
    assert changes["t1"].change == -1
    assert [changes[task].flip for task in ("t1", "t2", "t3")] == [None, "won", "lost"]
    assert changes["t3"].counts_text == "5 of 8 -> 3 of 8"


def test_objects_show_themselves_in_a_notebook() -> None:
    hostile = "<b>&</b>"
    run = Run(hostile, hostile, Outcomes.from_counts(4, [1, 4, 0, 2], ["a", "b", "c", "d"]))
    other = Run("other", "other", Outcomes.from_counts(4, [2, 4, 1, 2], ["a", "b", "c", "d"]))
    for shown in (
        run,
        run.outcomes,
        run.protocol,
        estimate(run.outcomes, "pass^2"),
        compare(run, other, "pass^2"),
        compare(run, other, "pass^2").results[0],
        forecast(run, "pass@40"),
    ):
        text = shown._repr_html_()
        assert text.startswith("<table><caption>")
        assert hostile not in text
    assert Attempt("t", 1, Verdict.PASSED).id == "t#1"
