"""The facts of a leaderboard: agents with values, intervals and the ranks that are possible.

Runs are ranked together only under one protocol and on the tasks that all of them have. Runs of
another protocol make a board of their own on the same page.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from passhat._display import counted, some, visible
from passhat._serialize import Plain
from passhat.errors import InvalidValue, PasshatError
from passhat.reporting.view import number_labels, run_labels
from passhat.stats.arrays import FloatArray
from passhat.stats.compare.paired_comparison import Use, measure_use
from passhat.stats.compare.pairing import common_tasks, restrict
from passhat.stats.compare.ranking import Front, find_front, find_groups, rank_agents
from passhat.stats.estimate import Estimate, estimate_all, metric
from passhat.stats.estimate.metrics import CountMetric, Mean, Metric, PassHat, ScoreMetric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import Terms

_LEAST_SHARED = 0.5
"""A run with less than this share of a board's tasks is not ranked with it."""
_MOST_SLICE_VALUES = 12
_NAMED_AGENTS = 3
_LONGEST_NAME = 60  # in a sentence
PRICES = ("cost", "seconds")


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """Options of a leaderboard; the first metric ranks."""

    metrics: tuple[str, ...] = ()
    terms: Terms = field(default_factory=Terms)
    title: str = "Leaderboard"


@dataclass(frozen=True, slots=True)
class RankRange(Plain):
    """The ranks that an agent may have by one metric, with joint confidence for all agents."""

    metric: Metric
    best: int
    worst: int

    def __str__(self) -> str:
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


@dataclass(frozen=True, slots=True)
class BoardAgent(Plain):
    """A run on a board, and where its numbers come from."""

    name: str
    agent: str
    source: str
    file_digest: str
    """SHA-256 of the file; empty for a store."""
    protocol: str
    run: str
    about: Mapping[str, str]
    attempts: int
    attempts_text: str
    missing: int
    missing_by_reason: Mapping[str, int]
    estimates: tuple[Estimate, ...]
    ranks: tuple[RankRange, ...]
    """One for each metric that ranks; the first orders the board."""
    groups: tuple[int, ...]
    """The groups, from 1, of agents that cannot be told apart."""
    use: Mapping[str, Use]
    """Cost, seconds, steps and tokens per attempt and per success."""
    fronts: Mapping[str, tuple[bool, float | None]]
    """For cost and seconds: whether it is on the Pareto front with the value, and the share of
    redraws of the tasks in which it is; no share where single attempts are not known.
    """
    left_out: int = 0

    def find(self, word: str | Metric) -> Estimate | None:
        """The estimate of a metric, if the board has it."""
        wanted_metric = metric(word)
        return next((entry for entry in self.estimates if entry.metric == wanted_metric), None)


@dataclass(frozen=True, slots=True)
class SliceValues(Plain):
    """A part of the tasks: its value and estimate for each agent, in the order of the board."""

    label: str
    value: str
    tasks: int
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True)
class Board(Plain):
    """Agents that are ranked together.

    ``rates`` are the values of single attempts, tasks x agents, NaN where nothing is known; they
    are written to a table of their own.
    """

    protocol: Mapping[str, object]
    unverified: tuple[str, ...]
    metrics: tuple[Metric, ...]
    ranked_by: tuple[Metric, ...]
    tasks: tuple[str, ...]
    level: float
    about: str
    method: str
    agents: tuple[BoardAgent, ...]
    groups: tuple[tuple[str, ...], ...]
    slices: tuple[SliceValues, ...]
    notes: tuple[str, ...]
    rates: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    WRITTEN = (
        *("protocol", "unverified", "metrics", "ranked_by", "tasks", "level", "about", "method"),
        *("agents", "groups", "slices", "notes"),
    )

    @property
    def pairs(self) -> int:
        return len(self.agents) * (len(self.agents) - 1) // 2

    @property
    def headline(self) -> str:
        """The agents that may be the best, in one sentence."""
        names = number_labels([agent.name for agent in self.agents], _LONGEST_NAME)
        first = [names[i] for i, agent in enumerate(self.agents) if agent.ranks[0].best == 1]
        word = self.ranked_by[0]
        if len(self.agents) == 1:
            return f"{names[0]} is alone on this board."
        if len(first) == 1:
            return f"{first[0]} is the best of {len(self.agents)} agents by {word}."
        return (
            f"{len(first)} of {len(self.agents)} agents may be the best by {word}: "
            f"{some(first, _NAMED_AGENTS)}."
        )


