"""forecast(): from n attempts per task to any k, with a band and with lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from passhat._display import counted, number
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.estimate.task_values import TaskValues
from passhat.stats.forecast.band import cutoff_for
from passhat.stats.forecast.forecast_result import Forecast
from passhat.stats.forecast.lines import Lines, lines_of
from passhat.stats.forecast.views import Views, asked_of, cells_for, countable
from passhat.stats.outcomes import Histogram, Outcomes, Run

__all__ = ["forecast", "forecast_all", "forecast_curve"]

_FAR = 10
_NOTICEABLE = 5e-4


def forecast(
    source: Outcomes | Run,
    metric: str | Metric,
    *,
    level: float = 0.95,
    missing: str = "bound",
) -> Forecast:
    """Say where a metric lies at any k, also beyond the attempts that were made.

    Parameters
    ----------
    source : Outcomes or Run
        What came of the run; one attempt at one task is enough for an answer.
    metric : str
        ``pass@k``, ``pass^k``, ``gpass@k:t`` or ``rate``.
    level : float
        The confidence of the band, for each k by itself.
    missing : {"bound", "fail", "exclude"}
        What to do with attempts that have no verdict. Under ``bound`` the band reaches over both
        ways to fill them in.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> print(forecast(Outcomes.from_counts(4, [0, 1, 2, 4, 4, 4, 3, 0]), "pass^16"))
    pass^16 in [0.000, 0.737] (95% band, new tasks; 8 tasks, 32 attempts)
    """
    return forecast_all(source, [metric], level=level, missing=missing)[0]


def forecast_all(
    source: Outcomes | Run,
    metrics: Iterable[str | Metric],
    *,
    level: float = 0.95,
    missing: str = "bound",
) -> tuple[Forecast, ...]:
    """Forecast several metrics of one run; they share one grid and one fit of every model.

    The parameters are those of :func:`forecast`.
    """
    outcomes = asked_of(source)
    asked = [countable(word) for word in metrics]
    if not asked:
        return ()
    histograms = cells_for(outcomes, missing)
    views = Views.of(histograms, asked, level)
    lines = lines_of(histograms[0], asked)
    filled = (
        ("where attempts are missing, the lines count them as failed",)
        if len(histograms) > 1
        else ()
    )
    return tuple(
        _checked(
            Forecast(
                metric=one.name,
                low=views.low(one),
                high=views.high(one),
                level=level,
                method=_method(level, missing, outcomes),
                tasks=int(histograms[0].tasks.sum()),
                attempts=int(histograms[0].n @ histograms[0].tasks),
                notes=(*_distance_notes(one, histograms[0]), *(filled if drawn else ())),
            ),
            one,
            histograms,
            drawn,
        )
        for one, drawn in zip(asked, lines, strict=True)
    )


def forecast_curve(
    source: Outcomes | Run, metric: str | Metric, *, level: float = 0.95, missing: str = "bound"
) -> tuple[Forecast, ...]:
    """The metric over k = 1, 2, 4, 8 ... and at its own k.

    The band holds for each k by itself.
    """
    last = countable(metric)
    ks = [1 << i for i in range(last.k.bit_length()) if 1 << i < last.k]
    asked = [replace(last, k=k) for k in ks] if last.name != "rate" else []
    return forecast_all(source, [*asked, last], level=level, missing=missing)


def _checked(
    found: Forecast, metric: CountMetric, histograms: Sequence[Histogram], lines: Lines
) -> Forecast:
    """The band reaches to what was observed, and only lines inside it are drawn."""
    observed = [_observed(metric, cells) for cells in histograms]
    seen = [value for value in observed if value is not None]
    low, high = min([found.low, *seen]), max([found.high, *seen])
    notes = list(found.notes)
    if max(found.low - low, high - found.high) > _NOTICEABLE:
        notes.append(
            "the band was extended to the observed value: attempts at a task differ less than "
            "independent attempts do"
        )
    drawn: Mapping[str, float | None] = {
        name: value if low <= value <= high else None for name, value in lines.items()
    }
    notes += [
        f"the {name} line says {number(lines[name])}, outside the band, and is not drawn"
        for name, value in drawn.items()
        if value is None
    ]
    if not drawn:
        notes.append(f"no line is drawn: {_why_no_line(histograms[0])}")
    return replace(
        found,
        low=low,
        high=high,
        observed=observed[0],
        lines=MappingProxyType(dict(drawn)),
        notes=tuple(notes),
    )


def _observed(metric: CountMetric, cells: Histogram) -> float | None:
    """The unbiased estimate, where every task has k attempts."""
    if int(cells.n.min()) < metric.k:
        return None
    return TaskValues(metric.values(cells.n, cells.c), cells.tasks).mean


def _distance_notes(metric: CountMetric, cells: Histogram) -> Iterator[str]:
    n = int(cells.n.min())
    if metric.k > _FAR * n:
        yield (
            f"warning: k = {metric.k:,} is {metric.k / n:,.0f} times the {counted(n, 'attempt')} "
            "per task; so far out the band is what is known, and a line is a guess"
        )


def _why_no_line(cells: Histogram) -> str:
    if int(cells.n.max()) < 2:
        return "one attempt per task does not tell one shape from another"
    return "all attempts ended alike"


def _method(level: float, missing: str, outcomes: Outcomes) -> str:
    policy = "" if outcomes.m is None else f"; missing attempts: {missing}"
    return (
        "all distributions of difficulty whose log-likelihood is within "
        f"{cutoff_for(level):.2f} of the largest, outer bounds{policy}"
    )
