"""The checks of a passage: two readings of every sentence, settled against each other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from passhat.reporting.review.agreement import Check, Support
from passhat.reporting.review.checking import Checker
from passhat.reporting.review.claim_text import ITEM, Passage
from passhat.reporting.review.clauses import parse_sentences
from passhat.reporting.review.second_reading import Found, SecondReading
from passhat.reporting.review.statements import (
    ATTEMPTS,
    OTHER,
    TASKS,
    Difference,
    Place,
    Share,
    Size,
    Statement,
    Unread,
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
_QUANTIFIER = re.compile(r"\d|\b(?:all|every|each|both|any|never|always|none)\b", re.IGNORECASE)


def check_statements(passage: Passage, checker: Checker) -> tuple[Check, ...]:
    """Check every number and every comparison of a claim that the runs can answer.

    Every sentence is read twice, and what only one reading finds wrong is left open.
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
    text = _with_tasks(passage, checker)
    for sentence, statements in parse_sentences(text, names):
        found = second.read(sentence)
        first = _check_all(statements, checker, names, is_about_failures=is_about_failures)
        if not statements and found and all(one.support is Support.SUPPORTED for one in found):
            checks |= dict.fromkeys(one.check for one in found)
        elif statements and not _IS_QUESTION.search(sentence):
            checks |= dict.fromkeys(_settle(statements, first, found, second))
    return tuple(checks)


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
    digits = _digits(statement.text)
    is_confirmed = any(
        _digits(one.text) & digits or not (_digits(one.text) or digits) for one in wrong
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
    answered = {"0", *itertools.chain.from_iterable(map(_digits, [*texts, *second.cue_texts]))}
    digits = _digits(statement.text)
    is_covered = digits <= answered
    if isinstance(statement, Unread):
        right = [one.check.statement for one in found if one.support is Support.SUPPORTED]
        is_covered |= "interval" not in statement.reason
        is_covered |= digits <= {*itertools.chain.from_iterable(map(_digits, right))}
        return is_covered and any(_digits(text) for text in texts)
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


def _digits(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text.replace(",", "")))


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
    for statement, check in zip(statements, answers, strict=True):
        reason = ""
        if unread and check.support is Support.SUPPORTED:
            reason = f"but {unread[0]!r} in the same sentence cannot be checked"
        elif check.support in (Support.CONTRADICTED, Support.NOT_SHOWN):
            if unclear:
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
