"""How tau2-bench says that a simulation ended, in passhat's words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["FAILED", "MISSING", "failed_check"]

FAILED: Mapping[str, str] = MappingProxyType(
    {
        "max_steps": "timeout: max_steps",
        "timeout": "timeout: timeout",
        "too_many_errors": "agent_error: too_many_errors",
        "agent_error": "agent_error: agent_error",
        "context_window_exceeded": "agent_error: context_window_exceeded",
    }
)
"""The agent's doing."""

MISSING: Mapping[str, str] = MappingProxyType(
    {
        "infrastructure_error": "infrastructure: infrastructure_error",
        "user_error": "user_error: user_error",
        "unexpected_error": "infrastructure: unexpected_error",
    }
)
"""Not the agent's doing at all."""

_CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "DB": "wrong_state",
        "ENV_ASSERTION": "wrong_state",
        "ACTION": "wrong_state",
        "COMMUNICATE": "missing_outputs",
        "NL_ASSERTION": "incomplete_outputs",
    }
)


def failed_check(checks: object) -> str:
    """The first check of a reward breakdown that gave no reward, as ``category: check``."""
    for check, value in checks.items() if isinstance(checks, Mapping) else ():
        if value != 1:
            return f"{_CHECKS.get(str(check), 'unknown_failure')}: {check}"
    return ""
