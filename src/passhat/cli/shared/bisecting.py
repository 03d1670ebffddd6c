"""Making attempts at revisions for ``passhat bisect``: runs of their own process, one by one.

Every step is a run in the store whose name follows from the question and the number of the step,
and every step follows from the attempts before it. So a search that was stopped or killed is
repeated from the store, and goes on where attempts are absent.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
import numpy as np

from passhat._display import counted, percent, some
from passhat.errors import InvalidValue, PasshatError
from passhat.protocol import Protocol
from passhat.readers.store import has_no_answer
from passhat.reporting.bisect import Bisection, BisectStatus, BisectStep, Budget, MoreAttempts
from passhat.runner.revisions import Lineage, Revision, SubmoduleAbsent, Worktree, open_worktree
from passhat.stats.changes import Found, Probe, Search, Series
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.pairing import pair
from passhat.stats.compare.significance import unequal_drop_p_value
from passhat.stats.compare.task_changes import TaskChange, find_changed_tasks
from passhat.stats.gate.confirm import FRESH_ATTEMPTS, choose_suspects
from passhat.stats.outcomes import MissingPolicy, Outcomes, Verdict
from passhat.store import StoredRun, open_store
from passhat.store.rows import BISECT_PREFIX

if TYPE_CHECKING:
    from passhat.cli.shared.live import StepLines
    from passhat.store import Store

_ALPHA = 0.05
_USUAL_BUDGET = 10
"""Attempts of a search at most, as a multiple of those at the good and the bad revision."""
PLACE = "{}"
"""Stands for the candidate in the words of a run, where candidates are a list."""
_POWER = 2.8
"""Standard deviations of a drop that a one-sided test at 5% shows in 8 of 10 cases, with room."""
_CONTRADICTION = 0.001
"""How sure fresh attempts must be that the stored ones of an end were made under other terms."""
_PAUSE_SECONDS = 1.0
_NOT_COMPARED = ("suite", "attempts", "allocation")
"""The suite is named by its whole path here; its tasks are compared by their fingerprint."""
_REASON = re.compile(r"^passhat: (.*)", re.MULTILINE)


class CannotRun(Exception):
    """A revision makes no attempts."""


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which revisions, and how an attempt is made.

    ``words`` are options of ``passhat run``; agent and suite as they were given identify stored
    runs of the good and the bad revision.
    """

    lineage: Lineage
    words: tuple[str, ...]
    agent: str
    suite: str
    attempts: int
    is_git: bool

    @property
    def id(self) -> str:
        """Eight digits that are the same for the same question."""
        revisions = [revision.id for revision in self.lineage.revisions]
        text = "\0".join((*self.words, str(self.attempts), *revisions))
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(slots=True)
class Bisector:
    """A search over revisions.

    Attributes
    ----------
    question : Question
        What is searched.
    store : str
        Where attempts are kept.
    budget : Budget
        The most to spend, everything counted.
    lines : StepLines
        Where a line for every step is written.
    """

    question: Question
    store: str
    budget: Budget
    lines: StepLines
    _steps: list[BisectStep] = field(default_factory=list)
    _skipped: dict[int, str] = field(default_factory=dict)
    _attempts: int = 0
    _costs: list[float | None] = field(default_factory=list)
    _tasks: tuple[str, ...] = ()
    _bad_is_silent: bool = False
    _stored_ends: dict[int, list[Outcomes]] = field(default_factory=dict)
    """Attempts at an end that is known from stored runs: those, then the fresh ones."""
    _protocol: Protocol | None = None
    _state: str = ""
    _chances: str = ""
    """How far the search is, for the line that is redrawn."""
    _interrupts: int = 0
    _child: subprocess.Popen[str] | None = None
    _tree: Worktree | None = None

    def run(self) -> Bisection:
        """Search; the worktree is removed in the end."""
        place = open_worktree() if self.question.is_git else nullcontext(None)
        with self._signals(), place as tree:
            self._tree = tree
            return self._search()

    # -- the search ------------------------------------------------------------------------------

    def _search(self) -> Bisection:
        lineage = self.question.lineage
        search: Search | None = None
        try:
            ends = {place: self._make_end(place) for place in (lineage.good, lineage.bad)}
            good, bad = ends[lineage.good], ends[lineage.bad]
            search = self._begin(good, bad)
            p_value, shown = self._test_ends(search, good, bad)
            if not shown:
                return self._no_drop(search, good, bad, p_value)
            if self.budget == Budget():
                both = int(good.n.sum() + bad.n.sum())
                self.budget = Budget(attempts=self._attempts + _USUAL_BUDGET * both)
            foreseen = search.foresee()
            self.lines.tell(
                f"the drop is shown; about {counted(foreseen, 'attempt')} to find it among "
                f"{counted(len(lineage.parents), 'revision')}"
            )
            found, is_spent = self._find(search)
        except Interrupted:
            found_so_far = None if search is None else search.settle()
            return self._result(BisectStatus.STOPPED, found_so_far, search)
        status = BisectStatus.FOUND if found.is_confirmed else BisectStatus.RANGE
        budget = str(self.budget) if is_spent else ""
        return self._result(status, found, search, foreseen=foreseen, budget=budget)

    def _make_end(self, place: int) -> Outcomes:
        """Attempts at the good or the bad revision: stored ones, or new ones at every task."""
        revision = self.question.lineage.revisions[place]
        is_good = place == self.question.lineage.good
        with open_store(self.store) as store:
            stored = [
                run
                for run in store.runs()
                if not run.is_fresh
                and run.revision == revision.id
                and (run.agent, run.suite) == (self.question.agent, self.question.suite)
                and run.attempts > run.missing
            ]
            alike = [run for run in stored if self._is_alike(store, run)]
            outcomes = _join([_outcomes(store, run) for run in alike])
        word = "good" if is_good else "bad"
        if outcomes is not None:
            self._stored_ends[place] = [outcomes]
            self.lines.tell(f"{word} {revision}: {_describe(outcomes)}, from the store")
            return outcomes
        try:
            run = self._make(place, word, (), self.question.attempts)
        except CannotRun as error:
            raise InvalidValue(
                f"the {word} revision {revision.short} makes no attempts: {error}",
                hint="Choose another one, and check that passhat run works there.",
            ) from None
        with open_store(self.store) as store:
            outcomes = _outcomes(store, run)
            if not is_good:
                self._bad_is_silent = has_no_answer(store, run)
        self._note_step(place, run, confirms=False)
        self.lines.tell(f"{word} {revision}: {_describe(outcomes)}")
        return outcomes

    def _is_alike(self, store: Store, run: StoredRun) -> bool:
        """Whether a stored run was made with the settings of this search."""
        try:
            self._protocol = self._protocol or self._plan_protocol()
            theirs = store.protocol(run.id)
            texts = [
                str(difference)
                for difference in theirs.differences(self._protocol)
                if difference.field not in _NOT_COMPARED
                and difference.mine != difference.theirs
                and (difference.known or difference.field.startswith("decoding."))
            ]
            address = theirs.decoding.get("base_url"), self._protocol.decoding.get("base_url")
            texts += [f"address: {address[0]} against {address[1]}"] * (address[0] != address[1])
        except (PasshatError, click.ClickException) as error:
            texts = [f"its settings cannot be compared: {error.message}"]
        if texts:
            self.lines.tell(f"stored run {run.id} is not used: {some(texts, 3)}")
        return not texts

    def _plan_protocol(self) -> Protocol:
        """The protocol of ``passhat run`` with the words of the question, in this folder."""
        from passhat.cli.run import read_spec

        return read_spec([*self.question.words]).plan().record.protocol

    def _check_end(self, place: int, fresh: Outcomes) -> None:
        """Stop where fresh attempts at an end contradict the stored ones that it is known by.

        Each task by itself, Bonferroni over all of them: the tasks that are tried were chosen
        because they looked broken.
        """
        if place not in self._stored_ends:
            return
        stored, *earlier = self._stored_ends[place]
        self._stored_ends[place].append(fresh)
        joined = _join([*earlier, fresh])
        assert joined is not None
        is_good = place == self.question.lineage.good
        pairing = pair(stored, joined) if is_good else pair(joined, stored)
        share = _CONTRADICTION * len(pairing) / len(stored)
        moves = find_changed_tasks(pairing, MissingPolicy.EXCLUDE, share, "less")
        if moves:
            move, sides = moves[0], ("stored", "fresh") if is_good else ("fresh", "stored")
            raise InvalidValue(
                f"the stored attempts at the {'good' if is_good else 'bad'} revision are not "
                f"reproduced: {move.task} passes {move.passed_a} of {move.attempts_a} {sides[0]} "
                f"attempts and {move.passed_b} of {move.attempts_b} {sides[1]} ones.",
                hint="They were made with another model, package or environment. Search without "
                "them: --store fresh.db",
            )

    def _begin(self, good: Outcomes, bad: Outcomes) -> Search:
        lineage = self.question.lineage
        self._tasks = tuple(task for task in bad.tasks if task in set(good.tasks))
        if not self._tasks:
            raise InvalidValue("the good and the bad revision share no task.")
        shape = (len(lineage.revisions), len(self._tasks))
        search = Search(
            lineage.contains,
            lineage.parents,
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.ones(len(lineage.revisions), np.bool_),
        )
        for place, outcomes in ((lineage.good, good), (lineage.bad, bad)):
            self._add_outcomes(search, place, outcomes)
        return search

    def _add_outcomes(self, search: Search, place: int, outcomes: Outcomes) -> None:
        place_of = {task: i for i, task in enumerate(self._tasks)}
        rows = [i for i, task in enumerate(outcomes.tasks) if task in place_of]
        tasks = [place_of[outcomes.tasks[i]] for i in rows]
        search.add(place, tasks, outcomes.n[rows], outcomes.c[rows])

    def _test_ends(self, search: Search, good: Outcomes, bad: Outcomes) -> tuple[float, bool]:
        """The p-value of a drop, and whether it is shown: on the whole, at one task, or by fresh
        attempts at the suspects, which take no part in their choice."""
        pairing = pair(good, bad)
        counts = [side.counts(MissingPolicy.EXCLUDE.completion) for side in (pairing.a, pairing.b)]
        (n_a, c_a), (n_b, c_b) = counts
        p_value = unequal_drop_p_value(n_a, c_a, n_b, c_b)
        policy = MissingPolicy.EXCLUDE
        share = MEAN_SHARE * _ALPHA
        broken = find_changed_tasks(pairing, policy, _ALPHA - share, "less")
        if p_value <= share or broken:
            return p_value, True
        suspects = choose_suspects(pairing, policy, 1 - _ALPHA)
        if not suspects.tasks:
            return p_value, False
        lineage = self.question.lineage
        sides = []
        for place, word in ((lineage.good, "good again"), (lineage.bad, "bad again")):
            run = self._make(place, word, suspects.names, FRESH_ATTEMPTS)
            with open_store(self.store) as store:
                sides.append(_outcomes(store, run))
            self._note_step(place, run, confirms=True)
            self._check_end(place, sides[-1])
            self.lines.tell(f"{word}, at tasks that look broken: {_describe(sides[-1])}")
            self._add_outcomes(search, place, sides[-1])
        confirmed = find_changed_tasks(pair(*sides), policy, suspects.alpha, "less")  # type: ignore[arg-type]
        return p_value, bool(confirmed)

    def _no_drop(self, search: Search, good: Outcomes, bad: Outcomes, p_value: float) -> Bisection:
        pairing = pair(good, bad)
        drop = float((pairing.a.c / pairing.a.n - pairing.b.c / pairing.b.n).mean())
        rates = (pairing.a.c + pairing.b.c + 1) / (pairing.a.n + pairing.b.n + 2)
        each = float(pairing.a.n.mean())
        more = None
        if drop > 0:
            deviation = float(np.sqrt(2 * (rates * (1 - rates)).sum())) / len(pairing)
            needed = max(round((_POWER * deviation / drop) ** 2), round(each) + 1)
            total = 2 * needed * len(pairing)
            cost = self._cost_of_one()
            more = MoreAttempts(needed, total, None if cost is None else cost * total)
        return self._result(BisectStatus.NO_DROP, None, search, p_value=p_value, more=more)

    def _find(self, search: Search) -> tuple[Found, bool]:
        """The answer, and whether the budget ended the search."""
        number = 0
        while isinstance(step := search.next(), Probe):
            number += 1
            if self._is_beyond(step.total):
                return search.settle(), True
            runs = []
            for place, side in zip(step.revisions, "ab", strict=False):
                names = [self._tasks[task] for task in step.tasks]
                word = f"{number:03d}{side if step.confirms else ''}"
                try:
                    runs.append(self._make(place, word, names, step.attempts))
                except CannotRun as error:
                    self._skip(search, place, str(error))
                    break
            if len(runs) == len(step.revisions):
                self._take(search, step, runs)
        return step, False

    def _take(self, search: Search, step: Probe, runs: Sequence[StoredRun]) -> None:
        with open_store(self.store) as store:
            verdicts = [_verdicts(store, run, step, self._tasks) for run in runs]
            outcomes = [_outcomes(store, run) for run in runs]
        for place, fresh in zip(step.revisions, outcomes, strict=True):
            self._check_end(place, fresh)
        if step.confirms:
            search.confirm(step, verdicts[0], verdicts[1])
        else:
            scored = [[passed for passed in one if passed is not None] for one in verdicts[0]]
            search.add(
                step.revisions[0],
                step.tasks,
                np.array([len(one) for one in scored]),
                np.array([sum(one) for one in scored]),
            )
        posterior = search.posterior
        chances = posterior.chances @ search.contains
        for place, run in zip(step.revisions, runs, strict=True):
            chance = None if step.confirms else float(chances[place])
            self._note_step(place, run, confirms=step.confirms, chance=chance)
        revisions = self.question.lineage.revisions
        best = revisions[posterior.best]
        left = len(posterior.smallest_set(0.95))
        what = "confirming" if step.confirms else "tried"
        tried = " and ".join(revisions[place].short for place in step.revisions)
        counts = ", ".join(f"{run.passed}/{run.attempts} passed" for run in runs)
        self._chances = (
            f"; {left:,} of {len(posterior.chances):,} left, likeliest "
            f"{best.short} ({percent(float(posterior.chances.max()), 0)})"
        )
        self.lines.tell(f"{what} {tried}: {counts}{self._chances}")

    def _skip(self, search: Search, place: int, why: str) -> None:
        search.skip(place)
        self._skipped[place] = why
        self.lines.tell(f"skipped {self.question.lineage.revisions[place]}: {why}")

    # -- attempts --------------------------------------------------------------------------------

    def _make(self, place: int, step: str, tasks: Sequence[str], attempts: int) -> StoredRun:
        """Make a run at a revision, or take it from the store where it is whole."""
        revision = self.question.lineage.revisions[place]
        name = f"{BISECT_PREFIX}{self.question.id} {step} {revision.short}"
        run = self._find_run(name)
        if run is None or run.attempts < run.total:
            if self._interrupts:
                raise Interrupted
            count = attempts * (len(tasks) or 1)
            what = counted(count, "attempt") + ("" if tasks else " at every task")
            self._state = f"making {what} of {revision}"
            if not self.lines.is_live and not tasks:
                self.lines.tell(self._state)  # the longest steps
            code, errors = self._call(revision, name, tasks, attempts)
            if self._interrupts:
                raise Interrupted
            run = self._find_run(name)
            if run is None or not run.attempts:
                match = _REASON.search(errors)
                lines = errors.strip().splitlines()
                last = lines[-1] if lines else f"passhat run ended with {code}"
                raise CannotRun(match[1] if match else last)
        if run.attempts == run.missing:
            with open_store(self.store) as store:
                reasons = [
                    word for kind in store.missing_messages(run.id).values() for word in kind
                ]
            raise InvalidValue(
                f"no attempt at {revision.short} has a verdict: {', '.join(reasons[:2])}",
                hint="Fix it, and the same command continues.",
            )
        self._note_cost(run)
        with open_store(self.store) as store:
            is_silent = has_no_answer(store, run)
        if is_silent and step not in ("good", "bad") and not self._bad_is_silent:
            raise CannotRun("no attempt gave an answer")
        return run

    def _find_run(self, name: str) -> StoredRun | None:
        with open_store(self.store) as store:
            return next((run for run in store.runs() if run.name == name), None)

    def _call(
        self, revision: Revision, name: str, tasks: Sequence[str], attempts: int
    ) -> tuple[int, str]:
        """``passhat run`` without its report, where the files of the revision are."""
        words = [word.replace(PLACE, revision.id) for word in self.question.words]
        words = list(self.question.words) if self.question.is_git else words
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1
        command = [sys.executable, "-m", "passhat.cli.shared.attempts", *words, "--name", name]
        command += ["-n", str(attempts), "--seed", str(seed)]
        command += ["--keep-going", "--wait", "--only-missing", "--set", f"revision={revision.id}"]
        command += [f"--task={task}" for task in tasks]
        # In the environment: other users see the words of a process, and an address has a password.
        variables = {"PASSHAT_STORE": self.store, "PASSHAT_CANDIDATE": revision.id}
        folder, locks = Path.cwd(), list[int]()
        if self._tree is not None:
            try:
                self._tree.check_out(revision.id)
            except SubmoduleAbsent as error:
                return 2, str(error)
            folder = self._tree.below
            variables |= self._tree.variables
            locks.append(self._tree.lock)
            if not folder.is_dir():
                return 2, f"the folder {folder.name} is not there"
        # A session of its own: Ctrl-C reaches it once, through us.
        self._child = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=locks,
        )
        errors = self._wait_for(self._child, name)
        code = self._child.returncode
        self._child = None
        return code, errors

    def _wait_for(self, child: subprocess.Popen[str], name: str) -> str:
        """The messages of a run at its end; meanwhile the line on a terminal is redrawn."""
        while True:
            try:
                return child.communicate(timeout=_PAUSE_SECONDS if self.lines.is_live else None)[1]
            except subprocess.TimeoutExpired:
                run = self._find_run(name)
                count = 0 if run is None else run.attempts
                self.lines.draw(f"{self._state}, {count:,} made{self._chances}")

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first Ctrl-C lets attempts in flight finish, a second one stops at once."""

        def ask(number: int, _frame: FrameType | None) -> None:
            del number
            self._interrupts += 1
            self.lines.tell("finishing what is in flight; Ctrl-C again stops at once")
            if self._child is not None:
                self._child.send_signal(signal.SIGINT)

        kinds = [signal.SIGINT, signal.SIGTERM]
        if sys.platform != "win32":
            kinds.append(signal.SIGHUP)  # the terminal was closed
        before = {kind: signal.signal(kind, ask) for kind in kinds}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    # -- accounts --------------------------------------------------------------------------------

    def _note_cost(self, run: StoredRun) -> None:
        with open_store(self.store) as store:
            total = store.measure_sums(run.id).get("cost")
        self._costs.append(None if total is None else total.total)
        self._attempts += run.attempts

    def _cost_of_one(self) -> float | None:
        cost = self._cost()
        return cost / self._attempts if cost is not None and self._attempts else None

    def _cost(self) -> float | None:
        costs = [cost for cost in self._costs if cost is not None]
        return sum(costs) if costs and len(costs) == len(self._costs) else None

    def _is_beyond(self, attempts: int) -> bool:
        """Whether so many more attempts would exceed the budget."""
        if self.budget.attempts is not None:
            return self._attempts + attempts > self.budget.attempts
        cost, one = self._cost(), self._cost_of_one()
        if self.budget.dollars is None or cost is None or one is None:
            return False
        return cost + attempts * one > self.budget.dollars

    def _note_step(
        self, place: int, run: StoredRun, *, confirms: bool, chance: float | None = None
    ) -> None:
        lineage = self.question.lineage
        if chance is None and not confirms:
            chance = float(place != lineage.good)
        step = (lineage.revisions[place].id, run.id, run.attempts, run.passed, run.tasks)
        self._steps.append(BisectStep(*step, confirms, chance))

    def _result(
        self,
        status: BisectStatus,
        found: Found | None,
        search: Search | None,
        *,
        foreseen: int = 0,
        p_value: float | None = None,
        more: MoreAttempts | None = None,
        budget: str = "",
    ) -> Bisection:
        lineage = self.question.lineage
        parent = None
        if found is not None and search is not None and found.is_confirmed:
            parent_place, _ = search.ends(found.candidates)
            parent = None if parent_place is None else lineage.revisions[parent_place]
        if search is not None and status is BisectStatus.NO_DROP:
            foreseen = search.foresee()
        return Bisection(
            *(self.question.agent, self.question.suite, status, lineage.revisions, found, parent),
            self._list_broken_tasks(search, found),
            tuple(self._steps),
            tuple((lineage.revisions[place], why) for place, why in self._skipped.items()),
            *(self._attempts, self._cost(), foreseen, p_value, more, budget),
        )

    def _list_broken_tasks(
        self, search: Search | None, found: Found | None
    ) -> tuple[TaskChange, ...]:
        """Tasks that pass less often at revisions with the change than at those without."""
        if search is None or found is None or not found.is_confirmed:
            return ()
        rows = search.contains[list(found.candidates)]
        sides = []
        for side in (~rows.any(axis=0), rows.all(axis=0)):
            n, c = search.n[side].sum(axis=0), search.c[side].sum(axis=0)
            sides.append(Outcomes.from_counts(n, c, self._tasks))
        return find_changed_tasks(pair(sides[0], sides[1]), MissingPolicy.EXCLUDE, _ALPHA, "less")


def _outcomes(store: Store, run: StoredRun) -> Outcomes:
    counts = store.counts(run.id)
    return Outcomes.from_counts(counts.n, counts.c, counts.tasks, missing=counts.m)


def _join(outcomes: Sequence[Outcomes]) -> Outcomes | None:
    """Several runs of a revision as one; ``None`` if there is none."""
    return Series.of(outcomes).pool(0, len(outcomes)) if outcomes else None


def _describe(outcomes: Outcomes) -> str:
    passed, scored = int(outcomes.c.sum()), int(outcomes.n.sum())
    return f"{passed:,} of {counted(scored, 'attempt')} at {counted(len(outcomes), 'task')} pass"


def _verdicts(
    store: Store, run: StoredRun, step: Probe, tasks: Sequence[str]
) -> list[list[bool | None]]:
    """For each task of a step the verdicts in the order of attempts; ``None`` is missing."""
    found: dict[str, dict[int, Verdict]] = {}
    for task, number, verdict in store.verdicts(run.id):
        found.setdefault(task, {})[number] = verdict
    table: list[list[bool | None]] = []
    for place in step.tasks:
        numbers = found.get(tasks[place], {})
        verdicts = [numbers.get(i, Verdict.MISSING) for i in range(1, step.attempts + 1)]
        table.append(
            [None if one is Verdict.MISSING else one is Verdict.PASSED for one in verdicts]
        )
    return table
