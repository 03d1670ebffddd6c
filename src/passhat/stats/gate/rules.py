"""The rule grammar: subject, sign and limit.

rule     subject sign limit
subject  a metric (pass^4, pass@8, rate ...), missing,
         cost, seconds, steps, tokens            per attempt
         cost/solved, seconds/solved ...         over all attempts, per attempt that passed
sign     >= > <= <
limit    0.6, 60%, or the value of the other run: base, base - 0.03, base + 5%
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from enum import StrEnum

from passhat.errors import MetricError, RuleError, shorten
from passhat.stats.estimate.grammar import metric as parse_metric
from passhat.stats.estimate.metrics import Metric
from passhat.stats.outcomes.attempts import MEASURES

__all__ = ["Measure", "Missing", "Rule", "Sign", "Subject", "parse_rule"]

_RULE = re.compile(r"(?P<subject>[^<>=≥≤!]+?)\s*(?P<sign>[<>=≥≤!]+)\s*(?P<limit>.+)")
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LIMIT = re.compile(rf"(?P<sign>[+-]?)\s*(?P<number>{_NUMBER})\s*(?P<percent>%?)")
_BASE = re.compile(rf"base(?:\s*(?P<sign>[+-])\s*(?P<number>{_NUMBER})\s*(?P<percent>%?))?")
_EXAMPLES = "'pass^4 >= 0.6', 'pass^4 >= base - 0.03', 'cost <= 0.5', 'missing <= 2%'"
_SOLVED = "/solved"


class Sign(StrEnum):
    """The direction of a rule."""

    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"

    @property
    def wants_more(self) -> bool:
        """Whether larger values are better."""
        return self in (Sign.AT_LEAST, Sign.ABOVE)

    def holds(self, value: float, limit: float) -> bool:
        """Whether a value meets the limit."""
        return {
            Sign.AT_LEAST: value >= limit,
            Sign.ABOVE: value > limit,
            Sign.AT_MOST: value <= limit,
            Sign.BELOW: value < limit,
        }[self]


@dataclass(frozen=True, slots=True)
class Measure:
    """Cost, seconds, steps or tokens: per attempt, or per attempt that passed."""

    name: str
    per_solved: bool

    def __str__(self) -> str:
        return f"{self.name}{_SOLVED}" if self.per_solved else self.name


@dataclass(frozen=True, slots=True)
class Missing:
    """The share of attempts that have no verdict."""

    def __str__(self) -> str:
        return "missing"


Subject = Metric | Measure | Missing


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a gate.

    Attributes
    ----------
    subject : Metric, Measure or Missing
        The metric or measure.
    sign : Sign
        Which way.
    limit : float
        The limit; for a relative rule the amount added to the other run's value.
    relative : bool
        Whether the limit is measured from the other run, ``base``.
    """

    subject: Subject
    sign: Sign
    limit: float
    relative: bool = False

    def __str__(self) -> str:
        limit = f"{self.limit:.12g}"
        if self.relative:
            way = "-" if self.limit < 0 else "+"
            limit = f"base {way} {abs(self.limit):.12g}" if self.limit else "base"
        elif isinstance(self.subject, Missing):
            limit = f"{100 * self.limit:.12g}%"
        return f"{self.subject} {self.sign} {limit}"


def parse_rule(text: str | Rule) -> Rule:
    """Read a rule, or raise RuleError with the problem and a suggestion.

    Examples
    --------
    >>> print(parse_rule("pass^4>=60%"))
    pass^4 >= 0.6
    >>> print(parse_rule("pass^4 >= base - 0.03"))
    pass^4 >= base - 0.03
    """
    if isinstance(text, Rule):
        return text
    if not isinstance(text, str):
        raise RuleError(f"a rule is text such as {_EXAMPLES}, not {shorten(text)}.")
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise RuleError(
            f"{shorten(text)} is not a rule: it needs a subject, a sign and a limit.",
            hint=f"Rules look like: {_EXAMPLES}. In a shell, put a rule in quotes.",
        )
    subject = _subject(match["subject"].strip().lower(), text)
    sign = _sign(match["sign"], text)
    limit, relative = _limit(match["limit"].strip().lower(), text)
    rule = Rule(subject, sign, limit, relative)
    _refuse_impossible(rule, text)
    return rule


