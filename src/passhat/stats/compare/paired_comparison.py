"""compare(): two agents on the same tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from passhat._display import counted, figure, html_table, interval_plot, number, some
from passhat._serialize import Screen
from passhat.errors import Hint, InvalidValue
from passhat.protocol import Alternative
from passhat.stats.clusters import TaskClusters
from passhat.stats.compare.claims import AdjustedFor, Claim, PairVerdict, points
from passhat.stats.compare.comparison import (
    MEAN_SHARE,
    Result,
    Setting,
    SliceResult,
    judge,
    slice_results,
)
from passhat.stats.compare.curves import Flip, LiftCurve, family, lift_curve
from passhat.stats.compare.guard import Agreement, agree, same_metric
from passhat.stats.compare.lift import TOGETHER, cluster_rows, simultaneous_tail, tail_of
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.task_changes import TaskChange, find_changed_tasks
from passhat.stats.compare.these_tasks import can_bound_lift
from passhat.stats.estimate import metric as parse
from passhat.stats.estimate.metrics import Metric
from passhat.stats.estimate.task_values import gap_notes
from passhat.stats.outcomes import Outcomes, Run, Verdict, served_change
from passhat.stats.terms import OptionName, Population, TermOptions, Terms

_ORDER = ("cost", "seconds", "steps", "tokens")


@dataclass(frozen=True, slots=True)
class Use:
    """Usage of a run by one measure, over the attempts that recorded it.

    ``per_solved`` is everything used divided by the attempts that passed, so failed attempts are
    paid for too; ``None`` when nothing passed.
    """

    attempts: int
    per_attempt: float
    per_solved: float | None


@dataclass(frozen=True, slots=True)
class Value:
    """A measure under both agents; ``None`` where a side did not record it."""

    measure: str
    a: Use | None
    b: Use | None

    def __str__(self) -> str:
        sides = (self.a, self.b)
        attempt = " against ".join(figure(use.per_attempt if use else None) for use in sides)
        per_solved = " against ".join(figure(use.per_solved if use else None) for use in sides)
        return f"{self.measure} per attempt {attempt}, per solved task {per_solved}"


def deployment(a: Run, b: Run, tasks: Sequence[str]) -> tuple[Value, ...]:
    """Usage of both on the paired tasks, for every measure that at least one recorded."""
    uses = [measure_use(run, tasks) for run in (a, b)]
    return tuple(
        Value(measure, uses[0].get(measure), uses[1].get(measure))
        for measure in _ORDER
        if measure in uses[0] or measure in uses[1]
    )


def deployment_line(values: Sequence[Value]) -> str:
    """A line for all measures, or a note that there are none."""
    if not values:
        return "neither cost, seconds, steps nor tokens are recorded"
    return "; ".join(map(str, values)) + " (A against B)"


def measure_use(run: Run, tasks: Sequence[str]) -> dict[str, Use]:
    """Usage of a run on some of its tasks, by measure."""
    attempts = run.attempts
    if attempts is None:
        # Sums are over all tasks of a run: valid for the pair only if it shares all of them.
        return _sum_use(run) if len(tasks) == len(run.outcomes) else {}
    shared = set(tasks)
    is_shared = np.array([task in shared for task in attempts.tasks])
    rows = np.repeat(is_shared, np.diff(attempts.starts))
    uses = {}
    for measure, column in attempts.measures.items():
        here = rows & ~np.isnan(column)
        count = int(here.sum())
        if count:
            passes = int((attempts.verdicts[here] == Verdict.PASSED).sum())
            uses[measure] = _use(count, float(column[here].sum()), passes)
    return uses


def _sum_use(run: Run) -> dict[str, Use]:
    sums = {} if run.aggregates is None else run.aggregates.measures
    return {
        name: _use(sums_of.recorded, sums_of.total, sums_of.passed)
        for name, sums_of in sums.items()
    }


def _use(count: int, total: float, solved: int) -> Use:
    return Use(count, total / count, total / solved if solved else None)


TAKES: tuple[OptionName, ...] = ("level", "missing", "allow", "drop_short", "about", "cluster")
"""The options that comparisons use; any other one is refused."""

SCHEMA = "passhat.comparison/1"

Words = str | Metric | Sequence[str | Metric]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Screen):
    """B against A on the tasks they share.

    Attributes
    ----------
    a, b : str
        The names of the runs; every lift is B minus A.
    paired : int
        Tasks in both; ``only_a`` and ``only_b`` list those in one.
    agreement : Agreement
        The known differences between the protocols (allowed), and the fields not recorded.
    results : tuple of Result
        One for each requested metric, about new tasks unless these tasks were requested.
    these_tasks : tuple of Result
        The same about these tasks, where no population was requested; empty otherwise.
    task_changes : tuple of TaskChange
        Tasks that are shown, each by itself, to pass less or more often under B.
    curves : tuple of LiftCurve
        The lift over k with a simultaneous band, for each requested family of metrics.
    slices : tuple of SliceResult
        The same for each value of a slice, corrected for how many there are.
    deployment : tuple of Value
        Cost, seconds, steps, tokens, where recorded; never part of the evidence.
    notes : tuple of str
        Further remarks.
    """

    SCHEMA = SCHEMA

    a: str
    b: str
    paired: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    agreement: Agreement
    results: tuple[Result, ...]
    curves: tuple[LiftCurve, ...] = ()
    slices: tuple[SliceResult, ...] = ()
    sliced_by: str | None = None
    deployment: tuple[Value, ...] = ()
    notes: tuple[str, ...] = ()
    these_tasks: tuple[Result, ...] = ()
    task_changes: tuple[TaskChange, ...] = ()

    @property
    def differing(self) -> tuple[Result, ...]:
        """Results about these tasks whose claim differs from the claim about new tasks."""
        return tuple(
            these
            for new, these in zip(self.results, self.these_tasks, strict=False)
            if new.claim is not these.claim or these.evidence.broken or these.evidence.fixed
        )

    @property
    def verdicts(self) -> tuple[PairVerdict, ...]:
        """For each metric what is shown on these tasks, and whether it carries to new ones."""
        if self.these_tasks:
            pairs = zip(self.these_tasks, self.results, strict=True)
            return tuple(PairVerdict(these.evidence, new.evidence) for these, new in pairs)
        return tuple(
            PairVerdict(result.evidence, None)
            if result.population is Population.THESE_TASKS
            else PairVerdict(None, result.evidence)
            for result in self.results
        )

    @property
    def flips(self) -> tuple[Flip, ...]:
        """Where the ranking flips over k."""
        return tuple(flip for curve in self.curves for flip in curve.flips)

    def find(self, metric: str | Metric) -> Result | None:
        """The result of a metric, if it was asked for."""
        name = str(metric)
        return next((result for result in self.results if str(result.metric) == name), None)

    @property
    def pairing_text(self) -> str:
        """How many tasks are paired, and how many are in one run only."""
        sizes = self.results[0].evidence.unpaired
        if sizes is not None:
            return f"{counted(sizes[0], 'task')} of A and {sizes[1]:,} of B, not paired"
        text = counted(self.paired, "paired task")
        return "; ".join([text, *([self.unshared_text] if self.unshared_text else [])])

    @property
    def unshared_text(self) -> str:
        """How many tasks are in one run only, and which; empty for none."""
        return "; ".join(
            f"{counted(len(tasks), 'task')} only in {name} ({some(tasks, 3)})"
            for name, tasks in ((self.a, self.only_a), (self.b, self.only_b))
            if tasks
        )

    @property
    def deployment_text(self) -> str:
        return deployment_line(self.deployment)

    @property
    def title(self) -> str:
        return f"{self.b} against {self.a}: {self.pairing_text}"

    def plot(self) -> Any:
        """The lifts with their intervals: an Altair chart where Altair is installed, else SVG."""
        rows = [(str(one.metric), one.lift, one.low, one.high) for one in self.results]
        title = f"{self.b} against {self.a}"
        return interval_plot(title, "lift (B minus A)", rows, zero=0.0)

    def _repr_html_(self) -> str:
        rows = [
            (
                str(result.metric),
                number(result.value_a),
                number(result.value_b),
                points(result.lift),
                result.interval_text(),
                result.p_text(),
                f"{result.wins}/{result.losses}/{result.ties}",
                str(result.claim),
            )
            for result in self.results
        ]
        header = ("metric", "A", "B", "lift", "interval", "p", "won/lost/tied", "claim")
        note = " ".join(verdict.sentence for verdict in self.verdicts)
        return html_table(f"B = {self.b} against A = {self.a}", header, rows, note)

    def _as_dict(self) -> dict[str, object]:
        return {
            "a": self.a,
            "b": self.b,
            "tasks": {
                "paired": self.paired,
                "only_a": len(self.only_a),
                "only_b": len(self.only_b),
            },
            "protocol_differences": self.agreement.differences,
            "verdicts": [
                {
                    "metric": verdict.lead.metric,
                    "claim": verdict.claim,
                    "sentence": verdict.sentence,
                }
                for verdict in self.verdicts
            ],
            "results": self.results,
            "these_tasks": self.these_tasks,
            "task_changes": self.task_changes,
            "unverified": self.agreement.unverified,
            "protocols": {"a": self.agreement.a, "b": self.agreement.b},
            "tasks_only_a": self.only_a,
            "tasks_only_b": self.only_b,
            "curves": self.curves,
            "flips": self.flips,
            "slices": self.slices,
            "sliced_by": self.sliced_by,
            "deployment": self.deployment,
            "notes": self.notes,
        }


def compare(
    a: Run | Outcomes,
    b: Run | Outcomes,
    metric: Words = "pass^1",
    terms: Terms | None = None,
    *,
    metric_b: str | Metric | None = None,
    alternative: Alternative | None = None,
    by: str | None = None,
    unpaired: bool = False,
    **options: Unpack[TermOptions],
) -> Comparison:
    """Is B better than A on the tasks they share?

    Options as in :func:`passhat.compare`. Under the policy ``bound`` a claim must hold however the
    missing attempts would have ended. Without a population the results are about new tasks, and
    those about these tasks are given beside them; on a single common task only about that one.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> a = Outcomes.from_counts(1, [1] * 17 + [0] * 10 + [0] * 8 + [1] * 5)
    >>> b = Outcomes.from_counts(1, [1] * 17 + [0] * 10 + [1] * 8 + [0] * 5)
    >>> found = compare(a, b).results[0]
    >>> round(found.lift, 3), round(found.low, 3), round(found.high, 3), str(found.claim)
    (0.075, -0.128, 0.273, 'inconclusive')
    """
    terms = Terms.from_options(options, terms, takes=TAKES)
    if alternative is not None:
        terms = replace(terms, alternative=alternative)
    _refuse_useless_cluster(terms)
    metrics = parse_metrics(metric)
    if metric_b is not None:
        for word in metrics:
            same_metric(word, parse(metric_b))
    run_a, run_b = as_run(a, "A"), as_run(b, "B")
    if unpaired:
        return _compare_unpaired(run_a, run_b, metrics, terms, by)
    judged = _judge_paired(run_a, run_b, metrics, terms)
    whole, pairing, terms, results = judged.whole, judged.pairing, judged.terms, judged.results
    slices: tuple[SliceResult, ...] = ()
    if by is not None:
        slices = slice_results(pairing, metrics, by, terms, judged.agreement, terms.about())
    return Comparison(
        *whole.names,
        paired=len(pairing),
        only_a=whole.only_a,
        only_b=whole.only_b,
        agreement=judged.agreement,
        results=results,
        curves=_curves(pairing, metrics, terms),
        slices=slices,
        sliced_by=by,
        deployment=deployment(run_a, run_b, pairing.a.tasks),
        notes=(
            *_notes(whole, pairing, metrics, terms),
            *cluster_notes(pairing, terms),
            *_disagreements(results),
            *filter(None, [served_change(run_a, run_b)]),
        ),
        these_tasks=judged.these_tasks,
        task_changes=judged.changes,
    )


def results_of(
    a: Run, b: Run, metric: str | Metric, **options: Unpack[TermOptions]
) -> tuple[Result, ...]:
    """The lift of B over A about new tasks and about these, without the lift at every other k."""
    terms = Terms.from_options(options, None, takes=TAKES)
    judged = _judge_paired(a, b, parse_metrics(metric), terms)
    return (*judged.results, *judged.these_tasks)


@dataclass(frozen=True, slots=True)
class _Judged:
    """The results of a paired comparison, and what they were made from."""

    whole: Pairing
    pairing: Pairing
    terms: Terms
    agreement: Agreement
    changes: tuple[TaskChange, ...]
    results: tuple[Result, ...]
    these_tasks: tuple[Result, ...]


def _judge_paired(run_a: Run, run_b: Run, metrics: Sequence[Metric], terms: Terms) -> _Judged:
    whole = pair(run_a.outcomes, run_b.outcomes, _names(run_a, run_b))
    agreement = check_agreement(run_a, run_b, whole, metrics, terms)
    pairing = whole.supporting(metrics, terms.missing, drop_short=terms.drop_short).with_clusters(
        terms.cluster
    )
    has_bounds = all(can_bound_lift(word, pairing, terms) for word in metrics)
    if has_bounds:
        terms = terms.for_tasks(len(pairing))
    population = terms.about()
    changes = _task_changes(pairing, terms)
    results = _results(pairing, metrics, terms, agreement, population, changes)
    these: tuple[Result, ...] = ()
    if terms.population is None and has_bounds:
        these = _results(pairing, metrics, terms, agreement, Population.THESE_TASKS, changes)
    return _Judged(whole, pairing, terms, agreement, changes, results, these)


def _compare_unpaired(
    a: Run, b: Run, metrics: Sequence[Metric], terms: Terms, by: str | None
) -> Comparison:
    from passhat.stats.compare.unpaired import (
        agree_unpaired,
        judge_unpaired,
        note_unpaired,
        refuse_pairs,
    )

    if by is not None:
        raise InvalidValue("slices are compared task by task, and these tasks are not paired.")
    names = _names(a, b)
    a, b = replace(a, name=names[0]), replace(b, name=names[1])
    refuse_pairs(a.outcomes, b.outcomes, allow=terms.allow)
    agreement = agree_unpaired(a, b, metrics, allow=terms.allow)
    results = judge_unpaired(metrics, a, b, terms, agreement)
    tasks_a, tasks_b = set(a.outcomes.tasks), set(b.outcomes.tasks)
    return Comparison(
        *names,
        paired=0,
        only_a=tuple(task for task in a.outcomes.tasks if task not in tasks_b),
        only_b=tuple(task for task in b.outcomes.tasks if task not in tasks_a),
        agreement=agreement,
        results=results,
        notes=note_unpaired(results[0], a.outcomes, b.outcomes, terms),
    )


def _refuse_useless_cluster(terms: Terms) -> None:
    if terms.cluster is not None and terms.population is Population.THESE_TASKS:
        raise InvalidValue(
            "clusters matter for new tasks only: about these tasks nothing is drawn again but the "
            "attempts.",
            hint=Hint("Leave out {cluster}, or ask {about}.", cluster=None, about="new tasks"),
        )


def cluster_notes(pairing: Pairing, terms: Terms) -> tuple[str, ...]:
    """Warnings about the clusters of the paired tasks."""
    if pairing.clusters is None or terms.cluster is None:
        return ()
    return TaskClusters(terms.cluster, pairing.clusters).warnings()


def _task_changes(pairing: Pairing, terms: Terms) -> tuple[TaskChange, ...]:
    """Single tasks, each direction with the error that a gate spends on them."""
    alpha = (1 - MEAN_SHARE) * (1 - terms.level)
    return find_changed_tasks(pairing, terms.missing, alpha, terms.alternative)


def as_run(side: Run | Outcomes, name: str) -> Run:
    """Outcomes become a run of which nothing is recorded."""
    if isinstance(side, Run):
        return side
    if isinstance(side, Outcomes):
        return Run(name, name, side)
    raise InvalidValue(f"a run or outcomes are compared, not {type(side).__name__}.")


def parse_metrics(words: Words) -> tuple[Metric, ...]:
    """The metrics, each once."""
    entries = [words] if isinstance(words, str | Metric) else list(words)
    if not entries:
        raise InvalidValue("at least one metric is needed.")
    return tuple({metric.name: metric for metric in map(parse, entries)}.values())


def _names(a: Run, b: Run) -> tuple[str, str]:
    """Distinct names of the runs."""
    return (a.name, b.name) if a.name != b.name else (f"{a.name} (A)", f"{b.name} (B)")


def check_agreement(
    a: Run, b: Run, pairing: Pairing, metrics: Sequence[Metric], terms: Terms
) -> Agreement:
    """Hold both protocols against each other, under the policy of this comparison."""
    # The same policy on both sides here, independent of the policies of the runs.
    protocol_a, protocol_b = (replace(run.protocol, missing=str(terms.missing)) for run in (a, b))
    return agree(protocol_a, protocol_b, pairing, metrics, allow=terms.allow)


def _results(
    pairing: Pairing,
    metrics: Sequence[Metric],
    terms: Terms,
    agreement: Agreement,
    population: Population,
    changes: tuple[TaskChange, ...],
) -> tuple[Result, ...]:
    alone = tail_of(terms.level, terms.alternative)
    count = len(metrics)
    if population is Population.NEW_TASKS:
        columns = [pairing.differences(word, terms.missing).values for word in metrics]
        rows = cluster_rows(np.stack(columns, axis=1), pairing.clusters)
        tail = simultaneous_tail(rows, terms.level, terms.alternative)
        adjustment = f"simultaneous over {count} metrics by {TOGETHER}" if count > 1 else ""
    else:
        tail = alone / count
        adjustment = f"Bonferroni over {count} metrics" if count > 1 else ""
    setting = Setting(
        pairing.names,
        agreement,
        AdjustedFor(count, "metrics"),
        tail,
        adjustment,
        changes if population is Population.THESE_TASKS else (),
    )
    return tuple(judge(word, pairing, terms, setting, population) for word in metrics)


def _curves(pairing: Pairing, metrics: Sequence[Metric], terms: Terms) -> tuple[LiftCurve, ...]:
    families = {family(word): word for word in metrics}
    curves = (
        lift_curve(pairing, word, terms.missing, level=terms.level) for word in families.values()
    )
    return tuple(curve for curve in curves if curve is not None)


def _notes(
    whole: Pairing, pairing: Pairing, metrics: Sequence[Metric], terms: Terms
) -> tuple[str, ...]:
    notes = []
    left_out = len(whole) - len(pairing)
    if left_out:
        largest = max(word.k for word in metrics)
        notes.append(
            f"{counted(left_out, 'paired task')} with fewer than {largest} attempts on one side "
            "left out"
        )
    missing = [side.total_missing for side in (pairing.a, pairing.b)]
    if any(missing):
        notes.append(
            f"attempts without a verdict: {missing[0]:,} in {pairing.names[0]}, {missing[1]:,} in "
            f"{pairing.names[1]}; policy {terms.missing}"
        )
    for name, side in zip(pairing.names, (pairing.a, pairing.b), strict=True):
        notes += [f"{name}: {note}" for word in metrics for note in gap_notes(side, word)]
    return tuple(notes)


def _disagreements(results: Sequence[Result]) -> Iterator[str]:
    """Results whose small p-value and interval seem to disagree, explained."""
    for result in results:
        small = result.p_value is not None and result.p_value <= 1 - result.level
        if result.claim is Claim.INCONCLUSIVE and small:
            yield (
                f"{result.metric}: the p-value is small and yet the interval includes zero, since "
                "it leaves room for breaks that were not seen; the interval decides"
            )
