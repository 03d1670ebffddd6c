"""The judge of a run: its error from labels, and numbers that are corrected for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from passhat._display import counted, percent, percent_range
from passhat._serialize import Plain
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Level,
    Note,
    Section,
    Sentence,
    Table,
    upper_first,
)
from passhat.reporting.view import RunReport, estimate_text
from passhat.stats.estimate import metric
from passhat.stats.estimate.metrics import Delta, Metric, PassAt, PassHat, Rate
from passhat.stats.labels.agreement import (
    FEWEST_VOTED_TASKS,
    NoiseShares,
    count_voted_tasks,
    share_noise,
)
from passhat.stats.outcomes import Run
from passhat.stats.terms import Population, Terms

if TYPE_CHECKING:
    # At run time in the functions that need them: most runs have no label.
    from passhat.stats.labels.correction import Corrected, Correction
    from passhat.stats.labels.judge_error import (
        AnchorCheck,
        ErrorRate,
        JudgeCheck,
        JudgeError,
        VariantFlips,
    )
    from passhat.stats.labels.label_plan import LabelPlan
    from passhat.stats.labels.lifts import CorrectedLift

_METHOD_WORDS = {
    "whole tasks": "labels of whole tasks, nothing assumed about the errors",
    "errors": "the judge's error rates, if errors strike attempts of all tasks alike",
}


def judge_facts(run: Run) -> JudgeError | None:
    """The judge's error; ``None`` for a run without labels."""
    if run.labels is None or not run.labels.attempts:
        return None
    from passhat.stats.labels.judge_error import judge_error

    return judge_error(run.outcomes, run.labels)


def judge_blocks(run: RunReport) -> Iterator[Block]:
    """The judge's error in one line and what it does to pass^k; all of it in the full form."""
    error = cast("JudgeError | None", run.sections.get("judge"))
    if error is None:
        return
    labels = error.labels
    yield Sentence(f"Judge: {_rates_text(error)}. {meaning_text(error, run.top_k)}")
    entries = [
        ("Judge", f"{counted(labels.attempts, 'label')} at {counted(len(labels.tasks), 'task')}")
    ]
    entries += [("Judge", f"drawn: {draw}") for draw in labels.draws]
    if labels.people > 1:
        agreed = labels.agreement
        alpha = "no attempt labeled twice" if agreed is None else f"{agreed:.2f}"
        entries.append(("Judge", f"{labels.people} people, Krippendorff's alpha {alpha}"))
    entries.append(("Judge", _alike_text(error)))
    if error.weighted:
        entries.append(("Judge", "weighted: passes and failures were labeled in other shares"))
    yield Facts(tuple(entries), level=Level.FULL)
    for name, parts in error.groups.items():
        rows = tuple(
            (value, _rate_text(passes), _rate_text(failures))
            for value, (passes, failures) in parts.items()
        )
        header = (name, "false passes", "false failures")
        yield Table(header, rows, f"The judge's errors by {name}", level=Level.FULL)
    if error.categories:
        yield Table(
            ("failure", "right after all"),
            tuple((why, _rate_text(rate)) for why, rate in error.categories.items()),
            "The judge's failures that people call right, by category",
            level=Level.FULL,
        )


def anchor_facts(run: Run) -> AnchorCheck | None:
    """How the judge of a run judges labeled attempts of an earlier one; ``None`` without any."""
    if not run.anchors:
        return None
    from passhat.stats.labels.judge_error import AnchorCheck

    return AnchorCheck.of(run.anchors)


def anchor_blocks(run: RunReport) -> Iterator[Block]:
    """A warning where the judge has drifted; in the full form also where it has not."""
    check = cast("AnchorCheck | None", run.sections.get("anchors"))
    if check is None:
        return
    drifts = check.to_failed + check.to_passed
    verb = "differs" if drifts == 1 else "differ"
    yield Sentence(
        f"Anchors: of {counted(check.anchors, 'labeled attempt')} of an earlier run that this "
        f"judge judged again, {counted(drifts, 'verdict')} {verb} "
        f"({check.to_failed} now failed, {check.to_passed} now passed); {check.right_then} were "
        f"right then, {check.right_now} are now.",
        "warning" if drifts else "plain",
        level=Level.BOTH if drifts else Level.FULL,
    )


