"""The small curve in the terminal."""

from __future__ import annotations

from passhat.reporting.terminal import draw_curve


def test_points_stand_at_their_height() -> None:
    lines = draw_curve([(1, 0.5, 0.5), (2, 0.0, 1.0)])
    assert lines[0] == " 1.0 ┤    ○ "
    assert lines[4] == " 0.5 ┤ ◉    "
    assert lines[8] == " 0.0 ┤    ● "
    assert lines[9] == "       1  2   k"


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    points = [(k, 1 / k, 1 - 1 / (k + 1)) for k in range(1, 33)]
    lines = draw_curve(points)
    assert all(len(line) < 79 for line in lines)
    assert lines[-1].split()[0] == "1"
    assert lines[-1].split()[-2] == "32"
