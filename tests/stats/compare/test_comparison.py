"""compare(): what must not change the answer, what must flip it, and what others say of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, compare, estimate, gate
from passhat.stats.arrays import IntArray
from passhat.stats.compare import Claim, Comparison
from passhat.stats.compare.comparison import Result
from passhat.stats.compare.lift import LiftSample
from passhat.stats.gate import GateVerdict

NEW: dict[str, Any] = {"about": "new tasks"}
THESE: dict[str, Any] = {"about": "these tasks"}

pairs = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1, max_size=14),
    )
)


def _sides(n: int, counts: list[tuple[int, int]]) -> tuple[Outcomes, Outcomes]:
    a, b = zip(*counts, strict=True)
    return Outcomes.from_counts(n, a), Outcomes.from_counts(n, b)


def _of_matrices(sides: list[IntArray]) -> Comparison:
    a, b = (Outcomes.from_matrix(side) for side in sides)
    return compare(a, b, "pass^2", **NEW)


def _ends(result: Result) -> tuple[float, float]:
    return result.low, result.high


@settings(max_examples=max_examples(4))
@given(pairs)
def test_swapping_the_sides_flips_the_answer(suite: tuple[int, list[tuple[int, int]]]) -> None:
    a, b = _sides(*suite)
    flipped = {
        Claim.IMPROVEMENT: Claim.REGRESSION,
        Claim.REGRESSION: Claim.IMPROVEMENT,
        Claim.INCONCLUSIVE: Claim.INCONCLUSIVE,
    }
    for about in (NEW, THESE):
        (one,), (other,) = compare(a, b, **about).results, compare(b, a, **about).results
        assert other.lift == pytest.approx(-one.lift)
        assert (-other.high, -other.low) == pytest.approx(_ends(one), abs=1e-6)
        assert (other.wins, other.losses, other.ties) == (one.losses, one.wins, one.ties)
        assert other.claim is flipped[one.claim]
        assert other.p_value == pytest.approx(one.p_value)
        assert (other.value_a, other.value_b) == (one.value_b, one.value_a)


@settings(max_examples=max_examples(4))
@given(pairs)
def test_both_values_are_those_of_an_estimate_and_the_lift_is_their_difference(
    suite: tuple[int, list[tuple[int, int]]],
) -> None:
    n, _ = suite
    a, b = _sides(*suite)
    for word in (f"pass^{n}", f"pass@{n}", "rate"):
        (found,) = compare(a, b, word, **NEW).results
        assert found.value_a == pytest.approx(estimate(a, word, level=None).value)
        assert found.value_b == pytest.approx(estimate(b, word, level=None).value)
        assert found.lift == pytest.approx(found.value_b - found.value_a)
        assert found.low <= found.lift <= found.high
        assert found.tasks == len(a) == found.wins + found.losses + found.ties


@settings(max_examples=max_examples(4))
@given(pairs)
def test_pass_hat_of_passes_is_pass_at_of_failures(
    suite: tuple[int, list[tuple[int, int]]],
) -> None:
    """Counting failures instead of passes turns pass^k into 1 - pass@k, and the lift around."""
    n, counts = suite
    a, b = _sides(n, counts)
    failed_a, failed_b = _sides(n, [(n - x, n - y) for x, y in counts])
    (hat,) = compare(a, b, f"pass^{n}", **NEW).results
    (at,) = compare(failed_a, failed_b, f"pass@{n}", **NEW).results
    assert at.lift == pytest.approx(-hat.lift)
    assert (-at.high, -at.low) == pytest.approx(_ends(hat), abs=1e-8)
    assert at.p_value == pytest.approx(hat.p_value)


@settings(max_examples=max_examples(4))
@given(pairs, st.randoms(use_true_random=False))
def test_order_and_names_of_tasks_leave_no_trace(
    suite: tuple[int, list[tuple[int, int]]], random: object
) -> None:
    n, counts = suite
    a, b = _sides(n, counts)
    places = list(range(len(counts)))
    random.shuffle(places)  # type: ignore[attr-defined]
    shuffled_a = Outcomes.from_counts(n, [counts[i][0] for i in places], [f"t{i}" for i in places])
    backwards = places[::-1]
    shuffled_b = Outcomes.from_counts(
        n, [counts[i][1] for i in backwards], [f"t{i}" for i in backwards]
    )
    (plain,) = compare(a, b, **NEW).results
    (shuffled,) = compare(shuffled_a, shuffled_b, **NEW).results
    assert _ends(shuffled) == pytest.approx(_ends(plain), abs=1e-10)
    assert shuffled.p_value == pytest.approx(plain.p_value)


def test_three_names_of_one_quantity_give_one_answer() -> None:
    a, b = Outcomes.from_counts(4, [0, 1, 4, 2, 3]), Outcomes.from_counts(4, [1, 1, 4, 4, 2])
    for about in (NEW, THESE):
        results = [compare(a, b, word, **about).results[0] for word in ("pass^1", "pass@1", "rate")]
        assert len({(r.lift, r.p_value, r.claim) for r in results}) == 1
        for result in results[1:]:
            assert _ends(result) == pytest.approx(_ends(results[0]), abs=1e-9)


def test_ten_copies_of_a_suite_are_ten_times_the_evidence_unless_they_are_clusters() -> None:
    a, b = [0, 1, 2, 2, 4, 1], [1, 3, 3, 2, 4, 3]
    labels = {"copy": [f"t{i}" for i in range(6) for _ in range(10)]}
    once = compare(Outcomes.from_counts(4, a), Outcomes.from_counts(4, b), **NEW).results[0]
    many_a, many_b = (
        Outcomes.from_counts(4, [c for c in side for _ in range(10)], labels=labels)
        for side in (a, b)
    )
    copied = compare(many_a, many_b, **NEW).results[0]
    by_copy = compare(many_a, many_b, cluster="copy", **NEW).results[0]
    assert copied.low > once.low
    assert _ends(by_copy) == pytest.approx(_ends(once), abs=1e-8)
    assert (copied.p_value or 1) < (once.p_value or 0)
    assert by_copy.p_value == pytest.approx(once.p_value)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("word", ["pass^1", "pass^3", "pass@3"])
def test_a_gate_and_a_one_sided_comparison_share_their_bound(word: str, level: float) -> None:
    """A rule against base about new tasks is the one-sided comparison, and decides alike."""
    rng = np.random.default_rng(8)
    rates = rng.beta(0.8, 0.6, 25)
    base = Outcomes.from_counts(3, rng.binomial(3, rates))
    run = Outcomes.from_counts(3, rng.binomial(3, np.minimum(rates + 0.25, 1)))
    (rule,) = gate(run, f"{word} > base", base, level=level, **NEW).results
    better = compare(base, run, word, alternative="greater", level=level, **NEW).results[0]
    worse = compare(base, run, word, alternative="less", level=level, **NEW).results[0]
    assert (rule.low, rule.high) == pytest.approx((better.low, worse.high))
    assert rule.value == pytest.approx(better.lift)
    assert (rule.verdict is GateVerdict.SHOWN) == (better.claim is Claim.IMPROVEMENT)


def test_a_gate_about_these_tasks_spends_no_error_on_single_tasks() -> None:
    base, run = Outcomes.from_counts(6, [3, 2, 6, 1, 4]), Outcomes.from_counts(6, [6, 5, 6, 4, 6])
    (rule,) = gate(run, "pass^1 >= base", base, level=0.95).results
    (whole,) = compare(base, run, alternative="greater", level=0.975, **THESE).results
    assert rule.low is not None
    # Half of 2.5% is left for single tasks there, all of 5% goes to the mean here.
    assert rule.low > whole.low
    assert rule.value == pytest.approx(whole.lift)


@settings(max_examples=max_examples(4))
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([1, 0, -1]), min_size=2, max_size=2),
            st.lists(st.sampled_from([1, 0, -1]), min_size=2, max_size=2),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_the_interval_holds_that_of_every_way_the_missing_could_have_ended(
    tasks: list[tuple[list[int], list[int]]],
) -> None:
    rows = [np.array([a for a, _ in tasks]), np.array([b for _, b in tasks])]
    holes = [np.argwhere(side == -1).tolist() for side in rows]
    total = sum(map(len, holes))
    if total > 4:
        return
    (found,) = _of_matrices(rows).results
    claims = set()
    for fill in product((0, 1), repeat=total):
        filled = [side.copy() for side in rows]
        for value, (side, place) in zip(
            fill, [(s, tuple(p)) for s in (0, 1) for p in holes[s]], strict=True
        ):
            filled[side][place] = value
        (one,) = _of_matrices(filled).results
        assert found.low <= one.lift <= found.high
        assert found.lift_lowest - 1e-12 <= one.lift <= found.lift_highest + 1e-12
        claims.add(one.claim)
    if found.claim is not Claim.INCONCLUSIVE:
        assert claims == {found.claim}
    if total:
        assert f"{total} attempt" in " ".join(found.remarks)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_exact_error_of_a_claim_over_all_suites(tasks: int) -> None:
    """Two agents alike: the chance of any claim, by enumeration of one attempt per task."""
    for rate in (0.1, 0.5, 0.9):
        claimed = 0.0
        for a, b in product(product((0, 1), repeat=tasks), repeat=2):
            chance = 1.0
            for passed in (*a, *b):
                chance *= rate if passed else 1 - rate
            interval = LiftSample.of(np.subtract(b, a, dtype=float)).interval(0.025)
            claimed += chance * (interval.low > 0 or interval.high < 0)
        assert claimed <= 0.05


def test_unequal_numbers_of_attempts_have_an_interval_and_no_p_value() -> None:
    a, b = Outcomes.from_counts([2, 4, 8], [1, 2, 3]), Outcomes.from_counts([8, 4, 2], [4, 4, 2])
    for about in (NEW, THESE):
        (found,) = compare(a, b, allow=True, **about).results
        assert found.p_value is None
        assert found.low <= found.lift <= found.high
        assert "different numbers of attempts" in str(found.method)
    slices = compare(
        Outcomes.from_counts([2, 4, 8], [1, 2, 3], labels={"s": "xyx"}),
        Outcomes.from_counts([8, 4, 2], [4, 4, 2], labels={"s": "xyx"}),
        allow=True,
        by="s",
        **NEW,
    ).slices
    by_value = {part.value: part.result for part in slices}
    assert by_value["x"].p_holm is None
    assert by_value["y"].p_holm == by_value["y"].p_value == 1.0


def test_windows_are_compared_on_these_tasks_by_their_unordered_twin() -> None:
    a = Outcomes.from_matrix([[1, 0, 1, 0, 1, 0]] * 96)
    b = Outcomes.from_matrix([[1, 1, 1, 1, 1, 1]] * 96)
    found = compare(a, b, "window^2")
    (new,), (these,) = found.results, found.these_tasks
    assert new.lift == these.lift == 1.0
    assert these.claim is Claim.IMPROVEMENT
    # Of 20 orders of three passes in six attempts, four have no two in a row.
    twin_value = 1 - 4 / 20
    assert these.low < 1 - twin_value