def noise_facts(run: Run) -> NoiseShares | None:
    """The judge's share of the disagreement within tasks, where it voted several times."""
    return share_noise(run.judge_votes) if run.judge_votes else None


def noise_blocks(run: RunReport) -> Iterator[Block]:
    """One line on where the disagreement comes from, and what would reduce it."""
    noise = run.sections.get("noise")
    if not isinstance(noise, NoiseShares):
        tasks = count_voted_tasks(run.run.judge_votes)
        if 0 < tasks < FEWEST_VOTED_TASKS:
            yield Sentence(
                f"Noise: the judge voted several times on several attempts of "
                f"{counted(tasks, 'task')}; its share of the disagreement is told from "
                f"{FEWEST_VOTED_TASKS} tasks on."
            )
        return
    advice = "re-judging buys little, re-running does"
    if noise.low > 0.5:
        advice = "more votes on each attempt help more than more attempts"
    elif noise.high > 0.5:
        advice = "whether to re-judge or to re-run is not settled"
    yield Sentence(
        f"Noise: {percent(noise.judge, 0)} ({percent_range(noise.low, noise.high)}) of the "
        f"disagreement within tasks is the judge's: {advice}. It contradicts itself on "
        f"{noise.contradicted:,} of {counted(noise.attempts, 'attempt')}."
    )
    yield Note(
        "The rest of the disagreement is the agent's and, where a suite has one, its simulated "
        "user's; those two are not told apart.",
        level=Level.FULL,
    )


def _rates_text(error: JudgeError) -> str:
    return (
        f"fails {_rate_text(error.false_failures)} of right attempts, "
        f"passes {_rate_text(error.false_passes)} of wrong ones"
    )


def _rate_text(rate: ErrorRate) -> str:
    if rate.rate is None:
        return "an unknown share (none labeled)"
    ends = percent_range(rate.low, rate.high)
    return f"{percent(rate.rate, 1)} ({ends}; {rate.errors} of {rate.labeled})"


def meaning_text(error: JudgeError, k: int) -> str:
    """A sentence on pass^k of an agent that is always right, as this judge reads it."""
    rate = error.false_failures
    if rate.rate is None:
        return "No right attempt is labeled, so what that does to pass^k is unknown."
    ends = percent_range((1 - rate.high) ** k, (1 - rate.low) ** k)
    return (
        f"An agent that is always right would read pass^{k} = {percent((1 - rate.rate) ** k, 0)} "
        f"({ends}) by this judge, if its errors strike all tasks alike."
    )


def _alike_text(error: JudgeError) -> str:
    test = error.alike
    if test.p_value is None:
        return "too few errors are labeled to test whether they depend on the task"
    found = (
        f"{counted(test.pairs, 'pair')} of errors at the same task, {test.expected_pairs:.1f} "
        f"expected at random, p = {test.p_value:.3f}"
    )
    if test.is_rejected:
        return f"errors depend on the task ({found})"
    if test.is_doubtful:
        return f"errors may depend on the task ({found})"
    return f"errors look alike over tasks ({found})"


@dataclass(frozen=True, slots=True)
class CorrectedReport(Plain):
    """Corrected estimates of a run, each beside the judge's."""

    correction: Correction
    estimates: tuple[Corrected, ...]


def correct_run(
    run: Run, words: Iterable[str | Metric], terms: Terms, correction: str, *, short: bool = False
) -> CorrectedReport:
    """Correct every metric of a report that labels can correct, about both populations."""
    from passhat.stats.labels.correction import Correction, correct
    from passhat.stats.labels.lifts import require_labels

    kinds = (PassHat, PassAt, Rate, Delta)
    metrics = [parsed for word in words if isinstance(parsed := metric(word), kinds)]
    main = terms.for_tasks(len(run.outcomes)).about()
    populations = dict.fromkeys([main] if short else [main, Population.THESE_TASKS])
    labels = require_labels(run)
    return CorrectedReport(
        Correction.of(correction),
        tuple(
            correct(run.outcomes, labels, one, terms, correction=correction, about=about)
            for about in populations
            for one in metrics
            if not (isinstance(one, Delta) and one.k == 1)
        ),
    )


