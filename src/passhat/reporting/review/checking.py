"""Statements of a claim against runs: supported, contradicted, not shown or not checkable."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from passhat._display import counted, number
from passhat.errors import PasshatError
from passhat.reporting.review.agreement import (
    Check,
    RunScore,
    Support,
    agrees_any,
    check_size,
    check_task,
    fits_points,
    fits_spread,
    holds,
    is_error,
    near,
    paired_p_values,
    scores_of,
    support,
    support_of,
)
from passhat.reporting.review.second_reading import Sizes
from passhat.reporting.review.statements import (
    Difference,
    Place,
    Share,
    Size,
    Statement,
    TaskCount,
    Unread,
    is_known,
)
from passhat.reporting.review.task_reading import Overlap, check_overlap
from passhat.stats.compare import Result, results_of
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.estimate.grammar import metric as parse_metric
from passhat.stats.estimate.task_values import values_by_task
from passhat.stats.outcomes import Run

__all__ = ["Check", "Checker", "Support"]

_FEWEST_TASKS = 10
_REDRAWS = 1000
_EQUAL_POINTS = 1.0
"""Two metrics of one run so close are called the same."""


def _names_of(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """The words for every run: its name, its agent, and parts of them that only it has (int4)."""
    names = [dict.fromkeys(word for word in (run.name, run.agent) if word) for run in runs]
    parts = [{part for name in group for part in _parts_of(name)} for group in names]
    for at, group in enumerate(names):
        others = {part.lower() for other in (*parts[:at], *parts[at + 1 :]) for part in other}
        group |= dict.fromkeys(
            part
            for part in sorted(parts[at])
            if part.lower() not in others
            and re.search(r"[A-Za-z]\w|\d[A-Za-z]|\d\.\d", part)
            and not is_known(part)
        )
    return [tuple(group) for group in names]


def _parts_of(name: str) -> Iterator[str]:
    """Words of a name, its beginnings, and versions with and without their letter."""
    words = name.split()
    yield from (" ".join(words[:size]) for size in range(1, len(words)))
    for part in (*words, *re.split(r"[-+_/\s()]", name)):
        yield part
        if re.fullmatch(r"v?\d+(\.\d+)+", part):
            yield from (part.removeprefix("v"), f"v{part.removeprefix('v')}")


def _estimable(word: str) -> str:
    """The metric of new tasks that a word may mean; empty where it is of one run only.

    The best of 5 runs is the share of tasks that any of the 5 passes, or the highest of 5 scores;
    the first run tells of single attempts.
    """
    if not word.startswith("run:"):
        return word
    if word == "run:first":
        return "pass^1"
    k = word.removeprefix("run:best")
    return f"pass@{k}" if k.isdigit() else ""


def _is_known(result: Estimate | RunScore) -> bool:
    return isinstance(result, Estimate) or result.is_known


def _shown(metric: str) -> str:
    """The name of a metric for people: of a phrase such as "every time" the one it means."""
    if passes := re.fullmatch(r"tasks:passes(\d+)to(\d+)", metric):
        return f"passed {passes[1]} to {passes[2]} times"
    if metric in ("tasks:some", "tasks:majority"):
        return f"passed in {'some' if metric == 'tasks:some' else 'most'} attempts"
    if metric.startswith("tasks:trial"):
        return "in the last run" if metric.endswith("last") else f"in run {metric[11:]}"
    if side := re.fullmatch(r"tasks:(above|below)(.+)", metric):
        return f"runs {side[1]} {side[2]}%"
    if ":" in metric:
        return f"{metric.partition(':')[2]} run"
    return metric.replace("tasks", "pass").replace("<", "@")


def _one_by_one(share: Share) -> Iterator[Share]:
    """A share of each of runs 2, 3 and 5 to 8 as one of each; any other as it is."""
    if not re.match(r"tasks:trial\d", share.metric):
        yield share
        return
    for first, last in re.findall(r"(\d+)(?:(?: to | through |-|–)(\d+))?", share.metric):
        for trial in range(int(first), int(last or first) + 1):
            yield replace(share, metric=f"tasks:trial{trial}")


class Checker:
    """Answers of runs to statements; every estimate and comparison is made once."""

    def __init__(self, runs: Sequence[Run], missing: str, level: float) -> None:
        self._runs = runs
        self._missing = missing
        self._level = level
        self.names = _names_of(runs)
        self._estimated: dict[tuple[int, str], list[Estimate | RunScore]] = {}
        self._values: dict[tuple[int, str], RunScore | None] = {}
        self._compared: dict[tuple[int, int, str], list[Result]] = {}

    @cached_property
    def sizes(self) -> Sizes:
        """Numbers of tasks and attempts; names of tasks that are no plain words or numbers."""
        planned = [run.outcomes.n + run.outcomes.missing for run in self._runs]
        whole = sum(int(one.sum()) for one in planned)
        passes = sum(int(run.outcomes.c.sum()) for run in self._runs)
        is_complete = not any(run.outcomes.missing.any() for run in self._runs)
        names = (task for run in self._runs for task in run.outcomes.tasks)
        return Sizes(
            frozenset(len(run.outcomes) for run in self._runs),
            frozenset(int(count) for one in planned for count in one),
            frozenset({whole, *(int(one.sum()) for one in planned)}),
            frozenset(name for name in names if re.search(r"[A-Za-z].*\d", name)),
            (passes, whole) if is_complete and len(self._runs) > 1 else None,
        )

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks."""
        return tuple(dict.fromkeys(name for run in self._runs for name in run.outcomes.tasks))

    def may_be(self, statement: Statement) -> bool:
        """Whether the value of a share allows it to be right, without an interval's cost."""
        if not isinstance(statement, Share) or statement.metric.startswith("tasks:"):
            return True
        for run in statement.owners or range(len(self._runs)):
            share = statement
            if share.count is not None:
                share = replace(share, **self._share_of(share.count, run))
            word = self._word(share.metric, (run,), failing=share.failing)
            value = self._value(run, word)
            fits = value is None or agrees_any([value], share)
            if fits is not bool(statement.owners):
                return fits
        return bool(statement.owners)

    def _value(self, run: int, word: str) -> RunScore | None:
        if (run, word) not in self._values:
            value = None
            with suppress(PasshatError):
                outcomes = self._runs[run].outcomes
                if not outcomes.missing.any():
                    mean = float(values_by_task(outcomes, parse_metric(word)).mean())
                    value = RunScore(word, mean, (mean, mean))
            self._values[run, word] = value
        return self._values[run, word]

    def check(self, statement: Statement | Overlap) -> Check:
        if isinstance(statement, Unread):
            return Check(statement.text, Support.NOT_CHECKABLE, statement.reason)
        if isinstance(statement, Share):
            checks = [self._check_share(one) for one in _one_by_one(statement)]
            return next((one for one in checks if one.support is not Support.SUPPORTED), checks[0])
        if isinstance(statement, Overlap):
            return check_overlap(statement, self._runs)
        if isinstance(statement, Size):
            return check_size(statement, self._runs)
        if isinstance(statement, Place):
            return self._check_place(statement)
        if isinstance(statement, TaskCount):
            return check_task(statement, self._runs)
        return self._check_difference(statement)

    # Shares

    def _check_share(self, share: Share) -> Check:
        owners = share.owners or tuple(range(len(self._runs)))
        who = f"{self._runs[owners[0]].name} " if len(share.owners) == 1 else ""
        shown = _shown(share.metric)
        kind = "failures" if share.failing else shown or "share"
        relation, text = share.relation.replace("~", "about"), share.text.strip().lstrip("~<>=")
        name = f"{who}{kind} {relation} {text}"
        doubt = share.doubt or ("k is not given" if share.metric.endswith("k") else "")
        if doubt:
            return Check(name, Support.NOT_CHECKABLE, doubt)
        if share.count is not None:
            share = replace(share, **self._share_of(share.count, owners[0]))
        answers = {run: self._answer(share, run, share.metric) for run in range(len(self._runs))}
        found = {run: answer for run, answer in answers.items() if answer}
        if not any(run in found for run in owners):
            return Check(name, Support.NOT_CHECKABLE, f"no source has {shown or 'such a share'}")
        agreeing = [run for run in owners if run in found and agrees_any(found[run], share)]
        is_right = bool(agreeing) if not share.owners else len(agreeing) == len(owners)
        if is_right and len(agreeing) < len(owners) and share.relation not in "=~":
            return Check(name, Support.NOT_CHECKABLE, "of which run it is was not understood")
        if is_right:
            estimates = found[agreeing[0]]
            known = [one for one in estimates if agrees_any([one], share) and _is_known(one)]
            if not known:
                gaps = [one.gap for one in estimates if isinstance(one, RunScore)]
                return Check(name, Support.NOT_CHECKABLE, gaps[-1])
            return self._check_ends(name, share, known, agreeing[0])
        for runs, metric in share.others:
            other = replace(share, owners=runs, metric=metric, others=())
            check = self._check_share(other)
            if check.support is Support.SUPPORTED:
                return check
        values = ", ".join(
            f"{self._runs[run].name} {one.metric} = {number(one.value)}"
            for run in owners
            if run in found
            for one in found[run][:1]
        )
        reason = self._other_reading(share, owners, found)
        detail = f"the sources show {values}"
        if reason:
            return Check(name, Support.NOT_CHECKABLE, f"{reason}; {detail}")
        return Check(name, Support.CONTRADICTED, detail)

    def _share_of(self, count: int, run: int) -> dict[str, Any]:
        """A number of tasks as a share of those of a run."""
        total = max(len(self._runs[run].outcomes), 1)
        return {"low": count / total, "high": count / total, "step": 1 / total, "count": None}

    def _other_reading(
        self, share: Share, owners: Sequence[int], found: Mapping[int, list[Estimate | RunScore]]
    ) -> str:
        """Why a share that does not agree may be right all the same; empty where it may not."""
        for run, estimates in found.items() if share.guessed else ():
            if run not in owners and agrees_any(estimates, share):
                return f"it is that of {self._runs[run].name}, and the text names no run for it"
        others = () if share.metric else ("tasks@n", "tasks^n", *share.elsewhere)
        for run, word in itertools.product(owners, dict.fromkeys(others)):
            estimates = self._answer(share, run, word)
            if agrees_any(estimates, share):
                about = f"{estimates[0].metric} of {self._runs[run].name}"
                return f"it is {about}, and the text names no metric"
        if share.unsure and share.total not in {len(run.outcomes) for run in self._runs}:
            return f"{share.unsure!r} was not understood"
        return ""

    def _answer(self, share: Share, run: int, metric: str) -> list[Estimate | RunScore]:
        return self._estimates(run, self._word(metric, (run,), failing=share.failing))

    def _word(self, metric: str, runs: Sequence[int], *, failing: bool = False) -> str:
        """The metric that words such as "every time" mean for these runs."""
        if not metric:
            return "pass^1"
        if found := re.fullmatch(r"(avg|mean|maj|cons)@(\d+)", metric):
            is_of_all = all((self._runs[run].outcomes.n == int(found[2])).all() for run in runs)
            word = "pass^1" if found[1] in ("avg", "mean") else "run:vote"
            return word if is_of_all else metric
        if not metric.startswith("tasks"):
            return metric
        if metric.startswith("tasks:"):
            return f"run{metric[5:]}"
        family, k = metric[5], metric[6:]
        if failing and family != "<":  # all attempts fail where none passes
            family = "@" if family == "^" else "^"
        family = family.replace("<", "@")
        if k == "n":
            smallest = (
                int(self._runs[run].outcomes.n.min())
                for run in runs
                if len(self._runs[run].outcomes)
            )
            k = str(min(smallest, default=1))
        return f"pass{family}{k}"

    def _check_ends(
        self, name: str, share: Share, estimates: Sequence[Estimate | RunScore], run: int
    ) -> Check:
        detail = f"{self._runs[run].name} {estimates[0].metric} = {number(estimates[0].value)}"
        is_right = (
            any(near(one.low, one.high, share.ends) for one in estimates)
            or self._is_other_interval((run,), estimates[0].metric, share.ends)
            if share.ends is not None
            else self._is_error(share, estimates, run)
        )
        if is_right is None:
            reason = f"which attempts make a run is not known; {detail}"
            return Check(name, Support.NOT_CHECKABLE, reason)
        if is_right:
            return Check(name, Support.SUPPORTED, detail)
        ends = " and ".join(f"{one.interval_text()} for {one.population}" for one in estimates)
        return Check(f"the interval of {name}", Support.CONTRADICTED, f"it is {ends}")

    def _is_error(
        self, share: Share, estimates: Sequence[Estimate | RunScore], run: int
    ) -> bool | None:
        """Whether "± x" is an error or a deviation of a share; None where that is not known."""
        if share.error is None or any(is_error(o, share.error, share.spread) for o in estimates):
            return True
        outcomes, word = self._runs[run].outcomes, str(estimates[0].metric)
        return fits_spread(outcomes, word, share.error, share.spread)

    def _estimates(self, run: int, word: str) -> list[Estimate | RunScore]:
        """About new tasks, and about these."""
        if (run, word) in self._estimated:
            return self._estimated[run, word]
        estimates = self._estimated[run, word] = []
        outcomes = self._runs[run].outcomes
        metric = _estimable(word)
        for about in ("new tasks", "these tasks") if metric else ():
            with suppress(PasshatError):  # the run does not support that k or population
                options = {"missing": self._missing, "level": self._level, "about": about}
                estimates.append(estimate(outcomes, metric, **options))  # type: ignore[arg-type]
        if word.startswith("run:"):
            estimates += scores_of(outcomes, word[4:])
        return estimates

    # Differences

    def _check_difference(self, claim: Difference) -> Check:
        """A comparison; where its sides are not sure, it is wrong only if it is so either way."""
        if claim.against:
            return self._check_metrics(claim)
        check = self._check_sides(claim)
        if claim.p_value and check.support is Support.SUPPORTED:
            return self._check_p_value(claim, check)
        if claim.unsure and check.support in (Support.CONTRADICTED, Support.NOT_SHOWN):
            turned = self._check_sides(replace(claim, subject=claim.other, other=claim.subject))
            if turned.support is not Support.CONTRADICTED:
                detail = f"{claim.unsure}; {check.detail}"
                return replace(check, support=Support.NOT_CHECKABLE, detail=detail)
        return check

    def _check_p_value(self, claim: Difference, check: Check) -> Check:
        """A p-value of a difference; another sound test may give one twice as large or small."""
        assert claim.subject is not None
        assert claim.other is not None
        sign, stated, test = claim.p_value or ("", 0.0, "")
        pair = (claim.subject, claim.other)
        results = self._results(pair, self._word(claim.metric, pair))
        found = [one.p_value for one in results if one.p_value is not None and not test]
        new, old = (self._runs[run].outcomes for run in pair)
        found += paired_p_values(new, old, test)
        if not found:
            return replace(check, support=Support.NOT_CHECKABLE, detail="no test gives a p-value")
        is_above = sign in (">", ">=", "≥")
        fits = [p > stated / 2 if is_above else p < 2 * stated for p in found]
        is_right = any(
            fit and (sign != "=" or p > stated / 2) for fit, p in zip(fits, found, strict=True)
        )
        name = f"{check.statement}, p {sign} {stated:g}"
        return Check(name, support(is_right), f"p = {min(found):.2g}; {check.detail}")

    def _check_metrics(self, claim: Difference) -> Check:
        """Two metrics of one run: the gap between them, their ratio, or that they are equal."""
        assert claim.subject is not None
        name = f"{self._runs[claim.subject].name}: {_shown(claim.metric)} against "
        name += f"{_shown(claim.against)}, {claim.text}"
        values = [
            one.value
            for metric in (claim.metric, claim.against)
            for one in self._estimates(claim.subject, self._word(metric, (claim.subject,)))[:1]
        ]
        if len(values) < 2:
            return Check(name, Support.NOT_CHECKABLE, "no source has these metrics")
        detail = f"{number(values[0])} against {number(values[1])}"
        gap = 100 * abs(values[0] - values[1])
        if claim.points is not None:
            is_right = holds(gap, claim.points, 0.5001 * claim.step, claim.relation)
            is_turned = (values[0] - values[1]) * claim.sign < 0
            is_right = is_right and not (claim.kind == "ordered" and is_turned)
        elif claim.ratio is not None and min(values) > 0:
            ratio = values[0] / values[1]
            is_right = any(
                holds(one, claim.ratio, 0.1 * claim.ratio, claim.relation)
                for one in (ratio, 1 / ratio)[: 1 if claim.kind == "ordered" else 2]
            )
        elif claim.kind == "equal":
            is_right = gap < _EQUAL_POINTS
        else:
            is_right = (values[0] - values[1]) * claim.sign > 0
        return Check(name, support(is_right), detail)

    def _check_sides(self, claim: Difference) -> Check:
        name = self._difference_name(claim)
        if claim.doubt:
            return Check(name, Support.NOT_CHECKABLE, claim.doubt)
        if claim.subject is None or claim.other is None or min(claim.subject, claim.other) < 0:
            return Check(name, Support.NOT_CHECKABLE, "a comparison needs two runs that are named")
        pair = (claim.subject, claim.other)
        results = self._results(pair, self._word(claim.metric, pair))
        if not results:
            return Check(name, Support.NOT_CHECKABLE, "a lift needs two runs that can be paired")
        if claim.percent is not None or claim.ratio is not None:
            return self._check_ratio(name, claim)
        if claim.kind == "tasks":
            return self._check_task_count(name, claim)
        about = [one for one in results if claim.population in ("", one.population)] or results
        if claim.points is not None or claim.ends is not None:
            return self._check_points(name, claim, results, about)
        answer = support_of(claim, about)
        is_open = claim.kind in ("equal", "different") and answer is Support.NOT_CHECKABLE
        margin = "equality needs a margin chosen beforehand"
        return Check(name, answer, margin if is_open else results[0].sentence)

    def _difference_name(self, claim: Difference) -> str:
        def of(run: int | None) -> str:
            return self._runs[run].name if run is not None and run >= 0 else "another run"

        subject, other = of(claim.subject), of(claim.other)
        if claim.kind == "equal":
            return f"{subject} and {other} are equal"
        if claim.kind in ("unsettled", "tasks", "tested"):
            return f"{subject} against {other}: {claim.text}"
        if claim.kind == "ranked":
            return f"{subject} is {'above' if claim.sign > 0 else 'below'} {other}"
        if claim.kind in ("denied", "different"):
            return f"{subject} is not {claim.text} than {other}"
        if claim.points is not None:
            sign = "+" if claim.sign > 0 else "-" if claim.sign < 0 else ""
            ends = "" if claim.ends is None else f", {claim.ends[0]:+g} to {claim.ends[1]:+g}"
            return f"lift {sign}{claim.points:g} points{ends}"
        if claim.percent is not None or claim.ratio is not None or claim.ends is not None:
            return f"{subject} against {other}: {claim.text}"
        better, worse = (subject, other) if claim.sign > 0 else (other, subject)
        return f"{better} is better than {worse}"

    def _check_points(
        self, name: str, claim: Difference, results: Sequence[Result], about: Sequence[Result]
    ) -> Check:
        if claim.counted and claim.points is not None:
            outcomes = self._runs[claim.subject or 0].outcomes
            total = len(outcomes) if claim.counted == "task" else int(outcomes.n.sum())
            claim = replace(claim, points=100 * claim.points / total, step=100 / total)
        assert claim.subject is not None
        assert claim.other is not None
        pair = (claim.subject, claim.other)
        subject, other = (self._runs[run].name for run in pair)
        detail = f"{subject} minus {other}, {results[0].metric}, " + "; ".join(
            f"{one.population}: {100 * one.lift:+.1f} points {one.interval_text()}"
            for one in results
        )
        is_right = claim.points is None or fits_points(claim, results[0])
        if is_right and claim.ends is not None:
            low, high = (end / 100 for end in claim.ends)
            turned = [(low, high)] * (claim.sign >= 0 or low < 0) + [(-high, -low)] * (
                claim.sign <= 0
            )
            is_right = any(
                any(near(one.low, one.high, ends) for one in about)
                or self._is_other_interval(pair, results[0].metric, ends)
                for ends in turned
            )
            return Check(name, support(is_right), detail)
        if not is_right and not claim.metric:
            for word in ("tasks@n", "tasks^n"):
                others = self._results(pair, self._word(word, pair))
                if others and fits_points(claim, others[0]):
                    return Check(
                        name,
                        Support.NOT_CHECKABLE,
                        f"it is that of {others[0].metric}, which the text does not name; {detail}",
                    )
        return Check(name, support(is_right), detail)

    def _check_task_count(self, name: str, claim: Difference) -> Check:
        """On how many tasks a run passes more of its attempts than the other."""
        assert claim.subject is not None
        assert claim.other is not None
        rates = [
            dict(zip(one.tasks, one.c / np.maximum(one.n, 1), strict=True))
            for one in (self._runs[claim.subject].outcomes, self._runs[claim.other].outcomes)
        ]
        shared = rates[0].keys() & rates[1].keys()
        ahead = sum(
            (rates[0][task] - rates[1][task]) * claim.sign > 0
            if claim.sign
            else rates[0][task] == rates[1][task]
            for task in shared
        )
        detail = f"{ahead} of {counted(len(shared), 'task')}"
        stated = claim.share * len(shared) if claim.count is None else claim.count
        return Check(name, support(abs(ahead - stated) < 0.5), detail)

    def _check_ratio(self, name: str, claim: Difference) -> Check:
        """A relative change or a ratio, of the shares of passes or of failures."""
        assert claim.subject is not None
        assert claim.other is not None
        word = self._word(claim.metric, (claim.subject, claim.other))
        found = [
            next(iter(self._estimates(run, word)), None) for run in (claim.subject, claim.other)
        ]
        shares = [1 - one.value if claim.failing else one.value for one in found if one is not None]
        if len(shares) < 2 or not shares[1]:
            return Check(name, Support.NOT_CHECKABLE, f"no source has {word}")
        ratio = shares[0] / shares[1]
        kind = "failures" if claim.failing else word
        detail = (
            f"{kind} {number(shares[0])} against {number(shares[1])}, {100 * (ratio - 1):+.1f}%"
        )
        if claim.ratio is not None:
            slack = claim.ratio * (0.2 if claim.relation == "~" else 0.1)
            is_right = holds(ratio, claim.ratio, slack, claim.relation)
            return Check(name, support(is_right), detail)
        assert claim.percent is not None
        change = claim.percent * (-claim.sign if claim.failing else claim.sign)
        slack = 0.5001 * claim.step + (2.0 if claim.relation == "~" else 0)
        actual = 100 * (ratio - 1)
        if claim.relation in ("=", "~") and abs(actual - change) > slack:
            if not claim.is_relative and abs(100 * (shares[0] - shares[1]) - change) <= slack:
                return Check(
                    name, Support.NOT_CHECKABLE, f"in points it is right, in percent not: {detail}"
                )
            return Check(name, Support.CONTRADICTED, detail)
        is_right = actual * change > 0 and holds(abs(actual), abs(change), slack, claim.relation)
        return Check(name, support(is_right), detail)

    def _results(self, pair: tuple[int, int], word: str) -> list[Result]:
        """The lift of the first run over the second, about new tasks and about these."""
        if pair[0] == pair[1] or max(pair) >= len(self._runs):
            return []
        if (*pair, word) not in self._compared:
            found = self._compared[*pair, word] = []
            new, old = (self._runs[run] for run in pair)
            with suppress(PasshatError):
                metric = _estimable(word)
                found += results_of(old, new, metric, missing=self._missing, level=self._level)
        return self._compared[*pair, word]

    def _check_place(self, claim: Place) -> Check:
        """The place of a run by its number; whether the lead may be chance is another question."""
        runs = range(len(self._runs))
        word = self._word(claim.metric, runs)
        found = {run: one.value for run in runs for one in self._estimates(run, word)[:1]}
        name = f"{self._runs[claim.run].name} is {claim.text} of {len(runs)}"
        if claim.run not in found or len(found) < len(runs):
            return Check(name, Support.NOT_CHECKABLE, f"no source has {word}")
        order = sorted(found, key=lambda run: -found[run])
        values = ", ".join(f"{self._runs[run].name} {number(found[run])}" for run in order)
        detail = f"{word}: {values}"
        if claim.place > len(order):
            return Check(name, Support.CONTRADICTED, detail)
        wanted = order[claim.place - 1 if claim.place > 0 else claim.place]
        if found[wanted] != found[claim.run]:
            return Check(name, Support.CONTRADICTED, detail)
        others = [run for run in runs if run != claim.run]
        pairs = [self._results((claim.run, run), word) for run in others]
        is_shown = all(any(not one.low <= 0 <= one.high for one in pair) for pair in pairs)
        if claim.metric or is_shown:
            return Check(name, Support.SUPPORTED, detail)
        return Check(
            name, Support.NOT_CHECKABLE, f"by its number it is, by chance perhaps; {detail}"
        )

    def _is_other_interval(
        self, runs: Sequence[int], metric: object, ends: tuple[float, float]
    ) -> bool:
        """Whether ends are near a bootstrap's or a normal interval of the mean over tasks."""
        try:
            values = [
                values_by_task(self._runs[run].outcomes, parse_metric(str(metric))) for run in runs
            ]
        except PasshatError:  # a metric without a value per task
            return False
        tasks = [self._runs[run].outcomes.tasks for run in runs]
        if tasks[0] != tasks[-1] or len(tasks[0]) < _FEWEST_TASKS:
            return False
        sample = values[0] - values[1] if len(values) > 1 else values[0]
        half = 1.96 * sample.std(ddof=1) / np.sqrt(len(sample))
        picks = np.random.default_rng(0).integers(0, len(sample), (_REDRAWS, len(sample)))
        tails = np.percentile(sample[picks].mean(axis=1), (2.5, 97.5))
        mean = float(sample.mean())
        return near(mean - half, mean + half, ends) or near(tails[0], tails[1], ends)
