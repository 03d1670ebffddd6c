"""Reports, comparisons and finished runs on one screen: at most 15 lines of 80 columns.

The sentence with its interval, one small table, the tasks to look at, the next step and how
to see more. ``--full`` and every file have the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from passhat._display import counted, percent, percent_interval
from passhat.reporting import comparison_view as view
from passhat.reporting.comparison_view import TaskChange
from passhat.reporting.tables import captured, plain, plain_table
from passhat.reporting.view import Report, RunReport, estimate_text, run_labels, run_warnings
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.compare.claims import Claim
from passhat.stats.outcomes import Outcomes, Run

__all__ = ["brief_comparison", "brief_report", "brief_run", "runs_on_screen"]

_MOST_ROWS = 4
_MOST_RUNS = 6
_MOST_PAIRS = 4
_NAME_COLUMNS = 24
_LONGEST_LINE = 79
_GREY = "grey50"
_ABOUT = "new tasks"


def runs_on_screen(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs that fit a short report: of a store, the newest."""
    if any(run.source != runs[0].source or run.started == "" for run in runs):
        return runs[:_MOST_RUNS]
    return runs[-_MOST_RUNS:]


def brief_report(report: Report, console: Console, left_out: int = 0) -> str:
    """A single run: the sentence and its table. Several runs: a table for all of them.

    ``left_out`` is the number of further runs.
    """
    if len(report.runs) == 1 and not left_out:
        return captured(console, lambda: _run(report.runs[0]))
    shown = report.runs[:_MOST_RUNS]
    left_out += len(report.runs) - len(shown)
    return captured(console, lambda: _runs(shown, left_out))


def brief_run(report: RunReport, failure: str, console: Console) -> str:
    """The end of ``passhat run``: the same as a report, with how to look at a failure.

    ``failure`` names a failed attempt as ``passhat show`` does, RUN TASK#NUMBER; empty for none.
    """
    return captured(console, lambda: _finished_run(report, failure))


def brief_comparison(
    comparison: Comparison | Comparisons,
    runs: Sequence[Run],
    changes: Sequence[TaskChange],
    console: Console,
) -> str:
    """Two runs: the difference, and on which tasks. More runs: the possible ranks."""
    if isinstance(comparison, Comparison):
        return captured(console, lambda: _comparison(comparison, runs, changes))
    return captured(console, lambda: _ranking(comparison, runs))


def _run(run: RunReport) -> Iterator[RenderableType]:
    yield plain(_limited(f"{run.name}: {run.run.outcomes}"), "bold")
    yield from _first_warning(run.warnings)
    yield plain(run.headline)
    yield from _estimates(run)
    yield from _missing(run)
    yield from _worst_tasks(run.run.outcomes)
    yield plain(_limited(f"Next: {_next_step(run)}"))
    yield Text(_more(run), style=_GREY)


def _finished_run(run: RunReport, failure: str) -> Iterator[RenderableType]:
    yield from _first_warning(run.warnings)
    yield plain(run.headline)
    yield from _estimates(run, most=3)
    yield from _missing(run)
    yield from _worst_tasks(run.run.outcomes)
    if failure:
        yield plain(_limited(f"Read a failure: passhat show {failure}"))
    yield Text("More: passhat run --full, passhat report, passhat view", style=_GREY)


def _estimates(run: RunReport, most: int = _MOST_ROWS) -> Iterator[RenderableType]:
    """pass^k and pass@k over k, or the requested metrics."""
    known = {estimate.metric: estimate for estimate in run.estimates if estimate.about == _ABOUT}
    ks = [k for k in _ks(known) if f"pass@{k}" in known]
    if len(ks) > 1 or (ks and len(known) == 2):
        rows = [
            [str(k), estimate_text(known[f"pass^{k}"]), estimate_text(known[f"pass@{k}"])]
            for k in _thinned(ks, most)
        ]
        yield plain_table(("k", "all k pass (pass^k)", "any of k (pass@k)"), rows, left=())
    others = [name for name in known if not name.startswith(("pass^", "pass@", "delta^"))]
    names = others if ks else list(known)
    if names:
        rows = [[name, estimate_text(known[name])] for name in names[:most]]
        yield plain_table(("metric", "value"), rows)
    level = next((each.level for each in run.estimates if each.level is not None), None)
    if level is not None:
        yield Text(f"{100 * level:g}% intervals for new tasks like these.", style=_GREY)


def _ks(known: Iterable[str]) -> list[int]:
    return [int(name.removeprefix("pass^")) for name in known if name.startswith("pass^")]


def _thinned(values: Sequence[int], most: int) -> list[int]:
    """The first, the last, and some evenly between."""
    if len(values) <= most:
        return list(values)
    last = len(values) - 1
    return [values[round(i * last / (most - 1))] for i in range(most)]


