"""The checks of a passage: two readings of every sentence, settled against each other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from passhat.reporting.review.agreement import Check, Support
from passhat.reporting.review.checking import Checker
from passhat.reporting.review.claim_text import Passage, find_gap_interval, find_sizes
from passhat.reporting.review.clauses import parse_sentences
from passhat.reporting.review.grammar import Reader, name_pattern
from passhat.reporting.review.marks import HOW_MANY, plain_count
from passhat.reporting.review.rewrites import plain_number
from passhat.reporting.review.roles import (
    EXACT_TIMES,
    FILLER,
    LEVELS,
    find_ranking,
    parse_levels,
    parse_times,
    passes_between,
    relation_of,
)
from passhat.reporting.review.second_reading import Found, SecondReading, digits_of
from passhat.reporting.review.statements import (
    ATTEMPTS,
    NUMBER_WORDS,
    TASKS,
    Difference,
    Place,
    Share,
    Size,
    Statement,
    Unread,
    spell,
)
from passhat.reporting.review.tables import parse_table
from passhat.reporting.review.task_reading import TaskReading, read_overlaps
from passhat.reporting.review.wordings import heading_above, plain_sentences, with_tasks

__all__ = ["check_statements"]

_FAILING = r"\bfail|\bunsolved\b|\bmiss(?:es|ed)\b|\berrs?\b|\bwrong\b"
_TREND = re.compile(r"rais|ris|ros|grow|grew|climb|increas|fall|fell|drop|declin")
_IS_QUESTION = re.compile(
    r"^(?!.*(?:\d%|\d\.\d|\s\d)).*\b(?:which of|whether|depends)\b", re.IGNORECASE | re.DOTALL
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
    second.read(heading_above(passage))
    tasks = TaskReading(names, checker.tasks)
    forms = FixedForms(names, checker.sizes.tasks, checker.sizes.attempts)
    text = plain_sentences(with_tasks(passage, checker), names)
    for sentence, statements in parse_sentences(text, names):
        overlaps = read_overlaps(sentence, names)
        if overlaps:
            checks |= dict.fromkeys(checker.check(one) for one in overlaps)
            continue
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
            checks |= dict.fromkeys(_without_forms(settled, forms, sentence))
    return tuple(checks)


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
    shares = [one for one in statements if isinstance(one, Share) and one.metric in _ENDS]
    ends = [one.metric for one in shares]
    if {(one.metric, run) for one in shares for run in one.owners} == {
        (metric, run) for metric in set(ends) for one in shares for run in one.owners
    } and len({(one.metric, one.owners) for one in shares}) == len(shares):
        ends = []  # both ends of each run
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


# Clauses in a fixed form: how many tasks pass how often, totals of attempts, sizes, intervals.
_ATT, _TASK = ATTEMPTS, TASKS
_CLAUSES = re.compile(
    r"\s*[;:]\s+|,\s+(?:and|but|while|whereas|yet)\s+(?!not\b)|\s+[—–]\s+|,\s+(?=compared|versus|vs|"
    r"against|\d+ (?:out )?of \d)|\s+and\s+(?=(?:exactly |only |just )?(?:once|twice|\d))|"
    r",\s+(?=\d+ (?:passed|passes|solved|failed|were|are|always|never)\b)|(?<!⟧)\s+and\s+(?=⟦r)|"
    r"\s+(?=(?:compared (?:with|to)|versus|vs\.?|against) \d+ (?:for|by|from)\b)"
)
_ERROR_OF = re.compile(
    r"(?:the )?(?:(?:estimated|clustered) )?(?:standard error|SEM?|s\.e\.) (?:of|for|on) "
    r"(?:the |(?:⟦r\d+⟧|(?P<m>pass[@^]\d+)|mean|average|success rate|pass rate|accuracy|score|"
    r"estimate|of|for|on)[ ,]*)+"
    rf"(?:(?:over|across|on) (?:the |all )*(?P<t>\d+) {_TASK} ?)?(?:is|was|equals|=|:) ?"
    r"(?:about |only |just |roughly )*(?P<n>\d*\.?\d+)(?:%| (?:percentage )?points?)?",
    re.IGNORECASE,
)


def _parse_error(match: re.Match[str], run: tuple[int, ...]) -> Iterator[Statement]:
    """The standard error of a score that is not stated itself."""
    value = float(match["n"]) * (1.0 if match["n"].startswith(("0.", ".")) else 0.01)
    metric = match["m"] or "pass^1"
    text = f"± {match['n']}"
    yield Share(text, 0.0, 1.0, 0.0, "=", run, metric=metric, error=value, spread="se")
    if match["t"]:
        yield Size(f"{match['t']} tasks", int(match["t"]), True, False)


_SOME_RUNS = re.compile(
    r"\b(?:\d+|some|most|half|several|many) (?:out )?of (?:the |its |our |these |all )*(\d+) "
    r"(?:[a-z]+ )?(?:runs|trials|rounds)\b",
    re.IGNORECASE,
)
_RUNS_BEYOND = re.compile(
    r"(?:in |on )?(?P<n>\d+) (?:out )?of (?:the |its |all )*(?P<m>\d+) (?:[a-z]+ )?"
    r"(?:runs|trials|rounds)(?:,? (?:of |by )?⟦r\d+⟧)?,? (?:were|was|is|are|scor\w+|reach\w*|"
    r"stay\w*|land\w*|ha[ds]|fell|got|end\w*|solv\w+|pass\w*)(?: (?:at|on|in|to|a|score|"
    r"of|with|exactly))* ?(?P<op>at least|above|over|more than|no less than|below|under|"
    r"less than|at most|no more than)? ?(?P<v>\d+(?:\.\d+)?) ?%"
    r"(?: or (?P<end>more|higher|better|above|less|lower|worse|below))?(?: of (?:the|its) tasks)?",
    re.IGNORECASE,
)


def _parse_beyond(
    some: re.Match[str], match: re.Match[str] | None, run: tuple[int, ...]
) -> Iterator[Statement]:
    """How many of the runs score above or below a limit."""
    words = f"{match['op'] or ''} {match['end'] or ''}".lower() if match else ""
    words = words.replace("no more", "not").replace("no less", "least").strip()
    total = int(some[1])
    yield Size(f"{total} attempts", total, False, True, per_task=True)
    if match is None or not words or int(match["n"]) > total:
        yield Unread(some[0], "what is said of these runs was not understood")
        return
    side = "above" if re.search("least|above|over|more|higher|better", words) else "below"
    part = int(match["n"]) / total
    shown = f"{match['n']} of {total} runs"
    yield Share(shown, part, part, 1 / total, "=", run, metric=f"tasks:{side}{match['v']}")


_SMALL_TOTAL = 10
"""Of 4 of 5 the 5 is no number of tasks."""


@dataclass(slots=True)
class FixedForms:
    """Reads clauses in a fixed form, and leaves all others to the readings of any form."""

    names: Sequence[Sequence[str]]
    tasks: frozenset[int]
    attempts: frozenset[int]
    """At a task."""
    digits: set[str] = field(default_factory=set)
    """The numbers of the clauses of the last sentence that were read."""
    is_whole: bool = False
    """Whether all of the last sentence was read."""
    is_open: bool = False
    """Whether it counts tasks by their passes in a form that was not understood."""
    _runs: list[tuple[int, ...]] = field(default_factory=list)
    _last: Share | None = None
    _verb: str = "?"

    def read(self, sentence: str) -> list[Statement]:
        """The statements of the clauses that have a fixed form."""
        text = self._plain(sentence)
        self.digits, self.is_whole, self.is_open, self._last = set(), False, False, None
        found: list[Statement] = list(find_sizes(text, self.tasks))
        error = _ERROR_OF.fullmatch(text)
        runs = [run for run in self._named(error[0]) if len(run) == 1] if error else []
        if error and (len(runs) == 1 or len(self.names) == 1):
            self.is_whole = True
            return [*found, *_parse_error(error, runs[0] if runs else (0,))]
        some = _SOME_RUNS.search(text)
        if some and int(some[1]) in self.attempts and re.search(r"\d\s?%", text):
            self.is_whole = True
            runs = [run for run in self._named(text) if len(run) == 1]
            beyond = _RUNS_BEYOND.fullmatch(text) if len(runs) + (len(self.names) == 1) else None
            return [*found, *_parse_beyond(some, beyond, runs[0] if runs else (0,))]
        at_level = LEVELS.search(text)
        if at_level:
            self.digits, self.is_whole = set(re.findall(r"\d+\.?\d*", at_level[0])), True
            return [*found, *parse_levels(at_level)]
        clauses = [one for one in _CLAUSES.split(text) if re.search(r"\w", one)]
        is_split = any(one.count("(") != one.count(")") for one in clauses)
        clauses = [text] if is_split else clauses
        rest: list[str] = []
        pair = [run[0] for run in dict.fromkeys(self._named(text)) if len(run) == 1]
        pair = pair or list(range(len(self.names)))
        for clause in clauses:
            statements = find_gap_interval(clause, pair, text) or self._clause(clause)
            if statements:
                found += statements
            elif EXACT_TIMES.search(clause) and re.search(rf"\b{_TASK}\b", clause):
                self.is_open = True
            rest += [clause] * (not statements)
            self._runs += self._named(clause)
        numbers = r"\d+(?:\.\d+)?"
        self.digits = set(re.findall(numbers, text)) - set(re.findall(numbers, " ".join(rest)))
        self.is_whole = bool(found) and not rest
        return found

    def _plain(self, sentence: str) -> str:
        text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", sentence.replace("’", "'").strip())
        text = re.sub(r"\b(?:can|could|did|does|do|was|were|is|are|had|have|has)n't\b", "not", text)
        text = NUMBER_WORDS.sub(spell, Reader(self.names).mark_names(text))
        none = rf"\b(?:none of(?= (?:the |its )*(?:\d+ )?{_TASK})|no(?= {_TASK}))"
        text = re.sub(none, "0", text, flags=re.IGNORECASE)
        half = r"\b(than |under |over |least |most |about )?half(?= (?:of )?(?:the|its|all|⟦))"
        text = re.sub(half, lambda m: f"{m[1] or 'about '}50%", text, flags=re.IGNORECASE)
        return re.sub(r"\s+", " ", text).rstrip(".")

    def _named(self, text: str) -> list[tuple[int, ...]]:
        codes = re.findall(r"⟦r(\d+(?:\+\d+)*|\*)⟧", text)
        every = tuple(range(len(self.names)))
        return [every if code == "*" else tuple(map(int, code.split("+"))) for code in codes]

    def _clause(self, text: str) -> list[Statement]:
        uneven = len(self.attempts) != 1 or len(self.tasks) != 1
        if uneven or re.search(r"⟦r\?⟧", text):
            return []
        pair = re.search(
            rf"\b(\d+) (?:vs\.?|versus|against) (\d+) (failed|solved|successful|passed) {_ATT}\b",
            text,
        )
        runs = list(dict.fromkeys([*self._runs, *self._named(text)]))[-2:]
        if pair:
            is_pair = len(runs) == len(self.names) == 2 and all(len(run) == 1 for run in runs)
            return [
                self._total(int(count), run, failing=pair[3] == "failed", guessed=True)
                for count, run in zip(pair.groups(), runs, strict=False)
            ] if is_pair else []  # fmt: skip
        than = re.search(r"\bthan ⟦r(\d+)⟧(?: (?:does|did|do))?", text)
        if than:
            rest = text.replace(than[0], " ")
            subjects = {run for run in self._named(rest) or self._runs[-1:] if len(run) == 1}
            subjects -= {(int(than[1]),)}
            (subject,) = subjects.pop() if len(subjects) == 1 else (-1,)
            return find_ranking(rest, subject, int(than[1]), self.attempts)
        return self._counted(text)

    def _counted(self, text: str) -> list[Statement]:
        """How many tasks pass so often, or how many attempts pass."""
        whole = parse_times(text, self.attempts)
        if whole is None:
            return []
        rest, kind, often, verb = whole
        numbers = list(HOW_MANY.finditer(rest))
        if len(numbers) != 1:
            return []
        number = numbers[0]
        rest = rest[: number.start()] + " " + rest[number.end() :]
        runs = list(dict.fromkeys(self._named(text))) or self._runs[-1:]
        runs = [(0,)] if len(self.names) == 1 else runs
        noun = number["noun"] or ""
        if len(runs) > 1 or not FILLER.fullmatch(rest):
            return []
        owners = runs[0] if runs else ()
        is_attempts = re.fullmatch(_ATT, noun, re.IGNORECASE) is not None
        if is_attempts or (
            not noun and not kind and self._last and self._last.counted == "attempt"
        ):
            share = self._part_of_attempts(number, owners, verb) if not kind else None
        else:
            share = self._part_of_tasks(number, owners, kind, often, verb)
        if share:
            self._last, self._verb = share, verb if verb != "?" else self._verb
        total = int(number["m"] or 0)
        has_size = noun and not is_attempts and (total > _SMALL_TOTAL or total in self.tasks)
        sizes = [Size(f"{total} tasks", total, True, False)] if has_size else []
        return [share, *sizes] if share else []

    def _part_of_attempts(
        self, number: re.Match[str], owners: tuple[int, ...], verb: str
    ) -> Share | None:
        before = self._last if self._last and self._last.counted == "attempt" else None
        total = max(self.tasks) * max(self.attempts)
        if number["i"] or (verb == "?" and before is None):
            return None
        failing = before.failing if before and verb == "?" else bool(verb.strip("?"))
        if number["unit"]:
            share = self._total(0, owners, failing=failing)
            low, step = float(number["n"]) / 100, _last_digit(number["n"]) / 100
            return replace(share, text=plain_count(number), low=low, high=low, step=step,
                           relation=relation_of(number))  # fmt: skip
        count = float(number["n"])
        is_whole = int(number["m"] or total) == total and count == int(count)
        if not is_whole or not max(self.attempts) < count <= total:
            return None
        share = self._total(int(count), owners, failing=failing)
        return replace(share, relation=relation_of(number))

    def _total(
        self, count: int, owners: tuple[int, ...], *, failing: bool, guessed: bool = False
    ) -> Share:
        total = max(self.tasks) * max(self.attempts)
        part = count / total
        return Share(
            f"{count} attempts", part, part, 1 / total, "=", owners, guessed, "pass^1", failing,
            counted="attempt",
        )  # fmt: skip

    def _part_of_tasks(
        self,
        number: re.Match[str],
        owners: tuple[int, ...],
        kind: str,
        often: re.Match[str] | None,
        verb: str,
    ) -> Share | None:
        ends = passes_between(kind, often, max(self.attempts))
        verb = self._verb if verb == "?" and self._last else verb
        metric = ""
        if ends is not None and verb != "?":
            low, high = ends
            if verb:
                low, high = max(self.attempts) - high, max(self.attempts) - low
            metric = f"tasks:passes{low}to{high}"
        is_part = number["noun"] or (self._last and not number["i"])
        if not metric or not is_part:
            return None
        share = Share(plain_count(number), 0.0, 0.0, 1.0, relation_of(number), owners,
                      metric=metric, counted="task")  # fmt: skip
        if number["i"] or number["m"]:
            above, below = float(number["i"] or number["n"]), int(number["h"] or number["m"])
            is_ratio = below not in self.tasks and below <= _SMALL_TOTAL
            if not above <= below or number["unit"] or not below:
                return None
            step = min(1 / below, 0.06) if is_ratio else 1 / below
            return replace(share, low=above / below, high=above / below, step=step)
        value = float(number["n"])
        if number["unit"]:
            step = _last_digit(number["n"]) / 100
            return replace(share, low=value / 100, high=value / 100, step=step)
        return replace(share, low=value, high=value, count=int(value)) if value % 1 == 0 else None


def _last_digit(text: str) -> float:
    return float(10.0 ** -len(text.partition(".")[2]))


_RUN_ON = re.compile(
    r"%|pass[@^]|\d\.\d|\b(?:evaluat|test|measur|compar|ran\b|run\b|suite|benchmark)|"
    rf"\b{ATTEMPTS} (?:each|per)\b",
    re.IGNORECASE,
)
"""Words by which "on 20 tasks" says how many there are."""


def _without_forms(checks: Iterable[Check], forms: FixedForms, sentence: str) -> Iterator[Check]:
    """The checks without those of numbers in a fixed form, which are answered already."""
    plain, own_names = plain_number(sentence), name_pattern(forms.names)
    for check in checks:
        numbers = re.sub(r"pass[@^](?:\d+|n)", "", own_names.sub("", check.statement))
        digits = digits_of(numbers)
        if digits and digits <= forms.digits:
            continue
        reason = "how often these tasks pass was not understood" if forms.is_open else ""
        if size := re.fullmatch(r"(\d+) tasks", check.statement):
            on_part = rf"\bon (?:only |just |exactly )?{size[1]} (?:[a-z]+ )?{TASKS}\b"
            is_part = int(size[1]) < min(forms.tasks, default=0) and re.search(on_part, plain)
            reason = (
                "it may be a part of the tasks" if is_part and not _RUN_ON.search(plain) else ""
            )
        if reason and check.support is Support.CONTRADICTED:
            detail = f"{reason}; {check.detail}"
            check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
        yield check
