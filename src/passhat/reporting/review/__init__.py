"""Omissions in a claim, its statements against runs, and the sentence the data would support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from passhat._display import counted, number
from passhat._serialize import Plain
from passhat.errors import PasshatError
from passhat.reporting.document import Block, Document, Facts, Sentence
from passhat.reporting.review.claim_text import Passage, all_passages
from passhat.reporting.review.clauses import parse_sentences
from passhat.reporting.review.rules import RULES, Finding, findings_of
from passhat.reporting.review.statements import Difference, Share, Size, Statement, Unread
from passhat.reporting.review.tables import parse_table
from passhat.stats.compare import Result, compare, compare_all
from passhat.stats.estimate import Estimate, estimate
from passhat.stats.outcomes import Run

__all__ = [
    "RULES",
    "SCHEMA",
    "Check",
    "Finding",
    "Offer",
    "Review",
    "Reviewed",
    "Support",
    "offers_for",
    "review",
    "review_document",
]

SCHEMA = "passhat.review/1"
_MOST_METRICS = 4
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


@dataclass(frozen=True, slots=True)
class Offer:
    """A sentence that the data support, or why there is none for this metric."""

    metric: str
    sentence: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A claim of the text, its line, and the findings about it."""

    text: str
    line: int
    findings: tuple[Finding, ...]
    offers: tuple[Offer, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Review(Plain):
    """All claims of a text."""

    SCHEMA = SCHEMA
    WRITTEN = (..., "findings")

    claims: tuple[Reviewed, ...]

    @property
    def findings(self) -> int:
        return sum(len(claim.findings) for claim in self.claims)


def review(
    text: str, runs: Sequence[Run] = (), *, missing: str = "bound", level: float = 0.95
) -> Review:
    """Review every claim in a text by rule; with runs, offer the sentence they would support.

    Examples
    --------
    >>> result = review("Model B is better: its pass@5 is 64%, while Model A's pass@1 is 58%.")
    >>> [finding.rule for finding in result.claims[0].findings][:2]
    ['mismatched-k', 'extra-budget']
    """
    claims = []
    checker = _Checker(runs, missing, level)
    offers: dict[tuple[str, ...], tuple[Offer, ...]] = {}
    names = [*dict.fromkeys(word for run in runs for word in (run.name, run.agent) if word)]
    for passage in all_passages(text, [*names, *["B"] * (len(runs) == 2)]):
        checks = _check_statements(passage, checker) if runs else ()
        is_answered = any(
            check.support is not Support.NOT_CHECKABLE or check.statement.startswith("lift ")
            for check in checks
        )
        if not passage.states and not is_answered:
            continue
        findings = findings_of(passage) if passage.states else ()
        claim = Reviewed(passage.text, passage.line, (*findings, *_findings(checks)), checks=checks)
        if runs and passage.states:
            words = tuple(mention.word for mention in passage.metrics)
            if words not in offers:
                offers[words] = tuple(offers_for(passage, runs, missing=missing, level=level))
            claim = replace(claim, offers=offers[words])
        claims.append(claim)
    return Review(tuple(claims))


def offers_for(
    passage: Passage, runs: Sequence[Run], *, missing: str = "bound", level: float = 0.95
) -> Iterator[Offer]:
    """Sentences that the runs support, for every metric that the claim names."""
    words = dict.fromkeys(m.word for m in passage.metrics if m.k is not None)
    for word in list(words or {"pass^1": None})[:_MOST_METRICS]:
        try:
            if len(runs) == 1:
                result = estimate(runs[0].outcomes, word, missing=missing, level=level)
                protocol = runs[0].protocol.digest
                yield Offer(word, f"{runs[0].name}: {result}, protocol {protocol}.", True)
            elif len(runs) == 2:
                pair = compare(runs[0], runs[1], word, missing=missing, level=level)
                yield Offer(word, pair.results[0].sentence, True)
            else:
                ranking = compare_all(runs, word, missing=missing, level=level)
                ranks = ", ".join(f"{entry.name} {entry}" for entry in ranking.ranks)
                sentence = f"Possible ranks by {word}: {ranks} ({ranking.pairing_text})."
                yield Offer(word, sentence, True)
        except PasshatError as error:
            yield Offer(word, " ".join(filter(None, (error.message, error.hint))), False)


def _findings(checks: Sequence[Check]) -> Iterator[Finding]:
    """The statements that the runs do not bear out."""
    for check in checks:
        if check.support is Support.CONTRADICTED:
            message = f"{check.statement} is not what the sources show"
            yield Finding("not-in-data", message, f"{check.detail[:1].upper()}{check.detail[1:]}.")
        elif check.support is Support.NOT_SHOWN:
            yield Finding("not-shown", f"{check.statement} is not shown", check.detail)


def review_document(review: Review) -> Document:
    """Build the document of a review."""
    return Document.of("Review", _document_blocks(review))


def _document_blocks(review: Review) -> Iterator[Block]:
    if not review.claims:
        yield Sentence("No claim about pass rates was found: no metric, share or comparison.")
        return
    for claim in review.claims:
        yield Sentence(f"line {claim.line}: {claim.text}", "lead")
        entries = [
            (finding.rule, f"{finding.message}. {finding.fix}") for finding in claim.findings
        ]
        entries += [
            (str(check.support), f"{check.statement}: {check.detail}")
            for check in claim.checks
            if check.support in (Support.SUPPORTED, Support.NOT_CHECKABLE)
        ]
        entries += [
            ("the data say" if offer.supported else "no answer", offer.sentence)
            for offer in claim.offers
        ]
        yield Facts(tuple(entries) or (("clean", "nothing found"),))
    claims = counted(len(review.claims), "claim")
    yield Sentence(f"{claims}, {counted(review.findings, 'finding')}")


def _check_statements(passage: Passage, checker: _Checker) -> tuple[Check, ...]:
    """Check every number and every comparison of a claim that the runs can answer.

    A number that was not understood may belong to the claim: then no part of its sentence is
    called supported.
    """
    names = checker.names
    parsed = (
        parse_table(passage.rows, names) if passage.rows else parse_sentences(passage.text, names)
    )
    checks: dict[Check, None] = {}
    for statements in parsed:
        answers = [checker.check(statement) for statement in statements]
        unread = [
            statement.text
            for statement, check in zip(statements, answers, strict=True)
            if _blocks(statement, check)
        ]
        for check in answers:
            if unread and check.support is Support.SUPPORTED:
                detail = f"{check.detail}; but {unread[0]!r} in the same sentence cannot be checked"
                check = replace(check, support=Support.NOT_CHECKABLE, detail=detail)
            checks[check] = None
    return tuple(checks)


def _blocks(statement: Statement, check: Check) -> bool:
    """Whether a part without an answer leaves the rest of its sentence open."""
    if isinstance(statement, Unread):
        return statement.blocks
    return check.support is Support.NOT_CHECKABLE


class _Checker:
    def __init__(self, runs: Sequence[Run], missing: str, level: float) -> None:
        self._runs = runs
        self._missing = missing
        self._level = level
        self.names = [
            tuple(dict.fromkeys(word for word in (run.name, run.agent) if word)) for run in runs
        ]
        self._estimated: dict[tuple[int, str], list[Estimate]] = {}
        self._compared: dict[tuple[int, int, str], list[Result]] = {}

    def check(self, statement: Statement) -> Check:
        if isinstance(statement, Unread):
            return Check(statement.text, Support.NOT_CHECKABLE, statement.reason)
        if isinstance(statement, Share):
            return self._check_share(statement)
        if isinstance(statement, Size):
            return self._check_size(statement)
        return self._check_difference(statement)

    # Shares

    def _check_share(self, share: Share) -> Check:
        owners = share.owners or tuple(range(len(self._runs)))
        who = f"{self._runs[owners[0]].name} " if len(share.owners) == 1 else ""
        shown = {"tasks": "pass"}.get(share.metric[:5], share.metric[:5]) + share.metric[5:]
        kind = "failures" if share.failing else shown or "share"
        relation, text = share.relation.replace("~", "about"), share.text.strip().lstrip("~<>=")
        name = f"{who}{kind} {relation} {text}"
        if share.doubt:
            return Check(name, Support.NOT_CHECKABLE, share.doubt)
        if share.metric.endswith("k"):
            return Check(name, Support.NOT_CHECKABLE, "k is not given")
        answers = {run: self._answer(share, run, share.metric) for run in range(len(self._runs))}
        found = {run: answer for run, answer in answers.items() if answer}
        if not any(run in found for run in owners):
            return Check(name, Support.NOT_CHECKABLE, f"no source has {shown or 'such a share'}")
        agreeing = [run for run in owners if run in found and _agrees_any(found[run], share)]
        is_right = bool(agreeing) if not share.owners else len(agreeing) == len(owners)
        if is_right:
            return self._check_ends(name, share, found[agreeing[0]], agreeing[0])
        values = ", ".join(
            f"{self._runs[run].name} {one.metric} = {number(one.value)}"
            for run in owners
            if run in found
            for one in found[run][:1]
        )
        elsewhere = [run for run in found if run not in owners and _agrees_any(found[run], share)]
        if share.guessed and elsewhere:
            detail = (
                f"it is that of {self._runs[elsewhere[0]].name}, and the text names no run for it"
            )
            return Check(name, Support.NOT_CHECKABLE, detail)
        if not share.metric:
            for run in owners:
                for word in ("tasks@n", "tasks^n"):
                    others = self._answer(share, run, word)
                    if others and _agrees_any(others, share):
                        detail = (
                            f"it is {others[0].metric} of {self._runs[run].name}, and the text "
                            f"names no metric; single attempts: {values}"
                        )
                        return Check(name, Support.NOT_CHECKABLE, detail)
        return Check(name, Support.CONTRADICTED, f"the sources show {values}")

    def _answer(self, share: Share, run: int, metric: str) -> list[Estimate]:
        return self._estimates(run, self._word(metric, (run,), failing=share.failing))

    def _word(self, metric: str, runs: Sequence[int], *, failing: bool = False) -> str:
        """The metric that words such as "every time" mean for these runs."""
        if not metric:
            return "pass^1"
        if not metric.startswith("tasks"):
            return metric
        family, k = metric[5], metric[6:]
        if failing:  # all attempts fail where none passes
            family = "@" if family == "^" else "^"
        if k == "n":
            smallest = (
                int(self._runs[run].outcomes.n.min())
                for run in runs
                if len(self._runs[run].outcomes)
            )
            k = str(min(smallest, default=1))
        return f"pass{family}{k}"

    def _check_ends(
        self, name: str, share: Share, estimates: Sequence[Estimate], run: int
    ) -> Check:
        detail = f"{self._runs[run].name} {estimates[0].metric} = {number(estimates[0].value)}"
        is_right = (
            any(_near(one.low, one.high, share.ends) for one in estimates)
            if share.ends is not None
            else share.error is None or any(_is_error(one, share.error) for one in estimates)
        )
        if is_right:
            return Check(name, Support.SUPPORTED, detail)
        ends = " and ".join(f"{one.interval_text()} for {one.population}" for one in estimates)
        return Check(f"the interval of {name}", Support.CONTRADICTED, f"it is {ends}")

    def _estimates(self, run: int, word: str) -> list[Estimate]:
        """About new tasks, and about these."""
        if (run, word) in self._estimated:
            return self._estimated[run, word]
        estimates = self._estimated[run, word] = []
        outcomes = self._runs[run].outcomes
        for about in ("new tasks", "these tasks"):
            with suppress(PasshatError):  # the run does not support that k or population
                options = {"missing": self._missing, "level": self._level, "about": about}
                estimates.append(estimate(outcomes, word, **options))  # type: ignore[arg-type]
        return estimates

    # Differences

    def _check_difference(self, claim: Difference) -> Check:
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
        about = [one for one in results if claim.population in ("", one.population)] or results
        if claim.points is not None:
            return self._check_points(name, claim, results, about)
        shown = [one for one in about if not one.low <= 0 <= one.high]
        detail = results[0].sentence
        if claim.kind in ("equal", "different"):
            return Check(
                name,
                Support.CONTRADICTED if shown and claim.kind == "equal" else Support.NOT_CHECKABLE,
                detail if shown else "equality needs a margin chosen beforehand",
            )
        lift = claim.sign * results[0].lift
        is_shown = any(one.low > 0 if claim.sign > 0 else one.high < 0 for one in about)
        if claim.kind == "denied":
            support = Support.CONTRADICTED if is_shown else Support.NOT_CHECKABLE
        elif claim.kind == "ranked":
            support = Support.SUPPORTED if lift >= 0 else Support.CONTRADICTED
        elif lift <= 0:
            support = Support.CONTRADICTED
        else:
            support = Support.SUPPORTED if is_shown else Support.NOT_SHOWN
        return Check(name, support, detail)

    def _difference_name(self, claim: Difference) -> str:
        def of(run: int | None) -> str:
            return self._runs[run].name if run is not None and run >= 0 else "another run"

        subject, other = of(claim.subject), of(claim.other)
        if claim.kind == "equal":
            return f"{subject} and {other} are equal"
        if claim.kind in ("denied", "different", "ranked"):
            verb = "is not" if claim.kind != "ranked" else "is"
            return (
                f"{subject} {verb} {claim.text} {other if claim.kind == 'ranked' else ''}".strip()
            )
        if claim.points is not None:
            sign = "+" if claim.sign > 0 else "-" if claim.sign < 0 else ""
            ends = "" if claim.ends is None else f", {claim.ends[0]:+g} to {claim.ends[1]:+g}"
            return f"lift {sign}{claim.points:g} points{ends}"
        if claim.percent is not None or claim.ratio is not None:
            return f"{subject} against {other}: {claim.text}"
        better, worse = (subject, other) if claim.sign > 0 else (other, subject)
        return f"{better} is better than {worse}"

    def _check_points(
        self, name: str, claim: Difference, results: Sequence[Result], about: Sequence[Result]
    ) -> Check:
        assert claim.points is not None
        subject, other = (
            self._runs[run].name for run in (claim.subject, claim.other) if run is not None
        )
        detail = f"{subject} minus {other}, {results[0].metric}, " + "; ".join(
            f"{one.population}: {100 * one.lift:+.1f} points {one.interval_text()}"
            for one in results
        )
        is_right = _fits_points(claim, results[0])
        if is_right and claim.ends is not None:
            low, high = (end / 100 for end in claim.ends)
            turned = [(low, high)] * (claim.sign >= 0 or low < 0) + [(-high, -low)] * (
                claim.sign <= 0
            )
            is_right = any(_near(one.low, one.high, ends) for one in about for ends in turned)
            return Check(name, _support(is_right), detail)
        if (
            not is_right
            and not claim.metric
            and claim.subject is not None
            and claim.other is not None
        ):
            pair = (claim.subject, claim.other)
            for word in ("tasks@n", "tasks^n"):
                others = self._results(pair, self._word(word, pair))
                if others and _fits_points(claim, others[0]):
                    return Check(
                        name,
                        Support.NOT_CHECKABLE,
                        f"it is that of {others[0].metric}, which the text does not name; {detail}",
                    )
        return Check(name, _support(is_right), detail)

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
            is_right = _holds(ratio, claim.ratio, slack, claim.relation)
            if is_right and not claim.metric and not claim.failing:
                return Check(name, Support.NOT_CHECKABLE, f"the text names no metric; {detail}")
            return Check(name, _support(is_right), detail)
        assert claim.percent is not None
        change = claim.percent * (-claim.sign if claim.failing else claim.sign)
        slack = 0.5001 * claim.step + (2.0 if claim.relation == "~" else 0)
        actual = 100 * (ratio - 1)
        if claim.relation in ("=", "~") and abs(actual - change) > slack:
            if abs(100 * (shares[0] - shares[1]) - change) <= slack:
                return Check(
                    name, Support.NOT_CHECKABLE, f"in points it is right, in percent not: {detail}"
                )
            return Check(name, Support.CONTRADICTED, detail)
        is_right = actual * change > 0 and _holds(abs(actual), abs(change), slack, claim.relation)
        return Check(name, _support(is_right), detail)

    def _results(self, pair: tuple[int, int], word: str) -> list[Result]:
        """The lift of the first run over the second, about new tasks and about these."""
        if pair[0] == pair[1] or max(pair) >= len(self._runs):
            return []
        if (*pair, word) not in self._compared:
            found = self._compared[*pair, word] = []
            new, old = (self._runs[run] for run in pair)
            with suppress(PasshatError):
                result = compare(old, new, word, missing=self._missing, level=self._level)
                found += [*result.results[:1], *result.these_tasks[:1]]
        return self._compared[*pair, word]

    def _check_size(self, size: Size) -> Check:
        """The number of tasks or of attempts."""
        tasks = {len(run.outcomes) for run in self._runs}
        planned = [run.outcomes.n + run.outcomes.missing for run in self._runs]
        attempts = {int(count) for one in planned for count in one}
        totals = set() if size.per_task else {int(one.sum()) for one in planned}
        totals |= {sum(totals)} if totals else set()
        is_right = (size.tasks and size.count in tasks) or (
            size.attempts and size.count in attempts | totals
        )
        detail = ", ".join(
            f"{run.name} {counted(len(run.outcomes), 'task')}"
            if size.tasks
            else f"{run.name} {run.outcomes.attempts_text()}"
            for run in self._runs
        )
        noun = (
            "tasks" if not size.attempts else "attempts" if not size.tasks else "tasks or attempts"
        )
        return Check(f"{size.count:,} {noun}", _support(is_right), detail)


def _agrees_any(estimates: Sequence[Estimate], share: Share) -> bool:
    return any(_agrees(one, share) for one in estimates)


def _agrees(result: Estimate, share: Share) -> bool:
    """Whether the number is the estimate to its last digit, or between its bounds."""
    low, high = result.value_ends
    if share.failing:
        low, high = 1 - high, 1 - low
    margin = 0.5001 * share.step + (0.03 if share.relation == "~" else 0)
    if share.relation == ">=":
        return high >= share.low - margin
    if share.relation == "<=":
        return low <= share.high + margin
    return low - margin <= share.high and share.low <= high + margin


def _fits_points(claim: Difference, result: Result) -> bool:
    assert claim.points is not None
    lift = 100 * result.lift * claim.sign if claim.sign else abs(100 * result.lift)
    return _holds(lift, claim.points, 0.5001 * claim.step, claim.relation)


def _holds(actual: float, stated: float, slack: float, relation: str) -> bool:
    if relation == ">=":
        return actual >= stated - slack
    if relation == "<=":
        return 0 <= actual <= stated + slack
    return abs(actual - stated) <= slack + (1.5 if relation == "~" and stated > 5 else 0)


def _near(low: float | None, high: float | None, ends: tuple[float, float]) -> bool:
    """Whether stated ends are close to ours; an interval of less than half the width is not."""
    if low is None or high is None:
        return False
    first, last = sorted((low, high))
    is_wide = abs(ends[1] - ends[0]) >= (last - first) / 2
    return is_wide and all(
        abs(one - other) <= _CLOSE_POINTS / 100 + 10**-9
        for one, other in zip((first, last), sorted(ends), strict=True)
    )


def _is_error(result: Estimate, stated: float) -> bool:
    """Whether "± x" is half an interval, or a standard error (negative where it is called so)."""
    if result.low is None or result.high is None:
        return False
    half = (result.high - result.low) / 2
    as_error = 0.6 <= abs(stated) * 1.96 / half <= 1.6 if half else stated == 0
    is_close = abs(stated - half) <= _CLOSE_POINTS / 100 and stated >= half / 2
    return as_error or (stated >= 0 and is_close)


def _support(is_right: bool) -> Support:
    return Support.SUPPORTED if is_right else Support.CONTRADICTED