def corrected_headline(run: RunReport) -> str:
    """The first sentence of a report by corrected numbers; empty where nothing is corrected."""
    report = run.sections.get("corrected")
    if not isinstance(report, CorrectedReport) or not report.estimates:
        return ""
    return replace(run, estimates=tuple(one.estimate for one in report.estimates)).headline


def corrected_blocks(run: RunReport) -> Iterator[Block]:
    """The corrected numbers, with the judge's beside them."""
    report = run.sections.get("corrected")
    if isinstance(report, CorrectedReport):
        yield from corrected_tables(report)


def corrected_tables(report: CorrectedReport) -> Iterator[Block]:
    """A table of corrected numbers for each population, and what they rest on."""
    first = report.estimates[0]
    ends: list[list[tuple[float | None, float | None]]] = []
    for population in dict.fromkeys(one.estimate.population for one in report.estimates):
        part = [one for one in report.estimates if one.estimate.population is population]
        ends.append([(one.estimate.low, one.estimate.high) for one in part])
        if ends[0] == ends[-1] and len(ends) > 1:
            yield Note(
                f"For {population} the intervals are the same: which tasks were labeled varies no "
                "less than which tasks there are.",
                level=Level.FULL,
            )
            continue
        level = f"{100 * (part[0].estimate.level or 0):g}%"
        yield Table(
            ("metric", "corrected", "by the judge alone"),
            tuple(
                (str(one.estimate.metric), estimate_text(one.estimate), estimate_text(one.judged))
                for one in part
            ),
            f"Corrected by labels: {level} interval for {population}",
            level=Level.BOTH if population is first.estimate.population else Level.FULL,
        )
    yield Note(f"Corrected by {_METHOD_WORDS[report.correction]}: {rests_text(first)}.")
    for note in warnings_of(report.estimates):
        yield Sentence(f"{upper_first(note)}.")


def rests_text(corrected: Corrected) -> str:
    """The labels that a corrected number rests on."""
    if corrected.correction == "whole tasks":
        tasks = f"{counted(corrected.labeled_tasks, 'task')} of {corrected.estimate.tasks:,}"
        labels = counted(corrected.labels, "label")
        if corrected.skipped:
            return f"{tasks} looked at whole ({labels}, {corrected.skipped:,} attempts without one)"
        return f"{tasks} labeled whole ({labels})"
    errors = corrected.errors
    assert errors is not None
    return (
        f"{counted(corrected.labels, 'label')}, false passes {percent(errors.best.a, 1)}, false "
        f"failures {percent(errors.best.b, 1)}"
    )


def warnings_of(estimates: Sequence[Corrected]) -> tuple[str, ...]:
    """Notes of the correction itself, each once."""
    pairs = ((note, one) for one in estimates for note in one.estimate.notes)
    return tuple(dict.fromkeys(note for note, one in pairs if note not in one.judged.notes))


def correct_lifts(
    a: Run, b: Run, words: Iterable[str], terms: Terms, correction: str
) -> tuple[CorrectedLift, ...]:
    """Correct the lift of every metric, about the population of the terms."""
    from passhat.stats.labels.lifts import LabeledSide, correct_lift

    sides = LabeledSide.of(a), LabeledSide.of(b)
    return tuple(correct_lift(*sides, word, terms, correction) for word in words)


def with_corrected_lifts(
    document: Document, lifts: Sequence[CorrectedLift], names: tuple[str, str]
) -> Document:
    """The document of a comparison, with the corrected lifts before the judge's own."""
    corrected = (*_lift_blocks(lifts, names), Note("From here on by the judge alone."))
    return Document(document.title, (Section("corrected", corrected), *document.sections))


def _lift_blocks(lifts: Sequence[CorrectedLift], names: tuple[str, str]) -> Iterator[Block]:
    for lift in lifts:
        low, high = (f"{100 * end:+.1f}" for end in (lift.low, lift.high))
        yield Sentence(
            f"Corrected by labels: {_lift_claim(lift, names)} {lift.metric} "
            f"{100 * lift.lift:+.1f} points ({low} to {high}; {100 * lift.level:g}%, "
            f"{lift.population}). By the judge alone: {100 * lift.judged:+.1f}.",
            "lead",
        )
        yield Note(f"{_METHOD_WORDS[lift.correction]}: {lift.basis}.".capitalize())
        yield from (Sentence(f"{upper_first(note)}.") for note in lift.notes)


