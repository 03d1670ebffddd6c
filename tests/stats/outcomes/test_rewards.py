"""From cells to rewards to verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.stats.outcomes.rewards import RewardWords, verdicts_from_rewards


@pytest.mark.parametrize("cell", ["1", "true", "True", "YES", "passed", " pass ", 1, True, 1.0])
def test_words_for_passed(cell: object) -> None:
    assert RewardWords()[cell] == 1.0


@pytest.mark.parametrize("cell", ["0", "false", "No", "failed", 0, False, "0.0"])
def test_words_for_failed(cell: object) -> None:
    assert RewardWords()[cell] == 0.0


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "null", "None", "NA", None, float("nan")])
def test_words_for_missing(cell: object) -> None:
    assert np.isnan(RewardWords()[cell])


@pytest.mark.parametrize("cell", ["maybe", "inf", "1,000", "%", "inf%", {"a": 1}, [1]])
def test_anything_else_is_refused(cell: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        RewardWords()[cell]


def test_minus_one_among_ones_and_zeros_is_missing_and_said() -> None:
    found = verdicts_from_rewards(np.array([1.0, 0.0, -1.0, np.nan]), None)
    assert found.verdicts.tolist() == [1, 0, -1, -1]
    assert found.notes == ("-1 was read as missing (1 attempt)",)


def test_minus_one_among_graded_rewards_is_a_low_reward() -> None:
    found = verdicts_from_rewards(np.array([-1.0, 0.5, 1.0, 1.0 - 1e-7]), None)
    assert found.verdicts.tolist() == [0, 0, 1, 1]
    assert "passed means reward >= 1" in found.notes[0]


def test_a_stated_threshold_decides() -> None:
    assert verdicts_from_rewards(np.array([40.0, 80.0]), 50).verdicts.tolist() == [0, 1]


def test_rewards_above_one_need_a_stated_threshold() -> None:
    with pytest.raises(InvalidValue, match="rewards go up to 80"):
        verdicts_from_rewards(np.array([40.0, 80.0]), None)
