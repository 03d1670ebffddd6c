"""Estimates of a suite: the average over tasks, with the missing attempts accounted for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from passhat._display import counted, html_table, interval_plot, number
from passhat._serialize import Plain
from passhat.errors import InvalidValue, PasshatError
from passhat.stats.clusters import task_clusters
from passhat.stats.estimate.exchangeability import position_warnings
from passhat.stats.estimate.grammar import metric as parse
from passhat.stats.estimate.metrics import Delta, Metric, OrderedMetric, PassHat, ScoreMetric
from passhat.stats.estimate.task_values import FilledOutcomes, gap_notes, verdict_twin
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes
from passhat.stats.terms import OptionName, Population, TermOptions, Terms

if TYPE_CHECKING:
    from passhat.stats.estimate.intervals.interval_methods import Interval, IntervalTerms


def exact(p: npt.ArrayLike, metric: str | Metric) -> float:
    """The value of a metric for known success rates of all tasks.

    Parameters
    ----------
    p : array of float
        The success rate of each task.
    metric : str
        A word such as ``pass^4``. ``window^w`` has no answer here, since it depends on n.

    Examples
    --------
    >>> exact([0.5], "pass^10") == 1 / 1024
    True
    >>> exact([0.0, 1.0], "pass^10")
    0.5
    """
    rates = np.atleast_1d(np.asarray(p, dtype=np.float64))
    if rates.size == 0:
        raise InvalidValue("at least one success rate is needed.")
    outside = ~((rates >= 0) & (rates <= 1))
    if outside.any():
        index = int(np.flatnonzero(outside)[0])
        raise InvalidValue(f"p[{index}] = {rates[index]:g} is not a probability.")
    return float(np.mean(parse(metric).value_at_rate(rates)))


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(Plain):
    """A value with its interval, method and population.

    Attributes
    ----------
    metric : Metric
        The metric; JSON has its name, as in ``pass^4``.
    value : float
        The estimate; under the policies ``bound`` and ``fail`` missing attempts count as failed.
    value_if_passed : float or None
        The value had every missing attempt passed; only under the policy ``bound``.
    low, high : float or None
        The ends of the interval; ``None`` when none was computed.
    level : float or None
        The confidence of the interval.
    population : Population
        The tasks it is about: ``new tasks`` or ``these tasks``; JSON calls it ``about``.
    estimator, interval_method : str
        How the value and the interval were computed.
    tasks, attempts : int
        The numbers of tasks and attempts behind it.
    bounds : tuple of float or None
        For ``delta^k``: between which values the truth lies, for any mean in its interval.
    value_range : tuple of float or None
        The least and the largest value over all ways to fill in missing attempts; only where the
        policy is ``bound`` and they differ. Of ``delta^k`` some passed and some failed may give
        more or less than all of them.
    notes : tuple of str
        Further remarks.
    missing_policy : str
        How ``value`` counts attempts that have no verdict: as failed (``bound``,
        ``fail``) or leaves them out (``exclude``).
    """

    WRITTEN = (
        "metric",
        "value",
        "missing_policy",
        "value_if_passed",
        "low",
        "high",
        "level",
        ("about", "population"),
        "method",
        "tasks",
        "attempts",
        "notes",
    )

    metric: Metric
    value: float
    value_if_passed: float | None
    low: float | None
    high: float | None
    level: float | None
    population: Population
    estimator: str
    interval_method: str
    tasks: int
    attempts: int
    bounds: tuple[float, float] | None = None
    value_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    missing_policy: str = "bound"

    @property
    def method(self) -> str:
        """Estimator, missing policy and interval method in words."""
        missing = _POLICY_WORDS[MissingPolicy.of(self.missing_policy)]
        return f"{self.estimator}; {missing}; {self.interval_method}"

    def interval_text(self) -> str:
        """The interval in brackets, or that there is none."""
        if self.low is None or self.high is None:
            return "no interval"
        return f"[{number(self.low)}, {number(self.high)}]"

    @property
    def value_ends(self) -> tuple[float, float]:
        """The least and the largest value that missing attempts leave possible."""
        return self.value_range or (self.value, self.value)

    def value_text(self) -> str:
        """The value; both ends where missing attempts leave it open, as in ``0.2 to 0.4``."""
        return " to ".join(dict.fromkeys(number(end) for end in self.value_ends))

    def __str__(self) -> str:
        level = "" if self.level is None else f"{100 * self.level:g}%, "
        return (
            f"{self.metric} = {self.value_text()} {self.interval_text()} "
            f"({level}{self.population}; {counted(self.tasks, 'task')}, "
            f"{counted(self.attempts, 'attempt')})"
        )

    def plot(self) -> Any:
        """The value with its interval: an Altair chart where Altair is installed, else SVG."""
        level = "" if self.level is None else f"{100 * self.level:g}% interval, "
        axis = f"{self.metric} ({level}{self.population})"
        return interval_plot(str(self), axis, [(str(self.metric), self.value, self.low, self.high)])

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.to_dict().items() if value is not None]
        return html_table(str(self), ("", ""), rows)

    def _as_dict(self) -> dict[str, object]:
        data = Plain._as_dict(self)
        if isinstance(self.metric, Delta):  # of the others it is the two values
            ends = {"bounds": self.bounds, "value_range": self.value_range}
            data |= {name: pair for name, pair in ends.items() if pair is not None}
        return data


_TAKES: tuple[OptionName, ...] = ("missing", "level", "drop_short", "cluster", "about")
_POLICY_WORDS = MappingProxyType(
    {
        MissingPolicy.BOUND: "missing as failed, and as passed beside it",
        MissingPolicy.FAIL: "missing as failed",
        MissingPolicy.EXCLUDE: "missing left out",
    }
)


def estimate(
    outcomes: Outcomes,
    metric: str | Metric,
    terms: Terms | None = None,
    *,
    rng: np.random.Generator | None = None,
    **options: Unpack[TermOptions],
) -> Estimate:
    """Estimate one metric over a suite.

    Options as in :func:`passhat.estimate`. Under the policy ``bound`` the interval reaches from the
    lower end with all missing attempts failed to the upper end with all of them passed.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> print(estimate(Outcomes.from_counts(10, [0, 1, 2, 4]), "pass@5"))
    pass@5 = 0.563 [0.141, 0.897] (95%, new tasks; 4 tasks, 40 attempts)
    """
    return estimate_all(outcomes, [metric], terms, rng=rng, **options)[0]


def estimate_all(
    outcomes: Outcomes,
    metrics: Iterable[str | Metric],
    terms: Terms | None = None,
    *,
    rng: np.random.Generator | None = None,
    **options: Unpack[TermOptions],
) -> tuple[Estimate, ...]:
    """Estimate several metrics over one suite in one pass over the tasks.

    The parameters are those of :func:`estimate`.
    """
    from passhat.stats.estimate.intervals.interval_methods import IntervalTerms

    words = [parse(word) for word in metrics]
    without_interval = "level" in options and options["level"] is None
    if without_interval:
        del options["level"]
    terms = Terms.from_options(options, terms, takes=_TAKES).for_tasks(len(outcomes))
    interval_terms = None if without_interval else IntervalTerms(terms, rng)
    policy = terms.missing
    views = _Views(outcomes, policy.completion, drop_short=terms.drop_short)
    twins = {word: verdict_twin(word, outcomes) for word in words}
    bounds = _bound_all(views, twins.values(), interval_terms)
    if_passed: Mapping[Metric, _Bounded] = bounds
    between: dict[Metric, list[Interval]] = {}
    if policy is MissingPolicy.BOUND and outcomes.m is not None:
        # Both ways to fill in leave n as it is, so the same tasks are short.
        optimistic = _Views(outcomes, Completion.AS_PASSED, drop_short=terms.drop_short)
        if_passed = _bound_all(optimistic, twins.values(), interval_terms)
        between = _bound_between(views, twins.values(), interval_terms)
    return tuple(
        _as_estimate(
            metric,
            views.of(metric),
            bounds[twins[metric]].of_twin(metric, twins[metric]),
            if_passed[twins[metric]] if policy is MissingPolicy.BOUND else None,
            between.get(twins[metric], []),
            terms,
            dropped=len(outcomes) - len(views.of(metric).outcomes),
        )
        for metric in words
    )


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A value and the interval around it, for one way to fill in missing attempts."""

    value: float
    low: float | None = None
    high: float | None = None
    how: str = "no interval"
    mean: tuple[float, float] | None = None  # the ends of pass^1; only for delta^k

    def of_twin(self, metric: Metric, twin: Metric) -> _Bounded:
        """The bounds as those of another metric; their method says whose they are."""
        if metric is twin or self.low is None:
            return self
        return replace(self, how=f"{self.how}, that of {twin}: every score is its verdict")