@dataclass(frozen=True, slots=True)
class Leaderboard(Plain):
    """All boards of a page."""

    SCHEMA = "passhat.leaderboard/1"

    title: str
    boards: tuple[Board, ...]
    notes: tuple[str, ...] = ()


def build_leaderboard(runs: Sequence[Run], options: BoardOptions | None = None) -> Leaderboard:
    """Rank all runs, each with those of the same protocol and tasks."""
    options = options or BoardOptions()
    runs_with_verdicts = [run for run in runs if run.outcomes.scored]
    if not runs_with_verdicts:
        raise InvalidValue("no attempt of any run has a verdict, so nothing can be ranked.")
    notes = [
        f"{run.name} is left out: none of its attempts has a verdict"
        for run in runs
        if not run.outcomes.scored
    ]
    labels = dict(zip(map(id, runs_with_verdicts), run_labels(runs_with_verdicts), strict=True))
    digests = _file_digests(runs_with_verdicts)
    groups = _group_runs(runs_with_verdicts)
    boards = tuple(_board(group, labels, digests, options) for group in groups)
    if len(boards) > 1:
        notes.append(
            f"{len(boards)} boards: runs of different protocols or tasks are not ranked together"
        )
    return Leaderboard(options.title, boards, tuple(notes))


def _group_runs(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that may be ranked together, the largest group first."""
    groups: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: -len(run.outcomes)):
        for group in groups:
            if all(_may_rank(run, other) for other in group):
                group.append(run)
                break
        else:
            groups.append([run])
    return sorted(groups, key=len, reverse=True)


def protocol_differences(run: Run, other: Run) -> list[str]:
    """Fields of the protocols that are known to differ and matter for ranks, in words."""
    return [
        str(entry)
        for entry in run.protocol.differences(other.protocol)
        # Metrics of counts are fair at any n of at least k, and the policy is that of the board.
        if entry.known and entry.field not in ("attempts", "missing")
    ]


def _may_rank(run: Run, other: Run) -> bool:
    if protocol_differences(run, other):
        return False
    shared = len(set(run.outcomes.tasks) & set(other.outcomes.tasks))
    return shared >= _LEAST_SHARED * max(len(run.outcomes), len(other.outcomes))


def _file_digests(runs: Sequence[Run]) -> dict[str, str]:
    """SHA-256 of every source that is a file; a store changes while it is read."""
    digests = {}
    for source in {run.source for run in runs if not run.id}:
        path = Path(source)
        if source and path.is_file():
            with path.open("rb") as stream:
                digests[source] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def _board(
    runs: Sequence[Run],
    labels: Mapping[int, str],
    digests: Mapping[str, str],
    options: BoardOptions,
) -> Board:
    names = [labels[id(run)] for run in runs]
    shared = common_tasks([run.outcomes for run in runs], names)
    recorded_sides = [restrict(run.outcomes, shared) for run in runs]
    sides, absent = add_absent(runs, recorded_sides)
    terms = replace(options.terms, drop_short=False).for_tasks(len(shared))
    attempts = min(int(side.counts(terms.missing.completion)[0].min()) for side in sides)
    if attempts < 1:
        raise InvalidValue(
            "a task has no attempt with a verdict, so that nothing is left of it under the policy "
            "'exclude'.",
            hint="Rank with missing='bound', which counts missing attempts both ways.",
        )
    ranked_by, metrics = _choose_metrics(sides, names, attempts, options)
    rankings = [rank_agents(sides, word, terms) for word in ranked_by]
    order, groups = rankings[0].order, find_groups(rankings[0])
    values = _values(sides, ranked_by[0], terms)
    fronts = {name: _front(name, runs, shared, values) for name in PRICES}
    agents = tuple(
        BoardAgent(
            name=visible(names[i]),
            agent=runs[i].agent,
            source=runs[i].source,
            file_digest=digests.get(runs[i].source, "") if not runs[i].id else "",
            protocol=runs[i].protocol.digest,
            run=runs[i].id or runs[i].name,
            about=dict(runs[i].about),
            attempts=sides[i].attempts,
            attempts_text=sides[i].attempts_text(),
            missing=sides[i].total_missing,
            missing_by_reason=_missing_reasons(runs[i], absent[i]),
            estimates=estimate_all(sides[i], metrics, terms),
            ranks=tuple(RankRange(each.metric, each.best[i], each.worst[i]) for each in rankings),
            groups=tuple(place for place, group in enumerate(groups, 1) if i in group),
            use=measure_use(runs[i], shared),
            fronts={name: entry for name in PRICES if (entry := _entry(fronts[name], i))},
            left_out=len(runs[i].outcomes) - len(shared),
        )
        for i in order
    )
    ordered_sides = [sides[i] for i in order]
    single: Metric = Mean() if Mean() in metrics else PassHat(1)
    return Board(
        protocol=_protocol_lines(runs),
        unverified=_fields_not_in_all(runs),
        metrics=tuple(metrics),
        ranked_by=tuple(ranked_by),
        tasks=tuple(shared),
        level=terms.level,
        about=str(terms.about()),
        method=rankings[0].method,
        agents=agents,
        groups=tuple(tuple(visible(names[i]) for i in group) for group in groups),
        slices=tuple(_slices(ordered_sides, ranked_by[0], terms)),
        notes=tuple(_notes(runs, names, sides, absent)),
        rates=_values(ordered_sides, single, terms),
    )


def _values(sides: Sequence[Outcomes], word: Metric, terms: Terms) -> FloatArray:
    """A metric of every task and agent, with missing attempts by the policy."""
    columns = [values_by_task(side, word, terms.missing.completion) for side in sides]
    return np.stack(columns, axis=1)


def add_absent(runs: Sequence[Run], sides: Sequence[Outcomes]) -> tuple[list[Outcomes], list[int]]:
    """The sides with attempts of the plan that have no row as missing, and how many each lacks.

    Attempts that failed can be left out of a file. A task was attempted as often as any run of the
    board says, or as often as the protocol of the run itself states. A run with one number of
    attempts at all tasks has that for its plan: a note says where others have more.
    """
    recorded = [side.n + side.missing for side in sides]
    usual = np.max(recorded, axis=0)
    completed_sides, absent = [], []
    for run, side, counts in zip(runs, sides, recorded, strict=True):
        stated = None if run.attempts_counted else run.protocol.attempts
        plan = usual if counts.min() < counts.max() else counts
        if stated is not None:
            plan = np.maximum(stated, counts.max())
        lacking = np.maximum(plan - counts, 0)
        if run.planned is not None and len(run.planned) == len(run.outcomes):
            place = {task: i for i, task in enumerate(run.outcomes.tasks)}
            planned = run.planned[[place[task] for task in side.tasks]]
            lacking = np.maximum(planned - counts, 0)
        absent.append(int(lacking.sum()))
        if absent[-1]:
            side = replace(side, m=side.missing + lacking, order=None, _cells=None)
        completed_sides.append(side)
    return completed_sides, absent


def _missing_reasons(run: Run, absent: int) -> dict[str, int]:
    return {**run.missing_by_reason, **({"no row": absent} if absent else {})}


_LOOKS_LIKE = str.maketrans("авеіјкмнорѕстухԁѵαβεικνορτυχı", "abeijkmhopsctyxdvabeikvoptuxi")
"""Small letters of Cyrillic and Greek that look like Latin ones."""


def name_skeleton(name: str) -> str:
    """The letters of a name as they look: without case, marks, spaces and invisible characters."""
    text = unicodedata.normalize("NFKD", name).casefold().translate(_LOOKS_LIKE)
    return "".join(
        letter for letter in text if unicodedata.category(letter)[0] not in "CZM"
    ).translate(_LOOKS_LIKE)


def _choose_metrics(
    sides: Sequence[Outcomes], names: Sequence[str], attempts: int, options: BoardOptions
) -> tuple[list[Metric], list[Metric]]:
    """The metrics that rank, and all that are shown: pass^k for the k that all runs have."""
    stated_metrics = list(dict.fromkeys(metric(word) for word in options.metrics))
    for word in stated_metrics:
        if not isinstance(word, CountMetric | ScoreMetric):
            raise InvalidValue(
                f"agents are not ranked by {word}.",
                hint="Rank by pass^k, pass@k, gpass@k:t, mean, best@k or worst@k.",
            )
        if word.k > attempts:
            raise InvalidValue(
                f"{word} needs {counted(word.k, 'attempt')} at every task of every run; a task has "
                f"{attempts}.",
                hint=f"Rank by {word.with_k(attempts)}, or leave the short run out.",
            )
    if any(isinstance(word, ScoreMetric) for word in stated_metrics):
        _refuse_mixture(sides, names)
    ks = [1 << i for i in range(attempts.bit_length())]
    graded = [side.scores is not None for side in sides]
    score_metrics: list[Metric] = [Mean()] if any(graded) and not _lacks_scores(sides) else []
    ranked_by = stated_metrics or [
        PassHat(1),
        *([PassHat(ks[-1])] if len(ks) > 1 else []),
        *score_metrics,
    ]
    metrics = dict.fromkeys([*ranked_by, *(PassHat(k) for k in ks), *score_metrics])
    return ranked_by, list(metrics)


def _lacks_scores(sides: Sequence[Outcomes]) -> list[int]:
    """The runs with verdicts only, where others have scores."""
    if all(side.scores is None for side in sides):
        return []
    return [i for i, side in enumerate(sides) if side.scores is None and not side.binary_scores]


def _refuse_mixture(sides: Sequence[Outcomes], names: Sequence[str]) -> None:
    lacking = [names[i] for i in _lacks_scores(sides)]
    if lacking:
        raise InvalidValue(
            f"some runs have scores, and {some(lacking, _NAMED_AGENTS)} "
            f"{'has' if len(lacking) == 1 else 'have'} verdicts only: a mean of verdicts is a pass "
            "rate, another measure.",
            hint="Rank by pass^k, or leave these runs out.",
        )


def _front(
    measure: str, runs: Sequence[Run], tasks: Sequence[str], values: FloatArray
) -> tuple[list[int], Front] | None:
    """The Pareto front of value and a price, over the runs that recorded it."""
    prices = [_task_prices(run, tasks, measure) for run in runs]
    places = [place for place, column in enumerate(prices) if column is not None]
    if len(places) < 2:
        return None
    columns = [column for column in prices if column is not None]
    return places, find_front(values[:, places], np.stack(columns, axis=1))


def _task_prices(run: Run, tasks: Sequence[str], measure: str) -> FloatArray | None:
    """The mean price of an attempt at each task; the run's own mean where none was recorded."""
    attempts = run.attempts
    column = None if attempts is None else attempts.measures.get(measure)
    if attempts is None or column is None or np.isnan(column).all():
        return None
    place = {task: index for index, task in enumerate(attempts.tasks)}
    per_task = np.diff(attempts.starts)
    task = np.repeat(np.arange(len(per_task)), per_task)
    is_recorded = ~np.isnan(column)
    counts = np.bincount(task[is_recorded], minlength=len(per_task))
    sums = np.bincount(task[is_recorded], weights=column[is_recorded], minlength=len(per_task))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), float(np.nanmean(column)))
    prices: FloatArray = means[[place[name] for name in tasks]]
    return prices


