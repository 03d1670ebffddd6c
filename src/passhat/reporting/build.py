"""From runs to the view model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from passhat._display import counted, number, percent, some
from passhat.errors import InvalidValue
from passhat.judging import is_code_judge
from passhat.reporting.documents.judge import correct_run
from passhat.reporting.documents.report import SECTIONS
from passhat.reporting.measures import summarize_scores
from passhat.reporting.view import (
    CurvePoint,
    Report,
    RunReport,
    TaskRow,
    doubt_notes,
    rate_variance,
    task_marks,
)
from passhat.stats.estimate import (
    Estimate,
    default_ks,
    diagnose,
    estimate,
    estimate_all,
    metric,
    missing_effect,
)
from passhat.stats.estimate.metrics import (
    BestOf,
    CountMetric,
    Delta,
    Mean,
    Metric,
    PassAt,
    PassHat,
    WorstOf,
)
from passhat.stats.outcomes import Completion, Outcomes, Run, Verdict
from passhat.stats.outcomes.attempts import Attempts
from passhat.stats.terms import Population, Terms

if TYPE_CHECKING:
    from passhat.reporting.details import Details


_USUAL_STORE = ".passhat/passhat.db"


def weak_tests(run: Run) -> dict[str, float]:
    """Tasks whose hidden tests notice too few mutants, with the share that they notice."""
    fingerprint = run.protocol.tests_fingerprint
    if not _is_code(run) or not fingerprint or "/" in fingerprint:
        return {}
    from passhat.suites.code_mutants import load_strengths, strengths_folder

    for store in (run.source, _USUAL_STORE):
        folder = strengths_folder(store)
        strengths = load_strengths(folder, fingerprint) if Path(folder).is_dir() else {}
        if strengths:
            tasks = set(run.outcomes.tasks)
            return {
                task: strength.share
                for task, strength in strengths.items()
                if strength.weak and strength.share is not None and task in tasks
            }
    return {}


def code_notes(run: Run, weak: Mapping[str, float]) -> tuple[str, ...]:
    """Sentences on identical programs and on weak tests."""
    if not _is_code(run):
        return ()
    from passhat.suites.code_mutants import WEAK_BELOW

    notes: list[str] = []
    if run.attempts is not None and run.attempts.answers is not None:
        notes += diversity_notes(_rows(run.attempts))
    if weak:
        weak_text = some([f"{task} ({percent(share, 0)})" for task, share in weak.items()], 6)
        notes.append(
            f"weak tests on {len(weak):,} of {counted(len(run.outcomes), 'task')}: they notice "
            f"under {WEAK_BELOW:.0%} of broken canonical solutions, so passing means less there: "
            f"{weak_text}"
        )
    return tuple(notes)


def _is_code(run: Run) -> bool:
    return is_code_judge(run.protocol.judge)


def _rows(attempts: Attempts) -> Iterator[dict[str, object]]:
    """Attempts with a recorded program, as input for the diversity notes."""
    assert attempts.answers is not None
    verdicts, answers = attempts.verdicts.tolist(), attempts.answers.tolist()
    starts = attempts.starts.tolist()
    for task, start, stop in zip(attempts.tasks, starts[:-1], starts[1:], strict=True):
        for row in range(start, stop):
            if answers[row]:
                missing = verdicts[row] == Verdict.MISSING
                success = None if missing else verdicts[row]
                yield {"task": task, "answer": answers[row], "success": success}


def diversity_notes(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Sentences on identical programs per task, and pass@k over the distinct programs.

    Programs are alike when they differ in layout, comments and local names only. A distinct
    program passed when any of its copies did.
    """
    programs: dict[str, dict[str, bool]] = {}
    attempts = 0
    for row in rows:
        if row["success"] is None:
            continue
        attempts += 1
        passes_by_program = programs.setdefault(str(row["task"]), {})
        name = str(row["answer"])
        passes_by_program[name] = passes_by_program.get(name, False) or bool(row["success"])
    distinct = sum(map(len, programs.values()))
    if attempts <= len(programs):
        return ()
    numbers = f"{counted(attempts, 'attempt')}, {counted(distinct, 'distinct program')}"
    if distinct == attempts:
        return (f"{numbers}: no two attempts at a task are the same program",)
    return (f"{numbers}; {_over_distinct(programs)}", *_duplicates_note(programs, attempts))


def _over_distinct(programs: Mapping[str, Mapping[str, bool]]) -> str:
    n = [len(distinct) for distinct in programs.values()]
    c = [sum(distinct.values()) for distinct in programs.values()]
    k = min(n)
    result = estimate(Outcomes.from_counts(n, c, list(programs)), PassAt(k), level=None)
    return f"over distinct programs pass@{k} is {number(result.value)}"


