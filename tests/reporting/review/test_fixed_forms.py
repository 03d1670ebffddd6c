"""Counts of tasks by their passes, lists of metrics, sizes and totals in a fixed form."""

from __future__ import annotations

import pytest

from passhat import Outcomes, Run
from passhat.reporting.review import Support, review

# Of 30 tasks with 4 attempts: how many pass 0, 1, 2, 3 and 4 times.
PASSES = {"Osprey": (3, 2, 4, 9, 12), "Plover": (12, 5, 6, 4, 3)}


def _runs() -> list[Run]:
    counts = {
        name: [passes for passes, tasks in enumerate(tasks_with) for _ in range(tasks)]
        for name, tasks_with in PASSES.items()
    }
    return [Run(name, name, Outcomes.from_counts(4, one)) for name, one in counts.items()]


def _supports(text: str) -> set[Support]:
    return {check.support for claim in review(text, _runs()).claims for check in claim.checks}


TRUE = (
    "Nine tasks were missed by Osprey exactly once in four attempts.",
    "Osprey solved 21 of the 30 tasks in at least three of four attempts.",
    "Plover was unable to solve 12 of the 30 tasks in any of its four attempts.",
    "Exactly three tasks were solved by Plover on all four of its attempts.",
    "Plover was flawless on fewer than one in five of the tasks.",
    "Osprey failed at least once on 18 of the 30 tasks.",
    "Two tasks were solved by Osprey exactly once, and four exactly twice.",
    "No more than three tasks were solved by Plover in every attempt.",
    "Osprey & 70.8 & 90.0 \\\\ % pass@1, pass@4",
    "% columns: pass@1, pass^4\nOsprey & 70.8 & 40.0 \\\\\nPlover & 34.2 & 10.0 \\\\",
    "Osprey: 70.8 / 90.0 / 40.0 (pass@1, pass@4, pass^4)",
    "Osprey p@1 .708, p@4 .90",
    "| k | Osprey pass^k | Plover pass^k |\n|---|---|---|\n| 1 | 70.8 | 34.2 |\n| 4 | 40 | 10 |",
    "Plover logged 79 failed attempts, compared with 35 for Osprey.",
    "35 failed runs for Osprey versus 79 for Plover.",
    "Osprey solves a larger share of the tasks in all four attempts than Plover does.",
    "Plover passes fewer tasks in every attempt than Osprey.",
    "The 95% interval on the gap between Osprey and Plover is 22 to 51 points.",
    "Each agent was run 4 times on each of the 30 tasks, for a total of 120 attempts per agent.",
    "Forty percent of the tasks stayed out of reach for Plover.",
    "Our suite comprises 30 tasks, and each of the 30 tasks was attempted four times.",
)
FALSE = (
    "Five tasks were missed by Osprey exactly once in four attempts.",
    "Osprey solved 26 of the 30 tasks in at least three of four attempts.",
    "Plover was unable to solve 4 of the 30 tasks in any of its four attempts.",
    "Exactly nine tasks were solved by Plover on all four of its attempts.",
    "Osprey is flawless on fewer than one in five of the tasks.",
    "Two tasks were solved by Osprey exactly once, and seven exactly twice.",
    "Osprey & 70.8 & 96.0 \\\\ % pass@1, pass@4",
    "Osprey: 70.8 / 90.0 / 60.0 (pass@1, pass@4, pass^4)",
    "| k | Osprey pass^k | Plover pass^k |\n|---|---|---|\n| 1 | 70.8 | 34.2 |\n| 4 | 40 | 24 |",
    "Plover logged 55 failed attempts, compared with 35 for Osprey.",
    "Half of all Osprey runs failed, 60 out of 120.",
    "Plover solves a larger share of the tasks in all four attempts than Osprey does.",
    "The 95% interval on the gap between Osprey and Plover is -6 to +9 points.",
    "Osprey scores 70.8% ± 2.1 pass@1 (95% interval, over tasks).",
    "Each agent was run 4 times on each of the 30 tasks, for a total of 400 attempts per agent.",
    "With four tries Plover gets to where Osprey is with two (both about 60%).",
    "Our suite comprises 45 tasks.",
    "On a 90-task benchmark Osprey passes 70.8% of attempts.",
    "Each of the 30 tasks was attempted seven times.",
    "Both agents score above 50%.",
)
OPEN = (
    "Osprey needs no retry on 12 tasks.",
    "Osprey & 70.8 & 82.1 & 90.0 \\\\ % pass@1, pass@4",
    "The full benchmark has 300 tasks.",
    "Plover needed more than one attempt on 27 tasks.",
    "Osprey solved 12 tasks every time, nine tasks three times, and three tasks never.",
    "Osprey, oddly enough, mishandled five tasks exactly once.",
)


@pytest.mark.parametrize("text", TRUE)
def test_a_true_form_is_supported(text: str) -> None:
    assert _supports(text) == {Support.SUPPORTED}


@pytest.mark.parametrize("text", FALSE)
def test_a_false_form_is_contradicted(text: str) -> None:
    assert Support.CONTRADICTED in _supports(text)


@pytest.mark.parametrize("text", OPEN)
def test_a_form_that_is_not_understood_is_left_open(text: str) -> None:
    assert _supports(text) <= {Support.NOT_CHECKABLE, Support.SUPPORTED}


def test_the_other_end_of_single_runs_is_not_called_wrong() -> None:
    verdicts = [[1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]]
    runs = [Run("Osprey", "Osprey", Outcomes.from_matrix(verdicts))]
    text = "Osprey's worst trial cleared 2 of the 4 tasks and its best cleared 3."
    checks = [check for claim in review(text, runs).claims for check in claim.checks]
    assert Support.CONTRADICTED not in {check.support for check in checks}


def test_a_number_behind_a_sign_is_no_version() -> None:
    counts = [0, 1, 2, 3, 4] * 6
    runs = [Run("Osprey 2.1", "Osprey 2.1", Outcomes.from_counts(4, counts))]
    (claim,) = review("Osprey 2.1 scores 50.0% ± 2.1 pass@1 (95% interval).", runs).claims
    assert "not-in-data" in {finding.rule for finding in claim.findings}
