"""The checks of a passage: two readings of every sentence, settled against each other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from passhat.reporting.review.agreement import Check, FixedForms, Support
from passhat.reporting.review.checking import Checker
from passhat.reporting.review.claim_text import ITEM, Passage
from passhat.reporting.review.clauses import parse_sentences
from passhat.reporting.review.grammar import BOUND_WORDS, Reader
from passhat.reporting.review.nearest import plain_sentences
from passhat.reporting.review.rewrites import plain_number
from passhat.reporting.review.second_reading import Found, SecondReading, digits_of, without_forms
from passhat.reporting.review.statements import (
    ATTEMPTS,
    OBJECT,
    OTHER,
    POLARITY,
    TASKS,
    Difference,
    Place,
    Share,
    Size,
    Statement,
    TaskCount,
    Unread,
    unknown_words,
)
from passhat.reporting.review.tables import parse_table

__all__ = ["check_statements"]

_FAILING = r"\bfail|\bunsolved\b|\bmiss(?:es|ed)\b|\berrs?\b|\bwrong\b"
_TREND = re.compile(r"rais|ris|ros|grow|grew|climb|increas|fall|fell|drop|declin")
_IS_QUESTION = re.compile(
    r"^(?!.*(?:\d%|\d\.\d|\s\d)).*\b(?:which of|whether|depends)\b", re.IGNORECASE | re.DOTALL
)
_NO_TASKS = re.compile(
    rf"{ATTEMPTS}|{TASKS}|{OTHER.pattern}|points?|percent|agent|model|system|version|hour|day|week|"
    r"month|year|line|success|succes|successe|failure|error|win|los|losse|tie|it|thi|ha|doe|pas|passe|"
    r"other|dollar|people|user|second|minute|score|result|desk",
    re.IGNORECASE,
)
_DOMAINS = ("airline", "retail", "telecom")
_SOLVES_SOME = (
    r"\b(?:solv|pass|resolv|complet|captur|process|handl|clos|answer)\w* (?:about |only |just |~)*"
    r"[\d.]+ ?% of (?:the |all |its |our )*(?:[a-z-]+ )??([a-z]{3,}s)\b"
)
_QUANTIFIER = re.compile(r"\d|\b(?:all|every|each|both|any|often|never|always|none)\b", re.I)
_ENDS = ("worst", "best", "tasks:worst", "tasks:best")


def check_statements(passage: Passage, checker: Checker) -> tuple[Check, ...]:
    """Check every number and every comparison of a claim that the runs can answer.

    Every sentence is read twice, and what only one reading finds wrong is left open. One that
    names single tasks has a reading of its own.
    """
    names = checker.names
    checks: dict[Check, None] = {}
    if passage.rows:
        for statements in parse_table(passage.rows, names):
            checks |= dict.fromkeys(_check_all(statements, checker, names))
        return tuple(checks)
    is_about_failures = passage.says(_FAILING)
    second = SecondReading(names, checker.check, checker.may_be, checker.sizes)
    second.read(_heading(passage))
    tasks = TaskReading(names, checker.tasks)
    forms = FixedForms(names, checker.sizes.tasks, checker.sizes.attempts)
    text = plain_sentences(_with_tasks(passage, checker), names)
    for sentence, statements in parse_sentences(text, names):
        counts = tasks.read(sentence)
        if counts:
            checks |= dict.fromkeys(_check_all(counts, checker, names))
            continue
        checks |= dict.fromkeys(_check_all(forms.read(sentence), checker, names))
        found = second.read(sentence)
        if forms.is_whole:
            continue
        first = _check_all(statements, checker, names, is_about_failures=is_about_failures)
        if not statements and found and all(one.support is Support.SUPPORTED for one in found):
            checks |= dict.fromkeys(one.check for one in found)
        elif statements and not _IS_QUESTION.search(sentence) and sentence.strip()[-1:] != "?":
            settled = _settle(statements, first, found, second)
            checks |= dict.fromkeys(without_forms(settled, forms, sentence))
    return tuple(checks)


# How often a task passed or failed, in words and in numbers.
_ATT = ATTEMPTS
_OF_ALL = rf"(?: (?:in|of|out of|over|across) (?:the |its |all |any of )*\d+(?: {_ATT}\b)?)?"
_OFTEN = re.compile(
    r"(?P<none>\bnever(?: once| ever| even)?\b|\bnot\s+(?:once|ever|a single time|"
    r"(?:solve|pass|complete|crack|resolve)\w*)\b|\bnot at all\b|"
    rf"\b(?:in |on )?(?:none|no(?: single)?|not 1)(?: of (?:the|its)(?: \d+)?)? {_ATT}\b|"
    r"\bun(?:solved|resolved)\b|\b(?:0|no) times\b|"
    rf"\bfail\w* to (?:ever )?(?:pass|solve|complete)\b|\b0% of {_ATT}\b){_OF_ALL}|"
    rf"(?P<any>\bat least (?:once|(?:one|1) (?:time|{_ATT})\b|in (?:one|1) {_ATT}\b){_OF_ALL}|"
    rf"\bever\b|\b(?:in )?any(?: of)?(?: the| its)?(?: \d+)? (?:single )?{_ATT}\b)|"
    r"(?P<some>\b(?:sometimes|occasionally|flaky|intermittently|inconsistent\w*)\b|"
    rf"\b(?:in )?some(?: of the| of its)?(?: {_ATT}\b)?,? but not (?:in )?(?:all|every|each)\b"
    rf"(?: of)?(?: the| its)?(?: \d+)?(?: {_ATT}\b)?)|"
    rf"(?P<all>\b(?:in |on |of )?(?:all|each|every(?: single)?)(?: of)?(?: the| its| their)?"
    rf"(?: \d+)?(?: \w+)? {_ATT}\b|\ball (?P<m2>\d+)\b|"
    r"\b(?:always|consistently|reliably|without fail|every (?:single )?time|each time)\b)|"
    r"(?P<bound>~|>=|<=|(?:at least|at most|more than|fewer than) )?"
    rf"(?<![\w.@^-])(?P<n>\d+(?:\.\d+)?|once|twice)(?P<unit>%)?(?: (?P<noun>times|{_ATT}|pass\w*|"
    r"success\w*|failures)\b)?(?:\s?(?:/|(?:out )?of|in)\s?(?:the |its |all |every )*(?P<m>\d+))?"
    rf"(?: {_ATT}\b)?(?!\.?\d)",
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
            rf"(?:\b{TASKS}\s+)?[`'\"“]?(?<![\w-])({words})(?![\w-])[`'\"”]?|"
            rf"\b(?:task|problem|issue|question|case|ticket)\s+#?[`'\"“]?({after})(?![\w%/-]|\.\d)"
            r"[`'\"”]?(?! of\b)",
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


def _with_tasks(passage: Passage, checker: Checker) -> str:
    """The text with the author's word for tasks as such: 100 repos, where there are 100 tasks."""
    text = _without_domain(passage, checker)
    patterns = [
        rf"(?<![\w.,/]){count}(?:-(?=[a-z]{{3}})| (?:[a-z-]+ )??(?=[a-z]{{3,}}s\b))"
        r"([a-z]+)(?![\w-])"
        for count in checker.sizes.tasks
    ]
    for pattern in [*patterns, _SOLVES_SOME]:
        for found in re.finditer(pattern, passage.whole):
            noun = found[1].removesuffix("s")
            noun = f"{noun[:-2]}y" if noun.endswith("ie") else noun
            if not _NO_TASKS.fullmatch(noun):
                forms = rf"(?<![\w-]){noun.removesuffix('y')}(ies|s|y)?(?![\w-])"
                text = re.sub(forms, lambda m: "tasks" if m[0].endswith("s") else "task", text)
    return text