def _duplicates_note(programs: Mapping[str, Mapping[str, bool]], attempts: int) -> tuple[str, ...]:
    alone = sum(len(distinct) == 1 for distinct in programs.values())
    if alone == 0 or attempts < 2 * len(programs):
        return ()
    return (
        f"on {counted(alone, 'task')} of {len(programs):,} all attempts are one program: further "
        "attempts there bought nothing",
    )


_CURVE_POINTS = 32
_DOTS = {Verdict.PASSED: "●", Verdict.FAILED: "○", Verdict.MISSING: "·"}


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a report.

    Without ``ks`` and ``metrics`` the recommended set is reported: pass^k, pass@k and delta^k at
    1, 2, 4, 8 ... up to the smallest n. ``metrics`` alone replaces that set; with ``ks`` they are
    added to it. ``with_details`` adds what charts show: curves with intervals, forecasts, measures;
    ``with_forecasts=False`` leaves out the forecasts, which take longer than all the rest.
    ``short`` leaves out the intervals that one screen does not show, those about these tasks: with
    thousands of attempts per task they take a second for each metric. ``corrected`` is how labels
    correct the numbers: ``whole tasks`` or ``errors``.
    """

    ks: tuple[int, ...] = ()
    metrics: tuple[str, ...] = ()
    terms: Terms = field(default_factory=Terms)
    by: str | None = None
    with_tasks: bool = False
    with_details: bool = False
    with_forecasts: bool = True
    short: bool = False
    corrected: str | None = None


def build_report(runs: Iterable[Run], options: ReportOptions | None = None) -> Report:
    """Compute everything that any form of the report shows."""
    options = options or ReportOptions()
    return Report(tuple(_run_report(run, options) for run in runs))


def _allocation_notes(run: Run) -> Iterator[str]:
    """Notes on attempts allocated by task: their source, and their gain over equal numbers.

    Told with the rates of this run: if the agent changed since the earlier run, that is seen here.
    """
    if run.planned is None or int(run.outcomes.n.max()) < 2:
        return
    from passhat.stats.plan import Allocator

    yield f"attempts per task were planned: {run.protocol.allocation}"
    goal = metric(run.planned_for or "pass^1")
    attempts, _ = run.outcomes.counts(Completion.AS_FAILED)
    if not isinstance(goal, CountMetric) or int(attempts.min()) < max(goal.k, 2):
        return
    allocator = Allocator(run.outcomes, goal)
    even = allocator.uniform(int(attempts.sum()))
    error, other = allocator.noise(attempts), allocator.noise(even)
    mean_attempts = f"{int(attempts.sum()) / len(attempts):.3g}"
    yield (
        f"with the rates of this run, the standard error of {goal} on these tasks is {error:.4f}; "
        f"{mean_attempts} attempts at each task would have given {other:.4f}"
        + (": the rates moved since the plan was made" if error > other else "")
    )


def _run_report(run: Run, options: ReportOptions) -> RunReport:
    words = _metrics(run.outcomes, options)
    equal_answers = None if run.aggregates is None else run.aggregates.alike
    diagnosis = diagnose(run.outcomes, run.attempts, equal_answers, planned=run.planned)
    slices = {} if options.by is None else dict(run.outcomes.by(options.by))
    weak = weak_tests(run)
    curve = _curve(run.outcomes, words, options)
    ks = [point.k for point in curve]
    main = _main_estimates(run.outcomes, words, ks, options)
    return RunReport(
        run=run,
        protocol=replace(run.protocol, missing=options.terms.missing),
        estimates=(
            *(main[word] for word in words),
            *_about_these_tasks(run.outcomes, words, options),
        ),
        slices={
            value: tuple(
                estimate
                for about in _populations(part)
                for estimate in estimate_all(
                    part, _metrics(part, options), options.terms, about=about
                )
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
            *_allocation_notes(run),
            *run.notes,
            *diagnosis.notes,
            *_slice_notes(len(slices), options.by),
            *code_notes(run, weak),
        ),
        weak_tests=weak,
        details=_details(run, words, ks, main, options) if options.with_details else None,
        sections=_section_facts(run, words, options),
        requested=tuple(map(metric, options.metrics)),
    )


def _section_facts(run: Run, words: list[str], options: ReportOptions) -> dict[str, object]:
    """The facts of sections that have some; corrected numbers where they were asked for."""
    facts = {section.name: section.facts(run) for section in SECTIONS if section.facts is not None}
    facts["scores"] = summarize_scores(run, options.terms)
    if options.corrected is not None:
        facts["corrected"] = correct_run(
            run, words, options.terms, options.corrected, short=options.short
        )
    return {name: fact for name, fact in facts.items() if fact is not None}


def _populations(outcomes: Outcomes) -> tuple[Population, ...]:
    """The populations of estimates, that of the screen first; a single task has only its own."""
    return tuple(dict.fromkeys((Terms().for_tasks(len(outcomes)).about(), Population.THESE_TASKS)))


def _main_estimates(
    outcomes: Outcomes, words: list[str], ks: list[int], options: ReportOptions
) -> dict[str, Estimate]:
    """Estimates for the table and the charts in a single pass: most are the same."""
    curve_metrics: list[str] = []
    if options.with_details:
        from passhat.reporting.details import curve_words

        curve_metrics = curve_words(ks)
    metrics = list(dict.fromkeys([*words, *curve_metrics]))
    estimates = estimate_all(outcomes, metrics, options.terms, about=_populations(outcomes)[0])
    return dict(zip(metrics, estimates, strict=True))


def _about_these_tasks(
    outcomes: Outcomes, words: list[str], options: ReportOptions
) -> tuple[Estimate, ...]:
    """Every metric about these tasks; none in a short report, or where they are the main ones."""
    if options.short or len(_populations(outcomes)) == 1:
        return ()
    return estimate_all(outcomes, words, options.terms, about=Population.THESE_TASKS)


def _details(
    run: Run, words: list[str], ks: list[int], known: dict[str, Estimate], options: ReportOptions
) -> Details:
    from passhat.reporting.details import build_details

    # A forecast is about users who bring new tasks, of which a single one says nothing.
    with_forecasts = options.with_forecasts and len(run.outcomes) > 1
    return build_details(run, words, ks, known, options.terms, with_forecasts=with_forecasts)


def _metrics(outcomes: Outcomes, options: ReportOptions) -> list[str]:
    """The metrics to report, each once, in reading order."""
    if options.metrics and not options.ks:
        return list(dict.fromkeys(str(metric(word)) for word in options.metrics))
    ks = options.ks or _default_ks(outcomes, options)
    metrics: list[Metric] = [PassHat(k) for k in dict.fromkeys((1, *ks))]
    metrics += [PassAt(k) for k in ks]
    if not options.short or options.corrected is not None:  # the short table has none
        metrics += [Delta(k) for k in ks if k > 1]
    if outcomes.scores is not None:
        # At one k besides the mean: about these tasks each takes a solution per level of the score.
        metrics += [Mean(), *(kind(max(ks)) for kind in (WorstOf, BestOf) if max(ks) > 1)]
    metrics += [metric(word) for word in options.metrics]
    return list(dict.fromkeys(map(str, metrics)))


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
    """pass^k and pass@k at every k of the report, for drawing; at more k where cheap."""
    requested_ks = {each.k for each in map(metric, words) if isinstance(each, PassAt | PassHat)}
    n, _ = outcomes.counts(options.terms.missing.completion)
    top = min(max(requested_ks, default=0), int(n.min()))
    if top < 2:
        return ()
    ks = sorted(set(np.linspace(1, top, min(top, _CURVE_POINTS)).round().astype(int).tolist()))
    metrics = [kind(k) for kind in (PassHat, PassAt) for k in ks]
    estimates = estimate_all(outcomes, metrics, missing=options.terms.missing, level=None)
    values = [estimate.value for estimate in estimates]
    return tuple(map(CurvePoint, ks, values, values[len(ks) :]))


def _missing_effects(outcomes: Outcomes, words: list[str]) -> dict[str, dict[str, float | None]]:
    """The effect on the first metric and on the pass^k with the largest k."""
    if outcomes.total_missing == 0:
        return {}
    reliable = [word for word in words if isinstance(metric(word), PassHat)]
    return {
        word: missing_effect(outcomes, word) for word in dict.fromkeys([words[0], *reliable[-1:]])
    }


def _task_rows(outcomes: Outcomes) -> tuple[TaskRow, ...]:
    """Every task, the most unsettled first."""
    variance = rate_variance(outcomes)
    n, c, m = (each.tolist() for each in (outcomes.n, outcomes.c, outcomes.missing))
    tasks = outcomes.tasks
    return tuple(
        TaskRow(tasks[i], n[i], c[i], m[i], task_marks(outcomes, i, _DOTS), float(variance[i]))
        for i in np.argsort(-variance, kind="stable").tolist()
    )


def _slice_notes(count: int, label: str | None) -> list[str]:
    note = "slices of {!r} were looked at: the best of them looks good by chance alone"
    return [f"{count} {note.format(label)}"] if count > 1 else []
