"""Hypothesis profiles of the tests: the same examples every time, or many new ones.

``make test`` draws the same examples every time, so that a red build is about the change.
``make test-deep`` (``HYPOTHESIS_PROFILE=deep``) draws other ones, 50 times as many or more.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

__all__ = ["load_profile", "max_examples"]

SAME, DEEP = 40, 2000
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")


def load_profile() -> None:
    """Register both profiles and load the one that the environment names."""
    settings.register_profile(
        "same",
        deadline=None,  # machines that run this are shared and noisy
        derandomize=True,
        max_examples=SAME,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.register_profile(
        "deep", settings.get_profile("same"), derandomize=False, max_examples=DEEP
    )
    settings.load_profile(PROFILE)


def max_examples(count: int) -> int:
    """How many examples a test with slow examples draws: about ``count``, many more when deep.

    A number written into ``@settings`` itself would hold for the deep profile, too.
    """
    return max(3, count * 2 // 3) if PROFILE != "deep" else count * DEEP // SAME
