"""The rules of a gate: a class each, which parses, judges, words and serializes itself.

rule     subject sign limit
subject  a metric (pass^4, pass@8, rate ...), each METRIC, missing,
         cost, seconds, steps, tokens            per attempt
         cost/solved, seconds/solved ...         over all attempts, per attempt that passed
sign     >= > <= <
limit    0.6, 60%, or the value of the other run: base, base - 0.03, base + 5%

A new kind of rule derives from :class:`Rule` (or :class:`LimitRule`, for this grammar) and calls
:func:`register_rule`; nothing else has to know it.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from passhat._display import counted, figure, percent
from passhat.errors import Hint, InvalidValue, MetricError, RuleError, shorten
from passhat.stats.estimate.grammar import metric as parse_metric
from passhat.stats.estimate.metrics import Metric
from passhat.stats.gate.cases import Case
from passhat.stats.gate.gate_result import GateVerdict, Rule, RuleResult
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.attempts import MEASURES

_SHARE = re.compile(r"0?\.\d+|\d+(\.\d+)?\s?%")
_RULE = re.compile(r"(?P<subject>[^<>=≥≤!]+?)\s*(?P<sign>[<>=≥≤!]+)\s*(?P<limit>.+)")
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LIMIT = re.compile(rf"(?P<sign>[+-]?)\s*(?P<number>{_NUMBER})\s*(?P<percent>%?)")
_BASE = re.compile(rf"base(?:\s*(?P<sign>[+-])\s*(?P<number>{_NUMBER})\s*(?P<percent>%?))?")
_EXAMPLES = (
    "'pass^4 >= 0.6', 'pass^4 >= base - 0.03', 'each pass^1 >= 0.8', 'cost <= 0.5', 'missing <= 2%'"
)
SOLVED = "/solved"


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


_KINDS: list[type[Rule]] = []


def register_rule(kind: type[Rule]) -> type[Rule]:
    """Make a kind of rule known to the gate; usable as a decorator."""
    if kind not in _KINDS:
        _KINDS.append(kind)
    return kind


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule taken apart: subject, sign and limit."""

    subject: str
    sign: Sign
    limit: float
    relative: bool
    text: str

    @classmethod
    def split(cls, text: str) -> RuleText:
        """Take a rule apart, or raise RuleError with the problem and a suggestion."""
        match = _RULE.fullmatch(text.strip())
        if match is None:
            limit_alone = _SHARE.fullmatch(text.strip())
            meant = f"Perhaps 'pass^1 >= {text.strip()}'. " if limit_alone else ""
            raise RuleError(
                f"{shorten(text)} is not a rule: it needs a subject, a sign and a limit.",
                hint=f"{meant}Rules look like: {_EXAMPLES}. In a shell, put a rule in quotes.",
            )
        sign = _parse_sign(match["sign"], text)
        limit, relative = _parse_limit(match["limit"].strip().lower(), text)
        return cls(match["subject"].strip().lower(), sign, limit, relative, text)

    def check_range(self, name: object, low: float, high: float) -> None:
        """Refuse a limit that would always hold, or never."""
        if self.relative:
            low, high = low - high, high - low
        if low <= self.limit <= high:
            return
        is_percent = 1 < self.limit <= 100 and not self.relative
        raise RuleError(
            f"{shorten(self.text)}: {name} lies between {low:g} and {high:g}, so a limit of "
            f"{self.limit:g} decides nothing.",
            hint=f"Did you mean {self.limit:g}%?" if is_percent else None,
        )


class LimitRule(Rule):
    """A rule of the common grammar: subject, sign and limit."""

    __slots__ = ()

    sign: Sign
    limit: float

    @classmethod
    def parse(cls, text: str) -> Rule | None:
        return cls.from_text(RuleText.split(text))

    @classmethod
    @abstractmethod
    def from_text(cls, parts: RuleText) -> Rule | None:
        """The rule of these parts, or ``None`` if the subject is another kind's."""

    def limit_text(self) -> str:
        if not self.relative:
            return f"{self.limit:.12g}"
        way = "-" if self.limit < 0 else "+"
        return f"base {way} {abs(self.limit):.12g}" if self.limit else "base"

    def __str__(self) -> str:
        return f"{self.subject} {self.sign} {self.limit_text()}"


