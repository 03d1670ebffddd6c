"""Runs on different tasks of one pool: a lift about new tasks, with its larger interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passhat.errors import InvalidValue, NotComparable
from passhat.protocol import Protocol
from passhat.stats.compare import compare
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.outcomes.rewards import COUNTED_SCORES
from passhat.stats.plan import plan_tasks

RNG = np.random.default_rng(6)


def _draw(rate: float, tasks: int, name: str, n: int = 4) -> Outcomes:
    rates = np.clip(RNG.normal(rate, 0.25, tasks), 0, 1)
    return Outcomes.from_matrix(
        RNG.random((tasks, n)) < rates[:, None], [f"{name}{i}" for i in range(tasks)]
    )


A, B = _draw(0.4, 50, "a"), _draw(0.8, 70, "b")


def test_the_lift_is_the_difference_of_the_means() -> None:
    found = compare(A, B, "pass^2", unpaired=True)
    (result,) = found.results
    assert result.lift == pytest.approx(estimate(B, "pass^2").value - estimate(A, "pass^2").value)
    assert 0 < result.low < result.lift < result.high
    assert result.p_value is None
    assert found.these_tasks == ()
    assert "50 tasks of A and 70 of B, not paired" in found.title
    assert "50 and 70 tasks, not paired" in result.sentence
    assert "times narrower" in found.notes[0]


def test_sides_can_be_exchanged_and_levels_nest() -> None:
    (one,), (other,) = (compare(*pair, unpaired=True).results for pair in ((A, B), (B, A)))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=0.004)
    (wide,) = compare(A, B, unpaired=True, level=0.99).results
    assert wide.low < one.low < one.high < wide.high
    (narrow,), (narrower,) = (compare(A, B, unpaired=True, level=x).results for x in (0.4, 0.2))
    assert narrow.low < narrower.low < narrower.high < narrow.high
    (greater,) = compare(A, B, unpaired=True, alternative="greater").results
    assert greater.low > one.low
    assert greater.high == 1


def test_pairs_are_narrower_where_there_are_any() -> None:
    easiness = np.clip(RNG.normal(0.5, 0.3, 60), 0, 1)
    a, b = (Outcomes.from_matrix(RNG.random((60, 8)) < easiness[:, None]) for _ in range(2))
    paired = compare(a, b).results[0]
    found = compare(a, b, unpaired=True)
    apart = found.results[0]
    assert apart.lift == pytest.approx(paired.lift)
    times = (apart.high - apart.low) / (paired.high - paired.low)
    assert times > 1.4
    # The sentence is about agents that correlate less than these two do.
    said = float(found.notes[0].partition(" times narrower")[0].rpartition(" ")[2])
    assert 1 < said < times + 0.1


def test_runs_on_the_same_tasks_are_paired() -> None:
    other = Outcomes.from_counts(B.n[:50], B.c[:50], A.tasks)
    with pytest.raises(InvalidValue, match="50 tasks of 50 are in both runs"):
        compare(A, other, unpaired=True)
    assert ", 50 of them in both" in compare(A, other, unpaired=True, allow=True).notes[0]
    half = Outcomes.from_counts(B.n[:50], B.c[:50], [*A.tasks[:25], *B.tasks[:25]])
    assert ", 25 of them in both" in compare(A, half, unpaired=True).notes[0]
    more = Outcomes.from_counts(B.n[:50], B.c[:50], [*A.tasks[:26], *B.tasks[:24]])
    with pytest.raises(InvalidValue, match="26 tasks of 50 are in both runs"):
        compare(A, more, unpaired=True)
    few = Outcomes.from_counts(B.n[:50], B.c[:50], [*A.tasks[:10], *B.tasks[:40]])
    found = compare(A, few, unpaired=True)
    assert (len(found.only_a), len(found.only_b)) == (40, 40)
    assert ", 10 of them in both" in found.notes[0]


def test_scores_and_verdicts_are_not_compared_unless_allowed() -> None:
    graded = Outcomes.from_scores(RNG.random((50, 4)), [f"g{i}" for i in range(50)])
    for way in (False, True):
        other = Outcomes.from_counts(A.n, A.c, A.tasks if way else graded.tasks)
        with pytest.raises(NotComparable, match="grading: scores against verdicts only"):
            compare(graded, other, "mean", unpaired=way)
        found = compare(graded, other, "mean", unpaired=way, allow=True)
        assert found.agreement.differences[0].field == "grading"
        compare(graded, other, "pass^1", unpaired=way)
    other = Outcomes.from_counts(A.n, A.c, graded.tasks)
    with pytest.raises(NotComparable, match="different measures: grading"):
        plan_tasks(graded, metric="mean", against=other, detect=0.1)
    other = replace(other, unscored=COUNTED_SCORES)
    with pytest.raises(InvalidValue, match="scores were not kept: attempts were counted"):
        compare(graded, other, "mean")


def test_perfect_runs_keep_their_width() -> None:
    perfect = Outcomes.from_counts(4, [4] * 30, [f"p{i}" for i in range(30)])
    (result,) = compare(perfect, Outcomes.from_counts(4, [4] * 40), unpaired=True).results
    assert (result.lift, str(result.claim)) == (0, "inconclusive")
    assert result.low < -0.05
    assert result.high > 0.05


def test_missing_attempts_and_clusters_widen_it() -> None:
    (plain,) = compare(A, B, unpaired=True).results
    rows = np.ones((40, 4))
    rows[:, 0] = np.nan
    (missing,) = compare(A, Outcomes.from_matrix(rows), unpaired=True).results
    assert missing.lift_highest - missing.lift_lowest == pytest.approx(0.25)
    labels = {"template": [str(i // 10) for i in range(50)]}
    clustered = Outcomes.from_counts(A.n, A.c, A.tasks, labels=labels)
    other = Outcomes.from_counts(
        B.n, B.c, B.tasks, labels={"template": [str(i // 10) for i in range(70)]}
    )
    (wide,) = compare(clustered, other, unpaired=True, cluster="template").results
    assert wide.high - wide.low > plain.high - plain.low


def test_missing_attempts_leave_it_undecided_only_where_they_could_turn_the_lift() -> None:
    low = Outcomes.from_counts(4, [1] * 30, missing=[0] * 29 + [1])
    high = Outcomes.from_counts(4, [3] * 40, missing=[0] * 39 + [1])
    close = Outcomes.from_counts(4, [1] * 40, missing=[0] * 39 + [1])
    complete = Outcomes.from_counts(4, [1] * 40)
    for b, undecided in ((high, False), (close, True), (complete, True)):
        (result,) = compare(low, b, unpaired=True).results
        assert result.evidence.undecided is undecided
    (tie,) = compare(complete, Outcomes.from_counts(4, [1] * 30), unpaired=True).results
    assert tie.evidence.undecided is False


def test_it_is_about_new_tasks_and_one_protocol() -> None:
    with pytest.raises(InvalidValue, match="say nothing about the same tasks"):
        compare(A, B, unpaired=True, about="these tasks")
    with pytest.raises(InvalidValue, match="slices are compared task by task"):
        compare(A, B, unpaired=True, by="domain")
    one, other = (
        Run("r", "r", side, Protocol(judge=judge)) for side, judge in ((A, "exact"), (B, "lenient"))
    )
    with pytest.raises(NotComparable, match="judge"):
        compare(one, other, unpaired=True)
    drawn = [
        Run("r", "r", side, Protocol(suite_fingerprint=text)) for side, text in ((A, "x"), (B, "y"))
    ]
    assert compare(drawn[0], drawn[1], unpaired=True).agreement.differences == ()


def test_the_lower_end_seldom_misses() -> None:
    """50 pairs without a difference: each end misses in about 2.5%."""
    rng, missed = np.random.default_rng(1), [0, 0]
    for _ in range(50):
        sides = []
        for name in "ab":
            rates = rng.beta(0.5, 0.5, 25)
            rows = rng.random((25, 4)) < rates[:, None]
            sides.append(Outcomes.from_matrix(rows, [f"{name}{i}" for i in range(25)]))
        (result,) = compare(sides[0], sides[1], unpaired=True).results
        missed[0] += result.low > 0
        missed[1] += result.high < 0
    assert max(missed) <= 4


def test_the_command_says_how_to_and_does(tmp_path: Path, passhat: Callable[..., Any]) -> None:
    for name, side in (("a", A), ("b", B)):
        lines = [f"{name},{t},{n},{c}" for t, n, c in zip(side.tasks, side.n, side.c, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["model,task,n,c", *lines]))
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    refused = passhat("compare", *paths)
    assert (refused.code, "--unpaired" in refused.err) == (2, True)
    ended = passhat("compare", *paths, "--unpaired")
    assert ended.code == 0
    assert "not paired: 50 tasks against 70 tasks of the same pool" in " ".join(ended.out.split())
    three = passhat("compare", *paths, "example:helpdesk", "--unpaired")
    assert "--unpaired is about two runs" in three.err