def _missing(run: RunReport) -> Iterator[RenderableType]:
    if run.run.outcomes.total_missing:
        yield plain(_limited(f"Missing: {run.missing_text}"))


def _worst_tasks(outcomes: Outcomes) -> Iterator[RenderableType]:
    """The tasks with the lowest pass rate; flaky tasks come before those that never pass.

    A task that never passes is a gap in ability, one that sometimes fails is unreliable; a report
    about reliability names both.
    """
    n, c = outcomes.n.tolist(), outcomes.c.tolist()
    never = [task for task, n_, c_ in zip(outcomes.tasks, n, c, strict=True) if n_ and not c_]
    flaky = sorted(
        (c_ / n_, task, c_, n_)
        for task, n_, c_ in zip(outcomes.tasks, n, c, strict=True)
        if 0 < c_ < n_
    )
    if flaky:
        tasks = [f"{task} {c_} of {n_}" for _, task, c_, n_ in flaky]
        yield plain(_listed("Flaky tasks:", tasks))
    if never:
        yield plain(_listed("Never passed:", never))


def _first_warning(warnings: Sequence[str]) -> Iterator[RenderableType]:
    """The first warning, and how many more there are."""
    if warnings:
        more = f" (and {len(warnings) - 1} more)." if len(warnings) > 1 else "."
        yield plain(_limited(f"Warning: {warnings[0]}", len(more)) + more, "bold")


