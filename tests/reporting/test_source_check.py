"""The source's number beside ours: the same, or explained."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from passhat import Outcomes, Run
from passhat.reporting.source_checks import SourceCheck, check_source


def _check(outcomes: Outcomes, counts: tuple[str, ...] = (), **says: float) -> SourceCheck:
    named = {name.replace("passat", "pass@"): value for name, value in says.items()}
    run = Run("r", "r", outcomes, source_says=MappingProxyType(named), source_counts=counts)
    (check,) = check_source(run)
    return check


def _verdicts(*rows: list[float]) -> Outcomes:
    width = max(map(len, rows))
    assert all(len(row) == width for row in rows)
    return Outcomes.from_matrix(list(rows))


LOST = float("nan")


def test_the_same_number() -> None:
    check = _check(_verdicts([1, 0], [1, 1]), accuracy=0.75)
    assert (check.agrees, check.computed, check.why) == (True, 0.75, "")
    assert str(check) == "accuracy 0.750, passhat 0.750: the same"


def test_missing_counted_as_failed() -> None:
    check = _check(_verdicts([1, LOST], [1, 1]), accuracy=0.75)
    assert check.agrees
    assert check.why == "source counts 1 attempt without a verdict as failures"


def test_missing_left_out() -> None:
    check = _check(_verdicts([1, LOST], [1, 0]), accuracy=0.75)
    assert not check.agrees
    assert check.why == "source leaves 1 attempt without a verdict out"


def test_tasks_left_out() -> None:
    check = _check(_verdicts([1, 0], [LOST, LOST]), accuracy=0.5)
    assert check.computed == 0.25
    assert check.why == (
        "source leaves 2 attempts without a verdict out and with them 1 task with fewer than 1"
    )
    check = _check(Outcomes.from_counts([4, 1], [2, 1]), passat2=5 / 6)
    assert check.computed is None
    assert check.why == "source left 1 task with fewer than 2 attempts out"


def test_k_beyond_n_printed_as_one() -> None:
    check = _check(Outcomes.from_counts([3, 3], [1, 0]), passat5=1.0)
    assert check.computed is None
    assert "source printed 1.000 with n = 3" in check.why
    assert "passhat refuses k > n" in check.why


def test_an_average_over_attempts() -> None:
    check = _check(Outcomes.from_counts([4, 1], [4, 0]), accuracy=0.8)
    assert check.computed == 0.5
    assert check.why == "source averages over attempts, passhat over tasks"


def test_what_the_reader_knows_is_the_last_resort() -> None:
    known = ("source averages partial credit",)
    check = _check(_verdicts([1, 0]), known, accuracy=0.9)
    assert check.why == "source averages partial credit"
    assert "does not say" in _check(_verdicts([1, 0]), accuracy=0.9).why
    assert _check(_verdicts([1, 0]), known, mode=0.9).computed is None


@pytest.mark.parametrize(("says", "agrees"), [(0.333, True), (0.33333, True), (0.3343, False)])
def test_a_source_that_rounds(says: float, agrees: bool) -> None:
    assert _check(_verdicts([1], [0], [0]), accuracy=says).agrees is agrees


def test_it_is_in_the_report() -> None:
    run = Run(
        "r", "r", _verdicts([1, 0]), source_says=MappingProxyType({"pass^1": 0.5, "pass@2": 1.0})
    )
    assert [check.agrees for check in check_source(run)] == [True, True]
    assert check_source(run)[0].to_dict()["passhat"] == 0.5