def _lift_claim(lift: CorrectedLift, names: tuple[str, str]) -> str:
    a, b = names
    if lift.low > 0:
        return f"{b} is better than {a}."
    if lift.high < 0:
        return f"{b} is worse than {a}."
    return f"no difference between {a} and {b} is shown."


def label_plan_document(plan: LabelPlan) -> Document:
    """Build the plan of labels: today's half-width, and what more of each would give."""

    def points(width: float) -> str:
        return f"{100 * width:.1f}"

    def blocks() -> Iterator[Block]:
        basis = f"{counted(plan.labels, 'label')} of {counted(plan.labeled_tasks, 'whole task')}"
        ideal = f"all {plan.tasks:,} tasks were labeled whole"
        if plan.correction == "errors":
            basis = f"error rates from {counted(plan.labels, 'label')}"
            ideal = "the judge's error rates were known"
        yield Sentence(
            f"{plan.metric} corrected by {basis}: {points(plan.half_width)} points either "
            f"way ({points(plan.judged_half_width)} by the judge alone, its errors not counted).",
            "lead",
        )
        yield Sentence(f"{percent(plan.label_share, 0)} of that would go if {ideal}.")
        rows = tuple(
            (
                *(f"{n:,}" if n else "" for n in (step.more_labels, step.more_attempts)),
                points(step.half_width),
            )
            for step in plan.steps
        )
        header = ("more labels", "more attempts at new tasks", "points either way")
        yield Table(header, rows, left=())
        if plan.goal is not None:
            yield Sentence(_goal_text(plan))

    return Document.of(f"labels for {plan.metric}", blocks())


def _goal_text(plan: LabelPlan) -> str:
    goal = f"{100 * (plan.goal or 0):g} points either way"
    if plan.goal_labels is not None:
        if not plan.goal_labels:
            return f"{goal}: reached today."
        kind = "attempts" if plan.correction == "errors" else "whole tasks"
        return f"{goal}: {counted(plan.goal_labels, 'more label')} of {kind}."
    if plan.goal_tasks is None:
        return f"{goal}: not reached by any suite."
    attempts = round(plan.goal_tasks * plan.attempts_per_task)
    return (
        f"{goal}: labels of these {plan.tasks:,} tasks are not enough; about "
        f"{counted(plan.goal_tasks, 'task')} with {counted(attempts, 'attempt')}, all labeled."
    )


def judge_check_document(check: JudgeCheck) -> Document:
    """Build the document of ``passhat judge-check``."""
    return Document.of(f"judge of {check.run}", _check_blocks(check))


def _check_blocks(check: JudgeCheck) -> Iterator[Block]:
    drift = check.drift
    if not drift.attempts:
        yield Sentence(
            f"None of {counted(check.skipped, 'attempt')} could be judged again; passhat regrade "
            "--dry-run says why.",
            "warning",
        )
        return
    flips = drift.to_failed + drift.to_passed
    yield Sentence(
        f"{counted(drift.attempts, 'answer')} judged again as they are: "
        f"{counted(flips, 'verdict')} differ from those of the run "
        f"({drift.to_failed} now failed, {drift.to_passed} now passed; "
        f"{percent_range(drift.low, drift.high)}).",
        "warning" if drift.low > 0.02 else "lead",
    )
    if check.anchors:
        yield Sentence(
            f"Anchors: of {counted(check.anchors, 'labeled attempt')} the judge got "
            f"{check.right_then} right then and {check.right_now} now."
        )
    rows = tuple(_flip_row(variant) for variant in check.variants)
    header = ("answer", "judged", "now failed", "now passed", "flips")
    yield Table(header, rows, "The same content in another form, against the answer as it is")
    yield Note(f"{100 * check.level:g}% intervals. Nothing was stored.")
    if check.skipped:
        yield Sentence(f"{counted(check.skipped, 'attempt')} could not be judged again.")


def _flip_row(variant: VariantFlips) -> tuple[str, ...]:
    return (
        variant.variant,
        f"{variant.attempts:,}",
        f"{variant.to_failed:,}",
        f"{variant.to_passed:,}",
        f"{percent(variant.rate, 0)} ({percent_range(variant.low, variant.high)})",
    )
