"""The check of a submission to a leaderboard, for CI of a pull request.

A problem is something that a maintainer would have to ask about. What is merely unusual is no
problem: a bad agent may be submitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._display import counted, money, percent, some
from passhat._serialize import Plain
from passhat.reporting.leaderboard.facts import protocol_differences
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.outcomes.attempts import MEASURES

__all__ = ["Problem", "check_submission"]

_MOST_MISSING = 0.05
_COPY_CHANCE = 1e-6
"""Two runs that agree on every task with a smaller chance than this are one run."""
_SAME_MEASURES = 0.5
_PRICE_RATIO = 1_000
"""A cost so many times below or above all others is a slip of units."""
_FEW = 5


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """A kind of problem and what is wrong, in a sentence."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def check_submission(run: Run, others: Sequence[Run]) -> list[Problem]:
    """Problems of a submission beside the runs that are on the board already."""
    problems = list(_check_alone(run))
    if not others:
        return problems
    problems += _check_protocol(run, others)
    problems += _check_tasks(run, others)
    problems += _check_names(run, others)
    problems += _check_prices(run, others)
    problems += _check_copies(run, others)
    return problems


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
    yield from _impossible_measures(run)


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
    for name in ("cost", "seconds"):
        column = attempts.measures.get(name)
        if column is None:
            continue
        amounts = column[~np.isnan(column)]
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
    fewest = int((run.outcomes.n + run.outcomes.missing).min())
    usual = min(int((other.outcomes.n + other.outcomes.missing).min()) for other in others)
    if fewest < usual:
        yield Problem(
            "tasks",
            f"a task has {counted(fewest, 'attempt')} where all others have {usual}: pass^{usual} "
            "would be lost for every agent",
        )


def _check_names(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    for other in others:
        if run.agent and run.agent == other.agent:
            yield Problem(
                "duplicate",
                f"{run.agent} is on the board already ({other.source or other.name}); name the "
                "version, or replace that file",
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
        if _is_copy(run.outcomes, other.outcomes):
            yield Problem(
                "copy",
                f"every task has the same passes as {other.agent or other.name} "
                f"({other.source or other.name}): the chance of that is below "
                f"{_COPY_CHANCE:g} for another run",
            )
        elif _shares_measures(run, other):
            yield Problem(
                "copy",
                f"seconds or cost of most attempts are those of {other.agent or other.name} to the "
                "last digit",
            )


def _is_copy(mine: Outcomes, theirs: Outcomes) -> bool:
    """Whether passes agree on all shared tasks where independent runs hardly would."""
    place = {task: i for i, task in enumerate(theirs.tasks)}
    pairs = [(i, place[task]) for i, task in enumerate(mine.tasks) if task in place]
    if not pairs:
        return False
    rows, other_rows = (np.array(side) for side in zip(*pairs, strict=True))
    n, c = mine.n[rows], mine.c[rows]
    if not (np.array_equal(n, theirs.n[other_rows]) and np.array_equal(c, theirs.c[other_rows])):
        return False
    from scipy.stats import binom

    rates = (c + 0.5) / (n + 1)
    return float(np.log(binom.pmf(c, n, rates)).sum()) < math.log(_COPY_CHANCE)


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
