"""Redraws, leads and advice by hand: shares that are counted, ties that are split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, Protocol, Run
from passhat._serialize import to_data
from passhat.errors import InvalidValue
from passhat.stats.outcomes import Completion, MissingPolicy
from passhat.stats.temperature import fit_temperatures
from passhat.stats.temperature.advice import Advice, Gain, advise
from passhat.stats.temperature.ladders import ladders_of
from passhat.stats.temperature.rankings import (
    Lead,
    RankingFlip,
    Redraws,
    ranking_flips,
    redraw_tasks,
)

BOUND = MissingPolicy.BOUND


def _run(
    temperature: float, passes: list[int], n: int = 4, agent: str = "a", missing: int = 0
) -> Run:
    tasks = [f"t{i}" for i in range(len(passes))]
    outcomes = Outcomes.from_counts(
        [n] * len(passes), passes, tasks, missing=[missing] * len(passes)
    )
    protocol = Protocol(decoding={"temperature": temperature})
    return Run(f"{agent} {temperature}", agent, outcomes, protocol)


# -- redraws ---------------------------------------------------------------------------------------


def test_redraws_are_means_of_tasks_drawn_with_replacement() -> None:
    values = np.array([[[0.0, 1.0, 0.5]], [[1.0, 1.0, 0.0]]])  # two temperatures, one k
    found = redraw_tasks(values, seed=1, draws=4_000)
    assert found.seen[:, 0] == pytest.approx([0.5, 2 / 3])
    assert found.drawn.shape == (4_000, 2, 1)
    assert found.drawn[:, :, 0].mean(axis=0) == pytest.approx([0.5, 2 / 3], abs=0.02)
    # One draw takes the same tasks at both temperatures: the values of single tasks, averaged.
    assert np.isin(np.round(6 * found.drawn[:, 0, 0]).astype(int), np.arange(7)).all()
    variance = np.var([0.0, 1.0, 0.5]) / 3
    assert found.drawn[:, 0, 0].var() == pytest.approx(variance, rel=0.1)
    again = redraw_tasks(values, seed=1, draws=4_000)
    assert (again.drawn == found.drawn).all()


def test_one_task_is_redrawn_as_itself() -> None:
    found = redraw_tasks(np.array([[[0.25]], [[0.75]]]), draws=50)
    assert (found.drawn[:, 0, 0] == 0.25).all()
    assert found.shares_best()[:, 0].tolist() == [0.0, 1.0]


def test_shares_split_ties_and_add_up() -> None:
    drawn = np.array([[[0.5], [0.5]], [[0.2], [0.9]], [[0.4], [0.1]], [[0.3], [0.3]]])
    found = Redraws(np.zeros((2, 1)), drawn)
    assert found.shares_best()[:, 0] == pytest.approx([0.5, 0.5])
    three = Redraws(np.zeros((3, 1)), np.full((7, 3, 1), 0.4))
    assert three.shares_best()[:, 0] == pytest.approx([1 / 3] * 3)


def test_the_share_of_a_change_needs_both() -> None:
    # Best at k = 0: rung 0 in draws 0 and 1; best at k = 1: rung 1 in draws 1 and 2.
    drawn = np.array([[[0.9, 0.9], [0.1, 0.1]], [[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.1], [0.9, 0.9]]])
    assert Redraws(np.zeros((2, 2)), drawn).share_of_change(0, 1, (0, 1)) == pytest.approx(1 / 3)


@settings(max_examples=max_examples(10))
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_shares_of_a_fit_add_up_to_one(passes: list[int], data: st.DataObject) -> None:
    other = [data.draw(st.integers(0, 4)) for _ in passes]
    (fit,) = fit_temperatures([_run(0.2, passes), _run(0.9, other)], [1, 2]).agents
    for k in (1, 2):
        shares = [cell.share_best for cell in fit.cells if cell.k == k]
        assert sum(shares) == pytest.approx(1.0)
    for cell in fit.cells:
        assert cell.estimate.low is not None
        assert cell.estimate.low <= cell.estimate.value


# -- leads -----------------------------------------------------------------------------------------


def test_the_share_of_a_lead_is_that_of_its_leader() -> None:
    """One task carries the mean: b leads on average, and a in most redraws.

    The larger of the two shares was shown as that of the leader.
    """
    tasks = 9
    a = [_run(t, [1] * tasks, n=9, agent="a") for t in (0.2, 0.8)]
    b = [_run(t, [0] * (tasks - 1) + [9], n=9, agent="b") for t in (0.2, 0.8)]
    ladders = ladders_of([*a, *b], [1], BOUND)
    b_more = _run(0.8, [2] * tasks, n=9, agent="b")
    flips = ranking_flips(ladders_of([*a, b[0], b_more], [1], BOUND), BOUND)
    assert ranking_flips(ladders, BOUND) == ()  # the means are level everywhere: nobody leads
    assert flips == ()
    # b: eight tasks never, one always: mean 1/9; a: the same mean less a little.
    lower = [_run(t, [0] + [1] * (tasks - 1), n=9, agent="a") for t in (0.2, 0.8)]
    worse = _run(0.8, [0] * tasks, n=9, agent="b")
    (flip,) = ranking_flips(ladders_of([*lower, b[0], worse], [1], BOUND), BOUND)
    by_leader = {(lead.leader, lead.temperature): lead for lead in flip.leads}
    b_leads = by_leader["b", 0.2]
    # The task that b solves is missing from a redraw with chance (8/9)^9 = .35.
    assert b_leads.lead == pytest.approx(1 / 81)
    assert b_leads.share == pytest.approx(1 - (8 / 9) ** 9, abs=0.12)
    assert by_leader["a", 0.8].share == 1.0


def test_a_leader_may_lead_in_fewer_than_half_of_the_redraws() -> None:
    """One task carries b's lead and is drawn twice or not at all more often than once."""
    b_passes = [100, 10, 10, 10] + [0] * 56
    a_passes = [0] * 4 + [3] * 17 + [2] * 39  # 129 against 130
    runs = [
        _run(0.2, a_passes, n=100, agent="a"),
        _run(0.8, [50] * 60, n=100, agent="a"),
        _run(0.2, b_passes, n=100, agent="b"),
        _run(0.8, [0] * 60, n=100, agent="b"),
    ]
    (flip,) = ranking_flips(ladders_of(runs, [1], BOUND), BOUND)
    close = flip.surest("b")
    assert close.lead == pytest.approx(1 / 6000)
    assert 0.4 < close.share < 0.5
    assert flip.shown == close.share


