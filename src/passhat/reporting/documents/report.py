"""The report on one run or several.

A part of the report is a :class:`ReportSection`: its facts, which JSON writes, and its blocks.
``SECTIONS`` lists them in reading order.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from passhat._display import counted, percent
from passhat.protocol import Question
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Figure,
    Heading,
    Level,
    Listing,
    NextStep,
    Note,
    OptionsNote,
    Properties,
    Section,
    Sentence,
    Table,
    first_warning,
    upper_first,
)
from passhat.reporting.documents.causes import (
    failure_lines,
    failure_table,
    label_failures,
    no_answer_lines,
)
from passhat.reporting.documents.judge import (
    anchor_blocks,
    anchor_facts,
    corrected_blocks,
    corrected_headline,
    judge_blocks,
    judge_facts,
    noise_blocks,
    noise_facts,
)
from passhat.reporting.documents.next_steps import (
    full_report_note,
    is_read_once,
    join_words,
    next_step,
)
from passhat.reporting.measures import ScoreFacts
from passhat.reporting.source_checks import check_source
from passhat.reporting.view import (
    Report,
    RunReport,
    doubt_notes,
    estimate_text,
    estimates_over_k,
    populations_text,
    run_labels,
    run_warnings,
    short_labels,
)
from passhat.stats.estimate import Estimate, metric
from passhat.stats.estimate.metrics import Delta, Mean, Metric, PassAt, PassHat
from passhat.stats.outcomes import Completion, Run, summarize_failures
from passhat.stats.terms import Population

_MOST_ROWS = 4
_MOST_RUNS = 6
_MOST_TASKS = 200
_QUESTIONS = {
    Population.NEW_TASKS: "On tasks like these: {level}interval for new tasks",
    Population.THESE_TASKS: "On exactly these tasks again: {level}interval for these tasks",
}
_POPULATION_WORDS = {
    Population.NEW_TASKS: "new tasks like these",
    Population.THESE_TASKS: "fresh attempts at this task",
}
_MOST_FURTHER = 8
_MOST_DECISIONS = 3
"""Decisions of the reader on the short screen."""
_POLICY_WORDS = {
    "bound": "both extremes (bound)",
    "fail": "as failed (fail)",
    "exclude": "left out (exclude)",
}


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the report on a run.

    ``facts`` is computed once with the report and written to its JSON below ``sections``; blocks
    find it in ``run.sections[name]``. A section without facts of its own shows those of the report.
    """

    name: str
    blocks: Callable[[RunReport], Iterable[Block]]
    facts: Callable[[Run], object] | None = None


