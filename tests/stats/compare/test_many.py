"""Three or more agents: pairs, corrections, ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from passhat import Outcomes, Run, compare, compare_all, read
from passhat.errors import InvalidValue, NotComparable, TooFewAttempts
from passhat.stats.compare import Claim

DATA = Path("shared") / "data" / "gsm8k_gpt3_paired.csv.gz"
# Beside the project's folder, or one further up where several checkouts lie together.
PLACES = [folder / DATA for folder in Path(__file__).parents[3:6]]


def _runs(*rates: float, tasks: int = 60, n: int = 4) -> list[Run]:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, tasks)
    return [
        Run(f"r{i}", f"r{i}", Outcomes.from_counts(n, rng.binomial(n, np.clip(p + rate, 0, 1))))
        for i, rate in enumerate(rates)
    ]


def test_all_pairs_of_published_data_get_the_right_direction() -> None:
    path = next((path for path in PLACES if path.exists()), None)
    if path is None:
        pytest.skip(f"{DATA} is not beside the project's folder")
    found = compare_all(read(path))
    published = {
        "6b_finetuning": 0.2168,
        "6b_verification": 0.3904,
        "175b_finetuning": 0.3472,
        "175b_verification": 0.5625,
    }
    assert len(found.pairs) == 6
    for entry in found.pairs:
        result = entry.results[0]
        better = published[entry.b] > published[entry.a]
        assert result.claim is (Claim.IMPROVEMENT if better else Claim.REGRESSION)
        assert result.p_holm is not None
        assert result.p_holm < 0.05
        assert result.p_max_t is not None
        assert result.p_max_t < 0.05
    assert [(rank.name, rank.best, rank.worst) for rank in found.ranks] == [
        ("175b_verification", 1, 1),
        ("6b_verification", 2, 2),
        ("175b_finetuning", 3, 3),
        ("6b_finetuning", 4, 4),
    ]


def test_equal_agents_may_have_any_rank() -> None:
    found = compare_all(_runs(0.0, 0.0, 0.0))
    assert {(rank.best, rank.worst) for rank in found.ranks} == {(1, 3)}
    assert {str(rank) for rank in found.ranks} == {"1 to 3"}


def test_one_clear_winner_and_two_alike() -> None:
    found = compare_all(_runs(0.0, 0.5, 0.0), ["pass^1", "pass^2"])
    first = [rank for rank in found.ranks if str(rank.metric) == "pass^1"]
    assert first[0].name == "r1"
    assert [(rank.best, rank.worst) for rank in first] == [(1, 1), (2, 3), (2, 3)]
    assert len(found.ranks) == 6
    assert found.pairs[0].results[0].looked_at == 6


def test_pairs_pay_for_each_other() -> None:
    runs = _runs(0.0, 0.1, 0.2)
    found = compare_all(runs)
    alone = compare(runs[0], runs[1]).results[0]
    together = found.pairs[0].results[0]
    assert together.lift == pytest.approx(alone.lift)
    assert together.low < alone.low
    assert together.p_holm is not None
    assert alone.p_value is not None
    assert together.p_holm >= alone.p_value == together.p_value
    assert "Adjusted for 3 pairs." in together.sentence


def test_only_tasks_that_all_share_are_used() -> None:
    runs = [
        Run("a", "a", Outcomes.from_counts(1, [1, 0, 1], ["x", "y", "z"])),
        Run("b", "b", Outcomes.from_counts(1, [0, 1], ["y", "x"])),
        Run("c", "c", Outcomes.from_counts(1, [1, 1, 1], ["w", "x", "y"])),
    ]
    found = compare_all(runs)
    assert (found.tasks, found.left_out) == (2, (1, 0, 1))
    assert found.pairing_text == "2 tasks shared by all 3 runs; 1 task more in a; 1 task more in c"


def test_missing_attempts_are_taken_at_their_worst() -> None:
    sure = Outcomes.from_counts(1, [1] * 20)
    never = Outcomes.from_counts(1, [0] * 20)
    lost = Outcomes.from_counts([0] * 20, [0] * 20, missing=[1] * 20)
    found = compare_all([Run(n, n, o) for n, o in (("s", sure), ("n", never), ("l", lost))])
    claims = {(pair.a, pair.b): pair.results[0] for pair in found.pairs}
    assert claims["s", "n"].claim is Claim.REGRESSION
    assert claims["s", "l"].claim is Claim.INCONCLUSIVE
    assert claims["n", "l"].p_max_t == 1.0


def test_plain_data_and_text() -> None:
    found = compare_all(_runs(0.0, 0.5, 0.0))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["schema"] == "passhat.comparisons/1"
    assert data["runs"] == ["r0", "r1", "r2"]
    assert len(data["comparisons"]) == 3
    assert data["comparisons"][0]["schema"] == "passhat.comparison/1"
    assert data["ranks"][0]["ranks"] == [1]
    assert found.title == "3 runs, 3 pairs: 60 tasks shared by all 3 runs"
    assert str(found).startswith("3 runs on 60 shared tasks\n")
    assert "<table>" in found._repr_html_()


def test_short_tasks_are_refused_or_left_out() -> None:
    runs = [*_runs(0.0, 0.1), Run("s", "s", Outcomes.from_counts([4] * 59 + [2], [1] * 60))]
    with pytest.raises(TooFewAttempts, match="s: pass"):
        compare_all(runs, "pass^3", allow=True)
    assert compare_all(runs, "pass^3", drop_short=True).tasks == 59


def test_what_cannot_be_ranked_is_refused() -> None:
    two = _runs(0.0, 0.1)
    with pytest.raises(InvalidValue, match="three or more"):
        compare_all(two)
    with pytest.raises(InvalidValue, match="called 'r0'"):
        compare_all([*two, two[0]])
    stranger = Run("s", "s", Outcomes.from_counts(4, [1], ["elsewhere"]))
    with pytest.raises(NotComparable, match="all of the runs"):
        compare_all([*two, stranger])
