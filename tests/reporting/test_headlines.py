"""The sentence before any table, read for every small suite: it never says more than its data."""

from __future__ import annotations

import re
from itertools import combinations_with_replacement, product

import pytest

from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.view import RunReport
from passhat.stats.outcomes import Outcomes, Run

SHARE = re.compile(r"(under |over )?(\d+(?:\.\d+)?)(?: to (\d+(?:\.\d+)?))?%")


def _report(table: list[tuple[int, ...]]) -> RunReport:
    run = Run("bot", "bot", Outcomes.from_matrix(table))
    return build_report([run], ReportOptions(short=True)).runs[0]


TABLES = [
    list(rows)
    for tasks, n in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2))
    for rows in combinations_with_replacement(list(product((1, 0), repeat=n)), tasks)
]


@pytest.mark.parametrize("table", TABLES[::2], ids=str)
def test_shares_are_those_of_the_table(table: list[tuple[int, ...]]) -> None:
    headline = _report(table).headline
    n, tasks = len(table[0]), len(table)
    passed = sum(map(sum, table))
    assert headline.endswith(".")
    assert "nan" not in headline
    if tasks == 1 and n == 1:
        assert f"The only judged attempt at the only task {'passed' if passed else 'failed'}" in (
            headline
        )
        assert not SHARE.search(headline)
        return
    if tasks == 1:
        assert headline.startswith(f"{passed} of {n} attempts at the only task pass (")
        assert "of tasks" not in headline
        return
    first = SHARE.match(headline)
    assert first is not None
    share = 100 * passed / (n * tasks)
    assert abs(float(first[2]) - share) <= 0.5
    if n == 1:
        assert "cannot show whether the same task passes again" in headline
        return
    all_pass = 100 * sum(sum(row) == n for row in table) / tasks
    reliable = re.search(r"; both pass on (\d+)% of tasks \(([\d.]+) to ([\d.]+)%\)", headline)
    assert reliable is not None
    assert abs(float(reliable[1]) - all_pass) <= 0.5
    assert float(reliable[2]) <= float(reliable[1]) <= float(reliable[3])


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([(1, -1), (0, 0)], "25 to 50% of single attempts pass"),
        ([(-1, -1), (-1, -1)], "No attempt has a verdict: all 4 are missing."),
        ([(-1,)], "No attempt has a verdict: the only one is missing."),
        ([(1, -1, -1)], "The only judged attempt at the only task passed."),
    ],
)
def test_missing_attempts_are_not_counted_as_known(table: list[tuple[int, ...]], says: str) -> None:
    assert _report(table).headline.startswith(says)


def test_missing_attempts_are_told_with_their_share() -> None:
    report = _report([(1, -1), (0, 0)])
    assert report.missing_text == "1 attempt of 4 (25.0%): not_recorded 1"
    assert _report([(1, 1)]).missing_text == "none"


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_all_of_k_is_named_for_the_k_that_every_task_has(n: int) -> None:
    report = build_report(
        [Run("bot", "bot", Outcomes.from_counts([n, 9, 9], [n, 9, 0]))], ReportOptions(short=True)
    ).runs[0]
    largest = max(k for k in (1, 2, 4, 8) if k <= n)
    assert report.top_k == largest
    if largest == 2:
        assert "; both pass on 67% of tasks" in report.headline
    elif largest > 2:
        assert f"; all {largest} pass on 67% of tasks" in report.headline