def _without_domain(passage: Passage, checker: Checker) -> str:
    """The text without the domain of a benchmark, where it is the only one that is named."""
    if any(
        domain in name.lower() for name in itertools.chain(*checker.names) for domain in _DOMAINS
    ):
        return passage.text
    known = " ".join((passage.whole, *checker.sizes.task_names)).lower()
    domains = [domain for domain in _DOMAINS if domain in known]
    if len(domains) != 1:
        return passage.text
    after = r"(?: (?:customer (?:service|support)|domain|set|split|suite))?"
    of_it = rf"\b(?:(?:on|in|at|for) (?:the )?)?{domains[0]}{after}\b ?"
    return re.sub(of_it, "", passage.text, flags=re.IGNORECASE)


def _heading(passage: Passage) -> str:
    """The heading above a passage or list, which may name the run that it is about."""
    lines = [line.strip() for line in passage.whole.splitlines()[: passage.line]]
    above = lines[-2::-1]
    if lines and ITEM.match(lines[-1]):
        above = list(itertools.dropwhile(lambda line: not line or ITEM.match(line), above))
        if above and not re.search(r"\d%|[.!?]$", above[0]):
            return above[0]
    return next((line for line in above if line.startswith("#")), "")


def _settle(
    statements: Sequence[Statement],
    checks: Sequence[Check],
    found: Sequence[Found],
    second: SecondReading,
) -> Iterator[Check]:
    """The checks of two readings of a sentence.

    Where every number of the second one is right or open, it stands for the numbers of the first;
    otherwise it only takes back what it does not confirm as wrong.
    """
    if second.is_part:
        yield from (_weaken(one, check, ()) for one, check in zip(statements, checks, strict=True))
        return
    if second.is_aside:  # a ratio may be one of costs
        yield from (
            check if getattr(one, "ratio", None) is None else _weaken(one, check, ())
            for one, check in zip(statements, checks, strict=True)
        )
        return
    wrong = [one for one in found if one.support is Support.CONTRADICTED]
    is_agreed = all(check.support is Support.SUPPORTED for check in checks)
    is_agreed = is_agreed and not second.is_turned
    if (
        not found
        or is_agreed
        or (len(wrong) == len(found) and not any(one.is_sure for one in wrong))
    ):
        yield from checks
        return
    for one in found:
        if (one.is_size or one.is_sure) if one in wrong else (one.is_read and not wrong):
            yield one.check
    has_lift = any(one.is_lift and one.support is Support.SUPPORTED for one in found)
    for statement, check in zip(statements, checks, strict=True):
        if _is_relation(statement):
            yield from _settle_relation(statement, check, second, has_lift=has_lift)
        elif wrong:
            yield _weaken(statement, check, wrong)
        elif not _is_answered(statement, check, found, second, has_lift=has_lift):
            yield check


