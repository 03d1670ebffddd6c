"""Where the next attempts decide: which revision, which tasks, how many; and when to stop.

A probe is the revision at the median of the posterior, at the tasks whose expected rates before
and after differ most, with as many attempts as are expected to tell the two apart. When one
candidate has 95% of the chance, it is confirmed: fresh attempts at it and at its parent, in
pairs at the same task. Where the revision broke nothing, of the pairs that end differently the
half at most are passed by the parent only, so capital bet on more of them (a likelihood ratio
whose rates were fixed before the pair) reaches 20 with a chance of at most 1/20, at whichever
pair one looks (Ville 1939). What chose the candidate takes no part in that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from passhat.stats.arrays import BoolArray, FloatArray, IntArray, special
from passhat.stats.changes.posterior import ChangePosterior, locate_change

LEVEL = 0.95
"""A candidate with this chance is confirmed; the range that is left holds it with this chance."""
_CAPITAL = 20.0
"""The capital that confirms the first candidate; each further one needs twice as much."""
_TELLING = 4.0
"""The log-likelihood ratio that a probe is expected to give."""
_FEWEST_ATTEMPTS, _MOST_EACH = 8, 8
_DETOURS = 1.2
"""Probes of a search beside the fewest possible, on average."""
Verdicts = Sequence[Sequence[bool | None]]
_SEVERAL = 3
"""Tasks of a probe, where so many differ about as much: one alone may be another change's."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Attempts to make: at each of these revisions so many at each of these tasks."""

    revisions: tuple[int, ...]
    """One, or the parent and the candidate where it is to be confirmed."""
    tasks: tuple[int, ...]
    """Places of the tasks."""
    attempts: int
    """Attempts at each task of each revision."""
    confirms: bool = False
    """Whether they are to confirm a candidate."""

    @property
    def total(self) -> int:
        return len(self.revisions) * len(self.tasks) * self.attempts


@dataclass(frozen=True, slots=True)
class Found:
    """The answer: the candidates that are left, and whether they are confirmed."""

    candidates: tuple[int, ...]
    """One revision; several where those between cannot run, or where it stays open."""
    chance: float
    """The chance that the change is among them."""
    capital: float
    """The evidence of the confirmation; 20 is an error of at most .05."""
    is_confirmed: bool
    """Whether fresh attempts at it and its parent show the drop."""


@dataclass(slots=True)
class Evidence:
    """Pairs of fresh attempts at a candidate and its parent: capital bet on a drop."""

    log_stakes: float = 0.0
    parent_only: int = 0
    child_only: int = 0

    def add(
        self,
        parent: Sequence[bool | None],
        child: Sequence[bool | None],
        before: float,
        after: float,
    ) -> None:
        """Pair attempts at one task in their order; the rates were expected before they were made.

        A pair with an attempt that has no verdict is left out.
        """
        first, second = before * (1 - after), after * (1 - before)
        chance = min(max(first / max(first + second, 1e-9), 0.5), 0.97)
        for passed, passed_later in zip(parent, child, strict=False):
            if passed is None or passed_later is None or passed == passed_later:
                continue
            self.parent_only += passed
            self.child_only += passed_later
            self.log_stakes += float(np.log(2 * (chance if passed else 1 - chance)))

    @property
    def capital(self) -> float:
        """Half of it follows the expected rates, half bets on every share above one half."""
        stakes = float(np.exp(min(self.log_stakes, 700.0)))
        return (stakes + pair_capital(self.parent_only, self.child_only)) / 2


def pair_capital(wins: int, losses: int) -> float:
    """Capital of bets on every share of wins above one half alike.

    Examples
    --------
    >>> round(pair_capital(7, 0), 1)
    31.9
    """
    share_above = 1 - special.betainc(wins + 1, losses + 1, 0.5)
    if share_above <= 0:
        return 0.0
    log_capital = (
        (wins + losses + 1) * np.log(2) + special.betaln(wins + 1, losses + 1) + np.log(share_above)
    )
    return float(np.exp(min(log_capital, 700.0)))


