"""The check of a submission to a leaderboard, for CI of a pull request.

A problem is something that a maintainer would have to ask about. What is merely unusual is no
problem: a bad agent may be submitted.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._display import counted, money, percent, some, visible
from passhat._serialize import Plain
from passhat.reporting.leaderboard.facts import name_skeleton, protocol_differences
from passhat.stats.arrays import FloatArray, IntArray, log_binomial
from passhat.stats.compare.significance import share_chances
from passhat.stats.outcomes import Completion, Outcomes, Run, Verdict
from passhat.stats.outcomes.attempts import MEASURES, Attempts

_MOST_MISSING = 0.05
_COPY_CHANCE = 1e-4
"""Two runs that agree as closely as theirs do with a smaller chance than this are one run."""
_SAME_MEASURES = 0.5
_PRICE_RATIO = 1_000
"""A cost so many times below or above all others is a slip of units."""
_EQUAL_CHANCE = 1e-6
"""The same for single attempts that agree on every task, which equally hard tasks may bring."""
_LEAST = -300.0
_FEW = 5
_MOST_INSTANT = 0.5


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """A kind of problem and what is wrong, in a sentence."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def check_submission(run: Run, others: Sequence[Run]) -> list[Problem]:
    """Problems of a submission beside the runs that are on the board already."""
    checks = (_check_protocol, _check_tasks, _check_names, _check_prices, _check_copies)
    beside = (problem for check in checks for problem in check(run, others)) if others else ()
    return [*_check_alone(run), *beside]


def _check_alone(run: Run) -> Iterator[Problem]:
    outcomes = run.outcomes
    if not outcomes.scored:
        yield Problem("verdicts", "no attempt has a verdict")
    share = outcomes.total_missing / outcomes.attempts
    if share > _MOST_MISSING:
        yield Problem(
            "missing",
            f"{counted(outcomes.total_missing, 'attempt')} of {outcomes.attempts:,} "
            f"({percent(share)}) {'has' if outcomes.total_missing == 1 else 'have'} no verdict; at "
            f"most {percent(_MOST_MISSING, 0)} may be missing",
        )
    if run.tally is not None and run.tally.lost:
        yield Problem("schema", f"{counted(run.tally.lost, 'row')} could not be read")
    identity = [name for name in ("suite", "judge") if not getattr(run.protocol, name, None)]
    if identity:
        yield Problem(
            "protocol",
            f"{' and '.join(identity)} {'is' if len(identity) == 1 else 'are'} not recorded, so "
            "that the board cannot tell what was measured",
        )
    yield from _check_name(run)
    yield from _impossible_measures(run)
    yield from _contradictions(run)


def _check_name(run: Run) -> Iterator[Problem]:
    name = run.agent
    if not name_skeleton(name) or run.agent_guessed:
        yield Problem("name", "the agent has no name")
    elif name != name.strip() or any(
        unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") for letter in name
    ):
        yield Problem("name", f"{visible(name)!r} has characters that cannot be seen")


def _contradictions(run: Run) -> Iterator[Problem]:
    """Attempts whose score says the opposite of the verdict."""
    attempts = run.attempts
    if attempts is None or attempts.scores is None:
        return
    zero = int(((attempts.verdicts == Verdict.PASSED) & (attempts.scores <= 0)).sum())
    full = int(((attempts.verdicts == Verdict.FAILED) & (attempts.scores >= 1)).sum())
    if zero:
        yield Problem("score", f"{counted(zero, 'attempt')} passed with a score of 0")
    if full:
        yield Problem("score", f"{counted(full, 'attempt')} failed with a score of 1")


def _impossible_measures(run: Run) -> Iterator[Problem]:
    attempts = run.attempts
    if attempts is None:
        return
    for name in MEASURES:
        column = attempts.measures.get(name)
        if column is None:
            continue
        negative = int((column < 0).sum())
        if negative:
            yield Problem(
                "cost", f"{name} of {counted(negative, 'attempt')} {_is(negative)} negative"
            )
    cost, tokens = attempts.measures.get("cost"), attempts.measures.get("tokens")
    if cost is not None and tokens is not None:
        free = int(((cost == 0) & (tokens > 0)).sum())
        if free:
            yield Problem(
                "cost",
                f"{counted(free, 'attempt')} used tokens and {_is(free)} said to cost nothing; "
                "leave the cost empty where it is not known",
            )
    yield from _filled_in_measures(attempts)


