"""Two agents, many agents, slices: lifts with their intervals, and the claims they allow.

``compare`` is also ``passhat.compare``. The room is called comparison, so that no module hides the
function.
"""

from passhat.stats.compare.all_pairs import Comparisons, RankSet, compare_all
from passhat.stats.compare.claims import Claim
from passhat.stats.compare.comparison import Result
from passhat.stats.compare.curves import Flip, LiftCurve
from passhat.stats.compare.lift import Interval, Spread
from passhat.stats.compare.paired_comparison import Comparison, compare
from passhat.stats.compare.significance import holm, max_t, sign_flip_test, sign_test
from passhat.stats.compare.slices import SliceResult

__all__ = [
    "Claim",
    "Comparison",
    "Comparisons",
    "Flip",
    "Interval",
    "LiftCurve",
    "RankSet",
    "Result",
    "SliceResult",
    "Spread",
    "compare",
    "compare_all",
    "holm",
    "max_t",
    "sign_flip_test",
    "sign_test",
]
