"""Two agents, many agents, slices: lifts with their intervals, and the claims they allow.

``compare`` is also ``passhat.compare``. The room is called comparison, so that no module hides the
function.
"""

from passhat.comparison.claims import Claim
from passhat.comparison.comparing import Comparison, compare
from passhat.comparison.curves import Flip, LiftCurve
from passhat.comparison.lift import Interval, Spread
from passhat.comparison.many import Comparisons, RankSet, compare_all
from passhat.comparison.result import Result
from passhat.comparison.significance import holm, max_t, sign_flip_test, sign_test
from passhat.comparison.slices import SliceResult

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