class _Views:
    """The outcomes that support each metric; metrics with the same k share a view."""

    def __init__(self, outcomes: Outcomes, completion: Completion, *, drop_short: bool) -> None:
        self._whole = FilledOutcomes(outcomes, completion)
        self._drop_short = drop_short
        self._by_k: dict[int, FilledOutcomes] = {}

    def of(self, metric: Metric) -> FilledOutcomes:
        if metric.k not in self._by_k:
            self._by_k[metric.k] = self._whole.supporting(metric, drop_short=self._drop_short)
        return self._by_k[metric.k]


def _bound_all(
    views: _Views, metrics: Iterable[Metric], asked: IntervalTerms | None
) -> dict[Metric, _Bounded]:
    """Values and intervals; metrics on the same tasks share a pass."""
    groups: dict[int, tuple[FilledOutcomes, dict[Metric, float]]] = {}
    for metric in metrics:
        view = views.of(metric)
        groups.setdefault(id(view), (view, {}))[1][metric] = _value(view, metric)
    bounds_by_metric = {}
    for view, points in groups.values():
        # What delta^k can be at most depends on the mean.
        mean = PassHat(1)
        asked_for = list(points)
        if any(isinstance(metric, Delta) for metric in points) and mean not in points:
            points[mean] = _value(view, mean)
        intervals = {} if asked is None else _intervals_of(view, points, asked)
        for metric in asked_for:
            bounds_by_metric[metric] = _bound(metric, points, intervals)
    return bounds_by_metric


