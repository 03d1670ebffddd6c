"""The Python that `explain` prints gives the number that `estimate` gives."""

from __future__ import annotations

import contextlib
import io

import pytest

from passhat import Outcomes, Run, estimate, read
from passhat.reporting.explanation import Explanation, explain

WORDS = ["pass@3", "pass^3", "rate", "delta^3", "gpass@3:0.5", "first@3", "first^3", "window^2"]


def _printed(explanation: Explanation) -> float:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(explanation.python, {})
    return float(out.getvalue())


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("missing", ["bound", "fail"])
def test_the_printed_python_reproduces_the_estimate(word: str, missing: str) -> None:
    for run in read("example:helpdesk"):
        explanation = explain(word, run, missing=missing)
        own = estimate(run.outcomes, word, missing=missing)
        assert _printed(explanation) == pytest.approx(own.value, abs=1e-12)
        assert f"  value     {own.value!r}" in list(explanation.lines())


@pytest.mark.parametrize("word", WORDS)
def test_without_a_source_a_made_up_example_runs(word: str) -> None:
    explanation = explain(word)
    text = "\n".join(explanation.lines())
    assert 0 <= _printed(explanation) <= 1
    for part in ("asks", "formula", "paper", "needs", "inputs"):
        assert f"  {part}" in text


@pytest.mark.parametrize("word", ["pass@3", "pass^3", "rate", "gpass@3:0.5"])
def test_the_printed_simulation_gives_the_interval(word: str) -> None:
    for run in read("example:helpdesk"):
        explanation = explain(word, run, missing="fail", level=0.9)
        own = estimate(run.outcomes, word, missing="fail", level=0.9)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(f"{explanation.python}\n{explanation.interval_python}", {})
        low, high = map(float, out.getvalue().splitlines()[-1].split())
        assert (low, high) == pytest.approx((own.low, own.high), abs=0.003)


def test_short_tasks_left_out_are_left_out_of_the_python_too() -> None:
    run = Run("r", "r", Outcomes.from_counts([2, 4], [2, 3]))
    explanation = explain("pass^3", run, drop_short=True)
    assert "(2, 2, 1)" not in explanation.python
    assert _printed(explanation) == pytest.approx(0.25)


def test_a_long_list_of_rows_is_not_printed() -> None:
    run = Run("r", "r", Outcomes.from_matrix([[1, 0]] * 1000))
    assert "rows = ..." in explain("first@2", run).python


@pytest.mark.parametrize(
    ("outcomes", "word", "about"),
    [
        (Outcomes.from_counts(8, [8, 8, 7, 3, 0, 1, 8, 8, 5]), "pass@4", "these tasks"),
        (Outcomes.from_counts(1, [1] * 12 + [0] * 8), "pass^1", "new tasks"),
        (Outcomes.from_counts([4, 4, 3, 5, 2], [4, 2, 3, 0, 2]), "pass^2", "these tasks"),
        (Outcomes.from_counts(6, [4]), "pass^2", "these tasks"),
        (
            Outcomes.from_scores([[0.0, 0.5], [0.5, 1.0], [1.0, 1.0], [0.0, 1.0]] * 2),
            "worst@2",
            "these tasks",
        ),
        (Outcomes.from_scores([[0.5], [0.25], [1.0], [0.0]]), "mean", "these tasks"),
    ],
)
def test_a_general_solver_gives_the_same_interval(
    outcomes: Outcomes, word: str, about: str, capsys: pytest.CaptureFixture[str]
) -> None:
    explanation = explain(word, Run("a", "a", outcomes), about=about)
    exec(f"{explanation.python}\n{explanation.interval_python}", {})
    value, low, high = map(float, capsys.readouterr().out.split())
    assert explanation.estimate is not None
    assert value == pytest.approx(explanation.estimate.value, abs=1e-15)
    assert (low, high) == pytest.approx(
        (explanation.estimate.low, explanation.estimate.high), abs=0.003
    )
