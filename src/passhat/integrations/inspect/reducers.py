"""pass^k for inspect's own reports: reducers over epochs, and metrics with intervals.

    from passhat.integrations.inspect.reducers import interval, pass_hat, pass_hat_estimate

    Task(..., epochs=Epochs(8, [pass_hat(4)]), metrics=[accuracy(), interval()])

inspect finds them by name, too, as in ``--epochs-reducer passhat/pass_hat_4``. This is the one
module that imports inspect_ai; it needs the extra ``[inspect]``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

try:
    from inspect_ai.scorer import (
        Metric,
        SampleScore,
        Score,
        ScoreReducer,
        Value,
        metric,
        score_reducer,
        value_to_float,
    )
except ImportError:  # pragma: no cover - the extra is there in tests
    from passhat.errors import MissingExtra

    raise MissingExtra("passhat.integrations.inspect.reducers", extra="inspect") from None

from passhat.errors import InvalidValue, shorten
from passhat.stats.estimate import estimate
from passhat.stats.estimate.counting import pass_at_k, pass_hat_k
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.outcomes import Outcomes
from passhat.store.database import private_file

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

    from passhat.reporting.view import Report, RunReport

_TO_FLOAT = value_to_float()
_NO_SCORE = float("nan")


@score_reducer
def pass_hat(k: int, value: float = 1.0) -> ScoreReducer:
    """The chance that all of k epochs pass: C(c, k) / C(n, k).

    A sample with fewer than k scored epochs stays unscored: no number is made up for it.

    Parameters
    ----------
    k : int
        How many have to pass.
    value : float
        The score from which an epoch passes.
    """
    return _reducer(k, value, pass_hat_k)


@score_reducer
def pass_at(k: int, value: float = 1.0) -> ScoreReducer:
    """The chance that any of k epochs passes: 1 - C(n - c, k) / C(n, k). See pass_hat."""
    return _reducer(k, value, pass_at_k)


@metric(scores="reduced")
def interval(level: float = 0.95) -> Metric:
    """Where the average over new tasks like these lies: passhat's interval for any reducer.

    Needs reduced scores between 0 and 1, as pass_hat, pass_at and mean give them. Unscored
    samples are excluded; ``samples`` is the number of those included.
    """
    from passhat.stats.arrays import round_outward
    from passhat.stats.estimate.intervals.new_tasks import gaffke

    _check_level(level)

    def within(scores: list[SampleScore]) -> Value:
        values = [_TO_FLOAT(score.score.value) for score in scores]
        numbers = [value for value in values if not math.isnan(value)]
        if any(not 0 <= value <= 1 for value in numbers):
            raise InvalidValue("passhat's interval metric needs scores between 0 and 1.")
        if not numbers:
            return {"low": _NO_SCORE, "high": _NO_SCORE, "samples": 0}
        bounds = gaffke([numbers], [1.0] * len(numbers), level=level)
        low, high = round_outward(float(bounds.lows[0]), float(bounds.highs[0]))
        return {"low": low, "high": high, "samples": len(numbers)}

    return within


@metric(scores="unreduced")
def pass_hat_estimate(k: int, level: float = 0.95, value: float = 1.0) -> Metric:
    """pass^k over all samples with its interval for new tasks, from the epochs themselves.

    Samples with fewer than k scored epochs are excluded; ``samples`` counts the others.

    Parameters
    ----------
    k : int
        How many have to pass.
    level : float
        The confidence of the interval.
    value : float
        The score from which an epoch passes.
    """
    return _estimate(PassHat(k), level, value)


@metric(scores="unreduced")
def pass_at_estimate(k: int, level: float = 0.95, value: float = 1.0) -> Metric:
    """pass@k over all samples with its interval for new tasks. See pass_hat_estimate."""
    return _estimate(PassAt(k), level, value)


def write_scores(report: Report, target: str) -> None:
    """Write a copy of an inspect log that has the scores of a report beside its own.

    Every metric becomes a row of results with its interval, and pass^k and pass@k of every sample
    become reductions, which inspect shows as columns. The log itself is not changed.
    """
    from inspect_ai.log import read_eval_log, write_eval_log

    run = _run_of_a_log(report)
    source, path = Path(run.run.source), Path(target)
    if path.suffix not in (".eval", ".json"):
        raise InvalidValue(f"{target}: a log of inspect ends in .eval or .json.")
    if path.exists() and path.samefile(source):
        raise InvalidValue(
            f"{target} is the log itself, which is not changed.", hint="Name another file."
        )
    try:
        log = read_eval_log(str(source))
        _add_scores(log, run)
        # The file is made first, so that it is readable by its owner alone.
        os.close(private_file(path, truncate=True))
        write_eval_log(log, str(path))
    except (OSError, ValueError) as error:
        why = shorten(str(error).splitlines()[0], 160)
        raise InvalidValue(f"{target} cannot be written: {why}.") from None


def _run_of_a_log(report: Report) -> RunReport:
    runs = [run for run in report.runs if run.run.reading[:1] == ("inspect_ai log",)]
    if len(report.runs) != 1 or len(runs) != 1 or not Path(runs[0].run.source).is_file():
        names = ", ".join(run.run.source for run in report.runs[:5])
        raise InvalidValue(
            f"-o inspect:FILE copies one inspect log, and this report is about {names}.",
            hint="Name one .eval or .json file that inspect_ai wrote.",
        )
    if not runs[0].run.protocol.judge:
        raise InvalidValue(
            f"{runs[0].run.source}: nothing was scored.", hint="Score it first: inspect score LOG"
        )
    return runs[0]


def _add_scores(log: EvalLog, run: RunReport) -> None:
    from inspect_ai.log import EvalMetric, EvalResults, EvalSampleReductions, EvalScore
    from inspect_ai.log._log import EvalSampleScore

    from passhat.reporting.data import plain_name, task_scores

    scorer = run.run.protocol.judge or ""
    ids = {str(sample.id): sample.id for sample in log.samples or ()}
    results = log.results or EvalResults()
    reductions = list(log.reductions or ())
    names: set[str] = set()
    for entry in run.estimates:
        name = plain_name(entry.metric.name)
        if name in names or math.isnan(entry.value):
            continue
        names.add(name)
        values = {"low": entry.low, "high": entry.high, entry.metric.name: entry.value}
        metrics = {
            key: EvalMetric(name=key, value=value)
            for key, value in reversed(values.items())
            if value is not None
        }
        results.scores.append(
            EvalScore(
                name=scorer,
                scorer=scorer,
                reducer=name,
                scored_samples=entry.tasks,
                unscored_samples=len(run.run.outcomes) - entry.tasks,
                metrics=metrics,
                metadata={"passhat": entry.method, "about": str(entry.population)},
            )
        )
        scores = task_scores(run.run, entry)
        if scores:
            sample_scores = [
                EvalSampleScore(value=value, sample_id=ids.get(task, task))
                for task, value in scores.items()
            ]
            reductions.append(
                EvalSampleReductions(scorer=scorer, reducer=name, samples=sample_scores)
            )
    log.results = results
    log.reductions = reductions


def _reducer(k: int, value: float, estimator: Callable[[int, int, int], object]) -> ScoreReducer:
    if k < 1:
        raise InvalidValue(f"k must be at least 1, not {k}.")

    def reduce_values(values: Iterable[Value | None]) -> float:
        numbers = [_TO_FLOAT(value) for value in values if value is not None]
        valid = [value for value in numbers if not math.isnan(value)]
        if len(valid) < k:
            return _NO_SCORE
        return float(estimator(len(valid), sum(number >= value for number in valid), k))  # type: ignore[arg-type]

    def reduce(scores: list[Score]) -> Score:
        with_score = [score for score in scores if not _is_unscored(score.value)]
        shape = with_score[0].value if with_score else _NO_SCORE
        reduced_value: Value
        if isinstance(shape, dict):
            reduced_value = {
                name: reduce_values(score.as_dict()[name] for score in with_score) for name in shape
            }
        elif isinstance(shape, Sequence) and not isinstance(shape, str):
            reduced_value = [
                reduce_values(score.as_list()[i] for score in with_score) for i in range(len(shape))
            ]
        else:
            reduced_value = reduce_values(score.value for score in with_score)
        return Score(value=reduced_value, metadata=scores[0].metadata if scores else None)

    return reduce


def _estimate(metric_at_k: CountMetric, level: float, value: float) -> Metric:
    _check_level(level)

    def estimate_metric(scores: list[SampleScore]) -> Value:
        n: dict[object, int] = {}
        c: dict[object, int] = {}
        for score in scores:
            number = _TO_FLOAT(score.score.value)
            if not math.isnan(number):
                n[score.sample_id] = n.get(score.sample_id, 0) + 1
                c[score.sample_id] = c.get(score.sample_id, 0) + (number >= value)
        usable = [name for name in n if n[name] >= metric_at_k.k]
        if not usable:
            return {metric_at_k.name: _NO_SCORE, "low": _NO_SCORE, "high": _NO_SCORE, "samples": 0}
        outcomes = Outcomes.from_counts([n[name] for name in usable], [c[name] for name in usable])
        result = estimate(outcomes, metric_at_k, level=level)
        ends = {"low": result.low, "high": result.high}
        return {metric_at_k.name: result.value, **ends, "samples": len(usable)}

    return estimate_metric


def _is_unscored(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