@dataclass(slots=True, eq=False)
class Search:
    """The search for a revision: all attempts so far, and the next ones."""

    contains: BoolArray
    """Candidates x revisions: whether a revision contains the change of a candidate. Candidates are
    the first revisions, in the same order; the others (the good one, parents) are no candidates.
    """
    parents: Sequence[int]
    """The revision before each candidate, by its place among the revisions."""
    n: IntArray
    c: IntArray
    """``n``, ``c`` (revisions x tasks): attempts with a verdict and passes."""
    can_run: BoolArray
    """Revisions that can be tried."""
    evidence: dict[tuple[int, int], Evidence] = field(default_factory=dict)
    _posterior: ChangePosterior | None = None

    @property
    def posterior(self) -> ChangePosterior:
        """The posterior from all attempts so far."""
        if self._posterior is None:
            self._posterior = locate_change(self.contains, self.n, self.c)
        return self._posterior

    def add(self, revision: int, tasks: Sequence[int], n: IntArray, c: IntArray) -> None:
        """Add attempts at a revision."""
        self.n[revision, list(tasks)] += n
        self.c[revision, list(tasks)] += c
        self._posterior = None

    def skip(self, revision: int) -> None:
        """Note that a revision cannot run."""
        self.can_run[revision] = False

    def next(self) -> Probe | Found:
        """The attempts that decide most, or the answer."""
        group = self.best_group()
        chance = float(self.posterior.chances[list(group)].sum())
        if chance < LEVEL:
            return self._probe() or self.settle()
        parent, child = self.ends(group)
        if parent is None or child is None or self._is_confirmed((parent, child)):
            return self.settle()
        return self._confirmation(parent, child)

    def settle(self) -> Found:
        """The answer with the attempts so far."""
        group = self.best_group()
        chance = float(self.posterior.chances[list(group)].sum())
        parent, child = self.ends(group)
        if chance >= LEVEL and parent is not None and child is not None:
            capital = self.evidence.get((parent, child), Evidence()).capital
            confirmed = self._is_confirmed((parent, child))
            return Found(group, chance, capital, is_confirmed=confirmed)
        left = self.posterior.smallest_set(LEVEL)
        chance = float(self.posterior.chances[list(left)].sum())
        return Found(left, chance, 1.0, is_confirmed=False)

    def best_group(self) -> tuple[int, ...]:
        """The likeliest candidates that no revision that runs can tell apart."""
        rows = self.contains[:, self.can_run]
        _, group = np.unique(rows, axis=0, return_inverse=True)
        group = group.ravel()
        totals = np.bincount(group, self.posterior.chances)
        return tuple(np.flatnonzero(group == int(totals.argmax())).tolist())

    def ends(self, group: Sequence[int]) -> tuple[int | None, int | None]:
        """The last revision before these candidates and the first that contains all, that run."""
        rows = self.contains[list(group)]
        with_all = rows.all(axis=0) & self.can_run
        with_none = ~rows.any(axis=0) & self.can_run
        child = [r for r in group if with_all[r]]
        parent = [p for r in group if with_none[p := self.parents[r]]]
        if not child:  # the first one after them, with the fewest other changes
            size = self.contains.sum(axis=0)
            child = sorted(np.flatnonzero(with_all).tolist(), key=lambda r: int(size[r]))
        return (parent[0] if parent else None), (child[0] if child else None)

    def _is_confirmed(self, ends: tuple[int, int]) -> bool:
        evidence = self.evidence.get(ends)
        return evidence is not None and evidence.capital >= self._capital_needed(ends)

    def _capital_needed(self, ends: tuple[int, int]) -> float:
        """Twice as much for every further candidate, so that all errors together stay small."""
        pairs = list(self.evidence)
        return float(_CAPITAL * 2 ** (pairs.index(ends) if ends in pairs else len(pairs)))

    def confirm(self, probe: Probe, parent: Verdicts, child: Verdicts) -> None:
        """Note the verdicts of a confirmation: for each task those of its attempts, in order."""
        parent_at, child_at = probe.revisions
        evidence = self.evidence.setdefault((parent_at, child_at), Evidence())
        rates = self._rates()
        for task, first, second in zip(probe.tasks, parent, child, strict=True):
            evidence.add(first, second, *(float(side[task]) for side in rates))
        for revision, verdicts in ((parent_at, parent), (child_at, child)):
            scored = [[verdict for verdict in one if verdict is not None] for one in verdicts]
            self.add(
                revision,
                probe.tasks,
                np.array([len(one) for one in scored]),
                np.array([sum(one) for one in scored]),
            )

    def foresee(self) -> int:
        """About how many attempts the whole search takes from its beginning."""
        probe = self._probe()
        if probe is None:
            return 0
        steps = np.ceil(_DETOURS * np.log2(len(self.parents) + 1))
        return int(steps) * probe.total + self._confirmation(-1, -2).total

    # -- where attempts decide ------------------------------------------------------------------

    def _probe(self) -> Probe | None:
        """The revision at the median of the posterior, among those that can run."""
        chance_after = self.posterior.chances @ self.contains
        distance = np.where(self.can_run, np.abs(chance_after - 0.5), np.inf)
        place = int(distance.argmin())
        if distance[place] >= 0.5 - 1e-6:
            return None
        before, after = self._rates()
        tasks, attempts = choose_tasks(telling(before, after), _TELLING)
        return Probe((place,), tasks, attempts)

    def _confirmation(self, parent: int, child: int) -> Probe:
        before, after = self._rates()
        first, second = before * (1 - after), after * (1 - before)
        share = np.clip(first / np.maximum(first + second, 1e-12), 1e-9, 1 - 1e-9)
        growth = (first + second) * (
            share * np.log(2 * share) + (1 - share) * np.log(2 * (1 - share))
        )
        capital = self.evidence.get((parent, child), Evidence()).capital
        needed = float(np.log(self._capital_needed((parent, child)) / max(capital, 1e-9))) + 1.5
        growth = np.where(before > after, growth, 0.0)
        tasks, attempts = choose_tasks(growth, max(needed, 1.0))
        return Probe((parent, child), tasks, attempts, confirms=True)

    def _rates(self) -> tuple[FloatArray, FloatArray]:
        """Expected rates; a task without an attempt tells nothing."""
        return np.nan_to_num(self.posterior.before), np.nan_to_num(self.posterior.after)