def _filled_in_measures(attempts: Attempts) -> Iterator[Problem]:
    """Costs and times that were not measured."""
    for name in ("cost", "seconds"):
        column = attempts.measures.get(name)
        if column is None:
            continue
        amounts = column[~np.isnan(column)]
        instant = int((amounts == 0).sum())
        if name == "seconds" and instant > _MOST_INSTANT * len(amounts):
            yield Problem(
                "cost",
                f"{counted(instant, 'attempt')} took 0 seconds; leave the time empty where it was "
                "not measured",
            )
        if len(amounts) >= _FEW and len(np.unique(amounts)) == 1 and amounts[0] > 0:
            yield Problem(
                "cost",
                f"{name} is {amounts[0]:g} for every attempt: an average that was filled in is no "
                "measurement",
            )


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _check_protocol(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    """Fields that differ from the protocol of most runs of the board."""
    digests = [other.protocol.digest for other in others]
    usual = others[digests.index(max(digests, key=digests.count))]
    for difference in protocol_differences(run, usual):
        yield Problem("protocol", f"{difference} (of {usual.name}); it would not be ranked")


def _check_tasks(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    tasks = set(run.outcomes.tasks)
    board = set.intersection(*(set(other.outcomes.tasks) for other in others))
    absent = [task for task in others[0].outcomes.tasks if task in board and task not in tasks]
    board_union = set.union(*(set(other.outcomes.tasks) for other in others))
    new = [task for task in run.outcomes.tasks if task not in board_union]
    if absent:
        yield Problem(
            "tasks",
            f"{counted(len(absent), 'task')} of the board {_is(len(absent))} absent: "
            f"{some(absent, _FEW)}",
        )
    if new:
        yield Problem(
            "tasks",
            f"{counted(len(new), 'task')} {_is(len(new))} not on the board: {some(new, _FEW)}",
        )
    yield from _check_attempts(run, others)


def _check_attempts(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    """Tasks with fewer or more attempts than any other run has: chosen attempts are no sample."""
    columns = [_attempts_by_task(other) for other in others]
    for word, is_beyond in (("fewer", int.__lt__), ("more", int.__gt__)):
        tasks = []
        for task, count in _attempts_by_task(run).items():
            counts = [column[task] for column in columns if task in column]
            if counts and all(is_beyond(count, usual) for usual in counts):
                tasks.append(f"{task} has {count}, others {min(counts)}")
        if tasks:
            yield Problem(
                "tasks",
                f"{counted(len(tasks), 'task')} {'has' if len(tasks) == 1 else 'have'} {word} "
                f"attempts than the others: {some(tasks, _FEW)}",
            )


def _attempts_by_task(run: Run) -> dict[str, int]:
    counts = run.outcomes.n + run.outcomes.missing
    return dict(zip(run.outcomes.tasks, counts.tolist(), strict=True))


def _check_names(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    for other in others:
        if run.agent and name_skeleton(run.agent) == name_skeleton(other.agent):
            alike = "" if run.agent == other.agent else f", or a name that looks like {other.agent}"
            yield Problem(
                "duplicate",
                f"{run.agent} is on the board already{alike} ({other.source or other.name}); name "
                "the version, or replace that file",
            )
            return


def _check_prices(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    for measure in ("cost", "seconds"):
        sums = run.measured(measure)
        prices = [
            part.total / part.recorded for other in others if (part := other.measured(measure))
        ]
        prices = [price for price in prices if price > 0]
        if sums is None or not prices or sums.total <= 0:
            continue
        price = sums.total / sums.recorded
        if not min(prices) / _PRICE_RATIO <= price <= max(prices) * _PRICE_RATIO:
            write = money if measure == "cost" else (lambda value: f"{value:g} s")
            yield Problem(
                "cost",
                f"{write(price)} per attempt, where others need {write(min(prices))} to "
                f"{write(max(prices))}: check the unit",
            )


def _check_copies(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    for other in others:
        chance = copy_chance(run.outcomes, other.outcomes)
        if chance < _COPY_CHANCE:
            yield Problem(
                "copy",
                f"passes agree with those of {other.agent or other.name} "
                f"({other.source or other.name}) more closely than another run's would: the chance "
                f"of that is {chance:.0e}",
            )
        elif _shares_measures(run, other):
            yield Problem(
                "copy",
                f"seconds or cost of most attempts are those of {other.agent or other.name} to the "
                "last digit",
            )


def copy_chance(mine: Outcomes, theirs: Outcomes) -> float:
    """The chance that two runs agree as closely as these do, were they made independently.

    Counts: given how often a task was passed in both runs together, the passes of either are
    hypergeometric if both agents are equally good at it, and further apart if they are not.
    Verdicts: given these counts, any order within a task is as likely. Both are conditional on
    what the first leaves open, so that Fisher's way joins them. A run of single attempts leaves
    nothing open; it is a copy if every verdict is the same and that is unlikely by itself.
    """
    place = {task: i for i, task in enumerate(theirs.tasks)}
    pairs = [(i, place[task]) for i, task in enumerate(mine.tasks) if task in place]
    mine, theirs = (
        side.take(np.array([pair[which] for pair in pairs], np.int64)) if pairs else side
        for which, side in enumerate((mine, theirs))
    )
    sizes = [side.counts(Completion.AS_FAILED)[0] for side in (mine, theirs)]
    same_size = np.equal(*sizes) if pairs else np.zeros(0, np.bool_)
    if not same_size.any():
        return 1.0
    mine, theirs = mine.take(same_size), theirs.take(same_size)
    n, c, d = sizes[0][same_size], mine.c, theirs.c
    counts, verdicts = _closeness(n, c, d), _agreement(mine, theirs, n)
    chances = [counts, verdicts, counts * verdicts * (1 - math.log(counts * verdicts))]
    if same_size.all() and np.array_equal(c, d):
        equal = float(log_binomial(n, c, (c + 0.5) / (n + 1)).sum())
        chances.append(math.exp(max(equal, _LEAST)) * _COPY_CHANCE / _EQUAL_CHANCE)
    return min(1.0, len(chances) * min(chances))


def _closeness(n: IntArray, c: IntArray, d: IntArray) -> float:
    """The chance that the passes of all tasks differ by no more than they do."""
    apart = int(np.abs(c - d).sum())
    chances = np.eye(1, apart + 1)[0]
    cells, tasks = np.unique(np.stack([n, c + d]), axis=1, return_counts=True)
    for (size, total), count in zip(cells.T.tolist(), tasks.tolist(), strict=True):
        support = np.arange(max(0, total - size), min(size, total) + 1)
        distances = np.abs(2 * support - total)
        steps = np.bincount(distances, weights=share_chances(size, size, total))
        for _ in range(count):
            chances = np.convolve(chances, steps)[: apart + 1]
    return _chance(chances)


def _agreement(mine: Outcomes, theirs: Outcomes, n: IntArray) -> float:
    """The chance that so many attempts of the same number pass in both."""
    if mine.order is None or theirs.order is None:
        return 1.0
    orders = [side.order.completed(Completion.AS_FAILED) for side in (mine, theirs) if side.order]
    fewest = np.maximum(mine.c + theirs.c - n, 0)
    both = int((orders[0].passed & orders[1].passed).sum() - fewest.sum())
    chances = np.ones(1)
    cells, tasks = np.unique(np.stack([n, mine.c, theirs.c]), axis=1, return_counts=True)
    for (size, c, d), count in zip(cells.T.tolist(), tasks.tolist(), strict=True):
        steps = share_chances(size - c, c, d)
        for _ in range(count):
            chances = np.convolve(chances, steps)
    return _chance(chances[both:])


def _chance(chances: FloatArray) -> float:
    return min(1.0, max(float(chances.sum()), math.exp(_LEAST)))


def _shares_measures(run: Run, other: Run) -> bool:
    """Whether most attempts took exactly what those of another run took."""
    if run.attempts is None or other.attempts is None:
        return False
    for name in ("seconds", "cost"):
        mine, theirs = run.attempts.measures.get(name), other.attempts.measures.get(name)
        if mine is None or theirs is None:
            continue
        amounts = mine[~np.isnan(mine)]
        # Round numbers agree by chance.
        amounts = amounts[np.round(amounts, 1) != amounts]
        if len(amounts) >= _FEW and float(np.isin(amounts, theirs).mean()) > _SAME_MEASURES:
            return True
    return False
