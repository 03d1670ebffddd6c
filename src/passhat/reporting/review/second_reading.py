"""A second reading of a sentence: every number against the cues and the names around it.

The grammar reads a sentence it knows exactly and leaves others open, or takes them for something
else. This reading is coarse and knows no order of words: a number goes to the metric, the run and
the side (passes or failures) that stand nearest. Where its nearest reading is what the runs show,
the number is right; where none of the readings near it is, it is wrong.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from passhat.reporting.review.agreement import Check, Support, holds
from passhat.reporting.review.marks import MarkedSentence, Number
from passhat.reporting.review.nearest import FAIL, OBJECT, PASS, Nearest, run_at
from passhat.reporting.review.statements import (
    ATTEMPTS,
    BENCHMARK,
    EQUAL,
    GOAL,
    MORE,
    OTHER,
    POLARITY,
    SUBSET,
    TASKS,
    Difference,
    Share,
    Size,
    Statement,
    unknown_words,
)

__all__ = ["Found", "SecondReading", "digits_of"]

_ATT, _TASK = ATTEMPTS, TASKS
_CATCH = re.compile(
    r"\b(?:catch\w* up|caught up|overt\w+|clos\w+ the gap|reach\w* the level)", re.I
)
_ASIDE = re.compile(rf"{OTHER.pattern}|\b(?:temperatures?|{GOAL.pattern[5:]}", re.IGNORECASE)
_PART = re.compile(r"\bof the (\d+) (?:tasks )?(?:that|which)\b", re.IGNORECASE)
_TURNED = re.compile(rf"\b(?:which|that|whom)\s+⟦\w⟧\s+{POLARITY.pattern}", re.IGNORECASE)
_ALL_RUNS = re.compile(
    r"\b(?:total|overall|altogether|pooled|combined|together|all|both|of (?:them|which))\b"
)
_ALL_TASKS = re.compile(r"\b(?:on|across|over|using|from)(?: (?:the|our|all))?\s*$")
_ELSEWHERE = re.compile(rf"\s*on (?:the )?{BENCHMARK}")
_FRACTIONS = {f"{share}%" for share in ("20.0", "25.0", "33.3", "50.0", "66.7", "75.0")}
_SURE = 3.0
_MOST_NUMBERS = 60
"""A sentence with more is a table or a log; every number is weighed against all others."""
_ENDS = {"tasks:best": "<=", "tasks:worst": ">="}
_CHANGED = re.compile(
    r"\bby\s*$|\b(?:cut|split|halv)\w*\b[^,;%]* in\s*$|"
    r"\b(?:gain|improvement|increase|reduction|drop|decrease|loss|change|cut)s? of\s*$"
)
_CHANGED_TO = re.compile(
    r"\s*(?:relative|better|higher|lower|worse|more|fewer|less|improvement|increase|reduction|"
    r"drop|gain|decrease|in relative)\b"
)
_REPEATS = r"\b(?:seed|repetition|repeat|rollout|episode)"
_SMALL, _WIDE = 1.5, 4.0


_AHEAD_WORDS = (
    r"(?:higher|better|ahead|wins?|beats?|worse|lower|behind|loses?|lost|regress\w*|"
    r"(?:more|fewer) (?:(?:successful |correct )?attempts|passes|successes))\b"
)
_AHEAD = re.compile(
    rf"\b(?:{_AHEAD_WORDS}|(?:tie[sd]?|equal\w*|(?:the )?same|draws?)\b)"
    r"(?:\s+(?!of\b)[\w⟦⟧-]+){0,4}?\s+(?:on|in)"
    r"(?: (?:only|just|all|each of|the|of|remaining|other))*\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many tasks and attempts the runs have."""

    tasks: frozenset[int]
    attempts: frozenset[int]
    """At a task."""
    totals: frozenset[int]
    """Attempts of a run, and of all runs."""
    task_names: frozenset[str]
    pooled: tuple[int, int] | None
    """Attempts of several runs that pass, and all of them, where none is missing."""


