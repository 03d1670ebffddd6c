"""From runs to the view model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from passhat.errors import InvalidValue
from passhat.report.code_runs import code_notes, doubt_notes, weak_tests
from passhat.report.view import CurvePoint, Report, RunReport, TaskRow
from passhat.stats.estimate import (
    Estimate,
    default_ks,
    diagnose,
    estimate_all,
    metric,
    missing_effect,
)
from passhat.stats.outcomes import Outcomes, Run, Verdict
from passhat.stats.terms import Population, Terms

if TYPE_CHECKING:
    from passhat.report.details import Details

__all__ = ["ReportOptions", "build_report"]

_CURVE_POINTS = 32
_ABOUT = (Population.NEW_TASKS, Population.THESE_TASKS)
_DOTS = {Verdict.PASSED: "●", Verdict.FAILED: "○", Verdict.MISSING: "·"}


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the reader of a report asked for.

    Without ``ks`` and ``metrics`` the recommended set is reported: pass^k, pass@k and delta^k at
    1, 2, 4, 8 ... up to the smallest n. ``metrics`` alone replaces that set; with ``ks`` they are
    added to it. ``with_details`` adds what charts show: curves with intervals, forecasts, measures;
    ``with_forecasts=False`` leaves out the forecasts, which take longer than all the rest.
    """

    ks: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    terms: Terms = field(default_factory=Terms)
    by: str | None = None
    with_tasks: bool = False
    with_details: bool = False
    with_forecasts: bool = True


def build_report(runs: Iterable[Run], options: ReportOptions | None = None) -> Report:
    """Compute everything that any form of the report shows."""
    options = options or ReportOptions()
    return Report(tuple(_run_report(run, options) for run in runs))


def _run_report(run: Run, options: ReportOptions) -> RunReport:
    words = _metrics(run.outcomes, options)
    alike = None if run.aggregates is None else run.aggregates.alike
    diagnosis = diagnose(run.outcomes, run.attempts, alike)
    slices = {} if options.by is None else dict(run.outcomes.by(options.by))
    weak = weak_tests(run)
    curve = _curve(run.outcomes, words, options)
    ks = [point.k for point in curve]
    known = _about_new_tasks(run.outcomes, words, ks, options)
    return RunReport(
        run=run,
        protocol=replace(run.protocol, missing=options.terms.missing),
        estimates=(
            *(known[word] for word in words),
            *_estimates(run.outcomes, words, options, Population.THESE_TASKS),
        ),
        slices={
            value: tuple(
                found
                for about in _ABOUT
                for found in _estimates(part, _metrics(part, options), options, about)
            )
            for value, part in slices.items()
        },
        slice_label=options.by,
        curve=curve,
        diagnosis=diagnosis,
        missing_effect=_missing_effects(run.outcomes, words),
        tasks=_task_rows(run.outcomes) if options.with_tasks else (),
        notes=(
            *doubt_notes(run),
            *run.notes,
            *diagnosis.notes,
            *_slice_notes(len(slices), options.by),
            *code_notes(run, weak),
        ),
        weak_tests=weak,
        details=_details(run, words, ks, known, options) if options.with_details else None,
    )


def _about_new_tasks(
    outcomes: Outcomes, words: list[str], ks: list[int], options: ReportOptions
) -> dict[str, Estimate]:
    """What is reported and what is drawn, in one pass: most of it is the same."""
    drawn: list[str] = []
    if options.with_details:
        from passhat.report.curves import curve_words

        drawn = curve_words(ks)
    asked = list(dict.fromkeys([*words, *drawn]))
    found = _estimates(outcomes, asked, options, Population.NEW_TASKS)
    return dict(zip(asked, found, strict=True))


def _details(
    run: Run,
    words: list[str],
    ks: list[int],
    known: dict[str, Estimate],
    options: ReportOptions,
) -> Details:
    from passhat.report.details import build_details

    return build_details(
        run, words, ks, known, options.terms, with_forecasts=options.with_forecasts
    )


