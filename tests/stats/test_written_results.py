"""Every result type as JSON: nothing is lost, nothing is not a number, and names resolve."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import EllipsisType, MappingProxyType

import numpy as np
import pytest

import passhat.stats
from passhat import Outcomes, Protocol, Run, allocate, compare, forecast, gate, plan_tasks
from passhat._serialize import Plain, as_json, to_data
from passhat.stats.changes import find_changes
from passhat.stats.compare import compare_all
from passhat.stats.estimate import estimate_all
from passhat.stats.estimate.diagnostics import diagnose
from passhat.stats.forecast import keeps, reaches
from passhat.stats.gate import (
    Confirmation,
    FreshRun,
    GateOptions,
    confirm_suspects,
    find_suspects,
    judge,
)
from passhat.stats.labels.agreement import share_noise
from passhat.stats.labels.correction import correct
from passhat.stats.labels.judge_error import (
    AGAIN,
    AnchorCheck,
    CheckedAttempt,
    judge_error,
    summarize_check,
)
from passhat.stats.labels.label_plan import plan_labels
from passhat.stats.labels.lifts import LabeledSide, correct_lift
from passhat.stats.outcomes import Attempts, FailureGroup, FailureKind, Failures
from passhat.stats.outcomes.labels import Anchor, LabelCounts
from passhat.stats.plan import Allocation
from passhat.stats.sequential import ConfidenceSequence
from passhat.stats.temperature import Point, fit_law, fit_log_logit, fit_temperatures
from passhat.stats.temperature.laws import Study
from passhat.stats.temperature.temperature_result import Exponent
from passhat.stats.why import Step, Trace, Why, explain_failures, explain_task


def _plain_classes() -> list[type[Plain]]:
    """Every result class of the statistics, from all of their modules."""
    for module in pkgutil.walk_packages(passhat.stats.__path__, "passhat.stats."):
        importlib.import_module(module.name)

    def below(kind: type[Plain]) -> Iterator[type[Plain]]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    own = {kind for kind in below(Plain) if kind.__module__.startswith("passhat.stats.")}
    # A dataclass with slots is a copy of the class that was written; the first one lives on.
    named = {kind for kind in own if getattr(sys.modules[kind.__module__], kind.__name__) is kind}
    return sorted(named, key=lambda kind: kind.__qualname__)


CLASSES = _plain_classes()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_everything_that_is_written_is_an_attribute(kind: type[Plain]) -> None:
    own = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    keys = []
    for entry in kind.WRITTEN:
        if isinstance(entry, EllipsisType):
            keys += sorted(own)
            continue
        key, name = (entry, entry) if isinstance(entry, str) else entry
        assert name in own or hasattr(kind, name), name
        keys.append(key)
    assert len(keys) == len(set(keys)), "a key is written twice"


def _run(name: str, passes: list[int], **settings: object) -> Run:
    n = 4
    tasks = tuple(f"t{place}" for place in range(len(passes)))
    rows = [[1] * c + [0] * (n - c) for c in passes]
    attempts = Attempts(
        tasks,
        np.arange(0, n * len(passes) + 1, n),
        np.array(rows, np.int8).ravel(),
        measures=MappingProxyType({"cost": np.linspace(0.1, 0.9, n * len(passes))}),
    )
    labels = {"band": ["easy", "hard"] * (len(passes) // 2)}
    outcomes = Outcomes.from_matrix(rows, tasks, labels=labels)
    return Run(name, name, outcomes, Protocol(**settings), attempts=attempts)  # type: ignore[arg-type]


STEADY, FLAKY, WEAK = ([4, 0] * 12, [3, 3] * 12, [1, 0] * 12)


def _confirm(run: Run, base: Run) -> Confirmation:
    suspects = find_suspects(run, base, GateOptions())
    counts = Outcomes.from_counts(8, [1] * len(suspects.tasks), suspects.names)
    return confirm_suspects(suspects, FreshRun("id", "new", counts, 0.5), None, "gone.")


@cache
def _results() -> Mapping[str, object]:
    """One of every result, with its optional parts filled in."""
    a, b, c, d = (
        _run(name, passes)
        for name, passes in (("a", STEADY), ("b", FLAKY), ("c", WEAK), ("d", [2, 1] * 12))
    )
    warm = {"decoding": {"temperature": 0.8}}
    cold = {"decoding": {"temperature": 0.2}}
    hot = {"decoding": {"temperature": 1.4}}
    points = [
        Point("set", spread, k, 0.3 * k**0.7 * spread, 0.1 + 0.02 * k)
        for spread in (1.0, 4.0)
        for k in (2, 4, 8, 16)
    ]
    line = fit_log_logit([point for point in points if point.spread == 1.0])
    sequence = ConfidenceSequence(0.9)
    ladders = [
        Run("x cold", "x", a.outcomes, Protocol(**cold)),  # type: ignore[arg-type]
        Run("x warm", "x", d.outcomes, Protocol(**warm)),  # type: ignore[arg-type]
        Run("x hot", "x", c.outcomes, Protocol(**hot)),  # type: ignore[arg-type]
        Run("y cold", "y", c.outcomes, Protocol(**cold)),  # type: ignore[arg-type]
        Run("y hot", "y", b.outcomes, Protocol(**hot)),  # type: ignore[arg-type]
    ]
    return MappingProxyType(
        {
            "estimates": estimate_all(a.outcomes, ["pass^2", "delta^2", "first@2"]),
            "comparison": compare(a, b, ["pass^1", "pass^4", "pass@4"], by="band"),
            "comparisons": compare_all([a, b, c]),
            "gate": gate(b, ["pass^1 >= 0.5", "pass^1 >= base", "cost <= 1"], a),
            "regression": gate(c, (), a),
            "confirmed": judge(c, (), a, GateOptions(confirmation=_confirm(c, a), details=True)),
            "plan": plan_tasks(a, metric="pass^2", detect=0.2),
            "allocation": allocate(_run("e", [4, 0, 2, 3, 1, 2] * 6), budget=180),
            "forecast": forecast(b.outcomes, "pass^16"),
            "reach": (reaches(b.outcomes, 0.9), keeps(b.outcomes, 0.5)),
            "temperatures": fit_temperatures(ladders, [1, 4]),
            "exponent": Exponent(0.7, 0.5, 0.9, 1, 8),
            "study": Study("mine", tuple(points), fit_law(points, "mine"), (line,) if line else ()),
            "bounds": sequence.update_many([1.0, 0.0, 1.0]),
            "diagnosis": diagnose(a.outcomes, a.attempts),
            "failures": Failures((FailureGroup(FailureKind.EXCEPTION, "exception", 2),), 4),
            "run": a,
            "attempt": next(iter(a.attempts or ())),
            "histogram": a.outcomes.histogram(),
            "why": _why(),
            "labels": _labels(a, b),
            "changes": find_changes([a.outcomes] * 9 + [c.outcomes] * 3),
        }
    )


def _labels(a: Run, b: Run) -> tuple[object, ...]:
    """The judge's error, a corrected estimate and a corrected lift."""
    sides = [
        LabeledSide(
            run.outcomes,
            LabelCounts.from_rows(
                (task, place < int(c), place < int(c))
                for task, c in zip(run.outcomes.tasks, run.outcomes.c, strict=True)
                for place in range(4)
            ),
        )
        for run in (a, b)
    ]
    anchors = [Anchor("a#1", True, False, True)]
    return (
        anchors,
        AnchorCheck.of(anchors),
        judge_error(a.outcomes, sides[0].labels),
        correct(a.outcomes, sides[0].labels, "pass^2"),
        correct_lift(sides[0], sides[1], "pass^2"),
        plan_labels(a.outcomes, sides[0].labels, "pass^2"),
        share_noise([(f"t{i}", 1 + (i + j) % 3, 3) for i in range(6) for j in range(3)]),
        summarize_check("r", "j", [CheckedAttempt("a#1", True, {AGAIN: True, "padded": False})]),
    )


