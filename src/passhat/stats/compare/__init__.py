"""Two agents, many agents, slices: lifts with their intervals, and the claims they allow.

``compare`` is also ``passhat.compare``.
"""

from passhat.stats.compare.all_pairs import Comparisons, RankSet, compare_all
from passhat.stats.compare.claims import Claim
from passhat.stats.compare.comparison import Result, SliceResult
from passhat.stats.compare.curves import Flip, LiftCurve
from passhat.stats.compare.lift import Interval, LiftSample
from passhat.stats.compare.paired_comparison import Comparison, compare
from passhat.stats.compare.significance import holm, max_t, sign_flip_test, sign_test
from passhat.stats.compare.task_changes import TaskChange

__all__ = [
    "Claim",
    "Comparison",
    "Comparisons",
    "Flip",
    "Interval",
    "LiftCurve",
    "LiftSample",
    "RankSet",
    "Result",
    "SliceResult",
    "TaskChange",
    "compare",
    "compare_all",
    "holm",
    "max_t",
    "sign_flip_test",
    "sign_test",
]