def _estimates(
    outcomes: Outcomes, words: list[str], options: ReportOptions, about: Population
) -> tuple[Estimate, ...]:
    """Every metric about one population."""
    return estimate_all(outcomes, words, options.terms, about=about)


def _metrics(outcomes: Outcomes, options: ReportOptions) -> list[str]:
    """The words to report, each once, in the order in which they are read."""
    if options.metrics and not options.ks:
        return list(dict.fromkeys(str(metric(word)) for word in options.metrics))
    ks = options.ks or _default_ks(outcomes, options)
    words = [f"pass^{k}" for k in dict.fromkeys((1, *ks))]
    words += [f"pass@{k}" for k in ks]
    words += [f"delta^{k}" for k in ks if k > 1]
    words += [str(metric(word)) for word in options.metrics]
    return list(dict.fromkeys(words))


def _default_ks(outcomes: Outcomes, options: ReportOptions) -> tuple[int, ...]:
    ks = default_ks(outcomes, options.terms.missing)
    if not ks and not options.terms.drop_short:
        empty = [outcomes.tasks[i] for i in np.flatnonzero(outcomes.n == 0)[:3].tolist()]
        raise InvalidValue(
            f"some tasks have no attempt with a verdict ({', '.join(empty)}), so under the policy "
            "'exclude' nothing can be said of them.",
            hint="Leave them out with --drop-short, or use --missing bound.",
        )
    return ks or (1,)


def _curve(outcomes: Outcomes, words: list[str], options: ReportOptions) -> tuple[CurvePoint, ...]:
    """pass^k and pass@k at every k the report speaks about, for drawing; more where cheap."""
    asked = {metric(word).k for word in words if metric(word).name.startswith("pass")}
    n, _ = outcomes.counts(options.terms.missing.completion)
    top = min(max(asked, default=0), int(n.min()))
    if top < 2:
        return ()
    ks = sorted(set(np.unique(np.linspace(1, top, min(top, _CURVE_POINTS)).round().astype(int))))
    found = estimate_all(
        outcomes,
        [f"pass{sign}{k}" for k in ks for sign in "^@"],
        missing=options.terms.missing,
        level=None,
    )
    return tuple(
        CurvePoint(int(k), found[2 * i].value, found[2 * i + 1].value) for i, k in enumerate(ks)
    )


def _missing_effects(outcomes: Outcomes, words: list[str]) -> dict[str, dict[str, float | None]]:
    """The effect on the first metric and on the pass^k with the largest k."""
    if outcomes.total_missing == 0:
        return {}
    reliable = [word for word in words if word.startswith("pass^")]
    return {
        word: missing_effect(outcomes, word) for word in dict.fromkeys([words[0], *reliable[-1:]])
    }


def _task_rows(outcomes: Outcomes) -> tuple[TaskRow, ...]:
    """Every task, the most unsettled first.

    Unsettled is the variance of the success rate under Jeffreys' prior: highest for few attempts
    and for a rate near one half.
    """
    n, c, missing = outcomes.n, outcomes.c, outcomes.missing
    a, b = c + 0.5, n - c + 0.5
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    return tuple(
        TaskRow(
            outcomes.tasks[i],
            int(n[i]),
            int(c[i]),
            int(missing[i]),
            _dots(outcomes, i),
            float(variance[i]),
        )
        for i in np.argsort(-variance, kind="stable").tolist()
    )


def _dots(outcomes: Outcomes, index: int) -> str:
    """The attempts of a task in order, or passes first where the order is unknown."""
    if outcomes.order is not None:
        return "".join(_DOTS[verdict] for verdict in outcomes.order.of(index))
    n, c = int(outcomes.n[index]), int(outcomes.c[index])
    return (
        _DOTS[Verdict.PASSED] * c
        + _DOTS[Verdict.FAILED] * (n - c)
        + _DOTS[Verdict.MISSING] * int(outcomes.missing[index])
    )


def _slice_notes(count: int, label: str | None) -> tuple[str, ...]:
    if count < 2:
        return ()
    return (
        f"{count} slices of {label!r} were looked at: the best of them looks good by chance alone",
    )