def _why() -> Why:
    """Two tasks with a wrong call that always fails, and the tree of one of them."""
    traces = [
        Trace(task, number, number % 2 == 0, (Step("find"), Step("ok" if number % 2 else "bad")))
        for task in "ab"
        for number in range(1, 9)
    ]
    events = explain_failures(traces)
    task = explain_task("a", traces[:8])
    return Why("r", 2, 16, 8, 8, 0, 0, 16, ("a", "b"), 0.95, events, task)


def _inside(value: object) -> Iterator[object]:
    """A result and everything that it holds."""
    yield value
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _inside(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _inside(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _inside(item)


def test_every_result_class_is_among_those_that_are_written_here() -> None:
    seen = {type(value) for result in _results().values() for value in _inside(result)}
    seen |= {type(_results()["run"].outcomes)}  # type: ignore[attr-defined]
    kinds = {kind.__name__ for kind in CLASSES if kind not in seen}
    assert kinds <= {"Tally"}, "a new result class needs a place in _results()"


def _numbers(data: object) -> Iterator[float]:
    if isinstance(data, bool):
        return
    if isinstance(data, int | float):
        yield float(data)
    elif isinstance(data, dict):
        for item in data.values():
            yield from _numbers(item)
    elif isinstance(data, list):
        for item in data:
            yield from _numbers(item)


@pytest.mark.parametrize("name", list(_results()))
def test_json_and_back_is_the_same_data(name: str) -> None:
    result = _results()[name]
    data = to_data(result)
    text = as_json(result)
    assert json.loads(text) == data
    assert all(np.isfinite(number) for number in _numbers(data))
    assert text.endswith("\n")
    # Twice the same text: nothing depends on the order of a set or on an address.
    assert as_json(result) == text


@pytest.mark.parametrize("name", list(_results()))
def test_only_plain_types_are_in_the_data(name: str) -> None:
    def walk(data: object) -> None:
        assert type(data) in (str, int, float, bool, type(None), dict, list), type(data)
        inside = list(data.values()) if isinstance(data, dict) else data
        for item in inside if isinstance(inside, list) else ():
            walk(item)

    walk(to_data(_results()[name]))


def test_what_a_comparison_writes_is_what_it_says() -> None:
    found = _results()["comparison"]
    data = to_data(found)
    assert data["schema"] == "passhat.comparison/1"
    for written, result in zip(data["results"], found.results, strict=True):  # type: ignore[attr-defined]
        assert written["lift"] == result.lift
        assert (written["low"], written["high"]) == (result.low, result.high)
        assert written["claim"] == str(result.claim)
        assert written["sentence"] == result.sentence
        assert written["wins"] + written["losses"] + written["ties"] == written["tasks"] == 24
        assert written["low_alone"] >= written["low"]
        assert written["high_alone"] <= written["high"]
    assert [part["value"] for part in data["slices"][:3]] == ["easy"] * 3
    assert data["flips"], "pass^k and pass@k rank these two differently over k"


def test_an_allocation_is_read_back_from_its_json() -> None:
    made = _results()["allocation"].allocation  # type: ignore[attr-defined]
    again = Allocation.from_dict(json.loads(as_json(made)))
    assert again.by_task == made.by_task
    assert (again.total, again.others, again.level) == (made.total, made.others, made.level)
    assert again.earlier == made.earlier
    assert again.half_width == made.half_width
    assert again.uniform_total == made.uniform_total
    assert again.saving == pytest.approx(made.saving)
