"""Rules such as ``pass^4 >= 0.6``, and whether the data show them, refute them or neither.

Without a rule, a run is held against its baseline: regression, none, unsettled. A kind of rule is
one class (:class:`Rule`), made known by :func:`register_rule`; this package registers its own.
"""

from passhat.stats.gate.cases import Case, GateOptions, Tools
from passhat.stats.gate.confirm import Confirmation, FreshRun, confirm_suspects
from passhat.stats.gate.decision import find_suspects, gate, judge
from passhat.stats.gate.each_task import EachTaskRule
from passhat.stats.gate.gate_result import (
    DroppedTask,
    GateResult,
    GateVerdict,
    Rule,
    RuleResult,
)
from passhat.stats.gate.power import simulate_power
from passhat.stats.gate.rules import (
    LimitRule,
    RuleText,
    Sign,
    parse_rule,
    register_rule,
    verdict_of,
)

__all__ = [
    "Case",
    "Confirmation",
    "DroppedTask",
    "EachTaskRule",
    "FreshRun",
    "GateOptions",
    "GateResult",
    "GateVerdict",
    "LimitRule",
    "Rule",
    "RuleResult",
    "RuleText",
    "Sign",
    "Tools",
    "confirm_suspects",
    "find_suspects",
    "gate",
    "judge",
    "parse_rule",
    "register_rule",
    "simulate_power",
    "verdict_of",
]
