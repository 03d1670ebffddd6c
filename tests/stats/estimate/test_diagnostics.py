"""What to look at before believing a number."""

from __future__ import annotations

import numpy as np
import pytest

from passhat import Outcomes, read
from passhat.stats.estimate.diagnostics import diagnose, icc1
from passhat.stats.outcomes import Attempts


def test_attempts_that_are_all_alike_raise_a_note() -> None:
    found = diagnose(Outcomes.from_counts(8, [0, 8, 8, 0]))
    assert found.all_alike
    assert (found.always, found.never, found.flaky) == (2, 2, 0)
    assert "2 always passed, 2 always failed" in found.notes[0]
    assert "pass@k and pass^k are the same for every k" in found.notes[0]


def test_one_attempt_each_is_not_called_alike() -> None:
    found = diagnose(Outcomes.from_counts(1, [0, 1]))
    assert not found.all_alike
    assert found.icc is None


def test_flaky_tasks_and_icc() -> None:
    found = diagnose(Outcomes.from_counts(4, [2, 4, 0]))
    assert found.flaky == 1
    assert "1 of 3 tasks passed sometimes" in found.notes[-1]


def test_icc_is_1_for_all_or_nothing_and_about_0_for_coins() -> None:
    assert icc1(np.full(10, 5), np.array([0, 5] * 5)) == pytest.approx(1.0)
    coins = np.random.default_rng(3).binomial(50, 0.5, 400)
    assert icc1(np.full(400, 50), coins) == pytest.approx(0.0, abs=0.01)
    assert icc1(np.full(3, 4), np.full(3, 4)) is None


def test_averages_that_disagree_are_pointed_out() -> None:
    found = diagnose(Outcomes.from_counts([1, 9], [1, 0]))
    assert (found.attempt_average, found.task_average) == (0.1, 0.5)
    assert any("averaging over attempts gives 0.100" in note for note in found.notes)


def test_short_tasks_are_named() -> None:
    names = [f"t{i}" for i in range(12)]
    found = diagnose(Outcomes.from_counts([2] * 10 + [4] * 2, [1] * 12, names))
    note = next(note for note in found.notes if "fewer scored attempts" in note)
    assert "t0, t1, t2, t3, t4 and 5 more" in note
    assert "down to 2" in note


def test_identical_answers_are_noticed(table) -> None:  # type: ignore[no-untyped-def]
    rows = "".join(f"{t},{i},{i % 2},{'same' if t == 'a' else i}\n" for t in "ab" for i in range(4))
    (run,) = read(table("task,trial,success,answer\n" + rows))
    notes = diagnose(run.outcomes, run.attempts).notes
    (note,) = [note for note in notes if "identical" in note]
    assert note == "on 1 of 2 tasks with several answers all answers are identical"


def test_a_cache_is_named_only_with_evidence(table) -> None:  # type: ignore[no-untyped-def]
    rows = "".join(
        f"{task},{i},1,same,{1.2345 if task == 'a' else 1.2 + i / 7}\n"
        for task in "ab"
        for i in range(4)
    )
    (run,) = read(table("task,trial,success,answer,seconds\n" + rows))
    (note,) = [n for n in diagnose(run.outcomes, run.attempts).notes if "identical" in n]
    assert note.endswith(
        "on 1 of them the recorded seconds are identical, too: the answers look cached"
    )


def test_nothing_scored_is_said() -> None:
    found = diagnose(Outcomes.from_counts([0], [0], missing=[3]))
    assert found.notes == ("no attempt has a verdict",)


@pytest.mark.parametrize(
    ("seconds", "is_replay"),
    [
        ([1.5, 1.5, 0.25], True),
        ([1.5, 1.6, 0.25], False),
        ([2.0, 2.0, 0.25], False),  # whole seconds are rounded
        ([0.0, 0.0, 0.25], False),
    ],
)
def test_equal_answers_in_the_same_time_are_replays(seconds: list[float], is_replay: bool) -> None:
    """A task with a single attempt has nothing to be compared with."""
    attempts = Attempts(
        ("a", "b"),
        np.array([0, 2, 3]),
        np.array([1, 1, 0], np.int8),
        measures={"seconds": np.array(seconds)},
        answers=np.array([7, 7, 9]),
    )
    notes = " ".join(diagnose(Outcomes.from_counts([2, 1], [2, 0]), attempts).notes)
    assert ("the recorded seconds are identical" in notes) is is_replay
