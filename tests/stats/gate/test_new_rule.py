"""A new kind of rule is one class: it parses, judges, words and serializes itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from passhat import Outcomes, gate
from passhat._serialize import as_json
from passhat.errors import RuleError
from passhat.stats.gate import (
    Case,
    LimitRule,
    RuleResult,
    RuleText,
    Sign,
    parse_rule,
    register_rule,
    rules,
    verdict_of,
)


@dataclass(frozen=True, slots=True)
class FlakyRule(LimitRule):
    """A limit on the share of tasks that both passed and failed, as in ``flaky <= 10%``."""

    sign: Sign
    limit: float

    @property
    def subject(self) -> str:
        return "flaky"

    @classmethod
    def from_text(cls, parts: RuleText) -> FlakyRule | None:
        if parts.subject != "flaky":
            return None
        parts.check_range("flaky", 0.0, 1.0)
        return cls(parts.sign, parts.limit)

    def judge(self, case: Case) -> RuleResult:
        outcomes = case.run.outcomes
        share = float(((outcomes.c > 0) & (outcomes.c < outcomes.n)).mean())
        return RuleResult(
            rule=self,
            verdict=verdict_of(self, share, share),
            value=share,
            low=None,
            high=None,
            level=None,
            about="this run as it was",
            tasks=len(outcomes),
            attempts=outcomes.attempts,
        )

    def value_text(self, value: float) -> str:
        return f"{100 * value:.0f}%"

    def extra_entries(self, result: RuleResult) -> dict[str, Any]:
        return {"flaky_tasks": round(result.value * result.tasks)}


@pytest.fixture
def _flaky() -> Iterator[None]:
    register_rule(FlakyRule)
    yield
    rules._KINDS.remove(FlakyRule)


@pytest.mark.usefixtures("_flaky")
def test_a_registered_rule_is_parsed_judged_worded_and_written() -> None:
    outcomes = Outcomes.from_counts(4, [4, 2, 0, 1])
    result = gate(outcomes, ["flaky <= 40%", "pass^1 >= 0.01"])
    assert result.exit_code == 1
    assert "refuted  flaky <= 0.4\n      flaky is 50% (this run as it was)\n" in str(result)
    data = json.loads(as_json(result))["rules"][0]
    assert (data["rule"], data["flaky_tasks"]) == ("flaky <= 0.4", 2)
    with pytest.raises(RuleError, match="flaky lies between 0 and 1"):
        parse_rule("flaky <= 3")


def test_without_registration_the_word_is_unknown() -> None:
    with pytest.raises(RuleError, match="neither a metric nor"):
        parse_rule("flaky <= 40%")
