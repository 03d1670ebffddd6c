"""A file per attempt, found by a pattern of paths."""

from __future__ import annotations

from pathlib import Path

from passhat import read


def test_a_reward_that_is_no_number_is_missing(tmp_path: Path) -> None:
    rewards = {"t1/1": "1", "t1/2": "0", "t2/1": "nan", "t2/2": "1.0"}
    for place, reward in rewards.items():
        file = tmp_path / "m" / place / "reward.txt"
        file.parent.mkdir(parents=True)
        file.write_text(reward)
    (run,) = read(tmp_path, records="{model}/{task}/{trial}/reward.txt")
    assert run.agent == "m"
    assert (run.outcomes.passes, run.outcomes.total_missing) == (2, 1)
    assert run.missing_by_reason == {"not_recorded": 1}
