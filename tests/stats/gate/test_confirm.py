"""Suspects and their confirmation, and verdicts per task that may be looked at again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from passhat.stats.compare.pairing import pair
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.gate import FreshRun, GateOptions, GateVerdict, confirm, confirm_suspects, judge
from passhat.stats.gate.confirm import (
    _second_limit,
    add_attempts,
    choose_suspects,
    count_mean_attempts,
    pick_tasks,
)
from passhat.stats.gate.decision import find_suspects
from passhat.stats.gate.each_task import EachTaskRule, judge_tasks
from passhat.stats.gate.rules import parse_rule
from passhat.stats.outcomes import MissingPolicy, Outcomes, Run


def outcomes(passed: list[int], n: int = 4, **more: object) -> Outcomes:
    return Outcomes.from_counts(n, passed, [f"t{i}" for i in range(len(passed))], **more)  # type: ignore[arg-type]


def fresh(tasks: tuple[str, ...], passed: list[int], n: int = 8, side: str = "new") -> FreshRun:
    return FreshRun("id", side, Outcomes.from_counts(n, passed, tasks), 0.5)


def run_of(counts: Outcomes, name: str) -> Run:
    return Run(name, name, counts)


BASE = outcomes([4] * 45 + [2] * 14 + [4])
BROKEN = outcomes([4] * 45 + [2] * 14 + [0])


def test_suspects_are_the_largest_drops_and_never_a_rise() -> None:
    base, new = outcomes([4, 4, 4, 0, 2, 3, 4, 4]), outcomes([4, 0, 3, 4, 2, 0, 1, 3])
    suspects = choose_suspects(pair(base, new), MissingPolicy.BOUND, 0.95, most=3)
    assert suspects.names == ("t1", "t5", "t6") or suspects.names == ("t1", "t6", "t5")
    assert suspects.alpha == pytest.approx(0.015)
    same = choose_suspects(pair(base, base), MissingPolicy.BOUND, 0.95)
    assert same.tasks == ()


def test_one_broken_task_of_sixty_is_confirmed_by_fresh_attempts_of_both_sides() -> None:
    plain = judge(BROKEN, (), BASE, GateOptions())
    assert plain.verdict is not GateVerdict.REFUTED  # the reason for confirming
    suspects = find_suspects(run_of(BROKEN, "new"), run_of(BASE, "old"), GateOptions())
    confirmation = confirm_suspects(
        suspects, fresh(suspects.names, [0]), fresh(suspects.names, [8], side="baseline")
    )
    result = judge(BROKEN, (), BASE, GateOptions(confirmation=confirmation))
    assert result.exit_code == 1
    assert [task.task for task in result.results[0].broken] == ["t59"]
    assert "t59 (12 of 12 passed, now 0 of 12)" in result.headline
    text = " ".join(result.remarks)
    assert "Broken, first and fresh attempts counted: t59" in text
    assert "16 fresh attempts, $1.00" in text


def test_a_task_that_the_first_attempts_show_stays_shown_and_a_weak_one_is_acquitted() -> None:
    base, new = outcomes([8] * 10, 8), outcomes([8] * 9 + [0], 8)
    assert judge(new, (), base, GateOptions()).exit_code == 1
    suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
    both = fresh(suspects.names, [8]), fresh(suspects.names, [8], side="baseline")
    confirmation = confirm_suspects(suspects, *both)
    result = judge(new, (), base, GateOptions(confirmation=confirmation))
    assert [str(task) for task in result.results[0].broken] == ["t9 (16 of 16 passed, now 8 of 16)"]
    assert result.exit_code == 1
    weak = outcomes([8] * 9 + [4], 8)
    suspects = find_suspects(run_of(weak, "new"), run_of(base, "old"), GateOptions())
    result = judge(weak, (), base, GateOptions(confirmation=confirm_suspects(suspects, *both)))
    assert result.results[0].broken == ()
    assert "Suspected, not confirmed: t9 (16 of 16 passed, now 12 of 16)" in " ".join(
        result.remarks
    )
    # Counts beside causes are those of the run that failed so.
    (dropped,) = result.dropped
    assert (str(dropped.change), dropped.counted_in) == (
        "t9 (8 of 8 passed, now 4 of 8)",
        "first attempts",
    )


def test_all_tasks_that_the_first_attempts_show_stay_shown_beyond_the_suspects() -> None:
    base, new = outcomes([8] * 10, 8), outcomes([8] * 2 + [0] * 8, 8)
    suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
    both = fresh(suspects.names, [0] * 5), fresh(suspects.names, [8] * 5, side="baseline")
    options = GateOptions(confirmation=confirm_suspects(suspects, *both))
    result = judge(new, (), base, options)
    assert len(result.results[0].broken) == 8
    assert {task.status for task in result.dropped} == {"broken"}


def test_a_crash_of_a_task_that_mostly_passed_is_named_by_all_attempts() -> None:
    """6 of 8 fresh ones against 0 of 8 convict nobody, 14 of 16 against 0 of 16 do."""
    rng = np.random.default_rng(4)
    rates = np.full(20, 0.9)
    crash = np.append(rates[1:], 0.0)
    named = 0
    for _ in range(40):
        base, new = (outcomes(rng.binomial(8, p).tolist(), 8) for p in (rates, crash))
        suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
        places = [int(name[1:]) for name in suspects.names]
        again, before = (
            fresh(suspects.names, rng.binomial(8, p[places]).tolist()) for p in (crash, rates)
        )
        confirmation = confirm_suspects(suspects, again, before)
        named += "t19" in {task.task for task in confirmation.confirmed}
    assert named >= 39


def test_missing_fresh_attempts_count_against_the_confirmation() -> None:
    suspects = find_suspects(run_of(BROKEN, "new"), run_of(BASE, "old"), GateOptions())
    absent = FreshRun("id", "new", pick_tasks(outcomes([0], 1), suspects.names, 8))
    assert absent.missing == 8
    assert absent.attempts == 8
    confirmation = confirm_suspects(suspects, absent, fresh(suspects.names, [8]))
    assert confirmation.confirmed == ()
    assert confirmation.cost is None


def test_without_the_baselines_agent_the_correction_is_over_all_tasks() -> None:
    suspects = find_suspects(run_of(BROKEN, "new"), run_of(BASE, "old"), GateOptions())
    # 4 of 4 against 0 of 12 has p = 1 / C(16, 4), times 60 tasks, at two thirds of the error.
    eight = confirm_suspects(suspects, fresh(suspects.names, [0]), None, "gone.")
    assert eight.tests[0].p_value == pytest.approx(1 / 1820)
    assert eight.tests[0].p_holm == pytest.approx(1.5 * 60 / 1820)
    assert eight.confirmed == ()
    needed = suspects.attempts_to_confirm()
    assert needed == 16
    enough = confirm_suspects(suspects, fresh(suspects.names, [0], needed), None, "gone.")
    assert [task.task for task in enough.confirmed] == ["t59"]
    assert "gone." in enough.sentences[-1]


def test_a_baseline_that_no_longer_passes_is_not_the_baseline() -> None:
    base, new = outcomes([8] * 10, 8), outcomes([8] * 9 + [0], 8)
    suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
    both = fresh(suspects.names, [0]), fresh(suspects.names, [0], side="baseline")
    confirmation = confirm_suspects(suspects, *both)
    assert [task.task for task in confirmation.confirmed] == ["t9"]
    assert "its agent is not what it was, t9 (8 of 8 passed, now 0 of 8)" in confirmation.kept


def test_a_mean_that_the_first_attempts_leave_open_gets_a_second_look() -> None:
    """A drop spread over all tasks: as many attempts again show it, or clear it."""
    base, new = outcomes([7] * 6 + [5] * 4, 8), outcomes([6] * 6 + [4] * 4, 8)
    assert judge(new, (), base, GateOptions()).verdict is not GateVerdict.REFUTED
    suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
    more = count_mean_attempts(suspects.pairing, PassHat(1), MissingPolicy.BOUND, 0.05)
    assert more == 8
    results = {}
    for passed in (4, 6):
        again = fresh(tuple(new.tasks), [passed] * 10)
        confirmation = confirm_suspects(
            suspects, fresh(suspects.names, [6] * 5), None, "gone.", again
        )
        assert confirmation.confirmed == ()
        results[passed] = judge(new, (), base, GateOptions(confirmation=confirmation))
    assert results[6].verdict is not GateVerdict.REFUTED
    assert results[4].verdict is GateVerdict.REFUTED
    assert results[4].headline.startswith("Regression: pass^1 dropped by ")
    assert results[4].results[0].broken == ()
    text = " ".join(results[4].remarks)
    assert "all 10 tasks were attempted again: 50% of these attempts passed" in text
    assert "took 120 fresh attempts" in text
    assert results[4].to_dict()["confirmation"]["everywhere"]["attempts"] == 80


@pytest.mark.parametrize(
    ("base", "new"),
    [
        ([7] * 10, [2] * 10),  # shown already
        ([7] * 10, [7] * 9 + [6]),  # nothing to look for
    ],
)
def test_no_second_look_where_the_mean_is_settled(base: list[int], new: list[int]) -> None:
    pairing = pair(outcomes(base, 8), outcomes(new, 8))
    assert count_mean_attempts(pairing, PassHat(1), MissingPolicy.BOUND, 0.05) == 0
    assert count_mean_attempts(pairing, PassHat(2), MissingPolicy.BOUND, 0.05) == 0


def test_both_looks_at_the_mean_share_their_error() -> None:
    limit = _second_limit(0.025, 0.035, 0.75)
    z = np.random.default_rng(2).standard_normal((200_000, 2))
    second = ndtr(-np.sqrt(0.75) * z[:, 0] - np.sqrt(0.25) * z[:, 1])
    red = (ndtr(-z[:, 0]) < 0.025) | (second < limit)
    assert red.mean() == pytest.approx(0.035, abs=0.002)


def test_the_second_look_shares_what_both_looks_have_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """8 attempts in the baseline, 8 and then 16 of the run: variances of 1/8 + 1/8, 1/8 + 1/16."""
    base, new = outcomes([7] * 6 + [5] * 4, 8), outcomes([6] * 6 + [4] * 4, 8)
    suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
    again = fresh(tuple(new.tasks), [4] * 10)
    confirmation = confirm_suspects(suspects, fresh(suspects.names, [6] * 5), None, "", again)
    limits: list[tuple[float, float, float]] = []

    def second_limit(*arguments: float) -> float:
        limits.append(arguments)  # type: ignore[arg-type]
        return _second_limit(*arguments)

    monkeypatch.setattr(confirm, "_second_limit", second_limit)
    pairing = suspects.pairing
    assert confirmation.shows_drop(pairing, PassHat(1), MissingPolicy.BOUND, 0.05) is True
    assert limits == [pytest.approx((0.025, 0.035, 0.75))]
    without = replace(confirmation, everywhere=None)
    assert without.shows_drop(pairing, PassHat(1), MissingPolicy.BOUND, 0.05) is None


@pytest.mark.parametrize(("p_value", "attempts"), [(0.025, 0), (0.026, 8), (0.2, 8), (0.21, 0)])
def test_an_open_mean_is_between_two_p_values(
    p_value: float, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairing = pair(outcomes([7] * 10, 8), outcomes([6] * 10, 8))
    monkeypatch.setattr(confirm, "pair_drop_p_value", lambda *_: p_value)
    assert count_mean_attempts(pairing, PassHat(1), MissingPolicy.BOUND, 0.05) == attempts


def test_false_names_are_rare_without_a_change() -> None:
    rng = np.random.default_rng(5)
    named = [0, 0]
    tasks = 20
    for _ in range(150):
        rates = rng.beta(2, 1, tasks)
        base, new = (outcomes(rng.binomial(4, rates).tolist()) for _ in range(2))
        suspects = find_suspects(run_of(new, "new"), run_of(base, "old"), GateOptions())
        if not suspects.tasks:
            continue
        places = [int(name[1:]) for name in suspects.names]
        again = [fresh(suspects.names, rng.binomial(8, rates[places]).tolist()) for _ in range(2)]
        named[0] += bool(confirm_suspects(suspects, again[0], again[1]).confirmed)
        named[1] += bool(confirm_suspects(suspects, again[0], None).confirmed)
    assert max(named) <= 7  # 2.5% of 150 is 4


def test_counts_of_other_attempts_are_added_by_task() -> None:
    more = Outcomes.from_counts(2, [1], ["t1"], missing=[3])
    total = add_attempts(outcomes([4, 0, 2]), [more, more])
    assert total.n.tolist() == [4, 8, 4]
    assert total.c.tolist() == [4, 2, 2]
    assert total.missing.tolist() == [0, 6, 0]


def verdict(c: int, n: int, *, anytime: bool, text: str = "each pass^1 >= 0.8") -> GateVerdict:
    rule = parse_rule(text)
    assert isinstance(rule, EachTaskRule)
    return judge_tasks(rule, Outcomes.from_counts(n, [c]), 0.95, anytime=anytime)[0].verdict


def test_looking_often_asks_for_more_attempts_than_one_look() -> None:
    assert verdict(14, 14, anytime=False) is GateVerdict.SHOWN
    assert verdict(14, 14, anytime=True) is GateVerdict.NOT_SETTLED
    assert verdict(20, 20, anytime=True) is GateVerdict.SHOWN
    assert verdict(0, 8, anytime=True) is GateVerdict.REFUTED
    assert verdict(0, 8, anytime=True, text="each pass^1 <= 0.8") is GateVerdict.SHOWN
    for c, n in ((0, 5), (5, 5), (3, 5)):
        rule = parse_rule("each pass^2 >= 0.5")
        assert isinstance(rule, EachTaskRule)
        (task,) = judge_tasks(rule, Outcomes.from_counts(n, [c]), 0.95, anytime=True)
        (once,) = judge_tasks(rule, Outcomes.from_counts(n, [c]), 0.95)
        assert 0 <= task.low <= once.low <= once.high <= task.high <= 1


def test_a_task_at_the_limit_is_rarely_decided_however_often_one_looks() -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(100):
        passes = rng.random(60).__lt__(0.8).cumsum()
        looks = {verdict(int(passes[n - 1]), n, anytime=True) for n in range(4, 61, 8)}
        wrong += GateVerdict.SHOWN in looks
    assert wrong <= 10  # 5% of 100 is 5; with the exact bounds about 15


def test_a_confirmation_goes_into_the_json() -> None:
    suspects = find_suspects(run_of(BROKEN, "new"), run_of(BASE, "old"), GateOptions())
    confirmation = confirm_suspects(
        suspects, fresh(suspects.names, [0]), fresh(suspects.names, [8])
    )
    data = judge(BROKEN, (), BASE, replace(GateOptions(), confirmation=confirmation)).to_dict()
    assert data["confirmation"]["confirmed"][0]["task"] == "t59"
    assert data["confirmation"]["attempts"] == 16
    assert data["settling"] == []
