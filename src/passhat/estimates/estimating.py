"""Estimates of a suite: the average over tasks, with the missing attempts accounted for."""

from __future__ import annotations

from collections.abc import Iterable

from passhat._display import counted
from passhat.errors import InvalidValue, PasshatError
from passhat.estimates.estimate import Estimate
from passhat.estimates.grammar import metric as parse
from passhat.estimates.metrics import Delta, Metric
from passhat.estimates.task_values import Completed
from passhat.outcomes import Completion, MissingPolicy, Outcomes

__all__ = ["ABOUT", "default_ks", "estimate", "estimate_all", "missing_effect"]

ABOUT = ("new tasks", "re-runs")
"""The two questions an interval can answer: tasks like these, or exactly these again."""

_POLICY_WORDS = {
    MissingPolicy.BOUND: "missing as failed, and as passed beside it",
    MissingPolicy.FAIL: "missing as failed",
    MissingPolicy.EXCLUDE: "missing left out",
}


def estimate(
    outcomes: Outcomes,
    metric: str | Metric,
    *,
    about: str = "new tasks",
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
) -> Estimate:
    """Estimate one metric over a suite.

    Parameters
    ----------
    outcomes : Outcomes
        What came of the run.
    metric : str
        A word of the grammar, such as ``pass^4``.
    about : {"new tasks", "re-runs"}
        The population the interval speaks about.
    level : float
        The confidence of the interval.
    missing : {"bound", "fail", "exclude"}
        What to do with attempts that have no verdict.
    drop_short : bool
        Leave out tasks with fewer than k attempts rather than refuse; the estimate says so.

    Examples
    --------
    >>> from passhat.outcomes import Outcomes
    >>> estimate(Outcomes.from_counts(10, [0, 1, 2, 4]), "pass@5").value
    0.5634920634920635
    """
    return estimate_all(
        outcomes, [metric], about=about, level=level, missing=missing, drop_short=drop_short
    )[0]


def estimate_all(
    outcomes: Outcomes,
    metrics: Iterable[str | Metric],
    *,
    about: str = "new tasks",
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
) -> tuple[Estimate, ...]:
    """Estimate several metrics over one suite in one pass over the tasks.

    The parameters are those of :func:`estimate`.
    """
    if about not in ABOUT:
        raise InvalidValue(f"about must be one of {', '.join(ABOUT)}, not {about!r}.")
    if not 0 < level < 1:
        raise InvalidValue(f"level must lie between 0 and 1, not {level}.")
    policy = MissingPolicy.of(missing)
    whole = Completed(outcomes, policy.completion)
    optimistic = Completed(outcomes, Completion.AS_PASSED)
    return tuple(
        _estimate(whole, optimistic, parse(word), policy, about=about, drop_short=drop_short)
        for word in metrics
    )


def _estimate(
    whole: Completed,
    optimistic: Completed,
    metric: Metric,
    policy: MissingPolicy,
    *,
    about: str,
    drop_short: bool,
) -> Estimate:
    kept = whole.supporting(metric, drop_short=drop_short)
    value, bounds = _value(kept, metric)
    if_passed = None
    if policy is MissingPolicy.BOUND:
        if_passed = value
        if kept.outcomes.m is not None:
            # Both ways to fill in leave n the same, so the same tasks are kept.
            if_passed, _ = _value(optimistic.supporting(metric, drop_short=drop_short), metric)
    notes = []
    if kept is not whole:
        dropped = len(whole.outcomes) - len(kept.outcomes)
        notes.append(f"{counted(dropped, 'task')} with fewer than {metric.k} attempts left out")
    return Estimate(
        metric=metric.name,
        value=value,
        value_if_passed=if_passed,
        low=None,
        high=None,
        level=None,
        about=about,
        method=f"{metric.estimator}; {_POLICY_WORDS[policy]}; no interval",
        tasks=len(kept.outcomes),
        attempts=kept.attempts,
        bounds=bounds,
        notes=tuple(notes),
    )


def _value(view: Completed, metric: Metric) -> tuple[float, tuple[float, float] | None]:
    if isinstance(metric, Delta):
        pass_hat_k, mean = (view.of(part).mean for part in metric.parts)
        return metric.combine(pass_hat_k, mean), metric.bounds(mean)
    return view.of(metric).mean, None


def default_ks(outcomes: Outcomes, missing: str = "bound") -> tuple[int, ...]:
    """1, 2, 4, 8 ... up to the smallest number of attempts any task has."""
    n, _ = outcomes.counts(MissingPolicy.of(missing).completion)
    smallest = int(n.min())
    return tuple(1 << i for i in range(smallest.bit_length()))


def missing_effect(outcomes: Outcomes, metric: str | Metric) -> dict[str, float | None]:
    """The metric with missing attempts counted as failed, left out, and counted as passed.

    ``None`` where the metric cannot be asked once the missing attempts are left out.
    """
    effect: dict[str, float | None] = {}
    word = parse(metric)
    for name, completion in (
        ("as failed", Completion.AS_FAILED),
        ("left out", Completion.DROPPED),
        ("as passed", Completion.AS_PASSED),
    ):
        try:
            view = Completed(outcomes, completion).supporting(word, drop_short=False)
            effect[name] = _value(view, word)[0]
        except PasshatError:
            effect[name] = None
    return effect
