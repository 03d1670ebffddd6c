"""Published numbers, and one published sentence that is not right."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from passhat import Outcomes, diagnose, estimate, exact, pass_at_k, read

SHAPES = {
    "homogeneous": [0.5] * 6,
    "no skew": [0.2, 0.8] * 3,
    "negative skew": [0.07, 0.715, 0.715] * 2,
    "positive skew": [0.93, 0.285, 0.285] * 2,
}


def test_the_estimator_by_hand() -> None:
    assert pass_at_k(10, 2, 1) == pytest.approx(0.2)
    assert pass_at_k(10, 2, 3) == pytest.approx(0.533, abs=5e-4)
    assert pass_at_k(10, 2, 5) == pytest.approx(1 - 56 / 252)


def test_the_ordered_table() -> None:
    outcomes = Outcomes.from_matrix([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert estimate(outcomes, "first@1").value == pytest.approx(1 / 3)
    assert estimate(outcomes, "first@3").value == pytest.approx(2 / 3)
    assert estimate(outcomes, "pass@1").value == pytest.approx(2 / 9)
    gained = estimate(outcomes, "first@3").value - estimate(outcomes, "first@1").value
    assert round(gained * len(outcomes)) == 1


def test_the_macro_average() -> None:
    outcomes = Outcomes.from_counts(10, [0, 1, 2, 4])
    found = [estimate(outcomes, f"pass@{k}").value for k in (1, 3, 5)]
    assert found == pytest.approx([0.175, 0.417, 0.563], abs=5e-4)


def test_the_coin_game() -> None:
    assert exact([0.5], "pass^10") == 1 / 1024
    assert exact([0.0, 1.0], "pass^10") == 0.5


def test_same_mean_different_shape() -> None:
    for p in SHAPES.values():
        assert exact(p, "rate") == pytest.approx(0.5)
    assert exact(SHAPES["homogeneous"], "pass@8") == pytest.approx(0.996, abs=5e-4)
    assert exact(SHAPES["homogeneous"], "pass^8") == pytest.approx(0.5**8)
    assert exact(SHAPES["negative skew"], "pass^8") == pytest.approx(0.0455, abs=5e-5)


def test_the_homogeneous_set_and_not_the_negatively_skewed_one_is_the_least_reliable() -> None:
    for k in range(2, 17):
        values = {name: exact(p, f"pass^{k}") for name, p in SHAPES.items()}
        assert min(values, key=values.__getitem__) == "homogeneous"
        assert max(values, key=values.__getitem__) == "positive skew"


@pytest.mark.parametrize(
    ("shape", "peak"), [("no skew", 4), ("negative skew", 3), ("positive skew", 5)]
)
def test_where_delta_peaks(shape: str, peak: int) -> None:
    gains = {k: exact(SHAPES[shape], f"delta^{k}") for k in range(1, 20)}
    assert max(gains, key=gains.__getitem__) == peak


def test_the_largest_delta_is_that_of_always_or_never() -> None:
    rng = np.random.default_rng(1)
    for mean in (0.2, 0.5, 0.9):
        for k in (2, 5):
            largest = mean - mean**k
            two_point = [1.0] * round(mean * 10) + [0.0] * round((1 - mean) * 10)
            assert exact(two_point, f"delta^{k}") == pytest.approx(largest)
            other = rng.beta(mean * 2, (1 - mean) * 2, 50)
            found, mu = exact(other, f"delta^{k}"), exact(other, "rate")
            assert 0 <= found <= mu - mu**k


def test_tau_bench_airline(shared_data: Path) -> None:
    (run,) = read(shared_data / "tau_bench_airline_gpt4o.csv")
    assert np.bincount(run.outcomes.c).tolist() == [14, 12, 10, 4, 10]
    hat = [estimate(run.outcomes, f"pass^{k}").value for k in (1, 2, 3, 4)]
    at = [estimate(run.outcomes, f"pass@{k}").value for k in (1, 2, 3, 4)]
    assert hat == pytest.approx([0.420, 0.27333333, 0.220, 0.200], abs=1e-8)
    assert at == pytest.approx([0.42, 0.56666667, 0.66, 0.72], abs=1e-8)
    assert diagnose(run.outcomes).icc == pytest.approx(0.405, abs=5e-4)


def test_humaneval_codegen(shared_data: Path) -> None:
    (run,) = read(shared_data / "humaneval_codegen16b_t08.csv.gz")
    found = [100 * estimate(run.outcomes, f"pass@{k}").value for k in (1, 10, 100)]
    assert found == pytest.approx([22.12, 50.38, 73.78], abs=0.005)
    assert run.protocol.decoding["temperature"] == 0.8


def test_gsm8k(shared_data: Path) -> None:
    runs = {run.name: run for run in read(shared_data / "gsm8k_gpt3_paired.csv.gz")}
    order = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    found = [100 * estimate(runs[name].outcomes, "rate").value for name in order]
    assert found == pytest.approx([21.68, 39.04, 34.72, 56.25], abs=0.005)


def test_evalperf_counts(shared_data: Path) -> None:
    path = shared_data / "evalperf_counts.csv"
    runs = read(path)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(runs) == 34
    for run in runs:
        own = [int(row["c"]) / int(row["n"]) for row in rows if row["model"] == run.agent]
        assert len(run.outcomes) == len(own) == 118
        assert estimate(run.outcomes, "pass@1").value == pytest.approx(np.mean(own))


def test_inspect_epochs_are_runs_of_their_own(shared_data: Path) -> None:
    runs = read(shared_data / "inspect_popularity.csv")
    sizes = sorted((len(run.outcomes), int(run.outcomes.n[0])) for run in runs)
    assert sizes == [(10, 5)] * 3 + [(100, 1)] * 4


def test_temperatures_are_runs_of_their_own(shared_data: Path) -> None:
    runs = read(shared_data / "cruxeval_output_small.csv")
    assert {run.protocol.decoding["temperature"] for run in runs} == {0.2, 0.8}
    assert len({run.name for run in runs}) == len(runs) == 13
