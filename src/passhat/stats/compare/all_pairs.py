"""Three or more agents on the same tasks: every pair, and the ranks that are still possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Unpack

import numpy as np

from passhat._display import counted, html_table, number
from passhat._serialize import Plain, Screen
from passhat.errors import InvalidValue
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.claims import AdjustedFor
from passhat.stats.compare.comparison import MEAN_SHARE, Result, Setting, judge
from passhat.stats.compare.guard import Agreement
from passhat.stats.compare.lift import TOGETHER, cluster_rows, simultaneous_tail, tail_of
from passhat.stats.compare.paired_comparison import (
    TAKES,
    Comparison,
    Words,
    as_run,
    check_agreement,
    cluster_notes,
    deployment,
    parse_metrics,
)
from passhat.stats.compare.pairing import Differences, Pairing, common_tasks, pair, restrict
from passhat.stats.compare.ranking import rank_agents
from passhat.stats.compare.significance import holm, max_t
from passhat.stats.estimate.metrics import Metric
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import Population, TermOptions, Terms

SCHEMA = "passhat.comparisons/1"

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RankSet(Plain):
    """The possible ranks of an agent, best to worst, with joint confidence for all agents."""

    WRITTEN = ("metric", "name", "value", "ranks")

    metric: Metric
    name: str
    value: float
    best: int
    worst: int

    def __str__(self) -> str:
        return str(self.best) if self.best == self.worst else f"{self.best} to {self.worst}"

    @property
    def ranks(self) -> list[int]:
        """Every rank that the agent may have."""
        return list(range(self.best, self.worst + 1))


@dataclass(frozen=True, slots=True, repr=False)
class Comparisons(Screen):
    """All pairs of three or more runs, on the tasks that all of them share."""

    SCHEMA = SCHEMA

    names: tuple[str, ...]
    tasks: int
    left_out: tuple[int, ...]
    level: float
    pairs: tuple[Comparison, ...]
    ranks: tuple[RankSet, ...]

    @property
    def pairing_text(self) -> str:
        """How many tasks all runs share, and how many each has besides."""
        text = f"{counted(self.tasks, 'task')} shared by all {len(self.names)} runs"
        parts = [
            f"{counted(count, 'task')} more in {name}"
            for name, count in zip(self.names, self.left_out, strict=True)
            if count
        ]
        return "; ".join([text, *parts])

    @property
    def title(self) -> str:
        return f"{len(self.names)} runs, {len(self.pairs)} pairs: {self.pairing_text}"

    def _repr_html_(self) -> str:
        rows = [(str(e.metric), str(e), e.name, number(e.value)) for e in self.ranks]
        header = ("metric", "possible ranks", "run", "value")
        return html_table(self.pairing_text, header, rows)

    def _as_dict(self) -> dict[str, object]:
        return {
            "runs": self.names,
            "tasks": {"shared": self.tasks, "left_out": self.left_out},
            "level": self.level,
            "ranks": self.ranks,
            "comparisons": self.pairs,
        }


def compare_all(
    runs: Iterable[Run | Outcomes],
    metric: Words = "pass^1",
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> Comparisons:
    """Compare every pair of several runs.

    The intervals hold for all pairs and metrics at once; p-values are given as they are, with
    Holm's correction and with max-T over sign-flips. Every comparison is two-sided: among many
    agents there is no direction to choose beforehand.

    Gives the set of ranks that each agent may have: a run is ranked below another only where their
    pair is shown to differ, corrected for all pairs by Holm.
    """
    terms = replace(Terms.from_options(options, terms, takes=TAKES), alternative="two-sided")
    metrics = parse_metrics(metric)
    sides = [as_run(run, f"run {index}") for index, run in enumerate(runs, 1)]
    _check(sides)
    sides_outcomes = _restrict_sides(sides, metrics, terms)
    terms = terms.for_tasks(len(sides_outcomes[0]))
    pairings = {
        (i, j): pair(
            sides_outcomes[i], sides_outcomes[j], (sides[i].name, sides[j].name)
        ).with_clusters(terms.cluster)
        for i, j in combinations(range(len(sides)), 2)
    }
    agreements = {
        (i, j): check_agreement(sides[i], sides[j], pairing, metrics, terms)
        for (i, j), pairing in pairings.items()
    }
    results = _results(pairings, metrics, terms, agreements)
    pairs = tuple(
        Comparison(
            *pairing.names,
            paired=len(pairing),
            only_a=(),
            only_b=(),
            agreement=agreements[i, j],
            results=results[i, j],
            deployment=deployment(sides[i], sides[j], pairing.a.tasks),
            notes=cluster_notes(pairing, terms),
        )
        for (i, j), pairing in pairings.items()
    )
    tasks = len(sides_outcomes[0])
    return Comparisons(
        tuple(run.name for run in sides),
        tasks,
        tuple(len(run.outcomes) - tasks for run in sides),
        terms.level,
        pairs,
        _ranks(metrics, [run.name for run in sides], sides_outcomes, terms),
    )


def _check(sides: Sequence[Run]) -> None:
    if len(sides) < 3:
        raise InvalidValue(
            f"three or more runs are ranked, not {len(sides)}.", hint="compare() takes two."
        )
    names = [run.name for run in sides]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidValue(f"two runs are called {twice[0]!r}.", hint="Give each its own name.")


def _restrict_sides(
    sides: Sequence[Run], metrics: Sequence[Metric], terms: Terms
) -> list[Outcomes]:
    """Every run on the tasks that all of them share and that support the largest k."""
    shared = common_tasks([run.outcomes for run in sides], [run.name for run in sides])
    restricted_sides = [restrict(run.outcomes, shared) for run in sides]
    if terms.drop_short:
        largest = max(word.k for word in metrics)
        fewest = np.min(
            [side.counts(terms.missing.completion)[0] for side in restricted_sides], axis=0
        )
        restricted_sides = [side.take(fewest >= largest) for side in restricted_sides]
    for run, side in zip(sides, restricted_sides, strict=True):
        # Paired with itself, a run is refused for its own short tasks and under its own name.
        Pairing(side, side, (), (), (run.name, run.name)).supporting(
            metrics, terms.missing, drop_short=False
        )
    return restricted_sides


def _results(
    pairings: Mapping[Pair, Pairing],
    metrics: Sequence[Metric],
    terms: Terms,
    agreements: Mapping[Pair, Agreement],
) -> dict[Pair, tuple[Result, ...]]:
    """Every metric of every pair, each interval and p-value corrected for all of them."""
    keys = [(key, word) for key in pairings for word in metrics]
    population = terms.about()
    what = "pairs" if len(metrics) == 1 else "results over pairs and metrics"
    differences = [pairings[key].differences(word, terms.missing) for key, word in keys]
    columns = np.stack([entry.values for entry in differences], axis=1)
    if population is Population.NEW_TASKS:
        rows = cluster_rows(columns, next(iter(pairings.values())).clusters)
        tail = simultaneous_tail(rows, terms.level, terms.alternative)
        adjustment = f"simultaneous over {len(keys)} {what} by {TOGETHER}"
    else:
        tail = MEAN_SHARE * tail_of(terms.level, terms.alternative) / len(keys)
        adjustment = f"Bonferroni over {len(keys)} {what}, half of the error"
    raw_results = [
        judge(
            word,
            pairings[key],
            terms,
            Setting(
                pairings[key].names, agreements[key], AdjustedFor(len(keys), what), tail, adjustment
            ),
            population,
        )
        for key, word in keys
    ]
    p_values = [result.p_value for result in raw_results]
    if any(p is None for p in p_values):
        corrections = [(None, None)] * len(raw_results)
    else:
        alone = np.array(p_values, np.float64)
        by_max_t = np.maximum(alone, _max_t(differences, columns))
        corrections = list(zip(holm(alone).tolist(), by_max_t.tolist(), strict=True))
    results: dict[Pair, tuple[Result, ...]] = {}
    for (key, _), result, (p, q) in zip(keys, raw_results, corrections, strict=True):
        results[key] = (*results.get(key, ()), replace(result, p_holm=p, p_max_t=q))
    return results


def _max_t(differences: Sequence[Differences], columns: FloatArray) -> FloatArray:
    """max-T, at the worst of the extremes where attempts are missing; clusters flip together."""
    clusters = differences[0].clusters

    def p_values(rows: FloatArray) -> FloatArray:
        if clusters is None:
            return max_t(rows)
        _, member = np.unique(np.asarray(clusters), return_inverse=True)
        return max_t(np.stack([np.bincount(member, weights=row) for row in rows.T], axis=1))

    p = p_values(columns)
    if any(entry.open for entry in differences):
        for extreme in ("lowest", "highest"):
            extremes = np.stack([getattr(entry, extreme) for entry in differences], axis=1)
            p = np.maximum(p, p_values(extremes))
    return p


def _ranks(
    metrics: Sequence[Metric], names: Sequence[str], sides: Sequence[Outcomes], terms: Terms
) -> tuple[RankSet, ...]:
    """The possible ranks of each agent by each metric, as on a leaderboard; the best value first.

    Pairs are tested with Holm's correction within a metric (:mod:`passhat.stats.compare.ranking`).
    """
    sets: list[RankSet] = []
    for word in metrics:
        ranking = rank_agents(sides, word, terms)
        sets += [
            RankSet(word, names[i], float(ranking.values[i]), ranking.best[i], ranking.worst[i])
            for i in ranking.order
        ]
    return tuple(sets)