def verdict_of(rule: LimitRule, low: float, high: float) -> GateVerdict:
    """Shown when both ends meet the limit, refuted when neither does."""
    ends = {rule.sign.holds(low, rule.limit), rule.sign.holds(high, rule.limit)}
    if ends == {True}:
        return GateVerdict.SHOWN
    return GateVerdict.REFUTED if ends == {False} else GateVerdict.NOT_SETTLED


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
    for kind in _KINDS:
        rule = kind.parse(text)
        if rule is not None:
            return rule
    raise _unknown_subject(RuleText.split(text))


def find_metric(word: str) -> Metric | None:
    """The metric of a word, or ``None`` if it is none."""
    try:
        return parse_metric(word)
    except MetricError:
        return None


def _unknown_subject(parts: RuleText) -> RuleError:
    plain = {"duration": "seconds", "time": "seconds", "latency": "seconds", "price": "cost"}
    words = [*MEASURES, *(f"{name}{SOLVED}" for name in MEASURES), "missing", *plain]
    near = difflib.get_close_matches(parts.subject, words, 1, 0.6)
    hint = f"Did you mean {plain.get(near[0], near[0])}?" if near else None
    if hint is None:
        try:
            parse_metric(parts.subject.removeprefix("each "))
        except MetricError as error:
            hint = error.hint
    return RuleError(
        f"{shorten(parts.text)}: {shorten(parts.subject)} is neither a metric nor one of missing, "
        f"{', '.join(MEASURES)}.",
        hint=hint,
    )


def _parse_sign(word: str, text: str) -> Sign:
    plain = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}.get(word, word)
    try:
        return Sign(plain)
    except ValueError:
        raise RuleError(
            f"{shorten(text)}: {word!r} is not a sign a rule can have.",
            hint="Use >=, >, <= or <. No estimate is ever shown to be exactly equal to a number.",
        ) from None


def _parse_limit(word: str, text: str) -> tuple[float, bool]:
    relative = _BASE.fullmatch(word)
    match = relative or _LIMIT.fullmatch(word)
    if match is None:
        near = "" if "base" in word else difflib.get_close_matches(word.split()[0], ["base"], 1)
        raise RuleError(
            f"{shorten(text)}: {shorten(word)} is not a limit.",
            hint="Did you mean base?"
            if near
            else Hint(
                "A limit is a number (0.6), a share (60%), or base - 0.03 to compare with the "
                "other run ({against}).",
                against="SOURCE",
            ),
        )
    if match["number"] is None:
        return 0.0, True
    value = float(match["number"]) / (100 if match["percent"] else 1)
    if not math.isfinite(value):
        raise RuleError(f"{shorten(text)}: {shorten(word)} is too large for a limit.")
    return (-value if match["sign"] == "-" else value), relative is not None


# -- rules on what is counted, not estimated -------------------------------------------------------
# The verdict is about this run as it was, and is never open. A measure that was not recorded is not
# zero, and a rule on it is refused.

_ROUNDING = 1e-9
"""Three attempts of 0.1 add up to 0.30000000000000004; that must not break a limit of 0.1."""


def _result_of_count(
    rule: LimitRule, value: float, tasks: int, attempts: int, notes: Sequence[str] = ()
) -> RuleResult:
    """A verdict on a counted value: it holds or it does not."""
    return RuleResult(
        rule=rule,
        verdict=verdict_of(rule, value, value),
        value=value,
        low=None,
        high=None,
        level=None,
        about="this run as it was",
        tasks=tasks,
        attempts=attempts,
        notes=tuple(notes),
    )


