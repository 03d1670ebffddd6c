"""Statements of a claim against the runs it is about: supported, contradicted or not checkable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from passhat._display import counted, number
from passhat.errors import PasshatError
from passhat.reporting.review.claim_text import Claimed, Passage
from passhat.stats.compare import Result, compare
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.outcomes import Run

__all__ = ["Check", "Support", "check_statements"]

_CLOSE_POINTS = 2.0
"""An end of an interval by another sound method may be so far from ours."""


class Support(StrEnum):
    """Answers of the runs to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_SHOWN = "not shown"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True, slots=True)
class Check:
    """A statement of the claim, what the runs say of it, and the numbers that say so."""

    statement: str
    support: Support
    detail: str


def check_statements(
    passage: Passage, runs: Sequence[Run], *, missing: str, level: float
) -> tuple[Check, ...]:
    """Check every number and every comparison of a claim that the runs can answer."""
    statements = _Statements(passage, runs, missing, level)
    return tuple(
        check
        for part in (statements.values, statements.lift, statements.direction, statements.sizes)
        for check in part()
    )


class _Statements:
    def __init__(self, passage: Passage, runs: Sequence[Run], missing: str, level: float) -> None:
        self._passage = passage
        self._runs = runs
        self._missing = missing
        self._level = level
        self._mentions = _mentions(passage.text, runs)

    def values(self) -> Iterator[Check]:
        for value in self._passage.values:
            if not value.in_range:
                yield self._check_value(value)

    def _check_value(self, value: Claimed) -> Check:
        mention = self._passage.metric_of(value)
        words = [mention.word] if mention is not None and mention.k is not None else []
        if not words and value.total is not None and value.total == self._passage.attempts:
            words = ["pass^1"]  # counted in attempts, not in tasks
        owner = self._owner(value.start)
        runs = self._runs if owner is None else [self._runs[owner]]
        who = "" if owner is None else f"{self._runs[owner].name} "
        name = f"{who}{words[0] if words else 'share'} = {value.text.strip()}"
        found: list[str] = []
        for run in runs:
            for word in words or _plain_words(run):
                estimates = list(self._estimates(run, word))
                if not estimates:
                    continue
                if any(_agrees(one, value) for one in estimates):
                    return self._check_ends(name, value, run, word, estimates)
                found.append(f"{run.name} {word} = {number(estimates[0].value)}")
        if not found:
            detail = f"no source has {words[0]}" if words else "no source has such a share"
            return Check(name, Support.NOT_CHECKABLE, detail)
        return Check(name, Support.CONTRADICTED, f"the sources show {', '.join(found)}")

    def _check_ends(
        self, name: str, value: Claimed, run: Run, word: str, estimates: Sequence[Estimate]
    ) -> Check:
        detail = f"{run.name} {word} = {number(estimates[0].value)}"
        if value.ends is None or any(_near(one.low, one.high, value.ends) for one in estimates):
            return Check(name, Support.SUPPORTED, detail)
        ends = " and ".join(f"{one.interval_text()} for {one.population}" for one in estimates)
        return Check(f"the interval of {name}", Support.CONTRADICTED, f"it is {ends}")

    def lift(self) -> Iterator[Check]:
        """A lift in points, and its interval."""
        gain, ends = self._passage.gain, self._passage.lift_interval
        if gain is None and ends is None:
            return
        results = self._results()
        text = [] if gain is None else [f"{gain:+g} points"]
        text += [] if ends is None else [f"{ends[0]:+g} to {ends[1]:+g}"]
        name = f"lift {', '.join(text)}"
        if not results:
            yield Check(name, Support.NOT_CHECKABLE, "a lift needs two runs that can be paired")
            return
        # A size is told as such: "B beats A by 7" and "A is 7 below B" are the same lift, whose
        # direction is a statement of its own.
        size = abs(100 * results[0].lift)
        is_right = gain is None or abs(size - abs(gain)) <= 0.5001 * self._passage.gain_step
        ends_right = ends is None or any(
            _near(side * one.low, side * one.high, (ends[0] / 100, ends[1] / 100))
            for one in results
            for side in (1, -1)
        )
        detail = "; ".join(
            f"{one.population}: {100 * one.lift:+.1f} points {one.interval_text()}"
            for one in results
        )
        yield Check(
            name,
            Support.SUPPORTED if is_right and ends_right else Support.CONTRADICTED,
            f"{self._runs[1].name} minus {self._runs[0].name}, {results[0].metric}, {detail}",
        )

    def direction(self) -> Iterator[Check]:
        """That one run is better than another."""
        if not self._passage.compares or len(self._runs) != 2:
            return
        sign, results = self._sign(), self._results()
        if sign is None or not results:
            return
        better, other = (1, 0) if sign > 0 else (0, 1)
        name = f"{self._runs[better].name} is better than {self._runs[other].name}"
        detail = results[0].sentence
        lifts = [sign * one.lift for one in results]
        if lifts[0] <= 0:
            yield Check(name, Support.CONTRADICTED, detail)
        elif any(_excludes_zero(one, sign) for one in results):
            yield Check(name, Support.SUPPORTED, detail)
        else:
            yield Check(name, Support.NOT_SHOWN, detail)

    def sizes(self) -> Iterator[Check]:
        """The number of tasks and of attempts."""
        tasks, attempts = self._passage.tasks, self._passage.attempts
        if tasks is not None:
            sizes = {run.name: len(run.outcomes) for run in self._runs}
            detail = ", ".join(f"{name} {counted(size, 'task')}" for name, size in sizes.items())
            is_right = tasks in sizes.values()
            yield Check(f"{tasks:,} tasks", _support(is_right), detail)
        if attempts is not None:
            planned = [run.outcomes.n + run.outcomes.missing for run in self._runs]
            is_right = any(attempts in {*one.tolist(), int(one.sum())} for one in planned)
            detail = ", ".join(f"{run.name} {run.outcomes.attempts_text()}" for run in self._runs)
            yield Check(f"{attempts:,} attempts", _support(is_right), detail)

    def _estimates(self, run: Run, word: str) -> Iterator[Estimate]:
        """About new tasks, and about these."""
        for about in ("new tasks", "these tasks"):
            try:
                yield estimate(
                    run.outcomes, word, missing=self._missing, level=self._level, about=about
                )
            except PasshatError:  # the run does not support that k or population
                continue

    def _results(self) -> list[Result]:
        """The lift between two runs, about new tasks and about these; empty where there is none."""
        if len(self._runs) != 2:
            return []
        words = [m.word for m in self._passage.metrics if m.k is not None] or ["pass^1"]
        options = {"missing": self._missing, "level": self._level}
        try:
            pair = compare(self._runs[0], self._runs[1], words[0], **options)  # type: ignore[arg-type]
        except PasshatError:
            return []
        return [*pair.results[:1], *pair.these_tasks[:1]]

    def _sign(self) -> int | None:
        """+1 where the text calls the second run better, -1 where the first; None if neither."""
        text = self._passage.text
        word = re.search(_COMPARATIVE, text, re.IGNORECASE)
        if word is None or not self._mentions or _NEGATION.search(text[: word.start()]):
            return None
        before = [run for start, run in self._mentions if start < word.start()]
        after = [run for start, run in self._mentions if start > word.start()]
        subject = before[-1] if before else 1 - after[0]
        is_worse = re.fullmatch(_WORSE, word[0], re.IGNORECASE) is not None
        better = 1 - subject if is_worse else subject
        return 1 if better == 1 else -1

    def _owner(self, start: int) -> int | None:
        """The run that a number is about: the last that is named before it in its sentence."""
        sentence = self._passage.sentence_at(start)
        first = self._passage.text.index(sentence)
        before = [run for place, run in self._mentions if first <= place < start]
        after = [run for place, run in self._mentions if start < place < first + len(sentence)]
        if before:
            return before[-1]
        return after[0] if len(set(after)) == 1 else None