@dataclass(frozen=True, slots=True)
class Found:
    """A number of a sentence with the answer to its nearest reading."""

    text: str
    check: Check
    is_lift: bool = False
    """Whether it says how far one of two runs is ahead."""
    is_read: bool = True
    """Whether there was a reading at all."""
    is_size: bool = False
    """Whether it is how many tasks or attempts were made."""
    is_sure: bool = False
    """Whether no other reading is near the one that is wrong."""

    @property
    def support(self) -> Support:
        return self.check.support


def _metrics_of(one: MarkedSentence) -> frozenset[str]:
    return frozenset(cue.metric for cue in one.cues)


def _stated(number: Number) -> float:
    share = number.share or 0.0
    return 1 - share if number.is_of_failures else share


def _open(number: Number, reason: str) -> Found:
    return Found(number.text, Check(number.text, Support.NOT_CHECKABLE, reason))


def _right(number: Number, statement: str, detail: str) -> Found:
    return Found(number.text, Check(statement, Support.SUPPORTED, detail))


@dataclass(slots=True)
class SecondReading:
    """Reads the sentences of a passage one after the other."""

    names: Sequence[Sequence[str]]
    check: Callable[[Statement], Check]
    may_be: Callable[[Statement], bool]
    """Whether the numbers alone allow it to be right; quick."""
    sizes: Sizes
    metrics: frozenset[str] = frozenset()
    """The metrics that the last sentence names."""
    cue_texts: tuple[str, ...] = ()
    is_about_significance: bool = False
    is_turned: bool = False
    """Whether a clause such as "which B overtakes" names the better side second."""
    is_part: bool = False
    """Whether the last sentence is about some of the tasks."""
    is_aside: bool = False
    """Whether all its numbers are costs, goals and the like."""
    computed: set[str] = field(default_factory=set)
    """Numbers that follow from others of the last sentence."""
    owned: set[int] = field(default_factory=set)
    """The runs that have a number in the last sentence that is right."""
    _near: Nearest = field(init=False)

    def __post_init__(self) -> None:
        self._near = Nearest(self.names, self.sizes.tasks)

    def read(self, sentence: str) -> list[Found]:
        """Answer every number; none where the sentence is about a part of the tasks."""
        one = MarkedSentence(sentence, self.names)
        one.take_budgets(max(self.sizes.attempts, default=0))
        found: list[Found] = []
        self.owned.clear()
        self.computed.clear()
        self.is_turned = _TURNED.search(one.text) is not None
        self.is_part = not set(map(int, _PART.findall(one.text))) <= self.sizes.tasks
        self.is_aside = bool(one.numbers) and all(
            self._is_aside(one, number) for number in one.numbers
        )
        if self._is_readable(one):
            lifts = [self._is_lift(one, number) for number in one.numbers]
            for last in (False, True):
                for number, is_lift in zip(one.numbers, lifts, strict=True):
                    if is_lift is last and not self._is_aside(one, number):
                        found.append(self._answer(one, number))
        self.is_about_significance = "significan" in one.text
        self.metrics = _metrics_of(one)
        self.cue_texts = tuple(one.text[cue.start : cue.end] for cue in one.cues)
        if found and self._is_open_comparison(one):
            reason = "a side has no number that was found right"
            found.append(Found("", Check("the comparison", Support.NOT_CHECKABLE, reason)))
        self._near.remember(one)
        return found

    def _is_readable(self, one: MarkedSentence) -> bool:
        """Whether it is about whole runs: no part of the tasks, no single task, no other run."""
        words = set(re.findall(r"[\w.:/-]*\w", one.text))
        return (
            len(one.numbers) <= _MOST_NUMBERS
            and re.search("[a-z]", one.text) is not None
            and not SUBSET.search(one.text)
            and not re.search(
                r"\b(?:any|median|worst|average|hardest|easiest) (?:single )?task\b", one.text
            )
            and "⟦?⟧" not in one.text
            and not self.is_part
            and not words & self.sizes.task_names
        )

    def _is_open_comparison(self, one: MarkedSentence) -> bool:
        """Whether runs are compared of which some have no number that is right."""
        named = {run_at(code) for code, *_ in one.runs if code.isalpha()}
        compares = POLARITY.search(one.text) or EQUAL.search(one.text) or _CATCH.search(one.text)
        return bool(compares) and len(named) > 1 and not named <= self.owned

    def _is_lift(self, one: MarkedSentence, number: Number) -> bool:
        return number.unit in ("points", "x") or self._is_change(one, number)

    def _is_aside(self, one: MarkedSentence, number: Number) -> bool:
        """Whether it is no result: a cost, a goal, or attempts below all made, the k of another."""
        ends = r"|\band\b" if number.unit == "x" else ""
        before = re.split(rf"[,;()%]{ends}", one.text[: number.start])[-1]
        after = re.split(rf"[,;()]|⟦{ends}", one.text[number.end :])[0]
        if number.unit in ("%", "share", "", "x") and _ASIDE.search(f"{before} {after}"):
            return True
        group = one.group_of(number)
        before = one.text[max(0, group[0].start - 24) : number.start]
        if re.search(_REPEATS, number.text):
            return False
        is_attempts = number.unit == "attempts" or re.search(rf"\d {_ATT} (?:to|and|or) $", before)
        return bool(is_attempts) and number.value < max(self.sizes.attempts, default=0)

    def _answer(self, one: MarkedSentence, number: Number) -> Found:
        """The answer to the nearest reading, unless another one near it is right."""
        if number.unit.startswith("size"):
            return self._size(number)
        beside = self._of_beside(one, number)
        if beside is not None:
            return beside
        if len(one.numbers) > 1 and _ELSEWHERE.match(one.text, number.end):
            return _open(number, "it may be of another benchmark")
        if self._is_vague(one, number):
            return _open(number, "which tasks it counts was not understood")
        is_named = any(0 <= cue.start - number.end < 8 for cue in one.cues)
        if number.unit == "" and not is_named and MORE.search(one.text[: number.start]):
            return _open(number, "it may be a change of the number before")
        strange = self._strange_words(one, number)
        if strange:
            return _open(number, f"{strange!r} was not understood")
        readings = sorted(self._readings(one, number), key=lambda pair: pair[0])
        found = self._nearest(one, number, readings) if readings else None
        is_right = found is not None and found.support is Support.SUPPORTED
        if not is_right and self._is_lift(one, number) and self._is_computed(one, number):
            self.computed.add(number.text)
            return _right(number, number.text, "it follows from the numbers beside it")
        return found or replace(_open(number, "it was not understood"), is_read=False)

    def _nearest(
        self, one: MarkedSentence, number: Number, readings: Sequence[tuple[float, Statement]]
    ) -> Found:
        best = readings[0][0]
        near = [pair for pair in readings if pair[0] <= best + _WIDE]
        first: Found | None = None
        for penalty, statement in near:
            if first is not None and not self.may_be(statement):
                continue
            check = self.check(statement)
            if check.support is Support.SUPPORTED and penalty > best + _SMALL:
                return _open(number, f"it may be {check.statement}")
            lift = isinstance(statement, Difference)
            if check.support is Support.SUPPORTED:
                self._own(number, statement)
                return Found(number.text, check, lift)
            several = isinstance(statement, Share) and len(statement.owners) > 1
            if several and (number.unit in ("tasks", "of", "") or len(_metrics_of(one)) > 1):
                return _open(number, "it is of several runs")
            is_sure = isinstance(statement, Share) and best <= _SURE and len(near) == 1
            is_sure = is_sure and not unknown_words(re.sub(r"⟦[^⟧]*⟧", " ", one.text))
            first = first or Found(number.text, check, lift, is_sure=is_sure)
        assert first is not None
        return first

    def _own(self, number: Number, statement: Statement) -> None:
        """Remember what was right: whose number it is, and the share for what follows from it."""
        runs: tuple[int | None, ...] = ()
        if isinstance(statement, Share):
            number.share = 1 - statement.low if statement.failing else statement.low
            number.is_of_failures = statement.failing
            runs = statement.owners
            number.owner = runs[0] if len(runs) == 1 else None
        elif isinstance(statement, Difference):
            runs = (statement.subject, statement.other)
        self.owned.update(run for run in runs if run is not None)

    def _of_beside(self, one: MarkedSentence, number: Number) -> Found | None:
        """A percentage in brackets behind its counts, or a count of the attempts of all runs."""
        pooled = self._pooled(one, number)
        place = one.numbers.index(number)
        before = one.numbers[place - 1] if place else None
        is_part = number.unit == "%" and before is not None and before.unit in ("of", "tasks")
        if pooled is not None or before is None or not is_part:
            return pooled
        total = before.total or min(self.sizes.tasks, default=0)
        if not total or (not before.total and len(self.sizes.tasks) > 1):
            return None
        gap = one.text[before.end : number.start]
        share = before.value / total
        is_near = abs(100 * share - number.value) <= 0.5001 * number.step
        if not re.fullmatch(r"[^,;()]*[(=]\s*", gap) or not is_near:
            return None
        return _right(number, f"{number.text} = {before.text}", "they agree")

    def _pooled(self, one: MarkedSentence, number: Number) -> Found | None:
        """A number of attempts of all runs together: 261 of all 1,100 failed."""
        passes, total = self.sizes.pooled or (0, 0)
        is_named = any(code.isalpha() for code, *_ in one.runs)
        is_whole = number.unit == "of" and number.total == total
        is_part = number.unit in ("", "results") and _ALL_RUNS.search(one.text) is not None
        count = total - passes if self._near.is_failing(one, number) else passes
        if not total or is_named or not (is_whole or (is_part and number.value == count)):
            return None
        support = Support.SUPPORTED if number.value == count else Support.CONTRADICTED
        detail = f"{passes:,} of {total:,} attempts of all runs pass"
        return Found(number.text, Check(f"{number.text}, all runs together", support, detail))

    def _is_vague(self, one: MarkedSentence, number: Number) -> bool:
        """Whether it counts tasks without a word that says which."""
        is_count = number.unit == "tasks" and int(number.value) not in self.sizes.tasks
        is_said = one.cues or re.search(FAIL, one.text, re.IGNORECASE)
        is_all = _ALL_TASKS.search(one.text[: number.start])
        return is_count and not (is_said or is_all or self._words_ahead(one, number))

    def _strange_words(self, one: MarkedSentence, number: Number) -> str:
        """Unknown verbs between a run and its number: they may say what is counted."""
        before = [end for _, _, end in one.runs if end <= number.start]
        part = one.text[before[-1] : number.start] if before else ""
        part = re.split(r"[:,;(]", part)[-1]
        known = rf"{FAIL}|{PASS}|{POLARITY.pattern}|[⟦;.]"
        if any(cue.end > before[-1] and cue.start < number.start for cue in one.cues if before):
            return ""
        if not part or re.search(known, part, re.IGNORECASE):
            return ""
        return " ".join(word for word in unknown_words(part) if re.search(r"(?:ed|es|s)$", word))

    def _is_computed(self, one: MarkedSentence, number: Number) -> bool:
        """Whether it is the difference or the ratio of two numbers of the sentence."""
        known = [other for other in one.numbers if other.share is not None]
        slack = 0.5001 * number.step
        for a, b in itertools.permutations(known, 2):
            first, second = (_stated(other) for other in (a, b))
            if number.unit == "points":
                size, more = 100 * (first - second), slack
            else:
                size = first / second if second else 0.0
                size = size if number.unit == "x" else 100 * (size - 1)
                more = slack + 0.1 * number.value
            is_size = holds(abs(size), number.value, more, number.relation)
            if is_size and not self._is_turned_round(one, number, a, b):
                return True
        return False

    def _is_turned_round(self, one: MarkedSentence, number: Number, a: Number, b: Number) -> bool:
        """Whether the words call that run better which has fewer passes by these two numbers."""
        sign = self._near.sign(one, number)
        _, pair = min(self._near.pairs(one, number), default=(0, None))
        if a.owner == b.owner or not sign or pair is None or {a.owner, b.owner} != set(pair):
            return False
        sign = -sign if a.is_of_failures and b.is_of_failures else sign
        better, worse = (a, b) if a.owner == pair[0] else (b, a)
        return sign * ((better.share or 0.0) - (worse.share or 0.0)) < 0

    def _size(self, number: Number) -> Found:
        kind = number.unit.removeprefix("size of ")
        statement = Size(
            f"{number.text} {kind}", int(number.value), kind != "attempts", kind != "tasks",
            per_task=kind == "attempts",
        )  # fmt: skip
        return Found(number.text, self.check(statement), is_size=True)

    def _readings(self, one: MarkedSentence, number: Number) -> Iterator[tuple[float, Statement]]:
        yield from self._sizes(one, number)
        if number.unit == "attempts":
            return
        words = self._words_ahead(one, number)
        if words and number.step == 1 and number.unit in ("tasks", "of", ""):
            yield from self._tasks_ahead(one, number, words)
            return
        if number.unit == "points" and any(cue.metric == "tasks:deviation" for cue in one.cues):
            share = Share(number.text, value := number.value / 100, value, number.step / 100)
            for price, owners in self._near.owners(one, number):
                yield price, replace(share, metric="tasks:deviation", owners=owners)
        is_change = self._is_change(one, number)
        if number.unit in ("points", "x") or is_change:
            yield from self._lifts(one, number)
        if number.unit not in ("points", "x"):
            for cost, share in self._owned_shares(one, number):
                yield cost + 3 * is_change, share

    def _sizes(self, one: MarkedSentence, number: Number) -> Iterator[tuple[float, Size]]:
        count = int(number.value)
        if number.unit == "of" and number.noun and self._is_unknown_total(number):
            is_task = re.fullmatch(_TASK, number.noun) is not None
            yield -9.0, Size(number.text, number.total, is_task, not is_task)
        if number.unit == "tasks" and count not in self.sizes.tasks:
            before = one.text[: number.start]
            is_all = _ALL_TASKS.search(before)
            yield 0.0 if is_all and not one.cues else 11.0, Size(number.text, count, True, False)
        if number.unit == "tasks" and count in self.sizes.tasks:
            yield 0.0, Size(number.text, count, True, False)
        if number.unit == "" and count in self.sizes.totals - self.sizes.tasks:
            yield 4.0, Size(number.text, count, False, True)
        if number.unit == "attempts":
            yield 0.0, Size(number.text, count, False, True)

    def _is_unknown_total(self, number: Number) -> bool:
        is_task = re.fullmatch(_TASK, number.noun) is not None
        sizes = self.sizes.tasks if is_task else self.sizes.totals | self.sizes.attempts
        return number.total > 10 and number.total not in {*sizes, 100, 1000}

    def _owned_shares(self, one: MarkedSentence, number: Number) -> Iterator[tuple[float, Share]]:
        shares = list(self._shares(number))
        for (cost, metric, failing), (price, owners), (more, share, only) in itertools.product(
            self._near.meanings(one, number), list(self._near.owners(one, number)), shares
        ):
            if only and metric != only:
                continue
            turned = share
            if metric in _ENDS and share.relation in (">=", "<="):
                turned = replace(share, relation=_ENDS[metric])
            yield (
                cost + price + more,
                replace(turned, metric=metric, owners=owners, failing=failing),
            )

    def _shares(self, number: Number) -> Iterator[tuple[float, Share, str]]:
        """The number as a share, with the only metric that it may be of, if there is one."""
        relation = number.relation
        if number.is_denied and relation in (">=", "<="):
            relation = "<" if relation == ">=" else ">"
        value, step = number.value, number.step
        if number.unit in ("%", "share") or (number.unit == "" and value <= 100):
            scale = 1.0 if number.unit == "share" else 0.01
            ends = number.ends and (number.ends[0] * scale, number.ends[1] * scale)
            error = number.error and number.error * scale
            more = 3.0 if number.unit == "" and step == 1 else 0.0
            share = Share(number.text, value * scale, value * scale, step * scale, relation)
            yield more, replace(share, ends=ends, error=error, spread=number.spread), ""
        if number.unit in ("tasks", "") and step == 1:
            count = int(value)
            yield (
                0.0,
                Share(number.text, value, value, 1, relation, counted="task", count=count),
                "",
            )
        totals = self.sizes.totals if number.unit in ("results", "") and step == 1 else ()
        for total in (total for total in totals if 0 < total >= value):
            part = value / total
            share = Share(number.text, part, part, 1 / total, relation, counted="attempt")
            yield 3.0, share, "pass^1"
        if number.unit == "of" and number.total:
            yield from self._parts(number, relation)

    def _parts(self, number: Number, relation: str) -> Iterator[tuple[float, Share, str]]:
        total = number.total
        part = number.value / total
        share = Share(number.text, part, part, 1 / total, relation, total=total)
        if total in self.sizes.tasks:
            yield 0.0, replace(share, counted="task"), ""
        elif total in self.sizes.totals:
            yield 0.0, share, "pass^1"
        elif total <= 10 or total in (100, 1000) or not number.noun:
            yield 0.0, replace(share, step=min(1 / total, 0.06), total=0), ""

    def _words_ahead(self, one: MarkedSentence, number: Number) -> str:
        """The words by which a number counts tasks on which one of two runs is ahead."""
        before, after = one.text[: number.start], one.text[number.end :]
        if ahead := _AHEAD.search(before):
            return ahead[0].lower().strip()
        if ahead := re.match(rf",?\s*⟦\w⟧[^,;]*?\b({_AHEAD_WORDS})", after):
            return f"on: {ahead[1].lower()}"
        is_tie = re.match(r"\s*(?:tasks )?(?:were |are )?(?:ties|tied|draws)\b", after)
        return "ties" if is_tie else ""

    def _tasks_ahead(
        self, one: MarkedSentence, number: Number, words: str
    ) -> Iterator[tuple[float, Statement]]:
        """A number of tasks on which one of two runs passes more attempts than the other."""
        is_after = words.startswith("on: ")
        words = words.removeprefix("on: ")
        sign = 0 if re.match("tie|equal|the same|same|draw", words) else 1
        sign = -1 if re.match("worse|lower|behind|lose|lost|regress|fewer", words) else sign
        total = number.total or next(iter(self.sizes.tasks), 1)
        named = [(run_at(code), start) for code, start, _ in one.runs if code.isalpha()]
        codes = [
            run
            for run, start in named
            if (start >= number.end if is_after else start < number.start)
            and (is_after or not OBJECT.search(one.text[:start]))
        ]
        first = codes[0 if is_after else -1] if codes else run_at(self._near.last_run[:1] or "~")
        rest = dict.fromkeys(run for run, _ in named if run != first)
        others = list(rest) or [run for run in range(len(self.names)) if run != first]
        if 0 <= first < len(self.names) and len(others) == 1:
            text, count = f"{words} {number.text}", int(number.value)
            share = number.value / total
            yield (
                0.0,
                Difference(text, first, others[0], sign, kind="tasks", share=share, count=count),
            )

    def _is_change(self, one: MarkedSentence, number: Number) -> bool:
        before, after = one.text[: number.start], one.text[number.end :]
        return number.unit == "%" and bool(_CHANGED.search(before) or _CHANGED_TO.match(after))

    def _lifts(self, one: MarkedSentence, number: Number) -> Iterator[tuple[float, Statement]]:
        sign = self._near.sign(one, number)
        pairs = list(self._near.pairs(one, number))
        size = {"points": "points", "x": "ratio"}.get(number.unit, "percent")
        for (cost, metric, failing), (price, pair) in itertools.product(
            self._near.meanings(one, number), pairs
        ):
            if metric.startswith("tasks:"):
                continue
            lift = Difference(number.text, *pair, -sign if failing else sign, metric=metric)
            sizes: dict[str, Any] = {size: number.value}
            is_fraction = number.relation == "~" and number.text.lstrip("~") in _FRACTIONS
            if size == "points":
                sizes["ends"] = number.ends
            else:
                sizes["failing"] = failing
            yield (
                cost + price,
                replace(
                    lift,
                    step=4.0 if is_fraction else number.step,
                    relation=number.relation,
                    **sizes,
                ),
            )


def digits_of(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text.replace(",", "")))
