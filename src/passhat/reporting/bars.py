"""A bar as one line of text, and as SVG."""

from __future__ import annotations

from markupsafe import Markup

from passhat.reporting.document import Bar

__all__ = ["draw_bar", "draw_bar_svg"]

_COLUMNS = 40
_WIDTH, _HEIGHT, _EDGE = 480, 46, 34


def draw_bar(bar: Bar) -> str:
    """Draw a bar: the interval, the value in it, zero, and the drop that would be caught.

    Examples
    --------
    >>> draw_bar(Bar("", -14.0, -9.0, -4.0, 10.0))
    '-15 ···├─────────▼──●────────────┤··········│ 0'
    """
    cells = ["·"] * (_COLUMNS + 1)

    def column(point: float) -> int:
        return round(bar.place(point) * _COLUMNS)

    first, last = column(bar.low), column(bar.high)
    cells[first : last + 1] = "─" * (last - first + 1)
    cells[first], cells[last] = "├", "┤"
    cells[column(0.0)] = "│"
    value = column(bar.value)
    if bar.detectable is not None:
        drop = column(-bar.detectable)
        cells[drop if drop != value else max(drop - 1, 0)] = "▼"
    cells[value] = "●"
    left, right = (f"{end:+d}" if end else "0" for end in bar.ends)
    return f"{left} {''.join(cells)} {right}"


def draw_bar_svg(bar: Bar) -> Markup:
    """The same as an SVG that takes the color of the text around it."""

    def x(point: float) -> str:
        return f"{_EDGE + bar.place(point) * (_WIDTH - 2 * _EDGE):.1f}"

    left, right = bar.ends
    parts = [
        f'<path d="M{x(left)} 22H{x(right)}" stroke-width="1" opacity=".35"/>',
        f'<path d="M{x(0)} 10V34" stroke-width="1.5"/>',
        f'<path d="M{x(bar.low)} 22H{x(bar.high)}M{x(bar.low)} 16V28M{x(bar.high)} 16V28" '
        'stroke-width="3"/>',
        f'<circle cx="{x(bar.value)}" cy="22" r="6" fill="currentColor"/>',
    ]
    if bar.detectable is not None:
        at = x(-bar.detectable)
        parts.append(f'<path d="M{at} 14l-5 -9h10z" fill="currentColor"/>')
    for end in dict.fromkeys((left, 0, right)):
        label = f"{end:+d}" if end else "0"
        parts.append(
            f'<text x="{x(end)}" y="44" text-anchor="middle" font-size="11" stroke="none" '
            f'fill="currentColor">{label}</text>'
        )
    return Markup(
        '<svg class="bar" role="img" viewBox="0 0 {} {}" width="{}" height="{}" fill="none" '
        'stroke="currentColor" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, _WIDTH, _HEIGHT, bar.text, Markup("").join(map(Markup, parts)))
