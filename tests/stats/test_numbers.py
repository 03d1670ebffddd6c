"""Every result on uneven data, kept with its numbers: none changes without being noticed.

``python tests/stats/test_numbers.py`` writes ``numbers.json`` again. Other tests say why a number
is right; this one says that it is still the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from passhat import Outcomes, Protocol, Run, allocate, compare, forecast, plan_tasks
from passhat._serialize import to_data
from passhat.stats.changes import find_changes, in_order, locate_change
from passhat.stats.compare import compare_all
from passhat.stats.estimate import default_ks, estimate_all
from passhat.stats.estimate.diagnostics import diagnose
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.forecast import forecast_all, forecast_curve, keeps, reaches
from passhat.stats.gate import GateOptions, gate, simulate_power
from passhat.stats.gate.sequential_gate import Watcher
from passhat.stats.labels.correction import correct
from passhat.stats.labels.judge_error import judge_error
from passhat.stats.labels.label_plan import plan_labels
from passhat.stats.labels.lifts import LabeledSide, correct_lift
from passhat.stats.outcomes import Attempts
from passhat.stats.outcomes.attempts import Categorical
from passhat.stats.outcomes.labels import LabelCounts
from passhat.stats.sequential import ConfidenceSequence
from passhat.stats.temperature import fit_temperatures
from passhat.stats.temperature.laws import study
from passhat.stats.terms import Population, Terms
from passhat.stats.why import Step, Trace, explain_failures, explain_task

FILE = Path(__file__).with_name("numbers.json")


def _outcomes(tasks: int, shift: int, *, gaps: bool = False, scores: bool = False) -> Outcomes:
    """Tasks of 4 to 6 attempts that are easy, hard or in between, in three clusters."""
    records: list[dict[str, object]] = []
    for task in range(tasks):
        for number in range(1, (5 if not gaps else 5 + task % 3)):
            level = (7 * task + 3 * shift) % 11 / 10
            passed = (5 * number + 3 * task + number * number + shift) % 10 / 10 < level
            verdict = None if gaps and (task + 2 * number) % 17 == 0 else passed
            record = {"task": f"t{task}", "trial": number, "success": verdict}
            record["slice:family"] = f"f{task % 5}"
            if scores and verdict is not None:
                record["score"] = round((0.5 + level / 2) if passed else level / 2, 3)
            records.append(record)
    return Outcomes.from_records(records)


A, B, C = (_outcomes(20, shift) for shift in (1, 0, 3))
GAPS, SHORT = _outcomes(20, 1, gaps=True), _outcomes(6, 2)
SCORED, SCORED_TOO = (_outcomes(8, shift, scores=True) for shift in (1, 0))
COUNTS = ["pass^1", "pass@2", "pass^3", "gpass@4:0.5"]
METRICS = ["pass@2", "pass^3", "delta^3", "gpass@4:0.5", "first@2", "first^2", "window^2", "rate"]


def _at(outcomes: Outcomes, agent: str, temperature: float) -> Run:
    decoding = {"decoding": {"temperature": temperature}}
    return Run(f"{agent} {temperature}", agent, outcomes, Protocol(**decoding))  # type: ignore[arg-type]


def _labels(outcomes: Outcomes) -> LabelCounts:
    """Labels of every attempt at two tasks of three; now and then the judge was wrong."""
    return LabelCounts.from_rows(
        (task, place < int(c), (place < int(c)) ^ (row % 5 == 0 and place == 1))
        for row, (task, n, c) in enumerate(zip(outcomes.tasks, outcomes.n, outcomes.c, strict=True))
        for place in range(int(n))
        if row % 3
    )


def _sequence() -> Iterator[object]:
    for sides in ("two-sided", "lower", "upper"):
        sequence = ConfidenceSequence(0.9, sides=sides, total=30, thresholds=(0.4,))
        for value in (1.0, 0.5, 0.0, 1.0, 0.75, 1.0, 1.0, 0.25, 1.0, 1.0):
            bounds = sequence.update(value)
        yield bounds


def _watched() -> Iterator[object]:
    """A gate that looks after every few tasks."""
    rules = ["pass^2 >= 0.4", "pass^1 >= base"]
    for options in (GateOptions(), GateOptions(Terms(population=Population.THESE_TASKS))):
        watcher = Watcher(rules, tasks=A.tasks, attempts=4, against=B, seed=1, options=options)
        for upto in (5, 12, 20):
            yield watcher.look(Run("r", "r", A.take(np.arange(upto)))).result


def _posterior() -> object:
    """Four revisions one after another, of which the third lowers one of two tasks."""
    n = np.array([[4, 4], [4, 4], [4, 4], [0, 0]])
    c = np.array([[4, 3], [4, 3], [1, 3], [0, 0]])
    found = locate_change(in_order(4), n, c)
    return [found.chances, found.before, found.after]


def _with_attempts() -> Run:
    """A run with seconds and reasons of its attempts."""
    verdicts = np.array([1, 0, -1, 1, 1, 0], np.int8)
    details = Categorical(("", "timeout: late", "rate_limit"), np.array([0, 1, 2, 0, 0, 1]))
    measures = MappingProxyType({"seconds": np.array([1.5, np.nan, 2.0, 0.5, 1.0, 9.0])})
    attempts = Attempts(("a", "b"), np.array([0, 3, 6]), verdicts, details, measures)
    outcomes = Outcomes.from_matrix([[1, 0, -1], [1, 1, 0]], ("a", "b"), labels={"k": ["x", "y"]})
    return Run("r", "r", outcomes, attempts=attempts)


def _traces() -> list[Trace]:
    """Attempts at two tasks; a call of ``b`` goes with failure, and sometimes it does without."""
    return [
        Trace(
            task,
            number,
            (number % 2 == 0) or (task == "b" and number == 3),
            (Step("find"), Step("a" if number % 2 == 0 or number == 9 else "b"), Step("end")),
        )
        for task in "ab"
        for number in range(1, 11)
    ]


CASES: dict[str, Callable[[], object]] = {
    "estimates": lambda: estimate_all(A, METRICS),
    "estimates of these tasks": lambda: estimate_all(A, METRICS, about="these tasks"),
    "estimates by family": lambda: estimate_all(A, COUNTS, cluster="family"),
    "estimates with gaps": lambda: estimate_all(GAPS, METRICS[:6]),
    "estimates without gaps": lambda: estimate_all(
        GAPS, METRICS[:6], missing="exclude", level=0.8, drop_short=True
    ),
    "estimates of few": lambda: estimate_all(SHORT, METRICS, missing="fail"),
    "estimates of scores": lambda: estimate_all(SCORED, ["mean", "best@2", "worst@3", "pass^2"]),
    "scores of these tasks": lambda: estimate_all(SCORED, ["mean", "worst@3"], about="these tasks"),
    "ks": lambda: [default_ks(data) for data in (A, GAPS, SHORT)],
    "diagnosis": lambda: [diagnose(data) for data in (A, GAPS, SHORT)],
    "comparison": lambda: compare(A, B, COUNTS[1:3], by="family"),
    "comparison of these tasks": lambda: compare(A, C, COUNTS[2:], about="these tasks"),
    "comparison by family": lambda: compare(A, B, ["pass^1", "pass^3"], cluster="family"),
    "comparison with gaps": lambda: compare(GAPS, B, ["pass@1", "pass^2"], allow=True),
    "comparison without short tasks": lambda: compare(
        GAPS, _outcomes(20, 0, gaps=True), ["pass^1", "pass^5"], drop_short=True, missing="fail"
    ),
    "comparison one way": lambda: compare(A, C, "pass^2", alternative="greater", level=0.9),
    "comparison of others": lambda: compare(A, SHORT, "pass^2", unpaired=True, allow=True),
    "comparison of scores": lambda: compare(SCORED, SCORED_TOO, "best@2"),
    "comparisons": lambda: compare_all([A, B, C], ["pass^1", "pass^2"]),
    "gate": lambda: gate(A, ["pass^2 >= 0.2", "pass@2 >= base", "pass^1 >= 0.9"], B, allow=True),
    "gate of tasks": lambda: gate(A, ["each pass^1 >= 0.1"]),
    "gate with what its sources say": lambda: gate(
        Run("b", "b", B, decisions=("one column of two",), about={"model_version": "m-2"}),
        "pass^2 >= base",
        Run("a", "a", A, decisions=("a threshold",), about={"model_version": "m-1"}),
    ),
    "regression": lambda: gate(B, (), A, margin=0.1, metric="pass^2"),
    "power": lambda: simulate_power(A, A.n, PassHat(1), 0.25, runs=6),
    "plan": lambda: plan_tasks(A, metric="pass^2", detect=0.15),
    "plan of width": lambda: plan_tasks(GAPS, half_width=0.05, level=0.9),
    "plan by family": lambda: plan_tasks(A, metric="pass^3", detect=0.2, cluster="family"),
    "plan against": lambda: plan_tasks(A, detect=0.1, against=B, power=0.9),
    "plan without a pilot": lambda: plan_tasks(
        mean=0.6, icc=0.4, correlation=0.5, detect=0.1, attempts=4
    ),
    "allocation for a drop": lambda: allocate(GAPS, detect=0.2, most=12),
    "forecasts": lambda: forecast_all(A, ["pass^8", "pass@16", "gpass@10:0.5"]),
    "forecast with gaps": lambda: forecast(GAPS, "pass^16", missing="exclude", level=0.8),
    "curve": lambda: forecast_curve(A, "pass^12", cluster="family"),
    "reach": lambda: [reaches(A, 0.8), keeps(A, 0.3), reaches(SHORT, 0.9), keeps(C, 0.2)],
    "temperatures": lambda: fit_temperatures(
        [
            *(_at(data, "x", 0.3 * step) for step, data in enumerate((A, B, C))),
            *(_at(data, "y", 0.3 * step) for step, data in enumerate((C, A, B))),
        ],
        [1, 2, 4],
    ),
    "changes": lambda: find_changes([A] * 8 + [C] * 4),
    "place of a change": _posterior,
    "sequence": lambda: list(_sequence()),
    "watched": lambda: list(_watched()),
    "judge error": lambda: judge_error(A, _labels(A)),
    "corrected": lambda: [correct(A, _labels(A), metric) for metric in ("pass^2", "pass@2")],
    "label plan": lambda: plan_labels(A, _labels(A), "pass^2", half_width=0.1),
    "corrected lift": lambda: correct_lift(
        LabeledSide(A, _labels(A)), LabeledSide(B, _labels(B)), "pass^1"
    ),
    "corrected by errors": lambda: [
        correct(A, _labels(A), metric, correction="errors") for metric in ("pass^2", "rate")
    ],
    "corrected with gaps": lambda: correct(GAPS, _labels(GAPS), "pass^2", missing="fail"),
    "corrected of these tasks": lambda: correct(A, _labels(A), "delta^2", about="these tasks"),
    "corrected lift by errors": lambda: correct_lift(
        LabeledSide(A, _labels(A)), LabeledSide(B, _labels(B)), "pass^1", correction="errors"
    ),
    "label plan by errors": lambda: plan_labels(A, _labels(A), "pass^2", correction="errors"),
    "gate with labels": lambda: gate(
        replace(_at(A, "x", 0.5), labels=_labels(A)),
        ["pass^1 >= 0.3", "pass^1 >= base - 0.2"],
        replace(_at(B, "y", 0.5), labels=_labels(B)),
        corrected="whole tasks",
    ),
    "labels of two runs": lambda: [
        judge_error(A, LabelCounts.join([_labels(A)])),
        LabelCounts.join([_labels(A), _labels(B)]).tasks,
    ],
    "rows": lambda: list(_with_attempts().iterate_rows())[:7],
    "frame": lambda: _with_attempts().to_pandas().to_dict("list"),
    "law": lambda: study("gaussian", (2, 4, 8)).law,
    "best temperatures": lambda: [
        fit.best_rows()
        for fit in fit_temperatures(
            [_at(data, "x", 0.3 * step) for step, data in enumerate((A, B, C))], [1, 4]
        ).agents
    ],
    "explanation": lambda: [explain_failures(_traces()), explain_task("a", _traces()[:10])],
    "printed": lambda: [
        str(result)
        for result in (
            compare(A, B, "pass^2"),
            gate(A, "pass^1 >= 0.3"),
            plan_tasks(A, detect=0.15),
            forecast(A, "pass^8"),
            fit_temperatures([_at(A, "x", 0.0), _at(B, "x", 0.5)], [1, 2]),
            estimate_all(A, ["pass^2"])[0],
        )
    ],
}


def _rounded(data: object) -> object:
    """Data with numbers of six digits, and arrays as lists."""
    if isinstance(data, dict):
        return {str(key): _rounded(value) for key, value in data.items()}
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(data, list | tuple):
        return [_rounded(value) for value in data]
    return float(f"{data:.6g}") if isinstance(data, float) else data


@pytest.mark.parametrize("name", list(CASES))
def test_a_result_has_the_numbers_it_had(name: str) -> None:
    expected = json.loads(FILE.read_text(encoding="utf-8"))[name]
    _compare(_rounded(to_data(CASES[name]())), expected, name)


def _compare(data: object, expected: object, where: str) -> None:
    if isinstance(data, dict):
        assert isinstance(expected, dict)
        assert list(data) == list(expected), where
        for key, value in data.items():
            _compare(value, expected[key], f"{where}, {key}")
    elif isinstance(data, list):
        assert isinstance(expected, list)
        assert len(data) == len(expected), where
        for place, (value, other) in enumerate(zip(data, expected, strict=True)):
            _compare(value, other, f"{where}, {place}")
    elif isinstance(data, float):
        assert data == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True), where
    else:
        assert data == expected, where


if __name__ == "__main__":
    lines = (
        f"{json.dumps(name)}: {json.dumps(_rounded(to_data(make())))}"
        for name, make in CASES.items()
    )
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
