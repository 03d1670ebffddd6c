"""Two agents, many agents, slices: lifts with their intervals, and the claims they allow.

``compare`` is also ``passhat.compare``.
"""

from passhat.stats.compare.all_pairs import Comparisons, compare_all
from passhat.stats.compare.claims import Claim
from passhat.stats.compare.comparison import Result
from passhat.stats.compare.curves import LiftCurve
from passhat.stats.compare.lift import Interval, LiftSample
from passhat.stats.compare.paired_comparison import Comparison, compare, results_of
from passhat.stats.compare.significance import holm, max_t, sign_flip_test, sign_test

__all__ = [
    "Claim",
    "Comparison",
    "Comparisons",
    "Interval",
    "LiftCurve",
    "LiftSample",
    "Result",
    "compare",
    "compare_all",
    "holm",
    "max_t",
    "results_of",
    "sign_flip_test",
    "sign_test",
]