def _named_warnings(labels: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The warnings of all runs, each with the run it is about."""
    return [
        f"{label}: {warning}"
        for label, run in zip(labels, runs, strict=True)
        for warning in run_warnings(run)
    ]


def _next_step(run: RunReport) -> str:
    """The cheapest thing that would make the answer better."""
    outcomes = run.run.outcomes
    if outcomes.total_missing:
        missing = counted(outcomes.total_missing, "missing attempt")
        return f"judge or repeat the {missing}; passhat run --only-missing does"
    if len(outcomes) == 1:
        return "add tasks; one task says nothing about others"
    if int(outcomes.n.max()) == 1:
        return "make several attempts at each task, as in passhat run -n 8"
    return f"passhat plan says how many tasks bring pass^{run.top_k} within 5 points"


def _more(run: RunReport) -> str:
    """How to see more, with the count of notes, so that none is hidden silently."""
    count = len(run.notes) + len(run.run.losses)
    notes = f" ({counted(count, 'note')})" if count else ""
    return f"More: --full{notes}, --tasks, --html FILE, --json"


def _runs(runs: Sequence[RunReport], left_out: int) -> Iterator[RenderableType]:
    labels = _short_labels([run.run for run in runs])
    chosen = _shared_metrics(runs)
    rows = []
    for label, run in zip(labels, runs, strict=True):
        outcomes = run.run.outcomes
        cells = [
            "–" if (estimate := run.find(name)) is None else estimate_text(estimate)
            for name in chosen
        ]
        rows.append([label, f"{len(outcomes):,}", f"{outcomes.total_missing:,}", *cells])
    yield Text(counted(len(runs) + left_out, "run"), style="bold")
    yield plain_table(("run", "tasks", "missing", *chosen), rows)
    if left_out:
        newest = "the newest are shown; " if runs[0].run.started else ""
        yield Text(f"and {left_out:,} more: {newest}--full has all of them, and takes its time")
    yield from _first_warning(_named_warnings(labels, [run.run for run in runs]))
    level = next((e.level for run in runs for e in run.estimates if e.level is not None), None)
    if level is not None:
        yield Text(f"{100 * level:g}% intervals for new tasks like these.", style=_GREY)
    if all(int(run.run.outcomes.n.max()) == 1 for run in runs):
        yield Text("One attempt per task cannot show whether the same task passes again.")
    if all(len(run.run.outcomes) == 1 for run in runs):
        yield Text("One task says nothing about other tasks.")
    yield Text("Next: passhat compare with the same sources says which differences are real.")
    yield Text("More: --full, --tasks, --html FILE, --json", style=_GREY)


def _shared_metrics(runs: Sequence[RunReport]) -> list[str]:
    """pass^1 and the largest k that all runs reach, or the first requested metrics."""
    listed = dict.fromkeys(estimate.metric for estimate in runs[0].estimates)
    shared = [name for name in listed if all(run.find(name) for run in runs)]
    reliable = [name for name in shared if name.startswith("pass^")]
    chosen = [*reliable[:1], *reliable[-1:]] or shared[:2] or list(listed)[:2]
    return list(dict.fromkeys(chosen))


def _comparison(
    comparison: Comparison, runs: Sequence[Run], changes: Sequence[TaskChange]
) -> Iterator[RenderableType]:
    a, b = _short_labels(runs)
    yield from _first_warning(_named_warnings((a, b), runs))
    yield plain(view.headline(comparison, a, b))
    yield Text("")
    rows = [
        [
            result.metric,
            percent(result.value_a, 0),
            percent(result.value_b, 0),
            view.lift_text(result, unit=""),
            str(result.claim),
        ]
        for result in comparison.results[:_MOST_ROWS]
    ]
    header = ("metric", a, b, "lift in points", "")
    yield plain_table(header, rows, left=(0, 4))
    if comparison.differing:
        yield plain(_limited(f"On exactly these tasks: {_these_tasks(comparison)}"))
    cells = view.paired_cells(runs[0].outcomes, runs[1].outcomes)
    if cells is not None:
        yield plain(cells.text(a, b))
    for title, moved in view.largest_changes(changes):
        yield plain(_listed(f"{title}:", moved))
    advice = view.next_step(comparison)
    if advice:
        yield plain(f"Next: {advice}.")
    differences = len(comparison.agreement.differences)
    if differences:
        yield Text(f"The protocols differ in {counted(differences, 'field')}; --full lists them.")
    yield Text("More: --full, --html FILE, --json", style=_GREY)


def _these_tasks(comparison: Comparison) -> str:
    """The result on these tasks, where it differs from that on new tasks."""
    result = comparison.differing[-1]
    evidence = result.evidence
    parts = [f"{result.metric} {view.lift_text(result)}, {result.claim}"]
    for tasks, verb in ((evidence.broken, "broke"), (evidence.fixed, "improved")):
        if tasks:
            parts.append(f"{len(tasks)} {verb}: {tasks[0]}{' ...' if len(tasks) > 1 else ''}")
    return "; ".join(parts)


def _ranking(comparisons: Comparisons, runs: Sequence[Run]) -> Iterator[RenderableType]:
    labels = dict(zip((run.name for run in runs), _short_labels(runs), strict=True))
    metric = comparisons.ranks[0].metric
    entries = [entry for entry in comparisons.ranks if entry.metric == metric]
    yield Text(f"{len(entries)} runs on {counted(comparisons.tasks, 'shared task')}", style="bold")
    yield from _first_warning(_named_warnings(run_labels(runs), runs))
    rows = [
        [labels.get(entry.name, entry.name), percent(entry.value, 0), str(entry)]
        for entry in entries[:_MOST_RUNS]
    ]
    yield plain_table(("run", metric, "possible ranks"), rows)
    clear = [
        (pair, result)
        for pair in comparisons.pairs
        for result in pair.results
        if result.metric == metric and result.claim is not Claim.INCONCLUSIVE
    ]
    for pair, result in clear[:_MOST_PAIRS]:
        better, worse = (pair.b, pair.a) if result.lift > 0 else (pair.a, pair.b)
        low, high = sorted((abs(result.low), abs(result.high)))
        yield plain(
            _limited(
                f"{labels.get(better, better)} beats {labels.get(worse, worse)} by "
                f"{percent_interval(low, high, ' points')}"
            )
        )
    if len(clear) > _MOST_PAIRS:
        yield Text(f"and {len(clear) - _MOST_PAIRS} more pairs")
    if not clear:
        yield Text("No pair shows a clear difference.")
    yield Text("Intervals hold for all pairs at once. More: --full, --json", style=_GREY)


def _listed(title: str, items: Sequence[str]) -> str:
    """As many items as fit on a line, and how many more there are."""
    line = title
    for place, item in enumerate(items):
        rest = len(items) - place - 1
        more = f" and {rest:,} more" if rest else ""
        longer = f"{line}{',' if place else ''} {item}"
        if place and len(longer + more) > _LONGEST_LINE:
            return f"{line} and {rest + 1:,} more"
        line = longer
    return _limited(line)


def _short_labels(runs: Sequence[Run]) -> list[str]:
    """Labels that fit a column and are distinct, by their ends if necessary."""
    labels = run_labels(runs)
    ends = [
        label if len(label) <= _NAME_COLUMNS else f"…{label[1 - _NAME_COLUMNS :]}"
        for label in labels
    ]
    for short in ([_cut(label) for label in labels], ends):
        if len(set(short)) == len(set(labels)):
            return short
    return list(labels)


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_COLUMNS else f"{text[: _NAME_COLUMNS - 1]}…"


def _limited(text: str, taken: int = 0) -> str:
    """The text on one line; ``taken`` columns are reserved for other text."""
    room = _LONGEST_LINE - taken
    return text if len(text) <= room else f"{text[: room - 1]}…"
