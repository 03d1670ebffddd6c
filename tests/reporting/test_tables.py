"""Terminal building blocks: no markup, no control character, no lost text."""

from __future__ import annotations

import pytest
from rich.console import Console, RenderableType

from passhat.reporting.terminal import capture, facts, plain, plain_table


def _shown(part: RenderableType, width: int = 60) -> str:
    return capture(Console(width=width, color_system=None), lambda: [part])


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", "[link=http://x]y", ":smile:", "a\\[b"])
def test_markup_in_a_name_is_text(name: str) -> None:
    assert name in _shown(plain(name))
    assert name in _shown(plain_table(("task",), [(name,)]))
    assert name in _shown(facts([("title", name)]))


@pytest.mark.parametrize("sign", ["\x1b", "\x00", "\x07", "\x9b", "\r", "\t", "\u202e", "\u2028"])
def test_a_control_character_never_reaches_the_terminal(sign: str) -> None:
    for part in (plain(f"a{sign}b"), facts([("t", f"a{sign}b")])):
        assert "a\N{REPLACEMENT CHARACTER}b" in _shown(part)
    assert sign not in _shown(plain_table(("task",), [(f"a{sign}b",)]))


def test_a_long_name_is_broken_and_never_cut() -> None:
    name = "".join(chr(ord("a") + place % 26) for place in range(500))
    for part in (plain_table(("task", "n"), [(name, "3")]), facts([("title", name)])):
        lines = _shown(part, width=40).splitlines()
        letters = "".join(line.replace("title", "") for line in lines if "task" not in line)
        assert name in "".join(ch for ch in letters if ch.isascii() and ch.isalpha())
        assert all(len(line) <= 40 for line in lines)


def test_numbers_end_in_one_column_and_text_begins_in_one() -> None:
    shown = _shown(plain_table(("task", "n"), [("a", "1"), ("bbb", "1,000")]))
    first, second = shown.splitlines()[-2:]
    assert first.index("a") == second.index("b") == 0
    assert len(first.rstrip()) == len(second.rstrip())


def test_a_repeated_title_is_shown_once() -> None:
    shown = _shown(facts([("notes", "one"), ("notes", "two"), ("why", "three"), ("notes", "four")]))
    assert [line.split() for line in shown.splitlines()] == [
        *(["notes", "one"], ["two"], ["why", "three"], ["notes", "four"]),
    ]
    assert _shown(facts([])).strip() == ""
