"""From rows of a log to runs: what counts, what is lost, and that the two add up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from passhat import Run
from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, ReadOptions, RunFacts
from passhat.readers.parsing import number_or_none, scalars, why_missing
from passhat.readers.sources import Source
from passhat.stats.outcomes import Verdict


def _builder(order: str = "appearance", slices: tuple[str, ...] = ()) -> LogBuilder:
    source = Source("log.json", Path("log.json"))
    return LogBuilder(source, "a log", ReadOptions(), order=order, slices=slices)


def _run(log: LogBuilder) -> Run:
    (run,) = log.runs(lambda _: RunFacts("agent"))
    return run


def _verdicts(run: Run) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for attempt in run.attempts or ():
        found.setdefault(attempt.task, []).append(attempt.verdict)
    return found


@pytest.mark.parametrize(
    ("reward", "verdict"),
    [
        (True, Verdict.PASSED),
        (False, Verdict.FAILED),
        (1, Verdict.PASSED),
        (1.0, Verdict.PASSED),
        ("1", Verdict.PASSED),
        (0.999, Verdict.FAILED),  # passes at 1 unless the user says otherwise
        (0, Verdict.FAILED),
        (-0.5, Verdict.FAILED),
        (-1, Verdict.MISSING),  # the usual mark for "not run"
        ("0.0", Verdict.FAILED),
        (None, Verdict.MISSING),
        ("", Verdict.MISSING),
        (math.nan, Verdict.MISSING),
        ("nan", Verdict.MISSING),
    ],
)
def test_rewards(reward: object, verdict: Verdict) -> None:
    log = _builder()
    log.add("line 1", "t", reward)
    assert _verdicts(_run(log)) == {"t": [verdict]}


@pytest.mark.parametrize("reward", ["yes!", math.inf, "-inf", [1], {"r": 1}, 10**400, b"1"])
def test_a_reward_that_is_no_number_loses_its_row_alone(reward: object) -> None:
    log = _builder()
    log.add("line 1", "t", True)
    log.add("line 2", "t", reward)
    run = _run(log)
    assert _verdicts(run) == {"t": [Verdict.PASSED]}
    (loss,) = run.losses
    assert (loss.where, loss.rows) == ("line 2", 1)
    assert "the reward should be a number" in loss.what


@pytest.mark.parametrize("task", [None, "", "  ", [], {}, b"t"])
def test_a_row_without_a_task_is_lost(task: object) -> None:
    log = _builder()
    log.add("line 1", "t", True)
    log.add("line 2", task, True)
    run = _run(log)
    assert (run.outcomes.attempts, [loss.what for loss in run.losses]) == (1, ["has no task id"])


def test_tasks_that_are_numbers_and_texts_with_space() -> None:
    log = _builder()
    for task in (0, "0", 1.5, " t ", "t"):
        log.add("line", task, True)
    run = _run(log)
    assert dict(zip(run.outcomes.tasks, run.outcomes.n.tolist(), strict=True)) == {
        "0": 2,
        "1.5": 1,
        "t": 2,
    }


def test_attempts_are_ordered_by_their_number_and_never_counted_twice() -> None:
    log = _builder("trial")
    for trial, passed in ((2, False), (1, True), (2, True), ("3", True), (3, False)):
        log.add(f"trial {trial}", "t", passed, trial=trial)
    run = _run(log)
    assert _verdicts(run) == {"t": [Verdict.PASSED, Verdict.FAILED, Verdict.PASSED]}
    assert run.outcomes.order is not None
    assert [loss.what for loss in run.losses] == [
        "trial 2 of task 't' is listed twice",
        "trial 3 of task 't' is listed twice",
    ]


def test_the_same_trial_of_another_task_or_run_is_another_attempt() -> None:
    log = _builder("trial")
    for run in ("a", "b"):
        for task in ("s", "t"):
            log.add("row", task, run == "a", run=run, trial=1)
    runs = log.runs(lambda key: RunFacts("agent", variant=key))
    assert [(run.name, run.outcomes.attempts, run.outcomes.passes) for run in runs] == [
        ("agent a", 2, 2),
        ("agent b", 2, 0),
    ]
    assert not runs[0].losses


def test_without_numbers_the_order_is_unknown_and_nothing_is_lost() -> None:
    log = _builder("trial")
    for _ in range(3):
        log.add("row", "t", True)
    run = _run(log)
    assert (run.outcomes.attempts, run.outcomes.order) == (3, None)
    assert "the order of attempts is unknown" in run.reading


def test_the_same_id_of_the_source_is_the_same_attempt() -> None:
    log = _builder()
    for own in ("x", "x", "y", None, None, ""):
        log.add("row", "t", True, source_id=own)
    log.add("row", "other", True, source_id="x")
    run = _run(log)
    assert run.outcomes.n.tolist() == [5, 1]
    assert run.tally is not None
    assert dict(run.tally.skipped) == {"the same attempt again, by its own id": 1}


def test_labels_are_those_of_the_run() -> None:
    """Two suites in one log may use the same ids for other tasks."""
    log = _builder(slices=("level",))
    for run, label in (("a", "easy"), ("b", "hard"), ("a", "later"), ("b", None)):
        log.add("row", "t", True, run=run, labels=[label])
    first, second = log.runs(RunFacts)
    assert dict(first.outcomes.labels) == {"level": ("easy",)}
    assert dict(second.outcomes.labels) == {"level": ("hard",)}


def test_rows_read_skipped_and_lost_add_up() -> None:
    log = _builder()
    for number in range(5000):  # more than are buffered
        log.add(f"line {number}", f"t{number % 7}", number % 2)
    log.skip("an example", 3)
    log.lose("line 9", "is broken", 2)
    log.add("planned", "t0", None, absent=True)
    run = _run(log)
    tally = run.tally
    assert tally is not None
    assert (tally.rows, tally.attempts, tally.absent) == (5005, 5000, 1)
    assert (run.outcomes.attempts, run.outcomes.total_missing) == (5001, 1)
    assert run.outcomes.passes == 2500


def test_very_many_losses_are_counted_and_not_listed() -> None:
    log = _builder()
    log.add("line 0", "t", True)
    for number in range(1500):
        log.lose(f"line {number}", "is broken", 2)
    tally = log.tally()
    assert len(tally.losses) == 1001
    assert "500 more" in tally.losses[-1].what
    assert tally.rows == 1 + 3000


def test_a_row_that_raises_is_lost_and_a_refusal_is_not_swallowed() -> None:
    log = _builder()
    log.add("line 0", "t", True)
    with log.row("line 1"):
        raise KeyError("score")
    (loss,) = log.tally().losses
    assert loss.where == "line 1"
    assert "KeyError" in loss.what
    with pytest.raises(ReadError), log.row("line 2"):
        raise ReadError("the whole file is refused.", source="log.json")
    with pytest.raises(KeyboardInterrupt), log.row("line 3"):
        raise KeyboardInterrupt


def test_a_log_without_attempts_says_why() -> None:
    log = _builder()
    log.lose("line 1", "is broken")
    with pytest.raises(ReadError, match=r"recognized as a log, and holds no attempt.*broken"):
        log.runs(lambda _: RunFacts("agent"))


def test_planned_attempts_are_one_number_only_where_tasks_agree() -> None:
    even, ragged = _builder(), _builder()
    for task in ("s", "t"):
        even.add("row", task, True)
        ragged.add("row", task, None)
    ragged.add("row", "t", True)
    assert _run(even).protocol.attempts == 1
    assert _run(ragged).protocol.attempts is None
    stated = _builder()
    stated.add("row", "t", True)
    (run,) = stated.runs(lambda _: RunFacts("agent", Protocol(attempts=4)))
    assert run.protocol.attempts == 4


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        *((None, None), (True, None), (math.nan, None), (math.inf, None), ("", None), ("x", None)),
        *((10**400, None), ([1], None), ("1e3", 1000.0), (" 2 ", 2.0), (0, 0.0), (-1.5, -1.5)),
    ],
)
def test_a_measure_is_a_finite_number_or_not_recorded(cell: object, number: float | None) -> None:
    assert number_or_none(cell) == number


def test_settings_that_are_plain_values() -> None:
    settings = {"temperature": 0.0, "stop": ["x"], "seed": 1, "key": "secret", "top_p": None}
    assert scalars(settings, "key") == {"temperature": 0.0, "seed": 1}
    assert scalars(None) == scalars(["temperature"]) == {}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Error 429: slow down", "rate_limit"),
        ("RateLimitError", "rate_limit"),
        ("Docker daemon is gone", "sandbox_error"),
        ("the scorer raised", "judge_error"),
        ("KeyboardInterrupt", "stopped"),
        ("connection reset\n  by peer", "infrastructure"),
        (None, "infrastructure"),
    ],
)
def test_reasons_of_missing_attempts(message: object, reason: str) -> None:
    found = why_missing(message)
    assert found.startswith(f"{reason}: ")
    assert "\n" not in found
    assert len(why_missing("x" * 1000)) < 200
