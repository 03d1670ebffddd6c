"""tau2-bench, run in the user's own checkout."""

from passhat.integrations.tau2.suite import Tau2Suite

__all__ = ["Tau2Suite"]
