"""Omissions in a claim, its statements against runs, and the sentence the data would support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from passhat._display import counted
from passhat._serialize import Plain
from passhat.errors import PasshatError
from passhat.reporting.document import Block, Document, Facts, Sentence
from passhat.reporting.review.agreement import Check, Support
from passhat.reporting.review.checking import Checker
from passhat.reporting.review.claim_text import Passage, all_passages
from passhat.reporting.review.grammar import name_pattern
from passhat.reporting.review.settling import check_statements
from passhat.reporting.review.statements import POLARITY
from passhat.stats.compare import compare, compare_all
from passhat.stats.estimate import estimate
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


@dataclass(frozen=True, slots=True)
class Finding:
    """An omission or a mistake, and the text to write instead."""

    rule: str
    message: str
    fix: str


Problem = tuple[str, str] | None


def _check_same_k(claim: Passage) -> Problem:
    words = _unlike_metrics(claim)
    if not words:
        return None
    return (
        f"{words[0]} is compared with {words[1]}: they answer different questions, and the larger "
        "budget looks better by itself",
        "Compare both sides with the same metric, k, n, tasks, tests and decoding, for instance "
        f"{words[-1]} with {words[-1]}.",
    )


def _extra_budget(claim: Passage) -> Problem:
    ks = [mention.k for mention in claim.claimed_metrics if mention.k is not None]
    if not _unlike_metrics(claim) or len(set(ks)) < 2:
        return None
    if claim.says(r"\bcosts?\b|\bbudget\b|\blatency\b|\bprices?\b|\btokens\b|\$"):
        return None
    return (
        f"one side gets {max(ks)} attempts and the other {min(ks)}: whether that extra generation "
        "and test budget is acceptable is not stated",
        "Give cost and latency of both sides, and say whether the product can afford them.",
    )


def _unlike_metrics(claim: Passage) -> list[str]:
    """The metrics of a comparison, where its sides are measured by different metrics."""
    words = list(dict.fromkeys(mention.word for mention in claim.claimed_metrics))
    if not claim.compares or len(words) < 2 or _has_both_sides(claim):
        return []
    return words


def _has_both_sides(claim: Passage) -> bool:
    """Every metric has a number for either side, or a lift: then no two metrics are mixed."""
    counts = dict.fromkeys((mention.word for mention in claim.claimed_metrics), 0)
    for value in claim.values:
        mention = claim.metric_of(value)
        if mention is not None:
            counts[mention.word] = counts.get(mention.word, 0) + 1
    lifts = claim.says(r"\bpoints\b") and claim.lift_interval is not None
    return lifts or min(counts.values()) >= 2


def _missing_k(claim: Passage) -> Problem:
    if not any(mention.k is None for mention in claim.metrics):
        return None
    return "k is not given", "Write the number: pass@5, pass^4."


def _missing_metric(claim: Passage) -> Problem:
    if claim.metrics or not claim.values:
        return None
    return (
        "a share is stated without a metric: of one attempt, of the best of several, or of all?",
        "Name it: pass^1 (one attempt), pass@k (any of k) or pass^k (all of k).",
    )


def _missing_n(claim: Passage) -> Problem:
    if claim.tasks is not None:
        return None
    return "the number of tasks is not given", "Add it: (164 tasks, 8 attempts each)."


def _missing_attempts(claim: Passage) -> Problem:
    several = [m for m in claim.claimed_metrics if m.k is not None and m.k > 1]
    if not several or claim.attempts is not None or claim.says(r"\bprotocol [0-9a-f]{8,}"):
        return None
    return (
        f"{several[0].word} without the number of attempts n it was estimated from",
        "Add it: (n = 8 attempts per task).",
    )


def _k_beyond_n(claim: Passage) -> Problem:
    largest = max((mention.k or 0 for mention in claim.claimed_metrics), default=0)
    attempts = claim.attempts
    if (
        attempts is None
        or attempts < 1
        or largest <= attempts
        or claim.says(r"\bforecast|extrapolat|band\b")
    ):
        return None
    return (
        f"k = {largest} cannot be estimated from {attempts} attempts: it is beyond n",
        "Make k attempts per task, or call it a forecast and give its band (passhat forecast).",
    )


def _missing_interval(claim: Passage) -> Problem:
    if claim.has_interval or claim.illustrates or not (claim.values or claim.compares):
        return None
    return (
        "no interval: the same run again would give another number",
        "Add it with its level and what it is about: 95% interval for new tasks, 0.31 to 0.52.",
    )


def _check_pairing(claim: Passage) -> Problem:
    if not claim.compares or claim.says(
        r"\bpair(?:ed|wise)|same (?:\w+ )?(?:tasks|problems|questions|suite)|task by task|"
        r"(?:that|which) (?:both|all) (?:\w+ )?attempted|shared tasks"
    ):
        return None
    return (
        "it is not stated that both sides attempted the same tasks, compared task by task",
        "Give the paired lift and its interval (passhat compare A B).",
    )


def _two_intervals(claim: Passage) -> Problem:
    if claim.equates or not claim.says(
        r"(?:intervals?|error bars?|CIs?) (?:do(?:es)? not|don't|never|barely)? ?overlap"
    ):
        return None
    return (
        "two separate intervals are compared by eye; whether they overlap does not decide",
        "Give the interval of the paired lift.",
    )


def _check_equality(claim: Passage) -> Problem:
    if not claim.equates or claim.says(
        r"\bmargin\b|\bequivalence\b|non-?inferior|±\s?\d|inconclusive|does not show"
    ):
        return None
    fix = (
        "Give the paired lift and its interval: it says how large a difference is still possible. "
        "Equality needs a margin chosen beforehand (passhat gate --margin)."
    )
    if claim.says(r"overlap"):
        return "overlapping intervals are not equality: the lift may still be large", fix
    if claim.says(
        r"\bp ?(?:>|>=|≥) ?0?\.\d+|\bp ?= ?0?\.(?!0[0-4]|05\b)\d+|"
        r"not (?:statistically )?significant|no (?:statistically )?significant|insignificant"
    ):
        return "a p-value above .05 is not equality: too few tasks give the same", fix
    if claim.lift_interval is not None or not (claim.values or claim.metrics):
        return None
    return "two sides are called equal without an interval of their difference", fix


def _word_rule(pattern: str, unless: str, message: str, fix: str) -> Callable[[Passage], Problem]:
    """A rule about words: what ``pattern`` finds, where ``unless`` does not explain it."""

    def rule(claim: Passage) -> Problem:
        return (message, fix) if claim.says(pattern) and not claim.says(unless) else None

    return rule


_probability_of_truth = _word_rule(
    r"\d+(?:\.\d+)?\s?(?:%|percent)\s(?:probability|chance|likel(?:y|ihood)|certain(?:ty)?|of the "
    r"time)\b[^.;]{0,60}\b(?:true|actual|real|lies|between|within)\b|\b(?:probability|chance) "
    r"(?:of|is) \d+(?:\.\d+)?\s?(?:%|percent)[^.;]{0,60}\b(?:true|lies)\b|\b(?:true|actual) "
    r"[^.;]{0,60}\bwith (?:a )?(?:probability|chance)",
    r"\bposterior\b|\bcredible\b|\bBayes",
    "a confidence interval is read as a probability of the true value: the level says how "
    "often the method is right, not how likely this one interval is",
    "Write: 95% interval for new tasks, 0.31 to 0.52.",
)
_check_stopping = _word_rule(
    r"\bstop(?:ped|ping)\b[^.;]{0,40}\b(?:when|once|as soon as|after|"
    r"because)\b[^.;]{0,60}\b(?:significan\w+|good|better|ahead|positive|reach\w*|exceed\w*|above|"
    r"passed|beat\w*|p ?<|lead\w*|won|confident)|\b(?:until|till)\b[^.;]{0,60}\b(?:significan\w+|"
    r"better|ahead|reach\w*|exceed\w*|beat\w*|excluded zero|p ?<)",
    r"sequential|always[- ]valid|anytime|e-?process|e-?value|alpha[- ]spending|"
    r"planned in advance|pre-?registered|fixed in advance",
    "the run was stopped when the result looked good: looking again and again finds a lead by "
    "chance",
    "Fix the number of tasks beforehand, or use a rule that allows looks (passhat gate --watch).",
)


def _lift_includes_zero(claim: Passage) -> Problem:
    ends = claim.lift_interval
    if ends is None or not claim.compares or not ends[0] <= 0 <= ends[1]:
        return None
    return (
        f"the interval of the lift, {ends[0]:+g} to {ends[1]:+g} points, includes zero, so nothing "
        "is shown",
        "Write: inconclusive, and what would settle it.",
    )


_cherry_picked = _word_rule(
    r"\b(?:on|in|for|within|among) (?:the |our |its )?(?:\w+ )?(?:hard(?:est)?|easy|easiest|medium|"
    r"difficult|subset|slice|categor(?:y|ies)|split|portion|selected|filtered|favou?rable)\b|"
    r"\bwhen restricted to\b|"
    r"\b(?:hard|easy|medium)[ -](?:tasks|problems|slice|subset)\b|\bin particular on\b",
    r"corrected|Holm|Bonferroni|max-T|widened|one of \d+ |of \d+ slices|all \d+ slices|"
    r"every slice|chosen before(?:hand)?|pre-?registered|overall",
    "a slice is shown without the whole and without how many slices were looked at",
    "Give the overall number too, and correct for the slices looked at (passhat compare --by).",
)

_SEVERAL = r"(?:runs|seeds|prompts|checkpoints|configurations|settings|variants|templates|trials)"
_best_of = _word_rule(
    rf"\bbest (?:run|seed|checkpoint|prompt|configuration|setting|variant|result)\b|\b(?:best|top|"
    rf"highest|max(?:imum)?|pick\w*|select\w*|cho(?:se|sen|osing))\b[^.;]{{0,25}}\b(?:of|over|"
    rf"from|among|out of) (?:the |our |all )?(?:\w+ )?{_SEVERAL}\b|\b(?:tr(?:ied|ying)|test(?:ed|"
    rf"ing)|ran|compared|after) (?:\w+ )?(?:\d+|several|many|dozens of) (?:\w+ "
    rf")?{_SEVERAL}\b[^.;]{{0,60}}\b(?:best|highest|top|winner)\b|\bpeak\b|\bcherry|\bup to "
    rf"\d+(?:\.\d+)?\s?(?:%|percent)",
    r"\bchosen before|\bheld-out|\bon a separate",
    "the best of several is reported: it looks good by chance alone",
    "Report all of them, or measure the chosen one again on tasks it was not chosen by.",
)


def _missing_protocol(claim: Passage) -> Problem:
    if claim.illustrates or claim.says(
        r"\bprotocol [0-9a-f]{6,}|\b(?:same|fixed|matched|identical) (?:[\w@^-]+ ){0,2}protocol",
        anywhere=True,
    ):
        return None
    absent = [
        name
        for name, words in (
            ("temperature", r"\btemperature|\bT ?= ?\d|\bgreedy|\bdecoding|\btop_p"),
            (
                "suite and version",
                r"\b(?:suite|version|fingerprint|benchmark|HumanEval|MBPP|SWE-bench|tau2?-bench|"
                r"orderdesk|v\d)",
            ),
        )
        if not claim.says(words, anywhere=True)
    ]
    if not absent:
        return None
    return (
        f"the protocol is not given: {' and '.join(absent)}",
        "Name suite, version and decoding, or the protocol's digest that passhat prints.",
    )


def _check_reliability(claim: Passage) -> Problem:
    capable = [m for m in claim.metrics if m.family.endswith("pass@") and (m.k or 2) > 1]
    reliable = (
        r"\breliab\w+|\bconsisten\w+|\bdependab\w+|\bevery time\b|\brobust\w*|\btrustworth\w+"
    )
    if not capable or any(mention.family == "pass^" for mention in claim.metrics):
        return None
    denial = r"\b(?:not|says nothing of|nothing about) (?:\w+ )?reliab"
    if not claim.says(reliable) or claim.says(denial):
        return None
    return (
        f"{capable[0].word} is called reliability, but one success in {capable[0].k or 'k'} is "
        "all it needs",
        f"Reliability is pass^{capable[0].k or 'k'}: all of them succeed.",
    )


_check_dropouts = _word_rule(
    r"\b(?:exclud\w+|ignor\w+|dropp\w+|remov\w+|discard\w+|filter\w+ out|without)\b"
    r"[^.;]{0,40}\b(?:timeouts?|errors?|crash\w*|failed|failures|invalid|unfinished|incomplete|"
    r"refus\w+|missing)\b|"
    r"\bof (?:the )?(?:completed|finished|valid|successful) (?:attempts|runs|trials|samples)\b",
    r"counted as failed|both extremes|between \S+ and \S+ had they|bounds?\b",
    "attempts were left out; a timeout or crash of the agent is a failure",
    "Count them as failed, or give both extremes (--missing bound).",
)

_check_scope = _word_rule(
    r"\bprov(?:es|en|ed)\b|\bguarantee\w*|\bclearly\b|\bundoubtedly\b|\bdefinitively?\b|"
    r"\bnever fail(?:s|ed)?\b|\balways (?:works|succeeds|passes)\b|\b100% reliable\b|"
    r"\bsolves? (?:the )?\w+ (?:entirely|completely)\b",
    r"(?!)",
    "a finite run proves nothing for certain",
    "Write what the interval allows: evidence of improvement, or inconclusive.",
)


def _p_alone(claim: Passage) -> Problem:
    if not claim.says(r"\bsignifican\w+|\bp ?[<=] ?0?\.\d+") or claim.has_interval:
        return None
    return (
        "significance without a size: how much better, and between which bounds?",
        "Give the lift in points with its interval; the p-value beside it.",
    )


def _percent_or_points(claim: Passage) -> Problem:
    change = (
        r"\b(?:by|of|gains?|improv\w+|increas\w+|drop(?:s|ped)?|up|down)\s+"
        r"(?:about |over |nearly )?\+?\d+(?:\.\d+)?\s?%(?! (?:of|interval|confidence|CI|to\b))"
    )
    if not claim.compares or not claim.says(change) or claim.says(r"\bpoints\b|\brelative\b"):
        return None
    return (
        "a change in percent: of the share, or of a hundred?",
        "Write points for the difference of two shares: 58% to 64% is 6 points.",
    )


RULES = MappingProxyType(
    {
        "mismatched-k": _check_same_k,
        "extra-budget": _extra_budget,
        "missing-k": _missing_k,
        "missing-metric": _missing_metric,
        "missing-n": _missing_n,
        "missing-attempts": _missing_attempts,
        "k-beyond-n": _k_beyond_n,
        "missing-interval": _missing_interval,
        "unpaired": _check_pairing,
        "two-intervals": _two_intervals,
        "lift-includes-zero": _lift_includes_zero,
        "called-equal": _check_equality,
        "probability-of-truth": _probability_of_truth,
        "stopped-when-good": _check_stopping,
        "cherry-picked": _cherry_picked,
        "best-of": _best_of,
        "missing-protocol": _missing_protocol,
        "called-reliable": _check_reliability,
        "dropped": _check_dropouts,
        "overclaimed": _check_scope,
        "p-alone": _p_alone,
        "percent-or-points": _percent_or_points,
    }
)
"""Every rule by name: a function of a passage that gives what is wrong and what helps, or None."""

_Rule = Callable[[Passage], Problem]


def findings_of(claim: Passage) -> Iterator[Finding]:
    """The findings of all rules about a claim."""
    rules: dict[str, _Rule] = dict(RULES)
    for name, rule in rules.items():
        problem = rule(claim)
        if problem is not None:
            yield Finding(name, *problem)


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

    @property
    def is_settled(self) -> bool:
        """Whether there are claims, and no part of them was left unchecked."""
        checks = [check for claim in self.claims for check in claim.checks]
        is_open = any(check.support is Support.NOT_CHECKABLE for check in checks)
        return bool(self.claims) and not is_open


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
    checker = Checker(runs, missing, level)
    offers: dict[object, tuple[Offer, ...]] = {}
    names = [*dict.fromkeys(word for run in runs for word in (run.name, run.agent) if word)]
    for passage in all_passages(text, [*names, *["B"] * (len(runs) == 2)]):
        checks = check_statements(passage, checker) if runs else ()
        is_answered = any(
            check.support is not Support.NOT_CHECKABLE or check.statement.startswith("lift ")
            for check in checks
        ) or (bool(checks) and name_pattern(checker.names).search(passage.text) is not None)
        is_answered |= any(check.statement.startswith(tuple(names)) for check in checks)
        if not passage.states and not is_answered:
            continue
        findings = findings_of(passage) if passage.states else ()
        claim = Reviewed(passage.text, passage.line, (*findings, *_findings(checks)), checks=checks)
        if runs and passage.states:
            named = _runs_named(passage, runs, checker)
            about = (*(run.name for run in named), *(mention.word for mention in passage.metrics))
            if about not in offers:
                offers[about] = tuple(offers_for(passage, named, missing=missing, level=level))
            claim = replace(claim, offers=offers[about])
        claims.append(claim)
    return Review(tuple(claims))


def _runs_named(passage: Passage, runs: Sequence[Run], checker: Checker) -> Sequence[Run]:
    """Of many runs those that a passage names; all, where it names none or one of them as best."""
    if len(runs) <= 2:
        return runs
    words = {match[1].lower() for match in name_pattern(checker.names).finditer(passage.text)}
    groups = zip(runs, checker.names, strict=True)
    named = [run for run, names in groups if words & {name.lower() for name in names}]
    is_compared = len(named) == 1 and POLARITY.search(passage.text)
    return runs if is_compared or not named else named


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
