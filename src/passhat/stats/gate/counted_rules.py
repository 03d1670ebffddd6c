"""Rules on what is counted, not estimated: cost, seconds, steps, tokens, missing attempts.

The verdict is about this run as it was, and is never open. A measure that was not recorded is not
zero, and a rule on it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from passhat._display import counted, figure, percent
from passhat.errors import InvalidValue, RuleError, shorten
from passhat.stats.gate.cases import Case
from passhat.stats.gate.gate_result import RuleResult
from passhat.stats.gate.rules import SOLVED, LimitRule, RuleText, Sign, register_rule, verdict_of
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.attempts import MEASURES

__all__ = ["MeasureRule", "MissingRule"]

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
                f"{self.name} is recorded on {sums.recorded:,} of {attempts:,} attempts, "
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
