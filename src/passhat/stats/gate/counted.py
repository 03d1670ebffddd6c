"""Rules on what was counted, not estimated: cost, seconds, steps, tokens, missing attempts.

The verdict is about this run as it was, so it is never open. What nobody recorded is not zero, and
a rule on it cannot be asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from passhat.errors import InvalidValue
from passhat.stats.gate.gate_result import RuleResult, verdict_of
from passhat.stats.gate.rules import Measure, Rule
from passhat.stats.outcomes import Outcomes, Run

__all__ = ["measure_result", "missing_result"]


def missing_result(rule: Rule, outcomes: Outcomes) -> RuleResult:
    share = outcomes.total_missing / outcomes.attempts
    return _counted_result(rule, share, len(outcomes), outcomes.attempts)


def _counted_result(
    rule: Rule, value: float, tasks: int, attempts: int, notes: Sequence[str] = ()
) -> RuleResult:
    """A verdict on what was counted: it holds or it does not."""
    return RuleResult(
        rule,
        verdict_of(rule, value, value),
        value,
        None,
        None,
        None,
        "this run as it was",
        tasks,
        attempts,
        None,
        tuple(notes),
    )


def measure_result(rule: Rule, measure: Measure, run: Run, base: Run | None) -> RuleResult:
    value, notes = _measured(rule, measure, run)
    if rule.relative:
        assert base is not None
        other, more = _measured(rule, measure, base)
        notes = (*notes, *(f"base: {note}" for note in more), f"base has {other:,.4g}")
        value -= other
    return _counted_result(rule, value, len(run.outcomes), run.outcomes.attempts, notes)


def _measured(rule: Rule, measure: Measure, run: Run) -> tuple[float, tuple[str, ...]]:
    """Over the attempts that recorded it: per attempt, or all of it per attempt that passed."""
    found = run.measured(measure.name)
    if found is None:
        raise InvalidValue(
            f"'{rule}' cannot be asked of {run.name}: nobody recorded {measure.name}, and not "
            "recorded is not zero.",
            hint=f"Record it in a column '{measure.name}', or leave the rule out.",
        )
    notes: tuple[str, ...] = ()
    made = run.outcomes.attempts
    if found.recorded < made:
        notes = (
            f"{measure.name} is recorded on {found.recorded:,} of {made:,} attempts, "
            "and only those are counted",
        )
    if not measure.per_solved:
        return found.total / found.recorded, notes
    if found.passed == 0:
        raise InvalidValue(
            f"'{rule}' cannot be asked of {run.name}: no attempt passed, so nothing was solved.",
            hint=f"Ask for {measure.name} per attempt: '{measure.name} {rule.sign} ...'.",
        )
    return found.total / found.passed, (
        *notes,
        f"all of {found.recorded:,} attempts together, per attempt that passed ({found.passed:,})",
    )