def _weaken(statement: Statement, check: Check, wrong: Sequence[Found]) -> Check:
    """A number that only one reading finds wrong is not checkable."""
    is_number = not isinstance(statement, Unread)
    digits = digits_of(statement.text)
    is_confirmed = any(
        digits_of(one.text) & digits or not (digits_of(one.text) or digits) for one in wrong
    )
    if check.support is Support.CONTRADICTED and is_number and not is_confirmed:
        detail = f"{check.detail}; but it may be another number"
        return replace(check, support=Support.NOT_CHECKABLE, detail=detail)
    return check


def _is_answered(
    statement: Statement,
    check: Check,
    found: Sequence[Found],
    second: SecondReading,
    *,
    has_lift: bool,
) -> bool:
    """Whether the second reading has an answer for what the first one took for a statement."""
    texts = [one.text for one in found if one.is_read]
    answered = {"0", *itertools.chain.from_iterable(map(digits_of, [*texts, *second.cue_texts]))}
    digits = digits_of(statement.text)
    is_covered = digits <= answered
    if isinstance(statement, Unread):
        right = [one.check.statement for one in found if one.support is Support.SUPPORTED]
        is_covered |= "interval" not in statement.reason
        is_covered |= digits <= {*itertools.chain.from_iterable(map(digits_of, right))}
        return is_covered and any(digits_of(text) for text in texts)
    if not is_covered:
        return False
    is_open = not digits or (isinstance(statement, Difference) and not has_lift)
    is_computed = statement.text in second.computed
    return check.support is not Support.CONTRADICTED or is_computed or not is_open