def _intervals_of(
    view: FilledOutcomes, points: Mapping[Metric, float], asked: IntervalTerms
) -> dict[Metric, Interval]:
    from passhat.stats.estimate.intervals.interval_methods import intervals_of

    return intervals_of(view, points, asked)


def _bound_between(
    views: _Views, metrics: Iterable[Metric], asked: IntervalTerms | None
) -> dict[Metric, list[Interval]]:
    """Intervals with some missing attempts passed and some failed, where they reach further."""
    from passhat.stats.estimate.intervals.interval_methods import intervals_between

    groups: dict[int, tuple[FilledOutcomes, list[Metric]]] = {}
    for metric in dict.fromkeys(metrics) if asked is not None else ():
        view = views.of(metric)
        groups.setdefault(id(view), (view, []))[1].append(metric)
    found: dict[Metric, list[Interval]] = {}
    for view, group in groups.values():
        if asked is not None and view.outcomes.m is not None:
            for metric, interval in intervals_between(view, group, asked):
                found.setdefault(metric, []).append(interval)
    return found


def _bound(
    metric: Metric, points: Mapping[Metric, float], intervals: Mapping[Metric, Interval]
) -> _Bounded:
    interval, mean_ends = intervals.get(metric), None
    if isinstance(metric, Delta):
        mean = intervals.get(PassHat(1))
        mean_ends = (points[PassHat(1)],) * 2 if mean is None else (mean.low, mean.high)
    if interval is None:
        return _Bounded(points[metric], mean=mean_ends)
    return _Bounded(points[metric], interval.low, interval.high, interval.method, mean_ends)