def test_a_flip_speaks_of_its_surest_leads() -> None:
    leads = (
        Lead(1, 0.2, "a", 0.1, 0.999),
        Lead(4, 0.2, "a", 0.1, 0.6),
        Lead(4, 0.8, "b", 0.2, 0.75),
        Lead(8, 0.8, "", 0.0, 0.5),
    )
    flip = RankingFlip("a", "b", leads)
    assert flip.shown == 0.75
    assert str(flip) == (
        "the ranking depends on k and T: a leads at T = 0.2, k = 1 (99.9% of redraws); "
        "b leads at T = 0.8, k = 4 (75% of redraws)"
    )
    assert to_data(flip)["shown"] == 0.75


def test_agents_without_shared_tasks_or_temperatures_have_no_flips() -> None:
    one, two = _run(0.2, [4, 0]), _run(0.9, [0, 4], agent="b")
    assert ranking_flips(ladders_of([one, two], [1], BOUND), BOUND) == ()


# -- ladders ---------------------------------------------------------------------------------------


def test_values_of_a_ladder_are_pass_at_k_of_every_task() -> None:
    (ladder,) = ladders_of([_run(0.9, [0, 2, 4]), _run(0.1, [4, 1, 0])], [1, 2], BOUND)
    assert ladder.temperatures == (0.1, 0.9)
    values = ladder.values(Completion.AS_FAILED)
    assert values.shape == (2, 2, 3)
    assert values[0, 0] == pytest.approx([1, 0.25, 0])
    assert values[1, 1] == pytest.approx([0, 1 - 1 / 6, 1])


def test_no_note_where_no_short_task_was_left_out() -> None:
    """ "0 tasks with fewer than 4 attempts left out" was said."""
    runs = [_run(0.1, [4, 1, 0]), _run(0.9, [0, 2, 4])]
    (ladder,) = ladders_of(runs, [4], BOUND, drop_short=True)
    assert ladder.notes == ()
    short = Run(
        "c",
        "a",
        Outcomes.from_counts([4, 2, 4], [1, 1, 1], ["t0", "t1", "t2"]),
        Protocol(decoding={"temperature": 1.5}),
    )
    (ladder,) = ladders_of([*runs, short], [4], BOUND, drop_short=True)
    assert ladder.notes == ("1 task with fewer than 4 attempts left out",)
    assert len(ladder) == 2