def _entry(front: tuple[list[int], Front] | None, place: int) -> tuple[bool, float | None] | None:
    if front is None or place not in front[0]:
        return None
    index = front[0].index(place)
    return bool(front[1].is_on_front[index]), float(front[1].share[index])


def _protocol_lines(runs: Sequence[Run]) -> dict[str, object]:
    """The fields that the protocols of a board have in common."""
    first, *others = [run.protocol.to_dict() for run in runs]
    return {
        name: value
        for name, value in first.items()
        if value not in (None, {}, []) and all(other.get(name) == value for other in others)
    }


def _fields_not_in_all(runs: Sequence[Run]) -> tuple[str, ...]:
    """Fields that not every run recorded."""
    first, *others = runs
    entries = (e for other in others for e in first.protocol.differences(other.protocol))
    return tuple(dict.fromkeys(entry.field for entry in entries if not entry.known))


def _slices(sides: Sequence[Outcomes], word: Metric, terms: Terms) -> list[SliceValues]:
    """The ranking metric for every value of every label that all agents share."""
    first = sides[0]
    parts = []
    for label in first.labels:
        column = np.array(first.labels[label], dtype=object)
        values = sorted(set(column.tolist()))
        if not 1 < len(values) <= _MOST_SLICE_VALUES:
            continue
        for value in values:
            here = column == value
            try:
                estimates = tuple(estimate_all(side.take(here), [word], terms)[0] for side in sides)
            except PasshatError:  # clusters that lie within the slice
                continue
            parts.append(SliceValues(label, value, int(here.sum()), estimates))
    return parts


