"""Three or more agents: ranks by hand, corrections in order, and names that decide nothing."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, Run, compare
from passhat.stats.arrays import FloatArray
from passhat.stats.compare import Claim, compare_all
from passhat.stats.compare.significance import holm, max_t, sign_flip_test


def _runs(*passes: list[int], n: int = 4) -> list[Run]:
    return [
        Run(name, name, Outcomes.from_counts(n, counts))
        for name, counts in zip("abcdef", passes, strict=False)
    ]


def test_ranks_follow_from_the_claims() -> None:
    runs = _runs([4] * 40, [4] * 40, [0] * 40)
    found = compare_all(runs)
    assert {(entry.name, str(entry)) for entry in found.ranks} == {
        *(("a", "1 to 2"), ("b", "1 to 2"), ("c", "3")),
    }
    claims = {(pair.a, pair.b): pair.results[0].claim for pair in found.pairs}
    assert claims == {
        ("a", "b"): Claim.INCONCLUSIVE,
        ("a", "c"): Claim.REGRESSION,
        ("b", "c"): Claim.REGRESSION,
    }


@settings(max_examples=max_examples(5))
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=20
    )
)
def test_every_rank_set_holds_its_place_and_all_places_are_taken(
    tasks: list[tuple[int, int, int]],
) -> None:
    runs = _runs(*([row[i] for row in tasks] for i in range(3)), n=2)
    found = compare_all(runs)
    by_value = sorted(found.ranks, key=lambda entry: -entry.value)
    assert list(found.ranks) == by_value
    for entry in found.ranks:
        assert 1 <= entry.best <= entry.worst <= 3
        above = sum(other.value > entry.value + 1e-12 for other in found.ranks)
        at_most = sum(other.value >= entry.value - 1e-12 for other in found.ranks)
        assert entry.best <= at_most
        assert entry.worst >= above + 1
    # Some order of the three is allowed by all sets at once.
    assert any(
        all(
            entry.best <= place <= entry.worst
            for entry, place in zip(found.ranks, order, strict=True)
        )
        for order in permutations((1, 2, 3))
    )


def test_the_order_of_the_runs_decides_nothing() -> None:
    rng = np.random.default_rng(2)
    rates = rng.beta(1, 1, 30)
    runs = _runs(*(rng.binomial(4, np.clip(rates + step, 0, 1)).tolist() for step in (0, 0.2, 0.4)))
    forward, backward = compare_all(runs), compare_all(runs[::-1])
    assert {(e.name, str(e)) for e in forward.ranks} == {(e.name, str(e)) for e in backward.ranks}
    one = {frozenset((p.a, p.b)): p.results[0] for p in forward.pairs}
    for pair in backward.pairs:
        result, other = pair.results[0], one[frozenset((pair.a, pair.b))]
        assert abs(result.lift) == pytest.approx(abs(other.lift))
        assert result.p_holm == pytest.approx(other.p_holm)
        assert result.p_value == pytest.approx(other.p_value)


def test_corrected_p_values_are_never_smaller_and_intervals_never_narrower() -> None:
    rng = np.random.default_rng(3)
    rates = rng.beta(1, 1, 25)
    runs = _runs(*(rng.binomial(4, np.clip(rates + step, 0, 1)).tolist() for step in (0, 0.1, 0.3)))
    found = compare_all(runs)
    for pair in found.pairs:
        (result,) = pair.results
        assert result.p_value is not None
        assert result.p_holm is not None
        assert result.p_max_t is not None
        assert result.p_value <= result.p_holm
        assert result.p_value <= result.p_max_t
        assert result.looked_at == 3
        assert "Adjusted for 3 pairs." in result.remarks
        by_name = {run.name: run for run in runs}
        (alone,) = compare(by_name[pair.a], by_name[pair.b], about="new tasks").results
        assert result.low <= alone.low + 1e-12
        assert result.high >= alone.high - 1e-12
        assert (result.low_alone, result.high_alone) == pytest.approx((alone.low, alone.high))
        assert result.lift == pytest.approx(alone.lift)
    raw = [pair.results[0].p_value or 0.0 for pair in found.pairs]
    assert [pair.results[0].p_holm for pair in found.pairs] == pytest.approx(holm(raw).tolist())


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_max_t_against_all_flips(alternative: str) -> None:
    """Step-down by definition, over all 2^7 signs of the tasks."""
    rng = np.random.default_rng(4)
    d = rng.integers(-2, 4, (7, 3)).astype(float)
    scale = np.sqrt((d**2).sum(axis=0))

    def side(sums: FloatArray) -> FloatArray:
        if alternative == "two-sided":
            return np.abs(sums)
        return sums if alternative == "greater" else -sums

    seen = side((d / scale).sum(axis=0))
    signs = np.array(list(product((-1, 1), repeat=7)))
    sums = side(signs @ (d / scale))
    order = np.argsort(-seen, kind="stable")
    wanted, largest_so_far = np.empty(3), 0.0
    for place, column in enumerate(order):
        rest = order[place:]
        share = float((sums[:, rest].max(axis=1) >= seen[column] - 1e-9).mean())
        largest_so_far = max(largest_so_far, share)
        wanted[column] = largest_so_far
    assert max_t(d, alternative).tolist() == pytest.approx(wanted.tolist(), abs=0.015)  # type: ignore[arg-type]


@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=9))
def test_sign_flips_against_all_signs(d: list[float]) -> None:
    sums = [
        sum(s * x for s, x in zip(signs, d, strict=True))
        for signs in product((-1, 1), repeat=len(d))
    ]
    seen = sum(d)
    greater = np.mean([total >= seen - 1e-9 for total in sums])
    two = np.mean([abs(total) >= abs(seen) - 1e-9 for total in sums])
    assert sign_flip_test(d, "greater").p_value == pytest.approx(float(greater))
    assert sign_flip_test(d).p_value == pytest.approx(float(two))
    assert sign_flip_test([-x for x in d], "less").p_value == pytest.approx(float(greater))


def test_unequal_attempts_leave_all_p_values_out() -> None:
    runs = [
        Run("a", "a", Outcomes.from_counts(2, [1, 2])),
        Run("b", "b", Outcomes.from_counts(2, [1, 2])),
        Run("c", "c", Outcomes.from_counts(4, [1, 2])),
    ]
    for pair in compare_all(runs, allow=True).pairs:
        assert pair.results[0].p_holm is None
        assert pair.results[0].p_max_t is None


def test_one_task_ranks_nobody() -> None:
    found = compare_all(_runs([4], [0], [2]))
    assert [str(entry) for entry in found.ranks] == ["1 to 3"] * 3
    assert found.pairing_text == "1 task shared by all 3 runs"
    assert all(pair.results[0].claim is Claim.INCONCLUSIVE for pair in found.pairs)
