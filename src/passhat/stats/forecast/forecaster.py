"""forecast(): from n attempts per task to any k, with a band and with model lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Unpack

from passhat._display import counted, html_table, number
from passhat._serialize import Plain
from passhat.stats.arrays import DECIMALS
from passhat.stats.clusters import task_clusters
from passhat.stats.estimate.exchangeability import position_warnings
from passhat.stats.estimate.metrics import CountMetric, Metric, Rate
from passhat.stats.estimate.task_values import TaskValues
from passhat.stats.forecast.lines import Lines, lines_of
from passhat.stats.forecast.views import TAKES, Views, cells_for, countable, outcomes_of
from passhat.stats.outcomes import Histogram, Outcomes, Run
from passhat.stats.terms import Population, TermOptions, Terms

SCHEMA = "passhat.forecast/1"


@dataclass(frozen=True, slots=True, repr=False)
class Forecast(Plain):
    """The band of a metric at a k, for any shape of the difficulty.

    Attributes
    ----------
    metric : CountMetric
        The metric; JSON has its name, as in ``pass@1000``.
    low, high : float
        The ends of the band.
    level : float
        The confidence of the band, for this k.
    lines : mapping of str to float or None
        The value of each named model; ``None`` where it runs outside the band.
    observed : float or None
        The unbiased estimate, where every task has k attempts.
    observed_if_passed : float or None
        The same with all missing attempts counted as passed, where there are any and they are not
        left out or counted as failed.
    population : Population
        The tasks it is about: always ``new tasks``; JSON calls it ``about``.
    method : str
        How the band was computed.
    tasks, attempts : int
        The data behind it.
    warnings : tuple of str
        Reasons for caution: k far beyond n, few clusters.
    notes : tuple of str
        Other remarks.
    """

    WRITTEN = (
        "metric",
        "low",
        "high",
        "level",
        "lines",
        "observed",
        "observed_if_passed",
        ("about", "population"),
        "method",
        "tasks",
        "attempts",
        "in_words",
        "warnings",
        "notes",
    )

    metric: CountMetric
    low: float
    high: float
    level: float
    lines: Mapping[str, float | None] = field(default_factory=lambda: MappingProxyType({}))
    observed: float | None = None
    observed_if_passed: float | None = None
    population: Population = Population.NEW_TASKS
    method: str = ""
    tasks: int = 0
    attempts: int = 0
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def band_text(self) -> str:
        """The band in brackets."""
        return f"[{number(self.low)}, {number(self.high)}]"

    def users(self, count: int = 10_000) -> str:
        """The band as people: how many of ``count`` users it is good to.

        Each user brings one task like these and comes k times.
        """
        low, high = math.floor(self.low * count + 1e-9), math.ceil(self.high * count - 1e-9)
        many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        return f"of {count:,} users {self.metric.users_text(many)}"

    def __str__(self) -> str:
        return (
            f"{self.metric} in {self.band_text()} ({100 * self.level:g}% band, {self.population}; "
            f"{counted(self.tasks, 'task')}, {counted(self.attempts, 'attempt')})"
        )

    def _repr_html_(self) -> str:
        rows = [("band", self.band_text())]
        if self.observed is not None:
            top = self.observed_if_passed
            either = "" if top is None else f" to {number(top)} (missing attempts either way)"
            rows.append(("observed", number(self.observed) + either))
        rows += [(name, _line_text(value)) for name, value in self.lines.items()]
        rows += [("method", self.method), *(("warning", text) for text in self.warnings)]
        rows += [("note", text) for text in self.notes]
        return html_table(str(self), ("", ""), rows)

    @property
    def in_words(self) -> str:
        """The band as numbers of users out of 10,000."""
        return self.users()


def _line_text(value: float | None) -> str:
    return "outside the band" if value is None else number(value)


_FAR = 10
_NOTICEABLE = 5e-4


def forecast(
    source: Outcomes | Run,
    metric: str | Metric,
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> Forecast:
    """Bound a metric at any k, also beyond the attempts that were made.

    Takes ``pass@k``, ``pass^k``, ``gpass@k:t`` and ``rate``; the level holds for each k by itself.
    Under the policy ``bound`` the band reaches over both ways to fill missing attempts in. With a
    cluster it is widened by the design effect.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> print(forecast(Outcomes.from_counts(4, [0, 1, 2, 4, 4, 4, 3, 0]), "pass^16"))
    pass^16 in [0.000, 0.753] (95% band, new tasks; 8 tasks, 32 attempts)
    """
    return forecast_all(source, [metric], terms, **options)[0]


def forecast_all(
    source: Outcomes | Run,
    metrics: Iterable[str | Metric],
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> tuple[Forecast, ...]:
    """Forecast several metrics of one run; they share one grid and one fit of every model.

    The parameters are those of :func:`forecast`.
    """
    terms = Terms.from_options(options, terms, takes=TAKES)
    outcomes = outcomes_of(source)
    count_metrics = [countable(word) for word in metrics]
    if not count_metrics:
        return ()
    histograms = cells_for(outcomes, terms.missing)
    views = Views.of(outcomes, histograms, count_metrics, terms)
    clusters = task_clusters(outcomes, terms.cluster)
    lines = lines_of(histograms[0], count_metrics)
    order_warnings = position_warnings(
        outcomes,
        "a forecast takes any order as equally likely, and counts all attempts alike",
    )
    missing_notes = (
        ("where attempts are missing, the lines count them as failed",)
        if len(histograms) > 1
        else ()
    )
    return tuple(
        _check_lines(
            Forecast(
                metric=metric,
                low=views.low(metric),
                high=views.high(metric),
                level=terms.level,
                method=_method(views, metric, terms, outcomes),
                tasks=int(histograms[0].tasks.sum()),
                attempts=int(histograms[0].n @ histograms[0].tasks),
                warnings=(
                    *order_warnings,
                    *(() if clusters is None else clusters.warnings()),
                    *_distance_warnings(metric, histograms[0]),
                ),
                notes=missing_notes if metric_lines else (),
            ),
            metric,
            histograms,
            metric_lines,
        )
        for metric, metric_lines in zip(count_metrics, lines, strict=True)
    )


def forecast_curve(
    source: Outcomes | Run,
    metric: str | Metric,
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> tuple[Forecast, ...]:
    """The metric over k = 1, 2, 4, 8 ... and at its own k.

    The band holds for each k by itself.
    """
    last = countable(metric)
    ks = [1 << i for i in range(last.k.bit_length()) if 1 << i < last.k]
    count_metrics = [last.with_k(k) for k in ks] if not isinstance(last, Rate) else []
    return forecast_all(source, [*count_metrics, last], terms, **options)


def _check_lines(
    band: Forecast, metric: CountMetric, histograms: Sequence[Histogram], lines: Lines
) -> Forecast:
    """The band extended to the observed values, with only the lines inside it."""
    values = [_observed_value(metric, cells) for cells in histograms]
    finite_values = [value for value in values if value is not None]
    low, high = min([band.low, *finite_values]), max([band.high, *finite_values])
    notes = list(band.notes)
    if max(band.low - low, high - band.high) > _NOTICEABLE:
        notes.append(
            "the band was extended to the observed value: attempts at a task differ less than "
            "independent attempts do"
        )
    visible_lines: Mapping[str, float | None] = {
        name: round(value, DECIMALS) if low <= value <= high else None
        for name, value in lines.items()
    }
    notes += [
        f"the {name} line says {number(lines[name])}, outside the band, and is not drawn"
        for name, value in visible_lines.items()
        if value is None
    ]
    if not visible_lines:
        notes.append(f"no line is drawn: {_why_no_line(histograms[0])}")
    return replace(
        band,
        low=low,
        high=high,
        observed=values[0],
        observed_if_passed=values[1] if len(values) > 1 else None,
        lines=MappingProxyType(dict(visible_lines)),
        notes=tuple(notes),
    )


def _observed_value(metric: CountMetric, cells: Histogram) -> float | None:
    """The unbiased estimate, where every task has k attempts."""
    if int(cells.n.min()) < metric.k:
        return None
    return TaskValues(metric.values(cells.n, cells.c), cells.tasks).mean


def _distance_warnings(metric: CountMetric, cells: Histogram) -> Iterator[str]:
    n = int(cells.n.min())
    if metric.k > _FAR * n:
        yield (
            f"k = {metric.k:,} is {metric.k / n:,.0f} times the {counted(n, 'attempt')} "
            "per task; so far out the band is what is known, and a line is a guess"
        )


def _why_no_line(cells: Histogram) -> str:
    if int(cells.n.max()) < 2:
        return "one attempt per task does not tell one shape from another"
    return "all attempts ended alike"


def _method(views: Views, metric: CountMetric, terms: Terms, outcomes: Outcomes) -> str:
    policy = "" if outcomes.m is None else f"; missing attempts: {terms.missing}"
    clusters = (
        ""
        if terms.cluster is None
        else f"; design effect {views.design_effect:.2f} of clusters by {terms.cluster}"
    )
    return (
        "all distributions of difficulty whose log-likelihood is within "
        f"{views.cutoff(metric):.2f} of the largest, outer bounds{policy}{clusters}"
    )
