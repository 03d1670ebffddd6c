"""Rules such as ``pass^4 >= 0.6``, and whether the data show them, refute them or neither.

Without a rule, a run is held against its baseline: regression, none beyond the margin, unsettled.
"""

from passhat.stats.gate.decision import GateOptions, Tools, gate, judge
from passhat.stats.gate.gate_result import Advice, GateResult, GateVerdict, RuleResult
from passhat.stats.gate.rules import Rule, parse_rule

__all__ = [
    "Advice",
    "GateOptions",
    "GateResult",
    "GateVerdict",
    "Rule",
    "RuleResult",
    "Tools",
    "gate",
    "judge",
    "parse_rule",
]
