"""Sentences about single tasks, and about the tasks that several runs solve or do not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from passhat.reporting.review.agreement import Check, Support, holds, support
from passhat.reporting.review.grammar import BOUND_WORDS, Reader
from passhat.reporting.review.rewrites import plain_number
from passhat.reporting.review.roles import BOUND, FILLER, relation_of
from passhat.reporting.review.statements import (
    ATTEMPTS,
    OBJECT,
    POLARITY,
    TASKS,
    Statement,
    TaskCount,
    Unread,
    unknown_words,
)
from passhat.stats.outcomes import Run

__all__ = ["Overlap", "TaskReading", "check_overlap", "read_overlaps"]

# How often a task passed or failed, in words and in numbers.
_ATT = ATTEMPTS
_OF_ALL = rf"(?: (?:in|of|out of|over|across) (?:the |its |all |any of )*\d+(?: {_ATT}\b)?)?"
_OFTEN = re.compile(
    rf"(?P<none>\bnever(?: once| ever| even)?\b|\bnot\s+(?:once|ever|a single time|(?:solve|pass|"
    rf"complete|crack|resolve)\w*)\b|\bnot at all\b|\b(?:in |on )?(?:none|no(?: single)?|not "
    rf"1)(?: of (?:the|its)(?: \d+)?)? {_ATT}\b|\bun(?:solved|resolved)\b|\b(?:0|no) times\b|"
    rf"\bfail\w* to (?:ever )?(?:pass|solve|complete)\b|\b0% of {_ATT}\b){_OF_ALL}|(?P<any>\bat "
    rf"least (?:once|(?:one|1) (?:time|{_ATT})\b|in (?:one|1) {_ATT}\b){_OF_ALL}|\bever\b|\b(?:in "
    rf")?any(?: of)?(?: the| its)?(?: \d+)? (?:single )?{_ATT}\b)|(?P<some>\b(?:sometimes|"
    rf"occasionally|flaky|intermittently|inconsistent\w*)\b|\b(?:in )?some(?: of the| of its)?(?: "
    rf"{_ATT}\b)?,? but not (?:in )?(?:all|every|each)\b(?: of)?(?: the| its)?(?: \d+)?(?: "
    rf"{_ATT}\b)?)|(?P<all>\b(?:in |on |of )?(?:all|each|every(?: single)?)(?: of)?(?: the| its| "
    rf"their)?(?: \d+)?(?: \w+)? {_ATT}\b|\ball (?P<m2>\d+)\b|\b(?:always|consistently|reliably|"
    rf"without fail|every (?:single )?time|each time)\b)|(?P<bound>~|>=|<=|(?:at least|at most|"
    rf"more than|fewer than) )?(?<![\w.@^-])(?P<n>\d+(?:\.\d+)?|once|twice)(?P<unit>%)?(?: "
    rf"(?P<noun>times|{_ATT}|pass\w*|success\w*|failures)\b)?(?:\s?(?:/|(?:out )?of|in)\s?(?:the |"
    rf"its |all |every )*(?P<m>\d+))?(?: {_ATT}\b)?(?!\.?\d)",
    re.IGNORECASE,
)
_TASK_CUT = re.compile(
    r"\s*;\s*|,?\s+(?:while|whereas|although|though|yet|but(?! (?:not|never)\b(?![^;]*⟦k)))\s+|"
    r",?\s+which\s+|,\s+and\s+(?=⟦r)|\s+[—–]\s+",
    re.IGNORECASE,
)
_AND = r"\s*(?:,\s*and|,|\band\b|&|/|\bor\b)\s*"
_RUN_BEHIND = re.compile(
    r"\s*(?:(?:tasks?|times|passes)\s+)?(?:(?:\w+ed|on|⟦k\d+⟧|right|,|and)\s+){0,4}?(?:\(|(?:for|by|with|from|of)\b)"
    r"\s*(?:the )?⟦r([\d+*]+)⟧(?!'?s?\s*\(?\s*\d)",
    re.IGNORECASE,
)
_TOKENS = re.compile(r"⟦([rkq])([\d+*?]+)⟧")
_TASK_FAIL = re.compile(r"\b(?:fail\w*|miss(?:es|ed)|errors?|wrong)\b", re.IGNORECASE)
_TASK_PASS = re.compile(
    r"\b(?:pass\w*|solv\w*|succe\w*|right|complet\w*|crack\w*)\b", re.IGNORECASE
)


class TaskReading:
    """Reads sentences that name single tasks: their own counts, and never those of all tasks."""

    def __init__(self, names: Sequence[Sequence[str]], tasks: Iterable[str]) -> None:
        self.names = names
        self._tasks = {name.lower(): name for name in tasks}
        plain = [name for name in self._tasks if not re.search(r"[a-z].*[\d_/:]|_", name)]
        words, after = (
            "|".join(map(re.escape, sorted(group, key=len, reverse=True))) or "(?!)"
            for group in (self._tasks.keys() - plain, plain)
        )
        # Plain words and numbers name a task only behind "task".
        self._pattern = re.compile(
            rf"(?:\b{TASKS}\s+)?[`'\"“]?(?<![\w-])({words})(?![\w-])[`'\"”]?|\b(?:task|problem|"
            rf"issue|question|case|ticket)\s+#?[`'\"“]?({after})(?![\w%/-]|\.\d)[`'\"”]?(?! of\b)",
            re.IGNORECASE,
        )
        self._runs: tuple[int, ...] = tuple(range(len(names)))
        self._named: list[str] = []

    def read(self, sentence: str) -> list[Statement]:
        """The statements of a sentence; none where it names no task."""
        self._named = []
        text = self._pattern.sub(self._mark, sentence)
        if not self._named:
            return []
        text = re.sub(r"⟦k(\d+)⟧\s+(?:to|through|-|–)\s+⟦k(\d+)⟧", self._range, text)
        text = re.sub(r"\b(?:were|was|are|is) both\b|\beven once\b", "", text)
        text = re.sub(r"^\W*All (?:two|three|four|\d)\b(?! (?:of|\w*s)\b)", "all agents", text)
        text = re.sub(r"\bk ?= ?\d+", "", plain_number(Reader(self.names).mark_names(text)))
        found: list[Statement] = []
        tasks: list[str] = []
        if re.search(
            r"\b(?:add\w*|total\w*|sum\w*|together|combined|altogether|average\w*)\b", text
        ):
            return [Unread(", ".join(self._named), "it is about several tasks together")]
        for clause in _TASK_CUT.split(text):
            tasks = [self._named[int(at)] for at in re.findall(r"⟦k(\d+)⟧", clause)] or tasks
            found += self._clause(clause, tasks)
        if any(isinstance(one, TaskCount) and one.kind == "none" for one in found):
            found = [  # A solved t1, which B never did
                replace(one, kind="any")
                if isinstance(one, TaskCount) and one.kind == "solved"
                else one
                for one in found
            ]
        reason = "what is said of these tasks was not understood"
        return found or [Unread(", ".join(self._named), reason)]

    def _mark(self, match: re.Match[str]) -> str:
        self._named.append(self._tasks[(match[1] or match[2]).lower()])
        return f" ⟦k{len(self._named) - 1}⟧ "

    def _range(self, match: re.Match[str]) -> str:
        """The tasks from one to another, where their names differ in their numbers only."""
        ends = [re.fullmatch(r"(.*?)(\d+)", self._named[int(at)]) for at in match.groups()]
        if not (ends[0] and ends[1] and ends[0][1] == ends[1][1]):
            return match[0]
        for number in range(int(ends[0][2]) + 1, int(ends[1][2])):
            name = f"{ends[0][1]}{number:0{len(ends[0][2])}}"
            if name.lower() not in self._tasks:
                return match[0]
            self._named.append(name)
        between = range(
            len(self._named) - (int(ends[1][2]) - int(ends[0][2]) - 1), len(self._named)
        )
        marks = [match[1], *map(str, between), match[2]]
        return ", ".join(f"⟦k{mark}⟧" for mark in marks)

    def _clause(self, text: str, tasks: list[str]) -> Iterator[Statement]:
        often: list[re.Match[str]] = []

        def mark(match: re.Match[str]) -> str:
            often.append(match)
            return f" ⟦q{len(often) - 1}⟧ "

        plain = _OFTEN.sub(mark, text)
        runs = [match for match in _TOKENS.finditer(plain) if match[1] == "r"]
        if any(match[2] == "?" for match in runs):
            yield Unread(", ".join(tasks), "no source has a run of that name")
            return
        rest = re.sub(r"⟦[rkq][^⟧]*⟧", " ", plain)
        strange = [*unknown_words(rest), *re.findall(r"\d+", rest)]
        worded = [m for m in often if m["none"] or m["all"] or m["some"]]
        groups = [
            [int(at) for at in re.findall(r"q(\d+)", match[0])]
            for match in re.finditer(
                rf"⟦q\d+⟧(?:(?:{_AND}|\s*(?:vs|against|to|→|->)\s*)⟦q\d+⟧)*", plain
            )
        ]
        if runs:
            self._runs = self._codes(runs[0][2])
        if not often:
            yield from self._without_count(plain, tasks, runs)
        for group in groups:
            kept = [at for at in group if not self._is_total(often[at], worded)]
            if kept:
                found = list(self._group(plain, [often[at] for at in kept], kept, tasks, strange))
                yield from found
                yield from self._only(plain, found)

    def _only(self, text: str, found: Sequence[Statement]) -> Iterator[Statement]:
        """That no other run ever passes, where only one is said to."""
        if re.search(r"\b[Oo]nly\s*⟦r\d+⟧", text) is None:
            return
        for one in found:
            if isinstance(one, TaskCount) and one.kind != "none" and not one.failing:
                rest = tuple(run for run in range(len(self.names)) if run not in one.runs)
                yield TaskCount("never", rest, one.task, "none")

    def _is_total(self, match: re.Match[str], worded: Sequence[re.Match[str]]) -> bool:
        """Whether it is how many attempts were made, or adds nothing: not solved in any attempt."""
        if not worded or match in worded:
            return False
        return bool(match["any"] or (match["n"] and not match["m"] and match["noun"] != "times"))

    def _codes(self, code: str) -> tuple[int, ...]:
        if code == "*":
            return tuple(range(len(self.names)))
        return tuple(int(part) for part in code.split("+"))

    def _group(
        self,
        text: str,
        often: Sequence[re.Match[str]],
        places: Sequence[int],
        tasks: Sequence[str],
        strange: Sequence[str],
    ) -> Iterator[Statement]:
        """One or several counts that stand side by side, with their tasks and runs."""
        start, end = text.find(f"⟦q{places[0]}⟧"), text.find(f"⟦q{places[-1]}⟧")
        end += len(f"⟦q{places[-1]}⟧")
        tokens = list(_TOKENS.finditer(text))
        listed = self._nearest([token for token in tokens if token[1] == "k"], text, start, end)
        own = [self._named[int(token[2])] for token in listed] or list(tasks)
        behind = _RUN_BEHIND.match(text, end)
        runs = [token for token in tokens if token[1] == "r"]
        owners = [token[2] for token in self._nearest(runs, text, start, end)]
        if behind:
            owners = [behind[1]]
        every = list(dict.fromkeys(token[2] for token in runs))
        if not behind and len(every) == len(often) > 1 == len(own):
            owners = every
        codes = [self._codes(code) for code in owners] or [self._runs]
        total = next((int(m["m"]) for m in reversed(often) if m["m"]), None)
        sides = [self._one(match, text, start, total, strange) for match in often]
        if len(often) == 1:
            yield from (
                replace(sides[0], runs=tuple(itertools.chain(*codes)), task=task) for task in own
            )
            return
        if (
            len(codes) == 1
            and len(codes[0]) == 1
            and len(often) == len(self.names) == 2 != len(own)
        ):
            other = (1 - codes[0][0],)
            is_move = re.search(r"⟧\s*(?:to|→|->)\s*⟦q", text[start:end])
            codes = [other, codes[0]] if is_move else [codes[0], other]
        if len(own) == len(often):
            pairs = [(tuple(itertools.chain(*codes)), task) for task in own]
        elif len(codes) == len(often) and len(own) == 1:
            pairs = [(code, own[0]) for code in codes]
        else:
            yield Unread(", ".join(own), "which count is of which task was not understood")
            return
        for side, (code, task) in zip(sides, pairs, strict=True):
            yield replace(side, runs=code, task=task)

    def _nearest(
        self, tokens: Sequence[re.Match[str]], text: str, start: int, end: int
    ) -> list[re.Match[str]]:
        """The list of tokens that ends before a place, or else the first one after it."""
        lists: list[list[re.Match[str]]] = []
        for token in tokens:
            gap = text[lists[-1][-1].end() : token.start()] if lists else "."
            if re.fullmatch(_AND, gap):
                lists[-1].append(token)
            else:
                lists.append([token])
        before = [one for one in lists if one[-1].end() <= start]
        after = [one for one in lists if one[0].start() >= end]
        return before[-1] if before else after[0] if after else []

    def _one(
        self,
        match: re.Match[str],
        text: str,
        start: int,
        total: int | None,
        strange: Sequence[str],
    ) -> TaskCount:
        words = [
            (abs(found.start() - start), side)
            for pattern, side in ((_TASK_FAIL, True), (_TASK_PASS, False))
            for found in pattern.finditer(text)
        ]
        failing = min(words, default=(0, False))[1] or match["noun"] == "failures"
        failing = failing and not (match["none"] or "").startswith("fail")
        kind = next((k for k in ("none", "any", "some", "all") if match[k]), "count")
        count, relation = 0.0, (match["bound"] or "=").strip()
        if kind == "count":
            count = {"once": 1.0, "twice": 2.0}.get(match["n"].lower()) or float(match["n"])
            kind = "share" if match["unit"] else kind
        if match["m2"]:
            total = int(match["m2"])
        return TaskCount(
            match[0].strip(), (), "", kind, count, total, failing,
            BOUND_WORDS.get(relation, relation), unsure=" ".join(strange),
        )  # fmt: skip

    def _without_count(
        self, text: str, tasks: Sequence[str], runs: Sequence[re.Match[str]]
    ) -> Iterator[Statement]:
        """A task that is solved or not, without a word that says how often; or a better side."""
        codes = [self._codes(match[2]) for match in runs]
        found = POLARITY.search(text)
        if unknown_words(re.sub(r"⟦[^⟧]*⟧", " ", text)) or re.search(r"\d(?![^⟦]*⟧)", text):
            return
        if found and len(codes) == 2 and all(len(code) == 1 for code in codes):
            is_up = bool(found["up"] or found["rise"])
            is_turned = OBJECT.search(text[: runs[0].start()]) is not None
            kind = "ahead" if is_up is not is_turned else "behind"
            yield from (TaskCount(found[0], (*codes[0], *codes[1]), task, kind) for task in tasks)
        elif not found and len(codes) == 1 and _TASK_PASS.search(text) and "not" not in text:
            kind = "any" if re.search(r"\b[Oo]nly\s*⟦r", text) else "solved"
            solved = [TaskCount("solved", codes[0], task, kind) for task in tasks]
            yield from solved
            yield from self._only(text, solved)


# Numbers of tasks that several runs solve, that only some of them solve, or that none does.
_TASK = TASKS
_SOLVE = r"(?:solv|pass|complet|resolv|crack|finish|handl|clear|succe)\w*(?: (?:on|in|at))?"
_FAIL = r"(?:fail|miss)\w*(?: (?:on|in|at))?"
_NOT = r"(?:does|do|did|was|were|is|can|could)? ?(?:not|never)"
_SET = (
    r"(?P<{0}>⟦r[\d+*]+⟧(?:(?:,? and|,|,? as well as)(?: by)? ⟦r\d+⟧)*(?: not\b)?|neither|"
    r"none(?: of (?:them|the (?:agents|models|systems|runs)))?)"
)
_COUNT = (
    rf"(?:on |in )?{BOUND}(?P<n>\d+)(?P<unit>%)?(?: (?:out )?of (?:the |all |its |our "
    rf")*(?P<m>\d+))?(?: of)?(?: the| its| our)?(?: {_TASK}\b)?"
)
_SIDES = (  # which runs solve them, and which do not
    rf"{_COUNT}(?: (?:are|were|is|was|get|got|remain\w*|left))?(?: (?P<verb>{_SOLVE}|un{_SOLVE}|"
    rf"(?:never|not) {_SOLVE}|{_FAIL}))? (?P<only>(?:only |just |solely )?by (?:only |just "
    rf")?){_SET.format('a')}(?P<alone> (?:only|alone))?(?:,? (?:but|and|yet) (?:not|never)(?: "
    rf"by)? (?P<b>⟦r\d+⟧))?",
    rf"(?P<only>only )?{_SET.format('a')}(?P<alone> (?:alone|only))?(?: (?:each|can|could|both|"
    rf"together))? (?P<verb>{_SOLVE}|{_FAIL}) {_COUNT}(?:,? (?:that|which) (?P<b>⟦r[\d+]+⟧) "
    rf"(?P<turn>{_NOT}(?: {_SOLVE})?|{_FAIL}|(?:also )?{_SOLVE}))?",
)
_EACH = rf"(?: of)?(?: the| their| its)?(?: \d+)? (?:{ATTEMPTS})\b"
_HOW_OFTEN = (
    ("all", rf"\b(?:in |on )?(?:all|every|each){_EACH}|\b(?:always|every time|each time)\b"),
    (
        "any",
        rf"\bat least once\b(?: (?:in|over|within|across){_EACH})?|\bever\b|\b(?:in )?any{_EACH}",
    ),
)
_CUT = re.compile(
    r"\s*[;:,]\s*(?:and |but |while |whereas )?|\s+(?:and|but|while|whereas)\s+(?=\d|neither|⟦r)"
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many tasks all of ``solved`` pass and none of ``failed`` does."""

    text: str
    solved: tuple[int, ...]
    failed: tuple[int, ...]
    count: float
    total: int | None = None
    is_share: bool = False
    relation: str = "="
    often: str = ""
    """What a task must do to be solved: pass in "any" attempt or in "all"; empty if not said."""


