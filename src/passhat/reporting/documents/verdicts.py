"""Comparisons of runs, and gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from passhat._display import counted, figure, percent, percent_interval, some
from passhat.protocol import Question
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Finding,
    Heading,
    Level,
    Listing,
    NextStep,
    Note,
    OptionsNote,
    Section,
    Sentence,
    Table,
    first_warning,
)
from passhat.reporting.documents.causes import (
    broken_table,
    change_bar,
    dropped_lines,
    dropped_table,
    failure_lines,
    failure_table,
    label_failures,
    no_answer_lines,
    side_table,
)
from passhat.reporting.documents.report import label_warnings
from passhat.reporting.task_changes import TaskChange, largest_changes, pair_cells
from passhat.reporting.view import run_labels, short_labels
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.compare.claims import Claim, Evidence, PairVerdict, points
from passhat.stats.gate import GateResult
from passhat.stats.outcomes import Run, no_answer_text, served_change

_MOST_ROWS = 4
_MOST_RUNS = 6
_MOST_PAIRS = 4
_MOST_CURVE_ROWS = 8
_SAME = "the same in every field"


def comparison_document(
    comparison: Comparison | Comparisons,
    runs: Sequence[Run] = (),
    changes: Sequence[TaskChange] = (),
) -> Document:
    """Build the document of a comparison; ``runs`` give the labels, ``changes`` the tasks."""
    if isinstance(comparison, Comparisons):
        return _ranking_document(comparison, runs)
    names = (comparison.a, comparison.b)
    labels = tuple(run_labels(runs)) if runs else names
    short = tuple(short_labels(runs)) if runs else names
    sections = {
        "lead": _lead(comparison, labels, short, runs),
        "question": _questions(runs),
        "claims": _claims(comparison, labels),
        "results": _results(comparison, short),
        "tasks": _tasks(comparison, runs, changes, short),
        "failures": label_failures(short, runs) if runs else (),
        "next": _next_steps(comparison, runs),
        "slices": _slices(comparison),
        "curves": _curves(comparison),
        "use": _use(comparison),
        "evidence": _evidence(comparison),
    }
    title = f"{labels[1]} against {labels[0]}"
    return Document(title, tuple(Section(name, tuple(part)) for name, part in sections.items()))


def _questions(runs: Sequence[Run]) -> Iterator[Block]:
    """The questions that were recorded before the runs."""
    for question in dict.fromkeys(run.protocol.question for run in runs):
        if question != Question():
            yield Sentence(f"Asked before the run: {question}")


def lead_verdict(comparison: Comparison, a: str = "", b: str = "") -> PairVerdict:
    """The verdict on the first metric; over several k, on the largest that is settled, if any.

    ``a`` and ``b`` are the labels of the runs, where they have shorter ones than their names.
    """
    verdicts = comparison.verdicts
    if len({verdict.lead.metric.family for verdict in verdicts}) > 1:
        return _relabel(verdicts[0], a, b)
    decisive = [verdict for verdict in verdicts if verdict.claim is not Claim.INCONCLUSIVE]
    return _relabel((decisive or verdicts)[-1], a, b)


def _relabel(verdict: PairVerdict, a: str, b: str) -> PairVerdict:
    lead = verdict.lead
    label_of = {lead.a: a or lead.a, lead.b: b or lead.b}

    def relabel(evidence: Evidence | None) -> Evidence | None:
        if evidence is None:
            return None
        unjudged = tuple(label_of[name] for name in evidence.unjudged)
        return replace(evidence, a=a or evidence.a, b=b or evidence.b, unjudged=unjudged)

    return PairVerdict(relabel(verdict.these), relabel(verdict.new))


def verdict_sentence(comparison: Comparison, a: str = "", b: str = "") -> str:
    """The result in words; ``a`` and ``b`` are the labels of the runs."""
    return lead_verdict(comparison, a, b).sentence


def _lead(
    comparison: Comparison,
    labels: tuple[str, ...],
    short: tuple[str, ...],
    runs: Sequence[Run],
) -> Iterator[Block]:
    yield Heading(f"{comparison.b} (B) against {comparison.a} (A)", level=Level.FULL)
    warnings = label_warnings(short, runs) if runs else []
    if len(runs) == 2 and (change := served_change(*runs)):
        warnings.append(change)
    yield from first_warning(warnings)
    yield from no_answer_lines(short, runs) if runs else ()
    yield Sentence(verdict_sentence(comparison, *short), "lead", level=Level.SHORT)
    yield Sentence(verdict_sentence(comparison, *labels), "lead", level=Level.FULL)
    if comparison.results[0].evidence.unpaired is not None:
        yield Sentence(f"Different tasks, {comparison.notes[0]}.", level=Level.SHORT)
    elif comparison.unshared_text:
        yield Sentence(f"Left out: {comparison.unshared_text}.", level=Level.SHORT)
    yield Sentence(comparison.pairing_text, level=Level.FULL)


def _claims(comparison: Comparison, labels: tuple[str, ...]) -> Iterator[Block]:
    """The verdicts on the other metrics, and remarks on all of them."""
    lead = lead_verdict(comparison).lead.metric
    for verdict in comparison.verdicts:
        if verdict.lead.metric != lead:
            yield Sentence(_relabel(verdict, *labels).sentence, level=Level.FULL)
    evidence = comparison.results[0].evidence
    if evidence.looked.count > 1:
        yield Sentence(str(evidence.looked), level=Level.FULL)
    if evidence.missing:
        verb = "is" if evidence.missing == 1 else "are"
        missing = counted(evidence.missing, "attempt")
        text = f"{missing} without a verdict {verb} counted against the claim."
        yield Sentence(text, level=Level.FULL)


def _results(comparison: Comparison, short: tuple[str, ...]) -> Iterator[Block]:
    sides = _sides(comparison.verdicts[0])
    rows = []
    for verdict in comparison.verdicts[:_MOST_ROWS]:
        lead = verdict.lead
        cells = ["–"] * (2 + len(sides))
        if not lead.unjudged:
            pairs = ((lead.value_a, lead.highest_a), (lead.value_b, lead.highest_b))
            cells = [_range_text(low, high, lead.digits) for low, high in pairs]
            cells += [_lift_text(evidence) for evidence in _sides(verdict)]
        rows.append((str(lead.metric), *cells))
    header = ("metric", *short, *(f"points, {evidence.population}" for evidence in sides))
    yield Table(header, tuple(rows), level=Level.SHORT)
    missing = comparison.results[0].evidence.missing
    verdict = lead_verdict(comparison)
    # Where missing attempts could turn the result around, the next step counts them.
    is_next = verdict.claim is Claim.INCONCLUSIVE and verdict.lead.undecided
    if missing and not is_next and not comparison.verdicts[0].lead.unjudged:
        verb = "is" if missing == 1 else "are"
        text = f"{counted(missing, 'attempt')} {verb} missing: ranges reach from failed to passed."
        yield Sentence(text, level=Level.SHORT)
    yield result_table(comparison)


def _sides(verdict: PairVerdict) -> list[Evidence]:
    return [evidence for evidence in (verdict.these, verdict.new) if evidence is not None]


def result_table(comparison: Comparison) -> Table:
    """A row per metric and population."""
    rows = []
    for verdict, result in zip(comparison.verdicts, comparison.results, strict=True):
        for evidence in _sides(verdict):
            cells = ("–", "–", "–", "–", "–", "nothing judged")
            if not evidence.unjudged:
                cells = (
                    _value_cell(evidence.value_a, evidence.highest_a, evidence.digits),
                    _value_cell(evidence.value_b, evidence.highest_b, evidence.digits),
                    _lift_range(evidence),
                    _interval_text(evidence),
                    f"{result.wins}/{result.losses}/{result.ties}",
                    str(evidence.claim),
                )
            rows.append((str(evidence.metric), str(evidence.population), *cells))
    header = ("metric", "about", "A", "B", "lift", "interval", "w/l/t", "claim")
    caption = "Lifts are B minus A, in points"
    return Table(header, tuple(rows), caption, (0, 1, 7), level=Level.FULL)


def _lift_range(evidence: Evidence) -> str:
    """The lift in points, or its range from missing attempts failed to passed."""
    highest_a, highest_b = evidence.highest_a, evidence.highest_b
    if highest_a is None and highest_b is None:
        return points(evidence.lift)
    least = evidence.value_b - (evidence.value_a if highest_a is None else highest_a)
    most = (evidence.value_b if highest_b is None else highest_b) - evidence.value_a
    digits = evidence.digits
    return " to ".join(dict.fromkeys((_points(least, digits), _points(most, digits))))


def _value_cell(low: float, high: float | None, digits: int) -> str:
    return percent(low, 1) if high is None else _range_text(low, high, digits)


def _interval_text(evidence: Evidence) -> str:
    """The interval in points; an end that was not requested is omitted."""
    low, high = points(evidence.interval.low), points(evidence.interval.high)
    if evidence.alternative == "greater":
        return f"at least {low}"
    return f"at most {high}" if evidence.alternative == "less" else f"{low} to {high}"


def _tasks(
    comparison: Comparison,
    runs: Sequence[Run],
    changes: Sequence[TaskChange],
    short: tuple[str, ...],
) -> Iterator[Block]:
    cells = pair_cells(runs[0].outcomes, runs[1].outcomes) if runs else None
    if cells is not None:
        # Shares of judged pairs alone say little beside ranges.
        is_whole = not comparison.results[0].evidence.missing
        level = Level.SHORT | Level.FULL if is_whole else Level.FULL
        yield Sentence(cells.text(*short), level=level)
    lead = lead_verdict(comparison).lead
    yield from change_bar(lead)
    if len(runs) == 2:
        yield from broken_table(lead.broken, runs[1])
    for title, tasks in largest_changes(changes).items():
        shown = {change.task for change in (lead.fixed if title == "Gained" else lead.broken)}
        # A move that no test shows is not called a gain or a loss, even if that of all tasks is.
        which = "none of them" if shown else "no task"
        way = "up" if title == "Gained" else "down"
        unshown = f"Largest moves {way}, {which} shown by itself"
        for heading, is_shown in ((title, True), (unshown, False)):
            moves = tuple(
                f"{change.task} {change.counts_text}"
                for change in tasks
                if (change.task in shown) is is_shown
            )
            if moves:
                # Beside moves that are shown the others are for the long form.
                level = Level.FULL if shown and not is_shown else Level.BOTH
                yield Listing(f"{heading}:", moves, level=level)


def _next_steps(comparison: Comparison, runs: Sequence[Run]) -> Iterator[Block]:
    step = _next_step(lead_verdict(comparison), is_stored=any(run.id for run in runs))
    if any(no_answer_text(run) for run in runs) and not lead_verdict(comparison).lead.undecided:
        step = "fix what the agent raises, then run it again"
    if step:
        yield NextStep(f"{step}.")
    yield from _middle_advice(comparison)
    if differences := comparison.agreement.differences:
        listing = some([str(entry) for entry in differences], 3)
        yield Sentence(f"The protocols differ: {listing}.", level=Level.SHORT)
    yield OptionsNote("More: --full, -o FILE.html, --json", level=Level.SHORT)


_FAR, _NEAR = 0.4, 0.25
"""Distance from one half at which two runs are hard to tell apart, and at which they are not."""


def _middle_advice(comparison: Comparison) -> Iterator[Block]:
    """Name a k at which an open comparison would tell more: rates near 0 or 1 leave no room."""
    lead = lead_verdict(comparison).lead
    far = abs((lead.value_a + lead.value_b) / 2 - 0.5) > _FAR
    if lead.claim is not Claim.INCONCLUSIVE or lead.unjudged or lead.missing or not far:
        return
    rates = f"{percent(lead.value_a, 0)} and {percent(lead.value_b, 0)}"
    text = f"{lead.metric} is {rates}: runs are told apart best where rates are near one half"
    curve = next((one for one in comparison.curves if one.family == lead.metric.family), None)
    best = min(curve.points, key=lambda point: abs(point.middle - 0.5)) if curve else None
    if best is not None and abs(best.middle - 0.5) < _NEAR:
        there = f"{percent(best.value_a, 0)} and {percent(best.value_b, 0)}"
        text += f", as at {lead.metric.with_k(best.k)} ({there}); choose it before the next run"
    else:
        kind = "harder" if lead.value_a + lead.value_b > 1 else "easier"
        text += f"; {kind} tasks would tell more"
    yield Sentence(f"{text}.")


def _next_step(verdict: PairVerdict, *, is_stored: bool) -> str:
    """A step that would settle the lead; empty where it is settled."""
    evidence = verdict.lead
    if evidence.unjudged:
        again = "; the same passhat run with --only-missing does" if is_stored else ""
        return f"judge or repeat the missing attempts{again}"
    if verdict.claim is not Claim.INCONCLUSIVE:
        return ""
    if evidence.undecided:
        missing = counted(evidence.missing, "missing attempt")
        return f"judge or repeat {missing}: that alone could turn the result around"
    if evidence.prospect is None:
        return ""
    return evidence.prospect.text(" in both runs" if evidence.prospect.kind == "attempts" else "")


def _slices(comparison: Comparison) -> Iterator[Block]:
    if comparison.slices:
        rows = tuple(
            (
                f"{part.label} = {part.value}",
                f"{part.result.tasks:,}",
                str(part.result.metric),
                points(part.result.lift),
                part.result.interval_text(),
                part.result.corrected()[0],
                str(part.result.claim),
            )
            for part in comparison.slices
        )
        header = ("slice", "tasks", "metric", "lift", "interval", "p, Holm", "claim")
        caption = f"Slices by {comparison.sliced_by}, corrected for how many were looked at"
        yield Table(header, rows, caption, (0, 2, 6), level=Level.FULL)


def _curves(comparison: Comparison) -> Iterator[Block]:
    for curve in comparison.curves:
        if len(curve.points) <= _MOST_CURVE_ROWS or curve.flips:
            rows = tuple(
                (str(point.k), points(point.lift), f"{points(point.low)} to {points(point.high)}")
                for point in curve.points
            )
            caption = f"{curve.family}: lift over k, all k at once"
            yield Table(("k", "lift", "band"), rows, caption, level=Level.FULL)


def _use(comparison: Comparison) -> Iterator[Block]:
    rows = tuple(
        (
            value.measure,
            *(figure(use.per_attempt if use else None) for use in (value.a, value.b)),
            *(figure(use.per_solved if use else None) for use in (value.a, value.b)),
        )
        for value in comparison.deployment
    )
    if rows:
        header = ("measure", "A per attempt", "B per attempt", "A per solved", "B per solved")
        caption = "What both use, on the paired tasks (never part of the evidence)"
        yield Table(header, rows, caption, level=Level.FULL)
    else:
        yield Facts((("Deployment", comparison.deployment_text),), level=Level.FULL)


def _evidence(comparison: Comparison) -> Iterator[Block]:
    entries = [("Flips", str(flip)) for flip in comparison.flips]
    entries += [("Evidence", str(result.method)) for result in comparison.results[:1]]
    entries += [
        ("Test", f"{result.metric}: p = {result.p_text()} for no difference on any of these tasks")
        for result in comparison.results
        if result.p_value is not None
    ]
    entries += [("Protocol", line) for line in _protocol_lines(comparison)]
    entries += [("Note", note) for note in comparison.notes]
    yield Facts(tuple(entries), level=Level.FULL)


def _protocol_lines(comparison: Comparison) -> list[str]:
    """Allowed differences of the protocols, one by one; then fields that were not recorded."""
    lines = [f"differs: {entry}" for entry in comparison.agreement.differences]
    if comparison.agreement.attempts_text is not None:
        lines.append(f"{comparison.agreement.attempts_text}; no p-value is given")
    return [*lines, *_assumption_lines(comparison)] or [_SAME]


def _assumption_lines(comparison: Comparison) -> list[str]:
    fields = [entry.field for entry in comparison.agreement.unverified]
    if not fields:
        return []
    count = counted(len(fields), "field")
    return [f"unverified, not recorded on both sides ({count}): {', '.join(fields)}"]


def _lift_text(evidence: Evidence) -> str:
    """``+39 (11 to 63)`` in points; only one end where the test has a direction."""
    digits = evidence.digits
    # The difference of the printed values, so that the row adds up.
    lift = round(100 * evidence.value_b, digits) - round(100 * evidence.value_a, digits)
    low, high = (_points(end, digits) for end in (evidence.interval.low, evidence.interval.high))
    ends = {"two-sided": f"{low} to {high}", "greater": f"at least {low}"}
    interval = ends.get(evidence.alternative, f"at most {high}")
    if evidence.highest_a is not None or evidence.highest_b is not None:
        return interval  # missing attempts leave no single lift
    sign = "+" if round(lift, digits) > 0 else ""
    return f"{sign}{_points(lift / 100, digits)} ({interval})"


def _range_text(low: float, high: float | None, digits: int) -> str:
    """A value, or its range from missing attempts failed to passed."""
    texts = dict.fromkeys(f"{100 * end:.{digits}f}" for end in (low, high) if end is not None)
    return f"{' to '.join(texts)}%"


def _points(share: float, digits: int) -> str:
    text = f"{100 * share:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


# -- three runs and more -------------------------------------------------------------------------


def _ranking_document(comparisons: Comparisons, runs: Sequence[Run]) -> Document:
    short = short_labels(runs) if runs else comparisons.names
    names = [run.name for run in runs] if runs else comparisons.names
    labels = dict(zip(names, short, strict=True))
    sections = {
        "lead": _ranking_lead(comparisons, runs),
        "screen": _ranking_screen(comparisons, labels, runs),
        "failures": label_failures(short, runs) if runs else (),
        "results": _ranking_tables(comparisons),
        "evidence": [
            Facts(
                tuple(("Protocol", line) for line in _ranking_lines(comparisons)), level=Level.FULL
            )
        ],
    }
    title = f"{len(comparisons.names)} runs compared"
    return Document(title, tuple(Section(name, tuple(part)) for name, part in sections.items()))


def _ranking_lead(comparisons: Comparisons, runs: Sequence[Run]) -> Iterator[Block]:
    count, pairs = len(comparisons.names), counted(len(comparisons.pairs), "pair")
    yield Heading(f"{count} runs on {counted(comparisons.tasks, 'shared task')}", level=Level.SHORT)
    yield Heading(f"{count} runs compared, {pairs}", level=Level.FULL)
    yield Sentence(comparisons.pairing_text, level=Level.FULL)
    yield from first_warning(label_warnings(run_labels(runs), runs) if runs else [])
    yield from no_answer_lines(run_labels(runs), runs) if runs else ()
    first = comparisons.ranks[0]
    text = f"{first.name} has the highest {first.metric}, {percent(first.value)}"
    yield Sentence(f"{text}; its rank among {count} may be {first}.", "lead", level=Level.FULL)


def _ranking_screen(
    comparisons: Comparisons, labels: dict[str, str], runs: Sequence[Run]
) -> Iterator[Block]:
    silent = {run.name for run in runs if no_answer_text(run)}
    metric = comparisons.ranks[0].metric
    entries = [entry for entry in comparisons.ranks if entry.metric == metric]
    rows = tuple(
        (
            labels.get(entry.name, entry.name),
            "no answer" if entry.name in silent else percent(entry.value, 0),
            str(entry),
        )
        for entry in entries[:_MOST_RUNS]
    )
    yield Table(("run", str(metric), "possible ranks"), rows, level=Level.SHORT)
    clear = [
        (pair, result)
        for pair in comparisons.pairs
        for result in pair.results
        if result.metric == metric and result.claim is not Claim.INCONCLUSIVE
    ]
    for pair, result in clear[:_MOST_PAIRS]:
        better, worse = (pair.b, pair.a) if result.lift > 0 else (pair.a, pair.b)
        low, high = sorted((abs(result.low), abs(result.high)))
        text = (
            f"{labels.get(better, better)} beats {labels.get(worse, worse)} by "
            f"{percent_interval(low, high, ' points')}"
        )
        yield Sentence(text, level=Level.SHORT)
    if len(clear) > _MOST_PAIRS:
        more = counted(len(clear) - _MOST_PAIRS, "more pair")
        yield Sentence(f"and {more}", level=Level.SHORT)
    if not clear:
        yield Sentence("No pair shows a clear difference.", level=Level.SHORT)
    yield Note("Intervals hold for all pairs at once.", level=Level.SHORT)
    yield OptionsNote("More: --full, --json", level=Level.SHORT)


def _ranking_tables(comparisons: Comparisons) -> Iterator[Block]:
    number_of = _numbers(comparisons)
    rows = tuple(
        (number_of[entry.name], entry.name, str(entry.metric), percent(entry.value, 1), str(entry))
        for entry in comparisons.ranks
    )
    header = ("run", "name", "metric", "value", "possible ranks")
    yield Table(header, rows, "Ranks that are still possible", (0, 1, 2), level=Level.FULL)
    yield pair_table(comparisons)
    yield Note(
        f"Lifts in points; the {100 * comparisons.level:g}% intervals hold for all pairs at once; "
        "a rank is possible unless they show otherwise.",
        level=Level.FULL,
    )


def pair_table(comparisons: Comparisons) -> Table:
    """A row per pair and metric; runs by their numbers, to keep the table narrow."""
    number_of = _numbers(comparisons)
    rows = tuple(
        (
            f"{number_of[pair.b]} over {number_of[pair.a]}",
            str(result.metric),
            points(result.lift),
            result.interval_text(),
            *result.corrected(),
            str(result.claim),
        )
        for pair in comparisons.pairs
        for result in pair.results
    )
    header = ("pair", "metric", "lift", "interval", "p, Holm", "p, max-T", "claim")
    return Table(header, rows, "Every pair", (0, 1, 6), level=Level.FULL)


def _numbers(comparisons: Comparisons) -> dict[str, str]:
    return {name: str(index) for index, name in enumerate(comparisons.names, 1)}


def _ranking_lines(comparisons: Comparisons) -> list[str]:
    """Differences of the protocols pair by pair, unverified fields once."""
    number_of = _numbers(comparisons)
    lines = []
    for pair in comparisons.pairs:
        names = f"{number_of[pair.b]} over {number_of[pair.a]}"
        lines += [f"{names} differs: {entry}" for entry in pair.agreement.differences]
    for pair in comparisons.pairs:
        same = [] if pair.agreement.differences else [_SAME]
        lines += _assumption_lines(pair) or same
    return list(dict.fromkeys(lines))


# -- gates ----------------------------------------------------------------------------------------


def gate_document(result: GateResult) -> Document:
    """Build the document of a gate."""
    name = result.name if result.base is None else f"{result.name} against {result.base}"
    return Document.of(name, _gate_blocks(result, name))


def _gate_blocks(result: GateResult, name: str) -> Iterator[Block]:
    yield Heading(name, result.headline, level=Level.SHORT)
    yield Heading(f"passhat gate: {name}", level=Level.FULL)
    yield Sentence(result.headline, "lead", level=Level.FULL)
    for rule in result.results:
        advice = () if rule.advice is None else (str(rule.advice),)
        what = rule.verdict.sign, rule.outcome, str(rule.rule)
        yield Finding(*what, (rule.evidence, *advice, *rule.notes), level=Level.FULL)
        # A screen says a sentence once: the headline has it.
        evidence = rule.evidence
        if rule.pair is not None and rule.pair.sentences[0] in result.headline:
            evidence = " ".join(rule.pair.sentences[1:])
        details = [text for text in (evidence, *advice) if text and text not in result.headline]
        yield Finding(*what, (*details, *rule.notes), level=Level.SHORT)
    yield from _gate_bar(result)
    yield from dropped_lines(result.dropped)
    yield from dropped_table(result.dropped)
    if result.failures is not None:
        yield from failure_lines(result.failures)
        yield from failure_table(result.failures)
    yield from side_table(result)
    yield from (Sentence(text) for text in result.remarks)
    for note in result.notes:
        yield Sentence("", ending=note) if note.startswith("passhat ") else Note(note)


def _gate_bar(result: GateResult) -> Iterator[Block]:
    """The change with its interval, beside the drop that the gate catches."""
    pair = result.results[0].pair
    if pair is None or result.incomplete:
        return
    detectable = None if result.power is None else result.power.detectable
    yield from change_bar(pair.lead, detectable, Level.BOTH)