def _subject(word: str, text: str) -> Subject:
    if word == "missing":
        return Missing()
    measure, slash, rest = (part.strip() for part in word.partition("/"))
    if measure in MEASURES and (not slash or rest == "solved"):
        return Measure(measure, bool(slash))
    if measure in MEASURES:
        raise RuleError(
            f"{shorten(text)}: {measure} can be asked per attempt ({measure}) or per solved task "
            f"({measure}{_SOLVED}), not per {shorten(rest)}."
        )
    try:
        return parse_metric(word)
    except MetricError as error:
        plain = {"duration": "seconds", "time": "seconds", "latency": "seconds", "price": "cost"}
        words = [*MEASURES, *(f"{name}{_SOLVED}" for name in MEASURES), "missing", *plain]
        near = difflib.get_close_matches(word, words, 1, 0.6)
        hint = f"Did you mean {plain.get(near[0], near[0])}?" if near else error.hint
        raise RuleError(
            f"{shorten(text)}: {shorten(word)} is neither a metric nor one of missing, "
            f"{', '.join(MEASURES)}.",
            hint=hint,
        ) from None


def _sign(word: str, text: str) -> Sign:
    plain = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}.get(word, word)
    try:
        return Sign(plain)
    except ValueError:
        raise RuleError(
            f"{shorten(text)}: {word!r} is not a sign a rule can have.",
            hint="Use >=, >, <= or <. No estimate is ever shown to be exactly equal to a number.",
        ) from None


def _limit(word: str, text: str) -> tuple[float, bool]:
    relative = _BASE.fullmatch(word)
    match = relative or _LIMIT.fullmatch(word)
    if match is None:
        near = "" if "base" in word else difflib.get_close_matches(word.split()[0], ["base"], 1)
        raise RuleError(
            f"{shorten(text)}: {shorten(word)} is not a limit.",
            hint="Did you mean base?"
            if near
            else "A limit is a number (0.6), a share (60%), or base - 0.03 to compare with the run "
            "given by --against.",
        )
    if match["number"] is None:
        return 0.0, True
    number = float(match["number"]) / (100 if match["percent"] else 1)
    if not math.isfinite(number):
        raise RuleError(f"{shorten(text)}: {shorten(word)} is too large for a limit.")
    return (-number if match["sign"] == "-" else number), relative is not None


def _refuse_impossible(rule: Rule, text: str) -> None:
    """Limits that cannot be meant: they would always hold, or never."""
    if isinstance(rule.subject, Missing) and (rule.sign.wants_more or rule.relative):
        raise RuleError(
            f"{shorten(text)}: a rule on missing attempts is an upper limit.",
            hint="For example 'missing <= 2%'.",
        )
    if isinstance(rule.subject, Measure):
        if not rule.relative and rule.limit < 0:
            raise RuleError(f"{shorten(text)}: {rule.subject} is never negative.")
        return
    low, high = (
        (rule.subject.lowest, rule.subject.highest)
        if isinstance(rule.subject, Metric)
        else (0.0, 1.0)
    )
    if rule.relative:
        low, high = low - high, high - low
    if low <= rule.limit <= high:
        return
    percent = 1 < rule.limit <= 100 and not rule.relative
    raise RuleError(
        f"{shorten(text)}: {rule.subject} lies between {low:g} and {high:g}, so a limit of "
        f"{rule.limit:g} decides nothing.",
        hint=f"Did you mean {rule.limit:g}%?" if percent else None,
    )
