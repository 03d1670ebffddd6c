"""How pages write addresses, amounts, times and attempts."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode

from markupsafe import Markup

from passhat._display import percent_interval
from passhat.stats.estimate import Estimate
from passhat.stats.outcomes import Verdict

__all__ = ["address", "cost_text", "day", "dots", "interval_percent", "seconds_text"]

_DOTS = {
    Verdict.PASSED: ("●", "p", "passed"),
    Verdict.FAILED: ("○", "f", "failed"),
    Verdict.MISSING: ("–", "m", "missing"),
}
_MINUTE, _HOUR = 60, 3600


def address(*parts: object, **query: object) -> str:
    """A path of our own, every part escaped; a task's id keeps its slashes."""
    path = "/" + "/".join(quote(str(part), safe="/") for part in parts)
    known = {name: value for name, value in query.items() if value not in ("", None, ())}
    return f"{path}?{urlencode(known, doseq=True)}" if known else path


def dots(marks: Iterable[tuple[int, Verdict]], base: str = "") -> Markup:
    """Attempts as dots, each a link to its attempt if ``base`` is given."""
    parts = []
    for number, verdict in marks:
        sign, kind, word = _DOTS[verdict]
        if base:
            parts.append(
                f'<a class="{kind}" href="{base}/{number}" aria-label="attempt {number} {word}" '
                f'data-tip="#{number} {word}">{sign}</a>'
            )
        else:
            parts.append(f'<span class="{kind}" role="img" aria-label="{word}">{sign}</span>')
    return Markup("").join(map(Markup, parts))


def interval_percent(estimate: Estimate) -> str:
    """``49 to 77%``, or nothing where there is no interval."""
    return "" if estimate.low is None else percent_interval(estimate.low, estimate.high)


def seconds_text(value: float | None) -> str:
    if value is None:
        return "–"
    if 0 < value < 0.1:
        return f"{1000 * value:.0f} ms" if value >= 0.001 else "under 1 ms"
    if value < _MINUTE:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    if value < _HOUR:
        return f"{value / _MINUTE:.1f} min"
    return f"{value / _HOUR:,.1f} h"


def cost_text(value: float | None) -> str:
    """An amount as it was recorded: a store does not record the currency."""
    if value is None:
        return "–"
    return f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.4g}"


def day(stamp: str) -> str:
    """2026-03-01T10:20:30+00:00 as 2026-03-01 10:20."""
    return stamp[:16].replace("T", " ")