def _notes(
    runs: Sequence[Run], names: Sequence[str], sides: Sequence[Outcomes], absent: Sequence[int]
) -> list[str]:
    notes, shared = [], len(sides[0])
    short = [
        f"{name} has {counted(len(run.outcomes) - shared, 'task')} more"
        for name, run in zip(names, runs, strict=True)
        if len(run.outcomes) > shared
    ]
    if short:
        notes.append(
            f"ranked on the {counted(shared, 'task')} that all runs have; left out: "
            f"{some(short, _NAMED_AGENTS)}"
        )
    missing = [
        f"{name} {side.total_missing:,}"
        for name, side in zip(names, sides, strict=True)
        if side.total_missing
    ]
    if missing:
        notes.append(
            f"attempts without a verdict count both ways, as failed and as passed: "
            f"{some(missing, 8)}"
        )
    lacking = [
        f"{name} lacks {counted(count, 'attempt')}"
        for name, count in zip(names, absent, strict=True)
        if count
    ]
    if lacking:
        notes.append(
            "attempts that others have at a task and a run has no row for are missing, since "
            f"failures could be left out: {some(lacking, 8)}"
        )
    per_task = {side.attempts_text() for side in sides}
    if len(per_task) > 1:
        sizes = [f"{name} {side.attempts_text()}" for name, side in zip(names, sides, strict=True)]
        notes.append(
            "runs have different numbers of attempts per task, and a file cannot show whether "
            f"others were left out: {some(sizes, 8)}"
        )
    if unscored := [names[i] for i in _lacks_scores(sides)]:
        notes.append(
            f"not ranked by mean: {some(unscored, _NAMED_AGENTS)} "
            f"{'has' if len(unscored) == 1 else 'have'} verdicts and no scores"
        )
    return [*notes, *_note_lookalikes(names)]


def _note_lookalikes(names: Sequence[str]) -> list[str]:
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name_skeleton(name), []).append(name)
    return [
        f"names that look alike: {some([repr(visible(name)) for name in group], 8)}"
        for group in alike.values()
        if len(group) > 1
    ]