def read_overlaps(sentence: str, names: Sequence[Sequence[str]]) -> list[Overlap]:
    """The statements of a sentence that is about nothing else; none for all other sentences."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", sentence.strip().rstrip("."))
    text = re.sub(r"\bboth (?=pass\w* \d)", "both agents ", text, flags=re.IGNORECASE)
    text = re.sub(rf"\b(all (?:\d|two|three|four|five)) (?={_SOLVE}|{_FAIL})", r"\1 agents ", text)
    any_run = (
        r"\bby any(?: one)?(?: of (?:the |them)(?:\w+ )*?)?(?: ?(?:agent|model|system|run)s?)?$"
    )
    text = re.sub(any_run, "by both agents", text, flags=re.IGNORECASE)
    text = plain_number(Reader(names).mark_names(text))
    text = re.sub(r"(⟦r[\d+]+⟧)\s+⟦r\*⟧", r"\1", re.sub(r"\s+", " ", text).strip())
    often = ""
    for kind, pattern in _HOW_OFTEN:
        if re.search(pattern, text, re.IGNORECASE):
            often, text = kind, re.sub(rf"\s*(?:{pattern})", "", text, flags=re.IGNORECASE)
    total = re.match(rf"(?:out )?of (?:the |all |our )*(\d+) {_TASK}\b,? ?", text, re.IGNORECASE)
    text = text[total.end() :] if total else text
    named = sorted(
        {int(run) for run in re.findall(r"\d+", " ".join(re.findall(r"⟦r[^⟧]*⟧", text)))}
    )
    found: list[Overlap] = []
    verb = ""
    for clause in _clauses(text):
        one = next((m for form in _SIDES if (m := re.fullmatch(form, clause, re.I))), None)
        sides = one and _sides(one, named, len(names), verb)
        if one is None or sides is None:
            return []
        verb = one["verb"] or verb
        whole = int(one["m"] or (total[1] if total else 0)) or None
        found.append(
            Overlap(
                clause, *sides, float(one["n"]), whole, bool(one["unit"]), relation_of(one), often
            )
        )
    is_about_several = any(len(one.solved) + len(one.failed) > 1 for one in found)
    return found if is_about_several else []


def _clauses(text: str) -> Iterator[str]:
    """The clauses, without words that say nothing about runs and numbers."""
    for clause in _CUT.split(text):
        plain = re.sub(
            r"^(?:there (?:are|were)|here|in total|overall|and|so) ", "", clause, flags=re.I
        )
        if not FILLER.fullmatch(plain) or "⟦" in plain:
            yield plain.strip()


def _sides(
    match: re.Match[str], named: list[int], runs: int, verb: str
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The runs that solve the tasks and those that do not; None where that is not clear."""
    first, parts = match["a"].lower(), match.groupdict()
    every = tuple(named) if len(named) > 1 else tuple(range(runs))
    if "*" in first or first.startswith(("neither", "none")):
        is_pair = len(every) == 2 or not first.startswith("neither")
        solved = every if is_pair else ()
    else:
        solved = tuple(sorted({int(run) for run in re.findall(r"\d+", first)}))
    is_denied = first.startswith(("neither", "none")) or first.endswith("not")
    is_failing = (
        re.match(r"fail|miss|un|never|not", match["verb"] or verb, re.IGNORECASE) is not None
    )
    if not solved or not (match["verb"] or verb) or (is_denied and is_failing):
        return None
    failed: tuple[int, ...] = ()
    if match["alone"] or re.search("only|just|solely", match["only"] or ""):
        failed = tuple(run for run in range(runs) if run not in solved)
        if is_failing or is_denied or len(solved) > 1:
            return None
    if match["b"]:
        other = tuple(int(run) for run in re.findall(r"\d+", match["b"]))
        turn = (parts.get("turn") or "not").lower()
        is_solved = re.match(rf"(?:also )?{_SOLVE}$", turn) is not None
        if is_denied or failed or set(other) & set(solved):
            return None
        if is_failing:
            return (other, solved) if is_solved else None
        return ((*solved, *other), ()) if is_solved else (solved, other)
    return ((), solved) if is_denied or is_failing else (solved, failed)