def _settle_relation(
    statement: Statement, check: Check, second: SecondReading, *, has_lift: bool
) -> Iterator[Check]:
    """A comparison without a number, where the numbers beside it say what is meant."""
    if not isinstance(statement, Difference):
        yield check
        return
    if second.is_turned and check.support is Support.SUPPORTED:
        detail = f"its sides may be the other way round; {check.detail}"
        check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
        yield check
        return
    is_wrong = check.support is Support.CONTRADICTED and _is_better(statement)
    if check.support is Support.NOT_CHECKABLE or (is_wrong and has_lift):
        return
    if is_wrong and len(second.metrics) > 1:
        detail = f"{check.detail} Its sides may be of two metrics."
        check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
    sides = {statement.subject, statement.other}
    is_trend = _TREND.match(statement.text)
    if is_wrong and is_trend and sides <= second.owned:
        detail = f"the numbers may be of several runs in turn; {check.detail}"
        check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
    is_shown = sides <= second.owned and not second.is_about_significance
    if check.support is Support.NOT_SHOWN and is_shown:
        detail = f"by its numbers it is, by chance perhaps; {check.detail}"
        check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
    yield check


def _is_relation(statement: Statement) -> bool:
    """Whether it compares runs without a number, or says that a number is shown."""
    if isinstance(statement, Difference):
        sizes = (statement.points, statement.percent, statement.ratio, statement.count)
        return statement.p_value is not None or (
            all(size is None for size in sizes) and statement.kind != "tasks"
        )
    return isinstance(statement, Place)


def _is_better(statement: Statement) -> bool:
    return isinstance(statement, Difference) and (
        statement.kind in ("better", "ranked", "equal") and statement.p_value is None
    )


def _check_all(
    statements: Sequence[Statement],
    checker: Checker,
    names: Sequence[Sequence[str]],
    *,
    is_about_failures: bool = False,
) -> list[Check]:
    """Check the statements of one sentence or row, which may leave each other open."""
    checks: list[Check] = []
    answers = [checker.check(statement) for statement in statements]
    unread = [
        statement.text
        for statement, check in zip(statements, answers, strict=True)
        if _blocks(statement, check)
    ]
    unclear = [
        statement.text
        for statement in statements
        if isinstance(statement, Unread) and statement.blocks and _is_part(statement, names)
    ]
    budgets = {re.sub(r"\D", "", getattr(statement, "metric", "")) for statement in statements}
    ends = [one.metric for one in statements if isinstance(one, Share) and one.metric in _ENDS]
    for statement, check in zip(statements, answers, strict=True):
        reason = ""
        if unread and check.support is Support.SUPPORTED:
            reason = f"but {unread[0]!r} in the same sentence cannot be checked"
        elif check.support in (Support.CONTRADICTED, Support.NOT_SHOWN):
            if len(set(ends)) < len(ends) and getattr(statement, "metric", "") in _ENDS:
                reason = "but it may be the other end, or that of another run"
            elif unclear:
                reason = f"but {unclear[0]!r} in the same sentence was not understood"
            elif isinstance(statement, Size) and statement.attempts:
                is_budget = not statement.tasks and str(statement.count) in budgets
                reason = "but it may be the k of the metric" if is_budget else ""
            elif isinstance(statement, Share) and is_about_failures:
                failures = replace(statement, failing=not statement.failing)
                is_turned = checker.check(failures).support is Support.SUPPORTED
                reason = "but the other way round, as failures, it is right" * (
                    is_turned and not statement.metric
                )
        if reason:
            detail = f"{check.detail}; {reason}"
            check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
        checks.append(check)
    return checks


def _is_part(unread: Unread, names: Sequence[Sequence[str]]) -> bool:
    """Whether what was not understood is a number, a run or a quantifier: part of the claim."""
    return bool(
        _QUANTIFIER.search(unread.text) or unread.text in itertools.chain.from_iterable(names)
    )


def _blocks(statement: Statement, check: Check) -> bool:
    """Whether a part without an answer leaves the rest of its sentence open."""
    if isinstance(statement, Unread):
        return statement.blocks
    if isinstance(statement, Place) or (
        isinstance(statement, Difference) and statement.kind in ("equal", "different")
    ):
        return False
    return check.support is Support.NOT_CHECKABLE
