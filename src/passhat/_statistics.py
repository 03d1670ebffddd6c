"""Front ends of the statistics that accept common kinds of input.

Statistics take :class:`Outcomes` or :class:`Run`. The functions here also take a matrix of 0 and 1
(a list of lists or a NumPy array) and a pandas or polars frame with the columns of a table
(:mod:`passhat.stats.outcomes.coercion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passhat.stats.outcomes import Run
from passhat.stats.outcomes.coercion import Data, as_outcomes, as_run_or_outcomes, as_runs

if TYPE_CHECKING:
    import numpy as np

    from passhat.protocol import Alternative
    from passhat.stats.compare import Comparison, Comparisons
    from passhat.stats.estimate import Diagnosis, Estimate, Metric
    from passhat.stats.forecast import Forecast
    from passhat.stats.gate import GateResult
    from passhat.stats.gate.cases import Unsettled
    from passhat.stats.terms import Terms

__all__ = [
    "compare",
    "compare_all",
    "diagnose",
    "estimate",
    "estimate_all",
    "forecast",
    "gate",
]


def estimate(
    data: Data,
    metric: str | Metric,
    *,
    about: str | None = None,
    level: float | None = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
    cluster: str | None = None,
    rng: np.random.Generator | None = None,
) -> Estimate:
    """Estimate one metric over the tasks of a run.

    Parameters
    ----------
    data : Run, Outcomes, matrix or data frame
        A matrix has a row per task and a column per attempt: 1 passed, 0 failed, ``None`` or NaN
        missing. A frame has the columns ``task`` and ``success`` (one row per attempt) or ``task``,
        ``n`` and ``c`` (one row per task).
    metric : str
        Such as ``pass^4`` or ``pass@10``.
    about : {"new tasks", "these tasks"}
        The tasks the interval is about: tasks like these, or exactly these again. By default new
        tasks, and for a single task this one again.
    level : float or None
        Confidence of the interval; ``None`` for the value alone.
    missing : {"bound", "fail", "exclude"}
        What attempts without a verdict count as.
    drop_short : bool
        Leave out tasks with fewer than k attempts rather than refuse; a note says so.
    cluster : str, optional
        A slice; tasks that share its value are not independent of each other.
    rng : numpy.random.Generator, optional
        For ``delta^k``, whose interval is drawn; a fixed seed is used, and named, by default.

    Examples
    --------
    >>> print(estimate([[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]], "pass^2"))
    pass^2 = 0.500 [0.067, 0.933] (95%, new tasks; 3 tasks, 12 attempts)
    """
    (result,) = estimate_all(
        data,
        [metric],
        about=about,
        level=level,
        missing=missing,
        drop_short=drop_short,
        cluster=cluster,
        rng=rng,
    )
    return result


def estimate_all(
    data: Data,
    metrics: Iterable[str | Metric],
    *,
    about: str | None = None,
    level: float | None = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
    cluster: str | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Estimate, ...]:
    """Estimate several metrics in one pass; parameters as in :func:`estimate`."""
    from passhat.stats.estimate import estimate_all as run_estimate_all

    return run_estimate_all(
        as_outcomes(data),
        metrics,
        rng=rng,
        about=about,
        level=level,
        missing=missing,
        drop_short=drop_short,
        cluster=cluster,
    )


def diagnose(data: Data) -> Diagnosis:
    """Look for signs that a run measures less than it seems to: identical answers, no spread."""
    from passhat.stats.estimate import diagnose as run_diagnose

    return run_diagnose(as_outcomes(data), data.attempts if isinstance(data, Run) else None)


def compare(
    a: Data,
    b: Data,
    metric: str | Metric | Sequence[str | Metric] = "pass^1",
    *,
    about: str | None = None,
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
    cluster: str | None = None,
    allow: bool = False,
    alternative: Alternative = "two-sided",
    by: str | None = None,
    metric_b: str | Metric | None = None,
    unpaired: bool = False,
) -> Comparison:
    """Is B better than A on the tasks they share?

    Parameters
    ----------
    a, b : Run, Outcomes, matrix or data frame
        The lift is B minus A. Tasks are paired by their ids; the rows of two matrices in order.
    metric : str or several
        Such as ``pass^4``. With several, the intervals hold for all of them at once.
    about, level, missing, drop_short, cluster
        As in :func:`estimate`.
    allow : bool
        Compare runs although their protocols differ; the differences are listed.
    alternative : {"two-sided", "greater", "less"}
        Chosen before looking: B differs from A, is better, is worse.
    by : str, optional
        Compare each value of a slice as well, corrected for their number.
    metric_b : str, optional
        The metric of B, where it is named apart; another quantity than A's is refused.
    unpaired : bool
        The runs attempted different tasks of one pool: compare about new tasks, without pairs.
    """
    from passhat.stats.compare import compare as run_compare

    return run_compare(
        as_run_or_outcomes(a),
        as_run_or_outcomes(b),
        metric,
        _terms(
            about=about,
            level=level,
            missing=missing,
            drop_short=drop_short,
            cluster=cluster,
            allow=allow,
        ),
        alternative=alternative,
        by=by,
        metric_b=metric_b,
        unpaired=unpaired,
    )


def compare_all(
    runs: Iterable[Data],
    metric: str | Metric | Sequence[str | Metric] = "pass^1",
    *,
    about: str | None = None,
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
    cluster: str | None = None,
    allow: bool = False,
) -> Comparisons:
    """All pairs of several runs, corrected for their number; parameters as in :func:`compare`."""
    from passhat.stats.compare import compare_all as run_compare_all

    return run_compare_all(
        as_runs(runs if isinstance(runs, Mapping) else list(runs)),
        metric,
        _terms(
            about=about,
            level=level,
            missing=missing,
            drop_short=drop_short,
            cluster=cluster,
            allow=allow,
        ),
    )


def gate(
    data: Data,
    rules: str | Iterable[str] = (),
    against: Data | None = None,
    *,
    metric: str | Metric = "pass^1",
    margin: float | None = None,
    unsettled: Unsettled | None = None,
    max_missing: float = 0.05,
    tasks: int | None = None,
    attempts: int | None = None,
    about: str | None = None,
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
    cluster: str | None = None,
    allow: bool = False,
) -> GateResult:
    """Decide whether a run meets rules such as ``pass^4 >= 0.6``.

    Parameters
    ----------
    data : Run, Outcomes, matrix or data frame
        The run that is judged. Rules on cost, seconds, steps and tokens need a :class:`Run`.
    rules : str or several
        Such as ``pass^4 >= 0.6``, ``pass^4 >= base - 0.03``, ``missing <= 2%``.
    against : Run, Outcomes, matrix or data frame, optional
        The baseline that ``base`` means.
    metric : str
        Without a rule: what is compared.
    margin : float, optional
        Without a rule: the drop that is accepted, as a share; 0.05 is 5 points.
    unsettled : {"pass", "warn", "fail"}, optional
        How a gate ends that is not settled; ``fail`` with rules, ``warn`` without.
    max_missing : float
        Share of planned attempts that may have no verdict; beyond it, exit code 4.
    tasks, attempts : int, optional
        The plan: tasks, and attempts at each. Fewer are reported as absent.
    about, level, missing, drop_short, cluster, allow
        As in :func:`compare`; ``level`` is one-sided here.
    """
    from passhat.stats.gate import gate as run_gate

    return run_gate(
        as_run_or_outcomes(data),
        rules,
        None if against is None else as_run_or_outcomes(against),
        _terms(
            about=about,
            level=level,
            missing=missing,
            drop_short=drop_short,
            cluster=cluster,
            allow=allow,
        ),
        metric=metric,
        margin=margin,
        unsettled=unsettled,
        max_missing=max_missing,
        tasks=tasks,
        attempts=attempts,
    )


def forecast(
    data: Data,
    metric: str | Metric,
    *,
    level: float = 0.95,
    missing: str = "bound",
    cluster: str | None = None,
) -> Forecast:
    """Bounds of a metric at any k, also beyond the attempts that were made.

    Parameters
    ----------
    data : Run, Outcomes, matrix or data frame
        One attempt at one task is enough for an answer.
    metric : str
        Such as ``pass@1000`` or ``pass^32``.
    level, missing, cluster
        As in :func:`estimate`.
    """
    from passhat.stats.forecast import forecast as run_forecast

    terms = _terms(level=level, missing=missing, cluster=cluster)
    return run_forecast(as_run_or_outcomes(data), metric, terms)


def _terms(**options: Any) -> Terms:
    from passhat.stats.terms import Terms

    return Terms.from_options(options)
