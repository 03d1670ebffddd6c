"""A plan as it is read: sentences, tables and ranges, and what they rest on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from scipy.stats import norm

from passhat import Outcomes, Run, plan_tasks
from passhat._serialize import as_json
from passhat.reporting.documents.forecast import plan_table
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Attempts
from passhat.stats.plan import Difficulty, Plan
from passhat.stats.plan.plan_result import HalfWidth, PlanRow
from passhat.stats.plan.planner import half_widths

PILOT = Outcomes.from_counts(4, [0, 1, 2, 3, 4, 4, 4, 2, 1, 4] * 3)


def _made(**changes: object) -> Plan:
    made = Plan(
        metric="pass^4",
        goal="half-width",
        target=0.05,
        level=0.95,
        power=None,
        value=0.6,
        between=0.1,
        within=0.05,
        rows=(PlanRow(4, 100, 400, None, None), PlanRow(8, 60, 480, None, None)),
        fewest_tasks=50,
        enough_attempts=8,
        pilot_reaches=None,
        assumptions=("difficulty as in the pilot",),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_sentence_is_about_the_way_with_the_fewest_attempts() -> None:
    made = _made()
    assert made.cheapest.attempts == 4
    assert made.sentence == (
        "To know pass^4 to within 0.05 at level 95%: 100 tasks x 4 attempts, 400 attempts in all."
    )
    tied = _made(rows=(PlanRow(4, 120, 480, None, None), PlanRow(8, 60, 480, None, None)))
    assert tied.cheapest.tasks == 60  # the same attempts at fewer tasks


def test_a_comparison_says_that_both_agents_make_the_attempts() -> None:
    made = _made(goal="detect", power=0.8, target=0.03, rows=(PlanRow(1, 1, 2, None, None),))
    assert made.sentence == (
        "To see a lift of 0.03 in pass^4 with power 80% at level 95%: 1 task x 1 attempt by each "
        "agent, 2 attempts in all."
    )
    these = replace(made, about="these tasks")
    assert "in pass^4 on these tasks with power 80%" in these.sentence
    gate = replace(made, gate=True, about="these tasks")
    assert gate.sentence.startswith(
        "For the gate to be red with power 80% when pass^4 drops by 0.03 on these tasks: "
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"about": "these tasks"}, "about these tasks only attempts count"),
        ({"enough_attempts": None}, "the tasks are so alike"),
        (
            {"enough_attempts": 1, "fewest_tasks": 1},
            "beyond 1 attempt per task more attempts save less than a tenth of the tasks; at least "
            "1 task is needed",
        ),
        ({}, "beyond 8 attempts per task"),
    ],
)
def test_where_more_attempts_stop_helping(changes: dict[str, object], says: str) -> None:
    assert _made(**changes).attempts_text.startswith(says)


def test_columns_that_were_not_recorded_are_left_out() -> None:
    plain = plan_table(_made())
    assert plain.header == ("attempts per task", "tasks", "attempts in all")
    assert plain.rows[0] == ("4", "100", "400")
    rows = (PlanRow(4, 1000, 4000, 1234.5, 5400.0), PlanRow(8, 600, 4800, 1481.4, 6480.0))
    priced = plan_table(_made(rows=rows))
    assert priced.header[3:] == ("cost", "hours in a row")
    assert priced.rows[0] == ("4", "1,000", "4,000", "1,234.50", "1.5")


def test_ranges_and_the_pilots_own_size_are_told() -> None:
    remarks = _made(
        tasks_range=(80, 1_300), power_range=(0.61, 0.934), pilot_reaches=0.0714
    ).remarks()
    text = "\n".join(remarks)
    assert "80 to 1,300 tasks, power 61% to 93% (from 1 to 9 redraws in 10)" in text
    assert "a run of the pilot's size gives a half-width of 0.071" in text
    assert "power" not in " ".join(_made(tasks_range=(80, 1_300)).remarks())
    lift = str(_made(goal="detect", power=0.8, pilot_reaches=0.0714))
    assert "a run of the pilot's size gives a lift of 0.071" in lift
    assert lift.endswith("· difficulty as in the pilot")


def test_a_half_width_is_normal_theory_with_guenthers_term() -> None:
    """n = z^2 v / w^2 + z^2 / 2, and back."""
    z = norm.ppf(0.975)
    goal = HalfWidth(0.05, 0.95)
    assert goal.tasks(0.2) == int(np.ceil(z**2 * 0.2 / 0.05**2 + z**2 / 2))
    assert goal.tasks(0.0) == 2
    assert goal.reach(0.2, 310) == pytest.approx(z * np.sqrt(0.2 / (310 - z**2 / 2)))
    assert goal.reach(0.2, 1) == pytest.approx(z * np.sqrt(0.2))


def _run(cost: list[float] | None) -> Run:
    n, tasks = 4, len(PILOT)
    verdicts = np.concatenate([[1] * c + [0] * (n - c) for c in PILOT.c.tolist()]).astype(np.int8)
    measures = {} if cost is None else {"cost": np.resize(cost, n * tasks)}
    attempts = Attempts(
        tuple(PILOT.tasks),
        np.arange(0, n * tasks + 1, n),
        verdicts,
        None,
        MappingProxyType(measures),
    )
    return Run("pilot", "agent", PILOT, attempts=attempts)


def test_costs_are_the_pilots_average_times_all_attempts() -> None:
    priced = plan_tasks(_run([0.1, 0.3, np.nan]), metric="pass^2", half_width=0.08)
    for row in priced.rows:
        assert row.total_attempts == row.tasks * row.attempts
        assert row.cost == pytest.approx(0.2 * row.total_attempts)
        assert row.seconds is None
    both = plan_tasks(_run([0.1, 0.3, np.nan]), metric="pass^2", detect=0.08)
    assert all(row.total_attempts == 2 * row.tasks * row.attempts for row in both.rows)
    assert any("the second agent is taken to cost the same" in text for text in both.assumptions)
    assert plan_tasks(_run(None), metric="pass^2", half_width=0.08).rows[0].cost is None


def test_a_plan_and_the_half_widths_of_a_report_are_one_computation() -> None:
    made = plan_tasks(PILOT, metric="pass^2", half_width=0.08)
    (same, more_tasks, more_attempts) = half_widths(
        PILOT, PassHat(2), [(30, 4), (120, 4), (30, 16)], 0.95
    )
    assert same == made.pilot_reaches
    assert more_tasks == pytest.approx(same / 2, rel=0.04)  # the root of four times the tasks
    assert more_tasks < more_attempts < same
    reached = half_widths(PILOT, PassHat(2), [(row.tasks, row.attempts) for row in made.rows], 0.95)
    assert all(0.078 <= width <= 0.08 + 1e-9 for width in reached)


def test_fewest_tasks_is_the_floor_that_attempts_without_end_reach() -> None:
    made = plan_tasks(PILOT, metric="pass^1", half_width=0.05, attempts=4096)
    difficulty = Difficulty.from_outcomes(PILOT)
    between = difficulty.components(PassHat(1), 4096).between
    z = norm.ppf(0.975)
    assert made.fewest_tasks == int(np.ceil(z**2 * between / 0.05**2 + z**2 / 2))
    assert made.enough_attempts is not None
    # At that many attempts what lies within tasks is a tenth of what lies between, and not before.
    at, before = (
        difficulty.components(PassHat(1), n)
        for n in (made.enough_attempts, made.enough_attempts - 1)
    )
    assert at.within <= 0.1 * at.between
    assert before.within > 0.1 * before.between


def test_clusters_of_copies_multiply_the_tasks_by_their_size() -> None:
    copies = Outcomes.from_counts(
        4, np.repeat(PILOT.c, 3), labels={"repo": [f"r{i // 3}" for i in range(90)]}
    )
    alone = plan_tasks(copies, metric="pass^2", half_width=0.05)
    clustered = plan_tasks(copies, metric="pass^2", half_width=0.05, cluster="repo")
    # Every cluster is one task three times: three times the variance of a mean over tasks.
    z = norm.ppf(0.975) ** 2 / 2
    ratio = (clustered.fewest_tasks - z) / (alone.fewest_tasks - z)
    assert ratio == pytest.approx(3.0, abs=0.05)
    assert any("30 clusters of repo" in text for text in clustered.assumptions)


def test_the_range_of_tasks_holds_the_plan_and_power_falls_with_the_variance() -> None:
    made = plan_tasks(PILOT, metric="pass^2", detect=0.1)
    assert made.tasks_range is not None
    assert made.power_range is not None
    low, high = made.tasks_range
    assert low <= made.cheapest.tasks <= high
    assert made.power_range[0] < 0.8 <= made.power_range[1] + 1e-9
    alone = plan_tasks(metric="pass^2", detect=0.1, mean=0.6, icc=0.4)
    assert alone.tasks_range is None
    assert alone.power_range is None
    assert alone.assumptions[0] == (
        "no pilot: 60% of attempts pass, ICC 0.4, success rates follow a Beta"
    )


def test_plans_are_written_whole() -> None:
    made = plan_tasks(PILOT, metric="pass^2", detect=0.1)
    data = json.loads(as_json(made))
    assert data["schema"] == "passhat.plan/1"
    assert data["sentence"] == made.sentence
    assert (
        data["cheapest"]
        == data["rows"][[row["tasks"] for row in data["rows"]].index(made.cheapest.tasks)]
    )
    assert re.fullmatch(r"To see a lift of 0\.1 in pass\^2 .*", made.sentence)


def test_missing_attempts_of_the_pilot_are_said_with_what_they_cost() -> None:
    whole = plan_tasks(PILOT, half_width=0.1)
    assert not any("missing" in note for note in whole.assumptions)
    pilot = Outcomes.from_matrix(np.array([[1, 0, np.nan, 1], [1, 1, 1, np.nan], [0, 1, 0, 1]]))
    note = plan_tasks(pilot, half_width=0.1).assumptions[0]
    assert note.startswith("2 of 12 attempts of the pilot are missing")
    assert "the ends of pass^1 lie 16.7 points further apart" in note