def test_a_task_without_a_verdict_is_refused_in_words() -> None:
    """With missing attempts left out, no k was left, and min() of nothing was asked for."""
    lost = Run(
        "c",
        "a",
        Outcomes.from_counts([0, 4], [0, 1], ["t0", "t1"], missing=[4, 0]),
        Protocol(decoding={"temperature": 0.5}),
    )
    with pytest.raises(InvalidValue, match="no agent has enough attempts at every task for k = 1"):
        fit_temperatures([lost], missing="exclude")
    assert fit_temperatures([lost]).agents[0].ks == (1, 2, 4)


# -- advice ----------------------------------------------------------------------------------------


def _gain(k: int, temperature: float, low: float) -> Gain:
    return Gain(k, temperature, low + 0.1, low, low + 0.2)


def test_advice_by_steps() -> None:
    ks = (1, 2, 4, 8)
    up = Advice(0.2, ks, (_gain(4, 0.5, 0.1), _gain(8, 0.9, 0.2)), 3)
    assert [(t, k) for t, k in up.steps] == [(0.2, (1, 2)), (0.5, (4,)), (0.9, (8,))]
    assert str(up).startswith("raise T with k: 0.2 at k = 1 to 2, 0.5 at k = 4, 0.9 at k = 8.")
    down = Advice(0.9, ks, (_gain(4, 0.5, 0.1), _gain(8, 0.2, 0.2)), 3)
    assert str(down).startswith("lower T with k")
    back = Advice(0.5, ks, (_gain(2, 0.9, 0.1), _gain(4, 0.2, 0.1)), 3)
    assert str(back).startswith("choose T by k")
    late = Advice(0.5, ks, (_gain(4, 0.9, 0.1), _gain(8, 0.9, 0.2)), 2)
    assert str(late) == "raise T from 0.5 to 0.9 for k >= 4: +30.0 points, 20.0 to 40.0 at k = 8."


def test_a_gain_that_is_not_shown_is_not_advised() -> None:
    weak = Advice(0.2, (1, 2), (_gain(2, 0.9, -0.05),), 2)
    assert not weak.best[0].shown
    assert weak.steps == ((0.2, (1, 2)),)
    assert str(weak) == (
        "keep T = 0.2: no other is shown to be better. The largest lead is that of T = 0.9 at "
        "k = 2: +5.0 points, -5.0 to 15.0."
    )
    assert str(Advice(0.2, (1,), (), 1)).startswith("T = 0.2 is the only temperature tried")


@pytest.mark.parametrize("tasks", [1, 3])
def test_few_tasks_never_change_the_temperature(tasks: int) -> None:
    """Every task is solved at 0.9 and none at 0.2 beyond k = 1: three tasks show nothing."""
    runs = [_run(0.2, [4] + [0] * (tasks - 1)), _run(0.9, [1] * tasks)]
    (ladder,) = ladders_of(runs, [1, 4], BOUND)
    best = ladder.values(Completion.AS_FAILED).mean(axis=-1).argmax(axis=0).tolist()
    advice = advise(ladder, best, BOUND, 0.95)
    assert all(not gain.shown for gain in advice.best)
    assert str(advice).startswith("keep T")


def test_missing_attempts_count_against_a_gain() -> None:
    runs = [_run(0.2, [1] * 30, n=2), _run(0.9, [2] * 30, n=2)]
    lost = [_run(0.2, [1] * 30, n=2), _run(0.9, [2] * 30, n=2, missing=2)]
    gains = []
    for chosen in (runs, lost):
        ladder = ladders_of(chosen, [1], BOUND)[0]
        best = ladder.values(Completion.AS_FAILED).mean(axis=-1).argmax(axis=0).tolist()
        advice = advise(ladder, [0] if best[0] == 0 else best, BOUND, 0.95)
        gains.append(advice.best)
    assert gains[0] == ()  # 0.9 is the base there: best at the smallest k
    assert gains[1] == ()
