"""A suite and an agent over many runs: values with intervals, and changes that are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from passhat._display import some
from passhat._serialize import Plain
from passhat.errors import InvalidValue, PasshatError
from passhat.protocol import AGENT_CODE, Difference
from passhat.stats.changes import Change, find_changes
from passhat.stats.compare.guard import find_score_difference
from passhat.stats.estimate import Estimate, Metric, default_ks, estimate
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Run
from passhat.stats.terms import Terms

SCHEMA = "passhat.history/2"
_SUITE_FIELDS = ("suite_fingerprint", "tests_fingerprint", "judge", "user_simulator")
_COUNTS = ("attempts", "allocation")
Estimator = Callable[[Run, Metric], Estimate]
_VERDICTS = {"drop": "dropped", "rise": "rose", "mixed": "tasks moved"}
_ABOUT = {"model_version": "model served", "revision": "revision", "prices": "prices"}


@dataclass(frozen=True, slots=True)
class HistoryRun(Plain):
    """A run of the series."""

    place: int
    """Its place in the series, from 0."""
    run: Run
    """The run itself."""
    estimates: tuple[Estimate, ...]
    """pass^1 and pass^k; fewer where a run has too few attempts."""
    trouble: str
    """Why a value is absent."""
    differences: tuple[Difference, ...]
    """What differs from the run before: protocol, model served, code, prices, revision."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    """``added``, ``removed``: tasks that the run before did not have, and that it had and this one
    has not.
    """

    @property
    def time(self) -> str:
        """The day and time of its start in UTC, or its name."""
        return self.run.started[:16].replace("T", " ") or self.run.name

    @property
    def title(self) -> str:
        """As ``time``, with the zone."""
        return f"{self.time} UTC" if self.run.started else self.run.name

    @property
    def has_verdicts(self) -> bool:
        return bool(self.run.outcomes.n.any())

    @property
    def shares_no_task(self) -> bool:
        """Whether no task is one of the run before, so that nothing can be compared."""
        return bool(self.removed) and len(self.added) == len(self.run.outcomes)

    @property
    def revision(self) -> str:
        return self.run.about.get("revision", "")

    @property
    def is_other_suite(self) -> bool:
        """Whether judge or tests are not those of the run before."""
        return any(difference.field in _SUITE_FIELDS for difference in self.differences)

    def _as_dict(self) -> dict[str, object]:
        return {
            "run": self.run.id or None,
            "name": self.run.name,
            "source": self.run.source,
            "started": self.run.started or None,
            "revision": self.revision or None,
            "tasks": len(self.run.outcomes),
            "attempts": self.run.outcomes.attempts,
            "missing": self.run.outcomes.total_missing,
            "estimates": self.estimates,
            "trouble": self.trouble or None,
            "differences": self.differences,
            "added": list(self.added),
            "removed": list(self.removed),
        }


@dataclass(frozen=True, slots=True)
class ShownChange(Plain):
    """A change that the attempts show, with the runs around it and what else changed there."""

    change: Change
    since: HistoryRun
    before: HistoryRun
    differences: tuple[Difference, ...]
    """Recorded differences at the runs among which it began."""

    @property
    def verdict(self) -> str:
        """The direction in words, as in ``dropped``."""
        return _VERDICTS[self.change.direction]

    def _as_dict(self) -> dict[str, object]:
        change = self.change
        return {
            "direction": change.direction,
            "since": self.since.run.id or self.since.run.name,
            "since_started": self.since.run.started or None,
            "since_revision": self.since.revision or None,
            "last_before": self.before.run.id or self.before.run.name,
            "last_before_revision": self.before.revision or None,
            "between": [change.earliest, change.latest],
            "shown_at": change.shown_at,
            "rate_before": change.before,
            "rate_since": change.after,
            "shared_tasks": change.shared,
            "tasks": change.tasks,
            "differences": self.differences,
        }


@dataclass(frozen=True, slots=True)
class History(Plain):
    """The runs of one agent at one suite in the order of time."""

    suite: str
    agent: str
    runs: tuple[HistoryRun, ...]
    changes: tuple[ShownChange, ...]
    error: float
    is_dated: bool
    """Whether every run records when it began; otherwise the order is that of the sources."""
    others: tuple[tuple[str, str, int], ...] = ()
    """Other agents and suites in the sources: (suite, agent, runs)."""
    copies: int = 0
    """Runs that another source has as well, left out."""
    partial: tuple[str, ...] = ()
    """Sources that could be read only in part, left out."""

    @property
    def values(self) -> tuple[Estimate, ...]:
        """The first metric of every run that has it."""
        return tuple(run.estimates[0] for run in self.runs if run.estimates)

    def _as_dict(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "suite": self.suite,
            "agent": self.agent,
            "runs": self.runs,
            "changes": self.changes,
            "error_per_year": self.error,
            "in_order_of": "start" if self.is_dated else "sources",
            "others": [
                {"suite": suite, "agent": agent, "runs": runs} for suite, agent, runs in self.others
            ],
            "copies": self.copies,
            "partial": list(self.partial),
        }


def group_runs(runs: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs by suite and agent; a run that was read from two sources counts once.

    Two runs of one source are two, even if they began in the same second and ended alike.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    sources: dict[tuple[object, ...], str] = {}
    for run in runs:
        counts = (tuple(run.outcomes.tasks), run.outcomes.n.tobytes(), run.outcomes.c.tobytes())
        key = (run.agent, run.protocol.suite, run.started, *counts)
        if run.started and sources.setdefault(key, run.source) != run.source:
            continue
        groups.setdefault((run.protocol.suite or "", run.agent), []).append(run)
    return groups


def build_history(
    runs: Sequence[Run],
    *,
    suite: str | None = None,
    agent: str | None = None,
    metrics: Sequence[Metric] = (),
    last: int | None = None,
    terms: Terms | None = None,
    estimator: Estimator | None = None,
    error: float = 0.05,
) -> History:
    """The history of one agent at one suite: the newest one's, unless they are named.

    ``metrics`` are estimated for every run; pass^1, and pass^k at the largest k that all runs have,
    if empty. Only the ``last`` runs are listed, but changes are found in all of them. ``estimator``
    gives the estimate of a metric of a run, as :func:`passhat.estimate` does; ``error`` is the
    chance of a false alarm in a year of nightly runs.
    """
    terms = terms or Terms()
    # The rest of a file that ends in the middle is not known: its value is no value of the run.
    whole = [run for run in runs if not run.losses] or runs
    all_groups = group_runs(whole)
    pairs = [(s, a) for s, a in all_groups if suite in (None, s) and agent in (None, a)]
    groups = {pair: all_groups[pair] for pair in pairs}
    if not groups:
        raise _nothing_there(runs, suite, agent)
    key = max(groups, key=lambda key: (max(run.started for run in groups[key]), len(groups[key])))
    series = groups[key]
    is_dated = all(run.started for run in series)
    if is_dated:
        series = sorted(series, key=lambda run: run.started)
    changes = find_changes([run.outcomes for run in series], terms.missing, error)
    first = max(0, len(series) - last) if last else 0
    metrics = metrics or _usual_metrics(series[first:])
    estimator = estimator or (lambda run, word: estimate(run.outcomes, word, terms))
    steps = _list_runs(series, first, metrics, estimator)
    return History(
        *key,
        steps[first:],
        tuple(_shown(change, steps) for change in changes if change.latest >= first),
        error,
        is_dated,
        tuple((*other, len(group)) for other, group in groups.items() if other != key),
        len(whole) - sum(map(len, all_groups.values())),
        tuple(run.source for run in runs if run not in whole),
    )


def _nothing_there(runs: Sequence[Run], suite: str | None, agent: str | None) -> InvalidValue:
    pairs = [f"{agent} at {suite or 'a suite without a name'}" for suite, agent in group_runs(runs)]
    wanted = [f" of {agent}"] * (agent is not None) + [f" at {suite}"] * (suite is not None)
    return InvalidValue(f"there is no run{''.join(wanted)}.", hint=f"There are: {some(pairs, 10)}")


def _usual_metrics(runs: Sequence[Run]) -> list[Metric]:
    largest = min((max(default_ks(run.outcomes), default=1) for run in runs), default=1)
    return [PassHat(k) for k in dict.fromkeys((1, largest))]


def _list_runs(
    series: Sequence[Run], first: int, metrics: Sequence[Metric], estimator: Estimator
) -> tuple[HistoryRun, ...]:
    """The runs with their differences; those from ``first`` on with estimates."""
    steps: list[HistoryRun] = []
    for place, run in enumerate(series):
        estimates, trouble = [], ""
        for word in metrics if place >= first else ():
            try:
                estimates.append(estimator(run, word))
            except PasshatError as error:
                trouble = error.message
        earlier = series[place - 1] if place else run
        tasks, tasks_before = run.outcomes.tasks, earlier.outcomes.tasks
        added, removed = set(tasks) - set(tasks_before), set(tasks_before) - set(tasks)
        grading = find_score_difference(earlier.outcomes, run.outcomes, metrics)
        differences = (*find_differences(earlier, run), *grading)
        steps.append(
            HistoryRun(
                *(place, run, tuple(estimates), trouble, differences),
                tuple(task for task in tasks if task in added),
                tuple(task for task in tasks_before if task in removed),
            )
        )
    return tuple(steps)


def find_differences(before: Run, after: Run) -> tuple[Difference, ...]:
    """Differences that both runs record: protocol, code, address, model served, prices."""
    entries = [
        difference
        for difference in before.protocol.differences(after.protocol)
        if difference.known and difference.field not in _COUNTS
    ]
    for name, word in ((AGENT_CODE, "agent code"), ("base_url", "address")):
        pair = before.protocol.decoding.get(name), after.protocol.decoding.get(name)
        if None not in pair and pair[0] != pair[1]:
            entries.append(Difference(word, *pair, known=True))
    for name, word in _ABOUT.items():
        values = before.about.get(name), after.about.get(name)
        if all(values) and values[0] != values[1]:
            entries.append(Difference(word, *values, known=True))
    return tuple(entries)


def _shown(change: Change, steps: Sequence[HistoryRun]) -> ShownChange:
    around = steps[change.earliest : change.latest + 1]
    differences = dict.fromkeys(difference for step in around for difference in step.differences)
    return ShownChange(change, steps[change.since], steps[change.since - 1], tuple(differences))