_WORSE = (
    r"worse|below|behind|lower|underperform\w*|regress\w*|dropp?\w*|fell|falls|trail\w*|weaker|"
    r"inferior|los(?:es|t)"
)
_COMPARATIVE = (
    r"\b(?:better|beats?|outperform\w*|outscor\w*|surpass\w*|improv\w+|superior|stronger|wins?|won|"
    r"leads?|ahead|exceeds?|higher|above|gain\w*|rose|best|more (?:reliable|capable|accurate)|"
    rf"{_WORSE})\b"
)

_NEGATION = re.compile(
    r"(?:\bnot|n't|\bno|\bnever|\bcannot|\bfail(?:s|ed)? to|\bneither)\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)
"""Before a comparison: the text denies it, and claims nothing that could be checked."""


def _mentions(text: str, runs: Sequence[Run]) -> list[tuple[int, int]]:
    """Places where runs are named: by name or agent, or as A and B where both occur."""
    places = {
        match.start(): position
        for position, run in enumerate(runs)
        for word in {run.name, run.agent}
        if word
        for match in re.finditer(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE)
    }
    letters = [list(re.finditer(rf"(?<![\w-]){letter}(?:'s)?(?![\w@^-])", text)) for letter in "AB"]
    if len(runs) == 2 and not places and letters[1]:  # A alone may be the article
        for position, matches in enumerate(letters):
            places |= {match.start(): position for match in matches}
    return sorted(places.items())


def _plain_words(run: Run) -> list[str]:
    """Metrics that a share without one may be: of attempts, of tasks solved once, or always."""
    smallest = int(run.outcomes.n.min()) if len(run.outcomes) else 1
    return ["pass^1", *[f"pass@{smallest}", f"pass^{smallest}"] * (smallest > 1)]


def _agrees(result: Estimate, value: Claimed) -> bool:
    """Whether the number is the estimate to its last digit, or between its bounds."""
    low, high = result.value_ends
    margin = 0.5001 * value.step
    return low - margin <= value.share <= high + margin


def _near(low: float | None, high: float | None, ends: tuple[float, float]) -> bool:
    if low is None or high is None:
        return False
    first, last = sorted((low, high))
    return all(
        abs(one - other) <= _CLOSE_POINTS / 100 + 10**-9
        for one, other in zip((first, last), sorted(ends), strict=True)
    )


def _excludes_zero(result: Result, sign: int) -> bool:
    return result.low > 0 if sign > 0 else result.high < 0


def _support(is_right: bool) -> Support:
    return Support.SUPPORTED if is_right else Support.CONTRADICTED
