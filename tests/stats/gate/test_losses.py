"""The baseline is the plan: what is absent or missing ends with 4, and the cause comes first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from passhat import Outcomes, Run, gate
from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.stats.gate.cases import Unsettled

NAMES = [f"t{i}" for i in range(30)]
BASE = Run("main", "main", Outcomes.from_counts(4, [4, 3, 2] * 10, NAMES))


def _run(n: object, c: object, names: list[str] = NAMES, missing: object = 0) -> Run:
    counts, passes, lost = (np.broadcast_to(np.asarray(x), len(names)) for x in (n, c, missing))
    outcomes = Outcomes.from_counts(counts, passes, names, missing=lost)
    return Run("new", "new", outcomes)


@pytest.mark.parametrize("unsettled", ["pass", "warn", "fail", None])
@pytest.mark.parametrize(
    ("run", "says"),
    [
        (
            _run(0, 0, missing=4),
            "Incomplete: 120 of 120 attempts have no verdict (not_recorded 120).",
        ),
        (
            _run([0] * 29 + [4], [0] * 29 + [4], missing=[4] * 29 + [0]),
            "Incomplete: 116 of 120 attempts have no verdict (not_recorded 116), more than 5%.",
        ),
        (
            _run(2, [2, 1, 1] * 10, missing=2),
            "Incomplete: 60 of 120 attempts have no verdict (not_recorded 60), more than 5%.",
        ),
        (
            _run(4, [4, 3, 2, 4, 3], NAMES[:5]),
            "Incomplete: 25 planned tasks (t5, t6, t7 and 22 more) are absent; 100 planned "
            "attempts of 120 are absent.",
        ),
        (
            _run([4] * 15 + [1] * 15, [4] * 15 + [1] * 15),
            "Incomplete: 45 planned attempts of 120 are absent.",
        ),
    ],
    ids=["nothing judged", "116 missing", "60 missing", "5 of 30 tasks", "half made"],
)
@pytest.mark.parametrize("rules", [(), ("pass^1 >= 0.01",)], ids=["baseline", "rule"])
def test_a_lossy_run_is_never_green(
    run: Run, says: str, unsettled: Unsettled, rules: tuple[str, ...]
) -> None:
    result = gate(run, rules, BASE, unsettled=unsettled)
    assert result.exit_code == 4
    assert result.headline == says
    assert result.title == f"new: {says}"


def test_few_missing_attempts_are_within_the_limit() -> None:
    missing = np.array([1] * 6 + [0] * 24)
    run = _run(4 - missing, np.minimum([4, 3, 2] * 10, 4 - missing), missing=missing)
    assert gate(run, against=BASE).exit_code == 0
    assert gate(run, against=BASE, max_missing=0.04).exit_code == 4
    stated = gate(run, ["missing <= 2%", "pass^1 >= 0.1"], BASE)
    assert stated.exit_code == 4
    assert gate(run, ["missing <= 10%", "pass^1 >= 0.1"], BASE, max_missing=0.01).exit_code == 0
    with pytest.raises(InvalidValue, match="max_missing is a share"):
        gate(run, against=BASE, max_missing=5)


def test_nothing_judged_is_never_a_number() -> None:
    (only,) = gate(_run(0, 0, missing=4), against=BASE).results
    assert only.evidence == "Nothing is known about pass^1: no attempt of new has a verdict."
    assert only.outcome == "unsettled"


def test_a_smaller_run_is_complete_only_where_it_states_its_plan() -> None:
    """Two attempts at every task, where the baseline has four."""
    short = _run(2, [2, 2, 1] * 10)
    result = gate(short, against=BASE)
    assert result.exit_code == 4
    text = "60 planned attempts of 120 are absent (up to 2 at a task, 4 in the baseline)"
    assert text in result.headline
    assert result.power is None  # nothing is said of a run that is not there
    stated = gate(short, against=BASE, attempts=2)
    assert not stated.incomplete
    assert "(planned: 2 at a task, 4 in the baseline): " in stated.headline
    assert not gate(replace(short, protocol=Protocol(attempts=2)), against=BASE).incomplete
    read = replace(short, protocol=Protocol(attempts=2), attempts_counted=True)
    assert gate(read, against=BASE).incomplete
    ragged = _run([4] * 15 + [2] * 15, [2] * 30)
    assert gate(ragged, against=BASE).incomplete
    planned = Run("new", "new", ragged.outcomes, Protocol(attempts=2))
    assert not gate(planned, against=BASE).incomplete


def test_more_tasks_than_the_baseline_are_no_loss() -> None:
    more = Run("new", "new", Outcomes.from_counts(4, [4, 3, 2] * 11, [*NAMES, "a", "b", "c"]))
    assert not gate(more, against=BASE).incomplete


def test_tasks_with_absent_attempts_are_named_and_the_rest_counted() -> None:
    result = gate(_run([4] * 15 + [1] * 15, [4] * 15 + [1] * 15), (), BASE)
    assert any("on 15 tasks (t15, t16, t17, t18, t19 and 10 more)" in note for note in result.notes)


def test_missing_attempts_of_the_baseline_have_the_same_limit_and_are_named() -> None:
    missing = np.where(np.arange(30) < 15, 3, 0)
    base = _run(4 - missing, 4 - missing, missing=missing)
    result = gate(BASE, against=base)
    assert result.exit_code == 4
    assert "45 of 120 attempts of the baseline have no verdict (" in result.headline
    few = _run(4, [4, 3, 2] * 10, missing=np.eye(30, dtype=int)[0])
    within = gate(_run(4, [4, 3, 2] * 9 + [4, 2, 3]), against=few)
    assert within.exit_code != 4
    assert any("1 baseline attempt missing" in note for note in within.results[0].notes)


def test_a_renamed_task_does_not_enlarge_the_plan() -> None:
    run = _run(4, [4, 3, 2] * 10, [*NAMES[:-1], "other"])
    assert "4 planned attempts of 120 are absent" in gate(run, against=BASE).headline
