"""Seconds and money in the words a person reads."""

from __future__ import annotations

__all__ = ["duration", "duration_range", "money", "money_range"]


def duration(seconds: float) -> str:
    """``4.2 s``, ``1 min 05 s``, ``2 h 10 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} min"


def duration_range(low: float, high: float) -> str:
    """``10 s to 1 min 05 s``; one value when both read the same."""
    return _range(duration(low), duration(high))


def money(value: float) -> str:
    """US dollars; small sums keep their digits."""
    if value == 0:
        return "$0"
    if value < 0.0001:
        return "under $0.0001"
    return f"${value:,.2f}" if value >= 1 else f"${value:.2g}"


def money_range(low: float, high: float) -> str:
    return _range(money(low), money(high))


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
