"""Reports, comparisons, gates and run summaries as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from passhat._display import counted, percent, percent_interval
from passhat.reporting import comparison_view as view
from passhat.reporting.run_summary import MARKS, AttemptLine, Summary, TaskSummary
from passhat.reporting.tables import captured, facts, plain, plain_table
from passhat.reporting.view import CurvePoint, Report, RunReport
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.estimate import Estimate
from passhat.stats.gate import GateResult, GateVerdict, RuleResult
from passhat.stats.outcomes import Verdict

__all__ = [
    "AT",
    "HAT",
    "draw_curve",
    "render_comparison",
    "render_gate",
    "render_report",
    "render_summary",
]

# Okabe and Ito's palette: distinguishable with any kind of color vision.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "grey50"
_MOST_TASKS_SHOWN = 200
_QUESTIONS = (
    ("new tasks", "On tasks like these: {level}interval for new tasks"),
    ("these tasks", "On exactly these tasks again: {level}interval for these tasks"),
)


def render_report(report: Report, console: Console) -> str:
    """Every run, with a table over all of them first when there are several."""
    return captured(console, lambda: _parts(report))


def _parts(report: Report) -> Iterator[RenderableType]:
    if len(report.runs) > 1:
        yield from _overview(report.runs)
    for run in report.runs:
        yield from _section(run)


def _overview(runs: Sequence[RunReport]) -> Iterator[RenderableType]:
    listed = dict.fromkeys(estimate.metric for estimate in runs[0].estimates)
    shared = [word for word in listed if all(run.find(word) for run in runs)]
    ends = [word for word in shared if not word.startswith("delta")]
    chosen = [*ends[:1], *_last(ends, "pass^"), *_last(ends, "pass@")] or shared[:3]
    chosen = list(dict.fromkeys(chosen))
    rows = []
    for run in runs:
        outcomes = run.run.outcomes
        estimates = [estimate for word in chosen if (estimate := run.find(word))]
        cells = [f"{_value(estimate)}\n{_interval(estimate)}" for estimate in estimates]
        rows.append([run.name, f"{len(outcomes):,}", f"{outcomes.total_missing:,}", *cells])
    yield Text(f"{len(runs)} runs", style="bold")
    yield plain_table(("run", "tasks", "missing", *chosen), rows)
    yield Text("")


def _last(words: Sequence[str], prefix: str) -> list[str]:
    return [word for word in words if word.startswith(prefix)][-1:]


def _section(run: RunReport) -> Iterator[RenderableType]:
    yield Text.assemble(plain(run.name, "bold"), "   ", plain(run.run.source, GREY))
    yield plain(str(run.run.outcomes))
    yield Text("")
    for warning in run.warnings:
        yield plain(f"Warning: {warning}.", "bold")
    yield plain(run.headline, "italic")
    yield Text("")
    yield from _both_questions(run.estimates)
    yield from _curve(run)
    for value, estimates in run.slices.items():
        yield plain(f"{run.slice_label} = {value}, interval for new tasks", "bold")
        yield from _estimate_tables(estimates)
    yield from _tasks(run)
    yield facts(_facts(run))
    yield Text("")


def _both_questions(estimates: Sequence[Estimate]) -> Iterator[RenderableType]:
    """The estimates about new tasks, then those about these tasks, each under its own name."""
    for about, title in _QUESTIONS:
        level = next((estimate.level for estimate in estimates if estimate.level is not None), None)
        yield Text(title.format(level="" if level is None else f"{100 * level:g}% "), style="bold")
        yield from _estimate_tables(estimates, about)
        yield Text("")
    if any(map(_moves, estimates)):
        yield Text(
            "* missing attempts count as failed; the interval reaches to both extremes", style=GREY
        )


def _estimate_tables(
    estimates: Sequence[Estimate], about: str = "new tasks"
) -> Iterator[RenderableType]:
    """pass^k, pass@k and delta^k side by side over k; other metrics below."""
    estimate_of = {estimate.metric: estimate for estimate in estimates if estimate.about == about}
    ks = [int(name[5:]) for name in estimate_of if name.startswith("pass^")]
    rows = [k for k in ks if f"pass@{k}" in estimate_of]
    if rows:
        yield _over_k(rows, estimate_of)
    side_by_side = {f"{word}{k}" for k in rows for word in ("pass^", "pass@", "delta^")}
    others = [estimate for name, estimate in estimate_of.items() if name not in side_by_side]
    if others:
        yield _one_by_one(others)


def _over_k(ks: Sequence[int], by_name: dict[str, Estimate]) -> RenderableType:
    rows = []
    for k in ks:
        row = [str(k), *(_with_interval(by_name[f"{word}{k}"]) for word in ("pass^", "pass@"))]
        delta = by_name.get(f"delta^{k}")
        if delta is not None and delta.bounds is not None:
            row += [_with_interval(delta), percent(delta.bounds[1], 1)]
        rows.append(row)
    header = ("k", "pass^k", "pass@k", "delta^k", "at most")
    return plain_table(header[: max(map(len, rows))], rows, left=())


def _one_by_one(estimates: Sequence[Estimate]) -> RenderableType:
    rows = [
        [
            estimate.metric,
            _value(estimate),
            _interval(estimate),
            f"{estimate.tasks:,}",
            f"{estimate.attempts:,}",
        ]
        for estimate in estimates
    ]
    return plain_table(("metric", "value", "interval", "tasks", "attempts"), rows)


def _value(estimate: Estimate) -> str:
    """The value, with a star where it would be another one had the missing attempts passed."""
    return percent(estimate.value, 1) + ("*" if _moves(estimate) else "")


def _moves(estimate: Estimate) -> bool:
    return estimate.value_if_passed not in (None, estimate.value)


def _with_interval(estimate: Estimate) -> str:
    return _value(estimate) if estimate.low is None else f"{_value(estimate)} {_interval(estimate)}"


def _interval(estimate: Estimate) -> str:
    return "" if estimate.low is None else f"({percent_interval(estimate.low, estimate.high)})"


def _curve(run: RunReport) -> Iterator[RenderableType]:
    if len(run.curve) < 2:
        return
    lines = Text("\n".join(draw_curve(run.curve)))
    lines.highlight_regex(HAT, BLUE)
    lines.highlight_regex(AT, ORANGE)
    legend = Text.assemble(
        (HAT, BLUE), " pass^k, all of k pass   ", (AT, ORANGE), " pass@k, any of k"
    )
    yield Padding(Group(lines, legend), (0, 0, 1, 1))


def _tasks(run: RunReport) -> Iterator[RenderableType]:
    if not run.tasks:
        return
    yield Text("Tasks, the most unsettled first", style="bold")
    yield plain_table(
        ("task", "attempts", "passed", "missing"),
        (
            (run.marked(row.task), row.dots, f"{row.c} of {row.n}", str(row.missing or ""))
            for row in run.tasks[:_MOST_TASKS_SHOWN]
        ),
        left=(0, 1),
    )
    hidden = len(run.tasks) - _MOST_TASKS_SHOWN
    if hidden > 0:
        yield Text(f"and {hidden:,} more; --json lists all of them", style=GREY)


def _facts(run: RunReport) -> Iterator[tuple[str, str]]:
    for line in (run.missing_text, *run.missing_effect_lines):
        yield "Missing", line
    if run.run.failures_by_category:
        counts = run.run.failures_by_category.items()
        yield "Failures", ", ".join(f"{why} {count:,}" for why, count in counts)
    for check in run.source_checks:
        yield "Source says", f"· {check}"
    own = [note for estimate in run.estimates for note in estimate.notes]
    for note in dict.fromkeys([*run.notes, *own]):
        yield "Notes", f"· {note}"
    for line in run.run.reading:
        yield "Read as", f"· {line}"
    for what, how in run.methods:
        yield "Method", f"· {what}: {how}"
    yield "Protocol", " · ".join(f"{name} {value}" for name, value in run.protocol_lines)


HAT, AT, _BOTH = "●", "○", "◉"
_CURVE_ROWS = 9
_CURVE_COLUMNS = 16
"""Columns drawn at most; between them ks are thinned evenly."""


def draw_curve(points: Sequence[CurvePoint]) -> list[str]:
    """Lines of text: k to the right, the metric upwards from 0 to 1."""
    chosen = _thinned(points)
    width = max(len(str(point.k)) for point in chosen) + 2
    grid = [[" " * width for _ in chosen] for _ in range(_CURVE_ROWS)]
    for column, point in enumerate(chosen):
        hat, at = _curve_row(point.pass_hat), _curve_row(point.pass_at)
        grid[at][column] = AT.center(width)
        grid[hat][column] = (_BOTH if hat == at else HAT).center(width)
    labels = {0: "1.0", _CURVE_ROWS // 2: "0.5", _CURVE_ROWS - 1: "0.0"}
    lines = [
        f"{labels.get(row, ''):>4} {'┤' if row in labels else '│'}{''.join(cells)}"
        for row, cells in enumerate(grid)
    ]
    axis = "".join(str(point.k).center(width) for point in chosen)
    return [*lines, f"{'':>4}  {axis}  k"]


def _curve_row(value: float) -> int:
    return round((1 - min(1.0, max(0.0, value))) * (_CURVE_ROWS - 1))


def _thinned(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    if len(points) <= _CURVE_COLUMNS:
        return list(points)
    last = len(points) - 1
    picked = sorted({round(i * last / (_CURVE_COLUMNS - 1)) for i in range(_CURVE_COLUMNS)})
    return [points[i] for i in picked]


_MOST_CURVE_ROWS = 8


def render_comparison(comparison: Comparison | Comparisons, console: Console) -> str:
    """Two runs: the sentence, then the numbers, then resources used. More: the ranks."""
    return captured(
        console,
        lambda: (
            _comparison_parts(comparison)
            if isinstance(comparison, Comparison)
            else _ranking_parts(comparison)
        ),
    )


def _ranking_parts(comparisons: Comparisons) -> Iterator[RenderableType]:
    runs = f"{len(comparisons.names)} runs, {len(comparisons.pairs)} pairs"
    yield Text(runs, style="bold")
    yield plain(comparisons.pairing_text)
    yield Text("")
    yield plain_table(view.RANK_HEADER, view.rank_rows(comparisons))
    yield plain_table(view.PAIR_HEADER, view.pair_rows(comparisons))
    yield Text(view.ranking_note(comparisons), style="italic")
    yield facts([("Protocol", line) for line in view.ranking_lines(comparisons)])


def _comparison_parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text.assemble("A ", plain(comparison.a, "bold"), "   B ", plain(comparison.b, "bold"))
    yield plain(comparison.pairing_text)
    yield Text("")
    for result in (*comparison.results, *comparison.differing):
        yield plain(result.sentence, "italic")
    yield Text("")
    yield plain_table(view.RESULT_HEADER, view.result_rows(comparison.results))
    yield Text("Lifts are B minus A, in points.", style="grey50")
    if comparison.slices:
        yield plain_table(view.SLICE_HEADER, view.slice_rows(comparison))
    for curve in comparison.curves:
        if len(curve.points) <= _MOST_CURVE_ROWS or curve.flips:
            yield Text(f"{curve.family}: lift over k, all k at once", style="bold")
            yield plain_table(view.CURVE_HEADER, view.curve_rows(curve))
    entries = [("Flips", str(flip)) for flip in comparison.flips]
    entries += [("Evidence", str(result.method)) for result in comparison.results[:1]]
    entries += [("Deployment", comparison.deployment_text)]
    entries += [("Protocol", line) for line in view.protocol_lines(comparison)]
    entries += [("Note", note) for note in comparison.notes]
    yield facts(entries)


# Okabe and Ito's palette, with a shape next to each color.
_VERDICT_COLORS = {
    GateVerdict.SHOWN: "#009E73",
    GateVerdict.REFUTED: "#D55E00",
    GateVerdict.NOT_SETTLED: "#E69F00",
}


def render_gate(result: GateResult, console: Console) -> str:
    """The headline, then each rule with its evidence and its next step."""
    return captured(console, lambda: _gate_parts(result))


def _gate_parts(result: GateResult) -> Iterator[RenderableType]:
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    yield Text.assemble(plain(name, "bold"), "  ", plain(result.headline, "italic"))
    for rule in result.results:
        yield from _rule_parts(rule)
    for note in result.notes:
        yield _indented(plain(f"· {note}", GREY), 2)


def _rule_parts(result: RuleResult) -> Iterator[RenderableType]:
    verdict = (f"{result.verdict.sign} {result.outcome}", f"bold {_VERDICT_COLORS[result.verdict]}")
    yield _indented(Text.assemble(verdict, "  ", plain(str(result.rule), "bold")), 2)
    for line in (result.evidence, *([str(result.advice)] if result.advice else []), *result.notes):
        yield _indented(plain(line), 6)


def _indented(text: Text, spaces: int) -> Padding:
    return Padding(text, (0, 0, 0, spaces), expand=False)


_IN_FULL = 3
"""Up to this many tasks are shown one by one."""
_MOST_ROWS = 60
_MOST_MARKS = 40
_MOST_REASONS = 20
_ANSWERS = {True: "✓ yes", False: "✗ no", None: "? open"}


def render_summary(summary: Summary, console: Console, *, full: bool = False) -> str:
    """Results task by task; ``full`` shows everything that was kept."""
    return captured(console, lambda: _summary_parts(summary, full))


def _summary_parts(summary: Summary, full: bool) -> Iterator[RenderableType]:
    if len(summary.tasks) <= _IN_FULL:
        for task in summary.tasks:
            yield from _task_parts(task, summary.details, full)
        return
    yield from _tasks_parts(summary, full)


def _task_parts(
    task: TaskSummary, details: Sequence[AttemptLine], full: bool
) -> Iterator[RenderableType]:
    yield Text.assemble(plain(task.task, "bold"), "  ", plain(_mark_row(task, full)))
    scored = counted(task.scored, "judged attempt")
    rate = "–" if task.rate is None else f"{percent(task.rate, 0)} ({task.passed} of {scored})"
    steps, total = _measure(task.steps_on_success, ".1f"), _measure(task.total_steps, ",.0f")
    entries = [
        (f"first^{task.k}", f"{_ANSWERS[task.first]}   all of the first {task.k} passed"),
        (f"window^{task.half}", f"{_ANSWERS[task.in_a_row]}   some {task.half} in a row passed"),
        ("success rate", rate),
        ("steps", f"{steps} on average on success, {total} in all"),
        *(("failures", f"{why}: {count}") for why, count in task.failures.items()),
        *(("missing", f"{why}: {count}") for why, count in task.missing.items()),
    ]
    yield facts(entries)
    own = [line for line in details if line.task == task.task]
    most = len(own) if full else _MOST_REASONS
    yield plain_table(
        ("", "attempt", "steps", "seconds", "reason"),
        (
            (
                *(MARKS[line.verdict], line.id, _measure(line.steps, "g")),
                *(_measure(line.seconds, ".1f"), line.reason),
            )
            for line in own[:most]
        ),
        left=(0, 1, 4),
    )
    if len(own) > most:
        yield Text(f"and {counted(len(own) - most, 'more attempt')}; --verbose lists them")
    yield Text("")


def _tasks_parts(summary: Summary, full: bool) -> Iterator[RenderableType]:
    half = summary.tasks[0].half
    yield Text.assemble(
        (f"{len(summary.tasks):,} tasks as they came", "bold"),
        "   ✓ passed  ✗ failed  ? missing  · not made",
    )
    shown = summary.tasks if full else summary.tasks[:_MOST_ROWS]
    header = ("task", "attempts", f"first^{summary.k}", f"window^{half}", "rate")
    yield plain_table(
        (*header, "steps ✓", "steps", "not passed"),
        (
            (
                *(
                    task.task,
                    _mark_row(task, full),
                    _answer_sign(task.first),
                    _answer_sign(task.in_a_row),
                ),
                "–" if task.rate is None else percent(task.rate, 0),
                *(_measure(task.steps_on_success, ".1f"), _measure(task.total_steps, ",.0f")),
                _counts({**task.failures, **task.missing}),
            )
            for task in shown
        ),
        left=(0, 1, 7),
    )
    if len(shown) < len(summary.tasks):
        hidden = counted(len(summary.tasks) - len(shown), "more task")
        yield Text(f"and {hidden}; --verbose lists them")
    yield facts(_summary_facts(summary, half))
    yield from _reason_parts(summary, full)
    yield Text("")


def _summary_facts(summary: Summary, half: int) -> Iterator[tuple[str, str]]:
    """The same over all tasks, as observed; estimates are in the report."""
    of = f"of {counted(len(summary.tasks), 'task')}"
    for name, which in ((f"first^{summary.k}", "first"), (f"window^{half}", "in_a_row")):
        answers = summary.answers(which)
        still = f", open on {answers[None]:,}" if answers[None] else ""
        yield name, f"on {answers[True]:,} {of}{still}"
    rate = percent(summary.passed / summary.scored, 0) if summary.scored else "–"
    yield "success rate", f"{rate} ({summary.passed:,} of {summary.scored:,} judged attempts)"
    steps, total = _measure(summary.steps_on_success, ".1f"), _measure(summary.total_steps, ",.0f")
    yield "steps", f"{steps} on average on success, {total} in all"
    for title, counts in (("failures", summary.failures), ("missing", summary.missing)):
        if counts:
            yield title, _counts(counts)


def _reason_parts(summary: Summary, full: bool) -> Iterator[RenderableType]:
    """Reasons why attempts did not pass, the first attempts one by one."""
    bad = [line for line in summary.details if line.verdict is not Verdict.PASSED]
    if not bad:
        return
    most = len(bad) if full else _MOST_REASONS
    yield Text("Attempts that did not pass", style="bold")
    yield facts((f"{MARKS[line.verdict]} {line.id}", line.reason) for line in bad[:most])
    hidden = len(bad) - min(most, len(bad)) + summary.not_detailed
    if hidden:
        how = "passhat show RUN TASK#N shows any of them" if full else "--verbose lists them"
        yield Text(f"and {hidden:,} more; {how}")


def _mark_row(task: TaskSummary, full: bool) -> str:
    marks = task.marks
    return marks if full or len(marks) <= _MOST_MARKS else f"{marks[:_MOST_MARKS]}…"


def _answer_sign(value: bool | None) -> str:
    return _ANSWERS[value][0]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{why} {count}" for why, count in counts.items())


def _measure(value: float | None, digits: str) -> str:
    return "–" if value is None else f"{value:{digits}}"
