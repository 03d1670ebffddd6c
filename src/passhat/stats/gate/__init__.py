"""Rules such as ``pass^4 >= 0.6``, and whether the data show them, refute them or neither.

The room is called ``gates`` so that the function ``passhat.gate`` keeps its name.
"""

from passhat.stats.gate.decision import GateOptions, Tools, gate, judge
from passhat.stats.gate.gate_result import GateResult, GateVerdict, RuleResult
from passhat.stats.gate.rules import Rule, parse_rule

__all__ = [
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
