"""Contrast of the pages' text with what is behind it: at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

SHEETS = [
    (files(place) / name).read_text(encoding="utf-8")
    for place, name in (
        ("passhat.reporting.html", "style.css"),
        ("passhat.reporting.html", "board.css"),
        ("passhat.dashboard", "static/page.css"),
    )
]
STYLE = SHEETS[0]
LOGO = ".brand b"  # dots, which the name beside them says
LINES = [line for sheet in SHEETS for line in sheet.splitlines() if not line.startswith(LOGO)]
TEXTS = sorted(
    {name for line in LINES for name in re.findall(r"[{;] ?color: var\(--(\w+)\)", line)}
)
GROUNDS = ("paper", "card", "soft")
ON_THEIR_OWN = {"bad": "bad-soft", "good": "good-soft"}


def _palettes() -> list[dict[str, str]]:
    """The colors of each block that defines them: light, dark by the system, dark by choice."""
    blocks = [dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in STYLE.split("}")]
    return [block for block in blocks if {"bad", "bad-soft"} <= block.keys()]


def _luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(sign * 2 for sign in color[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_that_of_the_standard() -> None:
    assert _contrast("#000", "#ffffff") == pytest.approx(21)
    assert _contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("palette", _palettes())
def test_text_has_a_contrast_of_four_and_a_half(palette: dict[str, str]) -> None:
    colors = _palettes()[0] | palette
    texts = [name for name in TEXTS if name not in GROUNDS]
    assert {"ink", "faint", "bad", "good"} <= set(texts)
    pairs = [(text, ground) for text in texts for ground in GROUNDS] + list(ON_THEIR_OWN.items())
    low = {
        pair: round(ratio, 2)
        for pair in pairs
        if (ratio := _contrast(colors[pair[0]], colors[pair[1]])) < 4.5
    }
    assert low == {}
