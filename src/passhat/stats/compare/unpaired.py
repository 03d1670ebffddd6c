"""Two runs on different tasks of one pool: a lift about new tasks without pairs.

Both sides are samples of tasks, so each has Gamma weights of its own and one unseen task of its
own, at the end of the range that is worse for the claim: Gaffke's bound on either side, drawn
together. The lower end of the lift is a quantile of

    (sum w_b u_b) / (sum w_b + e_b)  -  (sum w_a u_a + e_a) / (sum w_a + e_a) .

Tasks differ more than agents do, so that without pairs the interval is much wider.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat._display import counted
from passhat.errors import Hint, InvalidValue, NotComparable
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.claims import AdjustedFor, Evidence, Method
from passhat.stats.compare.comparison import Result
from passhat.stats.compare.guard import Agreement, find_score_difference
from passhat.stats.compare.lift import Interval, LiftSample, hull, tail_of
from passhat.stats.estimate.intervals.new_tasks import group_by_cluster
from passhat.stats.estimate.metrics import Metric
from passhat.stats.estimate.task_values import FilledOutcomes, verdict_twin
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run
from passhat.stats.outcomes.table import TaskNumbers
from passhat.stats.terms import Population, Terms

METHOD = "Gaffke's bound on either side, drawn together (seed 20261118)"

_SEED = 20_261_118
_DRAWS = 20_000
_BLOCK = 1_000
_CORRELATION = 0.75
"""How alike two agents find the same tasks, as plans assume it."""
_MOST_SHARED = 0.5
_SAME_WIDTH = 1.05
_POOL = ("suite_fingerprint", "tests_fingerprint", "attempts", "missing")
"""Fields that differ by intention: other tasks of the pool; metrics are unbiased at any n."""


def agree_unpaired(a: Run, b: Run, metrics: Sequence[Metric], *, allow: bool) -> Agreement:
    """The differences of the protocols, apart from the tasks that were drawn."""
    entries = [entry for entry in a.protocol.differences(b.protocol) if entry.field not in _POOL]
    entries += find_score_difference(a.outcomes, b.outcomes, metrics)
    known_differences = tuple(entry for entry in entries if entry.known)
    if known_differences and not allow:
        text = "; ".join(map(str, known_differences))
        raise NotComparable(
            f"{a.name} and {b.name} were not run under the same protocol: {text}.",
            differences=[entry.field for entry in known_differences],
            hint=Hint("Compare them all the same with {allow}.", allow=True),
        )
    unverified = tuple(entry for entry in entries if not entry.known)
    return Agreement(a.protocol.digest, b.protocol.digest, known_differences, unverified)


def judge_unpaired(
    metrics: Sequence[Metric], a: Run, b: Run, terms: Terms, agreement: Agreement
) -> tuple[Result, ...]:
    """The lift of every metric; several share the error (Bonferroni)."""
    if terms.population is Population.THESE_TASKS:
        raise InvalidValue(
            "runs on different tasks say nothing about the same tasks again.",
            hint=Hint("Leave out {about}: the claim is about new tasks.", about=None),
        )
    tail = tail_of(terms.level, terms.alternative) / len(metrics)
    return tuple(_judge(word, a, b, terms, agreement, tail, len(metrics)) for word in metrics)


def _judge(
    word: Metric, a: Run, b: Run, terms: Terms, agreement: Agreement, tail: float, count: int
) -> Result:
    twin = verdict_twin(word, a.outcomes, b.outcomes)
    is_bound = terms.missing is MissingPolicy.BOUND
    plain = terms.missing.completion
    passed = Completion.AS_PASSED if is_bound else plain
    low_a, high_a, low_b, high_b = (
        _view(run.outcomes, twin, way, terms) for run in (a, b) for way in (plain, passed)
    )
    value_a, value_b = (float(view.per_task(twin).mean()) for view in (low_a, low_b))
    best_a, best_b = (float(view.per_task(twin).mean()) for view in (high_a, high_b))
    lift = value_b - value_a
    low = _quantile(low_b, high_a, twin, terms, tail)
    high = -_quantile(low_a, high_b, twin, terms, tail)
    ends = {"greater": (low, 1.0), "less": (-1.0, high), "two-sided": (low, high)}
    interval = hull([Interval(*ends[terms.alternative]), Interval(lift, lift)])
    sizes = len(low_a.outcomes), len(low_b.outcomes)
    missing = (a.outcomes.total_missing + b.outcomes.total_missing) if is_bound else 0
    evidence = Evidence(
        word,
        a.name,
        b.name,
        value_a=value_a,
        value_b=value_b,
        lift=lift,
        interval=interval,
        level=terms.level,
        alternative=terms.alternative,
        tasks=sum(sizes),
        population=Population.NEW_TASKS,
        agreement=agreement,
        looked=AdjustedFor(count, "metrics"),
        missing=missing,
        prospect=None,
        undecided=value_b - best_a <= 0 <= best_b - value_a and missing > 0,
        attempts=int(np.median(np.concatenate([a.outcomes.n, b.outcomes.n]))),
        highest_a=best_a if is_bound and a.outcomes.total_missing else None,
        highest_b=best_b if is_bound and b.outcomes.total_missing else None,
        unjudged=tuple(run.name for run in (a, b) if not run.outcomes.scored),
        unpaired=sizes,
    )
    adjusted = f"Bonferroni over {count} metrics" if count > 1 else ""
    return Result(
        metric=word,
        lift=lift,
        low=interval.low,
        high=interval.high,
        level=terms.level,
        p_value=None,
        alternative=terms.alternative,
        wins=0,
        losses=0,
        ties=0,
        evidence=evidence,
        method=Method(METHOD, adjusted, "not computed, no task is paired"),
        value_a=value_a,
        value_b=value_b,
        low_alone=interval.low,
        high_alone=interval.high,
        lift_lowest=value_b - best_a,
        lift_highest=best_b - value_a,
        looked_at=count,
    )


def _view(outcomes: Outcomes, word: Metric, way: Completion, terms: Terms) -> FilledOutcomes:
    return FilledOutcomes(outcomes, way).supporting(word, drop_short=terms.drop_short)


def _quantile(
    better: FilledOutcomes, worse: FilledOutcomes, word: Metric, terms: Terms, tail: float
) -> float:
    """The lower bound of the first mean minus the second."""
    # One generator for each side, so that exchanging the sides exchanges the ends.
    first = _draw_means(better, word, terms, unseen=0.0, seed=_SEED)
    second = _draw_means(worse, word, terms, unseen=1.0, seed=_SEED + 1)
    return float(np.quantile(first - second, min(tail, 0.5)))


def _draw_means(
    view: FilledOutcomes, word: Metric, terms: Terms, *, unseen: float, seed: int
) -> FloatArray:
    """Weighted means of the tasks with one unseen task (or cluster) at the given value."""
    values = view.per_task(word)
    if terms.cluster is None:
        cells, counts = np.unique(np.round(values, 12), return_counts=True)
        shapes, sizes, typical = counts.astype(np.float64), np.ones(len(cells)), 1.0
    else:
        clusters = group_by_cluster(values[None], np.array(view.outcomes.label(terms.cluster)))
        cells, sizes, typical = clusters.means[0], clusters.sizes, clusters.typical
        shapes = np.ones(len(cells))
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(_DRAWS // _BLOCK):
        weights = rng.gamma(shapes, size=(_BLOCK, len(cells))) * sizes
        extra = rng.exponential(size=_BLOCK) * typical
        means.append((weights @ cells + extra * unseen) / (weights.sum(axis=1) + extra))
    return np.concatenate(means)


def count_shared(a: Outcomes, b: Outcomes) -> int:
    """Tasks in both runs; tasks without ids are never the same."""
    if isinstance(a.tasks, TaskNumbers) and isinstance(b.tasks, TaskNumbers):
        return 0
    return len(set(a.tasks) & set(b.tasks))


def refuse_pairs(a: Outcomes, b: Outcomes, *, allow: bool) -> None:
    """Refuse runs that share most tasks: of two tests, the one that suits could be chosen."""
    shared, smaller = count_shared(a, b), min(len(a), len(b))
    if shared > _MOST_SHARED * smaller and not allow:
        raise InvalidValue(
            f"{counted(shared, 'task')} of {smaller:,} are in both runs, so that these can be "
            "compared task by task.",
            hint=Hint(
                "Leave out {unpaired}: it is for runs on different tasks. If the same ids are "
                "different tasks, say so with {allow}.",
                unpaired=None,
                allow=True,
            ),
        )


def note_unpaired(result: Result, a: Outcomes, b: Outcomes, terms: Terms) -> tuple[str, ...]:
    """The price of comparing without pairs."""
    shared = count_shared(a, b)
    both = f", {shared:,} of them in both" if shared else ""
    note = f"not paired: {counted(len(a), 'task')} against {len(b):,} tasks of the same pool{both}"
    times = _compare_width(result, a, b, terms)
    if times is None or times < _SAME_WIDTH:
        return (note,)
    return (
        f"{note}; on the same {min(len(a), len(b)):,} tasks the interval would be about "
        f"{times:.1f} times narrower (agents that correlate {_CORRELATION:g} over tasks)",
    )


def _compare_width(result: Result, a: Outcomes, b: Outcomes, terms: Terms) -> float | None:
    """How many times wider the interval is than that of pairs which correlate as plans assume."""
    if terms.cluster is not None or terms.alternative != "two-sided":
        return None
    sides = [
        _view(side, result.metric, terms.missing.completion, terms).per_task(result.metric)
        for side in (a, b)
    ]
    size = min(map(len, sides))
    ranks = (np.arange(size) + 0.5) / size
    first, second = (np.quantile(values, ranks) for values in sides)
    # Pairs of equal rank correlate nearly perfectly; every fourth takes part in an exchange.
    exchanged = np.arange(0, size, round(1 / (1 - _CORRELATION)))
    second[exchanged] = np.random.default_rng(_SEED).permutation(second[exchanged])
    tail = tail_of(terms.level, terms.alternative) / result.looked_at
    interval = LiftSample.of(second - first).interval(tail, terms.alternative)
    return (result.high - result.low) / (interval.high - interval.low)