def telling(before: FloatArray, after: FloatArray) -> FloatArray:
    """The expected log-likelihood ratio of one attempt at each task."""
    p, q = (np.clip(rate, 1e-6, 1 - 1e-6) for rate in (before, after))
    gain: FloatArray = (p - q) * (np.log(p / (1 - p)) - np.log(q / (1 - q))) / 2
    return np.where(before > after, gain, 0.0)


def choose_tasks(gain: FloatArray, wanted: float) -> tuple[tuple[int, ...], int]:
    """The fewest attempts with this expected gain in all: the best tasks, and attempts at each."""
    order = np.argsort(-gain, kind="stable")
    gains = gain[order]
    similar = int((gains >= gains[0] / 2).sum()) if gains[0] > 0 else len(gains)
    fewest = min(_SEVERAL, similar)
    totals = np.cumsum(gains)
    needed = np.ceil(wanted / np.maximum(totals, 1e-12))
    enough = np.flatnonzero((needed <= _MOST_EACH) & (np.arange(len(gains)) >= fewest - 1))
    count = int(enough[0]) + 1 if len(enough) else len(gains)
    attempts = int(min(needed[count - 1], _MOST_EACH))
    attempts = min(max(attempts, -(-_FEWEST_ATTEMPTS // count)), _MOST_EACH)
    return tuple(order[:count].tolist()), attempts