def runs_on_screen(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs that fit a short report: of a store, the newest."""
    if any(run.source != runs[0].source or run.started == "" for run in runs):
        return runs[:_MOST_RUNS]
    return runs[-_MOST_RUNS:]


def report_document(report: Report, left_out: int = 0) -> Document:
    """Build the document of a report; ``left_out`` is the number of runs it does not have."""
    runs = report.runs
    if len(runs) == 1 and not left_out:
        (run,) = runs
        step = next_step(run)
        steps = [NextStep(step, level=Level.SHORT)] if step else []
        trailer: tuple[Block, ...] = (*steps, full_report_note(run))
        sections = (*_run_sections(run), Section("more", trailer))
        return Document(run.run.agent or run.name, sections)
    labels = run_labels([run.run for run in runs])
    title = counted(len(runs) + left_out, "run")
    overview = Section("overview", tuple(_overview(runs, title, left_out)))
    parts = [
        Section(section.name, tuple(_full_only(section.blocks)), label)
        for label, run in zip(labels, runs, strict=True)
        for section in _run_sections(run)
    ]
    return Document(title, (overview, *parts))


def run_document(report: RunReport, failure: str, store: str = "") -> Document:
    """Build the end of ``passhat run``: the report, and how to look at a failure.

    ``failure`` names a failed attempt as ``passhat show`` does, RUN TASK#NUMBER; empty for none.
    ``store`` is the place of the attempts, where commands would not look by themselves.
    """
    option, source = (
        (f" --store {shlex.quote(store)}", f" {shlex.quote(store)}") if store else ("", "")
    )
    sections = [section for section in _run_sections(report, most=3) if section.name != "heading"]
    last: list[Block] = []
    if failure:
        command = f"passhat show {failure}{option}"
        last.append(Sentence("Read a failure: ", ending=command, level=Level.SHORT))
    more = f"More: --full, passhat report{source}, passhat view{option}"
    last.append(OptionsNote(more, level=Level.SHORT))
    return Document(report.name, (*sections, Section("more", tuple(last))))


def _run_sections(run: RunReport, most: int = _MOST_ROWS) -> Iterator[Section]:
    for section in SECTIONS:
        yield Section(section.name, tuple(section.blocks(run)))
        if section.name == "headline":
            yield Section("screen", tuple(_screen_estimates(run, most)))


def _full_only(blocks: Iterable[Block]) -> Iterator[Block]:
    yield from (replace(block, level=Level.FULL) for block in blocks if Level.FULL in block.level)


# -- sections, in reading order ------------------------------------------------------------------


def _heading(run: RunReport) -> Iterator[Block]:
    yield Heading(f"{run.name}: {run.run.outcomes}", level=Level.SHORT)
    yield Heading(run.name, run.run.source, level=Level.FULL)
    yield Sentence(str(run.run.outcomes), level=Level.FULL)


def _headline(run: RunReport) -> Iterator[Block]:
    yield from first_warning(run.warnings)
    corrected = corrected_headline(run)
    if corrected:
        yield Sentence(f"Corrected by labels: {corrected}", "lead")
        yield Sentence(f"By the judge alone: {run.headline}")
    else:
        yield Sentence(run.headline, "lead")
    for note in doubt_notes(run.run):
        yield Sentence(f"{upper_first(note)}.", level=Level.SHORT)


def _question(run: RunReport) -> Iterator[Block]:
    """The question that was recorded before the run; nothing where none was."""
    if run.protocol.question != Question():
        yield Sentence(f"Asked before the run: {run.protocol.question}")


def _decisions(run: RunReport) -> Iterator[Block]:
    """Choices of the reader that change the numbers: a few on the short screen, all in full."""
    yield from _decision_lines(_reading_lines(run.run))
    if run.run.decisions:
        yield Facts(tuple(("Decided", line) for line in run.run.decisions), level=Level.FULL)


def _reading_lines(run: Run) -> list[str]:
    """Pass rates that the source states otherwise, and the decisions of the reader."""
    checks = [check for check in check_source(run) if check.metric != "stderr"]
    others = [check for check in checks if not check.agrees and check.computed is not None]
    return [*(f"the source says {check}" for check in others), *run.decisions]


def _decision_lines(decisions: Sequence[str]) -> Iterator[Block]:
    for line in decisions[:_MOST_DECISIONS]:
        yield Sentence(f"Read: {line}", level=Level.SHORT)
    hidden = len(decisions) - _MOST_DECISIONS
    if hidden > 0:
        yield Sentence(f"and {hidden:,} more decisions: passhat read", level=Level.SHORT)


def _label_decisions(labels: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The decisions of all runs: once where all share it, else with the run it is about."""
    lines_of = list(map(_reading_lines, runs))
    every = dict.fromkeys(line for lines in lines_of for line in lines)
    shared = [line for line in every if all(line in lines for lines in lines_of)]
    return shared + [
        f"{label}: {line}"
        for label, lines in zip(labels, lines_of, strict=True)
        for line in lines
        if line not in shared
    ]


def _screen_estimates(run: RunReport, most: int) -> Iterator[Block]:
    """pass^k and pass@k over k, or the requested metrics, in a few rows.

    The table of corrected numbers has the judge's beside them.
    """
    if run.nothing_answered or "corrected" in run.sections:
        return
    estimates = run.main_estimates
    hats, ats, _ = estimates_over_k(estimates)
    ks = [k for k in hats if k in ats]
    in_table: set[Metric] = set()
    if len(ks) > 1 or (ks and len(estimates) == 2):
        named = {word.k for word in run.requested if isinstance(word, PassHat | PassAt)}
        ks_shown = [k for k in ks if k in named or k in _thin(ks, most)]
        rows = tuple((str(k), estimate_text(hats[k]), estimate_text(ats[k])) for k in ks_shown)
        header = ("k", "all k pass (pass^k)", "any of k (pass@k)")
        yield Table(header, rows, left=(), level=Level.SHORT)
        in_table = {entry[k].metric for k in ks_shown for entry in (hats, ats)}
    # Of metrics over k that were not asked for, those of the table are enough.
    over_k = (PassHat, PassAt, Delta) if in_table else ()
    others = [
        (str(each.metric), estimate_text(each))
        for each in estimates
        if each.metric not in in_table
        and (each.metric in run.requested or type(each.metric) not in over_k)
    ]
    if others:
        yield Table(("metric", "value"), tuple(others), level=Level.SHORT)
    yield from _level_note(estimates)


def _level_note(estimates: Sequence[Estimate]) -> Iterator[Note]:
    level = next((estimate.level for estimate in estimates if estimate.level is not None), None)
    if level is not None:
        abouts = dict.fromkeys(_POPULATION_WORDS[each.population] for each in estimates)
        yield Note(f"{100 * level:g}% intervals for {' or '.join(abouts)}.", level=Level.SHORT)


def _estimates(run: RunReport) -> Iterator[Block]:
    """The estimates about new tasks, then those about these tasks, each under its own name."""
    level = run.level
    for population, question in _QUESTIONS.items():
        caption = question.format(level="" if level is None else f"{100 * level:g}% ")
        estimates = [estimate for estimate in run.estimates if estimate.population is population]
        yield from _estimate_tables(estimates, caption)
    if any(estimate.value_range is not None for estimate in run.estimates):
        yield Note(
            "Where a value is a range, it goes over all ways to fill in missing attempts, from all "
            "failed to all passed; so does the interval.",
            level=Level.FULL,
        )


def _estimate_tables(estimates: Sequence[Estimate], caption: str) -> Iterator[Table]:
    """pass^k, pass@k and delta^k side by side over k; other metrics below."""
    hats, ats, deltas = estimates_over_k(estimates)
    ks = [k for k in hats if k in ats]
    if ks:
        rows = []
        for k in ks:
            delta = deltas.get(k)
            row = [str(k), estimate_text(hats[k]), estimate_text(ats[k])]
            if deltas:
                bound = None if delta is None or delta.bounds is None else delta.bounds[1]
                row += ["–" if delta is None else estimate_text(delta), percent(bound, 1)]
            rows.append(tuple(row))
        header = ("k", "pass^k", "pass@k", "delta^k", "limit")[: len(rows[0])]
        yield Table(header, tuple(rows), caption, left=(), level=Level.FULL)
    in_pairs = {id(estimate) for k in ks for estimate in (hats[k], ats[k], deltas.get(k))}
    others = [estimate for estimate in estimates if id(estimate) not in in_pairs]
    if others:
        rows = [
            (str(e.metric), estimate_text(e), f"{e.tasks:,}", f"{e.attempts:,}") for e in others
        ]
        header = ("metric", "value", "tasks", "attempts")
        caption = f"{caption}, other metrics" if ks else caption
        yield Table(header, tuple(rows), caption, level=Level.FULL)


def _further_attempts(run: RunReport) -> Iterator[Block]:
    """How many tasks each further attempt solves, on average over the order of attempts."""
    outcomes = run.run.outcomes
    most = min(int(outcomes.n.min()), _MOST_FURTHER) if len(outcomes) else 0
    if most < 2:
        return
    solved = [float(PassAt(k).values(outcomes.n, outcomes.c).sum()) for k in range(1, most + 1)]
    gains = [after - before for before, after in pairwise(solved)]
    more = ", ".join(f"{gain:.1f}" for gain in gains)
    text = f"the first solves {solved[0]:.1f} of {counted(len(outcomes), 'task')}, "
    yield Facts((("Attempts", f"{text}each further one adds {more}"),), level=Level.FULL)


def _curve(run: RunReport) -> Iterator[Block]:
    if len(run.curve) > 1:
        points = tuple((point.k, point.pass_hat, point.pass_at) for point in run.curve)
        yield Figure("Capability and reliability over k", points, level=Level.FULL)


def _scores(run: RunReport) -> Iterator[Block]:
    """The worst and best of k by score, and how far the verdict depends on its threshold."""
    facts = run.sections.get("scores")
    if not isinstance(facts, ScoreFacts):
        return
    yield Sentence(f"{upper_first(facts.sensitivity)}.", level=Level.SHORT)
    if facts.worst:
        rows = tuple(
            (str(worst.metric.k), estimate_text(worst), estimate_text(best))
            for worst, best in zip(facts.worst, facts.best, strict=True)
        )
        about = facts.worst[0].population
        caption = f"Scores: worst and best of k attempts, interval for {about}"
        yield Table(("k", "worst@k", "best@k"), rows, caption, left=(), level=Level.FULL)
    if len(facts.cuts) < 2:
        return
    rows = tuple(
        (f"{cut.threshold:g}", percent(cut.pass_one, 1), percent(cut.pass_all, 1))
        for cut in facts.cuts
    )
    judged = ("as judged", percent(facts.judged.pass_one, 1), percent(facts.judged.pass_all, 1))
    caption = "; ".join(filter(None, ["The verdict over its threshold", facts.missing_text]))
    header = ("passes from", "pass^1", f"pass^{facts.k}")
    yield Table(header, (*rows, judged), caption, left=(), level=Level.FULL)


def _slices(run: RunReport) -> Iterator[Block]:
    for value, estimates in run.slices.items():
        about = estimates[0].population
        main = [estimate for estimate in estimates if estimate.population is about]
        yield from _estimate_tables(main, f"{run.slice_label} = {value}, interval for {about}")


def _missing(run: RunReport) -> Iterator[Block]:
    if run.run.outcomes.total_missing:
        yield Sentence(f"Missing: {run.missing_text}", level=Level.SHORT)
    # The table of policies says the same with intervals.
    effects = run.missing_effect_lines if run.details is None else ()
    lines = (run.missing_text, *effects)
    yield Facts(tuple(("Missing", line) for line in lines), level=Level.FULL)


def _policies(run: RunReport) -> Iterator[Block]:
    """The headline numbers under each way to treat missing attempts."""
    policies = run.details.policies if run.details is not None else {}
    rows = tuple(
        (word, *(_under(ways.get(policy)) for policy in _POLICY_WORDS))
        for word, ways in policies.items()
    )
    if rows:
        header = ("metric", *_POLICY_WORDS.values())
        yield Table(header, rows, "Missing attempts under each policy", level=Level.FULL)


def _under(estimate: Estimate | None) -> str:
    return (
        "not computed: too few attempts are left" if estimate is None else estimate_text(estimate)
    )


def _failures(run: RunReport) -> Iterator[Block]:
    """Failures by cause: exceptions, refusals, cut and wrong answers apart."""
    if not run.nothing_answered:  # or the headline is the same sentence
        yield from failure_lines(run.failures)
    yield from failure_table(run.failures)


def _worst_tasks(run: RunReport) -> Iterator[Block]:
    """The tasks with the lowest pass rate; flaky tasks come before those that never pass.

    A task that never passes is a gap in ability, one that sometimes fails is unreliable; a report
    about reliability names both.
    """
    outcomes = run.run.outcomes
    rows = list(zip(outcomes.tasks, outcomes.n.tolist(), outcomes.c.tolist(), strict=True))
    flaky = sorted((c / n, task, c, n) for task, n, c in rows if 0 < c < n)
    if flaky:
        tasks = tuple(f"{task} {c} of {n}" for _, task, c, n in flaky)
        yield Listing("Flaky tasks:", tasks, level=Level.SHORT)
    if never := tuple(task for task, n, c in rows if n and not c):
        yield Listing("Never passed:", never, level=Level.SHORT)


def _tasks(run: RunReport) -> Iterator[Block]:
    if run.tasks:
        rows = tuple(
            (run.mark_task(row.task), row.dots, f"{row.c} of {row.n}", str(row.missing or ""))
            for row in run.tasks
        )
        header = ("task", "attempts", "passed", "missing")
        limits = (_MOST_TASKS, "; --json lists all of them")
        caption = "Tasks, the most unsettled first"
        yield Table(header, rows, caption, (0, 1), *limits, level=Level.FULL)


def _plan(run: RunReport) -> Iterator[Block]:
    """Tasks and attempts that would give the most demanding metric within five points."""
    plan = run.details.plan if run.details is not None else None
    if plan is None:
        return
    reach_text = ""
    if plan.pilot_reaches is not None:
        reach_text = f" A run of this size gives {100 * plan.pilot_reaches:.1f} points either way."
    text = f"{plan.sentence}{reach_text} {upper_first(plan.attempts_text)}."
    yield NextStep(text, level=Level.FULL)


def _notes(run: RunReport) -> Iterator[Block]:
    entries = [("Source says", str(check)) for check in run.source_checks]
    remarks = [note for estimate in run.estimates for note in estimate.notes]
    entries += [("Notes", note) for note in dict.fromkeys([*run.notes, *remarks])]
    entries += [("Lost", str(loss)) for loss in run.run.losses]
    entries += [("Read as", line) for line in run.run.reading]
    if entries:
        yield Facts(tuple(entries), level=Level.FULL)


def _method(run: RunReport) -> Iterator[Block]:
    methods = tuple(("Method", f"{what}: {how}") for what, how in run.methods)
    yield Facts(methods, level=Level.FULL)
    yield Properties("Protocol", tuple(run.protocol_lines), level=Level.FULL)


SECTIONS: list[ReportSection] = [
    ReportSection("heading", _heading),
    ReportSection("headline", _headline),
    ReportSection("question", _question),
    ReportSection("decisions", _decisions),
    ReportSection("corrected", corrected_blocks),
    ReportSection("estimates", _estimates),
    ReportSection("further attempts", _further_attempts),
    ReportSection("curve", _curve),
    ReportSection("scores", _scores),
    ReportSection("slices", _slices),
    ReportSection("tasks", _tasks),
    ReportSection("missing", _missing),
    ReportSection("policies", _policies),
    ReportSection("failures", _failures, summarize_failures),
    ReportSection("worst tasks", _worst_tasks),
    ReportSection("judge", judge_blocks, judge_facts),
    ReportSection("anchors", anchor_blocks, anchor_facts),
    ReportSection("noise", noise_blocks, noise_facts),
    ReportSection("plan", _plan),
    ReportSection("notes", _notes),
    ReportSection("method", _method),
]
"""Parts of the report on a run, in reading order."""


# -- several runs, and the last lines of one screen ----------------------------------------------


def _overview(runs: Sequence[RunReport], title: str, left_out: int) -> Iterator[Block]:
    sizes = sorted({len(run.run.outcomes) for run in runs})
    many = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    yield Heading(title, f"{many} {'task' if sizes[-1] == 1 else 'tasks'} each")
    plain_runs = [run.run for run in runs]
    visible = runs[:_MOST_RUNS]
    yield from no_answer_lines(run_labels(plain_runs), plain_runs)
    metrics = _shared_metrics(runs)
    rows = _overview_rows(visible, short_labels(plain_runs[:_MOST_RUNS]), metrics)
    yield Table(("run", "tasks", "missing", *metrics), rows, level=Level.SHORT)
    left_out += len(runs) - len(visible)
    if left_out:
        newest = "the newest are shown; " if runs[0].run.started else ""
        yield Sentence(
            f"and {left_out:,} more: {newest}--full has all of them, and takes its time",
            level=Level.SHORT,
        )
    metrics = list(dict.fromkeys([*metrics, *_last(PassAt, runs)]))
    rows = _overview_rows(runs, run_labels(plain_runs), metrics)
    about = populations_text(each for run in runs for each in run.main_estimates)
    caption = f"Every run, with intervals for {about}"
    header = ("run", "tasks", "missing", *metrics)
    yield Table(header, rows, caption, level=Level.FULL)
    on_screen = short_labels(plain_runs[:_MOST_RUNS]), plain_runs[:_MOST_RUNS]
    yield from _decision_lines(_label_decisions(*on_screen))
    warnings = label_warnings(*on_screen)
    yield from (block for block in first_warning(warnings) if block.level is Level.SHORT)
    yield from (block for block in label_failures(*on_screen) if block.level is Level.SHORT)
    answered_runs = [run for run in runs if run.run.outcomes.scored and not run.nothing_answered]
    yield from _level_note([each for run in answered_runs for each in run.main_estimates])
    if all(int(run.outcomes.counts(Completion.AS_FAILED)[0].max()) <= 1 for run in plain_runs):
        yield Sentence("One attempt per task cannot show whether the same task passes again.")
    if sizes[0] == 1:
        yield Sentence("One task says nothing about other tasks.")
    words = join_words(plain_runs)
    if not any(run.nothing_answered for run in runs) and not is_read_once(words):
        text = f"which differences are real: passhat compare {shlex.join(words)}"
        yield NextStep(text, level=Level.SHORT)
    yield OptionsNote("More: --full, --tasks, -o FILE.html, --json", level=Level.SHORT)


def _overview_rows(
    runs: Sequence[RunReport], labels: Sequence[str], chosen: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    rows = []
    for label, run in zip(labels, runs, strict=True):
        outcomes = run.run.outcomes
        estimates = [run.find(name) for name in chosen]
        cells = ["–" if estimate is None else estimate_text(estimate) for estimate in estimates]
        if run.nothing_answered:
            cells = ["no answer"] * len(cells)
        elif not outcomes.scored:
            cells = ["–"] * len(cells)
        rows.append((label, f"{len(outcomes):,}", f"{outcomes.total_missing:,}", *cells))
    return tuple(rows)


def _shared_metrics(runs: Sequence[RunReport]) -> list[str]:
    """The requested metrics; else pass^1, the largest k that all runs reach, and the mean score."""
    if runs[0].requested:
        return list(dict.fromkeys(map(str, runs[0].requested)))
    names, shared = _shared_names(runs)
    reliable = [name for name in shared if type(metric(name)) is PassHat]
    metrics = [*reliable[:1], *reliable[-1:]] or shared[:2] or names[:2]
    return list(dict.fromkeys([*metrics, *(name for name in shared if metric(name) == Mean())]))


def _shared_names(runs: Sequence[RunReport]) -> tuple[list[str], list[str]]:
    """The metrics of the first run, and those of them that all runs have."""
    names = list(dict.fromkeys(str(estimate.metric) for estimate in runs[0].estimates))
    return names, [name for name in names if all(run.find(name) for run in runs)]


def _last(family: type, runs: Sequence[RunReport]) -> list[str]:
    """The metric of a family with the largest k that all runs have."""
    return [name for name in _shared_names(runs)[1] if type(metric(name)) is family][-1:]


def label_warnings(labels: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The warnings of all runs, each with the run it is about."""
    return [
        f"{label}: {warning}"
        for label, run in zip(labels, runs, strict=True)
        for warning in run_warnings(run)
    ]


def _thin(values: Sequence[int], most: int) -> list[int]:
    """The first, the last, and some evenly between."""
    if len(values) <= most:
        return list(values)
    last = len(values) - 1
    return [values[round(i * last / (most - 1))] for i in range(most)]