@register_rule
@dataclass(frozen=True, slots=True)
class MissingRule(LimitRule):
    """An upper limit on the share of attempts without a verdict, as in ``missing <= 2%``."""

    sign: Sign
    limit: float

    marks_incomplete: ClassVar[bool] = True

    @property
    def subject(self) -> str:
        return "missing"

    @classmethod
    def from_text(cls, parts: RuleText) -> MissingRule | None:
        if parts.subject != "missing":
            return None
        if parts.sign.wants_more or parts.relative:
            raise RuleError(
                f"{shorten(parts.text)}: a rule on missing attempts is an upper limit.",
                hint="For example 'missing <= 2%'.",
            )
        parts.check_range("missing", 0.0, 1.0)
        return cls(parts.sign, parts.limit)

    def judge(self, case: Case) -> RuleResult:
        outcomes = case.absent.outcomes
        share = outcomes.total_missing / outcomes.attempts
        return _result_of_count(self, share, len(outcomes), outcomes.attempts)

    def value_text(self, value: float) -> str:
        return percent(value)

    def limit_text(self) -> str:
        return f"{100 * self.limit:.12g}%"


@register_rule
@dataclass(frozen=True, slots=True)
class MeasureRule(LimitRule):
    """A limit on cost, seconds, steps or tokens: per attempt, or per attempt that passed."""

    name: str
    per_solved: bool
    sign: Sign
    limit: float
    relative: bool = False

    @property
    def subject(self) -> str:
        return f"{self.name}{SOLVED}" if self.per_solved else self.name

    @property
    def measure(self) -> str:
        return self.name

    @classmethod
    def from_text(cls, parts: RuleText) -> MeasureRule | None:
        name, slash, rest = (part.strip() for part in parts.subject.partition("/"))
        if name not in MEASURES:
            return None
        if slash and rest != "solved":
            raise RuleError(
                f"{shorten(parts.text)}: {name} can be asked per attempt ({name}) or per solved "
                f"task ({name}{SOLVED}), not per {shorten(rest)}."
            )
        rule = cls(name, bool(slash), parts.sign, parts.limit, parts.relative)
        if not parts.relative and parts.limit < 0:
            raise RuleError(f"{shorten(parts.text)}: {rule.subject} is never negative.")
        return rule

    def judge(self, case: Case) -> RuleResult:
        value, notes = self._measure(case.run)
        size = abs(value)
        if self.relative:
            base_value, base_notes = self._measure(case.baseline(self))
            notes = (*notes, *(f"base: {note}" for note in base_notes))
            notes = (*notes, f"base has {figure(base_value, 4)}")
            size = max(size, abs(base_value))
            value -= base_value
        if abs(value - self.limit) <= _ROUNDING * size:
            value = self.limit
        outcomes = case.run.outcomes
        return _result_of_count(self, value, len(outcomes), outcomes.attempts, notes)

    def _measure(self, run: Run) -> tuple[float, tuple[str, ...]]:
        """Over the attempts that recorded it: per attempt, or all of it per attempt that passed."""
        sums = run.measured(self.name)
        if sums is None:
            raise InvalidValue(
                f"'{self}' cannot be evaluated for {run.name}: {self.name} was not recorded, "
                "and not recorded is not zero.",
                hint=f"Record it in a column '{self.name}', or leave the rule out.",
            )
        notes: tuple[str, ...] = ()
        attempts = run.outcomes.attempts
        if sums.recorded < attempts:
            notes = (
                f"{self.name} is recorded on {sums.recorded:,} of {counted(attempts, 'attempt')}, "
                "and only those are counted",
            )
        if not self.per_solved:
            return sums.total / sums.recorded, notes
        if sums.passed == 0:
            raise InvalidValue(
                f"'{self}' cannot be evaluated for {run.name}: no attempt passed, "
                "so nothing was solved.",
                hint=f"Ask for {self.name} per attempt: '{self.name} {self.sign} ...'.",
            )
        return sums.total / sums.passed, (
            *notes,
            f"all of {counted(sums.recorded, 'attempt')} together, per attempt that passed "
            f"({sums.passed:,})",
        )

    def value_text(self, value: float) -> str:
        return f"{'+' if self.relative and value > 0 else ''}{figure(value, 4)}"