def check_overlap(claim: Overlap, runs: Sequence[Run]) -> Check:
    """Whether so many tasks are solved by these runs and not by those."""
    tasks = sorted(set.intersection(*(set(run.outcomes.tasks) for run in runs)))
    counts = {often: _count(claim, runs, tasks, often) for often in ("any", "all")}
    solved, failed = (
        " and ".join(runs[run].name for run in side) for side in (claim.solved, claim.failed)
    )
    who = f"solved by {solved}" * bool(solved) + " and " * bool(solved and failed)
    who += f"not solved by {failed}" * bool(failed)
    name = f"{claim.count:g}{'% of the' if claim.is_share else ''} tasks {who}"
    detail = f"{counts['any']} of {len(tasks)} tasks" + (
        f"; {counts['all']}, where solved means in every attempt"
        if counts["all"] != counts["any"]
        else ""
    )
    is_whole = all(not run.outcomes.missing.any() and (run.outcomes.n > 0).all() for run in runs)
    if not tasks or not is_whole:
        return Check(name, Support.NOT_CHECKABLE, "not every run has an answer for every task")
    if claim.total not in (None, len(tasks)):
        return Check(name, Support.CONTRADICTED, f"there are {len(tasks)} tasks")
    scale = 100 / len(tasks) if claim.is_share else 1.0
    fits = {
        often: holds(scale * count, claim.count, 0.5001, claim.relation)
        for often, count in counts.items()
        if claim.often in ("", often)
    }
    each = [replace(claim, solved=(run,), failed=()) for run in claim.solved]
    each += [replace(claim, solved=(), failed=(run,)) for run in claim.failed]
    own = {_count(one, runs, tasks, often) for one in each for often in fits}
    if not any(fits.values()) and own == {int(claim.count)}:
        return Check(name, Support.NOT_CHECKABLE, f"it may be the number of each; {detail}")
    if fits.get("all") and not fits.get("any", True):
        return Check(name, Support.NOT_CHECKABLE, f"how often is not said; {detail}")
    return Check(name, support(any(fits.values())), detail)


def _count(claim: Overlap, runs: Sequence[Run], tasks: Sequence[str], often: str) -> int:
    sides: dict[int, NDArray[np.bool_]] = {}
    for run in (*claim.solved, *claim.failed):
        outcomes = runs[run].outcomes
        at = [list(outcomes.tasks).index(task) for task in tasks]
        is_solved = outcomes.c > 0 if often == "any" else outcomes.c == outcomes.n
        sides[run] = is_solved[at]
    solved = [sides[run] for run in claim.solved]
    return int(np.all([*solved, *(~sides[run] for run in claim.failed)], axis=0).sum())