def _as_estimate(
    metric: Metric,
    view: FilledOutcomes,
    made: _Bounded,
    if_passed: _Bounded | None,
    between: Sequence[Interval],
    terms: Terms,
    *,
    dropped: int,
) -> Estimate:
    """Join all ways to fill in: the interval reaches to the outer ends."""
    both = [bounds for bounds in (made, if_passed) if bounds is not None]
    lows = [bounds.low for bounds in both if bounds.low is not None]
    highs = [bounds.high for bounds in both if bounds.high is not None]
    if lows:
        lows += [interval.low for interval in between]
        highs += [interval.high for interval in between]
    value_range = None if if_passed is None else _range_of(metric, view, made, if_passed)
    notes = []
    if dropped:
        notes.append(f"{counted(dropped, 'task')} with fewer than {metric.k} attempts left out")
    if isinstance(metric, Delta) and value_range is not None:
        least, largest = map(number, value_range)
        notes.append(f"{metric} is between {least} and {largest} as missing attempts come out")
    if isinstance(metric, ScoreMetric) and view.outcomes.scores_are_verdicts:
        notes.append(f"no attempt has a score besides its verdict: it is {metric.verdict_metric}")
    notes += gap_notes(view.outcomes, metric)
    if isinstance(metric, OrderedMetric):
        notes += position_warnings(
            view.outcomes, f"{metric} holds for this order, and an interval does not show that"
        )
    clusters = task_clusters(view.outcomes, terms.cluster)
    if clusters is not None and terms.about() is Population.NEW_TASKS:
        notes += clusters.warnings()
    return Estimate(
        metric=metric,
        value=made.value,
        value_if_passed=None if if_passed is None else if_passed.value,
        low=min(lows, default=None),
        high=max(highs, default=None),
        level=terms.level if lows else None,
        population=terms.about(),
        estimator=metric.estimator,
        interval_method=made.how,
        tasks=len(view.outcomes),
        attempts=view.attempts,
        bounds=_bounds_of_truth(metric, both, highs),
        value_range=value_range,
        notes=tuple(notes),
        missing_policy=str(terms.missing),
    )


def _range_of(
    metric: Metric, view: FilledOutcomes, failed: _Bounded, passed: _Bounded
) -> tuple[float, float] | None:
    """The least and the largest value over all ways to fill in missing attempts, if they differ."""
    low, high = sorted((failed.value, passed.value))
    if isinstance(metric, Delta) and view.outcomes.m is not None and metric.k > 1:
        n_and_c = view.outcomes.counts(Completion.AS_FAILED)
        ends = metric.range_of_fillings(*n_and_c, view.outcomes.m)
        low, high = (round(end, _POWER_DIGITS) for end in ends)
    return (low, high) if low < high else None


def _bounds_of_truth(
    metric: Metric, both: Sequence[_Bounded], highs: Sequence[float]
) -> tuple[float, float] | None:
    """0 and the largest delta^k for any mean that missing attempts and chance leave possible."""
    means = [end for bounds in both for end in bounds.mean or ()]
    if not isinstance(metric, Delta) or not means:
        return None
    # The interval is computed from both means together, the bound from one of them.
    return 0.0, max([round(metric.largest(min(means), max(means)), _POWER_DIGITS), *highs])


_POWER_DIGITS = 12  # the last bits of a power depend on the processor


def _value(view: FilledOutcomes, metric: Metric) -> float:
    if isinstance(metric, Delta):
        pass_hat_k, mean = (view.of(part).mean for part in metric.parts)
        return round(metric.combine(pass_hat_k, mean), _POWER_DIGITS)
    return view.of(metric).mean


def default_ks(outcomes: Outcomes, missing: str = "bound") -> tuple[int, ...]:
    """1, 2, 4, 8 ... up to the smallest number of attempts any task has."""
    n, _ = outcomes.counts(MissingPolicy.of(missing).completion)
    smallest = int(n.min())
    return tuple(1 << i for i in range(smallest.bit_length()))


def missing_effect(outcomes: Outcomes, metric: str | Metric) -> dict[str, float | None]:
    """The metric with missing attempts counted as failed, dropped, and counted as passed.

    ``None`` where too few attempts are left for the metric once the missing ones are dropped.
    """
    effect: dict[str, float | None] = {}
    word = parse(metric)
    for name, completion in (
        ("as failed", Completion.AS_FAILED),
        ("left out", Completion.DROPPED),
        ("as passed", Completion.AS_PASSED),
    ):
        try:
            view = FilledOutcomes(outcomes, completion).supporting(word, drop_short=False)
            effect[name] = _value(view, word)
        except PasshatError:
            effect[name] = None
    return effect
